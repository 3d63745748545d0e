"""Start positions of self-play games: the array, and the array with random material odds.

Odds make early decisive games and unbiased data for piece values: what each side lacks is drawn at random, not chosen
by a player.
"""

from __future__ import annotations

import numpy as np

from envs import CompiledGame, InvalidFen, Position, read_fen
from envs.notation import EMPTY, FenFields, format_fields, parse_fields, piece_code

MOST_REMOVED_SHARE = 0.7
"""The share of both sides' pieces that may be taken off at most, on average."""
MAX_TRIES = 1000


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
    royals = [piece_code(royal, side) for side, royal in enumerate(game.variant.royals) if royal is not None]
    removable = np.flatnonzero((fields.board != EMPTY) & ~np.isin(fields.board, royals))
    for _ in range(MAX_TRIES):
        share = rng.uniform(0.0, MOST_REMOVED_SHARE)
        board = fields.board.copy()
        board[removable[rng.random(len(removable)) < share]] = EMPTY
        rights = tuple(
            right and castling is not None and EMPTY not in (board[castling.king_from], board[castling.partner_from])
            for right, castling in zip(fields.rights, game.variant.castlings, strict=True)
        )
        white_k, white_q, black_k, black_q = rights
        fen = format_fields(
            game.variant, FenFields(board, fields.to_play, (white_k, white_q, black_k, black_q), (), 0, 1)
        )
        if _goes_on(game, fen):
            return fen
    raise RuntimeError(f"no playable odds start in {MAX_TRIES} tries for {game.variant.name}")


def _goes_on(game: CompiledGame, fen: str) -> bool:
    try:
        read_fen(game, fen)
    except InvalidFen:
        return False
    return Position(game.variant, fen).outcome() is None
