"""The reference page of the built-in games: what each is, and in what it differs from the game that it extends."""

from __future__ import annotations

from collections.abc import Iterator

from envs.describe import describe, option_changes
from envs.ending_words import repetition_notes
from envs.game_words import Entry
from envs.reference import generated_notice
from envs.strict_yaml import read_yaml
from envs.variant import Variant
from envs.variant_files import VARIANTS_FOLDER, builtin_names
from envs.variant_loader import load_variant

INTRODUCTION = """\
Every game here is one file in `envs/variants/`. Play it by its name, or take it as the base of your own: `extends:
NAME`. `python scripts/check.py NAME` prints the whole rule sheet with diagrams and random games;
[schema.md](schema.md) has every key of a file, and [`docs/new_game.md`](../new_game.md) shows how to write one.
"""
OVERVIEW = (
    "| name | title | inventor, year | board | kinds of piece | extends | options |\n|---|---|---|---|---|---|---|"
)
WHOLE = "What it is:\n"
PIECES, CASTLING, ENDS = "Pieces", "Castling", "How a game ends"
CONDITIONS, AT_ONCE, REPETITION = "conditions", "Several at once", "Repetition"
"""Sections and headings of the rule sheet."""

GONE = {PIECES: "Pieces that are not there", CASTLING: "No castling", ENDS: "Rules that do not hold"}
"""What is said of entries that only the parent has."""


def games_page() -> str:
    """Return `docs/reference/games.md`."""
    names = builtin_names()
    count = f"{len(names)} games are built in.\n"
    sections = (line for name in names for line in _section(load_variant(name)))
    return "\n".join(
        ["# Games", "", *generated_notice(), count, INTRODUCTION, OVERVIEW, *map(_row, names), "", *sections]
    )


def parent_of(name: str) -> str | None:
    """Return the name of the game that a built-in game extends, or None."""
    parent = read_yaml(VARIANTS_FOLDER / f"{name}.yaml")[0].get("extends")
    return None if parent is None else str(parent)


def _row(name: str) -> str:
    variant = load_variant(name)
    parent = parent_of(name)
    cells = [
        f"[`{name}`](#{name})",
        variant.title,
        _inventor(variant) or "",
        _size(variant),
        str(len(variant.piece_types)),
        f"`{parent}`" if parent else "",
        ", ".join(f"`{option}`" for option in variant.options),
    ]
    return f"| {' | '.join(cells)} |"


def _inventor(variant: Variant) -> str:
    parts = (variant.document.get("inventor"), variant.document.get("year"))
    return ", ".join(str(part) for part in parts if part is not None)


def _size(variant: Variant) -> str:
    board = variant.board
    holes = board.files * board.ranks - variant.num_squares
    return f"{board.files} x {board.ranks}" + (f", {variant.num_squares} squares" if holes else "")


def _section(variant: Variant) -> Iterator[str]:
    parent = parent_of(variant.name)
    yield f"## {variant.name}\n"
    credit = [variant.title, _inventor(variant)]
    yield f"{'. '.join(part for part in credit if part)}. Source: {variant.document.get('source')}.\n"
    yield f"Start: `{variant.start_fen}`" + (
        f", and {len(variant.start_fens) - 1} more\n" if variant.start_fens[1:] else "\n"
    )
    yield f"Against `{parent}`:\n" if parent else WHOLE
    lines = list(differences(variant, load_variant(parent) if parent else None)) or ["Only the start position differs."]
    yield from (f"- {line}" for line in lines)
    yield ""
    readings = variant.document.get("readings") or []
    if readings:
        yield "Readings:\n"
        yield from (f"- {text}" for text in readings)
        yield ""
    for change in option_changes(variant):
        yield f"Option `{change.name}`, what goes and what comes:\n"
        yield from (f"- Goes: {heading}: {sentence}" for heading, sentence in change.removed)
        yield from (f"- Comes: {heading}: {sentence}" for heading, sentence in change.added)
        yield ""


def differences(variant: Variant, parent: Variant | None) -> Iterator[str]:
    """Yield what holds in a game and not in its parent, in sentences of the rule sheet; all of it without a parent."""
    before = {} if parent is None else _entries(parent)
    after = _entries(variant)
    for key, entry in after.items():
        old = before.get(key, Entry("", ()))
        if entry != old:
            told = repetition_notes(variant) if _only_sounds_different(key, variant, parent) else entry.sentences
            is_known = entry.heading == old.heading
            sentences = [text for text in told if not (is_known and text in old.sentences)]
            if sentences:
                yield f"{entry.heading or key[0]}: {' '.join(sentences)}"
    for title, words in GONE.items():
        gone = [entry.heading for key, entry in before.items() if key not in after and key[0] == title]
        if gone:
            yield f"{words}: {'; '.join(gone)}."


def _only_sounds_different(key: tuple[str, str], variant: Variant, parent: Variant | None) -> bool:
    """Return whether a rule is the parent's but for its notes: the words on repetition name what else there is."""
    if parent is None or key != (ENDS, REPETITION):
        return False
    new, old = variant.ends, parent.ends
    return (new.repetition_times, new.repetition_result) == (old.repetition_times, old.repetition_result)


def _entries(variant: Variant) -> dict[tuple[str, str], Entry]:
    """Return what the rule sheet says by section and heading, of castling only where king and partner go."""
    found = {}
    for section in describe(variant):
        for entry in section.entries:
            is_kept = entry.heading != AT_ONCE and (entry.heading or section.title != PIECES)
            if section.title != CASTLING:
                if is_kept:
                    found[section.title, entry.heading.split(",")[0]] = entry
            elif not entry.heading.lower().endswith(CONDITIONS):
                found[section.title, entry.heading] = Entry(entry.heading, entry.sentences[:1])
    return found
