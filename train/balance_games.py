"""Games for a balance: of the alpha-beta engine against itself on given openings, or of a run's self-play."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from envs import Variant, engine_for
from envs.jit import kernels_name
from envs.rows import actions_of, format_fen
from models.checkpoint import FOLDER
from models.storage import sha256_hex
from train.alphabeta import QUIESCENCE_PLIES
from train.balance_counts import PLY_CAP, BalanceGame
from train.balance_openings import Openings, opened_fen, openings_for
from train.balance_settings import Setting
from train.balance_store import GameStore
from train.evaluation_games import TABLE_BITS
from train.evaluation_tables import EvaluationTable
from train.iteration_metrics import ending_name
from train.piece_values.stored_games import REPLAY_FOLDER, SHARDS
from train.progress import Reporter
from train.shards import GameRecord, read_shard
from train.table_games import GameOrder, PlayedGame, play_games

BATCH = 32
FIRST_GAMES = 256
"""Games of each kind with which a measurement by time begins; it doubles them until the time is over."""
MOST_GAMES = 1 << 20
MOST_PLIES = 500
"""Late enough that the rules end nearly all games first."""
SECONDS_PER_MINUTE = 60
KEY_DIGITS = 16
ARRAY = "array"
"""Kind of start of self-play games that begin from the start position."""


@dataclass(frozen=True)
class BalancePlan:
    """How much is played, the same for everybody.

    Attributes:
        games: of each setting, and as many from each position where Black begins; None plays for `minutes`.
        minutes: for all games together, what was kept before apart, at least a batch of each; None plays `games`.
        depth: plies that each move is searched.
        random_plies: of each opening.
        seed: of openings and ties.
        max_plies: ply cap, opening included.
    """

    games: int | None = 1000
    minutes: float | None = None
    depth: int = 3
    random_plies: int = 4
    seed: int = 0
    max_plies: int = MOST_PLIES

    def __post_init__(self) -> None:
        """Raise ValueError for a plan that nothing can be learned from."""
        if (self.games is None) == (self.minutes is None):
            raise ValueError(f"expected either games or minutes, got {self.games} and {self.minutes}")
        if self.games is not None and not 2 <= self.games <= MOST_GAMES:
            raise ValueError(f"games: expected 2 to {MOST_GAMES}, got {self.games}")
        if self.minutes is not None and not self.minutes > 0:
            raise ValueError(f"minutes: expected more than 0, got {self.minutes}")
        if self.depth < 1 or self.max_plies <= self.random_plies:
            raise ValueError(f"expected a depth of at least 1 and a ply cap above {self.random_plies} random plies")


@dataclass(frozen=True, eq=False)
class Side:
    """What plays one kind of game.

    Attributes:
        variant: the game, whose start positions say who begins.
        table: the evaluation of both players.
    """

    variant: Variant
    table: EvaluationTable


@dataclass(frozen=True, eq=False)
class Played:
    """The games of several sides on their openings.

    Attributes:
        games: of each side, as many for all.
        common: so many first ones begin with the same opening for all sides.
        stopped: whether Ctrl-C ended it.
    """

    games: tuple[list[BalanceGame], ...]
    common: int
    stopped: bool


class Session:
    """Plays what a plan asks for, within its time; one use."""

    def __init__(self, plan: BalancePlan, store: GameStore, reporter: Reporter) -> None:
        """Begin, and with it the time.

        Args:
            plan: how much is played.
            store: what has been played, and keeps what will be.
            reporter: shows progress.
        """
        self._plan, self._store, self._reporter = plan, store, reporter
        self._started = time.monotonic()

    def play(self, sides: Sequence[Side], *, games: int | None = None, share: float = 1.0) -> Played:
        """Play the same number of games of one or two sides, on common openings as far as there are any.

        Args:
            sides: one or two.
            games: of each; None leaves it to the plan.
            share: of the plan's time after which these games stop; a first batch is played however little it is.

        Raises:
            ValueError: a game has too few openings.
            KeyboardInterrupt: before any game.
        """
        plan = self._plan
        games = games or plan.games
        if games is not None:
            return self._play_some(sides, self._openings(sides, games), math.inf)
        assert plan.minutes is not None
        deadline = self._started + share * plan.minutes * SECONDS_PER_MINUTE
        count = FIRST_GAMES
        played = self._play_some(sides, self._openings(sides, count), deadline)
        while not (time.monotonic() > deadline or played.stopped or count >= MOST_GAMES):
            count *= 2
            try:
                openings = self._openings(sides, count)
            except ValueError:
                return played  # there are no more openings
            except KeyboardInterrupt:
                return replace(played, stopped=True)
            played = self._play_some(sides, openings, deadline)
        return played

    def _openings(self, sides: Sequence[Side], count: int) -> Openings:
        plan = self._plan
        return openings_for([side.variant for side in sides], count, plies=plan.random_plies, seed=plan.seed)

    def _play_some(self, sides: Sequence[Side], openings: Openings, deadline: float) -> Played:
        """Play a game on each opening of each side until a deadline."""
        count = len(openings.lists[0])
        orders = [self._orders(side, openings, number) for number, side in enumerate(sides)]
        names = " and ".join(dict.fromkeys(side.variant.title for side in sides))
        stopped, is_timed = False, math.isfinite(deadline)
        total = math.ceil(deadline - self._started) if is_timed else count * len(sides)
        with self._reporter.task(f"games of {names}{', seconds' * is_timed}", total) as update:
            try:
                for first in range(0, count, BATCH):
                    if first and time.monotonic() > deadline:
                        break
                    for side, own in zip(sides, orders, strict=True):
                        self._play_batch(side, own[first : first + BATCH])
                    done = min(first + BATCH, count) * len(sides)
                    update(int(time.monotonic() - self._started) if is_timed else done)
            except KeyboardInterrupt:
                stopped = True
        return self._collected(orders, openings, stopped)

    def _orders(self, side: Side, openings: Openings, number: int) -> list[tuple[str, GameOrder]]:
        """Return the order of each opening of a side, with its key."""
        plan, table = self._plan, side.table
        weights = np.stack([table.weights, table.weights])
        basis = {
            "kernels": kernels_name(),
            "rules": side.variant.rules_hash,
            "weights": sha256_hex(table.weights.astype("<i4").tobytes()),
            "tempo": table.tempo,
            "search": [plan.depth, QUIESCENCE_PLIES, TABLE_BITS],
            "plies": [plan.random_plies, plan.max_plies],
        }
        return [
            (_digest({**basis, "fen": fen, "seed": seed}), GameOrder(fen, weights, table.tempo, 0, seed))
            for fen, seed in self._starts(side, openings, number)
        ]

    def _starts(self, side: Side, openings: Openings, number: int) -> Iterator[tuple[str, int]]:
        """Yield where each game begins, and the seed of its ties: a common opening has the same one for all."""
        for index, opening in enumerate(openings.lists[number]):
            drawn = np.random.default_rng((self._plan.seed, index)).integers(1 << 63)
            yield opened_fen(side.variant, opening), int(drawn)

    def _play_batch(self, side: Side, orders: Sequence[tuple[str, GameOrder]]) -> None:
        """Play those of some orders that have not been played."""
        plan = self._plan
        missing = [(key, order) for key, order in orders if self._store.get(key) is None]
        if missing:
            cap = plan.max_plies - plan.random_plies
            played = play_games(
                engine_for(side.variant), [order for _, order in missing], depth=plan.depth, max_plies=cap
            )
            self._store.add((key, _kept(game, plan)) for (key, _), game in zip(missing, played, strict=True))

    def _collected(self, orders: list[list[tuple[str, GameOrder]]], openings: Openings, stopped: bool) -> Played:
        """Return the first games that all sides have played."""
        games = [[self._store.get(key) for key, _ in own] for own in orders]
        missing = [own.index(None) if None in own else len(own) for own in games]
        count = min(missing)
        held = tuple([game for game in own[:count] if game is not None] for own in games)
        return Played(held, min(openings.common, count), stopped)


def stored_games(setting: Setting, most: int | None) -> list[BalanceGame]:
    """Return the newest self-play games of a run that began from the start position, at most `most`.

    Raises:
        CorruptFile, CheckpointMismatch: see `read_shard`.
    """
    assert setting.run is not None
    assert setting.state is not None
    run_dir = setting.run if (setting.run / FOLDER).is_dir() else setting.run.resolve().parents[1]
    game, found = engine_for(setting.variant), list[BalanceGame]()
    for shard in reversed(setting.state[SHARDS]):
        records = read_shard(run_dir / REPLAY_FOLDER / shard["name"], game, sha256=shard["sha256"])
        fitting = [record for record in records if record.start_kind == ARRAY and _has_moves(record)]
        found += [_from_record(setting.variant, record) for record in reversed(fitting)]
        if most is not None and len(found) >= most:
            return found[:most]
    return found


def _has_moves(record: GameRecord) -> bool:
    return record.num_plies > record.opening_plies


def _from_record(variant: Variant, record: GameRecord) -> BalanceGame:
    first = record.opening_plies
    return BalanceGame(
        start_fen=format_fen(engine_for(variant), record.states[first]),
        opening_plies=first,
        actions=record.actions[first:],
        white_score=record.white_score,
        ending=ending_name(record),
    )


def _kept(game: PlayedGame, plan: BalancePlan) -> BalanceGame:
    ending = PLY_CAP if game.termination is None else game.termination.name.lower()
    return BalanceGame(game.fen, plan.random_plies, actions_of(game.moves), game.white_score, ending)


def _digest(basis: dict[str, object]) -> str:
    return sha256_hex(json.dumps(basis, sort_keys=True).encode())[:KEY_DIGITS]
