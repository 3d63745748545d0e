"""The time that players may take for each move."""

from __future__ import annotations

LEAST_SECONDS, MOST_SECONDS = 0.001, 3600.0


def check_seconds(seconds: float | None) -> None:
    """Refuse a time for each move that is out of range; None is no time.

    Raises:
        ValueError: it is.
    """
    if seconds is not None and not LEAST_SECONDS <= seconds <= MOST_SECONDS:
        raise ValueError(f"time for each move: expected {LEAST_SECONDS:g} to {MOST_SECONDS:g} seconds, got {seconds:g}")
