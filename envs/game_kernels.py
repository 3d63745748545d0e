"""Whole positions and games, as compiled loops over the moves of `kernels.py`: ends, history, replay, perft.

Arguments are those of `kernels.py`.
"""

from __future__ import annotations

import numpy as np

from envs import layout
from envs.jit import njit
from envs.kernels import (
    BARE_KINGS,
    BOARD_BYTE,
    CHECKMATE,
    FIFTY_MOVES,
    H_BARE_DRAW,
    H_EXTINCT,
    H_GOALS,
    H_MOVE_LIMIT,
    H_REPETITION_RESULT,
    H_REPETITIONS,
    H_ROYAL,
    H_SQUARES,
    H_STALEMATE,
    H_WORDS,
    HALF,
    LOST,
    NUM_CODES,
    O_CASTLING,
    O_EP_COUNT,
    O_REPETITIONS,
    O_ROYALS,
    O_STATUS,
    O_TO_PLAY,
    PIECES_SHIFT,
    REPETITION,
    REVERSIBLE_SHIFT,
    STALEMATE,
    U0,
    U1,
    U2,
    U3,
    U4,
    U8,
    U16,
    U,
    attacked,
    extinct,
    generate,
    goal_reached,
    make,
    offer_en_passant,
)  # fmt: skip


@njit
def set_up(tab, zob, s8, s64, w, passed, num_passed, victim):
    """Complete a row whose board, side, rights and counters are set: royals, piece count, en passant, status, key.

    Args:
        passed: uint8, squares on which an en passant capture of the pawn on `victim` is to be offered if legal.
    """
    size = U(tab[H_SQUARES])
    head = w * U8
    b = head + BOARD_BYTE
    side = U(s8[head + O_TO_PLAY])
    key = U0
    pieces = U0
    square = U0
    while square < size:
        code = U(s8[b + square])
        if code:
            pieces += U1
            key ^= zob[code * size + square]
            if code == U(tab[H_ROYAL + (code >> U4)]):
                s8[head + O_ROYALS + (code >> U4)] = square
        square += U1
    s64[w + U1] = (s64[w + U1] & U(0x0000FFFFFFFFFFFF)) | pieces << PIECES_SHIFT
    key ^= zob[NUM_CODES * size + U(s8[head + O_CASTLING])]
    if side:
        key ^= zob[(NUM_CODES + U1) * size + U16]
    s8[head + O_EP_COUNT] = 0
    s64[w + U3] = U0
    s64[w] = key
    s8[head + O_STATUS] = set_up_status(tab, s8, b, side ^ U1)
    i = U0
    while i < U(num_passed) and not s8[head + O_STATUS]:
        offer_en_passant(tab, zob, s8, s64, w, U(passed[i]), U(victim))
        i += U1


@njit
def set_up_status(tab, s8, b, mover):
    """Return the verdict of a board after a move of `mover`, as far as goals and extinction go."""
    goal = U0
    while goal < U(tab[H_GOALS]):
        square = stands_on_goal(tab, s8, b, mover, goal)
        if square:
            return goal_reached(tab, goal, mover, square - U1, U(s8[b + square - U1]))
        goal += U1
    return extinct(tab, s8, b, mover) if tab[H_EXTINCT] else U0


@njit
def stands_on_goal(tab, s8, b, side, goal):
    """Return the first square + 1 on which a piece of `side` has reached a goal, 0 for none."""
    square = U0
    while square < U(tab[H_SQUARES]):
        code = U(s8[b + square])
        square += U1
        if code and code >> U4 == side and goal_reached(tab, goal, side, square - U1, code):
            return square
    return U0


@njit
def royal_attacked(tab, s8, w, side):
    """Return whether the royal of `side`, if it has one, is attacked."""
    if not tab[H_ROYAL + side]:
        return False
    return attacked(tab, s8, w * U8 + BOARD_BYTE, U(s8[w * U8 + O_ROYALS + side]), side ^ U1)


@njit
def verdict(tab, s8, s64, w, num_moves, check):
    """Return the verdict of a position (`layout.py`), 0 when the game goes on; the first that holds decides."""
    head = w * U8
    if s8[head + O_STATUS]:
        return U(s8[head + O_STATUS])
    if num_moves == U0:
        return CHECKMATE | LOST if check else STALEMATE | U(tab[H_STALEMATE]) << U4
    if tab[H_BARE_DRAW] and s64[w + U1] >> PIECES_SHIFT == U2:
        return BARE_KINGS
    if tab[H_REPETITIONS] and s8[head + O_REPETITIONS] >= tab[H_REPETITIONS]:
        return REPETITION | U(tab[H_REPETITION_RESULT]) << U4
    if tab[H_MOVE_LIMIT] and s64[w + U2] & HALF >= U(tab[H_MOVE_LIMIT]):
        return FIFTY_MOVES
    return U0


@njit
def remember(tab, s8, s64, w, history, h, length):
    """Enter a position into its game's history and count its earlier occurrences, as many as matter.

    Args:
        history: uint64, `length` keys from offset `h` on, by plies since the last irreversible move; a position
            beyond them is not compared.
    """
    place = s64[w + U3] >> REVERSIBLE_SHIFT
    if place >= U(length):
        return
    key = s64[w]
    history[h + place] = key
    most = U(tab[H_REPETITIONS])
    found = U0
    back = U4
    while back <= place and found < most:
        if history[h + place - back] == key:
            found += U1
        back += U2
    s8[w * U8 + O_REPETITIONS] = found


@njit
def legal_moves(tab, s8, s64, moves, width, counts, checks, scratch):
    """Generate the moves of many rows: row r's from `moves[r * width]` on, numbers and check flags beside."""
    words = U(tab[H_WORDS])
    r = U0
    while r < U(len(counts)):
        packed = generate(tab, s8, s64, r * words, scratch, moves, r * U(width))
        counts[r] = packed >> U1
        checks[r] = packed & U1
        r += U1


@njit
def replay(tab, zob, s8, s64, history, moves, actions, scratch):
    """Play one game from row 0 on, writing the position after action t to row t + 1.

    Args:
        s64, s8: `len(actions) + 1` rows, the first one set.
        history: uint64 [length of the game + 1].
        moves: uint64, room for any list of legal moves.
        actions: int64.

    Returns:
        The number of actions played (fewer than given where one is illegal or the game is over) and the verdict.
    """
    words = U(tab[H_WORDS])
    remember(tab, s8, s64, U0, history, U0, len(history))
    t = U0
    while True:
        w = t * words
        packed = generate(tab, s8, s64, w, scratch, moves, U0)
        ended = verdict(tab, s8, s64, w, packed >> U1, packed & U1)
        if ended or t == U(len(actions)):
            return t, ended
        m = U0
        while m < packed >> U1 and (moves[m] >> U16) & HALF != U(actions[t]):
            m += U1
        if m == packed >> U1:
            return t, ended
        i = U0
        while i < words:
            s64[w + words + i] = s64[w + i]
            i += U1
        make(tab, zob, s8, s64, w + words, moves[m])
        remember(tab, s8, s64, w + words, history, U0, len(history))
        t += U1


@njit
def perft(tab, zob, s8, s64, depth, moves, width, scratch):
    """Count the leaves of the legal move tree below row 0.

    Args:
        s64, s8: `depth` rows, the first one set.
        moves: uint64 [depth * width].
    """
    words = U(tab[H_WORDS])
    wide = U(width)
    ends = np.zeros(layout.MAX_SQUARES, np.uint64)
    last = U(depth) - U1
    nodes = U0
    d = U0
    ends[0] = generate(tab, s8, s64, U0, scratch, moves, U0) >> U1
    if last == U0:
        return ends[0]
    while True:
        if ends[d] == U0:
            if d == U0:
                return nodes
            d -= U1
            continue
        ends[d] -= U1
        move = moves[d * wide + ends[d]]
        child = (d + U1) * words
        i = U0
        while i < words:
            s64[child + i] = s64[d * words + i]
            i += U1
        make(tab, zob, s8, s64, child, move)
        count = generate(tab, s8, s64, child, scratch, moves, (d + U1) * wide) >> U1
        if d + U1 == last:
            nodes += count
        else:
            d += U1
            ends[d] = count
