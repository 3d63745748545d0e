"""The corners of the pieces, one by one, by the slow rules and by the kernels: firing through, overrunning, riding."""

from __future__ import annotations

import pytest

from envs import Outcome, Termination
from tests.envs.random_games import VARIANTS_FOLDER
from tests.envs.rules_position import SetUp, fields, moves_from

pytestmark = pytest.mark.nojit
INNER_ROOKS = VARIANTS_FOLDER / "inner_rooks.yaml"


# --- Pins and checks by fire-through ----------------------------------------------------------


def test_a_loony_rook_checks_through_one_enemy_man_but_not_through_two(set_up: SetUp) -> None:
    assert set_up("asylum", "5r3k/10/10/10/10/10/10/5N4/10/5K4 w - - 0 1").in_check
    assert not set_up("asylum", "5r3k/10/10/10/10/5B4/10/5N4/10/5K4 w - - 0 1").in_check
    assert not set_up("asylum", "5r3k/10/10/10/10/5b4/10/10/10/5K4 w - - 0 1").in_check


def test_a_man_between_a_loony_rook_and_its_king_cannot_help_by_leaving(set_up: SetUp) -> None:
    position = set_up("asylum", "5r3k/10/10/10/10/10/10/5N4/10/5K4 w - - 0 1")
    assert moves_from(position, "f3") == set()  # off the file the rook attacks directly, on it still through one
    # A second man that steps between ends the check.
    position = set_up("asylum", "5r3k/10/10/10/10/10/10/5N4/2B7/5K4 w - - 0 1")
    assert moves_from(position, "c2") == {"f5"}


def test_each_of_two_men_before_a_loony_rook_is_pinned_to_the_line(set_up: SetUp) -> None:
    position = set_up("asylum", "5r3k/10/10/10/10/5B4/10/5R4/10/5K4 w - - 0 1")
    assert moves_from(position, "f5") == set()
    assert moves_from(position, "f3") == {"f2", "f4"}  # it fires only through enemies, and f5 is a friend
    position = set_up("asylum", "5r3k/10/10/10/10/5P4/10/5N4/10/5K4 w - - 0 1")
    assert moves_from(position, "f5") == {"f6"}
    assert moves_from(position, "f3") == {"f2", "f4"}


def test_capturing_the_man_shot_through_answers_nothing_but_capturing_the_rook_does(set_up: SetUp) -> None:
    position = set_up("asylum", "5r3k/10/10/10/10/10/10/5N4/10/2B2K4 w - - 0 1")
    assert position.in_check
    assert moves_from(position, "c1") == {"f4"}
    position = set_up("asylum", "5r3k/10/10/2B7/10/10/10/5N4/10/5K4 w - - 0 1")
    assert moves_from(position, "c7") == {"f10", "f4"}


def test_three_men_between_are_free(set_up: SetUp) -> None:
    position = set_up("asylum", "5r4/10/9k/10/5B4/5B4/10/5N4/10/5K4 w - - 0 1")
    assert "g6" in moves_from(position, "f5")
    assert "g7" in moves_from(position, "f6")
    assert "e4" in moves_from(position, "f3")


def test_shooting_through_the_man_that_shields_the_own_king_is_illegal(set_up: SetUp) -> None:
    # Rook f3 and knight f6 shield the king from the rook on f10; firing through f6 leaves one man.
    position = set_up("asylum", "5r3k/10/10/10/5n4/10/10/5R4/10/5K4 w - - 0 1")
    assert not position.in_check
    assert "f6" not in moves_from(position, "f3")
    assert "f9" not in moves_from(position, "f3")
    assert "f10" in moves_from(position, "f3")  # through f6 onto the rook: both captured
    assert position.captures("f3f10") == ["f10", "f6"]


def test_a_loony_rook_stops_before_friends_and_never_passes_a_second_piece(set_up: SetUp) -> None:
    position = set_up("asylum", "9k/10/10/10/10/10/9K/10/10/R1n1b2n2 w - - 0 1")
    assert {square for square in moves_from(position, "a1") if square.endswith("1")} == {
        "b1",
        "c1",
        "d1",
        "e1",
    }
    assert position.captures("a1c1") == ["c1"]
    assert position.captures("a1d1") == ["c1"]
    assert position.captures("a1e1") == ["c1", "e1"]
    position = set_up("asylum", "9k/10/10/10/10/10/10/10/10/R1n1B4K w - - 0 1")
    assert {square for square in moves_from(position, "a1") if square.endswith("1")} == {"b1", "c1", "d1"}


# --- Friendly fire ----------------------------------------------------------------------------


def test_friendly_fire_sacrifices_one_own_man(set_up: SetUp) -> None:
    position = set_up("asylum", "9k/10/10/10/10/10/9K/10/10/R1N1B2n2 w - - 0 1", friendly_fire=True)
    assert {square for square in moves_from(position, "a1") if square.endswith("1")} == {"b1", "d1", "e1"}
    assert position.captures("a1d1") == ["c1"]
    assert position.captures("a1e1") == ["c1", "e1"]  # a second own man may be captured by landing on it
    position.push("a1d1")
    assert position.halfmove_clock == 0


def test_friendly_fire_lands_on_an_enemy_behind_an_own_man_but_on_no_own_man_behind_an_enemy(
    set_up: SetUp,
) -> None:
    position = set_up("asylum", "9k/10/10/10/10/10/10/10/10/R1N1b2N1K w - - 0 1", friendly_fire=True)
    assert {square for square in moves_from(position, "a1") if square.endswith("1")} == {"b1", "d1", "e1"}
    assert position.captures("a1e1") == ["c1", "e1"]
    position = set_up("asylum", "9k/10/10/10/10/10/10/10/10/R1b1N2N1K w - - 0 1", friendly_fire=True)
    assert {square for square in moves_from(position, "a1") if square.endswith("1")} == {"b1", "c1", "d1"}


def test_friendly_fire_never_hits_the_own_king(set_up: SetUp) -> None:
    position = set_up("asylum", "9k/10/10/10/10/10/10/10/10/R1K4N2 w - - 0 1", friendly_fire=True)
    assert {square for square in moves_from(position, "a1") if square.endswith("1")} == {"b1"}
    position = set_up("asylum", "9k/10/10/10/10/10/10/10/10/R1N2K1b2 w - - 0 1", friendly_fire=True)
    assert {square for square in moves_from(position, "a1") if square.endswith("1")} == {"b1", "d1", "e1"}


def test_with_friendly_fire_a_rook_checks_through_its_own_man_but_not_through_its_own_king(
    set_up: SetUp,
) -> None:
    through_own = "5r3k/10/10/10/5b4/10/10/10/10/5K4 w - - 0 1"
    assert not set_up("asylum", through_own).in_check
    assert set_up("asylum", through_own, friendly_fire=True).in_check
    through_king = "5r4/10/10/10/5k4/10/10/10/10/5K4 w - - 0 1"
    assert not set_up("asylum", through_king, friendly_fire=True).in_check
    through_both = "5r3k/10/10/10/5b4/10/10/5N4/10/5K4 w - - 0 1"
    assert not set_up("asylum", through_both, friendly_fire=True).in_check


def test_friendly_fire_at_the_own_rook_ends_its_right_and_resets_the_clock(set_up: SetUp) -> None:
    fen = "5k4/10/10/10/10/10/10/10/10/1R3KR1R1 w KQ - 7 9"
    position = set_up(INNER_ROOKS, fen, friendly_fire=True)
    assert position.captures("g1j1") == ["i1"]
    position.push("g1j1")
    assert fields(position)[2] == "Q"
    assert position.halfmove_clock == 0


def test_friendly_fire_may_not_uncover_the_own_king(set_up: SetUp) -> None:
    # Shooting the knight on f6 leaves one man between the rook on f10 and the king.
    position = set_up("asylum", "5r3k/10/10/10/5N4/10/10/5R4/10/5K4 w - - 0 1", friendly_fire=True)
    assert not position.in_check
    assert moves_from(position, "f3") == {"f2", "f4", "f5", "f10"}


# --- Jumps that overrun -----------------------------------------------------------------------


def test_a_jump_takes_the_enemy_jumped_over_and_the_one_landed_on(set_up: SetUp) -> None:
    position = set_up("palace_ninja_guards", "***2***/4k3/8/8/3b4/2n5/1G6/8/4K3/***2*** w - - 0 1")
    assert position.captures("b3d5") == ["c4", "d5"]
    assert position.captures("b3c4") == ["c4"]
    position.push("b3d5")
    assert fields(position)[0] == "***2***/4k3/8/8/3G4/8/8/8/4K3/***2***"


def test_a_jump_over_a_friend_harms_nobody_and_never_lands_on_one(set_up: SetUp) -> None:
    position = set_up("palace_ninja_guards", "***2***/4k3/8/8/8/2N5/1G6/8/4K3/***2*** w - - 0 1")
    assert position.captures("b3d5") == []
    position = set_up("palace_ninja_guards", "***2***/4k3/8/8/3N4/2n5/1G6/8/4K3/***2*** w - - 0 1")
    assert "b3d5" not in position.legal_moves()


def test_a_jump_crosses_a_hole(set_up: SetUp) -> None:
    position = set_up("palace_ninja_guards", "***2***/4k3/8/8/8/8/8/8/2G1K3/***2*** w - - 0 1")
    assert moves_from(position, "c1") == {"b2", "a3", "d2", "e3", "d0"}
    position = set_up("palace_ninja_guards", "***2***/4k3/8/8/8/8/8/1n6/4K3/***G1*** w - - 0 1")
    assert moves_from(position, "d0") == {"c1", "b2", "f2"}
    assert position.captures("d0b2") == ["b2"]


def test_a_jump_gives_check_by_what_it_removes(set_up: SetUp) -> None:
    # The guard jumps over c4 and removes the knight between the rook on c1 and the king on c8.
    position = set_up("palace_ninja_guards", "***2***/2k5/8/8/8/2n5/1G6/8/2R1K3/***2*** w - - 0 1")
    position.push("b3d5")
    assert position.in_check


def test_a_jump_discovers_a_check_by_the_square_it_leaves(set_up: SetUp) -> None:
    position = set_up("palace_ninja_guards", "***2***/1k6/8/8/8/2n5/1G6/8/1R2K3/***2*** w - - 0 1", "b3d5")
    assert position.in_check


def test_a_jump_answers_a_check_by_passing_over_the_checker(set_up: SetUp) -> None:
    position = set_up("palace_ninja_guards", "***2***/4k3/8/8/8/5n2/4G3/6K1/8/***2*** w - - 0 1")
    assert position.in_check
    assert moves_from(position, "e3") == {"f4", "g5"}
    assert position.captures("e3g5") == ["f4"]


def test_a_jump_that_must_take_the_shield_of_the_own_king_is_illegal(set_up: SetUp) -> None:
    # The knight on c4 shields the king on c1 from the rook on c8: jumping over it would remove the shield.
    position = set_up("palace_ninja_guards", "***2***/2r1k3/8/8/8/2n5/1G6/8/2K5/***2*** w - - 0 1")
    assert "d5" not in moves_from(position, "b3")
    assert "c4" in moves_from(position, "b3")


def test_a_ninja_knight_steps_leaps_and_jumps_in_eight_directions(set_up: SetUp) -> None:
    position = set_up("asylum", "9k/10/10/10/10/4N5/10/10/10/K9 w - - 0 1")
    assert len(moves_from(position, "e5")) == 8 + 8 + 8
    position = set_up("asylum", "9k/10/10/10/4n5/4N5/4P5/10/10/K9 w - - 0 1")
    assert position.captures("e5e7") == ["e6"]
    assert position.captures("e5e3") == []
    assert position.captures("e5e6") == ["e6"]


def test_a_piece_that_only_jumps_attacks_in_passing_unless_its_landing_is_its_own(set_up: SetUp) -> None:
    fen = "10/9k/10/10/10/{}/10/10/10/10 w - - 0 1"
    assert set_up(INNER_ROOKS, fen.format("2mK6")).in_check  # it could jump over d5 to the empty e5
    assert set_up(INNER_ROOKS, fen.format("2mKB5")).in_check  # capturing both
    assert not set_up(INNER_ROOKS, fen.format("2mKb5")).in_check  # never onto its own
    assert not set_up(INNER_ROOKS, fen.format("8mK")).in_check  # nowhere to land


def test_capturing_where_a_jumper_could_not_land_opens_the_attack(set_up: SetUp) -> None:
    position = set_up(INNER_ROOKS, "10/9k/10/5N4/10/2mKb5/10/10/10/10 w - - 0 1")
    assert not position.in_check
    assert "f7e5" not in position.legal_moves()  # the jumper could land on the knight
    assert "d5e5" not in position.legal_moves()


# --- Other pieces -----------------------------------------------------------------------------


def test_a_mad_bishop_leaps_over_anything_and_takes_only_where_it_lands(set_up: SetUp) -> None:
    position = set_up("asylum", "9k/10/10/5p4/3ppp4/3pMp4/3ppp4/10/10/K9 w - - 0 1")
    targets = moves_from(position, "e5")
    assert targets == {"d6", "f6", "d4", "f4", "b4", "b6", "h4", "h6", "d8", "f8", "d2", "f2"}
    assert position.captures("e5h6") == []


def test_a_separate_realms_rook_jumps_quietly_and_captures_as_a_rook(set_up: SetUp) -> None:
    position = set_up("separate_realms_2", "7k/8/8/8/8/8/Pp6/R6K w - - 0 1")
    assert moves_from(position, "a1") == {"a3", "a5", "a7", "c1", "e1", "g1"}
    position = set_up("separate_realms_2", "7k/8/8/8/p7/8/8/R2g3K w - - 0 1")
    assert moves_from(position, "a1") == {"a3", "a4", "a5", "a7", "c1", "d1", "e1", "g1"}
    position = set_up("separate_realms_2", "7k/8/8/8/8/p7/8/R1P4K w - - 0 1")
    assert moves_from(position, "a1") == {"a3"}


def test_a_quiet_only_square_is_not_attacked(set_up: SetUp) -> None:
    # The rook could reach e1 only without capture, by a jump; a king there is not in check.
    assert not set_up("separate_realms_2", "7k/8/8/8/8/8/8/rP2K3 w - - 0 1").in_check
    assert set_up("separate_realms_2", "7k/8/8/8/8/8/8/r3K3 w - - 0 1").in_check
    assert not set_up("separate_realms_2", "7k/8/8/8/8/2g5/8/3PK3 w - - 0 1").in_check
    assert set_up("separate_realms_2", "7k/8/8/8/8/5g2/8/3PK3 w - - 0 1").in_check


def test_the_inventors_mate_with_king_and_rook(set_up: SetUp) -> None:
    line = "h7h8 f8e8 h8g8 e8d8 g8f8 d8c8 f8e8 c8b8 e8d8 b8a8 d8c7 a8a7 g7g5 a7a6 g5e5 a6a7 e5a5"
    position = set_up("separate_realms_2", "5k2/6RK/8/8/8/8/8/8 w - - 0 1", *line.split(" "))
    assert position.outcome() == Outcome(Termination.CHECKMATE, "w")
    assert position.legal_moves() == []


def test_the_palace_squares_are_ordinary_squares(set_up: SetUp) -> None:
    position = set_up("palace_ninja_guards", "***2***/4k3/8/8/8/8/2N1N3/8/1N1Q1N1K/***2*** w - - 0 1")
    assert all("d0" in moves_from(position, square) for square in ("b1", "f1"))
    assert "d0" in moves_from(position, "d1")
    assert "e0" in moves_from(position, "d1")
    position = set_up("palace_ninja_guards", "***2***/4k3/8/8/8/8/8/8/8/***K1*** w - - 0 1")
    assert moves_from(position, "d0") == {"c1", "d1", "e1", "e0"}
