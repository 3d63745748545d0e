"""The training loop: self-play -> replay -> learner -> checkpoint, then a match and the piece values.

Read from `train` down. One iteration is synchronous: every worker makes a fixed quota of positions with the newest
playing weights; the finished games are verified and stored; the learner takes a fixed number of steps per new
position; the averaged weights are published; a checkpoint commits all of it.
Source: Silver et al. 2018, "A general reinforcement learning algorithm that masters chess, shogi and Go through
self-play", with the search of Danihelka et al. 2022.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from envs import engine_for, load_variant
from models.checkpoint import Checkpoint, check_identity, identity, load_latest, save_checkpoint
from models.evaluator import export_graph, make_evaluator, weights_of
from models.network import GameSpec, NetworkConfig, check_network, untrained_network
from train.arena import MatchResult, MatchSettings, draw_openings, play_match
from train.config import RunConfig, from_document
from train.iteration_metrics import (
    Numbers,
    Stopwatch,
    game_numbers,
    match_numbers,
    piece_numbers,
    search_numbers,
)
from train.learner import Learner
from train.metrics import MetricsWriter
from train.piece_values import InsufficientData, Report, measure_run
from train.players import make_player
from train.plugins import RECORD, Plugin
from train.precision import INT8, Verdict, play_precisions
from train.progress import Reporter
from train.replay import ReplayBuffer
from train.runs import RunFolder, plugins_of_run
from train.search import SearchPlayer, SearchSettings
from train.selfplay import SelfPlayStats
from train.shards import GameRecord, ShardInfo, store_games
from train.warm_up import warm_up
from train.workers import WorkerTask, start_workers

NETWORK_STREAM, SAMPLE_STREAM = range(2)


@dataclass
class RunSummary:
    """What a finished run found.

    Attributes:
        run_dir: Its folder.
        match: The last match against the configured opponent.
        piece_values: The report, or None where there was too little data.
        refusal: What was missing for piece values, or an empty string.
    """

    run_dir: Path
    match: MatchResult
    piece_values: Report | None
    refusal: str


@dataclass
class Counters:
    """Whole-run counts that a checkpoint keeps."""

    games: int = 0
    positions: int = 0
    quarantined: int = 0


def train(
    cfg: RunConfig, run_dir: Path, *, resume: bool, reporter: Reporter, plugins: Sequence[str | Path] = ()
) -> RunSummary:
    """Run a config to its end.

    Args:
        cfg: The config; with `resume` the run's own.
        run_dir: Its folder.
        resume: Go on from the newest valid checkpoint.
        reporter: Says what is being done.
        plugins: Files of the user's own code with which to resume; a new run loads those that its config names.

    Returns:
        The last match and the piece values.

    Raises:
        ConfigError: The folder holds a run already (without `resume`), or another trainer is at work there, or
            a plugin cannot be loaded, or a name is known to none.
        CheckpointMismatch: The checkpoints are of another game or network.
    """
    load_variant(cfg.variant, cfg.options)  # nothing is made on disk for a game that cannot be honoured
    loaded = plugins_of_run(cfg, run_dir, resume=resume, given=plugins)
    folder = RunFolder(run_dir)
    try:
        trainer = Trainer(cfg, folder, resume=resume, reporter=reporter, plugins=loaded)
        try:
            while trainer.iteration < cfg.iterations:
                trainer.iterate()
        finally:
            trainer.close()
        return trainer.conclude()
    finally:
        folder.close()


class Trainer:
    """One run: its games, its network, its window of positions and its counts."""

    def __init__(
        self, cfg: RunConfig, folder: RunFolder, *, resume: bool, reporter: Reporter, plugins: Sequence[Plugin] = ()
    ) -> None:
        """Set up a new run, or take up an old one; whatever can be refused is, before anything is written."""
        if not resume:
            folder.refuse_old_run()
        self.cfg, self.folder, self.reporter, self.plugins = cfg, folder, reporter, plugins
        self.variant = load_variant(cfg.variant, cfg.options)
        self.game = engine_for(self.variant)
        self.learner = self._new_learner()
        future_plies = cfg.learner.future_plies if cfg.network.future_pieces else None
        self.replay = ReplayBuffer(
            self.game, cfg.replay, outcome_weight=cfg.learner.outcome_weight, future_plies=future_plies
        )
        self.rng = np.random.default_rng([cfg.seed, SAMPLE_STREAM])
        self.counters = Counters()
        self.shards: list[ShardInfo] = []
        self.iteration = 0
        self.match = MatchSettings(
            games=cfg.evaluation.games,
            random_plies=cfg.evaluation.random_plies,
            seed=cfg.seed,
            max_plies=cfg.evaluation.max_plies,
        )
        self.verdict: Verdict | None = None
        self._check_openings()
        self.reporter.say("exporting the network ...")
        self.graph = export_graph(self.learner.playing_network)
        if not resume:
            folder.begin(cfg, self.variant, plugins)
        checkpoint = load_latest(folder.path) if resume else None
        if checkpoint is None:
            self._save()
        else:
            self._restore(checkpoint)
        self.metrics = MetricsWriter(folder.path, resume_after=self.iteration if resume else None)
        self.metrics.write_text("config", cfg.to_yaml())
        warm_up()
        where = "this process" if cfg.workers == 0 else f"{cfg.workers} Ray workers"
        self.reporter.say(f"starting self-play in {where} ...")
        task = WorkerTask.of(cfg, self.variant, life=self.iteration, graph=self.graph, plugins=plugins)
        self.workers = start_workers(cfg, task)
        if self._plays_int8:
            self.workers.use_int8()

    def iterate(self) -> None:
        """Make games, learn from them, and commit both."""
        clock = Stopwatch()
        plays_int8 = self._plays_int8
        games, stats = self._self_play(clock)
        new_rows = self._store(games, clock)
        losses = self._learn(new_rows, clock)
        self.iteration += 1
        self.counters.games += len(games)
        self.counters.positions += stats.positions
        match = self._match() if self._is_match_due() else None
        admission = self._judge_int8() if self._is_verdict_due() else None
        with clock.time("save"):
            self._save()
        metrics = {
            **game_numbers(games),
            "selfplay/int8": int(plays_int8),
            **search_numbers(stats),
            **losses,
            **self._buffer_numbers(),
            **clock.numbers(stats),
            **match_numbers(match),
            **match_numbers(admission),
        }
        self.metrics.write(self.iteration, metrics)
        self.reporter.say(self._line(games, metrics))

    def conclude(self) -> RunSummary:
        """Play the last match, estimate piece values, and return both."""
        match = self._match()
        report, refusal = self._piece_values()
        self.metrics.write(self.iteration, {**match_numbers(match), **piece_numbers(report)})
        self.metrics.close()
        return RunSummary(self.folder.path, match, report, refusal)

    def close(self) -> None:
        """End the workers."""
        self.workers.close()

    def _new_learner(self) -> Learner:
        """Return a learner with an untrained network; raise ValueError if that cannot be trained."""
        cfg = self.cfg
        seed = int(np.random.SeedSequence([cfg.seed, NETWORK_STREAM]).generate_state(1)[0])
        network = untrained_network(GameSpec.of(self.game), NetworkConfig(**cfg.network.model_dump()), seed=seed)
        check_network(network)
        return Learner(network, cfg.learner)

    def _check_openings(self) -> None:
        """Raise ValueError if there are too few distinct openings for a match of the run."""
        games = self.match.games
        if self.cfg.inference.precision == INT8:
            games = max(games, self.cfg.inference.match_games)
        draw_openings(self.variant, games // 2, plies=self.match.random_plies, seed=self.match.seed)

    def _self_play(self, clock: Stopwatch) -> tuple[list[GameRecord], SelfPlayStats]:
        quota = self.cfg.selfplay.positions_per_iteration
        total = quota * max(1, self.cfg.workers)
        weights = weights_of(self.learner.playing_network)
        with (
            clock.time("selfplay"),
            self.reporter.task(f"{self._place()} self-play", total, keep=False) as update,
        ):
            return self.workers.play(weights, quota, self.learner.snapshots, update)

    def _store(self, games: list[GameRecord], clock: Stopwatch) -> int:
        """Verify and store games and add them to the window; return how many rows with a policy are new."""
        with clock.time("replay"):
            name = f"{self.iteration:06d}"
            info, bad = store_games(
                self.game, games, folder=self.folder.replay, name=name, quarantine=self.folder.quarantine
            )
            self.counters.quarantined += bad
            if info is None:
                return 0
            self.replay.add(self.folder.replay, info)
            self.shards.append(info)
            return info.num_policy_rows

    def _learn(self, new_rows: int, clock: Stopwatch) -> Numbers:
        cfg = self.cfg.learner
        steps = self.replay.steps_for(new_rows, passes=cfg.passes, batch_size=cfg.batch_size) if new_rows else 0
        sums: Counter[str] = Counter()
        rate = None
        torch.set_num_threads(os.cpu_count() or 1)
        with clock.time("learn"), self.reporter.task(f"{self._place()} learning", max(1, steps), keep=False) as update:
            for number in range(steps):
                step = self.learner.step(self.replay.sample(self.rng, cfg.batch_size))
                rate = step["learning_rate"]
                sums.update({"taken": 1, **step} if not step["skipped"] else {})
                update(number + 1)
            if steps:
                self.learner.snapshot()
        clock.steps = steps
        taken = sums["taken"]
        return {
            **{f"train/{name}": sums[name] / taken if taken else None for name in self.learner.metric_names},
            "train/learning_rate": rate,
            "train/steps": self.learner.steps,
            "train/epochs": steps * cfg.batch_size / new_rows if new_rows else None,
            "faults/skipped_steps": self.learner.skipped_steps,
            "faults/quarantined_games": self.counters.quarantined,
        }

    def _match(self) -> MatchResult:
        """Play the configured opponent with the weights that play."""
        cfg = self.cfg.evaluation
        evaluator = make_evaluator(self.learner.playing_network, threads=os.cpu_count() or 1, graph=self.graph)
        player = SearchPlayer(
            evaluator,
            num_simulations=cfg.simulations,
            name=f"{self.folder.path.name}:{self.iteration}",
            settings=SearchSettings.of(self.cfg.search),
        )
        opponent = make_player(cfg.opponent, simulations=cfg.simulations).player
        with self.reporter.task(f"match against {cfg.opponent}", cfg.games) as update:
            return play_match(
                self.variant, (player, opponent), settings=self.match, progress=lambda done, _: update(done)
            )

    def _is_match_due(self) -> bool:
        every = self.cfg.evaluation.every
        return bool(every) and self.iteration % every == 0 and self.iteration < self.cfg.iterations

    @property
    def _plays_int8(self) -> bool:
        return self.verdict is not None and self.verdict.precision == INT8

    def _is_verdict_due(self) -> bool:
        cfg = self.cfg.inference
        is_open = cfg.precision == INT8 and self.verdict is None
        return is_open and cfg.match_from <= self.iteration < self.cfg.iterations

    def _judge_int8(self) -> MatchResult:
        """Let the weights that play show whether int8 is good enough for self-play, and act on it."""
        with self.reporter.task("match of int8 against float32", self.cfg.inference.match_games) as update:
            network = self.learner.playing_network
            match = play_precisions(self.cfg, self.variant, network, graph=self.graph, progress=update)
        self.verdict = Verdict.of(match, self.iteration)
        self.reporter.say(str(self.verdict))
        if self._plays_int8:
            self.workers.use_int8()
        return match

    def _piece_values(self) -> tuple[Report | None, str]:
        """Estimate piece values from every committed game of the run and write the report."""
        bootstrap = self.cfg.piece_values.bootstrap
        try:
            with self.reporter.task("piece values", bootstrap) as update:
                report, _ = measure_run(self.folder.path, progress=lambda done, _: update(done))
        except InsufficientData as error:
            return None, str(error)
        report.write(self.folder.report)
        return report, ""

    def _save(self) -> None:
        state: dict[str, Any] = {
            **identity(self.variant, self.learner.network),
            "config": self.cfg.to_document(),
            RECORD: [plugin.record() for plugin in self.plugins],
            "iteration": self.iteration,
            "counters": asdict(self.counters),
            "learner": self.learner.counters(),
            "sample_rng": self.rng.bit_generator.state,
            "shards": [asdict(info) for info in self.shards],
            "precision": asdict(self.verdict) if self.verdict else None,
        }
        save_checkpoint(self.folder.path, self.iteration, tensors=self.learner.tensors(), state=state)

    def _restore(self, checkpoint: Checkpoint) -> None:
        state = checkpoint.state
        check_identity(state, identity(self.variant, self.learner.network), str(checkpoint.path))
        if from_document(state["config"], str(checkpoint.path)).config_hash() != self.cfg.config_hash():
            self.reporter.say(
                "warning: config.yaml has changed since the last checkpoint; going on with what it says now"
            )
        self.learner.restore(checkpoint.tensors, state["learner"])
        self.iteration = state["iteration"]
        self.counters = Counters(**state["counters"])
        self.rng.bit_generator.state = state["sample_rng"]
        self.shards = [ShardInfo(**info) for info in state["shards"]]
        verdict = state.get("precision")  # older checkpoints lack it
        self.verdict = Verdict(**verdict) if verdict else None
        aside = self.folder.set_aside_uncommitted({info.name for info in self.shards})
        if aside:
            self.reporter.say(f"set aside games that no checkpoint had committed: {', '.join(aside)}")
        self.replay.restore(self.folder.replay, self.shards)
        self.reporter.say(
            f"going on after iteration {self.iteration} with {self.counters.games} games; those under way then are lost"
        )

    def _place(self) -> str:
        return f"[{self.iteration + 1}/{self.cfg.iterations}]"

    def _buffer_numbers(self) -> Numbers:
        return {
            "buffer/rows": self.replay.num_rows,
            "buffer/policy_rows": self.replay.num_policy_rows,
            "buffer/total_rows": self.replay.total_rows,
            "selfplay/total_games": self.counters.games,
            "selfplay/total_positions": self.counters.positions,
        }

    def _line(self, games: list[GameRecord], metrics: Numbers) -> str:
        def show(name: str, form: str) -> str:
            value = metrics.get(name)
            return "-" if value is None else format(value, form)

        return (
            f"[{self.iteration}/{self.cfg.iterations}] {len(games)} games, {show('selfplay/plies', '.0f')} plies, "
            f"decisive {show('outcome/decisive_share', '.0%')}, cut {show('outcome/cut_share', '.0%')} | "
            f"policy KL {show('train/policy_kl', '.3f')}, value {show('train/value_loss', '.3f')} | "
            f"{show('perf/positions_per_s', '.0f')} positions/s, self-play {show('perf/selfplay_s', '.1f')} s, "
            f"learning {show('perf/learn_s', '.1f')} s"
        )
