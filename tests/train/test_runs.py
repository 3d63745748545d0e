"""A run's folder: locked, archived, taken up again at every instant, and never a way to somewhere else."""

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from envs import load_variant
from models.checkpoint import Checkpoint, TrainingTensors, checkpoint_paths, load_latest, save_checkpoint
from models.storage import CorruptFile, sha256_hex
from tests.kills import Killed, kill_at
from train.config import ConfigError, from_document
from train.provenance import code_version
from train.run_lock import HOLDER_FILE
from train.runs import OWN_FILES, OWN_FOLDERS, UNCOMMITTED_KEPT, RunFolder, plugins_of_run, read_config, reading

CFG = from_document({"variant": "gardner"})
ROOT = Path(__file__).resolve().parents[2]
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


@pytest.fixture(scope="module")
def gardner():
    return load_variant("gardner", {})


@pytest.fixture
def folder(tmp_path: Path):
    folder = RunFolder(tmp_path / "run")
    yield folder
    folder.close()


def commit(folder: RunFolder, iteration: int) -> Path:
    """Write a shard for each iteration so far that has none, and a checkpoint that names them all."""
    folder.replay.mkdir(exist_ok=True)
    shards = []
    for number in range(iteration):
        path = folder.replay / f"{number:06d}.npz"
        path.write_bytes(b"games %d" % number)
        counts = {"num_games": 1, "num_rows": 2, "num_policy_rows": 1}
        shards.append({"name": path.name, "sha256": sha256_hex(path.read_bytes()), **counts})
    tensors = TrainingTensors({"a": torch.tensor(1)}, {}, {})
    return save_checkpoint(folder.path, iteration, tensors=tensors, state={**STATE, "shards": shards})


def latest(folder: RunFolder) -> Checkpoint:
    checkpoint = folder.take_up()
    assert checkpoint is not None
    return checkpoint


def test_a_second_trainer_is_refused_and_told_who_is_at_work(folder):
    with pytest.raises(ConfigError, match=rf"another trainer .* by process {os.getpid()} on \S+ since 20"):
        RunFolder(folder.path)
    folder.close()
    assert not (folder.path / HOLDER_FILE).exists()
    RunFolder(folder.path).close()


HOLD = """
import os, signal, sys
from pathlib import Path
from train.run_lock import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
"""


def test_a_trainer_in_another_process_blocks_while_it_lives_and_not_once_it_is_killed(tmp_path):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(ConfigError, match=f"by process {holder.pid} on "):
            RunFolder(tmp_path)
        holder.kill()
    assert (tmp_path / HOLDER_FILE).exists()
    RunFolder(tmp_path).close()


def test_a_note_that_another_machine_left_is_worth_a_warning(tmp_path, caplog):
    note = tmp_path / HOLDER_FILE
    note.write_text(json.dumps({"pid": 7, "host": "elsewhere", "since": "2026-01-01"}))
    with caplog.at_level(logging.WARNING):
        RunFolder(tmp_path).close()
    assert "last held by process 7 on elsewhere since 2026-01-01" in caplog.text


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"pid": 1}', "\x00"])
def test_a_torn_note_blocks_nobody(tmp_path, text):
    (tmp_path / HOLDER_FILE).write_text(text)
    RunFolder(tmp_path).close()


def test_a_file_system_without_locks_is_named(tmp_path, monkeypatch):
    def no_locks(self):
        raise OSError(37, "No locks available")

    monkeypatch.setattr("filelock.FileLock.acquire", no_locks)
    with pytest.raises(ConfigError, match=r"cannot lock a run .*No locks available.*--run-dir"):
        RunFolder(tmp_path)


def test_the_manifest_says_what_the_run_rests_on_and_each_time_it_was_taken_up(folder, gardner):
    folder.begin(CFG, gardner, initial_weights={"checkpoint": "other/checkpoints/000007"})
    folder.record_resume(3)
    folder.record_resume(5)
    manifest = json.loads((folder.path / "manifest.json").read_text())
    assert manifest["code"] == code_version()
    assert manifest["config_hash"] == CFG.config_hash()
    assert manifest["initial_weights"] == {"checkpoint": "other/checkpoints/000007"}
    assert [entry["after_iteration"] for entry in manifest["resumed"]] == [3, 5]
    assert manifest["resumed"][0]["code"] == code_version()
    assert read_config(folder.path) == CFG


def test_the_code_version_is_a_commit_or_says_that_it_is_not_known(monkeypatch, tmp_path):
    version = code_version()
    assert version["commit"] is None or len(str(version["commit"])) >= 40
    monkeypatch.setattr("train.provenance.ROOT", tmp_path)
    assert code_version() == {"commit": None, "changed": None}


@pytest.mark.parametrize("name, step", [*(("fsync", step) for step in range(11)), ("rename", 0), ("replace", 0)])
def test_a_run_killed_while_it_begins_is_either_none_or_whole(tmp_path, gardner, name, step, monkeypatch):
    folder = RunFolder(tmp_path / "run")
    kill_at(monkeypatch, name, step)
    try:
        folder.begin(CFG, gardner)
        commit(folder, 0)
    except Killed:
        pass
    monkeypatch.undo()
    folder.close()
    again = RunFolder(tmp_path / "run")
    assert not list(again.path.rglob(".tmp-*"))
    if (again.path / "config.yaml").exists():
        assert read_config(again.path) == CFG
        assert again.take_up() is None or latest(again).iteration == 0
        again.record_resume(0)
    else:
        again.begin(CFG, gardner)
    if again.take_up() is None:
        commit(again, 0)
    assert latest(again).iteration == 0
    again.close()


def test_a_run_that_lost_its_checkpoints_is_refused_not_begun_anew(folder, gardner):
    folder.begin(CFG, gardner)
    assert folder.take_up() is None
    folder.replay.mkdir()
    (folder.replay / "000000.npz").touch()
    with pytest.raises(CorruptFile, match="no checkpoint, though the run has games"):
        folder.take_up()


def test_a_refused_checkpoint_is_set_aside_when_the_run_goes_on_from_an_older_one(folder):
    for iteration in range(3):
        commit(folder, iteration)
    (checkpoint_paths(folder.path)[0] / "state.json").write_bytes(b"")
    assert latest(folder).iteration == 1
    assert [path.name for path in checkpoint_paths(folder.path)] == ["000001", "000000"]
    assert (folder.path / "checkpoints" / "000002.refused-1").is_dir()


SHARD_FAULTS = {
    "deleted": lambda path: path.unlink(),
    "emptied": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b" "),
    "flipped": lambda path: path.write_bytes(bytes([path.read_bytes()[0] ^ 1]) + path.read_bytes()[1:]),
    "a link": lambda path: (path.rename(path.with_suffix(".real")), path.symlink_to(path.with_suffix(".real"))),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "a pipe": lambda path: (path.unlink(), os.mkfifo(path)),
}


@pytest.mark.parametrize("how", SHARD_FAULTS)
def test_a_damaged_committed_shard_is_refused_by_name_with_the_way_back(folder, how):
    for iteration in range(5):
        commit(folder, iteration)
    assert len(folder.committed_shards(latest(folder))) == 4
    SHARD_FAULTS[how](folder.replay / "000002.npz")
    with pytest.raises(CorruptFile, match=r"replay/000002\.npz: .*move the checkpoints above 000002 out of"):
        folder.committed_shards(latest(folder))
    for path in checkpoint_paths(folder.path)[:2]:
        path.rename(folder.path / path.name)
    assert [shard.name for shard in folder.committed_shards(latest(folder))] == ["000000.npz", "000001.npz"]


def test_games_that_no_checkpoint_names_are_set_aside_and_few_of_earlier_ones_stay(folder):
    commit(folder, 1)
    for number in range(UNCOMMITTED_KEPT + 3):
        (folder.replay / f"{number + 1:06d}.npz").write_bytes(b"loose")
    named = {shard.name for shard in folder.committed_shards(latest(folder))}
    assert len(folder.set_aside_uncommitted(named)) == UNCOMMITTED_KEPT + 3
    assert [path.name for path in folder.replay.iterdir()] == ["000000.npz"]
    assert len(list(folder.uncommitted.iterdir())) == UNCOMMITTED_KEPT + 3
    assert folder.set_aside_uncommitted(named) == []
    kept = sorted(path.name.partition("-")[2] for path in folder.uncommitted.iterdir())
    assert kept == [f"{number:06d}.npz" for number in range(4, UNCOMMITTED_KEPT + 4)]


@pytest.mark.parametrize("name", [*OWN_FOLDERS, *OWN_FILES, "replay/000000.npz", "report/piece_values.json"])
def test_a_link_in_a_run_folder_is_refused_and_what_it_points_to_untouched(tmp_path, name):
    outside = tmp_path / "outside"
    (outside / ".tmp-mine").mkdir(parents=True)
    path = tmp_path / "run" / name
    path.parent.mkdir(parents=True)
    path.symlink_to(outside)
    with pytest.raises(ConfigError, match=f"{name}: a link"):
        RunFolder(tmp_path / "run")
    assert [path.name for path in outside.iterdir()] == [".tmp-mine"]


def test_a_run_folder_may_itself_be_reached_by_a_link(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "run").symlink_to(tmp_path / "disk")
    RunFolder(tmp_path / "run").close()


def test_leftovers_of_a_killed_run_are_cleared_and_files_of_others_are_not(tmp_path):
    run = tmp_path / "run"
    leftovers = [
        run / "replay" / ".tmp-7-000003.npz",
        run / ".tmp-7-manifest.json",
        run / "checkpoints" / ".tmp-000004",
    ]
    theirs = [run / ".tmp-notes", run / "notes.txt"]
    for path in (*leftovers, *theirs):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    RunFolder(run).close()
    assert not any(path.exists() for path in leftovers)
    assert all(path.exists() for path in theirs)


@pytest.mark.parametrize("text", ["", "[]", '{"plugins": 3}', '{"plugins": [3]}', '{"a": 1, "a": 2}', "[" * 9999])
def test_a_manifest_of_another_shape_is_refused_by_name(folder, text):
    (folder.path / "manifest.json").write_text(text)
    with pytest.raises(CorruptFile, match=r"manifest\.json"):
        plugins_of_run(CFG, folder.path, resume=True)


@pytest.mark.parametrize("error", [KeyError("x"), TypeError(), OverflowError(), RuntimeError(), AttributeError()])
def test_what_a_state_of_another_shape_raises_names_its_checkpoint(error):
    with pytest.raises(CorruptFile, match="000007: its state is of another shape"), reading(Path("000007")):
        raise error


def test_take_up_without_a_run_finds_nothing(folder):
    assert folder.take_up() is None
    assert load_latest(folder.path) is None
