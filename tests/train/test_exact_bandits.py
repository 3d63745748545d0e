"""The root as a bandit: every position below a root move is worth what that move is, so all answers are known.

Sources: Danihelka et al. 2022, "Policy improvement by planning with Gumbel" (sections 2 to 4); Silver et al. 2018, "A
general reinforcement learning algorithm that masters chess, shogi and Go" (PUCT; c_puct grows by a logarithm).

Dims: M arms, the legal moves of the start of chess.
"""

from itertools import pairwise

import numpy as np
import pytest

from envs import VectorEnv
from train import search_kernels as kernels
from train.search import Search, SearchSettings

ENV = VectorEnv("chess", 1)
M = len(ENV.legal_actions(0))
LANE = np.arange(1)
BY_ACTION = ENV.legal_actions(0).argsort()
"""The arms in the order of their actions, in which noise is drawn and ties are broken."""


class Arms:
    """Gives every leaf the value of the root move above it, seen by the leaf's player; or wins and losses so drawn."""

    def __init__(self, search, values, logits, *, rng=None, root_value=0.0):
        self.search, self.values, self.logits, self.rng, self.root_value = search, values, logits, rng, root_value

    def __call__(self, observations, legal_actions):
        tree = self.search._tree
        node, arm, depth = int(tree[kernels.LEAF][0]), None, 0
        while node != kernels.ROOT:
            arm, node, depth = int(tree[kernels.PARENT_EDGE][node]), int(tree[kernels.PARENT][node]), depth + 1
        value = self.root_value if arm is None else self.values[arm]
        if self.rng is not None:
            value = 1.0 if self.rng.random() < (1 + value) / 2 else -1.0
        value *= (-1) ** depth
        logits = np.zeros(legal_actions.shape, np.float32) if depth else self.logits[None].astype(np.float32)
        return logits, np.array([[(1 + value) / 2, 0, (1 - value) / 2]], np.float32)


def pull(values, logits, budget, *, noise=None, rewards=None, root_value=0.0, watch=None, **knobs):
    """Search a bandit; `watch` is called with the visits after each simulation."""
    search = Search(ENV.game, 1, budget, SearchSettings(**knobs))
    search.begin(0, ENV.states[0], ENV.histories[0], budget=budget, rng=noise)
    arms = Arms(search, values, logits, rng=rewards, root_value=root_value)
    while not search.advance(LANE, arms)[0]:
        if watch:
            watch(search._tree[kernels.EDGE_VISITS][:M].copy())
    return search.result(0)


def bandit(seed, *, spread=1.0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-0.9, 0.7, M), spread * rng.normal(size=M), rng


def in_order_of_arms(noise):
    return noise[np.argsort(BY_ACTION)]


def softmax(logits):
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()


@pytest.mark.parametrize("budget", [M, 32, 100])
def test_the_best_arm_is_chosen_when_all_are_considered_without_noise_or_prior(budget):
    for seed in range(20):
        values, _, _ = bandit(seed)
        found = pull(values, np.zeros(M), budget, max_considered_actions=M)
        assert found.action == found.legal_actions[np.argmax(values)]


@pytest.mark.parametrize(
    ("considered", "budget", "table"),
    [
        (16, 64, {15: 2, 7: 2, 3: 4, 1: 8}),
        (16, 32, {4: 4, 2: 4, 1: 8}),
        (16, 128, {30: 2, 14: 2, 6: 4, 2: 8}),
        (8, 48, {14: 2, 6: 2, 2: 4}),
        (4, 16, {6: 2, 2: 2}),
        (2, 10, {5: 2}),
        (16, 16, {1: 16}),
    ],
)
def test_halving_visits_as_the_paper_says_the_better_half_of_the_arms_on_and_on(considered, budget, table):
    values, logits = bandit(3)[0], np.where(np.arange(M) % 5, 0.0, -9.0)
    likely = BY_ACTION[logits[BY_ACTION] == 0]
    ranked = likely[:considered]
    ranked = ranked[np.argsort(-values[ranked])]
    counts = pull(values, logits, budget, max_considered_actions=considered).visit_counts
    assert counts[ranked].tolist() == [visits for visits, arms in table.items() for _ in range(arms)]
    assert counts.sum() == budget


def test_the_arms_considered_are_those_of_the_highest_logit_and_gumbel_noise():
    for seed in range(20):
        values, logits, _ = bandit(seed)
        counts = pull(values, logits, 16, noise=np.random.default_rng(seed), max_considered_actions=6).visit_counts
        gumbel = in_order_of_arms(np.random.default_rng(seed).gumbel(size=M))
        assert set(np.flatnonzero(counts)) == set(np.argsort(-(logits + gumbel))[:6])


def test_with_noise_and_no_simulation_the_arms_are_drawn_by_the_prior():
    _, logits, _ = bandit(1)
    drawn = [pull(np.zeros(M), logits, 0, noise=np.random.default_rng(seed)).action for seed in range(1000)]
    legal = pull(np.zeros(M), logits, 0).legal_actions
    shares = (np.array(drawn)[:, None] == legal).mean(axis=0)
    assert np.abs(shares - softmax(logits)).sum() / 2 < 0.06


def test_the_policy_target_is_worth_more_than_the_prior_when_all_arms_are_seen():
    for seed in range(50):
        values, logits, _ = bandit(seed, spread=3)
        policy = pull(values, logits, M, max_considered_actions=M).policy
        assert policy @ values > softmax(logits) @ values


def test_the_policy_target_is_worth_more_than_the_prior_by_the_values_that_were_seen():
    gains = []
    for seed in range(50):
        values, logits, rng = bandit(seed)
        prior = softmax(logits)
        found = pull(values, logits, 8, noise=rng, root_value=prior @ values, max_considered_actions=4)
        seen = found.visit_counts > 0
        mean = prior[seen] @ values[seen] / prior[seen].sum()
        completed = np.where(seen, values, (found.raw_value + 8 * mean) / 9)
        assert found.policy @ completed >= prior @ completed
        gains.append((found.policy - prior) @ values)
    assert np.mean(gains) > 3 * np.std(gains) / np.sqrt(len(gains))


def test_the_move_chosen_is_worth_more_than_the_prior_on_average_over_the_noise():
    for seed in range(4):
        values, logits, _ = bandit(seed, spread=2)
        found = [
            pull(values, logits, 2, noise=np.random.default_rng((seed, n)), max_considered_actions=2)
            for n in range(200)
        ]
        worth = np.array([values[result.legal_actions.tolist().index(result.action)] for result in found])
        assert worth.mean() - 3 * worth.std() / np.sqrt(len(worth)) > softmax(logits) @ values


@pytest.mark.parametrize("policy", ["gumbel", "puct"])
def test_with_chance_in_the_rewards_more_simulations_find_better_arms(policy):
    regrets = []
    for budget in (20, 200, 1000):
        regret = []
        for seed in range(12):
            values, _, rng = bandit(seed)
            found = pull(values, np.zeros(M), budget, rewards=rng, policy=policy, max_considered_actions=M)
            regret.append(values.max() - values[found.legal_actions.tolist().index(found.action)])
        regrets.append(np.mean(regret))
    assert regrets == sorted(regrets, reverse=True)
    assert regrets[-1] < 0.1 < regrets[0]


def puct_scores(visits, values, prior, noisy_prior, settings, *, root_value):
    """Return what PUCT says of the arms of a bandit that have been visited so often."""
    seen, passes = visits > 0, 1 + visits.sum()
    mean = (root_value + visits @ values) / passes
    urgency = max(-1.0, mean - settings.fpu_reduction * np.sqrt(prior[seen].sum()))
    weight = settings.c_puct + np.log((1 + passes + settings.c_puct_base) / settings.c_puct_base)
    return np.where(seen, values, urgency) + weight * noisy_prior * np.sqrt(passes) / (1 + visits)


@pytest.mark.parametrize("knobs", [{}, {"c_puct": 3.0, "c_puct_base": 50.0, "fpu_reduction": 0.5}])
@pytest.mark.parametrize("with_noise", [False, True])
def test_puct_obeys_its_formula_step_by_step(knobs, with_noise):
    settings = SearchSettings(policy="puct", **knobs)
    for seed in range(10):
        values, logits, _ = bandit(seed)
        prior = noisy_prior = softmax(logits)
        history, noise = [], None
        if with_noise:
            noise = np.random.default_rng(seed)
            drawn = in_order_of_arms(np.random.default_rng(seed).dirichlet(np.full(M, settings.noise_total / M)))
            noisy_prior = (1 - settings.noise_share) * prior + settings.noise_share * drawn
        found = pull(values, logits, 300, noise=noise, root_value=0.3, watch=history.append, policy="puct", **knobs)
        history.append(found.visit_counts)
        assert [int(visits.sum()) for visits in history] == list(range(301))
        for before, after in pairwise(history):
            scores = puct_scores(before, values, prior, noisy_prior, settings, root_value=0.3)
            assert scores[np.argmax(after - before)] > scores.max() - 1e-5
        np.testing.assert_allclose(found.policy, found.visit_counts / 300, atol=1e-6)
        assert found.action == found.legal_actions[np.argmax(found.visit_counts)]


def test_the_visits_of_puct_gather_on_the_best_arm():
    for seed in range(3):
        values, logits, _ = bandit(seed)
        values[np.argmax(values)] += 0.3
        shares = [pull(values, logits, n, policy="puct").policy[np.argmax(values)] for n in (64, 512, 2048)]
        assert shares == sorted(shares)
        assert shares[-1] > 0.8
