"""Start positions of self-play games: the array, and the array with random material odds.

Odds make early decisive games and unbiased data for piece values: what each side lacks is drawn at random, not chosen
by a player.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from envs import CompiledGame, InvalidFen, Position, read_fen
from envs.notation import EMPTY, FenFields, format_fields, parse_fields, piece_code

MOST_REMOVED_SHARE = 0.7
"""The share of both sides' pieces that may be taken off at most, on average."""
MAX_TRIES = 1000
Rights = tuple[bool, bool, bool, bool]
"""In the order of `Variant.castlings`."""


def array_start(game: CompiledGame, rng: np.random.Generator) -> str:
    """Return the start position, drawn with equal chance where the game has several; then `rng` is consumed."""
    fens = game.variant.start_fens
    return fens[0] if len(fens) == 1 else fens[int(rng.integers(len(fens)))]


def odds_start(game: CompiledGame, rng: np.random.Generator) -> str:
    """Return a start position with random pieces taken off.

    One share of removal is drawn, uniform up to `MOST_REMOVED_SHARE`; then each piece but the royals is removed with
    that chance, so that the sides differ by chance. Rights to castle with or as a removed piece go too.

    Args:
        game: The game.
        rng: Consumed.

    Returns:
        The FEN of a position in which the game goes on.

    Raises:
        RuntimeError: No such position was found, which a sane start array makes all but impossible.
    """
    fields = parse_fields(game.variant, array_start(game, rng))
    removable = removable_squares(game, fields)
    for _ in range(MAX_TRIES):
        share = rng.uniform(0.0, MOST_REMOVED_SHARE)
        fen = start_without(game, fields, removable[rng.random(len(removable)) < share])
        if fen is not None:
            return fen
    raise RuntimeError(f"no playable odds start in {MAX_TRIES} tries for {game.variant.name}")


def removable_squares(game: CompiledGame, fields: FenFields) -> NDArray[np.intp]:
    """Return the squares of all pieces but the royals, ascending."""
    royals = [piece_code(royal, side) for side, royal in enumerate(game.variant.royals) if royal is not None]
    return np.flatnonzero((fields.board != EMPTY) & ~np.isin(fields.board, royals))


def start_without(game: CompiledGame, fields: FenFields, squares: NDArray[np.intp]) -> str | None:
    """Return the FEN of a start position without the pieces on some squares; None where no game goes on from it.

    Rights to castle with or as a removed piece go too.
    """
    board = fields.board.copy()
    board[squares] = EMPTY
    fen = format_fields(
        game.variant, FenFields(board, fields.to_play, rights_left(game, fields.rights, board), (), 0, 1)
    )
    return fen if goes_on(game, fen) else None


def rights_left(game: CompiledGame, rights: Rights, board: NDArray[np.uint8]) -> Rights:
    """Return the rights to castle of which king and partner still stand at home on `board`, uint8 [S]."""
    left = [
        right
        and castling is not None
        and board[castling.king_from] in [piece_code(kind, number // 2) for kind in castling.king_types]
        and board[castling.partner_from] in [piece_code(kind, number // 2) for kind in castling.partner_types]
        for number, (right, castling) in enumerate(zip(rights, game.variant.castlings, strict=True))
    ]
    return left[0], left[1], left[2], left[3]


def goes_on(game: CompiledGame, fen: str) -> bool:
    """Return whether a FEN is a position of the game that is not over."""
    try:
        read_fen(game, fen)
    except InvalidFen:
        return False
    return Position(game.variant, fen).outcome() is None
