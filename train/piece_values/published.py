"""Published piece values, by game: what others have said of exactly these games.

Only numbers that could be read in a source are here; a piece that moves alike in another game is worth something else.
Values are in pawns of the game itself. Bishops are single ones: most sources add half a pawn for a pair.

Sources: Tomasev, Paquet, Hassabis and Kramnik 2020, "Assessing Game Balance with AlphaZero", arXiv 2009.04374, whose
values were fitted to self-play of strong networks; Kaufman 1999 in Chess Life and "The Evaluation of Material
Imbalances", from games of masters; Trice in the ICGA Journal, with values by Scharnagl; H. G. Muller's pages of rules
in XBoard, whose values rest on matches of engines.
"""

from __future__ import annotations

from collections.abc import Mapping

Values = Mapping[str, float]

ALPHAZERO = "Tomasev et al. 2020 (AlphaZero self-play)"
KAUFMAN_1999 = "Kaufman 1999 (games of masters)"
KAUFMAN = "Kaufman, The Evaluation of Material Imbalances (for human players)"
TRICE = "Trice, ICGA Journal"
SCHARNAGL = "Scharnagl, in Trice, ICGA Journal"
XBOARD = "Muller, rules pages of XBoard"

_FIDE: Values = {"Q": 9.5, "R": 5, "B": 3.25, "N": 3.25}
_WIDE: Values = {"Q": 9.5, "R": 5, "B": 3.5, "N": 3}

PUBLISHED: Mapping[str, Mapping[str, Values]] = {
    "chess": {
        ALPHAZERO: {"Q": 9.5, "R": 5.63, "B": 3.33, "N": 3.05},
        KAUFMAN: {"Q": 10, "R": 5.25, "B": 3.5, "N": 3.5},
        KAUFMAN_1999: {"Q": 9.75, "R": 5, "B": 3.25, "N": 3.25},
    },
    "torpedo": {ALPHAZERO: {"Q": 7.1}},
    "berolina": {XBOARD: _FIDE},
    "capablanca": {XBOARD: {**_WIDE, "C": 9, "A": 8.75}},
    "gothic": {
        TRICE: {"Q": 8.75, "C": 8.25, "A": 6.5, "R": 4.75, "B": 3, "N": 2.5},
        SCHARNAGL: {"Q": 9.5, "C": 9, "A": 7, "R": 5.75, "B": 3.75, "N": 3},
        XBOARD: {**_WIDE, "C": 9, "A": 8.75},
    },
    "grand": {XBOARD: {**_WIDE, "M": 9, "C": 8.75}},
    "janus": {XBOARD: {**_WIDE, "J": 8.75}},
    "knightmate": {XBOARD: {"Q": 10, "R": 4.5, "B": 3.25, "M": 3}},
    "makruk": {XBOARD: {"R": 5, "N": 3.25, "S": 2.5, "M": 1.5}},
    "courier": {XBOARD: {"R": 8, "B": 5, "N": 4, "M": 4, "F": 2, "W": 1.5, "E": 1}},
    "fides_vs_clobberers": {XBOARD: {**_FIDE, "C": 8.75, "D": 5, "F": 4.5, "W": 3}},
    "fides_vs_nutty_knights": {XBOARD: {**_FIDE, "C": 9.5, "G": 5, "H": 3.75, "F": 3}},
    "fides_vs_rookies": {XBOARD: {**_FIDE, "C": 9, "S": 4.5, "D": 4, "W": 3}},
}
"""Values by name of a built-in game, source and capital letter."""
