"""The parts of a report that take time, in their order, and how the minutes are split over them."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from pathlib import Path

from envs import engine_for
from models.storage import CheckpointMismatch, CorruptFile
from train.balance import BalancePlan, BalanceReport, measure_balance, read_setting
from train.config import ConfigError
from train.evaluation_tables import table_for
from train.iteration_metrics import ending_name
from train.pgn import stored_games
from train.piece_values.estimates import MethodValues, refused
from train.piece_values.measure import METHODS as WITHOUT_NETWORK
from train.piece_values.measure import MeasurePlan, measure_game, settle
from train.piece_values.positions import InsufficientData
from train.piece_values.report import Report
from train.piece_values.surveys import STORED
from train.progress import Reporter
from train.provenance import provenance
from train.report import Part, Settings, Stopped, Subject
from train.report_balance import balance_section, samples_of
from train.report_budget import Budget
from train.report_page import Section
from train.report_pooled import trained_values
from train.report_samples import SampleGame, games_section
from train.report_training import WINDOWS, ladder_section, learning_section, values_over_training
from train.report_values import values_section
from train.shards import GameRecord

VALUES_SHARE = 0.7
"""Of the minutes that an evaluation's learning leaves; the balance has the rest."""
LEAST_MINUTES = 0.2
"""For each measurement, however little is left."""
SAMPLES = 3
NEWEST = 200
"""Of a run's games, among which samples are sought."""
RUN_GAMES = 2000
"""Of a run, newest first, that its balance is counted on."""


@dataclass(frozen=True)
class Parts:
    """Makes the parts of one report.

    Attributes:
        subject: what it is about.
        settings: how much is measured.
        games: folder of the games that are kept.
        command: that makes the report.
        reporter: told what is being done.
        budget: of the minutes.
    """

    subject: Subject
    settings: Settings
    games: Path
    command: str
    reporter: Reporter
    budget: Budget

    def listed(self) -> list[Part]:
        """Return the parts in their order."""
        runs = self.subject.runs
        if not runs:
            return [Part("Piece values", self.values)] + (
                [Part("Balance", self.balance)] if self.settings.plays else []
            )
        return [
            Part("Learning", lambda: [learning_section(runs, self.command)]),
            Part("Strength", lambda: [ladder_section(runs)]),
            Part("Balance", self.balance),
            Part("Sample games", self.samples),
            Part("Values over training", self.over_training),
            Part("Piece values", self.values),
        ]

    def values(self) -> list[Section]:
        """Measure what the pieces are worth, by what runs have stored and by games that are played now."""
        runs, variant, methods, commands = self.subject.runs, self.subject.variant, list[MethodValues](), list[str]()
        if runs:
            methods += trained_values(runs, seed=self.settings.seed, reporter=self.reporter)
            paths = [shlex.quote(str(run.path)) for run in runs]
            commands += [f"python scripts/piece_values.py {path} --method {','.join(STORED)}" for path in paths]
        if self.settings.plays:
            plan = self._plan()
            commands.append(self._values_command(plan))
            try:
                methods += measure_game(variant, plan=plan, folder=self.games, reporter=self.reporter)
            except InsufficientData as error:
                methods += [refused(method, str(error)) for method in plan.methods]
        if not methods:
            return []
        basis = provenance(variant, config_hash=None, seeds={"first": self.settings.seed})
        return [values_section(Report(tuple(methods), variant, basis, " and ".join(commands)))]

    def balance(self) -> list[Section]:
        """Measure the balance, and of a game show sample games.

        Raises:
            Stopped: with what there is.
        """
        targets = self.subject.targets
        found = [(target, self._balance_of(target)) for target in targets]
        sections = [balance_section(found)]
        if not self.subject.runs:
            game, report = engine_for(self.subject.variant), found[0][1]
            sections.append(games_section(game, samples_of(report, SAMPLES), report.command))
        if any(report.stopped for _, report in found):
            raise Stopped(sections)
        return sections

    def samples(self) -> list[Section]:
        """Show the newest games of the runs, first those that ended differently."""
        newest = [
            (record, run.name, place)
            for run in self.subject.runs
            for _, record, place in stored_games(run.path, last=NEWEST)
            if record.num_plies
        ]
        newest.reverse()
        first = {ending_name(one[0]): number for number, one in reversed(list(enumerate(newest)))}
        chosen = [_of_record(*newest[number]) for number in sorted(first.values())[:SAMPLES]]
        return [games_section(engine_for(self.subject.variant), chosen, self.command)]

    def over_training(self) -> list[Section]:
        """Show outcome values by windows of iterations."""
        with self.reporter.task("piece values over training", WINDOWS) as update:
            section = values_over_training(
                self.subject.runs, seed=self.settings.seed, command=self.command, progress=update
            )
        return [section]

    def _plan(self) -> MeasurePlan:
        """Return how many games the values are measured with, the same whenever the same is asked."""
        asked, variant = self.settings, self.subject.variant
        seeds = tuple(range(asked.seed, asked.seed + asked.seeds))
        table_for(variant, reporter=self.reporter)
        minutes = None
        if asked.games is None:
            share = 1.0 if self.subject.runs else VALUES_SHARE
            minutes = self.budget.settle("values_minutes", lambda: max(LEAST_MINUTES, self.budget.share(share)))
        methods = tuple(name for name in WITHOUT_NETWORK if not (self.subject.runs and name in STORED))
        plan = MeasurePlan(methods, seeds, asked.depth, asked.games, minutes)
        return settle(variant, plan, folder=self.games)

    def _values_command(self, plan: MeasurePlan) -> str:
        seeds = ",".join(map(str, plan.seeds))
        numbers = f"--method {','.join(plan.methods)} --games {plan.games} --depth {plan.depth} --seeds {seeds}"
        return f"python scripts/piece_values.py {shlex.quote(self.subject.game)} {numbers}"

    def _balance_of(self, target: str) -> BalanceReport:
        """Measure one balance, with as many games as the first time."""
        asked, setting = self.settings, read_setting(target)
        kept = self.budget.settled("balance_games")
        games = RUN_GAMES if setting.run else asked.games or (int(kept) if kept else None)
        minutes = None if games else max(LEAST_MINUTES, self.budget.share(1.0))
        plan = BalancePlan(games=games, minutes=minutes, depth=asked.depth, seed=asked.seed)
        try:
            report = measure_balance([setting], plan=plan, folder=self.games, reporter=self.reporter)
        except (ConfigError, CorruptFile, CheckpointMismatch):
            raise
        except ValueError as error:  # too few openings, or games
            raise InsufficientData(str(error)) from None
        count = len(report.balances[0].games)
        if not (report.stopped or games):
            self.budget.keep("balance_games", count)
        searched = "" if setting.run else f" --depth {asked.depth} --seed {asked.seed}"
        command = f"python scripts/balance.py {shlex.quote(target)} --games {games or count}{searched}"
        return replace(report, command=command)


def _of_record(record: GameRecord, run: str, place: str) -> SampleGame:
    words = ending_name(record).replace("_", " ")
    return SampleGame(
        record.start_fen, record.actions, record.white_score, words, f"{run}:{record.model_version}", place,
        record.opening_plies,
    )  # fmt: skip
