"""A small made-up game's networks and random batches, for tests of losses and learner."""

import dataclasses
from collections.abc import Iterator

import numpy as np
import pytest
import torch

from models.network import GameSpec, NetworkConfig, PolicyValueNetwork, untrained_network
from train.config_sections import LearnerConfig
from train.replay import HOLE, Batch

ACTIONS, WIDTH = 90, 12
SPEC = GameSpec(
    observation_shape=(6, 4, 5),
    piece_planes=4,
    action_planes=6,
    gather_index=np.random.default_rng(0).permutation(6 * 20)[:ACTIONS].astype(np.int32),
    target_index=np.random.default_rng(1).integers(0, 20, ACTIONS).astype(np.int32),
    num_squares=20,
    action_hash="a",
    rules_hash="r",
)
CFG = NetworkConfig(blocks=2, channels=16, value_channels=8, value_hidden=32)
AUXILIARY = dataclasses.replace(CFG, soft_policy=True, future_pieces=True)
QUICK = LearnerConfig(learning_rate=0.01, warmup_steps=10)


def make_network(seed: int = 0, cfg: NetworkConfig = CFG) -> PolicyValueNetwork:
    return untrained_network(SPEC, cfg, seed=seed)


def make_batch(rows: int = 32, *, seed: int = 0) -> Batch:
    """Make random rows; every fourth has no policy, every fifth no end."""
    rng = np.random.default_rng(seed)
    legal = np.stack([rng.permutation(ACTIONS)[:WIDTH] for _ in range(rows)]).astype(np.int64)
    legal[np.arange(WIDTH) >= rng.integers(2, WIDTH + 1, rows)[:, None]] = -1
    target = rng.dirichlet(np.full(WIDTH, 0.3), rows) * (legal >= 0)
    target /= target.sum(axis=1, keepdims=True)
    has_policy = np.arange(rows) % 4 != 0
    target[~has_policy] = 0
    moves_left = rng.integers(1, 90, rows).astype(np.float32)
    moves_left[::5] = np.nan
    observations = rng.integers(0, 2, (rows, *SPEC.observation_shape)).astype(np.float32)
    return Batch(
        observations=observations,
        legal_actions=legal,
        policy_target=target.astype(np.float32),
        has_policy=has_policy,
        wdl_target=rng.dirichlet(np.ones(3), rows).astype(np.float32),
        moves_left=moves_left,
        future_pieces=np.where(rng.random((rows, 4, 5)) < 0.1, HOLE, rng.integers(0, 5, (rows, 4, 5))),
    )


def flat(tensors: dict[str, torch.Tensor]) -> torch.Tensor:
    return torch.cat([tensor.detach().flatten().float() for tensor in tensors.values()])


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Compute in one thread: for networks this small two only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
