"""Boards and rule sheets as text."""

from pathlib import Path

import pytest

from envs import Position, Variant, VectorEnv, load_variant
from envs.render import draw_board, draw_grid, draw_row
from envs.rows import board_of
from envs.rule_sheet import PAGE_WIDTH, rule_sheet
from tests.envs.random_games import all_settings, library_games, own_games, setting_name

PALACE = """\
9  * * * g g * * *
8  r n b q k b n r
7  p p p p p p p p
6  . . . . . . . .
5  . . . . . . . .
4  . . . . P . . .
3  . . . . . . . .
2  P P P P . P P P
1  R N B Q K B N R
0  * * * G G * * *
   a b c d e f g h

Black to move; castling KQkq; 0 plies without capture or pawn move; move 1"""

WIDE = """
name: Wide
extends: gardner
board: {files: 16, ranks: 16}
start: rnbqk11/pppppppppppppppp/16/16/16/16/16/16/16/16/16/16/16/16/PPPPPPPPPPPPPPPP/RNBQK11 w - - 0 1
"""


def test_a_board_has_its_labels_its_holes_and_a_line_about_the_position() -> None:
    position = Position("palace_ninja_guards")
    position.push("e2e4")
    assert draw_row(position.game, position.row()) == PALACE


def test_en_passant_squares_check_and_missing_rights_are_told() -> None:
    position = Position("asylum", "5k4/10/10/10/10/1p8/1p8/10/P9/5K4 w - - 0 1")
    position.push("a2a5")
    last = draw_row(position.game, position.row()).splitlines()[-1]
    assert last.startswith("Black to move; castling none; en passant on a3 and a4; 0 plies")
    mated = VectorEnv("chess", 1)
    mated.set_fen(0, "7k/6Q1/6K1/8/8/8/8/8 b - - 3 9")
    assert "Black to move, in check; castling none; 3 plies" in draw_row(mated.game, mated.states[0])


def test_a_game_without_castling_does_not_mention_it() -> None:
    position = Position("gardner")
    assert draw_row(position.game, position.row()).splitlines()[-1] == (
        "White to move; 0 plies without capture or pawn move; move 1"
    )


def test_a_game_without_pawns_counts_plies_without_capture() -> None:
    position = Position("breakthrough")
    assert draw_row(position.game, position.row()).splitlines()[-1] == (
        "White to move; 0 plies without capture; move 1"
    )


def test_a_long_source_is_broken_to_the_page_and_a_year_without_inventor_is_a_year() -> None:
    lines = rule_sheet(load_variant("torpedo")).splitlines()
    assert lines[2] == "Year:     2020"
    assert lines[3].startswith("Source:   Tomasev")
    assert lines[4].startswith("          ")


def test_sixteen_by_sixteen_stays_in_line(tmp_path: Path) -> None:
    file = tmp_path / "wide.yaml"
    file.write_text(WIDE)
    position = Position(file)
    lines = draw_board(position.variant, board_of(position.game, position.row())).splitlines()
    assert len(lines) == 17
    assert lines[0] == "16  r n b q k . . . . . . . . . . ."
    assert lines[15] == " 1  R N B Q K . . . . . . . . . . ."
    assert lines[16] == "    a b c d e f g h i j k l m n o p"
    assert {len(line) for line in lines} == {35}
    assert max(len(line) for line in rule_sheet(position.variant).splitlines()) <= PAGE_WIDTH


def test_a_window_keeps_the_labels_and_wide_cells_keep_their_columns() -> None:
    board = load_variant("chess").board
    drawn = draw_grid(board, {27: "R", 28: "p2"}, (range(2, 6), range(2, 5)))
    assert drawn.splitlines() == [
        "5  .  .  .  .",
        "4  .  R  p2 .",
        "3  .  .  .  .",
        "   c  d  e  f",
    ]


@pytest.mark.parametrize("variant", [*all_settings(), *library_games(), *own_games()], ids=setting_name)
def test_a_rule_sheet_fits_the_page_and_names_every_piece_option_reading_and_source(variant: Variant) -> None:
    sheet = rule_sheet(variant)
    lines = sheet.splitlines()
    assert max(len(line) for line in lines) <= PAGE_WIDTH
    assert not any(line != line.rstrip() for line in lines)
    flat = " ".join(sheet.split())
    for piece in variant.piece_types:
        assert f"{piece.letter}, {piece.name}" in flat
    for reading in variant.document.get("readings", []):
        assert reading in flat
    for option, is_on in variant.options.items():
        assert f"{option} is {'on' if is_on else 'off'}" in flat
    assert str(variant.document.get("source", "")) in flat
    assert str(variant.document.get("inventor", "")) in flat
    assert lines[0].startswith(variant.title.upper())
