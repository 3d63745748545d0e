"""Piece values by temporal differences: what the alpha-beta engine's own evaluation learns that pieces are worth.

Each seed learns an evaluation from nothing, from its own games. A piece is worth what the evaluation gives for it
where it stands, on average, over the same of a pawn. Games are clusters: each seed's interval is from games drawn
again, each time with the final fit solved by a Newton step (`td_equations.py`). The seeds' mean is the estimate; its
variance is the mean one within seeds plus what seeds differ by beyond it, over their number, with the degrees of
freedom of Satterthwaite (1946, Biometrics Bulletin 2, 110-114), few where the seeds' difference dominates.

Values of weak play are values of weak play: they are right for players who search as deep as these. Kinds are told
apart by side where the sides differ; then nothing separates a side's advantage from its pieces.

Dims: K kinds, G games, R resamples. Sources: see `train/evaluation_learning.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, t

from envs import Variant, engine_for
from train.evaluation_features import UNUSED, F64Array, Features
from train.evaluation_games import LearningGame
from train.evaluation_learning import FEWEST_STANDING, Learner, LearningSettings
from train.piece_values.estimates import MethodValues, PieceEstimate, Split
from train.piece_values.fits import Fits
from train.piece_values.positions import InsufficientData
from train.piece_values.td_equations import Equations
from train.progress import Reporter, Update
from train.ratings import CONFIDENCE, Interval
from train.resources import num_cores

SEEDS = (0, 1, 2)
RESAMPLES = 1000


@dataclass(frozen=True, eq=False)
class Learned:
    """What one seed has learned.

    Attributes:
        equations: of the games that were learned from.
        parameters: float64 [F], what was learned from them, the last fit solved by Newton's method.
    """

    equations: Equations
    parameters: F64Array


def td_values(
    variant: Variant,
    *,
    seeds: Sequence[int] = SEEDS,
    settings: LearningSettings | None = None,
    resamples: int = RESAMPLES,
    reporter: Reporter | None = None,
) -> MethodValues:
    """Learn a game's evaluation with several seeds, and return what it says of the pieces.

    Args:
        variant: the game.
        seeds: of the learners, at least one; equal seeds give equal values.
        settings: of each learner; the defaults if None.
        resamples: of each seed's games.
        reporter: shows progress; stderr by default.

    Raises:
        InsufficientData: the game has no pawns, or they stood too seldom.
    """
    settings, reporter = settings or LearningSettings(), reporter or Reporter()
    if variant.pawns is None:
        raise InsufficientData(f"no unit: {variant.title} has no pawns")
    if not seeds or len(set(seeds)) < len(seeds):
        raise ValueError(f"seeds: expected different ones, got {list(seeds)}")
    done = dict.fromkeys(seeds, 0)
    with (
        reporter.task(f"learning {variant.name} with {len(seeds)} seeds, games", settings.games * len(seeds)) as update,
        ThreadPoolExecutor(min(len(seeds), num_cores())) as pool,
    ):

        def learn(seed: int) -> Learned:
            def note(games: int) -> None:
                done[seed] = games
                update(sum(done.values()))

            return learn_seed(variant, settings, seed, note)

        learned = list(pool.map(learn, seeds))
    return values_of(learned, seeds=seeds, resamples=resamples, basis=_basis(settings, seeds))


def learn_seed(variant: Variant, settings: LearningSettings, seed: int, update: Update = lambda done: None) -> Learned:
    """Learn an evaluation; the games of the later half are kept, as the learner does."""
    learner = _Learner(engine_for(variant), settings, seed)
    while learner.games_played < settings.games:
        learner.play_round(update)
        learner.fit_round()
    later = learner.games[len(learner.games) // 2 :]
    equations = Equations.of(learner.features, later, settings)
    return Learned(equations, equations.refined(learner.parameters))


def values_of(learned: Sequence[Learned], *, seeds: Sequence[int], resamples: int, basis: str = "") -> MethodValues:
    """Return the values that evaluations learned with several seeds say, with their intervals.

    Args:
        learned: by each seed.
        seeds: of the learners; they seed the bootstrap too.
        resamples: R, of each seed's games.
        basis: see `MethodValues`.

    Raises:
        InsufficientData: pawns stood too seldom.
    """
    by_seed = [_seed_values(one, seed=seed, resamples=resamples) for one, seed in zip(learned, seeds, strict=True)]
    pieces = tuple(_joined([of_seed[letter] for of_seed in by_seed]) for letter in by_seed[0])
    scores = np.concatenate([one.equations.scores for one in learned])
    is_cut = np.isnan(scores)
    splits = [Split(f"seed {seed}", tuple(values.values())) for seed, values in zip(seeds, by_seed)]
    return MethodValues(
        method="td",
        pieces=pieces,
        games=int((~is_cut).sum()),
        decisive_games=int(np.isin(scores, (0.0, 1.0)).sum()),
        cut_games=int(is_cut.sum()),
        splits=tuple(splits) if len(splits) > 1 else (),
        basis=basis,
        checks={
            "seeds": list(seeds),
            "resamples": resamples,
            "settings": asdict(learned[0].equations.settings),
            "cut_games_used": True,
        },
    )


def combined(intervals: Sequence[Interval]) -> Interval:
    """Return the mean of independent estimates, with what they differ by in its interval.

    Args:
        intervals: of each estimate on its own, at the project's confidence.
    """
    if len(intervals) == 1:
        return intervals[0]
    estimates = np.array([one.estimate for one in intervals])
    quantile = norm.ppf((1 + CONFIDENCE) / 2)
    ends = np.array([[one.estimate - one.low, one.high - one.estimate] for one in intervals]) / quantile
    within = (ends**2).mean(axis=0)
    between = max(0.0, float(estimates.var(ddof=1)) - float(within.mean()))
    variance = within + between
    if not np.isfinite(variance).all():
        return Interval(float(estimates.mean()), -np.inf, np.inf)
    freedom = np.inf
    if between > 0:
        freedom = (len(intervals) - 1) * float(variance.mean()) ** 2 / between**2
    low, high = t.ppf((1 + CONFIDENCE) / 2, freedom) * np.sqrt(variance / len(intervals))
    mean = float(estimates.mean())
    return Interval(mean, mean - float(low), mean + float(high))


class _Learner(Learner):
    """A learner that keeps all its games."""

    games: list[LearningGame]

    def add_round(self, games: list[LearningGame]) -> None:
        """See `Learner`."""
        self.games = [*getattr(self, "games", []), *games]
        super().add_round(games)


def _seed_values(learned: Learned, *, seed: int, resamples: int) -> dict[str, PieceEstimate]:
    """Return one entry for each kind that is not royal; the last column of the fits is the pawns' mean."""
    equations = learned.equations
    features = equations.features
    worth, standing = worth_matrix(features, equations.standing)
    stands = standing >= FEWEST_STANDING
    pawns = np.flatnonzero(features.is_pawn & stands)
    if not len(pawns):
        raise InsufficientData(f"no unit: pawns stood in fewer than {FEWEST_STANDING} places of all positions")
    columns = np.vstack([worth, worth[pawns].mean(axis=0)])
    influence = equations.influence(learned.parameters) @ columns.T
    estimate = columns @ learned.parameters
    drawn = _multiplicities(np.random.default_rng([seed, resamples]), resamples, equations.num_games)
    fits = Fits(estimate, estimate + (drawn - 1) @ influence, influence, float("nan"))
    unit = len(worth) if len(pawns) > 1 else int(pawns[0])
    shown = [kind for kind in range(features.num_kinds) if not features.is_royal[kind]]
    feature_of = {features.letters[kind]: kind for kind in shown}
    games = dict(zip(features.letters, games_with_difference(equations).tolist()))
    values = fits.pieces({letter: kind for letter, kind in feature_of.items() if stands[kind]}, games, unit=unit)
    return {letter: values.get(letter) or _too_rare(letter, games[letter], standing[kind])
            for letter, kind in feature_of.items()}  # fmt: skip


def worth_matrix(features: Features, standing: F64Array) -> tuple[F64Array, F64Array]:
    """Return the matrix [K, F] by which parameters become what kinds are worth where they stand, and how often they do.

    Args:
        features: of the game.
        standing: float64 [32, S], how often each code stands on each square.
    """
    matrix = np.zeros((features.num_kinds, features.num_terms + features.num_kinds + 1))
    used = features.terms != UNUSED
    kinds = np.broadcast_to(features.kinds[:, None], used.shape)[used]
    np.add.at(matrix, (kinds, features.terms[used]), standing[used])
    number: F64Array = np.bincount(kinds, standing[used], features.num_kinds).astype(np.float64)
    matrix /= np.maximum(number, 1.0)[:, None]
    matrix[np.arange(features.num_kinds), features.num_terms + np.arange(features.num_kinds)] = ~features.is_constant
    return matrix, number


def games_with_difference(equations: Equations) -> NDArray[np.intp]:
    """Count the games that have a position with more of a kind on one side, [K]; of one-sided kinds, with any."""
    first = equations.features.num_terms
    material = equations.design[:, first : first + equations.features.num_kinds].tocoo()
    held = material.data != 0
    pairs = np.unique(equations.game[material.row[held]] * equations.features.num_kinds + material.col[held])
    return np.bincount(pairs % equations.features.num_kinds, minlength=equations.features.num_kinds)


def _multiplicities(rng: np.random.Generator, resamples: int, games: int) -> F64Array:
    """Return how often each game is in each resample, [R, G]."""
    return rng.multinomial(games, np.full(games, 1 / games), size=resamples).astype(np.float64)


def _too_rare(letter: str, games: int, standing: float) -> PieceEstimate:
    reason = f"it stood in {standing:.0f} places of all positions, at least {FEWEST_STANDING} are needed"
    return PieceEstimate(letter, games, None, None, reason)


def _joined(entries: Sequence[PieceEstimate]) -> PieceEstimate:
    """Return one entry of those of several seeds; refused where one is."""
    games = sum(entry.games for entry in entries)
    log_odds = [entry.log_odds for entry in entries if entry.log_odds]
    values = [entry.value for entry in entries if entry.value]
    refusal = next((entry.refusal for entry in entries if entry.refusal), "")
    return PieceEstimate(
        letter=entries[0].letter,
        games=games,
        log_odds=combined(log_odds) if len(log_odds) == len(entries) else None,
        value=combined(values) if len(values) == len(entries) else None,
        refusal=refusal,
    )


def _basis(settings: LearningSettings, seeds: Sequence[int]) -> str:
    return (
        f"evaluations learned from {settings.games} games each, searched {settings.depth} plies deep, with "
        f"{len(seeds)} seeds ({', '.join(map(str, seeds))})"
    )
