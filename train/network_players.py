"""Players that ask a network without `search.SearchPlayer`: by its policy alone, or searching by the clock.

Dims: L lanes, M legal moves.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from envs import VectorEnv, legal_actions, observe
from models.evaluator import Evaluator
from train.analysis import Analysis, AnalysisSettings
from train.move_time import check_seconds
from train.search_arrays import evaluate


class PolicyPlayer:
    """Plays the move that the network thinks likeliest, without any search; ties by the lower action.

    Attributes:
        name: how results call it.
        is_deterministic: see `arena.Player`.
    """

    is_deterministic = True

    def __init__(self, evaluator: Evaluator, *, name: str, batch_size: int = 64) -> None:
        """Make a player.

        Args:
            evaluator: scores positions.
            name: shown in results.
            batch_size: positions evaluated at once at most.
        """
        self.name = name
        self.evaluator = evaluator
        self.batch_size = batch_size

    def choose(self, env: VectorEnv, lanes: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.int32]:
        """See `arena.Player`; the generator is not used."""
        chosen = np.zeros(len(lanes), np.int32)
        for first in range(0, len(lanes), self.batch_size):
            rows = env.states[lanes[first : first + self.batch_size]]
            actions, _ = legal_actions(env.game, rows)
            logits, _ = evaluate(self.evaluator, observe(env.game, rows), actions)
            masked = np.where(actions >= 0, logits, -np.inf)
            likeliest = masked == masked.max(axis=1, keepdims=True)
            chosen[first : first + self.batch_size] = np.where(likeliest, actions, env.num_actions).min(axis=1)
        return chosen


class TimedPlayer:
    """Plays the best line of an analysis that stops by the clock; its last batch may end some milliseconds late.

    Attributes:
        name: how results call it.
    """

    def __init__(self, evaluator: Evaluator, *, seconds: float, name: str) -> None:
        """Make a player.

        Args:
            evaluator: scores positions.
            seconds: wall time of each move.
            name: shown in results.

        Raises:
            ValueError: the time is out of range.
        """
        check_seconds(seconds)
        self.name = name
        self.evaluator = evaluator
        self.seconds = seconds
        self.settings = AnalysisSettings()
        self._analysis: Analysis | None = None

    def choose(self, env: VectorEnv, lanes: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.int32]:
        """See `arena.Player`; the generator is not used."""
        if self._analysis is None or self._analysis.game is not env.game:
            self._analysis = Analysis(env.game, self.evaluator, self.settings)
            self._think(
                self._analysis, env, lanes[0], self.settings.batch_size
            )  # loads compiled code, on nobody's time
        return np.array([self._choose(self._analysis, env, lane) for lane in lanes], np.int32)

    def _choose(self, analysis: Analysis, env: VectorEnv, lane: np.intp) -> int:
        deadline = time.perf_counter() + self.seconds
        self._think(analysis, env, lane, 0)
        before = -1
        while time.perf_counter() < deadline and analysis.simulations != before:  # a proven root gets no more
            before = analysis.simulations
            analysis.run(self.settings.batch_size)
        return analysis.result().lines[0].action

    def _think(self, analysis: Analysis, env: VectorEnv, lane: np.intp, simulations: int) -> None:
        analysis.begin(env.states[lane], env.histories[lane])
        analysis.run(simulations)
