"""`workers: 0`: a run that was stopped and killed and resumed is, bit for bit, the run that nothing had happened to."""

import json
from pathlib import Path

import pytest
import torch

from models.checkpoint import Checkpoint, checkpoint_paths, load_checkpoint
from models.storage import sha256_hex
from train.config import RunConfig, from_document
from train.learner import Learner
from train.loop import Trainer
from train.metrics import read_metrics
from train.progress import Reporter
from train.runs import RunFolder

CFG = from_document(
    {
        "variant": "gardner",
        "iterations": 3,
        "workers": 0,
        "search": {
            "num_simulations": 4,
            "fast_simulations": 2,
            "full_search_share": 0.5,
            "stages": [{"iteration": 2, "num_simulations": 6, "fast_simulations": 3}],
        },
        "selfplay": {"games_per_worker": 8, "positions_per_iteration": 150, "max_plies": 40, "odds_share": 0.5},
        "network": {"blocks": 1, "channels": 4, "value_channels": 2, "value_hidden": 4, "future_pieces": True},
        "learner": {"batch_size": 16, "warmup_steps": 5, "passes": 1},
        "evaluation": {"games": 4, "simulations": 2, "max_plies": 40},
    }
)


def iterate(folder: Path, count: int, cfg: RunConfig = CFG) -> None:
    """Start or resume a run and take so many iterations."""
    run_folder = RunFolder(folder)
    resume = (folder / "config.yaml").exists()
    trainer = Trainer(cfg, run_folder, resume=resume, reporter=Reporter(quiet=True))
    try:
        for _ in range(count):
            trainer.iterate()
    finally:
        trainer.close()
        run_folder.close()


def newest(folder: Path) -> Checkpoint:
    return load_checkpoint(checkpoint_paths(folder)[0])


def assert_same(folder: Path, expected: Path) -> None:
    """Compare two runs in all that does not depend on the clock or the folder."""
    ours, theirs = newest(folder), newest(expected)
    assert ours.state == theirs.state
    assert ours.attachments == theirs.attachments
    for kind in ("model", "learner", "optimizer"):
        own, other = getattr(ours.tensors, kind), getattr(theirs.tensors, kind)
        assert own.keys() == other.keys()
        assert all(torch.equal(own[name], other[name]) for name in own), kind
    for shard in ours.state["shards"]:
        assert sha256_hex((folder / "replay" / shard["name"]).read_bytes()) == shard["sha256"]
    assert numbers(folder) == numbers(expected)


def numbers(folder: Path) -> list[str]:
    """Return the metrics without those of the machine and since start or resume."""
    rows = read_metrics(folder)
    kept = [(it, {k: v for k, v in row.items() if not k.startswith(("perf/", "faults/"))}) for it, row in rows]
    return [json.dumps(row, sort_keys=True) for row in kept]


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "run"
    iterate(folder, 3)
    return folder


class Killed(BaseException):
    """Stands for a process that ends at once."""


@pytest.mark.parametrize("step", [3, *(pytest.param(step, marks=pytest.mark.slow) for step in (0, 1))])
def test_stopped_after_one_iteration_and_killed_in_the_next_and_resumed(tmp_path, uninterrupted, step, monkeypatch):
    folder = tmp_path / "run"
    iterate(folder, 1)
    taken = 0
    original = Learner.step

    def step_or_die(self, batch):
        nonlocal taken
        taken += 1
        if taken > step:
            raise Killed
        return original(self, batch)

    monkeypatch.setattr(Learner, "step", step_or_die)
    with pytest.raises(Killed):
        iterate(folder, 1)
    monkeypatch.undo()
    iterate(folder, 1)
    iterate(folder, 1)
    assert_same(folder, uninterrupted)
    assert [path.name.endswith("-000001.npz") for path in (folder / "uncommitted").iterdir()] == [True]
