"""Faults planted at random in texts and documents: what the fuzz tests feed the readers with."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 3, 16, 17, 255, 2**31, 2**63, -(2**63), 10**30, 0.5, float("nan"), float("inf"), 1e308,
    "", " ", "k", "K", "é", "\0", "off", "draw", "win", "all", "W", "K", "mfW", "fFfD", "W99999999999", "x" * 3000,
    "a1", "z99", "8/8", "\u2028", [], {}, [None], [[]], {"k": None}, ["k"] * 1500, {"white": "k"}, {"white": ["a1"]},
    {"times": 3, "result": "loss"}, list(range(40)), {"pieces": "all"}, [[[[[[[[]]]]]]]],
)  # fmt: skip


def mutated_text(text: str, alphabet: str, rng: np.random.Generator) -> str:
    """Return a text with one to four letters put in, taken out, changed, swapped, repeated or cut off."""
    for _ in range(int(rng.integers(1, 5))):
        kind, place = int(rng.integers(8)), int(rng.integers(len(text) + 1))
        letter = alphabet[int(rng.integers(len(alphabet)))]
        head, tail = text[:place], text[place:]
        if kind <= 1:
            text = head + letter + tail[1:]
        elif kind == 2:
            text = head + letter + tail
        elif kind == 3:
            text = head + tail[1:]
        elif kind == 4:
            text = head + tail[1:2] + tail[:1] + tail[2:]
        elif kind == 5:
            text = head + tail[: int(rng.integers(12))] * int(rng.integers(1, 4)) + tail
        elif kind == 6:
            text = head + tail[:1].swapcase() + tail[1:]
        elif rng.random() < 0.1:
            text = head
    return text


def mutated_words(text: str, other: str, rng: np.random.Generator) -> str:
    """Return a FEN with a field or a row of another, or a field that is likely to be wrong."""
    words, others = text.split(" "), other.split(" ")
    kind = int(rng.integers(6))
    place = int(rng.integers(min(len(words), len(others))))
    if kind == 0:
        words[place] = others[place]
    elif kind == 1:
        rows, more = words[0].split("/"), others[0].split("/")
        rows[int(rng.integers(len(rows)))] = more[int(rng.integers(len(more)))]
        words[0] = "/".join(rows)
    elif kind == 2:
        words[1] = "b" if words[1] == "w" else "w"
    elif kind == 3:
        words[2] = "".join(letter for letter in "KQkq" if rng.random() < 0.5) or "-"
    elif kind == 4:
        words[3] = "".join(f"{chr(ord('a') + int(rng.integers(10)))}{int(rng.integers(12))}"
                           for _ in range(int(rng.integers(1, 4))))  # fmt: skip
    else:
        words[4:] = [str(int(rng.choice([0, 1, 7, 99, 100, 101, 9999, 10000]))) for _ in words[4:]]
    return " ".join(words)


def mutated_document(document: Any, other: Any, rng: np.random.Generator) -> Any:
    """Return a document with one to three values replaced, taken out, moved, renamed or taken from another."""
    document = copy.deepcopy(document)
    for _ in range(int(rng.integers(1, 4))):
        places = _places(document)
        if not places:
            return document
        container, key = places[int(rng.integers(len(places)))]
        elsewhere = _places(other)
        donor, donor_key = elsewhere[int(rng.integers(len(elsewhere)))]
        kind = rng.random()
        if kind < 0.3:
            container[key] = copy.deepcopy(ODD_VALUES[int(rng.integers(len(ODD_VALUES)))])
        elif kind < 0.45:
            del container[key]
        elif kind < 0.65:
            container[key] = copy.deepcopy(donor[donor_key])
        elif kind < 0.75:
            _rename(container, key, donor_key)
        else:
            container[key] = _nudged(container[key], rng)
    return document


def _places(value: Any) -> list[tuple[Any, Any]]:
    """List every `(container, key)` of a document."""
    if isinstance(value, dict):
        return [(value, key) for key in value] + [place for inner in value.values() for place in _places(inner)]
    if isinstance(value, list):
        return [(value, n) for n in range(len(value))] + [place for inner in value for place in _places(inner)]
    return []


def _rename(container: Any, key: Any, name: Any) -> None:
    if isinstance(container, dict):
        container[name] = container.pop(key)


def _nudged(value: Any, rng: np.random.Generator) -> Any:
    """Return a value near another one."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + int(rng.integers(-2, 3))
    if isinstance(value, str):
        return mutated_text(value, "kqrbnpKQRBNPmfWFDc0123456789/*- w", rng)
    return [value]
