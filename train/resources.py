"""What a run uses of this machine: core time, memory, shared memory and disk.

Linux: processes and cores are read from /proc by psutil. Workers on other machines of a cluster are not seen.
Sizes are in MB = 10^6 bytes. Resident memory counts pages that processes share once for each of them.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psutil

MB, GB = 1e6, 1e9
TRAINER, WORKER, RAY = "trainer", "worker", "ray"
ACTOR_TITLE = re.compile(r"ray::(?!IDLE|\w*Agent\b)")
"""How Ray titles the process of an actor, unlike its agents and processes that have no work yet."""
SHARED_MEMORY = "/dev/shm/"
"""Where Ray keeps its object store."""
BLOCK_BYTES = 512
"""Unit of `st_blocks`."""

Numbers = dict[str, float | int | None]


class IdleMeter:
    """The share of this machine's core time that was idle since a moment, of the cores that this process may use."""

    def __init__(self) -> None:
        """Begin now."""
        self.restart()

    def restart(self) -> None:
        """Begin anew."""
        self._idle, self._total = _core_seconds()

    def share(self) -> float | None:
        """Return the idle share in [0, 1] so far; None where no time has passed on the cores' clocks."""
        idle, total = _core_seconds()
        passed = total - self._total
        return min(1.0, max(0.0, (idle - self._idle) / passed)) if passed > 0 else None


class Usage(NamedTuple):
    """A process of the run.

    Attributes:
        role: `TRAINER`, `WORKER` or `RAY`.
        memory: Resident bytes.
        core_seconds: Used since it began.
    """

    role: str
    memory: int
    core_seconds: float


class ResourceMeter:
    """Measures a run, period by period; this process is its trainer."""

    def __init__(self, run_dir: Path) -> None:
        """Begin a period.

        Args:
            run_dir: The run's folder.
        """
        self._run_dir = run_dir
        self._trainer = psutil.Process()
        self._idle = IdleMeter()
        self._started = time.monotonic()
        self._usages = dict(self._processes())
        self._peak = 0.0

    def numbers(self) -> Numbers:
        """Return the `perf` metrics of machine and memory, and begin the next period."""
        passed = time.monotonic() - self._started
        before, self._usages = self._usages, dict(self._processes())
        used = sum(
            usage.core_seconds - (before[key].core_seconds if key in before else 0.0)
            for key, usage in self._usages.items()
        )
        idle = self._idle.share()
        self._idle.restart()
        self._started = time.monotonic()
        return {
            "perf/idle_core_share": idle,
            "perf/run_core_share": used / (passed * len(_cores())) if passed > 0 else None,
            **self._memory(),
            "perf/shared_memory_mb": self._shared_memory() / MB,
            "perf/run_folder_mb": folder_bytes(self._run_dir) / MB,
            "perf/disk_free_gb": shutil.disk_usage(self._run_dir).free / GB,
        }

    def _memory(self) -> Numbers:
        sizes: dict[str, list[int]] = {TRAINER: [], WORKER: [], RAY: []}
        for usage in self._usages.values():
            sizes[usage.role].append(usage.memory)
        total = sum(map(sum, sizes.values())) / MB
        self._peak = max(self._peak, total)
        return {
            "perf/memory_trainer_mb": sum(sizes[TRAINER]) / MB,
            "perf/memory_worker_mb": max(sizes[WORKER]) / MB if sizes[WORKER] else None,
            "perf/memory_ray_mb": sum(sizes[RAY]) / MB if sizes[RAY] else None,
            "perf/memory_total_mb": total,
            "perf/memory_peak_mb": self._peak,
        }

    def _processes(self) -> Iterator[tuple[tuple[int, float], Usage]]:
        """Yield the processes that are there now by number and start; one that ends meanwhile is left out."""
        for process in [self._trainer, *self._trainer.children(recursive=True)]:
            try:
                with process.oneshot():
                    times = process.cpu_times()
                    usage = Usage(self._role(process), process.memory_info().rss, times.user + times.system)
                yield (process.pid, process.create_time()), usage
            except psutil.Error:
                continue

    def _role(self, process: psutil.Process) -> str:
        if process.pid == self._trainer.pid:
            return TRAINER
        return WORKER if ACTOR_TITLE.match(" ".join(process.cmdline())) else RAY

    def _shared_memory(self) -> int:
        """Return the bytes of shared memory that trainer and Ray hold open: Ray's object store has no name."""
        blocks: dict[int, int] = {}
        for (pid, _), usage in self._usages.items():
            if usage.role != WORKER:
                blocks.update(_shared_files(pid))
        return sum(blocks.values()) * BLOCK_BYTES


def folder_bytes(folder: Path) -> int:
    """Return the size of all files below a folder; what disappears meanwhile does not count."""
    total = 0
    folders = [str(folder)]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    else:
                        total += entry.stat(follow_symlinks=False).st_size
        except FileNotFoundError:
            continue
    return total


def num_cores() -> int:
    """Return how many cores this process may use."""
    return len(_cores())


def _cores() -> set[int]:
    return os.sched_getaffinity(0)


def _core_seconds() -> tuple[float, float]:
    """Return the idle and the whole time of the cores that this process may use, in seconds since the machine began."""
    times = [core for number, core in enumerate(psutil.cpu_times(percpu=True)) if number in _cores()]
    idle = sum(core.idle + core.iowait for core in times)
    busy = sum(core.user + core.nice + core.system + core.irq + core.softirq + core.steal for core in times)
    return idle, idle + busy  # guests' time is in that of users already


def _shared_files(pid: int) -> Iterator[tuple[int, int]]:
    """Yield inode and blocks of the files of shared memory that a process has open."""
    folder = f"/proc/{pid}/fd"
    try:
        for name in os.listdir(folder):
            path = f"{folder}/{name}"
            if os.readlink(path).startswith(SHARED_MEMORY):
                status = os.stat(path)
                yield status.st_ino, status.st_blocks
    except OSError:  # the process has ended, or has closed the file
        return
