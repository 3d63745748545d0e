"""Logistic regression of fractional results on few distinct feature rows.

Dims: R sets of results, U distinct feature rows, F features. A result in [0, 1] enters as `successes` out of `trials`,
so a draw is half a success (fractional logit: Papke and Wooldridge 1996, J. Appl. Econometrics 11, 619-632).
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
    """Maximise the penalised likelihoods of several sets of results by Newton's method with step halving.

    Args:
        features: [U, F].
        successes: weighted sum of each set's results at each row, in [0, trials], [R, U].
        trials: weight of each row in each set, in games, [R, U].
        start: first guess for all sets, [F].

    Returns:
        The coefficients of each set in log-odds, [R, F].

    Raises:
        FloatingPointError: no convergence, which finite input does not cause.
    """
    num_sets, size = len(trials), start.size
    fits = np.tile(start, (num_sets, 1))
    products = (features[:, :, None] * features[:, None, :]).reshape(len(features), size * size)
    left = np.arange(num_sets)
    objective = _objective(fits @ features.T, successes, trials, fits)
    for _ in range(MAX_STEPS):
        weights, chances = fits[left], expit(fits[left] @ features.T)
        gradient = (successes[left] - trials[left] * chances) @ features - RIDGE * weights
        curvature = ((trials[left] * chances * (1 - chances)) @ products).reshape(-1, size, size)
        step: Floats = np.linalg.solve(curvature + RIDGE * np.eye(size), gradient[:, :, None])[:, :, 0].astype(
            np.float64
        )
        fits[left], objective[left] = _step(features, successes[left], trials[left], (weights, step, objective[left]))
        left = left[np.abs(step).max(axis=1) >= TOLERANCE]
        if not left.size:
            return fits
    raise FloatingPointError(f"logistic regression did not converge in {MAX_STEPS} steps")


def _step(
    features: Floats, successes: Floats, trials: Floats, state: tuple[Floats, Floats, Floats]
) -> tuple[Floats, Floats]:
    """Take each set's step, halved until it does not lower the objective; returns weights and objective."""
    weights, step, objective = state
    size = np.ones(len(step))
    moved, reached = weights.copy(), objective.copy()
    open_ = np.arange(len(step))
    while open_.size:
        moved[open_] = weights[open_] + size[open_, None] * step[open_]
        log_odds = moved[open_] @ features.T
        reached[open_] = _objective(log_odds, successes[open_], trials[open_], moved[open_])
        open_ = open_[(reached[open_] < objective[open_] - TOLERANCE) & (size[open_] >= TOLERANCE)]
        size[open_] /= 2
    return moved, reached


def information(features: Floats, trials: Floats, log_odds: Floats) -> Floats:
    """Return the negative second derivative of the likelihood without its penalty, [F, F]."""
    chances = expit(log_odds)
    curvature = trials * chances * (1 - chances)
    return (features.T * curvature) @ features


def _objective(log_odds: Floats, successes: Floats, trials: Floats, weights: Floats) -> Floats:
    """Return the penalised log-likelihood of each set, [R], from log-odds, successes and trials [R, U]."""
    likelihood: Floats = np.einsum("ru,ru->r", successes, log_odds)
    likelihood -= np.einsum("ru,ru->r", trials, np.logaddexp(0.0, log_odds))
    likelihood -= RIDGE / 2 * np.einsum("rf,rf->r", weights, weights)
    return likelihood
