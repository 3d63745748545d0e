"""Quiet positions of stored games, and what is left of them when one piece is taken off the board.

Both are set up anew, without a history: clocks at 0, en passant and the rights to castle with what was removed gone.

Dims: N positions, M removals, G games, K kinds, W words of a state row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from envs import CompiledGame, InvalidFen, legal_actions, observe, piece_counts, to_play
from envs.game_kernels import verdict
from envs.layout import CASTLING, TO_PLAY, U64Array
from envs.notation import BLACK_CODE, EMPTY, FenFields, piece_code, piece_letter
from envs.rows import board_of, legal_moves, row_of
from envs.variant import BLACK, WHITE
from models.evaluator import Evaluator
from train.evaluation_features import are_sides_alike
from train.piece_values.fits import Progress
from train.piece_values.logistic import Floats
from train.piece_values.positions import OPENING_SHARE, InsufficientData, num_array_men, quiet_mask
from train.search_arrays import evaluate
from train.shards import GameRecord
from train.starts import removable_squares, rights_left

BATCH = 256
MOVER, OTHER = 0, 1
"""Who owns a piece: the side to move, or the other one."""


@dataclass(frozen=True, eq=False)
class Removals:
    """Positions, and what is left of each without one piece.

    Attributes:
        letters: of the kinds, [K]; small letters are Black's, where the sides are told apart.
        positions: state rows, uint64 [N, W].
        left: state rows, uint64 [M, W].
        origin: the position that each comes from, intp [M].
        kind: of the piece removed, intp [M].
        owner: `MOVER` or `OTHER`, intp [M].
        game: the game of each position, intp [N].
        is_opening: whether many of the men of the array are on the board, bool [N].
        num_games: G.
    """

    letters: tuple[str, ...]
    positions: U64Array
    left: U64Array
    origin: NDArray[np.intp]
    kind: NDArray[np.intp]
    owner: NDArray[np.intp]
    game: NDArray[np.intp]
    is_opening: NDArray[np.bool_]
    num_games: int


def remove_pieces(game: CompiledGame, records: Sequence[GameRecord], *, positions_per_game: int, seed: int) -> Removals:
    """Draw quiet positions and take one piece of each kind and side off each, a royal never.

    Args:
        game: the game.
        records: games.
        positions_per_game: drawn from each, at most.
        seed: of what is drawn.

    Raises:
        InsufficientData: no position is left.
    """
    rng = np.random.default_rng(seed)
    letters, array_men = kind_letters(game), num_array_men(game.variant)
    positions: list[U64Array] = []
    left: list[U64Array] = []
    games: list[int] = []
    openings: list[bool] = []
    places: list[tuple[int, int, int]] = []  # position, kind, owner
    for number, record in enumerate(records):
        for drawn in _drawn_positions(game, record, positions_per_game, rng):
            fields = _fields_of(game, drawn)
            row = _set_up(game, fields, None)
            if row is None:
                continue
            for square in _one_of_each(fields.board, removable_squares(game, fields), rng):
                without = _set_up(game, fields, square)
                if without is not None:
                    code = int(fields.board[square])
                    owner = MOVER if (code > BLACK_CODE) == fields.to_play else OTHER
                    places.append((len(positions), letters.index(_kind_letter(game, code, letters)), owner))
                    left.append(without)
            positions.append(row)
            games.append(number)
            openings.append(int(np.count_nonzero(fields.board)) >= OPENING_SHARE * array_men)
    if not left:
        raise InsufficientData(f"quiet positions to take a piece from: none in {len(records)} games")
    origin, kind, owner_of = np.array(places, np.intp).T
    all_positions, all_left = np.stack(positions), np.stack(left)
    used = goes_on(game, all_left) & goes_on(game, all_positions)[origin]
    return Removals(
        letters, all_positions, all_left[used], origin[used], kind[used], owner_of[used],
        np.array(games, np.intp), np.array(openings), len(records),
    )  # fmt: skip


def goes_on(game: CompiledGame, rows: U64Array) -> NDArray[np.bool_]:
    """Return in which positions the game is not over, bool [N]."""
    _, counts, checks = legal_moves(game, rows)
    copies = rows.copy()
    ended = [
        verdict(game.tables, row.view(np.uint8), row, np.uint64(0), np.uint64(moves), np.uint64(check))
        for row, moves, check in zip(copies, counts, checks)
    ]
    return np.asarray(np.array(ended, np.uint64) == 0)


def expected_scores(
    game: CompiledGame, evaluator: Evaluator, rows: U64Array, progress: Progress | None = None
) -> Floats:
    """Return White's expected score in positions, win plus half a draw, float64 [N].

    Args:
        game: the game.
        evaluator: scores positions.
        rows: uint64 [N, W], positions in which the game goes on.
        progress: called with the positions done and wanted.
    """
    scores = np.empty(len(rows))
    for first in range(0, len(rows), BATCH):
        batch = rows[first : first + BATCH]
        actions, _ = legal_actions(game, batch)
        _, wdl = evaluate(evaluator, observe(game, batch), actions)
        own = wdl[:, 0].astype(np.float64) + wdl[:, 1] / 2
        scores[first : first + BATCH] = np.where(to_play(game, batch) == WHITE, own, 1 - own)
        if progress:
            progress(min(first + BATCH, len(rows)), len(rows))
    return scores


def kind_letters(game: CompiledGame) -> tuple[str, ...]:
    """Return the letters of the kinds that are not royal, small ones for Black's where the sides are told apart."""
    variant = game.variant
    sides = (WHITE,) if are_sides_alike(variant) else (WHITE, BLACK)
    return tuple(
        piece_letter(variant, piece_code(number, side))
        for side in sides
        for number in range(len(variant.piece_types))
        if number != variant.royals[side]
    )


def _kind_letter(game: CompiledGame, code: int, letters: Sequence[str]) -> str:
    letter = piece_letter(game.variant, code)
    return letter if letter in letters else letter.upper()


def _fields_of(game: CompiledGame, row: U64Array) -> FenFields:
    """Return what a position is without its history."""
    header = row.view(np.uint8)
    rights = int(header[CASTLING])
    return FenFields(
        board=board_of(game, row),
        to_play=int(header[TO_PLAY]),
        rights=(bool(rights & 1), bool(rights & 2), bool(rights & 4), bool(rights & 8)),
        passed=(),
        halfmove_clock=0,
        fullmove_number=1,
    )


def _set_up(game: CompiledGame, fields: FenFields, square: int | None) -> U64Array | None:
    """Set a position up, without the piece on a square if one is given; None if no game can stand like that."""
    board = fields.board.copy()
    if square is not None:
        board[square] = EMPTY
    try:
        return row_of(game, replace(fields, board=board, rights=rights_left(game, fields.rights, board)))
    except InvalidFen:
        return None


def _drawn_positions(game: CompiledGame, record: GameRecord, most: int, rng: np.random.Generator) -> U64Array:
    """Return some quiet positions of a game after its opening, uint64 [n, W], in the order of the game."""
    is_quiet = quiet_mask(piece_counts(game, record.states))
    is_quiet[: record.opening_plies] = False
    chosen = rng.permutation(np.flatnonzero(is_quiet))[:most]
    drawn: U64Array = record.states[np.sort(chosen)]
    return drawn


def _one_of_each(board: NDArray[np.uint8], squares: NDArray[np.intp], rng: np.random.Generator) -> list[int]:
    """Return one square for each piece code on `squares`, drawn among those that hold it."""
    shuffled = rng.permutation(squares)
    _, first = np.unique(board[shuffled], return_index=True)
    return [int(square) for square in shuffled[first]]
