"""Games kept in a folder, one JSON line each, under a key that covers all that decides the game.

So a folder may hold the games of any settings, and a command goes on where it stopped.

    {"key": "1f0c2a9e51aa02d3", "start_fen": "...", "opening_plies": 4, "actions": [...], "white_score": 0.5,
     "ending": "repetition"}
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from filelock import FileLock, Timeout

from models.storage import CorruptFile, naming_full_disk, parse_json, read_regular
from train.balance_counts import BalanceGame
from train.config_errors import ConfigError

FILE = "balance_games.jsonl"
LARGEST_ACTION = 1 << 16
FIELDS = {
    "key": (str,),
    "start_fen": (str,),
    "opening_plies": (int,),
    "actions": (list,),
    "white_score": (float, int, type(None)),
    "ending": (str,),
}


class GameStore:
    """Games by key; those of a folder are read from it and added to it, by one process at a time."""

    def __init__(self, folder: Path | None) -> None:
        """Name the folder.

        Args:
            folder: where games are kept, made if missing; None keeps them in memory alone.
        """
        self._path = None if folder is None else folder / FILE
        self._games: dict[str, BalanceGame] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Open the folder.

        Raises:
            ConfigError: another process has it open.
            CorruptFile: a line of its file is no game.
        """
        if self._path is not None:
            with naming_full_disk(self._path):
                self._path.parent.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self._path.parent / f".{FILE}.lock")
            try:
                lock.acquire(timeout=0)
            except Timeout:
                raise ConfigError(f"{self._path}: another process is playing these games") from None
            self._stack.callback(lock.release)
            try:
                self._read(self._path)
            except BaseException:
                self._stack.close()
                raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def get(self, key: str) -> BalanceGame | None:
        """Return a game that has been played; None if it has not."""
        return self._games.get(key)

    def add(self, games: Iterable[tuple[str, BalanceGame]]) -> None:
        """Keep games by their keys.

        Raises:
            OSError: they cannot be written, as where the disk is full; the file keeps the games before.
        """
        added = dict(games)
        self._games |= added
        if self._path is not None:
            lines = b"".join(_line(key, game) for key, game in added.items())
            with naming_full_disk(self._path), self._path.open("ab") as file:
                file.write(lines)

    def _read(self, path: Path) -> None:
        """Read the games of a file; a last line that a kill has torn is dropped."""
        if not path.exists():
            return
        content = read_regular(path)
        *lines, torn = content.split(b"\n")
        for number, line in enumerate(lines, 1):
            key, game = _parsed(line, f"{path}:{number}")
            self._games[key] = game
        if torn:
            with path.open("r+b") as file:
                file.truncate(len(content) - len(torn))


def _line(key: str, game: BalanceGame) -> bytes:
    document = {
        "key": key,
        "start_fen": game.start_fen,
        "opening_plies": game.opening_plies,
        "actions": game.actions.tolist(),
        "white_score": None if math.isnan(game.white_score) else game.white_score,
        "ending": game.ending,
    }
    return json.dumps(document, allow_nan=False).encode() + b"\n"


def _parsed(line: bytes, place: str) -> tuple[str, BalanceGame]:
    fields: Any = parse_json(line, Path(place))
    if not isinstance(fields, dict) or fields.keys() != FIELDS.keys():
        raise CorruptFile(f"{place}: no game: expected an object with {', '.join(FIELDS)}")
    wrong = [name for name, kinds in FIELDS.items() if type(fields[name]) not in kinds]
    if wrong or any(type(action) is not int or not 0 <= action < LARGEST_ACTION for action in fields["actions"]):
        raise CorruptFile(f"{place}: no game: {', '.join(wrong) or 'actions'} of another type or range")
    score = fields["white_score"]
    if score not in (None, 0, 0.5, 1):
        raise CorruptFile(f"{place}: no game: white_score: expected 0, 0.5, 1 or null, got {score}")
    game = BalanceGame(
        start_fen=fields["start_fen"],
        opening_plies=fields["opening_plies"],
        actions=np.array(fields["actions"], np.int32),
        white_score=math.nan if score is None else float(score),
        ending=fields["ending"],
    )
    return fields["key"], game
