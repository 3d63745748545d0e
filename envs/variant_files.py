"""Variant files as text: where they are, how a file is merged with its parents, which line a key came from.

`extends` names a parent, a built-in or a path beside the file. Mappings merge into the parent's, lists and scalars
replace, `null` removes; a `castling` of the other form (for both sides alike, or for each) replaces. What names a game
and its inventor is not inherited.
"""

from __future__ import annotations

import copy
import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from envs.errors import InvalidVariant
from envs.schema import MIRRORED_CASTLING_KEYS, SIDES
from envs.strict_yaml import InvalidYaml, KeyPath, describe_type, read_yaml

VARIANTS_FOLDER = Path(__file__).parent / "variants"
MAX_INHERITANCE = 8
NOT_INHERITED = ("name", "inventor", "year", "source", "readings")
SHOWN_LENGTH = 60
LIKE, VERY_LIKE = 0.72, 0.85
"""How alike two words are at least, 0 to 1, where one may be, or surely is, the other misspelled."""


@dataclass(frozen=True)
class Provenance:
    """Where each key of a merged document came from.

    Attributes:
        where: Name of the variant file that was asked for.
        places: Key path -> "file:line" of the file that set it.
        overlays: Key path -> the option that set it, where options are laid over the document.
    """

    where: str
    places: Mapping[KeyPath, str]
    overlays: Mapping[KeyPath, str] = field(default_factory=dict)

    def within_option(self, option: str) -> Provenance:
        """Return the provenance of the document with an option laid over it."""
        prefix = ("options", option)
        laid = {path[2:]: place for path, place in self.places.items() if path[:2] == prefix and len(path) > 2}
        return Provenance(self.where, {**self.places, **laid}, {**self.overlays, **dict.fromkeys(laid, option)})

    def error(self, path: KeyPath, reason: str) -> InvalidVariant:
        """Return the exception for a fault at `path`, with the nearest known place and whether that is a parent's."""
        known = path
        while known and known not in self.places:
            known = known[:-1]
        shown_path = ("options", self.overlays[known], *path) if known in self.overlays else path
        dotted = ".".join(shortened(str(part)) for part in shown_path)
        place = self.places.get(known, self.where)
        inherited = "" if place.rpartition(":")[0] in ("", self.where) else f" ({self.where} inherits this)"
        return InvalidVariant(f"{place}: {f'{dotted}: ' if dotted else ''}{reason}{inherited}")


def shortened(text: str) -> str:
    """Return a text cut to a length that can be shown."""
    return text if len(text) <= SHOWN_LENGTH else text[:SHOWN_LENGTH] + "..."


def did_you_mean(text: str, known: Iterable[str], likeness: float = LIKE) -> str:
    """Return `, did you mean 'x'?` for the known word that `text` misspells, or nothing."""
    nearest = difflib.get_close_matches(text, list(known), n=1, cutoff=likeness) if len(text) <= SHOWN_LENGTH else []
    return f", did you mean {nearest[0]!r}?" if nearest else ""


def read_document(name_or_path: str | Path) -> tuple[dict[str, Any], Provenance, str]:
    """Read a variant and its parents into one merged document.

    Args:
        name_or_path: A built-in name, or the path of a YAML file.

    Returns:
        The merged document without `extends`, its provenance, and the variant's short name (the file's stem).

    Raises:
        InvalidVariant: No such variant, unreadable file, invalid YAML, or an inheritance that does not end.
    """
    path = find_variant(name_or_path, Path.cwd())
    document, places = _read_chain(path, ())
    document.setdefault("name", path.stem)
    return document, Provenance(path.name, places), path.stem


def find_variant(name_or_path: str | Path, folder: Path) -> Path:
    """Return the file of a built-in variant or of a path, relative paths taken from `folder`.

    Raises:
        InvalidVariant: Nothing is there; the message lists the built-in names and the nearest one.
    """
    text = str(name_or_path)
    names = builtin_names()
    if text in names:
        return VARIANTS_FOLDER / f"{text}.yaml"
    if text.endswith((".yaml", ".yml")):
        try:
            if (folder / text).is_file():
                return (folder / text).resolve()
        except OSError as error:
            raise InvalidVariant(f"no variant file at {shortened(text)!r}: {error.strerror}") from None
        raise InvalidVariant(f"no variant file at {shortened(text)!r}")
    raise InvalidVariant(
        f"unknown variant {shortened(text)!r}{did_you_mean(text, names)}; expected one of "
        f"{', '.join(names)}, or the path of a .yaml file"
    )


def builtin_names() -> list[str]:
    """Return the names of the built-in variants, sorted."""
    return sorted(file.stem for file in VARIANTS_FOLDER.glob("*.yaml"))


def _read_chain(path: Path, seen: tuple[Path, ...]) -> tuple[dict[str, Any], dict[KeyPath, str]]:
    if path in seen or len(seen) >= MAX_INHERITANCE:
        chain = " -> ".join(file.name for file in (*seen, path))
        raise InvalidVariant(f"{path.name}: extends goes round or is deeper than {MAX_INHERITANCE}: {chain}")
    try:
        data, lines = read_yaml(path)
    except InvalidYaml as error:
        raise InvalidVariant(str(error)) from error
    except OSError as error:
        raise InvalidVariant(f"{path.name}: cannot be read: {error}") from error
    is_namesake = any(file.name == path.name for file in seen)
    shown_name = f"{path.parent.name}/{path.name}" if is_namesake else path.name
    places = {key: f"{shown_name}:{line}" for key, line in lines.items()}
    parent = data.pop("extends", None)
    if parent is None:
        return data, places
    if not isinstance(parent, str):
        raise Provenance(path.name, places).error(("extends",), f"expected a name, got {describe_type(parent)}")
    try:
        parent_file = find_variant(parent, path.parent)
    except InvalidVariant as error:
        raise Provenance(path.name, places).error(("extends",), str(error)) from None
    document, parent_places = _read_chain(parent_file, (*seen, path))
    check_removals(document, data, Provenance(path.name, places))
    own = {key: value for key, value in document.items() if key not in NOT_INHERITED}
    return merge(own, data), {**parent_places, **places}


def check_removals(
    parent: Mapping[str, Any], child: Mapping[str, Any], provenance: Provenance, path: KeyPath = ()
) -> None:
    """Refuse a `null` for a piece or an option that the parent does not have; `path` is where the child is.

    Raises:
        InvalidVariant: There is nothing to remove; the message lists what the parent has.
    """
    for section, kind in (("pieces", "piece"), ("options", "option")):
        given, present = (part.get(section) for part in (child, parent))
        known = list(present) if isinstance(present, Mapping) else []
        for name, value in given.items() if isinstance(given, Mapping) else ():
            if value is None and name not in known:
                raise provenance.error(
                    (*path, section, name),
                    f"no {kind} {shortened(name)!r} to remove, the {section} are: {', '.join(known) or 'none'}",
                )


def merge(parent: Mapping[str, Any], child: Mapping[str, Any], path: KeyPath = ()) -> dict[str, Any]:
    """Merge two documents: mappings merge, everything else replaces, `None` removes. Neither argument is changed.

    What an option changes is a document to be laid over the game later: a `None` inside it is kept until then.
    """
    merged = copy.deepcopy(dict(parent))
    inside_option = path[:1] == ("options",) and len(path) > 1
    for key, value in child.items():
        if value is None and not inside_option:
            merged.pop(key, None)
        elif isinstance(value, Mapping):
            base = merged.get(key)
            if not isinstance(base, Mapping) or (key == "castling" and _is_other_form(base, value)):
                base = {}
            merged[key] = merge(base, value, (*path, key))
        else:
            merged[key] = copy.deepcopy(value)
    return merged


def _is_other_form(parent: Mapping[str, Any], child: Mapping[str, Any]) -> bool:
    """Return whether one `castling` is for both sides alike and the other for each."""
    given = {key for key, value in child.items() if value is not None}
    return any(
        given & set(own) and not given & set(other) and parent.keys() & set(other)
        for own, other in ((SIDES, MIRRORED_CASTLING_KEYS), (MIRRORED_CASTLING_KEYS, SIDES))
    )
