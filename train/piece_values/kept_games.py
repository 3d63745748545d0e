"""Games of the alpha-beta engine that are kept once they are played, so that a measurement resumes where it stopped.

A game is kept by a digest of everything that determines it: the rules, the kernels that play them, the start, what
both players go by, depth, ply cap, seed. A later measurement that needs the same game takes its result, whatever else
has changed. The file has one line of JSON for each game; a last line that a crash has cut short is ignored and written
anew.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envs import CompiledGame
from envs.jit import kernels_name
from models.storage import naming_full_disk
from train.progress import Update
from train.table_games import MAX_PLIES, GameOrder, PlayedGame, play_games

BATCH = 128
"""Games played between two visits to the disk."""
DIGITS = 32
"""Of the digest."""


@dataclass(frozen=True)
class Result:
    """What became of a game.

    Attributes:
        white_score: 1, 0.5 or 0; NaN for a game that was cut short.
        plies: its length.
    """

    white_score: float
    plies: int


class KeptGames:
    """Plays games that are not known yet; one process at a time per file."""

    def __init__(
        self, path: Path | None, *, depth: int, max_plies: int = MAX_PLIES, threads: int | None = None
    ) -> None:
        """Read what is kept.

        Args:
            path: the file, made with its folder when the first game is over; None keeps nothing.
            depth: plies that each move is searched.
            max_plies: where games are cut short.
            threads: games under way at a time; all cores if None.
        """
        self.depth, self.max_plies, self.threads = depth, max_plies, threads
        self._path = path
        self._known: dict[str, Result] = {}
        if path is not None and path.exists():
            self._read(path)

    def play(
        self, game: CompiledGame, orders: Sequence[GameOrder], *, update: Update = lambda done: None
    ) -> list[Result]:
        """Return the results of games in their order; those not known are played, and kept after each batch.

        Args:
            game: the game.
            orders: the games.
            update: told how many are done.
        """
        keys = [self.key(game, order) for order in orders]
        missing = [number for number, key in enumerate(keys) if key not in self._known]
        done = len(orders) - len(missing)
        for first in range(0, len(missing), BATCH):
            batch, before = missing[first : first + BATCH], done + first
            played = play_games(
                game,
                [orders[number] for number in batch],
                depth=self.depth,
                max_plies=self.max_plies,
                num_threads=self.threads,
                update=lambda more, before=before: update(before + more),  # type: ignore[misc]
            )
            self._keep([keys[number] for number in batch], played)
        update(len(orders))
        return [self._known[key] for key in keys]

    def key(self, game: CompiledGame, order: GameOrder) -> str:
        """Return the digest of everything that determines a game."""
        words = (kernels_name(), game.variant.rules_hash, order.fen, order.tempo, order.random_plies, order.seed)
        digest = hashlib.sha256(json.dumps([*words, self.depth, self.max_plies]).encode())
        digest.update(order.weights.tobytes())
        return digest.hexdigest()[:DIGITS]

    def _read(self, path: Path) -> None:
        lines = path.read_bytes().split(b"\n")
        if lines[-1]:  # cut short by a crash
            os.truncate(path, path.stat().st_size - len(lines[-1]))
        for number, line in enumerate(lines[:-1], start=1):
            try:
                entry = json.loads(line)
                score = math.nan if entry["white_score"] is None else float(entry["white_score"])
                self._known[entry["key"]] = Result(score, entry["plies"])
            except (ValueError, KeyError, TypeError):
                expected = "a JSON object with key, white_score and plies"
                raise ValueError(f"{path}, line {number}: expected {expected}, got {line[:60]!r}") from None

    def _keep(self, keys: Sequence[str], played: Sequence[PlayedGame]) -> None:
        lines = []
        for key, one in zip(keys, played, strict=True):
            self._known[key] = Result(one.white_score, len(one.moves))
            score = None if math.isnan(one.white_score) else one.white_score
            entry: dict[str, Any] = {"key": key, "white_score": score, "plies": len(one.moves), "fen": one.fen}
            lines.append(json.dumps(entry) + "\n")
        if self._path is not None:
            with naming_full_disk(self._path):
                self._path.parent.mkdir(parents=True, exist_ok=True)
                with self._path.open("a") as file:
                    file.writelines(lines)
