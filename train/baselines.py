"""Opponents that need no training; each is a `train.arena.Player`, made by name."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from envs import CompiledGame, VectorEnv, legal_actions
from envs.bounded_memory import remember
from envs.layout import BLACK_CODE, U64Array
from envs.notation import piece_code
from envs.rows import actions_of, boards, captured_pieces, legal_moves, to_play
from envs.variant import BLACK, WHITE
from train.alphabeta import parse_alphabeta
from train.arena import Player
from train.mobility import mobility_values

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


def is_baseline(text: str) -> bool:
    """Return whether a text names a baseline: a registered one, or the alpha-beta engine with its limit."""
    if text in BASELINES:
        return True
    try:
        parse_alphabeta(text)
    except ValueError:
        return False
    return True


def make_baseline(text: str) -> Player:
    """Return the baseline that a text names.

    Raises:
        ValueError: none is registered under it, and it is not the alpha-beta engine with its limit.
    """
    return BASELINES[text]() if text in BASELINES else parse_alphabeta(text)


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


DECISIVE = 1e6
"""Worth of a capture that wins by extinction; more than all pieces together."""
MAX_GAMES_KNOWN = 16


@register_baseline("greedy")
@dataclass
class GreedyPlayer:
    """Captures what is worth most at once, by mobility; ties and quiet moves are drawn uniformly.

    All victims of a move count, own ones as a loss, and nothing after the capture does: neither promotion nor being
    recaptured. The last victim of a kind that must not die out decides the game. Other wins are not looked for.

    Attributes:
        name: how results call it.
    """

    name: str = "greedy"
    _values: dict[str, NDArray[np.float64]] = field(default_factory=dict, init=False, repr=False)

    def choose(self, env: VectorEnv, lanes: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.int32]:
        """Choose a legal action for each lane, int32 [L]; consumes one number of `rng` per lane."""
        rows = env.states[lanes]
        moves, counts, _ = legal_moves(env.game, rows)
        is_move = np.arange(counts.max()) < counts[:, None]  # (L, M)
        moves = np.where(is_move, moves[:, : counts.max()], np.uint64(0))
        gains = np.where(is_move, self._gains(env.game, rows, moves), -np.inf)
        ladder = (gains == gains.max(axis=1, keepdims=True)).cumsum(axis=1)  # (L, M): candidates so far
        drawn = (rng.random(lanes.size) * ladder[:, -1]).astype(np.int64)
        chosen = (ladder > drawn[:, None]).argmax(axis=1)
        return actions_of(moves[np.arange(lanes.size), chosen])

    def _gains(self, game: CompiledGame, rows: U64Array, moves: U64Array) -> NDArray[np.float64]:
        """Return what each move's victims are worth to the mover, float64 [L, M]."""
        key = game.variant.content_hash
        values = self._values.get(key)
        if values is None:
            values = remember(self._values, key, mobility_values(game.variant), MAX_GAMES_KNOWN)
        victims = captured_pieces(game, rows, moves)  # (L, M, 2)
        is_enemy = (victims >= BLACK_CODE) != (to_play(game, rows)[:, None, None] == 1)
        worth: NDArray[np.float64] = (np.where(is_enemy, 1.0, -1.0) * values[victims]).sum(axis=-1)
        return worth + DECISIVE * _extinction_results(game, rows, victims)


def _extinction_results(game: CompiledGame, rows: U64Array, victims: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return 1 for each move whose victims win the game by extinction, -1 if they lose it, else 0: float64 [L, M]."""
    results = np.zeros(victims.shape[:2])
    extinction = game.variant.ends.extinction
    if extinction is None or extinction.result == "draw":
        return results
    types = range(len(game.variant.piece_types))
    kinds = [types] if extinction.pieces is None else [[piece] for piece in extinction.pieces]
    for side in (WHITE, BLACK):
        wins = (to_play(game, rows) != side) == (extinction.result == "loss")  # [L]: for the mover, if they die out
        for kind in kinds:
            codes = [piece_code(piece, side) for piece in kind]
            before = np.isin(boards(game, rows), codes).sum(axis=1, keepdims=True)
            results += np.where(before == np.isin(victims, codes).sum(axis=-1), np.where(wins, 1, -1)[:, None], 0)
    return results
