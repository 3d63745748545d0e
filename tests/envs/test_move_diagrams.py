"""Diagrams say where a piece may go; examples say what the engine says."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from envs import Position, Variant, load_variant
from envs.move_diagrams import LEGEND, capture_example, draw_example, legend, move_diagram
from envs.notation import format_placement, piece_code
from envs.variant import BLACK, WHITE, PieceType
from tests.envs.random_games import all_settings, library_games, setting_name

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


QUIET, CAPTURE, OWN = "om&!#$%", "ox&!#+$%", "#+$%"


@pytest.mark.parametrize("variant", [*all_settings(), *library_games()], ids=setting_name)
def test_a_diagram_agrees_with_the_engine_on_a_real_board(variant: Variant) -> None:
    """The piece alone, or with one enemy or friend: the marks tell where it may go and what it may capture."""
    game = lasting(variant)
    centre = game.board.index[game.board.files // 2 - 1, game.board.ranks // 2]
    for number, piece in enumerate(game.piece_types):
        if number == game.royals[WHITE] or not piece.rays or (is_orthodox(piece) and variant.name != "chess"):
            continue
        marks, width = marks_of(variant, number)
        reached = reached_from(game, number, centre)
        assert len(reached) > game.num_squares // 3
        for offset, *modes in reached:
            mark = marks.get(offset, "")
            if mark or max(map(abs, offset)) <= width:
                expected = [bool(mark) and mark in kind for kind in (QUIET, CAPTURE, OWN)]
                assert modes == expected, (piece.name, offset)


def is_orthodox(piece: PieceType) -> bool:
    """Whether a piece moves as one of chess does, where it is checked."""
    return not piece.captures_own and piece.rays in [orthodox.rays for orthodox in load_variant("chess").piece_types]


def games_with_different_pawns() -> list[Variant]:
    found = {}
    for variant in [*all_settings(), *library_games()]:
        if variant.pawns is not None:
            own = variant.piece_types[variant.pawns.piece].captures_own
            found.setdefault((own, replace(variant.pawns, piece=0, promotes_to=((), ()))), variant)
    return list(found.values())


@pytest.mark.parametrize("variant", games_with_different_pawns(), ids=setting_name)
def test_a_pawns_diagram_agrees_with_the_engine_on_and_off_its_start_ranks(variant: Variant) -> None:
    game, pawns = lasting(variant), variant.pawns
    assert pawns is not None
    marks, _ = marks_of(variant, pawns.piece)
    highest = max(y for _, y in marks)
    checked = 0
    for y in range(1, min(pawns.promotion_ranks[WHITE]) - highest):
        start = game.board.index[game.board.files // 2 - 1, y]
        quiet_marks = QUIET + "s" * (y in pawns.start_ranks[WHITE])
        for offset, *modes in reached_from(game, pawns.piece, start):
            mark = marks.get(offset, "")
            expected = [bool(mark) and mark in kind for kind in (quiet_marks, CAPTURE, OWN)]
            assert modes == expected, (y, offset)
            checked += 1
    assert checked > 0


def lasting(variant: Variant) -> Variant:
    """Return a game without goals and extinction, so that a few pieces on a board do not end it."""
    return replace(variant, name="lasting", ends=replace(variant.ends, goals=(), extinction=None))


def marks_of(variant: Variant, number: int) -> tuple[dict[tuple[int, int], str], int]:
    """Return the marks of a diagram by offset, and how far it reaches to either side."""
    rows = [line.split(" ") for line in move_diagram(variant, number).splitlines()]
    half = len(rows[0]) // 2
    height = next(y for y, row in enumerate(rows) if row[half] == variant.piece_types[number].letter)
    cells = {(x - half, height - y): mark for y, row in enumerate(rows) for x, mark in enumerate(row)}
    return {offset: mark for offset, mark in cells.items() if mark in LEGEND}, half


def reached_from(variant: Variant, number: int, start: int) -> list[tuple[tuple[int, int], bool, bool, bool]]:
    """From the engine: each offset, and whether the piece may go there, take an enemy and take a friend there."""
    x0, y0 = variant.board.squares[start]
    found = []
    for square, (x, y) in enumerate(variant.board.squares):
        if square in (start, *corners(variant)):
            continue
        modes = [to_reach(variant, number, start, square, side) for side in (None, BLACK, WHITE)]
        if None not in modes:
            found.append(((x - x0, y - y0), bool(modes[0]), bool(modes[1]), bool(modes[2])))
    return found


def corners(variant: Variant) -> tuple[int, int]:
    """Squares for the two kings, on the first and the last file and not on one rank."""
    index, ranks = variant.board.index, range(variant.board.ranks)
    y = next(y for y in ranks if (0, y) in index)
    last = [index[square] for k in ranks[y + 1 :] if (square := (variant.board.files - 1, k)) in index]
    return index[0, y], last[0]


def weakest(variant: Variant) -> int:
    """Return the type that gives check the least, neither royal nor the pawn."""
    plain = [n for n, piece in enumerate(variant.piece_types) if piece.rays and n not in variant.royals]
    return min(plain, key=lambda n: sum(ray.reach or 8 for ray in variant.piece_types[n].rays))


def to_reach(variant: Variant, number: int, start: int, to: int, occupant: int | None) -> bool | None:
    """Whether a piece has the move to an empty square or one with a piece of a side; None where that cannot be."""
    board = np.zeros(variant.num_squares, np.uint8)
    for square, side in zip(corners(variant), (WHITE, BLACK)):
        royal = variant.royals[side]
        board[square] = 0 if royal is None else piece_code(royal, side)
    board[start] = piece_code(number, WHITE)
    if occupant is not None:
        board[to] = piece_code(weakest(variant), occupant)
    try:
        position = Position(variant, fen=f"{format_placement(variant, board)} w - - 0 1")
    except ValueError:
        return None
    if position.in_check:
        return None
    names = variant.board.names
    return names[start] + names[to] in position.legal_moves()


def test_diagrams_of_changed_pawns_and_of_own_captures() -> None:
    assert diagram(load_variant("berolina"), "P").splitlines() == [
        "s . . . s",
        ". m x m .",
        ". . P . .",
        ". . . . .",
    ]
    assert diagram(load_variant("sideways_pawns"), "P").splitlines()[2] == ". m P m ."
    assert diagram(load_variant("torpedo"), "P").splitlines()[0] == ". . m . ."
    assert diagram(load_variant("self_capture"), "P").splitlines()[1] == ". + m + ."
    assert diagram(load_variant("self_capture"), "N").splitlines()[0] == ". # . # ."


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
    assert list(legend("$ . A . %")) == ["&", "!", "$", "%"]
