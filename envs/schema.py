"""The schema of a variant file, and the reading of one with its parents.

A file is strict YAML (`strict_yaml`). `extends` names a parent, a built-in or a path beside the file. Mappings merge
into the parent's, lists and scalars replace, `null` removes; what names a game and its inventor is not inherited. The
merged document is validated as a whole; an error names the file and line that the offending key came from. Semantics
are built in `variant_loader.py`.
"""

from __future__ import annotations

import copy
import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from envs.errors import InvalidVariant
from envs.strict_yaml import InvalidYaml, KeyPath, describe_type, read_yaml

VARIANTS_FOLDER = Path(__file__).parent / "variants"
MAX_SIDE = 16
MIN_SIDE = 3
MAX_PIECE_TYPES = 15
MAX_FIRST_STEPS = 8
MAX_INHERITANCE = 8

Letter = Annotated[str, StringConstraints(pattern=r"^[a-z]$")]
FileLetter = Annotated[str, StringConstraints(pattern=r"^[a-p]$")]
SquareName = Annotated[str, StringConstraints(pattern=r"^[a-p]\d{1,2}$")]
Text = Annotated[str, StringConstraints(min_length=1, max_length=2000)]

MAX_OPTIONS = 6
OPTION_KEYS = ("start", "pieces", "pawns", "castling", "ends")
"""What an option may change; the board, the pieces' letters and the royal are the game's."""
NOT_INHERITED = ("name", "inventor", "year", "source", "readings")
UNSUPPORTED_KEYS = {
    "drops": "pieces in hand are not supported; the nearest supported form is `pawns.promotes_to`",
    "hands": "pieces in hand are not supported; the nearest supported form is `pawns.promotes_to`",
    "gating": "gating is not supported; the nearest supported form is a larger `start` array",
    "moves_per_turn": "several moves a turn are not supported; the nearest supported form is `overruns`",
    "passing": "passing is not supported; every turn is one move",
    "explosions": "explosions are not supported; the nearest supported form is `overruns` or `fires_through`",
    "atomic": "explosions are not supported; the nearest supported form is `overruns` or `fires_through`",
    "hidden": "hidden information is not supported; both sides see the whole board",
    "hoppers": "hoppers are not supported; the nearest supported form is an unblockable leap",
    "dice": "chance is not supported; the rules decide everything",
}


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class BoardSchema(_Strict):
    """`board`: the grid; squares marked `*` in the start position are holes in it."""

    files: int = Field(ge=MIN_SIDE, le=MAX_SIDE)
    ranks: int = Field(ge=MIN_SIDE, le=MAX_SIDE)
    first_rank: int = Field(default=1, ge=0, le=1)


class PieceSchema(_Strict):
    """`pieces.<letter>`: how a piece type moves, in Betza notation; the pawn's moves are in `pawns`."""

    name: Text
    moves: Text | None = None
    overruns: Text | None = None
    fires_through: Text | None = None
    fires_through_own: bool = False


class PawnSchema(_Strict):
    """`pawns`: ranks are counted from White's side and mirrored for Black."""

    piece: Letter
    first_steps: int = Field(default=1, ge=1, le=MAX_FIRST_STEPS)
    first_steps_from: list[int] | None = Field(default=None, min_length=1)
    promotes_on: list[int] | None = Field(default=None, min_length=1)
    promotes_to: Annotated[str, StringConstraints(pattern=r"^[a-z]+$")]


class CastlingSideSchema(_Strict):
    """`castling.kingside` and `.queenside`: files of the king's target and of its partner's start and target."""

    king_to: FileLetter
    rook: FileLetter
    rook_to: FileLetter


class CastlingSchema(_Strict):
    """`castling`: the rank is White's and is mirrored for Black."""

    rank: int = Field(default=1, ge=0, le=MAX_SIDE)
    king: FileLetter
    kingside: CastlingSideSchema | None = None
    queenside: CastlingSideSchema | None = None


class GoalSquaresSchema(_Strict):
    """Squares that a side wins by reaching, for each side."""

    white: list[SquareName] = Field(min_length=1)
    black: list[SquareName] = Field(min_length=1)


class GoalSchema(_Strict):
    """`ends.goals[]`: a legal move of the piece `by` onto one of the squares wins at once."""

    name: Annotated[str, StringConstraints(pattern=r"^scepter$")]
    by: Letter
    squares: GoalSquaresSchema


class EndsSchema(_Strict):
    """`ends`: how games end apart from checkmate, stalemate, threefold repetition and the fifty-move rule."""

    bare_kings: Annotated[str, StringConstraints(pattern=r"^(draw|off)$")] = "draw"
    goals: list[GoalSchema] = Field(default_factory=list, max_length=1)


class VariantSchema(_Strict):
    """A whole variant, parents merged, before options are applied."""

    name: Text
    inventor: Text | None = None
    year: int | None = Field(default=None, ge=500, le=3000)
    source: Text | None = None
    readings: list[Text] = Field(default_factory=list)
    board: BoardSchema
    start: Text
    royal: Letter
    pieces: dict[Letter, PieceSchema] = Field(min_length=1, max_length=MAX_PIECE_TYPES)
    pawns: PawnSchema | None = None
    castling: CastlingSchema | None = None
    ends: EndsSchema = Field(default_factory=EndsSchema)
    options: dict[str, dict[str, Any]] = Field(default_factory=dict)


@dataclass(frozen=True)
class Provenance:
    """Where each key of a merged document came from.

    Attributes:
        where: Name of the variant file that was asked for.
        places: Key path -> "file:line" of the file that set it.
    """

    where: str
    places: Mapping[KeyPath, str]

    def within_option(self, option: str) -> Provenance:
        """Return the provenance of the document with an option laid over it."""
        prefix = ("options", option)
        laid = {path[2:]: place for path, place in self.places.items() if path[:2] == prefix and len(path) > 2}
        return Provenance(self.where, {**self.places, **laid})

    def error(self, path: KeyPath, reason: str) -> InvalidVariant:
        """Return the exception for a fault at `path`, with the nearest known place."""
        dotted = ".".join(str(part) for part in path)
        known = path
        while known and known not in self.places:
            known = known[:-1]
        return InvalidVariant(f"{self.places.get(known, self.where)}: {f'{dotted}: ' if dotted else ''}{reason}")


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
    document, places = _read_chain(path, (), VARIANTS_FOLDER)
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
            raise InvalidVariant(f"no variant file at {text[:60]!r}: {error.strerror}") from None
        raise InvalidVariant(f"no variant file at {text!r}")
    raise InvalidVariant(
        f"unknown variant {text!r}{_did_you_mean(text, names)}; expected one of "
        f"{', '.join(names)}, or the path of a .yaml file"
    )


def builtin_names() -> list[str]:
    """Return the names of the built-in variants, sorted."""
    return sorted(file.stem for file in VARIANTS_FOLDER.glob("*.yaml"))


def _read_chain(path: Path, seen: tuple[Path, ...], folder: Path) -> tuple[dict[str, Any], dict[KeyPath, str]]:
    if path in seen or len(seen) >= MAX_INHERITANCE:
        chain = " -> ".join(file.name for file in (*seen, path))
        raise InvalidVariant(f"{path.name}: extends goes round or is deeper than {MAX_INHERITANCE}: {chain}")
    try:
        data, lines = read_yaml(path)
    except InvalidYaml as error:
        raise InvalidVariant(str(error)) from error
    except OSError as error:
        raise InvalidVariant(f"{path.name}: cannot be read: {error}") from error
    places = {key: f"{path.name}:{line}" for key, line in lines.items()}
    parent = data.pop("extends", None)
    if parent is None:
        return data, places
    if not isinstance(parent, str):
        raise Provenance(path.name, places).error(("extends",), f"expected a name, got {describe_type(parent)}")
    document, parent_places = _read_chain(find_variant(parent, path.parent), (*seen, path), folder)
    own = {key: value for key, value in document.items() if key not in NOT_INHERITED}
    return merge(own, data), {**parent_places, **places}


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
            merged[key] = merge(base if isinstance(base, Mapping) else {}, value, (*path, key))
        else:
            merged[key] = copy.deepcopy(value)
    return merged


def validate_document(document: Mapping[str, Any], provenance: Provenance) -> VariantSchema:
    """Check a merged document against the schema.

    Raises:
        InvalidVariant: The first fault, with its file, line, key, what was expected and what came.
    """
    try:
        return VariantSchema.model_validate(dict(document))
    except ValidationError as error:
        raise _schema_fault(error, provenance) from None


def _schema_fault(error: ValidationError, provenance: Provenance) -> InvalidVariant:
    fault = error.errors(include_url=False)[0]
    path = tuple(part for part in fault["loc"] if part != "[key]")
    key = str(path[-1]) if path else ""
    if fault["type"] == "extra_forbidden":
        if key in UNSUPPORTED_KEYS:
            return provenance.error(path, UNSUPPORTED_KEYS[key])
        return provenance.error(path, f"unknown key{_did_you_mean(key, _known_keys(path[:-1]))}")
    if fault["type"] == "missing":
        return provenance.error(path[:-1], f"the key {key!r} is missing")
    if fault["type"] == "model_type":
        return provenance.error(path, f"expected a mapping, got {describe_type(fault['input'])}")
    message = fault["msg"][0].lower() + fault["msg"][1:]
    return provenance.error(path, f"{message}, got {fault['input']!r}")


def _known_keys(path: KeyPath) -> list[str]:
    """List the keys that the schema knows at a path."""
    model: Any = VariantSchema
    for part in path:
        annotation = model.model_fields[part].annotation if part in getattr(model, "model_fields", {}) else model
        model = _inner_model(annotation)
    return list(getattr(model, "model_fields", {}))


def _inner_model(annotation: Any) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in getattr(annotation, "__args__", ()):
        found = _inner_model(argument)
        if found is not None:
            return found
    return None


def _did_you_mean(text: str, known: Iterable[str]) -> str:
    nearest = difflib.get_close_matches(text, list(known), n=1, cutoff=0.6)
    return f", did you mean {nearest[0]!r}?" if nearest else ""
