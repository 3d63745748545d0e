"""What is measured of the alpha-beta search: the positions that it enters, quiescence apart, and the time of a move."""

import statistics
import time
from collections.abc import Iterator
from functools import partial
from itertools import cycle

from envs import VectorEnv, load_variant
from envs.layout import U64Array
from scripts.bench_rounds import Contestant, Cost, Finding, Plan, Settings, timed
from train.alphabeta import AlphaBeta
from train.evaluation_tables import table_for

RATE_DEPTH, MOVE_DEPTH = 4, 3
GAMES, OPENING_PLIES, MOST_PLIES = 4, 6, 120
EVERY = 8
"""Plies of a game from one position whose search is counted to the next."""
COMPARED = "chess"
"""The game that the bar of the rate is meant for."""
ENTERED_BAR_US, SLOWEST_BAR = 1, 50


def alphabeta_plan(settings: Settings) -> Plan:
    """Return the measurements of the search, one thread, with the tables that the games ship with."""
    plan = Plan()
    for variant in settings.variants:
        load = AlphaBetaLoad(variant)
        name = f"{variant}, alpha-beta to depth {RATE_DEPTH}"
        plan.contestants.append(Contestant(name, "positions entered", partial(timed, load.search, settings.seconds)))
        plan.costs.append(Cost(name, at_most=ENTERED_BAR_US if variant == COMPARED else None))
        plan.others.append(load.findings)
    return plan


class AlphaBetaLoad:
    """Searches of one game, over positions of games that the engine plays against itself.

    Attributes:
        nodes: positions entered by `search` so far.
        quiescence_nodes: those of them in quiescence.
    """

    def __init__(self, variant: str) -> None:
        self._variant = variant
        table = table_for(load_variant(variant))
        env = VectorEnv(variant, 1)
        self._searcher = AlphaBeta(env.game, table.weights, tempo=table.tempo)
        positions = [position for number, position in enumerate(self._play(1)) if number % EVERY == 0]
        self._positions = cycle(positions)
        self.nodes = self.quiescence_nodes = 0

    def search(self) -> int:
        """Search one position; return the number of positions entered."""
        row, history = next(self._positions)
        result = self._searcher.search(row, history, depth=RATE_DEPTH)
        self.nodes += result.nodes
        self.quiescence_nodes += result.quiescence_nodes
        return result.nodes

    def findings(self, rounds: int) -> list[Finding]:
        """Return the share of quiescence, and what a move takes of CPU time; the rounds are not repeated."""
        name = f"{self._variant}, alpha-beta"
        milliseconds = [self._milliseconds(*position) for position in self._play(MOVE_DEPTH)]
        median = statistics.median(milliseconds)
        return [
            Finding(f"{name} to depth {RATE_DEPTH}: % of the positions in quiescence", (self._quiescence_share(),)),
            Finding(f"{name} to depth {MOVE_DEPTH}: milliseconds a move", (median,)),
            Finding(
                f"{name} to depth {MOVE_DEPTH}: slowest of {len(milliseconds)} moves / median",
                (max(milliseconds) / median,),
                SLOWEST_BAR,
                at_most=True,
            ),
        ]

    def _quiescence_share(self) -> float:
        return 100 * self.quiescence_nodes / self.nodes

    def _milliseconds(self, row: U64Array, history: U64Array) -> float:
        start = time.thread_time()
        self._searcher.search(row, history, depth=MOVE_DEPTH)
        return 1000 * (time.thread_time() - start)

    def _play(self, depth: int) -> Iterator[tuple[U64Array, U64Array]]:
        """Yield the positions of games from random openings, with their histories."""
        for game in range(GAMES):
            env = VectorEnv(self._variant, 1, seed=game)
            for ply in range(MOST_PLIES):
                if env.over[0]:
                    break
                if ply < OPENING_PLIES:
                    env.step(env.sample_actions())
                    continue
                position = env.states[0].copy(), env.histories[0].copy()
                yield position
                env.step([self._searcher.search(*position, depth=depth).best.action])
