"""The figures of a balance: what each is called, how it is shown, and its estimates from many games."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from envs import Variant
from train.balance_counts import LINE_PLIES, PLY_CAP, Tally
from train.balance_intervals import Estimate, entropy, rate, share

RATES = (
    "plies", "branching", "captures", "double_captures", "own_captures", "first_capture", "promotions", "promotions_to",
)  # fmt: skip
"""Figures, without what follows a slash, that are means and not shares."""
ENDING, ENTROPY = "ending", "entropy"
ARMY, FIRST_MOVE, BLACK_FIRST = "army", "first_move", "white_score_black_first"
RESULT, LENGTH, CAPTURES, CASTLING, PROMOTION, PIECES, OPENING = GROUPS = (
    "result", "length and endings", "captures", "castling", "promotion", "pieces", "opening",
)  # fmt: skip
_NAMES = {
    "white_score": (RESULT, "White's score"),
    BLACK_FIRST: (RESULT, "White's score where Black begins"),
    ARMY: (RESULT, "White's army, score above 1/2"),
    FIRST_MOVE: (RESULT, "the first move, score above 1/2"),
    "white_wins": (RESULT, "White wins"),
    "draws": (RESULT, "draws"),
    "black_wins": (RESULT, "Black wins"),
    "decisive": (RESULT, "decisive games"),
    "plies": (LENGTH, "plies a game"),
    "branching": (LENGTH, "legal moves a position"),
    "captures": (CAPTURES, "pieces captured a game"),
    "capturing_moves": (CAPTURES, "moves that capture"),
    "double_captures": (CAPTURES, "double captures a game"),
    "games_with_double_capture": (CAPTURES, "games with a double capture"),
    "own_captures": (CAPTURES, "own pieces captured a game"),
    "first_capture": (CAPTURES, "ply of the first capture"),
    "castled": (CASTLING, "players who castle"),
    "castled/white": (CASTLING, "White castles"),
    "castled/black": (CASTLING, "Black castles"),
    "castled/kingside": (CASTLING, "castling kingside"),
    "castled/queenside": (CASTLING, "castling queenside"),
    "promotions": (PROMOTION, "promotions a game"),
    "games_with_promotion": (PROMOTION, "games with a promotion"),
}
_PIECE_NAMES = {
    "moves": "share of moves",
    "captures_made": "share of captures made",
    "captured": "captured",
    "alive": "alive at the end",
    "promoted": "promoted",
    "promotions_to": "promotions to it a game",
}
PIECE_FIGURES = tuple(_PIECE_NAMES)


@dataclass(frozen=True)
class Figure:
    """What a figure is called.

    Attributes:
        key: its name in files.
        group: one of `GROUPS`.
        label: in words.
        letter: the kind of piece that it is about, or "".
        is_share: whether it is shown in per cent.
    """

    key: str
    group: str
    label: str
    letter: str = ""
    is_share: bool = True

    @classmethod
    def of(cls, key: str) -> Figure:
        """Return the figure of a key."""
        name, _, about = key.partition("/")
        is_share = name not in (*RATES, ENTROPY)
        if name in _PIECE_NAMES and about:
            return cls(key, PIECES, f"{about}: {_PIECE_NAMES[name]}", about, is_share)
        if name == ENDING:
            words = "cut short" if about == PLY_CAP else about.replace("_", " ")
            return cls(key, LENGTH, f"ended by {words}" if about != PLY_CAP else words)
        if name == ENTROPY:
            words = "first move" if about == "1" else f"first {about} plies"
            return cls(key, OPENING, f"bits of entropy, {words}", is_share=False)
        group, label = _NAMES[key]
        return cls(key, group, label, is_share=is_share)

    @property
    def order(self) -> tuple[int, int, str]:
        """What figures are sorted by: groups, and within them names as listed here."""
        names = [*_NAMES, *(f"{name}/{self.letter}" for name in _PIECE_NAMES)]
        place = names.index(self.key) if self.key in names else len(names)
        return GROUPS.index(self.group), place if not self.letter else 0, self.key if not self.letter else ""


def estimates(
    tallies: Sequence[Tally], lines: Sequence[tuple[str, ...]], endings: Iterable[str] = ()
) -> dict[str, Estimate]:
    """Return all figures of some games that have an interval.

    Args:
        tallies: of each game.
        lines: first moves of each game, as many as `LINE_PLIES` ask for.
        endings: keys of ends that count even if no game has ended so.
    """
    keys = list(dict.fromkeys([key for one in tallies for key in one] + sorted(endings)))
    found: dict[str, Estimate] = {}
    for key in keys:
        name = key.partition("/")[0]
        absent = (0.0, float(name == ENDING))  # a game has ended otherwise, or there was no chance
        counted, trials = np.array([one.get(key, absent) for one in tallies]).T
        estimate = (rate if name in RATES else share)(counted, trials)
        if estimate is not None:
            found[key] = estimate
    for plies in LINE_PLIES:
        bits = entropy(line[:plies] for line in lines)
        if bits is not None:
            found[f"{ENTROPY}/{plies}"] = bits
    return found


def has_own_captures(variant: Variant) -> bool:
    """Return whether a piece may capture pieces of its own side."""
    return any(piece.captures_own or piece.fires_through_own for piece in variant.piece_types)
