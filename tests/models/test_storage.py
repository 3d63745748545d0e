"""Files: whole or not there, regular or refused, JSON with one meaning."""

import errno
import os
from pathlib import Path

import pytest

from models.storage import (
    CorruptFile,
    DiskFull,
    naming_full_disk,
    parse_json,
    read_regular,
    remove_unfinished,
    write_atomically,
)

WHERE = Path("state.json")


@pytest.mark.parametrize(
    "text",
    [
        b'{"a": NaN}',
        b'{"a": Infinity}',
        b"[-Infinity]",
        b'{"a": 1, "a": 2}',
        b'{"b": {"a": 1, "a": 1}}',
        b"[" * 100_000,
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        b"9" * 100_000,
        b'{"a": 1',
        b"",
        b"\xff\xfe{}",
        b"\x80\x04N.",
    ],
)
def test_json_with_no_meaning_or_two_is_refused_by_name(text):
    with pytest.raises(CorruptFile, match=r"state\.json: no JSON"):
        parse_json(text, WHERE)


def test_json_comes_back_as_it_was_written():
    assert parse_json(b'{"a": [1, 2.5, null, true, "x"], "b": {}}', WHERE) == {"a": [1, 2.5, None, True, "x"], "b": {}}


def test_a_pipe_is_refused_at_once_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CorruptFile, match="pipe: expected a regular file"):
        read_regular(tmp_path / "pipe")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_is_named_with_the_file_and_the_free_space(tmp_path, number):
    message = r"run/new/games\.npz: .*[0-9.]+ MB are free"
    with pytest.raises(DiskFull, match=message) as caught, naming_full_disk(tmp_path / "run/new/games.npz"):
        raise OSError(number, os.strerror(number))
    assert caught.value.errno == number


def test_other_errors_of_the_disk_pass_unchanged(tmp_path):
    with pytest.raises(PermissionError), naming_full_disk(tmp_path / "games.npz"):
        raise PermissionError(errno.EACCES, "no")


def test_a_full_disk_leaves_the_old_file_and_no_temporary_one(tmp_path, monkeypatch):
    def full(_descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "config.yaml").write_bytes(b"old")
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(DiskFull, match=r"/config\.yaml: No space"):
        write_atomically(tmp_path / "config.yaml", b"new")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"config.yaml": b"old"}


def test_leftovers_are_removed_whatever_they_are_and_a_link_is_not_followed(tmp_path):
    outside = tmp_path / "outside"
    (outside / ".tmp-inner").mkdir(parents=True)
    run = tmp_path / "run"
    (run / ".tmp-folder" / "sub").mkdir(parents=True)
    (run / ".tmp-file").touch()
    (run / ".tmp-link").symlink_to(outside)
    (run / "kept").touch()
    remove_unfinished(run)
    remove_unfinished(tmp_path / "nowhere")
    assert [path.name for path in run.iterdir()] == ["kept"]
    assert (outside / ".tmp-inner").exists()
