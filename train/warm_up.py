"""Compile kernels once, before workers start and each would compile for itself; as a program, those of all kinds.

python -m train.warm_up
"""

from __future__ import annotations

import numpy as np

import envs.warm_up
from envs import VectorEnv, load_variant
from models.evaluator import UniformEvaluator
from train.alphabeta import AlphaBetaPlayer
from train.analysis import AnalysisPlayer
from train.arena import Player
from train.progress import Reporter
from train.search import SearchPlayer, SearchSettings
from train.search_policies import BUILT_IN


def warm_up() -> None:
    """Run the kernels of rules, search and analysis on the smallest game; up to a minute when they are not cached."""
    envs.warm_up.warm_up()
    evaluator = UniformEvaluator()
    players: list[Player] = [
        *(
            SearchPlayer(evaluator, num_simulations=4, name="warm-up", settings=SearchSettings(policy=policy))
            for policy in BUILT_IN
        ),
        AnalysisPlayer(evaluator, num_simulations=4, name="warm-up"),
    ]
    for player in players:
        _try(player)


def warm_up_alphabeta() -> None:
    """Run the kernels of the alpha-beta engine and of its learning, which a training run does not need."""
    from train.evaluation_learning import LearningSettings, learn_table

    _try(AlphaBetaPlayer(depth=1))
    settings = LearningSettings(games=2, depth=1)
    learn_table(load_variant("gardner"), settings=settings, reporter=Reporter(quiet=True))


def _try(player: Player) -> None:
    player.choose(VectorEnv("gardner", 2), np.arange(2), np.random.default_rng(0))


if __name__ == "__main__":
    warm_up()
    warm_up_alphabeta()
