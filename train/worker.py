"""What a self-play worker is told and does, wherever it runs: plain classes, without Ray.

A worker owns its games, its search and its network; between calls only weights go in and finished games come out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from envs import Variant, engine_for, variant_from_document
from models.evaluator import NetworkEvaluator, OnnxEvaluator, Weights
from models.quantised import Int8Evaluator
from train.config import RunConfig
from train.config_sections import NetworkSection, SearchConfig, SelfplayConfig
from train.plugins import NETWORK, POLICY, Plugin, import_plugins
from train.precision import calibration_positions
from train.selfplay import Assignment, SelfPlay, SelfPlayStats
from train.shards import GameRecord

Played = tuple[list[GameRecord], SelfPlayStats]
Progress = Callable[[int], None]


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
        life: The iteration at which the run was started or resumed; without its lanes a resumed run plays other games.
        graph: The network as an ONNX model.
        network: Settings of the network; an inference process on a GPU builds it.
        plugins: Those that register the search policy or the network; none for built-in ones.
        int8: Evaluate in int8.
    """

    document: Mapping[str, Any]
    options: Mapping[str, bool]
    name: str
    search: SearchConfig
    selfplay: SelfplayConfig
    seed: int
    life: int
    graph: bytes
    network: NetworkSection
    plugins: tuple[Plugin, ...]
    int8: bool = False

    @classmethod
    def of(
        cls, cfg: RunConfig, variant: Variant, *, life: int, graph: bytes, plugins: Iterable[Plugin] = ()
    ) -> WorkerTask:
        """Return the task of a run's workers; of its plugins they get those that they need."""
        needed = {f"{POLICY}={cfg.search.policy}"}
        if cfg.ray.inference_actors:
            needed.add(f"{NETWORK}={cfg.network.kind}")
        chosen = tuple(plugin for plugin in plugins if needed & set(plugin.registers))
        game = (variant.document, variant.options, variant.name)
        return cls(*game, cfg.search, cfg.selfplay, cfg.seed, life, graph, cfg.network, chosen)

    def variant(self) -> Variant:
        """Return the game, and let the plugins register what they have."""
        import_plugins(self.plugins)
        return variant_from_document(self.document, self.options, name=self.name)


class Chunk(NamedTuple):
    """A part of what a worker makes in an iteration; with the others, in turn, the same games as the whole.

    Attributes:
        is_first: nothing has been made yet, by this worker in this iteration.
        target: positions that it is to have made, this part included.
        model_version: of the weights.
        iteration: of the run.
    """

    is_first: bool
    target: int
    model_version: int
    iteration: int


class ChunkPlayed(NamedTuple):
    """What a worker made of a chunk.

    Attributes:
        games: those that ended.
        stats: counts.
        under_way: positions made by this worker in games that have not ended.
    """

    games: list[GameRecord]
    stats: SelfPlayStats
    under_way: int


class SelfPlayWorker:
    """Plays games with its own network, or with an evaluator that is given."""

    def __init__(
        self, task: WorkerTask, number: int, *, life: int | None = None, evaluator: NetworkEvaluator | None = None
    ) -> None:
        """Start the games.

        Args:
            task: What to play and how.
            number: This worker's number, from 0.
            life: Distinguishes the random streams of a replacement from those before it; None is the task's.
            evaluator: Scores positions; None is the task's graph.
        """
        self._task, self._variant = task, task.variant()
        self._evaluator = evaluator or _own_evaluator(task, self._variant)
        seed = (task.seed, number, task.life if life is None else life)
        self._selfplay = SelfPlay(engine_for(self._variant), task.search, task.selfplay, seed=seed)
        self._made = 0

    def publish(self, weights: Weights) -> None:
        """Evaluate with these weights from now on."""
        self._evaluator.publish(weights)

    def play(self, assignment: Assignment, progress: Progress | None = None) -> Played:
        """Play on, see `SelfPlay.play`."""
        return self._selfplay.play(self._evaluator, assignment, progress=progress)

    def play_chunk(self, chunk: Chunk) -> ChunkPlayed:
        """Play on until a chunk's target."""
        if chunk.is_first:
            self._made = 0
        missing = max(0, chunk.target - self._made)
        games, stats = self.play(Assignment(missing, chunk.model_version, chunk.iteration))
        self._made += stats.positions
        return ChunkPlayed(games, stats, self._selfplay.positions_under_way)

    def use_int8(self) -> None:
        """Evaluate in int8 from now on; weights must be published before the next game goes on."""
        self._evaluator = _own_evaluator(replace(self._task, int8=True), self._variant)

    def lanes(self) -> bytes:
        """Return the games under way, see `SelfPlay.lanes`."""
        return self._selfplay.lanes()

    def restore_lanes(self, content: bytes, where: str) -> None:
        """Go on with games under way, see `SelfPlay.restore_lanes`."""
        self._selfplay.restore_lanes(content, where)


def _own_evaluator(task: WorkerTask, variant: Variant) -> NetworkEvaluator:
    if task.int8:
        return Int8Evaluator(task.graph, calibration=calibration_positions(variant), threads=1)
    return OnnxEvaluator(task.graph, threads=1)
