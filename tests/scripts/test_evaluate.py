"""scripts/evaluate.py: data on stdout, the rest on stderr, exit codes, one JSON object."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from scripts import evaluate
from tests.train.stored_run import make_run

MATCH = ["--games", "8", "--max-plies", "40"]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(evaluate.app, list(arguments))


def document(*arguments: str) -> dict[str, Any]:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    (line,) = result.stdout.splitlines()
    parsed: dict[str, Any] = json.loads(line)
    return parsed


def test_a_match_prints_a_table_on_stdout_and_progress_on_stderr() -> None:
    result = run("random", "--variant", "gardner", *MATCH)
    assert result.exit_code == 0
    assert "gardner: matches of 8 games, 4 random plies, ply cap 40 (a draw)" in result.stdout
    assert "random against random: done" in result.stderr
    assert "done" not in result.stdout


def test_json_carries_what_the_result_rests_on() -> None:
    out = document("random", "--variant", "asylum", "--option", "friendly_fire", "--seed", "3", *MATCH)
    assert out["variant"] == "asylum"
    assert out["options"] == {"friendly_fire": True}
    assert out["seeds"] == {"match": 3}
    assert {"rules_hash", "config_hash", "versions"} <= out.keys()
    (match,) = out["matches"]
    assert match["wins"] + match["draws"] + match["losses"] == 8
    assert match["score"]["low"] <= match["score"]["estimate"] <= match["score"]["high"]


def test_a_second_player_is_compared_over_the_same_openings(tmp_path: Path) -> None:
    cfg = make_run(tmp_path / "mine", 5)
    mine, untrained = str(tmp_path / "mine"), f"untrained:{tmp_path / 'mine'}"
    out = document(mine, "--against", "random", "--compare", untrained, "--simulations", "4", *MATCH)
    assert out["config_hash"] == cfg.config_hash()
    (match,) = out["matches"]
    assert match["openings"] == match["compared"]["openings"]
    estimate = match["score"]["estimate"] - match["compared"]["score"]["estimate"]
    assert match["difference"]["estimate"] == pytest.approx(estimate)


def test_several_opponents_are_met_in_turn() -> None:
    out = document("random", "--against", "random,random", "--variant", "gardner", *MATCH)
    assert len(out["matches"]) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["radnom", "--variant", "gardner"], "did you mean 'random'"),
        (["random"], "say which"),
        (["random", "--variant", "gardnr"], "did you mean 'gardner'"),
        (["random", "--variant", "gardner", "--option", "x"], "unknown option 'x'"),
        (["random", "--variant", "gardner", "--games", "7"], "even number"),
        (["random", "--variant", "gardner", "--gmaes", "8"], "--gmaes"),
        ([], "player"),
    ],
)
def test_wrong_usage_exits_with_2_and_says_why(arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""


def test_a_failure_exits_with_1(tmp_path: Path) -> None:
    make_run(tmp_path, 5)
    for model in tmp_path.glob("checkpoints/*/model.safetensors"):
        model.write_bytes(model.read_bytes()[:-1])
    result = run(str(tmp_path), *MATCH)
    assert result.exit_code == 1
    assert "model.safetensors" in result.stderr


def test_an_interrupt_exits_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(evaluate, "play_match", interrupted)
    result = run("random", "--variant", "gardner", *MATCH)
    assert result.exit_code == 130
    assert "interrupted" in result.stderr
