"""Files that either exist whole or not at all, and know when they have been damaged.

A write goes to a temporary name, reaches the disk, and is then renamed, so that a kill or a full disk at any
instant leaves the old state.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

TEMPORARY_PREFIX = ".tmp-"
"""Names that begin so are unfinished writes; they never count."""
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What the system answers where a file cannot grow."""
BYTES_PER_MB = 1_000_000


class CorruptFile(ValueError):
    """A stored file that is missing, truncated, changed or of another kind. The message names it."""


class CheckpointMismatch(ValueError):
    """A stored file of other rules, another action encoding, another network or a newer format."""


class DiskFull(OSError):
    """A file that could not be written for lack of space. The message names it and what is free there."""

    def __str__(self) -> str:
        return f"{self.filename}: {self.strerror}"


def sha256_hex(content: bytes) -> str:
    """Return the SHA-256 of content as 64 hex digits."""
    return hashlib.sha256(content).hexdigest()


@contextmanager
def naming_full_disk(path: Path) -> Iterator[None]:
    """Turn what a full disk raises while `path` is written into `DiskFull`; other errors pass."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL or isinstance(error, DiskFull):
            raise
        folder = next(folder for folder in path.absolute().parents if folder.exists())
        free = shutil.disk_usage(folder).free / BYTES_PER_MB
        reason = f"{os.strerror(error.errno)} ({free:.1f} MB are free on its file system)"
        raise DiskFull(error.errno, reason, str(path)) from error


def write_durably(path: Path, content: bytes) -> None:
    """Write a new file and wait until the disk has it; not atomic.

    Raises:
        FileExistsError: there is such a file.
        DiskFull: there is no room for it.
        OSError: the folder cannot be written.
    """
    with naming_full_disk(path):
        _write_new(path, content)


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a reader sees the old content or all of the new; the folder must exist.

    Raises:
        DiskFull: there is no room for it; the old file is as it was.
        OSError: the folder cannot be written; the old file is as it was.
    """
    temporary = path.with_name(f"{TEMPORARY_PREFIX}{os.getpid()}-{path.name}")
    temporary.unlink(missing_ok=True)
    try:
        with naming_full_disk(path):
            _write_new(temporary, content)
            temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def read_regular(path: Path) -> bytes:
    """Read a file that is neither missing nor a link, a folder or a device.

    Raises:
        CorruptFile: there is no such regular file, or the disk cannot read it.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise CorruptFile(f"{path}: missing") from None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.ENOTDIR, errno.EIO):
            raise CorruptFile(f"{path}: expected a regular file ({error.strerror})") from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise CorruptFile(f"{path}: expected a regular file")
    with open(descriptor, "rb") as file:
        try:
            return file.read()
        except OSError as error:
            raise CorruptFile(f"{path}: unreadable ({error.strerror})") from None


def parse_json(content: bytes, path: Path) -> Any:
    """Read JSON that has one meaning: no NaN or infinity, no key twice, no bottomless nesting.

    Args:
        content: UTF-8 text.
        path: its name in errors.

    Raises:
        CorruptFile: it is anything else.
    """
    try:
        return json.loads(content, parse_constant=_refuse_constant, object_pairs_hook=_unique_keys)
    except (ValueError, RecursionError) as error:
        raise CorruptFile(f"{path}: no JSON ({error})") from None


def remove_unfinished(folder: Path, *, of: str = "") -> None:
    """Remove what killed writes and removals left in a folder, of files with one ending or of all."""
    for path in folder.glob(f"{TEMPORARY_PREFIX}*{of}"):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def sync_folder(folder: Path) -> None:
    """Wait until the disk has the folder's entries (renames, new files)."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_new(path: Path, content: bytes) -> None:
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"key {next(key for key in keys if keys.count(key) > 1)!r} twice")
    return document
