"""What is measured of the rules engine: random play, perft, move lists, planes, and starts of fresh processes."""

import json
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np

from envs import CompiledGame, VectorEnv, boards, engine_for, load_variant, observe
from envs.layout import U64Array
from envs.perft import perft
from envs.rows import legal_moves
from scripts.bench_rounds import Contestant, Duel, Finding, Plan, Settings, timed

ROOT = Path(__file__).resolve().parents[1]
PERFT_DEPTHS = {"chess": 5, "asylum": 4, "palace_ninja_guards": 4, "separate_realms_2": 5, "gardner": 6}
DEFAULT_PERFT_DEPTH = 3
BATCHES = (1, 256)
WARM_UP_PLIES = 100
DISTINCT_BOARDS, SNAPSHOT_LANES, SNAPSHOT_GAP = 16384, 1024, 8
SLICE = 256
STEPS_PER_LOOK = 4096
THREADED_BATCH, TWO_THREADS_BAR = 1024, 1.4
WARM_STARTS, COLD_START_BAR_S, WARM_START_BAR_S, COMPILATIONS_BAR = 3, 60, 3, 1
FIRST_STEPS = """
import json, time
start = time.perf_counter()
from envs import VectorEnv, lane_kernels
seconds = []
for game in ("chess", "asylum"):
    env = VectorEnv(game, 1)
    env.step(env.sample_actions())
    seconds.append(time.perf_counter() - start)
print(json.dumps([seconds[0], len(lane_kernels.step_all.signatures)]))
"""


def env_plan(settings: Settings) -> Plan:
    """Return the measurements of the rules engine."""
    plan, seconds = Plan(), settings.seconds
    for name in settings.variants:
        game = engine_for(load_variant(name))
        plan.contestants += [_stepping(name, batch, seconds) for batch in settings.batches or BATCHES]
        one, two = (_threaded(name, num_threads, seconds) for num_threads in (1, 2))
        plan.contestants += [one, two, _counting(name, game, seconds), *_on_boards(name, game, seconds)]
        plan.duels.append(Duel(two.name, one.name, TWO_THREADS_BAR))
    if settings.fresh:
        plan.others.append(lambda rounds: start_up())
    return plan


def _stepping(variant: str, batch: int, seconds: float) -> Contestant:
    env = VectorEnv(variant, batch)
    play(env, WARM_UP_PLIES)
    work = partial(play, env, max(1, STEPS_PER_LOOK // batch))
    return Contestant(f"{variant}: random play, batch {batch}", "steps", partial(timed, work, seconds))


def _threaded(variant: str, num_threads: int, seconds: float) -> Contestant:
    env = VectorEnv(variant, THREADED_BATCH, num_threads=num_threads)
    play(env, WARM_UP_PLIES)
    work = partial(play, env, STEPS_PER_LOOK // THREADED_BATCH)
    threads = "1 thread" if num_threads == 1 else f"{num_threads} threads"
    name = f"{variant}: random play, batch {THREADED_BATCH}, {threads}"
    return Contestant(name, "steps, wall time", partial(timed, work, seconds, time.perf_counter))


def play(env: VectorEnv, plies: int) -> int:
    """Play at random: uniform draws, steps, resets of finished lanes; all draw rules, no ply cap; return the steps."""
    for _ in range(plies):
        _, terminated, truncated = env.step(env.sample_actions())
        over = terminated | truncated
        if over.any():
            env.reset(over)
    return plies * env.num_envs


def _counting(variant: str, game: CompiledGame, seconds: float) -> Contestant:
    depth = perft_depth(variant)
    perft(game, 1)
    work = partial(perft, game, depth)
    return Contestant(f"{variant}: bulk perft", f"nodes, depth {depth}", partial(timed, work, seconds))


def perft_depth(variant: str) -> int:
    """Return how deep a game is counted."""
    return PERFT_DEPTHS.get(variant, DEFAULT_PERFT_DEPTH)


def _on_boards(variant: str, game: CompiledGame, seconds: float) -> list[Contestant]:
    """Measure generation and planes over so many boards that no branch predictor learns them."""
    rows = random_rows(game)
    slices = [rows[first : first + SLICE] for first in range(0, len(rows), SLICE)]
    planes = np.empty((SLICE, *game.observation_shape), np.float32)

    def generate() -> int:
        for part in slices:
            legal_moves(game, part)
        return len(rows)

    def write_planes() -> int:
        for part in slices:
            observe(game, part, planes)
        return len(rows)

    generate()
    write_planes()
    name = f"{variant}, {len(rows)} boards"
    return [
        Contestant(f"{name}: legal moves", "positions", partial(timed, generate, seconds)),
        Contestant(f"{name}: planes", "positions", partial(timed, write_planes, seconds)),
    ]


def random_rows(game: CompiledGame, count: int = DISTINCT_BOARDS) -> U64Array:
    """Return rows of random games, uint64 [count, W], no board twice, nearly all 100 and more plies in."""
    env = VectorEnv(game.variant, SNAPSHOT_LANES)
    play(env, WARM_UP_PLIES)
    rows = env.states[:0].copy()
    while len(rows) < count:
        rows = np.concatenate([rows, env.states])
        rows = rows[np.sort(np.unique(boards(game, rows), axis=0, return_index=True)[1])]
        play(env, SNAPSHOT_GAP)
    return rows[:count]


def start_up() -> list[Finding]:
    """Time import to first step in fresh processes, without compiled kernels and with, and count compilations."""
    with tempfile.TemporaryDirectory() as cache:
        starts = [first_steps(cache) for _ in range(1 + WARM_STARTS)]
    seconds = [start[0] for start in starts]
    name = "seconds from import to first step"
    return [
        Finding(f"{name}, nothing compiled yet", (seconds[0],), COLD_START_BAR_S, at_most=True),
        Finding(f"{name}, kernels cached", tuple(seconds[1:]), WARM_START_BAR_S, at_most=True),
        Finding("compilations of the step kernel for two games", (starts[0][1],), COMPILATIONS_BAR, at_most=True),
    ]


def first_steps(cache: str) -> tuple[float, int]:
    """Step two games in a fresh process; return seconds to the first step and compilations of the step kernel."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    command = [sys.executable, "-c", FIRST_STEPS]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"a fresh process could not step: {done.stderr.strip()}")
    seconds, compilations = json.loads(done.stdout)
    return seconds, compilations
