"""Which men of a stored game were pawns once: promoted men followed through the moves.

Dims: T plies, types the game's piece types.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from envs import CompiledGame, boards, to_play
from envs.layout import CASTLE_FLAG, U64Array
from envs.notation import piece_code
from envs.rows import actions_of, legal_moves
from train.shards import GameRecord


def promoted_men(game: CompiledGame, record: GameRecord) -> NDArray[np.int16]:
    """Count the men on the board that were pawns, before each move.

    Args:
        game: whose game it is.
        record: the game; right by the rules.

    Returns:
        int16 [T, 2, types]: White's and Black's, by what they are now.
    """
    counts = np.zeros((record.num_plies, 2, len(game.variant.piece_types)), np.int16)
    moves = played_moves(game, record)
    promotions = ((moves >> np.uint64(32)) & np.uint64(15)).astype(np.intp)
    if not promotions.any():
        return counts
    movers, codes = to_play(game, record.states), boards(game, record.states)
    men: dict[int, tuple[int, int]] = {}  # square -> side and type
    for ply in range(int(np.flatnonzero(promotions)[0]), record.num_plies):
        men = {square: man for square, man in men.items() if codes[ply, square] == piece_code(man[1], man[0])}
        for side, number in men.values():
            counts[ply, side, number] += 1
        start, target = int(moves[ply]) & 0xFF, int(moves[ply]) >> 8 & 0xFF
        man = men.pop(start, None)
        if promotions[ply]:
            man = int(movers[ply]), int(promotions[ply]) - 1
        if int(moves[ply]) >> CASTLE_FLAG & 1:
            continue
        men.pop(target, None)  # one of the same side and type may have captured it
        if man is not None:
            men[target] = man
    return counts


def played_moves(game: CompiledGame, record: GameRecord) -> U64Array:
    """Return the move words (`envs/layout.py`) of a game, uint64 [T]."""
    words, counts, _ = legal_moves(game, record.states)
    is_played = actions_of(words) == record.actions[:, None]
    is_played &= np.arange(words.shape[1]) < counts[:, None]
    if not is_played.any(axis=1).all():
        raise ValueError(f"game {record.seed}: move {int(np.argmin(is_played.any(axis=1)))} is not legal")
    played: U64Array = words[np.arange(len(words)), is_played.argmax(axis=1)]
    return played
