"""Random play of a whole game, the first look at how a variant ends.

Every legal move has the same chance, and a game goes on until the rules end it. A ply cap, far beyond the length of
games that a move limit bounds, cuts short those that would go on for ever; they count neither as drawn nor as won.
Dims: G games, B lanes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from envs.notation import piece_code
from envs.rows import boards
from envs.termination import Termination
from envs.variant import Variant
from envs.vector_env import VectorEnv

MAX_LANES = 256
MAX_PLIES = 5000
NO_GOAL = -1
WHITE_WINS, BLACK_WINS, DRAWN = 1.0, 0.0, 0.5


@dataclass(frozen=True)
class RandomGames:
    """G games, each ended by the rules or cut short at `MAX_PLIES`.

    Attributes:
        variant: The game.
        terminations: uint8 [G], `Termination` values, 0 where the game was cut short.
        goals: int8 [G], which of the variant's goals was reached, `NO_GOAL` where none was.
        white_score: float32 [G], 1, 0.5 or 0, NaN where the game was cut short.
        plies: int64 [G], lengths.
        mean_legal_moves: Legal moves a position, averaged over every position in which a move was made.
    """

    variant: Variant
    terminations: npt.NDArray[np.uint8]
    goals: npt.NDArray[np.int8]
    white_score: npt.NDArray[np.float32]
    plies: npt.NDArray[np.int64]
    mean_legal_moves: float

    @property
    def cut_short(self) -> int:
        """How many games the ply cap has cut short."""
        return int((self.terminations == 0).sum())

    def endings(self) -> dict[str, int]:
        """Count the games that the rules ended by termination; those that never occurred are missing."""
        counts = {kind.name.lower(): int((self.terminations == kind.value).sum()) for kind in Termination}
        return {name: count for name, count in counts.items() if count}

    def goals_reached(self) -> dict[str, int]:
        """Count the games that were won by reaching a goal by the name of the goal; never reached is 0."""
        counts = {goal.name: 0 for goal in self.variant.ends.goals}
        for number, goal in enumerate(self.variant.ends.goals):
            counts[goal.name] += int((self.goals == number).sum())
        return counts

    def results(self) -> dict[str, int]:
        """Count the games that the rules ended by result."""
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
        All G games, each played to its end or to the ply cap, so that short ones are not favoured.
    """
    if games < 1:
        raise ValueError(f"games: expected at least 1, got {games}")
    rng = np.random.default_rng(seed)
    played = []
    for first in range(0, games, MAX_LANES):
        env = VectorEnv(variant, min(MAX_LANES, games - first), max_plies=MAX_PLIES)
        env.rng = rng
        env.reset()
        played.append((env, _play(env, first, on_progress)))
    plies = np.concatenate([env.plies for env, _ in played])
    return RandomGames(
        variant=variant,
        terminations=np.concatenate([env.terminations for env, _ in played]),
        goals=np.concatenate([_goals_reached(env) for env, _ in played]),
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


def _goals_reached(env: VectorEnv) -> npt.NDArray[np.int8]:
    """Return which goal has ended each lane: int8 [B], the first in the file that the last mover has reached."""
    reached = np.full(env.num_envs, NO_GOAL, np.int8)
    codes, movers = boards(env.game, env.states), 1 - env.to_play
    is_won = np.isin(env.terminations, [Termination.SCEPTER.value, Termination.GOAL.value])
    for number, goal in reversed([*enumerate(env.variant.ends.goals)]):
        for side, squares in enumerate(goal.squares):
            stands = np.isin(codes[:, list(squares)], [piece_code(piece, side) for piece in goal.pieces]).any(axis=1)
            reached[is_won & (movers == side) & stands] = number
    return reached
