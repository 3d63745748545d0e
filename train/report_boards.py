"""Boards, arrays and moves of pieces as drawings. White's side is at the bottom always. Dims: S squares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from envs import Variant
from envs.board_picture import ARROW, BLACK_DISC, DARK, DISC_RADIUS, FAINT, LIGHT, MOVED, WHITE_DISC
from envs.move_diagrams import LEGEND, CaptureExample, move_diagram
from envs.notation import parse_fields, piece_letter
from envs.render import EMPTY_MARK
from train.report_drawing import Disc, Drawing, Shape, Stroke, Tile, Words

MARGIN = 0.55
"""Cells round a board for the names of files and ranks."""
EDGE = 0.05
LETTER, NAME = 0.52, 0.32
"""Font sizes in cells."""
CAPTURE = "#b03a48"
"""Colour of what is for capture only."""
MARK_RADIUS, RING_RADIUS, SMALL_RING, CROSS = 0.2, 0.2, 0.12, 0.17


def board_drawing(variant: Variant, codes: NDArray[np.uint8], *, title: str, moved: Sequence[int] = ()) -> Drawing:
    """Draw a board.

    Args:
        variant: the game.
        codes: piece codes, uint8 [S].
        title: what it shows.
        moved: squares that the last move left and reached.
    """
    board = variant.board
    shapes: list[Shape] = []
    for square, (x, y) in enumerate(board.squares):
        shapes.append(_cell(x, y, is_marked=square in moved))
        if codes[square]:
            shapes += _piece(x, y, piece_letter(variant, int(codes[square])))
    shapes += _names(variant)
    size = (board.files + MARGIN + EDGE, board.ranks + MARGIN + EDGE)
    return Drawing(shapes, -MARGIN, -MARGIN, *size, title)


def start_drawing(variant: Variant) -> Drawing:
    """Draw the first start position."""
    codes = np.asarray(parse_fields(variant, variant.start_fen).board, np.uint8)
    return board_drawing(variant, codes, title=f"The array of {variant.title}")


def diagram_marks(variant: Variant, number: int) -> dict[tuple[int, int], str]:
    """Return the cells of a piece's move diagram: `(files to the right, ranks up)` from the piece, and their marks.

    The piece's own cell `(0, 0)` has its letter, empty cells `EMPTY_MARK`; `envs.move_diagrams.LEGEND` explains the
    others.
    """
    rows = [line.split(" ") for line in move_diagram(variant, number).splitlines()]
    letter = variant.piece_types[number].letter
    y0, x0 = next((y, row.index(letter)) for y, row in enumerate(rows) if letter in row)
    return {(x - x0, y0 - y): mark for y, row in enumerate(rows) for x, mark in enumerate(row)}


def moves_drawing(variant: Variant, number: int) -> Drawing:
    """Draw how a White piece of a type moves on an empty board."""
    marks = diagram_marks(variant, number)
    shapes: list[Shape] = []
    for (x, y), mark in marks.items():
        shapes.append(_cell(x, y + 1))  # the piece stands on a light square
        if (x, y) == (0, 0):
            shapes += _piece(x, y + 1, mark)
        elif mark != EMPTY_MARK:
            shapes += mark_shapes(x, y + 1, mark)
    left, bottom = min(x for x, _ in marks), min(y for _, y in marks) + 1
    width, height = max(x for x, _ in marks) - left + 1, max(y for _, y in marks) + 2 - bottom
    title = f"How the {variant.piece_types[number].name} moves"
    return Drawing(shapes, left, bottom, width, height, title)


def example_drawing(variant: Variant, example: CaptureExample, name: str) -> Drawing:
    """Draw a position with double captures: a ring on a target, and the number that a move there captures."""
    codes = np.asarray(parse_fields(variant, example.fen).board, np.uint8)
    plain = board_drawing(variant, codes, title=f"Where the {name} on {example.square} may go, and what it captures")
    shapes = list(plain.shapes)
    for square, count in _victims_by_target(variant, example).items():
        x, y = variant.board.squares[square]
        colour = CAPTURE if count else ARROW
        shapes.append(Disc(x + 0.82, y + 0.82, 0.17, colour))
        if count:
            shapes.append(Words(x + 0.82, y + 0.82, str(count), 0.28, "#ffffff"))
    return Drawing(shapes, plain.left, plain.bottom, plain.width, plain.height, plain.title)


def mark_drawing(mark: str) -> Drawing:
    """Draw one mark of a diagram for its legend."""
    return Drawing([_cell(0, 1), *mark_shapes(0, 1, mark)], 0, 1, 1, 1, LEGEND[mark])


def mark_shapes(x: float, y: float, mark: str) -> list[Shape]:
    """Return the shapes of a mark in the cell whose lower left corner is `(x, y)`."""
    x, y = x + 0.5, y + 0.5
    match mark:
        case "o":
            return [Disc(x, y, MARK_RADIUS, ARROW)]
        case "m":
            return [Disc(x, y, RING_RADIUS, WHITE_DISC, ARROW, 0.08)]
        case "s":
            return [Disc(x, y, SMALL_RING, WHITE_DISC, ARROW, 0.06)]
        case "x":
            return [
                Stroke(x - CROSS, y - CROSS, x + CROSS, y + CROSS, CAPTURE, 0.09),
                Stroke(x - CROSS, y + CROSS, x + CROSS, y - CROSS, CAPTURE, 0.09),
            ]
    return [Disc(x, y, 0.3, ARROW), Words(x, y, mark, 0.42, "#ffffff")]


def _cell(x: int, y: int, *, is_marked: bool = False) -> Tile:
    return Tile(x, y, 1, 1, MOVED if is_marked else LIGHT if (x + y) % 2 else DARK)


def _piece(x: int, y: int, letter: str) -> list[Shape]:
    is_black = letter.islower()
    face, ink = (BLACK_DISC, WHITE_DISC) if is_black else (WHITE_DISC, BLACK_DISC)
    disc = Disc(x + 0.5, y + 0.5, DISC_RADIUS, face, BLACK_DISC, 0.03)
    return [disc, Words(x + 0.5, y + 0.5, letter.upper(), LETTER, ink)]


def _names(variant: Variant) -> list[Shape]:
    board = variant.board
    files = [Words(x + 0.5, -MARGIN / 2, chr(ord("a") + x), NAME, FAINT) for x in range(board.files)]
    ranks = [Words(-MARGIN / 2, y + 0.5, str(board.first_rank + y), NAME, FAINT) for y in range(board.ranks)]
    return [*files, *ranks]


def _victims_by_target(variant: Variant, example: CaptureExample) -> Mapping[int, int]:
    """Return the squares that moves of an example end on, with the most that a move there captures."""
    most: dict[int, int] = {}
    for move, victims in example.victims.items():
        name = next(name for name in _longest_first(variant) if move[len(example.square) :].startswith(name))
        square = variant.board.index_by_name[name]
        most[square] = max(most.get(square, 0), len(victims))
    return most


def _longest_first(variant: Variant) -> list[str]:
    return sorted(variant.board.names, key=len, reverse=True)
