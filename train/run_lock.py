"""One trainer per run: a lock that the system lets go when its holder dies, and a note of who holds it.

The lock is `flock` on `.lock`; the note beside it, `.holder.json`, only informs.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from models.storage import FULL, CorruptFile, parse_json, read_regular, write_atomically
from train.config_errors import ConfigError

LOCK_FILE, HOLDER_FILE = ".lock", ".holder.json"
_log = logging.getLogger(__name__)


@contextmanager
def locked(run_dir: Path) -> Iterator[None]:
    """Hold a run's lock.

    A trainer that was killed leaves its note but not its lock, and blocks nobody. A note left by another machine is
    worth a warning: some network file systems do not carry locks between machines.

    Args:
        run_dir: the run's folder.

    Raises:
        ConfigError: another trainer holds it, or the file system cannot lock.
        DiskFull: there is no room for the note.
    """
    note = run_dir / HOLDER_FILE
    lock = FileLock(run_dir / LOCK_FILE, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise ConfigError(f"{run_dir}: another trainer is at work on this run{_held_by(note)}") from None
    except (NotImplementedError, OSError) as error:
        if isinstance(error, OSError) and error.errno in FULL:
            raise
        raise ConfigError(
            f"{run_dir}: this file system cannot lock a run ({error}); choose a --run-dir on a local one"
        ) from None
    try:
        holder = _holder(note)
        if holder and holder[1] != socket.gethostname():
            _log.warning(
                "%s was last held%s and never let go; if that trainer still lives there, stop it: "
                "this file system may not carry locks between machines",
                run_dir,
                _held_by(note),
            )
        write_atomically(note, json.dumps(_self_description()).encode())
        yield
        note.unlink(missing_ok=True)
    finally:
        lock.release()


def _self_description() -> dict[str, str | int]:
    return {"pid": os.getpid(), "host": socket.gethostname(), "since": time.strftime("%Y-%m-%dT%H:%M:%S%z")}


def _holder(note: Path) -> tuple[str, str, str] | None:
    """Return process, host and time of a note; None where there is none that can be read."""
    try:
        document = parse_json(read_regular(note), note)
        return str(document["pid"]), str(document["host"]), str(document["since"])
    except (CorruptFile, LookupError, TypeError):
        return None


def _held_by(note: Path) -> str:
    holder = _holder(note)
    return " by process {} on {} since {}".format(*holder) if holder else ""
