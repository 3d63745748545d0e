"""A variant: the rules of one game, resolved and checked, before they become tables.

Dims: S real squares, W files, H ranks. A square is an index 0..S-1, counted from White's lowest rank up and from the
first file on, holes left out. Piece types keep the order of the file.
Source of the rules: the variant files in `envs/variants`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from envs.betza import Ray

WHITE, BLACK = 0, 1
RULES_VERSION = 1


@dataclass(frozen=True)
class Board:
    """The real squares of a grid.

    Attributes:
        files: W, the number of files.
        ranks: H, the number of ranks.
        first_rank: The name of the lowest rank, 0 or 1.
        squares: `(x, y)` of each real square, `y` counted from White's side, in index order.
    """

    files: int
    ranks: int
    first_rank: int
    squares: tuple[tuple[int, int], ...]

    @cached_property
    def index(self) -> dict[tuple[int, int], int]:
        """Square index of `(x, y)`; holes and squares off the board are missing."""
        return {square: number for number, square in enumerate(self.squares)}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Square names such as `a1` or `j10`, in index order."""
        return tuple(f"{chr(ord('a') + x)}{self.first_rank + y}" for x, y in self.squares)

    @cached_property
    def index_by_name(self) -> dict[str, int]:
        """Square index of a name."""
        return {name: number for number, name in enumerate(self.names)}

    @cached_property
    def flipped(self) -> tuple[int, ...]:
        """Index of each square as the other side sees it: the rank mirrored, the file kept."""
        return tuple(self.index[x, self.ranks - 1 - y] for x, y in self.squares)

    def own_rank(self, rank_name: int, side: int) -> int:
        """Return `y` of a rank that is named from White's side and mirrored for Black."""
        y = rank_name - self.first_rank
        return y if side == WHITE else self.ranks - 1 - y


@dataclass(frozen=True)
class PieceType:
    """A kind of piece.

    Attributes:
        letter: Capital letter; Black's pieces are written in lower case.
        name: Its name in words.
        rays: How it moves, empty for the pawn.
        fires_through_own: Whether its fire-through rays may also pass, and capture, one own piece (not the royal).
    """

    letter: str
    name: str
    rays: tuple[Ray, ...]
    fires_through_own: bool = False


@dataclass(frozen=True)
class Pawns:
    """How pawns move: one step forward, captures one step diagonally forward, en passant over every passed square.

    Attributes:
        piece: Index of the piece type.
        first_steps: Steps at most from a start rank.
        start_ranks: For each side, `y` of the ranks from which `first_steps` holds.
        promotion_ranks: For each side, `y` of the ranks on which a pawn must promote.
        promotes_to: Indices of piece types, in the order of the file.
    """

    piece: int
    first_steps: int
    start_ranks: tuple[tuple[int, ...], tuple[int, ...]]
    promotion_ranks: tuple[tuple[int, ...], tuple[int, ...]]
    promotes_to: tuple[int, ...]


@dataclass(frozen=True)
class Castling:
    """One castling move; all fields are square indices, `partner_type` a piece type index."""

    king_from: int
    king_to: int
    partner_from: int
    partner_to: int
    partner_type: int


@dataclass(frozen=True)
class Variant:
    """The rules of one game with its options applied.

    Attributes:
        name: Short name: the built-in name or the stem of the file.
        title: The name in the file.
        board: The squares.
        piece_types: Kinds of piece; their indices are used everywhere else.
        royal: Index of the royal type.
        pawns: Pawn rules, or None without pawns.
        castlings: Rights in the order White kingside, White queenside, Black kingside, Black queenside; None where
            there is no such right.
        goals: For each side, the squares on which its `goal_piece` wins; empty without a goal.
        goal_piece: Piece type index that wins by reaching a goal.
        bare_kings_draw: Whether two bare royals are a draw.
        start_fen: The start position, in normal form.
        options: Every option of the game and whether it is on.
        document: The merged file, options not applied; `variant_loader.variant_from_document` rebuilds the variant.
    """

    name: str
    title: str
    board: Board
    piece_types: tuple[PieceType, ...]
    royal: int
    pawns: Pawns | None
    castlings: tuple[Castling | None, ...]
    goals: tuple[tuple[int, ...], tuple[int, ...]]
    goal_piece: int
    bare_kings_draw: bool
    start_fen: str
    options: Mapping[str, bool]
    document: Mapping[str, Any] = field(repr=False)

    @property
    def num_squares(self) -> int:
        """S, the number of real squares."""
        return len(self.board.squares)

    @cached_property
    def type_by_letter(self) -> dict[str, int]:
        """Piece type index of a capital letter."""
        return {piece.letter: number for number, piece in enumerate(self.piece_types)}

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of everything: the name, the document and the options."""
        content = [self.name, self.document, dict(self.options)]
        return hashlib.sha256(json.dumps(content, sort_keys=True, default=dict).encode()).hexdigest()

    @cached_property
    def rules_hash(self) -> str:
        """SHA-256 of everything that decides a game: not names, sources or readings."""
        rules = {
            "version": RULES_VERSION,
            "board": [self.board.files, self.board.ranks, self.board.first_rank, self.board.squares],
            "pieces": [
                [p.letter, sorted(asdict(r).items() for r in sorted(p.rays)), p.fires_through_own]
                for p in self.piece_types
            ],
            "royal": self.royal,
            "pawns": None if self.pawns is None else asdict(self.pawns),
            "castlings": [None if c is None else asdict(c) for c in self.castlings],
            "goals": [self.goals, self.goal_piece if any(self.goals) else None],
            "bare_kings_draw": self.bare_kings_draw,
            "start": self.start_fen,
        }
        text = json.dumps(rules, sort_keys=True, default=list)
        return hashlib.sha256(text.encode()).hexdigest()
