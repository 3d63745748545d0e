"""Which checkpoints stay: enough to go on, to go back and to compare, whatever dies in between."""

import shutil
from pathlib import Path

import pytest
import torch

from models.checkpoint import FILES, FOLDER, TrainingTensors, checkpoint_paths, load_latest, save_checkpoint
from models.pruning import REFUSED_KEPT, prune_checkpoints, set_aside_newer
from models.sealed_folder import set_aside
from tests.kills import Killed, kill_at

STATE = {
    "game": {
        "name": "gardner",
        "document": {},
        "options": {},
        "rules_hash": "",
        "action_hash": "",
        "observation_hash": "",
    },
    "network": {},
}


def save(run: Path, iteration: int) -> None:
    tensors = TrainingTensors({"a": torch.tensor(iteration)}, {}, {})
    save_checkpoint(run, iteration, tensors=tensors, state=STATE)


def numbers(run: Path) -> list[int]:
    return [int(path.name) for path in checkpoint_paths(run)]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("saved")
    for iteration in range(13):
        save(run, iteration)
    return run


@pytest.fixture
def run(saved: Path, tmp_path: Path) -> Path:
    """A run with checkpoints 0 to 12."""
    shutil.copytree(saved, tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.mark.parametrize(
    "keep_last, keep_every, kept",
    [
        (1, 0, [12, 0]),
        (3, 0, [12, 11, 10, 0]),
        (2, 5, [12, 11, 10, 5, 0]),
        (1, 1, list(range(12, -1, -1))),
        (100, 0, list(range(12, -1, -1))),
    ],
)
def test_the_newest_every_nth_and_the_first_are_kept(run, keep_last, keep_every, kept):
    removed = prune_checkpoints(run, keep_last=keep_last, keep_every=keep_every)
    assert numbers(run) == kept
    assert sorted([*removed, *kept]) == list(range(13))
    assert {path.name for path in (run / FOLDER).iterdir()} == {f"{number:06d}" for number in kept}


def test_the_newest_valid_checkpoint_is_never_removed(run):
    for number in (12, 11, 10, 9):
        (run / FOLDER / f"{number:06d}" / FILES[0]).write_bytes(b"")
    prune_checkpoints(run, keep_last=2, keep_every=0)
    assert numbers(run) == [12, 11, 8, 0]
    latest = load_latest(run)
    assert latest is not None
    assert latest.iteration == 8


def test_where_no_checkpoint_is_valid_none_is_removed(run):
    for path in checkpoint_paths(run):
        (path / FILES[0]).write_bytes(b"")
    assert prune_checkpoints(run, keep_last=1, keep_every=0) == []
    assert len(numbers(run)) == 13


@pytest.mark.parametrize("step", range(8))
@pytest.mark.parametrize("name", ["rename", "unlink", "rmdir"])
def test_a_removal_killed_at_any_step_leaves_whole_checkpoints_and_is_finished_later(run, name, step, monkeypatch):
    kill_at(monkeypatch, name, step)
    with pytest.raises(Killed):
        prune_checkpoints(run, keep_last=2, keep_every=0)
    monkeypatch.undo()
    assert set(numbers(run)) >= {12, 11, 0}
    for path in checkpoint_paths(run):
        assert {entry.name for entry in path.iterdir()} == {*FILES, "MANIFEST.json"}
    prune_checkpoints(run, keep_last=2, keep_every=0)
    assert {path.name for path in (run / FOLDER).iterdir()} == {"000012", "000011", "000000"}


def test_checkpoints_above_the_one_that_is_gone_on_from_are_set_aside_and_few_of_those_stay(run):
    assert set_aside_newer(run, 10) == ["000012.refused-1", "000011.refused-1"]
    assert numbers(run)[0] == 10
    for number in (9, 8, 7):
        set_aside(run / FOLDER / f"{number:06d}")
    prune_checkpoints(run, keep_last=20, keep_every=0)
    assert len(list((run / FOLDER).glob("*.refused-*"))) == REFUSED_KEPT
    save(run, 11)
    assert numbers(run)[:2] == [11, 10]
