"""Random positions of any game: its start with pieces taken off, moved and replaced, castling and pawns made likely."""

from __future__ import annotations

import numpy as np

from envs import InvalidFen, rules_fen
from envs.rules import State
from envs.variant import WHITE, Variant

MAX_DRAWS = 40
KEEP, MOVE, REMOVE, REPLACE = range(4)


def scattered(variant: Variant, rng: np.random.Generator) -> str:
    """Return a position that is not far from a start position; the start itself if none is found."""
    start = rules_fen.parse_fen(variant, variant.start_fens[int(rng.integers(len(variant.start_fens)))])
    for _ in range(MAX_DRAWS):
        board = list(start.board)
        home = _home(variant, start) if rng.random() < 0.5 else set()
        _change(variant, board, home, rng)
        if home:
            _clear_the_way(variant, board, home, rng)
        if rng.random() < 0.5:
            _bring_pawns_together(variant, board, rng)
        fen = rules_fen.fen(variant, State(tuple(board), int(rng.integers(2)), _rights(variant, start, board, rng)))
        try:
            rules_fen.parse_fen(variant, fen)
        except InvalidFen:
            continue
        return fen
    return variant.start_fen


def _home(variant: Variant, start: State) -> set[int]:
    """Return the squares of kings and partners that may still castle."""
    able = [castling for castling, right in zip(variant.castlings, start.rights) if right and castling is not None]
    return {square for castling in able for square in (castling.king_from, castling.partner_from)}


def _change(variant: Variant, board: list[str], home: set[int], rng: np.random.Generator) -> None:
    """Move, remove or replace pieces anywhere but at home; every royal stays on the board."""
    letters = [piece.letter for piece in variant.piece_types]
    royals = {letters[royal] for royal in variant.royals if royal is not None}
    pawn = "" if variant.pawns is None else letters[variant.pawns.piece]
    others = [letter for letter in letters if letter not in royals and letter != pawn]
    lively, loss = rng.uniform(0.1, 0.9), rng.uniform(0, 0.7)
    for square, piece in enumerate(tuple(board)):
        if not piece or square in home or rng.random() > lively:
            continue
        kind = MOVE if piece.upper() in royals else int(rng.choice(4, p=[0.1, 0.4 - loss / 2, 0.1 + loss / 2, 0.4]))
        empty = [target for target, occupant in enumerate(board) if not occupant]
        if kind == MOVE and empty:
            board[square], board[int(rng.choice(empty))] = "", piece
        elif kind == REMOVE:
            board[square] = ""
        elif kind == REPLACE and others and piece.upper() != pawn:
            letter = others[int(rng.integers(len(others)))]
            board[square] = letter if piece.isupper() else letter.lower()


def _clear_the_way(variant: Variant, board: list[str], home: set[int], rng: np.random.Generator) -> None:
    """Take most other pieces, not the royals, off the ranks of those that castle."""
    royals = {variant.piece_types[royal].letter for royal in variant.royals if royal is not None}
    ranks = {variant.board.squares[square][1] for square in home}
    for square, (_, y) in enumerate(variant.board.squares):
        if y in ranks and square not in home and board[square].upper() not in royals and rng.random() < 0.8:
            board[square] = ""


def _bring_pawns_together(variant: Variant, board: list[str], rng: np.random.Generator) -> None:
    """Put pawns of one side on their start ranks and pawns of the other where those will pass."""
    pawns = variant.pawns
    if pawns is None:
        return
    side = int(rng.integers(2))
    letter = variant.piece_types[pawns.piece].letter
    own, other = (letter, letter.lower()) if side == WHITE else (letter.lower(), letter)
    forward = 1 if side == WHITE else -1
    starts = pawns.start_ranks[side] or (1 if side == WHITE else variant.board.ranks - 2,)
    passing = {y + forward * count for y in starts for count in range(1, pawns.first_steps + 2)}
    for square, (_, y) in enumerate(variant.board.squares):
        if not board[square] and y in starts and rng.random() < 0.4:
            board[square] = own
        elif not board[square] and y in passing and rng.random() < 0.3:
            board[square] = other


def _rights(variant: Variant, start: State, board: list[str], rng: np.random.Generator) -> tuple[bool, ...]:
    """Return the rights of the start that king and partner still have, most of them."""
    return tuple(
        right and castling is not None and bool(rng.random() < 0.9)
        and all(board[square] == start.board[square] for square in (castling.king_from, castling.partner_from))
        for right, castling in zip(start.rights, variant.castlings)
    )  # fmt: skip
