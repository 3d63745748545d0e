"""The rules in words: what is said is what is played."""

import re
from pathlib import Path

import pytest

from envs import Variant, engine_for, layout, load_variant
from envs.castling_words import WINGS
from envs.describe import Section, describe, describe_piece, option_changes
from envs.game_words import plural, with_article
from envs.notation import SIDE_NAMES
from tests.envs.random_games import all_settings, own_games, setting_name

CASTLING_GAMES = ("janus", "omega", "fides_vs_clobberers", "orda", "extinction")

STRANGE = """
name: Strange
extends: chess
pieces:
  q: {name: duke, moves: mW3cF2}
  r: {name: nightrider, moves: N0}
  b: {name: crab, moves: ffNbsN}
  n: {name: lancer, moves: fRbFsDfA}
pawns: {first_steps: 1, promotes_to: qrbn}
castling: null
start: rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w - - 0 1
"""


def words(variant: Variant, letter: str) -> str:
    return " ".join(describe_piece(variant, variant.type_by_letter[letter]).sentences)


def section(variant: Variant, title: str) -> Section:
    return next(part for part in describe(variant) if part.title == title)


def test_orthodox_pieces_in_words() -> None:
    chess = load_variant("chess")
    assert words(chess, "K") == "One step in any direction."
    assert words(chess, "Q") == "Slides any distance in any direction."
    assert words(chess, "R") == "Slides any distance orthogonally."
    assert words(chess, "B") == "Slides any distance diagonally."
    assert words(chess, "N") == "Leaps like a knight (two squares by one), over anything."
    assert words(chess, "P") == (
        "One step forward onto an empty square; from rank 2 (White) or 7 (Black) up to two steps over empty "
        "squares. Captures one step diagonally forward. En passant: when it has moved two steps, an enemy "
        "pawn may capture it on the very next move, by a capturing move to the square it passed. On reaching "
        "rank 8 (White) or 1 (Black) it must become one of: queen (Q), rook (R), bishop (B) or knight (N)."
    )


def test_the_pieces_of_the_three_inventors_in_words() -> None:
    asylum, realms = load_variant("asylum"), load_variant("separate_realms_2")
    assert "One step in any direction. Jumps exactly two squares in any direction" in words(asylum, "N")
    assert "Leaps like a camel (three squares by one), over anything." in words(asylum, "M")
    assert "two pieces between, or one friend, stop it" in words(asylum, "R")
    assert "any square it passed" in words(asylum, "P")
    assert words(realms, "R").startswith("Without capturing: repeats leaps of exactly two squares orthogonally")
    assert "To capture: slides any distance orthogonally." in words(realms, "R")
    assert "To capture: leaps like a knight" in words(realms, "G")
    assert "Jumps exactly two squares diagonally" in words(load_variant("palace_ninja_guards"), "G")
    assert "En passant" not in words(load_variant("gardner"), "P")


def test_directions_ranges_and_riders_in_words(tmp_path: Path) -> None:
    file = tmp_path / "strange.yaml"
    file.write_text(STRANGE)
    strange = load_variant(file)
    assert words(strange, "Q") == (
        "Without capturing: slides up to three squares orthogonally. To capture: slides up to two squares "
        "diagonally. It attacks only what it may capture."
    )
    assert words(strange, "R") == (
        "Repeats the leap of a knight (two squares by one) in one direction, any number of times, while the "
        "landing squares are empty; what stands between is jumped, and the last leap may capture."
    )
    assert words(strange, "B") == (
        "Leaps like a knight (two squares by one, only two right and one backward, two forward and one "
        "right, two forward and one left or two left and one backward), over anything."
    )
    assert words(strange, "N") == (
        "Slides any distance forward. One step diagonally backward. Leaps exactly two squares sideways or "
        "diagonally forward, over anything."
    )


@pytest.mark.parametrize("name", CASTLING_GAMES)
def test_castling_of_the_library_names_the_squares_that_the_compiled_tables_hold(name: str) -> None:
    check_castling(load_variant(name))


@pytest.mark.parametrize("variant", [*all_settings(), *own_games()], ids=setting_name)
def test_castling_names_the_squares_that_the_compiled_tables_hold(variant: Variant) -> None:
    if any(variant.castlings):
        check_castling(variant)
    else:
        assert all(part.title != "Castling" for part in describe(variant))


def check_castling(variant: Variant) -> None:
    tables, names = engine_for(variant).tables, variant.board.names
    entries = {entry.heading: entry.sentences for entry in section(variant, "Castling").entries}
    for number, castling in enumerate(variant.castlings):
        heading = f"{SIDE_NAMES[number // 2]} {WINGS[number % 2]}"
        assert (heading in entries) == (castling is not None)
        if castling is None:
            continue
        record = int(tables[tables[layout.T_CASTLING] + number])
        empty, rest = counted(tables[record + layout.C_LISTS :].tolist())
        path, _ = counted(rest) if variant.royals[number // 2] is not None else ([], [])
        must_be_empty, _, not_attacked = entries[heading][1].partition(" must be empty")
        assert squares_in(must_be_empty) == {names[square] for square in empty}
        assert squares_in(not_attacked) == {names[square] for square in path}
        moves = [int(tables[record + key]) for key in range(layout.C_PARTNER_TO + 1)]
        assert squares_in(entries[heading][0]) == {names[square] for square in moves}


def counted(words: list[int]) -> tuple[list[int], list[int]]:
    count = words[0]
    return words[1 : count + 1], words[count + 1 :]


def squares_in(text: str) -> set[str]:
    return set(re.findall(r"\b[a-p]\d{1,2}\b", text))


def test_options_are_told_by_what_they_change() -> None:
    (fire,) = option_changes(load_variant("asylum"))
    assert (fire.name, fire.is_on) == ("friendly_fire", False)
    assert ("R, super loony rook", "A friend stops it, before or after firing.") in fire.removed
    assert any("through a friend likewise" in sentence for _, sentence in fire.added)
    (scepter,) = option_changes(load_variant("palace_ninja_guards", {"scepter": True}))
    assert scepter.is_on
    assert any("d9 or e9 (White) or d0 or e0 (Black) wins at once" in text for _, text in scepter.removed)
    assert ("Bare kings", "The two kings alone on the board are a draw.") in scepter.added
    assert option_changes(load_variant("chess")) == ()


def test_endings_are_listed_in_the_order_in_which_they_count() -> None:
    last = section(load_variant("palace_ninja_guards", {"scepter": True}), "How a game ends").entries[-1]
    assert last.sentences == ("The first that holds counts: scepter, checkmate, stalemate, repetition, fifty moves.",)
    last = section(load_variant("chess"), "How a game ends").entries[-1]
    assert last.sentences == (
        "The first that holds counts: checkmate, stalemate, bare kings, repetition, fifty moves.",
    )


def test_the_board_tells_holes_and_whether_the_arrays_mirror() -> None:
    (board,) = section(load_variant("palace_ninja_guards"), "Board").entries
    assert "68 squares: 12 cells marked * are not part of the board." in " ".join(board.sentences)
    assert "Black's array mirrors White's, file by file." in board.sentences


def test_one_hole_is_one_cell(tmp_path: Path) -> None:
    file = tmp_path / "hole.yaml"
    file.write_text("name: Hole\nextends: gardner\nstart: rnbqk/ppppp/2*2/PPPPP/RNBQK w - - 0 1\n")
    (board,) = section(load_variant(file), "Board").entries
    assert board.sentences[1].startswith("24 squares: 1 cell marked * is not part of the board.")


@pytest.mark.parametrize("name, one, more", [
    ("king", "a king", "kings"), ("empress", "an empress", "empresses"), ("unicorn", "a unicorn", "unicorns"),
    ("lady", "a lady", "ladies"), ("Ox", "an Ox", "Oxes"), ("monarch", "a monarch", "monarchs"),
    ("donkey", "a donkey", "donkeys"), ("witch", "a witch", "witches"),
])  # fmt: skip
def test_a_name_has_its_article_and_its_plural(name: str, one: str, more: str) -> None:
    assert (with_article(name), plural(name)) == (one, more)
