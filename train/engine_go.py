"""UCI's `go`: what is asked for, and what is wrong with it. Whatever it says, there is something to search.

A word or a number that is wrong is complained of and left out; the rest counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from train.engine_clock import Clock, time_for_move, time_per_move
from train.engine_numbers import SHOWN, BadInput
from train.engine_thinkers import Limits

LARGEST_NUMBER = 1 << 53
FALLBACK_S = 1.0
"""How long to think where nothing that limits the search is left after a complaint."""
NUMBERS = ("depth", "nodes", "movetime", "wtime", "btime", "winc", "binc", "movestogo", "mate")
INFINITE, PONDER = FLAGS = ("infinite", "ponder")
MOVES = "searchmoves"
WORDS = frozenset((*NUMBERS, *FLAGS, MOVES))
CLOCKS = (("wtime", "winc"), ("btime", "binc"))
"""Of White and of Black."""


@dataclass(frozen=True)
class Wishes:
    """What a `go` asks for.

    Attributes:
        numbers: By their words; times in milliseconds.
        is_held: Whether the answer is kept back: `infinite` or `ponder`.
        only: Legal moves to look at, none for all.
        is_wrong: Whether there was something to complain of.
    """

    numbers: dict[str, int]
    is_held: bool
    only: tuple[str, ...]
    is_wrong: bool

    def limits(self, side: int, margin: float, num_lines: int) -> Limits:
        """Return when to end the search; one that is held has no time yet.

        Args:
            side: To move, 0 White, 1 Black.
            margin: Seconds that a move may lose on its way.
            num_lines: To report.
        """
        return Limits(
            depth=self.numbers.get("depth"),
            nodes=self.numbers.get("nodes"),
            seconds=None if self.is_held else self.seconds(side, margin),
            mate=self.numbers.get("mate"),
            num_lines=num_lines,
            only=self.only,
        )

    def seconds(self, side: int, margin: float) -> float | None:
        """Return how long to think, None for no limit; the arguments are those of `limits`."""
        numbers = self.numbers
        left, increment = CLOCKS[side]
        if "movetime" in numbers:
            return time_per_move(numbers["movetime"] / 1000, margin)
        if left in numbers:
            clock = Clock(numbers[left] / 1000, numbers.get(increment, 0) / 1000, numbers.get("movestogo"))
            return time_for_move(clock, margin)
        is_limited = not {"depth", "nodes", "mate"}.isdisjoint(numbers)
        return FALLBACK_S if self.is_wrong and not is_limited else None


def parse_go(words: list[str], legal: tuple[str, ...], complain: Callable[[str], None]) -> Wishes:
    """Return what `go` asks for.

    Args:
        words: What follows `go`.
        legal: The legal moves.
        complain: Is told of each thing that is wrong.
    """
    numbers: dict[str, int] = {}
    flags, named, complaints = set[str](), list[str](), list[str]()
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word in FLAGS:
            flags.add(word)
        elif word == MOVES:
            while rest and rest[0] not in WORDS:
                named.append(rest.pop(0))
        elif word in NUMBERS:
            try:
                numbers[word] = _number(word, rest.pop(0) if rest and rest[0] not in WORDS else "")
            except BadInput as error:
                complaints.append(str(error))
        else:
            complaints.append(f"unknown word '{word[:SHOWN]}'")
    complaints += [f"searchmoves: '{move[:SHOWN]}' is not a legal move" for move in named if move not in legal]
    only = tuple(move for move in dict.fromkeys(named) if move in legal)
    if MOVES in words and not only and legal:
        complaints.append("searchmoves: no legal move is named, all are searched")
    for complaint in complaints:
        complain(f"go: {complaint}")
    return Wishes(numbers, bool(flags), only, bool(complaints))


def _number(word: str, text: str) -> int:
    """Return the number that follows a word, rounded down if it is none of whole ones.

    Raises:
        BadInput: It is none, or it asks for nothing: only a time may be 0 or less, and an increment 0.
    """
    low = -LARGEST_NUMBER if word.endswith("time") else 0 if word.endswith("inc") else 1
    try:
        found = math.floor(float(text)) if text.isascii() and "_" not in text else None
    except (ValueError, OverflowError):
        found = None
    if found is None or not low <= found <= LARGEST_NUMBER:
        raise BadInput(f"{word}: expected a number from {low} to {LARGEST_NUMBER}, got '{text[:SHOWN]}'")
    return found
