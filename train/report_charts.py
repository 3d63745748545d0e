"""Charts of a report in one style: small panels of lines with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, FAINT, GRID = "#222222", "#8a8a8a", "#e6e6e6"
COLOURS = ("#1f5a94", "#b5651d", "#3c7d5a", "#7a4b94", "#b03a48", "#9a8b1f", "#4f8f9d", "#555555")
PANEL_INCHES = (3.5, 2.4)
MOST_COLUMNS = 2
POINTS_WITH_MARKS = 20
"""A line of more points has no marks."""
MOST_INSIDE = 3
"""A legend of more lines stands beside its panel."""


@dataclass(frozen=True)
class Line:
    """A line of a panel.

    Attributes:
        name: in the legend; lines of one name have one colour.
        x: in ascending order.
        y: as many; NaN where there is none.
        low: lower ends of intervals, as many, or none at all.
        high: upper ends.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()


@dataclass(frozen=True)
class Panel:
    """Lines over one x axis.

    Attributes:
        title: above it.
        x_name: below it.
        lines: at least one.
        level: a thin line across, or None.
    """

    title: str
    x_name: str
    lines: Sequence[Line]
    level: float | None = None


def draw_panels(panels: Sequence[Panel]) -> Figure:
    """Draw panels in rows of two; a single one is wide."""
    from matplotlib.figure import Figure

    columns = min(MOST_COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    width, height = PANEL_INCHES
    size = (MOST_COLUMNS * width, rows * height * (1.3 if columns == 1 else 1))
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, panel in zip(grid, panels):
        _draw(axes, panel)
    for axes in grid[len(panels) :]:
        axes.set_axis_off()
    return figure


def _draw(axes: Axes, panel: Panel) -> None:
    names = list(dict.fromkeys(line.name for line in panel.lines))
    if panel.level is not None:
        axes.axhline(panel.level, color=FAINT, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
    for line in panel.lines:
        number = names.index(line.name)
        is_first = next(other for other in panel.lines if other.name == line.name) is line
        mark = {"marker": "o", "markersize": 3.2} if len(line.x) <= POINTS_WITH_MARKS else {}
        colour = COLOURS[number % len(COLOURS)]
        label = line.name if is_first else None
        axes.plot(line.x, line.y, color=colour, linewidth=1.4, label=label, zorder=3, **mark)  # type: ignore[arg-type]
        if line.low:
            axes.fill_between(line.x, line.low, line.high, color=colour, alpha=0.13, linewidth=0, zorder=2)
    axes.set_title(panel.title, loc="left", fontsize=9.5, color=INK)
    axes.set_xlabel(panel.x_name, fontsize=8.5, color=INK)
    axes.tick_params(colors=INK, labelsize=8, length=3)
    axes.yaxis.grid(visible=True, color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(FAINT)
    if len(names) > MOST_INSIDE:
        axes.legend(
            fontsize=8, frameon=False, labelcolor=INK, handlelength=1.4, loc="upper left", bbox_to_anchor=(1, 1)
        )
    else:
        axes.legend(fontsize=7.5, frameon=False, labelcolor=INK, handlelength=1.4)
