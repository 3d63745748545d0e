"""A forest plot of piece values: one row per piece with a marker and an interval for each method.

The recommended value is emphasised and written out; published values are crosses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

import numpy as np

from train.ratings import Interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, ACCENT, FAINT = "#222222", "#1f5a94", "#8a8a8a"
STYLES = {
    "odds": ("o", "#1f5a94"),
    "handicap": ("s", "#b8561b"),
    "td": ("^", "#3f7d3a"),
    "outcome": ("o", "#7a4fa3"),
    "network": ("v", "#9a7b1c"),
}
"""Marker and colour of each method."""
RECOMMENDED, PUBLISHED = "recommended", "published"
WIDTH_INCHES = 7.0
ROW_INCHES, MARK_INCHES = 0.22, 0.14
MARGIN_INCHES = 1.55
DOTS_PER_INCH = 200
TEXT_BACK = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
WIDEST = 2.5
"""The axis ends at most at this multiple of the largest estimate; longer intervals end in an arrow."""
VALUE_X, REFUSAL_X = 1.04, 0.02
"""Where a row's text begins, in widths of the axis."""
NOTE_WIDTH = 120
"""Characters in a line of notes."""
BAND = 0.56
"""Share of a row's height over which its markers are spread."""


@dataclass(frozen=True)
class ForestRow:
    """One piece in the plot.

    Attributes:
        label: its name.
        value: the interval that is emphasised and written out; None where there is none.
        by_method: interval of each method, drawn below it; none where one method stands alone.
        published: values from elsewhere.
        refusal: why there is no value.
    """

    label: str
    value: Interval | None
    by_method: Mapping[str, Interval] = field(default_factory=dict)
    published: Sequence[float] = ()
    refusal: str = ""


def draw_forest(rows: Sequence[ForestRow], *, title: str, scale: str, reference: float, notes: Sequence[str]) -> Figure:
    """Draw the plot.

    Args:
        rows: the pieces, from the top down.
        title: above the plot.
        scale: what the axis shows.
        reference: where a dashed line stands: the unit, or nothing.
        notes: lines below it.
    """
    from matplotlib.figure import Figure

    most = max((len(row.by_method) for row in rows), default=0)
    height = MARGIN_INCHES + (ROW_INCHES + MARK_INCHES * (1 + most)) * len(rows)
    figure = Figure(figsize=(WIDTH_INCHES, height), layout="constrained")
    axes = figure.add_subplot()
    limits = _limits([one for row in rows for one in (row.value, *row.by_method.values()) if one])
    for place, row in enumerate(reversed(rows)):
        _draw_row(axes, place, row, most, limits)
    axes.axvline(reference, color=FAINT, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
    axes.set_xlim(*limits)
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.set_yticks(range(len(rows)), [row.label for row in reversed(rows)])
    axes.set_xlabel(f"{scale}, 95 % interval", fontsize=9, color=INK)
    axes.set_title(title, loc="left", fontsize=12, fontweight="bold", color=INK, pad=10)
    _style(axes)
    if most:
        _explain(axes, rows)
        for place in range(len(rows) - 1):
            axes.axhline(place + 0.5, color="#e6e6e6", linewidth=0.7, zorder=0)
    lines = [line for note in notes for line in wrap(note, NOTE_WIDTH)]
    figure.supxlabel("\n".join(lines), x=0.01, ha="left", fontsize=7.5, color=FAINT)
    return figure


def save_figure(figure: Figure, stem: Path) -> list[Path]:
    """Save a figure as PNG and SVG, the same bytes for the same figure; return the paths."""
    import matplotlib

    paths = [stem.with_suffix(".png"), stem.with_suffix(".svg")]
    figure.savefig(paths[0], dpi=DOTS_PER_INCH)
    with matplotlib.rc_context({"svg.hashsalt": stem.name, "svg.fonttype": "none"}):
        figure.savefig(paths[1], metadata={"Date": None})
    return paths


def _limits(intervals: Sequence[Interval]) -> tuple[float, float]:
    """Choose the ends of the axis: all intervals if they are not too wide, 0 always."""
    if not intervals:
        return (-1.0, 1.0)
    largest = max(abs(interval.estimate) for interval in intervals)
    reach = WIDEST * max(largest, 1e-9)
    low = min(0.0, *(max(interval.low, -reach) for interval in intervals))
    high = max(0.0, *(min(interval.high, reach) for interval in intervals))
    pad = 0.03 * (high - low)
    return (low - (pad if low < 0 else 0.0), high + pad)


def _draw_row(axes: Axes, place: int, row: ForestRow, most: int, limits: tuple[float, float]) -> None:
    """Draw a row from the top of its band down: the emphasised value, then the methods in the order of `STYLES`."""
    if row.value is None and not row.by_method:
        _write(axes, place, (REFUSAL_X, FAINT), row.refusal or "no value")
        return
    step = BAND / most if most else 0.0
    top = place + (BAND / 2 if most else 0.0)
    if row.value is not None:
        marker, size = ("D", 8.0) if most else ("o", 6.5)
        _mark(axes, top, row.value, limits, style=(marker, INK if most else ACCENT, size, 2.4 if most else 1.8))
        is_unit = row.value.low == row.value.high
        text = f"{row.value.estimate:.2f}  ({row.value.range_text()})"
        _write(axes, place, (VALUE_X, INK), "1  (the unit)" if is_unit else text)
    methods = [method for method in STYLES if method in row.by_method]
    for number, method in enumerate(methods, start=1):
        marker, colour = STYLES[method]
        _mark(axes, top - number * step, row.by_method[method], limits, style=(marker, colour, 5.0, 1.2))
    for value in row.published:
        axes.plot([value], [top], marker="x", markersize=5, color=FAINT, linestyle="none", zorder=2)


def _mark(
    axes: Axes, height: float, interval: Interval, limits: tuple[float, float], *, style: tuple[str, str, float, float]
) -> None:
    """Draw an interval and its estimate; `style` is marker, colour, size and width of the line."""
    marker, colour, size, width = style
    low, high = np.clip((interval.low, interval.high), *limits)
    axes.plot([low, high], [height, height], color=colour, linewidth=width, solid_capstyle="butt", zorder=2)
    for end, arrow, is_cut in ((low, "<", interval.low < low), (high, ">", interval.high > high)):
        shape = arrow if is_cut else "|"
        axes.plot([end], [height], marker=shape, markersize=size - 1, color=colour, clip_on=False, zorder=2)
    axes.plot(
        [interval.estimate], [height], marker=marker, markersize=size, color=colour, markeredgecolor="white", zorder=3
    )


def _explain(axes: Axes, rows: Sequence[ForestRow]) -> None:
    """Draw the legend of a plot of several methods."""
    from matplotlib.lines import Line2D

    shown = [method for method in STYLES if any(method in row.by_method for row in rows)]
    styles = [(RECOMMENDED, "D", INK), *((method, *STYLES[method]) for method in shown)]
    if any(row.published for row in rows):
        styles.append((PUBLISHED, "x", FAINT))
    handles = [
        Line2D([], [], marker=marker, color=colour, linestyle="none", markersize=5, label=name)
        for name, marker, colour in styles
    ]
    axes.legend(handles=handles, loc="lower right", fontsize=7.5, frameon=True, edgecolor="#e6e6e6")


def _style(axes: Axes) -> None:
    axes.tick_params(colors=INK, labelsize=9, length=3)
    axes.tick_params(axis="y", length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(FAINT)
    axes.xaxis.grid(visible=True, color="#e6e6e6", linewidth=0.7)
    axes.set_axisbelow(True)


def _write(axes: Axes, height: float, place: tuple[float, str], text: str) -> None:
    """Write beside a row: `place` is the share of the axis' width, and the colour."""
    x, colour = place
    transform = axes.get_yaxis_transform()
    axes.text(x, height, text, transform=transform, color=colour, va="center", fontsize=8.5, bbox=TEXT_BACK)
