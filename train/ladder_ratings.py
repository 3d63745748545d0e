"""Ratings of many players from matches between some of them: a Bradley-Terry ladder, anchored at one player.

The expected score of a player over another is the logistic function of the difference of their ratings. A match of P
pairs counts as P / d all-or-nothing trials, d being the design effect of its pairs (`ratings.py`); to each match one
trial, half won and half lost, is added (Jeffreys' prior of a share), so that ratings stay finite where a player won
everything. An interval holds the ratings at which the likelihood, all others fitted anew, is not too far below its
maximum (profile likelihood): it is as lopsided as the evidence.
Source: R. A. Bradley and M. E. Terry 1952, Biometrika 39, 324-345; D. Firth 1993, Biometrika 80, 27-38.

Dims: K players, M matches.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from train.ratings import CONFIDENCE, ELO_PER_DECADE, Interval, design_effect

PRIOR_TRIALS = 1.0
ELO_PER_LOGIT = ELO_PER_DECADE / math.log(10)
NEWTON_STEPS = 100
SMALLEST_STEP = 1e-10
LARGEST_STEP = 2.0
"""In logits: a longer one may overshoot."""
PRECISION = 1e-4
"""Of the ends of intervals, in logits."""


@dataclass(frozen=True)
class Encounter:
    """A match between two players of a ladder.

    Attributes:
        first: name of the one.
        second: of the other.
        pair_scores: the first's, [P], P >= 1.
    """

    first: str
    second: str
    pair_scores: tuple[float, ...]


def fit_ladder(encounters: Sequence[Encounter], *, anchor: str, confidence: float = CONFIDENCE) -> dict[str, Interval]:
    """Return every player's rating in Elo above the anchor's, with its interval.

    Args:
        encounters: the matches; several between two players add up.
        anchor: the player whose rating is 0, without an interval.
        confidence: of the intervals, each for itself.

    Raises:
        ValueError: there is no such player, a match has no pairs, or matches do not link a player to the anchor.
    """
    names = list(dict.fromkeys(name for match in encounters for name in (match.first, match.second)))
    _check_linked(encounters, names, anchor)
    fit = _Fit(encounters, names)
    free = np.array([name != anchor for name in names])
    best = fit.maximum(np.zeros(len(names)), free)
    drop = float(special.chdtri(1, 1 - confidence)) / 2
    ratings = {}
    for number, name in enumerate(names):
        ends = fit.profile(best, free, number, drop) if free[number] else (0.0, 0.0)
        ratings[name] = Interval(*(ELO_PER_LOGIT * float(logit) for logit in (best[number], *ends)))
    return ratings


class _Fit:
    """The likelihood of ratings, in logits."""

    def __init__(self, encounters: Sequence[Encounter], names: Sequence[str]) -> None:
        number = {name: index for index, name in enumerate(names)}
        self._sides = np.zeros((len(encounters), len(names)))  # (M, K): 1 the first, -1 the second player
        for row, match in zip(self._sides, encounters):
            row[number[match.first]] += 1
            row[number[match.second]] -= 1
        pairs = [np.array(match.pair_scores, np.float64) for match in encounters]
        trials = np.array([scores.size / design_effect(scores) for scores in pairs])
        self._trials = trials + PRIOR_TRIALS
        self._won = trials * [scores.mean() for scores in pairs] + PRIOR_TRIALS / 2

    def value(self, ratings: NDArray[np.float64]) -> float:
        """Return the log-likelihood of ratings, [K]."""
        gaps = self._sides @ ratings
        lost = self._trials - self._won
        return float((self._won * special.log_expit(gaps) + lost * special.log_expit(-gaps)).sum())

    def maximum(self, ratings: NDArray[np.float64], free: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the likeliest ratings, [K], those that are not free as they are: Newton's method."""
        ratings, chosen = ratings.copy(), np.flatnonzero(free)
        sides = self._sides[:, chosen]
        for _ in range(NEWTON_STEPS if chosen.size else 0):
            expected = special.expit(self._sides @ ratings)
            slope = sides.T @ (self._won - self._trials * expected)
            curvature = (sides.T * (self._trials * expected * (1 - expected))) @ sides
            step = np.linalg.solve(curvature, slope)
            ratings[chosen] += step * min(1.0, LARGEST_STEP / max(float(np.abs(step).max()), SMALLEST_STEP))
            if np.abs(step).max() < SMALLEST_STEP:
                break
        return ratings

    def profile(
        self, best: NDArray[np.float64], free: NDArray[np.bool_], number: int, drop: float
    ) -> tuple[float, float]:
        """Return the ends between which the likelihood lies less than `drop` below its maximum.

        Args:
            best: the likeliest ratings, [K].
            free: those that are fitted, [K].
            number: whose ends.
            drop: in nats.
        """
        others, highest = free.copy(), self.value(best)
        others[number] = False

        def excess(distance: float) -> float:
            moved = best.copy()
            moved[number] += distance
            return highest - self.value(self.maximum(moved, others)) - drop

        def end(side: int) -> float:
            reach = float(side)
            while excess(reach) < 0:
                reach *= 2
            return float(best[number]) + float(optimize.brentq(excess, 0.0, reach, xtol=PRECISION))

        return end(-1), end(1)


def linked_to(anchor: str, pairings: Sequence[tuple[str, str]]) -> set[str]:
    """Return the players that chains of matches link to one, itself among them."""
    linked = {anchor}
    while True:
        found = linked.union(*(pairing for pairing in pairings if linked & set(pairing)))
        if found == linked:
            return linked
        linked = found


def _check_linked(encounters: Sequence[Encounter], names: Sequence[str], anchor: str) -> None:
    if anchor not in names:
        raise ValueError(f"no match of '{anchor}', at which the ladder is anchored: expected one of {', '.join(names)}")
    if not all(match.pair_scores for match in encounters):
        raise ValueError("a match without a pair of games: expected at least one")
    linked = linked_to(anchor, [(match.first, match.second) for match in encounters])
    loose = [name for name in names if name not in linked]
    if loose:
        raise ValueError(f"no chain of matches links {', '.join(loose)} to '{anchor}'")
