"""scripts/export.py: games of a run or a shard as PGN, picked by number or iteration, and errors by exit code."""

import re
from dataclasses import asdict
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from envs import engine_for, load_variant
from models.checkpoint import load_latest, save_checkpoint
from scripts.export import app
from tests.train.stored_run import make_run, random_games
from train.shards import write_shard


def export(*words: str | Path) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def rounds(text: str) -> list[str]:
    return re.findall(r'\[Round "(.*)"\]', text)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of three iterations with 5, 3 and 4 games."""
    folder = tmp_path_factory.mktemp("runs") / "mine"
    make_run(folder, 5)
    game = engine_for(load_variant("gardner"))
    checkpoint = load_latest(folder)
    assert checkpoint is not None
    infos = list(checkpoint.state["shards"])
    for iteration, count in ((1, 3), (2, 4)):
        games = random_games(game, count, seed=iteration, max_plies=40)
        infos.append(asdict(write_shard(folder / "replay", f"{iteration:06d}", games, game)))
    save_checkpoint(folder, 3, tensors=checkpoint.tensors, state={**checkpoint.state, "shards": infos})
    return folder


def test_every_game_of_a_run_is_printed_oldest_first(run: Path) -> None:
    printed = export(run)
    assert printed.exit_code == 0
    expected = [f"1.{n}" for n in range(1, 6)] + [f"2.{n}" for n in range(1, 4)] + [f"3.{n}" for n in range(1, 5)]
    assert rounds(printed.stdout) == expected
    assert '[Event "mine"]' in printed.stdout
    assert "{" not in printed.stdout


def test_games_are_picked_by_number_or_by_iteration(run: Path, tmp_path: Path) -> None:
    assert rounds(export(run, "--last", "5").stdout) == ["2.3", "3.1", "3.2", "3.3", "3.4"]
    assert rounds(export(run, "--iterations", "2:3", "--last", "6").stdout)[:2] == ["2.2", "2.3"]
    assert rounds(export(run, "--iterations", "1:2").stdout)[-1] == "2.3"
    assert rounds(export(run / "checkpoints" / "000001").stdout) == [f"1.{n}" for n in range(1, 6)]
    done = export(run, "--last", "1", "--values", "--out", tmp_path / "a.pgn")
    assert done.stdout == ""
    assert rounds((tmp_path / "a.pgn").read_text()) == ["3.4"]
    assert "{+0.00}" in (tmp_path / "a.pgn").read_text()


def test_a_shard_of_a_run_or_alone_is_exported(run: Path, tmp_path: Path) -> None:
    shard = run / "replay" / "000001.npz"
    assert rounds(export(shard).stdout) == ["2.1", "2.2", "2.3"]
    alone = tmp_path / "alone.npz"
    alone.write_bytes(shard.read_bytes())
    assert rounds(export(alone, "--variant", "gardner", "--last", "2").stdout) == ["alone.2", "alone.3"]
    refused = export(alone)
    assert refused.exit_code == 1
    assert "its game must be named" in refused.stderr
    assert "rules_hash" in export(alone, "--variant", "chess").stderr


def test_what_cannot_be_exported_leaves_no_file_behind(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "a.pgn"
    assert export(run, "--iterations", "3:2", "--out", out).exit_code == 2
    assert export(run, "--iterations", "1-2", "--out", out).exit_code == 2
    assert "no such game" in export(run, "--iterations", "7:9", "--out", out).stderr
    assert export(tmp_path / "nothing", "--out", out).exit_code == 1
    assert not out.exists()
