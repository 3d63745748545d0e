"""Workers under fire, for minutes: killed, suspended, their trainer killed; nothing is lost, nothing stays behind."""

import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from envs import engine_for, load_variant
from models.evaluator import export_graph, weights_of
from models.network import GameSpec, NetworkConfig, untrained_network
from train.cluster import check_cluster
from train.config import ConfigError, from_document
from train.config_sections import RayConfig
from train.reaper import PREFIX, reap
from train.supervisor import DEAD, HUNG, LOST
from train.workers import RayWorkers, WorkerTask

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
LANES, QUOTA, WORKERS = 16, 3000, 2
CONFIG = from_document({
    "variant": "gardner",
    "search": {"num_simulations": 8, "fast_simulations": 4},
    "selfplay": {"games_per_worker": LANES, "max_plies": 60},
})  # fmt: skip
STRESS_S, STRIKE_EVERY_S = 180, (3.0, 6.0)
TINY_RUN = (
    "workers=2", "iterations=1000", "network={blocks: 1, channels: 8}", "evaluation.every=0",
    "selfplay={games_per_worker: 8, positions_per_iteration: 400, max_plies: 40}",
)  # fmt: skip
GONE_WITHIN_S = 15.0


@pytest.fixture(scope="module")
def task_and_weights():
    variant = load_variant("gardner")
    network = untrained_network(GameSpec.of(engine_for(variant)), NetworkConfig(blocks=1, channels=8), seed=2)
    return WorkerTask.of(CONFIG, variant, life=0, graph=export_graph(network)), weights_of(network)


def actor_processes() -> list[psutil.Process]:
    children = psutil.Process().children(recursive=True)
    return [child for child in children if "_WorkerActor" in " ".join(child.cmdline()[:1])]


def is_playing(process: psutil.Process) -> bool:
    """Whether a worker has started (which takes long on a busy machine), and has not been suspended."""
    try:
        return "play_chunk" in process.cmdline()[0] and process.status() != psutil.STATUS_STOPPED
    except (psutil.NoSuchProcess, IndexError):
        return False


def strike(stop: threading.Event, struck: dict[str, int]) -> None:
    """Kill a worker that plays every few seconds, and suspend one now and then, until told to stop."""
    rng = random.Random(1)
    while not stop.wait(rng.uniform(*STRIKE_EVERY_S)):
        victims = [process for process in actor_processes() if is_playing(process)]
        if victims:
            victim = rng.choice(victims)
            kind = "suspended" if sum(struck.values()) % 8 == 4 else "killed"
            victim.send_signal(signal.SIGSTOP if kind == "suspended" else signal.SIGKILL)
            struck[kind] += 1


def test_three_minutes_of_killed_and_suspended_workers_end_with_exact_counts_at_full_strength(task_and_weights):
    task, weights = task_and_weights
    workers = RayWorkers(task, WORKERS, RayConfig(heartbeat_timeout_s=8.0, max_restarts=30))
    try:
        workers.play(weights, QUOTA, 0, 1, lambda _: None)
        stop, struck = threading.Event(), {"killed": 0, "suspended": 0}
        thread = threading.Thread(target=strike, args=(stop, struck))
        thread.start()
        begun, seeds, positions, games, iteration = time.monotonic(), set(), 0, 0, 1
        while time.monotonic() - begun < STRESS_S:
            iteration += 1
            deaths = workers.faults[DEAD] + workers.faults[HUNG]
            played, stats = workers.play(weights, QUOTA, iteration, iteration, lambda _: None)
            deaths = workers.faults[DEAD] + workers.faults[HUNG] - deaths
            assert WORKERS * QUOTA <= stats.positions < WORKERS * QUOTA + (WORKERS + deaths) * LANES
            games, positions = games + len(played), positions + stats.positions
            seeds.update(game.seed for game in played)
        stop.set()
        thread.join()
        workers.play(weights, QUOTA, iteration + 1, iteration + 1, lambda _: None)
        print(f"{iteration - 1} iterations, {positions} positions, {games} games, {struck}, {dict(workers.faults)}")
        assert len(seeds) == games
        # On a machine that is busy enough a healthy worker may be taken for a hung one.
        assert workers.faults[DEAD] == struck["killed"]
        assert workers.faults[HUNG] >= struck["suspended"] >= 1
        assert 0 < workers.faults[LOST] <= sum(struck.values()) * LANES * 60
        assert len(actor_processes()) == WORKERS
    finally:
        workers.close()


def test_two_hundred_iterations_leave_nothing_in_the_object_store(task_and_weights):
    task, weights = task_and_weights
    workers = RayWorkers(task, WORKERS, RayConfig())
    try:

        def shared_bytes() -> int:
            return sum(process.memory_info().shared for process in actor_processes())

        sizes, stored = [], []
        big = {**weights}
        for iteration in range(1, 201):
            workers.play(big, 100, iteration, iteration, lambda _: None)
            if iteration % 50 == 0:
                workers.lanes()
                sizes.append([process.memory_info().rss for process in [psutil.Process(), *actor_processes()]])
                available = workers._ray.available_resources()["object_store_memory"]
                stored.append(workers._ray.cluster_resources()["object_store_memory"] - available)
        print(sizes, stored)
        assert max(stored) == min(stored)
        assert all(last - first < 8 << 20 for first, last in zip(sizes[1], sizes[-1], strict=True))
    finally:
        workers.close()


def start_trainer(run_dir: Path) -> tuple[subprocess.Popen[bytes], list[psutil.Process], Path]:
    """Start a tiny run; return it, the processes that it has started, and its Ray's folder, once it plays."""
    settings = [word for setting in TINY_RUN for word in ("--set", setting)]
    program = [sys.executable, "scripts/train.py", "configs/gardner.yaml", "--run-dir", str(run_dir), *settings]
    log = (run_dir.parent / "log").open("wb")
    trainer = subprocess.Popen(program, cwd=ROOT, stdout=log, stderr=log, start_new_session=True)
    deadline = time.monotonic() + 480
    while not (run_dir / "checkpoints" / "000001" / "MANIFEST.json").exists():
        assert trainer.poll() is None, (run_dir.parent / "log").read_text()[-3000:]
        assert time.monotonic() < deadline
        time.sleep(0.2)
    children = psutil.Process(trainer.pid).children(recursive=True)
    (store,) = (child for child in children if "gcs_server" in child.cmdline()[0])
    (folder,) = (Path(word.partition("=")[2]).parents[1] for word in store.cmdline() if word.startswith("--log_dir="))
    return trainer, children, folder


def is_there(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize("way", ["SIGKILL", "SIGTERM", "SIGINT twice", "SIGKILL with a suspended worker"])
def test_no_process_and_no_file_of_ray_outlives_the_trainer(way, tmp_path, request):
    trainer, children, folder = start_trainer(tmp_path / "run")
    request.addfinalizer(trainer.kill)
    workers = [child for child in children if "_WorkerActor" in " ".join(child.cmdline())]
    assert len(workers) == 2
    assert folder.name.startswith(PREFIX)
    assert any(folder.iterdir())
    if "suspended" in way:
        workers[0].suspend()
    if way == "SIGINT twice":
        os.killpg(trainer.pid, signal.SIGINT)  # as Ctrl-C does
        time.sleep(0.5)
        os.killpg(trainer.pid, signal.SIGINT)
    else:
        trainer.send_signal(signal.Signals[way.split()[0]])
    trainer.wait(120)
    ended = time.monotonic()
    while any(map(is_there, children)) or folder.exists():
        left = [" ".join(child.cmdline())[:80] for child in children if is_there(child)]
        assert time.monotonic() < ended + GONE_WITHIN_S, left
        time.sleep(0.1)
    print(f"{way}: {len(children)} processes gone {time.monotonic() - ended:.1f} s after the trainer")


def test_a_cluster_that_asks_for_no_token_is_refused_and_so_is_a_wrong_token(tmp_path):
    """Two heads, one after the other; each ends with the processes that it has started."""
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "5" * 32}
    with head_node(tmp_path / "open", {"RAY_AUTH_MODE": "disabled"}) as address:
        with pytest.raises(ConfigError, match=r"asks for no token.*RAY_AUTH_MODE=token.*allow_unauthenticated"):
            check_cluster(address, allow_unauthenticated=False)
        check_cluster(address, allow_unauthenticated=True)
    with pytest.raises(ConfigError, match="no Ray cluster answers there"):
        check_cluster(address, allow_unauthenticated=False)
    with head_node(tmp_path / "closed", token) as address, pytest.MonkeyPatch.context() as patch:
        patch.delenv("RAY_AUTH_TOKEN_PATH", raising=False)
        for name, value in token.items():
            patch.setenv(name, value)
        check_cluster(address, allow_unauthenticated=False)
        patch.setenv("RAY_AUTH_TOKEN", "6" * 32)
        with pytest.raises(ConfigError, match=r"refuses our token.*RAY_AUTH_TOKEN, or RAY_AUTH_TOKEN_PATH"):
            check_cluster(address, allow_unauthenticated=False)


@contextmanager
def head_node(folder: Path, environment: dict[str, str]) -> Iterator[str]:
    """Start the head of a cluster; yield its address; end what it has started."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    temp = Path(tempfile.mkdtemp(prefix="az-", dir="/tmp"))
    program = [
        sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", f"--port={port}", "--num-cpus=1",
        "--include-dashboard=false", f"--temp-dir={temp}", "--disable-usage-stats", "--node-ip-address=127.0.0.1",
    ]  # fmt: skip
    with (temp / "log").open("wb") as log:
        head = subprocess.Popen(program, env={**os.environ, **environment}, stdout=log, stderr=log)
        try:
            deadline = time.monotonic() + 120
            while b"runtime started" not in (temp / "log").read_bytes():
                assert time.monotonic() < deadline, (temp / "log").read_text()
                assert head.poll() is None, (temp / "log").read_text()
                time.sleep(0.2)
            yield f"127.0.0.1:{port}"
        finally:
            head.kill()
            head.wait()
            reap(temp, spared=os.getpid())
