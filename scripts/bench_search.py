"""What is measured of the search: its own time, what it adds to a network's, and what two workers keep."""

from contextlib import ExitStack
from functools import partial

from models.evaluator import OnnxEvaluator
from scripts.bench_load import NUM_WORKERS, ConstantEvaluator, Load, SearchLoad, Team, WorkerTask
from scripts.bench_network import DEFAULT, SMALL, exported, size
from scripts.bench_rounds import Contestant, Cost, Duel, Plan, Settings, timed

LANES = 64
COMPARED = ("asylum", LANES)
"""Variant and number of lanes that the bars are meant for."""
TREE_BAR_US, ADDED_BAR_US, KEPT_BAR = 8, 16, 0.9
POLICIES = ("gumbel", "puct")


def search_plan(settings: Settings) -> Plan:
    """Return the measurements of the search."""
    plan, teams = Plan(), ExitStack()
    plan.close = teams.close
    for variant in settings.variants:
        for lanes in settings.batches or (LANES,):
            _add_alone(plan, variant, lanes, settings.seconds)
            _add_with_networks(plan, variant, lanes, settings.seconds)
            team = Team(WorkerTask(variant, lanes, exported(variant, DEFAULT)[0]))
            teams.callback(team.close)
            _add_workers(plan, team, settings.seconds)
    return plan


def _add_alone(plan: Plan, variant: str, lanes: int, seconds: float) -> None:
    """Measure tree, rules and the set-up of roots by an evaluator that costs nothing."""
    for policy in POLICIES:
        searches = SearchLoad(variant, lanes, ConstantEvaluator(), policy)
        name = f"{variant}, {lanes} lanes, no network: {policy} search"
        plan.contestants.append(Contestant(name, "simulations", partial(timed, searches.search, seconds)))
        plan.costs.append(Cost(name, at_most=_bar(TREE_BAR_US, variant, lanes)))


def _add_with_networks(plan: Plan, variant: str, lanes: int, seconds: float) -> None:
    """Measure searches against the evaluator alone on the same batches."""
    for cfg in (SMALL, DEFAULT):
        evaluator = OnnxEvaluator(exported(variant, cfg)[0])
        searches = SearchLoad(variant, lanes, evaluator)
        names = {load: f"{variant}, {lanes} lanes, {size(cfg)}: {load}" for load in Load}
        for load, name in names.items():
            sample = partial(timed, partial(searches.run, load), seconds)
            plan.contestants.append(Contestant(name, "simulations", sample))
        added, kept = (ADDED_BAR_US, None) if cfg == SMALL else (None, KEPT_BAR)
        plan.costs.append(Cost(names[Load.SEARCH], names[Load.EVALUATE], _bar(added, variant, lanes)))
        plan.duels.append(Duel(names[Load.SEARCH], names[Load.EVALUATE], _bar(kept, variant, lanes)))


def _add_workers(plan: Plan, team: Team, seconds: float) -> None:
    """Measure workers side by side, all searching or all evaluating."""
    variant, lanes = team.task.variant, team.task.num_lanes
    names = {load: f"{variant}, {lanes} lanes, {size(DEFAULT)}, {NUM_WORKERS} workers: {load}" for load in Load}
    for load, contestant in names.items():
        sample = partial(team.sample, load, seconds)
        plan.contestants.append(Contestant(contestant, "simulations, wall time", sample))
    plan.duels.append(Duel(names[Load.SEARCH], names[Load.EVALUATE], _bar(KEPT_BAR, variant, lanes)))


def _bar(bar: float | None, variant: str, lanes: int) -> float | None:
    """Return the bar where it is meant."""
    return bar if (variant, lanes) == COMPARED else None
