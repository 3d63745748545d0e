"""What each key of a variant file means on the board, by both engines: small games, one key changed at a time."""

from __future__ import annotations

import pytest

from envs import InvalidFen, Outcome, Termination, Variant, variant_from_document
from envs.strict_yaml import load_yaml
from tests.envs.rules_position import SetUp, fields, moves_from

pytestmark = pytest.mark.nojit

SMALL = """
name: Small
board: {files: 5, ranks: 6}
start: 2k2/ppppp/5/5/PPPPP/2K2 w - - 0 1
royal: k
pieces:
  k: {name: king, moves: K}
  r: {name: rook, moves: R}
  n: {name: knight, moves: N}
  p: {name: pawn}
pawns: {piece: p, first_steps: 2, first_steps_from: [2], promotes_to: rn}
"""
CASTLING = """
board: {files: 8}
start: 4k2r/pppppppp/8/8/PPPPPPPP/R3K3 w Qk - 0 1
castling:
  white: {rank: 1, king: e, queenside: {king_to: c, rook: a, rook_to: d}}
  black: {rank: 6, king: e, kingside: {king_to: g, rook: h, rook_to: f}}
"""
ARMIES = "start: rnk2/ppppp/5/5/PPPPP/RNK2 w - - 0 1"
HORDE = """
start: ppppp/ppppp/5/5/PPPPP/2K2 w - - 0 1
royal: {white: k}
ends: {extinction: {pieces: all}}
"""


def merged(base: dict, changes: dict) -> dict:
    """Return `base` with `changes` laid over it; `None` removes a key."""
    both = {key: merged(base[key], value) if isinstance(value, dict) and isinstance(base.get(key), dict) else value
            for key, value in changes.items()}  # fmt: skip
    return {key: value for key, value in {**base, **both}.items() if value is not None}


def game(*changes: str) -> Variant:
    """Return the small game with some of its keys changed."""
    document = load_yaml(SMALL, "small.yaml")[0]
    for text in changes:
        document = merged(document, load_yaml(text, "changes.yaml")[0])
    return variant_from_document(document, name="small")


def play(set_up: SetUp, variant: Variant, fen: str, *moves: str) -> Outcome | None:
    """Return the outcome after some moves."""
    return set_up(variant, fen, *moves).outcome()


# --- royal ------------------------------------------------------------------------------------


def test_a_side_without_a_royal_is_stalemated_where_another_would_be_mated(set_up: SetUp) -> None:
    position = set_up(game(HORDE), "5/5/5/R4/p4/P1K2 b - - 0 1")
    assert not position.in_check
    assert position.legal_moves() == []
    assert position.outcome() == Outcome(Termination.STALEMATE, None)


def test_a_side_without_a_royal_may_leave_anything_attacked(set_up: SetUp) -> None:
    assert set_up(game(HORDE), "5/5/R2p1/5/5/2K2 b - - 0 1").legal_moves() == ["d4d3"]


def test_a_royal_type_of_one_side_is_a_piece_like_others_for_the_other_side(set_up: SetUp) -> None:
    mixed = game("royal: {white: k, black: n}", "start: 2n2/ppppp/5/5/PPPPP/1NK2 w - - 0 1", "pawns: {promotes_to: r}")
    assert set_up(mixed, "2n2/5/5/2R2/5/2K2 b - - 0 1").in_check
    assert set_up(mixed, "2n2/5/5/5/5/NNK2 w - - 0 1").outcome() is None
    assert set_up(mixed, "2n2/kk3/5/5/5/2K2 w - - 0 1").outcome() is None
    with pytest.raises(InvalidFen, match=r"expected one N of Black, got 2 \(c6, d6\)"):
        set_up(mixed, "2nn1/5/5/5/5/2K2 w - - 0 1")
    with pytest.raises(InvalidFen, match="expected one K of White, got 0"):
        set_up(mixed, "2n2/5/5/5/5/1N3 w - - 0 1")
    with pytest.raises(InvalidFen, match="its royal piece on c6 could be captured"):
        set_up(mixed, "2n2/5/5/2R2/5/2K2 w - - 0 1")


# --- pawns ------------------------------------------------------------------------------------


def test_a_pawn_that_steps_sideways_neither_captures_there_nor_repeats_that_step(set_up: SetUp) -> None:
    sideways = game("pawns: {quiet: fsW}")
    assert moves_from(set_up(sideways, "2k2/5/5/1rP2/5/2K2 w - - 0 1"), "c3") == {"c4", "d3"}
    assert moves_from(set_up(sideways, "2k2/5/5/5/2P2/2K2 w - - 0 1"), "c2") == {"b2", "d2", "c3", "c4"}
    assert fields(set_up(sideways, "2k2/5/5/5/2P2/2K2 w - - 7 9", "c2d2"))[3:] == ["-", "0", "9"]


def test_a_pawn_may_step_diagonally_and_capture_forward(set_up: SetUp) -> None:
    berolina = game("pawns: {quiet: fF, captures: fW}")
    assert moves_from(set_up(berolina, "2k2/5/5/5/2P2/2K2 w - - 0 1"), "c2") == {"b3", "a4", "d3", "e4"}
    assert moves_from(set_up(berolina, "2k2/5/5/1nr2/2P2/4K w - - 0 1"), "c2") == {"c3", "d3", "e4"}
    passed = set_up(berolina, "2k2/5/3p1/5/2P2/2K2 w - - 0 1", "c2e4")
    assert fields(passed)[3] == "d3"
    assert passed.captures("d4d3") == ["e4"]
    passed.push("d4d3")
    assert fields(passed)[0] == "2k2/5/5/3p1/5/2K2"


def test_a_leap_that_repeated_steps_would_also_reach_passes_only_its_own_landings(set_up: SetUp) -> None:
    start = "start: k4/ppppp/5/5/5/5/5/PPPPP/K4 w - - 0 1"
    hopped = game("board: {ranks: 9}", start, "pawns: {quiet: fWfH, first_steps: 2}")
    near = "k4/5/5/5/5/5/1p3/P4/K4 w - - 0 1"
    assert fields(set_up(hopped, near, "a2a8"))[3] == "-"
    assert set_up(hopped, near, "a2a8").captures("b3b2") == []
    passed = set_up(hopped, "k4/5/5/1p3/5/5/5/P4/K4 w - - 0 1", "a2a8")
    assert fields(passed)[3] == "a5"
    assert passed.captures("b6a5") == ["a8"]


def test_of_two_goals_reached_by_one_castling_the_first_in_the_list_names_the_end(set_up: SetUp) -> None:
    rook, king = "{by: r, name: scepter, squares: {white: [d1]}}", "{by: k, name: hill, squares: {white: [c1]}}"
    goals = f"ends: {{goals: [{rook}, {king}]}}"
    for text, expected in ((goals, Termination.SCEPTER), (goals.replace("scepter", "post"), Termination.GOAL)):
        variant = game(CASTLING, text)
        outcome = play(set_up, variant, variant.start_fen, "e1c1")
        assert outcome == Outcome(expected, "w")
        assert set_up(variant, "4k3/8/8/8/8/2KR4 b - - 0 1").outcome() == outcome


def test_positions_that_differ_in_the_pawn_that_can_be_taken_in_passing_are_different(set_up: SetUp) -> None:
    berolina = game("pawns: {quiet: fF, captures: fW}")
    one = set_up(berolina, "2k2/5/2Pp1/5/2P2/2K2 w - - 0 1", "c2e4")
    other = set_up(berolina, "2k2/5/3pP/5/4P/2K2 w - - 0 1", "e2c4")
    assert (fields(one)[3], fields(other)[3]) == ("d3", "d3c4")
    assert (one.captures("d4d3"), other.captures("d4d3")) == (["e4"], ["c4"])
    assert one.key != other.key
    assert (set_up(berolina, one.fen()).key, set_up(berolina, other.fen()).key) == (one.key, other.key)


def test_the_first_start_square_from_which_a_pawn_may_have_come_decides_which_one_it_was(set_up: SetUp) -> None:
    berolina = game("pawns: {quiet: fF, captures: fW}")
    from_either = set_up(berolina, "2k2/5/2PpP/5/5/2K2 b - d3 0 1")
    assert from_either.captures("d4d3") == ["e4"]
    assert set_up(berolina, "2k2/5/2PpP/5/2N2/2K2 b - d3 0 1").captures("d4d3") == ["c4"]
    for field in ("d3", "d3e4", "d3c4"):
        with pytest.raises(InvalidFen, match=f"can have passed over {', '.join((field[:2], field[2:])).rstrip(', ')} "):
            set_up(berolina, f"2k2/5/2PpP/5/2N1N/2K2 b - {field} 0 1")
    for field in ("e4", "d3c4e4", "d3d4"):
        with pytest.raises(InvalidFen, match="en passant: "):
            set_up(berolina, f"2k2/5/2PpP/5/5/2K2 b - {field} 0 1")


def test_first_steps_may_start_from_every_rank(set_up: SetUp) -> None:
    torpedo = game("pawns: {first_steps_from: all}")
    assert moves_from(set_up(torpedo, "4k/5/5/2P2/5/2K2 w - - 0 1"), "c3") == {"c4", "c5"}
    assert moves_from(set_up(torpedo, "4k/5/2P2/5/5/2K2 w - - 0 1"), "c4") == {"c5", "c6r", "c6n"}
    assert set_up(torpedo, "4k/1p3/5/2P2/5/2K2 w - - 0 1", "c3c5").captures("b5c4") == ["c5"]
    assert set_up(torpedo, "4k/1pP2/5/5/5/2K2 b - c4 0 1").captures("b5c4") == ["c5"]


def test_a_pawn_that_may_promote_must_only_where_it_could_never_move_on(set_up: SetUp) -> None:
    optional = game("pawns: {promotes_on: [5, 6], promotion: may}")
    assert moves_from(set_up(optional, "4k/5/2P2/5/5/2K2 w - - 0 1"), "c4") == {"c5", "c5r", "c5n"}
    assert moves_from(set_up(optional, "4k/2P2/5/5/5/2K2 w - - 0 1"), "c5") == {"c6r", "c6n"}
    assert moves_from(set_up(optional, "4k/5/5/2p2/5/K4 b - - 0 1"), "c3") == {"c2", "c2r", "c2n"}
    for fen, square in (("2P1k/5/5/5/5/2K2 w - - 0 1", "c6"), ("4k/5/5/5/5/K1p2 w - - 0 1", "c1")):
        with pytest.raises(InvalidFen, match=f"{square}: a pawn of (White|Black) must have promoted there"):
            set_up(optional, fen)


def test_a_promotion_rank_ends_the_first_steps_though_the_pawn_stays_one(set_up: SetUp) -> None:
    optional = game("pawns: {first_steps: 3, promotes_on: [4, 6], promotion: may}")
    fen = "4k/5/1p3/5/2P2/4K w - - 0 1"
    assert moves_from(set_up(optional, fen), "c2") == {"c3", "c4", "c4r", "c4n"}
    assert set_up(optional, fen, "c2c4").captures("b4c3n") == ["c4"]
    assert fields(set_up(optional, fen, "c2c4r"))[3] == "-"


def test_a_pawn_that_leaps_over_its_promotion_rank_must_promote_where_it_lands(set_up: SetUp) -> None:
    leaping = game("pawns: {quiet: fD, first_steps: 1, first_steps_from: null, promotes_on: [5]}")
    assert moves_from(set_up(leaping, "4k/5/2P2/2r2/5/4K w - - 0 1"), "c4") == {"c6r", "c6n"}
    with pytest.raises(InvalidFen, match="c6: a pawn of White must have promoted there"):
        set_up(leaping, "2P1k/5/5/5/5/4K b - - 0 1")


def test_what_a_pawn_becomes_may_depend_on_its_side(set_up: SetUp) -> None:
    uneven = game("pawns: {promotes_to: {white: r, black: n}}")
    assert moves_from(set_up(uneven, "4k/2P2/5/5/5/4K w - - 0 1"), "c5") == {"c6r"}
    assert moves_from(set_up(uneven, "4k/5/5/5/2p2/4K b - - 0 1"), "c2") == {"c1n"}


def test_a_pawn_becomes_any_piece_of_the_start_position_by_default(set_up: SetUp) -> None:
    default = game(ARMIES, "pawns: {promotes_to: null}")
    assert moves_from(set_up(default, "4k/2P2/5/5/5/4K w - - 0 1"), "c5") == {"c6r", "c6n"}


# --- captures_own -----------------------------------------------------------------------------


def test_a_piece_that_captures_its_own_takes_all_but_its_royal(set_up: SetUp) -> None:
    fen = "4k/5/5/2N2/5/R1R1K w - - 7 9"
    assert moves_from(set_up(game(), fen), "c1") == {"c2", "b1", "d1"}
    position = set_up(game("pieces: {r: {captures_own: true}}"), fen)
    assert moves_from(position, "c1") == {"c2", "c3", "b1", "a1", "d1"}
    assert position.captures("c1c3") == ["c3"]
    position.push("c1c3")
    assert fields(position)[0::4] == ["4k/5/5/2R2/5/R3K", "0"]


def test_own_pieces_are_captured_only_as_enemies_are(set_up: SetUp) -> None:
    split = game("pieces: {r: {moves: mRcN, captures_own: true}, p: {captures_own: true}}")
    assert moves_from(set_up(split, "4k/5/5/1N3/2P2/2R1K w - - 0 1"), "c1") == {"b1", "a1", "d1", "b3"}
    assert moves_from(set_up(split, "4k/5/1N1K1/2P2/5/5 w - - 0 1"), "c3") == {"b4", "c4"}


def test_fire_ends_on_a_first_own_piece_or_on_one_behind_a_victim(set_up: SetUp) -> None:
    fire = "pieces: {r: {fires_through: R}}"
    own = game(fire, "pieces: {r: {captures_own: true}}")
    through = game(fire, "pieces: {r: {captures_own: true, fires_through_own: true}}")
    behind_own, behind_enemy = "p3k/P4/5/5/5/R1N1K w - - 0 1", "p3k/P4/5/5/5/RnN1K w - - 0 1"

    def along_the_rank(variant: Variant, fen: str) -> dict[str, list[str]]:
        position = set_up(variant, fen)
        return {move: position.captures("a1" + move) for move in moves_from(position, "a1") if move[1] == "1"}

    assert along_the_rank(game(fire), behind_own) == {"b1": []}
    assert along_the_rank(own, behind_own) == {"b1": [], "c1": ["c1"]}
    assert along_the_rank(through, behind_own) == {"b1": [], "c1": ["c1"], "d1": ["c1"]}
    for variant in (game(fire), game(fire, "pieces: {r: {fires_through_own: true}}")):
        assert along_the_rank(variant, behind_enemy) == {"b1": ["b1"]}
    assert along_the_rank(own, behind_enemy) == {"b1": ["b1"], "c1": ["b1", "c1"]}


def test_an_overrun_may_land_on_an_own_piece_and_so_give_check(set_up: SetUp) -> None:
    overrun = "pieces: {n: {overruns: DA}}"
    own = game(overrun, "pieces: {n: {captures_own: true}}")
    position = set_up(own, "4k/5/2R2/2p2/K1NP1/5 w - - 0 1")
    assert position.captures("c2c4") == ["c3", "c4"]
    assert position.captures("c2e2") == []
    assert "c2a2" not in position.legal_moves()
    for variant, check in ((own, True), (game(overrun), False)):
        assert set_up(variant, "5/5/2P2/2k2/2N2/4K b - - 0 1").in_check == check


# --- castling ---------------------------------------------------------------------------------


def test_each_side_may_have_a_castling_of_its_own(set_up: SetUp) -> None:
    position = set_up(game(CASTLING), "4k2r/8/8/8/8/R3K3 w Qk - 0 1", "e1c1", "e6g6")
    assert fields(position)[0::2] == ["5rk1/8/8/8/8/2KR4", "-", "2"]
    with pytest.raises(InvalidFen, match="'K', but Small has no such castling"):
        set_up(game(CASTLING), "4k2r/8/8/8/8/R3K3 w K - 0 1")


def test_a_side_without_a_royal_castles_through_attacks_with_what_stands_there(set_up: SetUp) -> None:
    knights = game(HORDE, CASTLING, "start: 4n2r/pppppppp/8/8/PPPPPPPP/R3K3 w Qk - 0 1")
    position = set_up(knights, "4n2r/8/8/8/8/4RRK1 b k - 0 1", "e6g6")
    assert fields(position)[0] == "5rn1/8/8/8/8/4RRK1"
    with pytest.raises(InvalidFen, match="'k' needs 'n' on e6, got 'r'"):
        set_up(knights, "4r2r/8/8/8/8/4RRK1 b k - 0 1")


def test_any_partner_of_some_start_position_may_castle(set_up: SetUp) -> None:
    start = "start: [4k2r/pppppppp/8/8/PPPPPPPP/R3K3 w Qk - 0 1, 4k2n/pppppppp/8/8/PPPPPPPP/R3K3 w Qk - 0 1]"
    either = game(CASTLING, start)
    assert fields(set_up(either, "4k2n/8/8/8/8/R3K3 b k - 0 1", "e6g6"))[0] == "5nk1/8/8/8/8/R3K3"
    with pytest.raises(InvalidFen, match="'k' needs 'r' or 'n' on h6, got an empty square"):
        set_up(either, "4k3/8/8/8/8/R3K3 b k - 0 1")


def test_a_partner_captured_by_its_own_side_loses_its_castling_right(set_up: SetUp) -> None:
    own = game(CASTLING, "pieces: {r: {captures_own: true}}")
    assert fields(set_up(own, "4k3/8/8/8/8/RR2K3 w Q - 0 1", "b1a1"))[2] == "-"


# --- ends.stalemate, repetition, move_limit, bare_kings ---------------------------------------


@pytest.mark.parametrize(("result", "winner"), [("draw", None), ("win", "w"), ("loss", "b")])
def test_stalemate_is_what_the_file_says_for_the_side_without_a_move(
    set_up: SetUp, result: str, winner: str | None
) -> None:
    variant = game(f"ends: {{stalemate: {result}}}")
    other = {"w": "b", "b": "w", None: None}[winner]
    assert play(set_up, variant, "5/5/5/5/2k2/K1n2 w - - 0 1") == Outcome(Termination.STALEMATE, winner)
    assert play(set_up, variant, "k1N2/2K2/5/5/5/5 b - - 0 1") == Outcome(Termination.STALEMATE, other)


@pytest.mark.parametrize(("result", "winner"), [("draw", None), ("win", "w"), ("loss", "b")])
def test_a_repetition_is_what_the_file_says_for_the_side_to_move(
    set_up: SetUp, result: str, winner: str | None
) -> None:
    variant = game(f"ends: {{repetition: {{times: 2, result: {result}}}}}")
    fen, there_and_back = "2k2/5/5/5/2P2/2K2 w - - 0 1", ("c1d1", "c6d6", "d1c1", "d6c6")
    assert play(set_up, variant, fen, *there_and_back[:3]) is None
    assert play(set_up, variant, fen, *there_and_back) == Outcome(Termination.REPETITION, winner)


def test_repetition_may_be_off(set_up: SetUp) -> None:
    there_and_back = ("c1d1", "c6d6", "d1c1", "d6c6")
    fen = "2k2/5/5/5/2P2/2K2 w - - 0 1"
    assert play(set_up, game("ends: {repetition: off}"), fen, *(4 * there_and_back)) is None
    assert play(set_up, game(), fen, *(2 * there_and_back)) == Outcome(Termination.REPETITION, None)


def test_the_clock_stops_at_the_move_limit(set_up: SetUp) -> None:
    variant = game("ends: {move_limit: 4}")
    position = set_up(variant, "2k2/5/5/5/2P2/2K2 w - - 0 1", "c1d1", "c6d6", "d1e1", "d6e6")
    assert position.outcome() == Outcome(Termination.FIFTY_MOVES, None)
    position.push("e1d1")
    assert position.halfmove_clock == 4
    with pytest.raises(InvalidFen, match="halfmove clock: expected a number from 0 to 4, got '5'"):
        set_up(variant, "2k2/5/5/5/2P2/2K2 w - - 5 1")


def test_without_a_move_limit_the_clock_counts_as_far_as_a_fen_can_say(set_up: SetUp) -> None:
    variant = game("ends: {move_limit: off}")
    position = set_up(variant, "2k2/5/5/5/2P2/2K2 w - - 9998 1", "c1d1", "c6d6")
    assert position.halfmove_clock == 9999
    assert position.outcome() is None


def test_bare_kings_may_play_on(set_up: SetUp) -> None:
    fen = "2k2/5/5/5/5/2K2 w - - 0 1"
    assert play(set_up, game(), fen) == Outcome(Termination.BARE_KINGS, None)
    assert play(set_up, game("ends: {bare_kings: off}"), fen) is None
    assert play(set_up, game(HORDE), "2p2/5/5/5/5/2K2 w - - 0 1") is None


# --- ends.goals -------------------------------------------------------------------------------

HILL = "ends: {goals: [{name: hill, by: n, squares: {white: [c4, c3], black: [c3]}}]}"


def test_a_side_wins_on_its_own_goal_squares_alone(set_up: SetUp) -> None:
    hill = game(HILL)
    won = set_up(hill, "2k2/5/5/5/3N1/2K2 w - - 0 1", "d2c4")
    assert won.outcome() == Outcome(Termination.GOAL, "w")
    assert won.legal_moves() == []
    assert play(set_up, hill, "2kn1/5/5/5/5/2K2 b - - 0 1", "d6c4") is None
    assert play(set_up, hill, "2k2/3n1/5/5/5/2K2 b - - 0 1", "d5c3") == Outcome(Termination.GOAL, "b")
    assert play(set_up, hill, "2k2/5/5/2R2/5/2K2 b - - 0 1") is None


def test_a_won_position_is_read_unless_its_winner_is_to_move(set_up: SetUp) -> None:
    hill = game(HILL)
    assert play(set_up, hill, "2k2/5/2N2/5/5/2K2 b - - 0 1") == Outcome(Termination.GOAL, "w")
    with pytest.raises(InvalidFen, match="a piece on c4, where it has already won"):
        set_up(hill, "2k2/5/2N2/5/5/2K2 w - - 0 1")


def test_a_goal_may_belong_to_one_side(set_up: SetUp) -> None:
    defence = game("ends: {goals: [{name: hill, by: n, squares: {white: [c3]}}]}")
    assert play(set_up, defence, "2k2/3n1/5/5/5/2K2 b - - 0 1", "d5c3") is None


def test_what_a_pawn_becomes_counts_for_a_goal_and_the_first_goal_names_it(set_up: SetUp) -> None:
    first, second = "{name: far, by: r, squares: {white: [c6]}}", "{name: scepter, by: rn, squares: {white: [c6]}}"
    far = game(f"ends: {{goals: [{first}, {second}]}}")
    fen = "4k/2P2/5/5/5/4K w - - 0 1"
    assert play(set_up, far, fen, "c5c6r") == Outcome(Termination.GOAL, "w")
    assert play(set_up, far, fen, "c5c6n") == Outcome(Termination.SCEPTER, "w")


def test_a_castling_partner_may_reach_a_goal(set_up: SetUp) -> None:
    corner = game(CASTLING, "ends: {goals: [{name: corner, by: r, squares: {white: [d1]}}]}")
    assert play(set_up, corner, "4k3/8/8/8/8/R3K3 w Q - 0 1", "e1c1") == Outcome(Termination.GOAL, "w")


# --- ends.extinction --------------------------------------------------------------------------


@pytest.mark.parametrize(("result", "winner"), [("loss", "w"), ("win", "b"), ("draw", None)])
def test_the_death_of_any_listed_type_is_what_the_file_says_for_its_side(
    set_up: SetUp, result: str, winner: str | None
) -> None:
    variant = game(ARMIES, f"ends: {{extinction: {{pieces: rn, result: {result}}}}}")
    position = set_up(variant, "rnk2/5/5/5/5/RNK2 w - - 0 1", "a1a6")
    assert position.outcome() == Outcome(Termination.EXTINCTION, winner)
    assert position.legal_moves() == []
    assert play(set_up, variant, "rnk2/5/5/5/5/RNK2 w - - 0 1", "a1a5") is None
    assert set_up(variant, "r1k2/5/5/5/5/RNK2 w - - 0 1").outcome() == Outcome(Termination.EXTINCTION, winner)


def test_a_side_without_a_piece_has_died_out(set_up: SetUp) -> None:
    assert play(set_up, game(HORDE), "5/5/5/R4/p4/2K2 w - - 0 1", "a3a2") == Outcome(Termination.EXTINCTION, "w")


def test_a_mover_that_dies_out_itself_decides_first(set_up: SetUp) -> None:
    variant = game("ends: {extinction: {pieces: p}}")
    assert play(set_up, variant, "4k/2P2/5/5/4p/2K2 w - - 0 1", "c5c6r") == Outcome(Termination.EXTINCTION, "b")
    assert play(set_up, variant, "3pk/2P2/5/5/5/2K2 w - - 0 1", "c5d6n") == Outcome(Termination.EXTINCTION, "b")


def test_a_goal_comes_before_an_extinction_and_that_before_a_mate(set_up: SetUp) -> None:
    extinction = "extinction: {pieces: rn, result: draw}"
    goals = "goals: [{name: corner, by: r, squares: {white: [a6]}}]"
    fen = "r3k/1R3/5/5/4n/R1N1K w - - 0 1"
    for ends, outcome in (
        (f"{extinction}, {goals}", Outcome(Termination.GOAL, "w")),
        (extinction, Outcome(Termination.EXTINCTION, None)),
        ("stalemate: draw", Outcome(Termination.CHECKMATE, "w")),
    ):
        assert play(set_up, game(ARMIES, f"ends: {{{ends}}}"), fen, "a1a6") == outcome


# --- start ------------------------------------------------------------------------------------


def test_a_game_may_have_several_start_positions_of_which_the_first_is_set_up(set_up: SetUp) -> None:
    starts = ["2k2/ppppp/5/5/PPPPP/2K2 w - - 0 1", "k4/ppppp/5/5/PPPPP/K4 b - - 0 1"]
    variant = game(f"start: [{', '.join(starts)}]")
    assert list(variant.start_fens) == starts
    assert set_up(variant).fen() == starts[0]
