"""Analysis of one position: counts, values and proofs at rest, against plain sequential PUCT and against exhaustion."""

from __future__ import annotations

import itertools
import math
import re

import numpy as np
import pytest

from envs import Position, VectorEnv, engine_for, load_variant
from models.evaluator import UniformEvaluator
from tests.train.mate_solver import sample_positions, solve
from train import analysis_kernels as kernels
from train import search_kernels
from train.analysis import Analysis, AnalysisPlayer, AnalysisSettings

LIVELY = ["chess", "asylum", "breakthrough", "extinction", "king_of_the_hill", "stalemate_wins", "horde", "kinglet"]
MATE_IN_ONE = "6k1/5ppp/8/8/8/8/5PPP/R5K1 w - - 0 1"
MATE_IN_ONE_FOR_BLACK = "r5k1/5ppp/8/8/8/8/5PPP/6K1 b - - 0 1"
QUIET = "rnbqkbnr/pp1ppppp/8/2p5/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq - 0 3"
QUIET_FLIPPED = "rnbqkb1r/pppp1ppp/5n2/4p3/2P5/8/PP1PPPPP/RNBQKBNR b KQkq - 0 3"


class TableEvaluator:
    """A fixed pseudo-random function of each row alone; keeps how many rows it was given at once."""

    def __init__(self):
        self.batches = []

    def __call__(self, observations, legal_actions):
        self.batches.append(len(observations))
        weights = np.random.default_rng(3).normal(size=observations[0].size).astype(np.float32)
        score = np.array([np.float32((row.ravel() * weights).sum()) for row in observations])
        logits = np.sin(score[:, None] + legal_actions).astype(np.float32)
        win = (1 + np.sin(score)) / 2
        return logits, np.stack([win, np.zeros_like(win), 1 - win], axis=1).astype(np.float32)


class PieceEvaluator:
    """The side with more pieces is winning, or with the wrong sign losing."""

    def __init__(self, sign=1.0):
        self.sign = sign

    def __call__(self, observations, legal_actions):
        types = 6
        own, enemy = observations[:, :types].sum((1, 2, 3)), observations[:, types : 2 * types].sum((1, 2, 3))
        win = (1 + self.sign * np.tanh(own - enemy)) / 2
        return np.zeros(legal_actions.shape, np.float32), np.stack([win, 0 * win, 1 - win], axis=1)


def analyse(env, simulations, *, evaluator=None, **knobs):
    analysis = Analysis(env.game, evaluator or UniformEvaluator(), AnalysisSettings(**knobs))
    analysis.begin(env.states[0], env.histories[0])
    analysis.run(simulations)
    return analysis


def position(name, fen=None, moves=()):
    env = VectorEnv(name, 1)
    if fen is not None:
        env.set_fen(0, fen)
    for move in moves:
        env.step(np.array([env.move_to_action(0, move)]))
    return env


def samples(name, count, seed=1):
    found = list(sample_positions(name, games=8, plies=80, every=5, seed=seed))
    return found[:: max(1, len(found) // count)][:count]


def by_action(result):
    return {line.action: line for line in result.lines}


# --- At rest --------------------------------------------------------------------------------------


def assert_at_rest(analysis):
    """Check every count, value and proof of a tree against its definition."""
    tree, more = analysis._tree, analysis._more
    num_nodes, num_edges = int(tree[search_kernels.NUM_NODES][0]), int(tree[search_kernels.EDGES_USED][0])
    assert not more[kernels.EDGE_VIRTUAL][:num_edges].any()
    assert not more[kernels.AWAITING][:num_nodes].any()
    for node in range(num_nodes):
        first = int(tree[search_kernels.FIRST_EDGE][node])
        edges = slice(first, first + int(tree[search_kernels.NUM_EDGES][node]))
        assert_visits(tree, node, edges)
        assert_value(tree, more, node, edges)
        assert_proof(tree, more, node, edges)


def visits_of(tree, node):
    if node == search_kernels.ROOT:
        return int(tree[search_kernels.SIMULATIONS][0]) + 1
    return int(tree[search_kernels.EDGE_VISITS][tree[search_kernels.PARENT_EDGE][node]])


def assert_visits(tree, node, edges):
    assert visits_of(tree, node) == 1 + int(tree[search_kernels.EDGE_VISITS][edges].sum())


def assert_value(tree, more, node, edges):
    proof = int(more[kernels.PROOF][node])
    value = float(more[kernels.VALUE][node])
    if proof:
        assert value == {kernels.WIN: 1, kernels.DRAW: 0, kernels.PROVEN_LOSS: -1}[proof]
        return
    visits, sums = tree[search_kernels.EDGE_VISITS][edges], tree[search_kernels.EDGE_VALUE][edges]
    counted = more[kernels.EDGE_PROOF][edges] != kernels.PROVEN_LOSS
    expected = (tree[search_kernels.RAW_VALUE][node] + sums[counted].sum()) / (1 + visits[counted].sum())
    if kernels.DRAW in more[kernels.EDGE_PROOF][edges]:
        expected = max(expected, 0)
    assert value == pytest.approx(float(expected), abs=1e-4)
    for edge in np.flatnonzero(visits) + edges.start:
        child = tree[search_kernels.EDGE_CHILD][edge]
        mean = float(tree[search_kernels.EDGE_VALUE][edge] / tree[search_kernels.EDGE_VISITS][edge])
        assert mean == pytest.approx(-float(more[kernels.VALUE][child]), abs=1e-5)


def assert_proof(tree, more, node, edges):
    proofs = more[kernels.EDGE_PROOF][edges].tolist()
    plies = more[kernels.EDGE_PLIES][edges].tolist()
    for edge, proof, end in zip(range(edges.start, edges.stop), proofs, plies, strict=True):
        child = int(tree[search_kernels.EDGE_CHILD][edge])
        if child == search_kernels.UNVISITED:
            assert (proof, end) in {(kernels.UNPROVEN, 0), (kernels.WIN, 1)}
        else:
            opposite = int(more[kernels.PROOF][child])
            assert proof == {kernels.WIN: -1, kernels.PROVEN_LOSS: 1}.get(opposite, opposite)
            assert end == (int(more[kernels.PLIES][child]) + 1 if opposite else 0)
    if tree[search_kernels.OVER][node]:
        return
    ends = {proof: [end for other, end in zip(proofs, plies, strict=True) if other == proof] for proof in proofs}
    if kernels.WIN in ends:
        expected = (kernels.WIN, min(ends[kernels.WIN]))
    elif kernels.UNPROVEN in ends:
        expected = (kernels.UNPROVEN, 0)
    elif kernels.DRAW in ends:
        expected = (kernels.DRAW, min(ends[kernels.DRAW]))
    else:
        expected = (kernels.PROVEN_LOSS, max(ends[kernels.PROVEN_LOSS]))
    assert (int(more[kernels.PROOF][node]), int(more[kernels.PLIES][node])) == expected


@pytest.mark.parametrize("batch_size", [1, 7, 32])
@pytest.mark.parametrize("name", LIVELY)
def test_counts_values_and_proofs_are_what_their_definitions_say_and_no_virtual_visit_is_left(name, batch_size):
    game = engine_for(load_variant(name))
    for sample in samples(name, 3):
        analysis = Analysis(game, TableEvaluator(), AnalysisSettings(batch_size=batch_size))
        analysis.begin(sample.row, sample.history)
        for simulations in (1, 40, 300):
            analysis.run(simulations)
            assert_at_rest(analysis)


def test_a_loss_is_as_long_as_its_longest_and_a_win_as_short_as_its_shortest_move():
    uneven = 0
    for ending in endings(12, clock=60):
        analysis = analyse(position("gardner", ending.fen()), 2000)
        assert_at_rest(analysis)
        tree, more = analysis._tree, analysis._more
        for node in np.flatnonzero(more[kernels.PROOF][: int(tree[search_kernels.NUM_NODES][0])]):
            first = int(tree[search_kernels.FIRST_EDGE][node])
            plies = more[kernels.EDGE_PLIES][first : first + int(tree[search_kernels.NUM_EDGES][node])]
            uneven += more[kernels.PROOF][node] == kernels.PROVEN_LOSS and len(set(plies.tolist())) > 1
    assert uneven


@pytest.mark.parametrize("batch_size", [1, 16])
def test_each_legal_move_is_visited_before_any_is_visited_twice(batch_size):
    for sample in samples("asylum", 3):
        game = engine_for(load_variant("asylum"))
        if solve(game, sample).is_win:
            continue
        analysis = Analysis(game, TableEvaluator(), AnalysisSettings(batch_size=batch_size))
        analysis.begin(sample.row, sample.history)
        analysis.run(0)
        moves = len(analysis.result().lines)
        for done in range(7, moves, 7):
            analysis.run(7)
            assert sorted(line.visit_count for line in analysis.result().lines) == [0] * (moves - done) + [1] * done
    assert moves > 7


@pytest.mark.parametrize("batch_size", [1, 5, 16])
def test_the_budget_is_exact_and_every_batch_is_full_at_most(batch_size):
    for name, sample in [(game, sample) for game in ("chess", "breakthrough") for sample in samples(game, 3)]:
        evaluator = TableEvaluator()
        analysis = Analysis(engine_for(load_variant(name)), evaluator, AnalysisSettings(batch_size=batch_size))
        analysis.begin(sample.row, sample.history)
        for simulations in (0, 1, 99, 3):
            before = analysis.simulations
            analysis.run(simulations)
            found = analysis.result()
            assert found.simulations == before + simulations or found.result
            assert found.simulations <= before + simulations
            assert found.simulations == sum(line.visit_count for line in found.lines)
        assert analysis.evaluations == sum(evaluator.batches) <= analysis.simulations + 1
        assert max(evaluator.batches) <= batch_size


def test_leaves_of_a_batch_are_distinct_and_most_batches_are_full():
    evaluator = TableEvaluator()
    analyse(position("chess"), 2000, evaluator=evaluator, batch_size=16)
    assert np.mean(evaluator.batches) > 12


def test_a_proven_move_is_not_searched_again():
    proven = 0
    for ending in endings(8, clock=98):
        analysis = analyse(position("gardner", ending.fen()), 30, evaluator=TableEvaluator(), batch_size=1)
        edges = np.flatnonzero(analysis._more[kernels.EDGE_PROOF][: int(analysis._tree[search_kernels.EDGES_USED][0])])
        before = analysis._tree[search_kernels.EDGE_VISITS][edges].copy()
        analysis.run(200)
        np.testing.assert_array_equal(analysis._tree[search_kernels.EDGE_VISITS][edges], before)
        assert_at_rest(analysis)
        proven += len(edges)
    assert proven > 20


# --- Against plain PUCT ---------------------------------------------------------------------------


class PlainNode:
    """Sequential PUCT with wins at once and proofs, straight from the definitions."""

    def __init__(self, env, evaluator):
        self.env, self.evaluator, self.visits = env, evaluator, 1
        self.actions = [] if env.over[0] else env.legal_actions(0).tolist()
        self.children = [None] * len(self.actions)
        self.wins = [float(self.after(action)[1]) == 1 for action in self.actions]
        if not env.over[0] and not any(self.wins):
            self.evaluate()

    def evaluate(self):
        logits, wdl = self.evaluator(self.env.observe(), np.array([self.actions], np.int32))
        weights = np.exp(logits[0].astype(np.float64))
        self.prior, self.raw = weights / weights.sum(), float(wdl[0, 0] - wdl[0, 2])

    def after(self, action):
        env = self.env.copy()
        rewards, _, _ = env.step(np.array([action]))
        return env, rewards[0]

    @property
    def proof(self):
        """1, 0, -1 or None, for the player to move."""
        if self.env.over[0]:
            score = float(self.env.white_score[0])
            return 2 * score - 1 if self.env.to_play[0] == 0 else 1 - 2 * score
        if any(self.wins):
            return 1.0
        proofs = [None if child is None or child.proof is None else -child.proof for child in self.children]
        if 1 in proofs:
            return 1.0
        return None if None in proofs else max(proofs)

    @property
    def value(self):
        if self.proof is not None:
            return self.proof
        played = [child for child in self.children if child is not None and child.proof != 1]
        total = self.raw - sum(child.visits * child.value for child in played)
        value = total / (1 + sum(child.visits for child in played))
        return max(value, 0.0) if any(child.proof == 0 for child in played) else value

    def simulate(self, *, is_root=False):
        unvisited = [i for i, child in enumerate(self.children) if child is None]
        chosen = max(unvisited, key=lambda i: self.prior[i]) if is_root and unvisited else self.pick()
        child = self.children[chosen]
        if child is None:
            self.children[chosen] = PlainNode(self.after(self.actions[chosen])[0], self.evaluator)
        else:
            child.simulate()
        self.visits += 1

    def pick(self):
        knobs = AnalysisSettings()
        weight = knobs.c_puct + math.log((self.visits + knobs.c_puct_base + 1) / knobs.c_puct_base)
        value, best, best_score = self.value, -1, -math.inf
        for i, child in enumerate(self.children):
            if child is not None and child.proof is not None:
                continue
            q = value - knobs.fpu_reduction if child is None else -child.value
            count = 0 if child is None else child.visits
            score = q + weight * self.prior[i] * math.sqrt(self.visits) / (1 + count)
            if score > best_score:
                best, best_score = i, score
        return best


@pytest.mark.parametrize("name", ["gardner", "breakthrough", "extinction"])
def test_batches_of_one_leaf_are_plain_sequential_puct(name):
    env = VectorEnv(name, 1)
    proven = 0
    for sample in samples(name, 3, seed=4):
        env.states[0] = sample.row
        env.set_fen(0, env.fen(0))
        plain = PlainNode(env.copy(), TableEvaluator())
        analysis = analyse(env, 0, evaluator=TableEvaluator(), batch_size=1)
        for _ in range(120):
            if plain.proof is not None:
                break
            plain.simulate(is_root=True)
        analysis.run(120)
        found = by_action(analysis.result())
        counts = [0 if child is None else child.visits for child in plain.children]
        assert [found[action].visit_count for action in plain.actions] == counts
        assert analysis.result().value == pytest.approx(plain.value, abs=1e-4)
        proven += sum(line.result is not None for line in found.values())
    assert proven or name == "gardner"


def test_an_analysis_goes_on_where_it_stopped():
    env = position("chess", QUIET)
    knobs = {"evaluator": TableEvaluator(), "batch_size": 1}
    once, twice = analyse(env, 300, **knobs), analyse(env, 120, **knobs)
    twice.run(180)
    assert once.result() == twice.result()


def test_what_the_tree_held_before_does_not_matter():
    env, other = position("chess", QUIET), position("chess", MATE_IN_ONE.replace("w", "b"))
    analysis = analyse(other, 200, evaluator=TableEvaluator())
    analysis.begin(env.states[0], env.histories[0])
    analysis.run(200)
    assert analysis.result() == analyse(env, 200, evaluator=TableEvaluator()).result()


def test_the_arrays_grow_without_a_trace(monkeypatch):
    env = position("asylum")
    grown = analyse(env, 400, evaluator=TableEvaluator())
    reserve = Analysis._reserve
    monkeypatch.setattr(Analysis, "_reserve", lambda self, *sizes: reserve(self, 1000, 100_000, sizes[2]))
    at_once = analyse(env, 400, evaluator=TableEvaluator())
    assert len(grown._tree[search_kernels.PARENT]) < len(at_once._tree[search_kernels.PARENT])
    assert grown.result() == at_once.result()


@pytest.mark.parametrize("batch_size", [1, 16])
def test_a_position_and_its_colour_flip_are_analysed_alike(batch_size):
    first, second = (
        analyse(position("chess", fen), 300, evaluator=TableEvaluator(), batch_size=batch_size).result()
        for fen in (QUIET, QUIET_FLIPPED)
    )
    assert first == second


# --- Proofs ---------------------------------------------------------------------------------------


def exhaust(position):
    """Return the result for the player to move, 1, 0 or -1, and the plies to the end of best play."""
    outcome = position.outcome()
    if outcome is not None:
        return 0 if outcome.winner is None else (1 if outcome.winner == position.to_play else -1), 0
    found = []
    for move in position.legal_moves():
        position.push(move)
        result, plies = exhaust(position)
        position.pop()
        found.append((-result, plies + 1))
    best = max(result for result, _ in found)
    plies = [plies for result, plies in found if result == best]
    return best, min(plies) if best >= 0 else max(plies)


def endings(count, clock):
    """Yield endings of kings and a queen or rook on five files, all of them a few plies from the move limit."""
    rng = np.random.default_rng(8)
    game = load_variant("gardner")
    while count:
        board = [""] * game.num_squares
        for piece, square in zip(["K", "k", str(rng.choice(["Q", "R", "q"]))], rng.permutation(25), strict=False):
            board[square] = piece
        ranks = ["".join(piece or "1" for piece in board[5 * y : 5 * y + 5]) for y in range(4, -1, -1)]
        placement = re.sub("1+", lambda empty: str(len(empty[0])), "/".join(ranks))
        try:
            ending = Position(game, f"{placement} {rng.choice(['w', 'b'])} - - {clock} 60")
        except ValueError:
            continue
        if ending.outcome() is None:
            count -= 1
            yield ending


def test_a_proven_ending_is_what_exhaustion_says():
    seen = set()
    for ending in endings(60, clock=97):
        expected, plies = exhaust(ending)
        env = position("gardner", ending.fen())
        found = analyse(env, 5000, evaluator=TableEvaluator()).result()
        assert found.value == expected
        assert found.result == {1: "win", 0: "draw", -1: "loss"}[expected]
        assert plies <= found.plies_to_end or not expected
        assert found.lines[0].result == found.result
        assert found.lines[0].plies_to_end == found.plies_to_end
        seen.add(found.result)
    assert seen == {"win", "draw", "loss"}


@pytest.mark.parametrize("name", LIVELY)
def test_short_proofs_of_moves_are_what_exhaustion_says(name):
    game = engine_for(load_variant(name))
    for sample in samples(name, 12, seed=5):
        solved = solve(game, sample)
        analysis = Analysis(game, UniformEvaluator())
        analysis.begin(sample.row, sample.history)
        analysis.run(400)
        lines = by_action(analysis.result())
        for action, wins, loses, wins_in_two in zip(
            solved.actions.tolist(), solved.wins, solved.loses, solved.wins_in_two, strict=True
        ):
            line = lines[action]
            if line.result == "win":
                assert (line.plies_to_end == 1) == wins
                assert wins or (line.plies_to_end <= 3) == wins_in_two
            if line.result == "loss":
                assert (line.plies_to_end <= 2) == loses
            if wins_in_two:
                assert line.result in ("win", None)
            if not solved.is_win:
                assert line.result == "loss" or not loses


def test_lines_are_ordered_by_proof_then_visits_and_none_is_missing():
    for name, sample in [(game, sample) for game in LIVELY for sample in samples(game, 6, seed=6)]:
        game = engine_for(load_variant(name))
        analysis = Analysis(game, TableEvaluator())
        analysis.begin(sample.row, sample.history)
        analysis.run(300)
        found = analysis.result()
        assert sorted(line.action for line in found.lines) == sorted(solve(game, sample).actions.tolist())
        assert sum(line.prior for line in found.lines) == pytest.approx(1, abs=1e-5)
        groups = {
            result: [line for line in found.lines if line.result == result] for result in ("win", "draw", "loss", None)
        }
        middle = [groups["draw"], groups[None]]
        if groups[None] and (groups[None][0].value or 0) >= 0:
            middle.reverse()
        assert [*found.lines] == [*groups["win"], *middle[0], *middle[1], *groups["loss"]]
        assert all(a.plies_to_end <= b.plies_to_end for a, b in itertools.pairwise(groups["win"]))
        assert all(a.plies_to_end >= b.plies_to_end for a, b in itertools.pairwise(groups["loss"]))
        assert all(a.visit_count >= b.visit_count for a, b in itertools.pairwise(groups[None]))


@pytest.mark.parametrize("fen, move", [(MATE_IN_ONE, "a1a8"), (MATE_IN_ONE_FOR_BLACK, "a8a1")])
def test_a_mate_at_once_is_proven_without_a_simulation(fen, move):
    env = position("chess", fen)
    found = analyse(env, 100).result()
    assert (found.simulations, found.evaluations, found.value) == (0, 1, 1.0)
    best = found.lines[0]
    assert (best.result, best.plies_to_end, best.pv) == ("win", 1, (env.move_to_action(0, move),))
    assert all(line.value is None for line in found.lines[1:])


def test_a_principal_variation_of_a_proof_is_the_whole_play_to_the_end():
    env = position("chess", "kbK5/pp6/1P6/8/8/8/8/R7 w - - 0 1")
    found = analyse(env, 4000).result()
    assert (found.result, found.plies_to_end) == ("win", 3)
    moves = []
    for action in found.lines[0].pv:
        moves.append(env.action_to_move(0, action))
        env.step(np.array([action]))
    assert (moves[0], len(moves)) == ("a1a6", 3)
    assert env.outcome[0].winner == "w"


def test_a_draw_by_the_move_limit_is_proven_by_looking_at_each_move_once():
    found = analyse(position("chess", "6k1/8/8/8/8/8/8/K6R w - - 99 80"), 1000).result()
    assert (found.result, found.value, found.plies_to_end) == ("draw", 0.0, 1)
    assert (found.simulations, found.evaluations) == (len(found.lines), 1)


SHUFFLE = ["a1a2", "g8f8", "a2a1", "f8g8", "a1a2", "g8f8", "a2a1"]


@pytest.mark.parametrize("sign, is_first", [(1.0, True), (-1.0, False)])
def test_a_third_occurrence_is_a_proven_draw_that_is_played_when_all_else_is_worse(sign, is_first):
    env = position("chess", "6k1/8/8/8/8/8/8/K6R w - - 0 1", SHUFFLE)
    found = analyse(env, 200, evaluator=PieceEvaluator(sign)).result()
    drawing = by_action(found)[env.move_to_action(0, "f8g8")]
    assert (drawing.result, drawing.value, drawing.plies_to_end) == ("draw", 0.0, 1)
    assert (found.lines[0] is drawing) == is_first
    assert (found.value == 0) == is_first
    forgotten = position("chess", env.fen(0))
    assert by_action(analyse(forgotten, 200).result())[drawing.action].result is None


# --- Players and errors ---------------------------------------------------------------------------


def test_the_player_plays_the_best_line_of_each_lane():
    env = VectorEnv("chess", 3)
    for lane, fen in enumerate([MATE_IN_ONE, MATE_IN_ONE_FOR_BLACK, QUIET]):
        env.set_fen(lane, fen)
    player = AnalysisPlayer(UniformEvaluator(), num_simulations=50, name="analysis")
    actions = player.choose(env, np.arange(3), np.random.default_rng(0))
    assert [env.action_to_move(lane, int(actions[lane])) for lane in range(2)] == ["a1a8", "a8a1"]
    assert actions[2] in env.legal_actions(2)
    assert player.choose(env, np.array([2]), np.random.default_rng(1))[0] == actions[2]


@pytest.mark.parametrize("fen, how", [
    ("R5k1/5ppp/8/8/8/8/8/6K1 b - - 0 1", "checkmate"),
    ("k7/2Q5/1K6/8/8/8/8/8 b - - 0 1", "stalemate"),
    ("k7/8/1K6/8/8/8/8/8 b - - 0 1", "bare_kings"),
    ("k7/8/1K6/8/8/8/8/R7 b - - 100 80", "fifty_moves"),
])  # fmt: skip
def test_a_finished_position_is_refused_with_its_end(fen, how):
    env = position("chess", fen)
    with pytest.raises(ValueError, match=f"the game is over \\({how}\\): nothing to analyse in "):
        Analysis(env.game, UniformEvaluator()).begin(env.states[0], env.histories[0])


def test_a_game_that_ended_by_repetition_is_refused():
    env = position("chess", "6k1/8/8/8/8/8/8/K6R w - - 0 1", [*SHUFFLE, "f8g8"])
    with pytest.raises(ValueError, match="repetition"):
        Analysis(env.game, UniformEvaluator()).begin(env.states[0], env.histories[0])


def test_calls_out_of_order_and_numbers_out_of_range_are_refused():
    env = position("chess")
    analysis = Analysis(env.game, UniformEvaluator())
    with pytest.raises(ValueError, match="call begin first"):
        analysis.run(1)
    with pytest.raises(ValueError, match="call run first"):
        analysis.result()
    analysis.begin(env.states[0], env.histories[0])
    with pytest.raises(ValueError, match="expected at least 0, got -1"):
        analysis.run(-1)
    with pytest.raises(ValueError, match="call run first"):
        analysis.result()
    with pytest.raises(ValueError, match="batch_size: expected 1 to"):
        AnalysisSettings(batch_size=0)
