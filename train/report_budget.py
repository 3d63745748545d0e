"""How long a report may play, and what that came to: kept beside its games, so that the same command goes on.

`budget.json` holds what was asked and what was settled, `{"asked": "<digest>", "settled": {"values_minutes": 6.4}}`.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from models.storage import naming_full_disk, parse_json, read_regular, write_atomically

BUDGET_FILE = "budget.json"
SPARE = 0.04
"""Share of the budget for drawing and writing."""
SECONDS_PER_MINUTE = 60.0
DECIMALS = 3
DIGITS = 16


@dataclass
class Budget:
    """Time for playing, from now on.

    Attributes:
        minutes: in all.
        folder: where what is settled is kept; None keeps nothing.
        asked: everything that what is settled depends on, plain data.
        clock: monotonic seconds.
    """

    minutes: float
    folder: Path | None = None
    asked: Any = None
    clock: Callable[[], float] = time.monotonic
    _started: float = field(init=False)

    def __post_init__(self) -> None:
        """Start the clock."""
        self._started = self.clock()

    def share(self, part: float) -> float:
        """Return a part of the minutes that are left."""
        spent = (self.clock() - self._started) / SECONDS_PER_MINUTE
        return round(part * max(0.0, self.minutes * (1 - SPARE) - spent), DECIMALS)

    def settle(self, name: str, value: Callable[[], float]) -> float:
        """Return what was settled under a name the first time.

        Args:
            name: of the number.
            value: makes it, where nothing is kept.
        """
        found = self.settled(name)
        return self.keep(name, value()) if found is None else found

    def settled(self, name: str) -> float | None:
        """Return what is kept under a name; None without."""
        number = self._read().get(name)
        return None if number is None else float(number)

    def keep(self, name: str, value: float) -> float:
        """Keep a number under a name, and return it."""
        if self.folder is not None:
            document = {"asked": self._digest(), "settled": {**self._read(), name: value}}
            with naming_full_disk(self.folder):
                self.folder.mkdir(parents=True, exist_ok=True)
            write_atomically(self.folder / BUDGET_FILE, (json.dumps(document) + "\n").encode())
        return value

    def _read(self) -> dict[str, Any]:
        path = None if self.folder is None else self.folder / BUDGET_FILE
        if path is None or not path.exists():
            return {}
        document = parse_json(read_regular(path), path)
        is_same = isinstance(document, dict) and document.get("asked") == self._digest()
        return dict(document["settled"]) if is_same else {}

    def _digest(self) -> str:
        return hashlib.sha256(json.dumps(self.asked, sort_keys=True).encode()).hexdigest()[:DIGITS]
