"""Search and analysis against solved games: values converge to the truth, moves keep it, proofs agree with it.

The positions have an empty history and are won in far fewer plies than the move limit, so repetition and that limit
change no value (see `exact_solver.py`).
"""

import numpy as np
import pytest

from models.evaluator import UniformEvaluator
from tests.train.exact_solver import SolvedEvaluator, solved_ending, solved_quarrel
from train.analysis import Analysis
from train.search import Search, SearchSettings

SOLVED = {
    "quarrel": solved_quarrel,
    "KRk": lambda: solved_ending("gardner", "KRk"),
    "KPk": lambda: solved_ending("gardner", "KPk"),
}
KEPT = {"quarrel": 0.9, "KRk": 0.6, "KPk": 0.85}
"""How many of the moves must keep the value, draws included: where the lone king must take the rook to draw, all other
moves lose, but further off than can be seen, and whoever knows nothing takes them for equal."""
RESULTS = {"win": 1, "draw": 0, "loss": -1}
NO_HISTORY = np.zeros(0, np.uint64)
NODES_AT_ONCE = 1 << 17


def sample(solution, *, distances, number, seed=5):
    """Draw positions with a choice of moves: both colours, all results, so many for each pair of distances."""
    rng, chosen = np.random.default_rng(seed), []
    has_choice = np.diff(solution.first_edge) > 1
    for side in (0, 1):
        for result in (1, 0, -1):
            eligible = has_choice & (solution.sides() == side) & (solution.result == result)
            for low in distances:
                far_enough = (solution.plies >= low) & (solution.plies < low + 2)
                found = np.flatnonzero(eligible & (far_enough if result else True))
                chosen.append(rng.permutation(found)[:number])
    positions = np.unique(np.concatenate(chosen))
    assert set(solution.result[positions]) == {-1, 0, 1}
    assert set(solution.sides()[positions]) == {0, 1}
    return positions


def searched(solution, positions, *, budget, evaluator, **knobs):
    """Search positions; return their values and whether the moves chosen keep the true ones."""
    values, kept = [], []
    for part in np.array_split(positions, len(positions) * budget // NODES_AT_ONCE + 1):
        search = Search(solution.game, len(part), budget, SearchSettings(**knobs))
        for lane, position in enumerate(part):
            search.begin(lane, solution.rows[position], NO_HISTORY, budget=budget, rng=None)
        running = np.arange(len(part))
        while len(running):
            running = running[~search.advance(running, evaluator)]
        for lane, position in enumerate(part.tolist()):
            found = search.result(lane)
            values.append(found.value)
            kept.append(found.action in solution.keepers(position))
    return np.array(values), np.array(kept)


def analysed(solution, positions, *, budget, evaluator):
    """Analyse positions one after another."""
    analysis, found = Analysis(solution.game, evaluator), []
    for position in positions:
        analysis.begin(solution.rows[position], NO_HISTORY)
        analysis.run(budget)
        found.append(analysis.result())
    return found


def check_convergence(errors, kept, *, error_at_last, kept_at_last):
    """Errors must fall from budget to budget and end small; the last moves must keep the value so often."""
    means = [float(error.mean()) for error in errors]
    assert means == sorted(means, reverse=True), means
    assert means[-1] < error_at_last, means
    assert kept[-1].mean() >= kept_at_last


def measure(name, budgets, distances, number, **knobs):
    solution = SOLVED[name]()
    positions = sample(solution, distances=distances, number=number)
    found = [searched(solution, positions, budget=b, evaluator=UniformEvaluator(), **knobs) for b in budgets]
    return [np.abs(values - solution.result[positions]) for values, _ in found], [kept for _, kept in found]


@pytest.mark.parametrize("policy", ["gumbel", "puct"])
@pytest.mark.parametrize("name", SOLVED)
def test_without_knowledge_the_search_converges_to_the_truth(name, policy):
    errors, kept = measure(name, (16, 256, 4096), (1, 3, 5), 2, policy=policy)
    check_convergence(errors, kept, error_at_last=0.2, kept_at_last=KEPT[name])


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["gumbel", "puct"])
@pytest.mark.parametrize("name", SOLVED)
def test_without_knowledge_the_search_converges_to_the_truth_far_from_the_end(name, policy):
    errors, kept = measure(name, (64, 1024, 16384), (1, 3, 5, 7), 4, policy=policy)
    check_convergence(errors, kept, error_at_last=0.2, kept_at_last=KEPT[name])


@pytest.mark.parametrize("budget", [1, 16, 64])
@pytest.mark.parametrize("policy", ["gumbel", "puct"])
@pytest.mark.parametrize("name", SOLVED)
def test_with_the_solver_as_evaluator_the_search_is_right_at_any_budget(name, policy, budget):
    solution = SOLVED[name]()
    positions = sample(solution, distances=(1, 5, 9, 13), number=3)
    evaluator = SolvedEvaluator(solution, preference=10)
    values, kept = searched(solution, positions, budget=budget, evaluator=evaluator, policy=policy)
    assert kept.all()
    assert np.abs(values - solution.result[positions]).max() < 0.05


@pytest.mark.parametrize("policy", ["gumbel", "puct"])
@pytest.mark.parametrize("name", SOLVED)
def test_with_the_solvers_values_alone_the_search_nearly_always_keeps_them_once_it_has_seen_every_move(name, policy):
    solution = SOLVED[name]()
    positions = sample(solution, distances=(1, 5, 9, 13), number=3)
    evaluator = SolvedEvaluator(solution)
    _, kept = searched(solution, positions, budget=64, evaluator=evaluator, policy=policy, max_considered_actions=64)
    assert kept.mean() > 0.95  # below the root the search tries worse moves, too, so that some values are not exact


@pytest.mark.parametrize("name", SOLVED)
def test_without_knowledge_the_analysis_converges_to_the_truth_and_proves_it(name):
    solution = SOLVED[name]()
    positions = sample(solution, distances=(1, 3, 5), number=5)
    found = [analysed(solution, positions, budget=b, evaluator=UniformEvaluator()) for b in (16, 256, 2048)]
    truth = solution.result[positions]
    errors = [np.abs([result.value for result in results] - truth) for results in found]
    kept = [np.array([r.lines[0].action in solution.keepers(p) for r, p in zip(rs, positions)]) for rs in found]
    check_convergence(errors, kept, error_at_last=0.05, kept_at_last=KEPT[name])
    near = (solution.plies[positions] >= 1) & (solution.plies[positions] <= 4)
    assert near.any()
    assert all(result.result for result, is_near in zip(found[-1], near) if is_near)


@pytest.mark.slow
@pytest.mark.parametrize("name", SOLVED)
def test_a_long_analysis_proves_nearly_all_that_is_up_to_eight_plies_off(name):
    solution = SOLVED[name]()
    positions = sample(solution, distances=(5, 7), number=8)
    found = analysed(solution, positions, budget=1 << 16, evaluator=UniformEvaluator())
    decided = []
    for position, result in zip(positions, found):
        assert result.result is None or solution.result[position] == RESULTS[result.result]
        assert result.result in {None, "draw"} or result.plies_to_end >= solution.plies[position]
        decided += [result.result is not None] if solution.result[position] else []
    print(f"{name}: {sum(decided)} of {len(decided)} wins and losses proven")
    assert np.mean(decided) >= 0.95


@pytest.mark.parametrize("name", SOLVED)
def test_every_proof_of_the_analysis_is_true_and_none_is_quicker_than_the_truth(name):
    solution = SOLVED[name]()
    positions = sample(solution, distances=(1, 3, 5, 7), number=4)
    proofs, exact = 0, 0
    for position, found in zip(positions, analysed(solution, positions, budget=2048, evaluator=UniformEvaluator())):
        span = solution.edges(position)
        children = dict(zip(solution.action[span].tolist(), solution.child[span].tolist(), strict=True))
        assert {line.action for line in found.lines} == set(children)
        claims = [(line, children[line.action]) for line in found.lines if line.result]
        for line, child in claims:
            assert RESULTS[line.result] == line.value == -solution.result[child]
            if line.result != "draw":
                assert line.plies_to_end >= solution.plies[child] + 1
                proofs, exact = proofs + 1, exact + (line.plies_to_end == solution.plies[child] + 1)
        if found.result:
            assert RESULTS[found.result] == found.value == solution.result[position]
            assert found.result == "draw" or found.plies_to_end >= solution.plies[position]
    assert proofs > 30
    assert exact > 0.9 * proofs


@pytest.mark.parametrize("name", SOLVED)
def test_with_the_solver_as_evaluator_the_analysis_keeps_the_value_at_any_budget_and_its_own_value_converges(name):
    solution = SOLVED[name]()
    positions = sample(solution, distances=(1, 5, 9, 13), number=3)
    evaluator = SolvedEvaluator(solution, preference=10)
    errors = []
    for budget in (0, 4, 16, 64, 256):
        found = analysed(solution, positions, budget=budget, evaluator=evaluator)
        assert all(r.lines[0].action in solution.keepers(p) for r, p in zip(found, positions))
        errors.append(np.abs([r.value for r in found] - solution.result[positions]).max())
    assert errors[0] == 0
    assert errors[-1] < 0.05
