"""Pictures of games: how they ended, and what network and search think of a position.

Dims: S squares, M legal actions.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

import envs
from envs import CompiledGame, Variant
from envs.board_picture import BOARD_INCHES, DOTS_PER_INCH, BoardView, draw_board
from envs.notation import format_move
from train.iteration_metrics import ending_name
from train.metrics import Picture
from train.shards import GameRecord

MAX_BOARDS = 4
MAX_ARROWS = 6
"""Moves of a policy that are drawn, most likely first."""
MIN_WEIGHT = 0.02
"""Less likely moves get no arrow."""
SIDE_NAMES = ("White", "Black")
RESULTS = {1.0: "1-0", 0.5: "draw", 0.0: "0-1"}


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
        draw_board(axes, variant, view)
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
