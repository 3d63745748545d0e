"""Alpha-beta search of one position, for every game: iterative deepening over the kernels of `alphabeta_kernels.py`.

Dims: S squares, W words a state row, N rows, L lanes, H keys of a history. Scores are integers in the units of an
evaluation table, seen by the player to move at the root; `MATE` less the plies to the end is a forced win.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from envs import CompiledGame, VectorEnv, layout
from envs.bounded_memory import remember
from envs.game_kernels import verdict
from envs.kernels import make
from envs.layout import U64Array
from envs.rows import board_of, format_fen, legal_moves, outcome_of_verdict, thread_scratch
from train import alphabeta_kernels as kernels
from train.alphabeta_kernels import DECISIVE, MATE
from train.evaluation_tables import table_for
from train.move_time import check_seconds

__all__ = ["DECISIVE", "MATE", "AlphaBeta", "AlphaBetaPlayer", "Line", "SearchResult", "evaluate", "parse_alphabeta"]

I64Array = NDArray[np.int64]
MAX_DEPTH = 64
QUIESCENCE_PLIES = 6
TABLE_BITS = 20
NO_LIMIT = 1 << 62
SALT_STEP = 0x9E3779B97F4A7C15
"""Odd, so that searches have different salts."""
PLAYER_TABLE_BITS = 18
"""Enough for a move; a process may hold a player of several games."""
MAX_GAMES_KNOWN = 8
_U64 = np.uint64


@dataclass(frozen=True, eq=False)
class Line:
    """A move of the root and what is expected to follow.

    Attributes:
        move: move word (`envs/layout.py`).
        action: the same as an action of the player to move.
        score: what it is worth to the player to move at the root.
        moves: move words of the principal variation, `move` first, quiescence included.
        leaf: uint64 [W], the position that the variation leads to, whose static evaluation is the score; None where
            the game is decided there.
    """

    move: int
    action: int
    score: int
    moves: tuple[int, ...]
    leaf: U64Array | None


@dataclass(frozen=True)
class SearchResult:
    """What a search found.

    Attributes:
        lines: best first, as many as asked for and legal.
        depth: plies searched to their end.
        nodes: positions entered, the root not counted.
        quiescence_nodes: those of them that quiescence entered.
        seconds: wall time so far.
    """

    lines: tuple[Line, ...]
    depth: int
    nodes: int
    quiescence_nodes: int
    seconds: float

    @property
    def best(self) -> Line:
        """The best line."""
        return self.lines[0]


@dataclass(frozen=True, eq=False)
class _Variation:
    """A principal variation: its score, its moves uint64, and whether the game is decided at its end."""

    score: int
    moves: U64Array
    is_decided: bool


@dataclass(frozen=True)
class _Limits:
    """What ends a search, whichever comes first; None for no limit."""

    depth: int | None
    seconds: float | None
    nodes: int | None
    stop: NDArray[np.uint8] | None

    def __post_init__(self) -> None:
        if self.depth is None and self.seconds is None and self.nodes is None and self.stop is None:
            raise ValueError("a search without an end: expected one of depth, seconds, nodes or stop")
        if self.depth is not None and not 1 <= self.depth <= MAX_DEPTH:
            raise ValueError(f"depth: expected 1 to {MAX_DEPTH}, got {self.depth}")
        if self.seconds is not None and not self.seconds > 0:
            raise ValueError(f"seconds: expected more than 0, got {self.seconds}")
        if self.nodes is not None and self.nodes < 1:
            raise ValueError(f"nodes: expected at least 1, got {self.nodes}")
        if self.stop is not None and (self.stop.shape != (1,) or self.stop.dtype != np.uint8):
            raise ValueError(f"stop: expected uint8 [1], got {self.stop.dtype} {list(self.stop.shape)}")


class AlphaBeta:
    """A searcher of one game; one search at a time, in one thread.

    Equal searches give equal results, whatever was searched before: nothing is carried from one to the next.
    """

    def __init__(
        self,
        game: CompiledGame,
        table_weights: NDArray[np.int32],
        *,
        tempo: int = 0,
        table_bits: int = TABLE_BITS,
        quiescence_plies: int = QUIESCENCE_PLIES,
    ) -> None:
        """Make a searcher.

        Args:
            game: the compiled game.
            table_weights: int32 [32, S], what each piece code on each square is worth to White.
            tempo: what the move is worth.
            table_bits: the transposition table has 2 ** this entries of 16 bytes; 0 for none.
            quiescence_plies: plies of quiescence at most; 0 for none.

        Raises:
            ValueError: an argument is out of range.
        """
        if not 0 <= table_bits <= 30:
            raise ValueError(f"table_bits: expected 0 to 30, got {table_bits}")
        if not 0 <= quiescence_plies <= MAX_DEPTH:
            raise ValueError(f"quiescence_plies: expected 0 to {MAX_DEPTH}, got {quiescence_plies}")
        self.game = game
        self._weights = _flat_weights(game, table_weights)
        self._plies = MAX_DEPTH + quiescence_plies + 2
        self._rows = np.zeros(self._plies * game.state_words, np.uint64)
        self._frames = np.zeros(self._plies * kernels.FIELDS, np.int64)
        self._pv = np.zeros(self._plies * self._plies, np.uint64)
        self._history = np.zeros(layout.NUM_CODES * game.variant.num_squares, np.int64)
        self._table = np.zeros(2 << table_bits if table_bits else 0, np.uint64)
        self._control = np.zeros(kernels.CONTROLS, np.int64)
        self._control[kernels.QUIESCENCE_PLIES] = quiescence_plies
        self._control[kernels.TEMPO] = tempo
        self._moves, self._order = np.zeros(0, np.uint64), np.zeros(0, np.int64)
        self._keys = np.zeros(0, np.uint64)
        self._never = np.zeros(1, np.uint8)
        self._num_searches = 0

    def search(  # noqa: PLR0913 - a public surface that others rely on
        self,
        row: U64Array,
        history: U64Array | None = None,
        *,
        depth: int | None = None,
        seconds: float | None = None,
        nodes: int | None = None,
        stop: NDArray[np.uint8] | None = None,
        num_lines: int = 1,
        on_depth: Callable[[SearchResult], None] | None = None,
    ) -> SearchResult:
        """Search a position ever deeper until a limit is reached, or until deeper cannot change a forced end.

        One ply is always searched to its end. What was found at an unfinished depth counts, with one line.

        Args:
            row: uint64 [W], a position in which the game goes on.
            history: uint64 [H], the game's keys since its last irreversible move (`VectorEnv.histories`); None for a
                game that begins here.
            depth: plies to search, quiescence not counted.
            seconds: wall time.
            nodes: positions to enter at most.
            stop: uint8 [1]; another thread sets it to end the search.
            num_lines: best moves wanted.
            on_depth: told of every finished depth.

        Raises:
            ValueError: the game is over there, there is no limit, or an argument is out of range.
        """
        if num_lines < 1:
            raise ValueError(f"num_lines: expected at least 1, got {num_lines}")
        limits = _Limits(depth, seconds, nodes, stop)
        began = time.perf_counter()
        num_roots = self._begin(row, history, limits)
        variations: list[_Variation] = []
        reached = 0
        with self._halting(seconds):
            while reached < (depth or MAX_DEPTH):
                found, finished = self._search_depth(reached + 1, num_roots, min(num_lines, num_roots), stop)
                if not finished:
                    variations = found if num_lines == 1 and found else variations
                    break
                variations, reached = found, reached + 1
                if on_depth is not None:
                    on_depth(self._result(variations, reached, began))
                if all(abs(variation.score) >= MATE - reached for variation in variations):
                    break
        return self._result(variations, reached, began)

    def _begin(self, row: U64Array, history: U64Array | None, limits: _Limits) -> int:
        """Lay out the root, its moves and its history, and forget the last search; return the number of moves."""
        moves, counts, checks = legal_moves(self.game, row[np.newaxis])
        count = int(counts[0])
        self._rows[: self.game.state_words] = row
        root = self._rows[: self.game.state_words].view(np.uint8)
        _refuse_finished(self.game, row, count, bool(checks[0]))
        room = self._plies * self.game.legal_bound(board_of(self.game, row))
        if room > len(self._moves):
            self._moves, self._order = np.zeros(room, np.uint64), np.zeros(room, np.int64)
        self._moves[:count] = moves[0, :count]
        place = int(root[layout.REVERSIBLE : layout.REVERSIBLE + 2].view(np.uint16)[0])
        self._keys = np.zeros(place + 1 + self._plies, np.uint64)
        if history is not None:
            self._keys[: min(place, len(history))] = history[:place]
        self._keys[place] = row[0]
        self._frames[:] = 0
        self._history[:] = 0
        self._num_searches += 1
        control = self._control
        control[kernels.NODES] = control[kernels.QUIESCENCE_NODES] = control[kernels.HALT] = 0
        control[kernels.NODE_LIMIT] = limits.nodes or NO_LIMIT
        control[kernels.ROOT_PLACE] = place
        control[kernels.SALT] = self._num_searches * SALT_STEP % (1 << 63)
        self._frames[int(kernels.STATIC)] = kernels.static_of(self.game.tables, self._weights, root, _U64(0))
        return count

    def _search_depth(
        self, depth: int, num_roots: int, num_lines: int, stop: NDArray[np.uint8] | None
    ) -> tuple[list[_Variation], bool]:
        """Search to one depth; return its variations, best first, and whether it was finished.

        The next depth begins with the moves that are best in this one.
        """
        self._control[kernels.ROOT_DEPTH] = depth
        found: list[_Variation] = []
        for number in range(num_lines):
            kernels.open_root(self._frames, self._order, number, num_roots, depth)
            finished = bool(
                kernels.search(
                    self.game.tables, self.game.zobrist, self._weights, self._rows.view(np.uint8), self._rows,
                    self._moves, self._order, self._frames, self._keys, self._table, self._history, self._pv,
                    self._control, self._never if stop is None else stop, thread_scratch(),
                )
            )  # fmt: skip
            length = int(self._frames[int(kernels.LENGTH)])
            if length:
                moves = self._pv[:length].copy()
                is_decided = bool(self._frames[int(kernels.DECIDED)])
                found.append(_Variation(int(self._frames[int(kernels.BEST)]), moves, is_decided))
                kernels.bring_forward(self._moves, moves[0], number)
            if not finished:
                return found, False
        return sorted(found, key=lambda variation: -variation.score), True

    def _result(self, variations: list[_Variation], depth: int, began: float) -> SearchResult:
        nodes, quiescence_nodes = self._control[[kernels.NODES, kernels.QUIESCENCE_NODES]].tolist()
        lines = tuple(self._line(variation) for variation in variations)
        return SearchResult(lines, depth, nodes, quiescence_nodes, time.perf_counter() - began)

    def _line(self, variation: _Variation) -> Line:
        leaf = None
        if not variation.is_decided:
            leaf = self._rows[: self.game.state_words].copy()
            for word in variation.moves:
                make(self.game.tables, self.game.zobrist, leaf.view(np.uint8), leaf, _U64(0), word)
        moves = tuple(variation.moves.tolist())
        return Line(moves[0], (moves[0] >> 16) & 0xFFFF, variation.score, moves, leaf)

    @contextmanager
    def _halting(self, seconds: float | None) -> Iterator[None]:
        """Halt the search after some seconds."""
        if seconds is None:
            yield
            return
        timer = threading.Timer(seconds, self._control.__setitem__, (kernels.HALT, 1))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()  # or it might halt the next search


def evaluate(
    game: CompiledGame, table_weights: NDArray[np.int32], rows: U64Array, *, tempo: int = 0
) -> NDArray[np.int32]:
    """Return the static evaluation of rows uint64 [N, W] as their players to move see it, int32 [N]."""
    values = np.zeros(len(rows), np.int32)
    flat = np.require(rows, np.uint64, ["C"]).view(np.uint8).reshape(-1)
    kernels.evaluate_rows(game.tables, _flat_weights(game, table_weights), flat, tempo, values)
    return values


def _flat_weights(game: CompiledGame, table_weights: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return weights as the kernels need them, int32 [32 * S]; a copy.

    Raises:
        ValueError: their shape or type is wrong, or an empty square is worth something.
    """
    shape = (layout.NUM_CODES, game.variant.num_squares)
    if table_weights.shape != shape or table_weights.dtype != np.int32:
        given = f"{table_weights.dtype} {list(table_weights.shape)}"
        raise ValueError(f"table_weights: expected int32 {list(shape)} for {game.variant.name}, got {given}")
    if table_weights[0].any():
        raise ValueError("table_weights: expected 0 for piece code 0, an empty square")
    return table_weights.flatten()


def _refuse_finished(game: CompiledGame, row: U64Array, num_moves: int, check: bool) -> None:
    """Refuse a root in which the game is over.

    Raises:
        ValueError: it is.
    """
    data = row.view(np.uint8)
    ended = int(verdict(game.tables, data, row, _U64(0), _U64(num_moves), _U64(check)))
    outcome = outcome_of_verdict(ended, int(data[layout.TO_PLAY]))
    if outcome is not None:
        raise ValueError(f"nothing to search, the game is over by {outcome.termination.name}: {format_fen(game, row)}")


class AlphaBetaPlayer:
    """Plays the best move of a search of each position; see `arena.Player`. Deterministic at a fixed depth.

    Attributes:
        name: `alphabeta:3`, `alphabeta:50ms`.
        depth: plies to search each move, or None.
        seconds: wall time for each move, or None.
    """

    def __init__(self, *, depth: int | None = None, seconds: float | None = None) -> None:
        """Make a player; what a game's pieces are worth is looked up, or learned, when it first meets the game.

        Args:
            depth: plies to search each move.
            seconds: or wall time for each move.

        Raises:
            ValueError: neither or both are given, or one is out of range.
        """
        if (depth is None) == (seconds is None):
            raise ValueError("expected either depth or seconds")
        _Limits(depth, None, None, np.zeros(1, np.uint8))
        check_seconds(seconds)
        self.name = f"alphabeta:{depth}" if seconds is None else f"alphabeta:{seconds * 1000:g}ms"
        self.depth, self.seconds = depth, seconds
        self._searchers: dict[str, AlphaBeta] = {}

    def choose(self, env: VectorEnv, lanes: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.int32]:
        """See `arena.Player`; the generator is not used."""
        searcher = self._searcher(env.game)
        chosen = [
            searcher.search(env.states[lane], env.histories[lane], depth=self.depth, seconds=self.seconds).best.action
            for lane in lanes
        ]
        return np.array(chosen, np.int32)

    def _searcher(self, game: CompiledGame) -> AlphaBeta:
        key = game.variant.content_hash
        if key not in self._searchers:
            table = table_for(game.variant)
            own = AlphaBeta(game, table.weights, tempo=table.tempo, table_bits=PLAYER_TABLE_BITS)
            own.search(VectorEnv(game.variant, 1).states[0], depth=1)  # loads compiled code before a clock runs
            remember(self._searchers, key, own, MAX_GAMES_KNOWN)
        return self._searchers[key]


def parse_alphabeta(text: str) -> AlphaBetaPlayer:
    """Return the player that a text names: `alphabeta:3` by plies, `alphabeta:50ms` by time.

    Raises:
        ValueError: the text is neither.
    """
    found = re.fullmatch(r"alphabeta:(\d{1,9}(?:\.\d{1,9})?)(ms)?", text)
    if found is None or (found[2] is None and not found[1].isdigit()):
        raise ValueError(f"'{text}': expected alphabeta:PLIES or alphabeta:MILLISECONDSms: alphabeta:3, alphabeta:50ms")
    try:
        return AlphaBetaPlayer(seconds=float(found[1]) / 1000) if found[2] else AlphaBetaPlayer(depth=int(found[1]))
    except ValueError as error:
        raise ValueError(f"'{text}': {error}") from None
