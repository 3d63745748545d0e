"""What a benchmark is made of: contestants that take turns in rounds, and findings that are held against bars."""

import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

CHESS_PLAY, CHESS_PLAY_ALONE = "chess: random play, batch 256", "chess: random play, batch 1"
ASYLUM_PLAY = "asylum: random play, batch 256"
CHESS_PERFT, ASYLUM_PERFT = "chess: bulk perft", "asylum: bulk perft"
"""Own contestants that peers are compared with."""
Rates = dict[str, list[float]]


@dataclass(frozen=True)
class Contestant:
    """Something with a rate.

    Attributes:
        name: What it does.
        unit: What is counted.
        sample: Runs once; returns the number of units done and the seconds that they took.
    """

    name: str
    unit: str
    sample: Callable[[], tuple[int, float]]


@dataclass(frozen=True)
class Duel:
    """Two contestants whose rates are compared.

    Attributes:
        own: Name of the one whose rate is divided ...
        other: ... by the rate of this one.
        at_least: The bar for the ratio; None where the ratio is only told.
    """

    own: str
    other: str
    at_least: float | None = None


@dataclass(frozen=True)
class Cost:
    """Time that a contestant takes for a unit, less that of another one.

    Attributes:
        own: Name of the contestant.
        less: Name of the one whose time is subtracted; None for none.
        at_most: The bar in microseconds; None where the time is only told.
    """

    own: str
    less: str | None = None
    at_most: float | None = None


@dataclass(frozen=True)
class Finding:
    """A ratio, or another figure that has a bar.

    Attributes:
        name: What it is.
        values: One of each round; empty when a contestant is missing.
        bar: What the median is held against; None for nothing.
        at_most: Whether the bar is the most that is allowed, and not the least.
    """

    name: str
    values: tuple[float, ...]
    bar: float | None = None
    at_most: bool = False

    @property
    def median(self) -> float | None:
        """The middle of the values; None when there are none."""
        return statistics.median(self.values) if self.values else None

    @property
    def met(self) -> bool | None:
        """Whether the median meets the bar; None when either is missing."""
        if self.median is None or self.bar is None:
            return None
        return self.median <= self.bar if self.at_most else self.median >= self.bar

    def document(self) -> dict[str, Any]:
        """Return the finding as plain data."""
        bound = None if self.bar is None else "at most" if self.at_most else "at least"
        return {"name": self.name, "values": self.values, "median": self.median, "bound": bound,
                "bar": self.bar, "met": self.met}  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """What the contestants are made from.

    Attributes:
        variants: Games.
        batches: Numbers of lanes or positions; empty for each part's own.
        seconds: Seconds of one sample, at least.
        fresh: Whether to time fresh processes, too.
    """

    variants: tuple[str, ...]
    batches: tuple[int, ...]
    seconds: float
    fresh: bool = True


@dataclass
class Plan:
    """What a part measures.

    Attributes:
        contestants: They take turns.
        duels: Contestants that are compared with each other.
        costs: Contestants whose time a unit is told.
        others: Measured after the rounds, each told how many there were.
        close: Called at the end.
    """

    contestants: list[Contestant] = field(default_factory=list)
    duels: list[Duel] = field(default_factory=list)
    costs: list[Cost] = field(default_factory=list)
    others: list[Callable[[int], list[Finding]]] = field(default_factory=list)
    close: Callable[[], None] = lambda: None


def timed(work: Callable[[], int], seconds: float, clock: Callable[[], float] = time.process_time) -> tuple[int, float]:
    """Repeat `work`, which returns the units it did, for some seconds of a clock; return units and seconds."""
    units, start = 0, clock()
    while (elapsed := clock() - start) < seconds or not units:
        units += work()
    return units, elapsed


def run_rounds(
    contestants: list[Contestant], rounds: int, on_progress: Callable[[int], None] = lambda done: None
) -> Rates:
    """Let every contestant run once a round, each round beginning with another one; return rates by name."""
    rates: Rates = {contestant.name: [] for contestant in contestants}
    for turn in range(rounds * len(contestants)):
        number, place = divmod(turn, len(contestants))
        contestant = contestants[(number + place) % len(contestants)]
        units, seconds = contestant.sample()
        rates[contestant.name].append(units / seconds)
        on_progress(turn + 1)
    return rates


def ratios(duels: Iterable[Duel], rates: Rates) -> list[Finding]:
    """Return the ratios of the duels whose own side was measured, a value for each round."""
    return [
        Finding(
            f"{duel.own} / {duel.other}",
            tuple(own / other for own, other in zip(rates[duel.own], rates.get(duel.other, []))),
            duel.at_least,
        )
        for duel in duels
        if duel.own in rates
    ]


def times(costs: Iterable[Cost], rates: Rates) -> list[Finding]:
    """Return the microseconds a unit of the costs, a value for each round."""
    found = []
    for cost in costs:
        own = [1e6 / rate for rate in rates[cost.own]]
        less = [1e6 / rate for rate in rates[cost.less]] if cost.less else [0.0] * len(own)
        name = f"{cost.own} - {cost.less}" if cost.less else cost.own
        values = tuple(one - other for one, other in zip(own, less, strict=True))
        found.append(Finding(f"microseconds: {name}", values, cost.at_most, at_most=True))
    return found
