"""The corners of the rules, one by one, by the slow rules and by the kernels: pawns, castling, how games end."""

from __future__ import annotations

import pytest

from envs import IllegalAction, Outcome, Termination
from tests.envs.random_games import VARIANTS_FOLDER
from tests.envs.rules_position import AnyPosition, SetUp, fields, moves_from

pytestmark = pytest.mark.nojit
SCEPTER = {"scepter": True}
INNER_ROOKS = VARIANTS_FOLDER / "inner_rooks.yaml"


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
    capture = next(move for move in position.legal_moves() if move.startswith(start) and position.captures(move))
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
    position = set_up("palace_ninja_guards", "***2***/7k/8/8/8/8/8/7P/3K4/***2*** w - - 0 1", "d1d0", **SCEPTER)
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
