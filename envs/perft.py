"""Counting the legal move tree (perft), the usual check of a move generator."""

from __future__ import annotations

import numpy as np

from envs import game_kernels
from envs.position import Position
from envs.rows import board_of, read_fen, thread_scratch
from envs.tables import CompiledGame


def perft(game: CompiledGame, depth: int, fen: str | None = None) -> int:
    """Count the sequences of `depth` legal moves; draws other than stalemate do not stop them.

    Args:
        game: The compiled game.
        depth: Plies, 0 to 60.
        fen: Where to begin; the start position by default.

    Raises:
        InvalidFen: The FEN is no position of the game.
        ValueError: The depth is out of range.
    """
    if not 0 <= depth <= 60:
        raise ValueError(f"depth: expected 0 to 60, got {depth}")
    row = read_fen(game, game.variant.start_fen if fen is None else fen)
    if depth == 0:
        return 1
    rows = np.zeros((depth, game.state_words), np.uint64)
    rows[0] = row
    bound = game.legal_bound(board_of(game, row))
    moves = np.zeros(depth * bound, np.uint64)
    return int(
        game_kernels.perft(
            game.tables,
            game.zobrist,
            rows.view(np.uint8).reshape(-1),
            rows.reshape(-1),
            depth,
            moves,
            bound,
            thread_scratch(),
        )
    )


def divide(game: CompiledGame, depth: int, fen: str | None = None) -> dict[str, int]:
    """Return the perft count below each legal move, moves sorted; `depth` is at least 1."""
    position = Position(game.variant, fen=fen)
    counts = {}
    for move in position.legal_moves():
        position.push(move)
        counts[move] = perft(game, depth - 1, position.fen())
        position.pop()
    return counts
