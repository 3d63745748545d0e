"""A network and its tree of one position behind a protocol (`train.analysis`).

A simulation of the tree counts as a node, and the length of the best line as the depth.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field

from envs import CompiledGame, VectorEnv
from envs.rows import legal_actions, observe
from models.evaluator import Evaluator
from train.analysis import Analysis, AnalysisSettings
from train.analysis import Line as TreeLine
from train.engine_game import Root, moves_of_actions
from train.engine_thinkers import (
    CENTIPAWNS_PER_LOGIT,
    DEFAULT_MEGABYTES,
    MEGABYTE,
    MOST_CENTIPAWNS,
    Limits,
    Line,
    Report,
    Stop,
    Thought,
    chances,
    decided,
)

REPORT_EVERY_S = 1.0
FIRST_REPORT, REPORT_GROWTH = 32, 2
"""Simulations before the first report, and how many times as many before the next."""
EDGE_BYTES, NODE_BYTES, WORD_BYTES = 29, 42, 8
"""Of the tree: of a move, and of a position beside its row."""
USUAL_MOVES = 40


class NetworkThinker:
    """A network with a search tree; see `engine_thinkers.Thinker`."""

    def __init__(
        self, evaluator: Evaluator, *, name: str, simulations: int | None = None, batch_size: int = 16
    ) -> None:
        """Make it.

        Args:
            evaluator: Scores positions.
            name: How a GUI calls it.
            simulations: Of every search at most.
            batch_size: Positions evaluated at once.
        """
        self.name = name
        self.megabytes = DEFAULT_MEGABYTES
        self._evaluator = evaluator
        self._simulations = simulations
        self._settings = AnalysisSettings(batch_size=batch_size)

    def prepare(self, game: CompiledGame) -> None:
        """See `Thinker`."""
        start = VectorEnv(game.variant, 1)
        tree = Analysis(game, self._evaluator, self._settings)
        tree.begin(start.states[0], start.histories[0])
        tree.run(self._settings.batch_size)

    def think(self, root: Root, limits: Limits, stop: Stop, report: Report) -> Thought:
        """See `Thinker`; a search also ends when its tree has filled the memory, or is proven."""
        tree = Analysis(root.game, self._evaluator, self._settings)
        tree.begin(root.row, root.history)
        tree.run(0)
        search = _Search(root, limits, tree, self._chance_of_draw(root))
        bounds = self._memory_bound(root), self._simulations, limits.nodes
        budget = min(bound for bound in bounds if bound is not None)
        wanted, reported, before = FIRST_REPORT, search.started, -1
        while not stop and before < tree.simulations < budget and search.is_in_time():
            before = tree.simulations
            tree.run(min(self._settings.batch_size, budget - before))
            now = time.monotonic()
            if tree.simulations >= wanted or now - reported >= REPORT_EVERY_S:
                wanted, reported = REPORT_GROWTH * tree.simulations, now
                thought = search.thought()
                report(thought)
                if search.has_reached(thought):
                    return thought
        thought = search.thought()
        report(thought)
        return thought

    def _chance_of_draw(self, root: Root) -> float:
        rows = root.row[None]
        _, wdl = self._evaluator(observe(root.game, rows), legal_actions(root.game, rows)[0])
        return float(wdl[0, 1])

    def _memory_bound(self, root: Root) -> int:
        """Return the simulations for which there is memory; the arrays are at most twice as long as needed."""
        moves = max(USUAL_MOVES, len(root.moves))
        node = WORD_BYTES * root.game.state_words + NODE_BYTES + EDGE_BYTES * moves
        return max(self.megabytes * MEGABYTE // (2 * node), self._settings.batch_size)


@dataclass
class _Search:
    """One search.

    Attributes:
        root: The position.
        limits: When it ends.
        tree: What it grows.
        draw: The chance of a draw, as the network sees the position.
        started: When it began, by the monotonic clock.
    """

    root: Root
    limits: Limits
    tree: Analysis
    draw: float
    started: float = field(default_factory=time.monotonic)

    def is_in_time(self) -> bool:
        """Whether there is time left."""
        return self.limits.seconds is None or time.monotonic() - self.started < self.limits.seconds

    def has_reached(self, thought: Thought) -> bool:
        """Whether the depth or the mate that was asked for has been found."""
        best, limits = thought.lines[0], self.limits
        is_deep = limits.depth is not None and thought.depth >= limits.depth
        return is_deep or (limits.mate is not None and best.mate is not None and 0 < best.mate <= limits.mate)

    def thought(self) -> Thought:
        """Return what has been found."""
        num_lines = None if self.limits.only else self.limits.num_lines
        found = [self._line(line) for line in self.tree.result(num_lines).lines]
        wanted = [line for line in found if not self.limits.only or line.moves[0] in self.limits.only]
        lines = tuple(wanted[: self.limits.num_lines])
        farthest = max(len(line.moves) for line in lines)
        nodes, seconds = self.tree.simulations, time.monotonic() - self.started
        return Thought(lines, len(lines[0].moves), farthest, nodes, seconds)

    def _line(self, line: TreeLine) -> Line:
        moves = moves_of_actions(self.root.game, line.pv, self.root.side)
        if line.result in ("win", "loss") and line.plies_to_end is not None:
            in_moves = (line.plies_to_end + 1) // 2
            return decided(moves, in_moves if line.result == "win" else -in_moves)
        value = 0.0 if line.value is None else line.value
        draw = 1.0 if line.result == "draw" else min(self.draw, 1 - abs(value))
        return Line(moves, _centipawns(value), None, chances((1 - draw + value) / 2, draw))


def _centipawns(value: float) -> int:
    """Return an expected result from -1 to 1 in hundredths of a pawn."""
    odds = (1 + value) / (1 - value) if abs(value) < 1 else math.inf if value > 0 else 0.0
    shown = CENTIPAWNS_PER_LOGIT * math.log(odds) if 0 < odds < math.inf else math.copysign(MOST_CENTIPAWNS, value)
    return max(-MOST_CENTIPAWNS, min(round(shown), MOST_CENTIPAWNS))
