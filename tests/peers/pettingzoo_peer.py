"""PettingZoo's chess_v6 as a peer of the benchmark, in a process of its own: it imports python-chess, which is GPL.

python tests/peers/pettingzoo_peer.py play SECONDS

Plays whole games for SECONDS of its own CPU time at least, and prints {"units": steps, "seconds": ...}.
"""

import json
import random
import sys
import time
from typing import Any

import numpy as np
from pettingzoo.classic import chess_v6

RNG = random.Random(0)


def play_game(env: Any) -> int:
    """Play one game at random to its end; return its plies."""
    env.reset()
    plies = 0
    while True:
        observation, _, terminated, truncated, _ = env.last()
        if terminated or truncated:
            return plies
        legal = np.flatnonzero(observation["action_mask"])
        env.step(legal[int(RNG.random() * len(legal))])
        plies += 1


def main(_play: str, seconds: str) -> None:
    env = chess_v6.env()
    units, start = 0, time.process_time()
    while (elapsed := time.process_time() - start) < float(seconds) or not units:
        units += play_game(env)
    print(json.dumps({"units": units, "seconds": elapsed}))


if __name__ == "__main__":
    main(*sys.argv[1:])
