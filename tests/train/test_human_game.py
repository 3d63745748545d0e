"""A person's game in words: what moves do, why they are refused, how games end, taking back, PGN."""

from __future__ import annotations

import io

import chess.pgn
import numpy as np
import pytest

from envs import InvalidFen, Position, load_variant
from train.human_game import HumanGame, effects, move_in_words, moves_from, shown, why_illegal

WHITE, BLACK = 0, 1


def game_of(name: str, fen: str | None = None, moves: str = "", **options: bool) -> HumanGame:
    game = HumanGame(load_variant(name, options), fen)
    for move in moves.split():
        game.push(move)
    return game


@pytest.mark.parametrize(
    ("name", "fen", "move", "words"),
    [
        ("chess", None, "e2e4", "pawn"),
        ("chess", "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1", "e1g1", "king, castles"),
        ("chess", "4k3/8/8/2pP4/8/8/8/4K3 w - c6 0 1", "d5c6", "pawn, captures pawn on c5"),
        ("chess", "3rk3/4P3/8/8/8/8/8/4K3 w - - 0 1", "e7d8n", "pawn, captures rook on d8, becomes a knight"),
        (
            "asylum", "4k5/10/10/3q6/10/3p6/10/10/3R6/5K4 w - - 0 1", "d2d7",
            "super loony rook, captures pawn on d5 and mad queen on d7",
        ),
        (
            "palace_ninja_guards", "***gg***/4k3/8/8/3p4/2G5/8/8/4K3/***2*** w - - 0 1",
            "c4e6", "ninja guard, captures pawn on d5",
        ),
    ],
)  # fmt: skip
def test_a_move_is_told_with_its_piece_and_all_that_it_does(name: str, fen: str, move: str, words: str) -> None:
    position = Position(load_variant(name), fen)
    assert move_in_words(position, move) == words
    assert effects(position, move) == words.split(", ")[1:]


def test_an_own_victim_is_told_as_such() -> None:
    position = Position(load_variant("self_capture"))
    assert move_in_words(position, "a1a2") == "rook, captures its own pawn on a2"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("e2e5", "e2e5: The pawn on e2 may go e2e3 e2e4"),
        ("a1a3", "a1a3: The rook on a1 has no legal move now"),
        ("e7e5", "e7e5: the pawn on e7 is Black's"),
        ("e4e5", "e4e5: there is no piece on e4"),
        ("e2e44", "move 'e2e44': no square 'e44' on this board. Did you mean e2e4?"),
        ("xyz", "expected a move such as 'a2a4' or 'a7a8q', got 'xyz'"),
    ],
)
def test_a_refusal_says_why_and_what_is_near(text: str, answer: str) -> None:
    assert why_illegal(Position("chess"), text).startswith(answer)


def test_a_refusal_asks_for_the_piece_that_a_pawn_becomes() -> None:
    position = Position("chess", "4k3/P7/8/8/8/8/8/4K3 w - - 0 1")
    assert why_illegal(position, "a7a8") == "a7a8: say what it becomes: a7a8b a7a8n a7a8q a7a8r"


def test_a_refusal_tells_of_check() -> None:
    position = Position("chess", "4k3/8/8/8/8/8/P3r3/4K3 w - - 0 1")
    assert why_illegal(position, "a2a3") == "a2a3: White is in check. The pawn on a2 has no legal move now"
    assert why_illegal(position, "e1e4") == "e1e4: White is in check. The king on e1 may go e1d1 e1e2 e1f1"


def test_long_lists_are_cut() -> None:
    moves = Position("chess").legal_moves()
    assert shown(moves).endswith(" and 8 more")
    assert shown(moves[:12]) == " ".join(moves[:12])
    assert moves_from(Position("chess"), "b1") == ["b1a3", "b1c3"]
    with pytest.raises(ValueError, match="no square 'z9'"):
        moves_from(Position("chess"), "z9")


REPEATED = "b1c3 b8c6 c3b1 c6b8 " * 2
ENDINGS = [
    ("chess", None, "f2f3 e7e5 g2g4 d8h4", "Checkmate. Black wins. The rule: A king in check with no legal move"),
    ("chess", "7k/8/6K1/8/8/8/8/5Q2 w - - 0 1", "f1f7", "Stalemate. A draw. The rule: No legal move without"),
    ("chess", None, REPEATED, "Repetition. A draw. The rule: The same position for the third time is a draw"),
    ("chess", "4k3/8/8/8/8/8/8/R3K3 w - - 99 80", "a1a2", "Fifty moves. A draw. The rule: 100 plies without"),
    ("chess", "4k3/8/8/8/8/8/4r3/4K3 w - - 0 1", "e1e2", "Bare kings. A draw. The rule: The two kings alone"),
    ("king_of_the_hill", "4k3/8/8/8/8/4K3/8/8 w - - 0 1", "e3e4", "Hill. White wins. The rule: A king that makes"),
]


@pytest.mark.parametrize(("name", "fen", "moves", "words"), ENDINGS)
def test_an_ending_is_told_with_its_result_and_the_rule(name: str, fen: str | None, moves: str, words: str) -> None:
    game = game_of(name, fen, moves)
    assert game.is_over
    assert game.ending().startswith(words)


def test_a_scepter_and_an_extinction_are_told_by_their_names() -> None:
    fen = "***2***/k2K4/8/8/8/8/8/8/8/***2*** w - - 0 1"
    game = game_of("palace_ninja_guards", fen, "d8d9", scepter=True)
    assert game.ending().startswith("Scepter. White wins. The rule: A king that makes a legal move onto d9 or e9")
    game = game_of("breakthrough", "8/8/8/3p4/4P3/8/8/8 w - - 0 1", "e4d5")
    assert game.ending().startswith("Extinction. White wins. The rule: A side that has no piece left loses")


def test_a_resignation_ends_the_game_and_can_be_taken_back() -> None:
    game = game_of("chess", moves="e2e4 e7e5")
    with pytest.raises(ValueError, match="goes on"):
        game.ending()
    game.resigned = WHITE
    assert (game.is_over, game.winner) == (True, BLACK)
    assert game.ending() == "White resigns. Black wins."
    assert game.undo(WHITE) == ["the resignation"]
    assert not game.is_over
    assert game.moves == ["e2e4", "e7e5"]


@pytest.mark.parametrize(
    ("side", "moves", "taken"),
    [
        (WHITE, "e2e4 e7e5", ["e7e5", "e2e4"]),
        (WHITE, "e2e4", ["e2e4"]),
        (BLACK, "e2e4 e7e5 g1f3", ["g1f3", "e7e5"]),
        (BLACK, "e2e4", []),
        (WHITE, "", []),
        (BLACK, "", []),
    ],
)
def test_undo_goes_back_to_where_a_side_had_to_move(side: int, moves: str, taken: list[str]) -> None:
    game = game_of("chess", moves=moves)
    assert game.undo(side) == taken
    assert game.moves == moves.split()[: len(moves.split()) - len(taken)]
    if taken:
        assert game.side == side


@pytest.mark.parametrize(
    ("moves", "resigned", "result", "termination"),
    [
        ("f2f3 e7e5 g2g4 d8h4", None, "0-1", "normal"),
        ("e2e4 e7e5", BLACK, "1-0", "resignation"),
        ("e2e4", None, "*", "unterminated"),
        (REPEATED, None, "1/2-1/2", "normal"),
    ],
)
def test_the_pgn_of_a_game_of_chess_is_read_back(
    moves: str, resigned: int | None, result: str, termination: str
) -> None:
    game = game_of("chess", moves=moves)
    game.resigned = resigned
    read = chess.pgn.read_game(io.StringIO(game.pgn(("me", "greedy"), {"Date": "2026.01.02"})))
    assert read is not None
    assert not read.errors
    assert [move.uci() for move in read.mainline_moves()] == moves.split()
    tags = read.headers
    assert (tags["White"], tags["Black"], tags["Date"], tags["Result"]) == ("me", "greedy", "2026.01.02", result)
    assert tags["Termination"] == termination


def test_a_game_from_a_position_of_ones_own_says_so_in_its_pgn() -> None:
    fen = "4k3/8/8/8/8/8/P7/4K3 b - - 0 7"
    game = game_of("chess", fen, "e8d7")
    text = game.pgn(("me", "greedy"), {})
    assert f'[SetUp "1"]\n[FEN "{fen}"]' in text
    assert text.endswith("\n\n7... Kd7 *\n")
    np.testing.assert_array_equal(game.actions, [Position("chess", fen).move_to_action("e8d7")])
    with pytest.raises(InvalidFen):
        game_of("chess", "8/8")
