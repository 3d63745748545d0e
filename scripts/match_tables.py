"""Matches as a table and a line of remarks each."""

import math
from dataclasses import dataclass
from typing import Any

from rich.box import SIMPLE_HEAVY
from rich.table import Table

from scripts.command_line import stdout_console
from train.arena import LEAST_PAIRS, MatchResult, difference_interval
from train.ratings import Interval, elo_interval, pentanomial_counts, superiority

NAME_WIDTH = 12
HEADINGS = ("W / D / L", "pairs 0 to 2", "score", "95 %", "Elo", "95 %", "LOS")


@dataclass(frozen=True)
class Outcome:
    """A match that was played, or as much of it as there is.

    Attributes:
        match: its result.
        test: its sequential test as plain data; None without one.
    """

    match: MatchResult
    test: dict[str, Any] | None = None

    def to_document(self) -> dict[str, Any]:
        """Return plain data (JSON-able)."""
        return {**self.match.to_document(), "sprt": self.test}


Row = list[Outcome]
"""A player's match, and maybe that of a second player against the same opponent."""


def difference(row: Row) -> Interval | None:
    """Return what the first player scored above the second; None unless both played the same openings."""
    if len(row) == 1:
        return None
    first, second = (outcome.match for outcome in row)
    if (first.starts, first.openings) != (second.starts, second.openings) or len(first.pair_scores) < LEAST_PAIRS:
        return None
    return difference_interval(first, second)


def print_rows(title: str, rows: list[Row]) -> None:
    """Print a table of matches to stdout, and below it what else is to be said of each."""
    table = Table(title=title, box=SIMPLE_HEAVY, collapse_padding=True, pad_edge=False)
    for heading in ("player", "opponent"):
        table.add_column(heading, overflow="fold", min_width=NAME_WIDTH)
    for heading in HEADINGS:
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        for outcome in row:
            table.add_row(*outcome.match.players, *_numbers(outcome.match))
        gap = difference(row)
        if gap is not None:
            table.add_row("difference", "", "", "", *_cells(gap, "+.3f"))
    console = stdout_console()
    console.print(table)
    for outcome in (outcome for row in rows for outcome in row):
        console.print(remarks(outcome), markup=False, highlight=False, soft_wrap=True)


def remarks(outcome: Outcome) -> str:
    """Return what a match's row has no room for."""
    match, test = outcome.match, outcome.test
    said = [f"{match.players[0]} against {match.players[1]}: {match.games} of {match.settings.games} games"]
    if match.games:
        endings = ", ".join(f"{name} {count}" for name, count in match.terminations.items())
        said.append(f"{match.distinct_games} distinct, {match.plies:.0f} plies on average")
        said.append(f"White scored {match.white_score:.3f}")
        said.append(f"ended by {endings}")
    if match.left_out:
        said.append(f"{match.left_out} games left out, since they or their pair's other game failed or did not end")
    if match.unfinished and not (test and test["verdict"]):
        said.append(f"STOPPED EARLY: {match.unfinished} games are missing, which favours whoever wins short ones")
    said += [f"{failure.player}: {failure.kind} in {failure.games} games" for failure in match.failures]
    if test:
        low, high = test["bounds"]
        verdict = test["verdict"] or "undecided"
        said.append(
            f"SPRT of {test['elo0']:g} against {test['elo1']:g} Elo: {verdict} after {test['pairs']} pairs, "
            f"LLR {test['llr']:.2f} ({low:.2f} to {high:.2f})"
        )
    return "; ".join(said)


def _numbers(match: MatchResult) -> list[str]:
    counts = pentanomial_counts(match.pair_scores)
    return [
        f"{match.wins} / {match.draws} / {match.losses}",
        " ".join(map(str, counts)),
        *_cells(match.score, ".3f"),
        *_cells(elo_interval(match.score), "+.0f"),
        f"{superiority(match.pair_scores):.1%}" if match.games else "",
    ]


def _cells(interval: Interval, style: str) -> tuple[str, str]:
    if math.isnan(interval.estimate):
        return "", ""
    middle = format(interval.estimate, style) if math.isfinite(interval.estimate) else "unbounded"
    return middle, interval.range_text(style)
