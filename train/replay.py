"""The replay window: rows of stored games in memory, and training batches drawn from them.

Dims: N rows of a batch, M legal actions of a row (padded with -1), C x H x W observation, S squares, T piece types.

Rows stay packed; observations and legal actions are made when a row is drawn. The window grows as in KataGo
(Wu 2019, appendix C): c(1 + b((n/c)^a - 1)/a) rows out of the n that were ever added.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import envs
from envs import layout
from models.storage import CorruptFile
from train.shards import POLICY_SUM_TOLERANCE, GameRecord, ShardInfo, read_shard

if TYPE_CHECKING:
    from envs import CompiledGame
    from train.config_sections import ReplayConfig

POLICY_SHARE = 0.75
"""Share of a batch that is drawn from rows with a policy; the rest trains the value alone."""
UNKNOWN = -1
"""Result of a row whose game was cut."""
HOLE = -1
"""What a piece map holds where the grid has no square."""

Rng = np.random.Generator


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows to train on; everything belongs to the player to move of its row.

    Attributes:
        observations: float32 [N, C, H, W].
        legal_actions: int64 [N, M], padded with -1.
        policy_target: float32 [N, M], zero where padded, all zero in rows without a policy.
        has_policy: bool [N].
        wdl_target: float32 [N, 3], probabilities of win, draw and loss.
        moves_left: float32 [N], plies to the end of the game; nan where the game was cut.
        future_pieces: int64 [N, H, W], see `piece_maps`; the board some plies later, or at the end of the game where
            that comes first; all `HOLE` where the game was cut before then. None where the window keeps no future
            boards.
    """

    observations: NDArray[np.float32]
    legal_actions: NDArray[np.int64]
    policy_target: NDArray[np.float32]
    has_policy: NDArray[np.bool_]
    wdl_target: NDArray[np.float32]
    moves_left: NDArray[np.float32]
    future_pieces: NDArray[np.int64] | None = None


def window_rows(total: int, cfg: ReplayConfig) -> int:
    """Return how many of the newest rows the window holds after `total` were added: all of them up to c."""
    base = cfg.window_base
    if total <= base:
        return total
    return int(base * (1 + cfg.beta * ((total / base) ** cfg.alpha - 1) / cfg.alpha))


def value_as_wdl(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Spread values over the three results.

    A value says only win minus loss. We split it as the sum of two independent half points, each won with
    probability p = (1 + value) / 2: win p^2, draw 2p(1 - p), loss (1 - p)^2. That keeps the value, is smooth,
    makes 0 half a draw and leaves 1 and -1 certain.

    Args:
        values: float32 [N] in [-1, 1].

    Returns:
        float32 [N, 3].
    """
    p = (1 + np.clip(values, -1, 1)) / 2
    return np.stack((p * p, 2 * p * (1 - p), (1 - p) * (1 - p)), axis=1).astype(np.float32)


def piece_maps(game: CompiledGame, boards: NDArray[np.uint8], sides: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Say which piece stands on each cell of the grid, seen by one side.

    Args:
        game: the game.
        boards: uint8 [N, S], piece codes.
        sides: uint8 [N], whose view it is: 0 White, 1 Black.

    Returns:
        int64 [N, H, W]: 0 empty, 1 + t own piece of type t, 1 + T + t enemy piece of type t, `HOLE` off the board.
    """
    num_types, (_, height, width) = len(game.variant.piece_types), game.observation_shape
    numbers, owners = boards % layout.BLACK_CODE, boards // layout.BLACK_CODE  # numbers: 0 empty, 1 + t
    is_enemy = (boards > 0) & (owners != sides[:, None])
    first_cell = int(game.tables[layout.T_CELL])
    cells = game.tables[first_cell : first_cell + 2 * boards.shape[1]].reshape(2, -1).astype(np.int64)
    maps = np.full((len(boards), height * width), HOLE, dtype=np.int64)
    np.put_along_axis(maps, cells[sides], numbers + num_types * is_enemy, axis=1)
    return maps.reshape(-1, height, width)


class ReplayBuffer:
    """The newest rows of all games; adding reads shards, sampling consumes the rng given."""

    def __init__(
        self, game: CompiledGame, cfg: ReplayConfig, *, outcome_weight: float = 0.5, future_plies: int | None = None
    ) -> None:
        """Make an empty window.

        Args:
            game: whose games will be added.
            cfg: growth of the window.
            outcome_weight: share of the game's result in the value target; the rest is the root value.
            future_plies: how many plies after each row's position its future board is; None keeps none.
        """
        self._game, self._cfg, self._outcome_weight = game, cfg, outcome_weight
        self._future_plies = future_plies
        self.total_rows = 0
        """Rows ever added, those that left the window included."""
        self._states = _Column(np.uint64, (game.state_words,))
        self._results = _Column(np.int8)
        self._root_values = _Column(np.float32)
        self._moves_left = _Column(np.float32)
        self._futures = _Column(np.uint8, (game.variant.num_squares,))
        self._has_future = _Column(np.bool_)
        self._policy_counts = _Column(np.int32)
        self._policy_ends = _Column(np.int64)
        self._policy_actions = _Column(np.int32)
        self._policy_probs = _Column(np.float32)
        self._pools: tuple[NDArray[np.int64], ...] = ()
        """Row numbers with a policy, and without one."""

    @property
    def num_rows(self) -> int:
        """Rows in the window."""
        return len(self._results)

    @property
    def num_policy_rows(self) -> int:
        """Rows in the window that have a policy."""
        return int(np.count_nonzero(self._policy_counts.view))

    def add(self, folder: Path, info: ShardInfo) -> None:
        """Add a shard's games and drop the rows that leave the window.

        Args:
            folder: of the shards.
            info: the shard.

        Raises:
            CorruptFile, CheckpointMismatch: see `read_shard`; the window is as it was.
        """
        for record in read_shard(folder / info.name, self._game, sha256=info.sha256):
            self._append(record)
        self.total_rows += info.num_rows
        self._drop(self.num_rows - window_rows(self.total_rows, self._cfg))
        counts = self._policy_counts.view
        self._pools = (np.flatnonzero(counts), np.flatnonzero(counts == 0))

    def restore(self, folder: Path, infos: Sequence[ShardInfo]) -> None:
        """Fill an empty window as adding all shards would, reading only those that are still in it.

        Args:
            folder: of the shards.
            infos: every shard of the run, oldest first.

        Raises:
            CorruptFile, CheckpointMismatch: see `read_shard`.
        """
        wanted = window_rows(sum(info.num_rows for info in infos), self._cfg)
        first = len(infos)
        while first > 0 and wanted > 0:
            first -= 1
            wanted -= infos[first].num_rows
        self.total_rows = sum(info.num_rows for info in infos[:first])
        for info in infos[first:]:
            self.add(folder, info)

    def steps_for(self, new_policy_rows: int, *, passes: float, batch_size: int) -> int:
        """Return the training steps that draw each new row with a policy `passes` times on average."""
        return math.ceil(passes * new_policy_rows / max(1, self._policy_draws(batch_size)))

    def sample(self, rng: Rng, batch_size: int) -> Batch:
        """Draw rows uniformly, with replacement, from those with a policy and from those without one.

        Args:
            rng: consumed.
            batch_size: N.

        Raises:
            ValueError: the window is empty.
            CorruptFile: a stored policy lists an action that is not legal.
        """
        if self.num_rows == 0:
            raise ValueError("no rows to train on: add finished games first")
        draws = self._policy_draws(batch_size)
        sizes = (draws, batch_size - draws)
        rows = np.concatenate([rng.choice(pool, size) for pool, size in zip(self._pools, sizes) if size])
        states = self._states.view[rows]
        legal, _ = envs.legal_actions(self._game, states)
        return Batch(
            observations=envs.observe(self._game, states),
            legal_actions=legal.astype(np.int64),
            policy_target=self._policy_targets(rows, legal),
            has_policy=self._policy_counts.view[rows] > 0,
            wdl_target=self._wdl_targets(rows),
            moves_left=self._moves_left.view[rows],
            future_pieces=self._future_maps(rows, states),
        )

    def _append(self, record: GameRecord) -> None:
        """Append the rows of one game that train."""
        first, plies = record.opening_plies, record.num_plies
        is_cut = bool(np.isnan(record.white_score))
        if self._future_plies is not None:
            played, _ = envs.replay_actions(self._game, record.start_fen, record.actions)
            later = np.arange(first, plies) + self._future_plies
            self._futures.append(envs.boards(self._game, played)[np.minimum(later, plies)])
            self._has_future.append((later <= plies) | (not is_cut))
        white_to_move = envs.to_play(self._game, record.states)[first:] == 0
        points = np.full(plies - first, record.white_score)
        points = np.where(white_to_move, points, 1 - points)
        results = np.full(plies - first, UNKNOWN) if is_cut else 2 - 2 * points
        left = np.arange(plies - first, 0, -1, dtype=np.float32)
        self._states.append(record.states[first:])
        self._results.append(results)
        self._root_values.append(record.root_values[first:])
        self._moves_left.append(np.full_like(left, np.nan) if is_cut else left)
        self._append_policies(record)

    def _append_policies(self, record: GameRecord) -> None:
        first = record.opening_plies
        begin = int(record.policy_index[first])
        base = int(self._policy_ends.view[-1]) if len(self._policy_ends) else 0
        self._policy_counts.append(np.diff(record.policy_index[first:]))
        self._policy_ends.append(record.policy_index[first + 1 :] - begin + base)
        self._policy_actions.append(record.policy_actions[begin:])
        self._policy_probs.append(record.policy_probs[begin:])

    def _drop(self, rows: int) -> None:
        """Forget the oldest rows."""
        if rows <= 0:
            return
        entries = int(self._policy_counts.view[:rows].sum())
        for column in (self._policy_actions, self._policy_probs):
            column.drop(entries)
        for column in (self._states, self._results, self._root_values, self._moves_left, self._policy_counts):
            column.drop(rows)
        if self._future_plies is not None:
            self._futures.drop(rows)
            self._has_future.drop(rows)
        self._policy_ends.drop(rows)
        self._policy_ends.view[:] -= entries

    def _policy_draws(self, batch_size: int) -> int:
        """Return how many rows of a batch come from those with a policy."""
        with_policy, without = self.num_policy_rows, self.num_rows - self.num_policy_rows
        if with_policy == 0 or without == 0:
            return batch_size if with_policy else 0
        return round(POLICY_SHARE * batch_size)

    def _policy_targets(self, rows: NDArray[np.int64], legal: NDArray[np.int32]) -> NDArray[np.float32]:
        """Lay the sparse policies of rows [N] along their legal actions [N, M]."""
        counts = self._policy_counts.view[rows].astype(np.int64)
        owner = np.repeat(np.arange(len(rows)), counts)
        within = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        entry = np.repeat(self._policy_ends.view[rows] - counts, counts) + within
        by_action = np.zeros((len(rows), self._game.num_actions), dtype=np.float32)
        by_action[owner, self._policy_actions.view[entry]] = self._policy_probs.view[entry]
        targets = np.take_along_axis(by_action, np.maximum(legal, 0), axis=1) * (legal >= 0)
        if np.abs(targets.sum(axis=1) - (counts > 0)).max() > 2 * POLICY_SUM_TOLERANCE:
            raise CorruptFile("replay window: a stored policy lists an action that is not legal")
        return targets

    def _wdl_targets(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Mix result and root value; a game that was cut has only its root values."""
        results = self._results.view[rows]
        expected = value_as_wdl(self._root_values.view[rows])
        weight = np.where(results == UNKNOWN, 0, self._outcome_weight).astype(np.float32)[:, None]
        mixed: NDArray[np.float32] = weight * np.eye(3, dtype=np.float32)[results] + (1 - weight) * expected
        return mixed

    def _future_maps(self, rows: NDArray[np.int64], states: NDArray[np.uint64]) -> NDArray[np.int64] | None:
        """Return the future boards of rows [N], each seen by the side to move in the row's own position."""
        if self._future_plies is None:
            return None
        maps = piece_maps(self._game, self._futures.view[rows], envs.to_play(self._game, states))
        maps[~self._has_future.view[rows]] = HOLE
        return maps


class _Column:
    """A growable array that forgets its oldest entries; appending is cheap, looking is a view."""

    def __init__(self, dtype: Any, shape: tuple[int, ...] = ()) -> None:
        self._values = np.empty((0, *shape), dtype=dtype)
        self._first = self._end = 0

    def __len__(self) -> int:
        return self._end - self._first

    @property
    def view(self) -> NDArray[Any]:
        """The entries, oldest first; aliases the column until the next append."""
        return self._values[self._first : self._end]

    def append(self, values: NDArray[Any]) -> None:
        """Append entries."""
        if self._end + len(values) > len(self._values):
            size = (len(self) + len(values)) * 3 // 2
            room = np.empty((size, *self._values.shape[1:]), dtype=self._values.dtype)
            room[: len(self)] = self.view
            self._values, self._first, self._end = room, 0, len(self)
        self._values[self._end : self._end + len(values)] = values
        self._end += len(values)

    def drop(self, count: int) -> None:
        """Forget the oldest entries."""
        self._first += count
