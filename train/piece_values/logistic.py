"""Logistic regression of fractional results on few distinct feature rows.

Dims: U distinct feature rows, F features. A result in [0, 1] enters as `successes` out of `trials`, so a
draw is half a success (fractional logit: Papke and Wooldridge 1996, J. Appl. Econometrics 11, 619-632).
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Floats = NDArray[np.float64]

RIDGE = 0.01
"""Weight of the quadratic penalty, in games: bounds coefficients of separated results, else negligible."""
TOLERANCE = 1e-7
MAX_STEPS = 100


def fit_logistic(features: Floats, successes: Floats, trials: Floats, start: Floats) -> Floats:
    """Maximise the penalised likelihood by Newton's method with step halving.

    Args:
        features: [U, F].
        successes: weighted sum of the results at each row, in [0, trials], [U].
        trials: weight of each row, in games, [U].
        start: first guess, [F].

    Returns:
        The coefficients in log-odds, [F].

    Raises:
        FloatingPointError: no convergence, which finite input does not cause.
    """
    weights = start.copy()
    log_odds = features @ weights
    objective = _objective(log_odds, successes, trials, weights)
    penalty = RIDGE * np.eye(weights.size)
    for _ in range(MAX_STEPS):
        chances = expit(log_odds)
        gradient = features.T @ (successes - trials * chances) - RIDGE * weights
        step = np.linalg.solve(information(features, trials, log_odds) + penalty, gradient)
        size = 1.0
        while True:
            moved = weights + size * step
            log_odds = features @ moved
            reached = _objective(log_odds, successes, trials, moved)
            if reached >= objective - TOLERANCE or size < TOLERANCE:
                break
            size /= 2
        weights, objective = moved, reached
        if np.abs(step).max() < TOLERANCE:
            return weights
    raise FloatingPointError(f"logistic regression did not converge in {MAX_STEPS} steps")


def information(features: Floats, trials: Floats, log_odds: Floats) -> Floats:
    """Return the negative second derivative of the likelihood without its penalty, [F, F]."""
    chances = expit(log_odds)
    curvature = trials * chances * (1 - chances)
    return (features.T * curvature) @ features


def _objective(log_odds: Floats, successes: Floats, trials: Floats, weights: Floats) -> float:
    log_likelihood = successes @ log_odds - trials @ np.logaddexp(0.0, log_odds)
    return float(log_likelihood - RIDGE / 2 * (weights @ weights))
