"""The fixed action encoding: every move of a game as a dense integer, seen by the side to move.

Dims: A actions, P planes, S squares, H x W grid. A plane is a displacement `(dx, dy)` of the mover's view, alone or
with a promotion; a plane and a from-square that are geometrically possible for some piece get a dense id 0..A-1,
ordered by plane and then square. Options leave the encoding alone: it covers the moves of every option.
Source: AlphaZero's planes (Silver et al. 2018, Methods, "Representation"), made dense and derived from the rules.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
import numpy.typing as npt

from envs.betza import Ray
from envs.variant import BLACK, WHITE, Variant
from envs.variant_loader import variant_from_document

ENCODING_VERSION = 1
NO_PROMOTION = -1

MoveTriple = tuple[int, int, int]


@dataclass(frozen=True)
class Plane:
    """One displacement in the mover's view, with the letter of a promotion or an empty string."""

    dx: int
    dy: int
    promotion: str


@dataclass(frozen=True)
class ActionEncoding:
    """The actions of a game.

    Attributes:
        planes: The P planes in order: displacements by `(dy, dx)`, then promotions by piece type and displacement.
        plane: int32 [A], plane of each action.
        from_square: int32 [A], square in the mover's view.
        to_square: int32 [A], square in the mover's view.
        promotion: int32 [A], piece type index or -1.
        gather_index: int32 [A], `plane * H * W + from_cell`: where the action lies among [P, H, W] logits.
        target_index: int32 [A], `to_cell`, rank * W + file of the square that the action leads to.
        hash: SHA-256 of the encoding.
    """

    planes: tuple[Plane, ...]
    plane: npt.NDArray[np.int32]
    from_square: npt.NDArray[np.int32]
    to_square: npt.NDArray[np.int32]
    promotion: npt.NDArray[np.int32]
    gather_index: npt.NDArray[np.int32]
    target_index: npt.NDArray[np.int32]
    hash: str

    @property
    def num_actions(self) -> int:
        """A."""
        return len(self.plane)

    @property
    def num_planes(self) -> int:
        """P."""
        return len(self.planes)

    @cached_property
    def action_by_move(self) -> dict[MoveTriple, int]:
        """Action id of `(from, to, promotion type or -1)`, squares in the mover's view."""
        rows = zip(self.from_square.tolist(), self.to_square.tolist(), self.promotion.tolist(), strict=True)
        return {row: action for action, row in enumerate(rows)}


def ray_squares(variant: Variant, square: int, ray: Ray, side: int) -> list[int]:
    """List the squares that a ray visits on an empty board, in order, until a hole, the edge or its reach."""
    board = variant.board
    x, y = board.squares[square]
    dx, dy = ray.step if side == WHITE else (ray.step[0], -ray.step[1])
    found: list[int] = []
    while not ray.reach or len(found) < ray.reach:
        x, y = x + dx, y + dy
        if (x, y) not in board.index:
            break
        found.append(board.index[x, y])
    return found


def _own_ranks(variant: Variant, side: int) -> list[int]:
    """List the promotion ranks as the side itself counts them, 0 for the nearest."""
    assert variant.pawns is not None
    return [_own_y(variant, y, side) for y in variant.pawns.promotion_ranks[side]]


def _own_y(variant: Variant, y: int, side: int) -> int:
    return y if side == WHITE else variant.board.ranks - 1 - y


def pawn_promotes_on(variant: Variant, square: int, side: int) -> tuple[bool, bool]:
    """Return whether a pawn that lands on a square may promote there, and whether it may stay a pawn."""
    assert variant.pawns is not None
    y, ranks = _own_y(variant, variant.board.squares[square][1], side), _own_ranks(variant, side)
    if variant.pawns.must_promote:
        return y >= min(ranks), y < min(ranks)
    steps = variant.pawns.quiet + variant.pawns.captures
    goes_on = any(ray_squares(variant, square, Ray(step, 1), side) for step in steps)
    return y in ranks, y not in ranks or goes_on


def pawn_lives_on(variant: Variant, square: int, side: int) -> bool:
    """Return whether a pawn of `side` may stand on a square."""
    return pawn_promotes_on(variant, square, side)[1]


def pawn_steps(variant: Variant, square: int, side: int) -> list[list[int]]:
    """List, for each quiet step, the squares that a pawn may reach by it on an empty board, nearest first."""
    pawns = variant.pawns
    assert pawns is not None
    if not pawn_lives_on(variant, square, side):
        return []
    is_start = variant.board.squares[square][1] in pawns.start_ranks[side]
    found = []
    for step in pawns.quiet:
        reach = pawns.first_steps if is_start and step in pawns.forward else 1
        squares = ray_squares(variant, square, Ray(step, reach), side)
        ends = [number for number, to in enumerate(squares) if pawn_promotes_on(variant, to, side)[0]]
        found.append(squares[: ends[0] + 1] if ends else squares)
    return found


def pawn_captures(variant: Variant, square: int, side: int) -> list[int]:
    """List the squares that a pawn attacks."""
    assert variant.pawns is not None
    if not pawn_lives_on(variant, square, side):
        return []
    return [to for step in variant.pawns.captures for to in ray_squares(variant, square, Ray(step, 1), side)]


def encode_actions(variant: Variant) -> ActionEncoding:
    """Derive the action encoding of a game, whatever its options are set to."""
    names = list(variant.options)
    settings = [dict.fromkeys(chosen, True) for n in range(len(names) + 1) for chosen in combinations(names, n)]
    triples: set[MoveTriple] = set()
    for options in settings:
        triples.update(_geometric_moves(variant_from_document(variant.document, options, name=variant.name)))
    board = variant.board

    def plane_key(triple: MoveTriple) -> tuple[int, int, int]:
        (x0, y0), (x1, y1) = board.squares[triple[0]], board.squares[triple[1]]
        return triple[2], y1 - y0, x1 - x0

    keys = sorted({plane_key(triple) for triple in triples})
    number = {key: plane for plane, key in enumerate(keys)}
    rows = sorted((number[plane_key(triple)], *triple) for triple in triples)
    letters = [piece.letter for piece in variant.piece_types]
    planes = tuple(Plane(dx, dy, "" if p == NO_PROMOTION else letters[p]) for p, dy, dx in keys)
    table = np.array(rows, dtype=np.int32).reshape(-1, 4)
    cells = np.array([y * board.files + x for x, y in board.squares], dtype=np.int32)
    plane, start, to, promotion = (np.ascontiguousarray(column) for column in table.T)
    gather = plane * np.int32(board.ranks * board.files) + cells[start]
    text = json.dumps(
        [
            ENCODING_VERSION,
            board.files,
            board.ranks,
            [[p.dx, p.dy, p.promotion] for p in planes],
            [row[:2] for row in rows],
            board.squares,
        ]
    )
    digest = hashlib.sha256(text.encode()).hexdigest()
    return ActionEncoding(planes, plane, start, to, promotion, gather, cells[to], digest)


def _geometric_moves(variant: Variant) -> Iterator[MoveTriple]:
    """Yield `(from, to, promotion)` of every move that some piece could make, in the mover's view."""
    flip = variant.board.flipped
    for side in (WHITE, BLACK):
        for start in range(variant.num_squares):
            for to, promotion in _moves_from(variant, start, side):
                yield (start, to, promotion) if side == WHITE else (flip[start], flip[to], promotion)
    for number, castling in enumerate(variant.castlings):
        if castling is not None:
            pair = (castling.king_from, castling.king_to)
            start, to = pair if number < 2 else (flip[pair[0]], flip[pair[1]])
            yield start, to, NO_PROMOTION


def _moves_from(variant: Variant, start: int, side: int) -> Iterator[tuple[int, int]]:
    for piece in variant.piece_types:
        for ray in piece.rays:
            for to in ray_squares(variant, start, ray, side):
                yield to, NO_PROMOTION
    if variant.pawns is None:
        return
    steps = [to for squares in pawn_steps(variant, start, side) for to in squares]
    for to in steps + pawn_captures(variant, start, side):
        promotes, stays = pawn_promotes_on(variant, to, side)
        if stays:
            yield to, NO_PROMOTION
        if promotes:
            for target in variant.pawns.promotes_to[side]:
                yield to, target
