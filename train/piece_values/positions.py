"""Positions of finished games as the arrays that the estimators read.

Dims: N positions, G games, T piece types without the royal one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from envs import CompiledGame, Variant, piece_counts, to_play
from envs.notation import parse_fields
from train.piece_values.promotions import promoted_men
from train.shards import GameRecord

OPENING_SHARE = 0.5
"""Share of the men of the start array from which on a position is of the opening, not of the ending."""


class InsufficientData(ValueError):
    """Too few or too uniform games for any value; the message names what is missing."""


@dataclass(frozen=True, eq=False)
class Details:
    """What splits of positions go by.

    Attributes:
        counts: White's and Black's pieces, int16 [N, 2, T].
        promoted: those among them that were pawns, int16 [N, 2, T].
        is_quiet: see `quiet_mask`, bool [N].
        is_opening: whether at least `OPENING_SHARE` of the men of the array are on the board, bool [N].
    """

    counts: NDArray[np.int16]
    promoted: NDArray[np.int16]
    is_quiet: NDArray[np.bool_]
    is_opening: NDArray[np.bool_]

    def take(self, chosen: NDArray[np.bool_]) -> Details:
        """Return the positions where `chosen` [N] holds."""
        return Details(*(getattr(self, field.name)[chosen] for field in fields(self)))


@dataclass(frozen=True)
class Positions:
    """Positions of finished games.

    Attributes:
        letters: letter of each piece type, [T].
        pawn: letter of the piece that is worth 1.
        material: White's count less Black's, int16 [N, T].
        white_to_move: bool [N].
        game: index of the position's game, int32 [N], in 0..G-1.
        white_score: White's result of each game, 1, 0.5 or 0, float64 [G].
        cut_games: games left out because they were cut short.
        details: what splits go by; None where they are not known.
    """

    letters: tuple[str, ...]
    pawn: str
    material: NDArray[np.int16]
    white_to_move: NDArray[np.bool_]
    game: NDArray[np.int32]
    white_score: NDArray[np.float64]
    cut_games: int = 0
    details: Details | None = None

    @property
    def num_games(self) -> int:
        """G."""
        return self.white_score.size

    @property
    def decisive_games(self) -> int:
        """Games with a winner."""
        return int(np.isin(self.white_score, (0.0, 1.0)).sum())

    def take(self, chosen: NDArray[np.bool_]) -> Positions:
        """Return the positions where `chosen` [N] holds, and the games that still have one, renumbered."""
        games, game = np.unique(self.game[chosen], return_inverse=True)
        return replace(
            self,
            material=self.material[chosen],
            white_to_move=self.white_to_move[chosen],
            game=game.astype(np.int32),
            white_score=self.white_score[games],
            details=self.details and self.details.take(chosen),
        )

    def even_in(self, columns: list[int]) -> Positions:
        """Return the positions without a difference in some types."""
        return self.take((self.material[:, columns] == 0).all(axis=1))

    def games_with_difference(self) -> NDArray[np.int64]:
        """Count the games that have a position with a difference in each piece type, [T]."""
        game, piece = np.nonzero(self.material)
        pairs = np.unique(self.game[game].astype(np.int64) * len(self.letters) + piece)
        return np.bincount(pairs % len(self.letters), minlength=len(self.letters))


def quiet_mask(counts: NDArray[np.int16]) -> NDArray[np.bool_]:
    """Mark the positions of one game that no exchange surrounds.

    A position is quiet when neither the move before it nor the move after it changed any piece count. The
    move after the last position ends the game and counts as a change.

    Args:
        counts: piece counts of consecutive positions, [T, 2, types] or any [T, ...].

    Returns:
        bool [T].
    """
    flat = counts.reshape(len(counts), -1)
    changed = (flat[1:] != flat[:-1]).any(axis=1)
    return ~np.concatenate(([False], changed)) & ~np.concatenate((changed, [True]))


def collect_positions(game: CompiledGame, records: Iterable[GameRecord], *, quiet_only: bool) -> Positions:
    """Gather the positions of finished games, from the end of each opening on.

    Args:
        game: whose games they are.
        records: games; those without a result are counted and left out.
        quiet_only: leave out positions that `quiet_mask` does not mark.

    Raises:
        InsufficientData: no position is left, or the game has no pawns to measure in.
    """
    variant = game.variant
    if variant.pawns is None:
        raise InsufficientData(f"no unit: {variant.title} has no pawns")
    pieces = [index for index in range(len(variant.piece_types)) if set(variant.royals) != {index}]
    found: list[tuple[Details, NDArray[np.bool_]]] = []
    scores = []
    cut_games = 0
    for record in records:
        if np.isnan(record.white_score):
            cut_games += 1
            continue
        details = _details(game, record, pieces)
        chosen = np.arange(record.num_plies) >= record.opening_plies
        if quiet_only:
            chosen &= details.is_quiet
        found.append((details.take(chosen), to_play(game, record.states)[chosen] == 0))
        scores.append(record.white_score)
    lengths = [len(movers) for _, movers in found]
    if not sum(lengths):
        raise InsufficientData(f"no position of a finished game ({cut_games} games were cut short)")
    details = Details(*(np.concatenate([getattr(one, field.name) for one, _ in found]) for field in fields(Details)))
    positions = Positions(
        letters=tuple(variant.piece_types[index].letter for index in pieces),
        pawn=variant.piece_types[variant.pawns.piece].letter,
        material=details.counts[:, 0] - details.counts[:, 1],
        white_to_move=np.concatenate([movers for _, movers in found]),
        game=np.repeat(np.arange(len(lengths), dtype=np.int32), lengths),
        white_score=np.array(scores, dtype=np.float64),
        cut_games=cut_games,
        details=details,
    )
    return positions.take(np.ones(positions.game.size, dtype=np.bool_))


def num_array_men(variant: Variant) -> float:
    """Return how many men stand in the start array, on average over several."""
    return float(np.mean([np.count_nonzero(parse_fields(variant, fen).board) for fen in variant.start_fens]))


def _details(game: CompiledGame, record: GameRecord, pieces: list[int]) -> Details:
    """Return the details of all positions of a game, for the piece types `pieces`."""
    counts = piece_counts(game, record.states)
    men = counts.sum(axis=(1, 2))
    for side, royal in enumerate(game.variant.royals):
        if royal is not None:
            counts[:, side, royal] = 0  # always there; the other side may have pieces of the type
    return Details(
        counts=counts[:, :, pieces],
        promoted=promoted_men(game, record)[:, :, pieces],
        is_quiet=quiet_mask(counts),
        is_opening=men >= OPENING_SHARE * num_array_men(game.variant),
    )
