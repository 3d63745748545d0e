"""Piece values of a game without any network: temporal differences, random odds and handicap matches, several seeds.

The players are the alpha-beta engine with the game's learned evaluation. A plan says how many games each method plays
with each seed, or how many minutes all may take; minutes become a number of games by the pace of the first ones.
Everything that has been played is kept in a folder, so that the same plan goes on where it was interrupted.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from envs import CompiledGame, Variant, engine_for
from models.storage import naming_full_disk, write_atomically
from train.evaluation_learning import LearningSettings
from train.evaluation_tables import EvaluationTable, table_for
from train.piece_values.estimates import MethodValues, method_from_document, refused
from train.piece_values.handicap import join_handicaps, play_handicap, values_by_handicap
from train.piece_values.kept_games import KeptGames
from train.piece_values.odds import Players, play_odds, values_by_odds
from train.piece_values.odds_games import Settings, joined
from train.piece_values.positions import InsufficientData
from train.progress import Reporter, Update
from train.provenance import versions

METHODS = ("td", "odds", "handicap")
"""Those that need no network."""
DEPTH = 3
MAX_PLIES = 800
"""Games that come this far have no result; with fewer plies many more would have none."""
GAMES = 4000
SEEDS = (0, 1, 2)
PROBE_PAIRS = 48
PROBE_SEED = 1 << 32
"""Of the games whose pace is measured; no seed of a plan is as high."""
SECONDS_PER_MINUTE = 60
LEARNING_DEPTH = LearningSettings().depth
"""`td` searches no deeper, since it is no causal method and stands back where others have values."""
LEARNING_COST, CHEAP_LEARNING_COST = 1.5, 0.4
"""Time of a game of `td`, with what is learned from it, in that of another method's; where that searches deeper."""
RESERVE = 0.8
"""Share of the minutes that games may take; fits and pictures take the rest."""
MOST_LEARNING_GAMES = 4000
FEWEST_GAMES = 200
GAMES_FILE, PLAN_FILE, LEARNED_FILE = "games.jsonl", "plan.json", "td-{}.json"


@dataclass(frozen=True)
class MeasurePlan:
    """What is measured, and how long.

    Attributes:
        methods: of `METHODS`.
        seeds: each method is repeated with each.
        depth: plies that a move is searched, quiescence not counted.
        games: of each method with each seed; None: as many as `minutes` allow, or `GAMES`.
        minutes: that everything may take on this machine; None: no limit.
        resamples: behind each interval.
        threads: games under way at a time; all cores if None. Results do not depend on it.
    """

    methods: tuple[str, ...] = METHODS
    seeds: tuple[int, ...] = SEEDS
    depth: int = DEPTH
    games: int | None = None
    minutes: float | None = None
    resamples: int = 500
    threads: int | None = None

    def __post_init__(self) -> None:
        unknown = [method for method in self.methods if method not in METHODS]
        if unknown or not self.methods or len(set(self.methods)) < len(self.methods):
            raise ValueError(f"methods: expected different ones of {', '.join(METHODS)}, got {', '.join(self.methods)}")
        if not self.seeds or len(set(self.seeds)) < len(self.seeds) or not all(0 <= s < PROBE_SEED for s in self.seeds):
            raise ValueError(f"seeds: expected different numbers from 0 to {PROBE_SEED - 1}, got {list(self.seeds)}")
        if self.games is not None and self.games < FEWEST_GAMES:
            raise ValueError(f"games: expected at least {FEWEST_GAMES}, got {self.games}")
        if self.minutes is not None and not 0 < self.minutes < math.inf:
            raise ValueError(f"minutes: expected a number above 0, got {self.minutes}")

    @property
    def pairs(self) -> int:
        """Pairs of games of each method with each seed."""
        return (self.games or GAMES) // 2


def measure_game(
    variant: Variant, *, plan: MeasurePlan, folder: Path | None = None, reporter: Reporter | None = None
) -> list[MethodValues]:
    """Measure the piece values of a game by the methods that need no network.

    Args:
        variant: the game.
        plan: methods, seeds, depth, and games or minutes.
        folder: where games are kept, made if missing; None keeps nothing.
        reporter: shows progress; stderr by default.

    Returns:
        The methods' results in the order of the plan; one that can say nothing has a refusal instead of pieces.

    Raises:
        InsufficientData: no method has any value; says why.
    """
    reporter = reporter or Reporter()
    table = table_for(variant, reporter=reporter)
    plan = settle(variant, plan, folder=folder, table=table)
    measure = _Measurement(variant, plan, folder, table, reporter)
    results = [measure.by(method) for method in plan.methods]
    if all(result.refusal for result in results):
        raise InsufficientData("; ".join(f"{result.method}: {result.refusal}" for result in results))
    return results


def settle(
    variant: Variant, plan: MeasurePlan, *, folder: Path | None, table: EvaluationTable | None = None
) -> MeasurePlan:
    """Return a plan with its number of games: its own, what was settled here before, or what its minutes allow.

    Args:
        variant: the game.
        plan: a plan.
        folder: where games are kept; the number is kept there too, so that the same plan stays the same.
        table: what the players go by; the game's if None.
    """
    if plan.games is not None:
        return plan
    if plan.minutes is None:
        return replace(plan, games=GAMES)
    path = None if folder is None else folder / PLAN_FILE
    asked = _digest(variant, [*plan.methods, *plan.seeds, plan.depth, plan.minutes])
    if path is not None and path.exists():
        settled = json.loads(path.read_text())
        if settled["asked"] == asked:
            return replace(plan, games=int(settled["games"]))
    games = _affordable(engine_for(variant), plan, table or table_for(variant))
    if path is not None:
        with naming_full_disk(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, (json.dumps({"asked": asked, "games": games}) + "\n").encode())
    return replace(plan, games=games)


def _affordable(game: CompiledGame, plan: MeasurePlan, table: EvaluationTable) -> int:
    """Return how many games of each method and seed a plan's minutes allow, by the pace of a few of them."""
    assert plan.minutes is not None
    began = time.monotonic()
    players = Players(game, table, KeptGames(None, depth=plan.depth, max_plies=MAX_PLIES, threads=plan.threads))
    play_odds(players, 1, seed=PROBE_SEED)  # compiles
    started = time.monotonic()
    play_odds(players, PROBE_PAIRS, seed=PROBE_SEED + 1)
    seconds = (time.monotonic() - started) / (2 * PROBE_PAIRS)
    left = RESERVE * plan.minutes * SECONDS_PER_MINUTE - (time.monotonic() - began)
    learning = LEARNING_COST if plan.depth <= LEARNING_DEPTH else CHEAP_LEARNING_COST
    cost = sum(learning if method == "td" else 1.0 for method in plan.methods)
    games = left / (seconds * cost * len(plan.seeds))
    return max(FEWEST_GAMES, 2 * int(games / 2))


@dataclass(frozen=True)
class _Measurement:
    """Measures one game by a settled plan."""

    variant: Variant
    plan: MeasurePlan
    folder: Path | None
    table: EvaluationTable
    reporter: Reporter

    def by(self, method: str) -> MethodValues:
        """Return the values by a method, or its refusal."""
        ways: dict[str, Callable[[], MethodValues]] = {"td": self._td, "odds": self._odds, "handicap": self._handicap}
        try:
            return ways[method]()
        except InsufficientData as error:
            return refused(method, str(error))

    def _odds(self) -> MethodValues:
        players, pairs = self._players(), self.plan.pairs
        with self._task("odds") as tell:
            parts = [play_odds(players, pairs, seed=seed, update=tell(n)) for n, seed in enumerate(self.plan.seeds)]
        return values_by_odds(joined(parts), self._settings(), basis=self._basis())

    def _handicap(self) -> MethodValues:
        players, pairs = self._players(), self.plan.pairs
        with self._task("handicap") as tell:
            parts = [play_handicap(players, pairs, seed=seed, update=tell(n)) for n, seed in enumerate(self.plan.seeds)]
        return values_by_handicap(join_handicaps(parts), self._settings(), basis=self._basis())

    def _td(self) -> MethodValues:
        from train.piece_values.td import td_values

        games, depth = min(self.plan.games or GAMES, MOST_LEARNING_GAMES), min(self.plan.depth, LEARNING_DEPTH)
        settings = LearningSettings(games=games, depth=depth)
        entries = [*self.plan.seeds, asdict(settings), self.plan.resamples, *versions().values()]
        path = self.folder / LEARNED_FILE.format(_digest(self.variant, entries)) if self.folder else None
        if path is not None and path.exists():
            return method_from_document(json.loads(path.read_text()))
        values = td_values(
            self.variant,
            seeds=self.plan.seeds,
            settings=settings,
            resamples=self.plan.resamples,
            reporter=self.reporter,
        )
        if path is not None:
            with naming_full_disk(path):
                path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, (json.dumps(values.to_document(), allow_nan=False) + "\n").encode())
        return values

    def _players(self) -> Players:
        path = None if self.folder is None else self.folder / GAMES_FILE
        kept = KeptGames(path, depth=self.plan.depth, max_plies=MAX_PLIES, threads=self.plan.threads)
        return Players(engine_for(self.variant), self.table, kept)

    def _settings(self) -> Settings:
        return Settings(resamples=self.plan.resamples, seed=self.plan.seeds[0])

    def _basis(self) -> str:
        seeds = f"{len(self.plan.seeds)} seeds" if len(self.plan.seeds) > 1 else "one seed"
        return f"alpha-beta players, depth {self.plan.depth}, {seeds}; {self.plan.resamples} resamples"

    @contextmanager
    def _task(self, method: str) -> Iterator[Callable[[int], Update]]:
        """Show progress over all seeds; yields what tells how many games of the n-th seed are done."""
        each = 2 * self.plan.pairs
        with self.reporter.task(f"{method} in {self.variant.name}, games", each * len(self.plan.seeds)) as update:
            yield lambda n: lambda done: update(n * each + done)


def _digest(variant: Variant, entries: list[Any]) -> str:
    """Return a digest of a game's rules and of what is asked."""
    return hashlib.sha256(json.dumps([variant.rules_hash, *entries]).encode()).hexdigest()[:16]
