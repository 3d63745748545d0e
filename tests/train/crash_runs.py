"""Kill a trainer again and again, resume it each time, and check that nothing committed was lost or counted twice.

    python -m tests.train.crash_runs [--kills 50] [--workers 0] [--seed 1] [--run-dir DIR]

Half of the kills come at a random moment, half before a random file operation of the start or of the iterations.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from tensorboard.backend.event_processing.event_file_loader import LegacyEventFileLoader

from envs import engine_for, load_variant
from models.checkpoint import FOLDER, Checkpoint, checkpoint_paths, load_checkpoint
from models.storage import sha256_hex
from tests.train import crash_child
from train.lanes import unpack_lanes
from train.metrics import read_metrics
from train.runs import UNCOMMITTED_KEPT
from train.shards import read_shard

CONFIG = """
variant: gardner
iterations: 100000
workers: {workers}
search: {{num_simulations: 4, fast_simulations: 2, full_search_share: 0.5, max_considered_actions: 4}}
selfplay: {{games_per_worker: 8, positions_per_iteration: 120, max_plies: 40}}
network: {{blocks: 1, channels: 4, value_channels: 2, value_hidden: 4}}
learner: {{batch_size: 16, warmup_steps: 5, passes: 1}}
evaluation: {{games: 4, simulations: 2, max_plies: 40}}
checkpoints: {{keep_last: 3, keep_every: 50}}
"""
OPERATIONS = 200
"""Kills before a file operation choose one of so many: those of the start and of some iterations."""
RANDOM_KILL_S = 3.0
"""Kills at a random moment come within so many seconds of the first sign of life."""
START_TIMEOUT_S = 1800
MAX_LEFTOVERS = 3
"""Temporary files and folders that one kill can leave."""
GAME = engine_for(load_variant("gardner"))


def child_main(arguments: list[str], log: str) -> None:
    """Run a trainer in a process of its own group, with its output in a file."""
    os.setpgid(0, 0)
    os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
    os.dup2(2, 1)
    os.environ["CRASH_COUNT"] = str(Path(log).with_suffix(".tally"))
    crash_child.main(arguments)


@dataclass
class CrashRun:
    """A run that is killed and resumed.

    Attributes:
        run_dir: of the run.
        config: its config file.
        rng: chooses the kills.
        committed: SHA-256 of every shard that a checkpoint has named, in order.
        newest: number of the newest checkpoint so far; -1 before the first.
        kills: how many there were, by what was killed.
    """

    run_dir: Path
    config: Path
    rng: random.Random
    committed: list[tuple[str, str]] = field(default_factory=list)
    newest: int = -1
    kills: Counter[str] = field(default_factory=Counter)

    @property
    def log(self) -> Path:
        return self.config.with_suffix(".log")

    def start(self, what: str, number: int) -> BaseProcess:
        """Start or resume the trainer."""
        begun = (self.run_dir / "config.yaml").exists()
        options = ["--resume"] if begun else [str(self.config)]
        arguments = [what, str(number), str(self.run_dir), *options, "--run-dir", str(self.run_dir)]
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["tests.train.crash_warm", "tests.train.crash_child"])
        process = context.Process(target=child_main, args=(arguments, str(self.log)), daemon=True)
        process.start()
        return process

    def kill_somewhere(self) -> None:
        """Start the trainer and kill it before a random file operation or at a random moment."""
        if self.rng.random() < 0.5:
            process, kind = self.start("kill", self.rng.randint(1, OPERATIONS)), "file operation"
            process.join(START_TIMEOUT_S)
        else:
            process, kind = self.start("count", 0), "moment"
            self.wait_for_life(process)
            process.join(self.rng.uniform(0, RANDOM_KILL_S))
            process.kill()
            process.join()
        assert process.exitcode == -signal.SIGKILL, f"exit {process.exitcode}: {self.log.read_text()[-3000:]}"
        self.kills[kind] += 1

    def wait_for_life(self, process: BaseProcess) -> None:
        """Wait until the trainer has taken the run up: from then on there is something to lose."""
        said = self.log.stat().st_size if self.log.exists() else 0
        deadline = time.monotonic() + START_TIMEOUT_S
        while process.is_alive() and time.monotonic() < deadline:
            if self.log.exists() and "starting self-play" in self.log.read_text()[said:]:
                return
            time.sleep(0.02)
        raise AssertionError(f"the trainer did not start: {self.log.read_text()[-3000:]}")

    def stop_gently(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Start the trainer, let it finish an iteration, and send its process group a signal, as a terminal does."""
        process = self.start("count", 0)
        self.wait_for_life(process)
        before = self.newest_number()
        deadline = time.monotonic() + START_TIMEOUT_S
        while self.newest_number() < before + 2 and process.is_alive() and time.monotonic() < deadline:
            time.sleep(0.05)
        if number == signal.SIGINT:
            os.killpg(process.pid or 0, number)
        else:
            process.terminate()
        process.join(START_TIMEOUT_S)
        assert process.exitcode in (0, 130), f"exit {process.exitcode}: {self.log.read_text()[-3000:]}"

    def newest_number(self) -> int:
        paths = checkpoint_paths(self.run_dir)
        return int(paths[0].name) if paths else -1

    def check(self) -> Checkpoint | None:
        """Check the run as a kill left it."""
        leftovers = list(self.run_dir.rglob(".tmp-*"))
        assert len([path for path in leftovers if not path.parent.name.startswith(".tmp-")]) <= MAX_LEFTOVERS
        assert len(list(self.run_dir.glob("uncommitted/*"))) <= UNCOMMITTED_KEPT + 1
        assert not list(self.run_dir.glob(f"{FOLDER}/*refused*"))
        paths = checkpoint_paths(self.run_dir)
        if not paths:
            assert self.newest == -1
            return None
        checkpoint = load_checkpoint(paths[0])
        assert checkpoint.iteration == checkpoint.state["iteration"] >= self.newest
        self.newest = checkpoint.iteration
        check_games(self, checkpoint)
        check_metrics(self.run_dir, checkpoint)
        check_tensorboard(self.run_dir, checkpoint)
        return checkpoint


def check_games(run: CrashRun, checkpoint: Checkpoint) -> None:
    """Every committed shard is there, none changed, no game twice, and the counters are what they add up to."""
    shards, counters = checkpoint.state["shards"], checkpoint.state["counters"]
    named = [(shard["name"], shard["sha256"]) for shard in shards]
    assert named[: len(run.committed)] == run.committed, "a committed shard is gone"
    run.committed = named
    for name, digest in named:
        assert sha256_hex((run.run_dir / "replay" / name).read_bytes()) == digest, name
    games = [game for name, _ in named for game in read_shard(run.run_dir / "replay" / name, GAME)]
    under_way = [
        game for name, content in checkpoint.attachments.items() for game in unpack_lanes(content, GAME, name).games
    ]
    seeds = [game.seed for game in (*games, *under_way)]
    assert len(set(seeds)) == len(seeds), "a game is counted twice"
    assert counters["games"] == len(games) == sum(shard["num_games"] for shard in shards)
    searched = [len(game.actions) - game.opening_plies for game in (*games, *under_way)]
    assert counters["positions"] == sum(searched), "positions were lost or counted twice"


def check_metrics(run_dir: Path, checkpoint: Checkpoint) -> None:
    """Each committed iteration has one line, the one under way at most one, and the totals go on."""
    rows = read_metrics(run_dir) if (run_dir / "metrics.jsonl").exists() else []
    numbers = [iteration for iteration, _ in rows]
    assert numbers in (list(range(1, checkpoint.iteration + 1)), list(range(1, checkpoint.iteration + 2))), numbers[-5:]
    total = 0
    for _, metrics in rows:
        total += int(metrics["selfplay/games"] or 0)
        assert metrics["selfplay/total_games"] == total


def check_tensorboard(run_dir: Path, checkpoint: Checkpoint) -> None:
    """What a viewer shows: each committed iteration once."""
    steps: list[int] = []
    for path in sorted((run_dir / "tensorboard").glob("events*"), key=lambda path: path.stat().st_ctime_ns):
        for event in LegacyEventFileLoader(str(path)).Load():
            if event.HasField("session_log"):
                steps = [step for step in steps if step < event.step]
            steps += [event.step for value in event.summary.value if value.tag == "selfplay/games"]
    assert [step for step in steps if step <= checkpoint.iteration] == list(range(1, checkpoint.iteration + 1))


def run_kills(folder: Path, kills: int, *, workers: int, seed: int) -> dict[str, Any]:
    """Kill a run so many times and stop it gently at the end.

    Returns:
        What happened, JSON-able.
    """
    config = folder / "crash.yaml"
    config.write_text(CONFIG.format(workers=workers))
    run = CrashRun(folder / "run", config, random.Random(seed))
    started = time.monotonic()
    for number in range(kills):
        run.kill_somewhere()
        checkpoint = run.check()
        print(f"kill {number + 1}: checkpoint {checkpoint.iteration if checkpoint else None}", file=sys.stderr)
    run.stop_gently()
    checkpoint = run.check()
    assert checkpoint is not None
    assert not list(run.run_dir.rglob(".tmp-*")), "a gentle stop leaves nothing unfinished"
    manifest = json.loads((run.run_dir / "manifest.json").read_text())
    return {
        "kills": dict(run.kills),
        "resumes": len(manifest["resumed"]),
        "iterations": checkpoint.iteration,
        "games": checkpoint.state["counters"]["games"],
        "positions": checkpoint.state["counters"]["positions"],
        "set_aside": len(list(run.run_dir.glob("uncommitted/*"))),
        "minutes": round((time.monotonic() - started) / 60, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--run-dir", type=Path)
    given = parser.parse_args()
    folder = given.run_dir or Path(tempfile.mkdtemp(prefix="crash-"))
    folder.mkdir(parents=True, exist_ok=True)
    print(json.dumps(run_kills(folder, given.kills, workers=given.workers, seed=given.seed)))


if __name__ == "__main__":
    main()
