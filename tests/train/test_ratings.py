"""Intervals of match scores: sane at the edges, right on average, and mapped to Elo."""

import math

import numpy as np
import pytest

from train.ratings import (
    PAIR_SCORES,
    Interval,
    difference_interval,
    elo_interval,
    elo_of_score,
    pentanomial_counts,
    score_interval,
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
