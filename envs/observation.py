"""The observation planes of a game: what each one means, in order.

Dims: C planes, H x W grid. `lane_kernels.observe` writes the planes; this module names them. A plane is float32
[H, W], seen by the side to move: row 0 is the rank nearest to it, column 0 is the first file for both sides.
Cells that are not part of the board are 0 in every plane. There is no move history.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from envs.layout import CLOCK_SCALE
from envs.tables import is_colour_symmetric
from envs.variant import Variant

OBSERVATION_VERSION = 1
"""Counted up whenever the order or the meaning of the planes changes."""
PERSPECTIVES = (("own", "the side to move"), ("enemy", "the other side"))
WINGS = ("kingside", "queenside")
WHOLE_BOARD = "on every square"


@dataclass(frozen=True)
class ObservationPlane:
    """One plane.

    Attributes:
        name: Short and unique in its game.
        meaning: Where the plane is not 0, and what it holds there.
    """

    name: str
    meaning: str


def observation_planes(variant: Variant) -> tuple[ObservationPlane, ...]:
    """Return the C planes of a game in order.

    Pieces come by type in the order of the file, own before enemy; then castling rights, en passant, clock,
    repetitions, the side's colour where the game is not colour-symmetric, and last the real squares.
    """
    off = "" if variant.ends.repetition_times else "; 0 always, since repetition ends no game"
    planes = [
        ObservationPlane(f"{owner} {piece.name} ({piece.letter})", f"1 where {whose} has one")
        for owner, whose in PERSPECTIVES
        for piece in variant.piece_types
    ]
    planes += [
        ObservationPlane(f"{owner} {wing} castling", f"1 {WHOLE_BOARD} while {whose} has the right")
        for owner, whose in PERSPECTIVES
        for wing in WINGS
    ]
    planes += [
        ObservationPlane("en passant", "1 where a pawn has passed and its capture is legal now"),
        ObservationPlane("clock", f"plies since the last capture or pawn move / {clock_scale(variant)}, {WHOLE_BOARD}"),
        ObservationPlane("repeated once", f"1 {WHOLE_BOARD} when the position has occurred exactly once before{off}"),
        ObservationPlane("repeated twice", f"1 {WHOLE_BOARD} when it has occurred at least twice before{off}"),
    ]
    if not is_colour_symmetric(variant):
        planes.append(ObservationPlane("black to move", f"1 {WHOLE_BOARD} when Black is to move"))
    planes.append(ObservationPlane("board", f"1 {WHOLE_BOARD}, 0 where the grid has none"))
    return tuple(planes)


def clock_scale(variant: Variant) -> int:
    """Return what the clock plane is divided by, which is then at most 1: the move limit, where the game has one."""
    return variant.ends.move_limit or CLOCK_SCALE


def observation_hash(variant: Variant) -> str:
    """Return a SHA-256 of what decides the planes: version, grid, piece letters, colour plane, clock."""
    letters = "".join(piece.letter for piece in variant.piece_types)
    parts = (variant.board.ranks, variant.board.files, letters, is_colour_symmetric(variant), clock_scale(variant))
    return hashlib.sha256(json.dumps([OBSERVATION_VERSION, *parts]).encode()).hexdigest()


def observation_table(variant: Variant) -> str:
    """Return the planes as a Markdown table, without a heading."""
    rows = ["| plane | name | meaning |", "|---|---|---|"]
    rows += [f"| {n} | {plane.name} | {plane.meaning} |" for n, plane in enumerate(observation_planes(variant))]
    return "\n".join(rows)
