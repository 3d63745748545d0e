"""A process that plays like a worker for some seconds and says how fast it was, for `forecast.py`.

python -m train.forecast_worker < REQUEST, where REQUEST is a line of JSON and the network's graph. PyTorch and Ray are
not imported: a worker does not need them either.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass

import psutil

from envs import engine_for, load_variant
from models.evaluator import OnnxEvaluator
from train.config import from_document
from train.plugins import load_plugins
from train.selfplay import Assignment, SelfPlay

WARM_UP_MOVES = 2
"""Moves of each game before the clock starts."""


@dataclass(frozen=True)
class PlayedFor:
    """What a worker did while the clock ran.

    Attributes:
        positions: Moves chosen by search.
        full_searches: Those with the full budget.
        evaluations: Of the network.
        seconds: Wall time.
        memory: Resident bytes at the end.
    """

    positions: int
    full_searches: int
    evaluations: int
    seconds: float
    memory: int


def request(document: dict[str, object], graph: bytes, *, number: int, seconds: float) -> bytes:
    """Return what a worker process reads from stdin.

    Args:
        document: The config, as `RunConfig.to_document` gives it.
        graph: The network as `export_graph` gives it.
        number: The worker's number.
        seconds: How long the clock runs.
    """
    return json.dumps({"config": document, "number": number, "seconds": seconds}).encode() + b"\n" + graph


def play_for(document: dict[str, object], graph: bytes, *, number: int, seconds: float) -> PlayedFor:
    """Play, see `request`."""
    cfg = from_document(document)
    load_plugins(cfg.plugins)
    game = engine_for(load_variant(cfg.variant, cfg.options))
    evaluator = OnnxEvaluator(graph, threads=1)
    games = SelfPlay(game, cfg.search, cfg.selfplay, seed=(cfg.seed, number))
    lanes = cfg.selfplay.games_per_worker
    games.play(evaluator, Assignment(WARM_UP_MOVES * lanes, model_version=0, iteration=1))
    positions = full = evaluations = 0
    started = time.perf_counter()
    while time.perf_counter() - started < seconds:
        _, stats = games.play(evaluator, Assignment(lanes, model_version=0, iteration=1))
        positions, full = positions + stats.positions, full + stats.full_searches
        evaluations += stats.evaluations
    passed = time.perf_counter() - started
    return PlayedFor(positions, full, evaluations, passed, psutil.Process().memory_info().rss)


if __name__ == "__main__":
    head, _, rest = sys.stdin.buffer.read().partition(b"\n")
    wanted = json.loads(head)
    played = play_for(wanted["config"], rest, number=wanted["number"], seconds=wanted["seconds"])
    sys.stdout.write(json.dumps(asdict(played)))
