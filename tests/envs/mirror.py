"""The colour-flip of squares, moves and positions: ranks mirrored, colours and sides exchanged."""

from __future__ import annotations

import re

from envs.notation import RIGHTS_LETTERS
from envs.variant import Variant


def flip_square(variant: Variant, name: str) -> str:
    return variant.board.names[variant.board.flipped[variant.board.index_by_name[name]]]


def flip_move(variant: Variant, move: str) -> str:
    return re.sub(r"[a-p]\d+", lambda square: flip_square(variant, square[0]), move)


def flip_fen(variant: Variant, fen: str) -> str:
    """Return the colour-flip of a FEN: ranks mirrored, colours and side exchanged; the counters stay."""
    placement, side, rights, passed, *counters = fen.split(" ")
    swapped = rights.swapcase()
    squares = sorted(re.findall(r"[a-p]\d+", passed), key=lambda name: int(name[1:]), reverse=True)
    return " ".join([
        "/".join(reversed(placement.swapcase().split("/"))),
        "b" if side == "w" else "w",
        "".join(letter for letter in RIGHTS_LETTERS if letter in swapped) or "-",
        "".join(flip_square(variant, name) for name in squares) or "-",
        *counters,
    ])  # fmt: skip
