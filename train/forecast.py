"""What a run will cost, before it begins: size of the network, memory, disk, speed, duration.

Speeds come from a short measurement on this machine: as many processes as the run has workers, at most one for each
core, play with the untrained network; then the learner takes steps on some short games. The rest is counted.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch
from torch.utils.flop_counter import FlopCounterMode

from envs import CompiledGame, engine_for, load_variant
from envs.random_games import play_random_games
from models.evaluator import OnnxEvaluator, export_graph
from models.network import (
    GameSpec,
    InferenceNetwork,
    NetworkConfig,
    PolicyValueNetwork,
    check_network,
    example_inputs,
    untrained_network,
)
from train import forecast_worker
from train.config import RunConfig
from train.forecast_worker import PlayedFor, request
from train.learner import Learner
from train.replay import ReplayBuffer, window_rows
from train.resources import num_cores
from train.search import EDGES_PER_NODE
from train.search_arrays import make_cache, make_tree
from train.selfplay import Assignment, SelfPlay
from train.verification import store_games

MB, FLOAT_BYTES = 1e6, 4
PAGE_WIDTH = 98
PLAY_SECONDS, LEARN_SECONDS = 3.0, 2.0
WARM_UP_STEPS = 2
SHORT_GAMES, SHORT_PLIES = 16, 24
"""Games, and searched plies of each, that the learner's steps are measured on."""
RANDOM_GAMES = 64
RAY_MB, RAY_ACTOR_MB = 545, 65
"""Resident memory of Ray's own processes, and what Ray adds to each worker and to the trainer (Ray 2.60, Linux)."""
ROOT = Path(__file__).resolve().parents[1]
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "MKL", "OPENBLAS", "NUMBA")}


@dataclass(frozen=True)
class Forecast:
    """What a run is expected to need. Sizes are in MB = 10^6 bytes.

    Attributes:
        parameters: Of each part of the network.
        mflops_per_evaluation: Millions of additions and multiplications for one position.
        memory_mb: Of each part of the run when the replay window is at its largest; `total` is their sum.
        disk_mb: `games_per_iteration`, `checkpoint` (each), `total` at the end, `free` now.
        positions_per_s: Self-play of all workers.
        evaluations_per_s: Of all workers.
        steps_per_s: Of the learner.
        game_plies: Mean length of random games under the ply cap, by which games are counted.
        games_per_hour: Over whole iterations, learning included.
        iteration_s: `selfplay`, `store`, `learn`, `total` of the first iteration.
        run_hours: Of all iterations and matches.
        measured: How the speeds were measured.
    """

    parameters: dict[str, int]
    mflops_per_evaluation: float
    memory_mb: dict[str, float]
    disk_mb: dict[str, float]
    positions_per_s: float
    evaluations_per_s: float
    steps_per_s: float
    game_plies: float
    games_per_hour: float
    iteration_s: dict[str, float]
    run_hours: float
    measured: str

    def document(self) -> dict[str, Any]:
        """Return it as plain data (JSON-able)."""
        return asdict(self)

    def lines(self) -> list[str]:
        """Return it as lines for people, at most 100 columns wide."""
        memory, disk, times = self.memory_mb, self.disk_mb, self.iteration_s
        parts = ", ".join(f"{name} {count:,}" for name, count in self.parameters.items())
        rest = ", ".join(f"{name} {size:,.0f}" for name, size in memory.items() if name != "total")
        lines = [
            f"network      {sum(self.parameters.values()):,} parameters ({parts})",
            f"evaluation   {self.mflops_per_evaluation:,.1f} MFLOP a position",
            f"memory       {memory['total']:,.0f} MB at most ({rest})",
            f"disk         {disk['total']:,.0f} MB in the end, {disk['free']:,.0f} MB free ("
            f"{disk['games_per_iteration']:.2f} MB of games an iteration, {disk['checkpoint']:.1f} MB a checkpoint)",
            f"self-play    {self.positions_per_s:,.0f} positions/s, {self.evaluations_per_s:,.0f} evaluations/s",
            f"learner      {self.steps_per_s:,.1f} steps/s",
            f"games        {self.games_per_hour:,.0f} an hour, if as long as random ones: {self.game_plies:.0f} plies",
            f"iteration    {times['total']:,.1f} s: self-play {times['selfplay']:,.1f}, "
            f"storing {times['store']:,.1f}, learning {times['learn']:,.1f}",
            f"run          {_duration(self.run_hours)}, matches included",
            f"measured     {self.measured}",
        ]
        return [part for line in lines for part in textwrap.wrap(line, PAGE_WIDTH, subsequent_indent=" " * 13)]


@dataclass(frozen=True)
class _Learned:
    """What was measured of storing and learning.

    Attributes:
        store_s: Seconds of verifying, storing and reading a row.
        step_s: Seconds of a step, sampling included.
        steps_per_policy_row: Steps that a new row with a policy asks for.
        window_bytes: Memory of a row.
        shard_bytes: A row on disk.
        memory: Resident bytes of the process that learned.
    """

    store_s: float
    step_s: float
    steps_per_policy_row: float
    window_bytes: float
    shard_bytes: float
    memory: int


def forecast(cfg: RunConfig) -> Forecast:
    """Measure this machine for some 15 seconds; nothing stays on disk.

    Args:
        cfg: The run's config; its plugins have been loaded.

    Raises:
        ValueError: The network cannot be trained.
        ExportError: It cannot be exported.
        RuntimeError: A measuring process failed; the message holds what it said.
    """
    game = engine_for(load_variant(cfg.variant, cfg.options))
    network = untrained_network(GameSpec.of(game), NetworkConfig(**cfg.network.model_dump()), seed=0)
    check_network(network)
    learner = Learner(network, cfg.learner)
    graph = export_graph(learner.playing_network)
    learned = _learn(cfg, game, learner, graph)  # first: it compiles the kernels, once for all processes
    played = _play(cfg, graph)
    num_workers = max(1, cfg.workers)
    scale = num_workers / len(played) if cfg.ray.address else 1.0
    rate = scale * sum(worker.positions / worker.seconds for worker in played)
    evaluations = scale * sum(worker.evaluations / worker.seconds for worker in played)
    positions = cfg.selfplay.positions_per_iteration * num_workers
    times = _iteration_times(cfg, positions, rate, learned)
    random_plies = play_random_games(game.variant, RANDOM_GAMES).plies
    plies = float(np.minimum(random_plies, cfg.selfplay.max_plies).mean())
    return Forecast(
        parameters=_parameters(network),
        mflops_per_evaluation=_flops(network) / 1e6,
        memory_mb=_memory(cfg, game, network, played, learned),
        disk_mb=_disk(cfg, network, positions * learned.shard_bytes / MB),
        positions_per_s=rate,
        evaluations_per_s=evaluations,
        steps_per_s=1 / learned.step_s,
        game_plies=plies,
        games_per_hour=3600 * positions / plies / times["total"],
        iteration_s=times,
        run_hours=_run_seconds(cfg, times, plies, evaluations) / 3600,
        measured=_how(cfg, played),
    )


def _play(cfg: RunConfig, graph: bytes) -> list[PlayedFor]:
    """Let processes play side by side, as the workers will."""
    count = min(max(1, cfg.workers), num_cores())
    processes: list[subprocess.Popen[str]] = []
    try:
        for number in range(count):
            processes.append(_start(request(cfg.to_document(), graph, number=number, seconds=PLAY_SECONDS)))
        answers = [(process, *process.communicate()) for process in processes]
    finally:
        for process in processes:
            process.kill()
    for process, _, errors in answers:
        if process.returncode:
            raise RuntimeError(f"a measuring process failed: {errors.strip()}")
    return [PlayedFor(**json.loads(output)) for _, output, _ in answers]


def _start(asked: bytes) -> subprocess.Popen[str]:
    """Start a measuring process."""
    with tempfile.TemporaryFile() as stdin:
        stdin.write(asked)
        stdin.seek(0)
        return subprocess.Popen(
            [sys.executable, "-m", forecast_worker.__name__],
            env={**os.environ, **ONE_THREAD, "PYTHONPATH": str(ROOT)},
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


def _learn(cfg: RunConfig, game: CompiledGame, learner: Learner, graph: bytes) -> _Learned:
    """Store some short games and learn from them."""
    opening = cfg.selfplay.random_plies
    short = cfg.selfplay.model_copy(
        update={"games_per_worker": SHORT_GAMES, "max_plies": opening + SHORT_PLIES, "stagger_plies": 0}
    )
    player = SelfPlay(game, cfg.search, short, seed=(cfg.seed,))
    quota = Assignment(SHORT_GAMES * (SHORT_PLIES + opening), model_version=0, iteration=1)
    games, _ = player.play(OnnxEvaluator(graph), quota)
    future_plies = cfg.learner.future_plies if cfg.network.future_pieces else None
    replay = ReplayBuffer(game, cfg.replay, outcome_weight=cfg.learner.outcome_weight, future_plies=future_plies)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        started = time.perf_counter()
        info, _ = store_games(game, games, folder=folder, name="short", quarantine=folder / "bad")
        if info is None:
            raise RuntimeError("no game of self-play passed the rules' check")
        replay.add(folder, info)
        stored_s = time.perf_counter() - started
        shard_bytes = (folder / info.name).stat().st_size
    rows, batch_size = replay.num_rows, cfg.learner.batch_size
    return _Learned(
        store_s=stored_s / rows,
        step_s=_step_seconds(learner, replay, batch_size),
        steps_per_policy_row=replay.steps_for(10_000, passes=cfg.learner.passes, batch_size=batch_size) / 10_000,
        window_bytes=replay.num_bytes / rows,
        shard_bytes=shard_bytes / rows,
        memory=psutil.Process().memory_info().rss,
    )


def _step_seconds(learner: Learner, replay: ReplayBuffer, batch_size: int) -> float:
    rng = np.random.default_rng(0)
    for _ in range(WARM_UP_STEPS):
        learner.step(replay.sample(rng, batch_size))
    started, steps = time.perf_counter(), 0
    while time.perf_counter() - started < LEARN_SECONDS:
        learner.step(replay.sample(rng, batch_size))
        steps += 1
    return (time.perf_counter() - started) / steps


def _iteration_times(cfg: RunConfig, positions: int, rate: float, learned: _Learned) -> dict[str, float]:
    """Return the seconds of the first iteration."""
    times = {
        "selfplay": positions / rate,
        "store": positions * learned.store_s,
        "learn": positions * cfg.search.full_search_share * learned.steps_per_policy_row * learned.step_s,
    }
    return {**times, "total": sum(times.values())}


def _run_seconds(cfg: RunConfig, times: dict[str, float], plies: float, evaluations_per_s: float) -> float:
    """Return the seconds of all iterations, by their budgets, and of the matches against the opponent."""
    budgets = [_mean_budget(cfg, number) for number in range(1, cfg.iterations + 1)]
    rest = times["total"] - times["selfplay"]
    own = cfg.evaluation
    matches = 1 + ((cfg.iterations - 1) // own.every if own.every else 0)
    evaluations = own.games * min(plies, own.max_plies) / 2 * own.simulations
    iterations_s = times["selfplay"] * sum(budgets) / budgets[0] + rest * cfg.iterations
    return iterations_s + matches * evaluations / evaluations_per_s


def _mean_budget(cfg: RunConfig, iteration: int) -> float:
    full, fast = cfg.search.budgets(iteration)
    return cfg.search.full_search_share * full + (1 - cfg.search.full_search_share) * fast


def _parameters(network: PolicyValueNetwork) -> dict[str, int]:
    counts = {name: sum(part.numel() for part in module.parameters()) for name, module in network.named_children()}
    own = sum(part.numel() for part in network.parameters(recurse=False))
    return {name: count for name, count in {**counts, "others": own}.items() if count}


def _flops(network: PolicyValueNetwork) -> int:
    """Return the additions and multiplications of one evaluation in self-play."""
    observations, actions = map(torch.from_numpy, example_inputs(network.spec, 1, 32))
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        InferenceNetwork(network)(observations, actions)
    return int(counter.get_total_flops())


def _memory(
    cfg: RunConfig, game: CompiledGame, network: PolicyValueNetwork, played: Sequence[PlayedFor], learned: _Learned
) -> dict[str, float]:
    """Return the memory of a run's parts on this machine, in MB."""
    rows = cfg.iterations * cfg.selfplay.positions_per_iteration * max(1, cfg.workers)
    lanes, most = cfg.selfplay.games_per_worker, cfg.search.most_simulations
    tree = _bytes(make_tree(game, lanes, most + 1, (most + 1) * EDGES_PER_NODE))
    cache = _bytes(make_cache(cfg.search.cache_positions))
    code = max(worker.memory for worker in played) - tree + RAY_ACTOR_MB * MB  # of a worker
    here = 0 if cfg.ray.address else max(1, cfg.workers)
    sizes = {
        "replay window": min(window_rows(rows, cfg.replay) * learned.window_bytes / MB, cfg.replay.max_memory_mb),
        "network and optimizer": 5 * sum(part.numel() for part in network.parameters()) * FLOAT_BYTES / MB,
        "trainer's code": learned.memory / MB,
        "search trees": here * tree / MB,
        "evaluation caches": here * cache / MB,
    }
    if cfg.workers and here:
        sizes["trainer's code"] += RAY_ACTOR_MB
        sizes |= {"workers' code": here * code / MB, "Ray": RAY_MB}
    return {**sizes, "total": sum(sizes.values())}


def _bytes(arrays: Sequence[np.ndarray[Any, Any]]) -> int:
    """Return the size of arrays; views of one of them do not count again."""
    return sum(array.nbytes for array in arrays if array.base is None)


def _disk(cfg: RunConfig, network: PolicyValueNetwork, games_mb: float) -> dict[str, float]:
    """Return sizes on disk in MB; a checkpoint holds the playing and learning weights and two moments."""
    checkpoint = 4 * sum(part.numel() for part in network.parameters()) * FLOAT_BYTES / MB
    keep = cfg.checkpoints
    kept = min(cfg.iterations + 1, 1 + keep.keep_last + (cfg.iterations // keep.keep_every if keep.keep_every else 0))
    root = Path(cfg.run_root)
    place = next(folder for folder in (root, *root.absolute().parents) if folder.exists())
    return {
        "games_per_iteration": games_mb,
        "checkpoint": checkpoint,
        "total": cfg.iterations * games_mb + kept * checkpoint,
        "free": shutil.disk_usage(place).free / MB,
    }


def _how(cfg: RunConfig, played: Sequence[PlayedFor]) -> str:
    """Say how the speeds were measured."""
    seconds, count = sum(worker.seconds for worker in played) / len(played), len(played)
    text = (
        f"{seconds:.0f} s of self-play in {count} process{'es' if count > 1 else ''} and {LEARN_SECONDS:.0f} s of "
        "learning, untrained network, on this machine as busy as it was"
    )
    if cfg.ray.address:
        text += f"; taken times {max(1, cfg.workers)}/{count} for the cluster's workers"
    return text


def _duration(hours: float) -> str:
    if hours < 1.5:
        return f"{60 * hours:.1f} minutes"
    return f"{hours:.1f} hours" if hours < 48 else f"{hours / 24:.1f} days"
