"""What a run uses of its machine, compared with what the system says of processes that are made for the purpose."""

import mmap
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest

from train.metrics import METRICS
from train.resources import ACTOR_TITLE, IdleMeter, ResourceMeter, folder_bytes

MB = 1e6
SPUN_S = 0.3
SPIN_AND_SLEEP = f"""
import time
while time.process_time() < {1.5 * SPUN_S}:
    pass
time.sleep(600)
"""


def test_the_processes_of_a_run_are_this_one_and_all_below_it(tmp_path: Path) -> None:
    meter = ResourceMeter(tmp_path)
    before, own = time.monotonic(), time.process_time()
    others_mb = sum(child.memory_info().rss for child in psutil.Process().children(recursive=True)) / MB
    with subprocess.Popen([sys.executable, "-c", SPIN_AND_SLEEP]) as child:
        try:
            process = psutil.Process(child.pid)
            while sum(process.cpu_times()[:2]) < SPUN_S:  # user and system
                time.sleep(0.05)
            numbers = meter.numbers()
            child_mb = process.memory_info().rss / MB
        finally:
            child.kill()
    cores = len(os.sched_getaffinity(0))
    used = numbers["perf/run_core_share"] * (time.monotonic() - before) * cores
    assert SPUN_S * 0.9 < used < 2 * (SPUN_S + time.process_time() - own) + 2
    assert numbers["perf/memory_trainer_mb"] == pytest.approx(psutil.Process().memory_info().rss / MB, rel=0.1)
    assert numbers["perf/memory_ray_mb"] == pytest.approx(child_mb + others_mb, rel=0.1)
    parts = numbers["perf/memory_trainer_mb"] + numbers["perf/memory_ray_mb"]
    assert numbers["perf/memory_total_mb"] == pytest.approx(parts)
    after = meter.numbers()
    assert (after["perf/memory_ray_mb"] or 0) == pytest.approx(others_mb, rel=0.1, abs=1)
    assert after["perf/memory_peak_mb"] == numbers["perf/memory_total_mb"]
    assert {name for name in numbers if name.startswith("perf/")} == set(numbers) <= set(METRICS)


def test_the_idle_share_is_a_share_and_begins_anew() -> None:
    meter = IdleMeter()
    end = time.time() + 0.3
    while time.time() < end:
        pass
    assert 0 <= (meter.share() or 0) < 1  # this process was not idle
    meter.restart()
    assert meter.share() is None or 0 <= meter.share() <= 1


def test_actors_are_told_from_agents_and_idle_processes_by_their_titles() -> None:
    titles = [
        "ray::SelfPlayWorker.play",
        "ray::Worker",
        "ray::IDLE",
        "ray::DashboardAgent",
        "ray::RuntimeEnvAgent",
        "raylet",
    ]
    assert [bool(ACTOR_TITLE.match(title)) for title in titles] == [True, True, False, False, False, False]


def test_shared_memory_without_a_name_counts(tmp_path: Path) -> None:
    meter = ResourceMeter(tmp_path)
    before = meter.numbers()["perf/shared_memory_mb"] or 0.0
    size = 3 * mmap.PAGESIZE * 256
    with tempfile.TemporaryFile(dir="/dev/shm") as file:
        os.posix_fallocate(file.fileno(), 0, size)
        assert meter.numbers()["perf/shared_memory_mb"] == pytest.approx(before + size / MB)
    assert meter.numbers()["perf/shared_memory_mb"] == pytest.approx(before)


def test_a_folder_is_as_large_as_the_files_below_it(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "one").write_bytes(b"x" * 100)
    (tmp_path / "a" / "b" / "two").write_bytes(b"x" * 23)
    (tmp_path / "link").symlink_to(tmp_path / "one")
    assert folder_bytes(tmp_path) == 123 + len(os.readlink(tmp_path / "link"))
    assert folder_bytes(tmp_path / "missing") == 0
