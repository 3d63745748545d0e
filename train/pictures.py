"""Boards as pictures: how games ended, and what network and search think of a position.

White's side is at the bottom always. Pieces are discs with the letter of the variant, light for White, dark for Black.
Dims: S squares, M legal actions.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

import envs
from envs import CompiledGame, Variant
from envs.notation import format_move, piece_letter
from train.iteration_metrics import ending_name
from train.metrics import Picture
from train.shards import GameRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BOARD_INCHES, DOTS_PER_INCH = 3.6, 80
LIGHT, DARK, MOVED, ARROW = "#efe6d5", "#c2a988", "#d8c34a", "#1f5a94"
WHITE_DISC, BLACK_DISC, INK, FAINT = "#fffdf8", "#33302c", "#222222", "#8a8a8a"
DISC_RADIUS = 0.39
POINTS_PER_INCH = 72
MAX_BOARDS = 4
MAX_ARROWS = 6
"""Moves of a policy that are drawn, most likely first."""
MIN_WEIGHT = 0.02
"""Less likely moves get no arrow."""
SIDE_NAMES = ("White", "Black")
RESULTS = {1.0: "1-0", 0.5: "draw", 0.0: "0-1"}


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
    title: str
    note: str = ""
    moved: tuple[int, ...] = ()
    arrows: tuple[tuple[int, int, float], ...] = ()


@dataclass(frozen=True, eq=False)
class Opinion:
    """What somebody thinks of a position, for the player to move.

    Attributes:
        name: Whose opinion it is.
        actions: int32 [M], in any order.
        policy: float32 [M].
        value: In [-1, 1].
    """

    name: str
    actions: npt.NDArray[np.int32]
    policy: npt.NDArray[np.float32]
    value: float


def last_positions(game: CompiledGame, records: Sequence[GameRecord]) -> Picture | None:
    """Draw how games ended, as many kinds of ends as there is room for; None without games."""
    seen: Counter[str] = Counter()
    order = []
    for number, record in enumerate(records):
        if record.num_plies:
            order.append((seen[ending_name(record)], number))
            seen[ending_name(record)] += 1
    chosen = [records[number] for _, number in sorted(order)[:MAX_BOARDS]]
    return draw_boards(game.variant, [_last_position(game, record) for record in chosen]) if chosen else None


def position_with_policy(records: Sequence[GameRecord]) -> tuple[GameRecord, int] | None:
    """Return a game and the ply nearest to its middle that has a policy; None where no game has one."""
    for record in records:
        plies = np.flatnonzero(np.diff(record.policy_index))
        if len(plies):
            return record, int(plies[np.abs(plies - record.num_plies // 2).argmin()])
    return None


def opinions(game: CompiledGame, record: GameRecord, ply: int, views: Sequence[Opinion]) -> Picture:
    """Draw a position of a game once for each opinion of it, with the likeliest moves as arrows."""
    row = record.states[ply : ply + 1]
    side = int(envs.to_play(game, row)[0])
    codes = envs.boards(game, row)[0]
    where = f"ply {ply + 1} of {record.num_plies}, {SIDE_NAMES[side]} to move"
    return draw_boards(game.variant, [_opinion(game, codes, side, view, where) for view in views])


def draw_boards(variant: Variant, views: Sequence[BoardView]) -> Picture:
    """Draw boards side by side."""
    from matplotlib.figure import Figure

    board = variant.board
    height = BOARD_INCHES * board.ranks / max(board.files, board.ranks) + 0.9
    figure = Figure(figsize=(BOARD_INCHES * len(views), height), dpi=DOTS_PER_INCH, layout="constrained")
    all_axes = figure.subplots(1, len(views), squeeze=False)[0]
    for axes, view in zip(all_axes, views):
        _draw_board(axes, variant, view)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    width, height = (int(pixels) for pixels in figure.get_size_inches() * DOTS_PER_INCH)
    return Picture(buffer.getvalue(), width, height)


def _last_position(game: CompiledGame, record: GameRecord) -> BoardView:
    played, _ = envs.replay_actions(game, record.start_fen, record.actions)
    side = int(envs.to_play(game, played[-2:-1])[0])
    end = f"{SIDE_NAMES['wb'.index(record.resigned)]} resigned" if record.resigned else ending_name(record)
    result = RESULTS.get(record.white_score)
    value = float(record.root_values[-1]) * (1 if side == 0 else -1)
    return BoardView(
        codes=envs.boards(game, played[-1:])[0],
        title=f"{result}, {end.replace('_', ' ')}" if result else "cut by the ply cap",
        note=f"{record.num_plies} plies; search before the last: {value:+.2f} for White",
        moved=_squares(game, int(record.actions[-1]), side),
    )


def _opinion(game: CompiledGame, codes: npt.NDArray[np.uint8], side: int, view: Opinion, where: str) -> BoardView:
    best = np.argsort(-view.policy, kind="stable")[:MAX_ARROWS]
    arrows, words = [], []
    for number in best.tolist():
        weight, action = float(view.policy[number]), int(view.actions[number])
        if weight >= MIN_WEIGHT:
            start, end = _squares(game, action, side)
            arrows.append((start, end, weight))
            words.append(f"{format_move(game.variant, start, end, int(game.encoding.promotion[action]))} {weight:.0%}")
    return BoardView(
        codes=codes,
        title=f"{view.name}: {view.value:+.2f} for {SIDE_NAMES[side]}",
        note=f"{where}\n{', '.join(words[:3])}\n{', '.join(words[3:])}",
        arrows=tuple(arrows),
    )


def _squares(game: CompiledGame, action: int, side: int) -> tuple[int, int]:
    """Return from and to square of an action of a side."""
    start, end = int(game.encoding.from_square[action]), int(game.encoding.to_square[action])
    flipped = game.variant.board.flipped
    return (start, end) if side == 0 else (flipped[start], flipped[end])


def _draw_board(axes: Axes, variant: Variant, view: BoardView) -> None:
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
