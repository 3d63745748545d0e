"""The observer: what an iteration's games become, in numbers, histograms, pictures and a line."""

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import envs
from envs import CompiledGame, engine_for, load_variant
from envs.board_picture import BoardView
from models.network import GameSpec, NetworkConfig, PolicyValueNetwork, untrained_network
from tests.train.stored_run import config, random_games
from train.iteration_metrics import RESIGNATION, StepMeans, Stopwatch, game_numbers, search_numbers, value_error
from train.learner import Learner
from train.metrics import HISTOGRAMS, METRICS, PICTURES, is_known, read_metrics
from train.observer import Iteration, RunObserver, layer_histograms, policy_entropies
from train.pictures import draw_boards, last_positions
from train.replay import ReplayBuffer
from train.selfplay import SelfPlayStats
from train.shards import GameRecord, write_shard

STEP = {"loss": 2.0, "policy_loss": 1.0, "learning_rate": 0.1, "skipped": 0.0}


@pytest.fixture(scope="module")
def game() -> CompiledGame:
    return engine_for(load_variant("gardner"))


@pytest.fixture(scope="module")
def games(game: CompiledGame) -> list[GameRecord]:
    return [with_policies(game, record) for record in random_games(game, 12, seed=3, max_plies=60)]


def with_policies(game: CompiledGame, record: GameRecord) -> GameRecord:
    """Give every other ply a policy target that is even over the legal moves."""
    legal, counts = envs.legal_actions(game, record.states)
    counts = np.where(np.arange(record.num_plies) % 2, counts, 0)
    rows = [legal[ply, :count] for ply, count in enumerate(counts)]
    return dataclasses.replace(
        record,
        policy_index=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        policy_actions=np.concatenate(rows).astype(np.int32),
        policy_probs=np.concatenate([np.full(count, 1 / count) for count in counts if count]).astype(np.float32),
    )


def a_network(game: CompiledGame, *, blocks: int = 1) -> PolicyValueNetwork:
    cfg = NetworkConfig(blocks=blocks, channels=8, value_channels=2, value_hidden=8)
    return untrained_network(GameSpec.of(game), cfg, seed=1)


def observed(folder: Path, game: CompiledGame, games: Sequence[GameRecord], **changes: Any) -> list[str]:
    """Let an observer see two iterations of the same games; return its lines."""
    cfg = config(iterations=5, metrics={"histograms_every": 3, "pictures_every": 3}, replay={"held_out_share": 0.0})
    replay = ReplayBuffer(game, cfg.replay)
    observer = RunObserver(folder, cfg, game, learner=Learner(a_network(game), cfg.learner), resume_after=None)
    shards, lines = [], []
    for number in (1, 2):
        steps = StepMeans()
        steps.add(STEP)
        shards.append(write_shard(folder / "replay", f"{number - 1:06d}", games, game))
        replay.add(folder / "replay", shards[-1])
        with observer.clock.time("selfplay"):
            stats = SelfPlayStats(positions=100, full_searches=50, evaluations=400, depths=800)
        made = Iteration(number, games, stats, steps, new_rows=64, totals={"selfplay/total_games": 24}, **changes)
        lines.append(observer.iteration(made, replay, shards))
    observer.close()
    return lines


def test_every_iteration_has_every_metric_that_stands_for_itself(
    game: CompiledGame, games: list[GameRecord], tmp_path: Path
) -> None:
    lines = observed(tmp_path, game, games, faults={"restarted_dead": 2})
    rows = read_metrics(tmp_path)
    assert [number for number, _ in rows] == [1, 2]
    for _, metrics in rows:
        assert {name for name in METRICS if not name.endswith("*")} <= set(metrics)
        assert all(is_known(name) for name in metrics)
    first, second = rows[0][1], rows[1][1]
    assert first["selfplay/games"] == 12
    assert (first["train/loss"], first["train/learning_rate"], first["train/epochs"]) == (2.0, 0.1, 4.0)
    assert first["train/held_out_value_loss"] is None  # there were no held-out games
    assert first["faults/restarted_dead"] == 2
    assert (first["perf/observe_s"] or 0) > 0
    assert (first["buffer/age"], second["buffer/age"]) == (0.0, 0.5)
    assert lines[0].startswith("[1/5] 12 games, ")
    assert "idle" in lines[0]


def test_histograms_and_pictures_come_with_the_first_iteration_and_every_so_many(
    game: CompiledGame, games: list[GameRecord], tmp_path: Path
) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    observed(tmp_path, game, games)
    board = EventAccumulator(str(tmp_path / "tensorboard"))
    board.Reload()
    assert {name for name in HISTOGRAMS if name.startswith("games/")} <= set(board.Tags()["histograms"])
    assert any(name.startswith("weights/stem") for name in board.Tags()["histograms"])
    assert set(board.Tags()["images"]) == set(PICTURES) - {"eval/ladder"}  # which a ladder writes
    assert [event.step for event in board.Images("search/position")] == [1]
    plies = board.Histograms("games/plies")[0].histogram_value
    assert (plies.num, plies.max) == (12, max(record.num_plies for record in games))
    texts = {name: board.Tensors(name)[0].tensor_proto.string_val[0] for name in board.Tags()["tensors"]}
    assert b"variant: gardner" in texts["config/text_summary"]
    assert b"heckmate" in texts["rules/text_summary"]
    assert b"| plane |" in texts["actions/text_summary"]


def test_a_game_that_was_resigned_is_finished_and_not_cut(games: list[GameRecord]) -> None:
    resigned = dataclasses.replace(games[0], white_score=1.0, termination=0, resigned="b")
    cut = dataclasses.replace(games[1], white_score=math.nan, termination=0)
    numbers = game_numbers([resigned, cut])
    assert numbers["selfplay/resigned_share"] == numbers["outcome/cut_share"] == 0.5
    assert numbers[f"outcome/ended_by/{RESIGNATION}"] == numbers["outcome/white_score"] == 1.0
    stats = SelfPlayStats(positions=1, resignations_checked=4, resignations_wrong=1)
    cfg = config(
        search={"num_simulations": 8, "stages": [{"iteration": 3, "num_simulations": 9, "fast_simulations": 5}]}
    )
    searched = search_numbers(stats, cfg.search, 3)
    assert searched["selfplay/resign_false_positive_share"] == 0.25
    assert (searched["search/full_budget"], searched["search/fast_budget"]) == (9, 5)


def test_equal_games_are_not_distinct_and_no_games_have_no_shares(games: list[GameRecord]) -> None:
    assert game_numbers([games[0], games[0], games[1]])["selfplay/distinct_share"] == pytest.approx(1 / 3)
    assert game_numbers([])["selfplay/distinct_share"] is None
    assert game_numbers([])["outcome/white_score_low"] is None


def test_root_values_that_say_the_result_have_no_error_and_the_opposite_has_four(
    game: CompiledGame, games: list[GameRecord]
) -> None:
    record = next(record for record in games if record.white_score in (0.0, 1.0))
    sides = envs.to_play(game, record.states)
    right = ((2 * record.white_score - 1) * np.where(sides == 0, 1, -1)).astype(np.float32)
    assert value_error(game, [dataclasses.replace(record, root_values=right)]) == 0
    assert value_error(game, [dataclasses.replace(record, root_values=-right)]) == 4
    assert value_error(game, [dataclasses.replace(record, white_score=math.nan)]) is None


def test_entropies_of_even_targets_are_logarithms_of_the_numbers_of_moves(games: list[GameRecord]) -> None:
    counts = np.diff(games[0].policy_index)
    np.testing.assert_allclose(policy_entropies(games[0]), np.log(counts[counts > 0]), rtol=1e-5)


def test_layers_shown_are_bounded_however_deep_the_network_is(game: CompiledGame) -> None:
    shown = dict(layer_histograms(a_network(game, blocks=40)))
    assert len(shown) == 32
    assert max(len(values) for values in shown.values()) <= 10_000


def test_a_phase_after_the_restart_belongs_to_the_next_iteration() -> None:
    clock = Stopwatch()
    with clock.time("learn"):
        pass
    clock.restart()
    with clock.time("save"):
        pass
    numbers = clock.numbers(SelfPlayStats(), games=0, steps=0)
    assert numbers["perf/learn_s"] is None
    assert numbers["perf/save_s"] is not None


def test_skipped_steps_do_not_count_in_means() -> None:
    steps = StepMeans()
    steps.add(STEP)
    steps.add({**STEP, "loss": math.nan, "skipped": 1.0})
    assert (steps.count, steps.numbers()["train/loss"]) == (2, 2.0)
    assert StepMeans().numbers() == {"train/learning_rate": None}


@pytest.mark.parametrize("name", ["gardner", "palace_ninja_guards", "courier"])
def test_boards_of_any_shape_are_drawn(name: str) -> None:
    variant = load_variant(name)
    codes = envs.boards(engine_for(variant), envs.read_fen(engine_for(variant), variant.start_fens[0])[None])[0]
    views = [BoardView(codes, "start", moved=(0, 1), arrows=((2, 3, 0.5), (4, 4, 0.1)))] * 2
    picture = draw_boards(variant, views)
    assert picture.png.startswith(b"\x89PNG")
    assert int.from_bytes(picture.png[16:20], "big") == picture.width
    assert int.from_bytes(picture.png[20:24], "big") == picture.height
    assert len(picture.png) < 150_000


def test_no_games_make_no_picture(game: CompiledGame) -> None:
    assert last_positions(game, []) is None
