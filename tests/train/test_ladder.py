"""Ladders: which checkpoints, who meets whom, what had been spent, and the files that show it."""

import csv
import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from envs import load_variant
from tests.train.planted import draw_pairs, pair_distribution
from train.arena import MatchResult, MatchSettings
from train.config import ConfigError
from train.ladder import Ladder, Spent, choose_checkpoints, rate, schedule, spent_by
from train.ladder_report import AXES, SCALARS, draw_ladder, save_ladder
from train.metrics import LINES_FILE
from train.ratings import score_of_elo

ELO = {"random": 0.0, "greedy": 100.0, "iteration 0": 20.0, "iteration 5": 200.0, "iteration 9": 400.0}
ITERATIONS = {"iteration 0": 0, "iteration 5": 5, "iteration 9": 9}
SPENT = {0: Spent(), 5: Spent(50, 0.5, 9e4), 9: Spent(95, 1.0, 2e5)}
BASIS = {"variant": "gardner", "simulations": 32}


def match(first: str, second: str, pairs: int = 60) -> MatchResult:
    """Return a match as the planted ratings would have it."""
    chances = pair_distribution(score_of_elo(ELO[first] - ELO[second]))
    scores = draw_pairs(np.random.default_rng(len(first)), chances, pairs)
    empty = MatchResult.of(load_variant("gardner"), (first, second), MatchSettings(2 * pairs), [])
    return replace(empty, pair_scores=tuple(scores.tolist()), white_score=0.5, plies=50.0)


@pytest.fixture(scope="module")
def ladder() -> Ladder:
    pairs = schedule(list(ITERATIONS), ["random", "greedy"])
    return rate([match(*names) for names in pairs], ITERATIONS, SPENT)


def make_checkpoints(run_dir: Path, iterations: list[int]) -> None:
    for iteration in iterations:
        (run_dir / "checkpoints" / f"{iteration:06d}").mkdir(parents=True)


def test_checkpoints_are_spread_over_the_run_with_its_first_and_last(tmp_path: Path) -> None:
    make_checkpoints(tmp_path, [0, 20, 40, 60, 80, 96, 97, 98, 99, 100])
    assert [int(path.name) for path in choose_checkpoints(tmp_path, 3)] == [0, 40, 100]
    assert [int(path.name) for path in choose_checkpoints(tmp_path, 6)] == [0, 20, 40, 60, 80, 100]
    assert [int(path.name) for path in choose_checkpoints(tmp_path, 2)] == [0, 100]
    for folder, most in ((tmp_path, 1), (tmp_path / "nothing", 5)):
        with pytest.raises(ConfigError, match="at least 2 checkpoints"):
            choose_checkpoints(folder, most)


@pytest.mark.parametrize("baselines", [["random"], ["random", "greedy", "alphabeta:1"]])
def test_every_checkpoint_meets_the_next_and_a_baseline_and_nobody_meets_itself_or_anybody_twice(
    baselines: list[str],
) -> None:
    checkpoints = ["a", "b", "c", "d", "e"]
    pairs = schedule(checkpoints, baselines)
    assert {(later, earlier) for earlier, later in pairwise(checkpoints)} <= set(pairs)
    assert {(later, earlier) for earlier, later in pairwise(baselines)} <= set(pairs)
    for name in checkpoints:
        assert any(one == name and other in baselines for one, other in pairs)
    for end in ("a", "e"):
        assert {other for one, other in pairs if one == end} >= set(baselines)
    assert len({frozenset(pair) for pair in pairs}) == len(pairs)
    assert all(one != other for one, other in pairs)


def test_what_a_run_had_spent_adds_up_over_iterations_and_their_matches(tmp_path: Path) -> None:
    lines = [
        {"selfplay/total_games": 10, "perf/iteration_s": 1800, "perf/evaluations_per_s": 100, "perf/selfplay_s": 9},
        {"selfplay/total_games": 25, "perf/iteration_s": 900, "perf/evaluations_per_s": 50, "perf/selfplay_s": 10},
        {"selfplay/total_games": None, "perf/iteration_s": None, "eval/score/random": 1.0},
    ]
    rows = [{"iteration": number, "metrics": metrics} for number, metrics in zip((1, 2, 2), lines)]
    (tmp_path / LINES_FILE).write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert spent_by(tmp_path) == {0: Spent(), 1: Spent(10, 0.5, 900), 2: Spent(25, 0.75, 1400)}


def test_a_ladder_has_baselines_by_strength_and_checkpoints_by_age_near_the_truth(ladder: Ladder) -> None:
    assert [rung.name for rung in ladder.rungs] == list(ELO)
    assert [rung.iteration for rung in ladder.checkpoints] == [0, 5, 9]
    for rung in ladder.rungs:
        assert rung.elo.low - 60 <= ELO[rung.name] <= rung.elo.high + 60
    last = ladder.checkpoints[-1]
    assert (last.matches, last.match_games, last.spent) == (3, 360, SPENT[9])
    for played in ladder.matches:
        assert ladder.expected_score(played) == pytest.approx(played.score.estimate, abs=0.12)


def test_a_ladder_that_was_stopped_shows_who_is_linked_to_random_so_far() -> None:
    unplayed = replace(match("iteration 0", "greedy"), pair_scores=())
    matches = [match("iteration 9", "iteration 5"), match("greedy", "random"), unplayed]
    assert [rung.name for rung in rate(matches, ITERATIONS, SPENT).rungs] == ["random", "greedy"]
    with pytest.raises(ValueError, match="no match of 'random'"):
        rate([unplayed], ITERATIONS, SPENT)


def test_files_hold_every_rung_and_the_picture_its_points(ladder: Ladder, tmp_path: Path) -> None:
    paths = save_ladder(ladder, tmp_path, BASIS)
    assert [path.name for path in paths] == ["ladder.csv", "ladder.json", "ladder.png", "ladder.svg"]
    rows = list(csv.DictReader(paths[0].open()))
    assert [row["name"] for row in rows] == list(ELO)
    assert (rows[-1]["games"], rows[0]["games"]) == ("95", "")
    document = json.loads(paths[1].read_text())
    assert [rung["elo"]["estimate"] for rung in document["rungs"]] == [rung.elo.estimate for rung in ladder.rungs]
    assert document["variant"] == "gardner"
    assert Image.open(paths[2]).width > 3 * Image.open(paths[2]).height / 2
    before = [path.read_bytes() for path in paths]
    save_ladder(ladder, tmp_path, BASIS)
    assert [path.read_bytes() for path in paths] == before
    panels = draw_ladder(ladder, title="t").axes
    assert [axes.get_xlabel() for axes in panels] == [name for name, _ in AXES]
    assert panels[0].lines[-3].get_xdata().tolist() == [0, 50, 95]


def test_tensorboard_has_the_ladder_once_however_often_it_is_written(ladder: Ladder, tmp_path: Path) -> None:
    for _ in range(2):
        save_ladder(ladder, tmp_path, BASIS)
    board = EventAccumulator(str(tmp_path / "tensorboard" / "ladder"))
    board.Reload()
    assert set(board.Tags()["scalars"]) == set(SCALARS)
    for name, number in SCALARS.items():
        points = [(event.step, event.value) for event in board.Scalars(name)]
        assert points == [(rung.iteration, pytest.approx(number(rung), abs=0.01)) for rung in ladder.checkpoints]
    (image,) = board.Images("eval/ladder")
    assert image.step == 9
    assert len(board.Tensors("eval/ladder/text_summary")) == 1
