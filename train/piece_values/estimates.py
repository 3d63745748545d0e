"""What an estimator of piece values returns, whatever it measures with."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from train.ratings import ELO_PER_DECADE, Interval

METHODS = ("outcome", "odds", "handicap", "td", "network")
CAUSAL = ("odds", "handicap")
"""Methods in which chance, not a player, decides who has which piece."""
ELO_PER_LOG_ODD = float(ELO_PER_DECADE / np.log(10))


@dataclass(frozen=True)
class PieceEstimate:
    """One piece's value.

    Attributes:
        letter: its letter; a small letter is Black's piece, where the sides are told apart.
        games: games with a difference in it.
        log_odds: weight of one piece in log-odds of the expected score; None where refused.
        value: the weight over the pawn's; None where refused or where the pawn's interval holds 0.
        refusal: why there is no value, or "".
    """

    letter: str
    games: int
    log_odds: Interval | None
    value: Interval | None
    refusal: str = ""

    @property
    def elo(self) -> Interval | None:
        """The weight in Elo points."""
        if self.log_odds is None:
            return None
        weight = self.log_odds
        return Interval(*(end * ELO_PER_LOG_ODD for end in (weight.estimate, weight.low, weight.high)))

    def to_document(self) -> dict[str, Any]:
        """Return plain data (JSON-able); unbounded ends are null."""
        return {
            "letter": self.letter,
            "games": self.games,
            "value": self.value.to_document() if self.value else None,
            "log_odds": self.log_odds.to_document() if self.log_odds else None,
            "elo": self.elo.to_document() if self.elo else None,
            "refusal": self.refusal,
        }


@dataclass(frozen=True)
class Split:
    """The same estimate from a part of the games, or under another setting.

    Attributes:
        name: "opening", "ending", "own values +20 %", "all positions", "first copy", "seed 2", ...
        pieces: one entry per piece type.
    """

    name: str
    pieces: tuple[PieceEstimate, ...]


@dataclass(frozen=True)
class MethodValues:
    """Values of all pieces by one method, and what they rest on.

    Attributes:
        method: one of `METHODS`.
        pieces: one entry per piece type, the pawn included.
        games: games used.
        decisive_games: those with a winner.
        cut_games: games left out because they were cut short.
        terms: other terms of the fit in log-odds: "White's advantage", "side to move".
        splits: what the estimate becomes with parts of the games or other settings.
        basis: what it was measured on, in one line: players, depth, seeds, resamples, condition number.
        checks: numbers for the document: condition number, resamples, seeds, ... (JSON-able).
        refusal: why the method has no values at all, or "".
    """

    method: str
    pieces: tuple[PieceEstimate, ...]
    games: int
    decisive_games: int
    cut_games: int
    terms: Mapping[str, Interval] = field(default_factory=dict)
    splits: tuple[Split, ...] = ()
    basis: str = ""
    checks: Mapping[str, Any] = field(default_factory=dict)
    refusal: str = ""

    @property
    def cut_share(self) -> float:
        """Share of all games that were cut short."""
        return self.cut_games / max(1, self.cut_games + self.games)

    def to_document(self) -> dict[str, Any]:
        """Return plain data (JSON-able), from which `method_from_document` makes the same values."""
        return {
            "method": self.method,
            "games": self.games,
            "decisive_games": self.decisive_games,
            "cut_games": self.cut_games,
            "cut_share": self.cut_share,
            "basis": self.basis,
            "refusal": self.refusal,
            "checks": dict(self.checks),
            "terms": {name: term.to_document() for name, term in self.terms.items()},
            "pieces": [piece.to_document() for piece in self.pieces],
            "splits": [
                {"name": split.name, "pieces": [piece.to_document() for piece in split.pieces]} for split in self.splits
            ],
        }


def refused(method: str, reason: str) -> MethodValues:
    """Return a method that has no values, and why."""
    return MethodValues(method, (), 0, 0, 0, refusal=reason)


def method_from_document(document: Mapping[str, Any]) -> MethodValues:
    """Return the values that `MethodValues.to_document` has written."""
    return MethodValues(
        method=document["method"],
        pieces=_pieces(document["pieces"]),
        games=document["games"],
        decisive_games=document["decisive_games"],
        cut_games=document["cut_games"],
        terms={name: _interval(term) for name, term in document["terms"].items()},
        splits=tuple(Split(split["name"], _pieces(split["pieces"])) for split in document["splits"]),
        basis=document["basis"],
        checks=document["checks"],
        refusal=document["refusal"],
    )


def _pieces(documents: Sequence[Mapping[str, Any]]) -> tuple[PieceEstimate, ...]:
    return tuple(
        PieceEstimate(
            letter=piece["letter"],
            games=piece["games"],
            log_odds=_interval(piece["log_odds"]) if piece["log_odds"] else None,
            value=_interval(piece["value"]) if piece["value"] else None,
            refusal=piece["refusal"],
        )
        for piece in documents
    )


def _interval(document: Mapping[str, float | None]) -> Interval:
    """Return an interval; null is an unbounded end."""
    estimate, low, high = document["estimate"], document["low"], document["high"]
    return Interval(
        math.nan if estimate is None else estimate,
        -math.inf if low is None else low,
        math.inf if high is None else high,
    )
