"""Random moves of pieces and pawns in Betza notation, for `random_variants.py`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from envs.betza import parse_betza

NAMES = ("owl", "fox", "duke", "crab", "monk", "tower", "spy", "ox", "hawk", "smith")
ATOMS = "WWFFDNNNAHCZLJGKQRBRB"
ORTHOGONAL, DIAGONAL, OBLIQUE = "WDH", "FAG", "NCZLJ"
DIRECTIONS = {
    **dict.fromkeys(ORTHOGONAL, ("f", "b", "l", "r", "s", "v", "fs", "fb", "bs", "fl")),
    **dict.fromkeys(DIAGONAL, ("f", "b", "l", "r", "s", "v", "fr", "bl", "fs", "frbl", "brfl")),
    **dict.fromkeys(OBLIQUE, ("f", "b", "l", "r", "s", "v", "fr", "rf", "lb", "bl", "fh", "bh", "sh", "fs", "bs", "fv",
                              "ff", "ll", "rv", "frbl")),
    **dict.fromkeys("RW", ("f", "b", "s", "v", "fs")),
    "B": ("f", "b", "l", "r"),
    **dict.fromkeys("KQ", ("",)),
}  # fmt: skip
PAWN_QUIETS = (
    "fW",
    "fF",
    "fsW",
    "fWfF",
    "vW",
    "fD",
    "fN",
    "fWsW",
    "fWfF",
    "fFfW",
    "fWbF",
    "sWfF",
    "fsWF",
    "fWfA",
    "frFfW",
)
PAWN_CAPTURES = ("fF", "fW", "fN", "fFfW", "F", "fA", "fFbF", "sW", "fsW", "K", "fD", "frF", "ffN", "fFfD")
FIRES = (
    ("R", "B"), ("B", "R"), ("R", "F"), ("B", "N"), ("NN", "W"), ("R3", "cF"), ("fR", "bW"), ("B2", "C"), ("DD", "F"),
    ("frB", "W"), ("W0", "mF"), ("W2F2", "N"), ("Q", "N"),
)  # fmt: skip
"""What fires through, and what moves may stand beside it."""


@dataclass(frozen=True)
class Piece:
    """A piece of a variant file."""

    name: str
    moves: str | None = None
    overruns: str | None = None
    fires_through: str | None = None
    fires_through_own: bool | None = None
    captures_own: bool | None = None

    @property
    def special(self) -> bool:
        """Whether it overruns or fires through."""
        return self.overruns is not None or self.fires_through is not None

    def mapping(self) -> dict[str, Any]:
        """Return it as it stands in the file."""
        return {key: value for key, value in vars(self).items() if value is not None and value != ""}


class PieceDraw:
    """Draws pieces; consumes the generator."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def _chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def _pick(self, options: Any) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def royal(self) -> Piece:
        """Draw a piece that a random game can mate: mostly a king."""
        kind = self.rng.random()
        moves = (
            "K" if kind < 0.5 else self._pick(["W", "F", "WA", "FD", "N", "fsWF", "KN", "KmN", "mWcF", "W2", "fWfF"])
        )
        return Piece("king", moves, captures_own=True if self._chance(0.1) else None)

    def piece(self, chance_own: float) -> Piece:
        """Draw any piece."""
        name, kind = self._pick(NAMES), self.rng.random()
        own = True if self._chance(chance_own) else None
        if kind < 0.15:
            return self._overrunning(name, own)
        if kind < 0.3:
            return self._firing(name, own)
        moves = "".join(self._token(atom) for atom in self._atoms())
        return Piece(name, self._pick(["Q", "R", "B", "N", "NK", "BC"]) if kind < 0.5 else moves, captures_own=own)

    def leaps(self) -> str:
        """Draw moves of leaps alone, which no other rule contradicts."""
        return self._pick(["N", "F", "fC", "Z"]) + self._pick(["W", "mW", "H", "cG"])

    def pawn_quiet(self) -> str:
        """Draw the steps of a pawn onto empty squares."""
        return str(self._pick(PAWN_QUIETS))

    def pawn_captures(self, quiet: str, first_steps: int) -> str:
        """Draw the steps with which a pawn captures; they must differ from its quiet steps where it may pass by."""
        landings = set()
        for x, y in (ray.step for ray in parse_betza(quiet)):
            landings |= {(x * count, y * count) for count in range(1, first_steps + 1 if y > 0 else 2)}
        apart = [text for text in PAWN_CAPTURES if not landings & {ray.step for ray in parse_betza(text)}]
        return str(self._pick(PAWN_CAPTURES if first_steps == 1 or not apart else apart))

    def _overrunning(self, name: str, own: bool | None) -> Piece:
        overruns = self._pick(["D", "A", "DA", "fD", "frA", "fsD", "sDfA"])
        moves = self._pick(["N", "C", "fWfF", "mZ", ""]) + self._pick(["W", "F", "cF", "sW"])
        return Piece(name, moves, overruns=overruns, captures_own=own)

    def _firing(self, name: str, own: bool | None) -> Piece:
        fire, beside = self._pick(FIRES)
        moves = fire + beside if self._chance(0.6) else fire
        through = "Q" if fire == "Q" and self._chance(0.7) else "B" if fire == "Q" else fire
        return Piece(
            name, moves, fires_through=through, fires_through_own=True if self._chance(0.4) else None, captures_own=own
        )

    def _atoms(self) -> list[str]:
        """Draw one to three atoms, neighbours different: `WW` would be one rider."""
        atoms: list[str] = []
        for _ in range(int(self.rng.integers(1, 4))):
            atom = self._pick(ATOMS)
            atoms += [] if atoms[-1:] == [atom] else [atom]
        return atoms

    def _token(self, atom: str) -> str:
        mode = self._pick(["", "", "", "", "m", "c"])
        directions = self._pick(DIRECTIONS[atom]) if self._chance(0.3) else ""
        suffix = ""
        if atom not in "KQRB" and self._chance(0.3):
            suffix = self._pick([atom, "2", "3", "4", "0", "15"])
        elif atom in "RB" and self._chance(0.2):
            suffix = self._pick(["2", "3", "5"])
        text = mode + directions if self._chance(0.7) else directions + mode
        return text + atom + suffix
