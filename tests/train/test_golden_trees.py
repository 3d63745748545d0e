"""The search behaves as when its golden trees were written; `golden_trees.py` writes them anew."""

import json

import pytest

from tests.train.golden_trees import CASES, FOLDER, grow, signature

SIGNATURE = "9b4a8d9abd3deecc"


def differences(found, golden, path="tree"):
    """Yield where two trees differ: numbers by more than rounding, anything else at all."""
    if isinstance(found, dict) and isinstance(golden, dict):
        for key in found.keys() | golden.keys():
            yield from differences(found.get(key), golden.get(key), f"{path}.{key}")
    elif isinstance(found, float) and isinstance(golden, float):
        if abs(found - golden) > 1e-4:
            yield f"{path}: {found}, golden {golden}"
    elif found != golden:
        yield f"{path}: {found}, golden {golden}"


@pytest.mark.parametrize("name", CASES)
def test_a_search_grows_the_golden_tree(name):
    golden = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    assert sorted(differences(grow(CASES[name]), golden)) == []


def test_the_signature_of_many_searches_is_unchanged():
    assert signature() == SIGNATURE
