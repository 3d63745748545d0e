"""Intervals of figures over clusters: planted rates are covered, a wrong unit is not, equal figures stay undecided."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from train.balance_intervals import combine, difference, entropy, is_undecided, rate, share
from train.ratings import Interval, score_interval

QUICK, THOROUGH = 100, 1000
GAMES = 120
Draw = Callable[[np.random.Generator], tuple[Interval | None, float]]


def beta_moves(rng: np.random.Generator, mean: float, games: int = GAMES) -> tuple[np.ndarray, np.ndarray]:
    """Draw how many of each game's moves one piece makes: its share differs from game to game."""
    plies = rng.integers(20, 100, size=games)
    of_game = rng.beta(4 * mean, 4 * (1 - mean), size=games)
    return rng.binomial(plies, of_game), plies


def planted_share(rng: np.random.Generator) -> tuple[Interval | None, float]:
    """The ratio of sums has the planted mean, since lengths do not depend on shares."""
    found = share(*beta_moves(rng, 0.15))
    return found and found.interval, 0.15


def planted_share_of_uneven_games(rng: np.random.Generator) -> tuple[Interval | None, float]:
    """A few long games decide the ratio."""
    plies = np.where(rng.random(3 * GAMES) < 0.15, 300, 10)
    found = share(rng.binomial(plies, rng.beta(3, 3, size=plies.size)), plies)
    return found and found.interval, 0.5


def planted_score(rng: np.random.Generator) -> tuple[Interval | None, float]:
    found = share(rng.choice([0.0, 0.5, 1.0], p=[0.2, 0.5, 0.3], size=GAMES), np.ones(GAMES))
    return found and found.interval, 0.55


def planted_rare_share(rng: np.random.Generator) -> tuple[Interval | None, float]:
    found = share(rng.random(GAMES) < 0.03, np.ones(GAMES))
    return found and found.interval, 0.03


def planted_length(rng: np.random.Generator) -> tuple[Interval | None, float]:
    found = rate(rng.gamma(4, 20, size=GAMES), np.ones(GAMES))
    return found and found.interval, 80.0


def planted_count(rng: np.random.Generator) -> tuple[Interval | None, float]:
    found = rate(rng.poisson(rng.gamma(1.0, 0.3, size=GAMES)), np.ones(GAMES))
    return found and found.interval, 0.3


def planted_common_openings(rng: np.random.Generator) -> tuple[Interval | None, float]:
    """Both settings' scores depend on the opening that they share."""
    opening = rng.normal(0, 0.25, size=GAMES)
    scores = [np.clip(rng.normal(middle + opening, 0.2), 0, 1) for middle in (0.5, 0.5)]
    first, second = (share(one, np.ones(GAMES)) for one in scores)
    assert first
    assert second
    return difference(first, second, shared=GAMES), 0.0


def planted_difference(rng: np.random.Generator) -> tuple[Interval | None, float]:
    first, second = share(*beta_moves(rng, 0.1)), share(*beta_moves(rng, 0.2))
    assert first
    assert second
    return difference(first, second), 0.1


def planted_army(rng: np.random.Generator) -> tuple[Interval | None, float]:
    white_first, black_first = (share(rng.random(GAMES) < chance, np.ones(GAMES)) for chance in (0.68, 0.6))
    assert white_first
    assert black_first
    return combine(black_first, white_first, 1.0), 1.28


def planted_entropy(rng: np.random.Generator) -> tuple[Interval | None, float]:
    chances = np.arange(1, 21) / 210
    found = entropy(rng.choice(20, p=chances, size=200).tolist())
    return found and found.interval, float(-(chances * np.log2(chances)).sum())


PLANTED: list[Draw] = [
    planted_share, planted_share_of_uneven_games, planted_score, planted_rare_share, planted_length, planted_count,
    planted_common_openings,
    planted_difference, planted_army, planted_entropy,
]  # fmt: skip


def covered(draw: Draw, sets: int) -> float:
    """Return the share of data sets whose interval holds the truth."""
    hits = 0
    for number in range(sets):
        interval, truth = draw(np.random.default_rng((7, number)))
        assert interval is not None
        assert interval.low <= interval.estimate <= interval.high
        hits += interval.low <= truth <= interval.high
    return hits / sets


@pytest.mark.parametrize("draw", PLANTED)
def test_intervals_cover_planted_figures(draw: Draw) -> None:
    assert 0.88 <= covered(draw, QUICK) <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize("draw", PLANTED)
def test_93_to_98_per_cent_of_1000_intervals_cover(draw: Draw) -> None:
    assert 0.93 <= covered(draw, THOROUGH) <= 0.98


def test_moves_taken_for_clusters_do_not_cover() -> None:
    def by_move(rng: np.random.Generator) -> tuple[Interval | None, float]:
        made, plies = beta_moves(rng, 0.15)
        moves = np.concatenate([np.arange(count) < own for own, count in zip(made, plies)])
        found = share(moves, np.ones(moves.size))
        return found and found.interval, 0.15

    assert covered(by_move, QUICK) < 0.7


def test_common_openings_make_a_difference_sharper() -> None:
    rng = np.random.default_rng(1)
    opening = rng.normal(0, 0.25, size=GAMES)
    first, second = (share(np.clip(rng.normal(0.5 + opening, 0.1), 0, 1), np.ones(GAMES)) for _ in range(2))
    assert first
    assert second
    paired, apart = difference(first, second, shared=GAMES), difference(first, second)
    assert paired.high - paired.low < 0.8 * (apart.high - apart.low)
    assert paired.estimate == apart.estimate


def test_scores_of_games_have_the_intervals_of_matches() -> None:
    scores = np.random.default_rng(3).choice([0.0, 0.5, 1.0], size=80)
    found = share(scores, np.ones(80))
    assert found
    expected = score_interval(scores)
    assert found.interval.low == pytest.approx(expected.low, abs=0.003)
    assert found.interval.high == pytest.approx(expected.high, abs=0.003)


@pytest.mark.parametrize("counted", [np.zeros(50), np.ones(50), np.full(50, 0.5)])
def test_no_interval_vanishes_where_all_games_agree(counted: np.ndarray) -> None:
    for found in (share(counted, np.ones(50)), rate(counted, np.ones(50))):
        assert found
        assert found.interval.high - found.interval.low > 0.02
        assert found.interval.low <= counted[0] <= found.interval.high


def test_a_figure_of_fewer_than_two_games_is_none_and_impossible_counts_are_refused() -> None:
    assert share([1.0, 0.0], [1.0, 0.0]) is None
    assert rate([], []) is None
    with pytest.raises(ValueError, match="expected counts"):
        share([2.0, 0.0], [1.0, 1.0])
    with pytest.raises(ValueError, match="expected counts"):
        rate([-1.0, 0.0], [1.0, 1.0])


@pytest.mark.parametrize(
    ("gap", "undecided"),
    [(Interval(0.1, -0.1, 0.3), True), (Interval(0.1, 0.0, 0.2), True), (Interval(0.1, 0.01, 0.2), False),
     (Interval(-0.2, -0.3, -0.1), False), (Interval(0.0, 0.0, 0.0), True)],
)  # fmt: skip
def test_a_difference_is_undecided_where_its_interval_holds_0(gap: Interval, undecided: bool) -> None:
    assert is_undecided(gap) is undecided


def test_a_figure_less_itself_is_undecided() -> None:
    found = share(*beta_moves(np.random.default_rng(0), 0.15))
    assert found
    assert is_undecided(difference(found, found, shared=GAMES))
    assert is_undecided(difference(found, found))


def test_entropy_of_equal_moves_is_known_and_of_unseen_ones_refused() -> None:
    even = entropy([0, 1, 2, 3] * 50)
    assert even
    assert even.interval.estimate == pytest.approx(2.0, abs=0.02)
    only = entropy(["e2e4"] * 100)
    assert only
    assert only.interval.estimate == 0
    assert 0 < only.interval.high < 0.5
    assert entropy(range(100)) is None
