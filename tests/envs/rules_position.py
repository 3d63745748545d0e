"""The slow rules behind the interface of `Position`, so that one test can ask both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from envs import IllegalAction, Outcome, Position, load_variant, rules, rules_fen
from envs.variant import Variant


class RulesPosition:
    """A position played by `rules.py` alone."""

    def __init__(
        self, variant: str | Path | Variant, fen: str | None = None, options: Mapping[str, bool] | None = None
    ) -> None:
        self.variant = variant if isinstance(variant, Variant) else load_variant(variant, options)
        text = self.variant.start_fen if fen is None else fen
        self._states = [rules_fen.parse_fen(self.variant, text)]

    @property
    def _state(self) -> rules.State:
        return self._states[-1]

    @property
    def _earlier(self) -> list[rules.Identity]:
        return [rules.identity(self.variant, state) for state in self._states[:-1]]

    @property
    def to_play(self) -> str:
        return "wb"[self._state.to_play]

    @property
    def in_check(self) -> bool:
        return rules.in_check(self.variant, self._state)

    @property
    def halfmove_clock(self) -> int:
        return self._state.halfmove_clock

    @property
    def repetitions(self) -> int:
        return self._earlier.count(rules.identity(self.variant, self._state))

    @property
    def key(self) -> object:
        return rules.identity(self.variant, self._state)

    def _moves(self) -> dict[str, rules.Move]:
        moves = rules.legal_moves(self.variant, self._state)
        return {rules_fen.move_name(self.variant, move): move for move in moves}

    def legal_moves(self) -> list[str]:
        return sorted(self._moves())

    def captures(self, move: str) -> list[str]:
        return sorted(self.variant.board.names[square] for square in self._moves()[move].victims)

    def push(self, move: str) -> None:
        if move not in self._moves():
            raise IllegalAction(f"{move} is not legal")
        self._states.append(rules.make(self.variant, self._state, self._moves()[move]))

    def pop(self) -> None:
        self._states.pop()

    def fen(self) -> str:
        return rules_fen.fen(self.variant, self._state)

    def outcome(self) -> Outcome | None:
        return rules.outcome(self.variant, self._state, self._earlier)


AnyPosition = Position | RulesPosition
SetUp = Callable[..., AnyPosition]


def moves_from(position: AnyPosition, square: str) -> set[str]:
    """Return the targets of the legal moves from a square."""
    letters = len(square)
    return {
        move[letters:] for move in position.legal_moves() if move.startswith(square) and not move[letters].isdigit()
    }


def fields(position: AnyPosition) -> list[str]:
    """Return the six fields of the FEN."""
    return position.fen().split(" ")
