"""How a game ends by its rules. A ply cap is not among these: it truncates."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Literal

SCEPTER_GOAL = "scepter"
"""The name of the goal that has a termination of its own."""


class Termination(enum.Enum):
    """Why the rules ended a game; the numbers are what arrays and stored games hold (0 stands for none).

    Attributes:
        CHECKMATE: The side to move is in check and has no legal move: it has lost.
        STALEMATE: The side to move has no legal move and is not in check; `Ends.stalemate` says what that is.
        REPETITION: The position has occurred `Ends.repetition_times`; `Ends.repetition_result` says what that is.
        FIFTY_MOVES: The draw after `Ends.move_limit` plies without capture or pawn move, however many those are.
        BARE_KINGS: The draw of two bare royals.
        SCEPTER: The side that moved has won by a goal of the name `scepter`.
        GOAL: The side that moved has won by another goal.
        EXTINCTION: Pieces of a side have died out; `Extinction.result` says what that is.
    """

    CHECKMATE = 1
    STALEMATE = 2
    REPETITION = 3
    FIFTY_MOVES = 4
    BARE_KINGS = 5
    SCEPTER = 6
    GOAL = 7
    EXTINCTION = 8


@dataclass(frozen=True)
class Outcome:
    """The end of a game.

    Attributes:
        termination: Why it ended.
        winner: `"w"`, `"b"`, or None for a draw; the side that moved last or the other one.
    """

    termination: Termination
    winner: Literal["w", "b"] | None
