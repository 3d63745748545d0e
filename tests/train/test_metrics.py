"""Metrics: every name is explained, both files hold the same numbers, a resumed run has no gap."""

import json
import math
import os
import re
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from train.event_file import BAND
from train.metrics import (
    CHARTS,
    HISTOGRAMS,
    METRICS,
    PICTURES,
    MetricsWriter,
    Picture,
    is_known,
    match_charts,
    metrics_table,
    read_metrics,
)

GROUPS = {"selfplay", "outcome", "search", "train", "buffer", "eval", "pieces", "perf", "faults"}


def board_of(run_dir: Path) -> Any:
    """Return what TensorBoard reads."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    board = EventAccumulator(str(run_dir / "tensorboard"), purge_orphaned_data=True)
    board.Reload()
    return board


def scalars(run_dir: Path) -> dict[tuple[str, int], float]:
    """Return what TensorBoard shows: the last value of each (name, step)."""
    board = board_of(run_dir)
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
        writer.write(2, {"eval/score/random": 0.5})  # as after the last iteration of a run
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


def test_tensorboard_reads_histograms_pictures_texts_and_the_layout_of_charts(tmp_path: Path) -> None:
    png = b"\x89PNG"
    with MetricsWriter(tmp_path) as writer:
        writer.histograms(3, {"games/plies": [1, 2, 2, 9, math.nan], "weights/stem": np.zeros(0)})
        writer.pictures(3, {"search/position": Picture(png, width=4, height=2)})
        writer.texts({"rules": "Pawns move."})
        writer.charts({**match_charts("random"), **CHARTS})
    board = board_of(tmp_path)
    (plies,) = board.Histograms("games/plies")
    assert (plies.step, plies.histogram_value.num, plies.histogram_value.max) == (3, 4, 9)
    assert board.Tags()["histograms"] == ["games/plies"]  # nothing was finite in the other
    (shown,) = board.Images("search/position")
    assert (shown.encoded_image_string, shown.width, shown.height) == (png, 4, 2)
    texts = {name: board.Tensors(name)[0].tensor_proto.string_val[0] for name in board.Tags()["tensors"]}
    assert texts["rules/text_summary"] == b"Pawns move."
    assert b"White's score" in texts["custom_scalars__config__"]


def test_histograms_and_pictures_that_no_table_explains_are_refused(tmp_path: Path) -> None:
    with MetricsWriter(tmp_path) as writer:
        with pytest.raises(KeyError, match="games/colours"):
            writer.histograms(1, {"games/colours": [1.0]})
        with pytest.raises(KeyError, match="games/plies"):
            writer.pictures(1, {"games/plies": Picture(b"", 1, 1)})


def test_every_chart_shows_metrics_that_there_are() -> None:
    for charts in CHARTS.values():
        for tags in charts.values():
            for tag in tags:
                assert tag == BAND or any(re.fullmatch(tag.replace(".*", r"[\w*]*"), name) for name in METRICS), tag
    assert all(meaning.endswith(".") for meaning in (*HISTOGRAMS.values(), *PICTURES.values()))


@pytest.mark.parametrize("target", ["metrics.jsonl", "tensorboard"])
def test_a_full_disk_is_noticed_by_the_write_that_fails_and_the_error_names_the_file(
    tmp_path: Path, target: str
) -> None:
    writer = MetricsWriter(tmp_path)
    writer.write(1, {"train/loss": 1.0})
    links = {int(file.name): os.readlink(file) for file in Path("/proc/self/fd").iterdir() if file.is_symlink()}
    (descriptor,) = [number for number, file in links.items() if file.startswith(str(tmp_path / target))]
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, descriptor)
    os.close(full)
    for call in (lambda: writer.write(2, {"train/loss": 2.0}), writer.close):
        with pytest.raises(OSError, match="No space left") as caught:
            call()
        assert target in str(caught.value.filename)


def test_no_thread_writes_behind_the_back_of_the_loop_and_an_iteration_takes_a_few_kilobytes(tmp_path: Path) -> None:
    threads = threading.active_count()
    with MetricsWriter(tmp_path) as writer:
        sizes = []
        for iteration in range(3):
            writer.write(iteration, {name.replace("*", "x"): 1 / 3 for name in METRICS})
            (file,) = (tmp_path / "tensorboard").iterdir()
            sizes.append(file.stat().st_size)
        assert threading.active_count() == threads
    assert sizes[2] - sizes[1] == sizes[1] - sizes[0] < 5_000
