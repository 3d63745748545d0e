"""Files that either exist whole or not at all, and know when they have been damaged.

A write goes to a temporary name, reaches the disk, and is then renamed, so that a kill or a full disk at any
instant leaves the old state.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

TEMPORARY_PREFIX = ".tmp-"
"""Names that begin so are unfinished writes; they never count."""


class CorruptFile(ValueError):
    """A stored file that is missing, truncated, changed or of another kind. The message names it."""


class CheckpointMismatch(ValueError):
    """A stored file of other rules, another action encoding, another network or a newer format."""


def sha256_hex(content: bytes) -> str:
    """Return the SHA-256 of content as 64 hex digits."""
    return hashlib.sha256(content).hexdigest()


def write_durably(path: Path, content: bytes) -> None:
    """Write a new file and wait until the disk has it; not atomic.

    Raises:
        FileExistsError: there is such a file.
        OSError: the disk is full or the folder cannot be written.
    """
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a reader sees the old content or all of the new; the folder must exist.

    Raises:
        OSError: the disk is full or the folder cannot be written; the old file is as it was.
    """
    temporary = path.with_name(f"{TEMPORARY_PREFIX}{os.getpid()}-{path.name}")
    temporary.unlink(missing_ok=True)
    try:
        write_durably(temporary, content)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def read_regular(path: Path) -> bytes:
    """Read a file that is neither missing nor a link.

    Raises:
        CorruptFile: there is no such regular file.
    """
    if path.is_symlink() or not path.is_file():
        raise CorruptFile(f"{path}: missing")
    return path.read_bytes()


def sync_folder(folder: Path) -> None:
    """Wait until the disk has the folder's entries (renames, new files)."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
