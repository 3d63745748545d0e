"""The reference page of variant files: every key of the schema, the notation of moves, and what is refused.

The keys come from the schema, the examples from the built-in games, the words about moves from the rules, and the
refusals from their tables, so that the page says what the loader does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from envs.betza import (
    ATOM_LEGS,
    COMPOUNDS,
    LONGEST_RANGE,
    UNSUPPORTED_ATOMS,
    UNSUPPORTED_MODIFIERS,
    UNSUPPORTED_SIGNS,
    parse_betza,
)
from envs.game_words import capitalised
from envs.move_words import movement_sentence, ray_groups
from envs.reference import generated_notice
from envs.refusals import REFUSALS, REFUSALS_UNDER, REFUSED_LISTS, Refusal
from envs.schema import MAX_OPTIONS, MAX_PIECE_TYPES, MAX_STARTS, PATTERN_WORDS, VariantSchema, form_of
from envs.strict_yaml import read_yaml
from envs.tables import MAX_ACTIONS
from envs.variant_files import MAX_INHERITANCE, NOT_INHERITED, VARIANTS_FOLDER, builtin_names

KeyPath = tuple[str, ...]
Node = Mapping[str, Any]
"""A node of the JSON schema."""
MAX_EXAMPLE = 44
"""How long an example in a table may be."""
DEFAULT = re.compile(r"\s?The default is (.+?)\.(?=\s|$)")
NEAREST = "; the nearest supported form is "
PLAIN_TEXT = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ./_-]*")
TABLE = "| key | value | default | meaning |\n|---|---|---|---|"

FILES = f"""\
A game is one YAML file. `scripts/check.py` says what is wrong with it, and where;
[`docs/new_game.md`](../new_game.md) goes from an idea to a checked file; [games.md](games.md) lists the games that a
file may extend.

## The file

- Plain YAML: mappings, lists, texts, whole numbers, `true`, `false` and `null`. Anchors, aliases, tags and duplicate
  keys are refused. `off`, `y` and `n` are texts, also without quotes. A text that begins with `*`, as a FEN with a
  hole in its first cell does, needs quotes, and so does one that holds a colon and a space.
- `extends: chess` takes all keys of a parent: a built-in name, or the path of a file, seen from the file that extends
  it. A parent may extend another one, {MAX_INHERITANCE} files in all.
- A mapping is merged with the parent's, key by key; a text, number or list replaces the parent's; `null` removes what
  the parent has, and the default holds again. A `castling` for each side replaces one for both sides alike, and the
  other way round. {", ".join(f"`{key}`" for key in NOT_INHERITED)} are not inherited.
- Every key that is not listed here is refused, and so is every value that the engine could not play exactly.

## The start position

`start` is a FEN: the rows from the highest rank down, divided by `/`; the side to move, `w` or `b`; castling rights
such as `KQkq`, or `-`; en passant squares, or `-`; the count of plies for `ends.move_limit`; the number of the move.
The last two may be left out together.

- A capital letter is a piece of White, a small one a piece of Black: the same letter is the same kind of piece.
- A number is a run of empty squares, up to two digits: `10` is ten of them, not one and none.
- `*` is a cell that is no square of the board: a hole. Holes lie the same for both sides, rank for rank mirrored.
- The castling rights say what is still allowed at the start, so without `castling` they must be `-`.

## Keys
"""
NOTATION = f"""\
## Moves in Betza notation

`moves`, `overruns`, `fires_through`, `quiet` and `captures` hold moves as text: one or more atoms in capitals, each
with modifiers in small letters before it and a range after it. The piece may make any of the moves. The dialect is
[XBoard's](https://www.gnu.org/software/xboard/Betza.html), as far as moves of one leg go; but `L` is the
camel and `J` the zebra here, as in most lists of pieces, and that page has them the other way round.

- Modifiers and a range belong to **one** atom: `mRB` is a rook's move without capture, or any bishop's move; both
  without capture is `mRmB`.
- `m` only moves and `c` only captures; without either the atom does both.
- Directions are the mover's own: `f` is up the board for White and down for Black. `l` and `r` are the same files for
  both sides: `l` is towards the first file.
- A number repeats the step in one direction, over empty squares where it lands: `W3` up to three times, at most
  {LONGEST_RANGE}; `0` without limit. A doubled atom is the same as `0`: `NN`.
- A single leap goes over anything.

### Atoms
"""
DIRECTIONS = """\
### Directions

On orthogonal atoms (`W D H R`) each letter is one direction, `s` is `l` and `r`, and `v` is `f` and `b`. On diagonal
atoms (`F A G B`) a letter is the two diagonals on its side, and a vertical and a sideways letter together are one
diagonal. On oblique atoms (`N C Z`) a letter is the two leaps that go furthest in its direction, with `h` all four of
that half; of two letters together the last names the longer leg (`lfN` is the leap from g1 to f3, `flN` from g1 to e2),
and a letter may be doubled to keep it from combining with the next one (`ffrrN`). What dialects read differently is
refused: directions on `K` and `Q`, where the parts say what is meant (`fWfF`), and `s` or `v` as the first of two on
oblique atoms.
"""
DIRECTION_EXAMPLES = (
    *("fW", "sW", "vR", "fsR", "fF", "frF", "rB", "flbF", "fN", "sN", "fsN", "fhN", "frN", "rfN", "ffrrN", "fhC"),
)
"""Texts that show what directions mean on each kind of atom."""
MODE_EXAMPLES = ("mR", "cB", "mRcB", "fmWfcF", "FmW2", "mDDcR", "R4", "NN", "WDA", "BN")
"""Texts that show modes, ranges and atoms put together."""
REFUSED = """\
## What is not supported

A rule that the engine cannot play is refused when the file is read, with its line and, where there is one, the
nearest form that can be played. The words on the left are known as keys anywhere in the file, as values where a fixed
word or letters of pieces are expected, and in notation that cannot be read. Capitals, hyphens and plurals make no
difference.
"""
AMBIGUITY = f"""\
### What is refused though each part is supported

From, to and promotion must fix what a move does: no two ways to one square may differ in what they capture or leave
behind. So these are refused: an `overruns` jump to a square that `moves` also reaches; a way to a square beyond a
piece fired through that leaves that piece alone; two quiet steps of the pawn that meet through `first_steps`, or one
that meets a capture; castling that takes the king to a square that it also reaches by a move of its own.

The royal is never the pawn. Castling passes over no hole of the board, and a pawn does not castle as the king.
`extinction` looks at both sides, so its letters are of pieces that both sides have at the start and that are royal for
neither. With `promotion: must` there is one promotion rank. Options must also be playable together, in every
combination.

A side without a royal must be beatable: by a goal of the other side, by `extinction`, or by a stalemate that is no
draw. A piece must stand in a start position or be promoted to. A start position must not be over already, and no two
may be the same. At most {MAX_PIECE_TYPES} kinds of piece, {MAX_STARTS} start positions, {MAX_OPTIONS} options
and {MAX_ACTIONS:,} actions: ways to go from a square to a square, each promotion counted apart.
"""


def schema_page() -> str:
    """Return `docs/reference/schema.md`."""
    parts = ["# Variant files", "", *generated_notice(), FILES, *_keys(), *_notation(), *_refused(), AMBIGUITY]
    return "\n".join(parts)


# --- Keys ---------------------------------------------------------------------------------------


def documented_paths() -> list[str]:
    """Return every key path of the page, in its order."""
    return [".".join((*path, key)) for path, model in _sections() for key in model["properties"]]


def _keys() -> Iterator[str]:
    examples = _examples()
    for path, model in _sections():
        title, *text = re.split(r": |\. ", re.sub(r"\s+", " ", model["description"]), maxsplit=1)
        if path:
            yield "\n\n".join([f"### {title.removesuffix('.')}", *map(capitalised, text)]) + "\n"
        else:
            yield "### The top level\n\n`extends`, a name or a path, and:\n"
        yield TABLE
        for key, field in model["properties"].items():
            yield _row((*path, key), field, is_required=key in model.get("required", ()), examples=examples)
        yield ""


def _row(path: KeyPath, field: Node, *, is_required: bool, examples: Mapping[KeyPath, list[str]]) -> str:
    meaning = field["description"]
    found = DEFAULT.search(meaning)
    default = found.group(1) if found else "required" if is_required else "none"
    shown = examples.get(path, [])
    meaning = DEFAULT.sub("", meaning) + (
        f" Example{'s' if len(shown) > 1 else ''}: {'; '.join(shown)}." if shown else ""
    )
    return f"| `{'.'.join(path)}` | {_value(field)} | {default} | {meaning} |"


def _sections() -> Iterator[tuple[KeyPath, Node]]:
    """Yield each mapping of the schema with the path where it is met first, in the order of the keys."""
    root = VariantSchema.model_json_schema()
    seen: set[str] = set()

    def visit(path: KeyPath, model: Node) -> Iterator[tuple[KeyPath, Node]]:
        yield path, model
        for key, field in model["properties"].items():
            for form in _forms(field):
                inner, step = form, ""
                if "items" in form:
                    inner, step = form["items"], "[]"
                if "additionalProperties" in form or "patternProperties" in form:
                    inner, step = next(iter(form.get("patternProperties", {"": {}}).values())), ".<letter>"
                name = inner.get("$ref", "").rpartition("/")[2]
                if name and name not in seen:
                    seen.add(name)
                    yield from visit((*path, *f"{key}{step}".split(".")), root["$defs"][name])

    yield from visit((), root)


def _forms(field: Node) -> list[Node]:
    """Return the forms that a value may have; nothing (null) is none of them."""
    forms = field.get("oneOf") or field.get("anyOf") or [field]
    return [
        inner for form in forms if form.get("type") != "null" for inner in ([form] if form is field else _forms(form))
    ]


def _value(field: Node) -> str:
    return ", or ".join(dict.fromkeys(map(_form_words, _forms(field))))


def _form_words(form: Node) -> str:
    if "const" in form:
        return f"`{form['const']}`"
    if "enum" in form:
        return " or ".join(f"`{word}`" for word in form["enum"])
    if "pattern" in form:
        return PATTERN_WORDS[form["pattern"]]
    if form.get("type") == "integer":
        return f"whole number, {form['minimum']} to {form['maximum']}" if "minimum" in form else "whole number"
    if form.get("type") == "array":
        return f"list, each item: {_form_words(form['items'])}"
    return {"string": "text", "boolean": "`true` or `false`"}.get(form.get("type", ""), "mapping")


# --- Examples -----------------------------------------------------------------------------------


def _examples() -> dict[KeyPath, list[str]]:
    """Return for each key what a built-in game gives it: the first short value of each form, with the game."""
    found: dict[KeyPath, dict[str, str]] = {}
    for name in builtin_names():
        document, _ = read_yaml(VARIANTS_FOLDER / f"{name}.yaml")
        for path, value in _entries(document, ()):
            text = inline(value)
            if value is not None and len(text) <= MAX_EXAMPLE:
                found.setdefault(path, {}).setdefault(form_of(value), f"`{text}` (`{name}`)")
    return {path: list(forms.values()) for path, forms in found.items()}


def _entries(value: object, path: KeyPath) -> Iterator[tuple[KeyPath, object]]:
    if path:
        yield path, value
    if isinstance(value, dict) and path != ("options",):
        for key, child in value.items():
            yield from _entries(child, (*path, "<letter>" if path == ("pieces",) else key))
    elif isinstance(value, list):
        for child in value:
            yield from _entries(child, (*path[:-1], f"{path[-1]}[]"))


def inline(value: object) -> str:
    """Return a value as YAML on one line."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {inline(child)}' for key, child in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(inline, value))}]"
    if isinstance(value, str) and PLAIN_TEXT.fullmatch(value):
        return value
    return json.dumps(value, ensure_ascii=False)


# --- Notation -----------------------------------------------------------------------------------


def _notation() -> Iterator[str]:
    yield NOTATION
    yield from _move_table("atom", (*ATOM_LEGS, *COMPOUNDS))
    yield "### Modes, ranges, several atoms\n"
    yield from _move_table("text", MODE_EXAMPLES)
    yield DIRECTIONS
    yield from _move_table("text", DIRECTION_EXAMPLES)


def _move_table(title: str, texts: Iterable[str]) -> Iterator[str]:
    yield f"| {title} | what the piece may do |\n|---|---|"
    for text in texts:
        yield f"| `{text}` | {' '.join(movement_sentence(group) for group in ray_groups(parse_betza(text)))} |"
    yield ""


# --- Refusals -----------------------------------------------------------------------------------


def _refused() -> Iterator[str]:
    yield REFUSED
    yield from _refusal_table("words", _of_words(REFUSALS))
    for section, refusals in REFUSALS_UNDER.items():
        yield f"Under `{section}` only:\n"
        yield from _refusal_table("words", _of_words(refusals))
    yield "A list where one value is expected:\n"
    yield from _refusal_table(
        "key", ((f"`{'.'.join(map(str, path))}`", reason) for path, reason in REFUSED_LISTS.items())
    )
    yield "In Betza notation:\n"
    written = {**UNSUPPORTED_MODIFIERS, **UNSUPPORTED_ATOMS, **UNSUPPORTED_SIGNS}
    yield from _refusal_table("sign", ((f"`{sign}`", reason) for sign, reason in written.items()))


def _of_words(refusals: Iterable[Refusal]) -> Iterator[tuple[str, str]]:
    for refusal in refusals:
        yield " ".join(f"`{word}`" for word in refusal.words.split()), refusal.reason


def _refusal_table(title: str, rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    yield f"| {title} | why | nearest supported form |\n|---|---|---|"
    for written, reason in rows:
        why, _, nearest = reason.partition(NEAREST)
        yield f"| {written} | {why} | {nearest} |"
    yield ""
