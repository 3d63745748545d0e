"""`VectorEnv` in games that need more of it: several starts, no move limit, lost moves, threads."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from envs import (
    IllegalAction,
    Position,
    Termination,
    Variant,
    VectorEnv,
    game_kernels,
    kernels,
    lane_kernels,
    layout,
    legal_actions,
    variant_from_document,
)
from envs.warm_up import warm_up

PIECES = {"k": {"name": "king", "moves": "K"}, "r": {"name": "rook", "moves": "R"}}
BASE = {"board": {"files": 4, "ranks": 4}, "start": "k3/4/4/3K w - - 0 1", "royal": "k", "pieces": PIECES}
STARTS = ["3k/4/4/R2K w - - 0 1", "3k/4/4/1R1K w - - 0 1", "3k/4/4/2RK w - - 0 1"]


def game(**keys: object) -> Variant:
    return variant_from_document({"name": "a test game", **BASE, "start": STARTS[0], **keys}, name="test")


# --- Start positions ----------------------------------------------------------------------------


def test_lanes_begin_from_each_start_position_about_equally_often() -> None:
    env = VectorEnv(game(start=STARTS), 3000, seed=1)
    fens = [env.fen(lane) for lane in range(env.num_envs)]
    counts = [fens.count(fen) for fen in env.variant.start_fens]
    assert sum(counts) == 3000
    assert min(counts) > 900


def test_reset_draws_start_positions_anew_for_the_chosen_lanes_alone() -> None:
    env = VectorEnv(game(start=STARTS), 64, seed=1)
    before = env.states.copy()
    env.reset(np.arange(64) < 32)
    assert_array_equal(env.states[32:], before[32:])
    assert (env.states[:32] != before[:32]).any()


def test_the_same_seed_draws_the_same_start_positions() -> None:
    first, second = (VectorEnv(game(start=STARTS), 64, seed=7) for _ in range(2))
    assert_array_equal(first.states, second.states)


def test_a_game_with_one_start_position_leaves_the_generator_alone() -> None:
    env = VectorEnv(game(), 3, seed=7)
    env.reset()
    assert env.rng.random() == np.random.default_rng(7).random()


# --- History ------------------------------------------------------------------------------------


def test_without_a_move_limit_positions_far_back_still_count_for_repetition() -> None:
    ends = {"move_limit": "off", "repetition": {"times": 9, "result": "draw"}, "bare_kings": "off"}
    env = VectorEnv(game(start="k3/4/4/K2R w - - 0 1", ends=ends), 2)
    rook_walk = ("d1d2", "a4b4", "d2d1", "b4a4")
    for ply in range(31):
        env.step([env.move_to_action(lane, rook_walk[ply % 4]) for lane in range(2)])
    assert not env.over.any()
    env.step([env.move_to_action(lane, rook_walk[31 % 4]) for lane in range(2)])
    assert env.terminations.tolist() == [Termination.REPETITION.value] * 2


def test_the_history_grows_with_a_game_that_no_move_limit_ends() -> None:
    ends = {"move_limit": "off", "repetition": {"times": 9}, "bare_kings": "off"}
    start = "/".join(["k15", *["16"] * 14, "15K"]) + " w - - 0 1"
    kings = {"k": PIECES["k"]}
    env = VectorEnv(game(board={"files": 16, "ranks": 16}, start=start, pieces=kings, ends=ends), 2, seed=3)
    length = env.histories.shape[1]
    reversible = env.states.view(np.uint8).reshape(2, -1)[:, layout.REVERSIBLE : layout.REVERSIBLE + 2]
    for _ in range(3 * length):
        env.step(env.sample_actions())
        places = np.ascontiguousarray(reversible).view(np.uint16)[:, 0]
        assert places.max() < env.histories.shape[1]
        assert_array_equal(env.histories[np.arange(2), places], env.keys)
    assert env.histories.shape[1] > length


def test_the_history_is_as_long_as_repetition_can_matter() -> None:
    endless = {"move_limit": "off", "repetition": {"times": 3}, "bare_kings": "off"}
    assert VectorEnv(game(ends=endless), 2, max_plies=50).histories.shape == (2, 52)
    assert VectorEnv("chess", 2).histories.shape == (2, 102)
    assert VectorEnv(game(ends={"move_limit": 30}), 2).histories.shape == (2, 32)
    assert VectorEnv(game(ends={**endless, "repetition": "off"}), 2).histories.shape == (2, 1)


@pytest.mark.parametrize("cap", [np.uint8(255), np.int8(127), np.int32(2**31 - 1), 2**64, True])
def test_a_cap_of_any_integer_type_leaves_repetition_alone(cap: int) -> None:
    env = VectorEnv("chess", 1, max_plies=cap)
    for ply in range(8 if cap > 1 else 0):
        env.step([env.move_to_action(0, ("g1f3", "g8f6", "f3g1", "f6g8")[ply % 4])])
    assert bool(env.terminated[0]) == (cap > 1)


# --- Results ------------------------------------------------------------------------------------


@pytest.mark.parametrize("result, reward, score", [("loss", 1.0, 1.0), ("draw", 0.0, 0.5), ("win", -1.0, 0.0)])
def test_a_player_may_win_draw_or_lose_by_its_own_move(result: str, reward: float, score: float) -> None:
    env = VectorEnv(game(ends={"stalemate": result}), 1)
    env.set_fen(0, "k3/3R/K3/4 w - - 0 1")
    rewards, terminated, _ = env.step([env.move_to_action(0, "d3b3")])
    assert terminated[0]
    assert env.terminations[0] == Termination.STALEMATE.value
    assert (float(rewards[0]), float(env.white_score[0])) == (reward, score)


# --- Threads ------------------------------------------------------------------------------------


@pytest.mark.parametrize("num_threads", [2, 3, 8])
def test_threads_play_what_one_thread_plays(num_threads: int) -> None:
    alone, together = VectorEnv("asylum", 7, seed=5), VectorEnv("asylum", 7, seed=5, num_threads=num_threads)
    for _ in range(120):
        actions = alone.sample_actions()
        assert_array_equal(together.sample_actions(), actions)
        for mine, theirs in zip(together.step(actions), alone.step(actions), strict=True):
            assert_array_equal(mine, theirs)
        assert_array_equal(together.states, alone.states)
        assert_array_equal(together.legal_action_mask, alone.legal_action_mask)


def test_with_threads_too_an_illegal_action_raises_before_any_lane_has_moved() -> None:
    env = VectorEnv("chess", 6, num_threads=2)
    before = env.states.copy()
    actions = env.sample_actions()
    actions[5] = env.num_actions
    with pytest.raises(IllegalAction, match="lane 5"):
        env.step(actions)
    assert_array_equal(env.states, before)


def test_a_copy_of_a_threaded_environment_goes_its_own_way() -> None:
    env = VectorEnv("chess", 6, seed=2, num_threads=2)
    twin = env.copy()
    before = twin.states.copy()
    env.step(env.sample_actions())
    assert_array_equal(twin.states, before)
    twin.step(twin.sample_actions())
    assert_array_equal(twin.states, env.states)


def test_fewer_than_one_thread_is_refused() -> None:
    with pytest.raises(ValueError, match="num_threads: expected at least 1, got 0"):
        VectorEnv("chess", 2, num_threads=0)


# --- Compilation --------------------------------------------------------------------------------


def test_after_the_warm_up_playing_and_reading_games_compiles_nothing() -> None:
    warm_up()
    compiled = signatures()
    for name in ("chess", "palace_ninja_guards"):
        env = VectorEnv(name, 3, num_threads=2, max_plies=4)
        env.step(env.sample_actions())
        env.reset(env.over)
        env.observe()
        env.set_fen(0, env.fen(1))
        legal_actions(env.game, env.states)
        assert Position(name).outcome() is None
    assert signatures() == compiled


def signatures() -> dict[str, int]:
    """Count for how many types each kernel has been compiled in this process."""
    return {
        f"{module.__name__}.{name}": len(kernel.signatures)
        for module in (kernels, game_kernels, lane_kernels)
        for name, kernel in vars(module).items()
        if hasattr(kernel, "signatures")
    }
