"""The paths of pieces on an empty board: geometry for `rules.py`, worked out once per game.

A piece is its letter, capital for White. A square is an index 0..S-1 of `Variant.board`. Sides are 0 (White)
and 1 (Black).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from envs.betza import Ray
from envs.variant import BLACK, WHITE, Variant


class Path(NamedTuple):
    """One ray of a piece from one square on an empty board.

    Attributes:
        ray: What the piece may do along it.
        landings: Squares that it would reach, in order.
        jumped: The square that an overrunning jump passes, None elsewhere and over a hole.
    """

    ray: Ray
    landings: tuple[int, ...]
    jumped: int | None = None


def side_of(piece: str) -> int:
    """Return the side of a piece letter."""
    return WHITE if piece.isupper() else BLACK


def letter_of(variant: Variant, piece_type: int, side: int) -> str:
    """Return the letter of a side's piece of a type."""
    letter = variant.piece_types[piece_type].letter
    return letter if side == WHITE else letter.lower()


def paths_of(variant: Variant, piece: str, square: int) -> tuple[Path, ...]:
    """Return the paths of a piece from a square; a pawn's are its two captures."""
    return _geometry(variant).paths[piece, square]


def approaches(variant: Variant, side: int, square: int) -> tuple[tuple[int, str, Path], ...]:
    """Return each `(from square, piece of the side, path)` that might capture what stands on `square`."""
    return _geometry(variant).approaches[side, square]


class _Geometry:
    """The paths of one game, worked out once."""

    def __init__(self, variant: Variant) -> None:
        squares = range(variant.num_squares)
        types = range(len(variant.piece_types))
        letters = [letter_of(variant, number, side) for side in (WHITE, BLACK) for number in types]
        self.paths = {(piece, square): tuple(_paths(variant, piece, square)) for piece in letters for square in squares}
        found: dict[tuple[int, int], list[tuple[int, str, Path]]] = {
            (side, square): [] for side in (WHITE, BLACK) for square in squares
        }
        for (piece, source), paths in self.paths.items():
            for path in paths:
                for square in _squares_in_danger(path):
                    found[side_of(piece), square].append((source, piece, path))
        self.approaches = {key: tuple(approach) for key, approach in found.items()}


def _squares_in_danger(path: Path) -> set[int]:
    if not path.ray.capture:
        return set()
    return set(path.landings) if path.jumped is None else {*path.landings, path.jumped}


_geometries: dict[str, _Geometry] = {}


def _geometry(variant: Variant) -> _Geometry:
    geometry = _geometries.get(variant.rules_hash)
    if geometry is None:
        geometry = _geometries[variant.rules_hash] = _Geometry(variant)
    return geometry


def _paths(variant: Variant, piece: str, square: int) -> Iterator[Path]:
    x, y = variant.board.squares[square]
    forward = 1 if side_of(piece) == WHITE else -1
    index = variant.board.index
    for ray in _rays(variant, piece):
        step_x, step_y = ray.step[0], ray.step[1] * forward
        landings: list[int] = []
        while ray.reach == 0 or len(landings) < ray.reach:
            cell = (x + step_x * (len(landings) + 1), y + step_y * (len(landings) + 1))
            if cell not in index:
                break  # slides and riders stop where the next landing square is missing
            landings.append(index[cell])
        if landings:
            jumped = index.get((x + step_x // 2, y + step_y // 2)) if ray.overruns else None
            yield Path(ray, tuple(landings), jumped)


def _rays(variant: Variant, piece: str) -> tuple[Ray, ...]:
    number = variant.type_by_letter[piece.upper()]
    if variant.pawns is not None and number == variant.pawns.piece:
        return Ray((-1, 1), 1, quiet=False), Ray((1, 1), 1, quiet=False)
    return variant.piece_types[number].rays
