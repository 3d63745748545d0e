"""How pieces move, drawn in text: a diagram of each piece from its rays, an example position from the engine.

A diagram shows an empty board around the piece; an example is a position of the game whose legal moves and
victims come from the engine itself, for the pieces that can capture two at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, permutations

import numpy as np

from envs import layout
from envs.betza import UNLIMITED, Ray, Step
from envs.errors import InvalidFen
from envs.notation import format_placement, piece_code, piece_letter
from envs.paths import must_promote
from envs.pawn_words import starts_everywhere
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
    "#": "may move there, or capture an enemy or an own piece",
    "+": "may capture an enemy or an own piece there, not move",
    "$": "as &, and may also land on, and capture, an own piece",
    "%": "as !, and may also land on, and capture, an own piece",
}
OWN_TOO = {"o": "#", "x": "+", "&": "$", "!": "%"}
"""The marks of a piece that captures own pieces too."""
MIN_RADIUS, MAX_RADIUS, MAX_SLIDE_RADIUS = 2, 8, 4
# Pieces put beside the one that is shown, direction by direction: distance, and whether they are its own.
FIRE_TARGETS = (
    ((2, False), (4, False)),
    ((2, True), (3, False)),
    ((1, False), (3, True)),
    ((2, True), (4, True)),
)
OVERRUN_TARGETS = (((1, False), (2, False)), ((1, False),), ((1, True),), ((1, False), (2, True)))
FAR_SQUARES, MOST_PLACEMENTS = 12, 2000


def move_diagram(variant: Variant, number: int) -> str:
    """Draw the moves of a White piece of a type on an empty board; `LEGEND` explains the marks."""
    piece = variant.piece_types[number]
    is_pawn = variant.pawns is not None and number == variant.pawns.piece
    radius = _radius(variant, number)
    marks = _pawn_marks(variant, radius) if is_pawn else _marks(piece.rays, radius)
    if piece.captures_own:
        marks = {cell: OWN_TOO.get(mark, mark) for cell, mark in marks.items()}
    marks[0, 0] = piece.letter
    heights = [y for _, y in marks]
    ranks = range(min(radius, max(heights) + 1), max(-radius, min(heights) - 1) - 1, -1)
    half = max(MIN_RADIUS, *(abs(x) for x, _ in marks))
    rows = ([marks.get((x, y), EMPTY_MARK) for x in range(-half, half + 1)] for y in ranks)
    return "\n".join(" ".join(row) for row in rows)


def legend(drawings: str) -> dict[str, str]:
    """Return the part of `LEGEND` whose marks occur as cells in drawings of `move_diagram`."""
    cells = set(drawings.split())
    cells |= {mark for mark, own_too in OWN_TOO.items() if own_too in cells and LEGEND[own_too].startswith("as ")}
    return {mark: meaning for mark, meaning in LEGEND.items() if mark in cells}


def _radius(variant: Variant, number: int) -> int:
    """Return how far a diagram reaches: whole leaps, two landings of a rider, part of a slide."""
    half = (max(variant.board.files, variant.board.ranks) - 1) // 2
    reaches = [MIN_RADIUS]
    for ray in variant.piece_types[number].rays:
        length = _length(ray)
        slides = max(2 * length, min(half, MAX_SLIDE_RADIUS)) if length > 1 else min(half, MAX_SLIDE_RADIUS)
        reaches.append(min(slides, ray.reach * length) if ray.reach != UNLIMITED else slides)
    pawns = variant.pawns
    if pawns is not None and number == pawns.piece:
        steps = {
            *pawns.quiet,
            *pawns.captures,
            *((x * pawns.first_steps, y * pawns.first_steps) for x, y in pawns.forward),
        }
        reaches += [max(abs(x), abs(y)) for x, y in steps]
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


def _pawn_marks(variant: Variant, radius: int) -> dict[Step, str]:
    pawns = variant.pawns
    assert pawns is not None
    marks = dict.fromkeys(pawns.captures, "x")
    marks |= {step: "o" if step in marks else "m" for step in pawns.quiet}
    later = "m" if starts_everywhere(variant, pawns) else "s"
    for x, y in pawns.forward:
        for count in range(2, pawns.first_steps + 1):
            if max(abs(x), abs(y)) * count <= radius:
                marks.setdefault((x * count, y * count), later)
    return marks


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
    centre = _centre(variant, number)
    board[centre] = piece_code(number, WHITE)
    for square, side in _targets(variant, centre, rays):
        board[square] = piece_code(_extra(variant, square, side), side)
    for position in _completed(variant, board, centre):
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


def _centre(variant: Variant, number: int) -> int:
    """Return the square for a piece that is shown: in the middle, and not where it would have won."""
    middle = ((variant.board.files - 1) / 2, (variant.board.ranks - 1) / 2)
    won = {square for goal in variant.ends.goals if number in goal.pieces for square in goal.squares[WHITE]}
    squares = [square for square in range(variant.num_squares) if square not in won]
    return min(squares or range(variant.num_squares), key=lambda square: _distance(variant, square, middle))


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
    if variant.pawns is not None and not must_promote(variant, side, square):
        return variant.pawns.piece
    others = [n for n, piece in enumerate(variant.piece_types) if n != variant.royals[side] and piece.rays]
    return min(others, key=lambda n: len(variant.piece_types[n].rays), default=0)


def _completed(variant: Variant, board: layout.U8Array, centre: int) -> Iterator[Position]:
    """Yield positions with what the game needs far from `centre`, and White not in check."""
    point = variant.board.squares[centre]
    free = [square for square in range(variant.num_squares) if not board[square]]
    far = sorted(free, key=lambda square: (-_distance(variant, square, point), square))[:FAR_SQUARES]
    needed = _missing(variant, board)
    for squares in islice(permutations(far, len(needed)), MOST_PLACEMENTS):
        placed = board.copy()
        placed[list(squares)] = needed
        try:
            position = Position(variant, fen=f"{format_placement(variant, placed)} w - - 0 1")
        except InvalidFen:
            continue
        if not position.in_check:
            yield position


def _missing(variant: Variant, board: layout.U8Array) -> list[int]:
    """List the piece codes that a position lacks: royals, and one of each kind whose loss would end the game."""
    extinction = variant.ends.extinction
    needed = []
    for side in (BLACK, WHITE):
        royal = variant.royals[side]
        types = () if royal is None else (royal,)
        if extinction is not None and extinction.pieces is not None:
            types = tuple(dict.fromkeys((*types, *extinction.pieces)))
        needed += [code for number in types if (code := piece_code(number, side)) not in board]
    return needed
