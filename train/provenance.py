"""What a result rests on: the fields that every machine-readable output carries."""

import platform
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from envs import Variant

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
