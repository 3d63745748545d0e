"""The training loop: self-play -> replay -> learner -> checkpoint, then a match and the piece values.

Read from `train` down. One iteration is synchronous: every worker makes a fixed quota of positions with the newest
playing weights; the finished games are verified and stored; the learner takes a fixed number of steps per new
position; the averaged weights are published; a checkpoint commits all of it. Games go on across iterations, and those
under way are part of the checkpoint.
Source: Silver et al. 2018, "A general reinforcement learning algorithm that masters chess, shogi and Go through
self-play", with the search of Danihelka et al. 2022.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from envs import engine_for, load_variant
from models.checkpoint import Checkpoint, check_identity, identity, save_checkpoint
from models.evaluator import export_graph, weights_of
from models.network import GameSpec, NetworkConfig, check_network, untrained_network
from models.pruning import prune_checkpoints
from models.storage import CheckpointMismatch
from train.arena import MatchResult
from train.cluster import check_cluster
from train.config import RunConfig, from_document
from train.initial_weights import adopt_weights
from train.interrupts import StopRequest
from train.iteration_metrics import StepMeans
from train.learner import Learner
from train.observer import Iteration, RunObserver
from train.pgn import write_newest
from train.piece_values import InsufficientData, Report, measure_run
from train.plugins import RECORD, Plugin
from train.precision import Verdict
from train.progress import Reporter
from train.replay import ReplayBuffer
from train.resources import num_cores
from train.run_matches import RunMatches
from train.runs import SHARDS, RunFolder, plugins_of_run, reading
from train.selfplay import SelfPlayStats
from train.shards import GameRecord, ShardInfo, write_index
from train.verification import hold_out, store_games
from train.warm_start import check_warm_start, warm_start
from train.warm_up import warm_up
from train.worker import WorkerTask
from train.workers import start_workers

NETWORK_STREAM, SAMPLE_STREAM = range(2)
GAMES = "games"
"""A run's folder for games as PGN."""
LANES = "lanes-{:05d}.npz"
"""A checkpoint's file with the games under way of a worker."""


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
        CorruptFile: No checkpoint is valid, or a committed shard is damaged.
        DiskFull: There is no room; what was committed is as it was.
        KeyboardInterrupt: The run was asked to stop (Ctrl-C, SIGTERM) before its end; the iteration of then is finished
            and saved, unless it was asked twice.
    """
    load_variant(cfg.variant, cfg.options)  # nothing is made on disk for a game that cannot be honoured
    if cfg.ray.address is not None:
        check_cluster(cfg.ray.address, allow_unauthenticated=cfg.ray.allow_unauthenticated)
    loaded = plugins_of_run(cfg, run_dir, resume=resume, given=plugins)
    check_warm_start(cfg.warm_start)
    folder = RunFolder(run_dir)
    try:
        trainer = Trainer(cfg, folder, resume=resume, reporter=reporter, plugins=loaded)
        try:
            with StopRequest() as stop:
                while trainer.iteration < cfg.iterations and not stop.requested:
                    trainer.iterate()
            if stop.requested:
                raise KeyboardInterrupt
            return trainer.conclude()
        finally:
            trainer.close()
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
        self.reporter.say("exporting the network ...")
        graph = export_graph(self.learner.playing_network)
        self.matches = RunMatches(cfg, self.variant, graph, reporter)
        checkpoint = folder.take_up() if resume else None
        adopted = self._adopt_weights() if checkpoint is None else None
        if not resume:
            folder.begin(cfg, self.variant, plugins, initial_weights=adopted)
        if checkpoint is not None:
            self._restore(checkpoint)
        warm_up()
        where = "this process" if cfg.workers == 0 else f"{cfg.workers} Ray workers"
        self.reporter.say(f"starting self-play in {where} ...")
        task = WorkerTask.of(cfg, self.variant, life=self.iteration, graph=graph, plugins=plugins)
        self.workers = start_workers(cfg, task)
        try:
            self._begin(checkpoint, resume=resume)
        except BaseException:
            self.workers.close()
            raise

    def iterate(self) -> None:
        """Make games, learn from them, and commit both."""
        was_int8 = self.matches.plays_int8
        games, stats = self._self_play()
        new_rows = self._store(games)
        steps = self._learn(new_rows)
        self.iteration += 1
        self.counters.games += len(games)
        self.counters.positions += stats.positions
        played = self._play_matches(was_int8=was_int8)
        made = Iteration(
            number=self.iteration, games=games, stats=stats, steps=steps, new_rows=new_rows, matches=played,
            totals=self._totals(), faults=self._faults(), is_int8=was_int8,
        )  # fmt: skip
        line = self.observer.iteration(made, self.replay, self.shards)  # before the save: see `RunObserver`
        with self.observer.clock.time("save"):
            self._save()
        self.reporter.say(line)

    def conclude(self) -> RunSummary:
        """Play the last match, estimate piece values, and return both."""
        match = self.matches.play(self.learner.playing_network, self.folder.path.name, self.iteration)
        report, refusal = self._piece_values()
        self.observer.conclude(self.iteration, match, report)
        return RunSummary(self.folder.path, match, report, refusal)

    def close(self) -> None:
        """End the workers and close the metrics."""
        try:
            self.workers.close()
        finally:
            self.observer.close()

    def _new_learner(self) -> Learner:
        """Return a learner with an untrained network; raise ValueError if that cannot be trained."""
        cfg = self.cfg
        seed = int(np.random.SeedSequence([cfg.seed, NETWORK_STREAM]).generate_state(1)[0])
        network = untrained_network(GameSpec.of(self.game), NetworkConfig(**cfg.network.model_dump()), seed=seed)
        check_network(network)
        return Learner(network, cfg.learner)

    def _adopt_weights(self) -> Mapping[str, Any] | None:
        """Begin with another run's weights if the config says so; return what the manifest records of it."""
        source = self.cfg.initial_weights
        return adopt_weights(self.learner, source, identity(self.variant, self.learner.network)) if source else None

    def _begin(self, checkpoint: Checkpoint | None, *, resume: bool) -> None:
        """Put the workers where the run stands, and commit a new run's first weights."""
        if checkpoint is not None:
            self._restore_lanes(checkpoint)
        else:
            found = warm_start(self.cfg, self.game, self.learner, run_dir=self.folder.path, reporter=self.reporter)
            self._save(warm_start=found)
        if self.matches.plays_int8:
            self.workers.use_int8()
        self.observer = RunObserver(
            self.folder.path, self.cfg, self.game, learner=self.learner,
            resume_after=self.iteration if resume else None,
        )  # fmt: skip

    def _self_play(self) -> tuple[list[GameRecord], SelfPlayStats]:
        quota = self.cfg.selfplay.positions_per_iteration
        total = quota * max(1, self.cfg.workers)
        weights = weights_of(self.learner.playing_network)
        with (
            self.observer.clock.time("selfplay"),
            self.reporter.task(f"{self._place()} self-play", total, keep=False) as update,
        ):
            return self.workers.play(weights, quota, self.learner.snapshots, self.iteration + 1, update)

    def _store(self, games: list[GameRecord]) -> int:
        """Verify and store games and add them to the window; return how many rows with a policy are new."""
        with self.observer.clock.time("replay"):
            info, bad = store_games(
                self.game, hold_out(games, self.cfg.replay.held_out_share), folder=self.folder.replay,
                name=f"{self.iteration:06d}", quarantine=self.folder.quarantine,
            )  # fmt: skip
            self.counters.quarantined += bad
            if info is None:
                return 0
            self.replay.add(self.folder.replay, info)
            self.shards.append(info)
            every = self.cfg.replay.pgn_every
            if every and (self.iteration + 1) % every == 0 and not bad:
                folder, most = self.folder.path / GAMES, self.cfg.replay.pgn_games
                write_newest(games, self.game, folder=folder, iteration=self.iteration + 1, most=most)
            return info.num_policy_rows

    def _learn(self, new_rows: int) -> StepMeans:
        cfg = self.cfg.learner
        steps = self.replay.steps_for(new_rows, passes=cfg.passes, batch_size=cfg.batch_size) if new_rows else 0
        means = StepMeans()
        torch.set_num_threads(num_cores())
        with (
            self.observer.clock.time("learn"),
            self.reporter.task(f"{self._place()} learning", max(1, steps), keep=False) as update,
        ):
            self.learner.set_progress(self.iteration / self.cfg.iterations)
            for number in range(steps):
                means.add(self.learner.step(self.replay.sample(self.rng, cfg.batch_size)))
                update(number + 1)
            if steps:
                self.learner.snapshot()
        return means

    def _play_matches(self, *, was_int8: bool) -> list[MatchResult]:
        """Play the matches that are due; self-play in int8 begins with the iteration after the one that allowed it."""
        with self.observer.clock.time("match"):
            played = self.matches.play_due(self.learner.playing_network, self.folder.path.name, self.iteration)
        if self.matches.plays_int8 and not was_int8:
            self.workers.use_int8()
        return played

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

    def _save(self, **more: Mapping[str, float]) -> None:
        """Commit the run as it stands; `more` is kept in the checkpoint's state."""
        verdict, kept = self.matches.verdict, self.cfg.checkpoints
        state: dict[str, Any] = {
            **identity(self.variant, self.learner.network),
            "config": self.cfg.to_document(),
            RECORD: [plugin.record() for plugin in self.plugins],
            "iteration": self.iteration,
            "counters": asdict(self.counters),
            "learner": self.learner.counters(),
            "sample_rng": self.rng.bit_generator.state,
            SHARDS: write_index(self.shards),
            "precision": asdict(verdict) if verdict else None,
            **more,
        }
        lanes = {LANES.format(number): content for number, content in enumerate(self.workers.lanes())}
        path = self.folder.path
        save_checkpoint(path, self.iteration, tensors=self.learner.tensors(), state=state, attachments=lanes)
        prune_checkpoints(path, keep_last=kept.keep_last, keep_every=kept.keep_every)

    def _restore(self, checkpoint: Checkpoint) -> None:
        """Take up what a checkpoint committed, all but the games under way."""
        state = checkpoint.state
        check_identity(state, identity(self.variant, self.learner.network), str(checkpoint.path))
        with reading(checkpoint.path):
            if from_document(state["config"], str(checkpoint.path)).config_hash() != self.cfg.config_hash():
                self.reporter.say(
                    "warning: config.yaml has changed since the last checkpoint; going on with what it says now"
                )
            self.learner.restore(checkpoint.tensors, state["learner"])
            self.iteration = int(state["iteration"])
            self.counters = Counters(**state["counters"])
            self.rng.bit_generator.state = state["sample_rng"]
            self.matches.verdict = Verdict(**state["precision"]) if state.get("precision") else None
        self.shards = self.folder.committed_shards(checkpoint)
        aside = self.folder.set_aside_uncommitted({info.name for info in self.shards})
        if aside:
            self.reporter.say(f"set aside games that no checkpoint had committed: {', '.join(aside)}")
        self.replay.restore(self.folder.replay, self.shards)
        self.folder.record_resume(self.iteration)

    def _restore_lanes(self, checkpoint: Checkpoint) -> None:
        """Let the workers go on with the games under way, where the config still has as many of them."""
        stored = [content for name, content in sorted(checkpoint.attachments.items()) if name.startswith("lanes-")]
        done = f"going on after iteration {self.iteration} with {self.counters.games} games"
        try:
            self.workers.restore_lanes(stored)
        except CheckpointMismatch as mismatch:
            cause = getattr(mismatch, "cause", mismatch)  # Ray's own text is a worker's whole traceback
            self.reporter.say(f"{done}; the games under way then are lost: {cause}")
        else:
            self.reporter.say(f"{done}, and those under way")

    def _totals(self) -> dict[str, int]:
        return {"selfplay/total_games": self.counters.games, "selfplay/total_positions": self.counters.positions}

    def _faults(self) -> dict[str, int]:
        return {**self.workers.faults, "quarantined_games": self.counters.quarantined}

    def _place(self) -> str:
        return f"[{self.iteration + 1}/{self.cfg.iterations}]"
