"""Piece values from results: how much a difference in pieces moves the odds of the game.

Model (Tomasev, Paquet, Hassabis and Kramnik 2020, arXiv 2009.04374, fit tanh of a weighted material
difference to the results of self-play games; tanh(x) is the logistic function of 2x on another scale):

    log-odds of White's score = white advantage + side to move + sum of weight * (White's - Black's count)

A draw is half a win. A piece's value in pawns is its weight over the pawn's. Positions of a game share its
result, so the **game** is the unit of the bootstrap: a resample draws whole games and refits exactly. It is
cheap because the likelihood needs only the total weight of each distinct feature row in each game. Intervals
are bias-corrected and accelerated percentiles over the resamples, for values in pawns those of the ratio
itself. Where the pawn's own interval holds 0 that ratio has no finite interval: then no value in pawns is
given, only log-odds.

Dims: N positions, G games, K piece types with enough data, U distinct feature rows, F = 2 + K features,
R resamples.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.special import expit

from train.config_sections import PieceValuesConfig
from train.piece_values.bootstrap import bca_interval
from train.piece_values.logistic import Floats, fit_logistic, information
from train.piece_values.positions import InsufficientData, Positions
from train.ratings import ELO_PER_DECADE, Interval

COMMON_FEATURES = ("white advantage", "side to move")
"""Features before the pieces'."""
MIN_DECISIVE = 10
"""Fewer decisive games than this carry no scale for values."""
MAX_CONDITION = 1e4
"""Condition number of the scaled information matrix above which features cannot be told apart."""
INVOLVED = 0.3
"""Share of the weakest direction above which a feature is named as part of it."""
ELO_PER_LOG_ODD = float(ELO_PER_DECADE / np.log(10))
PROGRESS_EVERY = 20


@dataclass(frozen=True)
class PieceEstimate:
    """One piece's value.

    Attributes:
        letter: its letter.
        games: games with a difference in it.
        log_odds: weight of one piece in log-odds; None where refused.
        value: the weight over the pawn's; None where refused or where the pawn's interval holds 0.
        refusal: why there is no value, or "".
    """

    letter: str
    games: int
    log_odds: Interval | None
    value: Interval | None
    refusal: str = ""

    @property
    def elo(self) -> Interval | None:
        """The weight in Elo points."""
        if self.log_odds is None:
            return None
        weight = self.log_odds
        return Interval(*(end * ELO_PER_LOG_ODD for end in (weight.estimate, weight.low, weight.high)))


@dataclass(frozen=True)
class OutcomeValues:
    """Values of all pieces, and what they rest on.

    Attributes:
        pieces: one entry per piece type, the pawn included.
        white_advantage: log-odds that White has at equal material.
        side_to_move: log-odds that the player to move has at equal material.
        games: games used.
        decisive_games: those with a winner.
        cut_games: games left out because they were cut short.
        positions: positions used.
        condition_number: of the information matrix scaled to unit diagonal; 1 is best.
        resamples: R.
        seed: of the bootstrap.
    """

    pieces: tuple[PieceEstimate, ...]
    white_advantage: Interval
    side_to_move: Interval
    games: int
    decisive_games: int
    cut_games: int
    positions: int
    condition_number: float
    resamples: int
    seed: int

    @property
    def cut_share(self) -> float:
        """Share of all games that were cut short."""
        return self.cut_games / (self.cut_games + self.games)


def estimate_values(
    positions: Positions,
    *,
    settings: PieceValuesConfig,
    seed: int,
    progress: Callable[[int, int], None] | None = None,
) -> OutcomeValues:
    """Fit the outcome model and bootstrap it over games.

    Args:
        positions: positions of finished games.
        settings: thresholds, weighting and number of resamples.
        seed: of the bootstrap.
        progress: called with the resamples done and wanted.

    Raises:
        InsufficientData: too little for any value.
    """
    used, refusals = _drop_rare_pieces(positions, settings)
    _check_games(used, settings)
    kept = [letter for letter in used.letters if letter not in refusals]
    sums = summarise(used, kept, settings.weighting)
    estimate = sums.fit(np.ones(used.num_games), np.zeros(sums.features.shape[1]))
    condition = _condition(sums, estimate, [*COMMON_FEATURES, *kept])
    resampled = resample_fits(sums, estimate, settings.bootstrap, seed, progress)
    fits = _Fits(estimate, resampled, sums.influence(estimate))
    return OutcomeValues(
        pieces=_piece_estimates(fits, used, refusals),
        white_advantage=fits.weight(0),
        side_to_move=fits.weight(1),
        games=used.num_games,
        decisive_games=used.decisive_games,
        cut_games=positions.cut_games,
        positions=used.game.size,
        condition_number=condition,
        resamples=settings.bootstrap,
        seed=seed,
    )


@dataclass(frozen=True)
class Sums:
    """Sufficient statistics of the fit.

    Attributes:
        features: distinct feature rows, [U, F].
        weight: weight that each game puts on each row, sparse [U, G]; a game's total is 1 on average.
        white_score: White's result of each game, [G].
    """

    features: Floats
    weight: sparse.csr_array
    white_score: Floats

    def fit(self, multiplicity: Floats, start: Floats) -> Floats:
        """Fit with each game counted `multiplicity` [G] times; returns [F]."""
        trials = self.weight @ multiplicity
        successes = self.weight @ (multiplicity * self.white_score)
        held = trials > 0
        return fit_logistic(self.features[held], successes[held], trials[held], start)

    def information(self, estimate: Floats) -> Floats:
        """Return the information matrix of all games at `estimate`, [F, F]."""
        trials = self.weight @ np.ones(self.white_score.size)
        return information(self.features, trials, self.features @ estimate)

    def influence(self, estimate: Floats) -> Floats:
        """Return the first-order effect of each game on the fit, [G, F]."""
        chances = expit(self.features @ estimate)
        expected = self.weight.T @ (self.features * chances[:, None])
        observed = (self.weight.T @ self.features) * self.white_score[:, None]
        influence: Floats = np.linalg.solve(self.information(estimate), (observed - expected).T).T
        return influence


def summarise(positions: Positions, letters: list[str], weighting: str) -> Sums:
    """Merge positions of equal features.

    Args:
        positions: N positions.
        letters: the piece types that are features, K of them.
        weighting: "game": each game weighs 1; "position": each position weighs the same, G in all.
    """
    columns = [positions.letters.index(letter) for letter in letters]
    side = np.where(positions.white_to_move, 1, -1).astype(np.int16)
    rows, row = np.unique(np.column_stack((side, positions.material[:, columns])), axis=0, return_inverse=True)
    if weighting == "game":
        each = 1.0 / np.bincount(positions.game, minlength=positions.num_games)[positions.game]
    else:
        each = np.full(positions.game.size, positions.num_games / positions.game.size)
    shape = (len(rows), positions.num_games)
    weight = sparse.coo_array((each, (row.ravel(), positions.game)), shape=shape).tocsr()
    features = np.column_stack((np.ones(len(rows)), rows)).astype(np.float64)
    return Sums(features, weight, positions.white_score)


def resample_fits(
    sums: Sums,
    start: Floats,
    resamples: int,
    seed: int,
    progress: Callable[[int, int], None] | None = None,
) -> Floats:
    """Refit on `resamples` draws of G games with replacement; returns [R, F]."""
    rng = np.random.default_rng(seed)
    games = sums.white_score.size
    fits = np.empty((resamples, start.size))
    for done in range(resamples):
        drawn = np.bincount(rng.integers(games, size=games), minlength=games).astype(np.float64)
        fits[done] = sums.fit(drawn, start)
        if progress and ((done + 1) % PROGRESS_EVERY == 0 or done + 1 == resamples):
            progress(done + 1, resamples)
    return fits


def _drop_rare_pieces(positions: Positions, settings: PieceValuesConfig) -> tuple[Positions, dict[str, PieceEstimate]]:
    """Leave out pieces with too few games, and the positions that differ in them; one entry for each."""
    refusals: dict[str, PieceEstimate] = {}
    while True:
        counts = dict(zip(positions.letters, positions.games_with_difference().tolist()))
        needed = settings.min_games_per_piece
        rare = [letter for letter, count in counts.items() if count < needed and letter not in refusals]
        if not rare:
            return positions, refusals
        for letter in rare:
            reason = f"a difference in {counts[letter]} games, at least {needed} are needed"
            refusals[letter] = PieceEstimate(letter, counts[letter], None, None, reason)
        if positions.pawn in refusals:
            raise InsufficientData(f"no unit, the pawn ({positions.pawn}): {refusals[positions.pawn].refusal}")
        columns = [positions.letters.index(letter) for letter in rare]
        positions = positions.take((positions.material[:, columns] == 0).all(axis=1))


def _check_games(used: Positions, settings: PieceValuesConfig) -> None:
    if used.num_games < settings.min_games:
        cut = f" ({used.cut_games} more were cut short)" if used.cut_games else ""
        raise InsufficientData(f"{used.num_games} finished games{cut}, at least {settings.min_games} are needed")
    if used.decisive_games < MIN_DECISIVE:
        found = f"{used.decisive_games} decisive games among {used.num_games}"
        raise InsufficientData(f"{found}, at least {MIN_DECISIVE} are needed")


def _condition(sums: Sums, estimate: Floats, names: list[str]) -> float:
    """Return the condition number of the scaled information matrix.

    Raises:
        InsufficientData: some features cannot be told apart; the message names them.
    """
    matrix = sums.information(estimate)
    scale = np.sqrt(np.diag(matrix))
    eigenvalues, directions = np.linalg.eigh(matrix / np.outer(scale, scale))
    condition = float(eigenvalues[-1] / max(eigenvalues[0], np.finfo(float).eps))
    if condition > MAX_CONDITION:
        involved = [name for name, part in zip(names, directions[:, 0]) if abs(part) > INVOLVED]
        raise InsufficientData(f"games that tell these apart: {', '.join(involved)} (condition {condition:.0f})")
    return condition


@dataclass(frozen=True)
class _Fits:
    """The fit, its resamples and the influence of each game.

    Attributes:
        estimate: [F].
        resampled: [R, F].
        influence: [G, F].
    """

    estimate: Floats
    resampled: Floats
    influence: Floats

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


def _piece_estimates(fits: _Fits, used: Positions, refusals: dict[str, PieceEstimate]) -> tuple[PieceEstimate, ...]:
    """Turn the fits into one entry per piece type."""
    kept = [letter for letter in used.letters if letter not in refusals]
    feature = {letter: len(COMMON_FEATURES) + index for index, letter in enumerate(kept)}
    unit = feature[used.pawn]
    has_unit = fits.weight(unit).low > 0
    entries = []
    for letter, games in zip(used.letters, used.games_with_difference().tolist()):
        if letter in refusals:
            entries.append(refusals[letter])
            continue
        value = fits.ratio(feature[letter], unit) if has_unit else None
        refusal = "" if has_unit else "the pawn's interval holds 0"
        entries.append(PieceEstimate(letter, games, fits.weight(feature[letter]), value, refusal))
    return tuple(entries)
