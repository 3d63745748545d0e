"""The keys of castling and of the ends of games, one by one: defaults, what they build, how they are refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from envs.variant import HIGHEST_CLOCK, Castling, Ends, Extinction, Goal
from tests.envs.own_files import chess, load, refusal

pytestmark = pytest.mark.nojit

# --- castling ---------------------------------------------------------------------------------

ONE_SIDE = "{rank: 1, king: e, kingside: {king_to: g, rook: h, rook_to: f}}"
BLACK_SIDE = "{rank: 8, king: e, queenside: {king_to: b, rook: a, rook_to: c}}"
RIGHTS = "start: rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w Kq - 0 1"


def test_each_side_may_have_its_own_castling_which_replaces_the_parents(tmp_path: Path) -> None:
    variant = chess(tmp_path, f"castling: {{white: {ONE_SIDE}, black: {BLACK_SIDE}}}\n{RIGHTS}")
    first, second, third, fourth = variant.castlings
    assert second is None
    assert third is None
    king, rook = variant.type_by_letter["K"], variant.type_by_letter["R"]
    index = variant.board.index_by_name
    assert first == Castling(index["e1"], index["g1"], index["h1"], index["f1"], (king,), (rook,))
    assert fourth == Castling(index["e8"], index["b8"], index["a8"], index["c8"], (king,), (rook,))
    only = chess(tmp_path, f"castling: {{white: {ONE_SIDE}}}\n{RIGHTS.replace('Kq', 'K')}")
    assert [castling is not None for castling in only.castlings] == [True, False, False, False]
    (tmp_path / "parent.yaml").write_text(
        f"extends: chess\ncastling: {{black: {BLACK_SIDE}}}\n{RIGHTS.replace('Kq', 'q')}"
    )
    child = load(tmp_path, f"extends: parent.yaml\ncastling: {{white: {ONE_SIDE}}}\n{RIGHTS}")
    assert child.castlings == variant.castlings
    back = load(tmp_path, f"extends: parent.yaml\ncastling: {ONE_SIDE}\n{RIGHTS.replace('Kq', 'Kk')}")
    assert [castling is not None for castling in back.castlings] == [True, False, True, False]


def test_castlers_are_whatever_stands_there_in_the_starts_that_give_the_right(tmp_path: Path) -> None:
    starts = [
        "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w K - 0 1",
        "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RRBQKBNN w K - 0 1",
        "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RRBQKNNB w - - 0 1",
    ]
    listed = "".join(f"\n  - {start}" for start in starts)
    castling = chess(tmp_path, f"castling: {{white: {ONE_SIDE}}}\nstart:{listed}").castlings[0]
    assert castling is not None
    assert castling.partner_types == (2, 4)  # rook and knight, not the bishop without a right
    royalless = chess(
        tmp_path,
        f"castling: {{white: {ONE_SIDE}}}\nroyal: {{black: k}}\nends: {{extinction: {{pieces: q}}}}\nstart:\n"
        "  - rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQNBNR w K - 0 1\n"
        "  - rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w K - 0 1\n",
    ).castlings
    assert royalless[0] is not None
    assert royalless[0].king_types == (0, 4)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            f"{{white: {ONE_SIDE}, rank: 1}}",
            r"own.yaml:3: castling.rank: castling is given either for both sides alike",
        ),
        ("{white: {king: e}}", r"own.yaml:3: castling.white: the key 'rank' is missing"),
        ("{white: {rank: 1, king: e}}", r"own.yaml:3: castling.white: expected kingside, queenside or both"),
        ("{white: {rank: 9, king: e, kingside: {king_to: g, rook: h, rook_to: f}}}", r"castling.white.rank: no rank 9"),
        ("{white: {rank: 1, king: d, kingside: {king_to: g, rook: h, rook_to: f}}}", r"no royal piece on d1 for white"),
        ("{black: {rank: 1, king: e, kingside: {king_to: g, rook: h, rook_to: f}}}", r"no royal piece on e1 for black"),
        (
            "{black: {rank: 8, king: e, kingside: {king_to: g, rook: q, rook_to: f}}}",
            r"rook: expected the letter of a file",
        ),
        ("{white: {rank: 1, king: e, kingsde: {}}}", r"castling.white.kingsde: unknown key, did you mean 'kingside'\?"),
        ("{kingside: {king_to: c}}", r"castling: two castlings lead the king to the same square"),
        ("{kingside: {king_to: f, rook_to: e}}", r"castling.kingside: castling leads to a square that the king also"),
        ("{through_check: true}", r"own.yaml:3: castling.through_check: other ways and conditions of castling"),
        ("off", r"own.yaml:3: castling: .* got 'off'; for none write `castling: null`$"),
        ("free", r"own.yaml:3: castling: expected a mapping with rank, king, .* got 'free'"),
    ],
)
def test_a_castling_that_cannot_be_honoured_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    assert re.search(reason, refusal(tmp_path, f"castling: {text}"))


def test_a_pawn_does_not_castle_as_the_king(tmp_path: Path) -> None:
    text = (
        "royal: null\nends: {extinction: {pieces: q}}\nstart: rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w - - 0 1\n"
    )
    castling = "castling: {white: {rank: 2, king: e, kingside: {king_to: g, rook: h, rook_to: f}}}"
    assert "castling.white.kingside: a pawn stands on e2" in refusal(tmp_path, text + castling)


def test_a_pawn_is_no_partner_on_a_rank_where_it_promotes(tmp_path: Path) -> None:
    text = "pawns: {promotes_on: [1, 8], promotion: may, first_steps_from: [2]}\n"
    text += "start: rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQK2P w Qkq - 0 1\n"
    castling = "castling: {white: {rank: 1, king: e, kingside: {king_to: g, rook: h, rook_to: f}}}"
    assert "castling.white.kingside: a pawn stands on h1" in refusal(tmp_path, text + castling)


# --- ends -------------------------------------------------------------------------------------


def test_ends_are_what_their_keys_say(tmp_path: Path) -> None:
    text = (
        "ends: {stalemate: loss, repetition: {times: 2, result: loss}, move_limit: 7, bare_kings: off, "
        "goals: [{by: kq, squares: {white: [e5, d5, e5]}}, {name: scepter, by: n, squares: {black: [a3]}}], "
        "extinction: {pieces: qr, result: draw}}"
    )
    variant = chess(tmp_path, text)
    index = variant.board.index_by_name
    goals = (Goal("goal", (0, 1), ((index["d5"], index["e5"]), ())), Goal("scepter", (4,), ((), (index["a3"],))))
    assert variant.ends == Ends("loss", 2, "loss", 7, False, goals, Extinction((1, 2), "draw"))
    assert variant.clock_limit == 7


def test_ends_may_be_switched_off_and_partly_given(tmp_path: Path) -> None:
    off = chess(tmp_path, "ends: {repetition: off, move_limit: off, bare_kings: off}")
    assert (off.ends.repetition_times, off.ends.move_limit, off.ends.bare_kings_draw) == (0, 0, False)
    assert off.clock_limit == HIGHEST_CLOCK
    times = chess(tmp_path, "ends: {repetition: {times: 5}}").ends
    assert (times.repetition_times, times.repetition_result) == (5, "draw")
    result = chess(tmp_path, "ends: {repetition: {result: win}}").ends
    assert (result.repetition_times, result.repetition_result) == (3, "win")
    everything = chess(tmp_path, "royal: {white: k}\nends: {extinction: {pieces: all}}").ends.extinction
    assert everything == Extinction(None, "loss")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("stalemate: lose", r"own.yaml:3: ends.stalemate: expected 'draw', 'win' or 'loss', got 'lose'"),
        ("stalemate: pass", r"own.yaml:3: ends.stalemate: expected 'draw', 'win' or 'loss', got 'pass'$"),
        ("repetition: {count: 3}", r"own.yaml:3: ends.repetition.count: unknown key, did you mean 'times'\?$"),
        ("stalemte: loss", r"own.yaml:3: ends.stalemte: unknown key, did you mean 'stalemate'\?"),
        ("repetition: {times: 1}", r"own.yaml:3: ends.repetition.times: expected at least 2, got 1"),
        ("repetition: {times: 10}", r"ends.repetition.times: expected at most 9, got 10"),
        ("repetition: {times: true}", r"ends.repetition.times: expected a whole number, got true"),
        ("repetition: {reslt: win}", r"ends.repetition.reslt: unknown key, did you mean 'result'\?"),
        ("repetition: never", r"ends.repetition: expected a mapping such as .*, or off, got 'never'"),
        ("move_limit: 0", r"own.yaml:3: ends.move_limit: expected at least 1, got 0"),
        ("move_limit: 1001", r"own.yaml:3: ends.move_limit: expected at most 1000, got 1001"),
        (
            "move_limit: false",
            r"own.yaml:3: ends.move_limit: expected a number of plies from 1 to 1000, or off, got fal",
        ),
        ("bare_kings: win", r"own.yaml:3: ends.bare_kings: expected 'draw' or 'off', got 'win'"),
        ("goals: [{by: k}]", r"own.yaml:3: ends.goals.0: the key 'squares' is missing"),
        (
            "goals: [{by: k, squares: {}}]",
            r"own.yaml:3: ends.goals.0.squares: expected squares of white, black or both",
        ),
        ("goals: [{by: k, squares: {white: []}}]", r"squares.white: expected at least 1 item, got a list of 0"),
        ("goals: [{by: k, squares: {white: [e9]}}]", r"ends.goals.0.squares.white: no square 'e9' on this board"),
        ("goals: [{by: k, squares: {white: [E4]}}]", r"squares.white.0: expected the name of a square, such as e4"),
        ("goals: [{by: kk, squares: {white: [e4]}}]", r"own.yaml:3: ends.goals.0.by: 'k' is there twice"),
        ("goals: [{by: z, squares: {white: [e4]}}]", r"own.yaml:3: ends.goals.0.by: no piece 'z'"),
        (
            "goals: [{by: p, squares: {white: [e8]}}]",
            r"goals.0.by: a pawn of white must promote on e8.*what it promotes",
        ),
        ("goals: [{by: pk, squares: {black: [a1]}}]", r"goals.0.by: a pawn of black must promote on a1"),
        (
            "goals: [{name: The Hill, by: k, squares: {white: [e4]}}]",
            r"goals.0.name: expected one word of small letters",
        ),
        (
            "goals: [{by: k, squares: {white: [e1]}}]",
            r"start: the side to move has a piece on e1, where it has already",
        ),
        ("goals: [{by: k, squares: {black: [e8]}}]", r"start: the game is over before it begins: goal"),
        ("goals: {by: k}", r"own.yaml:3: ends.goals: expected a list, got a mapping"),
        ("extinction: {pieces: k}", r"own.yaml:3: ends.extinction.pieces: 'k' is royal and never captured"),
        ("extinction: {pieces: all}", r"own.yaml:3: ends.extinction.pieces: both sides have a royal"),
        ("extinction: {pieces: qq}", r"own.yaml:3: ends.extinction.pieces: 'q' is there twice"),
        ("extinction: {pieces: z}", r"own.yaml:3: ends.extinction.pieces: no piece 'z'"),
        ("extinction: {result: win}", r"own.yaml:3: ends.extinction: the key 'pieces' is missing"),
        ("extinction: [{pieces: q}]", r"own.yaml:3: ends.extinction: several extinctions are not supported"),
        ("checkmate: draw", r"own.yaml:3: ends.checkmate: checkmate of a royal is always a loss"),
        ("checks: 3", r"own.yaml:3: ends.checks: counters are not supported"),
        ("fifty_moves: off", r"own.yaml:3: ends.fifty_moves: the fifty-move rule is `ends.move_limit`, in plies"),
    ],
)
def test_an_end_that_cannot_be_honoured_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    assert re.search(reason, refusal(tmp_path, f"ends: {{{text}}}"))


def test_extinction_looks_at_both_sides_and_says_what_may_be_listed(tmp_path: Path) -> None:
    one_royal = "royal: {white: k}\nends: {extinction: {pieces: k}}"
    message = refusal(tmp_path, one_royal)
    assert "'k' is royal for white and never captured there; extinction looks at both sides" in message
    assert message.endswith("expected letters that are royal for neither side, or `all`")
    start = "start: rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNB1KBNR w KQkq - 0 1\n"
    message = refusal(tmp_path, f"{start}ends: {{extinction: {{pieces: q}}}}")
    assert "white has no 'Q', so it is extinct from the start" in message
    assert message.endswith("expected letters that both have")
    message = refusal(tmp_path, f"{start}royal: {{white: k}}\nends: {{extinction: {{pieces: q}}}}")
    assert message.endswith("expected letters that both have, or `all`")
