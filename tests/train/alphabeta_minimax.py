"""Unpruned minimax with the quiescence of the alpha-beta search, over its own stack, with its own history.

It shares with the search what quiescence looks at, and nothing else: every move is made, every position is evaluated
anew from its board, and repetitions are counted by `remember` over a copy of the game's history.
"""

from __future__ import annotations

import numpy as np

from envs import CompiledGame, layout
from envs.game_kernels import remember, verdict
from envs.jit import njit
from envs.kernels import LOSS, REVERSIBLE_SHIFT, U0, U1, U3, U4, U8, U, generate, make
from envs.rows import board_of, legal_moves, thread_scratch
from train.alphabeta_kernels import INFINITE, MATE, WIDE_PLIES, is_ending, keep_captures, movers_view, static_of

I = np.int64  # noqa: E741


@njit
def enter(arrays, knobs, ply, depth, first):
    """Look at the new position of row `ply`; return its own score, and the end of the moves to follow from `first`.

    Where the game is over, or no move is looked at, the end is `first`.
    """
    tab, _, s8, s64, moves, order, landed, scratch = arrays
    weights, tempo, deepest = knobs
    words = len(s64) // len(landed)
    w = U(ply * words)
    head = w * U8
    if depth > 0 or is_ending(tab, s8, s64, w):
        packed = generate(tab, s8, s64, w, scratch, moves, U(first))
        ended = verdict(tab, s8, s64, w, packed >> U1, packed & U1)
        if ended:
            result = ended >> U4
            return I(0) if result == U0 else (I(ply - MATE) if result == LOSS else I(MATE - ply)), first
        return I(-INFINITE), first + I(packed >> U1)
    stand = movers_view(static_of(tab, weights, s8, w), U(s8[head + U(layout.TO_PLAY)]), tempo)
    if depth == deepest:
        return stand, first
    packed = generate(tab, s8, s64, w, scratch, moves, U(first))
    end = keep_captures(
        tab, weights, s8, w, moves, order, U(first), U(first) + (packed >> U1), depth > -WIDE_PLIES,
        U(landed[ply]),
    )  # fmt: skip
    return stand, I(end)


@njit
def minimax(arrays, knobs, history, depth, scores):
    """Write the score of each legal move of row 0 to `scores`; return the positions entered.

    Args:
        arrays: The tables, Zobrist numbers, rows as bytes and as words, moves, their ranks, the squares that the moves
            to the rows led to, and scratch.
        knobs: The weights, the tempo, and the depth, 0 or less, at which quiescence ends.
        history: uint64, keys up to the root, and room for the path.
    """
    tab, zob, s8, s64, moves, _, landed, _ = arrays
    plies = len(landed)
    words = len(s64) // plies
    following, ends, best = np.zeros(plies, np.int64), np.zeros(plies, np.int64), np.zeros(plies, np.int64)
    saved_keys, saved_places = np.zeros(plies, np.uint64), np.zeros(plies, np.int64)
    ends[0] = len(scores)
    best[0] = -INFINITE
    ply, nodes = 0, 0
    while True:
        if following[ply] < ends[ply]:
            move = moves[following[ply]]
            following[ply] += 1
            nodes += 1
            child = ply + 1
            for i in range(words):
                s64[child * words + i] = s64[ply * words + i]
            make(tab, zob, s8, s64, U(child * words), move)
            landed[child] = I((move >> U8) & U(255))
            place = I(s64[child * words + 3] >> REVERSIBLE_SHIFT)
            saved_places[child] = place
            saved_keys[child] = history[place]
            remember(tab, s8, s64, U(child * words), history, U0, len(history))
            best[child], ends[child] = enter(arrays, knobs, child, depth - child, ends[ply])
            following[child] = ends[ply]
            ply = child
            continue
        if ply == 0:
            return nodes
        history[saved_places[ply]] = saved_keys[ply]
        value = -best[ply]
        ply -= 1
        if ply == 0:
            scores[following[0] - 1] = value
        best[ply] = max(best[ply], value)


def minimax_scores(
    game: CompiledGame,
    weights: np.ndarray,
    row: np.ndarray,
    history: np.ndarray,
    *,
    depth: int,
    tempo: int = 0,
    quiescence_plies: int = 6,
) -> tuple[np.ndarray, np.ndarray, int]:
    """Return the legal actions int32 [M] of a position, their scores int64 [M], and the positions entered."""
    listed, counts, _ = legal_moves(game, row[np.newaxis])
    plies = depth + quiescence_plies + 1
    moves = np.zeros((plies + 1) * game.legal_bound(board_of(game, row)), np.uint64)
    moves[: counts[0]] = listed[0, : counts[0]]
    rows = np.zeros((plies, game.state_words), np.uint64)
    rows[0] = row
    place = int(row[int(U3)] >> REVERSIBLE_SHIFT)
    known = np.zeros(place + 1 + plies, np.uint64)
    known[: min(place + 1, len(history))] = history[: place + 1]
    scores = np.zeros(counts[0], np.int64)
    arrays = (
        game.tables, game.zobrist, rows.view(np.uint8).reshape(-1), rows.reshape(-1), moves,
        np.zeros(len(moves), np.int64), np.zeros(plies, np.int64), thread_scratch(),
    )  # fmt: skip
    knobs = np.ascontiguousarray(weights).reshape(-1), tempo, -quiescence_plies
    nodes = minimax(arrays, knobs, known, depth, scores)
    actions = ((listed[0, : counts[0]] >> np.uint64(16)) & np.uint64(0xFFFF)).astype(np.int32)
    return actions, scores, nodes
