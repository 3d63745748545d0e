"""Games of the engine against itself: legal to their end, the same in whatever thread, cut where they must be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from envs import Position, Termination, engine_for, load_variant
from envs.rows import actions_of
from train.openings import mobility_weights
from train.table_games import GameOrder, PlayedGame, play_games, replay

VARIANT = load_variant("gardner")
GAME = engine_for(VARIANT)


def order(seed: int, *, random_plies: int = 4) -> GameOrder:
    weights = mobility_weights(VARIANT)
    return GameOrder(VARIANT.start_fen, np.stack([weights, weights]), 0, random_plies, seed)


@pytest.fixture(scope="module")
def played() -> list[PlayedGame]:
    return play_games(GAME, [order(seed) for seed in range(6)], depth=1, num_threads=2)


def is_equal(first: PlayedGame, second: PlayedGame) -> bool:
    same_score = np.array_equal([first.white_score], [second.white_score], equal_nan=True)
    return np.array_equal(first.moves, second.moves) and same_score and first.termination is second.termination


def test_every_game_is_legal_until_the_rules_end_it(played: list[PlayedGame]) -> None:
    for game in played:
        position = Position(VARIANT, game.fen)
        rows = replay(GAME, game)
        assert len(rows) == len(game.moves) + 1
        for ply, action in enumerate(actions_of(game.moves).tolist()):
            assert position.outcome() is None
            legal = {position.move_to_action(move): move for move in position.legal_moves()}
            assert action in legal, ply
            position.push(legal[action])
        outcome = position.outcome()
        if game.termination is None:
            assert np.isnan(game.white_score)
            continue
        assert outcome is not None
        assert outcome.termination is game.termination
        assert game.white_score == {"w": 1.0, "b": 0.0, None: 0.5}[outcome.winner]
    assert any(game.termination is Termination.CHECKMATE for game in played)


def test_each_searched_move_leaves_a_position(played: list[PlayedGame]) -> None:
    for game in played:
        count = len(game.moves) - game.random_plies
        assert game.boards.shape == (count, VARIANT.num_squares)
        assert len(game.movers) == len(game.decided) == count


def test_equal_orders_give_equal_games_whatever_the_threads(played: list[PlayedGame]) -> None:
    again = play_games(GAME, [order(seed) for seed in (5, 0)], depth=1, num_threads=1)
    assert is_equal(again[0], played[5])
    assert is_equal(again[1], played[0])
    assert not is_equal(played[0], played[5])


def test_a_game_that_reaches_the_cap_has_no_result() -> None:
    (game,) = play_games(GAME, [order(0)], depth=1, max_plies=6)
    assert len(game.moves) == 6
    assert np.isnan(game.white_score)
    assert game.termination is None


def test_no_orders_are_no_games_and_a_depth_of_none_is_refused() -> None:
    assert play_games(GAME, [], depth=1) == []
    with pytest.raises(ValueError, match="depth"):
        play_games(GAME, [replace(order(0))], depth=0)
