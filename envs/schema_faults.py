"""A merged document held against the schema: the first fault, in a designer's words, with its file, line and key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from envs.errors import InvalidVariant
from envs.refusals import REFUSED_LISTS, refusal_of_key, refusal_of_part, refusal_of_value
from envs.schema import FORMS, MIRRORED_CASTLING_KEYS, OPTION_KEYS, PATTERN_WORDS, VariantSchema
from envs.strict_yaml import MAX_DEPTH, KeyPath, describe_type
from envs.variant_files import VERY_LIKE, Provenance, did_you_mean, shortened

EXPECTATIONS = {
    "string_type": "a text",
    "int_type": "a whole number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "literal_error": "{expected}",
    "string_too_short": "at least {min_length} character",
    "string_too_long": "at most {max_length} characters",
    "greater_than_equal": "at least {ge}",
    "less_than_equal": "at most {le}",
    "too_long": "at most {max_length} entries",
}
"""What each kind of fault says was expected; braces are filled in by pydantic's context."""
MIXED_CASTLING = (
    "castling is given either for both sides alike, or under white and black: rank, king, kingside and queenside "
    "stand beside white and black"
)

NONE_WORDS = ("off", "none", "no", "never", "false", "nothing")
"""What a designer may write for `null`."""
REMOVABLE = ("royal", "castling", "kingside", "queenside", "white", "black", "pawns", "extinction")
"""The keys that hold a mapping or a letter, or nothing."""
OTHER_WORDS: Mapping[KeyPath, Mapping[str, str]] = {
    ("ends", "repetition"): dict.fromkeys(("count", "counts", "number", "fold", "occurrences"), "times")
}
"""Under a key, words for one of its keys that are not spelled like it."""


def validate_document(document: Mapping[str, Any], provenance: Provenance) -> VariantSchema:
    """Check a merged document against the schema.

    Raises:
        InvalidVariant: The first fault, with its file, line, key, what was expected and what came.
    """
    try:
        return VariantSchema.model_validate(dict(document))
    except ValidationError as error:
        raise _fault(error.errors(include_url=False)[0], document, provenance) from None


def check_keys(document: Mapping[str, Any], provenance: Provenance) -> None:
    """Refuse every key that the schema does not know, also one that `null` or a child has taken out of the document.

    What stands at the top of an option is left to the loader, which knows what an option may change.

    Raises:
        InvalidVariant: The first unknown key, the outermost ones first.
    """
    for path in sorted({**provenance.places, **dict.fromkeys(_key_paths(document, ()))}, key=len):
        is_laid = path[:1] == ("options",)
        inner = path[2:] if is_laid else path
        if inner in ((), ("extends",)) or (is_laid and (len(inner) == 1 or inner[0] not in OPTION_KEYS)):
            continue
        if isinstance(inner[-1], int) or inner[:-1] in (("pieces",), ("options",)):
            continue
        known = _known_keys(inner[:-1])
        if known and inner[-1] not in known:
            raise provenance.error(path, _unknown_key(inner))


def _key_paths(value: object, path: KeyPath) -> Iterator[KeyPath]:
    """Yield the path of every key and list item of a document."""
    if isinstance(value, Mapping | list):
        for key, child in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield (*path, key)
            yield from _key_paths(child, (*path, key))


def check_plain(document: object, where: str) -> None:
    """Refuse a document that YAML could not hold: other types, keys that are not texts, nesting without end.

    Raises:
        InvalidVariant: The message names the key.
    """
    error = Provenance(where, {}).error
    if not isinstance(document, dict):
        raise error((), f"expected a mapping, got {shown(document)}")
    todo: list[tuple[KeyPath, object]] = [((), document)]
    while todo:
        path, value = todo.pop()
        if len(path) > MAX_DEPTH:
            raise error(path[:2], f"nested deeper than {MAX_DEPTH} levels")
        if isinstance(value, dict):
            for key in value:
                if not isinstance(key, str):
                    raise error(path, f"expected names as keys, got {shown(key)}")
            todo += [((*path, key), child) for key, child in value.items()]
        elif isinstance(value, list):
            todo += [((*path, number), child) for number, child in enumerate(value)]
        elif not isinstance(value, str | int | float | None):
            raise error(path, f"expected plain data, got {describe_type(value)}")


def shown(value: object) -> str:
    """Return a value as it is named in a message, short."""
    if isinstance(value, str):
        return repr(shortened(value))
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "nothing (null)"}[value]
    if isinstance(value, int | float):
        return shortened(repr(value))
    return f"a list of {len(value)}" if isinstance(value, list) else describe_type(value)


def _fault(fault: ErrorDetails, document: Mapping[str, Any], provenance: Provenance) -> InvalidVariant:
    path, kind, value = _path_in(document, fault["loc"]), fault["type"], fault["input"]
    if kind == "extra_forbidden":
        return provenance.error(path, _unknown_key(path))
    if kind == "missing":
        return provenance.error(path, f"the key {str(fault['loc'][-1])!r} is missing")
    if isinstance(value, list) and path in REFUSED_LISTS:
        return provenance.error(path, REFUSED_LISTS[path])
    is_word = isinstance(value, str) and kind.startswith(("literal", "string_p")) and path != ("ends", "stalemate")
    refusal = refusal_of_value(value) if is_word else None
    if refusal:
        return provenance.error(path, refusal)
    got = str(len(value)) if isinstance(value, dict) and kind == "too_long" else shown(value)
    return provenance.error(path, f"{_expectation(fault, path)}, got {got}{_hint(path, kind, value)}")


def _hint(path: KeyPath, kind: str, value: object) -> str:
    """Return what else to write, where a value is a word for nothing or a wrong royal."""
    if path and path[-1] in REMOVABLE and (value is False or str(value).lower() in NONE_WORDS):
        return f"; for none write `{path[-1]}: null`"
    if path[:1] == ("royal",) and kind == "string_pattern_mismatch":
        is_capital = isinstance(value, str) and len(value) == 1 and value.isupper()
        return f", did you mean {str(value).lower()!r}?" if is_capital else f"; {REFUSED_LISTS['royal',]}"
    return ""


def _expectation(fault: ErrorDetails, path: KeyPath) -> str:
    context = fault.get("ctx", {})
    if fault["type"] == "string_pattern_mismatch":
        return f"expected {PATTERN_WORDS[context['pattern']]}"
    if fault["type"] == "literal_error" and path[-1] in FORMS:
        return f"expected {FORMS[str(path[-1])]}"
    if fault["type"] == "model_type":
        return f"expected a mapping with {', '.join(_known_keys(path))}"
    if fault["type"] == "too_short":
        return f"expected at least {context['min_length']} item"
    if fault["type"] in EXPECTATIONS:
        return "expected " + EXPECTATIONS[fault["type"]].format(**context)
    return fault["msg"][0].lower() + fault["msg"][1:]


def _path_in(document: Mapping[str, Any], location: tuple[str | int, ...]) -> KeyPath:
    """Return pydantic's location without what is no part of the document: forms of a value, missing keys."""
    path: list[str | int] = []
    here: Any = document
    for part in location:
        is_item = isinstance(here, list) and isinstance(part, int) and part < len(here)
        if is_item or (isinstance(here, Mapping) and part in here):
            here = here[part]
            path.append(part)
    return tuple(path)


def _unknown_key(path: KeyPath) -> str:
    """Say why a key is refused: a known concept, a misspelling, a key of another place, or just unknown."""
    key = str(path[-1])
    section = str(path[0]) if len(path) > 1 else ""
    if path[:-1] == ("castling",) and key in MIRRORED_CASTLING_KEYS:
        return MIXED_CASTLING
    meant = OTHER_WORDS.get(path[:-1], {}).get(key)
    if meant:
        return f"unknown key, did you mean {meant!r}?"
    refusal, known = refusal_of_key(key, section), _known_keys(path[:-1])
    if refusal:
        return refusal
    if did_you_mean(key, known, VERY_LIKE):
        return f"unknown key{did_you_mean(key, known, VERY_LIKE)}"
    places = places_of_keys().get(key)
    if places:
        return f"unknown key here; `{key}` belongs under {' or '.join(places)}"
    expected = did_you_mean(key, known) or f", expected one of {', '.join(known)}"
    return refusal_of_part(key) or f"unknown key{expected}"


@lru_cache(maxsize=1024)
def _known_keys(path: KeyPath) -> list[str]:
    """List the keys that the schema knows at a path."""
    models: list[type[BaseModel]] = [VariantSchema]
    for part in path:
        fields = [model.model_fields[part] for model in models if part in model.model_fields]
        if fields:  # a letter of `pieces` or a number in a list stays within its model
            models = [inner for field in fields for inner in inner_models(field.annotation)]
    return list(dict.fromkeys(key for model in models for key in model.model_fields))


def inner_models(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the models that a field's annotation may hold, through lists, mappings and forms."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in getattr(annotation, "__args__", ()):
        yield from inner_models(argument)


@cache
def places_of_keys() -> dict[str, list[str]]:
    """Return for each key of the schema what it may stand under: dotted keys, or the top level."""
    found: dict[str, list[str]] = {}

    def collect(model: type[BaseModel], place: str) -> None:
        for key, field in model.model_fields.items():
            places = found.setdefault(key, [])
            if place not in places:
                places.append(place)
            for inner in inner_models(field.annotation):
                collect(inner, f"{place.removeprefix('the top level')}.{key}".strip("."))

    collect(VariantSchema, "the top level")
    return found
