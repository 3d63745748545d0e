"""The forecast: what is counted is counted right, what is measured is there, and nothing stays on disk."""

import json
import os
from pathlib import Path

import pytest

from tests.train.stored_run import config
from train import forecast as module
from train.config import RunConfig
from train.forecast import Forecast, forecast
from train.forecast_worker import PlayedFor

CHANGES = {
    "workers": 0,
    "iterations": 4,
    "search": {"num_simulations": 4, "fast_simulations": 2, "stages": [], "cache_positions": 0},
    "selfplay": {"games_per_worker": 8, "positions_per_iteration": 100, "max_plies": 40},
    "learner": {"batch_size": 32},
    "evaluation": {"games": 4, "simulations": 2},
}


@pytest.fixture(scope="module")
def cfg() -> RunConfig:
    return config(**CHANGES)


@pytest.fixture(scope="module")
def expected(cfg: RunConfig, tmp_path_factory: pytest.TempPathFactory) -> Forecast:
    folder, here = tmp_path_factory.mktemp("empty"), Path.cwd()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "PLAY_SECONDS", 0.3)
        patch.setattr(module, "LEARN_SECONDS", 0.2)
        os.chdir(folder)
        try:
            found = forecast(cfg)
        finally:
            os.chdir(here)
    assert list(folder.iterdir()) == []
    return found


def test_parameters_and_multiplications_are_those_of_the_network(expected: Forecast) -> None:
    squares, planes, channels = 25, 21, 8
    stem = planes * channels * 9 + 2 * channels  # weights, scale and shift
    assert expected.parameters["stem"] == stem
    convolutions = 2 * squares * 9 * (planes * channels + 2 * channels * channels)
    assert convolutions / 1e6 < expected.mflops_per_evaluation < 1.5 * convolutions / 1e6


def test_the_parts_add_up_and_are_positive(expected: Forecast, cfg: RunConfig) -> None:
    memory, times = expected.memory_mb, expected.iteration_s
    assert memory["total"] == pytest.approx(sum(memory.values()) - memory["total"])
    assert times["total"] == pytest.approx(sum(times.values()) - times["total"])
    assert memory["evaluation caches"] < 0.001  # it is off
    assert "Ray" not in memory  # there are no workers
    assert times["selfplay"] == pytest.approx(100 / expected.positions_per_s)
    assert expected.run_hours * 3600 > cfg.iterations * times["total"]  # and a match
    assert 10 < expected.game_plies <= 40
    assert expected.games_per_hour == pytest.approx(3600 * 100 / expected.game_plies / times["total"])
    assert expected.evaluations_per_s > expected.positions_per_s
    assert 0 < expected.disk_mb["games_per_iteration"] < 1


def test_it_is_json_and_lines_of_a_page(expected: Forecast) -> None:
    assert json.loads(json.dumps(expected.document(), allow_nan=False))["run_hours"] == expected.run_hours
    assert max(map(len, expected.lines())) <= 98
    assert any(line.startswith("memory ") for line in expected.lines())


def test_larger_budgets_later_make_the_run_longer(expected: Forecast) -> None:
    stages = [{"iteration": 3, "num_simulations": 8, "fast_simulations": 4}]
    longer = config(**{**CHANGES, "search": {**CHANGES["search"], "stages": stages}})  # type: ignore[dict-item]
    plain = config(**CHANGES)
    seconds = [module._run_seconds(cfg, expected.iteration_s, 20.0, 1000.0) for cfg in (plain, longer)]
    assert seconds[1] - seconds[0] == pytest.approx(2 * expected.iteration_s["selfplay"])


def test_a_cluster_counts_all_its_workers_and_this_machine_none_of_their_memory(cfg: RunConfig) -> None:
    cluster = cfg.model_copy(update={"workers": 6, "ray": cfg.ray.model_copy(update={"address": "head:6379"})})
    played = [PlayedFor(100, 50, 200, 1.0, 0)]
    assert "taken times 6/1" in module._how(cluster, played)


def test_what_a_measuring_process_said_is_in_the_error(cfg: RunConfig) -> None:
    with pytest.raises(RuntimeError, match="measuring process failed"):
        module._play(cfg.model_copy(update={"variant": "nowhere.yaml"}), b"")


def test_durations_are_in_the_unit_that_people_use() -> None:
    assert [module._duration(hours) for hours in (0.1, 3, 100)] == ["6.0 minutes", "3.0 hours", "4.2 days"]
