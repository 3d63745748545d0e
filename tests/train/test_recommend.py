"""The recommended value: numbers worked out by hand, and which method stands in for which."""

import math

import pytest

from train.piece_values.estimates import MethodValues, PieceEstimate, method_from_document, refused
from train.piece_values.recommend import recommend
from train.ratings import Interval

Z = 1.959963984540054
ONE = Interval(1.0, 1.0, 1.0)


def around(value: float, error: float) -> Interval:
    """Return the interval of a value whose logarithm has a standard error."""
    return Interval(value, value * math.exp(-Z * error), value * math.exp(Z * error))


def result(method: str, knight: Interval | None, refusal: str = "") -> MethodValues:
    pieces = (PieceEstimate("P", 100, ONE, ONE), PieceEstimate("N", 100, ONE, knight, refusal))
    return MethodValues(method, pieces, 100, 50, 0)


def test_two_causal_methods_are_weighted_by_the_inverse_variance_of_their_logarithms() -> None:
    one = recommend([result("odds", around(3.0, 0.1)), result("handicap", around(3.3, 0.2)), result("td", ONE)])["N"]
    assert one.value is not None
    mean = (100 * math.log(3.0) + 25 * math.log(3.3)) / 125  # weights 1 / 0.01 and 1 / 0.04
    assert one.value.estimate == pytest.approx(math.exp(mean))
    assert one.value.low == pytest.approx(math.exp(mean - Z / math.sqrt(125)))
    assert one.birge == 1.0
    assert one.methods == ("odds", "handicap")
    assert one.why == "inverse-variance mean of odds and handicap"


def test_methods_that_disagree_widen_the_interval_by_the_birge_ratio() -> None:
    one = recommend([result("odds", around(2.0, 0.1)), result("handicap", around(4.0, 0.1))])["N"]
    assert one.value is not None
    assert one.value.estimate == pytest.approx(math.sqrt(8))
    birge = math.sqrt(2 * (math.log(2) / 2 / 0.1) ** 2)  # chi-squared with one degree of freedom
    assert one.birge == pytest.approx(birge)
    assert one.value.high == pytest.approx(math.sqrt(8) * math.exp(Z * birge * 0.1 / math.sqrt(2)))
    assert "widened 4.9 times as they disagree" in one.why


def test_one_causal_method_stands_alone_before_any_other() -> None:
    one = recommend([result("td", around(5, 0.01)), result("odds", around(3, 0.3)), result("outcome", ONE)])["N"]
    assert one.value is not None
    assert (one.value.estimate, one.value.low, one.value.high) == pytest.approx(
        (3, 3 * math.exp(-0.3 * Z), 3 * math.exp(0.3 * Z))
    )
    assert one.why == "odds alone: the one causal method with a value"


def test_an_interval_that_holds_0_or_has_no_end_leaves_the_mean_to_the_others() -> None:
    nothing = Interval(0.1, -0.2, 0.4)
    one = recommend([result("odds", nothing), result("handicap", around(0.2, 0.5))])["N"]
    assert one.methods == ("handicap",)
    assert "bounded and above 0" in one.why
    both = recommend([result("odds", nothing), result("handicap", Interval(0.2, 0.1, math.inf))])["N"]
    assert both.value == nothing
    assert both.why == "odds alone: about nothing, or unbounded"


def test_without_causal_methods_td_then_outcome_then_network_stands_alone() -> None:
    value = around(3, 0.1)
    assert recommend([result("network", value), result("outcome", value), result("td", value)])["N"].methods == ("td",)
    one = recommend([result("network", value), result("outcome", value)])["N"]
    assert one.methods == ("outcome",)
    assert one.value == value
    assert one.why == "outcome alone: no causal method has a value"
    assert recommend([result("network", value)])["N"].methods == ("network",)


def test_the_pawn_is_the_unit_and_a_piece_without_values_says_why() -> None:
    found = recommend([result("odds", None, "a difference in 3 games"), refused("handicap", "no pawns")])
    assert found["P"].value == ONE
    assert found["P"].why == "the unit"
    assert found["N"].value is None
    assert found["N"].why == "odds: a difference in 3 games"


def test_causal_methods_speak_for_both_sides_where_others_tell_them_apart() -> None:
    def pieces(**values: Interval) -> tuple[PieceEstimate, ...]:
        return tuple(PieceEstimate(letter, 100, ONE, value) for letter, value in values.items())

    apart = MethodValues("td", pieces(P=around(1.1, 0.1), p=around(0.9, 0.1), N=around(2, 0.1), n=ONE), 100, 50, 0)
    found = recommend([apart, result("odds", around(3, 0.1)), result("handicap", around(3, 0.1))])
    assert found["P"].value == found["p"].value == ONE
    assert found["P"].why == "the unit"
    for letter in "Nn":
        value = found[letter].value
        assert value is not None
        assert value.estimate == pytest.approx(3)
        assert found[letter].methods == ("odds", "handicap")


def test_a_method_comes_back_from_its_document() -> None:
    values = result("odds", Interval(2.0, -math.inf, math.inf), "")
    assert method_from_document(values.to_document()) == values
    assert method_from_document(refused("td", "why").to_document()).refusal == "why"
