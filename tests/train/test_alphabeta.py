"""The alpha-beta search: limits, lines, draws, and its player."""

from __future__ import annotations

import re
import threading
import time
from typing import Any

import numpy as np
import pytest

from envs import VectorEnv, engine_for, list_variants, load_variant
from envs.kernels import REVERSIBLE_SHIFT
from tests.train.alphabeta_positions import some_positions, stand_in_weights
from train import alphabeta_kernels as kernels
from train.alphabeta import DECISIVE, MATE, AlphaBeta, AlphaBetaPlayer, SearchResult, evaluate, parse_alphabeta

BIG_SEARCH = 64


def searcher(name: str, *, table_bits: int = 14, quiescence_plies: int = 6) -> AlphaBeta:
    game = engine_for(load_variant(name))
    return AlphaBeta(game, stand_in_weights(game), table_bits=table_bits, quiescence_plies=quiescence_plies)


def env_at(fen: str, *moves: str, name: str = "chess") -> VectorEnv:
    env = VectorEnv(name, 1)
    env.set_fen(0, fen)
    for move in moves:
        env.step(np.array([env.move_to_action(0, move)]))
    return env


def best_move(env: VectorEnv, depth: int, *, history: bool = True) -> tuple[str, int]:
    known = env.histories[0, : int(env.states[0, 3] >> REVERSIBLE_SHIFT) + 1] if history else None
    best = searcher(env.variant.name).search(env.states[0], known, depth=depth).best
    return env.action_to_move(0, best.action), best.score


# --- What it finds ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fen, move, plies",
    [
        ("6k1/5ppp/8/8/8/8/5PPP/R5K1 w - - 0 1", "a1a8", 1),
        ("r5k1/5ppp/8/8/8/8/5PPP/6K1 b - - 0 1", "a8a1", 1),
        ("kbK5/pp6/1P6/8/8/8/8/R7 w - - 0 1", "a1a6", 3),
    ],
)
def test_a_mate_scores_by_its_distance_and_has_no_leaf(fen: str, move: str, plies: int) -> None:
    env = env_at(fen)
    best = searcher("chess").search(env.states[0], depth=6).best
    assert (env.action_to_move(0, best.action), best.score) == (move, MATE - plies)
    assert len(best.moves) == plies
    assert best.leaf is None


def test_the_side_that_is_mated_puts_it_off() -> None:
    env = env_at("k7/8/1K6/8/8/8/8/7R b - - 0 1")
    result = searcher("chess").search(env.states[0], depth=5)
    assert result.best.score == -(MATE - 2)
    assert result.depth < 5  # deeper changes nothing


def test_a_double_capture_is_worth_both_victims() -> None:
    game = engine_for(load_variant("asylum"))
    weights = stand_in_weights(game, noise=0)
    env = env_at("5k4/10/10/10/10/10/3q6/3r6/3N6/5K4 w - - 0 1", name="asylum")
    best = AlphaBeta(game, weights).search(env.states[0], depth=1).best
    gained = best.score - int(evaluate(game, weights, env.states)[0])
    assert env.action_to_move(0, best.action) == "d2d4"
    assert gained > -int(weights[:, 0].min())


def test_no_position_of_asylum_makes_quiescence_explode() -> None:
    own = searcher("asylum")
    entered = [own.search(p.row, p.history, depth=3).nodes for p in some_positions("asylum", 40)]
    assert max(entered) < 25 * np.median(entered)


TO_AND_FRO = ("b1a3", "b8a6", "a3b1", "a6b8", "b1a3", "b8a6", "a3b1")
"""After these Black's a6b8 brings the first position about for the third time."""


def test_the_weaker_side_claims_a_draw_by_repetition_and_the_stronger_avoids_it() -> None:
    weaker = env_at("1n4k1/5ppp/8/8/8/8/5PPP/1N1Q2K1 w - - 0 1", *TO_AND_FRO)
    assert best_move(weaker, 3) == ("a6b8", 0)
    assert best_move(weaker, 3, history=False)[1] < 0
    stronger = env_at("1n1q2k1/5ppp/8/8/8/8/5PPP/1N4K1 w - - 0 1", *TO_AND_FRO)
    move, score = best_move(stronger, 3)
    assert move != "a6b8"
    assert score > 0


def test_the_move_limit_is_a_draw_that_a_capture_puts_off() -> None:
    best = searcher("chess").search(env_at("k7/8/8/8/8/6Q1/8/K7 w - - 99 80").states[0], depth=3).best
    assert best.score == 0
    assert best.leaf is None
    move, score = best_move(env_at("k7/8/8/8/8/6Qp/8/K7 w - - 99 80"), 3)
    assert move == "g3h3"
    assert score > 0


@pytest.mark.parametrize("name", list_variants())
def test_every_game_is_played_against_itself_by_legal_moves(name: str) -> None:
    env = VectorEnv(name, 1, seed=1)
    own = searcher(name)
    for ply in range(7):
        if env.over[0]:
            break
        best = own.search(env.states[0], env.histories[0], depth=1 + ply % 2).best
        assert env.legal_action_mask[0, best.action]
        env.step(env.sample_actions() if ply < 3 else np.array([best.action]))
        assert env.plies[0] == ply + 1


@pytest.mark.parametrize("sign", [1, -1])
def test_a_mate_in_the_table_keeps_its_distance_wherever_its_position_comes_up(sign: int) -> None:
    table, key, salt = np.zeros(1 << 6, np.uint64), np.uint64(12345), np.uint64(9)
    kernels.store(table, key, salt, np.uint64(7), 2, kernels.EXACT, sign * (MATE - 7), np.uint64(3))
    entry = kernels.probe(table, key, salt)
    assert kernels.stored_score(entry, np.uint64(5)) == sign * (MATE - 9)
    assert kernels.probe(table, key, np.uint64(10)) == 0


# --- Limits -------------------------------------------------------------------------------------


def test_equal_searches_are_equal_whatever_was_searched_before() -> None:
    positions = some_positions("gardner", 6)
    own = searcher("gardner", table_bits=6)
    first = [own.search(p.row, p.history, depth=5) for p in positions]
    again = [own.search(p.row, p.history, depth=5) for p in reversed(positions)][::-1]
    for one, other in zip(first, again, strict=True):
        assert (one.best.moves, one.best.score, one.nodes) == (other.best.moves, other.best.score, other.nodes)


@pytest.mark.parametrize("nodes", [5_000, 50_001])
def test_a_search_enters_no_more_positions_than_it_may(nodes: int) -> None:
    result = searcher("chess").search(VectorEnv("chess", 1).states[0], nodes=nodes)
    assert result.nodes == nodes
    assert 0 < result.quiescence_nodes < nodes
    assert result.depth >= 2


def test_a_stop_ends_the_search_within_the_next_poll_and_keeps_what_was_found() -> None:
    stop = np.zeros(1, np.uint8)
    seen: list[SearchResult] = []

    def at_depth(result: SearchResult) -> None:
        seen.append(result)
        stop[0] = result.depth == 3

    result = searcher("chess").search(VectorEnv("chess", 1).states[0], depth=BIG_SEARCH, stop=stop, on_depth=at_depth)
    assert [one.depth for one in seen] == [1, 2, 3]
    assert result.depth == 3
    assert result.nodes - seen[-1].nodes <= kernels.POLL_NODES
    assert result.best.moves


def test_another_thread_stops_a_search_that_has_no_other_end() -> None:
    stop = np.zeros(1, np.uint8)
    found: list[SearchResult] = []
    state = VectorEnv("chess", 1).states[0].copy()
    thread = threading.Thread(target=lambda: found.append(searcher("chess").search(state, stop=stop)), daemon=True)
    thread.start()
    time.sleep(0.2)
    stop[0] = 1
    thread.join(timeout=60)
    assert not thread.is_alive()
    assert found[0].lines


def seconds_to_stop(name: str) -> float:
    """Return how long after it was told to a search in another thread ended."""
    stop, ended = np.zeros(1, np.uint8), [0.0]
    state, own = VectorEnv(name, 1).states[0].copy(), searcher(name)

    def run() -> None:
        own.search(state, stop=stop)
        ended[0] = time.perf_counter()

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.2)
    asked = time.perf_counter()
    stop[0] = 1
    thread.join()
    return ended[0] - asked


@pytest.mark.slow
@pytest.mark.parametrize("name", ["chess", "asylum", "wildebeest"])
def test_a_stop_takes_less_than_ten_milliseconds(name: str) -> None:
    assert np.median([seconds_to_stop(name) for _ in range(9)]) < 0.01


def test_time_ends_a_search() -> None:
    result = searcher("chess").search(VectorEnv("chess", 1).states[0], seconds=0.05)
    assert result.depth >= 1
    assert result.seconds < 30


def test_a_finished_game_and_a_search_without_an_end_are_refused() -> None:
    own = searcher("chess")
    mated = env_at("R5k1/5ppp/8/8/8/8/5PPP/6K1 b - - 0 1").states[0]
    with pytest.raises(ValueError, match="over by CHECKMATE"):
        own.search(mated, depth=1)
    state = VectorEnv("chess", 1).states[0]
    with pytest.raises(ValueError, match="without an end"):
        own.search(state)
    for wrong in ({"depth": 0}, {"depth": 65}, {"seconds": 0.0}, {"nodes": 0}, {"depth": 1, "num_lines": 0}):
        with pytest.raises(ValueError, match="expected"):
            own.search(state, **wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"expected uint8 \[1\]"):
        own.search(state, stop=np.zeros(2, np.uint8))
    with pytest.raises(ValueError, match="expected int32"):
        AlphaBeta(engine_for(load_variant("gardner")), stand_in_weights(own.game))


# --- The player ---------------------------------------------------------------------------------


def test_a_text_names_a_player() -> None:
    assert parse_alphabeta("alphabeta:3").name == "alphabeta:3"
    assert parse_alphabeta("alphabeta:50ms").name == "alphabeta:50ms"
    for end in ("", ":", ":0", ":1.5", ":99", ":0ms", ":3s"):
        with pytest.raises(ValueError, match="expected"):
            parse_alphabeta(f"alphabeta{end}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("alphabeta:65", "'alphabeta:65': depth: expected 1 to 64, got 65"),
        ("alphabeta:0ms", "'alphabeta:0ms': time for each move: expected 0.001 to 3600 seconds, got 0"),
        ("alphabeta:3600001ms", "expected 0.001 to 3600 seconds"),
        (f"alphabeta:{'9' * 5000}", "expected alphabeta:PLIES"),
        (f"alphabeta:{'9' * 500}ms", "expected alphabeta:PLIES"),
    ],
)
def test_a_limit_out_of_range_is_refused_with_the_text_and_the_range(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_alphabeta(text)


def test_compiled_code_is_loaded_before_the_clock_of_the_first_move_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    search, limits = AlphaBeta.search, list[tuple[int | None, float | None]]()

    def noted(self: AlphaBeta, *arguments: Any, **options: Any) -> SearchResult:
        limits.append((options.get("depth"), options.get("seconds")))
        return search(self, *arguments, **options)

    monkeypatch.setattr(AlphaBeta, "search", noted)
    env, player = VectorEnv("gardner", 1), AlphaBetaPlayer(seconds=0.002)
    for _ in range(2):
        player.choose(env, np.array([0]), np.random.default_rng(0))
    assert limits == [(1, None), (None, 0.002), (None, 0.002)]


def test_the_player_is_deterministic_at_fixed_depth_and_plays_every_lane() -> None:
    env = VectorEnv("gardner", 3, seed=1)
    for _ in range(4):
        env.step(env.sample_actions())
    lanes = np.flatnonzero(~env.over)
    chosen = [AlphaBetaPlayer(depth=2).choose(env, lanes, np.random.default_rng(n)) for n in range(2)]
    assert chosen[0].dtype == np.int32
    assert chosen[0].tolist() == chosen[1].tolist()
    assert env.legal_action_mask[lanes, chosen[0]].all()


def test_a_decisive_score_cannot_come_from_the_evaluation() -> None:
    game = engine_for(load_variant("gardner"))
    weights = 1000 * stand_in_weights(game)
    env = env_at("4k/5/5/5/KQQQQ b - - 0 1", name="gardner")
    assert int(evaluate(game, weights, env.states)[0]) == 1 - DECISIVE
