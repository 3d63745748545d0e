"""A variant half built: the file's schema, its board and its start arrays, which all checks share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from envs.betza import Ray, parse_betza
from envs.errors import InvalidVariant
from envs.refusals import refusal_of_value
from envs.schema import SIDES, VariantSchema
from envs.strict_yaml import KeyPath
from envs.variant import BLACK, WHITE, Board
from envs.variant_files import Provenance

Cell = tuple[int, int]
MAX_RUN = 99


@dataclass(frozen=True)
class Start:
    """One start position, as far as it can be read without the rules.

    Attributes:
        fen: As the file writes it.
        path: Its key.
        placed: `(x, y)` -> piece letter, capital for White.
        rights: The castling rights that it gives, letters of `KQkq`.
    """

    fen: str
    path: KeyPath
    placed: Mapping[Cell, str]
    rights: str


@dataclass(frozen=True)
class Draft:
    """What is known before the rules are put together.

    Attributes:
        schema: The file.
        provenance: Where its keys came from.
        board: The squares.
        starts: The start positions.
        letters: Capital letters of the piece types, in order.
        royals: For each side, the index of its royal type, or None.
    """

    schema: VariantSchema
    provenance: Provenance
    board: Board
    starts: tuple[Start, ...]
    letters: tuple[str, ...]
    royals: tuple[int | None, int | None]

    def error(self, path: KeyPath, reason: str) -> InvalidVariant:
        """Return the exception for a fault at a key."""
        return self.provenance.error(path, reason)

    def type_of(self, letter: str, path: KeyPath) -> int:
        """Return the piece type index of a letter.

        Raises:
            InvalidVariant: There is no such piece.
        """
        return _type_of(self.letters, letter, self.provenance, path)

    def types_of(self, letters: str, path: KeyPath) -> tuple[int, ...]:
        """Return the piece type indices of letters, in their order.

        Raises:
            InvalidVariant: There is no such piece, or a letter is there twice.
        """
        for letter in letters:
            self.type_of(letter, path)
            if letters.count(letter) > 1:
                raise self.error(path, f"{letter!r} is there twice")
        return tuple(self.letters.index(letter.upper()) for letter in letters)

    def types_at_start(self, side: int) -> set[int]:
        """Return the indices of the piece types that a side has in some start position."""
        letters = {letter for start in self.starts for letter in start.placed.values()}
        return {self.letters.index(letter.upper()) for letter in letters if letter.isupper() == (side == WHITE)}

    def ranks(self, path: KeyPath, names: list[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return for each side `y` of ranks that are named from White's side and mirrored for Black, ascending.

        Raises:
            InvalidVariant: The board has no such rank.
        """
        first, last = self.board.first_rank, self.board.first_rank + self.board.ranks - 1
        for name in names:
            if not first <= name <= last:
                raise self.error(path, f"no rank {name}, the ranks are {first} to {last}")
        white, black = (
            tuple(sorted(self.board.own_rank(name, side) for name in set(names))) for side in (WHITE, BLACK)
        )
        return white, black

    def rays(self, path: KeyPath, text: str) -> tuple[Ray, ...]:
        """Return the rays of a Betza text.

        Raises:
            InvalidVariant: The text cannot be read, asks for what is not supported, or has no moves.
        """
        try:
            rays = parse_betza(text)
        except ValueError as error:
            raise self.error(path, refusal_of_value(text) or str(error)) from None
        if not rays:
            raise self.error(path, f"{text!r} leads nowhere, expected at least one move")
        return rays


def draft(schema: VariantSchema, provenance: Provenance) -> Draft:
    """Read the board, the start arrays and the royals of a variant file.

    Raises:
        InvalidVariant: They do not fit together.
    """
    letters = tuple(letter.upper() for letter in schema.pieces)
    board, starts = _read_starts(schema, provenance, letters)
    royals = _read_royals(schema, provenance, letters)
    found = Draft(schema, provenance, board, starts, letters, royals)
    for start in starts:
        _check_royals(found, start)
    return found


def _type_of(letters: tuple[str, ...], letter: str, provenance: Provenance, path: KeyPath) -> int:
    if letter.upper() not in letters:
        raise provenance.error(path, f"no piece {letter!r}, the pieces are: {' '.join(letters).lower()}")
    return letters.index(letter.upper())


def _read_starts(
    schema: VariantSchema, provenance: Provenance, letters: tuple[str, ...]
) -> tuple[Board, tuple[Start, ...]]:
    """Read holes and pieces off each start position's first field; the rest of a FEN is left to `rules_fen`."""
    texts = [schema.start] if isinstance(schema.start, str) else schema.start
    size = schema.board
    board: Board | None = None
    starts = []
    for number, text in enumerate(texts):
        path: KeyPath = ("start",) if isinstance(schema.start, str) else ("start", number)
        try:
            squares, placed = _read_array(text.split(" ")[0], size.files, size.ranks, size.first_rank)
        except ValueError as error:
            raise provenance.error(path, str(error)) from None
        for letter in placed.values():
            if letter.upper() not in letters:
                known = " ".join(letters)
                raise provenance.error(path, f"unknown piece letter {letter!r}, the pieces are {known}")
        if board is None:
            board = Board(size.files, size.ranks, size.first_rank, squares)
        elif board.squares != squares:
            raise provenance.error(path, "the holes (*) must lie as in the first start position")
        fields = text.split()
        starts.append(Start(text, path, placed, fields[2] if len(fields) > 2 else ""))
    assert board is not None
    return board, tuple(starts)


@lru_cache(maxsize=2048)
def _read_array(text: str, files: int, ranks: int, first_rank: int) -> tuple[tuple[Cell, ...], Mapping[Cell, str]]:
    """Return the squares of a start array in index order, and what stands on them."""
    if "[" in text:
        raise ValueError(f"{refusal_of_value('pockets')}; got brackets")
    rows = text.split("/")
    if len(rows) != ranks:
        raise ValueError(f"expected {ranks} rows as board.ranks says, got {len(rows)}")
    squares: list[Cell] = []
    placed: dict[Cell, str] = {}
    for y, row in enumerate(reversed(rows)):
        cells = expand_row(row)
        if len(cells) != files:
            raise ValueError(f"rank {first_rank + y} has {len(cells)} files, expected {files} as board.files says")
        squares += [(x, y) for x, cell in enumerate(cells) if cell != "*"]
        placed |= {(x, y): cell for x, cell in enumerate(cells) if cell.isalpha()}
    if {(x, ranks - 1 - y) for x, y in squares} != set(squares):
        raise ValueError("the holes (*) must lie the same for both sides, rank for rank mirrored")
    return tuple(squares), placed


def expand_row(row: str) -> list[str]:
    """Return the cells of a FEN row: piece letters, `*` for holes and `.` for empty squares."""
    cells: list[str] = []
    digits = ""
    for letter in row:
        if letter.isascii() and letter.isdigit():
            digits += letter
            continue
        cells += ["."] * min(int(digits or "0"), MAX_RUN)
        cells.append(letter)
        digits = ""
    return cells + ["."] * min(int(digits or "0"), MAX_RUN)


def _read_royals(
    schema: VariantSchema, provenance: Provenance, letters: tuple[str, ...]
) -> tuple[int | None, int | None]:
    royal, pawn = schema.royal, None if schema.pawns is None else schema.pawns.piece
    if royal is None:
        return None, None
    of_sides = (royal, royal) if isinstance(royal, str) else (royal.white, royal.black)
    if of_sides == (None, None):
        raise provenance.error(("royal",), "expected white, black or both; `royal: null` is a game without royals")
    types: list[int | None] = []
    for side, letter in zip(SIDES, of_sides, strict=True):
        path: KeyPath = ("royal",) if isinstance(royal, str) else ("royal", side)
        if letter is not None and letter == pawn:
            raise provenance.error(path, "a royal pawn is not supported; the royal must be another piece")
        types.append(None if letter is None else _type_of(letters, letter, provenance, path))
    return types[WHITE], types[BLACK]


def _check_royals(found: Draft, start: Start) -> None:
    """Refuse a start position in which a side with a royal does not have exactly one."""
    for side, royal in enumerate(found.royals):
        if royal is None:
            continue
        letter = found.letters[royal] if side == WHITE else found.letters[royal].lower()
        cells = [cell for cell, piece in start.placed.items() if piece == letter]
        if not cells:
            raise found.error(start.path, f"no royal piece {letter!r} for {SIDES[side]}, expected exactly one")
        if len(cells) > 1:
            where = ", ".join(found.board.names[found.board.index[cell]] for cell in cells[:4])
            raise found.error(
                start.path,
                f"{len(cells)} royal pieces {letter!r} for {SIDES[side]} ({where}), expected exactly one; where a side "
                "has several, the nearest supported form is no `royal` for it, and `ends.extinction`",
            )
