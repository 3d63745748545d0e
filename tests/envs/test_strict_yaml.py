"""The strict YAML subset: what each text means, and what is refused with its line and column."""

from pathlib import Path
from typing import Any

import pytest

from envs.strict_yaml import InvalidYaml, load_yaml, parse_value, read_yaml


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("true", True),
        ("false", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("12", 12),
        ("-3", -3),
        ("0", 0),
        ("1e-3", 1e-3),
        ("1E5", 1e5),
        (".5", 0.5),
        ("2.", 2.0),
        ("on", "on"),
        ("off", "off"),
        ("yes", "yes"),
        ("No", "No"),
        ("True", "True"),
        ("n", "n"),
        ("y", "y"),
        ("0x10", "0x10"),
        ("1_000", "1_000"),
        ("12:30", "12:30"),
        (".inf", ".inf"),
        (".nan", ".nan"),
        ("2020-01-01", "2020-01-01"),
        ("'12'", "12"),
        ('"true"', "true"),
        ("[1, a, 2.5]", [1, "a", 2.5]),
        ("{n: y}", {"n": "y"}),
    ],
)
def test_each_scalar_text_has_one_meaning(text: str, expected: Any) -> None:
    value = parse_value(text, "--set")
    assert value == expected
    assert type(value) is type(expected)


def test_keys_stay_strings_whatever_they_look_like() -> None:
    data, _ = load_yaml("n: 1\ny: 2\non: 3\noff: 4\n1: 5\ntrue: 6\nnull: 7\n'<<': 8\n", "x.yaml")
    assert data == {"n": 1, "y": 2, "on": 3, "off": 4, "1": 5, "true": 6, "null": 7, "<<": 8}


def test_lines_are_known_for_every_key_path() -> None:
    text = "# comment\nname: A\npieces:\n  r: {name: rook, moves: R}\n  n:\n    moves: N\nfiles:\n  - a\n  - b\n"
    _, lines = load_yaml(text, "x.yaml")
    assert lines[()] == 1
    assert lines[("name",)] == 2
    assert lines[("pieces", "r", "moves")] == 4
    assert lines[("pieces", "n", "moves")] == 6
    assert lines[("files", 1)] == 9


@pytest.mark.parametrize(
    ("text", "line", "column", "reason"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, 1, "duplicate key 'a', first given in line 1"),
        ("a: {b: 1, b: 2}\n", 1, 11, "duplicate key 'b'"),
        ("a: &x 1\n", 1, 4, "anchors"),
        ("a: 1\nb: *x\n", 2, 4, "aliases"),
        ("&x a: 1\n", 1, 1, "anchors"),
        ("a: !!python/object:os.system x\n", 1, 4, "tags"),
        ("a: !!int 3\n", 1, 4, "tags"),
        ("a: ! 3\n", 1, 4, "tags"),
        ("!!set {a}\n", 1, 1, "tags"),
        ("a:\n  <<: {b: 1}\n", 2, 3, "merge keys"),
        ("? [a, b]\n: 1\n", 1, 3, "as key"),
        ("'': 1\n", 1, 1, "as key"),
        ("a: 1\n---\nb: 2\n", 2, 1, "second"),
        ("%YAML 1.1\n---\na: 1\n", 1, 1, "directives"),
        ("a: 007\n", 1, 4, "leading zero"),
        ("a: 1e999\n", 1, 4, "out of range"),
        ("a: 99999999999999999999\n", 1, 4, "out of range"),
        ("a: " + "9" * 6000 + "\n", 1, 4, "out of range"),
        ("a: 1\nb: [1, 2\n", 3, 1, "expected"),
        ("a: 1\n\tb: 2\n", 2, 1, "token"),
        ("a: 1\nb: \x00\n", 2, 4, "not allowed"),
        ("- a\n- b\n", 1, 1, "expected a mapping (key: value), got a list"),
        ("just text\n", 1, 1, "expected a mapping (key: value), got a string"),
        ("", 1, 1, "expected a mapping (key: value), got nothing (null)"),
        ("a: " + "[" * 40 + "]" * 40, 1, 36, "nested deeper"),
        ("a: " + "[" * 100_000, 1, 36, "nested deeper"),
        ("a: " + "x" * 1_000_001, 1, 1, "characters"),
    ],
)
def test_what_is_not_plain_data_is_refused_with_its_place(text: str, line: int, column: int, reason: str) -> None:
    with pytest.raises(InvalidYaml) as caught:
        load_yaml(text, "x.yaml")
    assert reason in str(caught.value)
    assert str(caught.value).startswith(f"x.yaml:{line}:{column}: ")


def test_a_file_is_read_by_path_and_bytes_that_are_not_utf8_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "game.yaml"
    path.write_bytes("title: Schach für alle\r\nfiles: 8\r\n".encode())
    data, lines = read_yaml(path)
    assert data == {"title": "Schach für alle", "files": 8}
    assert lines[("files",)] == 2
    path.write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(InvalidYaml, match=r"game.yaml:2:1: byte 0xff is not UTF-8"):
        read_yaml(path)
