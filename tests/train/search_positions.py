"""Positions, evaluators and whole searches that several test files share."""

from __future__ import annotations

import numpy as np

from envs import VectorEnv
from train.search import Search, SearchResult, SearchSettings

MAIN_GAMES = ["chess", "asylum", "palace_ninja_guards", "separate_realms_2", "gardner"]


class TableEvaluator:
    """A fixed pseudo-random function of each row alone, exact in whole numbers; no two moves have equal logits."""

    def __init__(self, sharpness: float = 1.0) -> None:
        self.sharpness = sharpness
        self.rows = 0

    def __call__(self, observations, legal_actions):
        self.rows += len(observations)
        planes = np.round(observations.reshape(len(observations), -1) * 1000).astype(np.int64)
        keys = (planes * np.arange(1, planes.shape[1] + 1) ** 2).sum(axis=1) % 9973
        mixed = (keys[:, None] * 31 + legal_actions * 7919) % 100003
        logits = (self.sharpness * (mixed - 50001) / 50001).astype(np.float32)
        win = (keys % 101).astype(np.float32) / 100
        return logits, np.stack([win, np.zeros_like(win), 1 - win], axis=1)


class ConstantEvaluator:
    def __init__(self, win: float) -> None:
        self.win = win

    def __call__(self, observations, legal_actions):
        wdl = np.tile(np.array([self.win, 0, 1 - self.win], np.float32), (len(observations), 1))
        return np.zeros(legal_actions.shape, np.float32), wdl


def random_positions(name: str, lanes: int, plies: int, seed: int) -> VectorEnv:
    env = VectorEnv(name, lanes, seed=seed)
    for _ in range(plies):
        env.step(env.sample_actions())
        env.reset(env.over)
    return env


def run_search(
    env, lanes, *, budgets, evaluator, noise_seed=None, settings: SearchSettings | None = None
) -> tuple[Search, list[SearchResult]]:
    search = Search(env.game, len(lanes), max(budgets), settings)
    for slot, lane in enumerate(lanes):
        rng = None if noise_seed is None else np.random.default_rng((noise_seed, int(lane)))
        search.begin(slot, env.states[lane], env.histories[lane], budget=budgets[slot], rng=rng)
    running = np.arange(len(lanes))
    while len(running):
        running = running[~search.advance(running, evaluator)]
    return search, [search.result(slot) for slot in range(len(lanes))]


def assert_same_results(first: list[SearchResult], second: list[SearchResult]) -> None:
    for one, other in zip(first, second, strict=True):
        assert (one.action, one.value, one.raw_value) == (other.action, other.value, other.raw_value)
        np.testing.assert_array_equal(one.visit_counts, other.visit_counts)
        np.testing.assert_array_equal(one.policy, other.policy)
