"""Measuring a game without a network: plans, what is kept, and going on where it stopped."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from envs import CompiledGame, Variant, engine_for, load_variant
from tests.train.stored_run import config
from train.evaluation_tables import EvaluationTable, table_for
from train.piece_values import measure, surveys
from train.piece_values.estimates import MethodValues
from train.piece_values.kept_games import KeptGames
from train.piece_values.measure import MeasurePlan, measure_game, settle
from train.piece_values.positions import InsufficientData
from train.piece_values.surveys import StoredRun, survey_run
from train.progress import Reporter
from train.table_games import GameOrder, PlayedGame, play_games

QUIET = Reporter(quiet=True)
GARDNER = load_variant("gardner")
PLAN = MeasurePlan(methods=("odds", "handicap"), seeds=(0, 1), depth=1, games=200, resamples=100)


def orders(count: int) -> list[GameOrder]:
    table = table_for(GARDNER)
    weights = np.stack([table.weights] * 2)
    return [GameOrder(GARDNER.start_fen, weights, table.tempo, 4, seed) for seed in range(count)]


def test_a_kept_game_is_not_played_again_and_a_missing_one_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    game, path = engine_for(GARDNER), tmp_path / "games.jsonl"
    first = KeptGames(path, depth=1).play(game, orders(3))
    played: list[int] = []

    def noted(game: CompiledGame, orders: Sequence[GameOrder], **rest: Any) -> list[PlayedGame]:
        played.append(len(orders))
        return play_games(game, orders, **rest)

    monkeypatch.setattr("train.piece_values.kept_games.play_games", noted)
    kept = KeptGames(path, depth=1)
    assert kept.play(game, orders(5))[:3] == first
    assert played == [2]
    assert kept.play(game, orders(5))[:3] == first
    assert played == [2]


def test_a_key_covers_everything_that_determines_a_game() -> None:
    game, (order,) = engine_for(GARDNER), orders(1)
    kept = KeptGames(None, depth=1)
    others = [
        kept.key(game, replace(order, fen=GARDNER.start_fen.replace(" w ", " b "))),
        kept.key(game, replace(order, weights=order.weights + 1)),
        kept.key(game, replace(order, tempo=order.tempo + 1)),
        kept.key(game, replace(order, random_plies=5)),
        kept.key(game, replace(order, seed=99)),
        KeptGames(None, depth=2).key(game, order),
        KeptGames(None, depth=1, max_plies=50).key(game, order),
    ]
    assert len({kept.key(game, order), *others}) == len(others) + 1
    assert kept.key(game, order) == KeptGames(None, depth=1, threads=1).key(game, order)


def test_a_line_cut_short_by_a_crash_is_played_again_and_a_damaged_one_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    game, path = engine_for(GARDNER), tmp_path / "games.jsonl"
    first = KeptGames(path, depth=1).play(game, orders(3))
    path.write_bytes(path.read_bytes()[:-20])
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", None)  # a crash while all is written again would lose all
        assert KeptGames(path, depth=1).play(game, orders(3)) == first
    assert len(path.read_text().splitlines()) == 3
    path.write_text('{"key": "a"}\n')
    with pytest.raises(ValueError, match=r"games\.jsonl, line 1: expected a JSON object with key"):
        KeptGames(path, depth=1)


def test_games_cut_short_are_kept_as_such(tmp_path: Path) -> None:
    game, path = engine_for(GARDNER), tmp_path / "games.jsonl"
    (cut,) = KeptGames(path, depth=1, max_plies=8).play(game, orders(1))
    assert np.isnan(cut.white_score)
    assert json.loads(path.read_text())["white_score"] is None
    assert np.isnan(KeptGames(path, depth=1, max_plies=8).play(game, orders(1))[0].white_score)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[MethodValues], Path]:
    folder = tmp_path_factory.mktemp("values")
    return measure_game(GARDNER, plan=PLAN, folder=folder, reporter=QUIET), folder


def test_several_methods_and_seeds_are_measured_side_by_side(measured: tuple[list[MethodValues], Path]) -> None:
    results, _ = measured
    assert [result.method for result in results] == ["odds", "handicap"]
    assert results[0].games + results[0].cut_games == 2 * 200
    assert results[1].games + results[1].cut_games == 2 * 160
    for result in results:
        assert result.checks["seeds"] == [0, 1]
        assert {"seed 0", "seed 1"} <= {split.name for split in result.splits}
        assert "depth 1, 2 seeds" in result.basis


def test_the_same_plan_goes_on_without_playing_and_gives_the_same_values(
    measured: tuple[list[MethodValues], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    results, folder = measured
    monkeypatch.setattr("train.piece_values.kept_games.play_games", None)
    assert measure_game(GARDNER, plan=replace(PLAN, threads=1), folder=folder, reporter=QUIET) == results


def test_an_interrupted_measurement_ends_like_one_that_was_not(
    measured: tuple[list[MethodValues], Path], tmp_path: Path
) -> None:
    results, folder = measured
    lines = (folder / "games.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "games.jsonl").write_bytes(b"".join(lines[: len(lines) - 40]) + lines[-1][:30])
    assert measure_game(GARDNER, plan=PLAN, folder=tmp_path, reporter=QUIET) == results


def test_a_method_that_can_say_nothing_is_refused_and_all_of_them_raise() -> None:
    horde = load_variant("horde")
    with pytest.raises(InsufficientData, match=r"odds: pieces that only one side owns.*; handicap: pieces that only"):
        measure_game(horde, plan=PLAN, reporter=QUIET)


def test_minutes_become_a_number_of_games_once_and_for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = replace(PLAN, games=None, minutes=0.05)
    settled = settle(GARDNER, plan, folder=tmp_path)
    assert settled.games is not None
    assert settled.games >= 200
    monkeypatch.setattr(measure, "_affordable", None)
    assert settle(GARDNER, plan, folder=tmp_path) == settled
    assert settle(GARDNER, replace(plan, games=300), folder=tmp_path).games == 300


def test_methods_that_play_for_a_run_share_its_minutes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []

    def affordable(game: CompiledGame, plan: MeasurePlan, table: EvaluationTable) -> int:
        asked.append(plan.methods)
        return 300

    def measured_with(variant: Variant, *, plan: MeasurePlan, **rest: Any) -> list[MethodValues]:
        assert plan.games == 300
        return [MethodValues(plan.methods[0], (), 1, 1, 0)]

    monkeypatch.setattr(measure, "_affordable", affordable)
    monkeypatch.setattr(surveys, "measure_game", measured_with)
    run, plan = StoredRun(tmp_path, GARDNER, config()), MeasurePlan(minutes=5)
    for _ in range(2):
        survey_run(run, ("td", "handicap"), plan=plan, folder=tmp_path, reporter=QUIET)
    assert asked == [("td", "handicap")]


def test_a_plan_refuses_what_it_cannot_do() -> None:
    with pytest.raises(ValueError, match="methods: expected different ones of td, odds, handicap, got odds, odds"):
        MeasurePlan(methods=("odds", "odds"))
    with pytest.raises(ValueError, match=r"seeds: expected different numbers from 0 .*, got \[1, 1\]"):
        MeasurePlan(seeds=(1, 1))
    with pytest.raises(ValueError, match="games: expected at least 200, got 10"):
        MeasurePlan(games=10)
    for minutes in (0, float("inf")):
        with pytest.raises(ValueError, match=f"minutes: expected a number above 0, got {minutes}"):
            MeasurePlan(minutes=minutes)
