"""Positions of finished games as the arrays that the estimators read.

Dims: N positions, G games, T piece types without the royal one, Wd words of a state row.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray


class InsufficientData(ValueError):
    """Too few or too uniform games for any value; the message names what is missing."""


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
    """

    letters: tuple[str, ...]
    pawn: str
    material: NDArray[np.int16]
    white_to_move: NDArray[np.bool_]
    game: NDArray[np.int32]
    white_score: NDArray[np.float64]
    cut_games: int = 0

    @property
    def num_games(self) -> int:
        """G."""
        return self.white_score.size

    @property
    def decisive_games(self) -> int:
        """Games with a winner."""
        return int(np.isin(self.white_score, (0.0, 1.0)).sum())

    def take(self, chosen: NDArray[np.bool_]) -> "Positions":
        """Return the positions where `chosen` [N] holds, and the games that still have one, renumbered."""
        games, game = np.unique(self.game[chosen], return_inverse=True)
        return replace(
            self,
            material=self.material[chosen],
            white_to_move=self.white_to_move[chosen],
            game=game.astype(np.int32),
            white_score=self.white_score[games],
        )

    def games_with_difference(self) -> NDArray[np.int64]:
        """Count the games that have a position with a difference in each piece type, [T]."""
        game, piece = np.nonzero(self.material)
        pairs = np.unique(self.game[game].astype(np.int64) * len(self.letters) + piece)
        return np.bincount(pairs % len(self.letters), minlength=len(self.letters))


def quiet_mask(counts: NDArray[np.int16]) -> NDArray[np.bool_]:
    """Mark the positions of one game that no exchange surrounds.

    A position is quiet when neither the move before it nor the move after it changed any piece count. The move after
    the last position ends the game and counts as a change.

    Args:
        counts: piece counts of consecutive positions, [T, 2, types] or any [T, ...].

    Returns:
        bool [T].
    """
    flat = counts.reshape(len(counts), -1)
    changed = (flat[1:] != flat[:-1]).any(axis=1)
    return ~np.concatenate(([False], changed)) & ~np.concatenate((changed, [True]))
