"""How long to think about a move, so that no game is lost on time.

A move takes a share of what is left and most of the increment, never more than a part of what is left, and always less
by a margin for the way to the GUI and back. Times are seconds.
"""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_MARGIN_S = 0.1
MOVES_TO_GO = 30
"""Moves that the rest of a game is taken to have where the clock does not say."""
INCREMENT_SHARE = 0.75
LARGEST_SHARE = 0.4
"""Of what is left, for one move; more only for the last move before more time comes."""
LAST_MOVE_SHARE = 0.8
SHORTEST_S = 0.005


@dataclass(frozen=True)
class Clock:
    """A player's clock.

    Attributes:
        left: What is left.
        increment: What each move adds.
        moves_to_go: Moves until more time comes; None where it never does.
    """

    left: float
    increment: float = 0.0
    moves_to_go: int | None = None


def time_for_move(clock: Clock, margin: float = DEFAULT_MARGIN_S) -> float:
    """Return how long to think about the next move, at least `SHORTEST_S`.

    Args:
        clock: The player's.
        margin: Lost between the GUI and the engine at every move, at most.
    """
    usable = clock.left - margin
    moves = MOVES_TO_GO if clock.moves_to_go is None else max(1, min(clock.moves_to_go, MOVES_TO_GO))
    most = LAST_MOVE_SHARE if moves == 1 else LARGEST_SHARE
    wanted = usable / moves + INCREMENT_SHARE * clock.increment
    return max(SHORTEST_S, min(wanted, most * usable))


def time_per_move(seconds: float, margin: float = DEFAULT_MARGIN_S) -> float:
    """Return how long to think where every move has its own time, at least half of it."""
    return max(SHORTEST_S, seconds - margin, seconds / 2)
