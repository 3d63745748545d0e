"""What the tests of the alpha-beta search share: weights that nobody learned, and positions of many kinds.

Dims: S squares, L keys of a history.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from envs import CompiledGame, VectorEnv, layout
from envs.actions import NO_PROMOTION
from envs.kernels import REVERSIBLE_SHIFT
from envs.layout import BLACK_CODE
from envs.rows import legal_moves
from envs.variant import Variant
from tests.train.mate_solver import Sample, sample_positions
from train.mobility import mobility_values

UNITS_PER_MOVE = 200
NOISE = 60
CLOCK_FIELD = 4


def stand_in_weights(game: CompiledGame, *, noise: int = NOISE) -> np.ndarray:
    """Return weights int32 [32, S]: mobility, and noise that gives nearly all positions scores of their own."""
    rng = np.random.default_rng(6)
    weights = np.zeros((layout.NUM_CODES, game.variant.num_squares), np.int32)
    for code, worth in enumerate(mobility_values(game.variant)):
        if worth:
            sign = 1 if code < BLACK_CODE else -1
            drawn = rng.integers(-noise, noise + 1, game.variant.num_squares)
            weights[code] = sign * (round(UNITS_PER_MOVE * worth) + drawn)
    return weights


def some_positions(name: str | Variant, count: int, *, seed: int = 11) -> list[Sample]:
    """Return positions of random and capture-rich games, spread over all that were drawn."""
    drawn = list(sample_positions(name, games=4 + count // 4, plies=60 + count, every=5, seed=seed))
    return drawn[:: max(1, len(drawn) // count)][:count]


def late_positions(name: str, count: int) -> Iterator[Sample]:
    """Yield positions whose clock has run nearly down, in a game with a move limit."""
    env = VectorEnv(name, 1)
    for number, sample in enumerate(islice(sample_positions(name, games=8, every=3, seed=4), 4 * count)):
        env.states[0] = sample.row
        fields = env.fen(0).split()
        fields[CLOCK_FIELD] = str(env.variant.ends.move_limit - 1 - number % 3)
        env.set_fen(0, " ".join(fields))
        if not env.over[0]:
            yield Sample(env.states[0].copy(), env.histories[0, :1].copy())
            count -= 1
        if not count:
            return


def repetitive_positions(name: str, count: int) -> Iterator[Sample]:
    """Yield positions of games in which both sides go to and fro, so that some moves repeat a second or third time."""
    env = VectorEnv(name, 1, seed=2)
    while count:
        env.reset()
        for _ in range(int(env.rng.integers(0, 30))):
            env.step(env.sample_actions())
        first = _reversible_move(env)
        if first is None:
            continue
        env.step(np.array([_action(env, first)]))
        second = _reversible_move(env)
        if second is None:
            continue
        cycle = [second, first[::-1], second[::-1], first] * 2
        for move in cycle[: int(env.rng.integers(5, 7))]:
            action = _action(env, move)
            if env.over[0] or not env.legal_action_mask[0, action]:
                break
            env.step(np.array([action]))
        if not env.over[0]:
            place = int(env.states[0, 3] >> REVERSIBLE_SHIFT)
            yield Sample(env.states[0].copy(), env.histories[0, : place + 1].copy())
            count -= 1


def _action(env: VectorEnv, squares: tuple[int, int]) -> int:
    names = env.variant.board.names
    return env.move_to_action(0, "".join(names[square] for square in squares))


def _reversible_move(env: VectorEnv) -> tuple[int, int] | None:
    """Draw from and to of a move to an empty square that its piece can take back; None if there is none."""
    if env.over[0]:
        return None
    row = env.states[0]
    board = row.view(np.uint8)[layout.HEADER_BYTES :]
    moves, counts, _ = legal_moves(env.game, row[np.newaxis])
    pawn = 0 if env.variant.pawns is None else env.variant.pawns.piece + 1
    flip = env.variant.board.flipped if env.to_play[0] else range(env.variant.num_squares)
    for word in env.rng.permutation(moves[0, : counts[0]]).tolist():
        start, to = word & 0xFF, (word >> 8) & 0xFF
        is_plain = word >> 32 == 0 and not board[to] and board[start] % BLACK_CODE != pawn
        if is_plain and (flip[to], flip[start], NO_PROMOTION) in env.game.encoding.action_by_move:
            return start, to
    return None
