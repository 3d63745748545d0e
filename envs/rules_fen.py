"""Positions of `rules.py` from and to FEN, with every check that needs moves.

Whatever can be seen without moving a piece has been checked by `notation.parse_fields`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import takewhile

import numpy as np

from envs.errors import InvalidFen
from envs.game_end import goal_square
from envs.notation import FenFields, format_fields, format_move, letter_code, parse_fields, piece_letter
from envs.paths import letter_of, pawn_routes
from envs.rules import Move, State, king_attacked, king_square, legal_passed
from envs.variant import Variant


def move_name(variant: Variant, move: Move) -> str:
    """Return a move as text, such as `a2a5` or `a9a10q`."""
    promotion = variant.type_by_letter[move.promotion] if move.promotion else -1
    return format_move(variant, move.from_square, move.to_square, promotion)


def fen(variant: Variant, state: State) -> str:
    """Return a position as a FEN; the en passant field lists the legal captures."""
    codes = [letter_code(variant, piece) if piece else 0 for piece in state.board]
    white_k, white_q, black_k, black_q = state.rights
    fields = FenFields(
        board=np.array(codes, np.uint8),
        to_play=state.to_play,
        rights=(white_k, white_q, black_k, black_q),
        passed=legal_passed(variant, state),
        halfmove_clock=state.halfmove_clock,
        fullmove_number=state.fullmove_number,
    )
    if fields.passed and next(_passing_pawns(variant, state, fields.passed)) != state.victim:
        fields = replace(fields, victim=state.victim)
    return format_fields(variant, fields)


def parse_fen(variant: Variant, text: str) -> State:
    """Read a FEN.

    Args:
        variant: The game.
        text: See `notation`.

    Returns:
        The position; en passant squares without a legal capture are dropped.

    Raises:
        InvalidFen: The text does not fit, or no game can stand like that; the message says where and why.
    """
    fields = parse_fields(variant, text)
    board = tuple(piece_letter(variant, int(code)) for code in fields.board)
    counters = (fields.halfmove_clock, fields.fullmove_number)
    state = State(board, fields.to_play, fields.rights, (), None, *counters)
    _check_mover_is_safe(variant, state)
    _check_goals(variant, state)
    if not fields.passed:
        return state
    victim = _passing_pawn(variant, state, fields)
    state = replace(state, passed=fields.passed, victim=victim)
    legal = legal_passed(variant, state)
    return replace(state, passed=legal, victim=victim if legal else None)


def _check_mover_is_safe(variant: Variant, state: State) -> None:
    """Refuse a position in which the side that just moved has left its royal attacked."""
    mover = 1 - state.to_play
    square = king_square(variant, state.board, mover)
    if square is not None and king_attacked(variant, state.board, mover):
        place = variant.board.names[square]
        raise InvalidFen(f"the side that just moved is in check: its royal piece on {place} could be captured")


def _check_goals(variant: Variant, state: State) -> None:
    """Refuse a position in which the side to move has won by an earlier move."""
    for goal in variant.ends.goals:
        square = goal_square(variant, state.board, goal, state.to_play)
        if square is not None:
            place = variant.board.names[square]
            raise InvalidFen(f"the side to move has a piece on {place}, where it has already won")


def _passing_pawn(variant: Variant, state: State, fields: FenFields) -> int:
    """Return where the pawn stands that passed over all of the listed squares in its last move."""
    for victim in _passing_pawns(variant, state, fields.passed):
        if fields.victim in (None, victim):
            return victim
    squares = [*fields.passed, *([] if fields.victim is None else [fields.victim])]
    listed = ", ".join(variant.board.names[square] for square in squares)
    raise InvalidFen(f"en passant: no pawn of the side that just moved can have passed over {listed} in its last move")


def _passing_pawns(variant: Variant, state: State, passed: tuple[int, ...]) -> Iterator[int]:
    """Yield where the pawns stand that may have passed over all of the listed squares in their last move.

    Start squares are searched in the order of the board, from each one the steps in their order.
    """
    pawns, mover = variant.pawns, 1 - state.to_play
    pawn = "" if pawns is None else letter_of(variant, pawns.piece, mover)
    starts = [square for square, piece in enumerate(state.board) if not piece]
    for start in starts:
        for route in pawn_routes(variant, mover, start):
            empty = list(takewhile(lambda square: not state.board[square], route))
            beyond = route[len(empty) :]
            if beyond and state.board[beyond[0]] == pawn and set(passed) <= set(empty):
                yield beyond[0]
