"""Random play to the end of games: complete, repeatable, and near the known figures."""

import numpy as np
import pytest

from envs import Variant, load_variant, variant_from_document
from envs.random_games import MAX_PLIES, play_random_games
from envs.strict_yaml import load_yaml
from tests.envs.random_games import all_settings, setting_name

ENDLESS = """
name: Endless
board: {files: 5, ranks: 5}
royal: k
pieces: {k: {name: king, moves: K}}
start: k4/5/5/5/4K w - - 0 1
ends: {bare_kings: off, repetition: off, move_limit: off}
"""
ONE_MOVE_WINS = """
name: One move wins
board: {files: 5, ranks: 5}
royal: k
pieces: {k: {name: king, moves: K}}
start: [k4/5/5/5/4K w - - 0 1, k4/5/5/5/4K b - - 0 1]
ends:
  bare_kings: off
  goals:
    - {name: near, by: k, squares: {white: [d1, e2], black: [a4, b5]}}
    - {name: far, by: k, squares: {white: [d2], black: [b4]}}
"""
GIVEAWAY = """
name: Giveaway
board: {files: 5, ranks: 5}
pieces: {m: {name: man, moves: fcF}}
start: 5/5/2m2/1M3/5 w - - 0 1
ends: {extinction: {pieces: all, result: win}}
"""


def game(text: str) -> Variant:
    return variant_from_document(load_yaml(text, "test")[0])


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


def test_a_game_that_never_ends_is_cut_short_and_is_neither_drawn_nor_won() -> None:
    played = play_random_games(game(ENDLESS), 3)
    assert played.cut_short == 3
    assert played.endings() == {}
    assert set(played.results().values()) == {0}
    assert (played.plies == MAX_PLIES).all()


def test_the_seed_decides_from_which_start_a_game_begins_and_goals_are_counted_by_name() -> None:
    games = [play_random_games(game(ONE_MOVE_WINS), 300, seed=seed) for seed in (0, 0, 1)]
    white_wins = [played.results()["white_wins"] for played in games]
    assert white_wins[0] == white_wins[1]
    assert white_wins[0] != white_wins[2]
    for played in games:
        assert (played.plies == 1).all()
        assert 110 < played.results()["white_wins"] == 300 - played.results()["black_wins"] < 190
        assert played.endings() == {"goal": 300}
        assert 160 < played.goals_reached()["near"] == 300 - played.goals_reached()["far"] < 240


def test_a_player_who_takes_the_last_piece_of_a_giveaway_game_has_lost() -> None:
    played = play_random_games(game(GIVEAWAY), 2)
    assert played.endings() == {"extinction": 2}
    assert played.results() == {"white_wins": 0, "black_wins": 2, "draws": 0}
