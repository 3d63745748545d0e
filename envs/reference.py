"""The reference pages of the built-in games, made from their rules: observation planes and actions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from envs.observation import observation_hash, observation_table
from envs.rows import engine_for
from envs.tables import CompiledGame
from envs.variant_loader import list_variants, load_variant

COMMAND = "python scripts/reference.py"
OBSERVATION_INTRODUCTION = """\
`VectorEnv.observe()` returns float32 `[B, C, H, W]`: the position of each lane as its side to move sees it.

- Row 0 is the rank nearest to the side to move, so Black sees the board with its ranks reversed. Column 0 is
  the first file for both. A position and its colour-flip have the same planes.
- *Own* is the side to move, *enemy* the other one.
- A plane that holds one number holds it on every square of the board. Cells of the grid that are not squares
  are 0 in every plane; the last plane tells which these are.
- There is no move history. En passant squares are those on which a capture is legal now.
- The hash covers the order and meaning of the planes, the piece letters and the grid.
"""
ACTIONS_INTRODUCTION = """\
An action is a number 0 to A - 1 that stands for a move as the side to move sees it: Black's board is seen
with its ranks reversed, so the mover always plays up the board, and files keep their places.

- A plane is a displacement, alone or with a promotion: `right` files to the right (negative: to the left),
  `forward` ranks forward. Castling is the king's displacement. Captures need no planes of their own: from, to
  and promotion fix what is captured, also where two pieces are.
- A plane and a from-square that are geometrically possible for some piece get a number; others get none.
  Numbers go by plane, then by square: from the first rank up, along the files, holes left out.
- `gather_index[a] = plane * H * W + rank * W + file` of the from-square, counted from 0 in the mover's view,
  is where an action lies among the `[P, H, W]` outputs of a network.
- The options of a game leave its actions alone. The hash covers planes, squares and numbering.

`VectorEnv.action_to_move(lane, action)` and `move_to_action(lane, move)` translate.
"""


def observation_page() -> str:
    """Return `docs/reference/observation.md`."""
    return "\n".join(["# Observation planes", "", *_generated(), OBSERVATION_INTRODUCTION, *_observations()])


def actions_page() -> str:
    """Return `docs/reference/actions.md`."""
    return "\n".join(["# Actions", "", *_generated(), ACTIONS_INTRODUCTION, *_actions()])


def _generated() -> list[str]:
    return [f"<!-- Written by `{COMMAND}`; a test compares. -->", ""]


def _games() -> Iterator[CompiledGame]:
    return (engine_for(load_variant(name)) for name in list_variants())


def _observations() -> Iterator[str]:
    for game in _games():
        planes, ranks, files = game.observation_shape
        yield f"## {game.variant.name}\n"
        yield f"{planes} planes of {ranks} x {files}, hash `{observation_hash(game.variant)[:16]}`.\n"
        yield f"{observation_table(game.variant)}\n"


def _actions() -> Iterator[str]:
    for game in _games():
        encoding = game.encoding
        yield f"## {game.variant.name}\n"
        size = f"A = {encoding.num_actions} actions over P = {encoding.num_planes} planes"
        yield f"{size}, hash `{encoding.hash[:16]}`.\n"
        yield "| plane | right | forward | promotes to | from-squares | actions |\n|---|---|---|---|---|---|"
        for number, plane in enumerate(encoding.planes):
            actions = np.flatnonzero(encoding.plane == number)
            span = f"{actions[0]} to {actions[-1]}"
            yield f"| {number} | {plane.dx} | {plane.dy} | {plane.promotion} | {len(actions)} | {span} |"
        yield ""
