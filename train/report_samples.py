"""Sample games of a report: their moves, and the board where each ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import envs
from envs import CompiledGame
from train.csv_table import csv_text
from train.pgn import CUT, RESULTS, move_names, tagged_text
from train.report_boards import board_drawing
from train.report_page import Picture, Section, folded, paragraph, source_line, text

BOARD_SCALE = 0.62
SIDES = ("White", "Black")


@dataclass(frozen=True, eq=False)
class SampleGame:
    """A game to show.

    Attributes:
        start_fen: where it began.
        actions: int32 [T], each seen by its player, T >= 1.
        white_score: NaN where it was cut short.
        ending: the rule that ended it, in words, or why it stopped.
        players: who played both sides.
        place: names it, such as `12.3`.
        opening_plies: moves at its beginning that were drawn at random.
    """

    start_fen: str
    actions: NDArray[np.int32]
    white_score: float
    ending: str
    players: str
    place: str
    opening_plies: int = 0

    @property
    def result(self) -> str:
        """As PGN writes it."""
        return RESULTS.get(self.white_score, CUT)


def games_section(game: CompiledGame, samples: Sequence[SampleGame], command: str) -> Section:
    """Return sample games.

    Args:
        game: whose games they are.
        samples: some games, the first ones shown first.
        command: that remakes them.
    """
    blocks, pictures, rows = [], dict[str, Picture](), list[tuple[object, ...]]()
    for number, sample in enumerate(samples, 1):
        names = move_names(game, sample)
        picture = pictures[f"game_{number}"] = _last_board(game, sample, number)
        blocks.append(_block(game, sample, names, picture))
        first = _begin(game, sample)
        rows += [(number, (first + ply) // 2 + 1, SIDES[(first + ply) % 2], name) for ply, name in enumerate(names)]
    table = csv_text(("game", "move", "side", "text"), rows)
    intro = (
        "Moves are written as in chess; a capture off the target names that square too: Rxd4xd7 takes on d4 and d7. "
        "The boards show how each game ended."
    )
    body = paragraph(intro) + "".join(blocks) + source_line("games", table, command)
    return Section("Sample games", body, pictures, {"games": table})


def _last_board(game: CompiledGame, sample: SampleGame, number: int) -> Picture:
    rows, _ = envs.replay_actions(game, sample.start_fen, sample.actions)
    side, action = int(envs.to_play(game, rows[-2:-1])[0]), int(sample.actions[-1])
    ends = [int(game.encoding.from_square[action]), int(game.encoding.to_square[action])]
    moved = ends if side == 0 else [game.variant.board.flipped[square] for square in ends]
    title = f"The last position of game {number}"
    return Picture.of_drawing(
        board_drawing(game.variant, envs.boards(game, rows[-1:])[0], title=title, moved=moved), scale=BOARD_SCALE
    )


def _block(game: CompiledGame, sample: SampleGame, names: Sequence[str], picture: Picture) -> str:
    head = f"{sample.result}, {sample.ending}, after {len(names)} plies ({sample.players}, {sample.place})"
    opened = f"The first {sample.opening_plies} plies are random." if sample.opening_plies else ""
    begun = f"From {sample.start_fen}." if sample.start_fen != game.variant.start_fen else ""
    moves = f'<p class="moves">{text(_movetext(game, sample, names))}</p>'
    tags = {"Event": sample.place, "White": sample.players, "Black": sample.players, "Result": sample.result}
    pgn = folded("as PGN", f"<pre><code>{text(tagged_text(game, sample, tags))}</code></pre>", "screen")
    notes = " ".join(filter(None, (begun, opened)))
    words = (paragraph(notes, "soft") if notes else "") + moves + pgn
    return f'<h3>{text(head)}</h3><div class="entry"><figure>{picture.svg}</figure><div>{words}</div></div>'


def _begin(game: CompiledGame, sample: SampleGame) -> int:
    """Return the plies before the game, counted from White's first move."""
    fields = envs.notation.parse_fields(game.variant, sample.start_fen)
    return 2 * fields.fullmove_number - 2 + fields.to_play


def _movetext(game: CompiledGame, sample: SampleGame, names: Sequence[str]) -> str:
    first = _begin(game, sample)
    words = []
    for ply, name in enumerate(names):
        number, side = divmod(first + ply, 2)
        words.append(f"{number + 1}. {name}" if side == 0 else f"{number + 1}... {name}" if ply == 0 else name)
    return " ".join([*words, sample.result])
