"""What no variant file can say is refused wherever it is written; keys are inherited, removed, laid over by options."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from envs import InvalidVariant, engine_for, load_variant, variant_from_document
from envs.refusals import REFUSALS, REFUSALS_UNDER, refusal_of_key, refusal_of_part, refusal_of_value
from envs.schema_faults import places_of_keys
from envs.variant import Extinction
from tests.envs.own_files import chess, load, refusal

PLACES = {
    "": "{}: 1",
    "pieces": "pieces: {{q: {{{}: 1}}}}",
    "pawns": "pawns: {{{}: 1}}",
    "castling": "castling: {{{}: 1}}",
    "ends": "ends: {{{}: 1}}",
    "board": "board: {{{}: 1}}",
    "options": "options: {{fun: {{{}: 1}}}}",
    "option's ends": "options: {{fun: {{ends: {{{}: 1}}}}}}",
}
CONCEPTS = {
    "drops": "pieces in hand", "hand": "pieces in hand", "pockets": "pieces in hand", "gating": "gating",
    "moves_per_turn": "several moves a turn", "passing": "passing", "cannon": "hoppers", "hopper": "hoppers",
    "bent": "bent moves", "lame": "lame leaps", "optional_capture": "optional capture", "atomic": "explosions",
    "explosions": "explosions", "fog": "hidden information", "hidden": "hidden information", "dice": "chance",
    "royals": "several royals", "walls": "walls", "portals": "teleports", "teleport": "teleports",
    "cylindrical": "wrap round", "toroidal": "wrap round", "counters": "counters", "three_check": "counters",
    "flying_generals": "flying generals", "captured_only": "captured pieces only", "first_move": "only once",
    "must_capture": "obligation to capture", "rifle": "at a distance", "zones": "part of the board",
    "relay": "moves change", "convert": "change sides", "swap": "two pieces at once", "players": "two players",
    "setup": "set up", "hexagonal": "grid of squares", "racing_kings": "giving check", "time_control": "time is no",
}  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_a_concept_that_is_not_supported_is_named_wherever_it_is_written(tmp_path: Path, place: str) -> None:
    for word, concept in CONCEPTS.items():
        message = refusal(tmp_path, PLACES[place].format(word))
        assert re.match(r"own.yaml:3: [a-z.]*" + word + ": ", message), message
        assert concept in message
        assert "did you mean" not in message


def test_every_refusal_names_a_supported_form_and_no_word_is_a_key_or_there_twice() -> None:
    tables = {"": REFUSALS, **REFUSALS_UNDER}
    for section, refusals in tables.items():
        words = [word for entry in refusals for word in entry.words.split()]
        assert len(set(words)) == len(words), section
        if not section:
            assert not set(words) & set(places_of_keys())
        for entry in refusals:
            assert all(refusal_of_key(word, section) == entry.reason for word in entry.words.split())
            assert ("not supported" not in entry.reason) or ("nearest" in entry.reason) or ("; " in entry.reason)


@pytest.mark.parametrize(
    ("key", "concept"),
    [
        ("pieceDrops", "pieces in hand"),
        ("Fog-of-War", "hidden information"),
        ("has_dice", "chance"),
        ("wall_type", "walls"),
    ],
)
def test_capitals_hyphens_and_other_words_around_a_concept_make_no_difference(
    tmp_path: Path, key: str, concept: str
) -> None:
    assert concept in refusal(tmp_path, f"{key}: 1")


def test_words_that_are_no_concept_are_no_refusal() -> None:
    assert refusal_of_key("stalemate", "ends") is None
    assert refusal_of_part("comment") is None
    assert refusal_of_value("fmWfcF") is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("first_steps: 2", r"own.yaml:3: first_steps: unknown key here; `first_steps` belongs under pawns$"),
        ("pawns: {stalemate: win}", r"pawns.stalemate: unknown key here; `stalemate` belongs under ends$"),
        ("ends: {castling: null}", r"ends.castling: unknown key here; `castling` belongs under the top level$"),
        ("ends: {castling: {}}", r"ends.castling: unknown key here; `castling` belongs under the top level$"),
        ("gibberish: 1", r"own.yaml:3: gibberish: unknown key, expected one of name, inventor, .*, options$"),
        (
            "board: {gibberish: 1}",
            r"own.yaml:3: board.gibberish: unknown key, expected one of files, ranks, first_rank$",
        ),
        ("kaslting: {}", r"own.yaml:3: kaslting: unknown key, did you mean 'castling'\?$"),
        ("options: {a: {royal: q}}", r"options.a.royal: an option may change start, pieces, pawns, castling, ends$"),
        ("options: {a: {pawn: {}}}", r"options.a.pawn: an option may change .*, did you mean 'pawns'\?$"),
    ],
)
def test_a_key_in_the_wrong_place_is_told_from_a_misspelled_one(tmp_path: Path, text: str, reason: str) -> None:
    assert re.search(reason, refusal(tmp_path, text))


# --- Inheritance and null ---------------------------------------------------------------------

PARENT = """
extends: chess
pieces: {n: {captures_own: true}}
pawns: {quiet: fsW, promotion: may, first_steps_from: all, promotes_to: {white: q, black: r}}
ends:
  stalemate: loss
  repetition: {times: 4, result: loss}
  move_limit: 60
  bare_kings: off
  goals: [{by: k, squares: {white: [e5], black: [e4]}}]
  extinction: {pieces: qr}
"""


def test_the_new_keys_are_inherited_merged_and_removed_by_null(tmp_path: Path) -> None:
    (tmp_path / "parent.yaml").write_text(PARENT)
    same = load(tmp_path, "extends: parent.yaml")
    assert same.rules_hash == load_variant(tmp_path / "parent.yaml").rules_hash
    changed = load(
        tmp_path,
        "extends: parent.yaml\npawns: {promotes_to: {black: n}}\nends: {repetition: {times: 2}, extinction: "
        "{pieces: all}, goals: []}\nroyal: {white: k}\n",
    )
    assert changed.ends.repetition_times == 2
    assert changed.ends.repetition_result == "loss"
    assert changed.ends.goals == ()
    assert changed.ends.extinction == Extinction(None, "loss")
    assert changed.pawns is not None
    assert changed.pawns.promotes_to == ((1,), (4,))
    bare = load(
        tmp_path,
        "extends: parent.yaml\npieces: {n: {captures_own: null}}\npawns: {quiet: null, promotion: null, "
        "first_steps_from: [2], promotes_to: qrbn}\nends: null\n",
    )
    assert bare.rules_hash == load_variant("chess").rules_hash


def test_an_inherited_fault_is_shown_where_it_was_written(tmp_path: Path) -> None:
    (tmp_path / "parent.yaml").write_text(PARENT)
    message = refusal(tmp_path, "royal: {white: k, black: q}\nstart: " + "8/" * 7 + "8 w - - 0 1", "parent.yaml")
    assert message.startswith("own.yaml:4: start: ")
    assert refusal(tmp_path, "pieces: {r: null}", "parent.yaml").startswith("chess.yaml:3: start: ")
    message = refusal(tmp_path, "start: [rnbqkbnr/pppppppp/8/4K3/8/8/PPPPPPPP/RNBQ1BNR b - - 0 1]", "parent.yaml")
    assert message.startswith("chess.yaml:")  # castling, whose king is not at home


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("castlng: null", r"own.yaml:3: castlng: unknown key, did you mean 'castling'\?$"),
        ("drops: null", r"own.yaml:3: drops: pieces in hand are not supported"),
        ("pawns: {promotes_too: null}", r"own.yaml:3: pawns.promotes_too: unknown key, did you mean 'promotes_to'\?$"),
        ("ends: {stalmate: null}", r"own.yaml:3: ends.stalmate: unknown key, did you mean 'stalemate'\?$"),
        ("pieces: {q: {overuns: null}}", r"own.yaml:3: pieces.q.overuns: unknown key, did you mean 'overruns'\?$"),
        ("castling: {kingside: {rok: null}}", r"castling.kingside.rok: unknown key, did you mean 'rook'\?$"),
        ("pieces: {z: null}", r"own.yaml:3: pieces.z: no piece 'z' to remove, the pieces are: k, q, r, b, n, p$"),
        ("options: {z: null}", r"own.yaml:3: options.z: no option 'z' to remove, the options are: none$"),
        (
            "options:\n  a:\n    pawns: {first_stepz: null, first_steps: 1}",
            r"own.yaml:5: options.a.pawns.first_stepz: unk",
        ),
        ("options: {a: {pieces: {z: null}, pawns: {first_steps: 1}}}", r"own.yaml:3: options.a.pieces.z: no piece 'z'"),
    ],
)
def test_an_unknown_key_is_refused_though_null_would_remove_it(tmp_path: Path, text: str, reason: str) -> None:
    assert re.search(reason, refusal(tmp_path, text))


def test_an_unknown_key_of_a_parent_is_refused_though_the_child_removes_it(tmp_path: Path) -> None:
    (tmp_path / "parent.yaml").write_text("extends: chess\nends: {stalmate: loss}\n")
    message = refusal(tmp_path, "ends: null", "parent.yaml")
    assert message.startswith("parent.yaml:2: ends.stalmate: unknown key")


def test_null_for_a_known_key_that_the_parent_lacks_changes_nothing(tmp_path: Path) -> None:
    text = (
        "ends: {extinction: null, goals: null}\npieces: {q: {overruns: null}}\npawns: {promotes_on: null}\nyear: null"
    )
    assert chess(tmp_path, text).rules_hash == load_variant("chess").rules_hash


def test_a_parent_of_the_same_name_is_told_apart(tmp_path: Path) -> None:
    (tmp_path / "gardner.yaml").write_text("name: Own\nextends: gardner\npieces: {q: null}\n")
    with pytest.raises(InvalidVariant, match=r"^variants/gardner.yaml:\d+: start: .* \(gardner.yaml inherits this\)$"):
        load_variant(tmp_path / "gardner.yaml")


# --- Options over the new keys ----------------------------------------------------------------

OPTIONS = """
options:
  shuffled:
    start:
      - rnbkqbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBKQBNR w - - 0 1
      - rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w - - 0 1
  cannibals: {pieces: {n: {captures_own: true}, p: {captures_own: true}}}
  crabs: {pawns: {quiet: fsW, promotion: may, promotes_to: {white: q}}}
  still: {ends: {stalemate: loss, repetition: off, move_limit: off}}
  no_castling: {castling: null, start: rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w - - 0 1}
  hill: {ends: {goals: [{name: hill, by: k, squares: {white: [e5], black: [e4]}}], extinction: {pieces: q}}}
"""


def test_options_change_the_new_keys_and_nothing_else(tmp_path: Path) -> None:
    plain = chess(tmp_path, OPTIONS)
    assert plain.rules_hash == load_variant("chess").rules_hash
    names = ["shuffled", "cannibals", "crabs", "still", "no_castling", "hill"]
    alone = [chess(tmp_path, OPTIONS, {name: True}) for name in names]
    assert len({variant.rules_hash for variant in [plain, *alone]}) == 7
    assert len(alone[0].start_fens) == 2
    assert [piece.letter for piece in alone[1].piece_types if piece.captures_own] == ["N", "P"]
    assert alone[2].pawns is not None
    assert alone[2].pawns.promotes_to == ((1,), (1, 2, 3, 4))
    assert (alone[3].ends.stalemate, alone[3].ends.repetition_times, alone[3].ends.move_limit) == ("loss", 0, 0)
    assert alone[4].castlings == (None,) * 4
    assert [goal.name for goal in alone[5].ends.goals] == ["hill"]
    together = chess(tmp_path, OPTIONS, dict.fromkeys(names, True))
    assert together.options == dict.fromkeys(sorted(names), True)
    again = variant_from_document(together.document, together.options, name=together.name)
    assert again.rules_hash == together.rules_hash


def test_the_actions_are_those_of_every_combination_of_options(tmp_path: Path) -> None:
    text = "extends: gardner\noptions: {a: {pieces: {n: {moves: NZ}}}, b: {pawns: {quiet: fsW, promotion: may}}}"
    games = [engine_for(load(tmp_path, text, dict.fromkeys(chosen, True))) for chosen in ("", "a", "b", "ab")]
    assert len({game.encoding.hash for game in games}) == 1


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ("ends: {stalemate: lose}", r"^own.yaml:3: options.a.ends.stalemate: expected .* \(with the option 'a' on\)$"),
        ("pawns: {promotes_on: [9]}", r"^own.yaml:3: options.a.pawns.promotes_on: no rank 9.*the option 'a' on\)$"),
        ("pawns: null", r"^chess.yaml:\d+: pieces.p: .* \(own.yaml inherits this\) \(with the option 'a' on\)$"),
    ],
)
def test_a_fault_that_an_option_makes_names_the_option(tmp_path: Path, option: str, reason: str) -> None:
    assert re.search(reason, refusal(tmp_path, f"options: {{a: {{{option}}}}}"))


def test_options_that_exclude_each_other_are_both_named(tmp_path: Path) -> None:
    text = "options:\n  a: {pieces: {q: {captures_own: true}}}\n  b: {pieces: {q: {moves: mQ}}}"
    plain = chess(tmp_path, text)
    with pytest.raises(InvalidVariant, match=r"^own: options a and b together: pieces.q.captures_own: needs a move"):
        engine_for(plain)
    expected = r"^own.yaml: options a and b together: own.yaml:4: options.a.pieces.q.captures_own: needs a move"
    with pytest.raises(InvalidVariant, match=expected):
        chess(tmp_path, text, {"a": True, "b": True})


def test_documents_that_no_file_could_hold_are_refused() -> None:
    document = dict(load_variant("gardner").document)
    deep: list[object] = []
    for _ in range(5000):
        deep = [deep]
    for broken in (None, [], "chess", {1: 2}, document | {"options": {"a": deep}}, document | {"year": {3}}, {}):
        with pytest.raises(InvalidVariant):
            variant_from_document(broken)  # type: ignore[arg-type]
