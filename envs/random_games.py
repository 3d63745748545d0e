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
    variant: Variant, games: int, *, seed: int = 0, on_finished: Callable[[int], None] = lambda count: None
) -> RandomGames:
    """Play games of uniformly random legal moves, many side by side.

    Args:
        variant: The game.
        games: G, at least 1.
        seed: The same seed gives the same games.
        on_finished: Called with the number of games that have ended since the last call.

    Returns:
        All G games, so that short ones are not favoured.
    """
    if games < 1:
        raise ValueError(f"games: expected at least 1, got {games}")
    rng = np.random.default_rng(seed)
    batches = [
        _play_batch(variant, min(MAX_LANES, games - first), rng, on_finished)
        for first in range(0, games, MAX_LANES)
    ]
    total_moves = sum(moves for _, moves in batches)
    plies = np.concatenate([env.plies for env, _ in batches])
    return RandomGames(
        terminations=np.concatenate([env.terminations for env, _ in batches]),
        white_score=np.concatenate([env.white_score for env, _ in batches]),
        plies=plies,
        mean_legal_moves=total_moves / max(1, int(plies.sum())),
    )


def _play_batch(
    variant: Variant, lanes: int, rng: np.random.Generator, on_finished: Callable[[int], None]
) -> tuple[VectorEnv, int]:
    """Play one game in each lane; return the lanes and the sum of legal moves over their positions."""
    env = VectorEnv(variant, lanes)
    env.rng = rng
    legal_moves, running = 0, lanes
    while running:
        legal_moves += int(env.legal_counts.sum())
        env.step(env.sample_actions())
        still = int((~env.over).sum())
        if still < running:
            on_finished(running - still)
        running = still
    return env, legal_moves
