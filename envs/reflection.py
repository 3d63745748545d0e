"""The left-right reflection of positions and actions, where a game's rules are the same on both wings.

Dims: N rows, W words a row, S squares, A actions. A reflected row is the position with every piece on the mirrored
file, complete with its key; clock, repetitions and ply are kept. The rules are the same when board, steps of every
piece and pawn, and goals are; castling need not be, if no right to an uneven castling is alive. A start position
need not be even.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import numpy.typing as npt

from envs import layout
from envs.betza import Step
from envs.layout import U8Array, U64Array
from envs.tables import CompiledGame
from envs.variant import BLACK, WHITE, Castling, Pawns, Variant

NO_IMAGE = -1
_RIGHTS = 16
_U64 = np.uint64


@dataclass(frozen=True, eq=False)
class Reflection:
    """The reflection of one game.

    Attributes:
        game: The game.
        squares: intp [S], the mirrored square of each.
        actions: int32 [A], the mirrored action of each; `NO_IMAGE` for castlings without one, which no position that
            may be reflected has, and for moves that only another option of the game allows.
        rights: uint8 [16], castling rights after reflection.
        has_image: bool [16], whether every castling right alive has one.
    """

    game: CompiledGame
    squares: npt.NDArray[np.intp]
    actions: npt.NDArray[np.int32]
    rights: U8Array
    has_image: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, game: CompiledGame) -> Reflection | None:
        """Return the reflection of a game, None where its rules tell left from right."""
        variant = game.variant
        squares = _mirrored_squares(variant)
        if squares is None or not _is_even(variant, squares):
            return None
        castlings = _mirrored_castlings(variant, squares)
        rights, has_image = np.zeros(_RIGHTS, np.uint8), np.ones(_RIGHTS, np.bool_)
        for alive in range(_RIGHTS):
            for number in range(len(variant.castlings)):
                if alive >> number & 1:
                    rights[alive] |= 1 << castlings.get(number, 0)
                    has_image[alive] &= number in castlings
        rows = zip(*(column.tolist() for column in (game.encoding.from_square, game.encoding.to_square)), strict=True)
        promotions = game.encoding.promotion.tolist()
        find = game.encoding.action_by_move
        actions = [
            find.get((squares[start], squares[to], promotion), NO_IMAGE)
            for (start, to), promotion in zip(rows, promotions, strict=True)
        ]
        return cls(game, np.array(squares, np.intp), np.array(actions, np.int32), rights, has_image)

    def allowed(self, rows: U64Array) -> npt.NDArray[np.bool_]:
        """Return which rows uint64 [N, W] may be reflected, bool [N]: those whose castling rights have an image."""
        allowed: npt.NDArray[np.bool_] = self.has_image[_bytes(rows)[:, layout.CASTLING] & (_RIGHTS - 1)]
        return allowed

    def rows(self, rows: U64Array) -> U64Array:
        """Return rows uint64 [N, W] reflected, as a copy; each of them must be allowed."""
        found = np.ascontiguousarray(rows).copy()
        data, num_squares = _bytes(found), len(self.squares)
        board = slice(layout.HEADER_BYTES, layout.HEADER_BYTES + num_squares)
        data[:, board] = data[:, board][:, self.squares]
        data[:, layout.CASTLING] = self.rights[data[:, layout.CASTLING] & (_RIGHTS - 1)]
        for side, key in ((WHITE, layout.T_ROYAL), (BLACK, layout.T_ROYAL_BLACK)):
            if self.game.tables[key]:
                data[:, layout.ROYALS + side] = self.squares[data[:, layout.ROYALS + side]]
        self._reflect_en_passant(data)
        found[:, 0] = self._keys(data)
        return found

    def _reflect_en_passant(self, data: U8Array) -> None:
        """Mirror the squares that can be captured on, ascending as before, and the pawn that passed them."""
        with_any = np.flatnonzero(data[:, layout.EP_COUNT])
        if not len(with_any):
            return
        data[with_any, layout.EP_VICTIM] = self.squares[data[with_any, layout.EP_VICTIM]]
        slots = np.arange(layout.EP_SQUARES, layout.REVERSIBLE)
        is_used = np.arange(len(slots)) < data[with_any, layout.EP_COUNT][:, None]
        listed = data[with_any[:, None], slots].astype(np.intp)
        mirrored = np.where(is_used, self.squares[np.where(is_used, listed, 0)], layout.MAX_SQUARES)
        data[with_any[:, None], slots] = np.where(is_used, np.sort(mirrored, axis=1), 0)

    def _keys(self, data: U8Array) -> U64Array:
        """Return the Zobrist keys of rows given as bytes."""
        zobrist, num_squares = self.game.zobrist, len(self.squares)
        board = data[:, layout.HEADER_BYTES : layout.HEADER_BYTES + num_squares].astype(np.intp)
        numbers = np.where(board > 0, zobrist[board * num_squares + np.arange(num_squares)], _U64(0))
        keys = np.bitwise_xor.reduce(numbers, axis=1)
        keys ^= zobrist[layout.zobrist_castling(num_squares) + data[:, layout.CASTLING].astype(np.intp)]
        keys ^= np.where(data[:, layout.TO_PLAY] > 0, zobrist[layout.zobrist_side(num_squares)], _U64(0))
        first, counts = layout.zobrist_en_passant(num_squares), data[:, layout.EP_COUNT]
        for row in np.flatnonzero(counts):
            places = [layout.EP_VICTIM, *range(layout.EP_SQUARES, layout.EP_SQUARES + int(counts[row]))]
            keys[row] ^= np.bitwise_xor.reduce(zobrist[first + data[row, places].astype(np.intp)])
        mirrored: U64Array = keys
        return mirrored


def _bytes(rows: U64Array) -> U8Array:
    """Return rows uint64 [N, W] as bytes [N, 8 W], a view where they are contiguous."""
    return np.ascontiguousarray(rows).view(np.uint8).reshape(len(rows), 8 * rows.shape[1])


def _mirrored_squares(variant: Variant) -> list[int] | None:
    """Return the mirrored square of each, None where the board lacks one."""
    board = variant.board
    found = [board.index.get((board.files - 1 - x, y)) for x, y in board.squares]
    squares = [square for square in found if square is not None]
    return squares if len(squares) == len(found) else None


def _is_even(variant: Variant, squares: list[int]) -> bool:
    """Return whether pieces, pawns and goals are the same on both wings."""
    return (
        all(
            sorted(piece.rays) == sorted(replace(ray, step=_mirrored(ray.step)) for ray in piece.rays)
            for piece in variant.piece_types
        )
        and (variant.pawns is None or _are_even(variant.pawns))
        and all(
            {squares[square] for square in goal.squares[side]} == set(goal.squares[side])
            for goal in variant.ends.goals
            for side in (WHITE, BLACK)
        )
    )


def _are_even(pawns: Pawns) -> bool:
    """Return whether pawns step alike to both wings, with one route at most to any square.

    Of two routes the engine takes the first in the order of the file, which may not be the mirrored one.
    """
    if pawns.first_steps > 1 and any(_share_a_line(*pair) for pair in combinations(pawns.quiet, 2)):
        return False
    return _is_closed(pawns.quiet) and _is_closed(pawns.captures)


def _share_a_line(one: Step, other: Step) -> bool:
    """Return whether two steps lead in one direction."""
    (x0, y0), (x1, y1) = one, other
    return x0 * y1 == x1 * y0 and x0 * x1 + y0 * y1 > 0


def _is_closed(steps: Iterable[Step]) -> bool:
    return set(steps) == {_mirrored(step) for step in steps}


def _mirrored(step: Step) -> Step:
    return -step[0], step[1]


def _mirrored_castlings(variant: Variant, squares: list[int]) -> dict[int, int]:
    """Return, by the number of a castling, that of the mirrored one of its side, where there is one."""

    def key(castling: Castling, square_of: list[int]) -> tuple[object, ...]:
        places = (castling.king_from, castling.king_to, castling.partner_from, castling.partner_to)
        return (*(square_of[place] for place in places), castling.king_types, castling.partner_types)

    same = list(range(len(squares)))
    numbered = [(number, castling) for number, castling in enumerate(variant.castlings) if castling is not None]
    return {
        number: other
        for number, castling in numbered
        for other, mirror in numbered
        if number // 2 == other // 2 and key(castling, squares) == key(mirror, same)
    }
