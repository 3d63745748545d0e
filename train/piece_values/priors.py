"""What a piece's value may be expected to be before any game is played, for comparison with what is measured.

- Mobility: Betza's average number of moves on a crowded board (`train.mobility`). Moves are no pawns, and a pawn is
  worth far more than its moves, since it promotes. So mobility is given as a share of a knight's on the same board,
  times 3: what the piece would be worth if only moves counted and a knight were worth three pawns.
- Leaper formula: H. G. Muller's fit to matches of engines, 33 N + 0.7 N^2 hundredths of a pawn for a piece with N
  targets away from the edge (33 N + 0.69 N^2 as he wrote it in 2017: 1.1 N (30 + 5 N / 8)). It was fitted on 8x8, to
  pieces that leap at most two squares and capture as they move, and holds on average over pieces with N targets. For
  other pieces and boards there is none.
- Published values: `published.py`, for the very game alone.

Sources: Betza 1996, "About the Values of Chess Pieces"; Muller, in the forum thread "Formula To Estimate a Leaping
Piece's Value" on chess.com.
"""

from __future__ import annotations

from typing import TypedDict

import numpy as np

from envs import Variant, list_variants, load_variant
from envs.actions import ray_squares
from envs.betza import parse_betza
from envs.notation import piece_code
from envs.variant import BLACK, WHITE, PieceType
from train.evaluation_features import are_sides_alike
from train.mobility import EMPTY, HELD, mobility_values
from train.piece_values.published import PUBLISHED

KNIGHT_PAWNS = 3.0
"""Pawns that a knight counts as in the mobility prior."""
LINEAR, QUADRATIC = 0.33, 0.007
"""Of the leaper formula, in pawns."""
LEAPER_RANGE = 2
LEAPER_BOARD = 64
"""Squares of the board, of 8 files, for which the formula holds."""

Priors = TypedDict(
    "Priors", {"mobility": float, "leaper formula": float | None, "published": list[tuple[float, str]]}
)  # fmt: skip
"""Of one piece, in pawns: see the module; published values with their sources."""


def prior_values(variant: Variant) -> dict[str, Priors]:
    """Return the priors of each piece by its letter, royal ones left out.

    Small letters are Black's pieces, where the sides are told apart.
    """
    mobility = KNIGHT_PAWNS * mobility_values(variant) / _knight_mobility(variant)
    published = _published(variant)
    priors: dict[str, Priors] = {}
    for side in (WHITE,) if are_sides_alike(variant) else (WHITE, BLACK):
        for number, piece in enumerate(variant.piece_types):
            if number == variant.royals[side]:
                continue
            letter = piece.letter if side == WHITE else piece.letter.lower()
            priors[letter] = {
                "mobility": float(mobility[piece_code(number, side)]),
                "leaper formula": leaper_value(variant, number),
                "published": published.get(piece.letter, []),
            }
    return priors


def leaper_value(variant: Variant, number: int) -> float | None:
    """Return what Muller's formula says of a piece type in pawns; None outside its scope."""
    piece, board = variant.piece_types[number], variant.board
    is_pawn = variant.pawns is not None and number == variant.pawns.piece
    if is_pawn or (board.files, variant.num_squares) != (8, LEAPER_BOARD) or not _is_short_leaper(piece):
        return None
    targets = len({ray.step for ray in piece.rays})
    return LINEAR * targets + QUADRATIC * targets**2


def _is_short_leaper(piece: PieceType) -> bool:
    """Return whether a piece only leaps, two squares at most, and captures enemies just as it moves."""
    return not (piece.captures_own or piece.fires_through_own) and all(
        ray.reach == 1
        and ray.quiet
        and ray.capture
        and not (ray.overruns or ray.fires_through)
        and max(map(abs, ray.step)) <= LEAPER_RANGE
        for ray in piece.rays
    )


def _knight_mobility(variant: Variant) -> float:
    """Return the mobility that a knight has on this board, whether or not the game has one; 1 if it cannot move."""
    targets = [
        sum(len(ray_squares(variant, square, ray, WHITE)) for ray in parse_betza("N"))
        for square in range(variant.num_squares)
    ]
    return float(np.mean(targets)) * (EMPTY + HELD) or 1.0


def _published(variant: Variant) -> dict[str, list[tuple[float, str]]]:
    """Return published values with their sources by capital letter: of a game of this name and these rules."""
    found: dict[str, list[tuple[float, str]]] = {}
    sources = PUBLISHED.get(variant.name, {})
    if not sources or variant.name not in list_variants():
        return found
    if load_variant(variant.name).rules_hash != variant.rules_hash:
        return found
    for source, values in sources.items():
        for letter, value in values.items():
            found.setdefault(letter, []).append((float(value), source))
    return found
