"""What TD(lambda) solves, as equations with one part for each game, so that games can be drawn again.

Parameters are right when the errors of all positions, seen through what stands there, balance the prior:

    sum over positions of count (value - target) features + precision parameters = 0

A target is the lambda-return, which has the values of later positions in it, so that its own slope counts. One Newton
step from the solution tells what parameters games in other numbers would give: their influence. Counts are held fixed
by it. Sources: `train/evaluation_learning.py`; Bradtke and Barto 1996, "Linear least-squares algorithms for temporal
difference learning", for the matrix; Efron 1982, "The Jackknife, the Bootstrap and Other Resampling Plans", chapter 6.

Dims: N positions, G games, S squares, K kinds, F parameters (`train/evaluation_features.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit

from train.evaluation_features import UNUSED, F64Array, Features, count_standing
from train.evaluation_games import LearningGame
from train.evaluation_learning import LearningSettings, lambda_returns, result_scale
from train.evaluation_prior import SmoothPrior

LEAST_TRACE = 1e-4
"""Later positions that weigh less in a target are left out of its slope."""
STEPS = 2
"""Of Newton's method from what a learner has found."""
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Equations:
    """Games as TD(lambda) sees them.

    Attributes:
        features: of the game.
        settings: of the learner: prior, trace, counts.
        design: sparse [N, F]: a position's value in logits is its row times the parameters.
        decided: float64 [N], White's score where the variation ends the game, else NaN.
        game: the game of each position, ascending, intp [N].
        scores: float64 [G], White's, NaN where the game was cut short.
        standing: float64 [32, S], how often each code stands on each square.
    """

    features: Features
    settings: LearningSettings
    design: sparse.csr_array
    decided: F64Array
    game: NDArray[np.intp]
    scores: F64Array
    standing: F64Array

    @classmethod
    def of(cls, features: Features, games: Sequence[LearningGame], settings: LearningSettings) -> Equations:
        """Lay out games; those without a position are left out.

        Args:
            features: of their game.
            games: at least one with a position.
            settings: of the learner.
        """
        games = [game for game in games if len(game.boards)]
        boards = np.concatenate([game.boards for game in games])
        movers = np.concatenate([game.movers for game in games])
        return cls(
            features=features,
            settings=settings,
            design=design_of(features, boards, movers),
            decided=np.concatenate([game.decided for game in games]).astype(np.float64),
            game=np.repeat(np.arange(len(games)), [len(game.boards) for game in games]),
            scores=np.array([game.white_score for game in games], np.float64),
            standing=count_standing(boards),
        )

    @property
    def num_games(self) -> int:
        """G."""
        return len(self.scores)

    @property
    def num_parameters(self) -> int:
        """F."""
        return int(self.design.shape[1])

    def refined(self, parameters: F64Array, *, steps: int = STEPS) -> F64Array:
        """Return parameters [F] nearer to the solution, by Newton's method; then scaled to the results.

        Args:
            parameters: [F], near enough.
            steps: of Newton's method.
        """
        for _ in range(steps):
            scores, slope = self._linearised(parameters)
            pull = scores.sum(axis=0) + self._prior.whiten(parameters)
            parameters = parameters - self._prior.colour(np.linalg.solve(slope, pull))
        logits, scored = self._scored(parameters)
        return result_scale(logits, scored, self._counts(expit(logits))) * parameters

    def influence(self, parameters: F64Array) -> F64Array:
        """Return what one more of each game would change in the solution, to first order, [G, F].

        Proportions go by the equations and the scale by the results, as for the learner: few positions are near
        enough to the end of a game for its result to tell in their targets, so that equations leave the scale open.
        """
        scores, slope = self._linearised(parameters)
        white = np.linalg.solve(slope, scores.T).T.astype(np.float64)
        turned = -self._of_white(white)
        logits, scored = self._scored(parameters)
        values = expit(logits)
        counts = np.where(np.isnan(scored), 0.0, self._counts(values))
        along = (counts * logits) @ self.design
        size = float((counts * logits) @ logits)
        if size == 0.0:
            return turned
        surprise = np.where(np.isnan(scored), 0.0, counts * (scored - values) * logits)
        grown = np.bincount(self.game, surprise, self.num_games) / float((counts * values * (1 - values)) @ logits**2)
        return turned + np.outer(grown - turned @ along / size, parameters)

    @cached_property
    def _prior(self) -> SmoothPrior:
        return SmoothPrior.of(self.features, self.settings)

    def _by_white(self, gradients: F64Array) -> F64Array:
        """Return gradients [n, F] by the white parameters of the prior, given those by the parameters."""
        return self._times(gradients, self._prior.root)

    def _of_white(self, white: F64Array) -> F64Array:
        """Return the parameters [n, F] of white ones."""
        return self._times(white, self._prior.root.T)

    def _times(self, rows: F64Array, root: F64Array) -> F64Array:
        terms = rows[:, : self.features.num_terms].reshape(len(rows), self.features.num_kinds, -1) @ root
        others = self._prior.spread * rows[:, self.features.num_terms :]
        return np.concatenate([terms.reshape(len(rows), -1), others], axis=1)

    @cached_property
    def _traces(self) -> sparse.csr_array:
        """The weight of each position's value in each target, sparse [N, N]."""
        decay, rows, columns, weights = self.settings.trace_decay, [], [], []
        ahead, weight = 1, 1 - self.settings.trace_decay
        while weight >= LEAST_TRACE and ahead < len(self.game):
            same = np.flatnonzero(self.game[ahead:] == self.game[:-ahead])
            rows.append(same)
            columns.append(same + ahead)
            weights.append(np.full(len(same), weight))
            ahead, weight = ahead + 1, weight * decay
        shape = len(self.game), len(self.game)
        if not rows:
            return sparse.csr_array(shape)
        return sparse.csr_array((np.concatenate(weights), (np.concatenate(rows), np.concatenate(columns))), shape)

    @cached_property
    def _is_counted(self) -> NDArray[np.bool_]:
        """Which positions count, bool [N]: open ones, as many of a game as the learner takes, spread evenly."""
        is_open, most = np.isnan(self.decided), self.settings.positions_per_game
        before = np.cumsum(is_open) - is_open
        first = before[np.searchsorted(self.game, self.game)]
        number = np.maximum(np.bincount(self.game, is_open, self.num_games)[self.game], 1)
        place, share = before - first, np.minimum(most / number, 1.0)
        return np.asarray(is_open & (np.floor((place + 1) * share + ROUNDING) > np.floor(place * share + ROUNDING)))

    def _linearised(self, parameters: F64Array) -> tuple[F64Array, F64Array]:
        """Return the equations near parameters.

        Returns:
            Each game's part of them [G, F], without the prior's, and their slope [F, F] with it; both by the white
            parameters of the prior.
        """
        is_open = np.isnan(self.decided)
        values = np.where(is_open, expit(self.design @ parameters), self.decided)
        counts = self._counts(values)
        errors = counts * (values - self._targets(values))
        by_game = sparse.csr_array((errors, (self.game, np.arange(len(errors)))), (self.num_games, len(errors)))
        used = np.flatnonzero(self._is_counted)
        moved = sparse.diags_array(np.where(is_open, values * (1 - values), 0.0)) @ self.design
        moved = sparse.diags_array(counts[used]) @ (moved[used] - self._traces[used] @ moved)
        slope = self._by_white(self._by_white((self.design[used].T @ moved).toarray()).T).T
        return self._by_white((by_game @ self.design).toarray()), slope + np.eye(self.num_parameters)

    def _scored(self, parameters: F64Array) -> tuple[F64Array, F64Array]:
        """Return the logits of all positions [N], and White's score in the end, NaN where it does not count, [N]."""
        scores = np.where(np.isnan(self.decided), self.scores[self.game], np.nan)
        return self.design @ parameters, scores

    def _counts(self, values: F64Array) -> F64Array:
        """Return what each position counts [N], as for the learner."""
        each = self.settings.evidence_per_game / self.settings.positions_per_game
        return np.where(self._is_counted, each * 4 * values * (1 - values), 0.0)

    def _targets(self, values: F64Array) -> F64Array:
        """Return the lambda-returns [N]; the last value stands for the result of a game that was cut short."""
        ends = np.searchsorted(self.game, np.arange(self.num_games), side="right")
        targets = np.empty_like(values)
        first = 0
        for end, score in zip(ends.tolist(), self.scores.tolist()):
            own = values[first:end]
            result = float(own[-1]) if np.isnan(score) else score
            targets[first:end] = lambda_returns(own, result, self.settings.trace_decay)
            first = end
        return targets


def design_of(features: Features, boards: NDArray[np.uint8], movers: NDArray[np.uint8]) -> sparse.csr_array:
    """Return the matrix by which parameters [F] become White's evaluations of positions, sparse [N, F].

    Args:
        features: of the game.
        boards: uint8 [N, S], piece codes.
        movers: uint8 [N], who is to move: 0 White, 1 Black.
    """
    row, square = np.nonzero(boards)
    code = boards[row, square]
    assert (features.terms[code, square] != UNUSED).all(), "a piece that the game does not have"
    kind = features.kinds[code]
    worth = np.where(features.is_constant[kind], 0.0, features.signs[code])
    tempo = features.num_terms + features.num_kinds
    every = np.arange(len(boards))
    values = np.concatenate([features.signs[code], worth, 1.0 - 2.0 * movers])
    columns = np.concatenate([features.terms[code, square], features.num_terms + kind, np.full(len(boards), tempo)])
    return sparse.csr_array((values, (np.concatenate([row, row, every]), columns)), (len(boards), tempo + 1))
