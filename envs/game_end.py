"""How boards end a game, whatever the moves: goals reached and pieces died out. Part of the specification.

A board is S letters, capital for White, `""` where empty. Sides are 0 (White) and 1 (Black). A mover is the side
that has just moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from envs.paths import letter_of, side_of
from envs.termination import SCEPTER_GOAL, Outcome, Termination
from envs.variant import Goal, Result, Variant

COLOURS: tuple[Literal["w"], Literal["b"]] = ("w", "b")


def board_outcome(variant: Variant, board: Sequence[str], mover: int) -> Outcome | None:
    """Return how the board alone has ended the game after a move, or None: a goal first, then extinction.

    Args:
        variant: The game.
        board: S letters.
        mover: The side that has just moved; if both have died out, what it is for the mover decides.
    """
    for goal in variant.ends.goals:
        if goal_square(variant, board, goal, mover) is not None:
            is_scepter = goal.name == SCEPTER_GOAL
            return outcome_for(mover, "win", Termination.SCEPTER if is_scepter else Termination.GOAL)
    extinction = variant.ends.extinction
    if extinction is not None:
        for side in (mover, 1 - mover):
            if has_died_out(variant, board, extinction.pieces, side):
                return outcome_for(side, extinction.result, Termination.EXTINCTION)
    return None


def goal_square(variant: Variant, board: Sequence[str], goal: Goal, side: int) -> int | None:
    """Return the first goal square on which a side has a piece that wins there, or None."""
    winners = [letter_of(variant, number, side) for number in goal.pieces]
    return next((square for square in goal.squares[side] if board[square] in winners), None)


def has_died_out(variant: Variant, board: Sequence[str], types: Sequence[int] | None, side: int) -> bool:
    """Return whether a side has no piece left of some one of the types; of any type at all, if they are None."""
    if types is None:
        return not any(piece and side_of(piece) == side for piece in board)
    return any(letter_of(variant, number, side) not in board for number in types)


def outcome_for(side: int, result: Result, termination: Termination) -> Outcome:
    """Return the outcome that is a win, a loss or a draw for a side."""
    if result == "draw":
        return Outcome(termination, None)
    return Outcome(termination, COLOURS[side if result == "win" else 1 - side])
