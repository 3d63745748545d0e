"""Turn pydantic's complaints about a config into lines that a person can act on."""

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from envs.strict_yaml import KeyPath, Lines, describe_type

SHOWN_CHARACTERS = 60
_EXPECTED = {
    "bool_type": "true or false",
    "dict_type": "a mapping",
    "finite_number": "a finite number",
    "float_type": "a number",
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "int_type": "an integer",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
    "list_type": "a list",
    "literal_error": "{expected}",
    "model_type": "a mapping",
    "multiple_of": "a multiple of {multiple_of}",
    "string_pattern_mismatch": "a plain name (letters, digits, _ . + -)",
    "string_too_short": "a name",
    "string_type": "a string",
}


class ConfigError(ValueError):
    """A config that cannot be used; the message names file, line, key path, what was expected and given."""


def explain(error: ValidationError, model: type[BaseModel], where: str, lines: Lines) -> str:
    """Describe every fault of a config, one a line.

    Args:
        error: what pydantic raised.
        model: the model that refused; its fields are the known names.
        where: name of the source.
        lines: line of each key path, where known; 0 marks one given by `--set`.
    """
    return "\n".join(_explain_one(fault, model, where, lines) for fault in error.errors(include_url=False))


def _explain_one(fault: ErrorDetails, model: type[BaseModel], where: str, lines: Lines) -> str:
    path: KeyPath = tuple(part for part in fault["loc"] if part != "[key]")
    place = _place(path, where, lines)
    key = ".".join(map(str, path)) or "top level"
    if fault["type"] == "extra_forbidden":
        return f"{place}: {key}: unknown key{_suggestion(path, model)}"
    if fault["type"] == "missing":
        return f"{place}: {key}: missing, expected a value"
    if fault["type"] == "value_error":
        return f"{place}: {key}: {fault['ctx']['error']}"
    template = _EXPECTED.get(fault["type"])
    expected = template.format(**fault.get("ctx", {})) if template else fault["msg"]
    return f"{place}: {key}: expected {expected}, got {_show(fault['input'])}"


def _place(path: KeyPath, where: str, lines: Lines) -> str:
    """Name the source and the line of the innermost key of `path` that was given."""
    for depth in range(len(path), 0, -1):
        line = lines.get(path[:depth])
        if line == 0:
            return "--set"
        if line is not None:
            return f"{where}:{line}"
    return where


def _show(value: Any) -> str:
    if isinstance(value, dict | list) or value is None:
        return describe_type(value)
    text = repr(value)
    shown = text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "..."
    return f"{str(value).lower() if isinstance(value, bool) else shown} ({describe_type(value)})"


def _suggestion(path: KeyPath, model: type[BaseModel]) -> str:
    """Name the nearest known key: first in the same section, then anywhere."""
    *parents, name = (part for part in path if isinstance(part, str))  # numbers count the items of lists
    known = list(_known_paths(model, ()))
    siblings = [known_path[-1] for known_path in known if known_path[:-1] == tuple(parents)]
    if near := get_close_matches(name, siblings, n=1):
        return f", did you mean '{near[0]}'?"
    elsewhere = [known_path for known_path in known if known_path[-1] == name]
    if elsewhere:
        return f", did you mean '{'.'.join(elsewhere[0])}'?"
    started = [sibling for sibling in siblings if sibling.startswith(name[:3])]
    if started:
        return f", did you mean '{started[0]}'?"
    return f" (known here: {', '.join(siblings)})"


def _known_paths(model: type[BaseModel], path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for name, field in model.model_fields.items():
        yield (*path, name)
        for kind in (field.annotation, *get_args(field.annotation)):
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield from _known_paths(kind, (*path, name))
