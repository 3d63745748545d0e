"""What a run measures: one table of every metric, written as TensorBoard scalars and as JSON lines.

A metric is named `group/name`; `METRICS` explains each one, and a name that is not in it is refused. A row
that ends in `*` stands for one metric per piece letter, termination or opponent. `metrics.jsonl` holds one
object a line: `{"iteration": 3, "metrics": {"train/loss": 2.1, ...}}`, with null for what had no value.
"""

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, NamedTuple, Self

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


METRICS: dict[str, Metric] = {
    "selfplay/games": Metric("games", "Games finished or cut in this iteration."),
    "selfplay/positions": Metric("positions", "Positions searched in this iteration."),
    "selfplay/total_games": Metric("games", "Games of the whole run so far."),
    "selfplay/total_positions": Metric("positions", "Positions of the whole run so far."),
    "selfplay/plies": Metric("plies", "Mean length of this iteration's games."),
    "selfplay/odds_share": Metric("share", "Games of this iteration that started from material odds."),
    "selfplay/int8": Metric("0 or 1", "Whether this iteration's network evaluations were in int8."),
    "outcome/white_score": Metric("score", "White's mean score over finished games; 0.5 is balanced."),
    "outcome/decisive_share": Metric("share", "Finished games with a winner."),
    "outcome/draw_share": Metric("share", "Finished games that were drawn."),
    "outcome/cut_share": Metric("share", "Games that the ply cap cut short."),
    "outcome/ended_by/*": Metric("share", "Finished games that ended by this rule."),
    "search/simulations": Metric("simulations", "Mean simulations per move."),
    "search/full_share": Metric("share", "Moves that got a full search."),
    "search/depth": Metric("plies", "Mean depth of the leaves that were evaluated or recalled."),
    "search/recalled_share": Metric("share", "Leaves whose evaluation was remembered, of all that needed one."),
    "search/root_value": Metric("value", "Mean absolute root value, 0 (even) to 1 (decided)."),
    "search/policy_entropy": Metric("nats", "Mean entropy of the policy targets."),
    "search/prior_kl": Metric("nats", "Mean divergence of the network's policy from the policy target."),
    "train/loss": Metric("nats", "Total loss, mean over this iteration's steps."),
    "train/policy_loss": Metric("nats", "Cross-entropy of the policy over legal moves."),
    "train/policy_kl": Metric("nats", "Policy loss less the entropy of its targets."),
    "train/value_loss": Metric("nats", "Cross-entropy of win, draw and loss."),
    "train/moves_left_loss": Metric("loss", "Smooth L1 of the plies to the end, in units of 100 plies."),
    "train/soft_policy_loss": Metric("nats", "Cross-entropy of the soft policy, where the network has that head."),
    "train/future_pieces_loss": Metric("nats", "Cross-entropy of the future board, a mean over squares; likewise."),
    "train/gradient_norm": Metric("norm", "Norm of the gradient before clipping."),
    "train/learning_rate": Metric("rate", "Step size of the last step."),
    "train/steps": Metric("steps", "Steps taken in the whole run so far."),
    "train/epochs": Metric("passes", "Rows drawn in this iteration over new full-search rows."),
    "buffer/rows": Metric("rows", "Rows in the replay window."),
    "buffer/policy_rows": Metric("rows", "Rows in the window that have a policy."),
    "buffer/total_rows": Metric("rows", "Rows ever added."),
    "eval/score/*": Metric(
        "score",
        "Score against this opponent, pairs of one opening with colours swapped; against `float32` in int8.",
    ),
    "eval/score_low/*": Metric("score", "Lower end of the score's 95 % interval."),
    "eval/score_high/*": Metric("score", "Upper end of the score's 95 % interval."),
    "eval/draw_share/*": Metric("share", "Games of the match that were drawn."),
    "eval/plies/*": Metric("plies", "Mean length of the match's games."),
    "pieces/value/*": Metric("pawns", "Value of the piece by the outcome estimator."),
    "pieces/value_low/*": Metric("pawns", "Lower end of the value's 95 % interval."),
    "pieces/value_high/*": Metric("pawns", "Upper end of the value's 95 % interval."),
    "perf/positions_per_s": Metric("1/s", "Self-play positions per second of self-play, all workers."),
    "perf/evaluations_per_s": Metric("1/s", "Network evaluations per second of self-play, all workers."),
    "perf/overall_positions_per_s": Metric("1/s", "Self-play positions per second of the iteration."),
    "perf/steps_per_s": Metric("1/s", "Training steps per second of learning."),
    "perf/selfplay_s": Metric("s", "Seconds of self-play in this iteration."),
    "perf/learn_s": Metric("s", "Seconds of learning."),
    "perf/replay_s": Metric("s", "Seconds of verifying, storing and reading games."),
    "perf/save_s": Metric("s", "Seconds of writing the checkpoint."),
    "perf/iteration_s": Metric("s", "Seconds of the whole iteration."),
    "faults/skipped_steps": Metric("steps", "Training steps skipped because they were not finite, whole run."),
    "faults/quarantined_games": Metric("games", "Games that failed verification, whole run."),
}


def metrics_table() -> str:
    """Return every metric with its unit and meaning as a Markdown table."""
    rows = [f"| `{name}` | {metric.unit} | {metric.meaning} |" for name, metric in METRICS.items()]
    return "\n".join(["| metric | unit | meaning |", "|---|---|---|", *rows])


def is_known(name: str) -> bool:
    """Say whether `METRICS` explains a metric."""
    group, _, last = name.rpartition("/")
    return name in METRICS or (bool(last) and f"{group}/*" in METRICS)


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
        """
        from torch.utils.tensorboard import SummaryWriter

        self.run_dir = run_dir
        run_dir.mkdir(parents=True, exist_ok=True)
        path = run_dir / LINES_FILE
        if resume_after is None and path.exists():
            raise FileExistsError(f"{path}: there are metrics already; go on with them or choose another run")
        kept = [] if resume_after is None else _kept_lines(path, resume_after)
        _replace(path, "".join(kept))
        self._lines: IO[str] = path.open("a", encoding="utf-8")
        purge = None if resume_after is None else resume_after + 1
        self._board: Any = SummaryWriter(str(run_dir / TENSORBOARD_FOLDER), purge_step=purge)

    def write(self, iteration: int, metrics: Mapping[str, float | int | None]) -> None:
        """Write one iteration's metrics to both places, and flush them.

        Args:
            iteration: the x axis.
            metrics: numbers by name; None or NaN says that there was nothing to measure.

        Raises:
            KeyError: a name that `METRICS` does not explain; nothing is written.
        """
        unknown = [name for name in metrics if not is_known(name)]
        if unknown:
            raise KeyError(f"metrics that train/metrics.py does not explain: {', '.join(unknown)}")
        numbers = {name: _finite(value) for name, value in metrics.items()}
        line = json.dumps({"iteration": iteration, "metrics": numbers}, allow_nan=False)
        self._lines.write(line + "\n")
        self._lines.flush()
        for name, number in numbers.items():
            if number is not None:
                self._board.add_scalar(name, number, iteration)
        self._board.flush()

    def write_text(self, name: str, text: str) -> None:
        """Show a text (the config, a board) in TensorBoard as it stands."""
        self._board.add_text(name, "    " + text.replace("\n", "\n    "))

    def close(self) -> None:
        """Close both files."""
        self._lines.close()
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
    return [line for line in _whole_lines(path) if json.loads(line)["iteration"] <= resume_after]


def _replace(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    temporary = path.with_suffix(".tmp")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)
