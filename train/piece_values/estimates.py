"""What an estimator of piece values returns, whatever it measures with."""

from __future__ import annotations

from collections.abc import Mapping
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

    @property
    def cut_share(self) -> float:
        """Share of all games that were cut short."""
        return self.cut_games / max(1, self.cut_games + self.games)
