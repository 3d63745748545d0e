"""Analysis of one position: a deep search that proves what it can.

The tree grows with use; leaves are batched inside it. Every legal move is looked at before any is looked at twice,
every new position is tested for a win at once, and proofs travel up: once the root is proven, the search is over. The
kernels are in `analysis_kernels.py`, with the sources.

Dims: M legal moves, W words of a state row, n leaves of a batch. Values belong to the player to move at the root and
lie in [-1, 1].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from envs import CompiledGame, VectorEnv, layout, observe
from envs.game_kernels import verdict
from envs.rows import actions_of, board_of, format_fen, legal_moves, outcome_of_verdict, thread_scratch
from models.evaluator import Evaluator
from train import analysis_kernels as kernels
from train import search_kernels
from train.search_arrays import evaluate

LANE = kernels.LANE
Proof: TypeAlias = Literal["win", "draw", "loss"] | None
PROOFS: dict[int, Proof] = {
    kernels.UNPROVEN: None,
    kernels.WIN: "win",
    kernels.DRAW: "draw",
    kernels.PROVEN_LOSS: "loss",
}
_Arrays: TypeAlias = tuple[npt.NDArray[Any], ...]
EXACT_VALUES = {"win": 1.0, "draw": 0.0, "loss": -1.0}


@dataclass(frozen=True, kw_only=True)
class AnalysisSettings:
    """The knobs of the analysis.

    Attributes:
        batch_size: Leaves that one call of the evaluator scores at most.
        c_puct: Weight of exploration; grows with visits by `log((visits + c_puct_base + 1) / c_puct_base)`.
        c_puct_base: See `c_puct`.
        fpu_reduction: How much less than its parent's value an unvisited move is taken for.
    """

    batch_size: int = 16
    c_puct: float = 1.25
    c_puct_base: float = 19652.0
    fpu_reduction: float = 0.2

    def __post_init__(self) -> None:
        """Refuse a batch that holds nothing.

        Raises:
            ValueError: `batch_size` is out of range.
        """
        if not 1 <= self.batch_size <= np.iinfo(np.int16).max // 2:
            raise ValueError(f"batch_size: expected 1 to {np.iinfo(np.int16).max // 2}, got {self.batch_size}")


@dataclass(frozen=True)
class Line:
    """A legal move of the root and what follows it.

    Attributes:
        action: The move.
        pv: The expected actions from the root on, `action` first; each belongs to its player to move.
        value: Expected result for the player to move at the root, exact where proven; None if nothing is known.
        visit_count: Simulations that took the move.
        prior: The evaluator's probability.
        result: What the move is proven to lead to, for the player to move at the root; None if unproven.
        plies_to_end: Plies from the root in which a proven win can be forced, or a proven loss put off no longer; of a
            draw, the plies of the shortest proof. None if unproven.
    """

    action: int
    pv: tuple[int, ...]
    value: float | None
    visit_count: int
    prior: float
    result: Proof
    plies_to_end: int | None


@dataclass(frozen=True)
class AnalysisResult:
    """What the analysis says of its root.

    Attributes:
        lines: One for each legal move, or as many as were asked for, best first: `lines[0].action` is the move to play.
        value: Expected result of the player to move, exact where proven.
        raw_value: What the evaluator alone said.
        result: What the root is proven to be for the player to move; None if unproven.
        plies_to_end: As in `Line`.
        simulations: Done so far; those that ended in a finished or proven position count.
        evaluations: Positions that the evaluator has scored, the root among them.
    """

    lines: tuple[Line, ...]
    value: float
    raw_value: float
    result: Proof
    plies_to_end: int | None
    simulations: int
    evaluations: int


class Analysis:
    """A search tree over one position.

    A simulation takes about 29 bytes a legal move and 8 W + 42 bytes besides: from the start position 0.8 kB in chess
    and 1.6 kB in asylum. The arrays double when they are full.
    """

    def __init__(self, game: CompiledGame, evaluator: Evaluator, settings: AnalysisSettings | None = None) -> None:
        """Make a tree without a position.

        Args:
            game: The compiled game.
            evaluator: Scores positions.
            settings: The knobs.
        """
        self.game = game
        self.evaluator = evaluator
        self.settings = settings or AnalysisSettings()
        self._knobs = tuple(
            np.float32(knob) for knob in (self.settings.c_puct, self.settings.c_puct_base, self.settings.fpu_reduction)
        )
        size = self.settings.batch_size
        self._waiting, self._collided = np.zeros(size, np.int32), np.zeros(size, np.int32)
        self._rows = np.zeros((size, game.state_words), np.uint64)
        self._observations = np.zeros((size, *game.observation_shape), np.float32)
        self._bound = 0
        self._selected = 0, 0
        self._tree, self._more = _make_arrays(game.state_words, 0, 0, np.zeros(0, np.uint64))

    def begin(self, row: npt.NDArray[np.uint64], history: npt.NDArray[np.uint64]) -> None:
        """Start on a position; what the tree held is dropped.

        Args:
            row: uint64 [W], a position in which the game goes on.
            history: uint64 [L], the game's keys since its last irreversible move (`VectorEnv.histories`).

        Raises:
            ValueError: The game is over there.
        """
        _refuse_finished(self.game, row)
        self._selected = 0, 0
        self._bound = self.game.legal_bound(board_of(self.game, row))
        self._reserve(0, 0, np.array(history, np.uint64))
        search_kernels.plant(self.game.tables, self._tree, LANE, row, history, 0, thread_scratch())
        kernels.open_node(
            self.game.tables, self.game.zobrist, self._tree, self._more, search_kernels.ROOT, thread_scratch()
        )

    def run(self, num_simulations: int) -> None:
        """Add simulations to the tree; fewer if the root is proven before.

        Args:
            num_simulations: At least 0; with 0 the root alone is evaluated, once.

        Raises:
            ValueError: `num_simulations` is negative, or no position was begun.
        """
        if num_simulations < 0:
            raise ValueError(f"num_simulations: expected at least 0, got {num_simulations}")
        if not self._bound:
            raise ValueError("no position to analyse: call begin first")
        if not self.evaluations:
            logits, values = self._evaluate(np.array([search_kernels.ROOT], np.int32))
            kernels.evaluate(self._tree, self._more, search_kernels.ROOT, logits[0], values[0])
        budget = self.simulations + num_simulations
        while self.simulations < budget and not self._more[kernels.PROOF][search_kernels.ROOT]:
            self._advance(budget)

    def result(self, num_lines: int | None = None) -> AnalysisResult:
        """Return what the analysis knows so far.

        Args:
            num_lines: How many of the best lines to give; None for all.

        Raises:
            ValueError: The root has not been evaluated: nothing was run.
        """
        if not self.evaluations:
            raise ValueError("nothing was analysed: call run first")
        root = search_kernels.ROOT
        proof = PROOFS[int(self._more[kernels.PROOF][root])]
        return AnalysisResult(
            lines=tuple(self._line(edge) for edge in self._ranked(root)[:num_lines]),
            value=float(self._more[kernels.VALUE][root]) + 0.0,
            raw_value=float(self._tree[search_kernels.RAW_VALUE][root]) + 0.0,
            result=proof,
            plies_to_end=int(self._more[kernels.PLIES][root]) if proof else None,
            simulations=self.simulations,
            evaluations=self.evaluations,
        )

    @property
    def simulations(self) -> int:
        """Simulations done since `begin`."""
        return int(self._tree[search_kernels.SIMULATIONS][LANE])

    @property
    def evaluations(self) -> int:
        """Positions evaluated since `begin`."""
        return int(self._tree[search_kernels.EVALUATIONS][LANE])

    def _advance(self, budget: int) -> None:
        """Run simulations up to the next batch of leaves, and evaluate it.

        A batch whose evaluation failed is evaluated first.
        """
        if not self._selected[0]:
            self._make_room()
            self._selected = kernels.select(
                self.game.tables,
                self.game.zobrist,
                self._tree,
                self._more,
                (budget, self._bound),
                self._knobs,
                self._waiting,
                self._collided,
                thread_scratch(),
            )
        leaves, met = self._selected
        if leaves:
            waiting = self._waiting[:leaves]
            kernels.receive(self._tree, self._more, waiting, self._collided[:met], *self._evaluate(waiting))
            self._selected = 0, 0

    def _evaluate(self, leaves: npt.NDArray[np.int32]) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Return the evaluator's logits [n, M] and expected results [n] of nodes."""
        count = len(leaves)
        rows, actions = self._rows[:count], np.empty(count * self._bound, np.int32)
        widest = kernels.lay_out(self.game.tables, self._tree, leaves, rows.reshape(-1), actions)
        observations = observe(self.game, rows, self._observations[:count])
        logits, wdl = evaluate(self.evaluator, observations, actions[: count * widest].reshape(count, widest))
        return logits, wdl[:, 0] - wdl[:, 2]

    def _make_room(self) -> None:
        """Grow the arrays before a batch could fill them."""
        nodes = len(self._tree[search_kernels.PARENT]), int(self._tree[search_kernels.NUM_NODES][LANE])
        edges = len(self._tree[search_kernels.EDGE_MOVE]), int(self._tree[search_kernels.EDGES_USED][LANE])
        more_nodes = self.settings.batch_size + 1
        if nodes[1] + more_nodes < nodes[0] and edges[1] + more_nodes * self._bound < edges[0]:
            return
        old = (*self._tree, *self._more)
        self._reserve(nodes[1], edges[1], self._tree[search_kernels.HISTORIES])
        for before, after in zip(old, (*self._tree, *self._more), strict=True):
            after[: len(before)] = before[: len(after)]

    def _reserve(self, nodes: int, edges: int, history: npt.NDArray[np.uint64]) -> None:
        """Make arrays for twice the nodes and edges in use and a batch; one node more serves the kernels as scratch."""
        more_nodes = self.settings.batch_size + 2
        self._tree, self._more = _make_arrays(
            self.game.state_words, 2 * (nodes + more_nodes), 2 * (edges + more_nodes * self._bound), history
        )

    def _line(self, edge: int) -> Line:
        tree, more = self._tree, self._more
        proof = PROOFS[int(more[kernels.EDGE_PROOF][edge])]
        visits = int(tree[search_kernels.EDGE_VISITS][edge])
        value = float(tree[search_kernels.EDGE_VALUE][edge]) / visits + 0.0 if visits else None  # never -0.0
        pv = self._principal_variation(edge)
        return Line(
            action=pv[0],
            pv=pv,
            value=EXACT_VALUES[proof] if proof else value,
            visit_count=visits,
            prior=float(tree[search_kernels.EDGE_PRIOR][edge]),
            result=proof,
            plies_to_end=int(more[kernels.EDGE_PLIES][edge]) if proof else None,
        )

    def _principal_variation(self, edge: int) -> tuple[int, ...]:
        """Follow the best moves from an edge on, as far as they were visited or are proven."""
        tree = self._tree
        actions = []
        while True:
            actions.append((int(tree[search_kernels.EDGE_MOVE][edge]) >> 16) & 0xFFFF)
            child = int(tree[search_kernels.EDGE_CHILD][edge])
            if child == search_kernels.UNVISITED or not tree[search_kernels.NUM_EDGES][child]:
                return tuple(actions)
            edge = int(self._ranked(child)[0])
            if not tree[search_kernels.EDGE_VISITS][edge] and not self._more[kernels.EDGE_PROOF][edge]:
                return tuple(actions)

    def _ranked(self, node: int) -> npt.NDArray[np.int64]:
        """Return a node's edges, best first.

        Wins, the shortest first; unproven moves by visits, then value, then prior; losses, the longest first. Draws,
        the shortest first, come before the unproven moves unless the first of those has been found to be worth more.
        """
        tree, more = self._tree, self._more
        first = int(tree[search_kernels.FIRST_EDGE][node])
        edges = slice(first, first + int(tree[search_kernels.NUM_EDGES][node]))
        proofs, plies = more[kernels.EDGE_PROOF][edges], more[kernels.EDGE_PLIES][edges].astype(np.int64)
        visits = tree[search_kernels.EDGE_VISITS][edges].astype(np.int64)
        values = tree[search_kernels.EDGE_VALUE][edges] / np.maximum(visits, 1)
        is_short = (proofs == kernels.WIN) | (proofs == kernels.DRAW)
        merits = np.select([is_short, proofs == kernels.PROVEN_LOSS], [-plies, plies], visits)
        groups = np.select([proofs == kernels.WIN, proofs == kernels.PROVEN_LOSS, proofs == kernels.DRAW], [4, 0, 1], 2)
        later = -actions_of(tree[search_kernels.EDGE_MOVE][edges])
        ranks = later, tree[search_kernels.EDGE_PRIOR][edges], values, merits
        order: npt.NDArray[np.int64] = np.lexsort((*ranks, groups))
        unproven = order[proofs[order] == kernels.UNPROVEN]
        if len(unproven) and (visits[unproven[-1]] == 0 or values[unproven[-1]] <= 0):
            groups[proofs == kernels.DRAW] = 3
            order = np.lexsort((*ranks, groups))
        return first + order[::-1]


class AnalysisPlayer:
    """Plays the best line of an analysis of each position."""

    def __init__(
        self, evaluator: Evaluator, *, num_simulations: int, name: str, settings: AnalysisSettings | None = None
    ) -> None:
        """Make a player.

        Args:
            evaluator: Scores positions.
            num_simulations: Budget of every move.
            name: Shown in results.
            settings: The knobs of the analysis.
        """
        self.name = name
        self.evaluator = evaluator
        self.num_simulations = num_simulations
        self.settings = settings or AnalysisSettings()
        self._analysis: Analysis | None = None

    def choose(self, env: VectorEnv, lanes: npt.NDArray[np.intp], rng: np.random.Generator) -> npt.NDArray[np.int32]:
        """See `arena.Player`; the generator is not used: the analysis is deterministic."""
        if self._analysis is None or self._analysis.game is not env.game:
            self._analysis = Analysis(env.game, self.evaluator, self.settings)
        return np.array([self._choose(self._analysis, env, lane) for lane in lanes], np.int32)

    def _choose(self, analysis: Analysis, env: VectorEnv, lane: np.intp) -> int:
        analysis.begin(env.states[lane], env.histories[lane])
        analysis.run(self.num_simulations)
        return analysis.result().lines[0].action


def _refuse_finished(game: CompiledGame, row: npt.NDArray[np.uint64]) -> None:
    _, counts, checks = legal_moves(game, row[np.newaxis])
    copied = row.copy()
    ended = int(
        verdict(game.tables, copied.view(np.uint8), copied, np.uint64(0), np.uint64(counts[0]), np.uint64(checks[0]))
    )
    outcome = outcome_of_verdict(ended, int(copied.view(np.uint8)[layout.TO_PLAY]))
    if outcome is not None:
        raise ValueError(
            f"the game is over ({outcome.termination.name.lower()}): nothing to analyse in {format_fen(game, row)}"
        )


def _make_arrays(words: int, nodes: int, edges: int, history: npt.NDArray[np.uint64]) -> tuple[_Arrays, _Arrays]:
    """Return `tree` and `more` of the kernels, empty but for the history; unused arrays of `tree` have no length."""
    names, int32, float32 = search_kernels, np.int32, np.float32
    tree: list[npt.NDArray[Any]] = [np.zeros(0, int32) for _ in range(names.DEPTHS + 1)]
    tree[names.ROWS] = np.zeros(nodes * words, np.uint64)
    tree[names.ROW_BYTES] = tree[names.ROWS].view(np.uint8)
    for name in (names.PARENT, names.PARENT_EDGE, names.FIRST_EDGE, names.NUM_EDGES):
        tree[name] = np.zeros(nodes, int32)
    tree[names.RAW_VALUE], tree[names.OVER] = np.zeros(nodes, float32), np.zeros(nodes, np.uint8)
    tree[names.EDGE_MOVE] = np.zeros(edges, np.uint64)
    tree[names.EDGE_PRIOR], tree[names.EDGE_VALUE] = np.zeros(edges, float32), np.zeros(edges, float32)
    tree[names.EDGE_VISITS], tree[names.EDGE_CHILD] = np.zeros(edges, int32), np.zeros(edges, int32)
    for name in (names.NUM_NODES, names.EDGES_USED, names.SIMULATIONS, names.BUDGETS, names.LEAF):
        tree[name] = np.zeros(1, int32)
    tree[names.HISTORIES] = history
    tree[names.EVALUATIONS] = np.zeros(1, np.int64)
    more = (
        np.zeros(nodes, float32), np.zeros(nodes, np.float64), np.zeros(nodes, int32), np.zeros(nodes, np.int8),
        np.zeros(nodes, np.int16), np.zeros(nodes, np.uint8), np.zeros(nodes, np.uint8), np.zeros(edges, np.int16),
        np.zeros(edges, np.int8), np.zeros(edges, np.int16),
    )  # fmt: skip
    return tuple(tree), more
