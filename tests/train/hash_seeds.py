"""Plays a few games in this process, or with two Ray workers, and prints a digest of them: `python -m ... [ray]`."""

import hashlib
import sys

from envs import engine_for, load_variant
from models.evaluator import UniformEvaluator, export_graph, weights_of
from models.network import GameSpec, NetworkConfig, untrained_network
from train.config import from_document
from train.config_sections import RayConfig
from train.selfplay import Assignment
from train.worker import SelfPlayWorker, WorkerTask
from train.workers import RayWorkers

CONFIG = from_document({
    "variant": "gardner",
    "search": {"num_simulations": 8, "fast_simulations": 4},
    "selfplay": {"games_per_worker": 8, "max_plies": 40, "odds_share": 0.5},
})  # fmt: skip
QUOTA, ITERATIONS = 400, 3


def games_here():
    """Knows nothing, evaluates for itself."""
    task = WorkerTask.of(CONFIG, load_variant("gardner"), life=0, graph=b"")
    return SelfPlayWorker(task, 0, evaluator=UniformEvaluator()).play(Assignment(QUOTA, 1, 1))[0]


def games_of_ray():
    variant = load_variant("gardner")
    network = untrained_network(GameSpec.of(engine_for(variant)), NetworkConfig(blocks=1, channels=8), seed=2)
    workers = RayWorkers(WorkerTask.of(CONFIG, variant, life=0, graph=export_graph(network)), 2, RayConfig())
    try:
        weights = weights_of(network)
        calls = range(1, ITERATIONS + 1)
        return [game for call in calls for game in workers.play(weights, QUOTA, call, call, lambda _: None)[0]]
    finally:
        workers.close()


if __name__ == "__main__":
    digest = hashlib.sha256()
    games = games_of_ray() if "ray" in sys.argv else games_here()
    for game in games:
        digest.update(f"{game.seed} {game.start_fen} {game.white_score} {game.termination}".encode())
        for array in (game.actions, game.states, game.policy_actions, game.policy_probs, game.root_values):
            digest.update(array.tobytes())
    print(len(games), digest.hexdigest())
