"""The replay window: rows of stored games in memory, and training batches drawn from them.

Dims: N rows of a batch, M legal actions of a row (padded with -1), C x H x W observation, S squares, T piece types.

Rows stay packed; observations and legal actions are made when a row is drawn, half of them reflected left to right
where the rules and the position allow it. The window grows as in KataGo (Wu 2019, appendix C):
c(1 + b((n/c)^a - 1)/a) rows out of the n that were ever added, as far as they fit into the memory set for it.
Held-out games lie apart: they leave together with the shard that they came in, and are never trained on.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

import envs
from envs import layout
from envs.reflection import Reflection
from models.storage import CorruptFile
from train.shards import GameRecord, ShardInfo, read_listed
from train.stored_rows import SLACK, UNKNOWN, DrawnRows, StoredRows
from train.verification import POLICY_SUM_TOLERANCE, verify_game

if TYPE_CHECKING:
    from envs import CompiledGame
    from train.config_sections import ReplayConfig

REFLECTED_SHARE = 0.5
"""Share of the rows drawn that are reflected, of those that may be."""
MEGABYTE = 1 << 20
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
            cfg: size of the window, and how rows are drawn from it.
            outcome_weight: share of the game's result in the value target; the rest is the root value.
            future_plies: how many plies after each row's position its future board is; None keeps none.
        """
        self._game, self._cfg, self._outcome_weight = game, cfg, outcome_weight
        self._reflection = Reflection.of(game) if cfg.mirror else None
        self.total_rows = 0
        """Rows ever added, those that left the window included; those of held-out games do not count."""
        self._window = StoredRows(game, future_plies)
        self._held_out = StoredRows(game, future_plies)
        self._shards: deque[tuple[int, int]] = deque()
        """Rows and held-out rows of the shards that have rows in the window, oldest first."""
        self._pools: tuple[NDArray[np.uint32], ...] = ()
        """Row numbers with a policy, and without one."""

    @property
    def num_rows(self) -> int:
        """Rows in the window."""
        return len(self._window)

    @property
    def num_policy_rows(self) -> int:
        """Rows in the window that have a policy."""
        return len(self._pools[0]) if self._pools else 0

    @property
    def num_held_out_rows(self) -> int:
        """Rows of held-out games."""
        return len(self._held_out)

    @property
    def num_bytes(self) -> int:
        """Bytes of memory that window and held-out rows fill."""
        return self._window.num_bytes + self._held_out.num_bytes + sum(pool.nbytes for pool in self._pools)

    @property
    def reflects(self) -> bool:
        """Whether rows are reflected: it is asked for, and the game's rules allow it."""
        return self._reflection is not None

    def add(self, folder: Path, info: ShardInfo) -> None:
        """Add a shard's games and drop the rows that leave the window.

        Args:
            folder: of the shards.
            info: the shard.

        Raises:
            CorruptFile, CheckpointMismatch: see `read_listed`; or a game is wrong. The window is as it was.
        """
        records = read_listed(folder, info, self._game)
        for number, record in enumerate(records):
            fault = verify_game(self._game, record)
            if fault is not None:
                raise CorruptFile(f"{folder / info.name}: game {number} is wrong: {fault}")
        self.total_rows += info.num_rows
        for record in records:
            self._append(record)
        self._shards.append((info.num_rows, info.num_held_out_rows))
        self._let_shards_go()
        has_policy = self._window.has_policy
        self._pools = tuple(np.flatnonzero(chosen).astype(np.uint32) for chosen in (has_policy, ~has_policy))

    def restore(self, folder: Path, infos: Sequence[ShardInfo]) -> None:
        """Fill an empty window as adding all shards would, reading only those that are still in it.

        Args:
            folder: of the shards.
            infos: every shard of the run, oldest first.

        Raises:
            CorruptFile, CheckpointMismatch: see `add`.
        """
        wanted, room = window_rows(sum(info.num_rows for info in infos), self._cfg), self._max_bytes
        first = len(infos)
        while first > 0 and (first == len(infos) or (wanted > 0 and room > 0)):
            first -= 1
            wanted -= infos[first].num_rows
            room -= self._row_bytes * infos[first].num_rows + self._window.entry_bytes * infos[first].num_entries
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
        rows = [pool[rng.integers(len(pool), size=size)] for pool, size in zip(self._pools, sizes) if size]
        drawn = self._window.draw(np.concatenate(rows).astype(np.int64))
        if self._reflection is None:
            return self._batch(drawn)
        chosen = rng.random(batch_size) < REFLECTED_SHARE
        return self._batch(_reflected(drawn, self._reflection, chosen & self._reflection.allowed(drawn.states)))

    def held_out_batches(self, batch_size: int) -> list[Batch]:
        """Return the rows of held-out games, oldest first, as they were played; no row at all gives no batch.

        Args:
            batch_size: N; the last batch may have fewer.
        """
        starts = range(0, len(self._held_out), batch_size)
        spans = [np.arange(start, min(start + batch_size, len(self._held_out))) for start in starts]
        return [self._batch(self._held_out.draw(rows)) for rows in spans]

    @property
    def _max_bytes(self) -> int:
        """Bytes that rows and their numbers may fill, so that what is set aside besides fits too."""
        return self._cfg.max_memory_mb * MEGABYTE * SLACK // (SLACK + 1)

    @property
    def _row_bytes(self) -> int:
        """Bytes of a row without its policy, its number in a pool included."""
        return self._window.row_bytes + np.dtype(np.uint32).itemsize

    def _append(self, record: GameRecord) -> None:
        """Add one game; as many rows leave as must."""
        if record.held_out:
            self._held_out.append(record)
            self._held_out.drop(len(self._held_out) - self._cfg.held_out_rows)
            return
        self._window.append(record)
        self._window.drop(self.num_rows - window_rows(self.total_rows, self._cfg))
        self._window.drop(self._window.excess(self._max_bytes, row_bytes=self._row_bytes))

    def _let_shards_go(self) -> None:
        """Forget the shards that have no row in the window, with their held-out games."""
        later = sum(rows for rows, _ in self._shards)
        while len(self._shards) > 1 and (later := later - self._shards[0][0]) >= self.num_rows:
            self._shards.popleft()
        self._held_out.drop(len(self._held_out) - sum(rows for _, rows in self._shards))

    def _policy_draws(self, batch_size: int) -> int:
        """Return how many rows of a batch come from those with a policy."""
        with_policy, without = self.num_policy_rows, self.num_rows - self.num_policy_rows
        if with_policy == 0 or without == 0:
            return batch_size if with_policy else 0
        return max(1, round(self._cfg.policy_share * batch_size))

    def _batch(self, drawn: DrawnRows) -> Batch:
        """Turn rows into what the network is trained on."""
        legal, _ = envs.legal_actions(self._game, drawn.states)
        return Batch(
            observations=envs.observe(self._game, drawn.states),
            legal_actions=legal.astype(np.int64),
            policy_target=self._policy_targets(drawn, legal),
            has_policy=drawn.has_policy,
            wdl_target=self._wdl_targets(drawn),
            moves_left=drawn.moves_left,
            future_pieces=self._future_maps(drawn),
        )

    def _policy_targets(self, drawn: DrawnRows, legal: NDArray[np.int32]) -> NDArray[np.float32]:
        """Lay the sparse policies of N rows along their legal actions [N, M]."""
        by_action = np.zeros((len(legal), self._game.num_actions), dtype=np.float32)
        by_action[drawn.owners, drawn.actions] = drawn.probabilities
        targets = np.take_along_axis(by_action, np.maximum(legal, 0), axis=1) * (legal >= 0)
        if np.abs(targets.sum(axis=1) - drawn.has_policy).max(initial=0) > 2 * POLICY_SUM_TOLERANCE:
            raise CorruptFile("replay window: a stored policy lists an action that is not legal")
        return targets

    def _wdl_targets(self, drawn: DrawnRows) -> NDArray[np.float32]:
        """Mix result and root value; a game that was cut has only its root values."""
        expected = value_as_wdl(drawn.root_values)
        weight = np.where(drawn.results == UNKNOWN, 0, self._outcome_weight).astype(np.float32)[:, None]
        mixed: NDArray[np.float32] = weight * np.eye(3, dtype=np.float32)[drawn.results] + (1 - weight) * expected
        return mixed

    def _future_maps(self, drawn: DrawnRows) -> NDArray[np.int64] | None:
        """Return the future boards of N rows, each seen by the side to move in the row's own position."""
        if drawn.futures is None:
            return None
        maps = piece_maps(self._game, drawn.futures, envs.to_play(self._game, drawn.states))
        maps[~drawn.has_future] = HOLE
        return maps


def _reflected(drawn: DrawnRows, reflection: Reflection, chosen: NDArray[np.bool_]) -> DrawnRows:
    """Return rows of which those chosen, bool [N], are reflected; futures and policies follow."""
    states = drawn.states.copy()
    states[chosen] = reflection.rows(states[chosen])
    futures = drawn.futures
    if futures is not None:
        futures = np.where(chosen[:, None], futures[:, reflection.squares], futures)
    actions = np.where(chosen[drawn.owners], reflection.actions[drawn.actions], drawn.actions)
    return replace(drawn, states=states, actions=actions, futures=futures)
