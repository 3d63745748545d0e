"""Games of the alpha-beta engine against itself with learned evaluations, no network: many, in threads.

What balance and piece values are measured from without a training run. A game is given by an order that fixes all of
it, so that equal orders give equal games in whatever thread. Dims: R rows of an evaluation, S squares, W words a state
row, N searched moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import local

import numpy as np
from numpy.typing import NDArray

from envs import CompiledGame, Termination, read_fen
from envs.kernels import make
from envs.layout import U8Array, U64Array
from envs.rows import outcome_of_verdict
from train.evaluation_games import GamePlayer
from train.progress import Update
from train.resources import num_cores

MAX_PLIES = 300


@dataclass(frozen=True, eq=False)
class GameOrder:
    """A game that is to be played.

    Attributes:
        fen: where it begins, with an empty history.
        weights: int32 [2, R, S], what White and what Black go by (`EvaluationTable.weights`).
        tempo: what the move is worth to both.
        random_plies: the game begins with so many random moves.
        seed: of these moves, and of ties.
    """

    fen: str
    weights: NDArray[np.int32]
    tempo: int
    random_plies: int
    seed: int


@dataclass(frozen=True, eq=False)
class PlayedGame:
    """A game that was played.

    Attributes:
        fen: where it began.
        random_plies: as ordered.
        moves: uint64 [plies], move words (`envs/layout.py`).
        white_score: 1, 0.5 or 0; NaN for a game that was cut short.
        termination: None for such a game.
        boards: uint8 [N, S], for each searched move the position that its variation leads to, as piece codes.
        movers: uint8 [N], who is to move there: 0 White, 1 Black.
        decided: float32 [N], White's score where the variation ends the game, else NaN.
    """

    fen: str
    random_plies: int
    moves: U64Array
    white_score: float
    termination: Termination | None
    boards: U8Array
    movers: U8Array
    decided: NDArray[np.float32]


def play_games(  # noqa: PLR0913 - a public surface that others rely on
    game: CompiledGame,
    orders: Sequence[GameOrder],
    *,
    depth: int,
    max_plies: int = MAX_PLIES,
    num_threads: int | None = None,
    update: Update = lambda done: None,
) -> list[PlayedGame]:
    """Play games, each move by a search; returns them in the order of their orders.

    Args:
        game: the compiled game.
        orders: the games.
        depth: plies that each move is searched, quiescence not counted.
        max_plies: where games are cut short.
        num_threads: games under way at a time; all cores if None.
        update: told how many games are finished.
    """
    if depth < 1:
        raise ValueError(f"depth: expected at least 1, got {depth}")
    threads = min(num_threads or num_cores(), len(orders)) or 1
    own = local()

    def play(order: GameOrder) -> PlayedGame:
        if not hasattr(own, "player"):
            own.player = GamePlayer(game, depth=depth, max_plies=max_plies)
        return _play(own.player, order)

    played: list[PlayedGame] = []
    pool = ThreadPoolExecutor(threads)
    try:
        for one in pool.map(play, orders):
            played.append(one)
            update(len(played))
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    return played


def replay(game: CompiledGame, played: PlayedGame) -> U64Array:
    """Return the positions of a game as state rows, uint64 [plies + 1, W], repetitions not counted."""
    row = read_fen(game, played.fen).copy()
    rows = np.empty((len(played.moves) + 1, game.state_words), np.uint64)
    rows[0] = row
    for ply, move in enumerate(played.moves, start=1):
        make(game.tables, game.zobrist, row.view(np.uint8), row, np.uint64(0), move)
        rows[ply] = row
    return rows


def _play(player: GamePlayer, order: GameOrder) -> PlayedGame:
    found = player.play(order.fen, order.weights, order.tempo, random_plies=order.random_plies, seed=order.seed)
    outcome = outcome_of_verdict(found.verdict, 0)  # whoever moves, the termination is the same
    return PlayedGame(
        fen=order.fen,
        random_plies=order.random_plies,
        moves=found.moves,
        white_score=found.white_score,
        termination=outcome.termination if outcome else None,
        boards=found.boards,
        movers=found.movers,
        decided=found.decided,
    )
