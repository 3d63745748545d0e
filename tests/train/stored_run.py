"""A small run on disk, made without training: random games, an untrained network, one checkpoint or more."""

import math
from dataclasses import asdict
from pathlib import Path

import numpy as np

from envs import CompiledGame, VectorEnv, engine_for, legal_actions, load_variant
from models.checkpoint import identity, save_checkpoint
from models.network import GameSpec, NetworkConfig, untrained_network
from train.config import RunConfig
from train.config_sections import LearnerConfig
from train.learner import Learner
from train.shards import GameRecord, write_shard
from train.starts import odds_start

TINY = {"blocks": 1, "channels": 8, "value_channels": 2, "value_hidden": 8}


def config(**changes: object) -> RunConfig:
    document = {"variant": "gardner", "seed": 5, "network": TINY, "piece_values": {"bootstrap": 100}}
    return RunConfig.model_validate({**document, **changes})


def random_games(game: CompiledGame, count: int, *, seed: int, max_plies: int = 100) -> list[GameRecord]:
    """Play random games from material odds, all at once; some are cut."""
    rng = np.random.default_rng(seed)
    env = VectorEnv(game.variant, count, max_plies=max_plies)
    for lane in range(count):
        env.set_fen(lane, odds_start(game, rng))
    starts = [env.fen(lane) for lane in range(count)]
    actions: list[np.ndarray] = []
    states: list[np.ndarray] = []
    while not env.over.all():
        legal, counts = legal_actions(game, env.states)
        chosen = legal[np.arange(count), (rng.random(count) * counts).astype(np.int64)]
        actions.append(np.where(env.over, -1, chosen))
        states.append(env.states.copy())
        env.step(np.where(env.over, 0, chosen))
    played, rows = np.array(actions, dtype=np.int32), np.array(states)
    return [_record(env, lane, starts[lane], played[:, lane], rows[:, lane]) for lane in range(count)]


def make_run(folder: Path, games: int, *, iterations: int = 1) -> RunConfig:
    """Write a run's checkpoints 0 to `iterations`, of which all but the first have the games."""
    cfg = config()
    variant = load_variant(cfg.variant, cfg.options)
    game = engine_for(variant)
    network = untrained_network(GameSpec.of(game), NetworkConfig(**cfg.network.model_dump()), seed=1)
    learner = Learner(network, LearnerConfig())
    info = write_shard(folder / "replay", "000000", random_games(game, games, seed=2), game)
    for iteration in range(iterations + 1):
        shards = [asdict(info)] if iteration else []
        state = {**identity(variant, network), "config": cfg.to_document(), "shards": shards}
        save_checkpoint(folder, iteration, tensors=learner.tensors(), state=state)
    return cfg


def _record(env: VectorEnv, lane: int, start: str, actions: np.ndarray, rows: np.ndarray) -> GameRecord:
    plies = int((actions >= 0).sum())
    score = float(env.white_score[lane])
    return GameRecord(
        start_fen=start,
        actions=actions[:plies],
        states=np.ascontiguousarray(rows[:plies]),
        policy_index=np.zeros(plies + 1, dtype=np.int64),
        policy_actions=np.zeros(0, dtype=np.int32),
        policy_probs=np.zeros(0, dtype=np.float32),
        root_values=np.zeros(plies, dtype=np.float32),
        white_score=math.nan if env.truncated[lane] else score,
        termination=int(env.terminations[lane]),
        model_version=0,
        seed=lane,
        opening_plies=2,
        start_kind="odds",
    )
