"""A trainer that dies, or whose disk fills up, at a chosen file operation of its run.

    python -m tests.train.crash_child WHAT N RUN_DIR SCRIPT_ARGUMENT...

runs `scripts/train.py` with the arguments and counts what it does to files of the run: opening one, renaming, making
and removing folders and files, waiting for the disk. Before number N, `kill` sends SIGKILL; `fill` writes a file beside
the run until its file system is full, or nearly so; `count` does nothing. Every operation leaves a byte in the file
that $CRASH_COUNT names, so that a parent can tell how many there were.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

EVENTS = ("open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.truncate")
"""Audit events whose first argument is a path; `os.fsync`, which has none, is wrapped."""
FILLER = "filler"
CHUNK, PAGE = 1 << 16, 1 << 12


class FaultPoint:
    """Counts file operations below a folder and makes one of them fail."""

    def __init__(self, run_dir: Path, what: str, number: int) -> None:
        self.run_dir, self.what, self.number = os.path.abspath(run_dir), what, number
        self.seen = 0
        self.is_open = False
        name = os.environ.get("CRASH_COUNT")
        self.tally = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND) if name else -1

    def install(self) -> None:
        """Watch this process from now on; an audit hook cannot be removed."""
        fsync = os.fsync

        def counted_fsync(descriptor: int) -> None:
            self.count()
            fsync(descriptor)

        os.fsync = counted_fsync
        sys.addaudithook(self.hear)

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event not in EVENTS or self.is_open or not isinstance(arguments[0], str | os.PathLike):
            return
        path = os.path.abspath(os.fsdecode(arguments[0]))
        if path.startswith(self.run_dir) and not path.endswith(FILLER):
            self.count()

    def count(self) -> None:
        self.seen += 1
        if self.tally >= 0:
            os.write(self.tally, b".")
        if self.seen == self.number:
            self.is_open = True
            if self.what == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if self.what == "fill":
                fill_disk(Path(self.run_dir).parent, free_pages=self.number % 3)
            self.is_open = False


def fill_disk(folder: Path, *, free_pages: int) -> None:
    """Leave so many pages free on a folder's file system, which must be a small one."""
    descriptor = os.open(folder / FILLER, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for size in (CHUNK, 1):
        try:
            while os.write(descriptor, b"\0" * size):
                pass
        except OSError:
            continue
    os.truncate(descriptor, os.fstat(descriptor).st_size - free_pages * PAGE)
    os.close(descriptor)


def main(arguments: Sequence[str]) -> None:
    what, number, run_dir, *rest = arguments
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
    FaultPoint(Path(run_dir), what, int(number)).install()
    sys.argv = ["train.py", *rest]
    from scripts.train import app

    app()


if __name__ == "__main__":
    main(sys.argv[1:])
