"""A board for a terminal: coloured squares, which are left away where there are no colours."""

from collections.abc import Collection

import numpy as np
import numpy.typing as npt
from rich.style import Style
from rich.text import Text

from envs import Variant
from envs.notation import BLACK_CODE, piece_letter
from envs.render import EMPTY_MARK, HOLE_MARK

LIGHT, DARK, MOVED_LIGHT, MOVED_DARK = "#7d93a5", "#5f7687", "#9a9038", "#7f7626"
"""Squares between White's pieces, drawn white, and Black's, drawn black; those of the last move are yellowish."""
WHITE_PIECE, BLACK_PIECE, LABEL = "bold #ffffff", "bold #000000", "dim"


def board_text(
    variant: Variant, codes: npt.NDArray[np.uint8], *, moved: Collection[int] = (), flipped: bool = False
) -> Text:
    """Return a board, White's side at the bottom unless it is flipped.

    Args:
        variant: The game.
        codes: uint8 [S], piece codes.
        moved: Squares to mark.
        flipped: Whether Black's side is at the bottom.
    """
    board = variant.board
    files = range(board.files)[:: -1 if flipped else 1]
    ranks = range(board.ranks)[:: 1 if flipped else -1]
    width = len(str(board.first_rank + board.ranks - 1))
    text = Text()
    for y in ranks:
        text.append(f" {board.first_rank + y:>{width}} ", LABEL)
        for x in files:
            square = board.index.get((x, y))
            if square is None:
                text.append(f" {HOLE_MARK} ", LABEL)
            else:
                code = int(codes[square])
                mark = piece_letter(variant, code) or EMPTY_MARK
                text.append(f" {mark} ", _style(code, is_light=(x + y) % 2 == 1, is_moved=square in moved))
        text.append("\n")
    text.append(" " * (width + 2) + "".join(f" {chr(ord('a') + x)} " for x in files).rstrip(), LABEL)
    return text


def _style(code: int, *, is_light: bool, is_moved: bool) -> Style:
    """Return the colours of a square; the mark of an empty one shows only where there are no colours."""
    ground = (MOVED_LIGHT if is_light else MOVED_DARK) if is_moved else (LIGHT if is_light else DARK)
    piece = (BLACK_PIECE if code > BLACK_CODE else WHITE_PIECE) if code else ground
    return Style.parse(f"{piece} on {ground}")
