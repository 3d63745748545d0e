"""How a game ends by its rules. A ply cap is not among these: it truncates."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Literal


class Termination(enum.Enum):
    """Why the rules ended a game; the numbers are what arrays and stored games hold (0 stands for none)."""

    CHECKMATE = 1
    STALEMATE = 2
    REPETITION = 3
    FIFTY_MOVES = 4
    BARE_KINGS = 5
    SCEPTER = 6


@dataclass(frozen=True)
class Outcome:
    """The end of a game.

    Attributes:
        termination: Why it ended.
        winner: `"w"`, `"b"`, or None for a draw.
    """

    termination: Termination
    winner: Literal["w", "b"] | None
