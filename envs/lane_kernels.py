"""Kernels over many lanes or rows: stepping, resetting, drawing and observing; the rules are in `kernels.py`.

Arguments are those of `kernels.py`. `lanes` is the tuple `(checks bool, terminations uint8, truncated bool, white_score
float32, rewards float32, start_ply uint32, max_plies int, scratch)`, the arrays of length B.
"""

from __future__ import annotations

import numpy as np

from envs import layout
from envs.game_kernels import remember, verdict
from envs.jit import njit
from envs.kernels import (
    BOARD_BYTE,
    H_CELL,
    H_CELLS,
    H_COLOUR_PLANE,
    H_MOVE_LIMIT,
    H_PLANES,
    H_SQUARES,
    H_TYPES,
    H_WORDS,
    HALF,
    LOSS,
    O_CASTLING,
    O_EP,
    O_EP_COUNT,
    O_REPETITIONS,
    O_TO_PLAY,
    PLY_SHIFT,
    U0,
    U1,
    U2,
    U3,
    U4,
    U5,
    U6,
    U7,
    U8,
    U15,
    U16,
    U,
    generate,
    make,
)  # fmt: skip

H_ACTIONS = U(layout.T_ACTIONS)


@njit
def first_illegal(num_actions, mask, terminations, truncated, actions, moving):
    """Return the first running lane that is `moving` (bool [B]) and whose action is illegal, -1 when there is none."""
    i = U0
    while i < U(len(actions)):
        action = actions[i]
        if moving[i] and not terminations[i] and not truncated[i]:
            if action < 0 or U(action) >= U(num_actions) or not mask[i * U(num_actions) + U(action)]:
                return np.int64(i)
        i += U1
    return np.int64(-1)


@njit
def step_all(tab, zob, s8, s64, history, moves, counts, mask, lanes, actions, moving):
    """Play one action in every running lane that is `moving` (bool [B]); the arguments are those of `step_lanes`.

    Returns:
        The first lane whose action is illegal, and then no lane has moved; -1 when all have.
    """
    illegal = first_illegal(U(tab[H_ACTIONS]), mask, lanes[1], lanes[2], actions, moving)
    if illegal < 0:
        step_lanes(tab, zob, s8, s64, history, moves, counts, mask, lanes, actions, moving, 0, len(counts))
    return illegal


@njit
def step_lanes(tab, zob, s8, s64, history, moves, counts, mask, lanes, actions, moving, first, last):
    """Play one legal action in each lane `first <= i < last` that is `moving` and still running.

    Args:
        history: uint64 [B * L], L keys a lane.
        moves, counts: uint64 [B * M], int32 [B]: legal moves of each lane, brought up to date.
        mask: bool [B * A], legal actions, brought up to date.
        actions: int64 [B].
        moving: bool [B].
    """
    checks, terminations, truncated, white_score, rewards, start_ply, max_plies, scratch = lanes
    words = U(tab[H_WORDS])
    num_actions = U(tab[H_ACTIONS])
    width = U(len(moves)) // U(len(counts))
    length = U(len(history)) // U(len(counts))
    i = U(first)
    while i < U(last):
        rewards[i] = 0.0
        if terminations[i] or truncated[i] or not moving[i]:
            i += U1
            continue
        action = U(actions[i])
        w = i * words
        m = i * width
        end = m + U(counts[i])
        chosen = m
        q = m
        while q < end:
            listed = (moves[q] >> U16) & HALF
            if listed == action:
                chosen = q
            mask[i * num_actions + listed] = False
            q += U1
        make(tab, zob, s8, s64, w, moves[chosen])
        remember(tab, s8, s64, w, history, i * length, length)
        packed = generate(tab, s8, s64, w, scratch, moves, m)
        num_moves = packed >> U1
        checks[i] = packed & U1
        ended = verdict(tab, s8, s64, w, num_moves, packed & U1)
        counts[i] = num_moves
        if ended:
            counts[i] = 0
            terminations[i] = ended & U15
            white_score[i] = white_score_of(ended, U(s8[w * U8 + O_TO_PLAY]))
            result = ended >> U4
            if result:
                rewards[i] = 1.0 if result == LOSS else -1.0
        elif (s64[w + U2] >> PLY_SHIFT) - U(start_ply[i]) >= U(max_plies):
            truncated[i] = True
            counts[i] = 0
        else:
            end = m + num_moves
            q = m
            while q < end:
                mask[i * num_actions + ((moves[q] >> U16) & HALF)] = True
                q += U1
        i += U1


@njit
def white_score_of(verdict_code, to_play):
    """Return White's score, 1, 0.5 or 0, of a verdict that is not 0."""
    result = U(verdict_code) >> U4
    if result == U0:
        return np.float32(0.5)
    return np.float32(1.0) if (result == LOSS) == (U(to_play) == U1) else np.float32(0.0)


@njit
def sample(moves, counts, uniforms, actions):
    """Write one of each lane's listed actions, drawn uniformly; -1 where a lane has none.

    Args:
        moves, counts: uint64 [B * M], int32 [B]: legal moves of each lane.
        uniforms: float64 [B] in [0, 1).
        actions: int64 [B], written.
    """
    width = U(len(moves)) // U(len(counts))
    i = U0
    while i < U(len(counts)):
        actions[i] = -1
        if counts[i] > 0:
            chosen = i * width + U(uniforms[i] * counts[i])
            actions[i] = (moves[chosen] >> U16) & HALF
        i += U1


@njit
def refresh_lane(tab, s8, s64, moves, counts, mask, lanes, i):
    """Bring the legal moves, check flag and outcome of one lane up to date after its row was set."""
    checks, terminations, truncated, white_score, rewards, start_ply, _max_plies, scratch = lanes
    words = U(tab[H_WORDS])
    num_actions = U(tab[H_ACTIONS])
    lane = U(i)
    w = lane * words
    m = lane * (U(len(moves)) // U(len(counts)))
    mask[lane * num_actions : (lane + U1) * num_actions] = False
    packed = generate(tab, s8, s64, w, scratch, moves, m)
    num_moves = packed >> U1
    checks[lane] = packed & U1
    ended = verdict(tab, s8, s64, w, num_moves, packed & U1)
    terminations[lane] = ended & U15
    truncated[lane] = False
    rewards[lane] = 0.0
    white_score[lane] = np.nan
    start_ply[lane] = s64[w + U2] >> PLY_SHIFT
    counts[lane] = num_moves
    if ended:
        counts[lane] = 0
        white_score[lane] = white_score_of(ended, U(s8[w * U8 + O_TO_PLAY]))
        return
    q = m
    while q < m + num_moves:
        mask[lane * num_actions + ((moves[q] >> U16) & HALF)] = True
        q += U1


@njit
def begin_lanes(tab, s8, s64, history, moves, counts, mask, lanes, chosen):
    """Start new games in the `chosen` lanes (int64) from the rows that stand there; their histories are empty."""
    length = U(len(history)) // U(len(counts))
    i = 0
    while i < len(chosen):
        lane = U(chosen[i])
        w = lane * U(tab[H_WORDS])
        remember(tab, s8, s64, w, history, lane * length, length)
        refresh_lane(tab, s8, s64, moves, counts, mask, lanes, lane)
        i += 1


@njit
def observe(tab, s8, s64, out):
    """Write the observation planes of rows, seen by the side to move; `out` is float32 [N * C * cells]."""
    words = U(tab[H_WORDS])
    size = U(tab[H_SQUARES])
    types = U(tab[H_TYPES])
    cells = U(tab[H_CELLS])
    planes = U(tab[H_PLANES])
    one = np.float32(1.0)
    scale = np.float32(tab[H_MOVE_LIMIT] if tab[H_MOVE_LIMIT] else U(layout.CLOCK_SCALE))
    r = U0
    while r < U(len(s64)) // words:
        w = r * words
        head = w * U8
        b = head + BOARD_BYTE
        o = r * planes * cells
        i = o
        while i < o + planes * cells:
            out[i] = np.float32(0.0)
            i += U1
        side = U(s8[head + O_TO_PLAY])
        cell = U(tab[H_CELL]) + side * size
        square = U0
        while square < size:
            code = U(s8[b + square])
            if code:
                plane = (code & U15) - U1 + (U0 if code >> U4 == side else types)
                out[o + plane * cells + U(tab[cell + square])] = one
            square += U1
        extra = o + U2 * types * cells
        rights = U(s8[head + O_CASTLING])
        if side:
            rights = (rights >> U2) | (rights & U3) << U2
        i = U0
        while i < U4:
            if (rights >> i) & U1:
                fill(tab, cell, out, extra + i * cells, one)
            i += U1
        count = U(s8[head + O_EP_COUNT])
        while count:
            count -= U1
            out[extra + U4 * cells + U(tab[cell + U(s8[head + O_EP + count])])] = one
        clock = s64[w + U2] & HALF
        if clock:
            fill(tab, cell, out, extra + U5 * cells, min(np.float32(clock) / scale, one))
        repetitions = U(s8[head + O_REPETITIONS])
        if repetitions:
            fill(tab, cell, out, extra + (U6 if repetitions == U1 else U7) * cells, one)
        if tab[H_COLOUR_PLANE] and side:
            fill(tab, cell, out, extra + U8 * cells, one)
        fill(tab, cell, out, o + (planes - U1) * cells, one)
        r += U1


@njit
def fill(tab, cell, out, plane, value):
    """Write a value to all real squares of a plane; `cell` is the offset of the table of squares' cells."""
    square = U0
    while square < U(tab[H_SQUARES]):
        out[plane + U(tab[cell + square])] = value
        square += U1
