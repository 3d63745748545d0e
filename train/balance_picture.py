"""The picture of a balance: how games ended, how long they were, what became of the pieces."""

from __future__ import annotations

import textwrap
from dataclasses import astuple
from typing import TYPE_CHECKING

import numpy as np

from train.balance_figures import ARMY, FIRST_MOVE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from train.balance_report import BalanceReport, SettingBalance

INK, FAINT = "#222222", "#8a8a8a"
COLOURS = ("#1f5a94", "#c2571a")
"""Of the first and the second setting."""
RESULTS = (
    ("white_wins", "White wins", "#f4efe2"),
    ("draws", "draws", "#b9b9b9"),
    ("black_wins", "Black wins", "#3b3b3b"),
)
FATES = (
    ("alive", "alive at the end", "#8fb58a"),
    ("captured", "captured", "#c9605b"),
    ("promoted", "promoted", "#e0b84c"),
)
SCORES = (("white_score", "White scores"), (ARMY, "the army adds"), (FIRST_MOVE, "the first move adds"))
WIDTH_INCHES = 9.5
HEAD_INCHES, ROW_INCHES, FOOT_INCHES = 2.7, 0.3, 1.3
BINS = 30
LEAST_SHOWN = 0.04
"""Narrower parts of a bar have no number."""
NOTE_WIDTH, TITLE_WIDTH, LABEL_WIDTH, SHORT_WIDTH = 150, 90, 22, 36
"""Letters in a line."""


def draw_balance(report: BalanceReport) -> Figure:
    """Draw one setting, or two side by side."""
    import matplotlib

    with matplotlib.rc_context({"text.parse_math": False}):  # a dollar in a name is a dollar
        return _drawn(report)


def _drawn(report: BalanceReport) -> Figure:
    from matplotlib.figure import Figure

    rows = max(len(_fated(balance)) for balance in report.balances)
    height = HEAD_INCHES + ROW_INCHES * rows + FOOT_INCHES
    figure = Figure(figsize=(WIDTH_INCHES, height), layout="constrained")
    grid = figure.add_gridspec(2, 2, height_ratios=[HEAD_INCHES - 0.7, ROW_INCHES * rows + 0.8])
    _draw_results(figure.add_subplot(grid[0, 0]), report)
    _draw_lengths(figure.add_subplot(grid[0, 1]), report)
    for column, balance in enumerate(report.balances):
        place = grid[1, column] if len(report.balances) > 1 else grid[1, :]
        _draw_fates(figure.add_subplot(place), balance)
    figure.suptitle(
        textwrap.fill(report.title, TITLE_WIDTH), x=0.01, ha="left", fontsize=12, fontweight="bold", color=INK
    )
    notes = [part for line in (*report.notes, report.command) for part in textwrap.wrap(line, NOTE_WIDTH)]
    figure.supxlabel("\n".join(notes), x=0.01, ha="left", fontsize=7, color=FAINT)
    return figure


def _draw_results(axes: Axes, report: BalanceReport) -> None:
    labels = []
    for height, balance in enumerate(reversed(report.balances)):
        _draw_bar(axes, height, balance, [(key, colour) for key, _, colour in RESULTS])
        said = [f"{words} {_per_cent(balance, key)}" for key, words in SCORES if key in balance.estimates]
        axes.text(0, height - 0.35, "\n".join(said), va="top", fontsize=8, color=INK)
        labels.append(textwrap.fill(balance.setting.label, LABEL_WIDTH))
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(-0.9, len(labels) - 0.55)
    _finish_bars(axes, [(label, colour) for _, label, colour in RESULTS], "results, per cent")


def _per_cent(balance: SettingBalance, key: str) -> str:
    middle, low, high = (100 * end for end in astuple(balance.estimates[key].interval))
    return f"{middle:z.1f} % ({low:z.1f} to {high:z.1f})"


def _fated(balance: SettingBalance) -> list[str]:
    """Return the kinds that can be captured."""
    return [letter for letter in balance.letters if f"alive/{letter}" in balance.estimates]


def _draw_fates(axes: Axes, balance: SettingBalance) -> None:
    letters = _fated(balance)[::-1]
    for height, letter in enumerate(letters):
        _draw_bar(axes, height, balance, [(f"{key}/{letter}", colour) for key, _, colour in FATES])
        used = balance.estimates.get(f"moves/{letter}")
        if used is not None:
            said = f"{100 * used.interval.estimate:.0f} % of moves"
            axes.text(1.01, height, said, va="center", fontsize=7.5, color=FAINT)
    axes.set_yticks(range(len(letters)), [f"{balance.name_of(letter)} ({letter})" for letter in letters])
    axes.set_ylim(-0.5, len(letters) - 0.5)
    _finish_bars(axes, [(label, colour) for _, label, colour in FATES], f"{_short(balance)}: fates, per cent")


def _short(balance: SettingBalance) -> str:
    """Return a setting's label, the beginning of a long one, such as one with a FEN."""
    label = balance.setting.label
    return label if len(label) <= SHORT_WIDTH else f"{label[: SHORT_WIDTH - 1]}…"


def _draw_bar(axes: Axes, height: int, balance: SettingBalance, parts: list[tuple[str, str]]) -> None:
    """Draw shares side by side as one bar, with their numbers where there is room."""
    left = 0.0
    for key, colour in parts:
        found = balance.estimates.get(key)
        width = found.interval.estimate if found is not None else 0.0
        axes.barh(height, width, left=left, height=0.6, color=colour, edgecolor=INK, linewidth=0.6)
        if width >= LEAST_SHOWN:
            ink = "white" if colour == RESULTS[-1][2] else INK
            said = f"{100 * width:.0f}"
            axes.text(left + width / 2, height, said, ha="center", va="center", fontsize=8, color=ink)
        left += width


def _finish_bars(axes: Axes, legend: list[tuple[str, str]], title: str) -> None:
    from matplotlib.patches import Patch

    axes.set_xlim(0, 1)
    axes.set_xticks([])
    axes.tick_params(axis="y", length=0, labelsize=8.5, colors=INK)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_title(title, loc="left", fontsize=9.5, color=INK, pad=18)
    patches = [Patch(facecolor=colour, edgecolor=INK, linewidth=0.6, label=label) for label, colour in legend]
    axes.legend(
        handles=patches, loc="lower left", bbox_to_anchor=(-0.01, 0.99), ncols=3, fontsize=7.5, frameon=False,
        handlelength=1.0, borderaxespad=0.0, columnspacing=1.2,
    )  # fmt: skip


def _draw_lengths(axes: Axes, report: BalanceReport) -> None:
    longest = max(max(balance.plies) for balance in report.balances)
    edges = np.linspace(0, longest + 1, BINS + 1)
    for balance, colour in zip(report.balances, COLOURS):
        shares, _ = np.histogram(balance.plies, edges)
        label, mean = _short(balance), balance.estimates["plies"].interval
        heights = 100 * shares / len(balance.plies)
        axes.stairs(heights, edges, color=colour, fill=True, alpha=0.25)
        said = f"{label}: {mean.estimate:.0f} on average ({mean.range_text('.0f')})"
        axes.stairs(heights, edges, color=colour, linewidth=1.4, label=said)
        axes.axvline(mean.estimate, color=colour, linewidth=1, linestyle=(0, (4, 3)))
    axes.set_xlim(0, longest + 1)
    axes.set_ylim(bottom=0)
    axes.set_title("length", loc="left", fontsize=9.5, color=INK, pad=6 + 12 * len(report.balances))
    axes.set_xlabel("plies", fontsize=8.5, color=INK)
    axes.set_ylabel("games, per cent", fontsize=8.5, color=INK)
    axes.tick_params(colors=INK, labelsize=8, length=3)
    axes.legend(
        loc="lower left", bbox_to_anchor=(-0.01, 0.99), fontsize=7.5, frameon=False, handlelength=1.0, borderaxespad=0.0
    )
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(FAINT)
