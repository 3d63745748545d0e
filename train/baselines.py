"""Opponents that need no training; each is a `train.arena.Player`, made by name."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from envs import VectorEnv, legal_actions
from train.arena import Player

Make = TypeVar("Make", bound=Callable[[], Player])

BASELINES: dict[str, Callable[[], Player]] = {}
"""What makes each baseline, by its name."""


def register_baseline(name: str) -> Callable[[Make], Make]:
    """Register a baseline under a name of `evaluation.opponent` and of command lines; a decorator.

    Args:
        name: letters, digits, `_`, `-`.

    Returns:
        What decorates a class or function that is called without arguments and makes a player.

    Raises:
        ValueError: the name is taken or not plain.
    """
    if not re.fullmatch(r"\w[\w-]*", name):
        raise ValueError(f"baseline '{name}': expected a plain name (letters, digits, _ -)")
    if name in BASELINES:
        raise ValueError(f"baseline '{name}': there is one of that name")

    def register(make: Make) -> Make:
        BASELINES[name] = make
        return make

    return register


@register_baseline("random")
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
