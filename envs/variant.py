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
from typing import Any, Literal

from envs.betza import Ray, Step

WHITE, BLACK = 0, 1
RULES_VERSION = 2
HIGHEST_CLOCK = 9999
"""Where the half-move clock stops counting in a game without a move limit."""

Result = Literal["draw", "win", "loss"]
"""What the end of a game is for the side that it is said of."""


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
        captures_own: Whether it may also land on, and capture, an own piece (not the royal) where it could an enemy.
    """

    letter: str
    name: str
    rays: tuple[Ray, ...]
    fires_through_own: bool = False
    captures_own: bool = False


@dataclass(frozen=True)
class Pawns:
    """How pawns move; steps are seen by their own side, towards growing `dy`.

    Attributes:
        piece: Index of the piece type.
        quiet: Steps and leaps onto an empty square.
        captures: Steps and leaps that capture, en passant too.
        first_steps: How often a quiet step that leads forward may be repeated from a start rank; what it passes can be
            captured en passant.
        start_ranks: For each side, `y` of the ranks from which `first_steps` holds.
        promotion_ranks: For each side, `y` of the ranks on which a pawn promotes.
        must_promote: Whether a pawn that arrives at or beyond its first promotion rank must promote; if not, it may
            promote on each of the ranks, and must where it could never move on.
        promotes_to: For each side, indices of piece types, in the order of the file.
    """

    piece: int
    quiet: tuple[Step, ...]
    captures: tuple[Step, ...]
    first_steps: int
    start_ranks: tuple[tuple[int, ...], tuple[int, ...]]
    promotion_ranks: tuple[tuple[int, ...], tuple[int, ...]]
    must_promote: bool
    promotes_to: tuple[tuple[int, ...], tuple[int, ...]]

    @property
    def forward(self) -> tuple[Step, ...]:
        """The quiet steps that lead forward, which `first_steps` repeats."""
        return tuple(step for step in self.quiet if step[1] > 0)

    @property
    def can_return(self) -> bool:
        """Whether pawns may come back to a rank or square that they have left, so that their moves are reversible."""
        return any(step[1] <= 0 for step in self.quiet)


@dataclass(frozen=True)
class Castling:
    """One castling move; squares are indices.

    Attributes:
        king_from: Where the king stands: the side's royal, or whatever stands there where it has none.
        king_to: Where it goes.
        partner_from: Where its partner stands.
        partner_to: Where that goes.
        king_types: Piece type indices that stand on `king_from` in some start position.
        partner_types: Piece type indices that stand on `partner_from` in some start position.
    """

    king_from: int
    king_to: int
    partner_from: int
    partner_to: int
    king_types: tuple[int, ...]
    partner_types: tuple[int, ...]


@dataclass(frozen=True)
class Goal:
    """A side that has one of the pieces on one of its squares after its move has won.

    Attributes:
        name: A word for it.
        pieces: Piece type indices.
        squares: For each side, square indices, ascending; empty where the side has no such goal.
    """

    name: str
    pieces: tuple[int, ...]
    squares: tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True)
class Extinction:
    """A side that has no piece left of a kind ends the game.

    Attributes:
        pieces: Piece type indices, any one of which may die out; None: all pieces of the side together.
        result: For the side whose pieces have died out.
    """

    pieces: tuple[int, ...] | None
    result: Result


@dataclass(frozen=True)
class Ends:
    """How games end, checkmate apart.

    Attributes:
        stalemate: For the side that has no legal move and is not in check.
        repetition_times: Occurrences of one position that end the game, 0 for none.
        repetition_result: For the player to move in the repeated position.
        move_limit: Plies without capture or pawn move that end the game as a draw, 0 for none.
        bare_kings_draw: Whether two bare royals are a draw.
        goals: Goals.
        extinction: Extinction, or None.
    """

    stalemate: Result
    repetition_times: int
    repetition_result: Result
    move_limit: int
    bare_kings_draw: bool
    goals: tuple[Goal, ...]
    extinction: Extinction | None


@dataclass(frozen=True)
class Variant:
    """The rules of one game with its options applied.

    Attributes:
        name: Short name: the built-in name or the stem of the file.
        title: The name in the file.
        board: The squares.
        piece_types: Kinds of piece; their indices are used everywhere else.
        royals: For each side, the index of its royal type, of which it always has exactly one; None without a royal.
        pawns: Pawn rules, or None without pawns.
        castlings: Rights in the order White kingside, White queenside, Black kingside, Black queenside; None where
            there is no such right.
        ends: How games end.
        start_fens: The start positions, in normal form; a game begins from each with equal chance.
        options: Every option of the game and whether it is on.
        document: The merged file, options not applied; `variant_loader.variant_from_document` rebuilds the variant.
    """

    name: str
    title: str
    board: Board
    piece_types: tuple[PieceType, ...]
    royals: tuple[int | None, int | None]
    pawns: Pawns | None
    castlings: tuple[Castling | None, ...]
    ends: Ends
    start_fens: tuple[str, ...]
    options: Mapping[str, bool]
    document: Mapping[str, Any] = field(repr=False)

    @property
    def start_fen(self) -> str:
        """The first start position."""
        return self.start_fens[0]

    @property
    def clock_limit(self) -> int:
        """The highest half-move clock: the move limit, or what a FEN can hold."""
        return self.ends.move_limit or HIGHEST_CLOCK

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
                [p.letter, sorted(asdict(r).items() for r in sorted(p.rays)), p.fires_through_own, p.captures_own]
                for p in self.piece_types
            ],
            "royals": self.royals,
            "pawns": None if self.pawns is None else asdict(self.pawns),
            "castlings": [None if c is None else asdict(c) for c in self.castlings],
            "ends": asdict(self.ends),
            "starts": self.start_fens,
        }
        text = json.dumps(rules, sort_keys=True, default=list)
        return hashlib.sha256(text.encode()).hexdigest()
