"""A dict that lets its oldest entry go: results of a process that may load any number of games."""

from __future__ import annotations

from typing import TypeVar

Value = TypeVar("Value")


def remember(memory: dict[str, Value], key: str, value: Value, most: int) -> Value:
    """Keep a value among at most `most`, the oldest going first where there are too many; return it."""
    while len(memory) >= most:
        del memory[next(iter(memory))]
    memory[key] = value
    return value
