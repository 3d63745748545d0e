"""What has been drawn of a random variant file so far, for `random_variants.py` and `random_ends.py`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.envs.random_pieces import Piece

Document = dict[str, Any]
Cell = tuple[int, int]

SIDES = ("white", "black")
RESULTS = ("draw", "win", "loss")


@dataclass
class Draw:
    """What has been drawn so far.

    Attributes:
        rng: Consumed.
        files: W.
        ranks: H.
        first_rank: The name of the lowest rank.
        holes: Cells that are no squares.
        pieces: Letter -> piece, in the order of the file.
        pawn: Letter of the pawn, or None.
        royals: Letter of each side's royal, or None.
        fixed: Cell -> piece letter of a side, where castling wants something to stand.
        pawns: The `pawns` mapping.
        pawn_limit: The lowest rank, counted from the own side, on which a pawn may not stand.
        castling: The `castling` mapping.
        rights: Letters of the castling rights of the start positions.
    """

    rng: np.random.Generator
    files: int
    ranks: int
    first_rank: int
    holes: set[Cell] = field(default_factory=set)
    pieces: dict[str, Piece] = field(default_factory=dict)
    pawn: str | None = None
    royals: tuple[str | None, str | None] = (None, None)
    fixed: dict[Cell, str] = field(default_factory=dict)
    pawns: Document | None = None
    pawn_limit: int = 0
    castling: Document | None = None
    rights: str = ""

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def pick(self, options: Any) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def some(self, options: Any, low: int, high: int) -> list[Any]:
        """Draw some different options, in their own order."""
        count = min(len(options), int(self.rng.integers(low, high + 1)))
        chosen = sorted(self.rng.choice(len(options), count, replace=False).tolist())
        return [options[number] for number in chosen]

    def cells(self, side: int, depth: int) -> list[Cell]:
        """Return the squares of a side's first `depth` ranks, nearest first."""
        ranks = range(depth) if side == 0 else range(self.ranks - 1, self.ranks - 1 - depth, -1)
        return [(x, y) for y in ranks for x in range(self.files) if (x, y) not in self.holes]

    def name(self, cell: Cell) -> str:
        return f"{chr(ord('a') + cell[0])}{self.first_rank + cell[1]}"
