"""Self-capture chess against python-chess, to whose moves captures of own men are added here, ply by ply."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import chess
import numpy as np
import pytest

from envs import Position, load_variant, rules, rules_fen
from envs.variant import Variant
from tests.envs.random_games import Temper, pick_move, starts
from tests.envs.rules_position import RulesPosition

SELF_CAPTURE = load_variant("self_capture")
NUM_POSITIONS, NUM_POSITIONS_WHEN_SLOW = 1_000, 30_000
MAX_PLIES = 40
PERFT = {1: 39, 2: 1519}


def own_captures(board: chess.Board) -> Iterator[str]:
    """Yield the legal captures of own men, the king's and the pawns' too."""
    for source in chess.scan_forward(board.occupied_co[board.turn]):
        for target in board.attacks(source) & board.occupied_co[board.turn] & ~board.kings:
            if not leaves_king_attacked(board, source, target):
                promotes = board.piece_type_at(source) == chess.PAWN and chess.square_rank(target) in (0, 7)
                for letter in "bnqr" if promotes else ("",):
                    yield chess.square_name(source) + chess.square_name(target) + letter


def leaves_king_attacked(board: chess.Board, source: int, target: int) -> bool:
    after = board.copy(stack=False)
    piece = after.remove_piece_at(source)
    assert piece is not None
    after.set_piece_at(target, piece)
    king = after.king(board.turn)
    assert king is not None
    return after.is_attacked_by(not board.turn, king)


def push(board: chess.Board, name: str) -> chess.Board:
    """Return the board after a move; the square that an own man stood on is emptied first."""
    after, move = board.copy(stack=False), chess.Move.from_uci(name)
    if board.color_at(move.to_square) == board.turn:
        after.remove_piece_at(move.to_square)
        after.push(move)
        after.castling_rights = after.clean_castling_rights()
        after.halfmove_clock = 0
    else:
        after.push(move)
    return after


def play(make_position: Callable[[str], Position | RulesPosition], num_positions: int, seed: int) -> Counter[str]:
    rng = np.random.default_rng(seed)
    seen: Counter[str] = Counter()
    fens = starts(SELF_CAPTURE, rng)
    while seen["positions"] < num_positions:
        fen = next(fens)
        board, position, state = chess.Board(fen), make_position(fen), rules_fen.parse_fen(SELF_CAPTURE, fen)
        if board.status() & chess.STATUS_PAWNS_ON_BACKRANK:
            continue  # python-chess lets a pawn on its first rank make a double step
        temper = Temper.draw(rng)
        for _ in range(MAX_PLIES):
            seen["positions"] += 1
            own = list(own_captures(board))
            expected = sorted([*(move.uci() for move in board.legal_moves), *own])
            assert position.legal_moves() == expected, board.fen()
            assert position.fen().split(" ")[:3] == board.fen().split(" ")[:3]
            assert (position.in_check, position.halfmove_clock) == (board.is_check(), min(board.halfmove_clock, 100))
            if position.outcome() is not None:
                break
            moves = rules.legal_moves(SELF_CAPTURE, state)
            move = pick_move(SELF_CAPTURE, rng, temper, state=state, moves=moves, last=None)
            name = rules_fen.move_name(SELF_CAPTURE, move)
            seen["own captures"] += name in own
            position.push(name)
            board, state = push(board, name), rules.make(SELF_CAPTURE, state, move)
    return seen


def test_self_capture_is_chess_with_captures_of_own_men() -> None:
    seen = play(lambda fen: Position(SELF_CAPTURE, fen=fen), NUM_POSITIONS, seed=1)
    assert seen["own captures"] > NUM_POSITIONS // 20


@pytest.mark.slow
def test_self_capture_is_chess_with_captures_of_own_men_in_many_games() -> None:
    play(lambda fen: Position(SELF_CAPTURE, fen=fen), NUM_POSITIONS_WHEN_SLOW, seed=2)
    play(lambda fen: RulesPosition(SELF_CAPTURE, fen=fen), NUM_POSITIONS_WHEN_SLOW // 10, seed=3)


def test_the_perft_of_self_capture_is_that_of_python_chess_with_own_captures() -> None:
    def count(board: chess.Board, depth: int) -> int:
        names = [*(move.uci() for move in board.legal_moves), *own_captures(board)]
        return len(names) if depth == 1 else sum(count(push(board, name), depth - 1) for name in names)

    board = chess.Board()
    assert {depth: count(board, depth) for depth in PERFT} == PERFT


def test_a_fault_in_the_rules_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def only_enemies(variant: Variant, piece: str, target: str, *, own: bool) -> bool:
        return rules.side_of(target) != rules.side_of(piece)

    monkeypatch.setattr(rules, "_may_hit", only_enemies)
    with pytest.raises(AssertionError):
        play(lambda fen: RulesPosition(SELF_CAPTURE, fen=fen), NUM_POSITIONS, seed=1)
