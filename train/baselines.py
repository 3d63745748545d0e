"""Opponents that need no training; each is a `train.arena.Player`."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from envs import VectorEnv, legal_actions


@dataclass
class RandomPlayer:
    """Plays uniformly random legal moves.

    Attributes:
        name: how results call it.
    """

    name: str = "random"

    def choose(self, env: VectorEnv, lanes: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.int32]:
        """Draw a legal action for each lane, int32 [L]; consumes one number of `rng` per lane."""
        actions, counts = legal_actions(env.game, env.states[lanes])
        return actions[np.arange(lanes.size), (rng.random(lanes.size) * counts).astype(np.int64)]
