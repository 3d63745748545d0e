"""Metrics: every name is explained, both files hold the same numbers, a resumed run has no gap."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from train.metrics import METRICS, MetricsWriter, is_known, metrics_table, read_metrics

GROUPS = {"selfplay", "outcome", "search", "train", "buffer", "eval", "pieces", "perf", "faults"}


def scalars(run_dir: Path) -> dict[tuple[str, int], float]:
    """Return what TensorBoard shows: the last value of each (name, step)."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    board = EventAccumulator(str(run_dir / "tensorboard"), purge_orphaned_data=True)
    board.Reload()
    names = board.Tags()["scalars"]
    return {(name, event.step): event.value for name in names for event in board.Scalars(name)}


def test_json_lines_and_tensorboard_hold_the_same_numbers(tmp_path: Path) -> None:
    with MetricsWriter(tmp_path) as writer:
        writer.write(1, {"train/loss": 2.5, "selfplay/games": 12, "eval/score/random": math.nan})
        writer.write(2, {"train/loss": np.float32(1.5), "selfplay/plies": None})
    assert read_metrics(tmp_path) == [
        (1, {"train/loss": 2.5, "selfplay/games": 12, "eval/score/random": None}),
        (2, {"train/loss": 1.5, "selfplay/plies": None}),
    ]
    assert scalars(tmp_path) == {("train/loss", 1): 2.5, ("selfplay/games", 1): 12, ("train/loss", 2): 1.5}


def test_a_name_that_the_table_does_not_explain_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with MetricsWriter(tmp_path) as writer:
        with pytest.raises(KeyError, match="train/losss"):
            writer.write(1, {"train/loss": 1.0, "train/losss": 2.0})
        with pytest.raises(KeyError, match="pieces/value"):
            writer.write(1, {"pieces/value/": 2.0})
    assert read_metrics(tmp_path) == []


def test_resuming_drops_later_lines_and_a_torn_one(tmp_path: Path) -> None:
    with MetricsWriter(tmp_path) as writer:
        for iteration in (1, 2, 3):
            writer.write(iteration, {"train/loss": float(iteration)})
    path = tmp_path / "metrics.jsonl"
    path.write_text(path.read_text() + '{"iteration": 4, "metr')
    with MetricsWriter(tmp_path, resume_after=2) as writer:
        writer.write(3, {"train/loss": 30.0})
    assert read_metrics(tmp_path) == [(n, {"train/loss": v}) for n, v in ((1, 1.0), (2, 2.0), (3, 30.0))]
    assert scalars(tmp_path)[("train/loss", 3)] == 30.0


def test_a_fresh_writer_never_overwrites_a_run(tmp_path: Path) -> None:
    MetricsWriter(tmp_path).close()
    with pytest.raises(FileExistsError, match="metrics already"):
        MetricsWriter(tmp_path)


def test_every_line_is_strict_json_even_after_a_kill_between_two_writes(tmp_path: Path) -> None:
    writer = MetricsWriter(tmp_path)
    writer.write(1, {"train/loss": math.inf})
    text = (tmp_path / "metrics.jsonl").read_text()  # before closing: the line is on its way to the disk
    writer.close()
    assert json.loads(text) == {"iteration": 1, "metrics": {"train/loss": None}}


def test_the_table_explains_all_groups_and_wildcards_need_a_last_part() -> None:
    assert {name.split("/")[0] for name in METRICS} == GROUPS
    assert all(metric.unit and metric.meaning.endswith(".") for metric in METRICS.values())
    assert len(metrics_table().splitlines()) == len(METRICS) + 2
    assert is_known("pieces/value/N")
    assert not is_known("pieces/value/")
    assert not is_known("nothing/here")
