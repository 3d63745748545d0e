"""The paths of pieces and pawns on an empty board: geometry for `rules.py`, worked out once per game.

A piece is its letter, capital for White. A square is an index 0..S-1 of `Variant.board`. Sides are 0 (White)
and 1 (Black).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from envs.betza import Ray, Step
from envs.bounded_memory import remember
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


def royal_letter(variant: Variant, side: int) -> str | None:
    """Return the letter of a side's royal, None if it has none."""
    royal = variant.royals[side]
    return None if royal is None else letter_of(variant, royal, side)


def paths_of(variant: Variant, piece: str, square: int) -> tuple[Path, ...]:
    """Return the paths of a piece from a square; a pawn's are its captures."""
    return _geometry(variant).paths[piece, square]


def approaches(variant: Variant, side: int, square: int) -> tuple[tuple[int, str, Path], ...]:
    """Return each `(from square, piece of the side, path)` that might capture what stands on `square`."""
    return _geometry(variant).approaches[side, square]


def pawn_routes(variant: Variant, side: int, square: int) -> tuple[tuple[int, ...], ...]:
    """Return for each quiet step of a pawn the squares that it may come to from a square, in order.

    There are several where the step may be repeated, the last one at most where the pawn may promote.
    """
    return _geometry(variant).pawn_routes[side, square]


def may_promote(variant: Variant, side: int, square: int) -> bool:
    """Return whether a pawn of a side that lands on a square may promote."""
    pawns = variant.pawns
    assert pawns is not None
    y, ranks = variant.board.squares[square][1], pawns.promotion_ranks[side]
    if not pawns.must_promote:
        return y in ranks
    return y >= min(ranks) if side == WHITE else y <= max(ranks)


def must_promote(variant: Variant, side: int, square: int) -> bool:
    """Return whether a pawn of a side that lands on a square must promote, so that it never stands there."""
    pawns = variant.pawns
    assert pawns is not None
    if not may_promote(variant, side, square):
        return False
    return pawns.must_promote or not any(
        landings_of(variant, side, square, step, 1) for step in (*pawns.quiet, *pawns.captures)
    )


def landings_of(variant: Variant, side: int, square: int, step: Step, reach: int) -> tuple[int, ...]:
    """Return the squares that a step of a side leads to, repeated up to `reach` times, 0 without limit.

    Slides and riders stop where their next landing square is missing.
    """
    x, y = variant.board.squares[square]
    step_x, step_y = step[0], step[1] if side == WHITE else -step[1]
    landings: list[int] = []
    while reach == 0 or len(landings) < reach:
        x, y = x + step_x, y + step_y
        if (x, y) not in variant.board.index:
            break
        landings.append(variant.board.index[x, y])
    return tuple(landings)


class _Geometry:
    """The paths of one game, worked out once."""

    def __init__(self, variant: Variant) -> None:
        squares = range(variant.num_squares)
        types = range(len(variant.piece_types))
        letters = [letter_of(variant, number, side) for side in (WHITE, BLACK) for number in types]
        self.paths = {(piece, square): tuple(_paths(variant, piece, square)) for piece in letters for square in squares}
        self.pawn_routes = {
            (side, square): tuple(_pawn_routes(variant, side, square)) for side in (WHITE, BLACK) for square in squares
        }
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


MAX_GEOMETRIES = 32
_geometries: dict[str, _Geometry] = {}


def _geometry(variant: Variant) -> _Geometry:
    geometry = _geometries.get(variant.rules_hash)
    if geometry is None:
        geometry = remember(_geometries, variant.rules_hash, _Geometry(variant), MAX_GEOMETRIES)
    return geometry


def _paths(variant: Variant, piece: str, square: int) -> Iterator[Path]:
    x, y = variant.board.squares[square]
    for ray in _rays(variant, piece):
        landings = landings_of(variant, side_of(piece), square, ray.step, ray.reach)
        if not landings:
            continue
        to_x, to_y = variant.board.squares[landings[0]]
        jumped = variant.board.index.get(((x + to_x) // 2, (y + to_y) // 2)) if ray.overruns else None
        yield Path(ray, landings, jumped)


def _rays(variant: Variant, piece: str) -> tuple[Ray, ...]:
    number, pawns = variant.type_by_letter[piece.upper()], variant.pawns
    if pawns is not None and number == pawns.piece:
        return tuple(Ray(step, 1, quiet=False) for step in pawns.captures)
    return variant.piece_types[number].rays


def _pawn_routes(variant: Variant, side: int, square: int) -> Iterator[tuple[int, ...]]:
    pawns = variant.pawns
    if pawns is None:
        return
    at_start = variant.board.squares[square][1] in pawns.start_ranks[side]
    for step in pawns.quiet:
        repeats = pawns.first_steps if at_start and step in pawns.forward else 1
        landings = landings_of(variant, side, square, step, repeats)
        ends = [number for number, landing in enumerate(landings, 1) if may_promote(variant, side, landing)]
        if landings:
            yield landings[: ends[0]] if ends else landings
