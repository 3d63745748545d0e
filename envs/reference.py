"""The reference pages of the built-in games, made from their rules: observation planes and actions.

The main games have their full tables; every other game, the library, has one row of a summary.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from envs.observation import observation_hash, observation_table
from envs.rows import engine_for
from envs.tables import CompiledGame
from envs.variant_loader import list_variants, load_variant

COMMAND = "python scripts/reference.py"
MAIN_GAMES = ("asylum", "chess", "gardner", "palace_ninja_guards", "separate_realms_2")
"""The games with a preset in `configs/`."""
LIBRARY_TITLE = "## The library\n"
SHOWN_OF_HASH = 16
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
  is where an action lies among the `[P, H, W]` outputs of a network; `target_index[a]` is the to-square's cell.
- The options of a game leave its actions alone. The hash covers planes, squares and numbering.

`VectorEnv.action_to_move(lane, action)` and `move_to_action(lane, move)` translate.
"""


def observation_page() -> str:
    """Return `docs/reference/observation.md`."""
    return "\n".join(["# Observation planes", "", *generated_notice(), OBSERVATION_INTRODUCTION, *_observations()])


def actions_page() -> str:
    """Return `docs/reference/actions.md`."""
    return "\n".join(["# Actions", "", *generated_notice(), ACTIONS_INTRODUCTION, *_actions()])


def generated_notice() -> list[str]:
    """Return the lines below a page's title that say by what it was written."""
    return [f"<!-- Written by `{COMMAND}`; a test compares. -->", ""]


def _library() -> list[CompiledGame]:
    return _compiled(name for name in list_variants() if name not in MAIN_GAMES)


def _compiled(names: Iterable[str]) -> list[CompiledGame]:
    return [engine_for(load_variant(name)) for name in names]


def _observations() -> Iterator[str]:
    for game in _compiled(MAIN_GAMES):
        planes, ranks, files = game.observation_shape
        yield f"## {game.variant.name}\n"
        yield f"{planes} planes of {ranks} x {files}, hash `{_observation_hash(game)}`.\n"
        yield f"{observation_table(game.variant)}\n"
    yield LIBRARY_TITLE
    yield "| game | squares | planes | ranks | files | hash |\n|---|---|---|---|---|---|"
    for game in _library():
        planes, ranks, files = game.observation_shape
        sizes = f"{game.variant.num_squares} | {planes} | {ranks} | {files}"
        yield f"| {game.variant.name} | {sizes} | `{_observation_hash(game)}` |"
    yield ""


def _observation_hash(game: CompiledGame) -> str:
    return observation_hash(game.variant)[:SHOWN_OF_HASH]


def actions_table(game: CompiledGame) -> Iterator[str]:
    """Yield the lines of a game's displacement planes as a Markdown table, after a line on the whole encoding."""
    encoding = game.encoding
    size = f"A = {encoding.num_actions} actions over P = {encoding.num_planes} planes"
    yield f"{size}, hash `{encoding.hash[:SHOWN_OF_HASH]}`.\n"
    yield "| plane | right | forward | promotes to | from-squares | actions |\n|---|---|---|---|---|---|"
    for number, plane in enumerate(encoding.planes):
        actions = np.flatnonzero(encoding.plane == number)
        span = f"{actions[0]} to {actions[-1]}"
        yield f"| {number} | {plane.dx} | {plane.dy} | {plane.promotion} | {len(actions)} | {span} |"


def _actions() -> Iterator[str]:
    for game in _compiled(MAIN_GAMES):
        yield f"## {game.variant.name}\n"
        yield from actions_table(game)
        yield ""
    yield LIBRARY_TITLE
    yield "| game | squares | P | A | hash |\n|---|---|---|---|---|"
    for game in _library():
        encoding = game.encoding
        sizes = f"{game.variant.num_squares} | {encoding.num_planes} | {encoding.num_actions}"
        yield f"| {game.variant.name} | {sizes} | `{encoding.hash[:SHOWN_OF_HASH]}` |"
    yield ""
