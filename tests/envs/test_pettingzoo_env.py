"""Every game as a PettingZoo environment: its own tests, views, rewards, ends, starts."""

from __future__ import annotations

import copy
import importlib
import sys
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pettingzoo
import pytest

from envs import IllegalAction, InvalidFen, VectorEnv, list_variants
from envs.pettingzoo_env import AGENTS, ChessVariantEnv, env, raw_env
from envs.reference import MAIN_GAMES

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # PettingZoo's tests import its own games in an old way
    from pettingzoo.test import api_test, render_test, seed_test

EXPECTED = ("Observation is not a NumPy array", "Observation space for each agent probably should be")
"""What PettingZoo says of every dictionary that is not of its own games."""


def play(game: ChessVariantEnv, moves: str) -> None:
    for move in moves.split():
        game.step(action_of(game, move))


def action_of(game: ChessVariantEnv, move: str) -> int:
    return game._game.env.move_to_action(0, move)


def check_api(name: str, cycles: int, max_plies: int | None) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        api_test(env(name, max_plies=max_plies), num_cycles=cycles)
    assert not [str(each.message) for each in caught if not str(each.message).startswith(EXPECTED)]
    seed_test(partial(env, name), num_cycles=cycles)


@pytest.mark.parametrize("name", list_variants())
def test_a_game_passes_the_tests_of_pettingzoo(name: str) -> None:
    check_api(name, 4, max_plies=6)


@pytest.mark.slow
@pytest.mark.parametrize("name", list_variants())
def test_whole_games_pass_the_tests_of_pettingzoo(name: str) -> None:
    check_api(name, 1000, max_plies=None)


def test_every_render_mode_gives_what_pettingzoo_expects(capsys: pytest.CaptureFixture[str]) -> None:
    render_test(partial(env, "gardner"))
    assert "White to move" in capsys.readouterr().out


def test_an_unknown_render_mode_is_refused_and_none_warns() -> None:
    with pytest.raises(ValueError, match=r"expected ansi, human, rgb_array or None, got 'svg'"):
        env("chess", render_mode="svg")
    game = raw_env("gardner")
    game.reset()
    with pytest.warns(UserWarning, match="without a render_mode"):
        assert game.render() is None


def test_every_game_has_a_name_in_the_registry() -> None:
    assert {f"AsylumZero/{name}-v0" for name in list_variants()} <= set(pettingzoo.aec_registry)
    game = pettingzoo.make("aec", "AsylumZero/asylum-v0", options={"friendly_fire": True}, max_plies=2)
    assert game.unwrapped.variant.options == {"friendly_fire": True}


@pytest.mark.parametrize("name", MAIN_GAMES)
def test_the_mover_sees_what_a_vector_env_shows_and_the_other_agent_sees_its_own_side(name: str) -> None:
    game, rng = raw_env(name), np.random.default_rng(1)
    game.reset(seed=0)
    for _ in range(40):
        vector = game._game.env
        mover, other = game.agent_selection, AGENTS[1 - int(vector.to_play[0])]
        seen = game.observe(mover)
        np.testing.assert_array_equal(seen["observation"], vector.observe()[0])
        np.testing.assert_array_equal(seen["action_mask"], vector.legal_action_mask[0])
        assert not game.observe(other)["action_mask"].any()
        types = len(vector.variant.piece_types)
        flipped = game.observe(other)["observation"][:, ::-1]
        np.testing.assert_array_equal(flipped[:types], seen["observation"][types : 2 * types])
        np.testing.assert_array_equal(flipped[types : 2 * types], seen["observation"][:types])
        game.step(rng.choice(np.flatnonzero(seen["action_mask"])))
        if not any(game.infos.values()):
            continue
        break


def test_who_mates_is_rewarded_with_1_and_who_is_mated_with_minus_1() -> None:
    game = raw_env("chess")
    game.reset()
    play(game, "f2f3 e7e5 g2g4 d8h4")
    assert game.terminations == {"player_0": True, "player_1": True}
    assert game.truncations == {"player_0": False, "player_1": False}
    assert game.rewards == {"player_0": -1.0, "player_1": 1.0}
    assert game.infos["player_0"] == {"ending": "checkmate"}
    game.reset()
    play(game, "e2e4 f7f6 d2d4 g7g5 d1h5")
    assert game.rewards == {"player_0": 1.0, "player_1": -1.0}
    for agent in game.agent_iter():
        assert game.last()[1] == game._cumulative_rewards[agent]
        game.step(None)
    assert not game.agents


def test_a_draw_rewards_nobody() -> None:
    game = raw_env("chess", fen="7k/8/6K1/8/8/8/8/5Q2 w - - 0 1")
    game.reset()
    play(game, "f1f7")
    assert game.rewards == {"player_0": 0.0, "player_1": 0.0}
    assert game.infos["player_1"] == {"ending": "stalemate"}


def test_the_ply_cap_truncates_for_both() -> None:
    game = raw_env("chess", max_plies=2)
    game.reset()
    play(game, "e2e4 e7e5")
    assert game.truncations == {"player_0": True, "player_1": True}
    assert not any(game.terminations.values())
    assert game.infos["player_0"] == {"ending": "ply_cap"}


def test_black_is_selected_first_where_it_moves_first() -> None:
    game = raw_env("chess", fen="4k3/8/8/8/8/8/8/R3K3 b Q - 0 1")
    game.reset()
    assert game.agent_selection == "player_1"
    game.reset(options={"fen": "4k3/8/8/8/8/8/8/R3K3 w Q - 0 1"})
    assert game.agent_selection == "player_0"
    game.reset()
    assert game.agent_selection == "player_1"


def test_a_start_that_is_no_position_or_is_over_is_refused() -> None:
    with pytest.raises(InvalidFen, match="expected six fields"):
        raw_env("chess", fen="8/8")
    with pytest.raises(ValueError, match=r"the game is over there \(bare_kings\)"):
        raw_env("chess", fen="4k3/8/8/8/8/8/8/4K3 w - - 0 1")


def test_an_illegal_action_raises_in_the_raw_environment_and_loses_in_the_wrapped_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    raw = raw_env("chess")
    raw.reset()
    illegal = int(raw.observe("player_0")["action_mask"].argmin())
    with pytest.raises(IllegalAction, match=r"is not legal in lane 0"):
        raw.step(illegal)
    wrapped = env("chess")
    wrapped.reset()
    wrapped.step(illegal)
    assert "Illegal move made" in caplog.text
    assert wrapped.rewards == {"player_0": -1.0, "player_1": 1.0}
    assert all(wrapped.terminations.values())
    assert not any(wrapped.truncations.values())
    assert not wrapped.observe("player_0")["action_mask"].any()
    told = {}
    for agent in wrapped.agent_iter():
        _, reward, _, _, info = wrapped.last()
        told[agent] = reward, info["ending"]
        wrapped.step(None)
    assert told == {"player_0": (-1.0, "illegal_action"), "player_1": (1.0, "illegal_action")}
    wrapped.reset()
    assert not wrapped.infos["player_0"]


def test_an_action_that_is_no_whole_number_is_refused() -> None:
    game = raw_env("chess")
    game.reset()
    legal = int(game.observe("player_0")["action_mask"].argmax())
    for action in (legal + 0.5, float(legal), None, "e2e4", np.array([legal])):
        with pytest.raises(TypeError, match="expected a"):
            game.step(action)
    game.step(np.int32(legal))
    assert game.agent_selection == "player_1"


def test_what_comes_before_reset_and_after_the_last_agent_is_refused_with_a_reason() -> None:
    game = raw_env("gardner", max_plies=1)
    for early in (game.last, partial(game.step, 0), partial(game.observe, "player_0"), lambda: list(game.agent_iter())):
        with pytest.raises(AttributeError, match="call reset first"):
            early()
    with pytest.raises(AttributeError, match="ChessVariantEnv has no colour"):
        _ = game.colour
    game.reset()
    for ask in (game.observe, game.action_space, game.observation_space):
        with pytest.raises(ValueError, match="expected player_0 or player_1, got 'white'"):
            ask("white")
    game.step(int(game.observe("player_0")["action_mask"].argmax()))
    for _ in AGENTS:
        game.step(None)
    with pytest.raises(ValueError, match="no agent is left, call reset"):
        game.step(None)


@pytest.mark.parametrize("fen", ["8/8", "", "4k3/8/8/8/8/8/8/4K3 w - - 0 1"])
def test_a_reset_that_is_refused_changes_nothing(fen: str) -> None:
    game = raw_env("chess")
    game.reset(seed=1)
    play(game, "e2e4")
    before, stream = game._game.env.fen(0), game._rng
    with pytest.raises(ValueError):  # noqa: PT011 - InvalidFen is one, too
        game.reset(seed=2, options={"fen": fen})
    assert (game._game.env.fen(0), game.agent_selection) == (before, "player_1")
    assert game._rng is stream
    assert game._game.env.rng is stream
    play(game, "e7e5")


def test_the_seed_draws_the_start_position(tmp_path: Path) -> None:
    file = tmp_path / "two.yaml"
    starts = VectorEnv("gardner", 1).variant.start_fen, "qnbrk/ppppp/5/PPPPP/QNBRK w - - 0 1"
    file.write_text(f"name: Two\nextends: gardner\nstart:\n  - {starts[0]}\n  - {starts[1]}\n")

    def first_fens(seed: int) -> list[str]:
        game, fens = raw_env(file), []
        for number in range(6):
            game.reset(seed=seed if number == 0 else None)
            fens.append(game._game.env.fen(0))
        return fens

    assert first_fens(1) == first_fens(1)
    assert {fen for seed in range(3) for fen in first_fens(seed)} == set(starts)


def test_a_deep_copy_plays_on_by_itself() -> None:
    game = raw_env("chess")
    game.reset()
    play(game, "e2e4")
    twin = copy.deepcopy(game)
    play(twin, "e7e5 g1f3")
    assert game._game.env.fen(0).startswith("rnbqkbnr/pppppppp/8/8/4P3/")
    assert game.agent_selection == "player_1"
    play(game, "c7c5")
    assert twin._game.env.fen(0).startswith("rnbqkbnr/pppp1ppp/8/4p3/4P3/5N2/")


def test_without_pettingzoo_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pettingzoo", None)
    monkeypatch.delitem(sys.modules, "envs.pettingzoo_env")
    with pytest.raises(ImportError, match=r"pip install 'asylum-zero\[gym\]'"):
        importlib.import_module("envs.pettingzoo_env")
