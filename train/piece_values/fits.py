"""The regression under every estimator that reads results: logistic fits, their resamples, and values in pawns.

Model: log-odds of White's score = features @ weights; a draw is half a win. A game may put weight on several feature
rows (its positions) or on one (its start); it has one result. What is drawn again in the bootstrap is the **cluster**,
the unit whose parts depend on each other: a game, or the two games of one start with colours swapped. A resample draws
whole clusters and refits exactly, which is cheap because the likelihood needs only the total weight of each distinct
feature row in each game. Intervals are bias-corrected and accelerated percentiles over the resamples, for values in
pawns those of the ratio itself. Where the pawn's own interval holds 0 that ratio has no finite interval: then no value
in pawns is given, only log-odds.

Dims: G games, C clusters, U distinct feature rows, F features, R resamples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit

from train.piece_values.bootstrap import bca_interval
from train.piece_values.estimates import PieceEstimate
from train.piece_values.logistic import Floats, fit_logistic, information
from train.piece_values.positions import InsufficientData
from train.ratings import Interval

MIN_DECISIVE = 10
"""Fewer decisive games than this carry no scale for values."""
MAX_CONDITION = 1e4
"""Condition number of the scaled information matrix above which features cannot be told apart."""
INVOLVED = 0.3
"""Share of the weakest direction above which a feature is named as part of it."""
NO_UNIT = "the pawn's interval holds 0"
MOST_TOGETHER, MOST_NUMBERS = 50, 1 << 20
"""Resamples that are fitted at a time, and numbers in an array of theirs."""
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Sums:
    """Sufficient statistics of the fit.

    Attributes:
        features: distinct feature rows, [U, F].
        weight: weight that each game puts on each row, sparse [U, G]; a game's total is 1 on average.
        white_score: White's result of each game, 1, 0.5 or 0, [G].
        cluster: the cluster of each game, integers [G] in 0..C-1; None: each game is one.
    """

    features: Floats
    weight: sparse.csr_array
    white_score: Floats
    cluster: NDArray[np.integer] | None = None

    @property
    def clusters(self) -> NDArray[np.integer]:
        """The cluster of each game, [G]."""
        return np.arange(self.white_score.size) if self.cluster is None else self.cluster

    def fit(self, multiplicity: Floats, start: Floats) -> Floats:
        """Fit with each game counted `multiplicity` [G] times; returns [F]."""
        fit: Floats = self.fit_all(multiplicity[None], start)[0]
        return fit

    def fit_all(self, multiplicity: Floats, start: Floats) -> Floats:
        """Fit several sets, each with the games counted `multiplicity` [R, G] times; returns [R, F]."""
        trials = (self.weight @ multiplicity.T).T
        successes = (self.weight @ (multiplicity * self.white_score).T).T
        return fit_logistic(self.features, successes, trials, start)

    def information(self, estimate: Floats) -> Floats:
        """Return the information matrix of all games at `estimate`, [F, F]."""
        trials = self.weight @ np.ones(self.white_score.size)
        return information(self.features, trials, self.features @ estimate)

    def influence(self, estimate: Floats) -> Floats:
        """Return the first-order effect of each cluster on the fit, [C, F]."""
        chances = expit(self.features @ estimate)
        expected = self.weight.T @ (self.features * chances[:, None])
        observed = (self.weight.T @ self.features) * self.white_score[:, None]
        score = np.zeros((int(self.clusters.max()) + 1, estimate.size))
        np.add.at(score, self.clusters, observed - expected)
        influence = np.linalg.solve(self.information(estimate), score.T).T
        return np.asarray(influence, np.float64)


def sums_of_starts(features: Floats, white_score: Floats, cluster: NDArray[np.integer]) -> Sums:
    """Merge games of equal features, each with one feature row [G, F] of its own and weight 1."""
    rows, row = np.unique(features, axis=0, return_inverse=True)
    games = len(features)
    weight = sparse.coo_array((np.ones(games), (row.ravel(), np.arange(games))), shape=(len(rows), games)).tocsr()
    return Sums(rows.astype(np.float64), weight, white_score, np.unique(cluster, return_inverse=True)[1])


@dataclass(frozen=True)
class Fits:
    """A fit, its resamples and the influence of each cluster.

    Attributes:
        estimate: [F].
        resampled: [R, F].
        influence: [C, F].
        condition: number of the information matrix scaled to unit diagonal; 1 is best.
    """

    estimate: Floats
    resampled: Floats
    influence: Floats
    condition: float

    def weight(self, feature: int) -> Interval:
        """Return a coefficient."""
        return bca_interval(self.estimate[feature], self.resampled[:, feature], self.influence[:, feature])

    def ratio(self, feature: int, unit: int) -> Interval:
        """Return a coefficient over the unit's; resamples without a positive unit count as infinite."""
        if feature == unit:
            return Interval(1.0, 1.0, 1.0)
        estimate = self.estimate[feature] / self.estimate[unit]
        above, below = self.resampled[:, feature], self.resampled[:, unit]
        has_unit = below > 0
        resampled = np.where(has_unit, above / np.where(has_unit, below, 1.0), np.copysign(np.inf, above))
        influence = self.influence[:, feature] - estimate * self.influence[:, unit]
        return bca_interval(estimate, resampled, influence)

    def pieces(
        self, feature_of: Mapping[str, int], games: Mapping[str, int], *, unit: int | None
    ) -> dict[str, PieceEstimate]:
        """Return one entry for each piece that has a feature.

        Args:
            feature_of: letter -> index of its feature.
            games: letter -> games with a difference in it.
            unit: the pawn's feature; None where the game has no pawns.
        """
        has_unit = unit is not None and self.weight(unit).low > 0
        refusal = "" if has_unit else NO_UNIT
        return {
            letter: PieceEstimate(
                letter,
                games[letter],
                self.weight(feature),
                self.ratio(feature, unit) if has_unit and unit is not None else None,
                refusal,
            )
            for letter, feature in feature_of.items()
        }


def fit_with_resamples(
    sums: Sums, names: Sequence[str], *, resamples: int, seed: int, progress: Progress | None = None
) -> Fits:
    """Fit all games, then resamples of their clusters.

    Args:
        sums: the games.
        names: what each feature is called, [F].
        resamples: R.
        seed: of the bootstrap.
        progress: called with the resamples done and wanted.

    Raises:
        InsufficientData: some features cannot be told apart; the message names them.
    """
    estimate = sums.fit(np.ones(sums.white_score.size), np.zeros(sums.features.shape[1]))
    condition = _condition_number(sums, estimate, names)
    resampled = resample_fits(sums, estimate, resamples, seed, progress)
    return Fits(estimate, resampled, sums.influence(estimate), condition)


def resample_fits(sums: Sums, start: Floats, resamples: int, seed: int, progress: Progress | None = None) -> Floats:
    """Refit on `resamples` draws of C clusters with replacement; returns [R, F]."""
    rng = np.random.default_rng(seed)
    cluster = sums.clusters
    clusters = int(cluster.max()) + 1
    fits = np.empty((resamples, start.size))
    together = max(1, min(MOST_TOGETHER, MOST_NUMBERS // max(len(sums.features), clusters)))
    for first in range(0, resamples, together):
        sets = range(first, min(first + together, resamples))
        drawn = [np.bincount(rng.integers(clusters, size=clusters), minlength=clusters) for _ in sets]
        fits[sets.start : sets.stop] = sums.fit_all(np.array(drawn, np.float64)[:, cluster], start)
        if progress:
            progress(sets.stop, resamples)
    return fits


def _condition_number(sums: Sums, estimate: Floats, names: Sequence[str]) -> float:
    matrix = sums.information(estimate)
    scale = np.sqrt(np.diag(matrix))
    eigenvalues, directions = np.linalg.eigh(matrix / np.outer(scale, scale))
    condition = float(eigenvalues[-1] / max(eigenvalues[0], np.finfo(float).eps))
    if condition > MAX_CONDITION:
        involved = [name for name, part in zip(names, directions[:, 0]) if abs(part) > INVOLVED]
        raise InsufficientData(f"games that tell these apart: {', '.join(involved)} (condition {condition:.0f})")
    return condition


def check_games(white_score: Floats, cut_games: int, *, least: int) -> None:
    """Refuse too few games, or too few with a winner.

    Args:
        white_score: results of the finished games, [G].
        cut_games: how many more were cut short.
        least: games needed.

    Raises:
        InsufficientData: says what is missing.
    """
    games, decisive = white_score.size, int(np.isin(white_score, (0.0, 1.0)).sum())
    if games < least:
        cut = f" ({cut_games} more were cut short)" if cut_games else ""
        raise InsufficientData(f"{games} finished games{cut}, at least {least} are needed")
    if decisive < MIN_DECISIVE:
        raise InsufficientData(f"{decisive} decisive games among {games}, at least {MIN_DECISIVE} are needed")


class Differences(Protocol):
    """Games in which sides differ in pieces, [T] types."""

    @property
    def letters(self) -> tuple[str, ...]:
        """Letter of each type."""

    @property
    def pawn(self) -> str | None:
        """Letter of the piece that is worth 1."""

    def games_with_difference(self) -> NDArray[np.int64]:
        """Count the games with a difference in each type, [T]."""

    def even_in(self, columns: list[int]) -> Self:
        """Return what is left without differences in some types."""


GamesT = TypeVar("GamesT", bound=Differences)


def drop_rare(games: GamesT, needed: int) -> tuple[GamesT, dict[str, PieceEstimate]]:
    """Leave out pieces that differ in too few games, and what differs in them; return an entry for each such piece.

    Args:
        games: all of them.
        needed: games with a difference that a piece needs.

    Raises:
        InsufficientData: the pawn is one.
    """
    refusals: dict[str, PieceEstimate] = {}
    while True:
        counts = dict(zip(games.letters, games.games_with_difference().tolist()))
        rare = [letter for letter, count in counts.items() if count < needed and letter not in refusals]
        if not rare:
            return games, refusals
        for letter in rare:
            reason = f"a difference in {counts[letter]} games, at least {needed} are needed"
            refusals[letter] = PieceEstimate(letter, counts[letter], None, None, reason)
        if games.pawn in refusals:
            raise InsufficientData(f"no unit, the pawn ({games.pawn}): {refusals[str(games.pawn)].refusal}")
        games = games.even_in([games.letters.index(letter) for letter in rare])
