"""Greedy capture takes what is worth most at once, ties at random, in every game; what pieces are worth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from envs import Position, Variant, VectorEnv, list_variants, load_variant
from envs.notation import piece_code
from envs.rows import captured_pieces, legal_moves
from tests.envs.mirror import flip_fen, flip_square
from train.arena import MatchSettings, play_match
from train.baselines import GreedyPlayer, RandomPlayer, is_baseline, make_baseline
from train.config import ConfigError, RunConfig
from train.config_sections import EvaluationConfig
from train.mobility import mobility_values
from train.plugins import check_names

DRAWS = 60
"""Choices in one position: one of four moves that are as good is missed once in 3e7 times."""
FRIENDLY = {"friendly_fire": True}

CAPTURES = [
    ("chess", {}, "4k3/8/8/2q1r3/3P4/8/8/K7 w - - 0 1", {"c5"}),
    ("chess", {}, "4k3/8/8/2n1r3/3P4/8/8/K7 w - - 0 1", {"e5"}),
    ("gardner", {}, "4k/5/q1r2/1P3/K4 w - - 0 1", {"a3"}),
    ("makruk", {}, "4k3/8/8/2r1n3/3P4/8/8/3K4 w - - 0 1", {"c5"}),
    ("separate_realms_2", {}, "4k3/8/8/2q1g3/3P4/8/8/K7 w - - 0 1", {"c5"}),
    # a rook fires through a pawn and lands on a knight or a rook; the queen is worth something between the two
    ("asylum", {}, "9k/10/10/10/n9/p9/R2q6/10/10/5K4 w - - 0 1", {"a5", "a6"}),
    ("asylum", {}, "9k/10/10/10/r9/p9/R2q6/10/10/5K4 w - - 0 1", {"d4"}),
    # the same through an own piece, which is worth less than what stands behind it, or more
    ("asylum", FRIENDLY, "9k/10/10/10/10/10/RP1q6/10/10/5K4 w - - 0 1", {"b4", "d4"}),
    ("asylum", FRIENDLY, "9k/10/10/10/10/10/RB1p6/10/10/5K4 w - - 0 1", set()),
    # a guard that jumps over a rook lands on another one, or on a knight; the queen is worth something between the two
    ("palace_ninja_guards", {}, "***1k***/8/8/5r2/2q1r3/3G4/8/8/8/***K1*** w - - 0 1", {"e5", "f6"}),
    ("palace_ninja_guards", {}, "***1k***/8/8/5n2/2q1r3/3G4/8/8/8/***K1*** w - - 0 1", {"c5"}),
    # the last bishop decides the game, one of two queens does not
    ("extinction", {}, "4kqrr/6np/8/2q1b3/3P4/8/8/RNBQK3 w - - 0 1", {"e5"}),
]  # fmt: skip


def draw_moves(variant: Variant, fen: str) -> list[str]:
    """Return the moves of greedy capture in one position, drawn `DRAWS` times."""
    env = VectorEnv(variant, DRAWS)
    for lane in range(DRAWS):
        env.set_fen(lane, fen)
    actions = GreedyPlayer().choose(env, np.arange(DRAWS), np.random.default_rng(0))
    return [env.action_to_move(lane, int(action)) for lane, action in enumerate(actions)]


def draw_victims(variant: Variant, fen: str) -> set[frozenset[str]]:
    """Return what those moves capture."""
    position = Position(variant, fen)
    return {frozenset(position.captures(move)) for move in draw_moves(variant, fen)}


def worth(position: Position, move: str, values: np.ndarray) -> float:
    """Return what the victims of a move are worth to the mover, one by one."""
    board, mover = position.row().view(np.uint8)[32:], int(position.to_play == "b")
    codes = [int(board[position.variant.board.index_by_name[square]]) for square in position.captures(move)]
    return float(sum(values[code] if (code > 16) != mover else -values[code] for code in codes))


@pytest.mark.parametrize(("name", "options", "fen", "victims"), CAPTURES)
def test_it_takes_the_victims_worth_most_as_either_colour(
    name: str, options: dict[str, bool], fen: str, victims: set[str]
) -> None:
    variant = load_variant(name, options)
    assert draw_victims(variant, fen) == {frozenset(victims)}
    flipped = frozenset(flip_square(variant, square) for square in victims)
    assert draw_victims(variant, flip_fen(variant, fen)) == {flipped}


def test_equal_captures_and_quiet_moves_are_drawn_at_random() -> None:
    chess = load_variant("chess")
    assert set(draw_moves(chess, "4k3/8/8/2r1r3/3P4/8/8/K7 w - - 0 1")) == {"d4c5", "d4e5"}
    quiet = "k7/8/8/8/8/8/8/K7 w - - 0 1"
    assert set(draw_moves(chess, quiet)) == {"a1a2", "a1b1", "a1b2"}


def test_who_wins_by_dying_out_spares_the_last_of_a_kind(tmp_path: Path) -> None:
    file = tmp_path / "giveaway.yaml"
    file.write_text("name: Giveaway\nextends: extinction\nends: {extinction: {result: win}}\n")
    assert draw_victims(load_variant(file), "4kqrr/6np/8/2q1b3/3P4/8/8/RNBQK3 w - - 0 1") == {frozenset({"c5"})}


def test_castling_onto_the_rooks_square_captures_nothing(tmp_path: Path) -> None:
    file = tmp_path / "far.yaml"
    far = "castling: {king: e, kingside: {king_to: h, rook: h, rook_to: f}}"
    file.write_text(f"name: Far Castling\nextends: chess\n{far}\n")
    env = VectorEnv(load_variant(file), 1)
    env.set_fen(0, "4k3/8/8/8/8/8/p7/R3K2R w KQ - 0 1")
    moves, counts, _ = legal_moves(env.game, env.states)
    names = [env.action_to_move(0, int(word) >> 16 & 0xFFFF) for word in moves[0, : counts[0]]]
    victims = captured_pieces(env.game, env.states, moves[:, : counts[0]])[0]
    assert "e1h1" in names
    assert {name for name, codes in zip(names, victims, strict=True) if codes.any()} == {"a1a2"}


@pytest.mark.parametrize("name", ["asylum", "palace_ninja_guards", "separate_realms_2", "self_capture"])
def test_no_legal_capture_is_worth_more_by_the_rules_own_victims(name: str) -> None:
    variant = load_variant(name)
    values = mobility_values(variant)
    env = VectorEnv(variant, 6, seed=3)
    seen = set()
    for ply in range(60):
        env.step(env.sample_actions())
        lanes = np.flatnonzero(~env.over)
        if ply % 4 or not lanes.size:
            continue
        actions = GreedyPlayer().choose(env, lanes, env.rng)
        for lane, action in zip(lanes.tolist(), actions.tolist(), strict=True):
            position = Position(variant, env.fen(lane))
            gains = {move: worth(position, move, values) for move in position.legal_moves()}
            assert gains[env.action_to_move(lane, action)] == pytest.approx(max(gains.values()))
            seen.add(max(gains.values()) > 0)
    assert seen == {True, False}


@pytest.mark.parametrize("name", list_variants())
def test_its_moves_are_legal_in_every_game(name: str) -> None:
    settings = MatchSettings(games=4, max_plies=60)
    play_match(load_variant(name), (GreedyPlayer(), RandomPlayer()), settings=settings)  # raises for an illegal one


def test_it_beats_random_where_captures_decide() -> None:
    result = play_match(load_variant("kinglet"), (GreedyPlayer(), RandomPlayer()), settings=MatchSettings(games=100))
    assert result.score.low > 0.6


# --- What pieces are worth ------------------------------------------------------------------------


def value(name: str, letter: str, side: int = 0) -> float:
    variant = load_variant(name)
    return float(mobility_values(variant)[piece_code(variant.type_by_letter[letter], side)])


def test_mobility_orders_the_pieces_of_chess() -> None:
    queen, rook, bishop, knight, pawn = (value("chess", letter) for letter in "QRBNP")
    assert queen == pytest.approx(rook + bishop)
    assert queen > rook > max(bishop, knight)
    assert min(bishop, knight) > 3 * pawn


def test_a_leaper_and_a_slider_have_the_mobility_counted_by_hand() -> None:
    # 5x5: a knight has 96 moves from 25 squares, each open to all but its own side
    assert value("gardner", "N") == pytest.approx(96 / 25 * 0.85)
    # a rook sees n squares in a direction, n = 0 to 4, five times each for four directions; the k-th at 0.7^(k-1)
    seen = sum(0.7**k for n in range(5) for k in range(n))
    assert value("gardner", "R") == pytest.approx(4 * 5 * seen / 25 * 0.85)


def test_both_sides_pieces_are_worth_the_same_where_the_rules_are() -> None:
    for name in ("chess", "asylum", "palace_ninja_guards", "omega"):
        white, black = np.split(mobility_values(load_variant(name)), 2)
        np.testing.assert_allclose(white, black)


def test_firing_through_a_piece_adds_to_mobility() -> None:
    fires = load_variant("asylum", FRIENDLY)
    own = float(mobility_values(fires)[piece_code(fires.type_by_letter["R"], 0)])
    assert own > value("asylum", "R") > value("grand", "R")  # the same board and moves


@pytest.mark.parametrize("name", ["random", "greedy", "alphabeta:2", "alphabeta:50ms"])
def test_every_baseline_is_made_by_its_name_and_may_be_a_runs_opponent(name: str) -> None:
    assert is_baseline(name)
    assert make_baseline(name).name == name
    check_names(RunConfig(variant="gardner", evaluation=EvaluationConfig(opponent=name)))


@pytest.mark.parametrize("name", ["alphabeta", "alphabeta:deep", "alphabeta:0", "radnom"])
def test_a_name_of_no_baseline_is_refused_as_opponent(name: str) -> None:
    assert not is_baseline(name)
    with pytest.raises(ConfigError, match=f"evaluation.opponent: .* got '{name}'"):
        check_names(RunConfig(variant="gardner", evaluation=EvaluationConfig(opponent=name)))
