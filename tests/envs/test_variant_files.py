"""The games of the rules page are built as it says, own files work alike, faults are refused with their place."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from envs import (
    InvalidVariant,
    Position,
    engine_for,
    list_variants,
    load_variant,
    variant_from_document,
)
from envs.variant import Ends, Variant
from envs.variant_files import VARIANTS_FOLDER
from tests.envs.random_games import all_settings, setting_name

KING = {(x, y) for x in (-1, 0, 1) for y in (-1, 0, 1)} - {(0, 0)}
KNIGHT = {(x, y) for x in (-2, -1, 1, 2) for y in (-2, -1, 1, 2) if abs(x) != abs(y)}
CAMEL = {(x, y) for x in (-3, -1, 1, 3) for y in (-3, -1, 1, 3) if abs(x) != abs(y)}
ORTHOGONAL = {(1, 0), (-1, 0), (0, 1), (0, -1)}
DIAGONAL = {(1, 1), (1, -1), (-1, 1), (-1, -1)}
TWICE = {(2 * x, 2 * y) for x, y in KING}
TWICE_ORTHOGONAL = {(2 * x, 2 * y) for x, y in ORTHOGONAL}
TWICE_DIAGONAL = {(2 * x, 2 * y) for x, y in DIAGONAL}

Rays = set[tuple[tuple[int, int], int, str, str]]


def rays(steps: set[tuple[int, int]], reach: int = 1, modes: str = "mc", special: str = "") -> Rays:
    return {(step, reach, modes, special) for step in steps}


SLIDE = 0
ORTHODOX = {
    "K": rays(KING),
    "Q": rays(KING, SLIDE),
    "R": rays(ORTHOGONAL, SLIDE),
    "B": rays(DIAGONAL, SLIDE),
    "N": rays(KNIGHT),
    "P": set(),
}
REALMS_ROOK = rays(TWICE_ORTHOGONAL, SLIDE, "m") | rays(ORTHOGONAL, SLIDE, "c")
PIECES: dict[str, dict[str, Rays]] = {
    "chess": ORTHODOX,
    "gardner": ORTHODOX,
    "asylum": ORTHODOX
    | {
        "M": rays(DIAGONAL, SLIDE) | rays(CAMEL),
        "N": rays(KNIGHT | KING) | rays(TWICE, special="overruns"),
        "R": rays(ORTHOGONAL, SLIDE, special="fires through"),
    },
    "palace_ninja_guards": ORTHODOX | {"G": rays(DIAGONAL) | rays(TWICE_DIAGONAL, special="overruns")},
    "separate_realms_2": {
        "K": ORTHODOX["K"],
        "P": set(),
        "R": REALMS_ROOK,
        "B": rays(TWICE_DIAGONAL, SLIDE, "m") | rays(DIAGONAL, SLIDE, "c"),
        "G": rays(CAMEL) | rays(KNIGHT, modes="c"),
        "Q": REALMS_ROOK | rays(DIAGONAL, SLIDE),
    },
}
STARTS = {
    "chess": "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
    "gardner": "rnbqk/ppppp/5/PPPPP/RNBQK w - - 0 1",
    "asylum": "rnbmqkmbnr/pppppppppp/10/10/10/10/10/10/PPPPPPPPPP/RNBMQKMBNR w KQkq - 0 1",
    "palace_ninja_guards": "***gg***/rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR/***GG*** w KQkq - 0 1",
    "separate_realms_2": "rgbqkbgr/pppppppp/8/8/8/8/PPPPPPPP/RGBQKBGR w KQkq - 0 1",
}
NUM_SQUARES = {"chess": 64, "gardner": 25, "asylum": 100, "palace_ninja_guards": 68, "separate_realms_2": 64}
NUM_ACTIONS = {"chess": 1880, "asylum": 4160, "palace_ninja_guards": 2062, "separate_realms_2": 2160}
PROMOTIONS = {"chess": "QRBN", "gardner": "QRBN", "asylum": "QMBNR", "palace_ninja_guards": "QRBNG",
              "separate_realms_2": "QRBG"}  # fmt: skip
FIRST_STEPS = {"chess": 2, "gardner": 1, "asylum": 3, "palace_ninja_guards": 2, "separate_realms_2": 2}
ORTHODOX_ENDS = Ends("draw", 3, "draw", 100, True, (), None)
ORTHODOX_CASTLINGS = ["e1g1 h1f1", "e1c1 a1d1", "e8g8 h8f8", "e8c8 a8d8"]
CASTLINGS = {
    "chess": ORTHODOX_CASTLINGS,
    "gardner": [None] * 4,
    "asylum": ["f1i1 j1h1", "f1c1 a1d1", "f10i10 j10h10", "f10c10 a10d10"],
    "palace_ninja_guards": ORTHODOX_CASTLINGS,
    "separate_realms_2": ORTHODOX_CASTLINGS,
}


def test_the_games_of_the_rules_page_are_built_in() -> None:
    assert set(STARTS) <= set(list_variants())
    assert list_variants() == sorted(list_variants())


@pytest.mark.parametrize("game", STARTS)
def test_a_built_in_game_has_the_array_and_the_pieces_of_its_rules(game: str) -> None:
    variant = load_variant(game)
    assert variant.start_fen == STARTS[game]
    assert Position(variant).fen() == STARTS[game]
    assert variant.num_squares == NUM_SQUARES[game]
    found = {
        piece.letter: {
            (
                ray.step,
                ray.reach,
                "m" * ray.quiet + "c" * ray.capture,
                "fires through" * ray.fires_through + "overruns" * ray.overruns,
            )
            for ray in piece.rays
        }
        for piece in variant.piece_types
    }
    assert found == PIECES[game]


@pytest.mark.parametrize("game", STARTS)
def test_a_built_in_game_has_the_pawns_and_castlings_of_its_rules(game: str) -> None:
    variant = load_variant(game)
    pawns, names = variant.pawns, variant.board.names
    assert pawns is not None
    for targets in pawns.promotes_to:
        assert "".join(variant.piece_types[number].letter for number in targets) == PROMOTIONS[game]
    assert pawns.first_steps == FIRST_STEPS[game]
    assert (pawns.quiet, pawns.captures, pawns.must_promote) == (((0, 1),), ((-1, 1), (1, 1)), True)
    castlings = [
        c and f"{names[c.king_from]}{names[c.king_to]} {names[c.partner_from]}{names[c.partner_to]}"
        for c in variant.castlings
    ]
    assert castlings == CASTLINGS[game]
    for castling, side in zip(variant.castlings, (0, 0, 1, 1)):
        if castling is not None:
            assert castling.king_types == (variant.royals[side],)
            assert [variant.piece_types[number].letter for number in castling.partner_types] == ["R"]
    assert variant.ends == ORTHODOX_ENDS


@pytest.mark.parametrize("game", NUM_ACTIONS)
def test_the_number_of_actions_is_known(game: str) -> None:
    assert engine_for(load_variant(game)).num_actions == NUM_ACTIONS[game]


@pytest.mark.parametrize("game", ["asylum", "palace_ninja_guards", "separate_realms_2"])
def test_an_inventors_game_names_its_inventor_year_source_and_readings(game: str) -> None:
    document = load_variant(game).document
    assert document["inventor"] in ("Charles Daniel", "Joerg Knappen")
    assert document["year"] in (2002, 2007)
    assert document["source"]
    assert len(document["readings"]) >= 2


def test_options_are_off_unless_switched_on_and_change_only_their_rule() -> None:
    asylum = load_variant("asylum")
    assert asylum.options == {"friendly_fire": False}
    assert not any(piece.fires_through_own for piece in asylum.piece_types)
    friendly = load_variant("asylum", {"friendly_fire": True})
    assert [piece.letter for piece in friendly.piece_types if piece.fires_through_own] == ["R"]
    scepter = load_variant("palace_ninja_guards", {"scepter": True})
    names = scepter.board.names
    (goal,) = scepter.ends.goals
    assert (goal.name, goal.pieces) == ("scepter", (scepter.type_by_letter["K"],))
    assert [[names[square] for square in squares] for squares in goal.squares] == [["d9", "e9"], ["d0", "e0"]]
    assert not scepter.ends.bare_kings_draw
    assert load_variant("asylum", {"friendly_fire": False}).rules_hash == asylum.rules_hash


def test_every_setting_has_its_own_rules_hash_and_options_leave_the_actions_alone() -> None:
    settings = all_settings()
    assert len({variant.rules_hash for variant in settings}) == len(settings)
    for variant in settings:
        assert engine_for(variant).encoding.hash == engine_for(load_variant(variant.name)).encoding.hash


@pytest.mark.parametrize("variant", all_settings(), ids=setting_name)
def test_a_game_is_rebuilt_from_its_document_alone(variant: Variant) -> None:
    document = json.loads(json.dumps(variant.document))
    again = variant_from_document(document, variant.options, name=variant.name)
    assert again.rules_hash == variant.rules_hash
    assert again.start_fen == variant.start_fen


@pytest.mark.parametrize("game", STARTS)
def test_a_file_by_path_is_the_game_of_the_same_name(game: str, tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    shutil.copy(VARIANTS_FOLDER / f"{game}.yaml", own)
    variant = load_variant(own)
    assert variant.name == "own"
    assert variant.rules_hash == load_variant(game).rules_hash
    assert Position(str(own)).legal_moves() == Position(game).legal_moves()


def test_a_file_may_extend_a_file_beside_it_and_null_removes(tmp_path: Path) -> None:
    (tmp_path / "parent.yaml").write_text("name: Parent\nextends: chess\npieces: {n: {moves: NW}}\n")
    start = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w - - 0 1"
    text = f"name: Child\nextends: parent.yaml\ncastling: null\nstart: {start}\n"
    (tmp_path / "child.yaml").write_text(text)
    child = load_variant(tmp_path / "child.yaml")
    assert child.castlings == (None,) * 4
    assert len(child.piece_types[child.type_by_letter["N"]].rays) == 12


def test_names_and_sources_do_not_change_the_rules_hash_but_rules_do(tmp_path: Path) -> None:
    chess = load_variant("chess")

    def load(text: str) -> Variant:
        (tmp_path / "own.yaml").write_text(f"name: Own\nextends: chess\n{text}")
        return load_variant(tmp_path / "own.yaml")

    assert load("source: mine\npieces: {q: {name: lady}}\n").rules_hash == chess.rules_hash
    for text in (
        "pieces: {q: {moves: R}}\n",
        "pieces: {n: {moves: ND}}\n",
        "pawns: {first_steps: 3}\n",
        "pawns: {promotes_to: qr}\n",
        "ends: {bare_kings: off}\n",
        "castling: {kingside: {king_to: f, rook: h, rook_to: e}}\n".replace("king_to: f", "king_to: g"),
        "castling: {queenside: {king_to: b, rook: a, rook_to: c}}\n",
        "start: rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR b KQkq - 0 1\n",
    ):
        assert load(text).rules_hash != chess.rules_hash, text


# --- What is refused --------------------------------------------------------------------------

ERRORS = [
    ("pieces: {q: {movs: Q}}", r"own.yaml:3: pieces.q.movs: unknown key, did you mean 'moves'\?"),
    ("piece: {}", r"own.yaml:3: piece: unknown key, did you mean 'pieces'\?"),
    ("drops: true", r"own.yaml:3: drops: pieces in hand are not supported; the nearest supported form is"),
    ("pieces: {q: {moves: Q, hoppers: pR}}", r"hoppers are not supported; the nearest supported form"),
    ("pieces: {q: {moves: X}}", r"own.yaml:3: pieces.q.moves: unknown atom 'X'"),
    ("pieces: {q: {moves: pR}}", r"hoppers \(p\) are not supported; the nearest supported form"),
    ("pieces: {q: {moves: nN}}", r"lame moves \(n\) are not supported"),
    ("pieces: {q: {moves: 7}}", r"own.yaml:3: pieces.q.moves: .* got 7"),
    ("pieces: {q: {name: queen, moves: null}}", r"pieces.q: the key 'moves' is missing"),
    ("pieces: {p: {moves: W}}", r"own.yaml:3: pieces.p.moves: the pawn's moves are given under `pawns`"),
    ("pieces: {r: {fires_through: B}}", r"own.yaml:3: pieces.r.fires_through"),
    ("pieces: {r: {fires_through_own: true}}", r"needs `fires_through`"),
    ("pieces: {n: {overruns: N}}", r"only the two-square jumps D and A"),
    ("pieces: {q: {overruns: D}}", r"'D' and `moves` both lead to the square"),
    ("pieces: {n: {moves: ND, overruns: D}}", r"'D' and `moves` both lead to the square"),
    ("pieces: {r: {moves: RD, fires_through: R}}", r"from, to and promotion must fix"),
    ("pieces: {z: {name: zebra, moves: Z}}", r"own.yaml:3: pieces.z: this piece is neither in the start"),
    ("pieces: {n: null}", r"start: unknown piece letter 'N', the pieces are K Q R B P"),
    ("pawns: {promotes_to: qx}", r"own.yaml:3: pawns.promotes_to: no piece 'x', the pieces are: k q r b n p"),
    ("pieces: {king: {name: king, moves: K}}", r"own.yaml:3: pieces.king"),
    ("royal: x", r"own.yaml:3: royal: no piece 'x', the pieces are"),
    ("pawns: {promotes_to: qk}", r"own.yaml:3: pawns.promotes_to: 'k' is the side's royal or the pawn itself"),
    ("pawns: {promotes_to: qp}", r"pawns.promotes_to: 'p' is the side's royal or the pawn itself"),
    ("pawns: {promotes_to: qq}", r"pawns.promotes_to: 'q' is there twice"),
    ("pawns: {promotes_on: [9]}", r"own.yaml:3: pawns.promotes_on: no rank 9, the ranks are 1 to 8"),
    ("pawns: {first_steps: 9}", r"own.yaml:3: pawns.first_steps: .* got 9"),
    ("pawns: {first_steps_from: null}", r"more than one step needs `first_steps_from`"),
    ("board: {files: 17}", r"own.yaml:3: board.files: .* got 17"),
    ("board: {files: 9}", r"start: rank 1 has 8 files, expected 9 as board.files says"),
    ("board: {ranks: 9}", r"expected 9 rows as board.ranks says, got 8"),
    ("castling: {king: d}", r"castling.kingside: no royal piece on d1 for white"),
    ("castling: {kingside: {rook: g}}", None),
    ("castling: {kingside: {king_to: f, rook_to: e}}", r"own.yaml:3: castling.*by a move of its own"),
    ("castling: {kingside: {rook_to: g}}", r"must start, and end, on different squares"),
    ("castling: {kingside: {rook: f4}}", r"own.yaml:3: castling.kingside.rook"),
    ("ends: {goals: [{name: scepter, by: k, squares: {white: [d9], black: [d1]}}]}", r"no square 'd9'"),
    ("options: {fast: {pawns: {first_steps: 99}}}", r"first_steps: .* got 99"),
    ("options: {fast: {peices: {}}}", r"peices"),
    ("start: 8/8/8/8/8/8/8/8 w - - 0 1", r"own.yaml:3: start: no royal piece 'K' for white, expected exactly one"),
    ("start: 1nbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", r"no castling partner on a8"),
    ("start: rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/*NBQKBNR w KQkq - 0 1", r"must lie the same for both sides"),
    ("extends: chess", r"own.yaml:3:1: duplicate key 'extends'"),
    ("year: two", r"own.yaml:3: year: .* got 'two'"),
    ("readings: one", r"own.yaml:3: readings"),
]


@pytest.mark.parametrize(("text", "reason"), ERRORS, ids=lambda value: str(value)[:50])
def test_a_file_that_cannot_be_honoured_is_refused_with_its_line(text: str, reason: str | None, tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(f"name: Own\nextends: chess\n{text}\n")
    if reason is None:
        load_variant(own)
        return
    with pytest.raises(InvalidVariant) as caught:
        load_variant(own)
    assert re.search(reason, str(caught.value)), str(caught.value)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("ches", r"unknown variant 'ches', did you mean 'chess'\?"),
        ("zzz", r"expected one of .*asylum, .*chess, .*gardner, .*palace_ninja_guards, .*or the path of a .yaml file"),
        ("nowhere.yaml", r"no variant file at 'nowhere.yaml'"),
    ],
)
def test_an_unknown_game_is_refused(name: str, reason: str) -> None:
    with pytest.raises(InvalidVariant, match=reason):
        load_variant(name)


def test_an_unknown_option_is_refused_and_the_known_ones_are_named() -> None:
    with pytest.raises(
        InvalidVariant, match=r"unknown option 'friendlyfire', the options of this game are: friendly_fire"
    ):
        load_variant("asylum", {"friendlyfire": True})
    with pytest.raises(InvalidVariant, match=r"the options of this game are: none"):
        load_variant("chess", {"scepter": True})


def test_inheritance_that_goes_round_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("name: A\nextends: b.yaml\n")
    (tmp_path / "b.yaml").write_text("name: B\nextends: a.yaml\n")
    with pytest.raises(InvalidVariant, match="goes round"):
        load_variant(tmp_path / "a.yaml")
