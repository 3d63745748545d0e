"""scripts/balance.py: tables or one JSON object on stdout, files in a folder, refusals that say why."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from scripts import balance
from train import balance_games

SMALL = ("--games", "4", "--depth", "1", "--random-plies", "2", "--max-plies", "60")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(balance.app, list(arguments))


def test_tables_go_to_stdout_and_nothing_is_written_without_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("gardner", *SMALL)
    assert result.exit_code == 0, result.stderr
    assert "Balance of gardner" in result.stdout
    assert "Use and fate of the pieces" in result.stdout
    assert "White's score" in result.stdout
    assert not list(tmp_path.iterdir())


def test_json_is_one_object_equals_the_file_and_names_the_command_that_remakes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("train.piece_values.forest.DOTS_PER_INCH", 30)  # drawn sooner
    result = run("gardner", "--versus", "gardner", *SMALL, "--json", "--out", str(tmp_path))
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    assert document == json.loads((tmp_path / "balance.json").read_text())
    assert document["command"].startswith("python scripts/balance.py gardner --versus gardner --games 4 --depth 1")
    assert {entry["verdict"] for entry in document["differences"].values()} == {"undecided"}
    assert {"variant", "options", "rules_hash", "config_hash", "seeds", "versions"} <= document["settings"][0].keys()
    assert "balance.png" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("ches",), 2, "did you mean 'chess'"),
        (("gardner", "--versus", "gardner+absent"), 2, "unknown option"),
        (("gardner@8/8 w - - 0 1",), 2, "rows"),
        (("gardner", "--games", "4", "--minutes", "1"), 2, "either games or minutes"),
        (("gardner", "--games", "1"), 2, "games"),
        (("gardner", "--depth", "0"), 2, "depth"),
        (("gardner", "--games", "40", "--random-plies", "0"), 1, "openings"),
    ],
)
def test_bad_input_is_refused_with_a_reason(arguments: tuple[str, ...], code: int, said: str) -> None:
    result = run(*arguments)
    assert result.exit_code == code, result.stderr
    assert said in result.stderr
    assert result.stdout == ""


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    result = run(str(tmp_path))
    assert result.exit_code == 1
    assert "checkpoint" in result.stderr


def test_ctrl_c_prints_what_there_is_and_exits_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("train.balance_games.BATCH", 2)
    played, calls = balance_games.play_games, []

    def stop_at_second(*arguments: object, **settings: object) -> object:
        calls.append(1)
        if len(calls) > 1:
            raise KeyboardInterrupt
        return played(*arguments, **settings)

    monkeypatch.setattr("train.balance_games.play_games", stop_at_second)
    result = run("gardner", *SMALL)
    assert result.exit_code == 130
    assert "STOPPED EARLY" in result.stdout
    assert "interrupted" in result.stderr
