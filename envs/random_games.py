"""Random play of a whole game, the first look at how a variant ends.

Every legal move has the same chance, and a game goes on until the rules end it: the fifty-move rule bounds
its length, so there is no ply cap and no game is cut.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from envs.termination import Termination
from envs.variant import Variant
from envs.vector_env import VectorEnv

MAX_LANES = 256
WHITE_WINS, BLACK_WINS, DRAWN = 1.0, 0.0, 0.5


@dataclass(frozen=True)
class RandomGames:
    """G finished games.

    Attributes:
        terminations: uint8 [G], `Termination` values.
        white_score: float32 [G], 1, 0.5 or 0.
        plies: int64 [G], lengths.
        mean_legal_moves: Legal moves a position, averaged over every position in which a move was made.
    """

    terminations: npt.NDArray[np.uint8]
    white_score: npt.NDArray[np.float32]
    plies: npt.NDArray[np.int64]
    mean_legal_moves: float

    def endings(self) -> dict[str, int]:
        """Count the games by termination; those that never occurred are missing."""
        counts = {kind.name.lower(): int((self.terminations == kind.value).sum()) for kind in Termination}
        return {name: count for name, count in counts.items() if count}

    def results(self) -> dict[str, int]:
        """Count the games by result."""
        names = {"white_wins": WHITE_WINS, "black_wins": BLACK_WINS, "draws": DRAWN}
        return {name: int((self.white_score == score).sum()) for name, score in names.items()}


def play_random_games(
    variant: Variant, games: int, *, seed: int = 0, on_progress: Callable[[int], None] = lambda done: None
) -> RandomGames:
    """Play games of uniformly random legal moves, many side by side.

    Args:
        variant: The game.
        games: G, at least 1.
        seed: The same seed gives the same games.
        on_progress: Told how many games have ended so far.

    Returns:
        All G games, each played to its end, so that short ones are not favoured.
    """
    if games < 1:
        raise ValueError(f"games: expected at least 1, got {games}")
    rng = np.random.default_rng(seed)
    played = []
    for first in range(0, games, MAX_LANES):
        env = VectorEnv(variant, min(MAX_LANES, games - first))
        env.rng = rng
        played.append((env, _play(env, first, on_progress)))
    plies = np.concatenate([env.plies for env, _ in played])
    return RandomGames(
        terminations=np.concatenate([env.terminations for env, _ in played]),
        white_score=np.concatenate([env.white_score for env, _ in played]),
        plies=plies,
        mean_legal_moves=sum(moves for _, moves in played) / max(1, int(plies.sum())),
    )


def _play(env: VectorEnv, played_before: int, on_progress: Callable[[int], None]) -> int:
    """Play every lane to its end; return the sum of legal moves over all positions that were moved from."""
    legal_moves = 0
    while not env.over.all():
        legal_moves += int(env.legal_counts.sum())
        env.step(env.sample_actions())
        on_progress(played_before + int(env.over.sum()))
    return legal_moves
