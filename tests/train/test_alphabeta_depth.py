"""The learned evaluations as an opponent measures them: with every game's table, searching deeper wins."""

import pytest

from envs import list_variants, load_variant
from train.alphabeta import AlphaBetaPlayer
from train.arena import MatchSettings, play_match

SETTINGS = MatchSettings(games=200, random_plies=4, seed=5, max_plies=600, balanced=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", list_variants())
def test_three_plies_beat_one(name: str) -> None:
    match = play_match(load_variant(name), (AlphaBetaPlayer(depth=3), AlphaBetaPlayer(depth=1)), settings=SETTINGS)
    assert match.score.low > (0.85 if name == "chess" else 0.75)
