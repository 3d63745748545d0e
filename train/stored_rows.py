"""Rows of games in memory, packed, oldest first: appended at one end, forgotten at the other, drawn by number.

Dims: N rows, W words of a packed position, S squares, E entries of the sparse policies of the rows drawn.

Memory is flat: an array that is full moves its rows to its front, or grows in place by an eighth; it is never copied
whole.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import envs

if TYPE_CHECKING:
    from envs import CompiledGame
    from train.shards import GameRecord

UNKNOWN = -1
"""Result of a row whose game was cut."""
SLACK = 8
"""An array has room for an eighth more than it holds, at most."""
_MOVED_AT_ONCE = 4096


@dataclass(frozen=True, eq=False)
class DrawnRows:
    """Copies of rows.

    Attributes:
        states: uint64 [N, W].
        results: int8 [N], 0 win, 1 draw, 2 loss of the player to move, `UNKNOWN` where the game was cut.
        root_values: float32 [N], for the player to move.
        moves_left: float32 [N], plies to the end of the game by its rules; nan where it has none.
        has_policy: bool [N].
        owners: int64 [E], the row that each policy entry belongs to, ascending.
        actions: int32 [E].
        probabilities: float32 [E].
        futures: uint8 [N, S], the boards some plies later; None where none are kept.
        has_future: bool [N], whether the game went on so far, or ended by its rules before.
    """

    states: NDArray[np.uint64]
    results: NDArray[np.int8]
    root_values: NDArray[np.float32]
    moves_left: NDArray[np.float32]
    has_policy: NDArray[np.bool_]
    owners: NDArray[np.int64]
    actions: NDArray[np.int32]
    probabilities: NDArray[np.float32]
    futures: NDArray[np.uint8] | None
    has_future: NDArray[np.bool_]


class StoredRows:
    """Rows of whole games and of the newest part of one more."""

    def __init__(self, game: CompiledGame, future_plies: int | None) -> None:
        """Hold nothing.

        Args:
            game: whose games will come.
            future_plies: how many plies after each row's position its future board is; None keeps none.
        """
        self._game, self._future_plies = game, future_plies
        self._states = Column(np.uint64, (game.state_words,))
        self._results = Column(np.int8)
        self._root_values = Column(np.float32)
        self._moves_left = Column(np.float32)
        self._counts = Column(np.int32)
        self._ends = Column(np.int64)
        """Where each row's policy ends, counted over all entries that there ever were."""
        self._futures = Column(np.uint8, (game.variant.num_squares,))
        self._has_future = Column(np.bool_)
        self._actions = Column(np.int32)
        self._probabilities = Column(np.float32)
        self._entries_dropped = 0
        futures = [] if future_plies is None else [self._futures, self._has_future]
        self._by_row = [self._states, self._results, self._root_values, self._moves_left, self._counts, self._ends]
        self._by_row += futures
        self._by_entry = [self._actions, self._probabilities]
        self.row_bytes = sum(column.item_bytes for column in self._by_row)
        """Bytes of a row without its policy."""
        self.entry_bytes = sum(column.item_bytes for column in self._by_entry)
        """Bytes of each move that a policy lists."""

    def __len__(self) -> int:
        """N."""
        return len(self._results)

    @property
    def num_bytes(self) -> int:
        """Bytes of what is held; up to `SLACK` more are set aside."""
        return self.row_bytes * len(self) + self.entry_bytes * len(self._actions)

    @property
    def has_policy(self) -> NDArray[np.bool_]:
        """Which rows have a policy, bool [N]."""
        found: NDArray[np.bool_] = self._counts.view > 0
        return found

    def append(self, record: GameRecord) -> None:
        """Append the rows of a game that train; it must be right by `verify_game`."""
        first, plies = record.opening_plies, record.num_plies
        has_end = record.termination != 0
        if self._future_plies is not None:
            played, _ = envs.replay_actions(self._game, record.start_fen, record.actions)
            later = np.arange(first, plies) + self._future_plies
            self._futures.append(envs.boards(self._game, played)[np.minimum(later, plies)])
            self._has_future.append((later <= plies) | has_end)
        left = np.arange(plies - first, 0, -1, dtype=np.float32)
        self._states.append(record.states[first:])
        self._results.append(self._results_of(record))
        self._root_values.append(record.root_values[first:])
        self._moves_left.append(left if has_end else np.full_like(left, np.nan))
        begin = int(record.policy_index[first])
        base = self._entries_dropped + len(self._actions)
        self._counts.append(np.diff(record.policy_index[first:]))
        self._ends.append(record.policy_index[first + 1 :] - begin + base)
        self._actions.append(record.policy_actions[begin:])
        self._probabilities.append(record.policy_probs[begin:])

    def drop(self, rows: int) -> None:
        """Forget the oldest rows; none if there are not so many above 0."""
        if rows <= 0:
            return
        entries = int(self._ends.view[rows - 1]) - self._entries_dropped
        self._entries_dropped += entries
        for column in self._by_entry:
            column.drop(entries)
        for column in self._by_row:
            column.drop(rows)

    def excess(self, max_bytes: int, *, row_bytes: int) -> int:
        """Return how many of the oldest rows must go for the rest to fit, a row without its policy at `row_bytes`."""
        surplus = row_bytes * len(self) + self.entry_bytes * len(self._actions) - max_bytes
        if surplus <= 0:
            return 0
        ends = self._ends.view

        def freed_with(row: int) -> int:
            return row_bytes * (row + 1) + self.entry_bytes * (int(ends[row]) - self._entries_dropped)

        return min(len(self), 1 + bisect_left(range(len(self)), surplus, key=freed_with))

    def draw(self, rows: NDArray[np.int64]) -> DrawnRows:
        """Return copies of rows int64 [N], numbered from the oldest."""
        counts = self._counts.view[rows].astype(np.int64)
        owners = np.repeat(np.arange(len(rows)), counts)
        within = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
        entries = np.repeat(self._ends.view[rows] - counts - self._entries_dropped, counts) + within
        keeps_futures = self._future_plies is not None
        return DrawnRows(
            states=self._states.view[rows],
            results=self._results.view[rows],
            root_values=self._root_values.view[rows],
            moves_left=self._moves_left.view[rows],
            has_policy=counts > 0,
            owners=owners,
            actions=self._actions.view[entries],
            probabilities=self._probabilities.view[entries],
            futures=self._futures.view[rows] if keeps_futures else None,
            has_future=self._has_future.view[rows] if keeps_futures else np.zeros(len(rows), np.bool_),
        )

    def _results_of(self, record: GameRecord) -> NDArray[np.float64]:
        first = record.opening_plies
        if np.isnan(record.white_score):
            return np.full(record.num_plies - first, UNKNOWN, np.float64)
        white_to_move = envs.to_play(self._game, record.states[first:]) == 0
        return np.where(white_to_move, 2 - 2 * record.white_score, 2 * record.white_score)


class Column:
    """A growable array that forgets its oldest entries."""

    def __init__(self, dtype: Any, shape: tuple[int, ...] = ()) -> None:
        """Hold nothing."""
        self._values = np.empty((0, *shape), dtype=dtype)
        self._first = self._end = 0

    def __len__(self) -> int:
        """Number of entries."""
        return self._end - self._first

    @property
    def item_bytes(self) -> int:
        """Bytes of an entry."""
        return int(np.prod(self._values.shape[1:], dtype=np.int64)) * self._values.itemsize

    @property
    def view(self) -> NDArray[Any]:
        """The entries, oldest first; valid until the next append."""
        return self._values[self._first : self._end]

    def append(self, values: NDArray[Any]) -> None:
        """Append entries."""
        if self._end + len(values) > len(self._values):
            self._make_room(len(self) + len(values))
        self._values[self._end : self._end + len(values)] = values
        self._end += len(values)

    def drop(self, count: int) -> None:
        """Forget the oldest entries."""
        self._first += count

    def _make_room(self, wanted: int) -> None:
        """Move the entries to the front, and grow in place where fewer than `wanted` and some would fit."""
        size, first = len(self), self._first
        step = max(first, _MOVED_AT_ONCE)  # bounds what NumPy copies aside where old and new place overlap
        for start in range(0, size if first else 0, step):
            end = min(size, start + step)
            self._values[start:end] = self._values[first + start : first + end]
        self._first, self._end = 0, size
        room = wanted + wanted // SLACK
        if room > len(self._values):
            self._values.resize((room, *self._values.shape[1:]), refcheck=False)
