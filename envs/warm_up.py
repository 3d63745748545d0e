"""Compile every rules kernel once, so that workers and tests find them in the cache.

python -m envs.warm_up
"""

from __future__ import annotations

import numpy as np

from envs.perft import perft
from envs.position import Position
from envs.rows import legal_actions, observe, replay_actions
from envs.vector_env import VectorEnv

MATE = "k4/1Q3/1K3/5/5 b - - 0 1"


def warm_up() -> None:
    """Run every kernel on the smallest game; seconds when they are cached, up to a minute when not."""
    env = VectorEnv("gardner", 2)
    actions = env.sample_actions()
    env.step(actions)
    env.reset(np.array([True, False]))
    observe(env.game, env.states)
    legal_actions(env.game, env.states)
    threaded = VectorEnv("gardner", 2, num_threads=2)
    threaded.step(threaded.sample_actions())
    replay_actions(env.game, env.variant.start_fen, actions[:1])
    perft(env.game, 3)
    position = Position("gardner", MATE)
    position.outcome()
    Position("gardner").push("a2a3")


if __name__ == "__main__":
    warm_up()
