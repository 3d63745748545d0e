"""Measure the speed of the parts on this machine, own code and peers in the same run.

python scripts/bench.py env --peers

Contestants take turns, so that a busy machine troubles all of them alike. Rates are per second of the
contestant's CPU time, except where wall time is written; a ratio is the median of the ratios of the rounds.
"""

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

sys.path[0] = str(Path(__file__).resolve().parents[1])

import numpy as np
import typer
from rich.table import Table

from envs import CompiledGame, VectorEnv, boards, engine_for, load_variant, observe
from envs.layout import U64Array
from envs.perft import perft
from envs.rows import legal_moves
from scripts.bench_peers import DUELS, Peers, find_peers
from scripts.bench_rounds import Contestant, Duel, Finding, Rates, ratios, run_rounds, timed
from scripts.command_line import new_app, print_json, stdout_console, with_exit_codes
from train.progress import Reporter
from train.provenance import versions

ROOT = Path(__file__).resolve().parents[1]
PERFT_DEPTHS = {"chess": 5, "asylum": 4, "palace_ninja_guards": 4, "separate_realms_2": 5, "gardner": 6}
DEFAULT_PERFT_DEPTH = 3
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

app = new_app()


class Part(StrEnum):
    """What can be measured."""

    ENV = "env"


@dataclass(frozen=True)
class Settings:
    """What the contestants are made from.

    Attributes:
        variants: Games.
        batches: Numbers of lanes.
        seconds: Seconds of one sample, at least.
    """

    variants: tuple[str, ...]
    batches: tuple[int, ...]
    seconds: float


# --- Part env -----------------------------------------------------------------------------------


def env_contestants(settings: Settings) -> tuple[list[Contestant], list[Duel]]:
    """Return the measurements of the rules engine, and those of them that are compared with each other."""
    found, duels, seconds = [], [], settings.seconds
    for name in settings.variants:
        game = engine_for(load_variant(name))
        found += [_stepping(name, batch, seconds) for batch in settings.batches]
        one, two = (_threaded(name, num_threads, seconds) for num_threads in (1, 2))
        found += [one, two, _counting(name, game, seconds), *_on_boards(name, game, seconds)]
        duels.append(Duel(two.name, one.name, TWO_THREADS_BAR))
    return found, duels


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


def random_rows(game: CompiledGame) -> U64Array:
    """Return rows of random games, uint64 [`DISTINCT_BOARDS`, W], no board twice, nearly all 100 and more plies in."""
    env = VectorEnv(game.variant, SNAPSHOT_LANES)
    play(env, WARM_UP_PLIES)
    rows = env.states[:0].copy()
    while len(rows) < DISTINCT_BOARDS:
        rows = np.concatenate([rows, env.states])
        rows = rows[np.sort(np.unique(boards(game, rows), axis=0, return_index=True)[1])]
        play(env, SNAPSHOT_GAP)
    return rows[:DISTINCT_BOARDS]


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


PARTS: dict[Part, Callable[[Settings], tuple[list[Contestant], list[Duel]]]] = {Part.ENV: env_contestants}


# --- Results ------------------------------------------------------------------------------------


def machine() -> dict[str, Any]:
    """Return what the figures depend on."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.is_file() else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return {
        "cpu": models[0] if models else platform.processor(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "platform": platform.platform(),
    }


def rate_table(contestants: list[Contestant], rates: Rates) -> Table:
    """Return the rates as a table."""
    found = Table("measured", "unit", title="per second of CPU time, one thread, unless wall time is written")
    for heading in ("median", "lowest", "highest"):
        found.add_column(heading, justify="right")
    for contestant in contestants:
        values = rates[contestant.name]
        figures = (statistics.median(values), min(values), max(values))
        found.add_row(contestant.name, contestant.unit, *(f"{value:,.0f}" for value in figures))
    return found


def bar_table(findings: list[Finding]) -> Table:
    """Return the findings and their bars as a table."""
    found = Table("compared", title="ratios of rates and other figures, against their bars")
    for heading in ("median", "lowest", "highest", "bar", "met"):
        found.add_column(heading, justify="right")
    for finding in findings:
        figures = (finding.median, min(finding.values, default=None), max(finding.values, default=None))
        bar = "" if finding.bar is None else f"{'<=' if finding.at_most else '>='} {finding.bar:g}"
        met = {True: "yes", False: "NO", None: ""}[finding.met]
        found.add_row(finding.name, *("missing" if one is None else f"{one:,.2f}" for one in figures), bar, met)
    return found


@app.command()
@with_exit_codes
def bench(
    part: Annotated[Part | None, typer.Argument(help="by default all of them")] = None,
    *,
    variant: Annotated[list[str] | None, typer.Option(help="game; may be repeated")] = None,
    batch: Annotated[list[int] | None, typer.Option(min=1, help="number of lanes; may be repeated")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="samples of each contestant")] = 5,
    seconds: Annotated[float, typer.Option(min=0.0, help="seconds of a sample, at least")] = 1.0,
    peers: Annotated[bool, typer.Option(help="measure other programs in the same run")] = False,
    fresh: Annotated[bool, typer.Option(help="time import to first step, too, compiling the kernels anew")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
) -> None:
    """Measure the speed of PART: rates, medians of interleaved rounds, and how they compare with their bars."""
    games = tuple(dict.fromkeys(variant or ("chess", "asylum")))
    settings = Settings(games, tuple(dict.fromkeys(batch or (1, 256))), seconds)
    before, others = machine(), find_peers(seconds, perft_depth("chess")) if peers else Peers()
    contestants, duels = [*others.contestants], [*DUELS] if peers else []
    for chosen in [part] if part else Part:
        own, own_duels = PARTS[chosen](settings)
        contestants, duels = [*own, *contestants], [*own_duels, *duels]
    with Reporter().task("bench", rounds * len(contestants)) as show:
        rates = run_rounds(contestants, rounds, show)
    compared, started = ratios(duels, rates), start_up() if fresh else []
    if as_json:
        print_json({
            "machine": before, "versions": {**versions(), **others.versions}, "missing_peers": others.missing,
            "rounds": rounds, "seconds": seconds,
            "measured": [{"name": one.name, "unit": one.unit, "rates": rates[one.name],
                          "median": statistics.median(rates[one.name])} for one in contestants],
            "ratios": [finding.document() for finding in compared],
            "start_up": [finding.document() for finding in started],
        })  # fmt: skip
        return
    stdout_console().print(rate_table(contestants, rates), bar_table([*compared, *started]))
    for name, how in others.missing.items():
        print(f"{name} is not here; get it with: {how}")
    print(", ".join([f"{name} {version}" for name, version in others.versions.items()]))
    print(f"{before['cpu']}, {before['cores']} cores, load {before['load']} at the start")


if __name__ == "__main__":
    app()
