"""Ratings on a ladder: planted ones are found, intervals hold them, and nothing diverges."""

import numpy as np
import pytest

from tests.train.planted import draw_pairs, pair_distribution
from train.ladder_ratings import Encounter, fit_ladder
from train.ratings import elo_of_score, score_of_elo

TRUTH = {"random": 0.0, "a": 250.0, "b": 350.0, "c": 600.0, "d": 700.0}
LINKS = [("a", "random"), ("b", "a"), ("c", "b"), ("d", "c"), ("b", "random"), ("d", "b")]


def played(rng: np.random.Generator, *, pairs: int) -> list[Encounter]:
    return [
        Encounter(one, other, tuple(draw_pairs(rng, pair_distribution(score_of_elo(TRUTH[one] - TRUTH[other])), pairs)))
        for one, other in LINKS
    ]


def coverage(*, pairs: int, ladders: int) -> float:
    """Return the share of intervals, anchor apart, that hold the planted rating."""
    rng, held = np.random.default_rng(3), []
    for _ in range(ladders):
        ratings = fit_ladder(played(rng, pairs=pairs), anchor="random")
        held += [ratings[name].low <= TRUTH[name] <= ratings[name].high for name in TRUTH if name != "random"]
    return float(np.mean(held))


def test_planted_ratings_are_found_and_their_intervals_narrow_with_the_pairs() -> None:
    few, many = (fit_ladder(played(np.random.default_rng(1), pairs=pairs), anchor="random") for pairs in (50, 5000))
    for name, elo in TRUTH.items():
        assert many[name].estimate == pytest.approx(elo, abs=15)
        assert many[name].low <= many[name].estimate <= many[name].high
    assert few["d"].high - few["d"].low > 5 * (many["d"].high - many["d"].low)
    assert (many["random"].low, many["random"].high) == (0, 0)


def test_intervals_hold_planted_ratings() -> None:
    assert 0.91 <= coverage(pairs=25, ladders=60) <= 0.99


@pytest.mark.slow
@pytest.mark.parametrize("pairs", [25, 60])
def test_intervals_hold_planted_ratings_in_93_to_97_of_100_ladders(pairs: int) -> None:
    assert 0.93 <= coverage(pairs=pairs, ladders=1000) <= 0.97


def test_a_match_alone_is_rated_by_its_score_and_swapping_its_players_changes_the_sign() -> None:
    scores = (1.0, 0.5, 0.75, 0.5, 1.0, 0.25) * 200
    one = fit_ladder([Encounter("a", "random", scores)], anchor="random")["a"]
    other = fit_ladder([Encounter("random", "a", tuple(1 - score for score in scores))], anchor="random")["a"]
    assert one.estimate == pytest.approx(elo_of_score(float(np.mean(scores))), abs=0.5)
    assert (one.estimate, one.low, one.high) == pytest.approx((other.estimate, other.low, other.high), abs=0.1)
    turned = fit_ladder([Encounter("a", "random", scores)], anchor="a")
    assert turned["random"].estimate == pytest.approx(-one.estimate)


def test_a_player_that_won_everything_has_a_finite_rating_that_more_games_raise() -> None:
    ratings = [fit_ladder([Encounter("a", "random", (1.0,) * pairs)], anchor="random")["a"] for pairs in (5, 20, 100)]
    assert all(0 < rating.low < rating.estimate < rating.high < 3000 for rating in ratings)
    assert ratings[0].estimate < ratings[1].estimate < ratings[2].estimate
    assert ratings[0].low < ratings[1].low < ratings[2].low
    assert ratings[0].high - ratings[0].estimate > ratings[0].estimate - ratings[0].low  # nobody knows how much more


def test_players_that_nothing_links_to_the_anchor_are_refused_by_name() -> None:
    even = (0.5, 0.5)
    with pytest.raises(ValueError, match="no chain of matches links c, d to 'random'"):
        fit_ladder([Encounter("a", "random", even), Encounter("c", "d", even)], anchor="random")
    with pytest.raises(ValueError, match="no match of 'random'"):
        fit_ladder([Encounter("c", "d", even)], anchor="random")
    with pytest.raises(ValueError, match="without a pair"):
        fit_ladder([Encounter("a", "random", ())], anchor="random")
