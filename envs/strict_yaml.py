"""A strict subset of YAML for variant files and run configs: plain data, one meaning for each text.

Refused, each with line and column: duplicate keys, anchors, aliases, tags, merge keys, directives, several
documents, keys that are not scalars, numbers out of range. Plain scalars follow YAML 1.2's core schema,
narrowed: `true` and `false` are booleans, `null`, `~` and nothing are null, decimal integers and floats are
numbers (`1e-3` too), everything else is a string (`off`, `yes`, `n`, `0x10`, `1_000`, `.inf`, `2020-01-01`).
Keys are always strings, so a piece may be called `n` or `y`.
Source: https://yaml.org/spec/1.2.2/ sections 3.2.1 and 10.3.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

_TYPE_NAMES = {
    dict: "a mapping",
    list: "a list",
    str: "a string",
    bool: "true or false",
    int: "an integer",
    float: "a number",
    type(None): "nothing (null)",
}

MAX_DEPTH = 32
MAX_CHARACTERS = 1_000_000
INT_LIMIT = 2**63

KeyPath = tuple[str | int, ...]
Lines = dict[KeyPath, int]

_INTEGER = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]+")
_CONSTANTS: dict[str, bool | None] = {"true": True, "false": False, "null": None, "~": None, "": None}


class InvalidYaml(ValueError):
    """Text outside the strict subset.

    Attributes:
        where: name of the file or source.
        line: 1-based line.
        column: 1-based column.
        reason: what was found and what was expected.
    """

    def __init__(self, where: str, line: int, column: int, reason: str) -> None:
        super().__init__(f"{where}:{line}:{column}: {reason}")
        self.where, self.line, self.column, self.reason = where, line, column, reason


def describe_type(value: object) -> str:
    """Name the YAML type of a loaded value in words, for error messages."""
    return _TYPE_NAMES.get(type(value), type(value).__name__)


def load_yaml(text: str, where: str) -> tuple[dict[str, Any], Lines]:
    """Parse a document whose top level is a mapping.

    Args:
        text: the document.
        where: name of the file or source, for errors.

    Returns:
        The data (dicts with string keys, lists, str, int, float, bool, None), and the 1-based line of every
        key path: a mapping's entry has the line of its key, a list's item its own line, the root `()` line 1.

    Raises:
        InvalidYaml: the text is not in the strict subset, or its top level is not a mapping.
    """
    data, lines = _Builder(where).document(text)
    if not isinstance(data, dict):
        raise InvalidYaml(where, 1, 1, f"expected a mapping (key: value), got {describe_type(data)}")
    return data, lines


def read_yaml(path: str | Path) -> tuple[dict[str, Any], Lines]:
    """Read and parse a UTF-8 file with `load_yaml`; errors name the path.

    Raises:
        InvalidYaml: also for bytes that are not UTF-8.
        OSError: the file cannot be read.
    """
    content = Path(path).read_bytes()
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidYaml(str(path), line, 1, f"byte 0x{content[error.start]:02x} is not UTF-8") from None
    return load_yaml(text, str(path))


def parse_value(text: str, where: str) -> Any:
    """Parse one value as it would stand after `key: ` in a file (for command lines)."""
    data, _ = _Builder(where).document(text)
    return data


class _Builder:
    """Builds plain data from PyYAML's events; one use."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.lines: Lines = {(): 1}
        self.events: Iterator[Any] = iter(())

    def document(self, text: str) -> tuple[Any, Lines]:
        if len(text) > MAX_CHARACTERS:
            raise InvalidYaml(self.where, 1, 1, f"{len(text)} characters, at most {MAX_CHARACTERS} are read")
        self.events = yaml.parse(text, Loader=yaml.SafeLoader)
        try:
            data = self._stream()
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
            reason = ", ".join(part for part in (error.context, error.problem) if part)
            raise InvalidYaml(self.where, line, column, reason) from None
        except yaml.reader.ReaderError as error:
            line = text.count("\n", 0, error.position) + 1
            column = error.position - text.rfind("\n", 0, error.position)
            reason = f"character {error.character!r} is not allowed"
            raise InvalidYaml(self.where, line, column, reason) from None
        return data, self.lines

    def _refuse(self, event: Any, reason: str) -> InvalidYaml:
        return InvalidYaml(self.where, event.start_mark.line + 1, event.start_mark.column + 1, reason)

    def _stream(self) -> Any:
        next(self.events)  # stream start
        event = next(self.events)
        if isinstance(event, yaml.StreamEndEvent):
            return None
        if event.version or event.tags:
            raise self._refuse(event, "directives (%YAML, %TAG) are not allowed")
        data = self._node(next(self.events), ())
        next(self.events)  # document end
        event = next(self.events)
        if not isinstance(event, yaml.StreamEndEvent):
            raise self._refuse(event, "expected one document, got a second one")
        return data

    def _node(self, event: Any, path: KeyPath) -> Any:
        self._check_node(event, path)
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(path)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(path)
        return self._scalar(event)

    def _check_node(self, event: Any, path: KeyPath) -> None:
        if isinstance(event, yaml.AliasEvent):
            raise self._refuse(event, f"aliases (*{event.anchor}) are not allowed: write the value out")
        if event.anchor is not None:
            raise self._refuse(event, f"anchors (&{event.anchor}) are not allowed: write the value out")
        if event.tag is not None:
            raise self._refuse(event, f"tags ({event.tag}) are not allowed: only plain data")
        if len(path) > MAX_DEPTH:
            raise self._refuse(event, f"nested deeper than {MAX_DEPTH} levels")

    def _mapping(self, path: KeyPath) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            key = self._key(event, path)
            if key in mapping:
                first = self.lines[(*path, key)]
                raise self._refuse(event, f"duplicate key {key!r}, first given in line {first}")
            self.lines[(*path, key)] = event.start_mark.line + 1
            mapping[key] = self._node(next(self.events), (*path, key))
        return mapping

    def _key(self, event: Any, path: KeyPath) -> str:
        self._check_node(event, path)
        if not isinstance(event, yaml.ScalarEvent):
            raise self._refuse(event, "expected a name as key, got a list or mapping")
        key: str = event.value
        if key == "<<" and event.style is None:
            raise self._refuse(event, "merge keys (<<) are not allowed: write the entries out")
        if not key:
            raise self._refuse(event, "expected a name as key, got nothing")
        return key

    def _sequence(self, path: KeyPath) -> list[Any]:
        items: list[Any] = []
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            item_path = (*path, len(items))
            self.lines[item_path] = event.start_mark.line + 1
            items.append(self._node(event, item_path))
        return items

    def _scalar(self, event: Any) -> str | int | float | bool | None:
        text: str = event.value
        if event.style is not None:  # quoted or a block: always a string
            return text
        if text in _CONSTANTS:
            return _CONSTANTS[text]
        if _LEADING_ZERO.fullmatch(text):
            raise self._refuse(
                event, f"{text} has a leading zero: write the number without it, or quote it as '{text}'"
            )
        if _INTEGER.fullmatch(text):
            return self._integer(event, text)
        if _FLOAT.fullmatch(text):
            number = float(text)
            if number in (float("inf"), float("-inf")):
                raise self._refuse(event, f"number {text} is out of range")
            return number
        return text

    def _integer(self, event: Any, text: str) -> int:
        if len(text) > len(str(INT_LIMIT)) + 1 or not -INT_LIMIT <= int(text) < INT_LIMIT:
            raise self._refuse(event, f"integer {text[:24]} is out of range (64 bits)")
        return int(text)
