"""A variant compiled into a few integer arrays, so that one set of kernels plays every game.

Dims: S squares, A actions. The rule tables are one flat uint32 array: a header (`layout.T_*`), then parts that the
header's offsets find:

- moves [32 codes * S]: offset of a list of groups, each `kind | count << 8` and its entries, ended by `END`;
- attacks [2 sides * S]: offset of what may capture on a square, seen outward from it: leaps, overruns, plain lines
  and lines on which a piece may fire through;
- castling [4]: offset of a record, or 0; keep [S]: castling rights kept when a square is touched;
- pawn_from [2 * S * 2]: squares + 1 from which a pawn captures on a square; forward [2 * S]: next square + 1;
- goal [2 * S]: bits of the piece types that win on a square; cell [2 * S]: grid cell in the side's view.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from envs import layout
from envs.actions import (
    NO_PROMOTION,
    ActionEncoding,
    encode_actions,
    pawn_captures,
    pawn_steps,
    promotes_on,
    ray_squares,
)
from envs.attack_tables import AttackRecord
from envs.betza import Ray
from envs.errors import InvalidVariant
from envs.layout import U32Array, U64Array
from envs.variant import BLACK, WHITE, Variant

MAX_ACTIONS = 1 << 16


@dataclass(frozen=True)
class CompiledGame:
    """A variant with its tables; immutable, shared by every environment of the game.

    Attributes:
        variant: The rules.
        encoding: The actions.
        tables: uint32, the rule tables.
        zobrist: uint64, the numbers of `layout.zobrist_numbers`.
        most_moves: int [piece types], the most moves that one piece can have (a pawn: after promotion too).
    """

    variant: Variant
    encoding: ActionEncoding
    tables: U32Array
    zobrist: U64Array
    most_moves: tuple[int, ...]

    @property
    def num_actions(self) -> int:
        """A."""
        return self.encoding.num_actions

    @property
    def state_words(self) -> int:
        """Length of a state row in uint64 words."""
        return int(self.tables[layout.T_WORDS])

    @property
    def num_planes(self) -> int:
        """C, the number of observation planes."""
        return int(self.tables[layout.T_PLANES])

    @property
    def observation_shape(self) -> tuple[int, int, int]:
        """(C, H, W)."""
        return self.num_planes, self.variant.board.ranks, self.variant.board.files

    @cached_property
    def max_legal(self) -> int:
        """An upper bound of legal moves for whatever stands on the board."""
        return self.variant.num_squares * max(self.most_moves) + len(self.variant.castlings)

    def legal_bound(self, boards: layout.U8Array) -> int:
        """Return an upper bound of legal moves that holds for the whole games from some positions.

        Args:
            boards: uint8 [S] or [N, S], piece codes.
        """
        return int(self._most_by_code[:, boards].sum(axis=-1).max(initial=1)) + len(self.variant.castlings)

    @cached_property
    def _most_by_code(self) -> npt.NDArray[np.int64]:
        """int64 [2, codes], the most moves of each piece code for the side that it belongs to, 0 for the other."""
        most = np.zeros((2, layout.NUM_CODES), np.int64)
        for number, moves in enumerate(self.most_moves):
            most[0, number + 1] = most[1, number + 1 + layout.BLACK_CODE] = moves
        return most


def compile_game(variant: Variant) -> CompiledGame:
    """Compile a variant into tables.

    Raises:
        InvalidVariant: The game has more actions than an action id can name.
    """
    encoding = encode_actions(variant)
    if encoding.num_actions > MAX_ACTIONS:
        raise InvalidVariant(f"{variant.name}: {encoding.num_actions} actions, at most {MAX_ACTIONS} are supported")
    builder = _TableBuilder(variant, encoding)
    return CompiledGame(
        variant, encoding, builder.build(), layout.zobrist_numbers(variant.num_squares), builder.most_moves()
    )


def is_colour_symmetric(variant: Variant) -> bool:
    """Return whether the rules are the same for both sides, so that a board and its colour-flip are one position."""
    white, black = variant.goals
    goals = sorted(variant.board.flipped[s] for s in white) == sorted(black)
    pawns = variant.pawns is None or all(
        sorted(variant.board.ranks - 1 - y for y in ranks[WHITE]) == sorted(ranks[BLACK])
        for ranks in (variant.pawns.start_ranks, variant.pawns.promotion_ranks)
    )
    flip = variant.board.flipped
    white_castlings, black_castlings = variant.castlings[:2], variant.castlings[2:]
    castlings = all(
        mine == theirs
        if mine is None or theirs is None
        else [flip[square] for square in astuple(mine)[:4]] == list(astuple(theirs)[:4])
        and mine.partner_type == theirs.partner_type
        for mine, theirs in zip(white_castlings, black_castlings, strict=True)
    )
    return goals and pawns and castlings


class _TableBuilder:
    """Writes the rule tables of one variant; one use."""

    def __init__(self, variant: Variant, encoding: ActionEncoding) -> None:
        self.variant = variant
        self.encoding = encoding
        self.num_squares = variant.num_squares
        self.words: list[int] = [0] * layout.T_END
        self.ambiguous = False
        self.most_entries = [0] * len(variant.piece_types)

    def build(self) -> U32Array:
        """Return the tables."""
        variant, words = self.variant, self.words
        colour = not is_colour_symmetric(variant)
        num_types = len(variant.piece_types)
        words[layout.T_SQUARES] = self.num_squares
        words[layout.T_WORDS] = layout.HEADER_WORDS + -(-self.num_squares // 8)
        words[layout.T_ROYAL] = variant.royal + 1
        words[layout.T_PAWN] = 0 if variant.pawns is None else variant.pawns.piece + 1
        words[layout.T_BARE_DRAW] = int(variant.bare_kings_draw)
        words[layout.T_GOALS] = int(any(variant.goals))
        words[layout.T_ACTIONS] = self.encoding.num_actions
        words[layout.T_TYPES] = num_types
        words[layout.T_PLANES] = 2 * num_types + 9 + int(colour)
        words[layout.T_CELLS] = variant.board.ranks * variant.board.files
        words[layout.T_COLOUR_PLANE] = int(colour)
        self._part(layout.T_MOVES, layout.NUM_CODES * self.num_squares, self._moves)
        self._part(layout.T_ATTACKS, 2 * self.num_squares, self._attacks)
        self._part(layout.T_CASTLING, 4, self._castling)
        for key, values in self._flat_parts():
            words[key] = len(words)
            words.extend(values)
        words[layout.T_DEDUPE] = int(self.ambiguous)
        return np.array(words, dtype=np.uint32)

    def most_moves(self) -> tuple[int, ...]:
        """Return the most moves of any piece of each type, as counted while building the move table.

        A pawn counts as the best of what it may become; an entry of the table is at most one move.
        """
        most = list(self.most_entries)
        pawns = self.variant.pawns
        if pawns is not None:
            most[pawns.piece] = max(most[pawns.piece], *(most[target] for target in pawns.promotes_to))
        return tuple(most)

    def _part(self, key: int, size: int, records: Callable[[], Iterator[tuple[int, list[int]]]]) -> None:
        """Reserve an offset table of `size` words and append the records that it points to."""
        base = self.words[key] = len(self.words)
        self.words.extend([0] * size)
        for index, record in records():
            self.words[base + index] = len(self.words)
            self.words.extend(record)

    def _action(self, start: int, to: int, side: int, promotion: int = NO_PROMOTION) -> int:
        if side == BLACK:
            start, to = self.variant.board.flipped[start], self.variant.board.flipped[to]
        return self.encoding.action_by_move[start, to, promotion]

    def _entry(self, start: int, to: int, side: int, *, quiet: bool, capture: bool) -> int:
        action = self._action(start, to, side) if quiet or capture else 0
        return to | action << 8 | quiet << layout.ENTRY_QUIET | capture << layout.ENTRY_CAPTURE

    def _moves(self) -> Iterator[tuple[int, list[int]]]:
        pawns = self.variant.pawns
        for side in (WHITE, BLACK):
            for number in range(len(self.variant.piece_types)):
                code = number + 1 + side * layout.BLACK_CODE
                for square in range(self.num_squares):
                    is_pawn = pawns is not None and number == pawns.piece
                    groups = self._pawn_groups(square, side) if is_pawn else self._groups(number, square, side)
                    entries = sum(group[0] >> 8 for group in groups)
                    self.most_entries[number] = max(self.most_entries[number], entries)
                    yield code * self.num_squares + square, [w for group in groups for w in group] + [layout.END]

    def _groups(self, number: int, square: int, side: int) -> list[list[int]]:
        piece = self.variant.piece_types[number]
        rays = [(ray, ray_squares(self.variant, square, ray, side)) for ray in piece.rays]
        keep = self._undominated(rays)
        leaps: list[int] = []
        groups: list[list[int]] = []
        for (ray, squares), flags in zip(rays, keep, strict=True):
            entries = [
                self._entry(square, to, side, quiet=q, capture=c) for to, (q, c) in zip(squares, flags, strict=True)
            ]
            while flags and not any(flags[-1]):
                flags.pop()
                entries.pop()
            if not entries:
                continue
            if ray.overruns:
                groups.append([layout.OVERRUN | 1 << 8, entries[0], self._midpoint(square, squares[0])])
            elif ray.fires_through:
                kind = layout.FIRE_OWN if piece.fires_through_own else layout.FIRE
                groups.append([kind | len(entries) << 8, *entries])
            elif not all(q and c for q, c in flags):
                groups.append([layout.RAY | len(entries) << 8, *entries])
            elif len(entries) == 1:
                leaps += entries
            else:
                groups.append([layout.SLIDE | len(entries) << 8, *entries])
        return ([[layout.LEAP | len(leaps) << 8, *leaps]] if leaps else []) + groups

    def _undominated(self, rays: list[tuple[Ray, list[int]]]) -> list[list[tuple[bool, bool]]]:
        """Keep, of several routes to one square, those that are not open whenever another one is.

        Returns:
            For each ray and square whether it may end there quietly, and capturing.
        """
        flags = [[[ray.quiet, ray.capture] for _ in squares] for ray, squares in rays]
        routes: dict[tuple[int, int], list[tuple[frozenset[int], int, int]]] = defaultdict(list)
        for number, (ray, squares) in enumerate(rays):
            for step, to in enumerate(squares):
                for mode, allowed in enumerate((ray.quiet, ray.capture)):
                    if allowed:
                        routes[to, mode].append((frozenset(squares[:step]), number, step))
        for (_, mode), options in routes.items():
            options.sort(key=lambda option: (len(option[0]), not rays[option[1]][0].fires_through))
            kept: list[frozenset[int]] = []
            for empty, number, step in options:
                if any(other <= empty for other in kept) and not rays[number][0].fires_through:
                    flags[number][step][mode] = False
                else:
                    kept.append(empty)
            self.ambiguous |= len(kept) > 1
        return [[(q, c) for q, c in row] for row in flags]

    def _midpoint(self, start: int, to: int) -> int:
        (x0, y0), (x1, y1) = self.variant.board.squares[start], self.variant.board.squares[to]
        return self.variant.board.index.get(((x0 + x1) // 2, (y0 + y1) // 2), start)

    def _pawn_groups(self, square: int, side: int) -> list[list[int]]:
        steps, captures = (
            [word for number, to in enumerate(squares) for word in self._pawn_entries(square, to, side, multi * number)]
            for squares, multi in (
                (pawn_steps(self.variant, square, side), 1),
                (pawn_captures(self.variant, square, side), 0),
            )
        )
        groups = ((layout.PAWN_STEP, steps), (layout.PAWN_CAPTURE, captures))
        return [[kind | len(words) << 8, *words] for kind, words in groups if words]

    def _pawn_entries(self, start: int, to: int, side: int, multi_step: int) -> list[int]:
        assert self.variant.pawns is not None
        if not promotes_on(self.variant, to, side):
            return [to | self._action(start, to, side) << 8 | bool(multi_step) << layout.ENTRY_MULTI]
        return [
            to | self._action(start, to, side, target) << 8 | (target + 1) << layout.ENTRY_PROMOTION
            for target in self.variant.pawns.promotes_to
        ]

    def _attacks(self) -> Iterator[tuple[int, list[int]]]:
        for side in (WHITE, BLACK):
            for square in range(self.num_squares):
                yield side * self.num_squares + square, AttackRecord(self.variant, side, square).words()

    def _castling(self) -> Iterator[tuple[int, list[int]]]:
        for number, castling in enumerate(self.variant.castlings):
            if castling is None:
                continue
            side = number // 2
            king, partner = (
                (castling.king_from, castling.king_to),
                (castling.partner_from, castling.partner_to),
            )
            path = self._between(*king)
            empty = {
                *self._between(castling.king_from, castling.partner_from),
                *path,
                *self._between(*partner),
            }
            empty |= {castling.king_to, castling.partner_to}
            empty -= {castling.king_from, castling.partner_from}
            path.append(castling.king_to)
            code = castling.partner_type + 1 + side * layout.BLACK_CODE
            record = [
                *king,
                *partner,
                code,
                self._action(*king, side),
                len(empty),
                *sorted(empty),
                len(path),
                *path,
            ]
            yield number, record

    def _between(self, first: int, second: int) -> list[int]:
        """List the squares strictly between two squares of one rank."""
        (x0, y), (x1, _) = self.variant.board.squares[first], self.variant.board.squares[second]
        cells = [(x, y) for x in range(min(x0, x1) + 1, max(x0, x1))]
        for cell in cells:
            if cell not in self.variant.board.index:
                raise InvalidVariant(
                    f"{self.variant.name}: castling passes over a hole on rank {self.variant.board.first_rank + y}"
                )
        return [self.variant.board.index[cell] for cell in cells]

    def _flat_parts(self) -> Iterator[tuple[int, list[int]]]:
        board, size = self.variant.board, self.num_squares
        keep = [15] * size
        for number, castling in enumerate(self.variant.castlings):
            if castling is not None:
                keep[castling.king_from] &= ~(1 << number)
                keep[castling.partner_from] &= ~(1 << number)
        pawn_from = [0] * (4 * size)
        forward = [0] * (2 * size)
        goal = [0] * (2 * size)
        cell = [0] * (2 * size)
        for side in (WHITE, BLACK):
            for square, (x, y) in enumerate(board.squares):
                row = side * size + square
                seen_y = y if side == WHITE else board.ranks - 1 - y
                cell[row] = seen_y * board.files + x
                goal[row] = (square in self.variant.goals[side]) << (self.variant.goal_piece + 1)
                if self.variant.pawns is not None:
                    ahead = ray_squares(self.variant, square, Ray((0, 1), 1), side)
                    forward[row] = ahead[0] + 1 if ahead else 0
                    for to in pawn_captures(self.variant, square, side):
                        slot = 2 * (side * size + to)
                        pawn_from[slot + (pawn_from[slot] != 0)] = square + 1
        yield from (
            (layout.T_KEEP, keep),
            (layout.T_PAWN_FROM, pawn_from),
            (layout.T_FORWARD, forward),
            (layout.T_GOAL, goal),
            (layout.T_CELL, cell),
        )
