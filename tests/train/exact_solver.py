"""Solved games: win, draw or loss of every position that some given ones can reach, and how far off the end is.

An independent witness for the search. It takes the legal moves and the ends of the rules engine, and works backwards
from the ends (retrograde analysis): a position is won in d plies when a move leads to one lost in d - 1, and lost in d
when every move leads to a won one, the longest in d - 1. What is never settled is a draw. Repetition and move limit
are left out: a winner who hurries never meets a position twice and nobody can make him, so from an empty history the
values with those rules are the same, for wins within the move limit.

Dims: N positions, E edges (a legal move each), W words of a row, S squares.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from envs import engine_for, layout, load_variant
from envs.game_kernels import royal_attacked, set_up, verdict
from envs.jit import njit
from envs.kernels import U1, U, make
from envs.layout import U8Array, U64Array
from envs.notation import piece_code
from envs.rows import legal_moves, observe, read_fen, to_play
from envs.tables import CompiledGame

UNSETTLED = -1
FAR = 1 << 20
CHUNK = 1 << 15
"""Positions expanded at once."""
QUARREL = Path(__file__).parent / "exact_games" / "quarrel.yaml"


@dataclass(frozen=True)
class Solution:
    """Positions and their exact values.

    Attributes:
        game: The game.
        rows: uint64 [N, W]; clock, ply and history empty.
        result: int8 [N], for the player to move: 1 won, 0 drawn, -1 lost.
        plies: int16 [N], to the end when the winner hurries and the loser delays; `UNSETTLED` in draws that go on.
        first_edge: int64 [N + 1], the edges of position n are `first_edge[n]` to `first_edge[n + 1]`, none at an end.
        action: int32 [E], in the order of the engine's legal moves.
        child: int64 [E], the position that the action leads to.
    """

    game: CompiledGame
    rows: U64Array
    result: npt.NDArray[np.int8]
    plies: npt.NDArray[np.int16]
    first_edge: npt.NDArray[np.int64]
    action: npt.NDArray[np.int32]
    child: npt.NDArray[np.int64]

    def edges(self, position: int) -> slice:
        """Return where the edges of a position are."""
        return slice(int(self.first_edge[position]), int(self.first_edge[position + 1]))

    def keepers(self, position: int) -> set[int]:
        """Return the actions that keep the value of a position."""
        span = self.edges(position)
        return set(self.action[span][self.result[self.child[span]] == -self.result[position]].tolist())

    def sides(self) -> npt.NDArray[np.uint8]:
        """Return the side to move of every position, uint8 [N]."""
        return to_play(self.game, self.rows)


def placements(game: CompiledGame, pieces: str) -> U64Array:
    """Return the legal positions with some pieces, such as "KQk" (capitals are White's), for both sides to move.

    Returns:
        uint64 [n, W]: pawns on no rank where one promotes, the side that has just moved not in check.
    """
    variant = game.variant
    squares = np.array(list(product(range(variant.num_squares), repeat=len(pieces))), np.uint8)
    possible = (np.diff(np.sort(squares, axis=1), axis=1) > 0).all(axis=1)
    ranks = np.array([y for _, y in variant.board.squares])
    kinds = [(variant.type_by_letter[letter.upper()], int(letter.islower())) for letter in pieces]
    for number, (kind, _) in enumerate(kinds):
        if variant.pawns and kind == variant.pawns.piece:
            possible &= ~np.isin(ranks[squares[:, number]], np.concatenate(variant.pawns.promotion_ranks))
    squares = np.repeat(squares[possible], 2, axis=0)
    rows = np.zeros((len(squares), game.state_words), np.uint64)
    bytes_ = rows.view(np.uint8)
    bytes_[1::2, layout.TO_PLAY] = 1
    for number, (kind, side) in enumerate(kinds):
        bytes_[np.arange(len(rows)), layout.HEADER_BYTES + squares[:, number]] = piece_code(kind, side)
    legal = np.empty(len(rows), np.bool_)
    _set_up_all(game.tables, game.zobrist, bytes_.reshape(-1), rows.reshape(-1), legal)
    return rows[legal]


def solve(game: CompiledGame, roots: U64Array) -> Solution:
    """Solve all positions that can be reached from some.

    Args:
        game: The game.
        roots: uint64 [n, W], with clock, ply and history empty; they may be over.
    """
    queue, parts = _distinct(roots), []
    keys = queue[:, 0]
    while len(queue):
        rows, queue = queue[:CHUNK], queue[CHUNK:]
        verdicts, counts, actions, children = _expand(game, rows)
        parts.append((rows, verdicts, counts, actions, children[:, 0]))
        children = _distinct(children)
        fresh = children[~np.isin(children[:, 0], keys, assume_unique=True)]
        keys = np.concatenate([keys, fresh[:, 0]])
        queue = np.concatenate([queue, fresh])
    rows, verdicts, counts, actions, child_keys = (np.concatenate(part) for part in zip(*parts))
    order = np.argsort(rows[:, 0])
    child = order[np.searchsorted(rows[order, 0], child_keys)]
    first_edge = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    result = np.array([0, -1, 1], np.int8)[verdicts >> 4]
    plies = np.where(verdicts == 0, UNSETTLED, 0).astype(np.int16)
    _settle(first_edge, child, result, plies)
    return Solution(game, rows, result, plies, first_edge, actions, child)


@cache
def solved_ending(name: str, pieces: str) -> Solution:
    """Solve an ending of a built-in game, with all endings that it can turn into."""
    game = engine_for(load_variant(name))
    return solve(game, placements(game, pieces))


@cache
def solved_quarrel() -> Solution:
    """Solve all that can happen in the game on the small board."""
    game = engine_for(load_variant(QUARREL))
    return solve(game, read_fen(game, game.variant.start_fen)[None])


def faults(solution: Solution) -> npt.NDArray[np.int64]:
    """Return the positions whose value does not follow from those of the positions after it; none proves them all.

    Distances fall along every edge that a result rests on, so no result rests on itself.
    """
    open_, ended = np.diff(solution.first_edge) > 0, np.diff(solution.first_edge) == 0
    starts = solution.first_edge[:-1][open_]
    results = -solution.result[solution.child].astype(np.int32)
    plies = solution.plies[solution.child].astype(np.int32) + 1
    best = np.maximum.reduceat(results, starts)
    quickest = np.minimum.reduceat(np.where(results == 1, plies, FAR), starts)
    longest = np.maximum.reduceat(np.where(results == -1, plies, -FAR), starts)
    distance = np.select([best == 1, best == -1], [quickest, longest], UNSETTLED)
    wrong = np.zeros(len(solution.result), np.bool_)
    wrong[open_] = (solution.result[open_] != best) | (solution.plies[open_] != distance)
    wrong[ended] = solution.plies[ended] != 0
    return np.flatnonzero(wrong)


def _distinct(rows: U64Array) -> U64Array:
    """Return rows without those whose key has come before."""
    return rows[np.unique(rows[:, 0], return_index=True)[1]]


def _expand(
    game: CompiledGame, rows: U64Array
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int32], npt.NDArray[np.int32], U64Array]:
    """Return the verdicts of positions uint8 [n], their numbers of edges, the actions, and the rows they lead to."""
    moves, counts, checks = legal_moves(game, rows)
    verdicts = _judge_all(game.tables, rows.view(np.uint8).reshape(-1), rows.reshape(-1), counts, checks)
    counts[verdicts > 0] = 0
    chosen = moves[np.arange(moves.shape[1]) < counts[:, None]]
    children = np.repeat(rows, counts, axis=0)
    _make_all(game.tables, game.zobrist, children.view(np.uint8).reshape(-1), children.reshape(-1), chosen)
    return verdicts, counts, ((chosen >> np.uint64(16)) & np.uint64(0xFFFF)).astype(np.int32), children


class SolvedEvaluator:
    """Says the exact value, and prefers the moves that keep it; for games whose colours are alike."""

    def __init__(self, solution: Solution, *, preference: float = 0.0) -> None:
        """Index a solution.

        Args:
            solution: Has every position that will be asked for.
            preference: Added to the logits of the moves that keep the value.
        """
        self.solution = solution
        self.preference = preference
        chunks = np.array_split(solution.rows, len(solution.rows) // CHUNK + 1)
        keys = np.concatenate([self._keys(observe(solution.game, rows)) for rows in chunks])
        self._sorted, self._positions = np.unique(keys, return_index=True)

    def __call__(
        self, observations: npt.NDArray[np.float32], legal_actions: npt.NDArray[np.int32]
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Evaluate, see `Evaluator`."""
        places = np.searchsorted(self._sorted, keys := self._keys(observations))
        assert (self._sorted[np.minimum(places, len(self._sorted) - 1)] == keys).all(), "a position is not solved"
        positions = self._positions[places]
        logits = np.zeros(legal_actions.shape, np.float32)
        for number, position in enumerate(positions if self.preference else []):
            logits[number, np.isin(legal_actions[number], list(self.solution.keepers(position)))] = self.preference
        results = self.solution.result[positions]
        return logits, np.stack([results == 1, results == 0, results == -1], axis=1).astype(np.float32)

    def _keys(self, observations: npt.NDArray[np.float32]) -> U64Array:
        """Return a number for what stands where, as the side to move sees it, uint64 [n]."""
        planes = 2 * len(self.solution.game.variant.piece_types)
        stands = observations[:, :planes].reshape(len(observations), -1).astype(np.uint64)
        numbers = np.random.default_rng(0).integers(1 << 63, size=stands.shape[1], dtype=np.uint64)
        return np.asarray(stands @ numbers)


@njit
def _set_up_all(tab: Any, zob: Any, s8: U8Array, s64: U64Array, legal: npt.NDArray[np.bool_]) -> None:
    words = U(tab[layout.T_WORDS])
    nothing = np.zeros(1, np.uint8)
    for n in range(len(legal)):
        w = U(n) * words
        set_up(tab, zob, s8, s64, w, nothing, 0, 0)
        legal[n] = not royal_attacked(tab, s8, w, U1 - U(s8[n * words * 8 + layout.TO_PLAY]))


@njit
def _judge_all(tab: Any, s8: U8Array, s64: U64Array, counts: Any, checks: Any) -> U8Array:
    verdicts = np.empty(len(counts), np.uint8)
    for n in range(len(counts)):
        verdicts[n] = verdict(tab, s8, s64, U(n) * U(tab[layout.T_WORDS]), U(counts[n]), U(checks[n]))
    return verdicts


@njit
def _make_all(tab: Any, zob: Any, s8: U8Array, s64: U64Array, moves: U64Array) -> None:
    words = np.int64(tab[layout.T_WORDS])
    for n in range(len(moves)):
        make(tab, zob, s8, s64, U(n * words), moves[n])
        head = n * words * 8
        s8[head + layout.CLOCK : head + layout.CLOCK + 2] = 0
        s8[head + layout.PLY : head + layout.PLY + 4] = 0
        s8[head + layout.REVERSIBLE : head + layout.REVERSIBLE + 2] = 0


@njit
def _settle(first_edge: Any, child: Any, result: Any, plies: Any) -> None:
    """Settle wins and losses by their distance, shortest first, until nothing changes."""
    waiting = np.flatnonzero(plies == UNSETTLED)
    depth, changed = 0, True
    while changed:
        depth, changed, left = depth + 1, False, 0
        for n in waiting:
            best = -1
            for edge in range(first_edge[n], first_edge[n + 1]):
                after = child[edge]
                is_settled = plies[after] != UNSETTLED and plies[after] < depth
                best = max(best, -result[after] if is_settled else 0)
                if best == 1:
                    break
            if best != 0:
                result[n], plies[n], changed = best, depth, True
            else:
                waiting[left] = n
                left += 1
        waiting = waiting[:left]
