"""Betza notation: the moves of a piece as text, read into rays.

A ray is a step `(dx, dy)`, seen by a side that plays towards growing `dy`, with a reach: how often the step may be
repeated over empty landing squares (1: a leap, 0: without limit). The dialect is XBoard's, as far as single-leg moves
go: https://www.gnu.org/software/xboard/Betza.html. Atoms `W F D N A H C Z G` (also `L` for `C`, `J` for `Z`),
compounds `K Q R B`, riders by doubling (`NN`) or by range (`W3`, `N0` without limit), `m` and `c` for moves that only
go or only capture, and the directions `f b l r s v` (with `h` halves and two-letter forms on oblique atoms).
Not as on that page: `L` and `J`, which it gives the other way round; riders may be doubled; and what dialects read
differently is refused: directions on `K` and `Q`, and `s` or `v` before a letter across on oblique atoms.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

Step = tuple[int, int]

UNLIMITED = 0
LONGEST_RANGE = 15
ATOM_LEGS: dict[str, tuple[int, int]] = {
    "W": (1, 0), "F": (1, 1), "D": (2, 0), "N": (2, 1), "A": (2, 2),
    "H": (3, 0), "C": (3, 1), "L": (3, 1), "Z": (3, 2), "J": (3, 2), "G": (3, 3),
}  # fmt: skip
READ_DIFFERENTLY = {"K": "WF", "Q": "RB"}
"""Compounds on which dialects disagree about directions, and their parts."""
COMPOUNDS: dict[str, tuple[tuple[str, int], ...]] = {
    "K": (("W", 1), ("F", 1)),
    "R": (("W", UNLIMITED),),
    "B": (("F", UNLIMITED),),
    "Q": (("W", UNLIMITED), ("F", UNLIMITED)),
}
UNSUPPORTED_MODIFIERS = {
    "p": "hoppers (p) are not supported; the nearest supported form is an unblockable leap, or `fires_through`",
    "g": "grasshoppers (g) are not supported; the nearest supported form is an unblockable leap",
    "n": "lame moves (n) are not supported; the nearest supported form is a ranged slide such as W2",
    "j": "jumping modifiers (j) are not supported; the nearest supported form is a leap such as D",
    "i": "first-move-only moves (i) are not supported on pieces; the nearest supported form is `pawns.first_steps`",
    "e": "en passant modifiers (e) are not supported on pieces; pawns capture en passant by themselves",
    "o": "boards that wrap round (o) are not supported; the nearest supported form is a flat board with holes",
    "z": "bent riders (z) are not supported; the nearest supported form is a straight rider such as FF",
    "q": "bent riders (q) are not supported; the nearest supported form is a straight rider such as FF",
    "a": "moves of several legs (a) are not supported; the nearest supported form is `overruns`, which also captures "
    "on the square jumped over",
    "t": "bent sliders (t) are not supported; the nearest supported form is a straight slide",
    "y": "bent sliders (y) are not supported; the nearest supported form is a straight slide",
    "d": "moves that capture own pieces (d) are not supported in notation; the key `captures_own` allows them",
    "u": "unloading moves (u) are not supported; the nearest supported form is `castling`, which moves two pieces",
    "x": "moves that lend powers (x) are not supported; the nearest supported form is promotion of the pawn",
}
UNSUPPORTED_ATOMS = {
    "O": "castling (O) is not written as a move of a piece; it has the key `castling`",
    "U": "universal leaps (U), teleports, are not supported; the nearest supported form is a far leap such as Z, or a "
    "rider such as NN",
}
UNSUPPORTED_SIGNS = {
    "[": "moves of several legs ([...]) are not supported; the nearest supported form is a straight slide together "
    "with a leap, such as BC",
    "(": "bent and chained moves (in parentheses) are not supported; the nearest supported form is a straight slide "
    "together with a leap, such as BC",
    "@": "drops (@) are not supported; a piece only moves on the board",
    "-": "moves of several legs (-) are not supported; the nearest supported form is a straight slide together with a "
    "leap, such as BC",
    "?": "conditions (?) are not supported; the nearest supported form is a move with m or c",
}
SHOWN_LENGTH = 60
_TOKEN = re.compile(r"([a-z]*)([A-Z])(?:\2)?(\d*)")


@dataclass(frozen=True, order=True)
class Ray:
    """One direction of movement of a piece type.

    Attributes:
        step: `(dx, dy)` of one repetition, files to the right and ranks forward as the mover sees the board.
        reach: How many repetitions at most; 1 is a leap, `UNLIMITED` (0) goes on to the edge.
        quiet: Whether the ray may end on an empty square.
        capture: Whether the ray may end on an enemy.
        fires_through: Whether the ray may capture the first piece it meets and go on to a second.
        overruns: Whether an enemy on the midpoint of the leap is captured too.
    """

    step: Step
    reach: int
    quiet: bool = True
    capture: bool = True
    fires_through: bool = False
    overruns: bool = False


def parse_betza(text: str) -> tuple[Ray, ...]:
    """Read a Betza string.

    Args:
        text: For example `"NK"`, `"mDDcR"` or `"fmWfcF"`.

    Returns:
        The rays in the order of the text, without repetitions.

    Raises:
        ValueError: The text is empty, has an unknown letter, or uses a feature that is not supported; the message
            shows the place.
    """
    if not text:
        raise ValueError("expected Betza notation such as 'NK', got an empty string")
    rays: list[Ray] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _unreadable(text, position)
        modifiers, letter, digits = match.groups()
        doubled = match.group(0)[len(modifiers) :].startswith(letter * 2)
        rays.extend(_token_rays(text, modifiers, letter, doubled, digits))
        position = match.end()
    return tuple(dict.fromkeys(rays))


def _unreadable(text: str, position: int) -> ValueError:
    """Say what stands where modifiers and an atom should: a sign of another dialect, an unknown letter, or an end."""
    rest = text[position:]
    reason = UNSUPPORTED_SIGNS.get(rest.lstrip("abcdefghijklmnopqrstuvwxyz")[:1])
    return ValueError(
        f"expected modifiers and an atom at character {position + 1} of {_shown(text)}, got {_shown(rest)}"
        f"{': ' + reason if reason else ''}"
    )


def _shown(text: str) -> str:
    return repr(text if len(text) <= SHOWN_LENGTH else text[:SHOWN_LENGTH] + "...")


def _token_rays(text: str, modifiers: str, letter: str, doubled: bool, digits: str) -> list[Ray]:
    if letter in UNSUPPORTED_ATOMS:
        raise ValueError(f"{_shown(text)}: {UNSUPPORTED_ATOMS[letter]}")
    if letter not in ATOM_LEGS and letter not in COMPOUNDS:
        known = " ".join([*ATOM_LEGS, *COMPOUNDS])
        raise ValueError(f"unknown atom {letter!r} in {_shown(text)}, expected one of {known}")
    if doubled and digits:
        raise ValueError(f"{letter * 2}{digits[:9]} in {_shown(text)} has both a doubled atom and a range")
    if doubled and letter in COMPOUNDS:
        raise ValueError(f"{letter * 2} in {_shown(text)}: only single atoms are doubled into riders")
    if digits and int(digits[:3]) > LONGEST_RANGE:
        raise ValueError(f"range {digits[:9]} in {_shown(text)}, expected at most {LONGEST_RANGE}, or 0 without limit")
    quiet, capture, directions = _split_modifiers(text, modifiers)
    if directions and letter in READ_DIFFERENTLY:
        parts = directions.join(("", *READ_DIFFERENTLY[letter]))
        raise ValueError(f"directions {directions!r} on {letter} in {_shown(text)} mean different moves in different "
                         f"dialects; write its parts, such as {parts}")  # fmt: skip
    rays = []
    for atom, default_reach in COMPOUNDS.get(letter, ((letter, 1),)):
        reach = int(digits) if digits else UNLIMITED if doubled else default_reach
        for step in _atom_steps(text, atom, directions):
            rays.append(Ray(step, reach, quiet, capture))
    return rays


def _split_modifiers(text: str, modifiers: str) -> tuple[bool, bool, str]:
    directions = ""
    modes = set()
    for letter in modifiers:
        if letter in "mc":
            modes.add(letter)
        elif letter in "fblrsvh":
            directions += letter
        elif letter in UNSUPPORTED_MODIFIERS:
            raise ValueError(f"{_shown(text)}: {UNSUPPORTED_MODIFIERS[letter]}")
        else:
            raise ValueError(f"unknown modifier {letter!r} in {_shown(text)}, expected some of m c f b l r s v h")
    return "m" in modes or not modes, "c" in modes or not modes, directions


def _all_steps(atom: str) -> list[Step]:
    long, short = ATOM_LEGS[atom]
    pairs = {(long, short), (short, long)}
    return sorted({(x * sx, y * sy) for x, y in pairs for sx in (1, -1) for sy in (1, -1)})


def _atom_steps(text: str, atom: str, directions: str) -> list[Step]:
    steps = _all_steps(atom)
    if not directions:
        return steps
    long, short = ATOM_LEGS[atom]
    if short == 0:
        chosen = _orthogonal(directions)
    elif long == short:
        chosen = _diagonal(directions)
    else:
        chosen = _oblique(directions)
    if chosen is None:
        raise ValueError(f"directions {_shown(directions)} mean nothing on atom {atom} in {_shown(text)}")
    return [step for step in steps if _sector(step) in chosen]


def _sector(step: Step) -> str:
    """Name the one of 16 sectors that a step lies in: its longer leg's letter first, then the shorter leg's."""
    x, y = step
    vertical = "f" if y > 0 else "b" if y < 0 else ""
    sideways = "r" if x > 0 else "l" if x < 0 else ""
    return vertical + sideways if abs(y) >= abs(x) else sideways + vertical


def _expand(letter: str) -> str:
    return {"s": "lr", "v": "fb"}.get(letter, letter)


def _orthogonal(directions: str) -> set[str] | None:
    if "h" in directions:
        return None
    return set("".join(_expand(letter) for letter in directions))


def _diagonal(directions: str) -> set[str] | None:
    """A vertical and a sideways letter side by side meet in one diagonal; a letter alone is both of its diagonals."""
    if "h" in directions:
        return None
    chosen: set[str] = set()
    index = 0
    while index < len(directions):
        first, second = directions[index], directions[index + 1 : index + 2]
        if second and (first in "fbv") != (second in "fbv"):
            vertical, sideways = (first, second) if first in "fbv" else (second, first)
            chosen |= {v + s for v in _expand(vertical) for s in _expand(sideways)}
            index += 2
        else:
            for letter in _expand(first):
                chosen |= {v + s for v in "fb" for s in "lr" if letter in (v, s)}
            index += 1
    return chosen


def _oblique(directions: str) -> set[str] | None:
    """On oblique atoms `f` is the two steps nearest to forward, `fh` the forward half, `fs` the flat forward pair.

    A vertical and a sideways letter side by side are one step, or a pair, the longer leg's letter last. `None` where
    `s` or `v` comes first of such two.
    """
    chosen: set[str] = set()
    index = 0
    while index < len(directions):
        first, second = directions[index], directions[index + 1 : index + 2]
        if first == "h":
            return None
        if second == "h":
            for letter in _expand(first):
                chosen |= {a + b for a in "fblr" for b in "fblr" if letter in (a, b)}
        elif second and second == first:
            chosen |= _nearest(first)
        elif second and (first in "fbv") != (second in "fbv"):
            if first in "sv":
                return None
            chosen |= {b + a for a in _expand(first) for b in _expand(second)}
        else:
            chosen |= _nearest(first)
            index += 1
            continue
        index += 2
    return chosen


def _nearest(letter: str) -> set[str]:
    return {a + b for a in _expand(letter) for b in ("lr" if a in "fb" else "fb")}
