"""FEN in and out: what is accepted, what is written, and every error with its place, by both readers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envs import IllegalAction, InvalidFen, Position, VectorEnv, load_variant
from envs.notation import (
    NO_PROMOTION,
    format_fields,
    format_move,
    format_placement,
    parse_fields,
    parse_move,
    parse_square,
    piece_code,
    piece_letter,
)
from tests.envs.random_games import all_settings, own_games, setting_name, starts
from tests.envs.rules_position import RulesPosition, SetUp

START = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
SETTINGS = [*all_settings(), *own_games()]
pytestmark = pytest.mark.nojit


# --- What is accepted and written -------------------------------------------------------------


@pytest.mark.parametrize("variant", SETTINGS, ids=setting_name)
def test_positions_of_every_kind_are_written_as_they_were_read(variant: object) -> None:
    fens = starts(variant, np.random.default_rng(8))  # type: ignore[arg-type]
    for _ in range(10):
        fen = next(fens)
        placement, side, rights, _, clock, number = Position(variant, fen=fen).fen().split(" ")  # type: ignore[arg-type]
        assert [placement, side, rights, clock, number] == [*fen.split(" ")[:3], *fen.split(" ")[4:]]
        assert RulesPosition(variant, fen=fen).fen() == Position(variant, fen=fen).fen()  # type: ignore[arg-type]


def test_the_counters_may_be_missing_together(set_up: SetUp) -> None:
    assert set_up("chess", "4k3/8/8/8/8/8/8/4K3 b - -").fen() == "4k3/8/8/8/8/8/8/4K3 b - - 0 1"


def test_fields_may_be_divided_by_any_space(set_up: SetUp) -> None:
    assert set_up("chess", f"  {START.replace(' ', '   ')} ").fen() == START


def test_castling_letters_come_in_any_order_and_are_written_in_one(set_up: SetUp) -> None:
    assert set_up("chess", START.replace("KQkq", "qkQK")).fen() == START


def test_empty_runs_of_ten_have_two_digits(set_up: SetUp) -> None:
    fen = "k9/10/10/10/10/10/10/10/9P/9K w - - 0 1"
    assert set_up("asylum", fen).fen() == fen
    with pytest.raises(InvalidFen, match="rank 9: expected a run of 1 to 10 empty squares, got '55'"):
        set_up("asylum", fen.replace("/10/", "/55/", 1))


@pytest.mark.parametrize(
    ("variant", "given_squares", "fen", "kept"),
    [
        # The listed square of other programs, without any pawn that could capture.
        ("chess", "e3", "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq {} 0 1", "-"),
        ("chess", "d6", "rnbqkbnr/ppp1pppp/8/3pP3/8/8/PPPP1PPP/RNBQKBNR w KQkq {} 0 3", "d6"),
        # The capture would expose the king.
        ("chess", "d6", "8/8/8/K2pP2r/8/8/8/7k w - {} 0 1", "-"),
        ("asylum", "a3a4", "5k4/10/10/10/10/Pp8/1p8/10/10/5K4 b - {} 0 1", "a3a4"),
        ("asylum", "a4a3", "5k4/10/10/10/10/Pp8/1p8/10/10/5K4 b - {} 0 1", "a3a4"),
        # Only one of the two has a pawn beside it; the victim stands one or two squares beyond.
        ("asylum", "a3a4", "5k4/10/10/10/10/P9/1p8/10/10/5K4 b - {} 0 1", "a3"),
        ("asylum", "a3", "5k4/10/10/10/10/P9/1p8/10/10/5K4 b - {} 0 1", "a3"),
        ("asylum", "a4", "5k4/10/10/10/10/Pp8/10/10/10/5K4 b - {} 0 1", "a4"),
        ("asylum", "a3", "5k4/10/10/10/10/10/Pp8/10/10/5K4 b - {} 0 1", "a3"),
        ("asylum", "a8", "5k4/10/10/1P8/p9/10/10/10/10/5K4 w - {} 0 1", "a8"),
        ("asylum", "a7", "5k4/10/10/10/pP8/10/10/10/10/5K4 w - {} 0 1", "a7"),
    ],
)
def test_en_passant_squares_without_a_legal_capture_are_dropped(
    set_up: SetUp, variant: str, given_squares: str, fen: str, kept: str
) -> None:
    position = set_up(variant, fen.format(given_squares))
    assert position.fen() == fen.format(kept)
    squares = [] if kept == "-" else [kept[place : place + 2] for place in range(0, len(kept), 2)]
    for square in squares:
        captures = [position.captures(move) for move in position.legal_moves() if move.endswith(square)]
        assert any(victims and square not in victims for victims in captures)


def test_equal_positions_have_equal_first_four_fields_and_keys() -> None:
    with_listed = Position("chess", "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq e3 0 1")
    without = Position("chess", "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1")
    assert with_listed.key == without.key
    assert with_listed.fen() == without.fen()


def test_a_lane_keeps_its_position_when_a_fen_is_refused() -> None:
    env = VectorEnv("chess", 2)
    with pytest.raises(InvalidFen):
        env.set_fen(1, "8/8/8/8/8/8/8/8 w - - 0 1")
    assert env.fen(1) == START


# --- Errors -----------------------------------------------------------------------------------

CHESS_ERRORS = [
    ("", "expected six fields"),
    ("8/8", "expected six fields"),
    (f"{START} x", "expected six fields"),
    (START.removesuffix(" 1"), "expected six fields"),
    (START.replace("/8/8/8/8/", "/8/8/8/"), "expected 8 rows in the first field, got 7"),
    (START.replace("/8/8/8/8/", "/8/8/8/8/8/"), "expected 8 rows in the first field, got 9"),
    (START.replace("/8/", "/7/", 1), "rank 6 has 7 files, expected 8"),
    (START.replace("/8/", "/9/", 1), "rank 6: expected a run of 1 to 8 empty squares, got '9'"),
    (START.replace("/8/", "/4p4/", 1), "rank 6 has 9 files, expected 8"),
    (START.replace("/8/", "/08/", 1), "rank 6: expected a run"),
    (START.replace("/8/", "/0p7/", 1), "rank 6: expected a run"),
    (START.replace("/8/", "/" + "8" * 5000 + "/", 1), "rank 6: expected a run"),
    (START.replace("/8/", "/٨/", 1), "rank 6: expected a run"),
    (START.replace("/8/", "//", 1), "rank 6 has 0 files"),
    (START.replace("/8/", "/3x4/", 1), "rank 6, d6: unknown piece 'x', expected one of K Q R B N P"),
    (START.replace("/8/", "/3ß4/", 1), "rank 6, d6: unknown piece"),
    (START.replace("/8/", "/3*4/", 1), "rank 6, d6: expected a square, got '*'"),
    (START.replace("q", "g", 1), "rank 8, d8: unknown piece 'g'"),
    (START.replace(" w ", " W "), "side to move: expected 'w' or 'b', got 'W'"),
    (START.replace(" w ", " - "), "side to move"),
    (START.replace("KQkq", "KK"), "castling rights: expected '-' or letters of 'KQkq', got 'KK'"),
    (START.replace("KQkq", "K-"), "castling rights"),
    (START.replace("KQkq", "AHah"), "castling rights"),
    ("4k3/8/8/8/8/8/8/4K2R w KQ - 0 1", "'Q' needs 'R' on a1, got an empty square"),
    ("4k3/8/8/8/8/8/8/4K2B w K - 0 1", "'K' needs 'R' on h1, got 'B'"),
    ("4k3/8/8/8/8/8/8/3K3R w K - 0 1", "'K' needs 'K' on e1"),
    ("4k2R/8/8/8/8/8/8/4K3 w k - 0 1", "'k' needs 'r' on h8, got 'R'"),
    (START.replace(" - ", " e9 "), "en passant: no square 'e9'"),
    (START.replace(" - ", " x3 "), "en passant: expected '-' or squares such as 'e3', got 'x3'"),
    (START.replace(" - ", " e3e3 "), "en passant: 'e3' is listed twice"),
    (START.replace(" - ", " e3 "), "can have passed over e3"),
    ("4k3/8/8/8/4P3/8/8/4K3 w - e3 0 1", "can have passed over e3"),
    ("4k3/8/8/8/4P3/8/8/4K3 b - e4 0 1", "can have passed over e4"),
    ("4k3/8/8/8/4P3/8/8/4K3 b - e2 0 1", "can have passed over e2"),
    ("4k3/8/8/8/4P3/8/4N3/4K3 b - e3 0 1", "can have passed over e3"),
    ("4k3/8/8/8/4P3/4N3/8/4K3 b - e3 0 1", "can have passed over e3"),
    ("4k3/8/8/8/4N3/8/8/4K3 b - e3 0 1", "can have passed over e3"),
    ("4k3/8/8/8/4p3/8/8/4K3 b - e3 0 1", "can have passed over e3"),
    ("4k3/8/8/4P3/8/8/8/4K3 b - e3 0 1", "can have passed over e3"),
    ("4k3/8/8/8/3PP3/8/8/4K3 b - d3e3 0 1", "can have passed over d3, e3"),
    (START.replace(" 0 1", " -1 1"), "halfmove clock: expected a number from 0 to 100, got '-1'"),
    (START.replace(" 0 1", " 101 1"), "halfmove clock"),
    (START.replace(" 0 1", " 1.5 1"), "halfmove clock"),
    (START.replace(" 0 1", " ² 1"), "halfmove clock"),
    (START.replace(" 0 1", " 0 0"), "move number: expected a number from 1 to 9999, got '0'"),
    (START.replace(" 0 1", " 0 10000"), "move number"),
    (START.replace(" 0 1", " 0 " + "9" * 5000), "move number"),
    ("8/8/8/8/8/8/8/4K3 w - - 0 1", "expected one K of Black, got 0"),
    ("4k3/8/8/8/8/8/8/8 w - - 0 1", "expected one K of White, got 0"),
    ("4k3/8/8/8/8/8/8/3KK3 w - - 0 1", r"expected one K of White, got 2 \(d1, e1\)"),
    ("4k2P/8/8/8/8/8/8/4K3 w - - 0 1", "h8: a pawn of White must have promoted there"),
    ("4k3/8/8/8/8/8/8/p3K3 w - - 0 1", "a1: a pawn of Black must have promoted there"),
    ("4k3/8/8/8/8/8/8/4R1K1 w - - 0 1", "the side that just moved is in check: its royal piece on e8"),
    ("4k3/8/8/8/8/8/3p4/4K3 b - - 0 1", "the side that just moved is in check: its royal piece on e1"),
    ("8/8/8/3kK3/8/8/8/8 w - - 0 1", "the side that just moved is in check"),
]


@pytest.mark.parametrize(("fen", "reason"), CHESS_ERRORS, ids=lambda text: text[:60])
def test_a_fen_that_is_no_chess_position_is_refused_with_its_place(set_up: SetUp, fen: str, reason: str) -> None:
    with pytest.raises(InvalidFen, match=reason) as caught:
        set_up("chess", fen)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("variant", "fen", "reason"),
    [
        ("gardner", "rnbqk/ppppp/5/PPPPP/RNBQK w K - 0 1", "Gardner Minichess has no such castling"),
        ("gardner", "rnbqk/ppp1p/3p1/PPPPP/RNBQK w - d4 0 1", "can have passed over d4"),
        ("asylum", "5k4/10/10/10/10/Pp8/1p8/10/10/5K4 b - a3a4a5 0 1", "passed over a3, a4, a5"),
        ("asylum", "5k4/10/10/10/P9/1p8/1p8/10/10/5K4 b - a3 0 1", "passed over a3"),
        ("asylum", "5k4/10/10/10/10/P9/Pp8/10/10/5K4 b - a4 0 1", "passed over a4"),
        # In check through one man.
        ("asylum", "5r3k/10/10/10/10/10/10/5N4/10/5K4 b - - 0 1", "its royal piece on f1"),
        ("palace_ninja_guards", "***2***/4k3/8/8/8/8/8/8/4K3/8 w - - 0 1", r"rank 0, a0: expected '\*'"),
        (
            "palace_ninja_guards",
            "***2***/4k3/8/8/8/8/8/8/4K3/***1*** w - - 0 1",
            r"rank 0, e0: expected a square",
        ),
        (
            "palace_ninja_guards",
            "***2***/4k3/8/8/8/8/8/8/4K3/***3*** w - - 0 1",
            r"rank 0, f0: expected '\*'",
        ),
        ("palace_ninja_guards", "***2***/4k3/8/8/8/8/8/8/4K3/***P1*** w - - 0 1", None),
        ("palace_ninja_guards", "***2***/4k2P/8/8/8/8/8/8/4K3/***2*** w - - 0 1", "h8: a pawn of White"),
        ("palace_ninja_guards", "***P1***/4k3/8/8/8/8/8/8/4K3/***2*** w - - 0 1", "d9: a pawn of White"),
        ("palace_ninja_guards", "***2***/4k3/8/8/8/8/8/8/4K3/***1p*** w - - 0 1", "e0: a pawn of Black"),
        ("separate_realms_2", "4k3/8/8/8/8/8/8/4K1N1 w - - 0 1", "unknown piece 'N'"),
        # A piece that only goes there without capturing gives no check.
        ("separate_realms_2", "4k3/8/4p3/8/4R3/8/8/4K3 w - - 0 1", None),
        ("separate_realms_2", "4k3/8/8/8/4R3/8/8/4K3 w - - 0 1", "in check: its royal piece on e8"),
    ],
)
def test_a_fen_of_another_game_is_refused_with_its_place(
    set_up: SetUp, variant: str, fen: str, reason: str | None
) -> None:
    if reason is None:
        assert set_up(variant, fen).fen() == fen
        return
    with pytest.raises(InvalidFen, match=reason):
        set_up(variant, fen)


def test_with_scepter_the_movers_own_king_may_not_have_reached_the_enemy_palace(set_up: SetUp) -> None:
    for fen in (
        "***1K***/8/8/8/8/8/8/8/k7/***2*** w - - 0 1",
        "***2***/7K/8/8/8/8/8/8/8/***k1*** b - - 0 1",
    ):
        with pytest.raises(InvalidFen, match="where it has already won"):
            set_up("palace_ninja_guards", fen, scepter=True)
        assert set_up("palace_ninja_guards", fen).fen() == fen
    won = set_up("palace_ninja_guards", "***1K***/8/8/8/8/8/8/8/k7/***2*** b - - 0 1", scepter=True)
    assert won.legal_moves() == []


@given(
    st.text(max_size=80) | st.lists(st.sampled_from("rnbqkpRNBQKP12345678/ wb-KQkqe3d6 0*"), max_size=90).map("".join)
)
def test_any_text_is_a_position_or_an_invalid_fen(text: str) -> None:
    for reader in (Position, RulesPosition):
        try:
            reader("chess", fen=text)
        except InvalidFen:
            continue


@given(st.data())
def test_a_changed_fen_is_read_alike_by_both_readers(data: st.DataObject) -> None:
    text = list("r3k2r/pp1p1ppp/8/2pPp3/8/8/PPP1PPPP/R3K2R w KQkq c6 0 1")
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(text) - 1))
        text[place] = data.draw(st.sampled_from("rnbqkpRNBQKP12345678/ wb-ce36"))
    results = []
    for reader in (Position, RulesPosition):
        try:
            results.append(reader("chess", fen="".join(text)).fen())
        except InvalidFen:
            results.append("invalid")
    assert results[0] == results[1]


# --- Squares, moves, pieces -------------------------------------------------------------------


def test_moves_are_written_and_read_back() -> None:
    asylum = load_variant("asylum")
    assert parse_move(asylum, "a2a5") == (
        parse_square(asylum, "a2"),
        parse_square(asylum, "a5"),
        NO_PROMOTION,
    )
    start, to, promotion = parse_move(asylum, "a9a10q")
    assert asylum.piece_types[promotion].letter == "Q"
    assert format_move(asylum, start, to, promotion) == "a9a10q"
    assert format_move(asylum, start, to) == "a9a10"
    palace = load_variant("palace_ninja_guards")
    assert format_move(palace, *parse_move(palace, "d0e0")) == "d0e0"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "expected a move such as"),
        ("e2", "expected a move such as"),
        ("e2e4qq", "expected a move such as"),
        ("E2E4", "expected a move such as"),
        ("e2-e4", "expected a move such as"),
        ("O-O", "expected a move such as"),
        ("e٢e4", "expected a move such as"),
        ("e2e9", "no square 'e9'"),
        ("i2e4", "no square 'i2'"),
        ("e7e8z", "no piece 'z' to promote to"),
        ("x" * 5000, "expected a move such as"),
    ],
)
def test_text_that_is_no_move_is_refused(text: str, reason: str) -> None:
    with pytest.raises(IllegalAction, match=reason) as caught:
        parse_move(load_variant("chess"), text)
    assert len(str(caught.value)) < 300


def test_a_square_off_the_board_is_refused() -> None:
    with pytest.raises(ValueError, match="no square 'a0'"):
        parse_square(load_variant("palace_ninja_guards"), "a0")


def test_pieces_have_codes_by_type_and_side() -> None:
    chess = load_variant("chess")
    codes = [piece_code(number, side) for side in (0, 1) for number in range(6)]
    assert codes == [1, 2, 3, 4, 5, 6, 17, 18, 19, 20, 21, 22]
    assert "".join(piece_letter(chess, code) for code in [0, *codes]) == "KQRBNPkqrbnp"


def test_fields_are_put_together_as_they_were_taken_apart() -> None:
    for variant in SETTINGS:
        fields = parse_fields(variant, variant.start_fen)
        assert format_fields(variant, fields) == variant.start_fen
        assert format_placement(variant, fields.board) == variant.start_fen.split(" ")[0]
        assert fields.board.dtype == np.uint8
        assert fields.board.shape == (variant.num_squares,)


def test_a_text_far_longer_than_any_position_is_refused_at_once(set_up: SetUp) -> None:
    with pytest.raises(InvalidFen, match="at most 10000 characters, got 2000"):
        set_up("chess", "8/" * 1_000_000)
