"""Chess against python-chess: every ply of random games played to the end, by the kernels.

Compared: legal moves, captures, check, the FEN with legal en passant only, mate, stalemate, threefold
repetition, the clock. python-chess's own automatic draws (75 moves, fivefold, dead positions) are no rules of
ours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import chess
import numpy as np
import pytest

from envs import Outcome, Position, Termination, load_variant, rules, rules_fen
from tests.envs.random_games import Temper, pick_move, starts
from tests.envs.rules_position import RulesPosition

NUM_POSITIONS = 8_000
CHESS = load_variant("chess")


class Difference(AssertionError):
    """The engine and the oracle disagree."""


def compare(position: Position | RulesPosition, board: chess.Board, seen: Counter[str]) -> None:
    seen["positions"] += 1
    facts = {
        "legal moves": (position.legal_moves(), sorted(move.uci() for move in board.legal_moves)),
        "FEN": (position.fen(), board.fen(en_passant="legal")),
        "check": (position.in_check, board.is_check()),
        "clock": (position.halfmove_clock, board.halfmove_clock),
        "side": (position.to_play, "w" if board.turn else "b"),
        "threefold": (position.repetitions >= 2, board.is_repetition(3)),
        "outcome": (position.outcome(), outcome_of(board)),
    }
    for what, (ours, theirs) in facts.items():
        if ours != theirs:
            raise Difference(f"{what} in {board.fen()}: we say {ours}, python-chess {theirs}")


def outcome_of(board: chess.Board) -> Outcome | None:
    """Return the outcome by python-chess's tests and our order."""
    if board.is_checkmate():
        return Outcome(Termination.CHECKMATE, "b" if board.turn else "w")
    if board.is_stalemate():
        return Outcome(Termination.STALEMATE, None)
    if len(board.piece_map()) == 2:
        return Outcome(Termination.BARE_KINGS, None)
    if board.is_repetition(3):
        return Outcome(Termination.REPETITION, None)
    if board.halfmove_clock >= 100:
        return Outcome(Termination.FIFTY_MOVES, None)
    return None


def play(make_position: Callable[[str], Position | RulesPosition], num_positions: int, seed: int) -> Counter[str]:
    rng = np.random.default_rng(seed)
    fens = starts(CHESS, rng)
    seen: Counter[str] = Counter()
    while seen["positions"] < num_positions:
        fen = next(fens)
        board = chess.Board(fen)
        if board.status() & chess.STATUS_PAWNS_ON_BACKRANK:
            continue  # python-chess lets a pawn on its first rank make a double step
        play_game(make_position(fen), board, rng, seen)
    return seen


def play_game(
    position: Position | RulesPosition, board: chess.Board, rng: np.random.Generator, seen: Counter[str]
) -> None:
    temper, state = Temper.draw(rng), rules_fen.parse_fen(CHESS, board.fen())
    played: list[rules.Move] = []
    compare(position, board, seen)
    while position.outcome() is None:
        moves = rules.legal_moves(CHESS, state)
        last = played[-2] if len(played) > 1 else None
        move = pick_move(CHESS, rng, temper, state=state, moves=moves, last=last)
        name = rules_fen.move_name(CHESS, move)
        seen[move.kind.value] += 1
        if position.captures(name) != sorted(captured(board, name)):
            raise Difference(f"captures of {name} in {board.fen()}")
        position.push(name)
        board.push_uci(name)
        played.append(move)
        state = rules.make(CHESS, state, move)
        compare(position, board, seen)
    ending = position.outcome()
    assert ending is not None
    seen[ending.termination.name] += 1


def captured(board: chess.Board, name: str) -> list[str]:
    move = chess.Move.from_uci(name)
    if board.is_en_passant(move):
        return [chess.square_name(chess.square(chess.square_file(move.to_square), chess.square_rank(move.from_square)))]
    return [chess.square_name(move.to_square)] if board.is_capture(move) else []


def test_chess_is_the_chess_of_python_chess() -> None:
    seen = play(lambda fen: Position("chess", fen=fen), NUM_POSITIONS, seed=1)
    for event in (
        "CHECKMATE",
        "STALEMATE",
        "REPETITION",
        "FIFTY_MOVES",
        "BARE_KINGS",
        "castling",
        "en passant",
    ):
        assert seen[event] > 0, event


@pytest.mark.slow
def test_chess_is_the_chess_of_python_chess_in_many_games() -> None:
    play(lambda fen: Position("chess", fen=fen), 200_000, seed=2)


@pytest.mark.parametrize(
    ("name", "fault", "what"),
    [
        ("squares_passed", lambda variant, state, move: (), "legal moves|FEN"),
        ("attacked", lambda variant, board, square, by_side: False, "legal moves|check"),
        ("legal_passed", lambda variant, state: state.passed, "FEN"),
    ],
)
def test_a_fault_in_the_rules_is_noticed(name: str, fault: object, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, name, fault)
    monkeypatch.setattr(rules_fen, name, fault, raising=False)
    with pytest.raises(Difference, match=what):
        play(lambda fen: RulesPosition(CHESS, fen=fen), NUM_POSITIONS, seed=1)
