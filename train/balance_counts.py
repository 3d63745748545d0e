"""What is counted in a game for its balance.

Everything begins where the random opening ends: only moves that a player chose are counted, and the pieces are those
that stood there or were promoted to later. Plies alone are numbered from the start of the game. What happens is kept as
pairs "counted, out of": a figure of many games is the ratio of the sums (`balance_intervals.py`).

Dims: T chosen plies, W words a state row, K kinds. A kind is a piece type, of either side where the sides are alike,
else of one side, with small letters for Black's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from envs import CompiledGame, boards, engine_for, replay_actions, to_play
from envs.layout import BLACK_CODE, CASTLE_FLAG, NUM_CODES, U8Array, U64Array
from envs.notation import EMPTY, format_move, parse_fields, piece_code
from envs.rows import actions_of, captured_pieces, legal_moves
from envs.variant import BLACK, WHITE, Variant
from train.evaluation_features import are_sides_alike

PLY_CAP, RESIGNATION = "ply_cap", "resignation"
"""Ends that no rule names."""
LINE_PLIES = (1, 2, 4)
"""Lengths of the lines whose entropy is measured."""
Tally = dict[str, tuple[float, float]]
"""Figure -> counted, out of how many."""
NO_KIND = -1
_U64 = np.uint64


@dataclass(frozen=True, eq=False)
class BalanceGame:
    """A game that counts for a balance.

    Attributes:
        start_fen: the position at which its players took over, with an empty history.
        opening_plies: random plies before it.
        actions: int32 [T], side-relative action ids.
        white_score: 1, 0.5 or 0; NaN for a game that was cut short.
        ending: `Termination` in small letters, `PLY_CAP` or `RESIGNATION`.
    """

    start_fen: str
    opening_plies: int
    actions: NDArray[np.int32]
    white_score: float
    ending: str


@dataclass(frozen=True, eq=False)
class Kinds:
    """The kinds of piece of a game.

    Attributes:
        letters: of each, [K].
        of_code: intp [32], the kind of each piece code, `NO_KIND` for codes that the game lacks.
        pawns: kinds that are pawns.
        royals: kinds that are royal, which are never captured.
        promoted_to: kinds that pawns can become.
        possible: kinds that a game can have.
    """

    letters: tuple[str, ...]
    of_code: NDArray[np.intp]
    pawns: frozenset[int]
    royals: frozenset[int]
    promoted_to: frozenset[int]
    possible: tuple[int, ...]

    @classmethod
    def of(cls, variant: Variant, *, alike: bool | None = None) -> Kinds:
        """Return the kinds of a game.

        Args:
            variant: the game.
            alike: whether a type is one kind for both sides; None where the sides are alike.
        """
        num_types = len(variant.piece_types)
        alike = are_sides_alike(variant) if alike is None else alike
        of_code = np.full(NUM_CODES, NO_KIND, np.intp)
        for number in range(num_types):
            of_code[piece_code(number, WHITE)] = number
            of_code[piece_code(number, BLACK)] = number if alike else number + num_types
        letters = [piece.letter for piece in variant.piece_types]
        pawns = variant.pawns

        def kinds(types: Iterable[tuple[int, int | None]]) -> frozenset[int]:
            return frozenset(int(of_code[piece_code(one, side)]) for side, one in types if one is not None)

        promoted_to = kinds(
            (side, one) for side, types in enumerate([] if pawns is None else pawns.promotes_to) for one in types
        )
        codes = [parse_fields(variant, fen).board for fen in variant.start_fens]
        at_start = {int(kind) for kind in of_code[np.unique(codes)] if kind != NO_KIND}
        return cls(
            letters=tuple(letters if alike else [*letters, *(letter.lower() for letter in letters)]),
            of_code=of_code,
            pawns=kinds(enumerate([] if pawns is None else [pawns.piece] * 2)),
            royals=kinds(enumerate(variant.royals)),
            promoted_to=promoted_to,
            possible=tuple(sorted(at_start | promoted_to)),
        )

    def count(self, codes: NDArray[np.integer]) -> NDArray[np.intp]:
        """Count piece codes of any shape by kind, [K]; code 0 is nobody."""
        kinds = self.of_code[codes[codes != EMPTY].astype(np.intp)]
        return np.bincount(kinds, minlength=len(self.letters)).astype(np.intp)


@dataclass(frozen=True, eq=False)
class ReplayedGame:
    """A game with all its positions and moves.

    Attributes:
        game: whose it is.
        played: the game.
        rows: uint64 [T + 1, W].
        moves: uint64 [T], move words.
        num_legal: int32 [T], legal moves before each.
    """

    game: CompiledGame
    played: BalanceGame
    rows: U64Array
    moves: U64Array
    num_legal: NDArray[np.int32]

    @classmethod
    def of(cls, variant: Variant, played: BalanceGame) -> ReplayedGame:
        """Replay a game.

        Raises:
            IllegalAction: one of its actions is not legal.
        """
        game = engine_for(variant)
        rows, _ = replay_actions(game, played.start_fen, played.actions)
        words, counts, _ = legal_moves(game, rows[:-1])
        is_legal = np.arange(words.shape[1]) < counts[:, None]
        chosen = ((actions_of(words) == played.actions[:, None]) & is_legal).argmax(axis=1)
        return cls(game, played, rows, words[np.arange(len(words)), chosen], counts)

    @cached_property
    def movers(self) -> U8Array:
        """uint8 [T], who moved: 0 White, 1 Black."""
        return to_play(self.game, self.rows[:-1])

    @cached_property
    def moved(self) -> U8Array:
        """uint8 [T], code of the piece that moved, the king's when it castled."""
        return boards(self.game, self.rows[:-1])[np.arange(len(self.moves)), (self.moves & _U64(0xFF)).astype(np.intp)]

    @cached_property
    def victims(self) -> U8Array:
        """uint8 [T, 2], codes of what each move captured, 0 for nothing."""
        return captured_pieces(self.game, self.rows[:-1], self.moves[:, None])[:, 0]

    @cached_property
    def promoted(self) -> NDArray[np.intp]:
        """Codes that pawns became, intp [T], 0 for none."""
        types = (self.moves >> _U64(32) & _U64(15)).astype(np.intp)
        return np.where(types > 0, types + BLACK_CODE * self.movers.astype(np.intp), EMPTY)

    @cached_property
    def castlings(self) -> NDArray[np.intp]:
        """Numbers of castlings in `Variant.castlings`, intp [T], -1 for other moves."""
        numbers = (self.moves >> _U64(36) & _U64(3)).astype(np.intp)
        return np.where(self.moves >> _U64(CASTLE_FLAG) & _U64(1) == 1, numbers, -1)

    def line(self, plies: int) -> tuple[str, ...]:
        """Return the first chosen moves as text, as many as there are."""
        find = self.game.variant
        return tuple(
            format_move(find, int(move) & 0xFF, int(move) >> 8 & 0xFF, (int(move) >> 32 & 15) - 1)
            for move in self.moves[:plies]
        )


def tally(replayed: ReplayedGame, kinds: Kinds) -> Tally:
    """Count everything of one game."""
    return dict([*_results(replayed), *_moves(replayed), *_captures(replayed), *_castling(replayed)]) | dict(
        _pieces(replayed, kinds)
    )


Entry = tuple[str, tuple[float, float]]


def _results(replayed: ReplayedGame) -> Iterator[Entry]:
    score, ending = replayed.played.white_score, replayed.played.ending
    ended = float(not np.isnan(score))
    yield "white_score", (float(np.nan_to_num(score)), ended)
    for name, result in (("white_wins", 1.0), ("draws", 0.5), ("black_wins", 0.0)):
        yield name, (float(score == result), ended)
    yield "decisive", (float(score in (0.0, 1.0)), ended)
    yield f"ending/{ending}", (1.0, 1.0)


def _moves(replayed: ReplayedGame) -> Iterator[Entry]:
    plies = len(replayed.moves)
    yield "plies", (float(plies + replayed.played.opening_plies), 1.0)
    yield "branching", (float(replayed.num_legal.sum()), float(plies))
    promotions = int((replayed.promoted != EMPTY).sum())
    if replayed.game.variant.pawns is not None:
        yield "promotions", (float(promotions), 1.0)
        yield "games_with_promotion", (float(promotions > 0), 1.0)


def _captures(replayed: ReplayedGame) -> Iterator[Entry]:
    taken = replayed.victims != EMPTY
    captured, double = int(taken.sum()), int(taken.all(axis=1).sum())
    is_own = taken & (replayed.victims // BLACK_CODE == replayed.movers[:, None])
    yield "captures", (float(captured), 1.0)
    yield "capturing_moves", (float(taken.any(axis=1).sum()), float(len(taken)))
    yield "double_captures", (float(double), 1.0)
    yield "games_with_double_capture", (float(double > 0), 1.0)
    yield "own_captures", (float(is_own.sum()), 1.0)
    plies = np.flatnonzero(taken.any(axis=1))
    if plies.size:
        yield "first_capture", (float(plies[0] + replayed.played.opening_plies + 1), 1.0)


def _castling(replayed: ReplayedGame) -> Iterator[Entry]:
    """Yield shares of players who castled; a side without any castling has had no chance."""
    possible = [castling is not None for castling in replayed.game.variant.castlings]
    done = [int((replayed.castlings == number).any()) for number in range(len(possible))]
    sides = [side for side in (WHITE, BLACK) if any(possible[2 * side : 2 * side + 2])]
    castled = {side: float(any(done[2 * side : 2 * side + 2])) for side in sides}
    if not sides:
        return
    yield "castled", (sum(castled.values()), float(len(sides)))
    for side in sides:
        yield f"castled/{('white', 'black')[side]}", (castled[side], 1.0)
    for wing, name in enumerate(("kingside", "queenside")):
        if any(possible[wing::2]):
            yield f"castled/{name}", (float(sum(done[wing::2])), float(sum(possible[wing::2])))


def _pieces(replayed: ReplayedGame, kinds: Kinds) -> Iterator[Entry]:
    """Yield use and fate by kind; a piece that was promoted to has had a life of its own."""
    codes = boards(replayed.game, replayed.rows[[0, -1]])
    at_start, at_end = kinds.count(codes[0]), kinds.count(codes[1])
    born = kinds.count(replayed.promoted)
    moved, captured = kinds.count(replayed.moved), kinds.count(replayed.victims)
    capturing = kinds.count(np.repeat(replayed.moved, (replayed.victims != EMPTY).sum(axis=1)))
    changed = kinds.count(replayed.moved[replayed.promoted != EMPTY])
    plies, total = float(len(replayed.moves)), float(capturing.sum())
    for kind in kinds.possible:
        letter = kinds.letters[kind]
        lived = float(at_start[kind] + born[kind])
        yield f"moves/{letter}", (float(moved[kind]), plies)
        yield f"captures_made/{letter}", (float(capturing[kind]), total)
        if kind not in kinds.royals:
            yield f"captured/{letter}", (float(captured[kind]), lived)
            yield f"alive/{letter}", (float(at_end[kind]), lived)
        if kind in kinds.pawns:
            yield f"promoted/{letter}", (float(changed[kind]), lived)
        if kind in kinds.promoted_to:
            yield f"promotions_to/{letter}", (float(born[kind]), 1.0)
