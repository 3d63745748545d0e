"""Intervals of match scores: sane at the edges, right on average, and mapped to Elo."""

import math

import numpy as np
import pytest

from tests.train.planted import draw_pairs, pair_distribution
from train.ratings import (
    PAIR_SCORES,
    Interval,
    difference_interval,
    elo_interval,
    elo_of_score,
    normal_elo,
    pentanomial_counts,
    score_interval,
    score_of_elo,
    superiority,
)

EVEN = (0.1, 0.2, 0.4, 0.2, 0.1)
STRONG = (0.0, 0.05, 0.25, 0.4, 0.3)
NEARLY_ALL = (0.01, 0.01, 0.01, 0.02, 0.95)


def coverage(probabilities: tuple[float, ...], *, pairs: int, matches: int) -> float:
    """Return the share of simulated matches whose interval holds the true score."""
    rng = np.random.default_rng(7)
    truth = float(np.dot(probabilities, PAIR_SCORES))
    scores = rng.choice(PAIR_SCORES, size=(matches, pairs), p=probabilities)
    intervals = [score_interval(row) for row in scores]
    return float(np.mean([interval.low <= truth <= interval.high for interval in intervals]))


@pytest.mark.parametrize("pairs", [2, 10, 50, 500])
@pytest.mark.parametrize("score", PAIR_SCORES)
def test_an_interval_where_all_pairs_agree_has_width_and_stays_in_range(pairs: int, score: float) -> None:
    interval = score_interval(np.full(pairs, score))
    assert interval.estimate == score
    assert 0 <= interval.low <= score <= interval.high <= 1
    assert interval.high - interval.low > 1 / (10 * pairs)


def test_a_clean_sweep_is_wilsons_interval_of_as_many_trials() -> None:
    interval = score_interval(np.ones(50))
    assert interval.high == 1
    assert interval.low == pytest.approx(50 / (50 + 2.00957**2), abs=1e-4)


def test_worse_results_give_lower_ends() -> None:
    sweep = np.ones(50)
    lows = []
    for lost in range(6):
        scores = sweep.copy()
        scores[:lost] = 0
        lows.append(score_interval(scores).low)
    assert lows == sorted(lows, reverse=True)


def test_the_interval_is_symmetric_in_the_players() -> None:
    scores = np.array([0, 0.25, 1, 0.75, 0.75, 0.5, 1, 1])
    one, other = score_interval(scores), score_interval(1 - scores)
    assert (one.low, one.high) == pytest.approx((1 - other.high, 1 - other.low))


@pytest.mark.parametrize("probabilities", [EVEN, STRONG, NEARLY_ALL])
def test_intervals_hold_the_true_score_in_about_95_of_100_matches(probabilities: tuple[float, ...]) -> None:
    assert 0.92 <= coverage(probabilities, pairs=100, matches=400) <= 0.99


@pytest.mark.slow
@pytest.mark.parametrize("pairs", [50, 100, 400])
@pytest.mark.parametrize("probabilities", [EVEN, STRONG, (0.3, 0.05, 0.3, 0.05, 0.3), (0.2,) * 5])
def test_coverage_lies_between_93_and_97_percent(pairs: int, probabilities: tuple[float, ...]) -> None:
    assert 0.93 <= coverage(probabilities, pairs=pairs, matches=5000) <= 0.97


def planted_coverage(score: float, draws: float, bias: float, *, pairs: int, matches: int) -> float:
    rows = draw_pairs(np.random.default_rng(11), pair_distribution(score, draws=draws, bias=bias), matches, pairs)
    intervals = [score_interval(row) for row in rows]
    return float(np.mean([interval.low <= score <= interval.high for interval in intervals]))


@pytest.mark.parametrize(("score", "pairs"), [(0.5, 100), (0.97, 400)])
def test_intervals_hold_a_planted_score_where_games_are_drawn_and_openings_favour_a_side(
    score: float, pairs: int
) -> None:
    assert 0.93 <= planted_coverage(score, 0.4, 1.5, pairs=pairs, matches=1000) <= 0.97


@pytest.mark.slow
@pytest.mark.parametrize("draws", [0.0, 0.4])
@pytest.mark.parametrize("bias", [0.0, 1.5])
@pytest.mark.parametrize(("score", "pairs"), [(0.5, 100), (0.65, 100), (0.8, 100), (0.8, 400), (0.9, 200), (0.97, 400)])
def test_intervals_hold_a_planted_score_in_93_to_97_of_100_matches(
    score: float, pairs: int, draws: float, bias: float
) -> None:
    assert 0.93 <= planted_coverage(score, draws, bias, pairs=pairs, matches=1000) <= 0.97


def test_treating_games_as_units_where_pairs_decide_alike_would_be_overconfident() -> None:
    rng = np.random.default_rng(1)
    alike = rng.choice([0.0, 1.0], size=100)  # both games of an opening end alike
    pairs, games = score_interval(alike), score_interval(np.repeat(alike, 2))
    assert pairs.high - pairs.low > 1.3 * (games.high - games.low)


def test_a_difference_on_common_openings_is_sharper_than_two_separate_intervals() -> None:
    rng = np.random.default_rng(2)
    opening = rng.choice([0.0, 0.5], size=100)  # easy and hard openings, shared by both players
    weaker = opening + rng.choice([0.0, 0.25], size=100)
    stronger = opening + rng.choice([0.25, 0.5], size=100)
    difference = difference_interval(stronger, weaker)
    assert difference.estimate == pytest.approx(stronger.mean() - weaker.mean())
    assert 0 < difference.low < 0.25 < difference.high
    assert difference.high - difference.low < score_interval(stronger).high - score_interval(stronger).low


def test_equal_results_give_a_difference_around_zero() -> None:
    same = np.tile([0.0, 0.5, 1.0], 20)
    difference = difference_interval(same, same)
    assert difference.estimate == 0
    assert difference.low < 0 < difference.high


def test_elo_is_the_logistic_of_the_score() -> None:
    assert elo_of_score(0.5) == 0
    assert elo_of_score(10 / 11) == pytest.approx(400)
    assert elo_of_score(0) == -math.inf
    interval = elo_interval(Interval(1.0, 0.9, 1.0))
    assert interval.low == pytest.approx(381.70, abs=0.01)
    assert interval.to_document() == {"estimate": None, "low": interval.low, "high": None}


def test_a_score_of_an_elo_difference_is_the_inverse() -> None:
    assert score_of_elo(0) == 0.5
    for elo in (-700, -1, 30, 400):
        assert elo_of_score(score_of_elo(elo)) == pytest.approx(elo)


@pytest.mark.parametrize(
    ("counts", "published", "superiority"),
    [
        # Tests of the match program fastchess, app/tests/elo_test.cpp; its two counts of 1 point are added up.
        ((34, 54, 63, 64, 75), (55.58, 27.65, 57.94, 28.28), 1.0000),
        ((332, 433, 498, 333, 334), (-8.64, 10.33, -9.17, 10.96), 0.0505),
        ((7895, 8757, 5685, 568, 9999), (-21.04, 2.95, -19.01, 2.65), None),
        ((96, 111, 136), (40.70, 30.43, 49.77, 36.77), 0.9960),
        ((89, 123, 76), (None, None, -20.76, 40.13), 0.1553),
        # Tests of the match program racetrack, src/tests; the error is half of what lies between its ends.
        ((485, 1923, 2942, 1937, 594), (5.11, 3.905, 7.10, 5.425), None),
        ((261, 739, 2683, 737, 253), (-0.67, 4.33, -1.09, 7.045), None),
        ((527, 1007, 1932, 933, 511), (-3.75, 5.41, -4.76, 6.87), None),
        ((175, 305, 694, 291, 157), (-5.36, 9.21, -6.96, 11.955), None),
        # A test's page of a server that runs Fishtest: montytest.muzhen.org/tests/stats/69d3c8dc7c5b3724e29d2712.
        ((13, 37, 50, 25, 3), (-43.6578, None, -63.97, None), None),
        # A match that chess.stackexchange.com/questions/45881 shows.
        ((4, 3, 34, 42, 117), (277.00, 40.90, 345.17, 34.05), 1.0000),
    ],
)  # fmt: skip
def test_published_results_come_out_as_published(
    counts: tuple[int, ...], published: tuple[float | None, ...], superiority: float | None
) -> None:
    found = normal_elo(counts)
    ours = (found.elo, found.elo_error, found.normalised_elo, found.normalised_elo_error)
    for number, expected in zip(ours, published):
        assert expected is None or number == pytest.approx(expected, abs=0.0061)
    assert superiority is None or found.superiority == pytest.approx(superiority, abs=5.1e-5)


@pytest.mark.parametrize("pairs", [2, 3, 12, 100])
def test_superiority_is_sure_where_the_interval_lies_on_one_side_and_nowhere_else(pairs: int) -> None:
    for chances in (EVEN, STRONG, NEARLY_ALL):
        for scores in draw_pairs(np.random.default_rng(pairs), np.array(chances), 100, pairs):
            interval, likelihood = score_interval(scores), superiority(scores)
            assert (likelihood > 0.975) == (interval.low > 0.5)
            assert (likelihood < 0.025) == (interval.high < 0.5)
            assert superiority(1 - scores) == pytest.approx(1 - likelihood)


def test_superiority_grows_with_the_evidence_towards_the_published_formula() -> None:
    sweeps = [superiority([1.0] * pairs) for pairs in (0, 1, 2, 3, 10, 30)]
    assert sweeps == sorted(sweeps)
    assert (sweeps[0], sweeps[1]) == (0.5, 0.5)
    assert 0.8 < sweeps[3] < 0.95  # three pairs prove little
    scores = draw_pairs(np.random.default_rng(1), pair_distribution(0.52), 1500)
    assert superiority(scores) == pytest.approx(normal_elo(pentanomial_counts(scores)).superiority, abs=0.002)


def test_an_outcome_that_never_occurred_leaves_numbers_finite() -> None:
    sweep = normal_elo([0, 0, 0, 0, 20])
    assert all(map(math.isfinite, vars(sweep).values()))
    assert sweep.superiority == pytest.approx(1)
    for counts in ([0, 0, 0, 0, 0], [1, 2], [1, -1, 1]):
        with pytest.raises(ValueError, match="expected 5 or 3 counts"):
            normal_elo(counts)


def test_pentanomial_counts_order_the_scores_and_refuse_others() -> None:
    assert pentanomial_counts([1, 1, 0.25, 0.5]).tolist() == [0, 1, 1, 0, 2]
    with pytest.raises(ValueError, match="pair scores are"):
        pentanomial_counts([0.3])


@pytest.mark.parametrize("scores", [[], [1.0], [0.5, 1.5], [-0.1, 0.5]])
def test_scores_that_are_no_match_are_refused(scores: list[float]) -> None:
    with pytest.raises(ValueError, match="at least 2 pair scores"):
        score_interval(scores)


def test_a_difference_needs_the_same_openings() -> None:
    with pytest.raises(ValueError, match="as many pairs"):
        difference_interval([1, 1, 0], [1, 1])
