"""A folder for the processes of one local Ray, and a process that ends them and removes it, however we end.

Ray's own processes notice the death of a killed trainer late or, when suspended, never. This file, run as a program,
waits until the trainer closes a pipe (the kernel does so for a killed one), then kills every process that has a file of
the folder open for writing (all of Ray's keep their logs there) and removes the folder.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

PREFIX = "asylum-zero-"
PATIENCE_S = 20.0
PAUSE_S = 0.1


class SessionFolder:
    """A folder whose writers die with this process.

    Attributes:
        path: The folder; under `RAY_TMPDIR` or /tmp, since Ray's sockets need a short path.
    """

    def __init__(self) -> None:
        """Make the folder and start its reaper."""
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=os.environ.get("RAY_TMPDIR", "/tmp")))
        # In a session of its own: a signal to our process group must not end it before it has done its work.
        self._reaper = subprocess.Popen(
            [sys.executable, "-I", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert self._reaper.stdin is not None
        self._reaper.stdin.write(f"{os.getpid()} {self.path}".encode())
        self._reaper.stdin.flush()

    def close(self) -> None:
        """Have the folder's other writers ended and the folder removed, and wait until that is done."""
        assert self._reaper.stdin is not None
        self._reaper.stdin.close()
        try:
            self._reaper.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._reaper.kill()
            self._reaper.wait()


def writers(folder: Path) -> list[psutil.Process]:
    """Return the processes, of those that we may inspect, that have a file in a folder open for writing."""
    found = []
    for process in psutil.process_iter():
        try:
            files = process.open_files()
        except psutil.Error:
            continue
        if any(file.mode != "r" and Path(file.path).is_relative_to(folder) for file in files):
            found.append(process)
    return found


def reap(folder: Path, *, spared: int) -> None:
    """Kill a folder's writers and remove it.

    Args:
        folder: The folder.
        spared: A process that lives on.
    """
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        left = [process for process in writers(folder) if process.pid not in {spared, os.getpid()}]
        if not left:
            break
        for process in left:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        time.sleep(PAUSE_S)
    shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    """Read whom to spare and the folder; at the end of the pipe, reap."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    spared, _, folder = sys.stdin.read().partition(" ")
    reap(Path(folder).resolve(), spared=int(spared))


if __name__ == "__main__":
    main()
