"""scripts/ladder.py: plays, writes the report, goes on where it was stopped."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from scripts import ladder
from tests.train.stored_run import make_run
from train.match_file import MatchFile
from train.match_games import PlayedGame

SMALL = ["--games", "4", "--simulations", "2", "--max-plies", "20", "--against", "greedy", "--workers", "0"]


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "mine"
    cfg = make_run(folder, 3, iterations=2)
    (folder / "config.yaml").write_text(cfg.to_yaml())
    return folder


def run(*arguments: str) -> Result:
    return CliRunner().invoke(ladder.app, [*arguments, *SMALL])


def test_a_ladder_that_was_stopped_goes_on_and_is_written(run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add, added = MatchFile.add, list[PlayedGame]()

    def stop_after_three(self: MatchFile, players: tuple[str, str], game: PlayedGame) -> None:
        add(self, players, game)
        added.append(game)
        if len(added) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(MatchFile, "add", stop_after_three)
    stopped = run(str(run_dir))
    assert stopped.exit_code == 130
    assert "greedy" in stopped.stdout
    assert "iteration" not in stopped.stdout  # no checkpoint has played yet
    done = run(str(run_dir), "--json")
    assert done.exit_code == 0, done.stderr
    out = json.loads(done.stdout)
    assert [rung["name"] for rung in out["rungs"]][2:] == ["iteration 0", "iteration 1", "iteration 2"]
    assert len(added) == 4 * 4  # checkpoints of equal weights are one player, which meets two baselines and itself
    assert json.loads((run_dir / "report" / "ladder.json").read_text())["rungs"] == out["rungs"]
    again = run(f"{run_dir.parent}/../{run_dir.parent.name}/{run_dir.name}")  # another way to spell it
    assert len(added) == 4 * 4
    assert "iteration 2" in again.stdout
    assert "ladder.png" in again.stderr


def test_a_ladder_with_other_openings_has_a_file_of_its_own(run_dir: Path) -> None:
    for plies in ("2", "3", "2"):
        assert run(str(run_dir), "--random-plies", plies, "--checkpoints", "2", "--json").exit_code == 0
    files = {path: path.read_text().count("\n") for path in (run_dir / "report").glob("ladder_games-*.jsonl")}
    assert sum(1 for path in files if '"random_plies": 4' not in path.read_text()) == 2
    assert set(files.values()) == {1 + 4 * 4}


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    refused = run(str(tmp_path))
    assert refused.exit_code == 2
    assert "no run here" in refused.stderr
