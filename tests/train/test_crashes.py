"""A trainer killed, stopped, interrupted and out of disk space: it goes on, and nothing committed is lost."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.train.crash_runs import CONFIG, CrashRun, run_kills

ROOT = Path(__file__).resolve().parents[2]


def test_a_trainer_killed_three_times_goes_on_and_loses_nothing_that_was_committed(tmp_path):
    found = run_kills(tmp_path, 3, workers=0, seed=3)
    assert sum(found["kills"].values()) == 3
    assert found["iterations"] >= 2


@pytest.mark.slow
def test_a_trainer_killed_fifty_times_goes_on_and_loses_nothing_that_was_committed(tmp_path):
    found = run_kills(tmp_path, 50, workers=0, seed=1)
    assert sum(found["kills"].values()) == 50
    assert found["resumes"] >= 45


@pytest.mark.slow
def test_a_trainer_with_ray_workers_killed_five_times_goes_on(tmp_path):
    found = run_kills(tmp_path, 5, workers=2, seed=2)
    assert sum(found["kills"].values()) == 5


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
def test_one_ctrl_c_in_a_terminal_saves_the_iteration_and_the_run_goes_on(tmp_path, workers):
    config = tmp_path / "crash.yaml"
    config.write_text(CONFIG.format(workers=workers))
    run = CrashRun(tmp_path / "run", config, random.Random(1))
    for _ in range(2):
        run.stop_gently(signal.SIGINT)
        assert run.check() is not None
        assert "stopping once this iteration is saved" in run.log.read_text()
        assert f"--resume --run-dir {run.run_dir}" in run.log.read_text()


def can_mount() -> bool:
    """Say whether this user may mount a file system that only a child process sees."""
    if shutil.which("unshare") is None:
        return False
    command = ["unshare", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.slow
def test_a_disk_that_is_full_before_any_file_operation_stops_the_run_clearly_and_harms_nothing(tmp_path):
    if not can_mount():
        pytest.skip("needs a user namespace with a file system of its own (unshare --map-root-user --mount)")
    done = subprocess.run(
        ["unshare", "--map-root-user", "--mount", sys.executable, "-m", "tests.train.full_disk_runs", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert {"replay/N.npz", "metrics.jsonl", "manifest.json"} <= set(found["named"])
