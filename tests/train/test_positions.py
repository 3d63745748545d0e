"""From stored games to the estimators' arrays: material, side to move, quiet positions, games cut short."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from envs import VectorEnv, engine_for, load_variant
from tests.train.stored_run import make_run, random_games
from train.piece_values import InsufficientData, Positions, collect_positions, measure_run
from train.piece_values.positions import quiet_mask
from train.shards import GameRecord

GAME = engine_for(load_variant("gardner"))


@pytest.fixture(scope="module")
def records() -> list[GameRecord]:
    games = random_games(GAME, 40, seed=1, max_plies=60)
    assert any(game.termination for game in games)
    assert any(not game.termination for game in games)
    return games


def replayed(record: GameRecord) -> list[str]:
    """Return the FEN before each move, by the slow way."""
    env = VectorEnv("gardner", 1)
    env.set_fen(0, record.start_fen)
    fens = []
    for action in record.actions:
        fens.append(env.fen(0))
        env.step([action])
    return fens


def test_material_and_side_to_move_are_those_of_the_positions(records: list[GameRecord]) -> None:
    finished = [record for record in records if record.termination]
    positions = collect_positions(GAME, records, quiet_only=False)
    fens = [fen for record in finished for fen in replayed(record)[record.opening_plies :]]
    assert len(fens) == positions.game.size
    assert "K" not in positions.letters
    for fen, material, white in zip(fens, positions.material, positions.white_to_move):
        pieces = Counter(fen.split()[0])
        assert material.tolist() == [pieces[letter] - pieces[letter.lower()] for letter in positions.letters]
        assert white == (fen.split()[1] == "w")


def test_games_cut_short_are_left_out_and_counted(records: list[GameRecord]) -> None:
    positions = collect_positions(GAME, records, quiet_only=False)
    finished = [record for record in records if record.termination]
    assert positions.cut_games == len(records) - len(finished)
    assert positions.num_games <= len(finished)
    assert set(positions.white_score) <= {0.0, 0.5, 1.0}
    lengths = [record.num_plies - record.opening_plies for record in finished]
    assert np.bincount(positions.game).tolist() == [length for length in lengths if length > 0]


def test_a_position_is_quiet_when_no_count_changes_around_it() -> None:
    counts = np.array([[5], [5], [5], [4], [4], [4], [3], [3]], dtype=np.int16)
    #                  same  same  takes  taken  same  takes  taken  ends the game
    assert quiet_mask(counts).tolist() == [True, True, False, False, True, False, False, False]
    assert quiet_mask(counts[:1]).tolist() == [False]


def test_only_quiet_positions_are_taken_if_asked(records: list[GameRecord]) -> None:
    every = collect_positions(GAME, records, quiet_only=False)
    quiet = collect_positions(GAME, records, quiet_only=True)
    assert 0 < quiet.game.size < every.game.size
    assert np.array_equal(np.unique(quiet.game), np.arange(quiet.num_games))


def test_no_finished_game_is_refused(records: list[GameRecord]) -> None:
    cut = [replace(record, white_score=float("nan"), termination=0) for record in records]
    with pytest.raises(InsufficientData, match="no position of a finished game \\(40 games were cut short\\)"):
        collect_positions(GAME, cut, quiet_only=True)
    with pytest.raises(InsufficientData, match="no position"):
        collect_positions(GAME, [], quiet_only=True)


def test_taking_positions_renumbers_games_and_keeps_their_results() -> None:
    positions = Positions(
        ("P",), "P", np.array([[0], [1], [2], [1]], dtype=np.int16), np.ones(4, dtype=bool),
        np.array([0, 1, 1, 2], dtype=np.int32), np.array([1.0, 0.5, 0.0]),
    )  # fmt: skip
    taken = positions.take(np.array([False, False, True, True]))
    assert taken.game.tolist() == [0, 1]
    assert taken.white_score.tolist() == [0.5, 0.0]
    assert positions.games_with_difference().tolist() == [2]


def test_a_run_is_measured_from_its_committed_games(tmp_path: Path) -> None:
    cfg = make_run(tmp_path, 150)
    report, run_dir = measure_run(tmp_path)
    assert run_dir == tmp_path
    assert report.values.games + report.values.cut_games <= 150
    assert report.values.checks["resamples"] == 100
    document = report.to_document()
    assert document["config_hash"] == cfg.config_hash()
    assert document["seeds"] == {"run": 5, "bootstrap": 5}
    assert document["settings"]["quiet_only"] is True
    checkpoint = tmp_path / "checkpoints" / "000001"
    assert measure_run(checkpoint, seed=5)[0].to_document() == document
    assert measure_run(checkpoint, resamples=150)[0].values.checks["resamples"] == 150
    with pytest.raises(InsufficientData, match="no position of a finished game"):
        measure_run(tmp_path / "checkpoints" / "000000")
