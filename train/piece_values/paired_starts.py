"""Start positions that lack pieces, each with its twin in which the armies have changed colours.

A pair of games, one from each, tells what the armies are worth apart from the worth of the first move. Where both
sides have the same array the twin always exists; where they differ it must be a position of the game.

Dims: T piece types, S squares.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from envs import CompiledGame
from envs.layout import U8Array
from envs.notation import BLACK_CODE, EMPTY, FenFields, format_fields, parse_fields
from train.evaluation_tables import UNITS, EvaluationTable
from train.piece_values.positions import InsufficientData
from train.starts import goes_on, removable_squares, rights_left, start_without


@dataclass(frozen=True)
class PairedStart:
    """A start and its twin.

    Attributes:
        fen: the start.
        swapped_fen: the same with the colours of the armies swapped, White to move first again; None where the game
            has no such position.
        missing: what is missing from the array, White's count of each type and Black's, in `fen`.
    """

    fen: str
    swapped_fen: str | None
    missing: tuple[tuple[int, ...], tuple[int, ...]]

    @property
    def difference(self) -> NDArray[np.int16]:
        """White's pieces less Black's in `fen`, but for what differs in the array, int16 [T]."""
        return np.subtract(self.missing[1], self.missing[0], dtype=np.int16)


class Army:
    """The start array of a game as something to take pieces from.

    Attributes:
        removable: squares of all pieces but royals, [M]. sides, types: of the pieces there, [M].
        counts: pieces of each side and type, royals not counted, int16 [2, T].
    """

    def __init__(self, game: CompiledGame, fen: str) -> None:
        """Read a start position.

        Args:
            game: the game.
            fen: one of its start positions.
        """
        self.game = game
        self.fields = parse_fields(game.variant, fen)
        self.removable = removable_squares(game, self.fields)
        codes = self.fields.board[self.removable].astype(np.int64) - 1
        self.sides, self.types = codes // BLACK_CODE, codes % BLACK_CODE
        self.num_types = len(game.variant.piece_types)
        self.counts = self.counts_without(np.zeros(len(codes), np.bool_))

    def standing(self, side: int, kind: int) -> NDArray[np.intp]:
        """Return the squares of a side's pieces of a type, in the order of the board."""
        squares: NDArray[np.intp] = self.removable[(self.sides == side) & (self.types == kind)]
        return squares

    def without(self, squares: NDArray[np.intp]) -> PairedStart | None:
        """Return the array without the pieces on some squares, and its twin; None where no game goes on from it."""
        fen = start_without(self.game, self.fields, squares)
        if fen is None:
            return None
        taken = np.isin(self.removable, squares)
        white, black = (self.counts - self.counts_without(taken)).tolist()
        return PairedStart(fen, colours_swapped(self.game, fen), (tuple(white), tuple(black)))

    def counts_without(self, taken: NDArray[np.bool_]) -> NDArray[np.int16]:
        """Return the pieces of each side and type without those `taken` [M] of `removable`, int16 [2, T]."""
        return np.array([self._counts(side, ~taken) for side in (0, 1)], np.int16)

    def _counts(self, side: int, chosen: NDArray[np.bool_]) -> list[int]:
        counts: list[int] = np.bincount(self.types[chosen & (self.sides == side)], minlength=self.num_types).tolist()
        return counts


def colours_swapped(game: CompiledGame, fen: str) -> str | None:
    """Return a start with every piece of the other colour on the mirrored rank, the same side to move.

    Returns:
        None where the game has no such position, or none that goes on.
    """
    variant = game.variant
    fields = parse_fields(variant, fen)
    board = _swapped(fields.board)[list(variant.board.flipped)]
    white_k, white_q, black_k, black_q = fields.rights
    rights = rights_left(game, (black_k, black_q, white_k, white_q), board)
    swapped = format_fields(variant, FenFields(board, fields.to_play, rights, (), 0, 1))
    return swapped if goes_on(game, swapped) else None


def check_colours(game: CompiledGame) -> None:
    """Refuse a game in which the armies cannot change colours.

    Raises:
        InsufficientData: names the pieces that only one side owns.
    """
    if all(colours_swapped(game, fen) for fen in game.variant.start_fens):
        return
    pieces = one_sided_pieces(game)
    whose = f"pieces that only one side owns, {', '.join(pieces)}," if pieces else "unequal armies"
    raise InsufficientData(f"{whose} need games with colours swapped, which {game.variant.title} does not allow")


def one_sided_pieces(game: CompiledGame) -> list[str]:
    """Return the letters of the pieces that only one side has in the array, in the order of the game's file."""
    owners: dict[int, set[int]] = {}
    for fen in game.variant.start_fens:
        army = Army(game, fen)
        for side, kind in zip(army.sides.tolist(), army.types.tolist()):
            owners.setdefault(kind, set()).add(side)
    return [game.variant.piece_types[kind].letter for kind in sorted(owners) if len(owners[kind]) == 1]


def own_values(table: EvaluationTable, game: CompiledGame) -> NDArray[np.float64]:
    """Return what the players think each piece type is worth, in logits of the expected score, [T].

    It serves to draw starts that are about even, and decides nothing else.
    """
    values = np.zeros(len(game.variant.piece_types))
    for kind, piece in enumerate(game.variant.piece_types):
        known = [table.values[letter] for letter in (piece.letter, piece.letter.lower()) if letter in table.values]
        values[kind] = max(known, default=1.0) * table.pawn / UNITS
    return values


def _swapped(board: U8Array) -> U8Array:
    """Return a board's codes with the colours swapped, squares as they are, uint8 [S]."""
    return np.where(board == EMPTY, board, np.where(board > BLACK_CODE, board - BLACK_CODE, board + BLACK_CODE)).astype(
        np.uint8
    )
