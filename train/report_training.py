"""What a report says of training runs: how they learned, how strong they became, what the pieces were worth when.

Several runs are one experiment with several seeds: each has its own line, and games are pooled over them.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from envs import CompiledGame, Variant, engine_for
from models.checkpoint import load_player
from models.storage import CorruptFile, parse_json, read_regular
from train.config import RunConfig, from_document
from train.csv_table import csv_text
from train.ladder import Ladder, Rung, Spent
from train.ladder_report import draw_ladder, ladder_csv
from train.metrics import read_metrics
from train.pgn import stored_games
from train.piece_values.outcome import estimate_values
from train.piece_values.positions import InsufficientData, collect_positions
from train.players import CONFIG, check_plugins
from train.plugins import NETWORK
from train.ratings import Interval
from train.report_charts import Line, Panel, draw_panels
from train.report_page import Picture, Section, figure, paragraph, source_line
from train.shards import GameRecord

LADDER_FILE = Path("report") / "ladder.json"
WINDOWS = 6
WINDOW_RESAMPLES = 200
SCORE = "eval/score/"
ITERATION = "iteration"
CURVES = (
    ("policy: divergence from search, nats", {"train/policy_kl": "training", "train/held_out_policy_kl": "held out"}),
    ("value loss, nats", {"train/value_loss": "training", "train/held_out_value_loss": "held out"}),
    (
        "results, share of games",
        {"outcome/decisive_share": "decisive", "outcome/draw_share": "draws", "outcome/cut_share": "cut short"},
    ),
)
"""Panels beside the scores: metrics and what their lines are called."""
FEWEST_POINTS = 2
"""Of a line of scores; fewer are told in words."""


@dataclass(frozen=True)
class Run:
    """A run that is reported.

    Attributes:
        path: its folder.
        name: of the folder.
        config: of the run.
        variant: its game.
        metrics: of every iteration, by name.
    """

    path: Path
    name: str
    config: RunConfig
    variant: Variant
    metrics: Sequence[tuple[int, Mapping[str, float | None]]]

    @property
    def iterations(self) -> int:
        """The last iteration that has metrics."""
        return max((iteration for iteration, _ in self.metrics), default=0)


def read_run(path: Path) -> Run:
    """Read a run's folder.

    Raises:
        FileNotFoundError: there is no checkpoint.
        ConfigError, CorruptFile, CheckpointMismatch: see `load_player`.
    """
    _, variant, state = load_player(path, check=lambda found: check_plugins(found, keys=(NETWORK,)))
    config = from_document(state[CONFIG], f"{path}: config")
    return Run(path, path.resolve().name, config, variant, read_metrics(path))


def learning_section(runs: Sequence[Run], command: str) -> Section:
    """Return the learning curves."""
    opponents = [name.removeprefix(SCORE) for name in _names(runs) if name.startswith(SCORE)]
    panels = [panel for opponent in opponents if (panel := _scores(runs, opponent))]
    panels += [
        Panel(title, ITERATION, lines)
        for title, names in CURVES
        if (lines := [line for name, words in names.items() for line in _lines(runs, name, words)])
    ]
    if not panels:
        return Section("Learning", paragraph("The run has no metrics yet."))
    chart = Picture.of_figure(draw_panels(panels), "learning", "Learning curves")
    curves = {name for _, names in CURVES for name in names}
    rows = csv_text(
        ("run", ITERATION, "metric", "value"),
        [
            (run.name, iteration, name, value)
            for run in runs
            for iteration, metrics in run.metrics
            for name, value in metrics.items()
            if value is not None and (name in curves or name.startswith("eval/"))
        ],
    )
    caption = "Scores have 95 % intervals over pairs of games. Held-out games were never trained on."
    several = f" {len(runs)} runs, a line for each." if len(runs) > 1 else ""
    body = (
        paragraph(_trained(runs)) + figure(chart, caption + several, "chart") + source_line("learning", rows, command)
    )
    return Section("Learning", body, {"learning": chart}, {"learning": rows})


def ladder_section(runs: Sequence[Run]) -> Section:
    """Return the ladders that were played for the runs, by `scripts/ladder.py`."""
    body, pictures, tables = "", dict[str, Picture](), dict[str, str]()
    for number, run in enumerate(runs, 1):
        command = f"python scripts/ladder.py {shlex.quote(str(run.path))}"
        path = run.path / LADDER_FILE
        if not path.exists():
            body += paragraph(f"{run.name}: no ladder was played. This plays one, and it then stands here: {command}")
            continue
        ladder, simulations = _read_ladder(path)
        name = "ladder" if len(runs) == 1 else f"ladder_{number}"
        title = f"{run.name}: {simulations} simulations a move"
        pictures[name] = Picture.of_figure(draw_ladder(ladder, title=title), name, f"Ladder of {run.name}")
        tables[name] = ladder_csv(ladder)
        caption = "Elo above uniformly random moves, 95 % intervals; baselines are lines across."
        body += figure(pictures[name], caption, "chart broad") + source_line(name, tables[name], command)
    return Section("Strength", body, pictures, tables)


def values_over_training(
    runs: Sequence[Run], *, seed: int, command: str, progress: Callable[[int], None] = lambda done: None
) -> Section:
    """Return outcome values by windows of iterations, the games of all runs pooled.

    Args:
        runs: of one game and one config.
        seed: of the bootstrap.
        command: that remakes the numbers.
        progress: told how many of `WINDOWS` are done.
    """
    game = engine_for(runs[0].variant)
    found: list[tuple[int, dict[str, Interval]]] = []
    refusals = []
    for number, window in enumerate(_windows(max(run.iterations for run in runs)), 1):
        try:
            found.append((window[-1], _window_values(runs, game, window, seed)))
        except InsufficientData as error:
            refusals.append(f"Iterations {window[0]} to {window[-1]}: no values, {error}.")
        progress(number)
    body = "".join(map(paragraph, refusals))
    letters = dict.fromkeys(letter for _, values in found for letter in values)
    lines = sorted((_value_line(letter, found) for letter in letters), key=lambda line: -line.y[-1])
    if not lines:
        return Section("Values over training", body or paragraph("The run has no games yet."))
    panel = Panel("value in pawns, by the games of a window of iterations", ITERATION, lines, level=1.0)
    chart = Picture.of_figure(draw_panels([panel]), "values_over_training", "Piece values over training")
    rows = csv_text(
        ("until_iteration", "piece", "value", "low", "high"),
        [
            (last, letter, *interval.to_document().values())
            for last, values in found
            for letter, interval in values.items()
        ],
    )
    caption = (
        "The estimator “outcome” on the games up to each mark since the one before; bands are 95 % intervals. "
        "Values of early, weak play are values of weak play."
    )
    body += figure(chart, caption, "chart") + source_line("values_over_training", rows, command)
    return Section("Values over training", body, {"values_over_training": chart}, {"values_over_training": rows})


def records_of(runs: Sequence[Run], window: range | None = None) -> Iterator[GameRecord]:
    """Yield the stored games of runs, oldest first in each; those of a window of iterations if one is given."""
    for run in runs:
        for _, record, _ in stored_games(run.path, iterations=window):
            yield record


def _trained(runs: Sequence[Run]) -> str:
    """Return how long the runs trained, and the last score against each opponent, in words."""
    parts = []
    for run in runs:
        games, positions = (
            sum(metrics.get(f"selfplay/{what}") or 0 for _, metrics in run.metrics) for what in ("games", "positions")
        )
        parts.append(f"{run.name}: {run.iterations} iterations, {games:,.0f} games, {positions:,.0f} positions")
        for opponent in (name.removeprefix(SCORE) for name in _names([run]) if name.startswith(SCORE)):
            iteration, *score = _score_rows(run, opponent)[-1]
            said = Interval(*_numbers(score))
            parts[-1] += f"; {said.estimate:.2f} ({said.range_text()}) against {opponent} after iteration {iteration}"
    return f"{'. '.join(parts)}."


def _names(runs: Sequence[Run]) -> list[str]:
    """Return the metrics that have a value in any iteration."""
    return list(dict.fromkeys(name for run in runs for _, row in run.metrics for name in row if row[name] is not None))


def _score_rows(run: Run, opponent: str) -> list[tuple[Any, ...]]:
    """Return iteration, score and the ends of its interval of each match."""
    keys = [f"eval/{end}/{opponent}" for end in ("score", "score_low", "score_high")]
    return [(it, *(row.get(key) for key in keys)) for it, row in run.metrics if row.get(keys[0]) is not None]


def _scores(runs: Sequence[Run], opponent: str) -> Panel | None:
    lines = []
    for run in runs:
        rows = _score_rows(run, opponent)
        if len(rows) >= FEWEST_POINTS:
            x, *columns = zip(*rows)
            lines.append(Line(run.name, x, *(_numbers(column) for column in columns)))
    return Panel(f"score against {opponent}", ITERATION, lines, level=0.5) if lines else None


def _lines(runs: Sequence[Run], name: str, words: str) -> list[Line]:
    """Return a metric's line of each run that has it."""
    lines = []
    for run in runs:
        points = [(it, metrics[name]) for it, metrics in run.metrics if metrics.get(name) is not None]
        if points:
            lines.append(Line(words, [it for it, _ in points], _numbers([value for _, value in points])))
    return lines


def _numbers(values: Sequence[Any]) -> list[float]:
    return [math.nan if value is None else float(value) for value in values]


def _read_ladder(path: Path) -> tuple[Ladder, int]:
    """Return a ladder without its matches, and the simulations it was played with."""
    document = parse_json(read_regular(path), path)
    try:
        rungs = []
        for rung in document["rungs"]:
            ends = [
                math.nan if rung["elo"][end] is None else float(rung["elo"][end]) for end in ("estimate", "low", "high")
            ]
            spent = Spent(**rung["spent"]) if rung["spent"] else None
            rungs.append(
                Rung(rung["name"], Interval(*ends), rung["matches"], rung["match_games"], rung["iteration"], spent)
            )
        return Ladder(tuple(rungs), ()), int(document["simulations"])
    except (KeyError, TypeError) as error:
        raise CorruptFile(f"{path}: expected a ladder as scripts/ladder.py writes it, got {error!r}") from None


def _windows(iterations: int) -> list[range]:
    edges = np.linspace(0, iterations, min(WINDOWS, iterations) + 1).round().astype(int).tolist()
    return [range(first + 1, last + 1) for first, last in pairwise(edges)]


def _window_values(runs: Sequence[Run], game: CompiledGame, window: range, seed: int) -> dict[str, Interval]:
    settings = runs[0].config.piece_values.model_copy(update={"bootstrap": WINDOW_RESAMPLES})
    positions = collect_positions(game, records_of(runs, window), quiet_only=settings.quiet_only)
    values = estimate_values(positions, settings=settings, seed=seed)
    return {piece.letter: piece.value for piece in values.pieces if piece.value}


def _value_line(letter: str, found: Sequence[tuple[int, Mapping[str, Interval]]]) -> Line:
    rows = [(last, values[letter]) for last, values in found if letter in values]
    ends = [[getattr(value, end) for _, value in rows] for end in ("estimate", "low", "high")]
    return Line(letter, [last for last, _ in rows], *ends)
