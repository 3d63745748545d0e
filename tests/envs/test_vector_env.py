"""The contract of `VectorEnv`: lanes are independent, nothing fails quietly, ended lanes stay."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from envs import (
    IllegalAction,
    InvalidFen,
    InvalidVariant,
    Outcome,
    Position,
    Termination,
    VectorEnv,
    legal_actions,
    load_variant,
    observe,
    piece_counts,
    to_play,
)
from tests.envs.random_games import all_settings, setting_name

MATE_IN_ONE = "7k/3Q4/6K1/8/8/8/8/8 w - - 99 1"
"""d7g7 mates with White to move, on the hundredth quiet ply."""


def everything(env: VectorEnv) -> dict[str, Any]:
    """A snapshot of all that an environment shows."""
    return {
        "states": env.states.copy(), "keys": env.keys.copy(), "plies": env.plies, "planes": env.observe(),
        "mask": env.legal_action_mask.copy(), "counts": env.legal_counts.copy(), "check": env.in_check.copy(),
        "terminations": env.terminations.copy(), "truncated": env.truncated.copy(),
        "score": env.white_score.copy(),
    }  # fmt: skip


def assert_same(one: dict[str, Any], other: dict[str, Any], lanes: Any = slice(None)) -> None:
    for name, values in one.items():
        np.testing.assert_array_equal(values, other[name][lanes], err_msg=name)


def play(env: VectorEnv, plies: int) -> None:
    for _ in range(plies):
        env.step(env.sample_actions())


# --- Lanes are independent ----------------------------------------------------------------------


@pytest.mark.parametrize("variant", all_settings(), ids=setting_name)
def test_a_game_is_the_same_in_any_lane_of_a_batch_of_any_size(variant) -> None:
    batch = VectorEnv(variant, 5, seed=3)
    order = np.array([3, 0, 4, 2, 1])
    shuffled = VectorEnv(variant, 5)
    singles = [VectorEnv(variant, 1) for _ in range(5)]
    for _ in range(150):
        actions = batch.sample_actions()
        results = batch.step(actions)
        for mine, theirs in zip(shuffled.step(actions[order]), results):
            np.testing.assert_array_equal(mine, theirs[order])
        for lane, single in enumerate(singles):
            single.step(actions[lane : lane + 1])
    seen = everything(batch)
    assert_same(everything(shuffled), seen, order)
    for lane, single in enumerate(singles):
        assert_same(everything(single), seen, slice(lane, lane + 1))


def test_the_comparison_of_lanes_would_notice_one_changed_word() -> None:
    env = VectorEnv("asylum", 3, seed=3)
    twin = env.copy()
    twin.states[2, 1] += np.uint64(1)
    with pytest.raises(AssertionError, match="states"):
        assert_same(everything(env), everything(twin))


def test_a_copy_goes_its_own_way_and_draws_the_same_numbers() -> None:
    env = VectorEnv("chess", 3, seed=4)
    play(env, 10)
    before = everything(env)
    twin = env.copy()
    assert np.array_equal(twin.sample_actions(), env.copy().sample_actions())
    play(twin, 20)
    assert_same(everything(env), before)
    env.reset()
    assert twin.plies.tolist() == [30, 30, 30]


def test_a_copy_takes_its_history_along() -> None:
    env = VectorEnv("chess", 1)
    shuffle = ("g1f3", "g8f6", "f3g1", "f6g8")
    for move in shuffle:
        env.step([env.move_to_action(0, move)])
    twin = env.copy()
    for move in shuffle:
        twin.step([twin.move_to_action(0, move)])
    assert twin.outcome == [Outcome(Termination.REPETITION, None)]
    assert env.outcome == [None]


def test_the_same_seed_gives_the_same_games_and_another_seed_others() -> None:
    envs = [VectorEnv("asylum", 4, seed=seed) for seed in (5, 5, 6)]
    for env in envs:
        play(env, 60)
    assert np.array_equal(envs[0].states, envs[1].states)
    assert not np.array_equal(envs[0].states, envs[2].states)


# --- Illegal input --------------------------------------------------------------------------------


def test_an_illegal_action_raises_before_any_lane_has_moved() -> None:
    env = VectorEnv("chess", 3)
    before = everything(env)
    good = env.move_to_action(0, "e2e4")
    bad = env.move_to_action(2, "e1e2")
    with pytest.raises(IllegalAction, match=r"action \d+ \(e1e2\) is not legal in lane 2: rnbqkbnr/"):
        env.step([good, good, bad])
    assert_same(everything(env), before)
    for wrong in (-1, env.num_actions, 10**9):
        with pytest.raises(IllegalAction, match=f"action {wrong} is not legal in lane 1"):
            env.step([good, wrong, good])
    assert_same(everything(env), before)


WRONG_CALLS: list[tuple[Callable[[VectorEnv], object], str]] = [
    (lambda env: env.step([0, 0]), r"actions: expected integers \[3\], got int64 \[2\]"),
    (lambda env: env.step([[0, 0, 0]]), r"actions: expected integers \[3\], got int64 \[1, 3\]"),
    (lambda env: env.step(0), r"actions: expected integers \[3\], got int64 \[\]"),
    (lambda env: env.step([0.0, 1.0, 2.0]), r"actions: expected integers \[3\], got float64 \[3\]"),
    (lambda env: env.step(np.ones(3, bool)), r"actions: expected integers \[3\], got bool \[3\]"),
    (lambda env: env.reset([1, 0, 1]), r"mask: expected bool \[3\], got int64 \[3\]"),
    (lambda env: env.reset(np.ones(4, bool)), r"mask: expected bool \[3\], got bool \[4\]"),
    (lambda env: env.observe(np.empty((3, 21, 8, 8))), r"out: expected writable C-contiguous float32 .*, got float64"),
    (lambda env: env.observe(np.empty((3, 8, 8, 21), np.float32)), r"out: expected writable C-contiguous float32"),
    (lambda env: VectorEnv("chess", 0), "num_envs: expected at least 1, got 0"),
    (lambda env: VectorEnv("chess", 1, max_plies=0), "max_plies: expected at least 1 or None, got 0"),
    (
        lambda env: VectorEnv(env.variant, 1, options={"x": True}),
        "options: a resolved variant has its options applied",
    ),
]


@pytest.mark.parametrize("call, message", WRONG_CALLS)
def test_a_wrong_shape_type_or_number_is_named(call: Callable[[VectorEnv], object], message: str) -> None:
    env = VectorEnv("chess", 3)
    before = everything(env)
    with pytest.raises(ValueError, match=message):
        call(env)
    assert_same(everything(env), before)


def test_an_unknown_game_or_option_is_refused() -> None:
    with pytest.raises(InvalidVariant, match="did you mean 'chess'"):
        VectorEnv("ches", 1)
    with pytest.raises(InvalidVariant, match="friendly_fire"):
        VectorEnv("asylum", 1, options={"friendlyfire": True})


def test_a_number_or_a_text_that_names_no_move_is_refused() -> None:
    env = VectorEnv("chess", 1)
    with pytest.raises(IllegalAction, match="expected 0 to 1879"):
        env.action_to_move(0, 1880)
    with pytest.raises(IllegalAction, match="no piece of Chess could ever make it"):
        env.move_to_action(0, "a1b4")
    with pytest.raises(IllegalAction):
        env.move_to_action(0, "a1z9")


@pytest.mark.parametrize("kind", [np.int16, np.int32, np.uint16, np.uint64])
def test_actions_of_any_integer_type_strided_and_read_only_are_taken(kind: type) -> None:
    env = VectorEnv("gardner", 4)
    actions = np.full(8, env.legal_actions(0)[0], kind)[::2]
    actions.flags.writeable = False
    env.step(actions)
    assert env.plies.tolist() == [1] * 4


def test_read_only_arrays_are_accepted_everywhere() -> None:
    env = VectorEnv("asylum", 3, seed=1)
    play(env, 7)
    rows = env.states.copy()
    mask = np.array([True, False, True])
    for array in (rows, mask):
        array.flags.writeable = False
    assert np.array_equal(observe(env.game, rows), env.observe())
    actions, counts = legal_actions(env.game, rows)
    assert counts.tolist() == env.legal_counts.tolist()
    assert set(actions[1, : counts[1]].tolist()) == set(np.flatnonzero(env.legal_action_mask[1]).tolist())
    assert to_play(env.game, rows).tolist() == [1, 1, 1]
    assert piece_counts(env.game, rows).shape == (3, 2, 7)
    env.reset(mask)
    assert env.plies.tolist() == [0, 7, 0]


# --- Masks and draws --------------------------------------------------------------------------------


def test_the_mask_is_read_only_and_follows_the_lanes() -> None:
    env = VectorEnv("chess", 2)
    mask = env.legal_action_mask
    with pytest.raises(ValueError, match="read-only"):
        mask[0, 0] = True
    assert mask.sum(axis=1).tolist() == env.legal_counts.tolist() == [20, 20]
    play(env, 5)
    assert mask.sum(axis=1).tolist() == env.legal_counts.tolist()
    assert np.array_equal(np.flatnonzero(mask[0]), np.sort(env.legal_actions(0)))


def test_sampled_actions_are_uniform_over_the_legal_ones() -> None:
    env = VectorEnv("chess", 1000, seed=7)
    drawn = Counter(action for _ in range(40) for action in env.sample_actions().tolist())
    legal = np.flatnonzero(env.legal_action_mask[0])
    assert set(drawn) == set(legal.tolist())
    expected = 40_000 / len(legal)
    chi_squared = sum((drawn[action] - expected) ** 2 / expected for action in legal.tolist())
    assert chi_squared < 43.8  # 99.9 % of a chi-squared distribution of 19 degrees of freedom


def test_a_lane_that_has_ended_is_sampled_as_minus_one_and_takes_it() -> None:
    env = VectorEnv("chess", 2, seed=1)
    env.set_fen(0, MATE_IN_ONE)
    env.step([env.move_to_action(0, "d7g7"), env.move_to_action(1, "e2e4")])
    actions = env.sample_actions()
    assert actions[0] == -1
    assert env.legal_action_mask[1, actions[1]]
    env.step(actions)


# --- Ends of games ----------------------------------------------------------------------------------


def test_an_ended_lane_stays_has_no_legal_action_and_ignores_its_own() -> None:
    env = VectorEnv("chess", 2)
    env.set_fen(0, MATE_IN_ONE)
    rewards, terminated, truncated = env.step([env.move_to_action(0, "d7g7"), env.move_to_action(1, "e2e4")])
    assert rewards.tolist() == [1, 0]
    assert terminated.tolist() == [True, False]
    assert not truncated.any()
    assert env.outcome == [Outcome(Termination.CHECKMATE, "w"), None]
    assert env.white_score[0] == 1
    assert np.isnan(env.white_score[1])
    assert not env.legal_action_mask[0].any()
    before = everything(env)
    for anything in (0, -1, 10**12):
        rewards, terminated, _ = env.step([anything, env.legal_actions(1)[0]])
        assert rewards.tolist() == [0, 0]
        assert terminated[0]
    after = everything(env)
    assert_same({name: values[:1] for name, values in before.items()}, after, slice(0, 1))
    assert env.plies.tolist() == [1, 4]


def test_the_reward_belongs_to_the_player_who_moved_and_the_score_to_white() -> None:
    env = VectorEnv("chess", 1)
    for move in ("f2f3", "e7e5", "g2g4"):
        env.step([env.move_to_action(0, move)])
    rewards, terminated, _ = env.step([env.move_to_action(0, "d8h4")])
    assert (rewards[0], terminated[0], env.white_score[0]) == (1, True, 0)
    assert env.in_check[0]
    assert env.outcome == [Outcome(Termination.CHECKMATE, "b")]


def test_the_cap_truncates_and_does_not_terminate() -> None:
    env = VectorEnv("chess", 2, max_plies=2)
    for move in ("e2e4", "e7e5"):
        rewards, terminated, truncated = env.step([env.move_to_action(lane, move) for lane in range(2)])
    assert rewards.tolist() == [0, 0]
    assert truncated.all()
    assert not terminated.any()
    assert env.over.all()
    assert env.outcome == [None, None]
    assert np.isnan(env.white_score).all()
    assert not env.legal_action_mask.any()
    env.reset(np.array([False, True]))
    assert env.truncated.tolist() == [True, False]
    assert env.legal_counts.tolist() == [0, 20]


def test_an_end_by_the_rules_on_the_last_ply_of_the_cap_is_no_truncation() -> None:
    env = VectorEnv("chess", 1, max_plies=1)
    env.set_fen(0, MATE_IN_ONE)
    _, terminated, truncated = env.step([env.move_to_action(0, "d7g7")])
    assert terminated.all()
    assert not truncated.any()


def test_the_cap_counts_from_where_a_lane_was_set() -> None:
    env = VectorEnv("chess", 1, max_plies=3)
    env.set_fen(0, "4k3/8/8/8/8/8/4P3/4K3 b - - 10 40")
    for _ in range(2):
        env.step(env.sample_actions())
        assert not env.over.any()
    assert env.step(env.sample_actions())[2].all()
    assert env.fen(0).split(" ")[5] == "42"


def test_a_lane_may_be_set_to_an_ended_position() -> None:
    env = VectorEnv("chess", 2)
    env.set_fen(0, "7k/6Q1/6K1/8/8/8/8/8 b - - 0 1")
    env.set_fen(1, "7k/3Q4/6K1/8/8/8/8/8 w - - 100 1")
    assert env.outcome == [Outcome(Termination.CHECKMATE, "w"), Outcome(Termination.FIFTY_MOVES, None)]
    assert env.white_score.tolist() == [1, 0.5]
    assert not env.legal_action_mask.any()


# --- Setting and resetting ----------------------------------------------------------------------------


def test_reset_puts_back_the_chosen_lanes_alone() -> None:
    env = VectorEnv("asylum", 4, seed=9)
    start = everything(env)
    play(env, 30)
    before = everything(env)
    chosen = np.array([True, False, False, True])
    env.reset(chosen)
    after = everything(env)
    for name in before:
        np.testing.assert_array_equal(after[name][chosen], start[name][chosen], err_msg=name)
        np.testing.assert_array_equal(after[name][~chosen], before[name][~chosen], err_msg=name)
    env.reset()
    assert_same(everything(env), start)


def test_reset_forgets_the_history() -> None:
    env = VectorEnv("chess", 1)
    shuffle = ("g1f3", "g8f6", "f3g1", "f6g8")
    for _ in range(3):
        for move in shuffle:
            env.step([env.move_to_action(0, move)])
        assert not env.over.any()
        env.reset()


def test_a_fen_comes_back_and_a_wrong_one_changes_nothing() -> None:
    env = VectorEnv("asylum", 2)
    fen = "r4k3r/pp2pp2pp/2n2pqn2/3Rp1Pm2/1bp3Pp2/3P1NP3/2M2b1B2/P2Q1p2m1/PP3P2PP/R4K3R w KQkq - 0 1"
    env.set_fen(1, fen)
    assert env.fen(1) == fen
    assert env.legal_counts.tolist() == [42, 70]
    env.set_fen(-1, env.fen(0))
    assert env.fen(1) == env.fen(0)
    before = everything(env)
    with pytest.raises(InvalidFen, match="expected 10 rows"):
        env.set_fen(0, "8/8 w - - 0 1")
    with pytest.raises(IndexError):
        env.set_fen(2, fen)
    assert_same(everything(env), before)


def test_move_lists_grow_with_a_position_that_has_more_moves() -> None:
    queens = "QQQQQQQQ/QQQQQQQQ/QQQQQQQQ/8/8/8/K7/7k w - - 0 1"
    env = VectorEnv("chess", 2)
    env.step([env.move_to_action(lane, "e2e4") for lane in range(2)])
    with pytest.raises(InvalidFen):
        env.set_fen(0, queens)  # the side that just moved would be in check
    env.set_fen(0, "QQQQQQ1k/QQQQQQ2/1QQQQQ2/8/8/8/K7/8 b - - 0 1")
    assert env.over[0]
    env.set_fen(0, "R6R/3Q4/1Q4Q1/4Q3/2Q4Q/Q4Q2/pp1Q4/kBNN1KB1 w - - 0 1")
    assert env.legal_counts.tolist() == [218, 20]
    assert env.legal_action_mask.sum(axis=1).tolist() == [218, 20]
    env.step(env.sample_actions())
    assert env.plies.tolist() == [1, 2]


@pytest.mark.parametrize("variant", all_settings(), ids=setting_name)
def test_lanes_play_what_a_position_plays(variant) -> None:
    env, position = VectorEnv(variant, 2, seed=11), Position(variant)
    while not env.over[0]:
        legal = {env.action_to_move(0, action) for action in env.legal_actions(0).tolist()}
        assert legal == set(position.legal_moves())
        actions = env.sample_actions()
        move = env.action_to_move(0, int(actions[0]))
        assert env.move_to_action(0, move) == actions[0] == position.move_to_action(move)
        env.step(actions)
        position.push(move)
        assert position.fen() == env.fen(0)
        assert position.key == int(env.keys[0])
        assert position.in_check == env.in_check[0]
        assert "wb"[env.to_play[0]] == position.to_play
        assert position.outcome() == env.outcome[0]


def test_a_step_moves_only_the_lanes_of_its_mask() -> None:
    env = VectorEnv("chess", 3, seed=2)
    before = everything(env)
    actions = env.sample_actions()
    actions[1] = -1  # not looked at
    rewards, _, _ = env.step(actions, mask=np.array([True, False, True]))
    assert env.plies.tolist() == [1, 0, 1]
    assert rewards.tolist() == [0, 0, 0]
    assert_same({name: values[1:2] for name, values in before.items()}, everything(env), slice(1, 2))


@pytest.mark.parametrize("name", ["chess", "asylum"])
def test_a_resolved_variant_and_its_name_make_the_same_lanes(name: str) -> None:
    assert_same(everything(VectorEnv(load_variant(name), 2)), everything(VectorEnv(name, 2)))
