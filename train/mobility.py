"""What pieces are worth before anything is known of a game: how many moves they have on average.

The mean is over the squares on which a piece may stand; every other square is empty with chance `EMPTY`, else held by
either side alike, and the chance that a move is there is summed over its targets. That is the crowded board mobility
of Betza, "About the Values of Chess Pieces" (1996, The Chess Variant Pages), whose empty share of about 0.7 this takes.
Dims: S squares.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from envs import Variant
from envs.actions import pawn_captures, pawn_lives_on, pawn_steps, ray_squares
from envs.layout import NUM_CODES
from envs.notation import piece_code
from envs.variant import BLACK, WHITE, PieceType

EMPTY = 0.7
"""Chance that a square is empty."""
HELD = (1 - EMPTY) / 2
"""Chance that a given side has a piece on a square."""

Chance = tuple[int, bool, float]
"""A target, whether the move captures, and the chance that the way there is open and the target fits."""


def mobility_values(variant: Variant) -> NDArray[np.float64]:
    """Return the mean mobility of each piece, float64 [32] by piece code (`envs.layout`), 0 where there is none.

    Args:
        variant: The game. Promotion does not count, nor do castling, captures in passing and second victims.
    """
    values = np.zeros(NUM_CODES)
    for side in (WHITE, BLACK):
        for number in range(len(variant.piece_types)):
            values[piece_code(number, side)] = _mean_mobility(variant, number, side)
    return values


def _mean_mobility(variant: Variant, number: int, side: int) -> float:
    squares = range(variant.num_squares)
    if variant.pawns is None or number != variant.pawns.piece:
        piece = variant.piece_types[number]
        return sum(_mobility(_piece_chances(variant, piece, square, side)) for square in squares) / len(squares)
    standing = [square for square in squares if pawn_lives_on(variant, square, side)]
    return sum(_mobility(_pawn_chances(variant, square, side)) for square in standing) / max(1, len(standing))


def _mobility(chances: Iterator[Chance]) -> float:
    """Return the expected number of moves; of several routes to one target the likeliest counts."""
    best: dict[tuple[int, bool], float] = {}
    for to, captures, chance in chances:
        best[to, captures] = max(chance, best.get((to, captures), 0.0))
    return sum(best.values())


def _piece_chances(variant: Variant, piece: PieceType, square: int, side: int) -> Iterator[Chance]:
    may_pass = HELD * (1 + piece.fires_through_own)
    may_land = HELD * (1 + piece.captures_own)
    for ray in piece.rays:
        for before, to in enumerate(ray_squares(variant, square, ray, side)):
            is_open = EMPTY**before
            if ray.fires_through and before:
                is_open += before * may_pass * EMPTY ** (before - 1)
            yield to, False, ray.quiet * is_open * EMPTY
            yield to, True, ray.capture * is_open * may_land


def _pawn_chances(variant: Variant, square: int, side: int) -> Iterator[Chance]:
    for run in pawn_steps(variant, square, side):
        for before, to in enumerate(run):
            yield to, False, EMPTY ** (before + 1)
    for to in pawn_captures(variant, square, side):
        yield to, True, HELD
