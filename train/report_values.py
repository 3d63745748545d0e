"""What pieces are worth, as a section of a report: methods side by side, one recommended value, priors beside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from train.csv_table import csv_text
from train.piece_values.army import army_text
from train.piece_values.estimates import MethodValues, PieceEstimate, Split
from train.piece_values.forest import ForestRow, draw_forest
from train.piece_values.positions import InsufficientData
from train.piece_values.report import Report
from train.ratings import Interval
from train.report_page import Picture, Section, figure, folded, grid, paragraph, source_line, text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METHOD_WORDS = {
    "odds": "games from starts that lack random pieces; their results by what was missing",
    "handicap": "matches of a piece against pawns, about even",
    "td": "what the players' own evaluation learns from their games",
    "outcome": "positions of self-play; their results by the difference in pieces",
    "network": "what the network's value head says when a piece is taken away",
}
INTRO = (
    "In pawns, with 95 % intervals over games. Values hold for players as strong as those who played: in weak play "
    "pieces are worth something else than in strong play."
)
PRIORS = (
    "Mobility: the average number of moves on a crowded board, as a share of a knight's, times 3 (Betza). Leaper "
    "formula: Muller's, for pieces that only leap, two squares at most. Neither is measured."
)
CAPTION = "Recommended values above what each method says; crosses are published values."
NONE = "–"


def values_section(report: Report) -> Section:
    """Return piece values.

    Raises:
        InsufficientData: no method has any; says why.
    """
    if not report.recommended:
        raise InsufficientData("; ".join(f"{one.method}: {one.refusal}" for one in report.methods))
    priors = _priors_csv(report)
    tables = {"piece_values": report.to_csv(), "priors": priors}
    chart = Picture.of_figure(_forest(report), "piece_values", f"Piece values in {report.variant.title}")
    body = paragraph(f"{INTRO} They are {army_text(report.variant)}.")
    body += paragraph(f"{report.warning[:1].upper()}{report.warning[1:]}.", "warning") if report.warning else ""
    body += figure(chart, CAPTION, "chart") + source_line("piece_values", tables["piece_values"], report.command)
    body += _table(report) + _sources(report) + source_line("priors", priors, report.command) + _reasons(report)
    body += "".join(_method(report, one) for one in report.methods)
    return Section("Piece values", body, {"piece_values": chart}, tables, _headline(report))


def _headline(report: Report) -> str:
    values = {report.name_of(letter): one.value for letter, one in report.recommended.items()}
    shown = {name: value for name, value in values.items() if value and value.low < value.high}
    return ", ".join(f"{name} {value.estimate:.1f} ({value.range_text('.1f')})" for name, value in shown.items())


def _forest(report: Report) -> Figure:
    rows = []
    for letter, one in report.recommended.items():
        found = {values.method: _value(values.pieces, letter) for values in report.methods}
        is_unit = one.value is not None and one.value.low == one.value.high
        shown = {} if is_unit else {method: value for method, value in found.items() if value}
        published = [value for value, _ in _published(report, letter)]
        name = report.name_of(letter).replace("$", r"\$")  # no formula
        rows.append(ForestRow(f"{name} ({letter})", one.value, shown, published, one.why))
    return draw_forest(rows, title="", scale="value in pawns", reference=1.0, notes=[])


def _table(report: Report) -> str:
    used = [one for one in report.methods if not one.refusal]
    columns = {
        "piece": [f"{report.name_of(letter)} ({letter})" for letter in report.recommended],
        "recommended": [_cell(one.value) for one in report.recommended.values()],
        **{one.method: [_cell(_value(one.pieces, letter)) for letter in report.recommended] for one in used},
        "mobility": [_prior(report, letter, "mobility") for letter in report.recommended],
        "leaper formula": [_prior(report, letter, "leaper formula") for letter in report.recommended],
        "published": ["\n".join(f"{value:g}" for value, _ in _published(report, letter)) or NONE
                      for letter in report.recommended],
    }  # fmt: skip
    shown = {name: cells for name, cells in columns.items() if {*cells} != {NONE}}
    return grid([*shown], zip(*shown.values()))


def _prior(report: Report, letter: str, name: Literal["mobility", "leaper formula"]) -> str:
    number = report.priors[letter][name] if letter in report.priors else None
    return NONE if number is None else f"{number:.1f}"


def _published(report: Report, letter: str) -> Sequence[tuple[float, str]]:
    return report.priors[letter]["published"] if letter in report.priors else ()


def _value(pieces: Sequence[PieceEstimate], letter: str) -> Interval | None:
    return next((piece.value for piece in pieces if piece.letter == letter), None)


def _cell(value: Interval | None) -> str:
    if value is None:
        return NONE
    return "1\nthe unit" if value.low == value.high else f"{value.estimate:.2f}\n{value.range_text('.1f')}"


def _sources(report: Report) -> str:
    sources = dict.fromkeys(source for letter in report.recommended for _, source in _published(report, letter))
    return paragraph(f"{PRIORS} Published, in this order: {'; '.join(sources)}." if sources else PRIORS, "soft")


def _reasons(report: Report) -> str:
    lines = "".join(
        f"<dt>{text(report.name_of(letter))}</dt><dd>{text(one.why)}</dd>" for letter, one in report.recommended.items()
    )
    return folded("Why these values are recommended", f'<dl class="facts">{lines}</dl>')


def _method(report: Report, method: MethodValues) -> str:
    """Return what one method rests on, and what its values become under other conditions."""
    head = f"<h3>{text(method.method)}: {text(METHOD_WORDS[method.method])}</h3>"
    if method.refusal:
        return head + paragraph(f"No values: {method.refusal}.")
    games = f"{method.games:,} games, {method.decisive_games:,} of them decisive, {method.cut_games:,} more cut short"
    terms = "; ".join(f"{name} {term.estimate:+.2f} ({term.range_text()})" for name, term in method.terms.items())
    refusals = [f"{report.name_of(piece.letter)}: {piece.refusal}" for piece in method.pieces if piece.refusal]
    lines = [f"{games}; {method.basis}.", f"In log-odds: {terms}." if terms else ""]
    lines += [f"Without a value: {'; '.join(refusals)}." if refusals else ""]
    return head + "".join(paragraph(line) for line in lines if line) + _splits(report, method.splits)


def _splits(report: Report, splits: Sequence[Split]) -> str:
    letters = [letter for letter in report.recommended if any(_value(split.pieces, letter) for split in splits)]
    if not letters:
        return ""
    rows = [(split.name, *(_cell(_value(split.pieces, letter)) for letter in letters)) for split in splits]
    return folded("With parts of the games, or under other conditions", grid(("", *letters), rows))


def _priors_csv(report: Report) -> str:
    rows = list[tuple[object, ...]]()
    for letter, prior in report.priors.items():
        numbers = {"mobility": prior["mobility"], "leaper formula": prior["leaper formula"]}
        rows += [(letter, name, value, "") for name, value in numbers.items() if value is not None]
        rows += [(letter, "published", value, source) for value, source in prior["published"]]
    return csv_text(("letter", "prior", "value", "source"), rows)
