"""Parts of the rule tables that are looked up by square: castling, pawns seen from their targets, goals, cells.

Dims: S squares. What the parts mean is said in `tables.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

from envs import layout
from envs.actions import pawn_captures, ray_squares
from envs.betza import Ray
from envs.termination import SCEPTER_GOAL
from envs.variant import BLACK, WHITE, Castling, Variant

ALL_RIGHTS = 15


def castling_record(variant: Variant, castling: Castling, action: int) -> list[int]:
    """Return a castling record: `layout.C_*`, then the squares that must be empty and those not attacked, counted."""
    path = _between(variant, castling.king_from, castling.king_to)
    empty = {
        *_between(variant, castling.king_from, castling.partner_from),
        *_between(variant, castling.partner_from, castling.partner_to),
        *path,
        castling.king_to,
        castling.partner_to,
    } - {castling.king_from, castling.partner_from}
    path.append(castling.king_to)
    squares = (castling.king_from, castling.king_to, castling.partner_from, castling.partner_to)
    return [*squares, action, len(empty), *sorted(empty), len(path), *path]


def _between(variant: Variant, first: int, second: int) -> list[int]:
    """List the squares strictly between two squares of one rank."""
    (x0, y), (x1, _) = variant.board.squares[first], variant.board.squares[second]
    return [variant.board.index[x, y] for x in range(min(x0, x1) + 1, max(x0, x1))]


def pawn_sources(variant: Variant) -> Iterator[tuple[int, list[int]]]:
    """Yield, for each side and square, the number and list of squares from which a pawn captures on it."""
    size = variant.num_squares
    found: list[list[int]] = [[] for _ in range(2 * size)]
    if variant.pawns is not None:
        for side in (WHITE, BLACK):
            for square in range(size):
                for to in pawn_captures(variant, square, side):
                    found[side * size + to].append(square)
    for row, sources in enumerate(found):
        yield row, [len(sources), *sources]


def square_parts(variant: Variant) -> Iterator[tuple[int, list[int]]]:
    """Yield the header word and the words of each part that is a plain list."""
    board = variant.board
    yield layout.T_KEEP, _rights_kept(variant)
    yield layout.T_FORWARD, _forward(variant)
    yield layout.T_GOAL, _goals(variant)
    yield (
        layout.T_CELL,
        [
            (y if side == WHITE else board.ranks - 1 - y) * board.files + x
            for side in (WHITE, BLACK)
            for x, y in board.squares
        ],
    )


def _rights_kept(variant: Variant) -> list[int]:
    keep = [ALL_RIGHTS] * variant.num_squares
    for number, castling in enumerate(variant.castlings):
        if castling is not None:
            keep[castling.king_from] &= ~(1 << number)
            keep[castling.partner_from] &= ~(1 << number)
    return keep


def _forward(variant: Variant) -> list[int]:
    steps = () if variant.pawns is None else variant.pawns.forward
    return [
        next((to + 1 for to in ray_squares(variant, square, Ray(step, 1), side)), 0)
        for step in steps
        for side in (WHITE, BLACK)
        for square in range(variant.num_squares)
    ]


def _goals(variant: Variant) -> list[int]:
    words = []
    for goal in variant.ends.goals:
        pieces = sum(2 << piece for piece in goal.pieces) | (goal.name == SCEPTER_GOAL) << layout.GOAL_IS_SCEPTER
        for squares in goal.squares:
            words += [pieces if square in squares else 0 for square in range(variant.num_squares)]
    return words
