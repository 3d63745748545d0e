"""Variant files of a few lines, written into a folder of their own, and what comes of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from envs import InvalidVariant, load_variant
from envs.variant import Variant


def load(folder: Path, text: str, options: dict[str, bool] | None = None) -> Variant:
    (folder / "own.yaml").write_text(text + "\n")
    return load_variant(folder / "own.yaml", options)


def chess(folder: Path, text: str, options: dict[str, bool] | None = None) -> Variant:
    return load(folder, f"name: Own\nextends: chess\n{text}", options)


def refusal(folder: Path, text: str, parent: str = "chess") -> str:
    (folder / "own.yaml").write_text(f"name: Own\nextends: {parent}\n{text}\n")
    with pytest.raises(InvalidVariant) as caught:
        load_variant(folder / "own.yaml")
    return str(caught.value)


def letters(variant: Variant, types: tuple[int, ...]) -> str:
    return "".join(variant.piece_types[number].letter for number in types)
