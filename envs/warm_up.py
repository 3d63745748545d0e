"""Compile every rules kernel once, so that workers and tests find them in the cache.

python -m envs.warm_up
"""

from __future__ import annotations

import numpy as np

from envs.perft import perft
from envs.position import Position
from envs.rows import observe, replay_actions
from envs.vector_env import VectorEnv


def warm_up() -> None:
    """Run every kernel on the smallest game; seconds when they are cached, up to a minute when not."""
    env = VectorEnv("gardner", 2)
    actions = env.sample_actions()
    env.step(actions)
    env.reset(np.array([True, False]))
    observe(env.game, env.states)
    replay_actions(env.game, env.variant.start_fen, actions[:1])
    perft(env.game, 3)
    position = Position("gardner")
    position.push(position.legal_moves()[0])
    position.outcome()


if __name__ == "__main__":
    warm_up()
