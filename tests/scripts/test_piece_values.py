"""scripts/piece_values.py: a table or one JSON object on stdout, files in a folder, refusals that say why."""

import json
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from scripts import piece_values
from tests.train.stored_run import make_run


def run(*arguments: str) -> Result:
    return CliRunner().invoke(piece_values.app, list(arguments))


QUICK = ("--method", "odds,handicap", "--games", "200", "--depth", "1", "--seeds", "0,1", "--resamples", "100")


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
    assert document["methods"][0]["checks"]["resamples"] == 120


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


@pytest.fixture(scope="module")
def game_dir(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    folder = tmp_path_factory.mktemp("values") / "gardner"
    return folder, run("gardner", "--out", str(folder), *QUICK)


def test_a_game_is_measured_by_several_methods_side_by_side(game_dir: tuple[Path, Result]) -> None:
    folder, result = game_dir
    assert result.exit_code == 0, result.stderr
    assert "Piece values: Gardner Minichess" in result.stdout
    assert "recommended" in result.stdout
    assert "against the same army: K Q R B N 5P" in result.stdout
    assert "seed 1" in result.stdout
    document = json.loads((folder / "piece_values.json").read_text())
    assert [method["method"] for method in document["methods"]] == ["odds", "handicap"]
    assert {"value", "why", "methods", "mobility", "leaper_formula", "published"} <= document["pieces"][0].keys()
    table = (folder / "piece_values.csv").read_text()
    assert "queen,recommended" in table
    assert "odds,seed 0" in table
    assert "handicap" in (folder / "piece_values.svg").read_text()


def test_the_command_that_is_printed_makes_the_same_report(game_dir: tuple[Path, Result]) -> None:
    folder, result = game_dir
    command = next(line for line in result.stderr.splitlines() if line.startswith("again: "))
    before = (folder / "piece_values.json").read_bytes()
    words = shlex.split(command.removeprefix("again: "))
    assert words[:3] == ["python", "scripts/piece_values.py", "gardner"]
    assert run(*words[2:]).exit_code == 0
    assert (folder / "piece_values.json").read_bytes() == before


def test_a_runs_games_from_odds_are_a_method_beside_the_outcome(run_dir: Path, tmp_path: Path) -> None:
    result = run(str(run_dir), "--method", "outcome,odds", "--out", str(tmp_path), "--resamples", "100")
    assert result.exit_code == 0, result.stderr
    document = json.loads((tmp_path / "piece_values.json").read_text())
    assert [method["method"] for method in document["methods"]] == ["outcome", "odds"]
    assert "the run's own games" in document["methods"][1]["basis"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["chess", "--method", "outcome"], "needs a run"),
        (["chess", "--method", "odds,odds"], "named twice"),
        (["chess", "--games", "7"], "games: expected at least 200, got 7"),
        (["chess", "--games", "200", "--minutes", "1"], "expected one of them, got both"),
        (["chess", "--seeds", "1,x"], "expected numbers separated by commas"),
        (["chess+nothing"], "nothing"),
        (["no_such_game"], "no_such_game"),
    ],
)
def test_what_cannot_be_measured_exits_with_2_and_says_why(arguments: list[str], expected: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert expected in " ".join(result.stderr.replace("│", "").split())
