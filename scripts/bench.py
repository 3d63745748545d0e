"""Measure the speed of the parts on this machine, own code and peers in the same run.

python scripts/bench.py env --peers

Contestants take turns, so that a busy machine troubles all of them alike. Rates are per second of this
process's CPU time; a ratio is the median of the ratios of the rounds.
"""

import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

sys.path[0] = str(Path(__file__).resolve().parents[1])

import numpy as np
import numpy.typing as npt
import typer
from rich.table import Table

from envs import CompiledGame, VectorEnv, engine_for, load_variant, observe
from envs.perft import perft
from envs.rows import legal_moves
from scripts.command_line import new_app, print_json, stdout_console, with_exit_codes
from train.progress import Reporter
from train.provenance import versions

PERFT_DEPTHS = {"chess": 5, "asylum": 4, "palace_ninja_guards": 4, "separate_realms_2": 5, "gardner": 6}
DEFAULT_PERFT_DEPTH = 3
WARM_UP_PLIES = 100
SNAPSHOTS, SNAPSHOT_LANES, SNAPSHOT_GAP = 16, 1024, 8
DISTINCT_BOARDS = SNAPSHOTS * SNAPSHOT_LANES
SLICE = 256
RANDOM_PLAY = ": random play, batch "
STEPS_PER_LOOK, PEER_STEPS_PER_LOOK = 4096, 1024

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
        seconds: CPU seconds of one sample, at least.
        peers: Whether peers take part.
    """

    variants: tuple[str, ...]
    batches: tuple[int, ...]
    seconds: float
    peers: bool


@dataclass(frozen=True)
class Contestant:
    """Something with a rate.

    Attributes:
        name: What it does.
        unit: What is counted.
        sample: Runs once; returns the number of units done and the CPU seconds that they took.
        baseline_of: Start of the names of those whose rates are divided by this one's; empty for none.
    """

    name: str
    unit: str
    sample: Callable[[], tuple[int, float]]
    baseline_of: str = ""


def timed(work: Callable[[], int], seconds: float) -> tuple[int, float]:
    """Repeat `work`, which returns the units it did, for some CPU seconds; return units and CPU seconds."""
    units, start = 0, time.process_time()
    while (elapsed := time.process_time() - start) < seconds or not units:
        units += work()
    return units, elapsed


# --- Part env -----------------------------------------------------------------------------------


def env_contestants(settings: Settings) -> list[Contestant]:
    """Return the measurements of the rules engine."""
    found = []
    for name in settings.variants:
        game = engine_for(load_variant(name))
        found += [_stepping(name, batch, settings.seconds) for batch in settings.batches]
        found += [_counting(game, settings.seconds), *_on_boards(game, settings.seconds)]
    if settings.peers:
        found += [_open_spiel(settings.seconds, with_mask) for with_mask in (False, True)]
    return found


def _stepping(variant: str, batch: int, seconds: float) -> Contestant:
    """Play at random: a uniform draw, a step, a reset of finished lanes; all draw rules, no ply cap."""
    env = VectorEnv(variant, batch)

    def play(steps: int) -> int:
        for _ in range(steps):
            _, terminated, truncated = env.step(env.sample_actions())
            over = terminated | truncated
            if over.any():
                env.reset(over)
        return steps * batch

    play(WARM_UP_PLIES)
    looks = max(1, STEPS_PER_LOOK // batch)
    return Contestant(f"{variant}{RANDOM_PLAY}{batch}", "steps", partial(timed, partial(play, looks), seconds))


def _counting(game: CompiledGame, seconds: float) -> Contestant:
    depth = PERFT_DEPTHS.get(game.variant.name, DEFAULT_PERFT_DEPTH)
    perft(game, 1)
    name = f"{game.variant.name}: bulk perft {depth}"
    return Contestant(name, "nodes", partial(timed, partial(perft, game, depth), seconds))


def _on_boards(game: CompiledGame, seconds: float) -> list[Contestant]:
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
    name = f"{game.variant.name}, {len(rows)} boards"
    return [
        Contestant(f"{name}: legal moves", "positions", partial(timed, generate, seconds)),
        Contestant(f"{name}: planes", "positions", partial(timed, write_planes, seconds)),
    ]


def random_rows(game: CompiledGame) -> npt.NDArray[np.uint64]:
    """Return `DISTINCT_BOARDS` rows of random games, 100 and more plies in."""
    env = VectorEnv(game.variant, SNAPSHOT_LANES)
    found = []
    for ply in range(WARM_UP_PLIES + SNAPSHOTS * SNAPSHOT_GAP):
        if ply >= WARM_UP_PLIES and (ply - WARM_UP_PLIES) % SNAPSHOT_GAP == 0:
            found.append(env.states.copy())
        env.step(env.sample_actions())
        if env.over.any():
            env.reset(env.over)
    return np.concatenate(found)


def _open_spiel(seconds: float, with_mask: bool) -> Contestant:
    try:
        import pyspiel
    except ImportError:
        raise ValueError("--peers needs OpenSpiel: pip install -c constraints.txt -e '.[bench]'") from None
    game, rng = pyspiel.load_game("chess"), np.random.default_rng(0)
    state = game.new_initial_state()

    def play() -> int:
        nonlocal state
        for number in rng.random(PEER_STEPS_PER_LOOK).tolist():
            actions = state.legal_actions()
            if with_mask:
                state.legal_actions_mask()
            state.apply_action(actions[int(number * len(actions))])
            if state.is_terminal():
                state = game.new_initial_state()
        return PEER_STEPS_PER_LOOK

    name = f"OpenSpiel chess: random play{', mask too' if with_mask else ''}"
    return Contestant(name, "steps", partial(timed, play, seconds), f"chess{RANDOM_PLAY}")


PARTS: dict[Part, Callable[[Settings], list[Contestant]]] = {Part.ENV: env_contestants}


# --- Rounds and results -------------------------------------------------------------------------


def run_rounds(
    contestants: list[Contestant], rounds: int, on_progress: Callable[[int], None] = lambda done: None
) -> dict[str, list[float]]:
    """Let every contestant run once a round, each round beginning with another one; return rates by name."""
    rates: dict[str, list[float]] = {contestant.name: [] for contestant in contestants}
    for turn in range(rounds * len(contestants)):
        number, place = divmod(turn, len(contestants))
        contestant = contestants[(number + place) % len(contestants)]
        units, seconds = contestant.sample()
        rates[contestant.name].append(units / seconds)
        on_progress(turn + 1)
    return rates


def ratios(contestants: list[Contestant], rates: dict[str, list[float]]) -> dict[str, float]:
    """Return how many times as fast as its baseline each contestant was, as the median over the rounds."""
    found = {}
    for other in filter(lambda one: one.baseline_of, contestants):
        for own in contestants:
            if own.name.startswith(other.baseline_of):
                pairs = zip(rates[own.name], rates[other.name])
                found[f"{own.name} / {other.name}"] = statistics.median(one / two for one, two in pairs)
    return found


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


def table(contestants: list[Contestant], rates: dict[str, list[float]]) -> Table:
    """Return the rates as a table."""
    found = Table("measured", "unit", title="per CPU second, one thread")
    for heading in ("median", "lowest", "highest"):
        found.add_column(heading, justify="right")
    for contestant in contestants:
        values = rates[contestant.name]
        figures = (statistics.median(values), min(values), max(values))
        found.add_row(contestant.name, contestant.unit, *(f"{value:,.0f}" for value in figures))
    return found


@app.command()
@with_exit_codes
def bench(
    part: Annotated[Part | None, typer.Argument(help="by default all of them")] = None,
    *,
    variant: Annotated[list[str] | None, typer.Option(help="game; may be repeated")] = None,
    batch: Annotated[list[int] | None, typer.Option(min=1, help="number of lanes; may be repeated")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="samples of each contestant")] = 5,
    seconds: Annotated[float, typer.Option(min=0.0, help="CPU seconds of a sample, at least")] = 1.0,
    peers: Annotated[bool, typer.Option(help="measure OpenSpiel in the same run")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
) -> None:
    """Measure the speed of PART: rates per second of CPU time, medians of interleaved rounds."""
    games = tuple(dict.fromkeys(variant or ("chess", "asylum")))
    settings = Settings(games, tuple(dict.fromkeys(batch or (256,))), seconds, peers)
    before = machine()
    contestants = [one for name in ([part] if part else Part) for one in PARTS[name](settings)]
    with Reporter().task("bench", rounds * len(contestants)) as show:
        rates = run_rounds(contestants, rounds, show)
    if not as_json:
        stdout_console().print(table(contestants, rates))
        for name, ratio in ratios(contestants, rates).items():
            print(f"{name}: {ratio:.2f}")
        print(f"{before['cpu']}, {before['cores']} cores, load {before['load']} at the start")
        return
    measured = [
        {
            "name": one.name,
            "unit": one.unit,
            "rates": rates[one.name],
            "median": statistics.median(rates[one.name]),
        }
        for one in contestants
    ]
    print_json({"machine": before, "versions": versions(), "rounds": rounds, "seconds": seconds,
                "measured": measured, "ratios": ratios(contestants, rates)})  # fmt: skip


if __name__ == "__main__":
    app()
