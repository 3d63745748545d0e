"""Boards as text: capital letters for White, `.` for an empty square, `*` where the grid has no square."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from envs import game_kernels, layout
from envs.layout import U8Array, U64Array
from envs.notation import SIDE_NAMES, piece_letter
from envs.rows import board_of, format_fen
from envs.tables import CompiledGame
from envs.variant import Board, Variant

EMPTY_MARK, HOLE_MARK = ".", "*"


def draw_grid(board: Board, cells: Mapping[int, str], window: tuple[range, range] | None = None) -> str:
    """Draw squares with rank and file labels, White's side at the bottom.

    Args:
        board: The squares.
        cells: Text of a square by index; missing ones are empty squares.
        window: Files and ranks (`x` and `y` from 0) to draw; all by default.

    Returns:
        Lines without a newline at the end; each cell is as wide as the widest text.
    """
    files, ranks = window or (range(board.files), range(board.ranks))
    width = max(1, *(len(text) for text in cells.values())) if cells else 1
    label_width = len(str(board.first_rank + board.ranks - 1))
    lines = []
    for y in reversed(ranks):
        squares = [board.index.get((x, y)) for x in files]
        texts = [HOLE_MARK if square is None else cells.get(square, EMPTY_MARK) for square in squares]
        row = " ".join(text.ljust(width) for text in texts)
        lines.append(f"{board.first_rank + y:>{label_width}}  {row}".rstrip())
    names = " ".join(chr(ord("a") + x).ljust(width) for x in files).rstrip()
    return "\n".join([*lines, f"{'':>{label_width}}  {names}"])


def draw_board(variant: Variant, codes: U8Array) -> str:
    """Draw a board.

    Args:
        variant: The game.
        codes: uint8 [S], piece codes (`layout.py`).
    """
    occupied = np.flatnonzero(codes).tolist()
    return draw_grid(variant.board, {square: piece_letter(variant, int(codes[square])) for square in occupied})


def draw_row(game: CompiledGame, row: U64Array) -> str:
    """Draw a position: its board, and a line with the side to move, rights, en passant, counters and check.

    Args:
        game: The game.
        row: uint64 [words], a packed position such as `Position.row()` or `VectorEnv.states[lane]`.
    """
    _, side, rights, passed, clock, number = format_fen(game, row).split(" ")
    to_play = "wb".index(side)
    parts = [f"{SIDE_NAMES[to_play]} to move"]
    data = np.array(row, np.uint64).view(np.uint8)
    if game_kernels.royal_attacked(game.tables, data, np.uint64(0), np.uint64(to_play)):
        parts[0] += ", in check"
    if any(game.variant.castlings):
        parts.append(f"castling {'none' if rights == '-' else rights}")
    if passed != "-":
        names = sorted(game.variant.board.names[square] for square in _passed(data))
        parts.append(f"en passant on {' and '.join(names)}")
    without = "capture" if game.variant.pawns is None else "capture or pawn move"
    parts += [f"{clock} plies without {without}", f"move {number}"]
    return f"{draw_board(game.variant, board_of(game, row))}\n\n{'; '.join(parts)}"


def _passed(data: U8Array) -> list[int]:
    count = int(data[layout.EP_COUNT])
    squares: list[int] = data[layout.EP_SQUARES : layout.EP_SQUARES + count].tolist()
    return squares
