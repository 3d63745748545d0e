"""Games of the alpha-beta engine against itself, as one compiled loop: what a learner of its evaluation learns from.

Dims: S squares, W words a state row, P plies of the search's stack, G plies of a game at most. Arguments that recur are
those of `alphabeta_kernels.py`.
"""

from __future__ import annotations

import numpy as np

from envs import layout
from envs.game_kernels import verdict
from envs.jit import njit
from envs.kernels import (
    BOARD_BYTE,
    H_SQUARES,
    H_WORDS,
    O_REPETITIONS,
    O_TO_PLAY,
    REVERSIBLE_SHIFT,
    U0,
    U1,
    U3,
    U8,
    U,
    generate,
    make,
)  # fmt: skip
from envs.lane_kernels import white_score_of
from train.alphabeta_kernels import (
    ALPHA,
    BEST,
    BETA,
    DECIDED,
    DEPTH,
    END,
    INFINITE,
    LENGTH,
    NEXT,
    NODES,
    ROOT_DEPTH,
    ROOT_PLACE,
    SALT,
    STATIC,
    I,
    change,
    count_repetitions,
    search,
    static_of,
)  # fmt: skip

SALT_STEP = I(0x1E3779B97F4A7C15)
TIE_BITS = U(20)
"""Random bits below a root move's rank, which decide between equals."""


@njit
def draw(random, count):
    """Return a number of 0 .. count - 1, uniform; `random` uint64 [1] is the state of a SplitMix64 generator."""
    random[0] += U(0x9E3779B97F4A7C15)
    z = random[0]
    z = (z ^ (z >> U(30))) * U(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> U(27))) * U(0x94D049BB133111EB)
    return ((z ^ (z >> U(31))) >> U(32)) * U(count) >> U(32)


@njit
def play_game(
    tab, zob, weights, s8, s64, moves, order, frames, keys, table, history, pv, control, stop, scratch, random,
    settings, leaves, values, played,
):  # fmt: skip
    """Play one game from row 0 on; each player moves by a search with weights of its own.

    Args:
        weights: int32 [2 * 32 * S], White's and Black's.
        random: uint64 [1], the state of the generator.
        settings: int64 [3]: plies of the search, random plies that the game begins with, G.
        leaves: uint8 [G * (S + 1)], receives for each searched move the board that its variation leads to, and which
            side is to move there.
        values: float32 [G], receives White's score where the variation decides the game, else NaN.
        played: uint64 [G], receives the move words of the game.

    Returns:
        How many leaves there are, how many moves were played, the verdict that ended the game, 0 where G has cut it
        short, and White's score, NaN likewise.
    """
    size = U(tab[H_SQUARES])
    half = U(layout.NUM_CODES) * size
    found = 0
    ply = 0
    history[:] = 0
    frames[:] = 0
    count_repetitions(tab, keys, s64, U0, U0)
    while ply < settings[2]:
        packed = generate(tab, s8, s64, U0, scratch, moves, U0)
        count = packed >> U1
        ended = verdict(tab, s8, s64, U0, count, packed & U1)
        side = U(s8[O_TO_PLAY])
        if ended:
            return found, ply, ended, white_score_of(ended, side)
        if ply < settings[1]:
            move = moves[draw(random, count)]
        else:
            own = weights[side * half : (side + U1) * half]
            i = U0
            while i < count:
                gained = change(tab, own, s8, BOARD_BYTE, moves[i], size)
                order[i] = I((-gained if side else gained) << TIE_BITS) + I(draw(random, U1 << TIE_BITS))
                i += U1
            control[NODES] = 0
            control[SALT] = I(side) * SALT_STEP  # the sides weigh pieces differently: no sharing
            control[ROOT_DEPTH] = frames[DEPTH] = settings[0]
            control[ROOT_PLACE] = I(s64[U3] >> REVERSIBLE_SHIFT)
            frames[STATIC] = static_of(tab, own, s8, U0)
            frames[ALPHA] = frames[BEST] = -INFINITE
            frames[BETA] = INFINITE
            frames[NEXT] = 0
            frames[END] = I(count)
            frames[LENGTH] = 0
            search(tab, zob, own, s8, s64, moves, order, frames, keys, table, history, pv, control, stop, scratch)
            move = pv[0]
            values[found] = searched_value(frames, side)
            keep_leaf(tab, zob, s8, s64, pv, U(frames[LENGTH]), leaves, U(found) * (size + U1))
            found += 1
        played[ply] = move
        make(tab, zob, s8, s64, U0, move)
        s8[O_REPETITIONS] = count_repetitions(tab, keys, s64, U0, s64[U3] >> REVERSIBLE_SHIFT)
        ply += 1
    return found, ply, 0, np.float32(np.nan)


@njit
def searched_value(frames, side):
    """Return White's score of the root's variation where it decides the game, else NaN."""
    if not frames[DECIDED]:
        return np.float32(np.nan)
    if frames[BEST] == 0:
        return np.float32(0.5)
    return np.float32(1.0) if (frames[BEST] > 0) == (side == U0) else np.float32(0.0)


@njit
def keep_leaf(tab, zob, s8, s64, pv, length, leaves, at):
    """Write the board after a variation of row 0, and who is to move there, to `leaves` from `at` on; uses row 1."""
    words = U(tab[H_WORDS])
    size = U(tab[H_SQUARES])
    i = U0
    while i < words:
        s64[words + i] = s64[i]
        i += U1
    i = U0
    while i < length:
        make(tab, zob, s8, s64, words, pv[i])
        i += U1
    i = U0
    while i < size:
        leaves[at + i] = s8[words * U8 + BOARD_BYTE + i]
        i += U1
    leaves[at + size] = s8[words * U8 + O_TO_PLAY]


@njit
def evaluate_boards(boards, movers, weights, tempo, values):
    """Write White's evaluation of positions to `values`.

    Args:
        boards: uint8 [N, S], piece codes.
        movers: uint8 [N], 0 White, 1 Black to move.
        weights: float64 [32, S].
        tempo: what the move is worth.
        values: float64 [N].
    """
    for row in range(boards.shape[0]):
        total = tempo if movers[row] == 0 else -tempo
        for square in range(boards.shape[1]):
            total += weights[boards[row, square], square]
        values[row] = total


@njit
def add_errors(boards, movers, errors, gradient):
    """Add each position's error to `gradient` float64 [32, S] where its pieces stand; return the tempo's sum."""
    tempo = 0.0
    for row in range(boards.shape[0]):
        error = errors[row]
        tempo += error if movers[row] == 0 else -error
        for square in range(boards.shape[1]):
            gradient[boards[row, square], square] += error
    return tempo
