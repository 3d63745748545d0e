"""Boards as pictures: pieces are discs with the letter of the variant, light for White, dark for Black.

White's side is at the bottom always. Dims: S squares, H x W pixels.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from envs.notation import piece_letter
from envs.variant import Variant

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BOARD_INCHES, DOTS_PER_INCH = 3.6, 80
LIGHT, DARK, MOVED, ARROW = "#efe6d5", "#c2a988", "#d8c34a", "#1f5a94"
WHITE_DISC, BLACK_DISC, INK, FAINT = "#fffdf8", "#33302c", "#222222", "#8a8a8a"
DISC_RADIUS = 0.39
POINTS_PER_INCH = 72


@dataclass(frozen=True, eq=False)
class BoardView:
    """A board to draw.

    Attributes:
        codes: uint8 [S], piece codes.
        title: Above the board.
        note: Below it.
        moved: From and to square of the last move, or none.
        arrows: From square, to square and weight in (0, 1] of moves.
    """

    codes: npt.NDArray[np.uint8]
    title: str = ""
    note: str = ""
    moved: tuple[int, ...] = ()
    arrows: tuple[tuple[int, int, float], ...] = ()


def board_pixels(variant: Variant, view: BoardView) -> npt.NDArray[np.uint8]:
    """Draw one board as pixels, uint8 [H, W, 3]."""
    from matplotlib.figure import Figure

    board = variant.board
    longest = max(board.files, board.ranks)
    width, height = (BOARD_INCHES * cells / longest + 0.4 for cells in (board.files, board.ranks))
    figure = Figure(figsize=(width, height), dpi=DOTS_PER_INCH)
    draw_board(figure.add_axes((0.36 / width, 0.36 / height, 1 - 0.4 / width, 1 - 0.4 / height)), variant, view)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="rgba")
    columns, rows = (int(pixels) for pixels in figure.get_size_inches() * DOTS_PER_INCH)
    return np.frombuffer(buffer.getvalue(), np.uint8).reshape(rows, columns, 4)[:, :, :3].copy()


def draw_board(axes: Axes, variant: Variant, view: BoardView) -> None:
    """Draw one board with its title, note and arrows on axes of matplotlib."""
    from matplotlib.colors import to_rgba

    board = variant.board
    cells = np.zeros((board.ranks, board.files, 4))  # holes stay transparent
    for square, (x, y) in enumerate(board.squares):
        cells[y, x] = to_rgba(MOVED if square in view.moved else LIGHT if (x + y) % 2 else DARK)
    axes.imshow(cells, origin="lower", interpolation="nearest")
    _draw_pieces(axes, variant, view.codes)
    for start, end, weight in reversed(view.arrows):
        _draw_arrow(axes, board.squares[start], board.squares[end], weight)
    axes.set_xticks(range(board.files), [chr(ord("a") + x) for x in range(board.files)])
    axes.set_yticks(range(board.ranks), [str(board.first_rank + y) for y in range(board.ranks)])
    axes.tick_params(length=0, labelsize=8, labelcolor=FAINT)
    axes.spines[:].set_visible(False)
    axes.set_title(view.title, fontsize=10, color=INK)
    axes.set_xlabel(view.note, fontsize=8, color=INK)


def _draw_pieces(axes: Axes, variant: Variant, codes: npt.NDArray[np.uint8]) -> None:
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Circle

    board = variant.board
    size = 0.5 * POINTS_PER_INCH * (BOARD_INCHES - 0.4) / max(board.files, board.ranks)
    discs: tuple[list[Circle], list[Circle]] = ([], [])
    for square in np.flatnonzero(codes).tolist():
        letter, (x, y) = piece_letter(variant, int(codes[square])), board.squares[square]
        is_black = letter.islower()
        discs[is_black].append(Circle((x, y), DISC_RADIUS))
        colour = WHITE_DISC if is_black else BLACK_DISC
        axes.text(x, y, letter.upper(), fontsize=size, color=colour, ha="center", va="center_baseline", zorder=4)
    for patches, face in zip(discs, (WHITE_DISC, BLACK_DISC)):
        axes.add_collection(PatchCollection(patches, facecolor=face, edgecolor=BLACK_DISC, linewidth=0.8, zorder=3))


def _draw_arrow(axes: Axes, start: tuple[int, int], end: tuple[int, int], weight: float) -> None:
    """Draw a move; wide and dark where it is likely. A move to its own square is a ring."""
    from matplotlib.patches import Circle, FancyArrow

    (x, y), (dx, dy) = start, (end[0] - start[0], end[1] - start[1])
    opacity = 0.45 + 0.5 * weight
    if dx == dy == 0:
        axes.add_patch(Circle(start, DISC_RADIUS, fill=False, edgecolor=ARROW, linewidth=3, alpha=opacity, zorder=5))
        return
    width = 0.06 + 0.2 * weight
    axes.add_patch(
        FancyArrow(
            x, y, dx, dy, width=width, head_width=width + 0.24, head_length=0.36, length_includes_head=True,
            facecolor=ARROW, edgecolor="none", alpha=opacity, zorder=5,
        )
    )  # fmt: skip
