"""What is measured of the network: evaluations on one thread by five runtimes, publishing and exporting.

Dims: N batch, M legal actions of a row.
"""

import copy
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
from models.quantised import Int8Evaluator
from scripts.bench_env import random_rows
from scripts.bench_rounds import Contestant, Duel, Finding, Plan, Settings, timed
from train.precision import calibration_positions

SMALL, DEFAULT = NetworkConfig(channels=16, blocks=2), NetworkConfig()
BATCHES = (1, 16, 64)
DISTINCT_POSITIONS = 2048
COMPARED_VARIANTS, COMPARED_BATCH, EAGER_BAR, PUBLISH_BAR_S = ("chess", "asylum"), 64, 1.3, 0.5
OWN, INT8, TORCH, EAGER = "default evaluator", "Int8Evaluator", "TorchEvaluator", "eager PyTorch"
EAGER_CHANNELS_LAST = "eager PyTorch, channels last"
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


def int8_evaluator(variant: str, cfg: NetworkConfig) -> NetworkEvaluator:
    """Return the same in int8, calibrated as in a run."""
    return Int8Evaluator(exported(variant, cfg)[0], calibration=calibration_positions(load_variant(variant)))


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
            channels_last = copy.deepcopy(network).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
            runtimes: dict[str, Callable[..., object]] = {
                OWN: default_evaluator(variant, cfg),
                INT8: int8_evaluator(variant, cfg),
                TORCH: TorchEvaluator(network),
                EAGER: partial(_eager, network),
                EAGER_CHANNELS_LAST: partial(_eager, channels_last),
            }
            for batch, positions in batches.items():
                name = f"{variant}, {size(cfg)}, batch {batch}: {{}}"
                plan.contestants += [
                    _evaluating(name.format(runtime), evaluator, positions, settings.seconds)
                    for runtime, evaluator in runtimes.items()
                ]
                is_meant = variant in COMPARED_VARIANTS and (cfg, batch) == (DEFAULT, COMPARED_BATCH)
                plan.duels += [
                    Duel(name.format(OWN), name.format(EAGER), EAGER_BAR if is_meant else None),
                    Duel(name.format(OWN), name.format(EAGER_CHANNELS_LAST)),
                    Duel(name.format(INT8), name.format(OWN)),
                ]
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
    """Time how long it takes until an evaluator uses the weights of a network, folding and calibration included."""
    network, findings = network_of(variant, DEFAULT), []
    for name, make in ((OWN, default_evaluator), (INT8, int8_evaluator)):
        evaluator, found = make(variant, DEFAULT), []
        for _ in range(rounds):
            start = time.perf_counter()
            evaluator.publish(weights_of(network))
            found.append(time.perf_counter() - start)
        title = f"{variant}, {size(DEFAULT)}: seconds to publish, {name}"
        findings.append(Finding(title, tuple(found), PUBLISH_BAR_S, at_most=True))
    return findings


def _exporting(variant: str, _rounds: int) -> list[Finding]:
    name = f"{variant}, {size(DEFAULT)}: seconds to export, once"
    return [Finding(name, (exported(variant, DEFAULT)[1],))]
