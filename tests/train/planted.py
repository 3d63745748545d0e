"""Pairs of games with a known truth: a planted mean score, draws, and openings that favour a side."""

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from train.ratings import PAIR_SCORES


def pair_distribution(score: float, *, draws: float = 0.3, bias: float = 0.8) -> NDArray[np.float64]:
    """Return the chances of the five pair scores, [5].

    Args:
        score: expected score of the first player.
        draws: how likely draws are: the share of them between equals.
        bias: how much, in logits, an opening favours White in the one game, and so the other player in the other.
    """

    def chances(logit: float) -> NDArray[np.float64]:
        games = []
        for gap in (logit + bias, logit - bias):
            expected = special.expit(gap)
            drawn = 4 * draws * expected * (1 - expected)
            games.append(np.array([1 - expected - drawn / 2, drawn, expected - drawn / 2]))
        return np.convolve(*games)

    logit = optimize.brentq(lambda logit: chances(logit) @ np.array(PAIR_SCORES) - score, -15, 15)
    return chances(float(logit))


def draw_pairs(rng: np.random.Generator, chances: NDArray[np.float64], *shape: int) -> NDArray[np.float64]:
    """Draw pair scores, [*shape]."""
    return rng.choice(PAIR_SCORES, size=shape, p=chances)
