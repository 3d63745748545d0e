"""Intervals of shares, rates and entropies that are counted over clusters, and of their differences.

A cluster is one game: what happens within a game hangs together, games do not. A figure is a ratio of sums over the
clusters, what was counted over how often it could have been. Its interval is a score interval, Wilson's for shares
(variance p (1 - p)), the same for rates (variance proportional to the mean), each on the effective number of trials:
clusters over their design effect, by the residuals of the clusters about the ratio (Taylor linearisation, as survey
statistics uses it; Franco, Little, Louis and Slud 2019, J. Survey Stat. Methodol. 7, 334-364), with Student's t.
Where nearly all clusters agree, a pseudo-cluster keeps the interval from vanishing (as in `train/ratings.py`); it
fades with the square of the number of clusters that differ from the most common one.

Two figures are compared by their difference, from both intervals and the correlation over clusters that both share
(Zou and Donner 2008, Statistics in Medicine 27, 1693-1702), so that it stays in range too.

Entropy is the plug-in estimate corrected by the jackknife (Zahl 1977, Ecology 58, 907-913), with its variance.

Dims: C clusters, D distinct outcomes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from train.ratings import CONFIDENCE, PRIOR_SQUARES, Interval

F64Array = NDArray[np.float64]
LEAST_CLUSTERS = 2
LEAST_COVERAGE = 0.5
"""Share of outcomes, by how often each was seen once, that must have been seen before for an entropy."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """A figure with what its differences need.

    Attributes:
        interval: 95 %.
        residuals: effect of each cluster on the estimate to first order, [C], 0 for clusters that say nothing.
        events: what was counted.
        trials: how often it could have been.
        clusters: that say anything.
    """

    interval: Interval
    residuals: F64Array
    events: float
    trials: float
    clusters: int


def share(counted: ArrayLike, trials: ArrayLike) -> Estimate | None:
    """Return a share with its interval within [0, 1]; None with fewer than two clusters that have trials.

    Args:
        counted: by cluster, at most its trials, fractions allowed (half a point for a draw), [C].
        trials: by cluster, [C].

    Raises:
        ValueError: a count is negative or above its trials.
    """
    return _ratio(counted, trials, is_share=True)


def rate(counted: ArrayLike, trials: ArrayLike) -> Estimate | None:
    """Return a mean number per trial with its interval, which begins at 0 at the lowest; see `share`."""
    return _ratio(counted, trials, is_share=False)


def _ratio(counted: ArrayLike, trials: ArrayLike, *, is_share: bool) -> Estimate | None:
    x, n = np.asarray(counted, np.float64), np.asarray(trials, np.float64)
    if x.shape != n.shape or x.min(initial=0) < 0 or n.min(initial=0) < 0 or (is_share and (x > n).any()):
        raise ValueError(f"expected counts of 0 to the trials of their cluster, got {x[:10]} of {n[:10]}")
    held = n > 0
    clusters = int(held.sum())
    if clusters < LEAST_CLUSTERS:
        return None
    ratio = float(x.sum() / n.sum())
    weights = n / n[held].mean()
    residuals = np.where(held, x / np.where(held, n, 1.0) - ratio, 0.0) * weights
    spread = float((residuals**2).sum()) * clusters / (clusters - 1)
    expected = clusters * (ratio * (1 - ratio) if is_share else ratio)
    prior = _prior(x[held] / n[held]) if is_share else 4 * _prior(x[held] / n[held])
    trials_per_cluster = (expected + prior) / (spread + prior)
    quantile = float(special.stdtrit(clusters - 1, (1 + CONFIDENCE) / 2))
    low, high = _score_ends(ratio, clusters * trials_per_cluster, quantile, is_share=is_share)
    return Estimate(Interval(ratio, low, high), residuals / clusters, float(x.sum()), float(n.sum()), clusters)


def _prior(ratios: F64Array) -> float:
    """Return the sum of squares of the pseudo-cluster: all of it while all clusters have one ratio."""
    _, counts = np.unique(ratios, return_counts=True)
    others = ratios.size - int(counts.max())
    return PRIOR_SQUARES / max(1, others) ** 2


def _score_ends(ratio: float, trials: float, quantile: float, *, is_share: bool) -> tuple[float, float]:
    """Return the means at whose own variance the ratio lies `quantile` standard errors away."""
    weight = quantile**2 / trials
    if is_share:
        middle = (ratio + weight / 2) / (1 + weight)
        reach = math.sqrt(weight * ratio * (1 - ratio) + weight**2 / 4) / (1 + weight)
        return max(0.0, middle - reach), min(1.0, middle + reach)
    reach = math.sqrt(weight * ratio + weight**2 / 4)
    return max(0.0, ratio + weight / 2 - reach), ratio + weight / 2 + reach


def difference(first: Estimate, second: Estimate, *, shared: int = 0) -> Interval:
    """Return second minus first.

    Args:
        first: one figure.
        second: the same of the other setting.
        shared: so many clusters, the first ones of both, are the same openings; the others have nothing in common.
    """
    return combine(first, second, -1.0, correlation=_correlation(first, second, shared))


def combine(first: Estimate, second: Estimate, sign: float, *, correlation: float = 0.0) -> Interval:
    """Return second + sign * first, with its interval from both intervals (MOVER).

    Args:
        first: one figure.
        second: another.
        sign: 1 or -1.
        correlation: of the two estimates.
    """
    one, other = first.interval, second.interval
    below, above = (one.estimate - one.low, one.high - one.estimate)[:: 1 if sign > 0 else -1]
    estimate = other.estimate + sign * one.estimate
    cross = 2 * sign * correlation
    lower, upper = other.estimate - other.low, other.high - other.estimate
    reach_down = math.sqrt(max(0.0, lower**2 + below**2 + cross * lower * below))
    reach_up = math.sqrt(max(0.0, upper**2 + above**2 + cross * upper * above))
    return Interval(estimate, estimate - reach_down, estimate + reach_up)


def _correlation(first: Estimate, second: Estimate, shared: int) -> float:
    one, other = first.residuals, second.residuals
    norms = math.sqrt(float(one @ one) * float(other @ other))
    return float(one[:shared] @ other[:shared]) / norms if norms > 0 else 0.0


def is_undecided(gap: Interval) -> bool:
    """Return whether a difference's interval holds 0."""
    return gap.low <= 0 <= gap.high


def entropy(outcomes: Iterable[Hashable]) -> Estimate | None:
    """Return the entropy in bits of what happened once in each of C games, corrected for what has not been seen yet.

    Args:
        outcomes: of each game.

    Returns:
        None where fewer than half of the outcomes had been seen before, so that nobody can know.
    """
    counts = np.array(sorted(Counter(outcomes).values()), np.float64)
    total = float(counts.sum())
    if total < LEAST_CLUSTERS or 1 - float((counts == 1).sum()) / total < LEAST_COVERAGE:
        return None
    plain = _bits(counts)
    logs = counts * np.log2(counts)
    less = np.where(counts > 1, (counts - 1) * np.log2(np.maximum(counts - 1, 1)), 0.0)
    without = math.log2(total - 1) - (logs.sum() - logs + less) / (total - 1)  # [D], one game of the outcome left out
    middle = float(counts @ without) / total
    estimate = max(0.0, total * plain - (total - 1) * middle)
    spread = math.sqrt((total - 1) / total * float(counts @ (without - middle) ** 2))
    quantile = float(special.stdtrit(total - 1, (1 + CONFIDENCE) / 2))
    unseen = _unseen_bits(total, quantile) if counts.size == 1 else 0.0
    interval = Interval(estimate, max(0.0, estimate - quantile * spread), estimate + quantile * spread + unseen)
    return Estimate(interval, np.zeros(0), float(counts.size), total, int(total))


def _bits(counts: F64Array) -> float:
    shares = counts / counts.sum()
    return float(-(shares * np.log2(shares)).sum())


def _unseen_bits(total: float, quantile: float) -> float:
    """Return the entropy of one outcome against another that has not occurred in `total` games but still may."""
    unseen = quantile**2 / (total + quantile**2)
    return _bits(np.array([unseen, 1 - unseen]))
