"""A balance as tables, JSON, CSV and a picture."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.box import SIMPLE_HEAVY
from rich.console import Group
from rich.markup import escape
from rich.table import Table

from models.storage import naming_full_disk, write_atomically
from train.balance_counts import BalanceGame
from train.balance_figures import ARMY, PIECE_FIGURES, PIECES, Figure
from train.balance_games import BalancePlan
from train.balance_intervals import Estimate, is_undecided
from train.balance_settings import Setting
from train.csv_table import csv_text
from train.piece_values.forest import save_figure
from train.ratings import Interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

BIASED_CUT_SHARE = 0.05
"""Share of games cut short above which results are headed as biased: long games are missing."""
STEM = "balance"
UNDECIDED, MORE, LESS = "undecided", "more", "less"
CHANCE = 0.05
"""Share of the differences of equal settings whose interval does not hold 0."""
ENDS = ("estimate", "low", "high")
COLUMNS = ("setting", "figure", "group", "label", *ENDS, "counted", "trials", "games", "verdict", "command")
GAME_COLUMNS = ("setting", "game", "black_first", "start_fen", "plies", "white_score", "ending")


@dataclass(frozen=True, eq=False)
class SettingBalance:
    """What the games of one setting say.

    Attributes:
        setting: the game.
        games: that count, each a cluster.
        black_first: those from the same position with the other side to move first, Black as a rule, where armies
            differ.
        estimates: by key of the figure.
        is_alike: whether both sides have the same army and rules.
        basis: what `train.provenance.provenance` returns.
    """

    setting: Setting
    games: tuple[BalanceGame, ...]
    black_first: tuple[BalanceGame, ...]
    estimates: Mapping[str, Estimate]
    is_alike: bool
    basis: Mapping[str, Any]

    @property
    def figures(self) -> list[Figure]:
        """The figures in the order in which they are shown."""
        return sorted(map(Figure.of, self.estimates), key=lambda figure: figure.order)

    @property
    def letters(self) -> list[str]:
        """Kinds of piece, in the order of the file."""
        return [figure.letter for figure in self.figures if figure.key.startswith("moves/")]

    @cached_property
    def plies(self) -> list[int]:
        """Length of each game."""
        return [len(game.actions) + game.opening_plies for game in self.games]

    @property
    def cut_games(self) -> int:
        """Games that were cut short."""
        return int(sum(np.isnan(game.white_score) for game in self.games))

    @property
    def armies(self) -> str:
        """What is known of army and first move, in words."""
        begins, other = ("Black", "White") if self.setting.begins_black else ("White", "Black")
        if self.is_alike and not self.setting.is_mirrored:
            return f"armies are alike, but not their places: White's score is that of places and {begins}'s first move"
        if self.is_alike:
            return f"armies are alike: {begins}'s score above 1/2 is the first move's"
        if ARMY in self.estimates:
            return f"armies differ: {len(self.black_first)} more games with {other} to move first tell them apart"
        return f"armies differ, and army and first move cannot be told apart: no games have {other} to move first"

    def name_of(self, letter: str) -> str:
        """Return a kind of piece in words."""
        variant = self.setting.variant
        name = variant.piece_types[variant.type_by_letter[letter.upper()]].name
        return f"{name} (Black)" if letter.islower() else name


@dataclass(frozen=True, eq=False)
class BalanceReport:
    """The balance of one setting, or of two compared.

    Attributes:
        balances: one or two.
        gaps: second less first, by key of the figure.
        common: so many first games of both begin with the same opening.
        plan: what was asked for.
        stopped: whether Ctrl-C ended the playing.
        command: that remakes the report.
    """

    balances: tuple[SettingBalance, ...]
    gaps: Mapping[str, Interval]
    common: int
    plan: BalancePlan
    stopped: bool
    command: str

    @property
    def title(self) -> str:
        """What was measured."""
        return "Balance of " + " and ".join(balance.setting.label for balance in self.balances)

    @property
    def warnings(self) -> list[str]:
        """Why the figures are to be read with care."""
        said = ["stopped early"] if self.stopped else []
        for balance in self.balances:
            cut = balance.cut_games / len(balance.games)
            if cut > BIASED_CUT_SHARE:
                said.append(f"results of {balance.setting.label} are biased: {cut:.0%} of the games were cut short")
        return said

    @property
    def notes(self) -> list[str]:
        """What the figures rest on, a line each."""
        plan, said = self.plan, []
        for balance in self.balances:
            said.append(f"{balance.setting.label}: {len(balance.games)} games, {balance.armies}")
        if self.balances[0].setting.run is None:
            said.append(
                f"alpha-beta of {plan.depth} plies against itself, openings of {plan.random_plies} random plies that "
                "are not counted; intervals 95 %, games are the clusters"
            )
        else:
            said.append("self-play of the run from the start position; intervals 95 %, games are the clusters")
        if len(self.balances) > 1:
            least = min(len(balance.games) for balance in self.balances)
            said.append(
                f"{self.common} of {least} openings are common to both; each of the {len(self.gaps)} differences"
            )
            said[-1] += f" is decided with {CHANCE:.0%} chance if nothing differs"
        return said + [warning.upper() for warning in self.warnings]

    def table(self) -> Group:
        """Return the tables for a terminal."""
        below = [escape(line) for line in (*self.notes, self.command)]
        if len(self.balances) > 1:
            return Group(self._comparison(), *below)
        return Group(self._figures(), self._pieces(), *below)

    def document(self) -> dict[str, Any]:
        """Return everything as plain data (JSON-able)."""
        return {
            "command": self.command,
            "plan": asdict(self.plan),
            "stopped": self.stopped,
            "warnings": self.warnings,
            "common_openings": self.common,
            "settings": [_document(balance) for balance in self.balances],
            "differences": {
                key: {**gap.to_document(), "verdict": verdict_of(gap)} for key, gap in _in_order(self.gaps)
            },
        }

    def csv(self) -> str:
        """Return one row for each figure of each setting, and for each difference."""
        rows = []
        for balance in self.balances:
            for figure in balance.figures:
                found = balance.estimates[figure.key]
                counts = (found.events, found.trials, found.clusters)
                rows.append((balance.setting.label, *_cells(figure, found.interval), *counts, "", self.command))
        for key, gap in _in_order(self.gaps):
            row = _cells(Figure.of(key), gap)
            rows.append(("difference", *row, "", "", "", verdict_of(gap), self.command))
        return csv_text(COLUMNS, rows)

    def games_csv(self) -> str:
        """Return one row for each game, of which the lengths are drawn."""
        rows = [
            (balance.setting.label, number, int(is_twin != balance.setting.begins_black), game.start_fen)
            + (len(game.actions) + game.opening_plies, "" if np.isnan(game.white_score) else game.white_score)
            + (game.ending,)
            for balance in self.balances
            for is_twin, games in enumerate((balance.games, balance.black_first))
            for number, game in enumerate(games)
        ]
        return csv_text(GAME_COLUMNS, rows)

    def picture(self) -> Picture:
        """Draw results, lengths and fates of pieces."""
        from train.balance_picture import draw_balance

        return draw_balance(self)

    def write(self, folder: Path) -> list[Path]:
        """Write JSON, CSV, PNG and SVG into a folder, made if missing; return the paths."""
        with naming_full_disk(folder):
            folder.mkdir(parents=True, exist_ok=True)
        contents = {
            f"{STEM}.json": json.dumps(self.document(), indent=1, allow_nan=False) + "\n",
            f"{STEM}.csv": self.csv(),
            f"{STEM}_games.csv": self.games_csv(),
        }
        for name, text in contents.items():
            write_atomically(folder / name, text.encode())
        with naming_full_disk(folder / STEM):
            return [*(folder / name for name in contents), *save_figure(self.picture(), folder / STEM)]

    def _figures(self) -> Table:
        """Return the table of one setting, pieces apart."""
        balance = self.balances[0]
        table = Table(title=escape(self.title), box=SIMPLE_HEAVY)
        table.add_column("figure")
        for heading in ("", "95 %", "games"):
            table.add_column(heading, justify="right", no_wrap=True)
        for figure in balance.figures:
            if figure.group != PIECES:
                found = balance.estimates[figure.key]
                low_high = range_text(figure, found.interval)
                table.add_row(figure.label, number(figure, found.interval.estimate), low_high, str(found.clusters))
        return table

    def _pieces(self) -> Table:
        """Return the table of use and fate of the pieces of one setting."""
        balance = self.balances[0]
        table = Table(title="Use and fate of the pieces", box=SIMPLE_HEAVY)
        table.add_column("piece")
        names = ["moves", "captures made", "captured", "alive at the end", "promoted", "promotions a game"]
        for heading in names:
            table.add_column(heading, justify="right")
        for letter in balance.letters:
            cells = [_with_ends(balance, f"{name}/{letter}") for name in PIECE_FIGURES]
            table.add_row(escape(f"{letter}  {balance.name_of(letter)}"), *cells)
        return table

    def _comparison(self) -> Table:
        """Return the table of two settings side by side."""
        first, second = self.balances
        table = Table(title=escape(self.title), box=SIMPLE_HEAVY)
        table.add_column("figure")
        for heading in (first.setting.label, second.setting.label, "difference", "95 %"):
            table.add_column(escape(heading), justify="right", overflow="fold")
        table.add_column("the second is")
        keys = dict.fromkeys([*first.estimates, *second.estimates])
        for figure in sorted(map(Figure.of, keys), key=lambda one: one.order):
            middles = [
                number(figure, one.estimates[figure.key].interval.estimate) if figure.key in one.estimates else "-"
                for one in self.balances
            ]
            gap = self.gaps.get(figure.key)
            ends = ("", "", "") if gap is None else (
                number(figure, gap.estimate, "+"), range_text(figure, gap, "+"), verdict_of(gap),
            )  # fmt: skip
            table.add_row(figure.label, *middles, *ends)
        return table


def verdict_of(gap: Interval) -> str:
    """Return what a difference says of the second setting."""
    if is_undecided(gap):
        return UNDECIDED
    return MORE if gap.estimate > 0 else LESS


def number(figure: Figure, value: float, sign: str = "") -> str:
    """Return a figure's number as text; shares are in per cent."""
    return f"{100 * value:{sign}z.1f} %" if figure.is_share else f"{value:{sign}z.{2 if abs(value) < 10 else 1}f}"


def range_text(figure: Figure, interval: Interval, sign: str = "") -> str:
    """Return "low to high" of a figure."""
    return f"{number(figure, interval.low, sign)} to {number(figure, interval.high, sign)}"


def _with_ends(balance: SettingBalance, key: str) -> str:
    found = balance.estimates.get(key)
    if found is None:
        return "-"
    figure = Figure.of(key)
    return f"{number(figure, found.interval.estimate)}\n{range_text(figure, found.interval)}".replace(" %", "")


def _document(balance: SettingBalance) -> dict[str, Any]:
    return {
        "label": balance.setting.label,
        **balance.basis,
        "run": None if balance.setting.run is None else str(balance.setting.run),
        "games": len(balance.games),
        "games_black_first": len(balance.black_first),
        "cut_games": balance.cut_games,
        "armies": balance.armies,
        "figures": {
            figure.key: {
                "label": figure.label,
                "group": figure.group,
                **(found := balance.estimates[figure.key]).interval.to_document(),
                "counted": found.events,
                "trials": found.trials,
                "games": found.clusters,
            }
            for figure in balance.figures
        },
    }


def _in_order(gaps: Mapping[str, Interval]) -> list[tuple[str, Interval]]:
    return sorted(gaps.items(), key=lambda entry: Figure.of(entry[0]).order)


def _cells(figure: Figure, interval: Interval) -> tuple[object, ...]:
    return figure.key, figure.group, figure.label, interval.estimate, interval.low, interval.high
