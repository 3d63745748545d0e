"""Who thinks behind a protocol: alpha-beta, a network with its tree, or a player that answers at once.

A thinker is given a position and limits, reports what it has found so far as often as it likes, and ends soon after it
is told to stop. Scores, chances and mates belong to the player to move.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from threading import Event
from typing import Protocol

import numpy as np
import numpy.typing as npt

from envs import CompiledGame, Variant, VectorEnv
from envs.rows import format_fen
from train.alphabeta import DECISIVE, MATE, MAX_DEPTH, AlphaBeta, SearchResult
from train.arena import Player
from train.engine_game import Root, move_of_word
from train.evaluation_tables import UNITS, EvaluationTable

CENTIPAWNS_PER_LOGIT = 272
"""How a network's expected score is shown in pawns: about what chess servers use."""
MOST_CENTIPAWNS = 9999
MEGABYTE = 1 << 20
TABLE_ENTRY_BYTES = 16
DEFAULT_MEGABYTES = 64
NO_SCORE = (0, 1000, 0)
"""Chances where nothing is known."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """When to end a search; without any it goes on until it is stopped.

    Attributes:
        depth: Plies.
        nodes: Positions entered, or simulations of a network's tree.
        seconds: Time from now.
        mate: Moves in which a mate ends the search.
        num_lines: Best lines to report.
        only: The moves to look at, as text; empty for all.
    """

    depth: int | None = None
    nodes: int | None = None
    seconds: float | None = None
    mate: int | None = None
    num_lines: int = 1
    only: tuple[str, ...] = ()


@dataclass(frozen=True)
class Line:
    """A move and what is expected to follow.

    Attributes:
        moves: As text, at least one.
        centipawns: The score.
        mate: Moves to the forced end of the game, negative where the player to move loses; None if none is seen.
        chances: Of a win, a draw and a loss, per mille; they add up to 1000.
    """

    moves: tuple[str, ...]
    centipawns: int
    mate: int | None
    chances: tuple[int, int, int]


@dataclass(frozen=True)
class Thought:
    """What a search has found so far.

    Attributes:
        lines: Best first; none only where no move is legal.
        depth: Plies searched; of a network's tree the length of its best line.
        farthest: Plies of the longest line.
        nodes: Positions entered, or simulations.
        seconds: Since the search began.
    """

    lines: tuple[Line, ...]
    depth: int
    farthest: int
    nodes: int
    seconds: float


Report = Callable[[Thought], None]


class Stop:
    """Tells a search to end.

    Attributes:
        flag: uint8 [1], not 0 when the search is to end; a compiled search looks at it.
    """

    def __init__(self, *, held: bool = False) -> None:
        """Make it.

        Args:
            held: Whether the answer is to be kept back, however soon it is found, until `set` or `release`.
        """
        self.flag = np.zeros(1, np.uint8)
        self._released = Event()
        if not held:
            self._released.set()

    def __bool__(self) -> bool:
        """Whether the search is to end."""
        return bool(self.flag[0])

    @property
    def holds(self) -> bool:
        """Whether the answer is kept back."""
        return not self._released.is_set()

    def set(self) -> None:
        """End the search."""
        self.flag[0] = 1
        self._released.set()

    def release(self) -> None:
        """Let the answer out as soon as it is found."""
        self._released.set()

    def wait(self) -> None:
        """Wait until the answer may be given."""
        self._released.wait()


class Thinker(Protocol):
    """Finds moves.

    Attributes:
        name: How a GUI calls it.
        megabytes: Memory for the search, about; read when a search begins.
    """

    name: str
    megabytes: int

    def prepare(self, game: CompiledGame) -> None:
        """Load or learn what the game needs, and compile; takes as long as that takes."""
        ...

    def think(self, root: Root, limits: Limits, stop: Stop, report: Report) -> Thought:
        """Search a position in which there are legal moves.

        Args:
            root: The position.
            limits: When to end.
            stop: Ends the search early.
            report: Is given what has been found, from the calling thread.

        Returns:
            What was found in the end.
        """
        ...


class AlphaBetaThinker:
    """The alpha-beta search; see `Thinker`."""

    def __init__(
        self,
        table_for: Callable[[Variant], EvaluationTable],
        *,
        name: str = "alphabeta",
        depth: int | None = None,
        seconds: float | None = None,
    ) -> None:
        """Make it.

        Args:
            table_for: Gives a game's evaluation.
            name: How a GUI calls it.
            depth: Plies of every search at most.
            seconds: Of every search at most.
        """
        self.name = name
        self.megabytes = DEFAULT_MEGABYTES
        self._table_for = table_for
        self._depth, self._seconds = depth, seconds
        self._search: AlphaBeta | None = None
        self._made_for: tuple[CompiledGame, int] | None = None
        self._table: EvaluationTable | None = None

    def prepare(self, game: CompiledGame) -> None:
        """See `Thinker`."""
        search = self._search_of(game)
        start = VectorEnv(game.variant, 1)
        search.search(start.states[0], start.histories[0], depth=1)

    def think(self, root: Root, limits: Limits, stop: Stop, report: Report) -> Thought:
        """See `Thinker`; where only some moves are looked at, all are searched as lines of their own."""

        def reported(found: SearchResult) -> None:
            thought = self._thought(root, found, limits)
            report(thought)
            if limits.mate is not None and (thought.lines[0].mate or math.inf) in range(1, limits.mate + 1):
                stop.set()

        found = self._search_of(root.game).search(
            root.row,
            root.history,
            depth=self._plies(limits),
            seconds=min((limit for limit in (limits.seconds, self._seconds) if limit is not None), default=None),
            nodes=limits.nodes,
            stop=stop.flag,
            num_lines=min(len(root.moves), len(root.moves) if limits.only else limits.num_lines),
            on_depth=reported,
        )
        return self._thought(root, found, limits)

    def _plies(self, limits: Limits) -> int:
        to_mate = None if limits.mate is None else 2 * limits.mate
        return min(depth for depth in (limits.depth, to_mate, self._depth, MAX_DEPTH) if depth is not None)

    def _search_of(self, game: CompiledGame) -> AlphaBeta:
        wanted = game, (self.megabytes * MEGABYTE // TABLE_ENTRY_BYTES).bit_length() - 1
        if self._table is None or self._made_for is None or self._made_for[0] is not game:
            self._table = self._table_for(game.variant)
        if self._search is None or self._made_for != wanted:
            self._search = AlphaBeta(game, self._table.weights, tempo=self._table.tempo, table_bits=wanted[1])
        self._made_for = wanted
        return self._search

    def _thought(self, root: Root, found: SearchResult, limits: Limits) -> Thought:
        variant = root.game.variant
        lines = [
            self._line(tuple(move_of_word(variant, word) for word in line.moves), line.score) for line in found.lines
        ]
        kept = [line for line in lines if not limits.only or line.moves[0] in limits.only][: limits.num_lines]
        kept = kept or [replace(lines[0], moves=limits.only[:1])]
        return Thought(tuple(kept), found.depth, max(len(line.moves) for line in kept), found.nodes, found.seconds)

    def _line(self, moves: tuple[str, ...], score: int) -> Line:
        assert self._table is not None
        if abs(score) > DECISIVE:
            in_moves = (MATE - abs(score) + 1) // 2
            return decided(moves, in_moves if score > 0 else -in_moves)
        expected = (1 + math.tanh(score / (2 * UNITS))) / 2
        centipawns = max(-MOST_CENTIPAWNS, min(round(100 * score / self._table.pawn), MOST_CENTIPAWNS))
        return Line(moves, centipawns, None, chances(expected**2, 2 * expected * (1 - expected)))


class PlayerThinker:
    """A player that answers at once, such as `random` or a network without search; see `Thinker`."""

    def __init__(self, player: Player, *, seed: int | None = None) -> None:
        """Make it.

        Args:
            player: Chooses the moves.
            seed: Of its choices; None for others every time.
        """
        self.name = player.name
        self.megabytes = DEFAULT_MEGABYTES
        self._player = player
        self._rng = np.random.default_rng(seed)

    def prepare(self, game: CompiledGame) -> None:
        """See `Thinker`."""
        self._choose(VectorEnv(game.variant, 1))

    def think(self, root: Root, limits: Limits, stop: Stop, report: Report) -> Thought:
        """See `Thinker`; the score says nothing, and no limit matters."""
        started = time.monotonic()
        env = VectorEnv(root.game.variant, 1)
        env.set_fen(0, format_fen(root.game, root.row))
        move = env.action_to_move(0, self._choose(env)) if env.legal_counts[0] else root.moves[0]
        if limits.only and move not in limits.only:
            move = limits.only[0]
        thought = Thought((Line((move,), 0, None, NO_SCORE),), 1, 1, 1, time.monotonic() - started)
        report(thought)
        return thought

    def _choose(self, env: VectorEnv) -> int:
        lanes: npt.NDArray[np.intp] = np.zeros(1, np.intp)
        return int(self._player.choose(env, lanes, self._rng)[0])


def decided(moves: tuple[str, ...], mate: int) -> Line:
    """Return the line of a game that is decided in `mate` moves, negative for the player to move being beaten."""
    sign = 1 if mate > 0 else -1
    return Line(moves, sign * MOST_CENTIPAWNS, mate, (1000, 0, 0) if mate > 0 else (0, 0, 1000))


def chances(win: float, draw: float) -> tuple[int, int, int]:
    """Return the chances of a win, a draw and a loss per mille."""
    wins = round(1000 * win)
    draws = min(round(1000 * draw), 1000 - wins)
    return wins, draws, 1000 - wins - draws
