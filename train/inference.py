"""Evaluations for many workers at once: requests that arrive together are one batch.

Dims: N rows of a request, C observation planes, H x W the grid, M legal actions of a row (padded with -1).
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from envs import engine_for
from models.evaluator import Evaluator, NetworkEvaluator, OnnxEvaluator, TorchEvaluator, Weights
from train.config_sections import RayConfig
from train.worker import WorkerTask

Reference = TypeVar("Reference")
Evaluations = tuple[NDArray[np.float32], NDArray[np.float32]]


class _Request(NamedTuple):
    observations: NDArray[np.float32]
    legal_actions: NDArray[np.int32]
    answer: Future[Evaluations]


class BatchingEvaluator:
    """Evaluates the requests of many threads in batches, first come, first served.

    A thread has one request at a time, so that no client can crowd out another.
    """

    def __init__(self, evaluator: Evaluator, *, max_rows: int, max_wait_s: float, max_requests: int) -> None:
        """Start the thread that evaluates.

        Args:
            evaluator: Used by that thread alone.
            max_rows: Rows of a batch; a larger request is a batch of its own.
            max_wait_s: How long the first request of a batch waits for others.
            max_requests: Requests that may wait; more block their threads. A batch never waits for more than these.
        """
        self._evaluator = evaluator
        self._max_rows, self._max_wait_s, self._max_requests = max_rows, max_wait_s, max_requests
        self._queue: queue.Queue[_Request] = queue.Queue(max_requests)
        self._left_over: _Request | None = None
        threading.Thread(target=self._serve, name="batches", daemon=True).start()

    def __call__(self, observations: NDArray[np.float32], legal_actions: NDArray[np.int32]) -> Evaluations:
        """Evaluate, see `models.evaluator.Evaluator`; blocks."""
        answer: Future[Evaluations] = Future()
        self._queue.put(_Request(observations, legal_actions, answer))
        return answer.result()

    def _serve(self) -> None:
        while True:
            batch = self._gather()
            try:
                answers = _split(batch, self._evaluator(*_join(batch)))
            except Exception as error:  # noqa: BLE001 - it is raised by those who asked
                for request in batch:
                    request.answer.set_exception(error)
            else:
                for request, answer in zip(batch, answers, strict=True):
                    request.answer.set_result(answer)

    def _gather(self) -> list[_Request]:
        """Wait for a request, and a little for others."""
        batch = [self._left_over or self._queue.get()]
        self._left_over = None
        rows, deadline = len(batch[0].observations), time.monotonic() + self._max_wait_s
        while rows < self._max_rows and len(batch) < self._max_requests:
            try:
                request = self._queue.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                break
            rows += len(request.observations)
            if rows > self._max_rows:
                self._left_over = request
                break
            batch.append(request)
        return batch


def _join(batch: list[_Request]) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Return one batch, wide enough for all; its arrays are new ones."""
    rows = sum(len(request.observations) for request in batch)
    width = max(request.legal_actions.shape[1] for request in batch)
    legal_actions, at = np.full((rows, width), -1, np.int32), 0
    for request in batch:
        count, own = request.legal_actions.shape
        legal_actions[at : at + count, :own] = request.legal_actions
        at += count
    return np.concatenate([request.observations for request in batch]), legal_actions


def _split(batch: list[_Request], evaluations: Evaluations) -> list[Evaluations]:
    """Return each request's part."""
    answers, at = [], 0
    for request in batch:
        count, width = request.legal_actions.shape
        logits, wdl = (part[at : at + count] for part in evaluations)
        answers.append((np.ascontiguousarray(logits[:, :width]), np.ascontiguousarray(wdl)))
        at += count
    return answers


class InferenceService:
    """What an inference process does: evaluates for many workers, with the weights that they bring."""

    def __init__(self, task: WorkerTask, device: str, cfg: RayConfig, num_clients: int) -> None:
        """Make the evaluator.

        Args:
            task: What the workers are told.
            device: "cpu" or "cuda".
            cfg: Bounds of the batches.
            num_clients: Workers that ask.
        """
        self._evaluator = inference_evaluator(task, device)
        wait_s = cfg.inference_wait_ms / 1000
        self._batches = BatchingEvaluator(
            self._evaluator, max_rows=cfg.inference_batch, max_wait_s=wait_s, max_requests=num_clients
        )
        self._version = -1
        self._publishing = threading.Lock()

    def evaluate(
        self, version: int, observations: NDArray[np.float32], legal_actions: NDArray[np.int32]
    ) -> Evaluations | None:
        """Evaluate with the weights of a version, or return None for want of them."""
        return self._batches(observations, legal_actions) if version == self._version else None

    def publish(self, version: int, weights: Weights) -> None:
        """Take weights if they are newer; nobody asks for older ones any more."""
        with self._publishing:
            if version > self._version:
                self._evaluator.publish({name: array.copy() for name, array in weights.items()})
                self._version = version


class RemoteEvaluator(Generic[Reference]):
    """An evaluator whose network lives in an inference process; brings it the weights that it lacks.

    It lacks them when they are new, and when it has been started again.
    """

    def __init__(
        self,
        evaluate: Callable[[int, NDArray[np.float32], NDArray[np.int32]], Evaluations | None],
        publish: Callable[[int, Reference], None],
    ) -> None:
        """Take what reaches `InferenceService.evaluate`, and what reaches its `publish` with a reference to weights."""
        self._evaluate, self._publish = evaluate, publish
        self._adopted: tuple[int, Reference] | None = None

    def adopt(self, version: int, weights: Reference) -> None:
        """Evaluate with the weights of this version from now on."""
        self._adopted = (version, weights)

    def publish(self, weights: Weights) -> None:
        """Refuse weights themselves: they come by `adopt`."""
        raise NotImplementedError

    def __call__(self, observations: NDArray[np.float32], legal_actions: NDArray[np.int32]) -> Evaluations:
        """Evaluate, see `models.evaluator.Evaluator`."""
        if self._adopted is None:
            raise RuntimeError("no weights have been adopted")
        while True:
            answer = self._evaluate(self._adopted[0], observations, legal_actions)
            if answer is not None:
                return answer
            self._publish(*self._adopted)


def inference_evaluator(task: WorkerTask, device: str) -> NetworkEvaluator:
    """Return what an inference process evaluates with: the task's graph on a CPU, its network on a GPU.

    Args:
        task: What the workers are told.
        device: "cpu" or "cuda". On a GPU, networks of the kind "resnet" are evaluated in half precision, a user's own
            in single.
    """
    variant = task.variant()
    if device == "cpu":
        return OnnxEvaluator(task.graph, threads=1)
    import torch

    from models.network import GameSpec, NetworkConfig, untrained_network

    cfg = NetworkConfig(**task.network.model_dump())
    network = untrained_network(GameSpec.of(engine_for(variant)), cfg, seed=0)
    return TorchEvaluator(network, device=device, dtype=None if cfg.kind == "resnet" else torch.float32)
