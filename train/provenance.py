"""What a result rests on: the fields that every machine-readable output carries."""

import platform
import subprocess
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from envs import Variant

ROOT = Path(__file__).resolve().parents[1]
GIT_TIMEOUT_S = 10
PACKAGES = ("asylum-zero", "numpy", "scipy", "numba", "torch", "onnxruntime")


def versions() -> dict[str, str]:
    """Return the versions of Python, of this package and of those that decide numbers."""
    return {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}}


def provenance(variant: Variant, *, config_hash: str | None, seeds: Mapping[str, int]) -> dict[str, Any]:
    """Return game, rules, config, seeds and versions as plain data (JSON-able).

    Args:
        variant: the game.
        config_hash: of the run's config; None where there is none.
        seeds: every seed of the result, by what it seeds.
    """
    return {
        "variant": variant.name,
        "options": dict(variant.options),
        "rules_hash": variant.rules_hash,
        "config_hash": config_hash,
        "seeds": dict(seeds),
        "versions": versions(),
    }


def code_version() -> dict[str, str | bool | None]:
    """Return the git commit of this code and whether tracked files have changed since; None each outside a checkout."""
    if not (ROOT / ".git").exists():
        return {"commit": None, "changed": None}
    commit = _git("rev-parse", "HEAD")
    status = _git("status", "--porcelain", "--untracked-files=no")
    return {"commit": commit, "changed": None if status is None else bool(status)}


def _git(*arguments: str) -> str | None:
    """Return what git says of this checkout, None where there is no git or it fails."""
    command = ["git", "-C", str(ROOT), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=GIT_TIMEOUT_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
