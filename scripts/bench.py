"""Measure the speed of the parts on this machine, own code and peers in the same run.

python scripts/bench.py env --peers

Contestants take turns, so that a busy machine troubles all of them alike. Rates are per second of the
contestant's CPU time, except where wall time is written; a ratio is the median of the ratios of the rounds.
"""

import os
import platform
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

sys.path[0] = str(Path(__file__).resolve().parents[1])

import typer
from rich.table import Table

from envs.reference import MAIN_GAMES
from scripts.bench_alphabeta import alphabeta_plan
from scripts.bench_env import env_plan, perft_depth
from scripts.bench_network import network_plan
from scripts.bench_peers import DUELS, Peers, find_peers
from scripts.bench_rounds import Contestant, Finding, Plan, Rates, Settings, ratios, run_rounds, times
from scripts.bench_search import search_plan
from scripts.bench_selfplay import selfplay_plan
from scripts.command_line import new_app, print_json, stdout_console, with_exit_codes
from train.progress import Reporter
from train.provenance import versions

app = new_app()


class Part(StrEnum):
    """What can be measured."""

    ENV = "env"
    NETWORK = "network"
    SEARCH = "search"
    SELFPLAY = "selfplay"
    ALPHABETA = "alphabeta"


PLANS: dict[Part, Callable[[Settings], Plan]] = {
    Part.ENV: env_plan,
    Part.NETWORK: network_plan,
    Part.SEARCH: search_plan,
    Part.SELFPLAY: selfplay_plan,
    Part.ALPHABETA: alphabeta_plan,
}
VARIANTS: dict[Part, tuple[str, ...]] = {
    Part.ENV: ("chess", "asylum"),
    Part.NETWORK: ("chess", "asylum"),
    Part.ALPHABETA: MAIN_GAMES,
}
OTHER_VARIANTS = ("asylum",)


@dataclass
class Results:
    """What was measured."""

    contestants: list[Contestant] = field(default_factory=list)
    rates: Rates = field(default_factory=dict)
    ratios: list[Finding] = field(default_factory=list)
    times: list[Finding] = field(default_factory=list)
    others: list[Finding] = field(default_factory=list)

    def add(self, part: Part, plan: Plan, rounds: int) -> None:
        """Carry out the plan of a part."""
        try:
            with Reporter().task(f"bench {part}", rounds * len(plan.contestants)) as show:
                rates = run_rounds(plan.contestants, rounds, show)
        finally:
            plan.close()
        self.contestants += plan.contestants
        self.rates |= rates
        self.ratios += ratios(plan.duels, rates)
        self.times += times(plan.costs, rates)
        self.others += [finding for measure in plan.others for finding in measure(rounds)]


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
    batch: Annotated[
        list[int] | None, typer.Option(min=1, help="number of lanes or positions; may be repeated")
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="samples of each contestant")] = 5,
    seconds: Annotated[float, typer.Option(min=0.0, help="seconds of a sample, at least")] = 1.0,
    peers: Annotated[bool, typer.Option(help="measure other programs in the same run, with part env")] = False,
    fresh: Annotated[bool, typer.Option(help="time import to first step, too, compiling the kernels anew")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
) -> None:
    """Measure the speed of PART: rates, medians of interleaved rounds, and how they compare with their bars."""
    if (peers or not fresh) and part not in (None, Part.ENV):
        raise typer.BadParameter("--peers and --no-fresh belong to part env")
    before, others, found = machine(), Peers(), Results()
    batches = tuple(dict.fromkeys(batch or ()))
    for chosen in [part] if part else Part:
        games = tuple(dict.fromkeys(variant or VARIANTS.get(chosen, OTHER_VARIANTS)))
        plan = PLANS[chosen](Settings(games, batches, seconds, fresh))
        if peers and chosen is Part.ENV:
            others = find_peers(seconds, perft_depth("chess"))
            plan.contestants += others.contestants
            plan.duels += DUELS
        found.add(chosen, plan, rounds)
    if as_json:
        print_json({
            "machine": before, "versions": {**versions(), **others.versions}, "missing_peers": others.missing,
            "rounds": rounds, "seconds": seconds,
            "measured": [{"name": one.name, "unit": one.unit, "rates": found.rates[one.name],
                          "median": statistics.median(found.rates[one.name])} for one in found.contestants],
            "ratios": [finding.document() for finding in found.ratios],
            "times": [finding.document() for finding in found.times],
            "others": [finding.document() for finding in found.others],
        })  # fmt: skip
        return
    compared = [*found.ratios, *found.times, *found.others]
    stdout_console().print(rate_table(found.contestants, found.rates), bar_table(compared))
    for name, how in others.missing.items():
        print(f"{name} is not here; get it with: {how}")
    if others.versions:
        print(", ".join(f"{name} {version}" for name, version in others.versions.items()))
    print(f"{before['cpu']}, {before['cores']} cores, load {before['load']} at the start")


if __name__ == "__main__":
    app()
