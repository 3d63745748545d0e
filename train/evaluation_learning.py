"""Learn the evaluation of a game by temporal differences, from games of the alpha-beta engine against itself.

All weights begin at 0, so the first games are random; nothing is known of the pieces but how they move. Rounds of games
are played with what was learned so far. Each position at the end of a searched variation is then given a target, its
lambda-return: a blend of the values of the positions that followed it in the game and of the game's result. Weights
are fitted to the targets of the later half of all games, then scaled as a whole by how well earlier ones foretold
results, and the next round begins. The prior of the fit is a Gaussian process over the board: a square term is believed
only as far as the games insist, and neighbouring squares tell of each other (`evaluation_prior.py`).

Positions count by how open they are, 4 v (1 - v) of their value v, as in the squared error that TD(lambda) descends:
the logistic curve fits lopsided positions least. Games begin from the array or from random material odds, then with
some random moves; both players weigh pieces a little differently, so that they trade. Dims: N positions; for the
others see `evaluation_features.py`.

Sources: Sutton 1988, "Learning to predict by the methods of temporal differences"; Beal and Smith 1997, "Learning
piece values using temporal differences", and 1999, "Learning piece-square values using temporal differences"; Baxter,
Tridgell and Weaver 1998, "TDLeaf(lambda)"; Droste and Fuernkranz 2008, "Learning the piece values for three chess
variants".
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit

from envs import CompiledGame, Variant, engine_for
from envs.layout import U8Array
from train import evaluation_kernels as kernels
from train.evaluation_features import F64Array, Features, count_standing
from train.evaluation_games import GamePlayer, LearningGame
from train.evaluation_prior import SmoothPrior
from train.evaluation_tables import MAX_WEIGHT, UNITS, EvaluationTable
from train.progress import Reporter, Update
from train.provenance import versions
from train.starts import array_start, odds_start

GAMES = 2000
NUMBERS_REST_ON = ("python", "asylum-zero", "numpy", "scipy", "numba")
DECIMALS = 3
LEAST_UNIT = 0.02
"""Of the dearest piece: a pawn that is worth less is no unit."""
FEWEST_STANDING = 100
"""A piece that stood in fewer places of all positions learned from has no value to show."""
SWEEPS = 4
"""Fits after each round, each to targets by the last one."""
MOST_STEPS, MEMORY = 40, 20
"""Of the fit: iterations, and gradients that it remembers."""


@dataclass(frozen=True)
class LearningSettings:
    """How an evaluation is learned.

    Attributes:
        games: in all.
        games_per_round: played with the same weights.
        depth: plies that a move is searched, quiescence not counted; one less in the first half of the games, of which
            nothing but a first guess stays.
        max_plies: where a game is cut short; its last value stands for its result.
        trace_decay: lambda.
        odds_share: share of games that begin with random material odds.
        random_plies: a game begins with fewer random moves than this.
        opinion: spread (standard deviation of the logarithm) of what a player thinks a piece is worth.
        positions_per_game: that are learned from, at most.
        evidence_per_game: how many independent positions a game counts as.
        material_spread: standard deviation of the prior of a piece's material, in logits.
        square_spread: the same of a square term.
        reach: how far squares tell of each other, in squares: the standard deviation of a Gaussian.
        roughness: share of a square term's variance that is its own.
    """

    games: int = GAMES
    games_per_round: int = 100
    depth: int = 3
    max_plies: int = 300
    trace_decay: float = 0.5
    odds_share: float = 0.4
    random_plies: int = 10
    opinion: float = 0.1
    positions_per_game: int = 24
    evidence_per_game: float = 8.0
    material_spread: float = 3.0
    square_spread: float = 0.3
    reach: float = 2.5
    roughness: float = 0.05

    def __post_init__(self) -> None:
        if self.games < 1:
            raise ValueError(f"games: expected at least 1, got {self.games}")


@dataclass(frozen=True, eq=False)
class Positions:
    """Positions with what is to be learned of them.

    Attributes:
        boards: uint8 [N, S], piece codes.
        movers: uint8 [N], 0 White, 1 Black to move.
        targets: float64 [N], White's score.
        counts: float64 [N], what each counts as evidence.
        scores: float64 [N], White's score in the end, NaN where the game was cut short.
    """

    boards: U8Array
    movers: U8Array
    targets: F64Array
    counts: F64Array
    scores: F64Array


def learn_table(
    variant: Variant,
    *,
    seed: int = 0,
    settings: LearningSettings | None = None,
    reporter: Reporter | None = None,
) -> EvaluationTable:
    """Learn the evaluation of a game; the same seed and settings give the same table.

    Args:
        variant: the game.
        seed: of everything random.
        settings: the defaults if None.
        reporter: shows progress; stderr by default.
    """
    settings, reporter = settings or LearningSettings(), reporter or Reporter()
    learner = Learner(engine_for(variant), settings, seed)
    with reporter.task(f"learning the evaluation of {variant.name}, games", settings.games) as update:
        while learner.games_played < settings.games:
            learner.play_round(update)
            learner.fit_round()
    return learner.table(seed)


class Learner:
    """Learning under way: the parameters so far, and the games of which the later half is learned from."""

    def __init__(self, game: CompiledGame, settings: LearningSettings, seed: int) -> None:
        """Begin with nothing known."""
        self.features = Features.of(game)
        self.parameters = np.zeros(self.features.num_terms + self.features.num_kinds + 1)
        self.games_played = 0
        self._game, self._settings = game, settings
        self._rng = np.random.default_rng(seed)
        self._players = [
            GamePlayer(game, depth=depth, max_plies=settings.max_plies)
            for depth in (max(1, settings.depth - 1), settings.depth)
        ]
        self._rounds: list[list[LearningGame]] = []
        self._forecasts: list[F64Array] = []  # of each round: logits, scores, counts
        self._num_rounds = 0

    def play_round(self, update: Update = lambda done: None) -> None:
        """Play a round of games with the parameters so far; `update` is told how many have been played in all."""
        weights, tempo = self._table_units()
        played = []
        for _ in range(min(self._settings.games_per_round, self._settings.games - self.games_played)):
            played.append(self._play_game(weights, tempo))
            self.games_played += 1
            update(self.games_played)
        self.add_round(played)

    def add_round(self, games: list[LearningGame]) -> None:
        """Take a round of games in, with forecasts of their results; of all rounds the later half is learned from."""
        kept = self._num_rounds // 2 + 1
        self._num_rounds += 1
        self._rounds = [*self._rounds, games][-kept:]
        foretold = self._positions([games])
        logits = _evaluate(self.features, foretold, self.parameters)
        self._forecasts = [*self._forecasts, np.stack([logits, foretold.scores, foretold.counts])][-kept:]

    def fit_round(self) -> None:
        """Fit the parameters to the games at hand: their proportions to the targets, their scale to the results."""
        before = self.parameters
        for _ in range(SWEEPS):
            positions = self._positions(self._rounds)
            self.parameters = fit(self.features, positions, self.parameters, self._settings)
        self._rescale(_evaluate(self.features, positions, before), _evaluate(self.features, positions, self.parameters))

    def _rescale(self, before: F64Array, after: F64Array) -> None:
        """Scale the parameters to the results that were foretold, given evaluations before and after the fit."""
        growth = after @ before / (before @ before) if before.any() else 1.0
        logits, scores, counts = np.concatenate(self._forecasts, axis=1)
        factor = result_scale(growth * logits, scores, counts)
        self.parameters = factor * self.parameters
        for forecasts in self._forecasts:
            forecasts[0] *= growth * factor

    def table(self, seed: int) -> EvaluationTable:
        """Return what has been learned; `seed` is for its provenance."""
        weights, tempo = self._table_units()
        positions, variant = self._positions(self._rounds), self._game.variant
        worth, standing = self.features.worth(weights.astype(np.float64), count_standing(positions.boards))
        pawn = _pawn_units(worth, standing >= FEWEST_STANDING, self.features)
        shown = (standing >= FEWEST_STANDING) & ~self.features.is_royal
        values = np.round(worth / pawn, DECIMALS).tolist()
        return EvaluationTable(
            weights=weights,
            tempo=tempo,
            pawn=round(pawn, DECIMALS),
            values={letter: value for letter, value, is_shown in zip(self.features.letters, values, shown) if is_shown},
            variant=variant.name,
            options=dict(variant.options),
            rules_hash=variant.rules_hash,
            provenance={
                "games": self.games_played,
                "seed": seed,
                "positions": len(positions.boards),
                "settings": asdict(self._settings),
                "versions": {name: versions()[name] for name in NUMBERS_REST_ON},
            },
        )

    def _table_units(self) -> tuple[NDArray[np.int32], int]:
        """Return weights int32 [32, S] and tempo of the parameters so far."""
        weights = np.clip(np.rint(UNITS * self.features.weights(self.parameters)), -MAX_WEIGHT, MAX_WEIGHT)
        return weights.astype(np.int32), round(UNITS * self.parameters[-1])

    def _play_game(self, weights: NDArray[np.int32], tempo: int) -> LearningGame:
        rng, settings = self._rng, self._settings
        start = odds_start if rng.random() < settings.odds_share else array_start
        opinions = np.exp(rng.normal(0.0, settings.opinion, (2, len(weights), 1)))
        return self._players[2 * self.games_played >= settings.games].play(
            start(self._game, rng),
            np.rint(opinions * weights).astype(np.int32),
            tempo,
            random_plies=int(rng.integers(settings.random_plies)),
            seed=int(rng.integers(1 << 62)),
        )

    def _positions(self, rounds: list[list[LearningGame]]) -> Positions:
        """Return some positions of games with their targets by the parameters so far."""
        weights, tempo = self.features.weights(self.parameters), self.parameters[-1]
        found = [
            _sample(game, weights, float(tempo), self._settings, self._rng)
            for games in rounds
            for game in games
            if len(game.boards)
        ]
        return Positions(*(np.concatenate(parts) for parts in zip(*found)))


def lambda_returns(values: F64Array, result: float, trace_decay: float) -> F64Array:
    """Return the targets of a game's positions, float64 [N].

    Args:
        values: [N], what each position is thought to be worth.
        result: of the game, or what stands for it.
        trace_decay: lambda; 1: every target is the result, 0: each is the value of the next position.
    """
    targets = np.empty_like(values)
    target = result
    for t in range(len(values) - 1, -1, -1):
        targets[t] = target
        target = (1 - trace_decay) * values[t] + trace_decay * target
    return targets


def fit(features: Features, positions: Positions, start: F64Array, settings: LearningSettings) -> F64Array:
    """Return the likeliest parameters [F]: the prior's, moved by what the targets of positions say.

    Args:
        features: of the game.
        positions: at least one.
        start: [F], where the search for them begins.
        settings: the prior.
    """
    prior = SmoothPrior.of(features, settings)

    def loss(white: F64Array) -> tuple[float, F64Array]:
        logits = _evaluate(features, positions, prior.colour(white))
        errors = positions.counts * (expit(logits) - positions.targets)
        by_weight = np.zeros(features.terms.shape)
        by_tempo = kernels.add_errors(positions.boards, positions.movers, errors, by_weight)
        entropy = positions.counts @ (np.logaddexp(0.0, logits) - positions.targets * logits)
        gradient = prior.colour_gradient(features.gradient(by_weight, by_tempo))
        return float(entropy + white @ white / 2), gradient + white

    begin = prior.whiten(start)
    found = minimize(loss, begin, jac=True, method="L-BFGS-B", options={"maxiter": MOST_STEPS, "maxcor": MEMORY})
    return prior.colour(found.x)


def result_scale(logits: F64Array, scores: F64Array, counts: F64Array) -> float:
    """Return the factor, 1/2 to 2, by which forecasts foretell results best; 1 without any.

    Args:
        logits: [N], forecasts of White's score by parameters that were not fitted to these games.
        scores: [N], White's, NaN where a game was cut short.
        counts: [N], what each counts.
    """
    is_known = ~np.isnan(scores)
    logits, scores, counts = logits[is_known], scores[is_known], counts[is_known]
    if not logits.any():
        return 1.0
    found = minimize_scalar(
        lambda factor: float(counts @ (np.logaddexp(0.0, factor * logits) - scores * factor * logits)),
        bounds=(0.5, 2.0),
        method="bounded",
    )
    return float(found.x)


def _evaluate(features: Features, positions: Positions, parameters: F64Array) -> F64Array:
    """Return White's evaluation of positions in logits, float64 [N]."""
    logits = np.zeros(len(positions.boards))
    weights, tempo = features.weights(parameters), float(parameters[-1])
    kernels.evaluate_boards(positions.boards, positions.movers, weights, tempo, logits)
    return logits


def _sample(
    game: LearningGame, weights: F64Array, tempo: float, settings: LearningSettings, rng: np.random.Generator
) -> tuple[U8Array, U8Array, F64Array, F64Array, F64Array]:
    """Return the parts of `Positions` for some positions of a game, none in which it is decided."""
    values = np.empty(len(game.boards))
    kernels.evaluate_boards(game.boards, game.movers, weights, tempo, values)
    is_open = np.isnan(game.decided)
    values = np.where(is_open, expit(values), game.decided)
    result = values[-1] if np.isnan(game.white_score) else game.white_score
    targets = lambda_returns(values, result, settings.trace_decay if weights.any() else 1.0)
    chosen = rng.permutation(np.flatnonzero(is_open))[: settings.positions_per_game]
    evidence = settings.evidence_per_game / settings.positions_per_game
    counts = evidence * 4 * values[chosen] * (1 - values[chosen])
    scores = np.full(len(chosen), game.white_score)
    return game.boards[chosen], game.movers[chosen], targets[chosen], counts, scores


def _pawn_units(worth: F64Array, stands: NDArray[np.bool_], features: Features) -> float:
    """Return what a pawn is worth; where that is next to nothing, the weakest piece that is not; else one logit."""
    least = LEAST_UNIT * worth[stands & ~features.is_royal].max(initial=0.0)
    pawns = worth[stands & features.is_pawn]
    if len(pawns) and pawns.mean() > least:
        return float(pawns.mean())
    return float(worth[stands & ~features.is_royal & (worth > least)].min(initial=UNITS))
