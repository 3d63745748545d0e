"""Keys of a variant file, one by one: defaults, what they build, how they are refused. Castling and ends: next door."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from envs import load_variant
from envs.schema import FORMS, VariantSchema
from envs.schema_faults import inner_models
from envs.variant import Ends
from tests.envs.own_files import chess, letters, load, refusal

pytestmark = pytest.mark.nojit

PLAIN = "start: rnbqk/ppppp/5/PPPPP/RNBQK w - - 0 1"
TINY = """
board: {files: 4, ranks: 5}
start: rnk1/pppp/4/PPPP/RNK1 w - - 0 1
royal: k
pieces:
  k: {name: king, moves: K}
  r: {name: rook, moves: R}
  n: {name: knight, moves: N}
  p: {name: pawn}
pawns: {piece: p}
"""


def all_models(model: type[BaseModel] = VariantSchema) -> set[type[BaseModel]]:
    inner = {found for field in model.model_fields.values() for found in inner_models(field.annotation)}
    return {model}.union(*(all_models(found) for found in inner))


# --- The schema -------------------------------------------------------------------------------


def test_every_key_of_the_schema_says_what_it_means_and_what_its_default_is() -> None:
    models = all_models()
    assert len(models) == 15
    for model in models:
        assert model.__doc__
        for key, field in model.model_fields.items():
            place = f"{model.__name__}.{key}"
            assert field.description is not None, place
            assert field.description.endswith("."), place
            assert len(field.description) > 20, place
            is_name = key in ("inventor", "year", "source", "white", "black")
            assert field.is_required() or is_name or "default" in field.description, place


def test_a_file_without_the_optional_keys_has_the_defaults(tmp_path: Path) -> None:
    tiny = load(tmp_path, TINY)
    assert tiny.title == tiny.name == "own"
    assert tiny.board.first_rank == 1
    assert tiny.royals == (0, 0)
    assert tiny.castlings == (None,) * 4
    assert tiny.ends == Ends("draw", 3, "draw", 100, True, (), None)
    assert tiny.options == {}
    assert not any(piece.captures_own or piece.fires_through_own for piece in tiny.piece_types)
    pawns = tiny.pawns
    assert pawns is not None
    assert (pawns.quiet, pawns.captures, pawns.first_steps) == (((0, 1),), ((-1, 1), (1, 1)), 1)
    assert (pawns.start_ranks, pawns.promotion_ranks) == (((), ()), ((4,), (0,)))
    assert pawns.must_promote
    assert [letters(tiny, side) for side in pawns.promotes_to] == ["RN", "RN"]


def test_a_value_of_another_form_is_refused_with_the_forms_it_may_have(tmp_path: Path) -> None:
    at = {"start": "start: 7", "royal": "royal: 7", "repetition": "ends: {repetition: 7}", "move_limit":
          "ends: {move_limit: 1.5}", "promotes_to": "pawns: {promotes_to: 7}",
          "first_steps_from": "pawns: {first_steps_from: 7}"}  # fmt: skip
    assert at.keys() == FORMS.keys()
    for key, text in at.items():
        assert f"{key}: expected {FORMS[key]}, got " in refusal(tmp_path, text)


# --- start ------------------------------------------------------------------------------------

OTHER_START = "rnbkq/ppppp/5/PPPPP/RNBKQ w - -"


def test_a_list_of_starts_is_kept_in_order_and_in_normal_form(tmp_path: Path) -> None:
    text = f"extends: gardner\nstart:\n  - rnbqk/ppppp/5/PPPPP/RNBQK w - -\n  - {OTHER_START}"
    variant = load(tmp_path, text)
    assert variant.start_fens == (load_variant("gardner").start_fen, f"{OTHER_START} 0 1")
    assert variant.start_fen == variant.start_fens[0]
    assert load(tmp_path, "extends: gardner").rules_hash != variant.rules_hash
    one = load(tmp_path, f"extends: gardner\n{PLAIN.replace('start: ', 'start: [')}]")
    assert one.rules_hash == load_variant("gardner").rules_hash


@pytest.mark.parametrize(
    ("starts", "reason"),
    [
        ([OTHER_START, "rnbqk/ppppp/5/PPPPP/RNBQK w - -", OTHER_START + " 0 1"], "6: start.2: the same start position"),
        ([OTHER_START, "rnbqk/ppppp/5/PPPPP/RNBQ1 w - -"], "5: start.1: no royal piece 'K' for white"),
        (
            [OTHER_START, "rnbqk/ppppp/5/PPPPP/RNKQK w - -"],
            r"start.1: 2 royal pieces 'K' for white \(c1, e1\).*extinct",
        ),
        ([OTHER_START, "rnbqk/pp*pp/5/PP*PP/RNBQK w - -"], "start.1: the holes .* as in the first start position"),
        ([OTHER_START, "rnbqk/ppppp/5/PPPPP/RNBXK w - -"], "start.1: unknown piece letter 'X'"),
        ([OTHER_START, "rnbqk/ppppp/5/PPPP/RNBQK w - -"], "start.1: rank 2 has 4 files, expected 5"),
        ([OTHER_START, "rnbqk/ppppp/5/PPPPP w - -"], "start.1: expected 5 rows as board.ranks says, got 4"),
        ([OTHER_START, "4k/5/5/5/Q3K b - - 0 1", "k4/2Q2/5/5/4K b - - 0 1"], "start.2: the game is over .* stalemate"),
        ([OTHER_START, "rnbqk/ppppp/5/PPPPP/RNBQK w K -"], "start.1: castling rights"),
        ([OTHER_START, "rnbqk/ppppp/5/PPPPP/RNBQK[] w - -"], "start.1: pieces in hand are not supported"),
    ],
)
def test_a_fault_in_a_list_of_starts_names_its_entry(tmp_path: Path, starts: list[str], reason: str) -> None:
    listed = "".join(f"\n  - {start}" for start in starts)
    assert re.search(reason, refusal(tmp_path, f"start:{listed}", "gardner").replace("own.yaml:", ""))


def test_the_number_of_starts_has_a_bound(tmp_path: Path) -> None:
    message = refusal(tmp_path, f"start: [{', '.join(['a'] * 1001)}]")
    assert message == "own.yaml:3: start: expected at most 1000 entries, got a list of 1001"
    assert "start: expected at least 1 item, got a list of 0" in refusal(tmp_path, "start: []")


# --- royal ------------------------------------------------------------------------------------

MIXED_START = (
    "start: 1ngk/pppp/4/PPPP/RNK1 w - - 0 1\npieces: {g: {name: guard, moves: F}}\nroyal: {white: k, black: g}"
)


def test_each_side_may_have_its_own_royal_or_none(tmp_path: Path) -> None:
    (tmp_path / "tiny.yaml").write_text(TINY)
    mixed = load(tmp_path, f"extends: tiny.yaml\n{MIXED_START}")
    assert [letters(mixed, (royal,)) for royal in mixed.royals if royal is not None] == ["K", "G"]
    assert [letters(mixed, side) for side in mixed.pawns.promotes_to] == ["RN", "RN"]  # type: ignore[union-attr]
    assert mixed.ends.bare_kings_draw
    horde = chess(tmp_path, "royal: {black: null, white: k}\nends: {extinction: {pieces: all}}")
    assert horde.royals == (0, None)
    assert not horde.ends.bare_kings_draw
    none = chess(tmp_path, "royal: null\nends: {extinction: {pieces: k}}")
    assert none.royals == (None, None)
    assert letters(none, none.pawns.promotes_to[0]) == "QRBN"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("royal: kq", r"own.yaml:3: royal: expected one small letter .*, got 'kq'; several royals a side are not supp"),
        ("royal: [k, q]", r"own.yaml:3: royal: several royals a side are not supported; .* `ends.extinction`"),
        ("royal: off", r"own.yaml:3: royal: expected one small letter .*, got 'off'; for none write `royal: null`$"),
        ("royal: none", r"own.yaml:3: royal: .* got 'none'; for none write `royal: null`$"),
        ("royal: K", r"own.yaml:3: royal: expected one small letter .*, got 'K', did you mean 'k'\?$"),
        ("royal: {}", r"own.yaml:3: royal: expected white, black or both"),
        ("royal: {white: x}", r"own.yaml:3: royal.white: no piece 'x', the pieces are: k q r b n p"),
        ("royal: {whte: k}", r"own.yaml:3: royal.whte: unknown key, did you mean 'white'\?"),
        ("royal: p", r"own.yaml:3: royal: a royal pawn is not supported"),
        ("royal: {white: k, black: p}", r"own.yaml:3: royal.black: a royal pawn is not supported"),
        ("royal: n", r"2 royal pieces 'N' for white \(b1, g1\), expected exactly one"),
        ("royal: null", r"own.yaml:3: royal: white has no royal and could never be beaten"),
        ("royal: {white: k}", r"own.yaml:3: royal: black has no royal .* expected a goal of white in `ends.goals`"),
        ("royal: {white: k}\nends: {goals: [{by: k, squares: {black: [e4]}}]}", r"royal: black has no royal"),
        ("royal: {white: k}\nends: {extinction: {pieces: q, result: draw}}", r"royal: black has no royal"),
        ("royal: {white: k, black: q}", r"pawns.promotes_to: 'q' is the side's royal or the pawn itself"),
        ("royals: k", r"own.yaml:3: royals: several royals"),
        ("pieces: {k: {royal: true}}", r"own.yaml:3: pieces.k.royal: the royal is named once for the game"),
    ],
)
def test_a_royal_that_cannot_be_honoured_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    assert re.search(reason, refusal(tmp_path, text))


@pytest.mark.parametrize(
    "ends",
    [
        "goals: [{by: k, squares: {white: [e8], black: [e1]}}]",
        "extinction: {pieces: q}",
        "extinction: {pieces: all, result: win}",
        "stalemate: loss",
        "stalemate: win",
    ],
)
def test_a_side_without_a_royal_can_be_beaten_by_any_other_end(tmp_path: Path, ends: str) -> None:
    start = "start: rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w - - 0 1"
    ends = ends.replace("[e8]", "[e5]").replace("[e1]", "[e4]")
    assert chess(tmp_path, f"{start}\ncastling: null\nroyal: null\nends: {{{ends}}}").royals == (None, None)


# --- pieces -----------------------------------------------------------------------------------


def test_captures_own_is_a_piece_key_and_the_pawns_too(tmp_path: Path) -> None:
    variant = chess(tmp_path, "pieces: {n: {captures_own: true}, p: {captures_own: true}, k: {captures_own: true}}")
    assert [piece.letter for piece in variant.piece_types if piece.captures_own] == ["K", "N", "P"]
    assert variant.rules_hash != load_variant("chess").rules_hash


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("pieces: {q: {captures_own: yes}}", r"own.yaml:3: pieces.q.captures_own: expected true or false, got 'yes'"),
        ("pieces: {q: {moves: mQ, captures_own: true}}", r"captures_own: needs a move that captures, got moves 'mQ'"),
        ("pieces: {q: {capture_own: true}}", r"pieces.q.capture_own: unknown key, did you mean 'captures_own'\?"),
        ("pieces: {p: {overruns: D}}", r"own.yaml:3: pieces.p.overruns: the pawn's moves are given under `pawns`"),
        ("pieces: {q: {moves: cannon}}", r"own.yaml:3: pieces.q.moves: hoppers are not supported; the nearest"),
        ("pieces: {q: {moves: 't[FR]'}}", r"own.yaml:3: pieces.q.moves: .*moves of several legs"),
        ("pieces: {q: {moves: 'F(W)'}}", r"bent and chained moves"),
        ("pieces: {q: {moves: K@}}", r"drops \(@\) are not supported"),
        ("pieces: {q: {moves: KisO2}}", r"castling \(O\) .* has the key `castling`"),
        ("pieces: {q: {moves: U}}", r"universal leaps \(U\), teleports, are not supported"),
        ("pieces: {q: {moves: zFF}}", r"bent riders \(z\)"),
        ("pieces: {q: {moves: dQ}}", r"the key `captures_own` allows them"),
        ("pawns: null", r"pieces.p: the key 'moves' is missing; without `pawns` every piece is an ordinary one"),
        (
            f"pieces: {{{', '.join(f'{letter}: {{name: x, moves: W}}' for letter in 'acdefghijl')}}}",
            r"own.yaml:3: pieces: expected at most 15 entries, got 16$",
        ),
        ("pieces: {kk: {name: x, moves: W}}", r"own.yaml:3: pieces.kk: expected one small letter of a piece"),
    ],
)
def test_a_piece_key_that_cannot_be_honoured_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    assert re.search(reason, refusal(tmp_path, text))


# --- pawns ------------------------------------------------------------------------------------


def test_pawns_have_the_steps_ranks_and_promotions_of_their_keys(tmp_path: Path) -> None:
    text = "quiet: fsW, captures: fFfN, first_steps: 3, first_steps_from: [3, 2], promotes_on: [7, 6], promotion: may"
    pawns = chess(tmp_path, f"pawns: {{{text}}}").pawns
    assert pawns is not None
    assert set(pawns.quiet) == {(0, 1), (1, 0), (-1, 0)}
    assert set(pawns.captures) == {(1, 1), (-1, 1), (1, 2), (-1, 2)}
    assert (pawns.forward, pawns.can_return, pawns.first_steps) == (((0, 1),), True, 3)
    assert (pawns.start_ranks, pawns.promotion_ranks) == (((1, 2), (5, 6)), ((5, 6), (1, 2)))
    assert not pawns.must_promote


@pytest.mark.parametrize(
    ("text", "ranks"),
    [
        ("promotes_on: [8]", ((0, 1, 2, 3, 4, 5, 6), (1, 2, 3, 4, 5, 6, 7))),
        ("promotes_on: [6]", ((0, 1, 2, 3, 4), (3, 4, 5, 6, 7))),
        ("promotes_on: [6], promotion: may", (tuple(range(8)), tuple(range(8)))),
    ],
)
def test_first_steps_from_all_is_every_rank_where_a_pawn_may_stand(tmp_path: Path, text: str, ranks: Any) -> None:
    pawns = chess(tmp_path, f"pawns: {{first_steps_from: all, {text}}}").pawns
    assert pawns is not None
    assert pawns.start_ranks == ranks


def test_each_side_may_promote_to_its_own_pieces(tmp_path: Path) -> None:
    variant = chess(tmp_path, "pawns: {promotes_to: {white: rq, black: n}}")
    assert [letters(variant, side) for side in variant.pawns.promotes_to] == ["RQ", "N"]  # type: ignore[union-attr]
    variant = chess(tmp_path, "pawns: {promotes_to: {white: rq}}")
    assert [letters(variant, side) for side in variant.pawns.promotes_to] == ["RQ", "QRBN"]  # type: ignore[union-attr]


def test_the_default_promotions_are_the_pieces_of_all_start_positions(tmp_path: Path) -> None:
    text = f"{TINY}".replace("start: rnk1", "start: [rk2").replace(
        "RNK1 w - - 0 1", "RK2 w - - 0 1, nnk1/pppp/4/PPPP/NNK1 w - - 0 1]"
    )
    variant = load(tmp_path, text)
    assert letters(variant, variant.pawns.promotes_to[0]) == "RN"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("quiet: fW2", r"own.yaml:3: pawns.quiet: 'fW2': pawns step and leap once; `first_steps` repeats"),
        ("quiet: mfW", r"own.yaml:3: pawns.quiet: 'mfW': write it without m and c"),
        ("captures: cfF", r"own.yaml:3: pawns.captures: 'cfF': write it without m and c"),
        ("captures: pR", r"own.yaml:3: pawns.captures: .*hoppers"),
        ("quiet: 3", r"own.yaml:3: pawns.quiet: expected a text, got 3"),
        ("quiet: fWfD", r"pawns.quiet: two steps lead to the square \(0, 2\)"),
        ("captures: fWfF", r"own.yaml:3: pawns.captures: a quiet move and a capture both lead to the square \(0, 1\)"),
        ("quiet: fF", r"pawns.captures: a quiet move and a capture both lead to"),
        ("captures: fD", r"a quiet move and a capture both lead to the square \(0, 2\)"),
        ("quiet: sW", r"first_steps: needs a quiet step that leads forward, got quiet 'sW'"),
        ("promotes_on: [7, 8]", r"own.yaml:3: pawns.promotes_on: with `promotion: must` .*, 7, .*`promotion: may`"),
        ("first_steps: 0", r"own.yaml:3: pawns.first_steps: expected at least 1, got 0"),
        ("first_steps: 8", r"own.yaml:3: pawns.first_steps: expected at most 7, got 8"),
        (
            "first_steps_from: any",
            r"own.yaml:3: pawns.first_steps_from: expected a list of ranks such as \[2\], or all",
        ),
        ("first_steps_from: [9]", r"own.yaml:3: pawns.first_steps_from: no rank 9, the ranks are 1 to 8"),
        ("first_steps_from: [8]", r"own.yaml:3: pawns.first_steps_from: a pawn there has reached its promotion rank"),
        ("promotion: never", r"own.yaml:3: pawns.promotion: expected 'must' or 'may', got 'never'"),
        ("promotion: captured", r"own.yaml:3: pawns.promotion: promotion to captured pieces only is not supported"),
        ("promotes_to: captured", r"own.yaml:3: pawns.promotes_to: promotion to captured pieces only"),
        ("promotes_to: Q", r"own.yaml:3: pawns.promotes_to: expected small letters of pieces in one word"),
        ("promotes_to: {white: qk}", r"own.yaml:3: pawns.promotes_to.white: 'k' is the side's royal"),
        ("promotes_to: {black: z}", r"own.yaml:3: pawns.promotes_to.black: no piece 'z'"),
        ("white: {quiet: fW}", r"own.yaml:3: pawns.white: pawns move alike for both sides"),
        ("berolina: true", r"own.yaml:3: pawns.berolina: .*`quiet: fF` and `captures: fW`"),
        ("en_passant: off", r"own.yaml:3: pawns.en_passant: en passant cannot be switched"),
    ],
)
def test_a_pawn_key_that_cannot_be_honoured_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    assert re.search(reason, refusal(tmp_path, f"pawns: {{{text}}}"))


def test_steps_that_would_be_ambiguous_with_first_steps_are_fine_without(tmp_path: Path) -> None:
    pawns = chess(tmp_path, "pawns: {quiet: fWfDfF, captures: fWfF, first_steps: 1}").pawns
    assert pawns is not None
    assert len(pawns.quiet) == 4


def test_more_than_one_kind_of_pawn_and_pawns_that_never_promote_are_refused(tmp_path: Path) -> None:
    assert "pawns: more than one kind of pawn is not supported" in refusal(tmp_path, "pawns: [{piece: p}]")
    start = "start: 4k3/pppppppp/8/8/8/8/PPPPPPPP/4K3 w - - 0 1"
    gone = "castling: null\npieces: {q: null, r: null, b: null, n: null}\npawns: {promotes_to: null}"
    assert "pawns.promotes_to: the start position has no piece" in refusal(tmp_path, f"{start}\n{gone}")
