"""The arrays that the search kernels work on: made, grown, and never interpreted here (`search_kernels.py` names them).

Dims: B lanes, N nodes a tree, E edges a tree, L keys of a game's history, K evaluations in the cache.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from envs import CompiledGame
from models.evaluator import Evaluator
from train import search_kernels as kernels
from train.search_policies import PUCT, SearchSettings

LOGITS_PER_POSITION = 48
"""Room for logits in the cache for each evaluation; where moves are more, it remembers fewer."""
_EDGE_ARRAYS = range(kernels.EDGE_MOVE, kernels.EDGE_NOISE + 1)
Arrays: TypeAlias = tuple[npt.NDArray[Any], ...]
Floats: TypeAlias = npt.NDArray[np.float32]


def make_tree(game: CompiledGame, num_lanes: int, num_nodes: int, num_edges: int) -> Arrays:
    """Return the arrays of B empty trees of N nodes and E edges; memory is taken when it is first used."""
    nodes, edges, lanes = num_lanes * num_nodes, num_lanes * num_edges, num_lanes
    rows = np.zeros(nodes * game.state_words, np.uint64)
    int32, float32 = np.int32, np.float32
    return (
        rows, rows.view(np.uint8), *(np.zeros(nodes, int32) for _ in range(4)), np.zeros(nodes, float32),
        np.zeros(nodes, np.uint8), *(np.zeros(edges, kind) for kind in _edge_types()),
        *(np.zeros(lanes, int32) for _ in range(5)), np.full(lanes, kernels.FINISHED, int32), np.zeros(0, np.uint64),
        np.zeros(lanes, int32), np.zeros(lanes, float32), *(np.zeros(lanes, np.int64) for _ in range(3)),
    )  # fmt: skip


def with_more_edges(tree: Arrays, num_edges: int = 0) -> Arrays:
    """Return the same trees with room for twice the edges that they had, or E each if that is more."""
    lanes = len(tree[kernels.NUM_NODES])
    old_size = len(tree[kernels.EDGE_MOVE]) // lanes
    size = max(num_edges, 2 * old_size)
    used = int(tree[kernels.EDGES_USED].max())
    grown = list(tree)
    for number, kind in zip(_EDGE_ARRAYS, _edge_types(), strict=True):
        grown[number] = np.zeros(lanes * size, kind)
        grown[number].reshape(lanes, -1)[:, :used] = tree[number].reshape(lanes, -1)[:, :used]
    return tuple(grown)


def with_longer_histories(tree: Arrays, length: int) -> Arrays:
    """Return the same trees with room for games of at least L keys."""
    lanes = len(tree[kernels.NUM_NODES])
    histories = tree[kernels.HISTORIES].reshape(lanes, -1)
    more = length - histories.shape[1]
    if more <= 0:
        return tree
    longer = np.pad(histories, ((0, 0), (0, more))).reshape(-1)
    return (*tree[: kernels.HISTORIES], longer, *tree[kernels.HISTORIES + 1 :])


def make_cache(num_positions: int) -> Arrays:
    """Return an empty cache of at least so many evaluations; 0 is none."""
    size = 1 << (num_positions - 1).bit_length() if num_positions else 0
    return (
        np.zeros(size, np.uint64), np.zeros(size, np.int64), np.full(size, -1, np.int32), np.zeros(size, np.float32),
        np.zeros(size * LOGITS_PER_POSITION, np.float32), np.zeros(1, np.int64),
    )  # fmt: skip


def make_knobs(settings: SearchSettings) -> kernels.Knobs:
    """Return settings as the kernels need them."""
    names = ("c_visit", "c_scale", "c_puct", "c_puct_base", "fpu_reduction")
    return kernels.Knobs(settings.policy == PUCT, *(np.float32(getattr(settings, name)) for name in names))


def evaluate(evaluator: Evaluator, observations: Floats, actions: npt.NDArray[np.int32]) -> tuple[Floats, Floats]:
    """Ask an evaluator, and check its answer.

    Args:
        evaluator: Scores positions.
        observations: float32 [n, C, H, W].
        actions: int32 [n, M], padded with -1.

    Returns:
        Logits float32 [n, M] and chances of win, draw and loss float32 [n, 3], both C-contiguous.

    Raises:
        ValueError: A shape is wrong.
        FloatingPointError: A value is not finite, or the logits of the listed actions make no distribution.
    """
    logits, wdl = (np.ascontiguousarray(part, np.float32) for part in evaluator(observations, actions))
    if logits.shape != actions.shape or wdl.shape != (len(actions), 3):
        raise ValueError(
            f"evaluator: expected logits {list(actions.shape)} and win, draw, loss [{len(actions)}, 3], "
            f"got {list(logits.shape)} and {list(wdl.shape)}"
        )
    row = kernels.first_unusable(logits, wdl, actions)
    if row >= 0:
        listed = logits[row][actions[row] >= 0]
        raise FloatingPointError(
            f"evaluator: expected finite values and logits, got win, draw, loss {wdl[row].tolist()} "
            f"and logits from {listed.min():g} to {listed.max():g}"
        )
    return logits, wdl


def _edge_types() -> list[Any]:
    return [np.uint64, np.float32, np.float32, np.int32, np.float32, np.int32, np.float32]
