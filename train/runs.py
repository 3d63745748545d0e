"""A run's folder: its config, its manifest, its lock, and what is where.

runs/<name>/ config.yaml  manifest.json  metrics.jsonl  checkpoints/  replay/  quarantine/  uncommitted/  tensorboard/
             games/  warm_start/  report/  .lock  .holder.json
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from envs import Variant
from models.checkpoint import FOLDER, Checkpoint, checkpoint_paths, load_checkpoint, load_latest
from models.pruning import set_aside_newer
from models.storage import (
    CheckpointMismatch,
    CorruptFile,
    parse_json,
    read_regular,
    remove_unfinished,
    sha256_hex,
    write_atomically,
)
from train.config import ConfigError, RunConfig, load_config
from train.plugins import RECORD, Plugin, check_names, load_plugins
from train.provenance import code_version, provenance, versions
from train.run_lock import HOLDER_FILE, LOCK_FILE, locked
from train.shards import ShardInfo, read_index

CONFIG_FILE, MANIFEST_FILE = "config.yaml", "manifest.json"
OWN_FOLDERS = (FOLDER, "replay", "quarantine", "uncommitted", "games", "warm_start", "tensorboard", "report")
OWN_FILES = (CONFIG_FILE, MANIFEST_FILE, "metrics.jsonl", LOCK_FILE, HOLDER_FILE)
"""What a run writes in its folder; other things there are let be."""
FORMAT = 1
RESUMED, INITIAL_WEIGHTS = "resumed", "initial_weights"
"""Keys of the manifest: each time the run was taken up again, and where its first weights came from."""
RESUMES_KEPT = 100
UNCOMMITTED_KEPT = 16
"""Shards that no checkpoint names: the newest so many stay in `uncommitted/`."""
SHARDS = "shards"
"""Key of a checkpoint's state: the index of the run's shards."""


class RunFolder:
    """One run's folder, locked against a second trainer until closed."""

    def __init__(self, path: Path) -> None:
        """Lock a folder and clear away what killed writes left in it.

        Args:
            path: The folder; made if missing.

        Raises:
            ConfigError: Another trainer is at work there, or something in the folder is a link.
        """
        self.path = path
        self.replay = path / "replay"
        self.quarantine = path / "quarantine"
        self.uncommitted = path / "uncommitted"
        self.report = path / "report"
        path.mkdir(parents=True, exist_ok=True)
        _refuse_links(path)
        with ExitStack() as stack:
            stack.enter_context(locked(path))
            for name in OWN_FOLDERS:
                remove_unfinished(path / name)
            for name in OWN_FILES:
                remove_unfinished(path, of=name)
            self._held = stack.pop_all()

    def close(self) -> None:
        """Let the folder go."""
        self._held.close()

    def refuse_old_run(self) -> None:
        """Raise ConfigError if there is a run here already."""
        if (self.path / CONFIG_FILE).exists():
            raise ConfigError(
                f"{self.path}: there is a run here already; go on with --resume, or choose another --run-dir"
            )

    def begin(
        self,
        cfg: RunConfig,
        variant: Variant,
        plugins: Iterable[Plugin] = (),
        *,
        initial_weights: Mapping[str, Any] | None = None,
    ) -> None:
        """Write the manifest and then the config of a new run; with its config the run exists.

        Args:
            cfg: The config.
            variant: The game.
            plugins: The plugins that it loaded.
            initial_weights: Where its first weights came from, if not from its seed.

        Raises:
            ConfigError: There is a run here already.
        """
        self.refuse_old_run()
        manifest: dict[str, Any] = {
            "format": FORMAT,
            "started": _now(),
            "host": socket.gethostname(),
            **provenance(variant, config_hash=cfg.config_hash(), seeds={"run": cfg.seed}),
            "code": code_version(),
            RECORD: [plugin.record() for plugin in plugins],
            INITIAL_WEIGHTS: initial_weights,
            RESUMED: [],
        }
        write_atomically(self.path / MANIFEST_FILE, json.dumps(manifest, indent=1).encode())
        write_atomically(self.path / CONFIG_FILE, cfg.to_yaml().encode())

    def take_up(self) -> Checkpoint | None:
        """Return the newest valid checkpoint of an old run; those above it, which were refused, are set aside.

        Returns:
            The checkpoint; None if the run was stopped before its first one.

        Raises:
            CorruptFile: There are checkpoints but no valid one, or games but no checkpoint.
            CheckpointMismatch: See `load_latest`.
        """
        checkpoint = load_latest(self.path)
        if checkpoint is None:
            if any(self.replay.glob("*.npz")):
                raise CorruptFile(f"{self.path / FOLDER}: no checkpoint, though the run has games in {self.replay}")
            return None
        set_aside_newer(self.path, checkpoint.iteration)
        return checkpoint

    def record_resume(self, iteration: int) -> None:
        """Add to the manifest that the run goes on: when, where, after which iteration and with which code."""
        path = self.path / MANIFEST_FILE
        manifest = _read_manifest(self.path)
        entry = {
            "time": _now(),
            "host": socket.gethostname(),
            "after_iteration": iteration,
            "versions": versions(),
            "code": code_version(),
        }
        with reading(path):
            manifest[RESUMED] = [*manifest.get(RESUMED, []), entry][-RESUMES_KEPT:]
        write_atomically(path, json.dumps(manifest, indent=1).encode())

    def committed_shards(self, checkpoint: Checkpoint) -> list[ShardInfo]:
        """Return the shards that a checkpoint names, each of which is there as it was written.

        Raises:
            CorruptFile: Names every one that is missing or changed, and what can be done; or the checkpoint's list
                is of another shape.
        """
        shards = read_index(checkpoint.state.get(SHARDS), str(checkpoint.path))
        damaged = {shard.name: fault for shard in shards if (fault := _fault(self.replay, shard))}
        if damaged:
            raise CorruptFile(
                f"{'; '.join(damaged.values())}. {checkpoint.path} counts {'its' if len(damaged) == 1 else 'their'} "
                f"games. Put back a copy, or go back to before them: {self._way_back(damaged.keys())}"
            )
        return shards

    def set_aside_uncommitted(self, committed: set[str]) -> list[str]:
        """Move shards that the checkpoint at hand does not name to `uncommitted/`; return their names.

        All of these stay there, since newer checkpoints, moved away or refused, may name them; of earlier ones the
        newest few.
        """
        earlier = sorted(self.uncommitted.glob("*.npz"))
        loose = [file for file in sorted(self.replay.glob("*.npz")) if file.name not in committed]
        for file in loose:
            self.uncommitted.mkdir(exist_ok=True)
            file.replace(self.uncommitted / f"{time.time_ns()}-{file.name}")
        for old in earlier[:-UNCOMMITTED_KEPT]:
            old.unlink()
        return [file.name for file in loose]

    def _way_back(self, damaged: Iterable[str]) -> str:
        """Say which checkpoint is the newest that needs none of the damaged shards."""
        unwanted = set(damaged)
        for path in checkpoint_paths(self.path):
            try:
                shards = read_index(load_checkpoint(path).state.get(SHARDS), str(path))
            except (CorruptFile, CheckpointMismatch):
                continue
            if not unwanted & {shard.name for shard in shards}:
                return f"move the checkpoints above {path.name} out of {path.parent}"
        return f"none of the checkpoints in {self.path / FOLDER} is that old"


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what a state of another shape raises, while it is read, into CorruptFile that names `path`."""
    try:
        yield
    except (CorruptFile, CheckpointMismatch, ConfigError):
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RuntimeError) as error:
        raise CorruptFile(f"{path}: its state is of another shape ({type(error).__name__}: {error})") from error


def default_run_dir(cfg: RunConfig) -> Path:
    """Return the folder of a new run: its name, or the game and the time."""
    name = cfg.name or f"{Path(cfg.variant).stem}-{time.strftime('%Y%m%d-%H%M%S')}"
    return Path(cfg.run_root) / name


def plugins_of_run(
    cfg: RunConfig, run_dir: Path, *, resume: bool, given: Iterable[str | Path] = ()
) -> tuple[Plugin, ...]:
    """Load a run's plugins and check every name that needs them; nothing is written.

    Args:
        cfg: The run's config.
        run_dir: The run's folder, which says what it began with, but is never asked for code.
        resume: Go on with a run: load what is given. A new run loads what its config names.
        given: Files that the user of a resumed run names.

    Raises:
        ConfigError: A plugin cannot be loaded, or the config has a name that none of them registers.
    """
    plugins = load_plugins(given if resume else cfg.plugins)
    check_names(cfg, recorded=_recorded_plugins(run_dir) if resume else ())
    return plugins


def _recorded_plugins(run_dir: Path) -> list[dict[str, Any]]:
    """Return `Plugin.record` of each plugin that a run began with."""
    recorded = _read_manifest(run_dir).get(RECORD, [])
    if not isinstance(recorded, list) or not all(isinstance(entry, dict) for entry in recorded):
        raise CorruptFile(f"{run_dir / MANIFEST_FILE}: {RECORD} is no list of mappings")
    return recorded


def _read_manifest(run_dir: Path) -> dict[str, Any]:
    """Return a run's manifest, empty where there is none."""
    path = run_dir / MANIFEST_FILE
    if not os.path.lexists(path):
        return {}
    manifest = parse_json(read_regular(path), path)
    if not isinstance(manifest, dict):
        raise CorruptFile(f"{path}: expected a mapping")
    return manifest


def _fault(folder: Path, shard: ShardInfo) -> str | None:
    """Say what is wrong with a shard's file; None if nothing is."""
    path = folder / shard.name
    try:
        content = read_regular(path)
    except CorruptFile as error:
        return str(error)
    if sha256_hex(content) != shard.sha256:
        return f"{path}: {len(content)} bytes whose SHA-256 is not the checkpoint's"
    return None


def _refuse_links(run_dir: Path) -> None:
    """Raise ConfigError if something inside a run's folder is a link, through which it would write elsewhere."""
    own = [run_dir / name for name in (*OWN_FOLDERS, *OWN_FILES)]
    inside = [
        Path(parent, name)
        for folder in own
        if not folder.is_symlink()
        for parent, folders, files in os.walk(folder)
        for name in (*folders, *files)
    ]
    for path in (*own, *inside):
        if path.is_symlink():
            raise ConfigError(f"{path}: a link, but a run's own files must lie in its folder")


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S%z")


def read_config(run_dir: Path) -> RunConfig:
    """Read a run's own config.

    Raises:
        ConfigError: There is no run in the folder, or its config is not valid.
    """
    path = run_dir / CONFIG_FILE
    if not path.is_file():
        raise ConfigError(f"{run_dir}: no run here ({CONFIG_FILE} is missing); start one with its config")
    return load_config(path)
