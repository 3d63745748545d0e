"""The corners of the rules, one by one, by the slow rules and by the kernels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from envs import IllegalAction, Outcome, Position, Termination
from tests.envs.random_games import VARIANTS_FOLDER
from tests.envs.rules_position import RulesPosition

AnyPosition = Position | RulesPosition
SetUp = Callable[..., AnyPosition]

SCEPTER = {"scepter": True}
INNER_ROOKS = VARIANTS_FOLDER / "inner_rooks.yaml"


@pytest.fixture(params=[Position, RulesPosition], ids=["kernels", "rules"])
def set_up(request: pytest.FixtureRequest) -> SetUp:
    engine = request.param

    def build(variant: str | Path, fen: str | None = None, *moves: str, **options: bool) -> AnyPosition:
        position: AnyPosition = engine(variant, fen=fen, options=options)
        for move in moves:
            position.push(move)
        return position

    return build


def moves_from(position: AnyPosition, square: str) -> set[str]:
    """Return the targets of the legal moves from a square."""
    letters = len(square)
    return {
        move[letters:]
        for move in position.legal_moves()
        if move.startswith(square) and not move[letters].isdigit()
    }


def fields(position: AnyPosition) -> list[str]:
    return position.fen().split(" ")


pytestmark = pytest.mark.nojit


# --- En passant -------------------------------------------------------------------------------


def test_a_triple_step_leaves_two_en_passant_squares_and_one_victim(set_up: SetUp) -> None:
    position = set_up("asylum", "5k4/10/10/10/10/1p8/1p8/10/P9/5K4 w - - 0 1", "a2a5")
    assert fields(position)[3] == "a3a4"
    assert position.captures("b4a3") == position.captures("b5a4") == ["a5"]
    for move in ("b4a3", "b5a4"):
        position.push(move)
        assert fields(position)[0].count("P") == 0
        assert position.halfmove_clock == 0
        position.pop()


def test_a_triple_step_of_black_leaves_two_en_passant_squares_and_one_victim(set_up: SetUp) -> None:
    position = set_up("asylum", "5k4/8p1/10/9P/9P/10/10/10/10/5K4 b - - 0 1", "i9i6")
    assert fields(position)[3] == "i7i8"
    assert position.captures("j6i7") == position.captures("j7i8") == ["i6"]


def test_a_double_step_leaves_one_en_passant_square(set_up: SetUp) -> None:
    position = set_up("asylum", "5k4/10/10/10/10/1p8/1p8/10/P9/5K4 w - - 0 1", "a2a4")
    assert fields(position)[3] == "a3"
    assert position.captures("b4a3") == ["a4"]
    assert "b5a4" in position.legal_moves()
    assert position.captures("b5a4") == ["a4"]  # an ordinary capture


def test_a_right_to_capture_en_passant_lasts_one_move(set_up: SetUp) -> None:
    position = set_up("asylum", "5k4/10/10/10/10/1p8/1p8/10/P9/5K4 w - - 0 1", "a2a5", "f10f9", "f1f2")
    assert not {"b4a3", "b5a4"} & set(position.legal_moves())


def test_only_pawns_capture_en_passant(set_up: SetUp) -> None:
    position = set_up("chess", "4k3/8/8/8/1n6/8/P7/4K3 w - - 0 1", "a2a4")
    assert fields(position)[3] == "-"
    assert "b4a3" not in position.legal_moves()


def test_en_passant_that_exposes_the_king_along_the_rank_is_illegal_and_not_listed(set_up: SetUp) -> None:
    position = set_up("chess", "8/3p4/8/K3P2r/8/8/8/7k b - - 0 1", "d7d5")
    assert "e5d6" not in position.legal_moves()
    assert fields(position)[3] == "-"
    assert fields(set_up("chess", "8/8/8/K2pP2r/8/8/8/7k w - d6 0 1"))[3] == "-"


def test_en_passant_that_exposes_the_king_to_a_rook_that_fires_through_one_man(set_up: SetUp) -> None:
    # Both pawns leave the sixth rank; what stands between king and rook then is one bishop, or two.
    position = set_up("asylum", "9k/3p6/10/10/K3P2B1r/10/10/10/10/10 b - - 0 1", "d9d6")
    assert fields(position)[3] == "-"
    position = set_up("asylum", "9k/3p6/10/10/K3P1BB1r/10/10/10/10/10 b - - 0 1", "d9d6")
    assert fields(position)[3] == "d7"


def test_one_of_two_en_passant_squares_may_be_closed_by_a_pin(set_up: SetUp) -> None:
    position = set_up("asylum", "10/4k5/10/10/10/4p5/2p7/10/3P6/K3Q5 w - - 0 1", "d2d5")
    assert fields(position)[3] == "d3"
    assert position.captures("c4d3") == ["d5"]
    assert "e5d4" not in position.legal_moves()


def test_en_passant_may_answer_a_check_by_the_pawn_that_stepped(set_up: SetUp) -> None:
    position = set_up("chess", "8/8/8/2k5/4p3/8/3P4/4K3 w - - 0 1", "d2d4")
    assert position.in_check
    assert "e4d3" in position.legal_moves()


def test_en_passant_may_discover_a_check(set_up: SetUp) -> None:
    position = set_up("chess", "k7/8/8/8/r2p3K/8/4P3/8 w - - 0 1", "e2e4", "d4e3")
    assert position.in_check


# --- Castling ---------------------------------------------------------------------------------

LOONY_CASTLING = "5k4/10/10/10/10/10/10/10/10/R4K3R w KQ - 0 1"


@pytest.mark.parametrize(
    ("placement", "castlings"),
    [
        ("5k4/10/10/10/10/10/10/10/10/R4K3R", {"f1i1", "f1c1"}),
        # A rook on the g-file, nothing, one white man, two men between: g1 is attacked, attacked, not.
        ("5kr3/10/10/10/10/10/10/10/10/R4K3R", {"f1c1"}),
        ("5kr3/10/10/10/10/10/10/10/6P3/R4K3R", {"f1c1"}),
        ("5kr3/10/10/10/10/10/10/6P3/6P3/R4K3R", {"f1c1", "f1i1"}),
        # It does not fire through its own men without the option.
        ("5kr3/6p3/10/10/10/10/10/10/10/R4K3R", {"f1c1", "f1i1"}),
        ("5kr3/6p3/10/10/10/10/10/10/6P3/R4K3R", {"f1c1", "f1i1"}),
        # The king's target i1, through a man.
        ("5k2r1/10/10/10/10/10/10/10/8P1/R4K3R", {"f1c1"}),
        # b1 may be attacked, through a man too; c1, d1 and e1 may not.
        ("1r3k4/10/10/10/10/10/10/10/10/R4K3R", {"f1i1", "f1c1"}),
        ("1r3k4/10/10/10/10/10/10/10/1P8/R4K3R", {"f1i1", "f1c1"}),
        ("2r2k4/10/10/10/10/10/10/10/2P7/R4K3R", {"f1i1"}),
        ("4rk4/10/10/10/10/10/10/10/4P5/R4K3R", {"f1i1"}),
        # In check through one man: no castling at all.
        ("3k1r4/10/10/10/10/10/10/10/5P4/R4K3R", set()),
        ("3k1r4/10/10/10/10/10/10/5P4/5P4/R4K3R", {"f1i1", "f1c1"}),
        # A man between king and rook, also on b1.
        ("5k4/10/10/10/10/10/10/10/10/RN3K3R", {"f1i1"}),
        ("5k4/10/10/10/10/10/10/10/10/R4K2nR", {"f1c1"}),
    ],
)
def test_castling_beside_loony_rooks(set_up: SetUp, placement: str, castlings: set[str]) -> None:
    position = set_up("asylum", f"{placement} w KQ - 0 1")
    assert {"f1i1", "f1c1"} & set(position.legal_moves()) == castlings
    flipped = "/".join(reversed(placement.swapcase().split("/")))
    position = set_up("asylum", f"{flipped} b kq - 0 1")
    assert {"f10i10", "f10c10"} & set(position.legal_moves()) == {m.replace("1", "10") for m in castlings}


def test_with_friendly_fire_a_square_behind_the_attackers_own_man_is_attacked(set_up: SetUp) -> None:
    fen = "5kr3/6p3/10/10/10/10/10/10/10/R4K3R w KQ - 0 1"
    assert "f1i1" in set_up("asylum", fen).legal_moves()
    assert "f1i1" not in set_up("asylum", fen, friendly_fire=True).legal_moves()


def test_castling_moves_king_and_rook_and_ends_both_rights(set_up: SetUp) -> None:
    position = set_up("asylum", "r4k3r/10/10/10/10/10/10/10/10/R4K3R w KQkq - 0 1", "f1i1")
    assert fields(position)[0].endswith("/R6RK1")
    assert fields(position)[2] == "kq"
    assert position.halfmove_clock == 1
    position.push("f10c10")
    assert fields(position)[0].startswith("2kr5r/")
    assert fields(position)[2] == "-"


@pytest.mark.parametrize(
    ("below", "castlings"),
    [
        ("***2***", {"e1g1", "e1c1"}),
        ("***1b***", set()),  # a bishop on e0 attacks d1 and f1
        ("***n1***", {"e1c1"}),  # a knight on d0 attacks f1 and b1; b1 does not matter
        ("***1n***", set()),  # a knight on e0 attacks c1 and g1
        ("***q1***", set()),  # a queen on d0 gives check
        ("***1g***", set()),  # a guard on e0 attacks d1 and f1
        ("***g1***", set()),  # a guard on d0 gives check
    ],
)
def test_castling_beside_the_holes(set_up: SetUp, below: str, castlings: set[str]) -> None:
    position = set_up("palace_ninja_guards", f"***2***/4k3/8/8/8/8/8/8/R3K2R/{below} w KQ - 0 1")
    assert {"e1g1", "e1c1"} & set(position.legal_moves()) == castlings


def test_a_rook_shot_at_home_from_afar_loses_its_right(set_up: SetUp) -> None:
    position = set_up(INNER_ROOKS, "5k4/10/10/10/10/10/10/10/10/rRB1NK2R1 b KQ - 0 1")
    assert position.captures("a1c1") == ["b1", "c1"]
    position = set_up(INNER_ROOKS, "5k4/10/10/10/10/10/10/10/10/rR2NK2R1 b KQ - 0 1")
    assert position.captures("a1d1") == ["b1"]
    position.push("a1d1")
    assert fields(position)[2] == "K"


def test_a_rook_jumped_over_at_home_loses_its_right(set_up: SetUp) -> None:
    position = set_up(INNER_ROOKS, "5k4/10/10/10/10/10/10/10/9m/5K2R1 b K - 0 1")
    assert "j2h1" in position.legal_moves()  # a knight's leap
    position = set_up(INNER_ROOKS, "5k4/10/10/10/10/10/10/10/10/5K2Rm b K - 0 1")
    assert position.captures("j1h1") == ["i1"]
    position.push("j1h1")
    assert fields(position)[2] == "-"
    position = set_up(INNER_ROOKS, "5k4/10/10/10/10/10/10/10/10/5K2Rm b K - 0 1", "f10f9")
    assert fields(position)[2] == "K"


def test_a_double_capture_that_takes_a_rook_at_home_ends_its_right(set_up: SetUp) -> None:
    position = set_up("asylum", "5k4/10/10/10/10/10/10/9n/9P/R4K3R b KQ - 0 1")
    assert position.captures("j3j1") == ["j1", "j2"]
    position.push("j3j1")
    assert fields(position)[2] == "Q"
    position = set_up("asylum", "5k4/10/10/10/r9/10/10/10/P9/R4K3R b KQ - 0 1")
    assert position.captures("a6a1") == ["a1", "a2"]
    position.push("a6a1")
    assert fields(position)[2] == "K"


@pytest.mark.parametrize("moves", [("a1a2", "f10f9", "a2a1", "f9f10"), ("f1f2", "f10f9", "f2f1", "f9f10")])
def test_a_right_never_comes_back(set_up: SetUp, moves: tuple[str, ...]) -> None:
    position = set_up("asylum", LOONY_CASTLING, *moves)
    assert fields(position)[2] == ("K" if moves[0] == "a1a2" else "-")
    assert "f1c1" not in position.legal_moves()


def test_castling_answers_no_check(set_up: SetUp) -> None:
    assert "e1g1" not in set_up("chess", "4k3/8/8/8/4r3/8/8/4K2R w K - 0 1").legal_moves()


# --- Pins and checks by fire-through ----------------------------------------------------------


def test_a_loony_rook_checks_through_one_enemy_man_but_not_through_two(set_up: SetUp) -> None:
    assert set_up("asylum", "5r3k/10/10/10/10/10/10/5N4/10/5K4 w - - 0 1").in_check
    assert not set_up("asylum", "5r3k/10/10/10/10/5B4/10/5N4/10/5K4 w - - 0 1").in_check
    assert not set_up("asylum", "5r3k/10/10/10/10/5b4/10/10/10/5K4 w - - 0 1").in_check


def test_a_man_between_a_loony_rook_and_its_king_cannot_help_by_leaving(set_up: SetUp) -> None:
    position = set_up("asylum", "5r3k/10/10/10/10/10/10/5N4/10/5K4 w - - 0 1")
    assert (
        moves_from(position, "f3") == set()
    )  # off the file the rook attacks directly, on it still through one
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


# --- Promotion --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variant", "fen", "start", "targets", "letters"),
    [
        ("chess", "1n5k/P7/8/8/8/8/8/K7 w - - 0 1", "a7", {"a8", "b8"}, "qrbn"),
        ("chess", "k7/8/8/8/8/8/p7/1N5K b - - 0 1", "a2", {"a1", "b1"}, "qrbn"),
        ("gardner", "1n2k/P4/5/5/K4 w - - 0 1", "a4", {"a5", "b5"}, "qrbn"),
        ("gardner", "k4/5/5/p4/1N2K b - - 0 1", "a2", {"a1", "b1"}, "qrbn"),
        ("asylum", "1n7k/P9/10/10/10/10/10/10/10/9K w - - 0 1", "a9", {"a10", "b10"}, "qmbnr"),
        ("asylum", "9k/10/10/10/10/10/10/10/p9/1N7K b - - 0 1", "a2", {"a1", "b1"}, "qmbnr"),
        (
            "palace_ninja_guards",
            "***2***/3n3k/2P5/8/8/8/8/8/7K/***2*** w - - 0 1",
            "c7",
            {"c8", "d8"},
            "qrbng",
        ),
        (
            "palace_ninja_guards",
            "***2***/7k/8/8/8/8/8/2p5/3N3K/***2*** b - - 0 1",
            "c2",
            {"c1", "d1"},
            "qrbng",
        ),
        ("separate_realms_2", "1g5k/P7/8/8/8/8/8/7K w - - 0 1", "a7", {"a8", "b8"}, "qrbg"),
        ("separate_realms_2", "7k/8/8/8/8/8/p7/1G5K b - - 0 1", "a2", {"a1", "b1"}, "qrbg"),
    ],
)
def test_promotion_by_step_and_by_capture_is_compulsory_for_both_colours(
    set_up: SetUp, *, variant: str, fen: str, start: str, targets: set[str], letters: str
) -> None:
    position = set_up(variant, fen)
    expected = {target + letter for target in targets for letter in letters}
    assert moves_from(position, start) == expected
    capture = next(
        move for move in position.legal_moves() if move.startswith(start) and position.captures(move)
    )
    position.push(capture)
    piece = capture[-1].upper() if position.to_play == "b" else capture[-1]
    assert piece in fields(position)[0]


def test_a_palace_pawn_promotes_below_the_palace_and_never_enters_it(set_up: SetUp) -> None:
    position = set_up("palace_ninja_guards", "***2***/7k/3P4/8/8/8/8/8/7K/***2*** w - - 0 1")
    assert moves_from(position, "d7") == {f"d8{letter}" for letter in "qrbng"}


# --- The end of the game ----------------------------------------------------------------------


def test_a_mate_on_the_hundredth_quiet_ply_is_a_mate(set_up: SetUp) -> None:
    position = set_up("chess", "7k/5K2/8/8/8/8/8/6R1 w - - 99 80")
    assert position.outcome() is None
    position.push("g1h1")
    assert position.halfmove_clock == 100
    assert position.outcome() == Outcome(Termination.CHECKMATE, "w")


def test_the_hundredth_quiet_ply_without_mate_is_a_draw_that_leaves_the_moves(set_up: SetUp) -> None:
    position = set_up("chess", "7k/5K2/8/8/8/8/8/6R1 w - - 99 80", "g1f1")
    assert position.outcome() == Outcome(Termination.FIFTY_MOVES, None)
    assert position.legal_moves() == ["h8h7"]
    position = set_up("chess", "7k/5K2/8/8/8/8/6P1/6R1 w - - 99 80", "g2g3")
    assert position.outcome() is None


def test_stalemate_comes_before_bare_kings_and_fifty_moves(set_up: SetUp) -> None:
    position = set_up("chess", "k7/8/1K6/8/8/8/8/2Q5 w - - 99 80", "c1c7")
    assert position.outcome() == Outcome(Termination.STALEMATE, None)


def test_bare_kings_are_a_draw_before_repetition_and_fifty_moves(set_up: SetUp) -> None:
    position = set_up("chess", "k7/8/8/8/8/8/1r6/K7 w - - 99 80", "a1b2")
    assert position.outcome() == Outcome(Termination.BARE_KINGS, None)
    assert len(position.legal_moves()) > 0
    position = set_up("chess", "k7/8/8/8/8/8/8/K7 w - - 100 80")
    assert position.outcome() == Outcome(Termination.BARE_KINGS, None)


def test_bare_kings_go_on_when_the_scepter_is_at_stake(set_up: SetUp) -> None:
    fen = "***2***/8/7k/8/8/8/8/K7/8/***2*** w - - 0 1"
    assert set_up("palace_ninja_guards", fen).outcome() == Outcome(Termination.BARE_KINGS, None)
    assert set_up("palace_ninja_guards", fen, **SCEPTER).outcome() is None


@pytest.mark.parametrize(
    ("fen", "move", "winner"),
    [
        ("***2***/4K3/8/8/8/8/8/7P/k7/***2*** w - - 0 1", "e8d9", "w"),
        ("***2***/4K3/8/8/8/8/8/7P/k7/***2*** w - - 0 1", "e8e9", "w"),
        ("***2***/7K/8/8/8/8/8/7P/3k4/***2*** b - - 0 1", "d1d0", "b"),
        ("***1n***/4K3/8/8/8/8/8/7P/k7/***2*** w - - 0 1", "e8e9", "w"),
    ],
)
def test_the_scepter_wins_at_once(set_up: SetUp, fen: str, move: str, winner: str) -> None:
    position = set_up("palace_ninja_guards", fen, move, **SCEPTER)
    assert position.outcome() == Outcome(Termination.SCEPTER, winner)
    assert position.legal_moves() == []
    plain = set_up("palace_ninja_guards", fen, move)
    assert plain.outcome() is None or plain.outcome() == Outcome(Termination.BARE_KINGS, None)


def test_the_own_palace_is_no_goal(set_up: SetUp) -> None:
    position = set_up(
        "palace_ninja_guards", "***2***/7k/8/8/8/8/8/7P/3K4/***2*** w - - 0 1", "d1d0", **SCEPTER
    )
    assert position.outcome() is None


def test_an_attacked_palace_square_is_no_goal(set_up: SetUp) -> None:
    position = set_up("palace_ninja_guards", "***2***/2k1K3/8/8/8/8/8/7P/8/***2*** w - - 0 1", **SCEPTER)
    assert moves_from(position, "e8") == {"e9", "f8", "f7", "e7"}


def test_a_scepter_taken_with_mate_on_the_board_is_a_scepter(set_up: SetUp) -> None:
    # The king uncovers its rook: Black would be mated on h8, but the scepter counts.
    fen = "***2***/R2K3k/8/6Q1/8/8/8/8/8/***2*** w - - 0 1"
    position = set_up("palace_ninja_guards", fen, "d8d9")
    assert position.outcome() == Outcome(Termination.CHECKMATE, "w")
    position = set_up("palace_ninja_guards", fen, "d8d9", **SCEPTER)
    assert position.outcome() == Outcome(Termination.SCEPTER, "w")
    assert position.legal_moves() == []


def shuffle(position: AnyPosition, moves: str, times: int) -> None:
    for _ in range(times):
        for move in moves.split(" "):
            position.push(move)


def test_the_third_occurrence_is_a_draw_and_leaves_the_moves(set_up: SetUp) -> None:
    position = set_up("chess")
    shuffle(position, "g1f3 g8f6 f3g1 f6g8", 1)
    assert position.repetitions == 1
    assert position.outcome() is None
    shuffle(position, "g1f3 g8f6 f3g1 f6g8", 1)
    assert position.repetitions == 2
    assert position.outcome() == Outcome(Termination.REPETITION, None)
    assert len(position.legal_moves()) == 20
    position.pop()
    assert position.outcome() is None


def test_lost_castling_rights_make_another_position(set_up: SetUp) -> None:
    position = set_up("chess", "4k2r/8/8/8/8/8/8/4K2R w Kk - 0 1")
    shuffle(position, "h1h2 e8d8 h2h1 d8e8", 2)
    assert position.repetitions == 1  # the first position had the rights
    shuffle(position, "h1h2 e8d8 h2h1 d8e8", 1)
    assert position.outcome() == Outcome(Termination.REPETITION, None)


def test_an_en_passant_that_is_pseudo_legal_only_makes_no_other_position(set_up: SetUp) -> None:
    # The pawn on d4 is pinned by the rook on d1, so e4 en passant is never legal.
    pinned = set_up("chess", "3k3r/8/8/8/3p4/8/4P3/3R2K1 w - - 0 1", "e2e4")
    shuffle(pinned, "h8g8 g1h1 g8h8 h1g1", 1)
    assert pinned.repetitions == 1
    shuffle(pinned, "h8g8 g1h1 g8h8 h1g1", 1)
    assert pinned.outcome() == Outcome(Termination.REPETITION, None)


def test_a_legal_en_passant_makes_another_position(set_up: SetUp) -> None:
    free = set_up("chess", "3k3r/8/8/8/3p4/8/4P3/2R3K1 w - - 0 1", "e2e4")
    key = free.key
    shuffle(free, "h8g8 g1h1 g8h8 h1g1", 2)
    assert free.key != key
    assert free.repetitions == 1
    assert free.outcome() is None
    shuffle(free, "h8g8 g1h1 g8h8 h1g1", 1)
    assert free.outcome() == Outcome(Termination.REPETITION, None)


def test_an_illegal_move_raises_and_changes_nothing(set_up: SetUp) -> None:
    position = set_up("chess")
    before = position.fen()
    for move in ("e2e5", "e7e5", "e1g1", "a7a8q"):
        with pytest.raises(IllegalAction):
            position.push(move)
    assert position.fen() == before


def test_the_move_number_and_the_clock_count_as_in_fide_chess(set_up: SetUp) -> None:
    position = set_up("chess", None, "g1f3", "g8f6", "f3e5", "f6e4", "e5d7")
    assert fields(position)[4:] == ["0", "3"]
    position.push("e4c5")
    assert fields(position)[4:] == ["1", "4"]
