"""scripts/check.py: the whole page, JSON, refusals with their place, interruption."""

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from envs import load_variant
from envs.reference import MAIN_GAMES
from scripts.check import app

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = str(ROOT / "scripts" / "check.py")


def check(*words: str) -> Result:
    return CliRunner().invoke(app, words)


@pytest.mark.parametrize("name", [*MAIN_GAMES, "breakthrough", "grand", "horde", "maharajah"])
def test_the_page_has_rules_and_random_play_and_progress_goes_to_stderr(name: str) -> None:
    done = check(name, "--games", "10", "--seed", "3")
    assert done.exit_code == 0, done.stderr
    for heading in ("BOARD", "PIECES", "HOW A GAME ENDS", "RANDOM PLAY", "FOR A LEARNER"):
        assert f"\n{heading}\n" in done.stdout
    assert "10 games of uniformly random legal moves" in done.stdout
    assert load_variant(name).rules_hash in done.stdout
    assert "random games" not in done.stdout
    assert "random games" in done.stderr


def test_options_are_applied_and_named() -> None:
    done = check("palace_ninja_guards", "--option", "scepter", "--games", "20")
    assert done.stdout.startswith("PALACE NINJA GUARDS with scepter\n")
    assert "scepter is on. Switching it off changes" in done.stdout
    assert "Ending       scepter" in done.stdout or " scepter  " in done.stdout


def test_goals_are_endings_by_their_names_and_another_move_limit_is_no_fifty_moves(tmp_path: Path) -> None:
    done = check("breakthrough", "--games", "20")
    assert "Ending       breakthrough     20  100.0 %" in done.stdout
    file = tmp_path / "short.yaml"
    file.write_text("name: Short\nextends: chess\nends: {move_limit: 2}\n")
    done = check(str(file), "--games", "20")
    assert "move limit" in done.stdout.partition("RANDOM PLAY")[2]
    assert "fifty" not in done.stdout


def test_games_that_never_end_are_cut_short_and_counted_apart(tmp_path: Path) -> None:
    file = tmp_path / "endless.yaml"
    file.write_text(
        "name: Endless\nboard: {files: 5, ranks: 5}\nroyal: k\npieces: {k: {name: king, moves: K}}\n"
        "start: k4/5/5/5/4K w - - 0 1\nends: {bare_kings: off, repetition: off, move_limit: off}\n"
    )
    done = check(str(file), "--games", "2")
    assert "each to its end by the rules or to 5,000 plies" in done.stdout
    assert done.stdout.count("cut short at 5,000 plies      2  100.0 %") == 2
    games = json.loads(check(str(file), "--games", "2", "--json").stdout)["random_games"]
    assert games["cut_short"] == 2
    assert games["endings"] == {}
    assert games["draws"] == 0


def test_json_is_one_object_with_rules_figures_and_what_repeats_them() -> None:
    done = check("asylum", "--games", "30", "--seed", "5", "--json")
    document = json.loads(done.stdout)
    assert document["variant"] == "asylum"
    assert document["options"] == {"friendly_fire": False}
    assert document["seeds"] == {"random_games": 5}
    assert document["arrays"]["num_actions"] == 4160
    assert document["arrays"]["observation_shape"] == [23, 10, 10]
    games = document["random_games"]
    assert games["games"] == sum(games["endings"].values()) == 30
    assert games["white_wins"] + games["black_wins"] + games["draws"] == 30
    assert games["goals"] == {}
    assert games["cut_short"] == 0
    assert games["median_plies"] <= games["max_plies"]
    assert document["rules"]["Pieces"]["B, bishop"] == ["Slides any distance diagonally."]
    assert document["rules"]["Options"]["friendly_fire"]["on"] is False
    assert json.loads(check("asylum", "--games", "30", "--seed", "5", "--json").stdout) == document


def test_json_has_the_title_credits_readings_and_start_positions(tmp_path: Path) -> None:
    assert json.loads(check("asylum", "--games", "1", "--json").stdout)["game"] == {
        "title": "Asylum Chess",
        "inventor": "Charles Daniel",
        "year": 2007,
        "source": "The Chess Variant Pages: Asylum Chess",
        "readings": load_variant("asylum").document["readings"],
        "start_fens": [load_variant("asylum").start_fen],
    }
    file = tmp_path / "two.yaml"
    starts = [f"{rank.lower()}/pppppppp/8/8/8/8/PPPPPPPP/{rank} w - - 0 1" for rank in ("RNBQKBNR", "RNBKQBNR")]
    file.write_text(f"name: Two\nextends: chess\ncastling: null\nstart: [{', '.join(starts)}]\n")
    game = json.loads(check(str(file), "--games", "1", "--json").stdout)["game"]
    assert game["title"] == "Two"
    assert game["readings"] == []
    assert game["start_fens"] == starts


def test_a_file_by_path_is_checked_like_a_built_in_game(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("name: My Game\nextends: chess\npieces: {q: {name: amazon, moves: QN}}\n")
    done = check(str(file), "--games", "5")
    assert done.exit_code == 0
    assert done.stdout.startswith("MY GAME\n=======\n")
    assert "Q, amazon" in done.stdout


@pytest.mark.parametrize("text, message", [
    ("name: X\nextends: chess\npieces: {q: {name: q, movs: Q}}\n", "mine.yaml:3: pieces.q.movs: unknown key"),
    ("name: X\nextends: chess\n\npawns: {first_steps: 99}\n", "mine.yaml:4: pawns.first_steps:"),
    ("name: X\nextends: chess\ndrops: true\n", "mine.yaml:3: drops: pieces in hand are not supported"),
    ("name: X\nname: Y\n", "mine.yaml:2"),
    ("name: X\nextends: chess\ncastling: null\n", "start: castling rights: 'K', but"),
])  # fmt: skip
def test_a_game_that_cannot_be_played_is_refused_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    done = check(str(file))
    assert done.exit_code == 1
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("words, code", [
    (("ches",), 1), (("chess", "--option", "x"), 1),
    ((), 2), (("chess", "--games", "0"), 2), (("chess", "--x"), 2),
])  # fmt: skip
def test_exit_codes_tell_a_refused_game_from_a_wrong_command_line(words: tuple[str, ...], code: int) -> None:
    done = check(*words)
    assert done.exit_code == code
    assert done.stdout == ""


def test_an_interrupted_check_leaves_with_130_and_no_traceback(tmp_path: Path) -> None:
    command = [sys.executable, SCRIPT, "asylum", "--games", "1000000"]
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - background shells ignore it
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert running.stdout.readline() == "ASYLUM CHESS\n"
        time.sleep(0.5)
        running.send_signal(signal.SIGINT)
        running.stdout.read()
        told = running.stderr.read()
        assert running.wait(60) == 130
    assert "interrupted" in told
    assert "Traceback" not in told
