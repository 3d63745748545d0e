"""What is thought of an evaluation before any game: a Gaussian process over the board for the square terms of a kind.

Terms of near squares are alike: their correlation falls with the distance as a Gaussian does (Rasmussen and Williams
2006, "Gaussian Processes for Machine Learning", chapter 4). So a table learns from few games where on the board a piece
belongs, and which way it is to go. A fit works with independent standard normal parameters ("white" ones), which this
turns into those of the evaluation. Dims: S squares, K kinds, F parameters (`evaluation_features.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import solve_triangular

from train.evaluation_features import F64Array, Features

if TYPE_CHECKING:
    from train.evaluation_learning import LearningSettings


@dataclass(frozen=True, eq=False)
class SmoothPrior:
    """The prior of a game's parameters, normal around 0.

    Attributes:
        features: of the game.
        root: float64 [S, S], lower triangular: square terms of a kind are `root` times white ones.
        spread: standard deviation of material and tempo.
    """

    features: Features
    root: F64Array
    spread: float

    @classmethod
    def of(cls, features: Features, settings: LearningSettings) -> SmoothPrior:
        """Return the prior that settings describe."""
        correlation = square_correlation(features, settings.reach, settings.roughness)
        root = (settings.square_spread * np.linalg.cholesky(correlation)).astype(np.float64)
        return cls(features, root, settings.material_spread)

    def colour(self, white: F64Array) -> F64Array:
        """Return the parameters [F] of white ones [F]."""
        terms, others = self._split(white)
        return np.concatenate([(terms @ self.root.T).ravel(), self.spread * others])

    def colour_gradient(self, gradient: F64Array) -> F64Array:
        """Return the gradient by white parameters [F], given that by the parameters [F]."""
        terms, others = self._split(gradient)
        return np.concatenate([(terms @ self.root).ravel(), self.spread * others])

    def whiten(self, parameters: F64Array) -> F64Array:
        """Return the white parameters [F] of parameters [F]."""
        terms, others = self._split(parameters)
        white = solve_triangular(self.root, terms.T, lower=True).T
        return np.concatenate([white.ravel(), others / self.spread])

    def _split(self, parameters: F64Array) -> tuple[F64Array, F64Array]:
        """Return the square terms [K, S], and material with tempo [K + 1]."""
        num_terms = self.features.num_terms
        return parameters[:num_terms].reshape(self.features.num_kinds, -1), parameters[num_terms:]


def square_correlation(features: Features, reach: float, roughness: float) -> F64Array:
    """Return the correlation of the square terms of a kind, float64 [S, S]; its diagonal is 1.

    A class of mirrored squares has one term, that of its first square; the other's is unused and correlates with none.

    Args:
        features: of the game.
        reach: standard deviation of the Gaussian, in squares.
        roughness: share of the variance that a square does not have in common with others, above 0.
    """
    apart = ((features.places[:, None] - features.places) ** 2).sum(axis=2)
    alike = np.exp(-apart / (2 * reach**2))
    alike = alike + alike[:, features.images]  # a class stands on both its squares
    size = np.sqrt(np.diag(alike))
    is_used = np.arange(len(alike)) <= features.images
    common = np.where(np.outer(is_used, is_used), alike / np.outer(size, size), 0.0)
    identity = np.eye(len(alike))
    correlation: F64Array = np.where(identity == 1, 1.0, (1 - roughness) * common)
    return correlation
