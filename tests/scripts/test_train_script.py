"""scripts/train.py: what a user sees of a run, a dry run, an interruption and a mistake."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import train.loop
from scripts import train as script
from train import forecast
from train.config import RunConfig, load_config
from train.forecast import Forecast

TINY = """\
variant: gardner
iterations: 1
workers: 0
search: {num_simulations: 4, fast_simulations: 2, cache_positions: 256}
selfplay: {games_per_worker: 8, positions_per_iteration: 200, max_plies: 30}
network: {blocks: 1, channels: 8}
learner: {batch_size: 32}
evaluation: {games: 4, simulations: 2, max_plies: 30}
piece_values: {bootstrap: 100}
"""


def unmeasured(cfg: RunConfig) -> Forecast:
    """Return a forecast in no time; tests/train/test_forecast.py has the real one."""
    sizes = {"total": 1.0, "games_per_iteration": 1.0, "checkpoint": 1.0, "free": 1.0}
    times = {"total": 1.0, "selfplay": 1.0, "store": 0.0, "learn": 0.0}
    return Forecast({"stem": 1}, 1.0, sizes, sizes, 1.0, 1.0, 1.0, 1.0, 1.0, times, float(cfg.iterations), "not at all")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a working directory of the test's own that holds a config."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(forecast, "forecast", unmeasured)
    (tmp_path / "tiny.yaml").write_text(TINY)
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(script.app, list(arguments))


def test_a_dry_run_prints_yaml_that_reads_back_with_the_forecast_as_comments(here: Path) -> None:
    result = run("tiny.yaml", "--dry-run", "--set", "seed=7")
    assert result.exit_code == 0, result.stderr
    (here / "resolved.yaml").write_text(result.stdout)
    assert load_config(here / "resolved.yaml") == load_config(here / "tiny.yaml", ["seed=7"])
    comments = [line for line in result.stdout.splitlines() if line.startswith("#")]
    shown = {line.split()[1] for line in comments if not line.startswith("#  ") and len(line) > 1}
    assert {"network", "memory", "disk", "self-play", "learner", "games", "iteration", "run", "measured"} <= shown
    assert "measuring" in result.stderr
    assert {path.name for path in here.iterdir()} == {"tiny.yaml", "resolved.yaml"}  # nothing else was written


def test_a_dry_run_as_json_is_one_object_that_says_what_it_rests_on(here: Path) -> None:
    result = run("tiny.yaml", "--dry-run", "--json")
    (line,) = result.stdout.splitlines()
    document: dict[str, Any] = json.loads(line)
    assert {"variant", "rules_hash", "config_hash", "versions", "seeds"} <= document.keys()
    assert document["config"]["iterations"] == 1
    assert document["forecast"]["run_hours"] == 1.0


def test_a_run_prints_its_result_on_stdout_and_its_progress_on_stderr(here: Path) -> None:
    result = run("tiny.yaml", "--run-dir", "mine")
    assert result.exit_code == 0, result.stderr
    assert "mine:1 against random: " in result.stdout
    assert "run: mine" in result.stdout
    assert "[1/1]" in result.stderr
    assert "tensorboard --logdir mine" in result.stderr
    again = run("tiny.yaml", "--run-dir", "mine")
    assert again.exit_code == 2
    assert "there is a run here already; go on with --resume" in again.stderr


@pytest.mark.parametrize("is_second", [False, True])
def test_an_interrupted_run_says_how_to_go_on_and_exits_with_130(
    here: Path, monkeypatch: pytest.MonkeyPatch, is_second: bool
) -> None:
    def stopped(*_: object, **__: object) -> None:
        if is_second:
            raise KeyboardInterrupt

    monkeypatch.setattr(train.loop, "train", stopped)
    result = run("tiny.yaml", "--run-dir", "a run")
    assert result.exit_code == 130
    assert "Go on with: python scripts/train.py --resume --run-dir 'a run'\n" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "expected a config file, such as configs/quick.yaml"),
        (["quik.yaml"], "quik.yaml: no such file; the presets are in configs/"),
        (["tiny.yaml", "--set", "serch.num_simulations=3"], "did you mean 'search'"),
        (["tiny.yaml", "--set", "workers=two"], "workers"),
        (["tiny.yaml", "--set", "variant=gardnr"], "did you mean 'gardner'"),
        (["tiny.yaml", "--set", "variant=gardnr", "--dry-run"], "did you mean 'gardner'"),
        (["tiny.yaml", "--json"], "--json goes with --dry-run"),
        (["--resume"], "give --run-dir"),
        (["--resume", "--run-dir", "nowhere"], "nowhere: no run here"),
        (["tiny.yaml", "--plugin", "mine.py"], "--plugin goes with --resume"),
    ],
)
def test_a_mistake_is_a_line_on_stderr_and_exit_code_2(here: Path, arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.startswith("error: ")
    assert result.stdout == ""
    assert [path.name for path in here.iterdir()] == ["tiny.yaml"]
