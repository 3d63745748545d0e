"""The whole run on the smallest game, in this process: what it leaves, how it goes on, and that it learns."""

import json

import numpy as np
import pytest

from envs import InvalidVariant, engine_for, load_variant
from models.checkpoint import checkpoint_paths, load_checkpoint
from train.config import ConfigError, from_document
from train.interrupts import StopRequest
from train.loop import Trainer, train
from train.metrics import METRICS, read_metrics
from train.progress import Reporter
from train.runs import RunFolder
from train.shards import read_shard

SMALL = {
    "variant": "gardner",
    "iterations": 2,
    "workers": 0,
    "search": {"num_simulations": 8, "fast_simulations": 4, "full_search_share": 0.5},
    "selfplay": {"games_per_worker": 16, "positions_per_iteration": 600, "max_plies": 60, "odds_share": 0.5},
    "network": {"blocks": 1, "channels": 8, "soft_policy": True, "future_pieces": True},
    "learner": {"batch_size": 64, "warmup_steps": 5},
    "evaluation": {"games": 8, "simulations": 4},
    "metrics": {"histograms_every": 0, "pictures_every": 0},
    "piece_values": {"bootstrap": 100, "min_games": 10, "min_games_per_piece": 2},
}


def run(folder, *, resume=False, **changes):
    return train(from_document({**SMALL, **changes}), folder, resume=resume, reporter=Reporter(quiet=True))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "small"
    return run(folder)


def test_a_run_leaves_config_manifest_checkpoints_games_metrics_and_report(finished):
    folder = finished.run_dir
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["variant"] == "gardner"
    assert manifest["rules_hash"]
    assert manifest["versions"]["torch"]
    assert [int(path.name) for path in checkpoint_paths(folder)] == [2, 1, 0]
    assert len(list((folder / "replay").glob("*.npz"))) == 2
    assert list((folder / "tensorboard").glob("events*"))
    assert (folder / "config.yaml").exists()
    if finished.piece_values is not None:
        assert {path.suffix for path in (folder / "report").iterdir()} >= {".png", ".svg", ".csv", ".json"}
    assert finished.match.settings.games == 8


def test_every_committed_shard_is_named_by_the_checkpoint_and_counts_add_up(finished):
    state = load_checkpoint(checkpoint_paths(finished.run_dir)[0]).state
    on_disk = {path.name for path in (finished.run_dir / "replay").glob("*.npz")}
    assert {shard["name"] for shard in state["shards"]} == on_disk
    assert sum(shard["num_games"] for shard in state["shards"]) == state["counters"]["games"]


def test_every_iteration_has_its_metrics(finished):
    rows = read_metrics(finished.run_dir)
    assert [iteration for iteration, _ in rows] == [1, 2, 2]
    first = rows[0][1]
    assert first["selfplay/positions"] >= 600
    assert first["train/steps"] > 0
    assert first["perf/positions_per_s"] > 0
    assert any(name.startswith("eval/score/") for name in rows[-1][1])


def test_every_metric_that_is_explained_is_written(finished):
    written = set().union(*(metrics for _, metrics in read_metrics(finished.run_dir)))
    assert {name for name in METRICS if not name.endswith("*")} <= written
    assert (finished.run_dir / "tensorboard").is_dir()


def test_a_second_run_in_the_same_folder_is_refused(finished):
    with pytest.raises(ConfigError, match="there is a run here already"):
        run(finished.run_dir)


def test_a_second_trainer_on_a_run_is_refused(finished):
    held = RunFolder(finished.run_dir)
    try:
        with pytest.raises(ConfigError, match="another trainer"):
            run(finished.run_dir, resume=True, iterations=3)
    finally:
        held.close()


def test_a_run_killed_before_its_first_checkpoint_begins_again(tmp_path):
    folder = RunFolder(tmp_path / "killed")
    folder.begin(from_document(SMALL), load_variant("gardner"))
    folder.close()
    run(tmp_path / "killed", resume=True, iterations=1)
    assert [int(path.name) for path in checkpoint_paths(tmp_path / "killed")] == [1, 0]


def test_a_match_that_cannot_be_played_is_refused_before_any_work(tmp_path):
    with pytest.raises(ValueError, match="distinct openings"):
        run(tmp_path / "no", evaluation={"games": 8, "simulations": 4, "random_plies": 0})
    assert not (tmp_path / "no" / "config.yaml").exists()


def test_a_game_that_cannot_be_honoured_leaves_no_folder(tmp_path):
    with pytest.raises(InvalidVariant):
        run(tmp_path / "no", variant="gardnr")
    assert not (tmp_path / "no").exists()


def test_a_config_that_was_edited_before_a_run_goes_on_is_warned_about(finished, monkeypatch):
    said: list[str] = []
    monkeypatch.setattr(Reporter, "say", lambda _reporter, text: said.append(text))
    warned = []
    for seed in (1, 2):
        folder = RunFolder(finished.run_dir)
        Trainer(from_document({**SMALL, "seed": seed}), folder, resume=True, reporter=Reporter()).close()
        folder.close()
        warned.append(any("config.yaml has changed" in text for text in said))
    assert warned == [False, True]


def test_games_under_way_of_another_number_of_workers_are_lost_and_the_run_goes_on(tmp_path, monkeypatch):
    said: list[str] = []
    run(tmp_path / "run", iterations=1)
    monkeypatch.setattr(Reporter, "say", lambda _reporter, text: said.append(text))
    selfplay = {**SMALL["selfplay"], "games_per_worker": 8}
    run(tmp_path / "run", resume=True, selfplay=selfplay)
    assert any("the games under way then are lost: " in text and "16 games, expected 8" in text for text in said)


def test_a_run_that_is_asked_to_stop_saves_its_iteration_first(tmp_path, monkeypatch):
    calls = []

    class Stopped(StopRequest):
        @property
        def requested(self) -> bool:
            calls.append(1)
            return len(calls) > 1

        @requested.setter
        def requested(self, value: bool) -> None:
            pass

    monkeypatch.setattr("train.loop.StopRequest", Stopped)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "run", iterations=5)
    assert [int(path.name) for path in checkpoint_paths(tmp_path / "run")] == [1, 0]


def test_a_resumed_run_goes_on_where_it_stopped_and_sets_loose_games_aside(tmp_path):
    folder = tmp_path / "run"
    run(folder, iterations=1)
    before = load_checkpoint(checkpoint_paths(folder)[0]).state
    (folder / "replay" / "000001.npz").write_bytes((folder / "replay" / "000000.npz").read_bytes())
    summary = run(folder, resume=True, iterations=2)
    after = load_checkpoint(checkpoint_paths(folder)[0]).state
    assert summary.run_dir == folder
    assert after["iteration"] == 2
    assert after["counters"]["games"] > before["counters"]["games"]
    assert [path.name.endswith("-000001.npz") for path in (folder / "uncommitted").iterdir()] == [True]
    names = [shard["name"] for shard in after["shards"]]
    assert len(names) == len(set(names))


def test_the_same_seed_makes_the_same_games_and_weights(tmp_path):
    first, second = (run(tmp_path / name, iterations=1).run_dir for name in ("a", "20261130"))
    game = engine_for(load_variant("gardner"))
    games = [read_shard(folder / "replay" / "000000.npz", game) for folder in (first, second)]
    assert [record.actions.tolist() for record in games[0]] == [record.actions.tolist() for record in games[1]]
    tensors = [load_checkpoint(checkpoint_paths(folder)[0]).tensors.model for folder in (first, second)]
    for name, value in tensors[0].items():
        np.testing.assert_array_equal(value.numpy(), tensors[1][name].numpy(), err_msg=name)
