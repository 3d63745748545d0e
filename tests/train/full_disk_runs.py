"""Fill the disk before every single file operation of a resumed run, through a whole iteration.

    unshare --map-root-user --mount python -m tests.train.full_disk_runs DIR [--every N]

mounts a small file system of its own on DIR/disk, which no other process sees and which ends with this one. Each time
the trainer must stop with exit code 1, name a file of the run and the free space, and leave a run that goes on once
there is space again.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
from pathlib import Path
from typing import Any

from tests.train.crash_child import FILLER
from tests.train.crash_runs import CONFIG, START_TIMEOUT_S, CrashRun

DISK_MB = 12
MESSAGE = r"error: {run_dir}/\S+: No space left on device \([0-9.]+ MB are free"


def operations_of_an_iteration(run: CrashRun) -> int:
    """Resume the run once; return how many file operations it took until an iteration was done and saved."""
    tally = run.config.with_suffix(".tally")
    tally.unlink()
    run.stop_gently()
    return tally.stat().st_size


def fill_at(run: CrashRun, number: int) -> str:
    """Fill the disk before an operation, free it again, and return the message with which the trainer stopped."""
    said = run.log.stat().st_size
    process = run.start("fill", number)
    process.join(START_TIMEOUT_S)
    (run.run_dir.parent / FILLER).unlink()
    log = run.log.read_text()[said:]
    found = re.search(MESSAGE.format(run_dir=run.run_dir), log)
    assert process.exitcode == 1, f"operation {number}: exit {process.exitcode}: {log[-3000:]}"
    assert found is not None, f"operation {number}: {log[-3000:]}"
    assert "Traceback" not in log, log
    return found.group().removeprefix(f"error: {run.run_dir}/")


def run_full_disks(folder: Path, *, every: int) -> dict[str, Any]:
    """Fill the disk before every n-th operation; return what happened, JSON-able."""
    disk = folder / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "tmpfs", str(disk)], check=True)
    config = folder / "full.yaml"
    config.write_text(CONFIG.format(workers=0))
    run = CrashRun(disk / "run", config, random.Random(1))
    run.stop_gently()
    operations = operations_of_an_iteration(run)
    named = set()
    for number in range(1, operations + 1, every):
        named.add(re.sub(r"[0-9]+", "N", fill_at(run, number).partition(":")[0]))
        run.check()
    run.stop_gently()
    checkpoint = run.check()
    assert checkpoint is not None
    return {"operations": operations, "iterations": checkpoint.iteration, "named": sorted(named)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--every", type=int, default=1)
    given = parser.parse_args()
    print(json.dumps(run_full_disks(given.folder, every=given.every)))
