"""A folder of files that exists if and only if its manifest verifies, and holds nothing that it does not list.

    MANIFEST.json   {"format": 2, "files": {name: SHA-256}, "sha256": of this text}; written last

The folder is written under a temporary name and renamed; an extra, missing or changed file is refused by name.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path

from models.storage import (
    TEMPORARY_PREFIX,
    CheckpointMismatch,
    CorruptFile,
    parse_json,
    read_regular,
    sha256_hex,
    sync_folder,
    write_durably,
)

FORMAT = 2
PLAIN_FORMAT = 1
"""From before there were files beyond the required ones; still read."""
MANIFEST = "MANIFEST.json"
_FILE_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}\.[a-z0-9]{1,16}")


def write_sealed(final: Path, contents: Mapping[str, bytes], *, required: Collection[str]) -> None:
    """Write a folder; when this returns, the disk has it.

    Args:
        final: the folder; there must be none of that name.
        contents: what each file holds; names are lower case with an ending, such as `lanes-000.npz`.
        required: names that every such folder has, in the manifest's order.

    Raises:
        ValueError: a name is of another kind.
        OSError: the disk is full or the folder cannot be written; nothing has changed.
    """
    wrong = [name for name in contents if not _FILE_NAME.fullmatch(name)]
    if wrong:
        raise ValueError(f"file {wrong[0]!r}: expected a name such as lanes-000.npz")
    digests = {name: sha256_hex(content) for name, content in contents.items()}
    temporary = final.with_name(f"{TEMPORARY_PREFIX}{final.name}")
    try:
        temporary.mkdir()
        for name, content in contents.items():
            write_durably(temporary / name, content)
        write_durably(temporary / MANIFEST, _render_manifest(digests, FORMAT, required))
        sync_folder(temporary)
        temporary.rename(final)
    except OSError:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    sync_folder(final.parent)


def read_sealed(path: Path, *, required: Collection[str]) -> dict[str, bytes]:
    """Read every file of a folder, which must be what its manifest says.

    Args:
        path: the folder.
        required: names that it must have.

    Raises:
        CorruptFile: names the file that is missing, extra, truncated, changed or no regular file.
        CheckpointMismatch: it was written by a newer format.
    """
    if path.is_symlink():
        raise CorruptFile(f"{path}: a link, expected a folder")
    digests = _read_manifest(path / MANIFEST, required)
    contents = {}
    for name, digest in digests.items():
        contents[name] = read_regular(path / name)
        if sha256_hex(contents[name]) != digest:
            raise CorruptFile(f"{path / name}: {len(contents[name])} bytes whose SHA-256 is not the manifest's")
    extra = sorted(entry.name for entry in path.iterdir() if entry.name not in {*digests, MANIFEST})
    if extra:
        raise CorruptFile(f"{path / extra[0]}: the manifest does not list it; remove it")
    return contents


def set_aside(path: Path) -> Path:
    """Rename a folder so that it no longer counts; return where it lies."""
    number = 1
    while os.path.lexists(aside := path.with_name(f"{path.name}.refused-{number}")):
        number += 1
    return path.rename(aside)


def _render_manifest(digests: Mapping[str, str], version: int, required: Collection[str]) -> bytes:
    """Return the manifest's only valid text for these digests, its own digest included."""
    names = (*required, *sorted(digests.keys() - set(required)))
    body = {"format": version, "files": {name: digests[name] for name in names}}
    digest = sha256_hex(json.dumps(body).encode())
    return json.dumps({**body, "sha256": digest}, indent=1).encode()


def _read_manifest(path: Path, required: Collection[str]) -> dict[str, str]:
    """Return the SHA-256 of every file by name; `path` is the manifest's."""
    raw = read_regular(path)
    manifest = parse_json(raw, path)
    try:
        version, digests = int(manifest["format"]), dict(manifest["files"])
    except (ValueError, LookupError, TypeError, OverflowError) as error:
        raise CorruptFile(f"{path}: unreadable ({type(error).__name__})") from None
    if version > FORMAT:
        raise CheckpointMismatch(f"{path}: format {version}, this version reads up to {FORMAT}")
    extra = digests.keys() - set(required)
    named_well = set(required) <= digests.keys() and all(_FILE_NAME.fullmatch(name) for name in extra)
    if not named_well or (extra and version == PLAIN_FORMAT) or raw != _render_manifest(digests, version, required):
        raise CorruptFile(f"{path}: changed since it was written")
    return digests
