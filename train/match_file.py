"""The games of matches on disk, one JSON line a game, so that a match goes on where it was stopped.

    {"format": 1, "variant": "asylum", "seed": 0, ...}      what all games rest on
    {"match": ["network@32#1f0c2a9e51aa02d3", "random"], "pair": 0, "first_is_white": true, "score": 1.0, ...}
A line is on the disk before the next game is waited for; one that a kill tore is dropped. Games of other rules,
settings or players never mix: a file with another first line is refused, and a player's key holds a hash of what its
strength rests on (`player_keys.py`). A file that is no file of games stays as it is.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from models.storage import CorruptFile, naming_full_disk, parse_json
from train.config_errors import ConfigError
from train.match_games import PlayedGame
from train.openings import Opening

FORMAT = 1
MATCH = "match"
Pairing = tuple[str, str]
"""Keys of a match's first and second player."""


class GamesInMemory:
    """Games that are forgotten with this process."""

    def __init__(self) -> None:
        """Begin with none."""
        self._games: defaultdict[Pairing, list[PlayedGame]] = defaultdict(list)

    def games(self, players: Pairing) -> list[PlayedGame]:
        """Return the games of a match that have ended."""
        return list(self._games[players])

    def add(self, players: Pairing, game: PlayedGame) -> None:
        """Add a game."""
        self._games[players].append(game)

    def close(self) -> None:
        """Do nothing: there is no file to close."""


class MatchFile:
    """A file that is open for one process alone.

    Attributes:
        path: of the file.
    """

    def __init__(self, path: Path, basis: Mapping[str, Any], openings: Sequence[Opening] = ()) -> None:
        """Open a file, or start one.

        Args:
            path: of the file; its folder is made if missing.
            basis: what the games rest on, plain data.
            openings: of the first pairs; the games of the file must begin with them.

        Raises:
            ConfigError: there can be no such file, its games rest on something else, or another process has it open.
            CorruptFile: it is no file of games, or a line of it is none.
        """
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists() and not path.is_file():
                raise ConfigError(f"{path}: expected a file of games, got a folder or a device")
            self._file = path.open("a+b", buffering=0)  # a buffer would try a failed write again as it closes
        except (NotADirectoryError, FileExistsError):
            raise ConfigError(f"{path}: a file of games has a folder above it, and a file is there") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._games = self._read({"format": FORMAT, **basis}, openings)
        except BlockingIOError:
            self._file.close()
            raise ConfigError(f"{path}: another process is playing these matches") from None
        except BaseException:
            self._file.close()
            raise

    def games(self, players: Pairing) -> list[PlayedGame]:
        """Return the games of a match that have ended: those with a score, and what failed since the file is open."""
        return list(self._games[players])

    def add(self, players: Pairing, game: PlayedGame) -> None:
        """Add a game; it is on the disk when this returns.

        Raises:
            OSError: the disk is full, or the file cannot be written; it holds the games before.
        """
        self._write({MATCH: list(players), **game.to_document()})
        self._games[players].append(game)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _read(self, basis: dict[str, Any], openings: Sequence[Opening]) -> defaultdict[Pairing, list[PlayedGame]]:
        """Return the games of the file that have a score; drop a torn last line, write the first one of a new file.

        Nothing is written before the whole file has turned out to be one of these games.
        """
        self._file.seek(0)
        content = self._file.readall()
        *lines, torn = content.split(b"\n")
        games: defaultdict[Pairing, list[PlayedGame]] = defaultdict(list)
        if not lines and not _line(basis).startswith(torn):
            raise self._no_games()
        if lines:
            self._check(lines[0], basis)
        for number, line in enumerate(lines[1:], 2):
            players, game = self._parsed(number, line, openings)
            if game.score is not None:
                games[players].append(game)
        if torn:
            self._file.truncate(len(content) - len(torn))
        if not lines:
            self._write(basis)
        return games

    def _check(self, line: bytes, basis: dict[str, Any]) -> None:
        try:
            found = parse_json(line, self.path)
        except CorruptFile:
            found = None
        if not isinstance(found, dict) or "format" not in found:
            raise self._no_games()
        expected = json.loads(_line(basis))
        differences = [key for key in sorted(expected.keys() | found.keys()) if expected.get(key) != found.get(key)]
        if differences:
            said = "; ".join(f"{key} was {found.get(key)}, now {expected.get(key)}" for key in differences)
            raise ConfigError(f"{self.path}: its games rest on something else: {said}. Choose another file")

    def _no_games(self) -> CorruptFile:
        return CorruptFile(
            f"{self.path}: no file of games: its first line says nothing of what they rest on; it stays as it is"
        )

    def _parsed(self, number: int, line: bytes, openings: Sequence[Opening]) -> tuple[Pairing, PlayedGame]:
        place = f"{self.path}:{number}"
        fields = parse_json(line, Path(place))
        try:
            if not isinstance(fields, dict) or MATCH not in fields:
                raise ValueError(f"expected an object with '{MATCH}'")
            players = fields.pop(MATCH)
            if not isinstance(players, list) or [type(player) for player in players] != [str, str]:
                raise ValueError(f"{MATCH}: expected the keys of two players, got {players!r}")
            game = PlayedGame.from_document(fields)
            if game.pair < len(openings):
                game.check_opening(openings[game.pair])
        except ValueError as error:
            raise CorruptFile(f"{place}: no game ({error})") from None
        return (players[0], players[1]), game

    def _write(self, document: Mapping[str, Any]) -> None:
        """Append a line, whole or not at all."""
        line, length = memoryview(_line(document)), os.fstat(self._file.fileno()).st_size
        with naming_full_disk(self.path):
            try:
                while line:
                    line = line[self._file.write(line) :]
                os.fsync(self._file.fileno())
            except OSError as error:
                error.filename = error.filename or str(self.path)
                with suppress(OSError):
                    self._file.truncate(length)
                raise


def _line(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, allow_nan=False).encode() + b"\n"
