"""Random play to the end of games: complete, repeatable, and near the known figures."""

import numpy as np
import pytest

from envs import Variant, load_variant
from envs.random_games import play_random_games
from tests.envs.random_games import all_settings, setting_name


@pytest.mark.parametrize("variant", all_settings(), ids=setting_name)
def test_every_game_is_played_to_an_end_by_the_rules(variant: Variant) -> None:
    played = play_random_games(variant, 8, seed=1)
    assert sum(played.endings().values()) == sum(played.results().values()) == 8
    assert (played.plies > 0).all()
    assert 1 < played.mean_legal_moves < 80
    decisive = sum(count for name, count in played.endings().items() if name in ("checkmate", "scepter"))
    assert decisive == 8 - played.results()["draws"]


def test_the_seed_decides_the_games_and_progress_counts_them() -> None:
    gardner = load_variant("gardner")
    told: list[int] = []
    played = play_random_games(gardner, 300, seed=2, on_progress=told.append)
    assert told == sorted(told)
    assert told[-1] == 300
    again, other = (play_random_games(gardner, 300, seed=seed) for seed in (2, 3))
    assert np.array_equal(played.plies, again.plies)
    assert played.mean_legal_moves == again.mean_legal_moves
    assert not np.array_equal(played.plies, other.plies)


def test_random_play_ends_as_it_is_known_to() -> None:
    # Some 4,000 games: 43 % decisive, 410 plies, 41 legal moves.
    played = play_random_games(load_variant("asylum"), 500, seed=0)
    decisive = 1 - played.results()["draws"] / 500
    assert 0.36 < decisive < 0.50
    assert 385 < played.plies.mean() < 440
    assert 39 < played.mean_legal_moves < 43


def test_no_games_are_refused() -> None:
    with pytest.raises(ValueError, match="games: expected at least 1, got 0"):
        play_random_games(load_variant("chess"), 0)
