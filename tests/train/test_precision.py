"""Int8 in a run: admitted by a match alone, remembered by the checkpoint, the same games again."""

import shutil
from types import SimpleNamespace

import numpy as np
import pytest

from envs import engine_for, load_variant
from models.checkpoint import checkpoint_paths, load_checkpoint, save_checkpoint
from models.evaluator import export_graph
from models.quantised import Int8Evaluator
from train import loop, precision
from train.config import ConfigError, from_document
from train.loop import train
from train.metrics import read_metrics
from train.precision import FLOAT32, INT8, Verdict, calibration_positions
from train.progress import Reporter
from train.ratings import score_interval
from train.shards import read_shard

TINY = {
    "variant": "gardner",
    "iterations": 3,
    "workers": 0,
    "search": {"num_simulations": 4, "fast_simulations": 2},
    "selfplay": {"games_per_worker": 8, "positions_per_iteration": 200, "max_plies": 30},
    "network": {"blocks": 1, "channels": 8},
    "learner": {"batch_size": 32, "passes": 1},
    "evaluation": {"games": 4, "simulations": 2, "max_plies": 20},
    "inference": {"precision": "int8", "match_from": 1, "match_games": 4},
    "piece_values": {"bootstrap": 100, "min_games": 1000},
}


@pytest.fixture(autouse=True, scope="module")
def one_export():
    """Export once: all runs here are of one architecture, and weights are published anyway."""
    with pytest.MonkeyPatch.context() as patch:
        graphs: list[bytes] = []
        patch.setattr(
            loop, "export_graph", lambda network: (graphs or graphs.append(export_graph(network)) or graphs)[0]
        )
        yield


def match_of(*pair_scores: float) -> SimpleNamespace:
    """Return what a verdict reads of a match whose pairs scored this for int8."""
    return SimpleNamespace(score=score_interval(pair_scores), settings=SimpleNamespace(games=2 * len(pair_scores)))


def run(folder, *, resume=False, **changes):
    train(from_document({**TINY, **changes}), folder, resume=resume, reporter=Reporter(quiet=True))
    rows = [(number, row) for number, row in read_metrics(folder) if "selfplay/games" in row]
    used = {number: row["selfplay/int8"] for number, row in rows}
    judged = {number: row["eval/score/float32"] for number, row in rows if "eval/score/float32" in row}
    return used, judged


def state_of(folder):
    return load_checkpoint(checkpoint_paths(folder)[0]).state


def test_int8_is_used_only_if_it_is_shown_to_lose_little():
    even = Verdict.of(match_of(*[0.5, 0.25, 0.75] * 60), 10)
    assert (even.iteration, even.games, even.score, even.precision) == (10, 360, 0.5, INT8)
    assert str(even).startswith("self-play uses int8 after iteration 10: at equal simulations int8 scores 0.500 (0.4")
    assert str(even).endswith("against float32 in 360 games; the lower end is at least 0.45")
    for worse in (match_of(*[0.5, 0.25, 0.5] * 60), match_of(0.5, 0.25, 0.75), match_of(0.0, 0.0)):
        verdict = Verdict.of(worse, 10)
        assert verdict.precision == FLOAT32
        assert str(verdict).startswith("self-play uses float32 ")
        assert str(verdict).endswith("the lower end is below 0.45")


def test_the_positions_of_the_calibration_are_the_same_at_each_call_and_differ():
    (observations, legal), again = (calibration_positions(load_variant("gardner")) for _ in range(2))
    np.testing.assert_array_equal(observations, again[0])
    np.testing.assert_array_equal(legal, again[1])
    assert (legal >= 0).any(axis=1).all()
    assert len(np.unique(observations.reshape(len(observations), -1), axis=0)) > 60


def test_a_run_plays_the_match_itself_and_keeps_to_float_where_four_games_show_nothing(tmp_path):
    used, judged = run(tmp_path / "run")
    assert used == {1: 0, 2: 0, 3: 0}
    assert list(judged) == [1]
    kept = Verdict(**state_of(tmp_path / "run")["precision"])
    assert (kept.iteration, kept.games, kept.precision) == (1, 4, FLOAT32)
    assert kept.score == judged[1]


def test_a_run_that_passes_uses_int8_also_when_resumed_and_plays_the_same_games_again(tmp_path, monkeypatch):
    monkeypatch.setattr(precision, "LEAST_SCORE", 0)
    made = []
    monkeypatch.setattr("train.worker.Int8Evaluator", lambda *a, **k: made.append(Int8Evaluator(*a, **k)) or made[-1])
    first, second = tmp_path / "first", tmp_path / "20261130"
    for folder in (first, second):
        assert run(folder, iterations=2)[0] == {1: 0, 2: 1}
    game = engine_for(load_variant("gardner"))
    games = [read_shard(folder / "replay" / "000001.npz", game) for folder in (first, second)]
    assert [record.actions.tolist() for record in games[0]] == [record.actions.tolist() for record in games[1]]
    assert state_of(first)["precision"] == state_of(second)["precision"]
    monkeypatch.setattr("train.run_matches.play_precisions", None)  # never again
    used, judged = run(first, resume=True)
    assert used == {1: 0, 2: 1, 3: 1}
    assert list(judged) == [1]
    assert len(made) == 3


def test_a_checkpoint_from_before_there_was_int8_goes_on_and_lets_it_play_for_admission(tmp_path, monkeypatch):
    folder = tmp_path / "old"
    run(folder, iterations=1, inference={})
    newest = checkpoint_paths(folder)[0]
    checkpoint = load_checkpoint(newest)
    state = {key: value for key, value in checkpoint.state.items() if key != "precision"}
    shutil.rmtree(newest)
    save_checkpoint(folder, 1, tensors=checkpoint.tensors, state=state)
    monkeypatch.setattr(precision, "LEAST_SCORE", 0)
    assert run(folder, resume=True)[0] == {1: 0, 2: 0, 3: 1}
    assert state_of(folder)["precision"]["iteration"] == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"network": {"kind": "own"}}, r"inference\.precision is int8, expected float32 for network\.kind 'own'"),
        ({"iterations": 1}, r"inference\.match_from is 1, expected fewer than iterations = 1"),
        ({"inference": {"precision": "int4"}}, "expected 'float32' or 'int8'"),
        ({"inference": {"match_games": 5}}, "expected a multiple of 2"),
    ],
)
def test_a_config_whose_int8_could_never_play_is_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        from_document({**TINY, **changes})


def test_a_match_that_cannot_be_played_is_refused_before_any_work(tmp_path):
    with pytest.raises(ValueError, match="distinct openings"):
        run(
            tmp_path / "no",
            inference={**TINY["inference"], "match_games": 40},
            evaluation={"games": 4, "random_plies": 1},
        )
    assert not (tmp_path / "no" / "config.yaml").exists()
