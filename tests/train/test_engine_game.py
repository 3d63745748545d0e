"""The game of an engine: it follows what a GUI says, and a search is given what the environment would give it."""

import numpy as np
import pytest

from envs import IllegalAction, InvalidFen, InvalidVariant, VectorEnv, load_variant
from train.engine_game import EngineGame, moves_of_actions
from train.engine_games import Games

SHUFFLE = ["g1f3", "g8f6", "f3g1", "f6g8"]


@pytest.mark.parametrize("name", ["chess", "asylum", "palace_ninja_guards", "separate_realms"])
def test_a_search_is_given_the_row_and_the_history_of_the_environment(name):
    env = VectorEnv(name, 1, seed=3)
    game = EngineGame(env.variant)
    for _ in range(60):
        (action,) = env.sample_actions()
        game.push(env.action_to_move(0, int(action)))
        env.step([action])
        if env.over[0]:
            break
        root = game.root()
        assert (root.row == env.states[0]).all()
        place = len(root.history)
        assert (root.history == env.histories[0, :place]).all()
        assert root.side == env.to_play[0]
        assert len(root.moves) == env.legal_counts[0]


def test_a_game_that_is_drawn_by_repetition_can_be_searched_on():
    game = EngineGame(load_variant("chess"))
    game.follow(None, SHUFFLE * 2)
    assert game.outcome() is not None
    root = game.root()
    assert not root.is_over
    assert len(root.moves) == 20
    assert len(root.history) == 1


def test_nothing_is_searched_after_mate_and_between_bare_kings():
    game = EngineGame(load_variant("chess"))
    game.follow(None, ["f2f3", "e7e5", "g2g4", "d8h4"])
    assert game.root().is_over
    assert not game.root().moves
    game.follow("4k3/8/8/8/8/8/8/4K3 w - - 0 1", [])
    assert game.root().is_over
    assert game.root().moves


def test_moves_that_are_known_are_not_played_again_and_a_wrong_one_changes_nothing():
    game = EngineGame(load_variant("chess"))
    game.follow(None, SHUFFLE)
    before = game.position
    game.follow(None, [*SHUFFLE, "e2e4"])
    assert game.position is not before
    assert game.moves == [*SHUFFLE, "e2e4"]
    with pytest.raises(IllegalAction):
        game.follow(None, [*SHUFFLE, "e2e4", "e2e4"])
    with pytest.raises(InvalidFen):
        game.follow("8/8 w - - 0 1", [])
    assert game.moves == [*SHUFFLE, "e2e4"]
    game.follow(None, ["e2e4"])
    assert game.moves == ["e2e4"]
    assert len(game.root().history) == 1
    game.pop()
    assert game.position.fen() == game.variant.start_fen


def test_actions_are_named_as_the_sides_see_them():
    env = VectorEnv("chess", 1)
    actions = []
    for move in ("e2e4", "c7c5", "e1e2", "d8a5"):
        actions.append(env.move_to_action(0, move))
        env.step([actions[-1]])
    assert moves_of_actions(env.game, actions, 0) == ("e2e4", "c7c5", "e1e2", "d8a5")
    assert moves_of_actions(env.game, actions[1:], 1) == ("c7c5", "e1e2", "d8a5")


def test_games_are_found_by_the_names_that_guis_give_them():
    games = Games(None, only=False)
    found = {
        "chess": "chess", "normal": "chess", "KingOfTheHill": "king_of_the_hill", "losalamos": "los_alamos",
        "nocastle": "no_castling", "Separate Realms 2": "separate_realms_2",
    }  # fmt: skip
    for text, name in found.items():
        assert games.find(text).name == name
    assert games.find("asylum+friendly_fire").options == {"friendly_fire": True}
    assert games.find("asylum + Friendly-Fire").options == {"friendly_fire": True}
    for text in ("checkers", "", "+", "asylum+", "asylum+nothing"):
        with pytest.raises(InvalidVariant):
            games.find(text)


def test_a_player_of_one_game_offers_no_other():
    given = load_variant("asylum", {"friendly_fire": True})
    games = Games(given, only=True)
    assert games.names == ["asylum+friendly_fire"]
    assert games.find("asylum+friendly_fire") is given
    for text in ("asylum", "chess"):
        with pytest.raises(InvalidVariant):
            games.find(text)
    assert Games(given, only=False).names[0] == "asylum+friendly_fire"
    assert np.unique(Games(None, only=False).names).size == len(Games(None, only=False).names)
