"""Gumbel AlphaZero and PUCT in plain NumPy, straight from the papers: what the kernels must equal."""

from __future__ import annotations

import numpy as np

from train.search import Node, SearchSettings, halving_visits


def completed_scores(node: Node, settings: SearchSettings) -> np.ndarray:
    """Danihelka et al. 2022: logits + sigma(completed Q), with the mixed value of appendix D, eq. 33."""
    visits = node.visit_counts.astype(np.float64)
    prior, q = node.prior.astype(np.float64), node.qvalues.astype(np.float64)
    seen = visits > 0
    mixed = node.raw_value
    if seen.any():
        mixed = (mixed + visits.sum() * (prior * q)[seen].sum() / prior[seen].sum()) / (1 + visits.sum())
    completed = (np.where(seen, q, mixed) + 1) / 2
    return node.prior_logits + (settings.c_visit + visits.max()) * settings.c_scale * completed


def softmax(scores: np.ndarray) -> np.ndarray:
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


class NumpyGumbel:
    def __init__(self, settings: SearchSettings) -> None:
        self.settings = settings

    def root_noise(self, num_moves: int, rng: np.random.Generator) -> np.ndarray:
        return rng.gumbel(size=num_moves)

    def select(self, node: Node) -> int:
        scores = completed_scores(node, self.settings)
        if node.is_root:
            considered = min(self.settings.max_considered_actions, len(scores), node.budget)
            target = halving_visits(considered, node.budget)[node.simulation]
            return int(np.where(node.visit_counts == target, scores + node.noise, -np.inf).argmax())
        return int((softmax(scores) - node.visit_counts / (1 + node.visit_counts.sum())).argmax())

    def conclude(self, root: Node) -> tuple[int, np.ndarray]:
        scores = completed_scores(root, self.settings)
        most = root.visit_counts == root.visit_counts.max()
        return int(np.where(most, scores + root.noise, -np.inf).argmax()), softmax(scores)


class NumpyPuct:
    def __init__(self, settings: SearchSettings) -> None:
        self.settings = settings

    def root_noise(self, num_moves: int, rng: np.random.Generator) -> np.ndarray:
        return rng.dirichlet(np.full(num_moves, self.settings.noise_total / num_moves))

    def select(self, node: Node) -> int:
        knobs, visits = self.settings, node.visit_counts
        prior, q = node.prior.astype(np.float64), node.qvalues.astype(np.float64)
        passes = 1 + visits.sum()
        value = (node.raw_value + (visits * q).sum()) / passes
        urgency = max(-1.0, value - knobs.fpu_reduction * np.sqrt(prior[visits > 0].sum()))
        if node.noise.any():
            prior = (1 - knobs.noise_share) * prior + knobs.noise_share * node.noise
        explore = (np.log((1 + passes + knobs.c_puct_base) / knobs.c_puct_base) + knobs.c_puct) * np.sqrt(passes)
        return int((np.where(visits > 0, q, urgency) + explore * prior / (1 + visits)).argmax())

    def conclude(self, root: Node) -> tuple[int, np.ndarray]:
        order = np.lexsort((-np.arange(len(root.prior)), root.prior, root.visit_counts))
        return int(order[-1]), root.visit_counts / max(1, root.visit_counts.sum())
