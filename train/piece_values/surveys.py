"""Reports on the piece values of a game, or of a training run, by several methods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from envs import Variant, engine_for
from train.config import RunConfig
from train.evaluation_tables import table_for
from train.pgn import stored_games
from train.piece_values.estimates import MethodValues, refused
from train.piece_values.measure import MeasurePlan, measure_game, settle
from train.piece_values.odds import odds_of_records, values_by_odds
from train.piece_values.odds_games import Settings
from train.piece_values.positions import InsufficientData
from train.piece_values.report import Report
from train.piece_values.stored_games import ask_network, measure_run
from train.progress import Reporter
from train.provenance import provenance

STORED = ("outcome", "odds", "network")
"""Methods that read what a run has stored."""
PER_CENT = 100


def survey_game(
    variant: Variant,
    *,
    plan: MeasurePlan,
    folder: Path | None = None,
    command: str = "",
    reporter: Reporter | None = None,
) -> Report:
    """Measure a game by the methods that need no network, and report.

    Args:
        variant: the game.
        plan: methods, seeds, and games or minutes.
        folder: where games are kept; None keeps nothing.
        command: that makes the report again; "{games}" in it becomes the number of games that the plan was settled at.
        reporter: shows progress; stderr by default.

    Raises:
        InsufficientData: no method has any value.
    """
    reporter = reporter or Reporter()
    table = table_for(variant, reporter=reporter)
    plan = settle(variant, plan, folder=folder, table=table)
    methods = tuple(measure_game(variant, plan=plan, folder=folder, reporter=reporter))
    seeds = {f"games {number + 1}": seed for number, seed in enumerate(plan.seeds)}
    basis: dict[str, Any] = provenance(variant, config_hash=None, seeds=seeds)
    played = {"depth": plan.depth, "games_per_method_and_seed": plan.games, "evaluation": dict(table.provenance)}
    return Report(methods, variant, {**basis, "players": played}, command.replace("{games}", str(plan.games)))


@dataclass(frozen=True)
class StoredRun:
    """A training run, or what it was at one of its checkpoints.

    Attributes:
        path: its folder.
        variant: its game.
        config: its config.
        seed: of the bootstrap; None is the run's.
        resamples: None is the config's.
    """

    path: Path
    variant: Variant
    config: RunConfig
    seed: int | None = None
    resamples: int | None = None

    def outcome(self, reporter: Reporter) -> Report:
        """Return the report by its stored games' results."""
        with reporter.task("piece values, per cent", PER_CENT) as update:
            return measure_run(
                self.path,
                seed=self.seed,
                resamples=self.resamples,
                with_splits=True,
                progress=lambda done, total: update(PER_CENT * done // total),
            )[0]

    def odds(self) -> MethodValues:
        """Return values by those of its stored games that began from odds."""
        section = self.config.piece_values
        settings = Settings(
            resamples=self.resamples or section.bootstrap,
            seed=self._bootstrap_seed,
            min_games=section.min_games,
            min_games_per_piece=section.min_games_per_piece,
        )
        records = (record for _, record, _ in stored_games(self.path))
        games = odds_of_records(engine_for(self.variant), records)
        return values_by_odds(games, settings, basis=f"the run's own games; {settings.resamples} resamples")

    def network(self, reporter: Reporter) -> MethodValues:
        """Return values by what its network says of its own positions with a piece taken off."""
        with reporter.task("network, per cent", PER_CENT) as update:
            return ask_network(
                self.path,
                seed=self.seed,
                resamples=self.resamples,
                progress=lambda done, total: update(PER_CENT * done // total),
            )

    @property
    def _bootstrap_seed(self) -> int:
        return self.config.seed if self.seed is None else self.seed


def survey_run(
    run: StoredRun,
    methods: Sequence[str],
    *,
    plan: MeasurePlan,
    folder: Path | None = None,
    reporter: Reporter | None = None,
) -> Report:
    """Measure by what a run has stored, and by alpha-beta games of its rules where a method needs them.

    Args:
        run: the run.
        methods: of `estimates.METHODS`.
        plan: of the games that are played; its methods are not looked at.
        folder: where such games are kept.
        reporter: shows progress; stderr by default.

    Raises:
        InsufficientData: no method has any value.
    """
    reporter = reporter or Reporter()
    played = tuple(method for method in methods if method not in STORED)
    if played:
        table = table_for(run.variant, reporter=reporter)
        plan = settle(run.variant, replace(plan, methods=played), folder=folder, table=table)
    seeds = {"run": run.config.seed}
    basis: dict[str, Any] = provenance(run.variant, config_hash=run.config.config_hash(), seeds=seeds)
    results: list[MethodValues] = []
    for method in methods:
        try:
            if method == "outcome":
                report = run.outcome(reporter)
                basis, found = report.provenance, list(report.methods)
            elif method in STORED:
                found = [run.odds() if method == "odds" else run.network(reporter)]
            else:
                found = measure_game(
                    run.variant, plan=replace(plan, methods=(method,)), folder=folder, reporter=reporter
                )
        except InsufficientData as error:
            found = [refused(method, str(error))]
        results += found
    if all(result.refusal for result in results):
        alone = len(results) == 1
        raise InsufficientData("; ".join(one.refusal if alone else f"{one.method}: {one.refusal}" for one in results))
    return Report(tuple(results), run.variant, basis)
