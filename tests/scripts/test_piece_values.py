"""scripts/piece_values.py: a table or one JSON object on stdout, files in a folder, refusals that say why."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from scripts import piece_values
from tests.train.stored_run import make_run


def run(*arguments: str) -> Result:
    return CliRunner().invoke(piece_values.app, list(arguments))


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "mine"
    make_run(folder, 150)
    return folder


def test_a_table_goes_to_stdout_and_files_into_the_runs_report(run_dir: Path) -> None:
    result = run(str(run_dir))
    assert result.exit_code == 0, result.stderr
    assert "Piece values by outcome: Gardner Minichess" in result.stdout
    written = {path.name for path in (run_dir / "report").iterdir()}
    assert written == {"piece_values.json", "piece_values.csv", "piece_values.png", "piece_values.svg"}
    assert "piece_values.png" in result.stderr


def test_json_is_one_object_and_equals_the_file(run_dir: Path, tmp_path: Path) -> None:
    result = run(str(run_dir), "--json", "--out", str(tmp_path), "--seed", "9", "--resamples", "120")
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    assert document == json.loads((tmp_path / "piece_values.json").read_text())
    assert document["seeds"] == {"run": 5, "bootstrap": 9}
    assert document["resamples"] == 120


def test_too_little_data_exits_with_1_and_names_what_is_missing(tmp_path: Path) -> None:
    make_run(tmp_path, 12)
    result = run(str(tmp_path))
    assert result.exit_code == 1
    assert "are needed" in result.stderr
    assert result.stdout == ""
    assert not (tmp_path / "report").exists()


def test_a_folder_without_a_run_exits_with_1_and_an_unknown_method_with_2(run_dir: Path, tmp_path: Path) -> None:
    assert run(str(tmp_path)).exit_code == 1
    result = run(str(run_dir), "--method", "outcome,guess")
    assert result.exit_code == 2
    assert "guess" in result.stderr
