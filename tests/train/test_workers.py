"""Workers: Ray actors play the same games as the same class in this process. Ray is started once, here alone."""

import os
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from envs import engine_for, load_variant
from models.evaluator import export_graph, weights_of
from models.network import GameSpec, NetworkConfig, untrained_network
from train.config import from_document
from train.plugins import Plugin
from train.workers import LocalWorkers, RayWorkers, SelfPlayWorker, WorkerTask

CONFIG = from_document({
    "variant": "gardner",
    "search": {"num_simulations": 8, "fast_simulations": 4},
    "selfplay": {"games_per_worker": 8, "max_plies": 40},
})  # fmt: skip
QUOTA, SHORT_QUOTA = 480, 120
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
def task_and_weights():
    variant = load_variant("gardner")
    network = untrained_network(GameSpec.of(engine_for(variant)), NetworkConfig(blocks=1, channels=8), seed=2)
    return WorkerTask.of(CONFIG, variant, life=0, graph=export_graph(network)), weights_of(network)


@pytest.fixture(scope="module")
def ray_workers(task_and_weights):
    workers = RayWorkers(task_and_weights[0], 2, None)
    yield workers
    workers.close()


def test_ray_workers_play_the_games_that_one_process_plays(task_and_weights, ray_workers):
    task, weights = task_and_weights
    seen: list[int] = []
    games, stats = ray_workers.play(weights, QUOTA, 1, seen.append)
    assert 2 * QUOTA <= stats.positions < 2 * QUOTA + 16 * 8
    assert seen == sorted(seen)
    assert seen[-1] == stats.positions
    local, _ = LocalWorkers(task).play(weights, QUOTA, 1, lambda _: None)
    by_seed = {game.seed: game for game in games}
    assert local
    for game in local:
        np.testing.assert_array_equal(game.actions, by_seed[game.seed].actions)
        np.testing.assert_array_equal(game.policy_probs, by_seed[game.seed].policy_probs)
    assert len(by_seed) == len(games) > len(local)


def test_games_go_on_across_calls_with_newer_weights(task_and_weights, ray_workers):
    _, weights = task_and_weights
    games = [game for version in (5, 6) for game in ray_workers.play(weights, SHORT_QUOTA, version, lambda _: None)[0]]
    assert {game.model_version for game in games} <= {5, 6}
    most_in_one_call = SHORT_QUOTA / CONFIG.selfplay.games_per_worker + 8
    assert any(game.num_plies - game.opening_plies > most_in_one_call for game in games)


def test_a_search_policy_of_ones_own_reaches_a_ray_worker_by_content(task_and_weights, ray_workers, tmp_path):
    task, weights = task_and_weights
    policy = Plugin("greedy_prior.py", GREEDY_PRIOR)
    own = replace(task, search=task.search.model_copy(update={"policy": "greedy_prior"}), plugins=(policy,))
    ray = ray_workers._ray
    actor = ray.remote(num_cpus=0)(SelfPlayWorker).remote(own, 0)
    games, _ = ray.get(actor.play.remote(weights, SHORT_QUOTA, 1))
    local, _ = LocalWorkers(own).play(weights, SHORT_QUOTA, 1, lambda _: None)
    assert local
    assert [game.actions.tolist() for game in games] == [game.actions.tolist() for game in local]
    assert all(game.policy_probs.max() == 1 for game in games)


def test_workers_that_use_int8_play_the_same_games_in_ray_and_in_this_process(task_and_weights, ray_workers):
    task, weights = task_and_weights
    ray = ray_workers._ray
    actor = ray.remote(num_cpus=0)(SelfPlayWorker).remote(task, 0)
    RayWorkers.use_int8(SimpleNamespace(_ray=ray, _actors=[actor]))
    games, _ = ray.get(actor.play.remote(weights, QUOTA, 1))
    local = LocalWorkers(task)
    local.use_int8()
    found, _ = local.play(weights, QUOTA, 1, lambda _: None)
    single, _ = LocalWorkers(task).play(weights, QUOTA, 1, lambda _: None)
    assert [game.actions.tolist() for game in games] == [game.actions.tolist() for game in found]
    assert games
    values = [np.concatenate([game.root_values for game in those]) for those in (found, single)]
    assert found
    assert values[0].tolist() != values[1].tolist()


def test_local_ray_asks_for_a_token(ray_workers):
    assert os.environ["RAY_AUTH_MODE"] == "token"
