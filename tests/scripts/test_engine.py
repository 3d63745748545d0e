"""scripts/engine.py as a GUI runs it: python-chess's driver plays whole games, XBoard lets it play against itself."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import chess
import chess.engine
import pytest
from typer.testing import CliRunner

from scripts.engine import app
from tests.train.stored_run import make_run

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = [sys.executable, str(ROOT / "scripts" / "engine.py")]
TIMEOUT_S = 120
XBOARD = shutil.which("xboard", path=os.environ["PATH"] + ":/usr/games")
NEEDS_XBOARD = pytest.mark.skipif(
    not (XBOARD and shutil.which("xvfb-run")), reason="needs the Debian packages xboard and xvfb"
)


@pytest.fixture(scope="module")
def greedy() -> Iterator[chess.engine.SimpleEngine]:
    with chess.engine.SimpleEngine.popen_uci([*SCRIPT, "greedy", "--seed", "1"], timeout=TIMEOUT_S) as engine:
        yield engine


def play(white: chess.engine.SimpleEngine, black: chess.engine.SimpleEngine, limit: chess.engine.Limit) -> chess.Board:
    board = chess.Board()
    while not (board.is_game_over() or board.is_repetition(3) or board.is_fifty_moves()):
        player = white if board.turn else black
        board.push(player.play(board, limit, game=id(board)).move)
    return board


def test_a_whole_game_is_played_under_the_driver_of_python_chess(greedy):
    board = play(greedy, greedy, chess.engine.Limit(time=0.01))
    assert board.ply() > 20


def test_the_driver_finds_the_options_and_names_the_engine(greedy):
    assert greedy.id["name"].startswith("Asylum Zero")
    assert greedy.options["UCI_Variant"].default == "chess"
    assert "asylum" in greedy.options["UCI_Variant"].var
    assert {"MultiPV", "UCI_ShowWDL", "Hash", "Threads", "Ponder", "Move Overhead"} <= set(greedy.options)


@pytest.mark.slow
@pytest.mark.parametrize("limit", [chess.engine.Limit(depth=3), chess.engine.Limit(white_clock=2, black_clock=2),
                                   chess.engine.Limit(time=0.2)])  # fmt: skip
def test_alpha_beta_plays_whole_games_under_the_driver(greedy, limit):
    with chess.engine.SimpleEngine.popen_uci([*SCRIPT, "alphabeta"], timeout=TIMEOUT_S) as engine:
        engine.configure({"Hash": 16, "UCI_ShowWDL": True})
        board = play(engine, greedy, limit)
        assert not board.is_checkmate() or board.turn is chess.BLACK
        lines = engine.analyse(chess.Board(), chess.engine.Limit(depth=3), multipv=3)
        assert [line["multipv"] for line in lines] == [1, 2, 3]
        assert all(line["wdl"].relative.total() == 1000 for line in lines)


def talk(*words: str, said: bytes) -> str:
    done = CliRunner().invoke(app, words, input=said)
    assert done.exit_code == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("said, words, expected", [
    (b"\nuci\nquit\n", (), "uciok"),
    (b"xboard\nprotover 2\nquit\n", (), "feature done=1"),
    (b"protover 2\n", ("--protocol", "xboard"), "feature done=1"),
    (b"isready\n", (), "readyok"),
])  # fmt: skip
def test_the_first_line_says_which_protocol_is_spoken(said, words, expected):
    assert expected in talk("random", *words, said=said).splitlines()


def test_bytes_that_are_no_text_are_answered_like_other_wrong_input():
    answered = talk("random", said=b"uci\n\xff\xfe\x00\nisready\nquit\n")
    assert "info string unknown command" in answered
    assert answered.endswith("readyok\n")


def test_a_network_plays_and_offers_the_game_that_it_has_learned(tmp_path):
    run = tmp_path / "run"
    make_run(run, 5)
    answered = talk(str(run), "--simulations", "20", said=b"uci\nisready\ngo\n")
    (combo,) = [line for line in answered.splitlines() if "UCI_Variant" in line]
    assert combo.count(" var ") == 1
    assert re.search(r"^bestmove \w+", answered, re.MULTILINE)


@pytest.mark.parametrize("words, message", [
    (("nobody",), "expected a run, a checkpoint or a baseline"),
    (("alphabeta:x",), "expected alphabeta:PLIES"),
    (("random", "--variant", "checkers"), "checkers"),
    (("random", "--option", "scepter"), "name the game too"),
    (("random", "--protocol", "telnet"), "expected uci or xboard"),
])  # fmt: skip
def test_errors_are_lines_on_stderr(words, message):
    done = CliRunner().invoke(app, words, input=b"uci\n")
    assert done.exit_code != 0
    assert message in " ".join(done.stderr.split())
    assert done.stdout == ""


def two_machines(folder: Path, game: str, player: str, *words: str) -> str:
    """Let XBoard play a game of an engine against itself in a virtual screen; return the saved game."""
    engine = " ".join([*SCRIPT, player])
    command = [
        "xvfb-run", "-a", XBOARD, "-fcp", engine, "-scp", engine, "-variant", game, "-mode", "TwoMachines", "-mg", "1",
        "-tc", "1", "-inc", "1", "-saveGameFile", "game.pgn", "-nameOfDebugFile", "debug.txt", "-debug",
        "-popupExitMessage", "false", "-popupMoveErrors", "false", *words,
    ]  # fmt: skip
    subprocess.run(command, cwd=folder, timeout=600, check=True, capture_output=True)
    assert "llegal move" not in (folder / "debug.txt").read_text(errors="replace")
    return (folder / "game.pgn").read_text(errors="replace")


@pytest.mark.slow
@NEEDS_XBOARD
@pytest.mark.parametrize("game, words", [
    ("asylum", ()),
    ("palace_ninja_guards", ("-testLegality", "false")),
    ("normal", ()),
])  # fmt: skip
def test_xboard_plays_a_game_of_two_machines_to_its_end(tmp_path, game, words):
    saved = two_machines(tmp_path, game, "alphabeta:2", *words)
    assert re.search(r'\[Result "(1-0|0-1|1/2-1/2)"\]', saved)
    comment = saved[saved.rindex("{") :]
    assert re.search(r"mates|[Rr]epetition|50-move|Stalemate|[Bb]are|Insufficient", comment), comment
