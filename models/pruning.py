"""Which checkpoints of a run are kept: the newest few, every n-th, the first, and always the newest that is valid.

A checkpoint is first renamed to a temporary name and then removed, so that a kill leaves no half of one.
"""

from __future__ import annotations

from pathlib import Path

from models.checkpoint import FILES, FOLDER, checkpoint_paths
from models.sealed_folder import read_sealed, set_aside
from models.storage import TEMPORARY_PREFIX, CheckpointMismatch, CorruptFile, remove_unfinished

REFUSED_KEPT = 3
"""Checkpoints that were refused and set aside: the newest so many stay to be looked at."""


def prune_checkpoints(run_dir: Path, *, keep_last: int, keep_every: int) -> list[int]:
    """Remove the checkpoints that are no longer kept; call it when a new one is on the disk.

    Number 0 stays, which holds the weights that the run began with, and so does the newest valid one, whatever its
    number. Only the holder of the run's lock may call this.

    Args:
        run_dir: the run's folder.
        keep_last: how many of the newest are kept, at least 1.
        keep_every: numbers that it divides are kept; 0 keeps none of these.

    Returns:
        The numbers that were removed, newest first.
    """
    folder = run_dir / FOLDER
    paths = checkpoint_paths(run_dir)
    old = [path for path in paths[keep_last:] if int(path.name) and (not keep_every or int(path.name) % keep_every)]
    if old:
        newest = _newest_valid(paths)
        old = [path for path in old if newest is not None and path != newest]
    refused = sorted(folder.glob("*.refused-*"), key=lambda path: path.lstat().st_mtime_ns, reverse=True)
    for path in (*old, *refused[REFUSED_KEPT:]):
        path.rename(path.with_name(f"{TEMPORARY_PREFIX}{path.name}"))
    remove_unfinished(folder)
    return [int(path.name) for path in old]


def set_aside_newer(run_dir: Path, iteration: int) -> list[str]:
    """Rename the checkpoints above a number, which were refused, so that going on from it can write them anew.

    Returns:
        Their new names, newest first.
    """
    return [set_aside(path).name for path in checkpoint_paths(run_dir) if int(path.name) > iteration]


def _newest_valid(paths: list[Path]) -> Path | None:
    for path in paths:
        try:
            read_sealed(path, required=FILES)
        except (CorruptFile, CheckpointMismatch):
            continue
        return path
    return None
