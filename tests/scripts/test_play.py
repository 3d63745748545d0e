"""scripts/play.py: transcripts of typed games, commands, exit codes, Ctrl-C and the tab key in a terminal."""

from __future__ import annotations

import os
import pty
import re
import select
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from envs import CompiledGame, load_variant
from scripts.loading import ends_quietly
from scripts.play import app
from scripts.terminal_session import Session
from tests.train.stored_run import make_run
from train.engine_game import Root
from train.engine_thinkers import Limits, Line, Stop, Thought
from train.human_game import HumanGame

ROOT = Path(__file__).resolve().parents[2]
SCRIPT, PAGE = ROOT / "scripts" / "play.py", ROOT / "docs" / "play.md"
MATE = "6k1/5ppp/8/8/8/8/5PPP/R5K1 w - - 0 1"
COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def play(arguments: str, *lines: str) -> Result:
    """Play with lines typed into a pipe."""
    return CliRunner().invoke(app, shlex.split(arguments), input="".join(f"{line}\n" for line in lines))


def answers(result: Result) -> list[str]:
    """Return what follows each prompt, up to the next one."""
    assert result.exit_code == 0, result.stderr
    parts = re.split(r"^(?:\d+\. (?:White|Black)|game over)> ", result.stdout, flags=re.MULTILINE)[1:]
    return [part.partition("\n")[2].rstrip() for part in parts]


def test_a_game_in_a_pipe_is_a_transcript_with_boards_words_and_the_end() -> None:
    done = play(f"random --variant chess --fen '{MATE}'", "a1a7", "undo", "a1a8", "quit")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("Chess (chess): you are White, against random.\n")
    assert " 8  .  .  .  .  .  .  k  . \n 7  .  .  .  .  .  p  p  p \n" in done.stdout
    assert "1. White> a1a7\nYou play a1a7 (rook).\nrandom plays " in done.stdout
    assert "Taken back: " in done.stdout
    assert "You play a1a8 (rook).\n\n 8  R  .  .  .  .  .  k  . \n" in done.stdout
    assert "\nCheckmate. White wins. The rule: A king in check" in done.stdout
    assert done.stdout.endswith("game over> quit\n")
    assert COLOURS.search(done.stdout) is None


def test_every_command_answers() -> None:
    lines = [
        "help",
        "moves",
        "moves e2",
        "moves e7",
        "moves e5",
        "moves z9",
        "pieces",
        "pieces m",
        "hint",
        "eval",
        "fen",
    ]
    said = dict(zip(lines, answers(play("greedy --variant asylum --seed 1", *lines))))
    assert re.findall(r"^  (\w+) ", said["help"], re.MULTILINE) == [
        "help", "moves", "board", "flip", "pieces", "hint", "eval", "undo", "fen", "game", "save", "resign", "quit",
    ]  # fmt: skip
    assert len(said["moves"].split()) == 42
    assert said["moves e2"] == "White's pawn on e2 may go:\n  e2e3\n  e2e4\n  e2e5"
    assert said["moves e7"] == "There is no piece on e7."
    assert said["moves z9"] == "no square 'z9' on this board; expected one, as in moves e2"
    assert "\n  R r  super loony rook\n" in said["pieces"]
    assert said["pieces m"].startswith("M, mad leaping bishop\nSlides any distance diagonally. Leaps like a camel")
    assert re.fullmatch(r"greedy would play [a-j]\d+[a-j]\d+\.", said["hint"])
    assert said["eval"] == "greedy judges no positions; a network or alphabeta does."
    assert said["fen"].startswith("rnbmqkmbnr/pppppppppp/10/10/10/10/10/10/PPPPPPPPPP/RNBMQKMBNR w KQkq - 0 1")


def test_a_game_is_saved_once_and_never_over_another_file(tmp_path: Path) -> None:
    path, other = tmp_path / "game.pgn", tmp_path / "other.pgn"
    other.write_text("keep me")
    lines = ("e2e4", f"save {path}", "save", f"save {other}", f"save {tmp_path}/no/where.pgn", "resign", f"save {path}")
    said = answers(play("greedy --variant chess --seed 2", *lines, "game"))
    assert said[1:4] == [f"Saved as {path}.", "Say where: save game.pgn", f"{other} exists: choose another name."]
    assert said[4].startswith("Not saved: ")
    assert said[5] == "White resigns. Black wins."
    assert said[6] == f"Saved as {path}."
    text = path.read_text()
    assert '[White "human"]\n[Black "greedy"]\n[Result "0-1"]\n[Variant "chess"]\n[Termination "resignation"]' in text
    assert said[7] == text.partition("\n\n")[2].strip()
    assert said[7].startswith("1. e4 ")
    assert other.read_text() == "keep me"


def test_a_file_that_another_program_has_changed_since_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "game.pgn"
    session = Session(HumanGame(load_variant("chess")), Judge(), side=0, limits=Limits())
    assert session._save(str(path)) == session._save(str(path)) == f"Saved as {path}."
    path.write_text(path.read_text() + "a comment")
    assert session._save(str(path)) == f"{path} has been changed by another program: choose another name."
    assert path.read_text().endswith("a comment")
    path.unlink()
    assert session._save(str(path)) == f"Saved as {path}."


def test_wrong_input_is_answered_and_the_game_goes_on() -> None:
    typed = ["e2e9", "mvoes", "e7e5", "", "undo", "E2E4"]
    said = answers(play("random --variant chess --seed 0", *typed))
    assert said[0].startswith("move 'e2e9': no square 'e9' on this board. Did you mean e2e")
    assert said[1] == "mvoes: no move and no command. Did you mean moves?"
    assert said[2] == "e7e5: the pawn on e7 is Black's"
    assert said[3] == ""
    assert said[4] == "There is no move of yours to take back."
    assert said[5].startswith("You play e2e4 (pawn).\nrandom plays ")


def test_whatever_bytes_are_typed_get_an_answer() -> None:
    rng = np.random.default_rng(0)
    lines = [bytes(rng.integers(1, 256, 12, np.uint8)).replace(b"\n", b"").replace(b"\r", b"") for _ in range(200)]
    words = b"moves pieces save e2e4 e7e5 undo fen hint eval flip game [bold] a9a10q".split()
    lines += [b" ".join(rng.choice(words, 2)) for _ in range(60)]
    lines = [line for line in lines if not line.startswith(b"save")]
    done = CliRunner().invoke(app, ["random", "--variant", "chess", "--seed", "0"], input=b"\n".join(lines) + b"\n")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.count("> ") >= len(lines)


def test_a_game_that_is_over_from_the_start_says_so() -> None:
    done = play("random --variant chess --fen '7k/5Q2/6K1/8/8/8/8/8 b - - 0 1'", "e2e4", "hint")
    assert "Type a move" not in done.stdout
    assert answers(done) == ["The game is over: undo, save, quit", "The game is over."]
    assert "Stalemate. A draw." in done.stdout


def test_black_sees_its_own_side_at_the_bottom_and_the_opponent_begins() -> None:
    done = play("random --variant palace_ninja_guards --option scepter --colour black --seed 0", "flip")
    assert "Palace Ninja Guards (palace_ninja_guards+scepter): you are Black, against random." in done.stdout
    first, _, last = done.stdout.partition("1. Black> flip")
    assert "\nrandom plays " in first
    assert " 9  *  *  *  g  g  *  *  * \n    h  g  f  e  d  c  b  a\n" in first
    assert " 0  *  *  *  G  G  *  *  * \n    a  b  c  d  e  f  g  h\n" in last


def test_the_end_of_the_input_leaves_cleanly_and_says_how_to_play_on() -> None:
    done = play("greedy --variant chess --seed 0", "e2e4")
    assert done.exit_code == 0
    last = done.stdout.splitlines()[-1]
    command = last.removeprefix("To play on from here: ")
    assert re.fullmatch(
        r"python \S*play\.py greedy --variant chess --colour white --fen '.+/4P3/8/PPPP1PPP/RNBQKBNR w KQkq - \d 2'",
        command,
    )
    done = play(shlex.join(shlex.split(command)[2:]), "quit")
    assert done.exit_code == 0, done.stderr


def test_the_command_that_plays_on_repeats_what_was_given_in_quotes(tmp_path: Path) -> None:
    file = tmp_path / "my own.yaml"
    file.write_text("name: Mine\nextends: asylum\n")
    given = f"random --variant '{file}' --option friendly_fire --colour black --seconds 2.5 --seed 1"
    words = shlex.split(play(given, "").stdout.splitlines()[-1])
    assert words[words.index("random") : words.index("--fen")] == [
        "random", "--variant", str(file), "--option", "friendly_fire", "--seconds", "2.5", "--colour", "black",
    ]  # fmt: skip


def test_moves_are_understood_as_people_type_them() -> None:
    fen = "r3k2r/P7/8/8/8/8/P7/R3K2R w KQkq - 0 1"
    for typed, move in (
        ("O-O", "e1g1"), ("0-0-0", "e1c1"), ("o-o", "e1g1"), ("a2 a4", "a2a4"), ("A2-A4", "a2a4"), ("a1b1", "a1b1"),
    ):  # fmt: skip
        (said,) = answers(play(f"random --variant chess --seed 0 --fen '{fen}'", typed))
        assert said.startswith(f"You play {move} ("), typed
    promoting = "4k3/P7/8/8/8/8/8/4K3 w - - 0 1"
    (said,) = answers(play(f"random --variant chess --seed 0 --fen '{promoting}'", "a7a8=Q"))
    assert said.startswith("You play a7a8q (pawn, becomes a queen).")
    said = answers(play(f"random --variant chess --fen '{promoting}'", "O-O", "a7 a8", "help", "pieces zz", "pieces q"))
    assert said[0] == "o-o: White cannot castle so now"
    assert said[1].startswith("a7a8: say what it becomes")
    assert "Castling is the king's move, or O-O and O-O-O." in said[2]
    assert said[3].startswith("No piece has the letter zz.\nWhite's and Black's letters")
    assert said[4].startswith("Q, queen")
    said = answers(play("random --variant gardner", "0-0", "help"))
    assert said[0] == "0-0: this game has no castling"
    assert "astling" not in said[1]


class Judge:
    """A thinker that thinks what it is told."""

    name, megabytes = "judge", 1

    def __init__(self, *lines: Line) -> None:
        self.lines, self.asked = lines, Limits()

    def prepare(self, game: CompiledGame) -> None: ...

    def think(self, root: Root, limits: Limits, stop: Stop, report: Callable[[Thought], None]) -> Thought:
        self.asked = limits
        return Thought(self.lines[: limits.num_lines], 1, 1, 1, 0.0)


def test_what_a_search_finds_is_told_for_the_player_to_move() -> None:
    judge = Judge(
        Line(("e2e4", "e7e5"), 123, None, (500, 200, 300)),
        Line(("d2d4",), 9999, 3, (1000, 0, 0)),
        Line(("a2a3",), -9999, -2, (0, 0, 1000)),
    )
    session = Session(HumanGame(load_variant("chess")), judge, side=0, limits=Limits(seconds=2))
    assert session._hint("").splitlines() == [
        "  e2e4  White to score 60 % (+1.23): e2e4 e7e5",
        "  d2d4  White to win in 3: d2d4",
        "  a2a3  Black to win in 2: a2a3",
    ]
    assert judge.asked == Limits(seconds=2, num_lines=3)
    assert session._eval("") == "judge expects White to score 60 % (+1.23)."
    assert judge.asked == Limits(seconds=2)


@pytest.mark.slow
def test_a_network_plays_hints_and_judges(tmp_path: Path) -> None:
    make_run(tmp_path / "mine", 4)
    lines = ["hint", "eval", "moves"]
    done = play(f"{tmp_path / 'mine'} --simulations 8 --seed 0", *lines)
    hint, judged, moves = answers(done)
    assert len(hint.splitlines()) == 3
    assert {line.split()[0] for line in hint.splitlines()} <= set(moves.split())
    assert re.search(r"expects White to (score \d+ % \([+-]\d+\.\d\d\)|win in \d+)\.$", judged)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("gredy --variant chess", "did you mean 'greedy'"),
        ("alphabeta:x --variant chess", "expected alphabeta:PLIES or alphabeta:MILLISECONDSms"),
        ("greedy", "say which one with --variant"),
        ("greedy --variant ches", "did you mean 'chess'"),
        ("greedy --variant chess --option x", "unknown option 'x'"),
        ("greedy --variant chess --fen '8/8 w'", "expected six fields"),
        ("greedy --variant chess --colour red", "expected white, black or random"),
        ("greedy --option scepter", "name the game too"),
    ],
)
def test_wrong_usage_exits_with_2_and_says_why(arguments: str, message: str) -> None:
    done = play(arguments)
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stdout == ""


def test_the_transcript_of_the_page_is_what_the_script_prints() -> None:
    (block,) = re.findall(
        r"```console\n\$ python scripts/play.py (.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL
    )
    arguments, _, shown = block.partition("\n")
    typed = re.findall(r"^(?:\d+\. \w+|game over)> (.*)$", shown, re.MULTILINE)
    printed = "".join(f"{line.rstrip()}\n" for line in play(arguments, *typed).stdout.splitlines())
    left_out = {"...": r"(?:.*\n)*?"}
    lines = (left_out.get(line, re.escape(line).replace(re.escape("..."), ".*") + r"\n") for line in shown.splitlines())
    assert re.fullmatch("".join(lines), printed), printed
    assert len(typed) == 7


def test_a_terminal_has_colours_completes_words_and_hears_ctrl_c() -> None:
    main, side = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"}
    command = [sys.executable, str(SCRIPT), "greedy", "--variant", "gardner", "--seed", "0"]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a suite in the background ignores it
    process = subprocess.Popen(command, stdin=side, stdout=side, stderr=side, env=environment)
    signal.signal(signal.SIGINT, before)
    os.close(side)
    try:
        assert "\x1b[" in until(main, "White> ")
        os.write(main, b"piec\t k\n")
        assert "K, king (royal)" in until(main, "White> ")
        os.write(main, b"a2a3\n")
        assert "greedy plays " in until(main, "2. White> ")
        process.send_signal(signal.SIGINT)
        text = until(main, "interrupted", remind=lambda: process.send_signal(signal.SIGINT))
        assert "To play on from here: python " in text
        assert process.wait(30) == 130
    finally:
        process.kill()
        os.close(main)


def until(terminal: int, ending: str, remind: Callable[[], None] = lambda: None) -> str:
    """Read from a terminal until what it shows ends in a text; `remind` is called when nothing has come for long.

    A signal that comes just before Python's `input` begins to wait is seen only after the wait, or with the next one.
    """
    shown, deadline = "", time.monotonic() + 60
    while not COLOURS.sub("", shown).rstrip("\r\n").endswith(ending):
        assert time.monotonic() < deadline, shown
        if select.select([terminal], [], [], 10)[0]:
            shown += os.read(terminal, 65536).decode()
        else:
            remind()
    return shown


def test_ctrl_c_while_a_script_loads_ends_it_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    class Ended(Exception):
        pass

    def end(code: int) -> None:
        raise Ended(code)

    monkeypatch.setattr(os, "_exit", end)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(Ended, match="130"), ends_quietly():
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before
