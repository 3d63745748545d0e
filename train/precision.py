"""Int8 in a run: the positions that it is calibrated on, and the match that has to admit it to self-play.

Once, after a given iteration, the trained weights in int8 play themselves in float32: equal simulations, paired
openings, colours swapped. Only if int8 is shown to lose little do the workers use it from then on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from envs import Variant, VectorEnv, legal_actions, observe
from models.evaluator import Calibration, Precision, make_evaluator
from train.arena import MatchResult, MatchSettings, play_match
from train.config import RunConfig
from train.resources import num_cores
from train.search import SearchPlayer, SearchSettings

if TYPE_CHECKING:
    from models.network import PolicyValueNetwork

FLOAT32: Precision = "float32"
INT8: Precision = "int8"
NUM_POSITIONS, POSITIONS_SEED = 64, 0
"""Positions of the calibration, and what draws them; evaluating 64 is most of the 0.14 s that publishing takes."""
LEAST_SCORE = 0.45
"""What the lower end of the score's 95 % interval must reach: int8 is then shown to cost at most 35 Elo points at equal
simulations. The interval of 400 even games is about 0.04 either way; a stricter bound would need a longer match."""


@dataclass(frozen=True)
class Verdict:
    """What the match between the precisions said; a checkpoint keeps it.

    Attributes:
        iteration: after which it was played.
        games: of the match.
        score: of int8.
        low: lower end of the score's 95 % interval.
        high: upper end.
        precision: what self-play evaluates in from then on.
    """

    iteration: int
    games: int
    score: float
    low: float
    high: float
    precision: Precision

    @classmethod
    def of(cls, match: MatchResult, iteration: int) -> Verdict:
        """Judge a match whose first player evaluated in int8."""
        score = match.score
        precision = INT8 if score.low >= LEAST_SCORE else FLOAT32
        return cls(iteration, match.settings.games, score.estimate, score.low, score.high, precision)

    def __str__(self) -> str:
        """Say what is used, and why."""
        measured = f"{self.score:.3f} ({self.low:.3f} to {self.high:.3f}) against float32 in {self.games} games"
        bound = f"{'at least' if self.precision == INT8 else 'below'} {LEAST_SCORE}"
        return (
            f"self-play uses {self.precision} after iteration {self.iteration}: at equal simulations int8 scores "
            f"{measured}; the lower end is {bound}"
        )


def calibration_positions(variant: Variant) -> Calibration:
    """Return positions of random games, the same ones at each call: the first at the start, each next one ply later."""
    env = VectorEnv(variant, NUM_POSITIONS, seed=POSITIONS_SEED)
    rows = env.states.copy()
    for ply in range(1, NUM_POSITIONS):
        env.step(env.sample_actions())
        env.reset(env.over)
        rows[ply] = env.states[ply]
    return observe(env.game, rows), legal_actions(env.game, rows)[0]


def play_precisions(
    cfg: RunConfig,
    variant: Variant,
    network: PolicyValueNetwork,
    *,
    graph: bytes,
    progress: Callable[[int], None] = lambda done: None,
) -> MatchResult:
    """Play a network in int8 against itself in float32, both by ONNX Runtime.

    Args:
        cfg: of the run.
        variant: the game.
        network: what plays.
        graph: `export_graph` of its architecture.
        progress: told the games that have finished.
    """
    evaluation = cfg.evaluation
    settings = MatchSettings(cfg.inference.match_games, evaluation.random_plies, cfg.seed, evaluation.max_plies)
    calibration = calibration_positions(variant)

    def player(precision: Precision) -> SearchPlayer:
        evaluator = make_evaluator(
            network,
            backend="onnx",
            threads=num_cores(),
            graph=graph,
            precision=precision,
            calibration=calibration,
        )
        search = SearchSettings.of(cfg.search)
        return SearchPlayer(evaluator, num_simulations=evaluation.simulations, name=precision, settings=search)

    return play_match(
        variant, (player(INT8), player(FLOAT32)), settings=settings, progress=lambda done, _: progress(done)
    )
