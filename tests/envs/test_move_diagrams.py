"""Diagrams say where a piece may go; examples say what the engine says."""

from pathlib import Path

import numpy as np
import pytest

from envs import Position, Variant, load_variant
from envs.move_diagrams import LEGEND, capture_example, draw_example, legend, move_diagram
from envs.notation import format_placement, piece_code
from tests.envs.random_games import all_settings, setting_name

GUARD = """\
& . . . &
. o . o .
. . G . .
. o . o .
& . . . &"""
GNU = """\
. . o . o . .
. . x . x . .
o x . . . x o
. . . G . . .
o x . . . x o
. . x . x . .
. . o . o . ."""
PAWN = """\
. . s . .
. . s . .
. x m x .
. . P . .
. . . . ."""
ODD = """
name: Odd
extends: chess
pieces:
  n: {name: crab, moves: ffNbsN}
  b: {name: general, moves: fmWfcFsW2}
start: rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1
"""


def diagram(variant: Variant, letter: str) -> str:
    return move_diagram(variant, variant.type_by_letter[letter])


def test_diagrams_of_leaps_jumps_and_pawns() -> None:
    assert diagram(load_variant("palace_ninja_guards"), "G") == GUARD
    assert diagram(load_variant("separate_realms_2"), "G") == GNU
    assert diagram(load_variant("asylum"), "P") == PAWN


def test_a_line_shows_what_is_quiet_captured_or_fired_through() -> None:
    middle = diagram(load_variant("separate_realms_2"), "R").splitlines()[4]
    assert middle == "o x o x R x o x o"
    middle = diagram(load_variant("asylum"), "R").splitlines()[4]
    assert middle == "! ! ! o R o ! ! !"


def test_forward_is_up_and_ranges_end(tmp_path: Path) -> None:
    file = tmp_path / "odd.yaml"
    file.write_text(ODD)
    variant = load_variant(file)
    assert diagram(variant, "N").splitlines() == [
        ". o . o .",
        ". . . . .",
        ". . N . .",
        "o . . . o",
        ". . . . .",
    ]
    assert diagram(variant, "B").splitlines() == [
        ". . . . .",
        ". x m x .",
        "o o B o o",
        ". . . . .",
    ]


@pytest.mark.parametrize("variant", all_settings(), ids=setting_name)
def test_a_diagram_agrees_with_the_engine_on_a_real_board(variant: Variant) -> None:
    """The piece alone, or with one enemy: the marks tell where it may go and where it may capture."""
    for number, piece in enumerate(variant.piece_types):
        if number == variant.royal or not piece.rays:
            continue
        rows = [line.split(" ") for line in move_diagram(variant, number).splitlines()]
        height = next(y for y, row in enumerate(rows) if piece.letter in row)
        marks = {
            (x - len(rows[0]) // 2, height - y): mark
            for y, row in enumerate(rows)
            for x, mark in enumerate(row)
            if mark in LEGEND
        }
        for offset, quiet, capture in reached(variant, number):
            if offset in marks:
                assert quiet == (marks[offset] in "o&!m"), (piece.name, offset)
                assert capture == (marks[offset] in "o&!x"), (piece.name, offset)
            else:
                in_diagram = max(map(abs, offset)) <= len(rows[0]) // 2
                assert not (in_diagram and (quiet or capture)), (piece.name, offset)


def reached(variant: Variant, number: int) -> list[tuple[tuple[int, int], bool, bool]]:
    """From the engine: each offset, whether the piece may go there, and whether it may capture there."""
    board = variant.board
    centre = board.index[board.files // 2 - 1, board.ranks // 2]
    x0, y0 = board.squares[centre]
    found = []
    for square, (x, y) in enumerate(board.squares):
        if square == centre or square in corners(variant):
            continue
        modes = [to_reach(variant, number, centre, square, enemy) for enemy in (False, True)]
        if None not in modes:
            found.append(((x - x0, y - y0), bool(modes[0]), bool(modes[1])))
    assert len(found) > variant.num_squares // 3
    return found


def corners(variant: Variant) -> tuple[int, int]:
    """Squares for the two kings, a knight's leap off the lines through the middle."""
    y = next(y for y in range(variant.board.ranks) if (0, y) in variant.board.index)
    return variant.board.index[0, y], variant.board.index[variant.board.files - 1, y + 1]


def to_reach(variant: Variant, number: int, start: int, to: int, enemy: bool) -> bool | None:
    """Whether a lone piece has the move; None where such a position cannot be."""
    board = np.zeros(variant.num_squares, np.uint8)
    white, black = corners(variant)
    victim = next(n for n, piece in enumerate(variant.piece_types) if n != variant.royal and piece.rays)
    board[white], board[black] = piece_code(variant.royal, 0), piece_code(variant.royal, 1)
    board[start] = piece_code(number, 0)
    if enemy:
        board[to] = piece_code(victim, 1)
    try:
        position = Position(variant, fen=f"{format_placement(variant, board)} w - - 0 1")
    except ValueError:
        return None
    if position.in_check:
        return None
    return variant.board.names[start] + variant.board.names[to] in position.legal_moves()


@pytest.mark.parametrize("name, options, letters", [
    ("asylum", {}, "RN"),
    ("asylum", {"friendly_fire": True}, "RN"),
    ("palace_ninja_guards", {}, "G"),
    ("chess", {}, ""),
])  # fmt: skip
def test_examples_exist_for_the_pieces_that_capture_two_and_show_the_engines_victims(
    name: str, options: dict[str, bool], letters: str
) -> None:
    variant = load_variant(name, options)
    for number, piece in enumerate(variant.piece_types):
        example = capture_example(variant, number)
        assert (example is not None) == (piece.letter in letters)
        if example is None:
            continue
        position = Position(variant, fen=example.fen)
        mine = [move for move in position.legal_moves() if move.startswith(example.square)]
        assert example.victims == {move: position.captures(move) for move in mine}
        assert any(len(squares) == 2 for squares in example.victims.values())
        drawn = draw_example(variant, example)
        assert f"{piece.letter} " in drawn
        assert "p2" in drawn


def test_friendly_fire_shows_two_own_pieces_captured_where_the_plain_game_shows_none() -> None:
    plain, fiery = (load_variant("asylum", {"friendly_fire": on}) for on in (False, True))
    rook = plain.type_by_letter["R"]
    one, other = capture_example(plain, rook), capture_example(fiery, rook)
    assert one is not None
    assert other is not None
    assert one.fen == other.fen
    assert "P2" in draw_example(fiery, other)
    assert "P2" not in draw_example(plain, one)


def test_the_legend_has_the_marks_that_are_used_and_no_others() -> None:
    assert list(legend(GUARD)) == ["o", "&"]
    assert list(legend(GNU + "\n" + PAWN)) == ["o", "m", "s", "x"]
