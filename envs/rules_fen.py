"""Positions of `rules.py` from and to FEN, with every check that needs moves.

Whatever can be seen without moving a piece has been checked by `notation.parse_fields`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from envs.errors import InvalidFen
from envs.notation import FenFields, format_fields, format_move, letter_code, parse_fields, piece_letter
from envs.paths import letter_of
from envs.rules import Move, State, attacked, king_square, legal_passed, pawn_steps, squares_passed
from envs.variant import WHITE, Pawns, Variant


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
    names = variant.board.names
    own_king, other_king = (king_square(variant, board, side) for side in (state.to_play, 1 - state.to_play))
    if attacked(variant, board, other_king, state.to_play):
        raise InvalidFen(f"the side that just moved is in check: its king on {names[other_king]} can be taken")
    if own_king in variant.goals[state.to_play]:
        raise InvalidFen(f"the king of the side to move is on {names[own_king]}, where it has already won")
    if not fields.passed:
        return state
    victim = _passing_pawn(variant, state, fields.passed)
    state = replace(state, passed=fields.passed, victim=victim)
    legal = legal_passed(variant, state)
    return replace(state, passed=legal, victim=victim if legal else None)


def _passing_pawn(variant: Variant, state: State, passed: tuple[int, ...]) -> int:
    """Return where the pawn stands that has just passed over all of the listed squares."""
    pawns, mover = variant.pawns, 1 - state.to_play
    if pawns is not None:
        for start, (_, y) in enumerate(variant.board.squares):
            if y in pawns.start_ranks[mover] and not state.board[start]:
                victim = _pawn_beyond(variant, pawns, replace(state, to_play=mover), start)
                if victim is not None and set(passed) <= set(squares_passed(variant, Move(start, victim))):
                    return victim
    listed = ", ".join(variant.board.names[square] for square in passed)
    raise InvalidFen(f"en passant: no pawn of the side that just moved can have passed over {listed} in its last move")


def _pawn_beyond(variant: Variant, pawns: Pawns, state: State, start: int) -> int | None:
    """Return the pawn that may have made a first move from `start`, over squares that are empty now."""
    x, y = variant.board.squares[start]
    forward = 1 if state.to_play == WHITE else -1
    num_empty = len(list(pawn_steps(variant, pawns, state, start)))
    beyond = variant.board.index.get((x, y + forward * (num_empty + 1)))
    if beyond is None or num_empty >= pawns.first_steps:
        return None
    return beyond if state.board[beyond] == letter_of(variant, pawns.piece, state.to_play) else None
