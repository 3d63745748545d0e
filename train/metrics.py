"""What a run measures: one table of every metric, written as TensorBoard scalars and as JSON lines.

A metric is named `group/name`; `METRICS` explains each one, and a name that is not in it is refused. A row
that ends in `*` stands for one metric per piece letter, termination or opponent. `metrics.jsonl` holds one
object a line: `{"iteration": 3, "metrics": {"train/loss": 2.1, ...}}`, with null for what had no value.
TensorBoard also gets histograms, pictures and texts; `HISTOGRAMS` and `PICTURES` explain those.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from models.storage import write_atomically
from train.event_file import BAND, EventFile, Layout, histogram, layout, naming, picture, scalar, text

LINES_FILE = "metrics.jsonl"
TENSORBOARD_FOLDER = "tensorboard"


class Metric(NamedTuple):
    """What a metric means.

    Attributes:
        unit: of the number.
        meaning: one sentence.
    """

    unit: str
    meaning: str


class Picture(NamedTuple):
    """A picture as a PNG file.

    Attributes:
        png: the file's content.
        width: in pixels.
        height: in pixels.
    """

    png: bytes
    width: int
    height: int


METRICS: dict[str, Metric] = {
    "selfplay/games": Metric("games", "Games finished or cut in this iteration."),
    "selfplay/positions": Metric("positions", "Positions searched in this iteration."),
    "selfplay/total_games": Metric("games", "Games of the whole run so far."),
    "selfplay/total_positions": Metric("positions", "Positions of the whole run so far."),
    "selfplay/plies": Metric("plies", "Mean length of this iteration's games."),
    "selfplay/array_share": Metric("share", "Games of this iteration that started from the array, unchanged."),
    "selfplay/odds_share": Metric("share", "Games that started from material odds."),
    "selfplay/random_share": Metric("share", "Games from the array that random plies opened."),
    "selfplay/distinct_share": Metric("share", "Games whose moves and start no other game of the iteration has."),
    "selfplay/resigned_share": Metric("share", "Games that a player resigned."),
    "selfplay/resign_checks": Metric("games", "Games played to their end although a player would have resigned."),
    "selfplay/resign_false_positive_share": Metric("share", "Those among them which that player did not lose."),
    "selfplay/int8": Metric("0 or 1", "Whether this iteration's network evaluations were in int8."),
    "outcome/white_score": Metric("score", "White's mean score over finished games; 0.5 is balanced."),
    "outcome/white_score_low": Metric("score", "Lower end of its 95 % interval, games taken as independent."),
    "outcome/white_score_high": Metric("score", "Upper end of that interval."),
    "outcome/decisive_share": Metric("share", "Finished games with a winner."),
    "outcome/draw_share": Metric("share", "Finished games that were drawn."),
    "outcome/cut_share": Metric("share", "Games that the ply cap cut short."),
    "outcome/ended_by/*": Metric("share", "Finished games that ended by this rule, or by `resignation`."),
    "search/simulations": Metric("simulations", "Mean simulations per move."),
    "search/full_budget": Metric("simulations", "Simulations of a full search in this iteration."),
    "search/fast_budget": Metric("simulations", "Simulations of a fast search."),
    "search/full_share": Metric("share", "Moves that got a full search."),
    "search/depth": Metric("plies", "Mean depth of the leaves that were evaluated or recalled."),
    "search/recalled_share": Metric("share", "Leaves whose evaluation was remembered, of all that needed one."),
    "search/root_value": Metric("value", "Mean absolute root value, 0 (even) to 1 (decided)."),
    "search/value_error": Metric("squared", "Mean squared difference of root values and results; 1 knows nothing."),
    "search/policy_entropy": Metric("nats", "Mean entropy of the policy targets."),
    "search/prior_kl": Metric("nats", "Mean divergence of the network's policy from the policy target."),
    "train/loss": Metric("nats", "Total loss, mean over this iteration's steps."),
    "train/policy_loss": Metric("nats", "Cross-entropy of the policy over legal moves."),
    "train/policy_kl": Metric("nats", "Policy loss less the entropy of its targets."),
    "train/value_loss": Metric("nats", "Cross-entropy of win, draw and loss."),
    "train/moves_left_loss": Metric("loss", "Smooth L1 of the plies to the end, in units of 100 plies."),
    "train/soft_policy_loss": Metric("nats", "Cross-entropy of the soft policy, where the network has that head."),
    "train/future_pieces_loss": Metric("nats", "Cross-entropy of the future board, a mean over squares; likewise."),
    "train/held_out_policy_loss": Metric("nats", "Policy loss of the playing weights on games never trained on."),
    "train/held_out_policy_kl": Metric("nats", "That loss less the entropy of its targets."),
    "train/held_out_value_loss": Metric("nats", "Value loss of the playing weights on games never trained on."),
    "train/gradient_norm": Metric("norm", "Norm of the gradient before clipping."),
    "train/weight_norm": Metric("norm", "Norm of all learning weights."),
    "train/learning_rate": Metric("rate", "Step size of the last step."),
    "train/steps": Metric("steps", "Steps taken in the whole run so far."),
    "train/epochs": Metric("passes", "Rows drawn in this iteration over new full-search rows."),
    "buffer/rows": Metric("rows", "Rows in the replay window."),
    "buffer/policy_rows": Metric("rows", "Rows in the window that have a policy."),
    "buffer/held_out_rows": Metric("rows", "Rows of held-out games that are kept to measure on."),
    "buffer/total_rows": Metric("rows", "Rows ever added."),
    "buffer/age": Metric("iterations", "Mean age of the window's rows; this iteration's are 0."),
    "buffer/mb": Metric("MB", "Memory of the window."),
    "eval/score/*": Metric(
        "score",
        "Score against this opponent, pairs of one opening with colours swapped; against `float32` in int8.",
    ),
    "eval/score_low/*": Metric("score", "Lower end of the score's 95 % interval."),
    "eval/score_high/*": Metric("score", "Upper end of the score's 95 % interval."),
    "eval/draw_share/*": Metric("share", "Games of the match that were drawn."),
    "eval/plies/*": Metric("plies", "Mean length of the match's games."),
    "eval/ladder/*": Metric(
        "Elo", "`elo` of a checkpoint above `random`, and the ends of its 95 % interval; by `scripts/ladder.py`."
    ),
    "pieces/value/*": Metric("pawns", "Value of the piece by the outcome estimator."),
    "pieces/value_low/*": Metric("pawns", "Lower end of the value's 95 % interval."),
    "pieces/value_high/*": Metric("pawns", "Upper end of the value's 95 % interval."),
    "perf/positions_per_s": Metric("1/s", "Self-play positions per second of self-play, all workers."),
    "perf/evaluations_per_s": Metric("1/s", "Network evaluations per second of self-play, all workers."),
    "perf/overall_positions_per_s": Metric("1/s", "Self-play positions per second of the iteration."),
    "perf/games_per_hour": Metric("1/h", "Games that ended per hour of the iteration."),
    "perf/steps_per_s": Metric("1/s", "Training steps per second of learning."),
    "perf/selfplay_s": Metric("s", "Seconds of self-play in this iteration."),
    "perf/learn_s": Metric("s", "Seconds of learning."),
    "perf/replay_s": Metric("s", "Seconds of verifying, storing and reading games."),
    "perf/observe_s": Metric("s", "Seconds of measuring and of showing the iteration before, pictures included."),
    "perf/save_s": Metric("s", "Seconds of writing a checkpoint, that of the iteration before."),
    "perf/match_s": Metric("s", "Seconds of matches."),
    "perf/iteration_s": Metric("s", "Seconds since the metrics before these were written."),
    "perf/idle_core_share": Metric("share", "Time that this machine's cores did nothing, in the iteration."),
    "perf/run_core_share": Metric("share", "Core time of this machine that the run's own processes used."),
    "perf/memory_trainer_mb": Metric("MB", "Resident memory of the trainer."),
    "perf/memory_worker_mb": Metric("MB", "That of the largest worker on this machine."),
    "perf/memory_ray_mb": Metric("MB", "That of Ray's own processes on this machine, added up."),
    "perf/memory_total_mb": Metric("MB", "That of all the run's processes here; pages they share count for each."),
    "perf/memory_peak_mb": Metric("MB", "Largest such total since the run was started or resumed."),
    "perf/shared_memory_mb": Metric("MB", "Shared memory (`/dev/shm`) that the run's processes hold."),
    "perf/run_folder_mb": Metric("MB", "Size of the run's folder."),
    "perf/disk_free_gb": Metric("GB", "Free space on the disk of the run's folder."),
    "faults/skipped_steps": Metric("steps", "Training steps skipped because they were not finite, whole run."),
    "faults/rollbacks": Metric("times", "Returns to the weights before a phase whose steps were not finite."),
    "faults/quarantined_games": Metric("games", "Games that failed verification, whole run."),
    "faults/restarted_dead": Metric("workers", "Workers that died and were restarted, since start or resume."),
    "faults/restarted_hung": Metric("workers", "Workers that fell silent and were restarted, likewise."),
    "faults/restarted_inference": Metric("processes", "Inference processes that died or hung and were replaced."),
    "faults/lost_positions": Metric("positions", "Positions that went with them and were made anew, likewise."),
}

HISTOGRAMS: dict[str, str] = {
    "games/plies": "Lengths of the games.",
    "games/material_left": "White's pieces less Black's at the end.",
    "games/root_values": "Root values of the searched positions.",
    "games/policy_entropy": "Entropies of the policy targets, in nats.",
    "games/planes": "Displacement planes of the moves played, by their numbers.",
    "weights/*": "Learning weights of a layer.",
    "gradients/*": "Gradient of a layer in the last step, before clipping.",
}
"""What TensorBoard shows as histograms, every `metrics.histograms_every` iterations."""

PICTURES: dict[str, str] = {
    "games/last_positions": "How some of the iteration's games ended, with the last move.",
    "eval/ladder": "Elo of checkpoints and baselines against games, hours and evaluations; by `scripts/ladder.py`.",
    "search/position": "A position of a game: the network's policy now, and the policy that search gave as its target.",
}
"""What TensorBoard shows as pictures, every `metrics.pictures_every` iterations."""

CHARTS: Layout = {
    "Is it learning?": {
        "policy: divergence from search (KL)": ("train/policy_kl", "train/held_out_policy_kl", "search/prior_kl"),
        "value loss": ("train/value_loss", "train/held_out_value_loss"),
        "root values against results": ("search/value_error",),
        "entropy of policy targets": ("search/policy_entropy",),
    },
    "The games": {
        "White's score": (BAND, "outcome/white_score", "outcome/white_score_low", "outcome/white_score_high"),
        "decisive, drawn, cut": ("outcome/decisive_share", "outcome/draw_share", "outcome/cut_share"),
        "ended by": ("outcome/ended_by/.*",),
        "length": ("selfplay/plies",),
    },
    "Speed and machine": {
        "positions per second": ("perf/positions_per_s", "perf/overall_positions_per_s"),
        "seconds of an iteration": ("perf/selfplay_s", "perf/learn_s", "perf/replay_s", "perf/save_s"),
        "core time": ("perf/idle_core_share", "perf/run_core_share"),
        "memory, MB": ("perf/memory_.*_mb",),
    },
    "Faults": {"faults": ("faults/.*",)},
}
"""The charts of TensorBoard's tab "Custom Scalars"; a tag is a regular expression."""


def match_charts(opponent: str) -> Layout:
    """Return the chart of matches against an opponent: its score with its interval."""
    tags = (f"eval/{name}/{opponent}" for name in ("score", "score_low", "score_high"))
    return {"Strength": {f"score against {opponent}": (BAND, *tags)}}


def metrics_table() -> str:
    """Return every metric with its unit and meaning as a Markdown table."""
    rows = [f"| `{name}` | {metric.unit} | {metric.meaning} |" for name, metric in METRICS.items()]
    return "\n".join(["| metric | unit | meaning |", "|---|---|---|", *rows])


def shown_table(meanings: Mapping[str, str]) -> str:
    """Return `HISTOGRAMS` or `PICTURES` as a Markdown table."""
    rows = [f"| `{name}` | {meaning} |" for name, meaning in meanings.items()]
    return "\n".join(["| name | what it shows |", "|---|---|", *rows])


def is_known(name: str, table: Mapping[str, object] = METRICS) -> bool:
    """Say whether a table explains a name, itself or by a row that ends in `*`."""
    group, _, last = name.rpartition("/")
    return name in table or (bool(last) and f"{group}/*" in table)


class MetricsWriter:
    """Writes a run's metrics; one writer per run at a time.

    Attributes:
        run_dir: the run's folder; gets `metrics.jsonl` and `tensorboard/`.
    """

    def __init__(self, run_dir: Path, *, resume_after: int | None = None) -> None:
        """Open the files.

        Args:
            run_dir: the run's folder, made if missing.
            resume_after: last iteration that is kept; later lines, and a last one that a kill tore, are
                dropped. None starts afresh.

        Raises:
            FileExistsError: the run has metrics and `resume_after` is None.
            OSError: the files cannot be written.
        """
        self.run_dir = run_dir
        run_dir.mkdir(parents=True, exist_ok=True)
        path = run_dir / LINES_FILE
        if resume_after is None and path.exists():
            raise FileExistsError(f"{path}: there are metrics already; go on with them or choose another run")
        kept = [] if resume_after is None else _kept_lines(path, resume_after)
        write_atomically(path, "".join(kept).encode())
        self._lines: IO[str] = path.open("a", encoding="utf-8")
        purge = None if resume_after is None else resume_after + 1
        self._board = EventFile(run_dir / TENSORBOARD_FOLDER, purge_from=purge)

    def write(self, iteration: int, metrics: Mapping[str, float | int | None]) -> None:
        """Write one iteration's metrics to both places; the disk has the line when this returns.

        Args:
            iteration: the x axis.
            metrics: numbers by name; None or NaN says that there was nothing to measure.

        Raises:
            KeyError: a name that `METRICS` does not explain; nothing is written.
            OSError: the disk is full or the files cannot be written; names the file.
        """
        _refuse_unknown(metrics, METRICS)
        numbers = {name: _finite(value) for name, value in metrics.items()}
        line = json.dumps({"iteration": iteration, "metrics": numbers}, allow_nan=False)
        with naming(self.run_dir / LINES_FILE):
            self._lines.write(line + "\n")
            self._lines.flush()
            os.fsync(self._lines.fileno())
        self._board.write(iteration, [scalar(name, value) for name, value in numbers.items() if value is not None])

    def histograms(self, iteration: int, values: Mapping[str, npt.ArrayLike]) -> None:
        """Show distributions in TensorBoard.

        Args:
            iteration: the step.
            values: numbers by name, any shape; what is not finite is left out, and so is a name without numbers.

        Raises:
            KeyError: a name that `HISTOGRAMS` does not explain; nothing is written.
            OSError: see `write`.
        """
        _refuse_unknown(values, HISTOGRAMS)
        finite = {name: array[np.isfinite(array)] for name, array in zip(values, map(np.asarray, values.values()))}
        self._board.write(iteration, [histogram(name, array) for name, array in finite.items() if array.size])

    def pictures(self, iteration: int, pictures: Mapping[str, Picture]) -> None:
        """Show pictures in TensorBoard.

        Args:
            iteration: the step.
            pictures: by name.

        Raises:
            KeyError: a name that `PICTURES` does not explain; nothing is written.
            OSError: see `write`.
        """
        _refuse_unknown(pictures, PICTURES)
        shown = [picture(name, it.png, width=it.width, height=it.height) for name, it in pictures.items()]
        self._board.write(iteration, shown)

    def texts(self, texts: Mapping[str, str]) -> None:
        """Show texts, in Markdown, in TensorBoard."""
        self._board.write(0, [text(name, markdown) for name, markdown in texts.items()])

    def charts(self, charts: Layout) -> None:
        """Say which charts the tab "Custom Scalars" shows."""
        self._board.write(0, [layout(charts)])

    def close(self) -> None:
        """Close both files."""
        try:
            with naming(self.run_dir / LINES_FILE):
                self._lines.close()
        finally:
            self._board.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def read_metrics(run_dir: Path) -> list[tuple[int, dict[str, float | None]]]:
    """Return every iteration's metrics of a run, in order; a torn last line is left out."""
    return [(row["iteration"], row["metrics"]) for row in map(json.loads, _whole_lines(run_dir / LINES_FILE))]


def as_code(lines: str) -> str:
    """Return a text as Markdown that shows it as it stands."""
    return "    " + lines.replace("\n", "\n    ")


def _refuse_unknown(names: Iterable[str], table: Mapping[str, object]) -> None:
    unknown = [name for name in names if not is_known(name, table)]
    if unknown:
        raise KeyError(f"metrics that train/metrics.py does not explain: {', '.join(unknown)}")


def _finite(value: float | int | None) -> float | int | None:
    if value is None or not math.isfinite(value):
        return None
    return int(value) if isinstance(value, int) else float(value)


def _whole_lines(path: Path) -> list[str]:
    """Return the lines that end, without a torn last one; none where there is no file."""
    if not path.exists():
        return []
    return [line for line in path.read_text(encoding="utf-8").splitlines(keepends=True) if line.endswith("\n")]


def _kept_lines(path: Path, resume_after: int) -> list[str]:
    """Return each iteration's first line; a second one, of what followed the last, is made anew in any case."""
    first: dict[int, str] = {}
    for line in _whole_lines(path):
        first.setdefault(json.loads(line)["iteration"], line)
    return [line for iteration, line in first.items() if iteration <= resume_after]
