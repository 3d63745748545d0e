"""A sequential test of two strengths: play until the pairs so far decide between them.

The generalised sequential probability ratio test: the log-likelihood ratio compares the likeliest distribution of pairs
whose mean is the score of `elo1` with the likeliest one whose mean is that of `elo0`. Of all distributions over given
scores a with mean s, the likeliest for shares p is p / (1 + x (a - s)), where x makes the mean right.
The test looks at pairs in the order of their openings, never at one before all earlier ones have ended: so short games
have no head start, and the outcome depends neither on the number of workers nor on when somebody looked.
Source: M. Van den Bergh, https://www.cantate.be/Fishtest/support_MLE_multinomial.pdf, proposition 1.1; X. Li, J. Liu
and Z. Ying 2014, Generalized sequential probability ratio test for separate families of hypotheses, Sequential
Analysis 33.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from train.ratings import PAIR_SCORES, checked_counts, score_of_elo

BISECTIONS = 45
MOST_ELO = 2000
"""A score of 0.99999; nearer to 1 nothing can be told apart."""
Verdict = Literal["H0", "H1"]


@dataclass(frozen=True)
class SprtState:
    """Where a test stands.

    Attributes:
        llr: log-likelihood ratio after `pairs`.
        pairs: that it looked at: all of them, or those up to the decision.
        verdict: "H1": at least `elo1` rather than `elo0`; "H0": the other way round; None: undecided.
    """

    llr: float
    pairs: int
    verdict: Verdict | None


@dataclass(frozen=True)
class Sprt:
    """A test.

    Attributes:
        elo0: Elo difference of the hypothesis H0.
        elo1: of H1, larger.
        alpha: chance of "H1" at `elo0`, at most.
        beta: chance of "H0" at `elo1`, at most.
    """

    elo0: float
    elo1: float
    alpha: float = 0.05
    beta: float = 0.05

    def __post_init__(self) -> None:
        """Refuse a test that cannot decide.

        Raises:
            ValueError: the hypotheses or the errors are out of range.
        """
        if not -MOST_ELO <= self.elo0 < self.elo1 <= MOST_ELO:
            given = f"{self.elo0:g} and {self.elo1:g}"
            raise ValueError(f"expected elo0 below elo1, both between -{MOST_ELO} and {MOST_ELO}, got {given}")
        if not (0 < self.alpha < 0.5 and 0 < self.beta < 0.5):
            raise ValueError(f"expected alpha and beta between 0 and 0.5, got {self.alpha:g} and {self.beta:g}")

    @property
    def bounds(self) -> tuple[float, float]:
        """The log-likelihood ratios at which the test decides for H0 and for H1 (Wald)."""
        return math.log(self.beta / (1 - self.alpha)), math.log((1 - self.beta) / self.alpha)

    def state(self, pair_scores: Sequence[float]) -> SprtState:
        """Return where the test stands after pairs in order; it ends with the first decision.

        Args:
            pair_scores: each one of `ratings.PAIR_SCORES`, [P].
        """
        if not pair_scores:
            return SprtState(0.0, 0, None)
        counts = np.cumsum(np.equal.outer(np.asarray(pair_scores), PAIR_SCORES), axis=0)
        ratios = log_likelihood_ratio(counts, self.elo0, self.elo1)
        low, high = self.bounds
        decided = np.flatnonzero((ratios <= low) | (ratios >= high))
        last = int(decided[0]) if decided.size else len(ratios) - 1
        verdict: Verdict | None = ("H1" if ratios[last] >= high else "H0") if decided.size else None
        return SprtState(float(ratios[last]), last + 1, verdict)

    def to_document(self, pair_scores: Sequence[float]) -> dict[str, Any]:
        """Return the test and where it stands as plain data (JSON-able)."""
        return {**asdict(self), "bounds": list(self.bounds), **asdict(self.state(pair_scores))}


def log_likelihood_ratio(counts: ArrayLike, elo0: float, elo1: float) -> NDArray[np.float64]:
    """Return the generalised log-likelihood ratio of `elo1` against `elo0`.

    Args:
        counts: pairs at each of `ratings.PAIR_SCORES`, or games lost, drawn and won, [..., 5 or 3].
        elo0: Elo difference of the one hypothesis.
        elo1: of the other.

    Returns:
        float64 [...].

    Raises:
        ValueError: see `ratings.checked_counts`.
    """
    seen = checked_counts(counts)
    ways = [1 + _tilts(seen, score_of_elo(elo)) for elo in (elo0, elo1)]
    ratios: NDArray[np.float64] = (seen * np.log(ways[0] / ways[1])).sum(axis=-1)
    return ratios


def _tilts(counts: NDArray[np.float64], mean: float) -> NDArray[np.float64]:
    """Return x (a - s) of the module's docstring for s = `mean`, [..., K]; x is found by bisection."""
    gaps = np.linspace(0, 1, counts.shape[-1]) - mean
    low = np.full(counts.shape[:-1], -1 / gaps[-1])
    high = np.full(counts.shape[:-1], -1 / gaps[0])
    for _ in range(BISECTIONS):
        x = (low + high) / 2
        is_below = (counts * gaps / (1 + x[..., None] * gaps)).sum(axis=-1) > 0
        low, high = np.where(is_below, x, low), np.where(is_below, high, x)
    tilts: NDArray[np.float64] = x[..., None] * gaps
    return tilts
