"""The sequential test: published ratios, decisions in order, and error rates that hold."""

import json
import math

import numpy as np
import pytest

from tests.train.planted import draw_pairs, pair_distribution
from train.ratings import PAIR_SCORES, score_of_elo
from train.sprt import Sprt, log_likelihood_ratio


@pytest.mark.parametrize(
    ("counts", "elo0", "elo1", "ratio"),
    [
        # montytest.muzhen.org/tests/stats/69d3c8dc7c5b3724e29d2712, "Logistic (exact)".
        ((13, 37, 50, 25, 3), 0, 2.716, -0.53772),
        # fastchess, app/tests/sprt_test.cpp, "logistic pentanomial" and "logistic trinomial".
        ((223, 9863, 21279, 10037, 246), 0.5, 2.5, -3.07),
        ((871, 26175, 55983, 26678, 821), 0, 2, -4.98),
        ((21184, 40708, 21404), 0.5, 2.5, -1.57),
        ((57030, 106593, 57433), 0, 2, -2.59),
    ],
)  # fmt: skip
def test_published_ratios_come_out_as_published(
    counts: tuple[int, ...], elo0: float, elo1: float, ratio: float
) -> None:
    assert log_likelihood_ratio(counts, elo0, elo1) == pytest.approx(ratio, abs=0.0051 if ratio < -1 else 1e-4)


def test_the_likeliest_distributions_have_the_means_of_the_hypotheses() -> None:
    counts = np.array([3.0, 10, 20, 15, 7])
    shares, scores = counts / counts.sum(), np.array(PAIR_SCORES)
    elo, mean = 80.0, score_of_elo(80.0)
    step = 1e-5  # by how much the ratio grows with the hypothesis tells x, and so the distribution
    slope = (log_likelihood_ratio(counts, elo - step, elo + step)) / (
        score_of_elo(elo + step) - score_of_elo(elo - step)
    )
    x = float(slope / counts.sum())
    tilted = shares / (1 + x * (scores - mean))
    assert tilted.sum() == pytest.approx(1)
    assert tilted @ scores == pytest.approx(mean)


def test_ratios_of_many_matches_at_once_are_those_of_each() -> None:
    counts = np.random.default_rng(1).integers(0, 30, (4, 6, 5)) + np.eye(5, dtype=int)[0]
    ratios = log_likelihood_ratio(counts, -10, 30)
    assert ratios.shape == (4, 6)
    assert ratios[2, 3] == log_likelihood_ratio(counts[2, 3], -10, 30)


def test_a_test_ends_with_its_first_decision_whatever_comes_after() -> None:
    sprt = Sprt(0, 100)
    assert sprt.state([]).verdict is None
    won = sprt.state([1.0] * 100)
    assert (won.verdict, won.llr >= sprt.bounds[1]) == ("H1", True)
    assert won.pairs < 100
    assert sprt.state([1.0] * (won.pairs - 1)).verdict is None
    assert sprt.state([*[1.0] * won.pairs, *[0.0] * 500]) == won
    lost = sprt.state([0.5] * 100)
    assert (lost.verdict, lost.llr <= sprt.bounds[0]) == ("H0", True)
    assert sprt.to_document([0.5] * 100)["verdict"] == "H0"


def test_bounds_are_walds() -> None:
    assert Sprt(0, 5).bounds == pytest.approx((-2.944, 2.944), abs=1e-3)
    assert Sprt(0, 5, alpha=0.05, beta=0.1).bounds == pytest.approx((math.log(0.1 / 0.95), math.log(0.9 / 0.05)))


@pytest.mark.parametrize("wrong", [(5, 5), (5, 0), (0, math.inf), (math.nan, 5), (0, 2001), (-2001, 0)])
def test_hypotheses_that_do_not_differ_are_refused(wrong: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="expected elo0 below elo1"):
        Sprt(*wrong)
    with pytest.raises(ValueError, match=r"between 0 and 0\.5"):
        Sprt(0, 5, alpha=0.5)


@pytest.mark.parametrize("bounds", [(-2000, 2000), (1999, 2000), (-2000, -1999)])
@pytest.mark.parametrize("score", [0.0, 0.25, 0.5, 1.0])
def test_the_most_extreme_hypotheses_give_finite_ratios(bounds: tuple[float, float], score: float) -> None:
    for pairs in (0, 1, 1000):
        json.dumps(Sprt(*bounds).to_document([score] * pairs), allow_nan=False)
    assert math.isfinite(float(log_likelihood_ratio(np.bincount([int(score * 4)] * 1000, minlength=5), *bounds)))


def error_rates(elo0: float, elo1: float, *, draws: float, bias: float, matches: int, longest: int) -> list[float]:
    """Return how often the test decides wrongly at either hypothesis, and how often not at all."""
    sprt, rng = Sprt(elo0, elo1), np.random.default_rng(5)
    verdicts = []
    for elo in (elo0, elo1):
        chances = pair_distribution(score_of_elo(elo), draws=draws, bias=bias)
        rows = draw_pairs(rng, chances, matches, longest)
        verdicts.append([sprt.state(row).verdict for row in rows.tolist()])
    wrong = [np.mean([verdict == other for verdict in row]) for row, other in zip(verdicts, ("H1", "H0"))]
    return [*map(float, wrong), float(np.mean([verdict is None for row in verdicts for verdict in row]))]


def test_error_rates_are_what_was_asked_for() -> None:
    first, second, undecided = error_rates(-40, 60, draws=0.3, bias=0.8, matches=300, longest=150)
    assert first <= 0.09  # three standard errors above 0.05
    assert second <= 0.09
    assert undecided <= 0.02


@pytest.mark.slow
@pytest.mark.parametrize(
    ("elo0", "elo1", "draws", "bias", "longest"),
    [(0, 50, 0.3, 0.8, 600), (0, 60, 0.0, 0.0, 800), (-30, 30, 0.5, 1.5, 400), (150, 250, 0.3, 0.8, 300)],
)
def test_error_rates_hold_in_a_thousand_matches(
    elo0: float, elo1: float, draws: float, bias: float, longest: int
) -> None:
    first, second, undecided = error_rates(elo0, elo1, draws=draws, bias=bias, matches=1000, longest=longest)
    assert 0.02 <= first <= 0.07
    assert 0.02 <= second <= 0.07
    assert undecided <= 0.01
