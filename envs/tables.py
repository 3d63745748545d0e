"""A variant compiled into a few integer arrays, so that one set of kernels plays every game.

Dims: S squares, A actions. The rule tables are one flat uint32 array: a header (`layout.T_*`), then parts that the
header's offsets find:

- moves [32 codes * S]: offset of a list of groups, each `kind | count << 8` and its entries, ended by `END`;
- attacks [2 sides * S]: offset of what may capture on a square, seen outward from it: leaps, overruns, plain lines
  and lines on which a piece may fire through;
- castling [4]: offset of a record, or 0; keep [S]: castling rights kept when a square is touched;
- pawn_from [2 * S]: offset of the number and list of squares from which a pawn captures on a square;
- forward [forward steps * 2 * S]: the square that a pawn's repeated step leads to + 1;
- goal [goals * 2 * S]: the piece types that win on a square, bit t + 1 for type t, and whether by a scepter;
- cell [2 * S]: grid cell in the side's view.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt

from envs import layout
from envs.actions import (
    NO_PROMOTION,
    ActionEncoding,
    encode_actions,
    pawn_captures,
    pawn_promotes_on,
    pawn_steps,
    ray_squares,
)
from envs.attack_tables import AttackRecord
from envs.betza import Ray
from envs.errors import InvalidVariant
from envs.layout import U32Array, U64Array
from envs.square_tables import castling_record, pawn_sources, square_parts
from envs.variant import BLACK, WHITE, Castling, Variant

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

    @property
    def longest_history(self) -> int:
        """How many positions there can be from one irreversible move to the next, as far as repetition matters.

        The engine's limit at most: what lies 65,536 plies back is not compared.
        """
        if not self.variant.ends.repetition_times:
            return 1
        returns = self.variant.pawns is not None and self.variant.pawns.can_return
        limit = 0 if returns else self.variant.ends.move_limit
        return limit + 2 if limit else layout.LONGEST_HISTORY

    @cached_property
    def max_legal(self) -> int:
        """An upper bound of legal moves for whatever stands on the board."""
        return self.variant.num_squares * max(self.most_moves) + len(self.variant.castlings)

    def legal_bound(self, boards: layout.U8Array) -> int:
        """Return an upper bound of legal moves that holds for the whole games from some positions.

        Args:
            boards: uint8 [S] or [N, S], piece codes.
        """
        return int(self.most_by_code[:, boards].sum(axis=-1).max(initial=1)) + len(self.variant.castlings)

    @cached_property
    def most_by_code(self) -> npt.NDArray[np.int64]:
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
    flip = variant.board.flipped

    def mirrored(white: tuple[int, ...], black: tuple[int, ...]) -> bool:
        return sorted(flip[square] for square in white) == sorted(black)

    def same_castling(white: Castling | None, black: Castling | None) -> bool:
        if white is None or black is None:
            return white is black
        squares = [(c.king_from, c.king_to, c.partner_from, c.partner_to) for c in (white, black)]
        types = [(set(c.king_types), set(c.partner_types)) for c in (white, black)]
        return [flip[square] for square in squares[0]] == list(squares[1]) and types[0] == types[1]

    pawns, castlings = variant.pawns, variant.castlings
    return (
        variant.royals[WHITE] == variant.royals[BLACK]
        and (pawns is None or set(pawns.promotes_to[WHITE]) == set(pawns.promotes_to[BLACK]))
        and all(mirrored(*goal.squares) for goal in variant.ends.goals)
        and all(same_castling(white, black) for white, black in zip(castlings[:2], castlings[2:], strict=True))
    )


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
        words = self.words
        for key, value in self._scalars().items():
            words[key] = value
        self._part(layout.T_MOVES, layout.NUM_CODES * self.num_squares, self._moves)
        self._part(layout.T_ATTACKS, 2 * self.num_squares, self._attacks)
        self._part(layout.T_CASTLING, 4, self._castling)
        self._part(layout.T_PAWN_FROM, 2 * self.num_squares, partial(pawn_sources, self.variant))
        for key, values in square_parts(self.variant):
            words[key] = len(words)
            words.extend(values)
        words[layout.T_DEDUPE] = int(self.ambiguous)
        return np.array(words, dtype=np.uint32)

    def _scalars(self) -> dict[int, int]:
        variant, pawns, ends = self.variant, self.variant.pawns, self.variant.ends
        num_types, colour = len(variant.piece_types), not is_colour_symmetric(variant)
        royals = [
            0 if royal is None else royal + 1 + side * layout.BLACK_CODE for side, royal in enumerate(variant.royals)
        ]
        dying = None if ends.extinction is None else ends.extinction.pieces
        return {
            layout.T_SQUARES: self.num_squares,
            layout.T_WORDS: layout.HEADER_WORDS + -(-self.num_squares // 8),
            layout.T_ROYAL: royals[WHITE],
            layout.T_ROYAL_BLACK: royals[BLACK],
            layout.T_PAWN: 0 if pawns is None else pawns.piece + 1,
            layout.T_PAWN_RETURNS: int(pawns is not None and pawns.can_return),
            layout.T_FORWARD_STEPS: 0 if pawns is None else len(pawns.forward),
            layout.T_FIRST_STEPS: 0 if pawns is None else pawns.first_steps,
            layout.T_BARE_DRAW: int(ends.bare_kings_draw),
            layout.T_GOALS: len(ends.goals),
            layout.T_EXTINCT: int(ends.extinction is not None) if dying is None else sum(2 << t for t in dying),
            layout.T_EXTINCT_RESULT: 0 if ends.extinction is None else layout.RESULTS[ends.extinction.result],
            layout.T_STALEMATE: layout.RESULTS[ends.stalemate],
            layout.T_REPETITIONS: max(0, ends.repetition_times - 1),
            layout.T_REPETITION_RESULT: layout.RESULTS[ends.repetition_result],
            layout.T_MOVE_LIMIT: ends.move_limit,
            layout.T_CLOCK_LIMIT: variant.clock_limit,
            layout.T_ACTIONS: self.encoding.num_actions,
            layout.T_TYPES: num_types,
            layout.T_PLANES: 2 * num_types + 9 + int(colour),
            layout.T_CELLS: variant.board.ranks * variant.board.files,
            layout.T_COLOUR_PLANE: int(colour),
        }

    def most_moves(self) -> tuple[int, ...]:
        """Return the most moves of any piece of each type, as counted while building the move table.

        A pawn counts as the best of what it may become; an entry of the table is at most one move.
        """
        most = list(self.most_entries)
        pawns = self.variant.pawns
        if pawns is not None:
            targets = pawns.promotes_to[WHITE] + pawns.promotes_to[BLACK]
            most[pawns.piece] = max([most[pawns.piece], *(most[target] for target in targets)])
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

    def _entry(self, start: int, to: int, side: int, allowed: tuple[bool, bool, bool]) -> int:
        """Return the entry of a move that may be made quietly, capturing an enemy, capturing an own piece."""
        quiet, capture, own = allowed
        action = self._action(start, to, side) if quiet or capture else 0
        flags = quiet << layout.ENTRY_QUIET | capture << layout.ENTRY_CAPTURE | own << layout.ENTRY_OWN
        return to | action << 8 | flags

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
                self._entry(square, to, side, (q, c, c and piece.captures_own))
                for to, (q, c) in zip(squares, flags, strict=True)
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
        groups = [
            (layout.PAWN_STEP, [w for n, to in enumerate(run) for w in self._pawn_entries(square, to, side, n > 0)])
            for run in pawn_steps(self.variant, square, side)
        ]
        captures = pawn_captures(self.variant, square, side)
        groups.append((layout.PAWN_CAPTURE, [w for to in captures for w in self._pawn_entries(square, to, side)]))
        return [[kind | len(words) << 8, *words] for kind, words in groups if words]

    def _pawn_entries(self, start: int, to: int, side: int, multi_step: bool = False) -> list[int]:
        pawns = self.variant.pawns
        assert pawns is not None
        flags = self.variant.piece_types[pawns.piece].captures_own << layout.ENTRY_OWN
        promotes, stays = pawn_promotes_on(self.variant, to, side)
        entries = []
        if stays:
            entries.append(to | self._action(start, to, side) << 8 | flags | multi_step << layout.ENTRY_MULTI)
        if promotes:
            entries += [
                to | self._action(start, to, side, target) << 8 | flags | (target + 1) << layout.ENTRY_PROMOTION
                for target in pawns.promotes_to[side]
            ]
        return entries

    def _attacks(self) -> Iterator[tuple[int, list[int]]]:
        for side in (WHITE, BLACK):
            for square in range(self.num_squares):
                yield side * self.num_squares + square, AttackRecord(self.variant, side, square).words()

    def _castling(self) -> Iterator[tuple[int, list[int]]]:
        for number, castling in enumerate(self.variant.castlings):
            if castling is not None:
                action = self._action(castling.king_from, castling.king_to, number // 2)
                yield number, castling_record(self.variant, castling, action)
