"""A supervised start: its games, what is learnt from them, and what is refused."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch

from envs import engine_for, load_variant
from models.checkpoint import CheckpointMismatch
from models.network import GameSpec, NetworkConfig, untrained_network
from tests.train.learner_batches import flat, one_thread  # noqa: F401 - the fixture is used by being here
from train import warm_start as module
from train.baselines import BASELINES, RandomPlayer
from train.config import ConfigError, RunConfig
from train.config_sections import LearnerConfig, NetworkSection, ReplayConfig, WarmStartConfig
from train.learner import Learner
from train.losses import mean_losses
from train.progress import Reporter
from train.replay import ReplayBuffer
from train.shards import read_shard, write_shard
from train.verification import verify_game
from train.warm_start import FOLDER, check_warm_start, play_games, warm_start

VARIANT = load_variant("gardner", {})
GAME = engine_for(VARIANT)
QUICK = WarmStartConfig(player="lowest", games=20, max_plies=24, random_plies=3, passes=1.0)
LONGER = QUICK.model_copy(update={"games": 48, "max_plies": 40, "passes": 6.0})


@dataclass
class LowestAction:
    """Plays the legal action of the lowest number."""

    name: str = "lowest"

    def choose(self, env, lanes, rng):
        return np.array([env.legal_actions(lane).min() for lane in lanes], np.int32)


@pytest.fixture(autouse=True)
def player(monkeypatch):
    monkeypatch.setitem(BASELINES, "lowest", LowestAction)
    monkeypatch.setattr(module, "num_cores", lambda: 1)


def make_config(start: WarmStartConfig = QUICK, seed: int = 3) -> RunConfig:
    return RunConfig(
        variant="gardner",
        seed=seed,
        network=NetworkSection(blocks=1, channels=16, squeeze_excitation=False),
        learner=LearnerConfig(batch_size=64, learning_rate=0.01, warmup_steps=10),
        replay=ReplayConfig(held_out_share=0.2),
        warm_start=start,
    )


def make_learner(cfg: RunConfig) -> Learner:
    network = untrained_network(GameSpec.of(GAME), NetworkConfig(**cfg.network.model_dump()), seed=cfg.seed)
    return Learner(network, cfg.learner, device="cpu")


def start(cfg: RunConfig, run_dir: Path) -> tuple[Learner, dict[str, float]]:
    learner = make_learner(cfg)
    return learner, warm_start(cfg, GAME, learner, run_dir=run_dir, reporter=Reporter(quiet=True))


def unseen_losses(learner: Learner, folder: Path) -> dict[str, float]:
    """Return a learner's losses on other games of the same player."""
    games = play_games(VARIANT, LowestAction(), QUICK, seed=99)
    window = ReplayBuffer(GAME, ReplayConfig(mirror=False), outcome_weight=1.0)
    window.add(folder, write_shard(folder, "unseen", games, GAME))
    return mean_losses(learner.playing_network, [window.sample(np.random.default_rng(0), 512)])


def test_the_network_predicts_the_players_moves_and_results_better_than_before(tmp_path):
    cfg = make_config(LONGER)
    before = unseen_losses(make_learner(cfg), tmp_path / "a")
    learner, done = start(cfg, tmp_path)
    after = unseen_losses(learner, tmp_path / "b")
    assert after["policy_loss"] < 0.5 * before["policy_loss"]
    assert after["value_loss"] < before["value_loss"]
    assert (learner.steps, learner.snapshots) == (done["steps"], 1)
    assert done["games"] > 40
    assert {"policy_loss", "value_loss", "held_out_policy_loss", "held_out_value_loss"} < done.keys()


def test_the_games_are_stored_where_they_were_played_and_right_by_the_rules(tmp_path):
    _, done = start(make_config(), tmp_path)
    games = read_shard(tmp_path / FOLDER / "000000.npz", GAME)
    assert len(games) == done["games"]
    assert all(verify_game(GAME, game) is None for game in games)
    assert {game.opening_plies for game in games} == set(range(4))
    assert any(game.held_out for game in games)
    assert sum(game.num_plies - game.opening_plies for game in games if not game.held_out) == done["rows"]


def test_after_the_opening_the_policy_is_the_players_move_and_the_root_value_nothing():
    for game in play_games(VARIANT, LowestAction(), QUICK, seed=1):
        counts = np.diff(game.policy_index)
        np.testing.assert_array_equal(counts, np.arange(game.num_plies) >= game.opening_plies)
        np.testing.assert_array_equal(game.policy_actions, game.actions[game.opening_plies :])
        assert (game.policy_probs == 1).all()
        assert (game.root_values == 0).all()


def test_the_value_target_of_a_players_game_is_its_result_alone(tmp_path, monkeypatch):
    weights = []
    original = ReplayBuffer.__init__

    def spy(self, *args, outcome_weight, **others):
        weights.append(outcome_weight)
        original(self, *args, outcome_weight=outcome_weight, **others)

    monkeypatch.setattr(ReplayBuffer, "__init__", spy)
    start(make_config(), tmp_path)
    stored = QUICK.model_copy(update={"player": None, "shards": str(tmp_path / FOLDER)})
    start(make_config(stored), tmp_path / "other")
    assert weights == [1.0, LearnerConfig().outcome_weight]


def test_the_same_seed_gives_the_same_games_and_weights_and_another_seed_others(tmp_path):
    learners = [start(make_config(seed=seed), tmp_path / str(number))[0] for number, seed in enumerate((3, 3, 4))]
    weights = [flat(learner.tensors().learner) for learner in learners]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
    contents = [(tmp_path / str(number) / FOLDER / "000000.npz").read_bytes() for number in range(3)]
    assert contents[0] == contents[1] != contents[2]


def test_a_start_that_was_killed_is_made_again(tmp_path):
    cfg = make_config()
    learner, done = start(cfg, tmp_path)
    again, redone = start(cfg, tmp_path)
    assert done == redone
    assert torch.equal(flat(learner.tensors().model), flat(again.tensors().model))


def test_stored_games_train_as_well(tmp_path):
    games = play_games(VARIANT, RandomPlayer(), QUICK, seed=5)
    for number, part in enumerate((games[:12], games[12:])):
        write_shard(tmp_path / "given", str(number), part, GAME)
    stored = QUICK.model_copy(update={"player": None, "shards": str(tmp_path / "given")})
    learner, done = start(make_config(stored), tmp_path / "run")
    assert done["games"] == len(games)
    assert learner.steps == done["steps"] > 0
    assert sorted(path.name for path in (tmp_path / "run" / FOLDER).iterdir()) == ["000000.npz", "000001.npz"]


def test_nothing_is_done_unless_asked_for(tmp_path):
    learner, done = start(make_config(WarmStartConfig()), tmp_path)
    assert done == {}
    assert (learner.steps, learner.snapshots) == (0, 0)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_player_is_refused_with_the_nearest_name(tmp_path):
    asked = QUICK.model_copy(update={"player": "gredy"})
    with pytest.raises(ConfigError, match=r"warm_start\.player: 'gredy' is not known, did you mean 'greedy'\?"):
        check_warm_start(asked)
    with pytest.raises(ConfigError, match="gredy"):
        start(make_config(asked), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_without_shards_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"warm_start\.shards: no \.npz file in"):
        check_warm_start(WarmStartConfig(shards=str(tmp_path)))


def test_shards_of_another_game_are_refused(tmp_path):
    other = load_variant("chess", {})
    games = play_games(other, RandomPlayer(), QUICK.model_copy(update={"games": 2}), seed=1)
    write_shard(tmp_path / "given", "chess", games, engine_for(other))
    stored = WarmStartConfig(shards=str(tmp_path / "given"))
    with pytest.raises(CheckpointMismatch, match=r"chess\.npz: games of another game than"):
        start(make_config(stored), tmp_path / "run")


def test_games_without_any_policy_leave_nothing_to_learn(tmp_path):
    game = play_games(VARIANT, RandomPlayer(), QUICK.model_copy(update={"games": 1}), seed=1)[0]
    bare = dataclasses.replace(
        game,
        policy_index=np.zeros_like(game.policy_index),
        policy_actions=game.policy_actions[:0],
        policy_probs=game.policy_probs[:0],
    )
    write_shard(tmp_path / "given", "bare", [bare], GAME)
    cfg = make_config(WarmStartConfig(shards=str(tmp_path / "given")))
    with pytest.raises(ValueError, match="no position with a policy to learn from"):
        start(cfg.model_copy(update={"replay": ReplayConfig(held_out_share=0)}), tmp_path / "run")
