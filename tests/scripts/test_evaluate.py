"""scripts/evaluate.py: data on stdout, the rest on stderr, exit codes, one JSON object."""

import errno
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from models.storage import DiskFull
from scripts import evaluate, matches
from scripts.matches import workers_for
from tests.train.stored_run import make_run
from train.alphabeta import AlphaBetaPlayer
from train.baselines import RandomPlayer
from train.match_file import MatchFile
from train.match_games import PlayedGame
from train.players import Contestant
from train.resources import num_cores

MATCH = ["--games", "8", "--max-plies", "40"]
CLUMSY = """
import numpy as np
from train.baselines import RandomPlayer
from train.plugins import register_baseline

@register_baseline("clumsy")
class Clumsy(RandomPlayer):
    def __init__(self):
        super().__init__("clumsy")

    def choose(self, env, lanes, rng):
        good = super().choose(env, lanes, rng)
        return np.where(env.to_play[lanes] == 0, -1, good)
"""


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
    assert "gardner: matches of 8 games, 4 random plies, balanced, ply cap 40 (a draw)" in result.stdout
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
        (["random", "--variant", "gardner", "--sprt", "5"], "two Elo differences"),
        (["random", "--variant", "gardner", "--sprt", "5,1"], "elo0 below elo1"),
        (["random", "--variant", "gardner", "--sprt", "0,9999"], "between -2000 and 2000"),
        (["random", "--variant", "gardner", "--sprt", "nan,5"], "elo0 below elo1"),
        (["random", "--variant", "gardner", "--against", "random,"], "player '': expected a name, got nothing"),
        (["untrained:", "--variant", "gardner"], "got nothing behind the colon"),
        (["alphabeta:65", "--variant", "gardner"], "'alphabeta:65': depth: expected 1 to 64, got 65"),
        (["alphabeta:0ms", "--variant", "gardner"], "expected 0.001 to 3600 seconds, got 0"),
        (["alphabeta:9999999999ms", "--variant", "gardner"], "expected"),
        (["alphabeta", "--variant", "gardner", "--seconds-per-move", "1e9"], "3600"),
        (["random", "--variant", "gardner", "--out", f"{__file__}/games.jsonl"], "test_evaluate.py/games.jsonl"),
        (["alphabeta:x", "--variant", "gardner"], "alphabeta:PLIES"),
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


def test_an_interrupt_prints_what_there_is_and_exits_with_130(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    command = ["random", "--variant", "gardner", "--out", str(tmp_path / "games.jsonl"), "--json", *MATCH]
    add = MatchFile.add

    def stop_after_five(self: MatchFile, players: tuple[str, str], game: PlayedGame) -> None:
        add(self, players, game)
        if len(self.games(players)) == 5:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(MatchFile, "add", stop_after_five)
        stopped = run(*command)
    assert stopped.exit_code == 130
    assert "interrupted; only whole pairs of games that had ended count, rather short ones" in stopped.stderr
    (match,) = json.loads(stopped.stdout)["matches"]
    assert match["games"] + match["left_out"] == 5
    assert match["unfinished"] == 3
    goes_on, anew = run(*command), run("random", "--variant", "gardner", "--json", *MATCH)
    assert (goes_on.exit_code, goes_on.stdout) == (0, anew.stdout)


def test_a_full_disk_is_named_and_what_there_is_is_printed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    add = MatchFile.add

    def fail_after_six(self: MatchFile, players: tuple[str, str], game: PlayedGame) -> None:
        if len(self.games(players)) == 6:
            raise DiskFull(errno.ENOSPC, "No space left on device", str(self.path))
        add(self, players, game)

    monkeypatch.setattr(MatchFile, "add", fail_after_six)
    failed = run("random", "--variant", "gardner", "--out", str(tmp_path / "games.jsonl"), *MATCH)
    assert failed.exit_code == 1
    assert "games.jsonl: No space left on device" in failed.stderr
    assert "STOPPED EARLY: 2 games are missing, which favours whoever wins short ones" in failed.stdout


def test_what_cannot_be_played_is_said_before_any_process_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matches, "start_crew", None)
    result = run("random", "--variant", "gardner", "--random-plies", "0", "--games", "8", "--workers", "2")
    assert result.exit_code == 1
    assert "openings of 0 random plies" in result.stderr


def test_a_file_of_games_with_other_settings_is_refused(tmp_path: Path) -> None:
    command = ["random", "--variant", "gardner", "--out", str(tmp_path / "games.jsonl"), *MATCH]
    assert run(*command).exit_code == 0
    refused = run(*command, "--seed", "7")
    assert refused.exit_code == 2
    assert "seed was 0, now 7" in refused.stderr


def test_a_player_that_fails_is_shown_and_the_exit_code_is_1(tmp_path: Path) -> None:
    plugin = tmp_path / "clumsy.py"
    plugin.write_text(CLUMSY)
    result = run("clumsy", "--variant", "gardner", "--plugin", str(plugin), *MATCH)
    assert result.exit_code == 1
    assert "clumsy: illegal_move in 4 games" in result.stdout
    assert "error: clumsy: illegal_move in 4 games: IllegalAction: clumsy chose action -1" in result.stderr
    assert "0 of 8 games" in result.stdout


def test_a_test_ends_the_match_as_soon_as_it_decides() -> None:
    settings = ["--games", "200", "--max-plies", "40", "--workers", "0"]
    out = document("random", "--variant", "gardner", "--sprt", "200,600", *settings)
    (match,) = out["matches"]
    assert match["sprt"]["verdict"] == "H0"
    assert match["games"] == 2 * match["sprt"]["pairs"] < 200
    shown = run("random", "--variant", "gardner", "--sprt", "200,600", *settings)
    assert "SPRT of 200 against 600 Elo: H0 after" in shown.stdout


def test_processes_start_where_it_is_worth_it() -> None:
    quick, slow = Contestant(RandomPlayer()), Contestant(RandomPlayer(), searches=True)
    timed = Contestant(AlphaBetaPlayer(seconds=0.05), searches=True)
    assert workers_for(3, [quick], 10) == 3
    assert workers_for(0, [timed], 10**6) == 0
    assert workers_for(None, [slow], 199) == workers_for(None, [quick], 10**6) == 0
    many = num_cores() if num_cores() > 1 else 0
    assert workers_for(None, [slow, quick], 200) == workers_for(None, [quick, timed], 4) == many
