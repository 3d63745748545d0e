"""What the workers of a fleet are asked for in one iteration: a quota of positions from each, in chunks.

Targets are counted from the start of the quota, so that chunks, sent ahead, make the same games as one long request.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from train.selfplay import SelfPlayStats
from train.shards import GameRecord
from train.worker import Chunk, ChunkPlayed, Played

CHUNKS = 8
"""Parts into which a worker's quota is cut: progress shows, and a worker that dies loses less."""


@dataclass
class _Share:
    """What one worker makes.

    Attributes:
        missing: positions that its present life is to make.
        asked: chunks that this life has been asked for.
        made: positions that this life has made.
        earlier: positions made by the lives before.
        games: those that ended, in order.
        stats: counts of all its lives.
    """

    missing: int
    asked: int = 0
    made: int = 0
    earlier: int = 0
    games: list[GameRecord] = field(default_factory=list)
    stats: SelfPlayStats = field(default_factory=SelfPlayStats)

    @property
    def num_chunks(self) -> int:
        return min(CHUNKS, self.missing)


@dataclass(frozen=True)
class Order:
    """An iteration's order.

    Attributes:
        quota: positions for each worker.
        model_version: of the weights.
        iteration: of the run.
        weights: what the workers are given to get the weights from.
    """

    quota: int
    model_version: int
    iteration: int
    weights: object


class QuotaJob:
    """A `supervisor.Job`: every worker makes a quota; what a lost one leaves missing its replacement makes."""

    def __init__(self, order: Order, under_way: list[int], progress: Callable[[int], None]) -> None:
        """Say what is to be made.

        Args:
            order: The order.
            under_way: Positions in unfinished games, by worker; kept up to date.
            progress: Told the positions made so far by all workers.
        """
        self._order, self._under_way, self._progress = order, under_way, progress
        self._shares = [_Share(order.quota) for _ in under_way]

    def next_request(self, number: int) -> tuple[object, ...] | None:
        """See `supervisor.Job`."""
        share, order = self._shares[number], self._order
        if share.asked >= share.num_chunks:
            return None
        share.asked += 1
        target = share.missing * share.asked // share.num_chunks
        chunk = Chunk(share.asked == 1, target, order.model_version, order.iteration)
        return "play_chunk", order.weights, chunk

    def receive(self, number: int, answer: ChunkPlayed) -> None:
        """See `supervisor.Job`."""
        share = self._shares[number]
        share.made += answer.stats.positions
        share.games += answer.games
        share.stats.add(answer.stats)
        self._under_way[number] = answer.under_way
        self._progress(sum(each.stats.positions for each in self._shares))

    def lose(self, number: int) -> None:
        """See `supervisor.Job`."""
        share = self._shares[number]
        share.earlier += share.made
        share.missing = max(0, self._order.quota - share.earlier)
        share.asked = share.made = 0

    def played(self) -> Played:
        """Return all games, by worker and then by time, and the counts added up."""
        total = SelfPlayStats()
        for share in self._shares:
            total.add(share.stats)
        return [game for share in self._shares for game in share.games], total
