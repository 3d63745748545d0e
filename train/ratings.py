"""Intervals for match scores and what they mean in Elo.

The unit of every interval is the **pair**: two games from one opening with colours swapped. Its score is
the mean of the two games, one of 0, 1/4, 1/2, 3/4, 1 (the pentanomial model). Games of a pair depend on
each other, pairs do not.

The interval is Wilson's score interval (Wilson 1927, J. Am. Stat. Assoc. 22, 209-212) on an effective
number of trials, as survey statistics uses it and as Franco, Little, Louis and Slud recommend (2019, J.
Survey Stat. Methodol. 7, 334-364): the number of pairs over the design effect, which is the pairs' variance
in units of that of all-or-nothing pairs with the same mean, at most 1. Two safeguards keep it sane where
nearly all pairs agree, and fade as pairs come in: the design effect is shrunk towards 1 by `PRIOR_SQUARES`,
and the quantile is Student's t. At 0 % and 100 % it is the Wilson interval of that many trials; it never
leaves [0, 1] and never has width 0.

`normal_elo` is what programs that test chess engines print, so that results can be compared with theirs: by the normal
approximation, which needs many pairs and a score that is not extreme.
Source: M. Van den Bergh, Normalized Elo, https://www.cantate.be/Fishtest/normalized_elo.pdf; the framework Fishtest,
https://github.com/official-stockfish/fishtest/wiki/Fishtest-Mathematics.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

PAIR_SCORES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Possible scores of a pair, worst first."""
ELO_PER_DECADE = 400.0
"""Elo points per factor of ten in the odds of winning."""
CONFIDENCE = 0.95
PRIOR_SQUARES = 0.25
"""Sum of squares of the prior observation that pairs are all or nothing: one such pair at a mean of 1/2."""
NEVER_SEEN = 1e-3
"""What outcomes that did not occur count where a logarithm or a variance needs them, as in Fishtest."""
EXTREME_SCORE = 1e-3
"""Nearer to 0 or 1 a normal interval's end says no more."""
ELO_PER_DEVIATION = 2 * ELO_PER_DECADE / math.log(10)
"""Normalised Elo of a score that lies one standard deviation of a game above 1/2."""


@dataclass(frozen=True)
class Interval:
    """An estimate and its confidence interval.

    Attributes:
        estimate: the point estimate.
        low: lower end.
        high: upper end.
    """

    estimate: float
    low: float
    high: float

    def to_document(self) -> dict[str, float | None]:
        """Return plain data; an unbounded end is null, since JSON has no infinity."""
        ends = {"estimate": self.estimate, "low": self.low, "high": self.high}
        return {name: value if math.isfinite(value) else None for name, value in ends.items()}

    def range_text(self, style: str = ".2f") -> str:
        """Return "low to high" with the numbers in a format style."""
        ends = (format(end, style) if math.isfinite(end) else "unbounded" for end in (self.low, self.high))
        return " to ".join(ends)


@dataclass(frozen=True)
class NormalElo:
    """A result as programs that test chess engines give it; every `error` is half the width of the 95 % interval.

    Attributes:
        elo: logistic Elo difference.
        elo_error: of it.
        normalised_elo: difference in standard deviations of a game, in units that agree with Elo where no game is
        drawn. normalised_elo_error: of it, for players of about equal strength. superiority: likelihood that the
        player is the stronger one, if nothing was known before.
    """

    elo: float
    elo_error: float
    normalised_elo: float
    normalised_elo_error: float
    superiority: float


def pentanomial_counts(pair_scores: ArrayLike) -> NDArray[np.int64]:
    """Count the pairs at each of `PAIR_SCORES`.

    Args:
        pair_scores: scores of the pairs, [P], each one of `PAIR_SCORES`.

    Returns:
        int64 [5], worst score first.

    Raises:
        ValueError: a score is none of the five.
    """
    quarters = np.asarray(pair_scores, dtype=np.float64) * 4
    if not np.all(np.isin(quarters, np.arange(5))):
        raise ValueError(f"pair scores are {PAIR_SCORES}, got {np.unique(quarters / 4)}")
    return np.bincount(quarters.astype(np.int64), minlength=5)


def score_interval(pair_scores: ArrayLike, confidence: float = CONFIDENCE) -> Interval:
    """Return the mean pair score with its interval (see the module's docstring).

    Args:
        pair_scores: scores of the pairs in [0, 1], [P], P >= 2.
        confidence: share of intervals that hold the true score.

    Raises:
        ValueError: fewer than two pairs, or a score outside [0, 1].
    """
    scores = np.asarray(pair_scores, dtype=np.float64)
    if scores.size < 2 or scores.min() < 0 or scores.max() > 1:
        raise ValueError(f"expected at least 2 pair scores in [0, 1], got {scores.size}: {scores[:10]}")
    pairs = scores.size
    quantile = float(special.stdtrit(pairs - 1, (1 + confidence) / 2))
    estimate = float(scores.mean())
    trials = pairs / design_effect(scores)
    return _wilson(estimate, trials, quantile)


def superiority(pair_scores: ArrayLike) -> float:
    """Return the likelihood that the player is the stronger one, if nothing was known before.

    It is above 97.5 % exactly where the 95 % interval of `score_interval` lies above 1/2.

    Args:
        pair_scores: scores of the pairs in [0, 1], [P]; with fewer than two nobody knows: 1/2.
    """
    scores = np.asarray(pair_scores, dtype=np.float64)
    if scores.size < 2:
        return 0.5
    trials = scores.size / design_effect(scores)
    return float(special.stdtr(scores.size - 1, 2 * math.sqrt(trials) * (float(scores.mean()) - 0.5)))


def difference_interval(pair_scores_1: ArrayLike, pair_scores_2: ArrayLike, confidence: float = CONFIDENCE) -> Interval:
    """Return the mean difference of two players' scores on the same openings, with its interval.

    Each opening gives one difference in [-1, 1]; mapped to [0, 1] it is treated as a pair score.

    Args:
        pair_scores_1: first player's pair scores, [P].
        pair_scores_2: second player's, [P], the same openings in the same order.
        confidence: share of intervals that hold the true difference.

    Returns:
        First minus second, in [-1, 1].

    Raises:
        ValueError: different numbers of pairs, or what `score_interval` refuses.
    """
    first, second = np.asarray(pair_scores_1, dtype=np.float64), np.asarray(pair_scores_2, dtype=np.float64)
    if first.shape != second.shape:
        raise ValueError(f"expected as many pairs on both sides, got {first.size} and {second.size}")
    unit = score_interval((first - second + 1) / 2, confidence)
    return Interval(2 * unit.estimate - 1, 2 * unit.low - 1, 2 * unit.high - 1)


def normal_elo(counts: ArrayLike, confidence: float = CONFIDENCE) -> NormalElo:
    """Return Elo, normalised Elo and the likelihood of superiority by the normal approximation.

    Args:
        counts: pairs at each of `PAIR_SCORES`, [5]; or games lost, drawn and won, [3], taken as independent.
        confidence: of the errors.

    Raises:
        ValueError: there are neither 5 nor 3 counts, or there is nothing.
    """
    seen = checked_counts(counts)
    games_each, total = (len(seen) - 1) // 2, float(seen.sum())
    scores = np.linspace(0, 1, len(seen))
    mean = float(seen @ scores) / total
    deviation = math.sqrt(float(seen @ (scores - mean) ** 2) / total)
    error, quantile = deviation / math.sqrt(total), float(special.ndtri((1 + confidence) / 2))
    low, middle, high = (
        elo_of_score(min(max(score, EXTREME_SCORE), 1 - EXTREME_SCORE))
        for score in (mean - quantile * error, mean, mean + quantile * error)
    )
    return NormalElo(
        elo=middle,
        elo_error=(high - low) / 2,
        normalised_elo=ELO_PER_DEVIATION * (mean - 0.5) / (deviation * math.sqrt(games_each)),
        normalised_elo_error=ELO_PER_DEVIATION * quantile / math.sqrt(total * games_each),
        superiority=float(special.ndtr((mean - 0.5) / error)),
    )


def checked_counts(counts: ArrayLike) -> NDArray[np.float64]:
    """Return counts with `NEVER_SEEN` for what did not occur, float64 of the same shape.

    Args:
        counts: pairs at each of `PAIR_SCORES`, or games lost, drawn and won, [..., 5 or 3].

    Raises:
        ValueError: there are neither 5 nor 3, one is negative, or all are 0.
    """
    seen = np.asarray(counts, np.float64)
    if seen.shape[-1:] not in ((3,), (5,)) or np.any(seen < 0) or not np.all(seen.sum(axis=-1)):
        raise ValueError(f"expected 5 or 3 counts, not all 0, got {seen.tolist()}")
    return np.where(seen == 0, NEVER_SEEN, seen)


def elo_of_score(score: float) -> float:
    """Return the Elo difference at which `score` is expected; infinite at 0 and 1."""
    if score <= 0:
        return -math.inf
    if score >= 1:
        return math.inf
    return ELO_PER_DECADE * math.log10(score / (1 - score))


def score_of_elo(elo: float) -> float:
    """Return the score that is expected at an Elo difference."""
    return float(special.expit(elo * math.log(10) / ELO_PER_DECADE))


def elo_interval(score: Interval) -> Interval:
    """Map a score's interval to Elo; the map is monotone, so coverage stays."""
    return Interval(elo_of_score(score.estimate), elo_of_score(score.low), elo_of_score(score.high))


def design_effect(scores: NDArray[np.float64]) -> float:
    """Return the variance of a pair over that of an all-or-nothing pair of the same mean, shrunk to 1.

    Args:
        scores: of the pairs, [P].
    """
    mean = scores.mean()
    observed = float(((scores - mean) ** 2).sum())
    all_or_nothing = float(scores.size * mean * (1 - mean))
    return min(1.0, (observed + PRIOR_SQUARES) / (all_or_nothing + PRIOR_SQUARES))


def _wilson(estimate: float, trials: float, quantile: float) -> Interval:
    """Return Wilson's score interval of a share `estimate` of `trials`."""
    weight = quantile**2 / trials
    centre = (estimate + weight / 2) / (1 + weight)
    spread = math.sqrt(weight * estimate * (1 - estimate) + weight**2 / 4) / (1 + weight)
    return Interval(estimate, max(0.0, centre - spread), min(1.0, centre + spread))
