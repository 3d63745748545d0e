"""What searches and their evaluators do over and over while they are measured, in this process and in workers.

The searches are of positions of all stages of random games; the batches that they evaluate are recorded once, so that
the evaluator can be timed on the same ones alone.

Dims: B lanes, N evaluated positions, M legal actions.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from multiprocessing.synchronize import Barrier
from typing import Any

import numpy as np
import numpy.typing as npt

from envs import VectorEnv
from models.evaluator import Evaluator, OnnxEvaluator
from scripts.bench_rounds import timed
from train.search import Search, SearchSettings

NUM_SIMULATIONS, SPREAD_PLIES, SEED = 32, 128, 1
NUM_WORKERS, TIMEOUT_S = 2, 600


class Load(StrEnum):
    """What is done over and over."""

    SEARCH = "search"
    EVALUATE = "evaluator alone"


class ConstantEvaluator:
    """Costs nothing: equal priors, equal chances of the three results, in arrays that are made once."""

    def __init__(self) -> None:
        """Reserve the arrays."""
        self._logits = np.zeros((0, 0), np.float32)
        self._wdl = np.zeros((0, 3), np.float32)

    def __call__(
        self, observations: npt.NDArray[np.float32], legal_actions: npt.NDArray[np.int32]
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Return zero logits [N, M] and thirds [N, 3], not to be written to."""
        count, width = legal_actions.shape
        if count * width > self._logits.size or count > len(self._wdl):
            self._logits = np.zeros(count * width, np.float32)
            self._wdl = np.full((count, 3), 1 / 3, np.float32)
        return self._logits.reshape(-1)[: count * width].reshape(count, width), self._wdl[:count]


def spread_games(variant: str, num_lanes: int) -> VectorEnv:
    """Return random games, the first at its start and each later one some plies further; the over ones start again."""
    env = VectorEnv(variant, num_lanes, seed=SEED)
    plies = np.arange(num_lanes) * SPREAD_PLIES // num_lanes
    for ply in range(SPREAD_PLIES):
        env.step(env.sample_actions(), plies > ply)
        over = env.terminated | env.truncated
        if over.any():
            env.reset(over)
    return env


class SearchLoad:
    """The same searches, again and again, or their evaluations alone; both count simulations."""

    def __init__(self, variant: str, num_lanes: int, evaluator: Evaluator, policy: str = "gumbel") -> None:
        """Search once, and keep the batches that were evaluated; no evaluation is remembered from search to search."""
        self._env, self._evaluator = spread_games(variant, num_lanes), evaluator
        settings = SearchSettings(policy=policy, cache_positions=0)
        self._search = Search(self._env.game, num_lanes, NUM_SIMULATIONS, settings)
        self._batches: list[tuple[npt.NDArray[np.float32], npt.NDArray[np.int32]]] = []
        self._run(self._recording)
        self.search()

    def search(self) -> int:
        """Search in every lane; return the simulations."""
        return self._run(self._evaluator)

    def evaluate(self) -> int:
        """Evaluate what these searches evaluate; return their simulations."""
        for observations, legal_actions in self._batches:
            self._evaluator(observations, legal_actions)
        return self._search.num_lanes * NUM_SIMULATIONS

    def _run(self, evaluator: Evaluator) -> int:
        search, rng = self._search, np.random.default_rng(SEED)
        for lane, (row, history) in enumerate(zip(self._env.states, self._env.histories, strict=True)):
            search.begin(lane, row, history, budget=NUM_SIMULATIONS, rng=rng)
        running = np.arange(search.num_lanes)
        while len(running):
            running = running[~search.advance(running, evaluator)]
        for lane in range(search.num_lanes):
            search.result(lane)
        return search.num_lanes * NUM_SIMULATIONS

    def _recording(
        self, observations: npt.NDArray[np.float32], legal_actions: npt.NDArray[np.int32]
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        self._batches.append((observations.copy(), legal_actions.copy()))
        return self._evaluator(observations, legal_actions)

    def run(self, load: Load) -> int:
        """Do what is wanted once; return the simulations."""
        return self.search() if load is Load.SEARCH else self.evaluate()


@dataclass(frozen=True)
class WorkerTask:
    """What a worker searches.

    Attributes:
        variant: The game.
        num_lanes: B.
        graph: The network as an ONNX model.
    """

    variant: str
    num_lanes: int
    graph: bytes


class Team:
    """Workers in processes of their own, one thread each, that are measured while all of them work."""

    def __init__(self, task: WorkerTask) -> None:
        """Start the workers, and wait until all of them are ready.

        Raises:
            RuntimeError: A worker ended.
        """
        context = multiprocessing.get_context("spawn")
        self.task = task
        self._start = context.Barrier(NUM_WORKERS)
        self._links: list[Connection] = []
        self._processes: list[SpawnProcess] = []
        for _ in range(NUM_WORKERS):
            link, far_end = context.Pipe()
            process = context.Process(target=_work, args=(task, far_end, self._start), daemon=True)
            process.start()
            far_end.close()
            self._links.append(link)
            self._processes.append(process)
        with self._ending_together():
            self._receive()

    def sample(self, load: Load, seconds: float) -> tuple[int, float]:
        """Let all work at once; return their simulations, and seconds that make the rate the sum of theirs.

        Raises:
            RuntimeError: A worker ended.
        """
        with self._ending_together():
            self._send((load, seconds))
            found: list[tuple[int, float]] = self._receive()
            self._send("stop")
            self._receive()
        units = sum(number for number, _ in found)
        return units, units / sum(number / elapsed for number, elapsed in found)

    def close(self) -> None:
        """Let the workers end."""
        for link, process in zip(self._links, self._processes, strict=True):
            with suppress(OSError):  # a worker that has ended needs no word
                link.send(None)
            process.join(TIMEOUT_S)

    def _send(self, message: object) -> None:
        for link in self._links:
            link.send(message)

    def _receive(self) -> list[Any]:
        """Return a message from each worker."""
        ends = [process.sentinel for process in self._processes]
        messages = []
        for link in self._links:
            if link not in wait([link, *ends]):
                raise EOFError
            messages.append(link.recv())
        return messages

    @contextmanager
    def _ending_together(self) -> Iterator[None]:
        """End all workers when one has ended."""
        try:
            yield
        except (EOFError, ConnectionError) as error:
            for process in self._processes:
                process.terminate()
                process.join()
            self._links, self._processes = [], []
            raise RuntimeError("a bench worker ended before its work was done") from error


def _work(task: WorkerTask, link: Connection, start: Barrier) -> None:
    """Work as told through the link until told None; work on after each sample until all have been measured."""
    searches = SearchLoad(task.variant, task.num_lanes, OnnxEvaluator(task.graph))
    link.send("ready")
    for load, seconds in iter(link.recv, None):
        start.wait(TIMEOUT_S)
        link.send(timed(partial(searches.run, load), seconds, time.perf_counter))
        while not link.poll():
            searches.run(load)
        link.recv()
        link.send(None)
