"""Piece values by one method or several, side by side: a table, CSV, JSON and a forest plot."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAVY
from rich.table import Table

from envs import Variant
from models.storage import naming_full_disk, write_atomically
from train.csv_table import csv_text
from train.piece_values.army import army_text
from train.piece_values.estimates import MethodValues, PieceEstimate, Split
from train.piece_values.forest import ForestRow, draw_forest, save_figure
from train.piece_values.priors import Priors, prior_values
from train.piece_values.recommend import Recommendation, recommend
from train.ratings import Interval

BIASED_CUT_SHARE = 0.05
"""Share of games cut short above which the values are headed as biased: long games are missing."""
STEM = "piece_values"
NARROWEST = 76
"""Least width of the table in characters, so that the lines below it have room."""
LAST = 1e6
"""Puts pieces without a value in pawns behind all others."""
PRIOR_HEADINGS = ("mobility", "leaper", "published")
SCALES, ENDS = ("value", "log_odds", "elo"), ("estimate", "low", "high")


@dataclass(frozen=True)
class Report:
    """Values with the game they belong to and what they rest on.

    Attributes:
        methods: the estimates of each method, at least one.
        variant: the game.
        provenance: what `train.provenance.provenance` returns, and what else belongs into the document.
        command: that makes this report again, or "".
    """

    methods: tuple[MethodValues, ...]
    variant: Variant
    provenance: dict[str, Any]
    command: str = ""

    @property
    def values(self) -> MethodValues:
        """The first method's values."""
        return self.methods[0]

    @cached_property
    def recommended(self) -> dict[str, Recommendation]:
        """The recommended value of each piece by letter, most valuable first, those without one last."""
        return dict(sorted(recommend(self.methods).items(), key=lambda entry: -self._order(*entry)))

    @cached_property
    def priors(self) -> dict[str, Priors]:
        """What each piece may be expected to be worth, by letter."""
        return prior_values(self.variant)

    @property
    def warning(self) -> str:
        """Why the values are to be read with care, or ""."""
        cut = [values for values in self.methods if values.cut_share > BIASED_CUT_SHARE]
        if len(self.methods) == 1:
            return f"biased: {100 * cut[0].cut_share:.0f} % of the games were cut short" if cut else ""
        shares = ", ".join(f"{values.method} {100 * values.cut_share:.0f} %" for values in cut)
        return f"biased by games cut short: {shares}" if cut else ""

    def name_of(self, letter: str) -> str:
        """Return a piece's name in words; Black's, where the letter is small."""
        name = self.variant.piece_types[self.variant.type_by_letter[letter.upper()]].name
        return f"{name} of Black" if letter.islower() else name

    def table(self) -> Table:
        """Return the table for a terminal."""
        title = "Piece values" if len(self.methods) > 1 else f"Piece values by {self.values.method}"
        heading = f"{title}: {self.variant.title}"
        heading = f"{heading}\n{self.warning}" if self.warning else heading
        table = Table(title=heading, caption=self._caption(), box=SIMPLE_HEAVY, caption_justify="left")
        table.min_width = NARROWEST
        table.add_column("piece")
        if len(self.methods) > 1:
            self._fill_side_by_side(table)
        else:
            self._fill_single(table)
        return table

    def split_table(self) -> Table | None:
        """Return a table of what the values become with parts of the games or other settings; None without any."""
        if not any(values.splits for values in self.methods):
            return None
        table = Table(title="Splits, in pawns", box=SIMPLE_HEAVY)
        table.add_column("method")
        table.add_column("split")
        for letter in self.recommended:
            table.add_column(letter, justify="right", no_wrap=True)
        for values in self.methods:
            for split in (Split("all", values.pieces), *values.splits):
                by_letter = {piece.letter: piece for piece in split.pieces}
                cells = [_two_lines(by_letter.get(letter)) for letter in self.recommended]
                table.add_row(values.method, split.name, *cells)
        return table

    def to_document(self) -> dict[str, Any]:
        """Return everything as plain data (JSON-able); unbounded ends are null."""
        return {
            **self.provenance,
            "command": self.command,
            "warning": self.warning,
            "army": army_text(self.variant),
            "pieces": [self._piece_document(letter) for letter in self.recommended],
            "methods": [values.to_document() for values in self.methods],
        }

    def to_csv(self) -> str:
        """Return a row per method, split and piece; unknown and unbounded numbers are empty."""
        numbers = [f"{scale}_{end}" for scale in SCALES for end in ENDS]
        return csv_text(["letter", "name", "method", "split", "games", *numbers, "refusal"], self._rows())

    def _rows(self) -> Iterator[list[Any]]:
        """Yield the rows of the CSV."""
        if len(self.methods) > 1:
            for letter, one in self.recommended.items():
                ends = one.value.to_document().values() if one.value else [None] * len(ENDS)
                rest = [None] * (len(SCALES) - 1) * len(ENDS)
                yield [letter, self.name_of(letter), "recommended", "", "", *ends, *rest, one.why]
        for values in self.methods:
            for split in (Split("", values.pieces), *values.splits):
                for piece in self._ordered(split.pieces):
                    document = piece.to_document()
                    cells = [(document[scale] or {}).get(end) for scale in SCALES for end in ENDS]
                    names = [piece.letter, self.name_of(piece.letter), values.method, split.name, piece.games]
                    yield [*names, *cells, piece.refusal]

    def write(self, folder: Path) -> list[Path]:
        """Write JSON, CSV, PNG and SVG into a folder, made if missing; return the paths."""
        document, rows = folder / f"{STEM}.json", folder / f"{STEM}.csv"
        with naming_full_disk(folder):
            folder.mkdir(parents=True, exist_ok=True)
        write_atomically(document, (json.dumps(self.to_document(), indent=1, allow_nan=False) + "\n").encode())
        write_atomically(rows, self.to_csv().encode())
        in_pawns = any(one.value for one in self.recommended.values())
        figure = draw_forest(
            [self._forest_row(letter, in_pawns=in_pawns) for letter in self.recommended],
            title=f"Piece values in {self.variant.title}",
            scale="value in pawns" if in_pawns else "log-odds of one piece",
            reference=1.0 if in_pawns else 0.0,
            notes=[note for note in (*self._refusals(), *self._bases(), self.warning) if note],
        )
        with naming_full_disk(folder / STEM):
            return [document, rows, *save_figure(figure, folder / STEM)]

    def _order(self, letter: str, one: Recommendation) -> float:
        """Return what pieces are ordered by."""
        if one.value is not None:
            return one.value.estimate
        estimates = [
            piece.log_odds.estimate for piece in self.values.pieces if piece.letter == letter and piece.log_odds
        ]
        return estimates[0] - LAST if estimates else -2 * LAST

    def _ordered(self, pieces: Sequence[PieceEstimate]) -> list[PieceEstimate]:
        letters = list(self.recommended)
        return sorted(pieces, key=lambda piece: letters.index(piece.letter))

    def _estimates(self, letter: str) -> dict[str, PieceEstimate]:
        """Return a piece's entry by each method that has one."""
        return {v.method: piece for v in self.methods for piece in v.pieces if piece.letter == letter}

    def _priors_of(self, letter: str) -> Priors | None:
        return self.priors.get(letter) or self.priors.get(letter.lower()) or self.priors.get(letter.upper())

    def _piece_document(self, letter: str) -> dict[str, Any]:
        one, priors = self.recommended[letter], self._priors_of(letter)
        return {
            "letter": letter,
            "name": self.name_of(letter),
            "value": one.value.to_document() if one.value else None,
            "recommended_from": list(one.methods),
            "why": one.why,
            "birge_ratio": one.birge,
            "methods": {method: piece.to_document() for method, piece in self._estimates(letter).items()},
            "mobility": priors["mobility"] if priors else None,
            "leaper_formula": priors["leaper formula"] if priors else None,
            "published": [{"value": v, "source": s} for v, s in priors["published"]] if priors else [],
        }

    def _forest_row(self, letter: str, *, in_pawns: bool) -> ForestRow:
        one, estimates, priors = self.recommended[letter], self._estimates(letter), self._priors_of(letter)
        intervals = {method: piece.value if in_pawns else piece.log_odds for method, piece in estimates.items()}
        by_method = {method: interval for method, interval in intervals.items() if interval}
        is_alone = len(self.methods) == 1
        first = next(iter(by_method.values()), None)
        return ForestRow(
            label=f"{self.name_of(letter)} ({letter})",
            value=one.value if in_pawns else first if is_alone else None,
            by_method={} if is_alone or (one.value and one.value.low == one.value.high) else by_method,
            published=[value for value, _ in priors["published"]] if priors and in_pawns else (),
            refusal=next((piece.refusal for piece in estimates.values() if piece.refusal), "") if is_alone else one.why,
        )

    def _fill_single(self, table: Table) -> None:
        has_unit = any(piece.value for piece in self.values.pieces)
        scales = ("pawns", "95 %", "log-odds", "Elo", "games") if has_unit else ("log-odds", "95 %", "Elo", "games")
        for scale in (*scales, *(PRIOR_HEADINGS if has_unit else ())):
            table.add_column(scale, justify="right", no_wrap=True)
        for piece in self._ordered(self.values.pieces):
            pawns = (_number(piece.value), _range(piece.value)) if has_unit else ()
            log_odds = (_number(piece.log_odds), *(() if has_unit else (_range(piece.log_odds),)))
            counts = (_number(piece.elo, ".0f"), str(piece.games))
            priors = self._prior_cells(piece.letter) if has_unit else ()
            table.add_row(f"{piece.letter}  {self.name_of(piece.letter)}", *pawns, *log_odds, *counts, *priors)

    def _fill_side_by_side(self, table: Table) -> None:
        for heading in ("recommended", *(values.method for values in self.methods), *PRIOR_HEADINGS):
            table.add_column(heading, justify="right", no_wrap=True)
        for letter, one in self.recommended.items():
            estimates = self._estimates(letter)
            cells = [_two_lines(estimates.get(values.method)) for values in self.methods]
            recommended = f"[bold]{_number(one.value)}[/bold]\n{_range(one.value)}"
            table.add_row(f"{letter}  {self.name_of(letter)}", recommended, *cells, *self._prior_cells(letter))

    def _prior_cells(self, letter: str) -> tuple[str, str, str]:
        priors = self._priors_of(letter)
        if priors is None:
            return "-", "-", "-"
        leaper = priors["leaper formula"]
        published = sorted(value for value, _ in priors["published"])
        ends = dict.fromkeys(f"{value:g}" for value in (*published[:1], *published[-1:]))
        return f"{priors['mobility']:.1f}", "-" if leaper is None else f"{leaper:.1f}", " to ".join(ends) or "-"

    def _refusals(self) -> list[str]:
        """Return one line for each reason why pieces, or a method, have no values."""
        letters: dict[str, list[str]] = {}
        for values in self.methods:
            told = f"{values.method}: " if len(self.methods) > 1 else ""
            for piece in self._ordered(values.pieces):
                if piece.refusal:
                    letters.setdefault(told + piece.refusal, []).append(piece.letter)
        lines = [f"no value in pawns for {' '.join(which)}: {why}" for why, which in letters.items()]
        return [*(f"{values.method}: none, {values.refusal}" for values in self.methods if values.refusal), *lines]

    def _bases(self) -> list[str]:
        """Return what the values were measured on, one line for each method."""
        lines = []
        for values in self.methods:
            if not values.refusal:
                told = f"{values.method}: " if len(self.methods) > 1 else ""
                cut = f"{values.cut_games} more, {100 * values.cut_share:.1f} %, cut short"
                games = f"{values.games} games ({values.decisive_games} decisive; {cut})"
                lines.append(f"{told}{games}; intervals 95 %; {values.basis}")
        return lines

    def _caption(self) -> str:
        lines = [*self._refusals(), army_text(self.variant), *self._bases()]
        for values in self.methods:
            terms = ", ".join(
                f"{name} {term.estimate:+.2f} ({term.range_text()})" for name, term in values.terms.items()
            )
            told = f"{values.method}, log-odds" if len(self.methods) > 1 else "log-odds"
            lines += [f"{told}: {terms}"] if terms else []
        if len(self.methods) > 1:
            letters: dict[str, list[str]] = {}
            for letter, one in self.recommended.items():
                if one.methods:
                    letters.setdefault(one.why, []).append(letter)
            lines += [f"recommended for {' '.join(which)}: {why}" for why, which in letters.items()]
        return "\n".join(lines)


def _number(interval: Interval | None, style: str = ".2f") -> str:
    return format(interval.estimate, style) if interval else "-"


def _range(interval: Interval | None) -> str:
    if interval is None:
        return "-"
    return "the unit" if interval.low == interval.high else interval.range_text()


def _two_lines(piece: PieceEstimate | None) -> str:
    if piece is None or piece.value is None:
        return "-"
    return f"{_number(piece.value)}\n{_range(piece.value)}"
