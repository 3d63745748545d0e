"""What is measured of the network: evaluations on one thread by three runtimes, publishing and exporting.

Dims: N batch, M legal actions of a row.
"""

import itertools
import time
from collections.abc import Callable
from functools import cache, partial

import numpy as np
import numpy.typing as npt
import torch

from envs import CompiledGame, engine_for, legal_actions, load_variant, observe
from models.evaluator import NetworkEvaluator, TorchEvaluator, export_graph, make_evaluator, weights_of
from models.network import GameSpec, NetworkConfig, PolicyValueNetwork, untrained_network
from scripts.bench_env import random_rows
from scripts.bench_rounds import Contestant, Duel, Finding, Plan, Settings, timed

SMALL, DEFAULT = NetworkConfig(channels=16, blocks=2), NetworkConfig()
BATCHES = (1, 16, 64)
DISTINCT_POSITIONS = 2048
COMPARED_BATCH, EAGER_BAR, PUBLISH_BAR_S = 64, 1.3, 0.5
OWN, TORCH, EAGER = "default evaluator", "TorchEvaluator", "eager PyTorch"
Batch = tuple[npt.NDArray[np.float32], npt.NDArray[np.int32]]
"""Observations float32 [N, C, H, W] and legal actions int32 [N, M]."""


def size(cfg: NetworkConfig) -> str:
    """Return channels x blocks."""
    return f"{cfg.channels}x{cfg.blocks}"


@cache
def network_of(variant: str, cfg: NetworkConfig) -> PolicyValueNetwork:
    """Return an untrained network in evaluation mode."""
    spec = GameSpec.of(engine_for(load_variant(variant)))
    return untrained_network(spec, cfg, seed=0).eval()


@cache
def exported(variant: str, cfg: NetworkConfig) -> tuple[bytes, float]:
    """Export a network; return its graph and the seconds that it took."""
    network, start = network_of(variant, cfg), time.perf_counter()
    return export_graph(network), time.perf_counter() - start


def default_evaluator(variant: str, cfg: NetworkConfig) -> NetworkEvaluator:
    """Return what a program gets that asks for a CPU and nothing else; one thread."""
    return make_evaluator(network_of(variant, cfg), device="cpu", graph=exported(variant, cfg)[0])


def network_plan(settings: Settings) -> Plan:
    """Return the measurements of the network."""
    torch.set_num_threads(1)
    plan = Plan()
    for variant in settings.variants:
        game = engine_for(load_variant(variant))
        rows = random_rows(game, DISTINCT_POSITIONS)
        batches = {batch: _batches(game, rows, batch) for batch in settings.batches or BATCHES}
        for cfg in (DEFAULT, SMALL):
            network = network_of(variant, cfg)
            runtimes: dict[str, Callable[..., object]] = {
                OWN: default_evaluator(variant, cfg), TORCH: TorchEvaluator(network), EAGER: partial(_eager, network)
            }  # fmt: skip
            for batch, positions in batches.items():
                name = f"{variant}, {size(cfg)}, batch {batch}: {{}}"
                plan.contestants += [
                    _evaluating(name.format(runtime), evaluator, positions, settings.seconds)
                    for runtime, evaluator in runtimes.items()
                ]
                bar = EAGER_BAR if (cfg, batch) == (DEFAULT, COMPARED_BATCH) else None
                plan.duels.append(Duel(name.format(OWN), name.format(EAGER), bar))
        plan.others += [partial(_publishing, variant), partial(_exporting, variant)]
    return plan


def _batches(game: CompiledGame, rows: npt.NDArray[np.uint64], batch: int) -> list[Batch]:
    parts = np.split(rows, range(batch, len(rows), batch))
    return [(observe(game, part), legal_actions(game, part)[0]) for part in parts]


def _eager(network: PolicyValueNetwork, observations: npt.NDArray[np.float32], actions: npt.NDArray[np.int32]) -> None:
    with torch.inference_mode():
        network(torch.from_numpy(observations), torch.from_numpy(actions))


def _evaluating(name: str, evaluator: Callable[..., object], batches: list[Batch], seconds: float) -> Contestant:
    """Measure evaluations of one batch after the other, none twice before all others."""
    turns = itertools.cycle(batches)

    def evaluate() -> int:
        observations, actions = next(turns)
        evaluator(observations, actions)
        return len(observations)

    evaluate()
    return Contestant(name, "evaluations", partial(timed, evaluate, seconds))


def _publishing(variant: str, rounds: int) -> list[Finding]:
    """Time how long it takes until an evaluator uses the weights of a network, folding included."""
    network, evaluator, found = network_of(variant, DEFAULT), default_evaluator(variant, DEFAULT), []
    for _ in range(rounds):
        start = time.perf_counter()
        evaluator.publish(weights_of(network))
        found.append(time.perf_counter() - start)
    return [Finding(f"{variant}, {size(DEFAULT)}: seconds to publish", tuple(found), PUBLISH_BAR_S, at_most=True)]


def _exporting(variant: str, _rounds: int) -> list[Finding]:
    name = f"{variant}, {size(DEFAULT)}: seconds to export, once"
    return [Finding(name, (exported(variant, DEFAULT)[1],))]
