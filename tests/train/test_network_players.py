"""Players that ask a network: by its policy alone, and by the clock."""

import time

import numpy as np
import pytest
from numpy.typing import NDArray

from envs import VectorEnv, load_variant
from models.evaluator import UniformEvaluator
from train.network_players import PolicyPlayer, TimedPlayer

RNG = np.random.default_rng(0)


class Favouring:
    """Thinks that the moves with the highest numbers in an order of its own are best."""

    def __call__(
        self, observations: NDArray[np.float32], legal_actions: NDArray[np.int32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        merits = np.where(legal_actions >= 0, (legal_actions * 7919) % 101, 1000)  # padding must not win
        return merits.astype(np.float32), np.full((len(legal_actions), 3), 1 / 3, np.float32)


def env_after(plies: int, lanes: int) -> VectorEnv:
    env = VectorEnv(load_variant("gardner"), lanes, seed=4)
    for _ in range(plies):
        env.step(env.sample_actions())
    return env


@pytest.mark.parametrize("batch_size", [2, 64])
def test_the_policy_alone_plays_the_likeliest_legal_move(batch_size: int) -> None:
    env = env_after(5, 7)
    lanes = np.flatnonzero(~env.over)
    chosen = PolicyPlayer(Favouring(), name="policy", batch_size=batch_size).choose(env, lanes, RNG)
    for lane, action in zip(lanes.tolist(), chosen.tolist()):
        legal = env.legal_actions(lane)
        merits = (legal * 7919) % 101
        assert action == legal[merits == merits.max()].min()


@pytest.mark.parametrize("seconds", [0.02, 0.2])
def test_a_timed_player_keeps_its_time(seconds: float) -> None:
    env = env_after(0, 1)
    player = TimedPlayer(UniformEvaluator(), seconds=seconds, name="timed")
    lanes = np.array([0])
    player.choose(env, lanes, RNG)  # compiles, and makes room
    times = []
    for _ in range(3):
        began = time.perf_counter()
        (action,) = player.choose(env, lanes, RNG)
        times.append(time.perf_counter() - began)
        assert action in env.legal_actions(0)
    assert seconds <= min(times) < seconds + 0.1


class SlowAtFirst:
    """An evaluator that is slow when it is first called, as one that is compiled then."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(
        self, observations: NDArray[np.float32], legal_actions: NDArray[np.int32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        self.calls += 1
        if self.calls == 1:
            time.sleep(0.4)
        return UniformEvaluator()(observations, legal_actions)


def test_the_first_move_of_a_timed_player_has_all_its_time() -> None:
    evaluator = SlowAtFirst()
    TimedPlayer(evaluator, seconds=0.3, name="timed").choose(env_after(0, 1), np.array([0]), RNG)
    assert evaluator.calls > 4


def test_a_timed_player_plays_a_mate_without_waiting_and_needs_some_time() -> None:
    env = VectorEnv(load_variant("chess"), 1)
    env.set_fen(0, "7k/5Q2/6K1/8/8/8/8/8 w - - 0 1")
    player = TimedPlayer(UniformEvaluator(), seconds=30.0, name="timed")
    (action,) = player.choose(env, np.array([0]), RNG)
    env.step([action])
    assert env.terminated[0]
    with pytest.raises(ValueError, match=r"expected 0\.001 to 3600 seconds, got 0"):
        TimedPlayer(UniformEvaluator(), seconds=0.0, name="timed")
