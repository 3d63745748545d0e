"""How pieces move, drawn in text: a diagram of each piece from its rays, an example position from the engine.

A diagram shows an empty board around the piece; an example is a position of the game whose legal moves and
victims come from the engine itself, for the pieces that can capture two at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from envs import layout
from envs.actions import pawn_lives_on
from envs.betza import UNLIMITED, Ray, Step
from envs.errors import InvalidFen
from envs.notation import format_placement, piece_code, piece_letter
from envs.position import Position
from envs.render import EMPTY_MARK, draw_grid
from envs.rows import boards
from envs.variant import BLACK, WHITE, Variant

LEGEND = {
    "o": "may move or capture there",
    "m": "may move there, not capture",
    "s": "may move there from its start rank, not capture",
    "x": "may capture there, not move",
    "&": "may jump there, to move or capture, and captures an enemy on the square jumped over as well",
    "!": "may move or capture there, also after firing through, and capturing, one piece on the way",
}
MIN_RADIUS, MAX_RADIUS, MAX_SLIDE_RADIUS = 2, 8, 4
# Pieces put beside the one that is shown, direction by direction: distance, and whether they are its own.
FIRE_TARGETS = (
    ((2, False), (4, False)),
    ((2, True), (3, False)),
    ((1, False), (3, True)),
    ((2, True), (4, True)),
)
OVERRUN_TARGETS = (((1, False), (2, False)), ((1, False),), ((1, True),), ((1, False), (2, True)))
FAR_SQUARES = 12


def move_diagram(variant: Variant, number: int) -> str:
    """Draw the moves of a White piece of a type on an empty board; `LEGEND` explains the marks."""
    piece = variant.piece_types[number]
    radius = _radius(variant, number)
    marks = _marks(piece.rays, radius) if piece.rays else _pawn_marks(variant)
    marks[0, 0] = piece.letter
    heights = [y for _, y in marks]
    ranks = range(min(radius, max(heights) + 1), max(-radius, min(heights) - 1) - 1, -1)
    half = max(MIN_RADIUS, *(abs(x) for x, _ in marks))
    rows = ([marks.get((x, y), EMPTY_MARK) for x in range(-half, half + 1)] for y in ranks)
    return "\n".join(" ".join(row) for row in rows)


def legend(drawings: str) -> dict[str, str]:
    """Return the part of `LEGEND` whose marks occur as cells in drawings of `move_diagram`."""
    cells = set(drawings.split())
    return {mark: meaning for mark, meaning in LEGEND.items() if mark in cells}


def _radius(variant: Variant, number: int) -> int:
    """Return how far a diagram reaches: whole leaps, two landings of a rider, part of a slide."""
    half = (max(variant.board.files, variant.board.ranks) - 1) // 2
    reaches = [MIN_RADIUS]
    for ray in variant.piece_types[number].rays:
        length = _length(ray)
        slides = max(2 * length, min(half, MAX_SLIDE_RADIUS)) if length > 1 else min(half, MAX_SLIDE_RADIUS)
        reaches.append(min(slides, ray.reach * length) if ray.reach != UNLIMITED else slides)
    if variant.pawns is not None and number == variant.pawns.piece:
        reaches.append(variant.pawns.first_steps)
    return min(max(reaches), MAX_RADIUS)


def _length(ray: Ray) -> int:
    return max(abs(ray.step[0]), abs(ray.step[1]))


def _marks(rays: tuple[Ray, ...], radius: int) -> dict[Step, str]:
    marks: dict[Step, str] = {}
    for ray in rays:
        most = radius // _length(ray)
        for count in range(1, 1 + (most if ray.reach == UNLIMITED else min(ray.reach, most))):
            cell = (ray.step[0] * count, ray.step[1] * count)
            mark = "&" if ray.overruns else "!" if ray.fires_through and count > 1 else _mode(ray)
            seen = marks.setdefault(cell, mark)
            if {seen, mark} in ({"m", "x"}, {"o", "m"}, {"o", "x"}):
                marks[cell] = "o"
    return marks


def _mode(ray: Ray) -> str:
    return "o" if ray.quiet and ray.capture else "m" if ray.quiet else "x"


def _pawn_marks(variant: Variant) -> dict[Step, str]:
    assert variant.pawns is not None
    steps: dict[Step, str] = {(0, count): "s" for count in range(2, variant.pawns.first_steps + 1)}
    return {**steps, (0, 1): "m", (-1, 1): "x", (1, 1): "x"}


@dataclass(frozen=True)
class CaptureExample:
    """A position in which a piece has captures of more than one kind.

    Attributes:
        fen: The position, White to move.
        square: Name of the square of the piece that is shown.
        victims: Its legal moves and the squares that each one captures, as `Position.captures` says.
    """

    fen: str
    square: str
    victims: dict[str, list[str]]


def capture_example(variant: Variant, number: int) -> CaptureExample | None:
    """Set up a position that shows the double captures of a piece type.

    Returns:
        None for a piece that never captures more than one, and where the board has no room for an example.
    """
    rays = [ray for ray in variant.piece_types[number].rays if ray.fires_through or ray.overruns]
    if not rays:
        return None
    board = np.zeros(variant.num_squares, np.uint8)
    centre = _centre(variant)
    board[centre] = piece_code(number, WHITE)
    for square, side in _targets(variant, centre, rays):
        board[square] = piece_code(_extra(variant, square, side), side)
    for position in _with_royals(variant, board, centre):
        moves = [move for move in position.legal_moves() if variant.board.names[centre] == _start(variant, move)]
        victims = {move: position.captures(move) for move in moves}
        if any(len(squares) > 1 for squares in victims.values()):
            return CaptureExample(position.fen(), variant.board.names[centre], victims)
    return None


def draw_example(variant: Variant, example: CaptureExample) -> str:
    """Draw an example: `o` after a square for a plain move there, else the number of the move's victims."""
    position = Position(variant, fen=example.fen)
    board = boards(position.game, position.row()[None])[0]
    cells = {square: piece_letter(variant, int(board[square])) for square in np.flatnonzero(board).tolist()}
    for move, victims in example.victims.items():
        square = variant.board.index_by_name[move[len(example.square) :]]
        cells[square] = cells.get(square, EMPTY_MARK) + (str(len(victims)) if victims else "o")
    x, y = variant.board.squares[variant.board.index_by_name[example.square]]
    radius = max(length for targets in (*FIRE_TARGETS, *OVERRUN_TARGETS) for length, _ in targets)
    files = range(max(0, x - radius), min(variant.board.files, x + radius + 1))
    ranks = range(max(0, y - radius), min(variant.board.ranks, y + radius + 1))
    return draw_grid(variant.board, cells, (files, ranks))


def _start(variant: Variant, move: str) -> str:
    return max((name for name in variant.board.names if move.startswith(name)), key=len)


def _centre(variant: Variant) -> int:
    middle = ((variant.board.files - 1) / 2, (variant.board.ranks - 1) / 2)
    return min(range(variant.num_squares), key=lambda s: _distance(variant, s, middle))


def _distance(variant: Variant, square: int, point: tuple[float, float]) -> float:
    x, y = variant.board.squares[square]
    return max(abs(x - point[0]), abs(y - point[1]))


def _targets(variant: Variant, centre: int, rays: list[Ray]) -> Iterator[tuple[int, int]]:
    """Yield `(square, side)` of the pieces beside the one that is shown, the roomiest directions first."""
    x, y = variant.board.squares[centre]
    turns = {True: 0, False: 0}
    for ray in sorted(rays, key=lambda ray: (-_room(variant, centre, ray), ray.step)):
        patterns = OVERRUN_TARGETS if ray.overruns else FIRE_TARGETS
        turn = turns[ray.overruns]
        turns[ray.overruns] += 1
        unit = (ray.step[0] // 2, ray.step[1] // 2) if ray.overruns else ray.step
        for distance, own in patterns[turn] if turn < len(patterns) else ():
            square = variant.board.index.get((x + unit[0] * distance, y + unit[1] * distance))
            if square is not None:
                yield square, WHITE if own else BLACK


def _room(variant: Variant, centre: int, ray: Ray) -> int:
    x, y = variant.board.squares[centre]
    return sum((x + ray.step[0] * k, y + ray.step[1] * k) in variant.board.index for k in range(1, 5))


def _extra(variant: Variant, square: int, side: int) -> int:
    """Return the type of a piece set beside: a pawn where one may stand, else one with few directions."""
    if variant.pawns is not None and pawn_lives_on(variant, square, side):
        return variant.pawns.piece
    others = [n for n, piece in enumerate(variant.piece_types) if n != variant.royal and piece.rays]
    return min(others, key=lambda n: len(variant.piece_types[n].rays), default=variant.royal)


def _with_royals(variant: Variant, board: layout.U8Array, centre: int) -> Iterator[Position]:
    """Yield positions with the missing royals far from `centre` and White not in check."""
    point = variant.board.squares[centre]
    free = [s for s in range(variant.num_squares) if not board[s]]
    far = sorted(free, key=lambda s: (-_distance(variant, s, point), s))[:FAR_SQUARES]
    is_royal = board[centre] == piece_code(variant.royal, WHITE)
    for black in far:
        for white in [centre] if is_royal else far:
            if white == black:
                continue
            placed = board.copy()
            placed[white], placed[black] = piece_code(variant.royal, WHITE), piece_code(variant.royal, BLACK)
            try:
                position = Position(variant, fen=f"{format_placement(variant, placed)} w - - 0 1")
            except InvalidFen:
                continue
            if not position.in_check:
                yield position
