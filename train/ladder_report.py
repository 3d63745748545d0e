"""A ladder as files: CSV, JSON, a picture, and the run's TensorBoard.

In TensorBoard a ladder is a folder of its own beside the run's curves, written anew each time: the scalars
`eval/ladder/*` at the iterations of the checkpoints, the picture `eval/ladder` and a table as text.
"""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from models.storage import write_atomically
from train.csv_table import csv_text
from train.event_file import EventFile, picture, scalar, text
from train.ladder import Ladder, Rung, Spent
from train.metrics import METRICS, PICTURES, TENSORBOARD_FOLDER, is_known

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STEM = "ladder"
FOLDER = "ladder"
"""Of the run's TensorBoard folder."""
SCALARS: dict[str, Callable[[Rung], float]] = {
    "eval/ladder/elo": lambda rung: rung.elo.estimate,
    "eval/ladder/elo_low": lambda rung: rung.elo.low,
    "eval/ladder/elo_high": lambda rung: rung.elo.high,
}
PICTURE = "eval/ladder"
AXES: tuple[tuple[str, Callable[[Spent], float]], ...] = (
    ("games of self-play", lambda spent: spent.games),
    ("hours", lambda spent: spent.hours),
    ("network evaluations", lambda spent: spent.evaluations),
)
COLUMNS = (
    "name", "iteration", "games", "hours", "evaluations", "elo", "elo_low", "elo_high", "matches", "match_games",
)  # fmt: skip
INK, ACCENT, FAINT = "#222222", "#1f5a94", "#8a8a8a"
BASELINE_COLOURS = ("#8a8a8a", "#b5651d", "#3c7d5a", "#7a4b94", "#b03a48", "#9a8b1f")
THOUSAND = 1000
PANEL_INCHES, HEIGHT_INCHES, DOTS_PER_INCH = 4.0, 4.3, 130


def save_ladder(ladder: Ladder, run_dir: Path, basis: Mapping[str, Any]) -> list[Path]:
    """Write a ladder into a run's report and its TensorBoard.

    Args:
        ladder: what to write.
        run_dir: the run's folder.
        basis: what the result rests on, plain data: `variant`, `simulations` and more.

    Returns:
        The files of the report.

    Raises:
        OSError: the folder cannot be written.
    """
    played = f"{basis['variant']}, {basis['simulations']} simulations a move"
    figure = draw_ladder(ladder, title=f"{run_dir.resolve().name}: {played}")
    stem = run_dir / "report" / STEM
    stem.parent.mkdir(exist_ok=True)
    contents = {
        ".csv": ladder_csv(ladder).encode(),
        ".json": json.dumps({**basis, **ladder.to_document()}, allow_nan=False, indent=1).encode(),
        ".png": _rendered(figure, "png"),
        ".svg": _rendered(figure, "svg"),
    }
    for suffix, content in contents.items():
        write_atomically(stem.with_suffix(suffix), content)
    _show(ladder, run_dir / TENSORBOARD_FOLDER / FOLDER, contents[".png"], figure)
    return [stem.with_suffix(suffix) for suffix in contents]


def ladder_csv(ladder: Ladder) -> str:
    """Return a ladder as CSV, one line a rung."""
    rows = []
    for rung in ladder.rungs:
        spent = [rung.spent.games, rung.spent.hours, rung.spent.evaluations] if rung.spent else [None] * 3
        elo = [f"{value:.1f}" for value in (rung.elo.estimate, rung.elo.low, rung.elo.high)]
        rows.append([rung.name, rung.iteration, *spent, *elo, rung.matches, rung.match_games])
    return csv_text(COLUMNS, rows)


def ladder_table(ladder: Ladder) -> str:
    """Return a ladder as a Markdown table."""
    rows = [
        f"| {rung.name} | {rung.elo.estimate:+.0f} | {rung.elo.range_text('+.0f')} | {rung.match_games} |"
        for rung in ladder.rungs
    ]
    return "\n".join(["| player | Elo above random | 95 % | games |", "|---|---|---|---|", *rows])


def draw_ladder(ladder: Ladder, *, title: str) -> Figure:
    """Draw Elo with error bars against games, hours and evaluations; baselines are lines across."""
    from matplotlib.figure import Figure

    size = PANEL_INCHES * len(AXES), HEIGHT_INCHES
    figure = Figure(figsize=size, dpi=DOTS_PER_INCH, layout="constrained")
    panels = figure.subplots(1, len(AXES), sharey=True)
    for axes, (name, amount) in zip(panels, AXES):
        _draw_panel(axes, ladder, amount)
        axes.set_xlabel(name, fontsize=9, color=INK)
    panels[0].set_ylabel("Elo above random, 95 % interval", fontsize=9, color=INK)
    figure.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold", color=INK)
    return figure


def _draw_panel(axes: Axes, ladder: Ladder, amount: Callable[[Spent], float]) -> None:
    from matplotlib.ticker import EngFormatter

    rungs = [(amount(rung.spent), rung.elo) for rung in ladder.checkpoints if rung.spent]
    for number, rung in enumerate(ladder.baselines):
        colour = BASELINE_COLOURS[number % len(BASELINE_COLOURS)]
        axes.axhspan(rung.elo.low, rung.elo.high, color=colour, alpha=0.13, linewidth=0, zorder=0)
        axes.axhline(rung.elo.estimate, color=colour, linewidth=1.1, linestyle=(0, (5, 3)), zorder=1)
        axes.annotate(
            rung.name, (1, rung.elo.estimate), xycoords=("axes fraction", "data"), xytext=(-3, 2),
            textcoords="offset points", ha="right", va="bottom", fontsize=8, color=colour,
        )  # fmt: skip
    spent, middles = [x for x, _ in rungs], [elo.estimate for _, elo in rungs]
    ends = [[elo.estimate - elo.low for _, elo in rungs], [elo.high - elo.estimate for _, elo in rungs]]
    axes.errorbar(
        spent, middles, yerr=ends, color=ACCENT, marker="o", markersize=5.5, linewidth=1.3, elinewidth=1.3,
        capsize=3, markeredgecolor="white", zorder=3,
    )  # fmt: skip
    axes.margins(x=0.06)
    if max(spent, default=0) >= THOUSAND:
        axes.xaxis.set_major_formatter(EngFormatter(sep=" "))
    axes.tick_params(colors=INK, labelsize=8.5, length=3)
    axes.yaxis.grid(visible=True, color="#e6e6e6", linewidth=0.7)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(FAINT)


def _rendered(figure: Figure, kind: str) -> bytes:
    """Return a figure as a file, the same bytes for the same figure."""
    import matplotlib

    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": STEM, "svg.fonttype": "none"}):
        figure.savefig(buffer, format=kind, metadata={"Date": None} if kind == "svg" else None)
    return buffer.getvalue()


def _show(ladder: Ladder, folder: Path, png: bytes, figure: Figure) -> None:
    """Write a ladder into a folder of TensorBoard's, in place of the one before."""
    unknown = [name for name in SCALARS if not is_known(name, METRICS)]
    if unknown or not is_known(PICTURE, PICTURES):
        raise KeyError(f"train/metrics.py does not explain {', '.join(unknown) or PICTURE}")
    shutil.rmtree(folder, ignore_errors=True)
    board = EventFile(folder)
    try:
        for rung in ladder.checkpoints:
            board.write(rung.iteration or 0, [scalar(name, number(rung)) for name, number in SCALARS.items()])
        last = max((rung.iteration or 0 for rung in ladder.checkpoints), default=0)
        width, height = (int(inches * DOTS_PER_INCH) for inches in figure.get_size_inches())
        board.write(last, [picture(PICTURE, png, width=width, height=height), text(PICTURE, ladder_table(ladder))])
    finally:
        board.close()
