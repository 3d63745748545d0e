"""Openings of matches: random plies from a start position, the same ones for every pair of players.

Openings are distinct positions and not finished, and depend on the game, the number of plies and the seed alone: the
first openings of a longer match are those of a shorter one. Balanced ones leave nobody ahead or behind at once: a
search of `BALANCE_DEPTH` plies that resolves captures, with pieces worth their mean mobility, finds neither a mate
nor a change of material, since the start position, by more than the weakest piece. No player of a match has a say in
it, and no table that was learned, so that a game has the same openings on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from envs import Variant, VectorEnv, legal_actions
from envs.layout import BLACK_CODE, U64Array
from train.mobility import mobility_values

TRIES_PER_OPENING = 20
POSITION_FIELDS = 4
"""FEN fields that tell positions apart: board, side, castling rights, en passant."""
OPENING_STREAM = 0
"""Random stream of a match's seed; `match_games.PLAYER_STREAM` is another."""
BALANCE_DEPTH = 2
WEAKEST_PIECE = 1000
"""What the weakest piece is worth where openings are judged."""


@dataclass(frozen=True)
class Opening:
    """The first moves of a pair of games.

    Attributes:
        start_fen: where they begin, drawn with equal chance where the game has several start positions.
        actions: side-relative action ids.
        moves: the same as moves.
        position: the first four FEN fields that they lead to.
    """

    start_fen: str
    actions: tuple[int, ...]
    moves: tuple[str, ...]
    position: str


def draw_openings(variant: Variant, count: int, *, plies: int, seed: int, balanced: bool = False) -> list[Opening]:
    """Draw openings of uniformly random moves that lead to distinct, unfinished positions.

    Args:
        variant: the game.
        count: openings wanted; the first ones are the same whatever it is.
        plies: length of each.
        seed: of the draws.
        balanced: refuse those in which somebody is ahead or behind at once, see the module's docstring.

    Raises:
        ValueError: `TRIES_PER_OPENING` times `count` draws gave too few.
    """
    found: dict[str, Opening] = {}
    judge = Judge(variant) if balanced else None
    for first in range(0, TRIES_PER_OPENING * count, count):
        for opening in _candidates(variant, range(first, first + count), plies, seed):
            if opening.position not in found and (judge is None or judge.is_balanced(opening)):
                found[opening.position] = opening
        if len(found) >= count:
            return list(found.values())[:count]
    kind = "distinct, balanced" if balanced else "distinct"
    raise ValueError(
        f"{variant.name}: {len(found)} {kind} openings of {plies} random plies, {count} are needed: "
        "play fewer games or longer openings"
    )


def _candidates(variant: Variant, numbers: range, plies: int, seed: int) -> list[Opening]:
    """Play out the openings of these numbers; those that finish the game are left out."""
    streams = [np.random.default_rng((seed, OPENING_STREAM, number)) for number in numbers]
    draws = np.array([stream.random(plies) for stream in streams])
    starts = [variant.start_fens[int(stream.integers(len(variant.start_fens)))] for stream in streams]
    env = VectorEnv(variant, len(numbers))
    lanes = range(len(numbers))
    for lane, fen in enumerate(starts):
        env.set_fen(lane, fen)
    actions: list[list[int]] = [[] for _ in lanes]
    moves: list[list[str]] = [[] for _ in lanes]
    for ply in range(plies):
        legal, counts = legal_actions(env.game, env.states)
        drawn = legal.shape[1] - counts + (draws[:, ply] * counts).astype(np.int64)
        chosen = np.sort(legal, axis=1)[lanes, np.minimum(drawn, legal.shape[1] - 1)]
        for lane in np.flatnonzero(~env.over).tolist():
            actions[lane].append(int(chosen[lane]))
            moves[lane].append(env.action_to_move(lane, int(chosen[lane])))
        env.step(chosen)
    positions = [" ".join(env.fen(lane).split()[:POSITION_FIELDS]) for lane in lanes]
    played = map(Opening, starts, map(tuple, actions), map(tuple, moves), positions)
    return [opening for opening, over in zip(played, env.over.tolist()) if not over]


class Judge:
    """Says which openings are balanced."""

    def __init__(self, variant: Variant) -> None:
        from train.alphabeta import AlphaBeta

        self._env = VectorEnv(variant, 1)
        self._search = AlphaBeta(self._env.game, mobility_weights(variant), table_bits=0)
        self._at_start: dict[str, int] = {}

    def is_balanced(self, opening: Opening) -> bool:
        """Say whether neither side has gained or lost more than the weakest piece, or is mated at once."""
        start = opening.start_fen
        self._env.set_fen(0, start)
        if start not in self._at_start:
            self._at_start[start] = self._white_score()
        for action in opening.actions:
            self._env.step([action])
        return abs(self._white_score() - self._at_start[start]) <= WEAKEST_PIECE

    def _white_score(self) -> int:
        row: U64Array = self._env.states[0]
        score = self._search.search(row, self._env.histories[0], depth=BALANCE_DEPTH).lines[0].score
        return int(score) if self._env.to_play[0] == 0 else -int(score)


def mobility_weights(variant: Variant) -> NDArray[np.int32]:
    """Return material by mean mobility as an evaluation, int32 [32, S], White's view, in `WEAKEST_PIECE`."""
    values = mobility_values(variant)
    signed = np.where(np.arange(len(values)) >= BLACK_CODE, -values, values) * WEAKEST_PIECE / values[values > 0].min()
    return np.repeat(np.rint(signed).astype(np.int32)[:, None], variant.num_squares, axis=1)
