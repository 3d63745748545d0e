"""Search: counts, symmetry, independence of lanes, exact ends, and the completed-Q rule against plain NumPy."""

import numpy as np
import pytest

from envs import VectorEnv, engine_for, load_variant
from envs.rows import board_of
from models.evaluator import UniformEvaluator
from tests.envs.mirror import flip_fen
from tests.train.numpy_policies import NumpyGumbel, NumpyPuct
from tests.train.search_positions import (
    MAIN_GAMES,
    ConstantEvaluator,
    TableEvaluator,
    assert_same_results,
    random_positions,
    run_search,
)
from train import search_kernels
from train.search import Search, SearchPlayer, SearchSettings, halving_visits

MATE_IN_ONE = "6k1/5ppp/8/8/8/8/5PPP/R5K1 w - - 0 1"
MATE_IN_ONE_FOR_BLACK = "r5k1/5ppp/8/8/8/8/5PPP/6K1 b - - 0 1"
POLICIES = ["gumbel", "puct"]


@pytest.fixture
def numpy_policies(monkeypatch):
    """Register both policies in plain NumPy, too; returns their names."""
    monkeypatch.setattr("train.search_policies.SEARCH_POLICIES", {"numpy-gumbel": NumpyGumbel, "numpy-puct": NumpyPuct})
    return {"gumbel": "numpy-gumbel", "puct": "numpy-puct"}


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


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", MAIN_GAMES)
def test_visits_add_up_at_the_root_and_below(name, policy):
    env = random_positions(name, 8, 40, seed=1)
    budgets = [64, 33, 16, 1, 7, 64, 50, 2]
    settings = SearchSettings(policy=policy)
    search, results = run_search(
        env, range(8), budgets=budgets, evaluator=TableEvaluator(), noise_seed=5, settings=settings
    )
    for slot, (budget, found) in enumerate(zip(budgets, results, strict=True)):
        assert found.visit_counts.sum() == budget
        assert found.policy.sum() == pytest.approx(1, abs=1e-5)
        assert sorted(found.legal_actions.tolist()) == sorted(env.legal_actions(slot).tolist())
        assert all(below == own - 1 for own, below in children_visits(search, slot))


@pytest.mark.parametrize("policy", POLICIES)
def test_a_lane_does_not_depend_on_the_rest_of_its_batch(policy):
    env = random_positions("asylum", 6, 60, seed=2)
    settings = SearchSettings(policy=policy)
    _, together = run_search(
        env, range(6), budgets=[32] * 6, evaluator=TableEvaluator(), noise_seed=1, settings=settings
    )
    for lane in range(6):
        _, alone = run_search(env, [lane], budgets=[32], evaluator=TableEvaluator(), noise_seed=1, settings=settings)
        assert_same_results(alone, [together[lane]])


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", MAIN_GAMES)
def test_a_compiled_policy_searches_as_its_paper_in_plain_numpy_does(name, policy, numpy_policies):
    env = random_positions(name, 6, 30, seed=3)
    for budget, noise_seed in ((33, 1), (150, None)):
        found, expected = (
            run_search(
                env, range(6), budgets=[budget] * 6, evaluator=TableEvaluator(2.0), noise_seed=noise_seed,
                settings=SearchSettings(policy=chosen),
            )[1]
            for chosen in (policy, numpy_policies[policy])
        )  # fmt: skip
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one.visit_counts, other.visit_counts)
            np.testing.assert_allclose(one.policy, other.policy, atol=2e-6)
            assert one.action == other.action
            assert policy == "gumbel" or one.value == other.value


@pytest.mark.parametrize("policy", POLICIES)
def test_a_search_is_the_same_with_the_cache_and_saves_evaluations(policy):
    env = random_positions("gardner", 8, 10, seed=9)
    env.states[4:] = env.states[:4]
    plain, cached = TableEvaluator(), TableEvaluator()
    arguments = {"budgets": [64] * 8, "noise_seed": 4}
    _, without = run_search(env, range(8), evaluator=plain, settings=SearchSettings(policy=policy), **arguments)
    settings = SearchSettings(policy=policy, cache_positions=4096)
    search, found = run_search(env, range(8), evaluator=cached, settings=settings, **arguments)
    assert_same_results(found, without)
    assert search.evaluations == cached.rows < 0.9 * plain.rows
    assert search.evaluations + search.recalled == plain.rows


def test_a_cache_that_is_far_too_small_changes_nothing_either():
    env = random_positions("asylum", 8, 40, seed=9)
    _, without = run_search(env, range(8), budgets=[64] * 8, evaluator=TableEvaluator())
    for size in (1, 3, 64):
        settings = SearchSettings(cache_positions=size)
        _, found = run_search(env, range(8), budgets=[64] * 8, evaluator=TableEvaluator(), settings=settings)
        assert_same_results(found, without)


def test_an_evaluation_is_remembered_until_it_is_to_be_forgotten():
    env = random_positions("gardner", 1, 6, seed=2)
    search = Search(env.game, 1, 8, SearchSettings(cache_positions=4096))

    def evaluated(evaluator) -> int:
        before = search.evaluations
        search.begin(0, env.states[0], env.histories[0], budget=8, rng=None)
        while not search.advance(np.arange(1), evaluator)[0]:
            pass
        return search.evaluations - before

    assert evaluated(TableEvaluator()) > 0
    first = search.result(0)
    assert evaluated(TableEvaluator()) == 0
    assert_same_results([search.result(0)], [first])
    search.forget_evaluations()
    assert evaluated(ConstantEvaluator(0.75)) > 0
    assert search.result(0).raw_value == 0.5


def test_the_cache_tells_clocks_and_repetitions_apart():
    env = VectorEnv("gardner", 4)
    shuffle = ["a1a2", "e5e4", "a2a1", "e4e5"]
    fens = ["4k/5/5/5/K2R1 w - - 0 1", "4k/5/5/5/K2R1 w - - 7 1", "4k/5/5/5/K2R1 w - - 0 1", "4k/5/5/5/K2R1 w - - 4 3"]
    for lane, fen in enumerate(fens):
        env.set_fen(lane, fen)
    for move in shuffle:
        env.step(np.full(4, env.move_to_action(2, move)), np.array([False, False, True, False]))
    arguments = {"budgets": [40] * 4, "evaluator": TableEvaluator()}
    _, without = run_search(env, range(4), **arguments)
    _, found = run_search(env, range(4), settings=SearchSettings(cache_positions=1024), **arguments)
    assert_same_results(found, without)
    assert len({result.raw_value for result in found}) == 4


@pytest.mark.parametrize("simulations", [32, 64])
def test_an_untrained_search_finds_the_mate_in_one_for_both_colours_alike(simulations):
    env = VectorEnv("chess", 2)
    env.set_fen(0, MATE_IN_ONE)
    env.set_fen(1, MATE_IN_ONE_FOR_BLACK)
    settings = SearchSettings(max_considered_actions=simulations)
    player = SearchPlayer(UniformEvaluator(), num_simulations=simulations, name="u", settings=settings)
    actions = player.choose(env, np.arange(2), np.random.default_rng(0))
    assert [env.action_to_move(lane, int(actions[lane])) for lane in range(2)] == ["a1a8", "a8a1"]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("evaluator", [TableEvaluator(), UniformEvaluator()], ids=["table", "uniform"])
@pytest.mark.parametrize("name", MAIN_GAMES)
def test_a_position_and_its_colour_flip_are_searched_alike(name, evaluator, policy):
    env = random_positions(name, 12, 30, seed=6)
    for lane in range(6):
        env.set_fen(lane, env.fen(lane))  # as the flip has it: without a history
        env.set_fen(6 + lane, flip_fen(env.variant, env.fen(lane)))
    search = Search(env.game, 12, 48, SearchSettings(policy=policy))
    for lane in range(12):
        noise = np.random.default_rng(lane % 6)
        search.begin(lane, env.states[lane], env.histories[lane], budget=48, rng=noise)
    while not search.advance(np.arange(12), evaluator).all():
        pass
    results = [search.result(lane) for lane in range(12)]
    for one, other in zip(results[:6], results[6:], strict=True):
        counts = [dict(zip(r.legal_actions.tolist(), r.visit_counts.tolist(), strict=True)) for r in (one, other)]
        assert counts[0] == counts[1]
        assert one.action == other.action
        assert one.value == pytest.approx(other.value, abs=1e-5)


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
        assert found.value == pytest.approx((expected * (2 * completed - 1)).sum(), abs=1e-5)


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


class Fixed:
    """A policy that always answers the same."""

    def __init__(self, select=0, conclude=(0, None)):
        self.selected, self.concluded = select, conclude

    def root_noise(self, num_moves, rng):
        return np.zeros(num_moves, np.float32)

    def select(self, node):
        return self.selected

    def conclude(self, root):
        move, target = self.concluded
        return move, np.eye(len(root.prior))[0] if target is None else target


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (Fixed(select=99), "search policy 'fixed': expected the number of a move, 0 to 6, got 99"),
        (Fixed(select=0.0), "search policy 'fixed': expected the number of a move, 0 to 6, got 0.0"),
        (Fixed(conclude=(-1, None)), "expected the number of a move, 0 to 6, got -1"),
        (Fixed(conclude=(0, [1.0])), r"expected a policy target of 7 probabilities with sum 1, got \[1\] with sum 1"),
        (Fixed(conclude=(0, [1.0] * 7)), r"got \[7\] with sum 7"),
        (Fixed(conclude=(0, [2.0, -1.0, 0, 0, 0, 0, 0])), r"got \[7\] with sum 1"),
        (Fixed(conclude=(0, [np.nan] * 7)), r"got \[7\] with sum nan"),
    ],
)
def test_a_policy_that_answers_nonsense_is_refused_by_name(policy, message, monkeypatch):
    monkeypatch.setattr("train.search_policies.SEARCH_POLICIES", {"fixed": lambda settings: policy})
    env = VectorEnv("gardner", 1)
    with pytest.raises(ValueError, match=message):
        run_search(env, [0], budgets=[4], evaluator=TableEvaluator(), settings=SearchSettings(policy="fixed"))


def test_an_unknown_policy_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="'gumble': expected one of gumbel, puct, did you mean 'gumbel'"):
        Search(engine_for(load_variant("gardner")), 1, 4, SearchSettings(policy="gumble"))


def test_puct_mixes_noise_into_the_roots_priors_alone_and_draws_it_once():
    env = random_positions("chess", 1, 20, seed=8)
    settings = SearchSettings(policy="puct", noise_share=1.0, noise_total=0.01, fpu_reduction=0.0, c_puct=100.0)
    rng = np.random.default_rng(1)
    search = Search(env.game, 1, 64, settings)
    search.begin(0, env.states[0], env.histories[0], budget=64, rng=rng)
    drawn = rng.bit_generator.state
    while not search.advance(np.arange(1), UniformEvaluator())[0]:
        assert rng.bit_generator.state == drawn
    found = search.result(0)
    assert found.visit_counts.max() >= 60, "noise of so small a concentration is all on one move"
    assert found.prior.max() == pytest.approx(1 / len(found.prior)), "the prior that is reported is the network's"
    _, (quiet,) = run_search(env, [0], budgets=[64], evaluator=UniformEvaluator(), settings=settings)
    assert quiet.visit_counts.max() < 10


@pytest.mark.parametrize(
    ("noise", "message"),
    [
        (np.zeros(3), r"expected 7 finite numbers as root noise, got \[3\]"),
        (0.0, r"got \[\]"),
        ([np.nan] * 7, "finite"),
    ],
)
def test_noise_of_another_shape_or_that_is_not_finite_is_refused(noise, message, monkeypatch):
    policy = Fixed()
    policy.root_noise = lambda num_moves, rng: noise
    monkeypatch.setattr("train.search_policies.SEARCH_POLICIES", {"fixed": lambda settings: policy})
    env, settings = VectorEnv("gardner", 1), SearchSettings(policy="fixed")
    with pytest.raises(ValueError, match="search policy 'fixed'.*" + message):
        run_search(env, [0], budgets=[4], evaluator=TableEvaluator(), settings=settings, noise_seed=1)


def test_a_policy_of_ones_own_searches_alike_with_the_cache(numpy_policies):
    env = random_positions("gardner", 4, 10, seed=9)
    env.states[2:] = env.states[:2]
    arguments = {"budgets": [40] * 4, "noise_seed": 4}
    without, found = (
        run_search(
            env, range(4), evaluator=TableEvaluator(), **arguments,
            settings=SearchSettings(policy=numpy_policies["puct"], cache_positions=size),
        )
        for size in (0, 1024)
    )  # fmt: skip
    assert_same_results(found[1], without[1])
    assert found[0].recalled > 0


class Failing:
    """Raises at every third call, and spoils what the others answer."""

    def __init__(self, spoil=lambda logits, wdl: (logits, wdl)):
        self.calls, self.spoil, self.table = 0, spoil, TableEvaluator()

    def __call__(self, observations, legal_actions):
        self.calls += 1
        if self.calls % 3 == 0:
            raise KeyboardInterrupt
        return self.spoil(*self.table(observations, legal_actions))


@pytest.mark.parametrize("policy", POLICIES)
def test_a_round_that_failed_is_made_up_for(policy):
    env = random_positions("asylum", 4, 40, seed=3)
    settings = SearchSettings(policy=policy)
    _, expected = run_search(env, range(4), budgets=[30] * 4, evaluator=TableEvaluator(), settings=settings)
    search, evaluator = Search(env.game, 4, 30, settings), Failing()
    for lane in range(4):
        search.begin(lane, env.states[lane], env.histories[lane], budget=30, rng=None)
    running = np.arange(4)
    while len(running):
        try:
            running = running[~search.advance(running, evaluator)]
        except KeyboardInterrupt:
            continue
    assert_same_results([search.result(lane) for lane in range(4)], expected)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    ("spoil", "error", "message"),
    [
        (lambda logits, wdl: (logits * np.nan, wdl), FloatingPointError, "expected finite values and logits"),
        (lambda logits, wdl: (logits + np.inf, wdl), FloatingPointError, "expected finite values and logits"),
        (lambda logits, wdl: (logits - np.inf, wdl), FloatingPointError, "expected finite values and logits"),
        (lambda logits, wdl: (logits, wdl * np.nan), FloatingPointError, r"got win, draw, loss \[nan"),
        (lambda logits, wdl: (logits[:1, :1], wdl), ValueError, r"expected logits \[2, 7\].*got \[1, 1\]"),
        (lambda logits, wdl: (logits, wdl[:, :2]), ValueError, r"got \[2, 7\] and \[2, 2\]"),
    ],
)
def test_an_evaluator_that_answers_nonsense_is_refused(spoil, error, message, policy):
    env = VectorEnv("gardner", 2)
    with pytest.raises(error, match=message):
        run_search(env, [0, 1], budgets=[9] * 2, evaluator=Failing(spoil), settings=SearchSettings(policy=policy))


def test_padding_may_hold_anything():
    env = VectorEnv("gardner", 2)
    env.set_fen(1, "4k/5/5/5/K2R1 w - - 0 1")

    def spoiling(observations, legal_actions):
        logits, wdl = TableEvaluator()(observations, legal_actions)
        return np.where(legal_actions < 0, np.nan, logits), wdl

    _, found = run_search(env, [0, 1], budgets=[60] * 2, evaluator=spoiling)
    _, expected = run_search(env, [0, 1], budgets=[60] * 2, evaluator=TableEvaluator())
    assert_same_results(found, expected)


def test_a_finished_position_a_wrong_lane_and_an_early_result_are_refused():
    env = VectorEnv("chess", 2)
    env.set_fen(0, "7k/8/8/8/8/8/8/K7 w - - 0 1")
    search = Search(env.game, 1, 4)
    with pytest.raises(ValueError, match="the game is over: 7k/8"):
        search.begin(0, env.states[0], env.histories[0], budget=4, rng=None)
    with pytest.raises(ValueError, match="lane 0: nothing has been searched"):
        search.result(0)
    with pytest.raises(ValueError, match="lane: expected 0 to 0, got 1"):
        search.begin(1, env.states[1], env.histories[1], budget=4, rng=None)
    search.begin(0, env.states[1], env.histories[1], budget=4, rng=None)
    with pytest.raises(ValueError, match="lane 0: nothing has been searched"):
        search.result(0)


@pytest.mark.parametrize(
    "knobs", [{"cache_positions": -1}, {"max_considered_actions": 0}, {"noise_total": 0.0}, {"c_scale": 1e38},
              {"noise_share": 1.5}, {"c_puct_base": np.nan}],
)  # fmt: skip
def test_knobs_out_of_range_are_refused(knobs):
    with pytest.raises(ValueError, match=f"{next(iter(knobs))}: expected"):
        SearchSettings(**knobs)


def test_a_lane_remembers_nothing_of_the_game_that_it_searched_before():
    env = VectorEnv("chess", 1)
    env.set_fen(0, "6k1/8/8/8/8/8/8/K6R w - - 0 1")
    for move in ["a1a2", "g8f8", "a2a1", "f8g8", "a1a2", "g8f8", "a2a1"]:
        env.step(np.array([env.move_to_action(0, move)]))
    fresh, used = (Search(env.game, 1, 200, SearchSettings(max_considered_actions=64)) for _ in range(2))
    used.begin(0, env.states[0], env.histories[0], budget=0, rng=None)
    for search in (fresh, used):
        search.begin(0, env.states[0], env.histories[0][:0], budget=200, rng=None)
        while not search.advance(np.arange(1), ConstantEvaluator(0.9))[0]:
            pass
    assert_same_results([used.result(0)], [fresh.result(0)])


@pytest.mark.parametrize("name", MAIN_GAMES)
def test_the_bound_of_legal_moves_is_the_engines(name):
    env = random_positions(name, 8, 60, seed=2)
    search = Search(env.game, 8, 1)
    for lane in range(8):
        search.begin(lane, env.states[lane], env.histories[lane], budget=0, rng=None)
        assert search._tree[search_kernels.BOUNDS][lane] == env.game.legal_bound(board_of(env.game, env.states[lane]))
