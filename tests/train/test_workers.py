"""Workers: Ray actors play the same games as the same class in this process. Ray is started once, here alone."""

import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest

from envs import engine_for, load_variant
from models.evaluator import export_graph, weights_of
from models.network import GameSpec, NetworkConfig, untrained_network
from models.storage import CheckpointMismatch, CorruptFile
from train.config import from_document
from train.config_sections import RayConfig
from train.plugins import Plugin
from train.reaper import writers
from train.supervisor import DEAD, HUNG, LOST
from train.worker import Chunk, ChunkPlayed
from train.workers import LocalWorkers, RayWorkers, WorkerTask

CONFIG = from_document({
    "variant": "gardner",
    "search": {"num_simulations": 8, "fast_simulations": 4},
    "selfplay": {"games_per_worker": 8, "max_plies": 40},
})  # fmt: skip
ROOT = Path(__file__).resolve().parents[2]
QUOTA, SHORT_QUOTA = 480, 120
PATIENCE = RayConfig(heartbeat_timeout_s=3.0)
GREEDY_PRIOR = b"""
import numpy as np
from train.plugins import register_search_policy

@register_search_policy("greedy_prior")
class GreedyPrior:
    def __init__(self, settings): pass
    def root_noise(self, num_moves, rng): return rng.random(num_moves)
    def select(self, node): return int(node.prior.argmax())
    def conclude(self, root): return int(root.prior.argmax()), np.eye(len(root.prior))[root.prior.argmax()]
"""


@pytest.fixture(scope="module")
def network():
    spec = GameSpec.of(engine_for(load_variant("gardner")))
    return untrained_network(spec, NetworkConfig(blocks=1, channels=8), seed=2)


@pytest.fixture(scope="module")
def task_and_weights(network):
    task = WorkerTask.of(CONFIG, load_variant("gardner"), life=0, graph=export_graph(network))
    return task, weights_of(network)


@pytest.fixture(scope="module")
def ray_workers(task_and_weights):
    workers = RayWorkers(task_and_weights[0], 2, PATIENCE)
    yield workers
    workers.close()
    assert not workers._session.path.exists()


def play(workers, weights, quota: int = SHORT_QUOTA, *, iteration: int, seen=lambda count: None):
    return workers.play(weights, quota, iteration, iteration, seen)


def actor_processes() -> list[psutil.Process]:
    return [
        p for p in psutil.Process().children(recursive=True) if p.cmdline()[:1] and "_WorkerActor" in p.cmdline()[0]
    ]


def test_ray_workers_play_the_games_that_one_process_plays(task_and_weights, ray_workers):
    task, weights = task_and_weights
    seen: list[int] = []
    games, stats = play(ray_workers, weights, QUOTA, iteration=1, seen=seen.append)
    assert 2 * QUOTA <= stats.positions < 2 * QUOTA + 2 * 8
    assert seen == sorted(seen)
    assert seen[-1] == stats.positions
    local = LocalWorkers(task)
    found, alone = play(local, weights, QUOTA, iteration=1)
    assert alone.positions < QUOTA + 8
    by_seed = {game.seed: game for game in games}
    for game in found:
        np.testing.assert_array_equal(game.actions, by_seed[game.seed].actions)
        np.testing.assert_array_equal(game.policy_probs, by_seed[game.seed].policy_probs)
    assert len(by_seed) == len(games) > len(found) > 0
    assert ray_workers.lanes()[0] == local.lanes()[0]


def test_games_under_way_go_on_elsewhere(task_and_weights, ray_workers):
    task, weights = task_and_weights
    lanes = ray_workers.lanes()
    local = LocalWorkers(task)
    local.restore_lanes(lanes[:1])
    ray_workers.restore_lanes(lanes)
    games, _ = play(ray_workers, weights, iteration=2)
    found, _ = play(local, weights, iteration=2)
    assert [game.actions.tolist() for game in found] == [game.actions.tolist() for game in games[: len(found)]]
    assert found


def test_wrong_games_under_way_are_refused_by_name(ray_workers):
    with pytest.raises(CheckpointMismatch, match="of 1 workers, expected 2"):
        ray_workers.restore_lanes([b""])
    lanes = ray_workers.lanes()
    with pytest.raises(CorruptFile, match="lanes of worker 1"):
        ray_workers.restore_lanes([lanes[0], lanes[1][:-40]])


def test_a_killed_and_a_suspended_worker_are_replaced_and_every_quota_is_met(task_and_weights, ray_workers):
    _, weights = task_and_weights
    play(ray_workers, weights, iteration=3)
    before = {process.pid for process in actor_processes()}
    assert len(before) == 2
    first, second = sorted(before)
    started = threading.Event()

    def strike() -> None:
        started.wait(30)
        os.kill(first, signal.SIGKILL)
        os.kill(second, signal.SIGSTOP)

    thread = threading.Thread(target=strike)
    thread.start()
    games, stats = play(ray_workers, weights, 2400, iteration=4, seen=lambda _: started.set())
    thread.join()
    assert 2 * 2400 <= stats.positions < 2 * 2400 + 4 * 8
    assert len({game.seed for game in games}) == len(games)
    assert (ray_workers.faults[DEAD], ray_workers.faults[HUNG]) == (1, 1)
    assert 0 < ray_workers.faults[LOST] <= 2 * 8 * 40
    now = {process.pid for process in actor_processes()}
    assert len(now) == 2
    assert not now & before
    assert not psutil.pid_exists(second)


def test_what_a_worker_s_own_code_raises_surfaces_at_once(task_and_weights, ray_workers):
    broken = {name: array[..., :0] for name, array in task_and_weights[1].items()}
    with pytest.raises(ValueError, match="of another architecture"):
        play(ray_workers, broken, iteration=5)
    assert sum(ray_workers.faults[name] for name in (DEAD, HUNG)) == 2
    play(ray_workers, task_and_weights[1], iteration=6)


def test_a_local_ray_listens_on_loopback_only_and_refuses_who_has_no_token(ray_workers):
    ours = {p.pid for p in writers(ray_workers._session.path)}
    assert len(ours) >= 8
    listening = [c for c in psutil.net_connections("tcp") if c.status == psutil.CONN_LISTEN and c.pid in ours]
    assert len(listening) >= 5
    assert {connection.laddr.ip for connection in listening} <= {"127.0.0.1", "::ffff:127.0.0.1"}
    address = ray_workers._ray.get_runtime_context().gcs_address
    ask = [sys.executable, "-m", "ray.scripts.scripts", "health-check", "--address", address]
    for changes, code in (({}, 0), ({"RAY_AUTH_MODE": "disabled"}, 1), ({"RAY_AUTH_TOKEN": "0" * 64}, 1)):
        found = subprocess.run(ask, env={**os.environ, **changes}, capture_output=True, text=True, check=False)
        assert found.returncode == code, found.stderr
        assert code == 0 or "InvalidAuthToken" in found.stderr


def test_a_search_policy_of_ones_own_reaches_a_ray_worker_by_content(task_and_weights, ray_workers):
    task, weights = task_and_weights
    policy = Plugin("greedy_prior.py", GREEDY_PRIOR)
    own = replace(task, search=task.search.model_copy(update={"policy": "greedy_prior"}), plugins=(policy,))
    ray = ray_workers._ray
    actor = ray_workers._fleet._worker.options(num_cpus=0).remote(own, 0, None, None)
    played = ray.get(actor.play_chunk.remote([ray.put(weights)], Chunk(True, SHORT_QUOTA, 1, 1)))
    local, _ = play(LocalWorkers(own), weights, iteration=1)
    assert local
    assert [game.actions.tolist() for game in played.games] == [game.actions.tolist() for game in local]
    assert all(game.policy_probs.max() == 1 for game in played.games)
    ray.kill(actor)


def test_workers_share_an_inference_actor_that_may_die(task_and_weights, ray_workers):
    task, weights = task_and_weights
    ray, fleet = ray_workers._ray, ray_workers._fleet
    inference = fleet.inference_class("cpu").options(num_cpus=0).remote(fleet._shared, "cpu", PATIENCE, 2)
    actors = [fleet._worker.options(num_cpus=0).remote(task, number, None, inference) for number in range(2)]
    published = [ray.put(weights)]

    def make(target: int) -> list[ChunkPlayed]:
        chunk = Chunk(target == SHORT_QUOTA, target, 1, 1)
        return ray.get([actor.play_chunk.remote(published, chunk) for actor in actors], timeout=120)

    parts = [make(SHORT_QUOTA)]
    os.kill(ray.get(inference.ping.remote())[0], signal.SIGKILL)
    parts.append(make(2 * SHORT_QUOTA))
    local, stats = play(LocalWorkers(task), weights, 2 * SHORT_QUOTA, iteration=1)
    assert sum(part[0].stats.positions for part in parts) == stats.positions
    games = [game for part in parts for game in part[0].games]
    # Batches of another size round otherwise, which may change a move late in a game.
    same = [np.array_equal(game.actions, other.actions) for game, other in zip(games, local, strict=False)]
    assert np.mean(same) > 0.8
    for actor in (*actors, inference):
        ray.kill(actor)


def test_workers_that_use_int8_play_the_same_games_in_ray_and_in_this_process(task_and_weights, ray_workers):
    task, weights = task_and_weights
    lanes = ray_workers.lanes()
    local, single = LocalWorkers(task), LocalWorkers(task)
    for workers in (local, single):
        workers.restore_lanes(lanes[:1])
    for workers in (ray_workers, local):
        workers.use_int8()
    games, _ = play(ray_workers, weights, QUOTA, iteration=8)
    found, _ = play(local, weights, QUOTA, iteration=8)
    other, _ = play(single, weights, QUOTA, iteration=8)
    assert found
    assert [game.actions.tolist() for game in found] == [game.actions.tolist() for game in games[: len(found)]]
    values = [np.concatenate([game.root_values for game in those]) for those in (found, other)]
    assert values[0].tolist() != values[1].tolist()


def test_the_same_games_are_played_whatever_python_s_hash_seed():
    assert len(set(digests_by_hash_seed())) == 1


@pytest.mark.slow
def test_ray_workers_play_the_same_games_whatever_the_hash_seed_and_the_timing():
    assert len(set(digests_by_hash_seed("ray"))) == 1


def digests_by_hash_seed(*arguments: str) -> list[str]:
    """Play in processes of their own; return what each printed: a number of games and a digest."""
    program = [sys.executable, "-m", "tests.train.hash_seeds", *arguments]
    players = [
        subprocess.Popen(
            program, cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": seed}, stdout=subprocess.PIPE, text=True
        )
        for seed in ("1", "2")
    ]
    found = [player.communicate(timeout=600)[0].strip() for player in players]
    assert all(int(line.split()[0]) > 5 for line in found), found
    return found
