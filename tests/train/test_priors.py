"""Priors: mobility beside a knight's, the short leapers' formula within its scope, published values by game."""

from dataclasses import replace

import pytest

from envs import list_variants, load_variant, variant_from_document
from train.piece_values.priors import leaper_value, prior_values
from train.piece_values.published import ALPHAZERO, PUBLISHED


def test_mobility_counts_a_knight_as_three_pawns_on_any_board() -> None:
    for name in ("chess", "capablanca", "gardner", "palace_ninja_guards"):
        assert prior_values(load_variant(name))["N"]["mobility"] == pytest.approx(3.0)
    chess = prior_values(load_variant("chess"))
    assert chess["P"]["mobility"] < 1 < chess["B"]["mobility"] < chess["R"]["mobility"] < chess["Q"]["mobility"]


def test_a_game_without_knights_is_compared_with_a_knight_on_its_board() -> None:
    knightmate = prior_values(load_variant("knightmate"))
    assert "K" not in knightmate  # royal: never lost, so without a value
    assert knightmate["M"]["mobility"] == pytest.approx(3 * 420 / 336)  # moves of a king and a knight on 8x8


def test_the_leaper_formula_gives_a_knight_three_pawns_and_is_silent_outside_its_scope() -> None:
    chess, makruk, courier = (load_variant(name) for name in ("chess", "makruk", "courier"))
    letters = {name: chess.type_by_letter[name] for name in "PNBRQ"}
    assert leaper_value(chess, letters["N"]) == pytest.approx(0.33 * 8 + 0.007 * 64)
    assert all(leaper_value(chess, letters[name]) is None for name in "PBRQ")
    assert leaper_value(makruk, makruk.type_by_letter["S"]) == pytest.approx(0.33 * 5 + 0.007 * 25)
    assert leaper_value(courier, courier.type_by_letter["N"]) is None  # on 12x8
    ducks = load_variant("fides_vs_rookies")
    assert leaper_value(ducks, ducks.type_by_letter["D"]) is None  # leaps three squares
    kings = load_variant("self_capture")
    assert leaper_value(kings, kings.type_by_letter["N"]) is None  # captures its own


def test_published_values_belong_to_the_game_of_their_name_and_rules() -> None:
    chess = load_variant("chess")
    assert (3.05, ALPHAZERO) in prior_values(chess)["N"]["published"]
    assert prior_values(load_variant("no_castling"))["N"]["published"] == []
    assert prior_values(replace(chess, name="mine"))["N"]["published"] == []
    pieces = {**chess.document["pieces"], "n": {"name": "knight", "moves": "NW"}}
    other = variant_from_document({**chess.document, "pieces": pieces}, name="chess")
    assert prior_values(other)["N"]["published"] == []


def test_every_published_value_is_of_a_piece_that_its_game_has() -> None:
    for name, sources in PUBLISHED.items():
        assert name in list_variants()
        known = set(load_variant(name).type_by_letter)
        for values in sources.values():
            assert set(values) <= known


def test_sides_that_differ_have_priors_of_their_own() -> None:
    priors = prior_values(load_variant("fides_vs_clobberers"))
    assert priors["d"]["published"] == priors["D"]["published"] != []
    assert priors["w"]["leaper formula"] == pytest.approx(0.33 * 8 + 0.007 * 64)
