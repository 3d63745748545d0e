"""Where self-play runs: in this process, or in Ray actors; the same class does the work in both.

Ray is imported here alone. A local Ray listens on the loopback interface only, asks for a token that is this run's own,
and leaves neither processes nor files behind (`reaper.py`). What the actors do when one of them fails is the
supervisor's (`supervisor.py`).
Source: https://docs.ray.io/en/latest/ray-security/token-auth.html.
"""

from __future__ import annotations

import logging
import os
import secrets
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import psutil

from models.evaluator import Weights
from train.config import ConfigError, RunConfig
from train.config_sections import RayConfig
from train.inference import Evaluations, InferenceService, RemoteEvaluator
from train.local_workers import LocalWorkers, Workers, check_lanes
from train.quotas import Order, QuotaJob
from train.reaper import SessionFolder
from train.supervisor import LOST, AskAll, Patience, ProcessDied, Supervisor
from train.worker import Chunk, ChunkPlayed, Played, Progress, SelfPlayWorker, WorkerTask

__all__ = [
    "LocalWorkers",
    "Played",
    "Progress",
    "RayWorkers",
    "SelfPlayWorker",
    "WorkerTask",
    "Workers",
    "start_workers",
]

SINGLE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
}
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS_SKIP_REGEX": ".", "RAY_task_events_report_interval_ms": "0"}
"""Report nothing to Ray's makers, print nothing about processes that ended, keep no list of calls, which grows."""
LOOPBACK_ONLY = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""Set to 0, Ray takes 127.0.0.1 for this machine's address, on Linux too, and listens nowhere else."""
START_TRIES = 3
"""Ray gives its processes 30 s to start, which on a busy machine may be too little."""
HEALTH = "health"
"""Methods of this group answer while the actor is busy."""
STORE_BYTES, STORE_BYTES_PER_PROCESS = 256 << 20, 32 << 20
"""Shared memory of a local Ray: weights and games on their way."""


def start_workers(cfg: RunConfig, task: WorkerTask) -> Workers:
    """Start the workers that a config asks for: `workers: 0` is this process.

    Raises:
        ConfigError: The cluster cannot be joined, or has not what the config asks for.
    """
    return LocalWorkers(task) if cfg.workers == 0 else RayWorkers(task, cfg.workers, cfg.ray)


class RayWorkers:
    """Workers as Ray actors of one CPU each, supervised."""

    def __init__(self, task: WorkerTask, num_workers: int, cfg: RayConfig) -> None:
        """Start or join Ray and start the actors.

        Args:
            task: What to play and how.
            num_workers: Actors.
            cfg: Where and how.

        Raises:
            ConfigError: The cluster cannot be joined, or has not what the config asks for.
        """
        self._under_way = [0] * num_workers
        self._session: SessionFolder | None = None
        if cfg.address is None:
            self._ray, self._session = start_ray(num_workers + cfg.inference_actors)
        else:
            self._ray = _join_ray(cfg)
        try:
            self._fleet = _RayFleet(task, num_workers, cfg)
            patience = Patience(cfg.heartbeat_timeout_s, cfg.start_timeout_s, cfg.max_restarts)
            self._supervisor = Supervisor(self._fleet, patience, on_loss=self._count_loss)
            self._supervisor.begin_iteration(task.life + 1)
        except BaseException:
            self.close()
            raise

    @property
    def faults(self) -> Mapping[str, int]:
        """See `Workers`."""
        return self._supervisor.faults

    def play(self, weights: Weights, quota: int, model_version: int, iteration: int, progress: Progress) -> Played:
        """See `Workers`."""
        # In a list: whoever evaluates fetches them, once on each machine; the last reference frees them.
        published = [self._ray.put(dict(weights))]
        job = QuotaJob(Order(quota, model_version, iteration, published), self._under_way, progress)
        self._supervisor.begin_iteration(iteration)
        self._supervisor.run(job)
        return job.played()

    def lanes(self) -> list[bytes]:
        """See `Workers`."""
        return self._ask_all("lanes", [()] * len(self._under_way))

    def restore_lanes(self, lanes: Sequence[bytes]) -> None:
        """See `Workers`."""
        check_lanes(lanes, len(self._under_way))
        self._ask_all("restore_lanes", [(one, f"lanes of worker {number}") for number, one in enumerate(lanes)])

    def use_int8(self) -> None:
        """See `Workers`."""
        self._fleet.use_int8()
        self._ask_all("use_int8", [()] * len(self._under_way))

    def close(self) -> None:
        """End the actors, leave Ray, and remove what a local one has left."""
        self._ray.shutdown()
        if self._session is not None:
            self._session.close()

    def _ask_all(self, method: str, arguments: Sequence[tuple[object, ...]]) -> list[Any]:
        job = AskAll(method, arguments)
        self._supervisor.run(job)
        return job.answers

    def _count_loss(self, number: int) -> None:
        self._supervisor.faults[LOST] += self._under_way[number]
        self._under_way[number] = 0


class _WorkerActor:
    """A `SelfPlayWorker` in a process of its own."""

    def __init__(self, task: WorkerTask, number: int, life: int | None, inference: Any | None) -> None:
        self._remote = None if inference is None else _remote_evaluator(inference)
        self._worker = SelfPlayWorker(task, number, life=life, evaluator=self._remote)

    def play_chunk(self, weights: list[Any], chunk: Chunk) -> ChunkPlayed:
        """Play on; `weights` holds a reference to them."""
        import ray

        if self._remote is not None:
            self._remote.adopt(chunk.model_version, weights)
        elif chunk.is_first:
            self._worker.publish(ray.get(weights[0]))
        return self._worker.play_chunk(chunk)

    def lanes(self) -> bytes:
        """See `SelfPlayWorker`."""
        return self._worker.lanes()

    def restore_lanes(self, content: bytes, where: str) -> None:
        """See `SelfPlayWorker`."""
        self._worker.restore_lanes(content, where)

    def use_int8(self) -> None:
        """See `SelfPlayWorker`."""
        self._worker.use_int8()

    def ping(self) -> tuple[int, str]:
        """Return this process's id and its node's."""
        return _whereabouts()


class _InferenceActor(InferenceService):
    """Evaluates for many workers in a process of its own."""

    def publish_from(self, version: int, weights: list[Any]) -> None:
        """See `InferenceService.publish`; `weights` holds a reference to them."""
        import ray

        self.publish(version, ray.get(weights[0]))

    def ping(self) -> tuple[int, str]:
        """Return this process's id and its node's."""
        return _whereabouts()


def _remote_evaluator(actor: Any) -> RemoteEvaluator[list[Any]]:
    """Return an evaluator that asks an inference actor, which Ray starts again, and asks again, when it has died."""
    import ray

    def evaluate(version: int, observations: Any, legal_actions: Any) -> Evaluations | None:
        answer: Evaluations | None = ray.get(actor.evaluate.remote(version, observations, legal_actions))
        return answer

    def publish(version: int, weights: list[Any]) -> None:
        ray.get(actor.publish_from.remote(version, weights))

    return RemoteEvaluator(evaluate, publish)


class _RayProcess:
    """An actor as the supervisor sees it."""

    def __init__(self, actor: Any, *, restarts: bool) -> None:
        self._actor, self._restarts = actor, restarts
        self._where: tuple[int, str] | None = None

    def ask(self, method: str, *arguments: object) -> Any:
        """See `supervisor.Process`."""
        return getattr(self._actor, method).remote(*arguments)

    def ping(self) -> Any:
        """See `supervisor.Process`."""
        return self._actor.ping.options(concurrency_group=HEALTH, max_task_retries=0).remote()

    def heard(self, answer: Any) -> None:
        """See `supervisor.Process`."""
        self._where = answer

    def kill(self) -> None:
        """See `supervisor.Process`; Ray asks politely for some seconds, on this node we do not."""
        import ray

        ray.kill(self._actor, no_restart=not self._restarts)
        if self._where is not None and self._where[1] == ray.get_runtime_context().get_node_id():
            _kill_actor_process(self._where[0])


class _RayFleet:
    """A `supervisor.Fleet` of Ray actors: workers, and the inference actors that serve them."""

    def __init__(self, task: WorkerTask, num_workers: int, cfg: RayConfig) -> None:
        import ray

        self.num_workers, self.num_services = num_workers, cfg.inference_actors
        self._task, self._shared = task, ray.put(task)
        self._worker = _actor_class(_WorkerActor, scheduling_strategy="SPREAD")
        device = _inference_device(cfg)
        actor = self.inference_class(device)
        self._inference = [
            actor.remote(self._shared, device, cfg, len(range(number, num_workers, cfg.inference_actors)))
            for number in range(cfg.inference_actors)
        ]

    def start(self, number: int, life: int | None) -> _RayProcess:
        """See `supervisor.Fleet`."""
        served_by = self._inference[number % len(self._inference)] if self._inference else None
        return _RayProcess(self._worker.remote(self._shared, number, life, served_by), restarts=False)

    def start_service(self, number: int) -> _RayProcess:
        """See `supervisor.Fleet`; Ray itself starts one again that has ended, which workers need not know."""
        return _RayProcess(self._inference[number], restarts=True)

    def ready(self, tickets: Sequence[Any], timeout_s: float) -> Sequence[Any]:
        """See `supervisor.Fleet`."""
        import ray

        found, _ = ray.wait(list(tickets), num_returns=1, timeout=timeout_s)
        return list(found)

    def answer(self, ticket: Any) -> Any:
        """See `supervisor.Fleet`."""
        import ray
        from ray import exceptions

        try:
            return ray.get(ticket)
        except exceptions.RayTaskError:
            raise
        except exceptions.RayActorError as error:
            if error.actor_init_failed:
                raise
            raise ProcessDied(str(error)) from error
        except (
            exceptions.WorkerCrashedError,
            exceptions.NodeDiedError,
            exceptions.ObjectLostError,
            exceptions.OutOfMemoryError,
        ) as error:
            raise ProcessDied(str(error)) from error

    def use_int8(self) -> None:
        """Let workers that are started from now on evaluate in int8."""
        import ray

        self._task = replace(self._task, int8=True)
        self._shared = ray.put(self._task)

    def inference_class(self, device: str) -> Any:
        """Return the class of inference actors: as many at once may ask as there are workers."""
        return _actor_class(
            _InferenceActor,
            num_gpus=int(device == "cuda"),
            max_restarts=-1,
            max_task_retries=-1,
            max_concurrency=self.num_workers + 1,
        )


def _actor_class(plain: type, **options: object) -> Any:
    """Return the Ray actor class of a plain one: one CPU, and pings that are answered while it is busy."""
    import ray

    remote: Any = ray.remote
    environment = {"env_vars": SINGLE_THREAD}
    return remote(num_cpus=1, concurrency_groups={HEALTH: 1}, runtime_env=environment, **options)(plain)


def _whereabouts() -> tuple[int, str]:
    import ray

    return os.getpid(), ray.get_runtime_context().get_node_id()


def _kill_actor_process(pid: int) -> None:
    """Kill a process of this machine, if it is one of Ray's and still there."""
    try:
        process = psutil.Process(pid)
        if any(word.startswith("ray::") for word in process.cmdline()):
            process.kill()
    except psutil.NoSuchProcess:
        return


def start_ray(num_cpus: int) -> tuple[Any, SessionFolder]:
    """Start a Ray of our own on the loopback interface; return its module and its folder."""
    # Ray reads these when it is imported, and so do its processes; unasked, it gives its workers niceness 15.
    os.environ.update({**QUIET, "RAY_AUTH_MODE": "token", LOOPBACK_ONLY: "0", "RAY_worker_niceness": "0"})
    if "RAY_AUTH_TOKEN_PATH" not in os.environ:
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    import ray

    for tries_left in reversed(range(START_TRIES)):
        session = SessionFolder()
        try:
            with _own_signals():
                ray.init(
                    address="local",
                    num_cpus=num_cpus,
                    object_store_memory=STORE_BYTES + num_cpus * STORE_BYTES_PER_PROCESS,
                    include_dashboard=False,
                    log_to_driver=False,
                    logging_level=logging.ERROR,
                    _node_ip_address="127.0.0.1",
                    _temp_dir=str(session.path),
                )
        except BaseException as error:
            ray.shutdown()
            session.close()
            if not tries_left or not isinstance(error, Exception):
                raise
        else:
            break
    return ray, session


def _join_ray(cfg: RayConfig) -> Any:
    """Become a driver of a cluster that `check_cluster` approved; this machine is a node of it. Return Ray's module."""
    os.environ.update(QUIET)
    import ray

    with _own_signals():
        ray.init(address=cfg.address, log_to_driver=False, logging_level=logging.ERROR)
    return ray


@contextmanager
def _own_signals() -> Iterator[None]:
    """Keep what SIGTERM does: Ray would exit at once."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)


def _inference_device(cfg: RayConfig) -> str:
    """Return where the inference actors evaluate."""
    import ray

    resources: Any = ray.cluster_resources  # untyped
    num_gpus = int(resources().get("GPU", 0))
    if cfg.inference_device == "cuda" and num_gpus < cfg.inference_actors:
        raise ConfigError(
            f"ray.inference_device is cuda and ray.inference_actors {cfg.inference_actors}: expected a GPU for each, "
            f"Ray has {num_gpus}"
        )
    if cfg.inference_device == "auto":
        return "cuda" if num_gpus >= cfg.inference_actors else "cpu"
    return cfg.inference_device
