"""Where self-play runs: in this process, or in Ray actors; the same class does the work in both.

A worker owns its games, its search and its network; between calls only weights go in and finished games come out.
Ray is imported here alone. A local Ray is started with token authentication and without a dashboard; its processes
still listen on every interface, and refuse who lacks the token.
Source: https://docs.ray.io/en/latest/ray-security/token-auth.html.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from envs import Variant, engine_for, variant_from_document
from models.evaluator import NetworkEvaluator, OnnxEvaluator
from models.quantised import Int8Evaluator
from train.config import RunConfig
from train.config_sections import SearchConfig, SelfplayConfig
from train.plugins import POLICY, Plugin, import_plugins
from train.precision import calibration_positions
from train.selfplay import SelfPlay, SelfPlayStats
from train.shards import GameRecord

Weights = Mapping[str, npt.NDArray[np.float32]]
Played = tuple[list[GameRecord], SelfPlayStats]
Progress = Callable[[int], None]

CHUNKS = 8
"""Calls into which a worker's quota is cut, so that progress shows."""
SINGLE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
}


@dataclass(frozen=True)
class WorkerTask:
    """All that a worker is told, by content.

    Attributes:
        document: The merged variant file.
        options: Option name -> on.
        name: Name of the variant.
        search: Search settings.
        selfplay: Self-play settings.
        seed: The run's seed.
        life: The iteration at which the run was started or resumed; a resumed run plays other games.
        graph: The network as an ONNX model.
        plugins: Those that register the search policy; none for a built-in one.
    """

    document: Mapping[str, Any]
    options: Mapping[str, bool]
    name: str
    search: SearchConfig
    selfplay: SelfplayConfig
    seed: int
    life: int
    graph: bytes
    plugins: tuple[Plugin, ...]

    @classmethod
    def of(
        cls, cfg: RunConfig, variant: Variant, *, life: int, graph: bytes, plugins: Iterable[Plugin] = ()
    ) -> WorkerTask:
        """Return the task of a run's workers; of its plugins they get those that search."""
        searching = tuple(plugin for plugin in plugins if f"{POLICY}={cfg.search.policy}" in plugin.registers)
        game = (variant.document, variant.options, variant.name)
        return cls(*game, cfg.search, cfg.selfplay, cfg.seed, life, graph, searching)


class SelfPlayWorker:
    """Plays games with its own network."""

    def __init__(self, task: WorkerTask, number: int) -> None:
        """Start the games.

        Args:
            task: What to play and how.
            number: This worker's number, from 0.
        """
        import_plugins(task.plugins)
        self._variant = variant_from_document(task.document, task.options, name=task.name)
        self._graph = task.graph
        self._evaluator: NetworkEvaluator = OnnxEvaluator(task.graph, threads=1)
        self._selfplay = SelfPlay(
            engine_for(self._variant), task.search, task.selfplay, seed=(task.seed, number, task.life)
        )

    def play(
        self,
        weights: Weights | None,
        num_positions: int,
        model_version: int,
        progress: Progress | None = None,
    ) -> Played:
        """Play on.

        Args:
            weights: New weights to play with from now on; None to go on with the old ones.
            num_positions: Positions to make at least.
            model_version: Version of the weights.
            progress: Told the positions made so far.

        Returns:
            The games that ended, and counts.
        """
        if weights is not None:
            self._evaluator.publish(weights)
        return self._selfplay.play(self._evaluator, num_positions, model_version=model_version, progress=progress)

    def use_int8(self) -> None:
        """Evaluate in int8 from now on; the next call of `play` must bring weights."""
        self._evaluator = Int8Evaluator(self._graph, calibration=calibration_positions(self._variant), threads=1)
        self._selfplay.forget_evaluations()


class Workers(Protocol):
    """Makes self-play games."""

    def play(self, weights: Weights, quota: int, model_version: int, progress: Progress) -> Played:
        """Let every worker make `quota` positions.

        Args:
            weights: What to play with.
            quota: Positions for each worker.
            model_version: Version of the weights.
            progress: Told the positions made so far by all workers.

        Returns:
            The games that ended, by worker and then by time, and the workers' counts added up.
        """
        ...

    def use_int8(self) -> None:
        """Let every worker evaluate in int8 from the next call of `play` on."""
        ...

    def close(self) -> None:
        """End the workers."""
        ...


def start_workers(cfg: RunConfig, task: WorkerTask) -> Workers:
    """Start the workers that a config asks for: `workers: 0` is this process."""
    return LocalWorkers(task) if cfg.workers == 0 else RayWorkers(task, cfg.workers, cfg.ray.address)


class LocalWorkers:
    """One worker in this process."""

    def __init__(self, task: WorkerTask) -> None:
        self._worker = SelfPlayWorker(task, 0)

    def play(self, weights: Weights, quota: int, model_version: int, progress: Progress) -> Played:
        """See `Workers`."""
        return self._worker.play(weights, quota, model_version, progress)

    def use_int8(self) -> None:
        """See `Workers`."""
        self._worker.use_int8()

    def close(self) -> None:
        """Do nothing: there is no process to end."""


class RayWorkers:
    """Workers as Ray actors of one CPU each."""

    def __init__(self, task: WorkerTask, num_workers: int, address: str | None) -> None:
        """Start or join Ray and start the actors.

        Args:
            task: What to play and how.
            num_workers: Actors.
            address: Of a cluster to join; None starts a local Ray.
        """
        # Ray reads these when it is imported, and so do its processes.
        os.environ.setdefault("RAY_AUTH_MODE", "token")
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        import ray

        self._ray = ray
        if address is None:
            ray.init(
                address="local",
                num_cpus=num_workers,
                include_dashboard=False,
                log_to_driver=False,
                _node_ip_address="127.0.0.1",
                logging_level=logging.ERROR,
            )
        else:
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        actor = ray.remote(num_cpus=1, runtime_env={"env_vars": SINGLE_THREAD})(SelfPlayWorker)
        shared = ray.put(task)
        self._actors: list[Any] = [actor.remote(shared, number) for number in range(num_workers)]

    def play(self, weights: Weights, quota: int, model_version: int, progress: Progress) -> Played:
        """See `Workers`; every actor has one request in flight."""
        published = self._ray.put(dict(weights))
        sizes = [len(part) for part in np.array_split(np.arange(quota), min(CHUNKS, quota))]
        flying: dict[Any, tuple[int, int]] = {}
        results: dict[tuple[int, int], Played] = {}

        def send(number: int, chunk: int) -> None:
            sent = published if chunk == 0 else None
            flying[self._actors[number].play.remote(sent, sizes[chunk], model_version)] = (number, chunk)

        for number in range(len(self._actors)):
            send(number, 0)
        while flying:
            ready, _ = self._ray.wait(list(flying), num_returns=1)
            number, chunk = flying.pop(ready[0])
            results[number, chunk] = self._ray.get(ready[0])
            progress(sum(stats.positions for _, stats in results.values()))
            if chunk + 1 < len(sizes):
                send(number, chunk + 1)
        return _joined([results[key] for key in sorted(results)])

    def use_int8(self) -> None:
        """See `Workers`."""
        self._ray.get([actor.use_int8.remote() for actor in self._actors])

    def close(self) -> None:
        """End the actors and leave Ray."""
        self._ray.shutdown()


def _joined(parts: list[Played]) -> Played:
    games: list[GameRecord] = []
    total = SelfPlayStats()
    for records, stats in parts:
        games += records
        total.add(stats)
    return games, total
