"""XBoard's time controls: how long to think about a move under `level`, `st`, `sd` and `time`. Times are seconds."""

from __future__ import annotations

from dataclasses import dataclass

from train.engine_clock import Clock, time_for_move, time_per_move
from train.engine_thinkers import Limits


@dataclass
class TimeControl:
    """What `level`, `st`, `sd` and `time` have said.

    Attributes:
        moves: Moves of a session; 0 for the whole game.
        base: Seconds of a session.
        increment: Seconds that a move adds.
        per_move: Seconds of every move; None where there is a clock.
        depth: Plies; None for no limit.
        left: Seconds on the engine's clock; None before any was set.
    """

    moves: int = 0
    base: float = 300.0
    increment: float = 0.0
    per_move: float | None = None
    depth: int | None = None
    left: float | None = None

    def limits(self, moves_made: int) -> Limits:
        """Return how long to think about a side's next move.

        Args:
            moves_made: By that side in this game.
        """
        if self.per_move is not None:
            return Limits(depth=self.depth, seconds=time_per_move(self.per_move))
        to_go = self.moves - moves_made % self.moves if self.moves else None
        left = self.base if self.left is None else self.left
        return Limits(depth=self.depth, seconds=time_for_move(Clock(left, self.increment, to_go)))
