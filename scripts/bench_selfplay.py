"""What is measured of self-play: the positions that a worker makes, and where its time goes."""

import cProfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import CodeType

from envs import engine_for, load_variant
from models.network import NetworkConfig
from scripts.bench_network import default_evaluator
from scripts.bench_rounds import Contestant, Finding, Plan, Settings, timed
from train.config import RunConfig, load_config
from train.selfplay import Assignment, SelfPlay

CONFIG = Path(__file__).resolve().parents[1] / "configs" / "quick.yaml"
WARM_UP_MOVES = 20
"""Moves of each game before the clock starts."""
FUNCTIONS = {
    "evaluator": ("models/evaluator.py", "__call__"),
    "next batch: select, play moves, planes": ("train/search_kernels.py", "next_batch"),
    "receive: expand, back up": ("train/search_kernels.py", "receive"),
    "begin: set up roots": ("train/search.py", "begin"),
    "result: read trees": ("train/search.py", "result"),
    "moves, records, new games": ("train/selfplay.py", "_move"),
}
"""File and name of what the time is divided among; the searches begin and end inside the moves."""


def selfplay_plan(settings: Settings) -> Plan:
    """Return the measurements of one self-play worker with an untrained network."""
    plan = Plan()
    for variant in settings.variants:
        cfg = load_config(CONFIG, [f"variant={variant}"])
        for num_games in settings.batches or (cfg.selfplay.games_per_worker,):
            work = _worker(cfg, num_games)
            name = f"{variant}, {num_games} games: self-play as {CONFIG.name}"
            plan.contestants.append(Contestant(name, "positions", partial(timed, work, settings.seconds)))
            plan.others.append(partial(_shares, name, partial(timed, work, settings.seconds)))
    return plan


def _worker(cfg: RunConfig, num_games: int) -> Callable[[], int]:
    """Return what makes a move in about each game; it returns how many."""
    evaluator = default_evaluator(cfg.variant, NetworkConfig(**cfg.network.model_dump()))
    selfplay = cfg.selfplay.model_copy(update={"games_per_worker": num_games})
    worker = SelfPlay(engine_for(load_variant(cfg.variant)), cfg.search, selfplay, seed=(cfg.seed, 0))

    def play(num_positions: int) -> int:
        return worker.play(evaluator, Assignment(num_positions, model_version=0, iteration=1))[1].positions

    play(WARM_UP_MOVES * num_games)
    return partial(play, num_games)


def _shares(name: str, sample: Callable[[], object], rounds: int) -> list[Finding]:
    """Profile some samples; return which share of the CPU time each of the functions took."""
    found = [_profiled(sample) for _ in range(rounds)]
    return [Finding(f"{name}: % {label}", tuple(shares[label] for shares in found)) for label in found[0]]


def _profiled(sample: Callable[[], object]) -> dict[str, float]:
    """Run a sample under the profiler; return percentages of its CPU time."""
    profile = cProfile.Profile(time.process_time)
    profile.runcall(sample)
    total, spent = 0.0, dict.fromkeys(FUNCTIONS.values(), 0.0)
    for entry in profile.getstats():
        total += entry.inlinetime
        if isinstance(entry.code, CodeType):
            where = Path(entry.code.co_filename)
            function = (f"{where.parent.name}/{where.name}", entry.code.co_name)
            if function in spent:
                spent[function] += entry.totaltime
    shares = {label: 100 * spent[function] / total for label, function in FUNCTIONS.items()}
    shares["moves, records, new games"] -= shares["begin: set up roots"] + shares["result: read trees"]
    return {**shares, "the rest": 100 - sum(shares.values())}
