"""Bootstrap confidence intervals from resampled estimates."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from train.ratings import CONFIDENCE, Interval

Floats = NDArray[np.float64]


def bca_interval(estimate: float, resampled: Floats, influence: Floats) -> Interval:
    """Return the bias-corrected and accelerated interval (Efron 1987, J. Am. Stat. Assoc. 82, 171-185).

    It is a percentile interval whose percentiles are moved for the estimator's bias and for how its spread
    changes with its size. Like any percentile interval it maps along with a monotone change of scale.

    Args:
        estimate: from the whole data.
        resampled: estimates from the resamples, [R]; infinite ones count as extreme.
        influence: effect of each unit of resampling on the estimate, up to a common factor, [G].

    Returns:
        The interval at the project's confidence; an end may be infinite.
    """
    below = np.mean(resampled < estimate) + np.mean(resampled == estimate) / 2
    rarest = 0.5 / resampled.size
    bias = ndtri(np.clip(below, rarest, 1 - rarest))
    squares = float((influence**2).sum())
    acceleration = float((influence**3).sum()) / (6 * squares**1.5) if squares > 0 else 0.0
    tails = bias + ndtri(np.array([(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]))
    levels = ndtr(bias + tails / (1 - acceleration * tails))
    low, high = np.quantile(resampled, levels, method="inverted_cdf")
    return Interval(float(estimate), float(low), float(high))
