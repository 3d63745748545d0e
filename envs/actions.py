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
PAWN_CAPTURE_STEPS = ((-1, 1), (1, 1))

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
        hash: SHA-256 of the encoding.
    """

    planes: tuple[Plane, ...]
    plane: npt.NDArray[np.int32]
    from_square: npt.NDArray[np.int32]
    to_square: npt.NDArray[np.int32]
    promotion: npt.NDArray[np.int32]
    gather_index: npt.NDArray[np.int32]
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


def pawn_lives_on(variant: Variant, square: int, side: int) -> bool:
    """Return whether a pawn of `side` may stand on a square: before its promotion ranks, as it sees them."""
    assert variant.pawns is not None
    y = variant.board.squares[square][1]
    ranks = variant.pawns.promotion_ranks[side]
    return y < min(ranks) if side == WHITE else y > max(ranks)


def pawn_steps(variant: Variant, square: int, side: int) -> list[int]:
    """List the squares that a pawn may step to on an empty board, nearest first, ending at a promotion rank."""
    assert variant.pawns is not None
    if not pawn_lives_on(variant, square, side):
        return []
    y = variant.board.squares[square][1]
    reach = variant.pawns.first_steps if y in variant.pawns.start_ranks[side] else 1
    steps = ray_squares(variant, square, Ray((0, 1), reach), side)
    promotes = [variant.board.squares[s][1] in variant.pawns.promotion_ranks[side] for s in steps]
    return steps[: promotes.index(True) + 1] if True in promotes else steps


def pawn_captures(variant: Variant, square: int, side: int) -> list[int]:
    """List the squares that a pawn attacks."""
    if not pawn_lives_on(variant, square, side):
        return []
    return [s for step in PAWN_CAPTURE_STEPS for s in ray_squares(variant, square, Ray(step, 1), side)]


def promotes_on(variant: Variant, square: int, side: int) -> bool:
    """Return whether a pawn of `side` that arrives on a square promotes."""
    assert variant.pawns is not None
    return variant.board.squares[square][1] in variant.pawns.promotion_ranks[side]


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
    return ActionEncoding(planes, plane, start, to, promotion, gather, hashlib.sha256(text.encode()).hexdigest())


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
    if variant.pawns is not None:
        for to in pawn_steps(variant, start, side) + pawn_captures(variant, start, side):
            if promotes_on(variant, to, side):
                for target in variant.pawns.promotes_to:
                    yield to, target
            else:
                yield to, NO_PROMOTION
