"""The rules of a game as sections of a report: words, the array, how each piece moves, examples, options, readings."""

from __future__ import annotations

from collections.abc import Iterator

from envs import Variant
from envs.describe import Section as RuleSection
from envs.describe import describe, option_changes
from envs.game_words import Entry
from envs.move_diagrams import LEGEND, capture_example
from envs.notation import parse_fields, piece_letter
from envs.render import EMPTY_MARK
from train.csv_table import csv_text
from train.report_boards import diagram_marks, example_drawing, mark_drawing, moves_drawing, start_drawing
from train.report_page import Picture, Section, figure, folded, paragraph, source_line, text

MOVES_SCALE, LEGEND_SCALE = 0.6, 0.55
READINGS_INTRO = "Where the source leaves a doubt, this is what is played:"


def rules_sections(variant: Variant, command: str) -> list[Section]:
    """Return the rules.

    Args:
        variant: the game.
        command: that prints them, and their figures' numbers.
    """
    board, pieces, *others = describe(variant)
    return [_board(variant, board, command), _pieces(variant, pieces, command), _rest(variant, others)]


def _board(variant: Variant, section: RuleSection, command: str) -> Section:
    picture = Picture.of_drawing(start_drawing(variant))
    codes = parse_fields(variant, variant.start_fen).board
    rows = csv_text(
        ("square", "piece"),
        [(name, piece_letter(variant, int(code))) for name, code in zip(variant.board.names, codes) if code],
    )
    caption = f"The array. FEN: {variant.start_fen}"
    body = "".join(paragraph(words) for words in section.entries[0].sentences)
    body += figure(picture, caption) + source_line("start", rows, command)
    return Section("The board", body, {"start": picture}, {"start": rows})


def _pieces(variant: Variant, section: RuleSection, command: str) -> Section:
    general, *entries = section.entries
    pictures: dict[str, Picture] = {}
    blocks = [paragraph(words) for words in general.sentences]
    marks = [diagram_marks(variant, number) for number in range(len(entries))]
    blocks.append(_legend({mark for cells in marks for cell, mark in cells.items() if cell != (0, 0)}))
    for number, entry in enumerate(entries):
        letter = variant.piece_types[number].letter.lower()
        pictures[f"moves_{letter}"] = Picture.of_drawing(moves_drawing(variant, number), scale=MOVES_SCALE)
        blocks += [_entry(entry, pictures[f"moves_{letter}"]), *_example(variant, number, pictures)]
    rows = csv_text(
        ("piece", "files", "ranks", "mark", "meaning"),
        [
            (variant.piece_types[number].letter, x, y, mark, LEGEND[mark])
            for number, cells in enumerate(marks)
            for (x, y), mark in cells.items()
            if (x, y) != (0, 0) and mark != EMPTY_MARK
        ],
    )
    return Section("The pieces", "".join(blocks) + source_line("moves", rows, command), pictures, {"moves": rows})


def _legend(marks: set[str]) -> str:
    used = [mark for mark in LEGEND if mark in marks]
    lines = (f"{mark_drawing(mark).to_svg(scale=LEGEND_SCALE)}<span>{text(LEGEND[mark])}</span>" for mark in used)
    return f'<div class="legend">{"".join(lines)}</div>'


def _entry(entry: Entry, picture: Picture) -> str:
    words = "".join(paragraph(sentence) for sentence in entry.sentences)
    return f'<h3>{text(entry.heading)}</h3><div class="entry">{figure(picture)}<div>{words}</div></div>'


def _example(variant: Variant, number: int, pictures: dict[str, Picture]) -> Iterator[str]:
    """Yield the example of a piece that can capture two at once, and keep its picture."""
    example = capture_example(variant, number)
    if example is None:
        return
    piece = variant.piece_types[number]
    picture = Picture.of_drawing(example_drawing(variant, example, piece.name), scale=0.8)
    pictures[f"example_{piece.letter.lower()}"] = picture
    words = f"Where the {piece.name} on {example.square} may go, by the engine: a number is how many pieces the move "
    yield figure(picture, f"{words}captures at most, a dot a move without capture. FEN: {example.fen}")


def _rest(variant: Variant, sections: list[RuleSection]) -> Section:
    blocks = []
    for section in sections:
        facts = "".join(
            f"<dt>{text(entry.heading)}</dt><dd>{text(' '.join(entry.sentences))}</dd>" for entry in section.entries
        )
        blocks.append(f'<h3>{text(section.title)}</h3><dl class="facts">{facts}</dl>')
    readings = variant.document.get("readings") or []
    if readings:
        lines = "".join(f"<li>{text(words)}</li>" for words in readings)
        blocks.append(f"<h3>Readings</h3>{paragraph(READINGS_INTRO)}<ul>{lines}</ul>")
    if variant.options:
        blocks.append(f"<h3>Options</h3>{''.join(_options(variant))}")
    return Section("The other rules", "".join(blocks))


def _options(variant: Variant) -> Iterator[str]:
    for change in option_changes(variant):
        changed = [("goes", *pair) for pair in change.removed] + [("comes", *pair) for pair in change.added]
        lines = "".join(f"<li><i>{verb}</i> {text(head)}: {text(words)}</li>" for verb, head, words in changed)
        state, other = ("on", "off") if change.is_on else ("off", "on")
        yield folded(f"{change.name} is {state}; switching it {other} changes this", f"<ul>{lines}</ul>")
