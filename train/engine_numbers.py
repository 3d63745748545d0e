"""Numbers and switches in a protocol's lines."""

from __future__ import annotations

SHOWN = 60
"""Characters of wrong input that are shown."""
LONGEST = 20


class BadInput(ValueError):
    """A line that cannot be obeyed."""


def number(name: str, text: str, low: int, high: int) -> int:
    """Return a whole number.

    Raises:
        BadInput: The text is none, or it is out of range.
    """
    is_number = text.isascii() and text.removeprefix("-").isdigit() and len(text) < LONGEST
    if not is_number or not low <= int(text) <= high:
        raise BadInput(f"{name}: expected a number from {low} to {high}, got '{text[:SHOWN]}'")
    return int(text)


def switch(name: str, text: str) -> bool:
    """Return a switch, `true` or `false`.

    Raises:
        BadInput: The text is neither.
    """
    if text.lower() not in ("true", "false"):
        raise BadInput(f"{name}: expected true or false, got '{text[:SHOWN]}'")
    return text.lower() == "true"
