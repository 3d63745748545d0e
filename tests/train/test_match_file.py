"""The file of games: what is in it comes back, a torn line goes, and other games never mix in."""

import errno
import io
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from models.storage import CorruptFile, DiskFull
from train.config import ConfigError
from train.match_file import MatchFile
from train.match_games import CRASH, PlayedGame
from train.openings import Opening

BASIS = {"variant": "gardner", "seed": 3}
PLAYERS = ("a", "b")
GAMES = [
    PlayedGame(0, True, 1.0, "checkmate", 2, "start", "a2a3 a4a3"),
    PlayedGame(0, False, 0.5, "ply_cap", 1, "start", "a2a3"),
    PlayedGame(1, True, 0.0, "extinction", 1, "start", "b2b3"),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "new" / "games.jsonl"
    file = MatchFile(path, BASIS)
    for game in GAMES:
        file.add(PLAYERS, game)
    file.close()
    return path


def test_games_come_back_by_their_match(path: Path) -> None:
    file = MatchFile(path, BASIS)
    assert file.games(PLAYERS) == GAMES
    assert file.games(("b", "a")) == []
    file.close()


def test_a_line_that_a_kill_tore_is_dropped_and_writing_goes_on_behind_whole_ones(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:-20])
    file = MatchFile(path, BASIS)
    assert file.games(PLAYERS) == GAMES[:2]
    file.add(PLAYERS, GAMES[2])
    file.close()
    assert path.read_bytes() == content


def test_a_file_whose_first_line_was_torn_begins_anew(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:10])
    file = MatchFile(path, BASIS)
    assert file.games(PLAYERS) == []
    file.close()


def test_games_that_rest_on_something_else_are_refused_with_what_differs(path: Path) -> None:
    with pytest.raises(ConfigError, match=r"seed was 3, now 4\. Choose another file"):
        MatchFile(path, {**BASIS, "seed": 4})
    file = MatchFile(path, BASIS)  # it was let go
    with pytest.raises(ConfigError, match="another process"):
        MatchFile(path, BASIS)
    file.close()


FAILED = PlayedGame(1, False, None, CRASH, 1, "start", "b2b3", 1, "RuntimeError: no")


def test_a_game_that_failed_is_kept_for_the_record_and_not_given_back_to_another_process(path: Path) -> None:
    file = MatchFile(path, BASIS)
    file.add(PLAYERS, FAILED)
    assert file.games(PLAYERS) == [*GAMES, FAILED]
    file.close()
    file = MatchFile(path, BASIS)
    assert file.games(PLAYERS) == GAMES
    file.close()
    assert b"RuntimeError: no" in path.read_bytes()


FOREIGN = [
    b"print('no newline at the end')",
    b'{"format": 1',
    b"\n",
    b"a\nb\nc",
    b"\x00\xff\x00",
    b'{"format": 1, "variant": "gardner", "seed": 4}\nhalf a li',
    b'{"format": 1, "variant": "gardner", "seed": 3}\nno game\nhalf a li',
    b'{"format": 1, "variant": "gardner", "seed": 3}\n' + b"[" * 100_000 + b"\nhalf a li",
]


@pytest.mark.parametrize("content", FOREIGN)
def test_a_file_of_something_else_stays_as_it_is(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    if content == FOREIGN[1]:  # might be a torn first line
        MatchFile(path, BASIS).close()
        return
    with pytest.raises((CorruptFile, ConfigError), match=r"notes\.txt"):
        MatchFile(path, BASIS)
    assert path.read_bytes() == content


def test_a_file_with_the_line_ends_of_another_system_is_read_and_cut_where_it_was_torn(path: Path) -> None:
    whole = path.read_bytes().replace(b"\n", b"\r\n")
    path.write_bytes(whole + b'{"match"')
    file = MatchFile(path, BASIS)
    assert file.games(PLAYERS) == GAMES
    file.close()
    assert path.read_bytes() == whole


def test_what_can_be_no_file_of_games_is_refused_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "games.jsonl", tmp_path / "file" / "deep" / "games.jsonl", tmp_path):
        with pytest.raises(ConfigError, match=str(path)):
            MatchFile(path, BASIS)


class FullDisk:
    """A file on a disk that is full after some bytes."""

    def __init__(self, file: io.FileIO, room: int) -> None:
        self._file, self._room = file, room

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def write(self, content: memoryview) -> int:
        if not self._room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = self._file.write(content[: self._room])
        self._room -= written
        return written


def test_a_full_disk_is_named_leaves_whole_lines_and_closing_says_no_more(path: Path) -> None:
    content = path.read_bytes()
    file = MatchFile(path, BASIS)
    file._file = FullDisk(file._file, 30)  # type: ignore[assignment]
    with pytest.raises(DiskFull, match=r"games\.jsonl: No space left"):
        file.add(PLAYERS, FAILED)
    assert file.games(PLAYERS) == GAMES
    file.close()
    assert path.read_bytes() == content


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"pair": True}, "pair: expected an integer"),
    ({"pair": -1}, "pair: expected"),
    ({"pair": 1.0}, "pair: expected"),
    ({"first_is_white": 1}, "first_is_white: expected true or false"),
    ({"score": 2}, "score: expected 0, 0.5, 1 or null"),
    ({"score": True}, "score: expected"),
    ({"score": None}, "ending: expected a failure only without a score"),
    ({"ending": "crash"}, "ending: expected a failure only without a score"),
    ({"ending": "boredom"}, "ending: expected one of checkmate"),
    ({"ending": ["checkmate"]}, "ending: expected"),
    ({"plies": 3}, "plies: expected the number of moves, 2, got 3"),
    ({"start_fen": None}, "start_fen: expected text"),
    ({"moves": "a2a3  a4a3"}, "moves: expected"),
    ({"moves": 7}, "moves: expected"),
    ({"failed": 2}, "failed: expected 0, 1 or null"),
    ({"failed": 1}, "failed: expected null with a score"),
    ({"failure": None}, "failure: expected text"),
    ({"match": ["a"]}, "match: expected the keys of two players"),
    ({"match": ["a", 1]}, "match: expected the keys of two players"),
    ({"match": "ab"}, "match: expected the keys of two players"),
    ({"extra": 1}, "fields missing or unknown: extra"),
    ({"moves": "b2b3 a4a3"}, "pair 0: expected the opening a2a3 from start, got b2b3 from start"),
    ({"start_fen": "elsewhere"}, "pair 0: expected the opening a2a3 from start, got a2a3 from elsewhere"),
]


@pytest.mark.parametrize(("change", "message"), WRONG)
def test_a_game_with_a_wrong_field_is_refused_by_line_and_field(
    path: Path, change: dict[str, Any], message: str
) -> None:
    lines = path.read_text().splitlines()
    lines[1] = json.dumps({**json.loads(lines[1]), **change})
    content = "\n".join([*lines, "torn"])
    path.write_text(content)
    with pytest.raises(CorruptFile, match=rf"games\.jsonl:2: no game \(.*{re.escape(message)}"):
        MatchFile(path, BASIS, [Opening("start", (0,), ("a2a3",), "")])
    assert path.read_text() == content


@pytest.mark.parametrize("number", [0, 2])
def test_a_file_of_something_else_is_refused_with_the_place(path: Path, number: int) -> None:
    lines = path.read_text().splitlines()
    lines[number] = '{"pair": 0}'
    path.write_text("\n".join([*lines, ""]))
    with pytest.raises(CorruptFile, match=rf"games\.jsonl:{number + 1}: no game" if number else "no file of games"):
        MatchFile(path, BASIS)
