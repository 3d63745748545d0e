"""Search over many games in lockstep: Gumbel AlphaZero, PUCT, or a policy of one's own.

Every lane searches its own position with its own budget; each round of `advance` selects one leaf in every lane,
evaluates the leaves as one batch and backs them up. The trees and the built-in policies are in `search_kernels.py`,
where their sources are named; the seam for other policies is in `search_policies.py`.

Dims: B lanes, M legal moves, W words of a state row. Values belong to the player to move and lie in [-1, 1].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from envs import CompiledGame, VectorEnv
from envs.rows import actions_of, format_fen, thread_scratch
from models.evaluator import Evaluator
from train import search_kernels as kernels
from train.search_arrays import evaluate, make_cache, make_knobs, make_tree, with_longer_histories, with_more_edges
from train.search_policies import (
    GUMBEL,
    PUCT,
    SEARCH_POLICIES,
    Node,
    SearchPolicy,
    SearchSettings,
    checked_move,
    checked_noise,
    checked_policy,
    halving_visits,
    own_policy,
    policy_names,
    register_search_policy,
)

__all__ = [
    "SEARCH_POLICIES", "Node", "Search", "SearchPlayer", "SearchPolicy", "SearchResult", "SearchSettings",
    "halving_visits", "policy_names", "register_search_policy",
]  # fmt: skip

EDGES_PER_NODE = 96
"""First guess of legal moves a node; the pool grows when a game needs more, and takes no memory before it is used."""


@dataclass(frozen=True)
class SearchResult:
    """What a finished search says of its root.

    Attributes:
        action: The chosen action: most visits, ties by the Gumbel score (by the prior with PUCT).
        legal_actions: int32 [M].
        visit_counts: int32 [M].
        policy: float32 [M], the training target: the improved policy free of noise (the visits' shares with PUCT).
        prior: float32 [M], the network's own policy.
        value: Expected result of the player to move: what the improved policy is worth with Gumbel, else the mean of
            the network's own value and of every simulation's.
        raw_value: What the network alone said.
    """

    action: int
    legal_actions: npt.NDArray[np.int32]
    visit_counts: npt.NDArray[np.int32]
    policy: npt.NDArray[np.float32]
    prior: npt.NDArray[np.float32]
    value: float
    raw_value: float


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

        Raises:
            ValueError: No policy has the name that the settings give.
        """
        self.game = game
        self.settings = settings or SearchSettings()
        self.num_lanes = num_lanes
        self.max_simulations = max_simulations
        self._policy = own_policy(self.settings)
        self._num_nodes = max_simulations + 1
        self._plans: dict[tuple[int, int], int] = {}
        self._schedule = np.zeros(0, np.int32)
        self._knobs = make_knobs(self.settings)
        self._most_by_code = np.append(game.most_by_code.reshape(-1), len(game.variant.castlings))
        self._tree = make_tree(game, num_lanes, self._num_nodes, self._num_nodes * EDGES_PER_NODE)
        self._cache = make_cache(self.settings.cache_positions)
        rows = np.zeros(num_lanes * game.state_words, np.uint64)
        self._leaf_rows = rows, rows.view(np.uint8)
        self._actions = np.zeros(0, np.int32)
        self._widest = 0
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
            rng: Draws the root's noise, once, in the order of the actions; None for no noise.

        Raises:
            ValueError: There is no such lane, the budget is out of range, or the game is over.
        """
        if not 0 <= lane < self.num_lanes:
            raise ValueError(f"lane: expected 0 to {self.num_lanes - 1}, got {lane}")
        if not 0 <= budget <= self.max_simulations:
            raise ValueError(f"budget: expected 0 to {self.max_simulations}, got {budget}")
        self._tree = with_longer_histories(self._tree, len(history))
        share = np.float32(-1.0 if self.settings.policy != PUCT else 0.0 if rng is None else self.settings.noise_share)
        count = -1
        while count < 0:
            count = kernels.begin_lane(
                self.game.tables, self._most_by_code, self._tree, lane, row, history, budget, share, thread_scratch()
            )
            if count < 0:
                self._tree = with_more_edges(self._tree, -count)
        if count == 0:
            self._tree[kernels.NUM_NODES][lane] = 0
            raise ValueError(f"the game is over: {format_fen(self.game, row)}")
        self._widest = max(self._widest, int(self._tree[kernels.BOUNDS][lane]))
        if self.settings.policy == GUMBEL:
            considered = min(self.settings.max_considered_actions, count, budget)
            self._tree[kernels.PLANS][lane] = self._plan(considered, budget)
        noise = np.zeros(count, np.float32) if rng is None else self._noise(count, rng)
        edges = self._edges(lane)
        order = self._actions_of(edges).argsort()
        self._tree[kernels.EDGE_NOISE][edges][order] = noise

    def advance(self, lanes: npt.NDArray[np.intp], evaluator: Evaluator) -> npt.NDArray[np.bool_]:
        """Run one round: a batch of at most one evaluation a lane.

        Args:
            lanes: int [n], lanes that have begun, each once.
            evaluator: Scores the leaves. If it raises, the leaves go on waiting for the next round.

        Returns:
            bool [n], whether the lane's budget is used up.

        Raises:
            ValueError, FloatingPointError: The evaluator's answer has a wrong shape, or is not finite.
        """
        chosen = np.ascontiguousarray(lanes, np.int64)
        count, widest = self._next_batch(chosen)
        while count == kernels.NO_ROOM:
            self._tree = with_more_edges(self._tree)
            count, widest = self._next_batch(chosen)
        if count:
            actions = self._actions[: count * widest].reshape(count, widest)
            logits, wdl = evaluate(evaluator, self._observations[:count], actions)
            kernels.receive(self.game.tables, self._tree, self._cache, chosen, logits, wdl)
        spent = np.empty(len(chosen), np.bool_)
        kernels.list_spent(self._tree, chosen, spent)
        return spent

    def result(self, lane: int) -> SearchResult:
        """Return what the finished search of a lane says.

        Raises:
            ValueError: The lane has not begun, or its root awaits its evaluation.
        """
        if not self._tree[kernels.NUM_NODES][lane] or self._tree[kernels.LEAF][lane] == kernels.ROOT:
            raise ValueError(f"lane {lane}: nothing has been searched")
        edges = self._edges(lane)
        legal = self._actions_of(edges)
        best, value, policy = self._conclude(lane, len(legal))
        return SearchResult(
            action=int(legal[best]),
            legal_actions=legal,
            visit_counts=self._tree[kernels.EDGE_VISITS][edges].copy(),
            policy=policy,
            prior=self._tree[kernels.EDGE_PRIOR][edges].copy(),
            value=value,
            raw_value=float(self._tree[kernels.RAW_VALUE][lane * self._num_nodes]),
        )

    def forget_evaluations(self) -> None:
        """Empty the cache; needed whenever the evaluator has other weights than before."""
        self._cache[kernels.CACHE_COUNTS].fill(-1)

    @property
    def evaluations(self) -> int:
        """Positions evaluated so far, over all lanes."""
        return int(self._tree[kernels.EVALUATIONS].sum())

    @property
    def recalled(self) -> int:
        """Positions so far whose evaluation came from the cache, over all lanes."""
        return int(self._tree[kernels.RECALLED].sum())

    @property
    def depths(self) -> int:
        """Sum of the depths of the positions evaluated or recalled so far; a root's is 0."""
        return int(self._tree[kernels.DEPTHS].sum())

    @property
    def _num_edges(self) -> int:
        return len(self._tree[kernels.EDGE_MOVE]) // self.num_lanes

    def _edges(self, lane: int, node: int = kernels.ROOT) -> slice:
        """Return where the edges of a node lie."""
        place = lane * self._num_nodes + node
        first = lane * self._num_edges + int(self._tree[kernels.FIRST_EDGE][place])
        return slice(first, first + int(self._tree[kernels.NUM_EDGES][place]))

    def _actions_of(self, edges: slice) -> npt.NDArray[np.int32]:
        """Return the actions of edges, int32 [M]."""
        return actions_of(self._tree[kernels.EDGE_MOVE][edges])

    def _plan(self, considered: int, budget: int) -> int:
        """Return where the halving schedule of a lane begins in the common list."""
        key = (considered, budget)
        if key not in self._plans:
            self._plans[key] = len(self._schedule)
            self._schedule = np.concatenate([self._schedule, np.array(halving_visits(*key), np.int32)])
        return self._plans[key]

    def _noise(self, count: int, rng: np.random.Generator) -> npt.NDArray[np.float32]:
        """Draw the noise of a root with so many legal moves, float32 [M]."""
        if self._policy is not None:
            return checked_noise(self._policy.root_noise(count, rng), count, self.settings.policy)
        if self.settings.policy == PUCT:
            return rng.dirichlet(np.full(count, self.settings.noise_total / count)).astype(np.float32)
        return rng.gumbel(size=count).astype(np.float32)

    def _next_batch(self, lanes: npt.NDArray[np.int64]) -> tuple[int, int]:
        """Select a leaf in each lane that awaits none, and lay them out.

        Returns:
            How many leaves there are, or `NO_ROOM` when the edge pools must grow first, and the most legal actions.
        """
        if len(self._actions) < self.num_lanes * self._widest:
            self._actions = np.empty(self.num_lanes * self._widest, np.int32)
        tables, batch = self.game.tables, (*self._leaf_rows, self._actions, self._observations.reshape(-1))
        if self._policy is not None:
            if not kernels.has_room(self._tree, lanes):
                return kernels.NO_ROOM, 0
            self._select_by_own_policy(lanes)
            count, widest = kernels.lay_out(tables, self._tree, lanes, *batch)
        else:
            search = self._tree, self._cache, lanes, self._schedule, self._knobs
            count, widest = kernels.next_batch(tables, self.game.zobrist, *search, thread_scratch(), *batch)
        return count, widest

    def _select_by_own_policy(self, lanes: npt.NDArray[np.int64]) -> None:
        """Select leaves as the kernel does, asking a policy in Python."""
        awaited = self._tree[kernels.LEAF]
        for lane in lanes.tolist():
            if awaited[lane] == kernels.NO_LEAF:
                awaited[lane] = self._select_leaf(lane)
            if awaited[lane] >= 0:
                kernels.recall(self.game.tables, self._tree, self._cache, lane)

    def _select_leaf(self, lane: int) -> int:
        """Run a lane's simulations by the policy in Python until one needs the network."""
        assert self._policy is not None
        tree, node0 = self._tree, lane * self._num_nodes
        while tree[kernels.SIMULATIONS][lane] < tree[kernels.BUDGETS][lane]:
            node, awaits = kernels.ROOT, False
            while not awaits and not tree[kernels.OVER][node0 + node]:
                seen = self._node(lane, node)
                move = checked_move(self._policy.select(seen), len(seen.prior), self.settings.policy)
                edge = self._edges(lane, node).start + move
                node, awaits = kernels.follow(
                    self.game.tables, self.game.zobrist, tree, lane, node, edge, thread_scratch()
                )
            if awaits:
                return int(node)
        return kernels.FINISHED

    def _node(self, lane: int, node: int) -> Node:
        """Return what a policy may see of a node."""
        tree, place = self._tree, lane * self._num_nodes + node
        edges = self._edges(lane, node)
        visits = tree[kernels.EDGE_VISITS][edges].copy()
        noise = tree[kernels.EDGE_NOISE][edges].copy() if node == kernels.ROOT else np.zeros(len(visits), np.float32)
        return Node(
            is_root=node == kernels.ROOT,
            legal_actions=self._actions_of(edges),
            prior_logits=tree[kernels.EDGE_LOGIT][edges].copy(),
            prior=tree[kernels.EDGE_PRIOR][edges].copy(),
            visit_counts=visits,
            qvalues=(tree[kernels.EDGE_VALUE][edges] / np.maximum(visits, 1)).astype(np.float32),
            raw_value=float(tree[kernels.RAW_VALUE][place]),
            noise=noise,
            simulation=int(tree[kernels.SIMULATIONS][lane]),
            budget=int(tree[kernels.BUDGETS][lane]),
        )

    def _conclude(self, lane: int, count: int) -> tuple[int, float, npt.NDArray[np.float32]]:
        """Return the number of the move to play, the root's value, and the policy target."""
        if self._policy is not None:
            move, target = self._policy.conclude(self._node(lane, kernels.ROOT))
            name = self.settings.policy
            value = float(kernels.root_value(self._tree, lane))
            return checked_move(move, count, name), value, checked_policy(target, count, name)
        policy = np.empty(count, np.float32)
        if self.settings.policy == GUMBEL:
            best, root_value = kernels.conclude_gumbel(self._tree, lane, self._knobs, policy)
        else:
            best, root_value = kernels.conclude_puct(self._tree, lane, policy)
        return int(best), float(root_value), policy


class SearchPlayer:
    """Plays the move that a search without noise chooses."""

    is_deterministic = True

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
            evaluator: Scores positions; with a cache its weights must stay as they are.
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
