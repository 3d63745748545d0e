"""Players that tests of matches need."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from envs import VectorEnv
from train.alphabeta import AlphaBeta
from train.openings import mobility_weights


@dataclass
class Searcher:
    """Looks one ply ahead, and at captures."""

    name: str = "searcher"
    is_deterministic = True

    def choose(self, env: VectorEnv, lanes: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.int32]:
        search = AlphaBeta(env.game, mobility_weights(env.variant), table_bits=0)
        return np.array([search.search(env.states[lane], depth=1).best.action for lane in lanes], dtype=np.int32)
