"""Search: counts, symmetry, independence of lanes, exact ends, and the completed-Q rule against plain NumPy."""

import numpy as np
import pytest

from envs import VectorEnv, engine_for, load_variant
from models.evaluator import UniformEvaluator
from train import search_kernels
from train.search import Search, SearchPlayer, SearchSettings, halving_visits

MATE_IN_ONE = "6k1/5ppp/8/8/8/8/5PPP/R5K1 w - - 0 1"
MATE_IN_ONE_FOR_BLACK = "r5k1/5ppp/8/8/8/8/5PPP/6K1 b - - 0 1"


class TableEvaluator:
    """A fixed pseudo-random function of each row alone, whatever else is in the batch."""

    def __call__(self, observations, legal_actions):
        weights = np.random.default_rng(3).normal(size=observations[0].size).astype(np.float32)
        score = np.array([np.float32((row.ravel() * weights).sum()) for row in observations])
        logits = np.sin(score[:, None] + legal_actions).astype(np.float32)
        win = (1 + np.sin(score)) / 2
        return logits, np.stack([win, np.zeros_like(win), 1 - win], axis=1).astype(np.float32)


def random_positions(name: str, lanes: int, plies: int, seed: int) -> VectorEnv:
    env = VectorEnv(name, lanes, seed=seed)
    for _ in range(plies):
        legal = [env.legal_actions(lane) for lane in range(lanes)]
        env.step(np.array([env.rng.choice(actions) if len(actions) else 0 for actions in legal]))
        env.reset(env.over)
    return env


def run_search(env, lanes, *, budgets, evaluator, noise_seed=None):
    search = Search(env.game, len(lanes), max(budgets))
    for slot, lane in enumerate(lanes):
        rng = None if noise_seed is None else np.random.default_rng((noise_seed, int(lane)))
        search.begin(slot, env.states[lane], env.histories[lane], budget=budgets[slot], rng=rng)
    running = np.arange(len(lanes))
    while len(running):
        running = running[~search.advance(running, evaluator)]
    return search, [search.result(slot) for slot in range(len(lanes))]


def children_visits(search, slot):
    """Yield, for each expanded node but the root, its own visits and the sum of its children's."""
    tree = search._tree
    node0, edge0 = slot * search._num_nodes, slot * search._num_edges
    for node in range(1, int(tree[search_kernels.NUM_NODES][slot])):
        if tree[search_kernels.OVER][node0 + node] or node == tree[search_kernels.LEAF][slot]:
            continue
        own = int(tree[search_kernels.EDGE_VISITS][edge0 + tree[search_kernels.PARENT_EDGE][node0 + node]])
        first = edge0 + int(tree[search_kernels.FIRST_EDGE][node0 + node])
        yield (
            own,
            int(
                tree[search_kernels.EDGE_VISITS][
                    first : first + int(tree[search_kernels.NUM_EDGES][node0 + node])
                ].sum()
            ),
        )


@pytest.mark.parametrize(("considered", "simulations"), [(1, 7), (2, 9), (8, 16), (16, 16), (16, 64), (5, 33)])
def test_the_halving_schedule_spends_the_budget_and_visits_the_survivors_equally(considered, simulations):
    wanted = halving_visits(considered, simulations)
    assert len(wanted) == simulations
    assert wanted[:considered] == ([0] * considered if considered > 1 else [0])[:simulations]
    assert sorted(set(wanted)) == list(range(max(wanted) + 1))


@pytest.mark.parametrize("name", ["chess", "asylum", "palace_ninja_guards", "separate_realms_2", "gardner"])
def test_visits_add_up_at_the_root_and_below(name):
    env = random_positions(name, 8, 40, seed=1)
    budgets = [64, 33, 16, 1, 7, 64, 50, 2]
    search, results = run_search(env, range(8), budgets=budgets, evaluator=TableEvaluator(), noise_seed=5)
    for slot, (budget, found) in enumerate(zip(budgets, results, strict=True)):
        assert found.visit_counts.sum() == budget
        assert found.policy.sum() == pytest.approx(1, abs=1e-5)
        assert sorted(found.legal_actions.tolist()) == sorted(env.legal_actions(slot).tolist())
        assert all(below == own - 1 for own, below in children_visits(search, slot))


def test_a_lane_does_not_depend_on_the_rest_of_its_batch():
    env = random_positions("asylum", 6, 60, seed=2)
    _, together = run_search(env, range(6), budgets=[32] * 6, evaluator=TableEvaluator(), noise_seed=1)
    for lane in range(6):
        _, (alone,) = run_search(env, [lane], budgets=[32], evaluator=TableEvaluator(), noise_seed=1)
        assert alone.action == together[lane].action
        np.testing.assert_array_equal(alone.visit_counts, together[lane].visit_counts)
        np.testing.assert_array_equal(alone.policy, together[lane].policy)
        assert alone.value == together[lane].value


@pytest.mark.parametrize("simulations", [16, 64])
def test_an_untrained_search_finds_the_mate_in_one_for_both_colours_alike(simulations):
    env = VectorEnv("chess", 2)
    env.set_fen(0, MATE_IN_ONE)
    env.set_fen(1, MATE_IN_ONE_FOR_BLACK)
    settings = SearchSettings(max_considered_actions=simulations)
    player = SearchPlayer(UniformEvaluator(), num_simulations=simulations, name="u", settings=settings)
    actions = player.choose(env, np.arange(2), np.random.default_rng(0))
    assert [env.action_to_move(lane, int(actions[lane])) for lane in range(2)] == ["a1a8", "a8a1"]


def test_a_position_and_its_colour_flip_are_searched_alike():
    white = "rnbqkbnr/pp1ppppp/8/2p5/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq - 0 3"
    black = "rnbqkb1r/pppp1ppp/5n2/4p3/2P5/8/PP1PPPPP/RNBQKBNR b KQkq - 0 3"
    env = VectorEnv("chess", 2)
    env.set_fen(0, white)
    env.set_fen(1, black)
    _, (first, second) = run_search(env, [0, 1], budgets=[48, 48], evaluator=TableEvaluator())
    counts = [dict(zip(r.legal_actions.tolist(), r.visit_counts.tolist(), strict=True)) for r in (first, second)]
    assert counts[0] == counts[1]
    assert sum(counts[0].values()) == 48
    assert first.action == second.action
    assert first.value == pytest.approx(second.value, abs=1e-5)


def test_a_third_occurrence_on_the_path_is_a_draw_with_the_games_own_history():
    env = VectorEnv("chess", 1)
    env.set_fen(0, "6k1/8/8/8/8/8/8/K6R w - - 0 1")
    for move in ["a1a2", "g8f8", "a2a1", "f8g8", "a1a2", "g8f8", "a2a1"]:
        env.step(np.array([env.move_to_action(0, move)]))
    assert env.outcome[0] is None
    drawing = env.move_to_action(0, "f8g8")
    settings = SearchSettings(max_considered_actions=64)
    search = Search(env.game, 1, 200, settings)
    search.begin(0, env.states[0], env.histories[0], budget=200, rng=None)
    while not search.advance(np.arange(1), ConstantEvaluator(0.9))[0]:
        pass
    found = search.result(0)
    edge = found.legal_actions.tolist().index(drawing)
    assert search._tree[search_kernels.EDGE_VALUE][edge] == 0
    assert search._tree[search_kernels.EDGE_VISITS][edge] > 0


class ConstantEvaluator:
    def __init__(self, win: float) -> None:
        self.win = win

    def __call__(self, observations, legal_actions):
        wdl = np.tile(np.array([self.win, 0, 1 - self.win], np.float32), (len(observations), 1))
        return np.zeros(legal_actions.shape, np.float32), wdl


def test_the_policy_target_is_the_softmax_of_logits_and_completed_q_values():
    env = random_positions("gardner", 4, 12, seed=4)
    search, results = run_search(env, range(4), budgets=[24] * 4, evaluator=TableEvaluator(), noise_seed=2)
    for slot, found in enumerate(results):
        edge0, count = slot * search._num_edges, len(found.legal_actions)
        logits, sums = (
            search._tree[k][edge0 : edge0 + count].astype(np.float64)
            for k in (search_kernels.EDGE_LOGIT, search_kernels.EDGE_VALUE)
        )
        visits = found.visit_counts
        prior = np.exp(logits) / np.exp(logits).sum()
        seen = visits > 0
        q = np.where(seen, sums / np.maximum(visits, 1), 0)
        mixed = (found.raw_value + visits.sum() * (prior * q)[seen].sum() / prior[seen].sum()) / (1 + visits.sum())
        completed = (np.where(seen, q, mixed) + 1) / 2
        scores = logits + (50 + visits.max()) * completed
        expected = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
        np.testing.assert_allclose(found.policy, expected, atol=1e-5)


def test_a_search_with_no_budget_plays_the_networks_best_move():
    env = random_positions("gardner", 2, 5, seed=6)
    search = Search(env.game, 1, 4)
    search.begin(0, env.states[0], env.histories[0], budget=0, rng=None)
    assert search.advance(np.arange(1), TableEvaluator())[0]
    found = search.result(0)
    assert found.action == found.legal_actions[found.prior.argmax()]


def test_the_edge_pool_grows_when_games_need_more(monkeypatch):
    monkeypatch.setattr("train.search.EDGES_PER_NODE", 1)
    env = random_positions("asylum", 3, 60, seed=7)
    _, small = run_search(env, range(3), budgets=[40] * 3, evaluator=TableEvaluator())
    monkeypatch.undo()
    _, large = run_search(env, range(3), budgets=[40] * 3, evaluator=TableEvaluator())
    for first, second in zip(small, large, strict=True):
        np.testing.assert_array_equal(first.visit_counts, second.visit_counts)


def test_a_budget_over_the_reserved_one_is_refused():
    game = engine_for(load_variant("gardner"))
    env = VectorEnv("gardner", 1)
    with pytest.raises(ValueError, match="expected 0 to 4, got 5"):
        Search(game, 1, 4).begin(0, env.states[0], env.histories[0], budget=5, rng=None)
