"""Games of a known truth for estimators that play: nobody plays, results are drawn from planted weights."""

from collections.abc import Sequence

import numpy as np
from scipy.special import expit

from envs import CompiledGame, engine_for, load_variant
from envs.notation import parse_fields
from train.evaluation_tables import table_for
from train.piece_values.kept_games import KeptGames, Result
from train.piece_values.odds import Players
from train.progress import Update
from train.table_games import GameOrder

WEIGHTS = {"P": 0.5, "N": 1.4, "B": 1.5, "R": 2.3, "Q": 4.4}
WHITE_ADVANTAGE = 0.2
DRAWS = 0.3


class PlantedGames(KeptGames):
    """Draws results from the material at the start; the two games of a pair share a part of their luck."""

    def __init__(self, seed: int, *, shared: float = 0.0, weights: dict[str, float] | None = None) -> None:
        super().__init__(None, depth=1)
        self._rng = np.random.default_rng(seed)
        self._shared, self._weights = shared, weights or WEIGHTS
        self.orders: list[GameOrder] = []

    def play(
        self, game: CompiledGame, orders: Sequence[GameOrder], *, update: Update = lambda done: None
    ) -> list[Result]:
        self.orders += orders
        update(len(orders))
        logits = np.array([self.logit(game, order) for order in orders])
        return [Result(float(score), 1) for score in draw_scores(self._rng, logits, shared=self._shared)]

    def logit(self, game: CompiledGame, order: GameOrder) -> float:
        """Return the planted log-odds of White's score."""
        board = parse_fields(game.variant, order.fen).board.astype(int)
        total = WHITE_ADVANTAGE
        for kind, piece in enumerate(game.variant.piece_types):
            difference = int((board == kind + 1).sum()) - int((board == kind + 17).sum())
            total += self._weights.get(piece.letter, 0.0) * difference
        return total


def draw_scores(rng: np.random.Generator, logits: np.ndarray, *, shared: float = 0.0) -> np.ndarray:
    """Draw White's scores of games, pairs one after the other.

    Args:
        rng: consumed.
        logits: log-odds of White's expected score, [2 * pairs].
        shared: share of pairs whose games the same army wins both, by one draw of luck.
    """
    luck = rng.random(len(logits))
    luck[1::2] = np.where(rng.random(len(luck) // 2) < shared, 1 - luck[::2], luck[1::2])
    chance = expit(logits)
    draw = 2 * DRAWS * np.minimum(chance, 1 - chance)
    return np.where(luck < chance - draw / 2, 1.0, np.where(luck < chance + draw / 2, 0.5, 0.0))


def planted_players(seed: int, variant: str = "chess", *, shared: float = 0.0) -> Players:
    game = engine_for(load_variant(variant))
    return Players(game, table_for(game.variant), PlantedGames(seed, shared=shared))
