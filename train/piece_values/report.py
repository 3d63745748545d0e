"""The outcome estimator's result as a table, CSV, JSON and a forest plot."""

import csv
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAVY
from rich.table import Table

from envs import Variant
from models.storage import naming_full_disk, write_atomically
from train.piece_values.forest import draw_forest, save_figure
from train.piece_values.outcome import OutcomeValues, PieceEstimate
from train.ratings import Interval

BIASED_CUT_SHARE = 0.05
"""Share of games cut short above which the values are headed as biased: long games are missing."""
STEM = "piece_values"
NARROWEST = 76
"""Least width of the table in characters, so that the lines below it have room."""


@dataclass(frozen=True)
class Report:
    """Values with the game they belong to and what they rest on.

    Attributes:
        values: the estimates.
        variant: the game.
        provenance: what `train.provenance.provenance` returns.
    """

    values: OutcomeValues
    variant: Variant
    provenance: dict[str, Any]

    @property
    def warning(self) -> str:
        """Why the values are to be read with care, or ""."""
        share = self.values.cut_share
        return f"biased: {100 * share:.0f} % of the games were cut short" if share > BIASED_CUT_SHARE else ""

    @property
    def basis(self) -> str:
        """What the values were measured on, in one line."""
        values = self.values
        return (
            f"{values.games} games ({values.decisive_games} decisive, {values.cut_games} more cut short), "
            f"{values.positions} positions; intervals 95 %, {values.resamples} resamples of games"
        )

    def by_value(self) -> list[PieceEstimate]:
        """Return the pieces, most valuable first, refused ones last."""
        return sorted(
            self.values.pieces,
            key=lambda piece: -piece.log_odds.estimate if piece.log_odds else float("inf"),
        )

    def name_of(self, piece: PieceEstimate) -> str:
        """Return the piece's name in words."""
        return self.variant.piece_types[self.variant.type_by_letter[piece.letter]].name

    def table(self) -> Table:
        """Return the table for a terminal."""
        title = f"Piece values by outcome: {self.variant.title}"
        heading = f"{title}\n{self.warning}" if self.warning else title
        table = Table(title=heading, caption=self._caption(), box=SIMPLE_HEAVY, caption_justify="left")
        table.min_width = NARROWEST
        has_unit = any(piece.value for piece in self.values.pieces)
        table.add_column("piece")
        for scale in (("pawns", "95 %", "log-odds") if has_unit else ("log-odds", "95 %")) + ("Elo", "games"):
            table.add_column(scale, justify="right", no_wrap=True)
        for piece in self.by_value():
            pawns = (_number(piece.value), _range(piece.value)) if has_unit else ()
            log_odds = (_number(piece.log_odds), *(() if has_unit else (_range(piece.log_odds),)))
            name = f"{piece.letter}  {self.name_of(piece)}"
            table.add_row(name, *pawns, *log_odds, _number(piece.elo, ".0f"), str(piece.games))
        return table

    def to_document(self) -> dict[str, Any]:
        """Return everything as plain data (JSON-able); unbounded ends are null."""
        values = self.values
        return {
            **self.provenance,
            "method": "outcome",
            "warning": self.warning,
            "games": values.games,
            "decisive_games": values.decisive_games,
            "cut_games": values.cut_games,
            "positions": values.positions,
            "condition_number": values.condition_number,
            "resamples": values.resamples,
            "white_advantage": values.white_advantage.to_document(),
            "side_to_move": values.side_to_move.to_document(),
            "pieces": [
                {
                    "letter": piece.letter,
                    "name": self.name_of(piece),
                    "games": piece.games,
                    "value": piece.value.to_document() if piece.value else None,
                    "log_odds": piece.log_odds.to_document() if piece.log_odds else None,
                    "elo": piece.elo.to_document() if piece.elo else None,
                    "refusal": piece.refusal,
                }
                for piece in self.by_value()
            ],
        }

    def to_csv(self) -> str:
        """Return one row per piece; unknown and unbounded numbers are empty."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        scales = ("value", "log_odds", "elo")
        ends = ("estimate", "low", "high")
        writer.writerow(["letter", "name", "games", *(f"{scale}_{end}" for scale in scales for end in ends), "refusal"])
        for piece in self.to_document()["pieces"]:
            numbers = [(piece[scale] or {}).get(end) for scale in scales for end in ends]
            writer.writerow([piece["letter"], piece["name"], piece["games"], *numbers, piece["refusal"]])
        return text.getvalue()

    def write(self, folder: Path) -> list[Path]:
        """Write JSON, CSV, PNG and SVG into a folder, made if missing; return the paths."""
        document, rows = folder / f"{STEM}.json", folder / f"{STEM}.csv"
        with naming_full_disk(folder):
            folder.mkdir(parents=True, exist_ok=True)
        write_atomically(document, (json.dumps(self.to_document(), indent=1, allow_nan=False) + "\n").encode())
        write_atomically(rows, self.to_csv().encode())
        figure = draw_forest(
            [(self.name_of(piece), piece) for piece in self.by_value()],
            title=f"Piece values in {self.variant.title}",
            notes=[note for note in (*self._refusals(), self.basis, self.warning) if note],
        )
        with naming_full_disk(folder / STEM):
            return [document, rows, *save_figure(figure, folder / STEM)]

    def _refusals(self) -> list[str]:
        """Return one line for each reason why pieces have no value."""
        letters: dict[str, list[str]] = {}
        for piece in self.by_value():
            letters.setdefault(piece.refusal, []).append(piece.letter)
        return [f"no value in pawns for {' '.join(which)}: {why}" for why, which in letters.items() if why]

    def _caption(self) -> str:
        values = self.values
        pairs = (("White's advantage", values.white_advantage), ("side to move", values.side_to_move))
        common = ", ".join(f"{name} {term.estimate:+.2f} ({term.range_text()})" for name, term in pairs)
        condition = f"log-odds: {common}; condition number {values.condition_number:.0f}"
        return "\n".join([*self._refusals(), self.basis, condition])


def _number(interval: Interval | None, style: str = ".2f") -> str:
    return format(interval.estimate, style) if interval else "-"


def _range(interval: Interval | None) -> str:
    if interval is None:
        return "-"
    return "the unit" if interval.low == interval.high else interval.range_text()
