"""The rule sheet of a game as a page of plain text: words, move diagrams, examples, options, sources."""

from __future__ import annotations

import textwrap

from envs.describe import Section, describe, option_changes
from envs.game_words import Entry, listed, spelled
from envs.move_diagrams import capture_example, draw_example, legend, move_diagram
from envs.notation import parse_fields
from envs.render import draw_board
from envs.variant import Variant

PAGE_WIDTH = 100
INDENT = "  "


def rule_sheet(variant: Variant) -> str:
    """Return the whole sheet, at most `PAGE_WIDTH` columns wide."""
    parts = [_title(variant)]
    for section in describe(variant):
        body = {"Board": _board, "Pieces": _pieces}.get(section.title)
        parts.append(_heading(section.title) + (body(variant, section) if body else _entries(section)))
    if variant.options:
        parts.append(_heading("Options") + _options(variant))
    readings = variant.document.get("readings") or []
    if readings:
        intro = "Where the source leaves a doubt, this is what is played:"
        parts.append(_heading("Readings") + "\n".join([_wrapped(intro), *(_bullet(text) for text in readings)]))
    return "\n\n".join(parts)


def _heading(title: str) -> str:
    return f"{title.upper()}\n"


def _wrapped(text: str, first: str = INDENT, rest: str = INDENT) -> str:
    return textwrap.fill(text, PAGE_WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)


def _bullet(text: str, mark: str = "-") -> str:
    return _wrapped(text, f"{INDENT}{mark} ", f"{INDENT}  ")


def _title(variant: Variant) -> str:
    document = variant.document
    inventor, year = document.get("inventor"), document.get("year")
    on = [name for name, is_on in variant.options.items() if is_on]
    title = textwrap.wrap(f"{variant.title.upper()}{f' with {listed(on)}' if on else ''}", PAGE_WIDTH)
    lines = [*title, "=" * max(map(len, title))]
    lines += [_credit("Inventor", f"{inventor}{f', {year}' if year else ''}")] if inventor else []
    lines += [_credit("Year", str(year))] if year and not inventor else []
    lines += [_credit("Source", document["source"])] if document.get("source") else []
    return "\n".join(lines)


def _credit(name: str, text: str) -> str:
    label = f"{name + ':':<10}"
    return _wrapped(text, label, " " * len(label))


def _board(variant: Variant, section: Section) -> str:
    drawing = draw_board(variant, parse_fields(variant, variant.start_fen).board)
    return _beside(drawing, [sentence for entry in section.entries for sentence in entry.sentences])


def _beside(drawing: str, paragraphs: list[str]) -> str:
    """Set paragraphs to the right of a drawing."""
    left = drawing.split("\n")
    column = max(len(line) for line in left) + 2 * len(INDENT)
    right = [line for text in paragraphs for line in _hanging(text, PAGE_WIDTH - column - len(INDENT))]
    left += [""] * (len(right) - len(left))
    right += [""] * (len(left) - len(right))
    return "\n".join(f"{INDENT}{a:<{column}}{b}".rstrip() for a, b in zip(left, right))


def _hanging(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, subsequent_indent=INDENT, break_on_hyphens=False)


def _entries(section: Section) -> str:
    width = max(len(entry.heading) for entry in section.entries) + 2
    return "\n".join(
        _wrapped(f"{entry.heading:<{width}}{' '.join(entry.sentences)}", INDENT, INDENT + " " * width)
        for entry in section.entries
    )


def _pieces(variant: Variant, section: Section) -> str:
    general, *pieces = section.entries
    drawings = [move_diagram(variant, number) for number in range(len(pieces))]
    marks = [f"{INDENT}{mark}  {meaning}" for mark, meaning in legend("\n".join(drawings)).items()]
    blocks = [
        "\n".join(
            [
                *(_wrapped(sentence) for sentence in general.sentences),
                _wrapped("Diagrams show an empty board seen by White:"),
                *marks,
            ]
        )
    ]
    for number, (entry, drawing) in enumerate(zip(pieces, drawings)):
        blocks.append(_piece(variant, number, entry, drawing))
    return "\n\n".join(blocks)


def _piece(variant: Variant, number: int, entry: Entry, drawing: str) -> str:
    text = f"{INDENT}{entry.heading}\n{_beside(drawing, list(entry.sentences))}"
    example = capture_example(variant, number)
    if example is None:
        return text
    special = [
        f"{move} captures {listed(squares)}."
        for move, squares in example.victims.items()
        if squares and squares != [move[len(example.square) :]]
    ]
    name = variant.piece_types[number].name
    words = [
        f"An example, White to move: where the {name} on {example.square} may go, by the engine.",
        "After a square: o to move there, a number to capture that many in all.",
        *special,
        f"FEN: {example.fen}",
    ]
    return f"{text}\n\n{_beside(draw_example(variant, example), words)}"


def _options(variant: Variant) -> str:
    blocks = []
    for change in option_changes(variant):
        count = len(change.added) + len(change.removed)
        sentences = f"{spelled(count)} sentence{'' if count == 1 else 's'}"
        title = f"{INDENT}{change.name} is {'on' if change.is_on else 'off'}. "
        title += f"Switching it {'off' if change.is_on else 'on'} changes {sentences} (- goes, + comes):"
        lines = [
            _bullet(f"{heading}: {sentence}", mark)
            for mark, sentences in (("-", change.removed), ("+", change.added))
            for heading, sentence in sentences
        ]
        blocks.append("\n".join([title, *lines]))
    return "\n\n".join(blocks)
