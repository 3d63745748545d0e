"""The game that a GUI has set up: where it began, the moves since, and what a search needs to know of it.

Dims: W words of a state row, H plies since the last irreversible move.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from envs import CompiledGame, Outcome, Position, Variant, layout
from envs.layout import U64Array
from envs.notation import NO_PROMOTION, format_move
from envs.variant import BLACK

CLOCK_FIELD = 4
"""The half-move clock among the fields of a FEN."""


@dataclass(frozen=True)
class Root:
    """A position to think about.

    Attributes:
        game: The game.
        row: uint64 [W], the position.
        history: uint64 [H + 1], its keys since the last irreversible move, as `VectorEnv.histories` has them.
        moves: The legal moves, sorted.
        is_over: Whether there is nothing to search: no legal move, or a draw by the board alone.
    """

    game: CompiledGame
    row: U64Array
    history: U64Array
    moves: tuple[str, ...]
    is_over: bool

    @property
    def side(self) -> int:
        """The side to move, 0 White, 1 Black."""
        return int(self.row.view(np.uint8)[layout.TO_PLAY])


class EngineGame:
    """One game of a variant, set up and played move by move.

    Moves are the text of `envs.notation`.
    """

    def __init__(self, variant: Variant) -> None:
        """Set up the start position."""
        self.variant = variant
        self.set_up(None)

    def set_up(self, fen: str | None) -> None:
        """Start from a position.

        Args:
            fen: The position; None for the start position.

        Raises:
            InvalidFen: The FEN is no position of the game; nothing has changed.
        """
        self.position = Position(self.variant, fen)
        self._rows, self._fen = [self.position.row()], fen

    def follow(self, fen: str | None, moves: Sequence[str]) -> None:
        """Set up a position and play moves; moves that the game has already are not played again.

        Args:
            fen: The position; None for the start position.
            moves: Legal moves from there on.

        Raises:
            InvalidFen, IllegalAction: The FEN is no position, or a move is not legal; nothing has changed.
        """
        kept = self.moves
        goes_on = fen == self._fen and list(moves[: len(kept)]) == kept
        position = self.position.copy() if goes_on else Position(self.variant, fen)
        rows = list(self._rows) if goes_on else [position.row()]
        for move in moves[len(kept) if goes_on else 0 :]:
            position.push(move)
            rows.append(position.row())
        self.position, self._rows, self._fen = position, rows, fen

    def push(self, move: str) -> None:
        """Play a move.

        Raises:
            IllegalAction: The move is not legal; nothing has changed.
        """
        self.position.push(move)
        self._rows.append(self.position.row())

    def pop(self) -> None:
        """Take the last move back.

        Raises:
            IndexError: No move has been played.
        """
        self.position.pop()
        self._rows.pop()

    @property
    def moves(self) -> list[str]:
        """The moves played since the position was set up."""
        return self.position.moves_played

    @property
    def side(self) -> int:
        """The side to move, 0 White, 1 Black."""
        return "wb".index(self.position.to_play)

    def outcome(self) -> Outcome | None:
        """Return how the rules have ended the game, or None."""
        return self.position.outcome()

    def root(self) -> Root:
        """Return what a search needs; a drawn game that is played on begins anew, without its clock and history."""
        position = self.position
        if position.outcome() is not None and position.legal_moves():
            fields = position.fen().split()
            fields[CLOCK_FIELD] = "0"
            position = Position(self.variant, " ".join(fields))
        row = position.row()
        place = int(row.view(np.uint8)[layout.REVERSIBLE : layout.REVERSIBLE + 2].view(np.uint16)[0])
        history = np.array([earlier[0] for earlier in self._rows[-(place + 1) :]], np.uint64)
        is_over = position.outcome() is not None
        return Root(position.game, row, history, tuple(position.legal_moves()), is_over)


def move_of_word(variant: Variant, word: int) -> str:
    """Return the text of a move word (`envs.layout`)."""
    promotion = (word >> 32 & 15) - 1
    return format_move(variant, word & 0xFF, word >> 8 & 0xFF, promotion if promotion >= 0 else NO_PROMOTION)


def moves_of_actions(game: CompiledGame, actions: Sequence[int], side: int) -> tuple[str, ...]:
    """Return the text of actions that the sides make in turn.

    Args:
        game: The game.
        actions: Each seen by its player to move.
        side: Who makes the first.
    """
    flipped, encoding = game.variant.board.flipped, game.encoding
    names = []
    for ply, action in enumerate(actions):
        start, to = int(encoding.from_square[action]), int(encoding.to_square[action])
        if (side + ply) % 2 == BLACK:
            start, to = flipped[start], flipped[to]
        names.append(format_move(game.variant, start, to, int(encoding.promotion[action])))
    return tuple(names)
