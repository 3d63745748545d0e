"""A run's folder: its config, its manifest, its lock, and what is where.

runs/<name>/ config.yaml  manifest.json  metrics.jsonl  checkpoints/  replay/  quarantine/  tensorboard/  report/
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from envs import Variant
from models.storage import write_atomically
from train.config import ConfigError, RunConfig, load_config
from train.plugins import RECORD, Plugin, check_names, load_plugins
from train.provenance import provenance

CONFIG_FILE, MANIFEST_FILE, LOCK_FILE = "config.yaml", "manifest.json", ".lock"
FORMAT = 1


class RunFolder:
    """One run's folder, locked against a second trainer until closed."""

    def __init__(self, path: Path) -> None:
        """Lock a folder.

        Args:
            path: The folder; made if missing.

        Raises:
            ConfigError: Another trainer is at work there.
        """
        self.path = path
        self.replay = path / "replay"
        self.quarantine = path / "quarantine"
        self.report = path / "report"
        path.mkdir(parents=True, exist_ok=True)
        self._held = ExitStack()
        try:
            self._held.enter_context(FileLock(path / LOCK_FILE, timeout=0))
        except Timeout:
            raise ConfigError(f"{path}: another trainer is at work on this run") from None

    def close(self) -> None:
        """Let the folder go."""
        self._held.close()

    def refuse_old_run(self) -> None:
        """Raise ConfigError if there is a run here already."""
        if (self.path / CONFIG_FILE).exists():
            raise ConfigError(
                f"{self.path}: there is a run here already; go on with --resume, or choose another --run-dir"
            )

    def begin(self, cfg: RunConfig, variant: Variant, plugins: Iterable[Plugin] = ()) -> None:
        """Write the config and the manifest of a new run.

        Args:
            cfg: The config.
            variant: The game.
            plugins: The plugins that it loaded.

        Raises:
            ConfigError: There is a run here already.
        """
        self.refuse_old_run()
        manifest: dict[str, Any] = {
            "format": FORMAT,
            "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
            **provenance(variant, config_hash=cfg.config_hash(), seeds={"run": cfg.seed}),
            RECORD: [plugin.record() for plugin in plugins],
        }
        write_atomically(self.path / MANIFEST_FILE, json.dumps(manifest, indent=1).encode())
        write_atomically(self.path / CONFIG_FILE, cfg.to_yaml().encode())

    def set_aside_uncommitted(self, committed: set[str]) -> list[str]:
        """Move shards that no checkpoint names out of the way; return their names."""
        loose = [file for file in sorted(self.replay.glob("*.npz")) if file.name not in committed]
        for file in loose:
            aside = self.path / "uncommitted"
            aside.mkdir(exist_ok=True)
            file.replace(aside / f"{time.time_ns()}-{file.name}")
        return [file.name for file in loose]


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
    path = run_dir / MANIFEST_FILE
    try:
        return list(json.loads(path.read_bytes()).get(RECORD, ())) if path.is_file() else []
    except ValueError as error:
        raise ConfigError(f"{path}: no JSON ({error})") from None


def read_config(run_dir: Path) -> RunConfig:
    """Read a run's own config.

    Raises:
        ConfigError: There is no run in the folder, or its config is not valid.
    """
    path = run_dir / CONFIG_FILE
    if not path.is_file():
        raise ConfigError(f"{run_dir}: no run here ({CONFIG_FILE} is missing)")
    return load_config(path)
