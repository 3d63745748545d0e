"""Gumbel AlphaZero search over many games in lockstep.

Every lane searches its own position with its own budget; each round of `advance` selects one leaf in every lane,
evaluates the leaves as one batch and backs them up. The tree itself is in `search_kernels.py`.
Source: Danihelka et al. 2022, "Policy improvement by planning with Gumbel".

Dims: B lanes, M legal moves, W words of a state row. Values belong to the player to move and lie in [-1, 1].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from envs import CompiledGame, VectorEnv, observe
from envs.rows import board_of, thread_scratch
from models.evaluator import Evaluator
from train import search_kernels

EDGES_PER_NODE = 48
"""First guess of legal moves a node; the pool grows when a game needs more."""


@dataclass(frozen=True)
class SearchSettings:
    """The knobs of the search.

    Attributes:
        max_considered_actions: Root actions that sequential halving starts from (m in the paper).
        c_visit: Visits added to the most visited edge's in the weight of completed Q-values.
        c_scale: Scale of that weight; Q-values are mapped to [0, 1].
    """

    max_considered_actions: int = 16
    c_visit: float = 50.0
    c_scale: float = 1.0


@dataclass(frozen=True)
class SearchResult:
    """What a finished search says of its root.

    Attributes:
        action: The chosen action: most visits, ties by the Gumbel score.
        legal_actions: int32 [M].
        visit_counts: int32 [M].
        policy: float32 [M], the improved policy, free of noise: the training target.
        prior: float32 [M], the network's own policy.
        value: Expected result of the player to move: the mean of the network's own and of every simulation's.
        raw_value: What the network alone said.
    """

    action: int
    legal_actions: npt.NDArray[np.int32]
    visit_counts: npt.NDArray[np.int32]
    policy: npt.NDArray[np.float32]
    prior: npt.NDArray[np.float32]
    value: float
    raw_value: float


def halving_visits(num_considered: int, num_simulations: int) -> list[int]:
    """List, for each simulation, how many visits the root edge that it takes must have had so far.

    Sequential halving: `num_considered` edges are visited equally, then the better half of them, down to two.
    """
    if num_considered <= 1:
        return list(range(num_simulations))
    phases = math.ceil(math.log2(num_considered))
    visits = [0] * num_considered
    wanted: list[int] = []
    while len(wanted) < num_simulations:
        for _ in range(max(1, num_simulations // (phases * num_considered))):
            wanted += visits[:num_considered]
            visits[:num_considered] = [count + 1 for count in visits[:num_considered]]
        num_considered = max(2, num_considered // 2)
    return wanted[:num_simulations]


class Search:
    """Search trees for B lanes of one game."""

    def __init__(
        self, game: CompiledGame, num_lanes: int, max_simulations: int, settings: SearchSettings | None = None
    ) -> None:
        """Reserve the trees.

        Args:
            game: The compiled game.
            num_lanes: B.
            max_simulations: The largest budget that `begin` will be given.
            settings: The knobs.
        """
        self.game = game
        self.settings = settings or SearchSettings()
        self.num_lanes = num_lanes
        self.max_simulations = max_simulations
        self._num_nodes = max_simulations + 1
        self._bounds = np.zeros(num_lanes, np.int64)
        self._plans: dict[tuple[int, int], int] = {}
        self._schedule = np.zeros(0, np.int32)
        self._weights = (np.float32(self.settings.c_visit), np.float32(self.settings.c_scale))
        self._rows = np.zeros((num_lanes, game.state_words), np.uint64)
        self._history_length = 0
        self._tree = self._make_tree(self._num_nodes * EDGES_PER_NODE)
        self._room = np.zeros(1, np.float32)
        self._observations = np.zeros((num_lanes, *game.observation_shape), np.float32)

    def begin(
        self,
        lane: int,
        row: npt.NDArray[np.uint64],
        history: npt.NDArray[np.uint64],
        *,
        budget: int,
        rng: np.random.Generator | None,
    ) -> None:
        """Start a search in a lane.

        Args:
            lane: 0..B-1; what it held is dropped.
            row: uint64 [W], a position that is not over.
            history: uint64 [L], the game's keys since its last irreversible move (`VectorEnv.histories`).
            budget: Simulations, at most `max_simulations`.
            rng: Draws the root's Gumbel noise, one number a legal move; None for no noise.
        """
        if not 0 <= budget <= self.max_simulations:
            raise ValueError(f"budget: expected 0 to {self.max_simulations}, got {budget}")
        self._bounds[lane] = self.game.legal_bound(board_of(self.game, row))
        self._make_room()
        self._lengthen_histories(len(history))
        count = int(search_kernels.plant(self.game.tables, self._tree, lane, row, history, budget, thread_scratch()))
        considered = min(self.settings.max_considered_actions, count, budget)
        self._tree[search_kernels.PLANS][lane] = self._plan(considered, budget)
        edge0 = lane * self._num_edges
        noise = np.float32(0.0) if rng is None else rng.gumbel(size=count).astype(np.float32)
        self._tree[search_kernels.EDGE_GUMBEL][edge0 : edge0 + count] = noise

    def advance(self, lanes: npt.NDArray[np.intp], evaluator: Evaluator) -> npt.NDArray[np.bool_]:
        """Run one round: a batch of at most one evaluation a lane.

        Args:
            lanes: int [n], lanes that have begun.
            evaluator: Scores the leaves.

        Returns:
            bool [n], whether the lane's budget is used up.
        """
        self._make_room()
        bound = int(self._bounds[lanes].max(initial=1))
        if len(self._room) < bound:
            self._room = np.zeros(bound, np.float32)
        chosen = np.ascontiguousarray(lanes, np.int64)
        rows = self._rows[: len(lanes)]
        actions = np.empty(len(lanes) * bound, np.int32)
        count, widest = search_kernels.select_leaves(
            self.game.tables,
            self.game.zobrist,
            self._tree,
            chosen,
            self._schedule,
            self._weights,
            self._room,
            thread_scratch(),
            rows.reshape(-1),
            actions,
        )
        if count:
            observations = observe(self.game, rows[:count], self._observations[:count])
            logits, wdl = evaluator(observations, actions[: count * widest].reshape(count, widest))
            values = np.ascontiguousarray(wdl[:, 0] - wdl[:, 2], np.float32)
            search_kernels.receive(
                self.game.tables, self._tree, chosen, np.ascontiguousarray(logits, np.float32), values
            )
        spent: npt.NDArray[np.bool_] = (
            self._tree[search_kernels.SIMULATIONS][chosen] >= self._tree[search_kernels.BUDGETS][chosen]
        )
        return spent

    def result(self, lane: int) -> SearchResult:
        """Return what the finished search of a lane says."""
        node, edge0 = lane * self._num_nodes, lane * self._num_edges
        count = int(self._tree[search_kernels.NUM_EDGES][node])
        policy = np.empty(count, np.float32)
        best, value = search_kernels.conclude(self._tree, lane, self._weights, policy)
        moves = self._tree[search_kernels.EDGE_MOVE][edge0 : edge0 + count]
        legal = ((moves >> np.uint64(16)) & np.uint64(0xFFFF)).astype(np.int32)
        visits = self._tree[search_kernels.EDGE_VISITS][edge0 : edge0 + count].copy()
        prior = self._tree[search_kernels.EDGE_PRIOR][edge0 : edge0 + count].copy()
        return SearchResult(
            int(legal[best]),
            legal,
            visits,
            policy,
            prior,
            float(value),
            float(self._tree[search_kernels.RAW_VALUE][node]),
        )

    @property
    def evaluations(self) -> int:
        """Positions evaluated so far, over all lanes."""
        return int(self._tree[search_kernels.EVALUATIONS].sum())

    @property
    def depths(self) -> int:
        """Sum of the depths of the positions evaluated so far; a root's is 0."""
        return int(self._tree[search_kernels.DEPTHS].sum())

    @property
    def _num_edges(self) -> int:
        return len(self._tree[search_kernels.EDGE_MOVE]) // self.num_lanes

    def _plan(self, considered: int, budget: int) -> int:
        """Return where the halving schedule of a lane begins in the common list."""
        key = (considered, budget)
        if key not in self._plans:
            self._plans[key] = len(self._schedule)
            self._schedule = np.concatenate([self._schedule, np.array(halving_visits(*key), np.int32)])
        return self._plans[key]

    def _make_room(self) -> None:
        """Grow the edge pools before any lane could run out in one round."""
        needed = int((self._tree[search_kernels.EDGES_USED] + self._bounds).max())
        if needed <= self._num_edges:
            return
        old, old_size = self._tree, self._num_edges
        self._tree = self._make_tree(2 * needed)
        for number, (before, after) in enumerate(zip(old, self._tree, strict=True)):
            if number in _EDGE_ARRAYS:
                after.reshape(self.num_lanes, -1)[:, :old_size] = before.reshape(self.num_lanes, -1)
            elif number != search_kernels.ROW_BYTES:
                after[:] = before

    def _lengthen_histories(self, length: int) -> None:
        """Make room for the keys of games that are longer than those before."""
        more = length - self._history_length
        if more > 0:
            self._history_length = length
            tree = list(self._tree)
            histories = tree[search_kernels.HISTORIES].reshape(self.num_lanes, -1)
            tree[search_kernels.HISTORIES] = np.pad(histories, ((0, 0), (0, more))).reshape(-1)
            self._tree = tuple(tree)

    def _make_tree(self, num_edges: int) -> tuple[npt.NDArray[Any], ...]:
        nodes, edges, lanes = self.num_lanes * self._num_nodes, self.num_lanes * num_edges, self.num_lanes
        rows = np.zeros(nodes * self.game.state_words, np.uint64)
        int32, float32 = np.int32, np.float32
        return (
            rows, rows.view(np.uint8), *(np.zeros(nodes, int32) for _ in range(4)), np.zeros(nodes, float32),
            np.zeros(nodes, np.uint8), np.zeros(edges, np.uint64), np.zeros(edges, float32), np.zeros(edges, float32),
            np.zeros(edges, int32), np.zeros(edges, float32), np.zeros(edges, int32), np.zeros(edges, float32),
            *(np.zeros(lanes, int32) for _ in range(5)), np.zeros(lanes * self._history_length, np.uint64),
            np.full(lanes, search_kernels.FINISHED, int32), np.zeros(lanes, np.int64), np.zeros(lanes, np.int64),
        )  # fmt: skip


_EDGE_ARRAYS = range(search_kernels.EDGE_MOVE, search_kernels.EDGE_GUMBEL + 1)


class SearchPlayer:
    """Plays the move that a search without noise chooses."""

    def __init__(
        self,
        evaluator: Evaluator,
        *,
        num_simulations: int,
        name: str,
        settings: SearchSettings | None = None,
        batch_size: int = 64,
    ) -> None:
        """Make a player.

        Args:
            evaluator: Scores positions.
            num_simulations: Budget of every move.
            name: Shown in results.
            settings: The knobs of the search.
            batch_size: Games searched at once at most.
        """
        self.name = name
        self.evaluator = evaluator
        self.num_simulations = num_simulations
        self.settings = settings or SearchSettings()
        self.batch_size = batch_size
        self._search: Search | None = None

    def choose(self, env: VectorEnv, lanes: npt.NDArray[np.intp], rng: np.random.Generator) -> npt.NDArray[np.int32]:
        """See `arena.Player`; the generator is not used: the search is deterministic."""
        if self._search is None or self._search.game is not env.game:
            self._search = Search(env.game, self.batch_size, self.num_simulations, self.settings)
        chosen = [
            self._choose(self._search, env, lanes[first : first + self.batch_size])
            for first in range(0, len(lanes), self.batch_size)
        ]
        return np.concatenate(chosen) if chosen else np.zeros(0, np.int32)

    def _choose(self, search: Search, env: VectorEnv, lanes: npt.NDArray[np.intp]) -> npt.NDArray[np.int32]:
        for slot, lane in enumerate(lanes):
            search.begin(slot, env.states[lane], env.histories[lane], budget=self.num_simulations, rng=None)
        running = np.arange(len(lanes))
        while len(running):
            running = running[~search.advance(running, self.evaluator)]
        return np.array([search.result(slot).action for slot in range(len(lanes))], np.int32)
