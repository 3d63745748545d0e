"""A forest plot of piece values: one row per piece, a marker for the estimate, a line for its interval."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from train.piece_values.outcome import PieceEstimate
from train.ratings import Interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, ACCENT, FAINT = "#222222", "#1f5a94", "#8a8a8a"
WIDTH_INCHES = 7.0
ROW_INCHES = 0.36
MARGIN_INCHES = 1.55
DOTS_PER_INCH = 200
TEXT_BACK = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
WIDEST = 2.5
"""The axis ends at most at this multiple of the largest estimate; longer intervals end in an arrow."""
VALUE_X, REFUSAL_X = 1.04, 0.02
"""Where a row's text begins, in widths of the axis."""
Rows = Sequence[tuple[str, PieceEstimate]]


def draw_forest(rows: Rows, *, title: str, notes: Sequence[str]) -> "Figure":
    """Draw the plot.

    Args:
        rows: name and estimate of each piece, from the top down. Where no piece has a value in pawns,
        log-odds are
            drawn.
        title: above the plot.
        notes: lines below it.
    """
    from matplotlib.figure import Figure

    in_pawns = any(piece.value for _, piece in rows)
    drawn = [piece.value if in_pawns else piece.log_odds for _, piece in rows]
    figure = Figure(figsize=(WIDTH_INCHES, MARGIN_INCHES + ROW_INCHES * len(rows)), layout="constrained")
    axes = figure.add_subplot()
    limits = _limits([interval for interval in drawn if interval])
    for height, ((_, piece), interval) in enumerate(zip(reversed(rows), reversed(drawn))):
        _draw_row(axes, height, interval, piece.refusal, limits)
    reference = 1.0 if in_pawns else 0.0
    axes.axvline(reference, color=FAINT, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
    axes.set_xlim(*limits)
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.set_yticks(range(len(rows)), [f"{name} ({piece.letter})" for name, piece in reversed(rows)])
    scale = "value in pawns" if in_pawns else "log-odds of one piece"
    axes.set_xlabel(f"{scale}, 95 % interval", fontsize=9, color=INK)
    axes.set_title(title, loc="left", fontsize=12, fontweight="bold", color=INK, pad=10)
    axes.tick_params(colors=INK, labelsize=9, length=3)
    axes.tick_params(axis="y", length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(FAINT)
    axes.xaxis.grid(visible=True, color="#e6e6e6", linewidth=0.7)
    axes.set_axisbelow(True)
    figure.supxlabel("\n".join(notes), x=0.01, ha="left", fontsize=7.5, color=FAINT)
    return figure


def save_figure(figure: "Figure", stem: Path) -> list[Path]:
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


def _draw_row(axes: "Axes", height: int, interval: Interval | None, refusal: str, limits: tuple[float, float]) -> None:
    if interval is None:
        _write(axes, height, (REFUSAL_X, FAINT), refusal or "no value")
        return
    low, high = np.clip((interval.low, interval.high), *limits)
    axes.plot([low, high], [height, height], color=ACCENT, linewidth=1.8, solid_capstyle="butt", zorder=2)
    for end, marker, is_cut in ((low, "<", interval.low < low), (high, ">", interval.high > high)):
        shape = marker if is_cut else "|"
        axes.plot([end], [height], marker=shape, markersize=6, color=ACCENT, clip_on=False, zorder=2)
    axes.plot(
        [interval.estimate],
        [height],
        marker="o",
        markersize=6.5,
        color=ACCENT,
        markeredgecolor="white",
        zorder=3,
    )
    is_unit = interval.low == interval.high
    text = f"{interval.estimate:.2f}  ({interval.range_text()})"
    _write(axes, height, (VALUE_X, INK), "1  (the unit)" if is_unit else text)


def _write(axes: "Axes", height: int, place: tuple[float, str], text: str) -> None:
    """Write beside a row: `place` is the share of the axis' width, and the colour."""
    x, colour = place
    transform = axes.get_yaxis_transform()
    axes.text(x, height, text, transform=transform, color=colour, va="center", fontsize=8.5, bbox=TEXT_BACK)
