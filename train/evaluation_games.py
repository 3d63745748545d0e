"""Games of the alpha-beta engine against itself, from which its evaluation is learned.

Dims: S squares, N positions. A searched move leaves one position: the one that its principal variation leads to, where
the static evaluation is the score that the search has returned.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from envs import CompiledGame, read_fen
from envs.kernels import SCRATCH_SIZE
from envs.layout import NUM_CODES, U8Array, U64Array
from envs.rows import board_of
from train import alphabeta_kernels as search_kernels
from train import evaluation_kernels as kernels
from train.alphabeta import NO_LIMIT, QUIESCENCE_PLIES

TABLE_BITS = 12
"""A game's transposition table is small, so that it stays near the core."""


@dataclass(frozen=True, eq=False)
class LearningGame:
    """One game as a learner sees it.

    Attributes:
        boards: uint8 [N, S], piece codes of the leaves.
        movers: uint8 [N], who is to move there: 0 White, 1 Black.
        decided: float32 [N], White's score where the variation ends the game, else NaN.
        white_score: 1, 0.5 or 0; NaN for a game that was cut short.
        moves: uint64 [plies], the move words of the game (`envs/layout.py`), the random ones first.
        verdict: what ended it (`envs/layout.py`), 0 where it was cut short.
    """

    boards: U8Array
    movers: U8Array
    decided: NDArray[np.float32]
    white_score: float
    moves: U64Array = field(default_factory=lambda: np.zeros(0, np.uint64))
    verdict: int = 0


class GamePlayer:
    """Plays games of one kind of game, one after another; owns the search's memory."""

    def __init__(self, game: CompiledGame, *, depth: int, max_plies: int) -> None:
        """Make a player.

        Args:
            game: the compiled game.
            depth: plies that each move is searched, quiescence not counted.
            max_plies: where games are cut short.
        """
        self._game = game
        self._depth, self._max_plies = depth, max_plies
        num_squares, plies = game.variant.num_squares, depth + QUIESCENCE_PLIES + 2
        self._rows = np.zeros((plies, game.state_words), np.uint64)
        self._frames = np.zeros(plies * search_kernels.FIELDS, np.int64)
        self._pv = np.zeros(plies * plies, np.uint64)
        self._history = np.zeros(NUM_CODES * num_squares, np.int64)
        self._table = np.zeros(2 << TABLE_BITS, np.uint64)
        self._keys = np.zeros(max_plies + plies + 1, np.uint64)
        self._control = np.zeros(search_kernels.CONTROLS, np.int64)
        self._control[search_kernels.QUIESCENCE_PLIES] = QUIESCENCE_PLIES
        self._control[search_kernels.NODE_LIMIT] = NO_LIMIT
        self._moves, self._order = np.zeros(0, np.uint64), np.zeros(0, np.int64)
        self._stop, self._scratch = np.zeros(1, np.uint8), np.zeros(SCRATCH_SIZE, np.uint32)
        self._leaves = np.zeros((max_plies, num_squares + 1), np.uint8)
        self._decided = np.zeros(max_plies, np.float32)
        self._played = np.zeros(max_plies, np.uint64)

    def play(self, fen: str, weights: NDArray[np.int32], tempo: int, *, random_plies: int, seed: int) -> LearningGame:
        """Play a game.

        Args:
            fen: where it begins, with an empty history.
            weights: int32 [2, 32, S], what White and what Black go by.
            tempo: what the move is worth to both.
            random_plies: the game begins with so many random moves; only later ones are searched and learned from.
            seed: of these moves, and of ties.
        """
        row = read_fen(self._game, fen)
        self._lay_out(row, tempo)
        found, plies, verdict, white_score = kernels.play_game(
            self._game.tables, self._game.zobrist, weights.reshape(-1), self._rows.view(np.uint8).reshape(-1),
            self._rows.reshape(-1), self._moves, self._order, self._frames, self._keys, self._table, self._history,
            self._pv, self._control, self._stop, self._scratch, np.array([seed], np.uint64),
            np.array([self._depth, random_plies, self._max_plies]), self._leaves.reshape(-1), self._decided,
            self._played,
        )  # fmt: skip
        leaves = self._leaves[:found].copy()
        return LearningGame(
            boards=leaves[:, :-1],
            movers=leaves[:, -1],
            decided=self._decided[:found].copy(),
            white_score=float(white_score),
            moves=self._played[:plies].copy(),
            verdict=int(verdict),
        )

    def _lay_out(self, row: U64Array, tempo: int) -> None:
        """Put a start position in place, with room for its moves; forget the last game."""
        room = len(self._rows) * self._game.legal_bound(board_of(self._game, row))
        if room > len(self._moves):
            self._moves, self._order = np.zeros(room, np.uint64), np.zeros(room, np.int64)
        self._rows[0] = row
        self._table[:] = 0
        self._control[search_kernels.TEMPO] = tempo
