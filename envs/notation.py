"""Positions and moves as text: the structure of a FEN, square names and move names.

Nothing here moves a piece. What a FEN says is taken apart, checked for everything that can be seen without a move,
and put together again; the checks that need moves are in `rules_fen.py` and, for the kernels, in their own reader.

Dims: S real squares. A board is uint8 [S] of piece codes: 0 empty, `t + 1` White's and `17 + t` Black's piece
of type `t` (an index into `Variant.piece_types`).

A FEN has six fields: the rows from the highest rank down (`*` is a hole, empty runs may have two digits), the
side to move, castling rights, the en passant squares in one word (`a3a4`) or `-`, the halfmove clock and the
move number. The last two may be missing together and are then `0 1`. Where the en passant squares do not say which
pawn has passed them, since pawns step forward in several directions, its own square follows (`d3e4`); without it the
first pawn in the order of the board is meant.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from envs.errors import IllegalAction, InvalidFen
from envs.paths import must_promote
from envs.variant import BLACK, WHITE, Variant

EMPTY = 0
BLACK_CODE = 16  # added to White's code of the same type
NO_PROMOTION = -1
MAX_FULLMOVE_NUMBER = 9999
MAX_FEN_LENGTH = 10_000  # the longest of any game is under 600
RIGHTS_LETTERS = "KQkq"
SIDE_LETTERS = "wb"
SIDE_NAMES = ("White", "Black")

_NUM_FIELDS, _NUM_FIELDS_SHORT = 6, 4
_ROW_TOKEN = re.compile(r"\d+|.", re.DOTALL)
_SQUARE = re.compile(r"[a-p]\d{1,2}", re.ASCII)
_MOVE = re.compile(r"([a-p]\d{1,2})([a-p]\d{1,2})([a-z]?)", re.ASCII)
_SHOWN_LENGTH = 60


@dataclass(frozen=True)
class FenFields:
    """The six fields of a FEN.

    Attributes:
        board: uint8 [S] piece codes.
        to_play: 0 White, 1 Black.
        rights: Castling rights in the order of `Variant.castlings`.
        passed: The en passant squares as listed, ascending square indices.
        halfmove_clock: Plies since the last capture or pawn move, 0..`Variant.clock_limit`.
        fullmove_number: 1 at the start, counted up after Black's moves, 1..9999.
        victim: Where the pawn stands that has passed the squares, if it is named.
    """

    board: npt.NDArray[np.uint8]
    to_play: int
    rights: tuple[bool, bool, bool, bool]
    passed: tuple[int, ...]
    halfmove_clock: int
    fullmove_number: int
    victim: int | None = None


def piece_code(piece_type: int, side: int) -> int:
    """Return the board code of a side's piece of a type."""
    return piece_type + 1 + BLACK_CODE * side


def piece_letter(variant: Variant, code: int) -> str:
    """Return the letter of a board code, capital for White, `""` for an empty square."""
    if code == EMPTY:
        return ""
    letter = variant.piece_types[(code - 1) % BLACK_CODE].letter
    return letter.lower() if code > BLACK_CODE else letter


def letter_code(variant: Variant, letter: str) -> int:
    """Return the board code of a piece letter, capital for White.

    Raises:
        KeyError: The game has no such piece.
    """
    return piece_code(variant.type_by_letter[letter.upper()], WHITE if letter.isupper() else BLACK)


def parse_square(variant: Variant, name: str) -> int:
    """Return the index of a square name such as `a1`.

    Raises:
        ValueError: The board has no such square.
    """
    square = variant.board.index_by_name.get(name)
    if square is None:
        raise ValueError(f"no square {_shown(name)} on this board")
    return square


def parse_move(variant: Variant, text: str) -> tuple[int, int, int]:
    """Take a move name apart.

    Args:
        variant: The game.
        text: From, to and a promotion letter in lower case: `a2a5`, `a9a10q`.

    Returns:
        From square, to square, promotion type index or `NO_PROMOTION`.

    Raises:
        IllegalAction: The text is no move name on this board.
    """
    match = _MOVE.fullmatch(text)
    if match is None:
        raise IllegalAction(f"expected a move such as 'a2a4' or 'a7a8q', got {_shown(text)}")
    from_name, to_name, letter = match.groups()
    for name in (from_name, to_name):
        if name not in variant.board.index_by_name:
            raise IllegalAction(f"move {text!r}: no square {name!r} on this board")
    if letter and letter.upper() not in variant.type_by_letter:
        raise IllegalAction(f"move {text!r}: no piece {letter!r} to promote to")
    index = variant.board.index_by_name
    promotion = variant.type_by_letter[letter.upper()] if letter else NO_PROMOTION
    return index[from_name], index[to_name], promotion


def format_move(variant: Variant, from_square: int, to_square: int, promotion: int = NO_PROMOTION) -> str:
    """Return the name of a move: from, to and the promotion letter in lower case."""
    letter = "" if promotion == NO_PROMOTION else variant.piece_types[promotion].letter.lower()
    return variant.board.names[from_square] + variant.board.names[to_square] + letter


def parse_fields(variant: Variant, text: str) -> FenFields:
    """Take a FEN apart and check everything in it that needs no moves.

    Args:
        variant: The game.
        text: Six fields; the two counters may be missing together.

    Returns:
        The fields. `passed` is what is listed: whether a pawn passed there is left to the rules.

    Raises:
        InvalidFen: The message names the field or the square, what was expected and what came.
    """
    if len(text) > MAX_FEN_LENGTH:
        raise InvalidFen(f"expected a FEN of at most {MAX_FEN_LENGTH} characters, got {len(text)}: {_shown(text)}")
    words = text.split()
    if len(words) == _NUM_FIELDS_SHORT:
        words += ["0", "1"]
    if len(words) != _NUM_FIELDS:
        raise InvalidFen(f"expected six fields (or four, no counters), got {len(words)}: {_shown(text)}")
    board = parse_placement(variant, words[0])
    if words[1] not in ("w", "b"):
        raise InvalidFen(f"side to move: expected 'w' or 'b', got {_shown(words[1])}")
    passed, victim = _parse_passed(variant, words[3], board)
    return FenFields(
        board=board,
        to_play=SIDE_LETTERS.index(words[1]),
        rights=_parse_rights(variant, words[2], board),
        passed=passed,
        halfmove_clock=_parse_counter("halfmove clock", words[4], 0, variant.clock_limit),
        fullmove_number=_parse_counter("move number", words[5], 1, MAX_FULLMOVE_NUMBER),
        victim=victim,
    )


def format_fields(variant: Variant, fields: FenFields) -> str:
    """Put a FEN together; equal fields give equal texts."""
    rights = "".join(letter for letter, right in zip(RIGHTS_LETTERS, fields.rights) if right)
    listed = [*sorted(fields.passed), *([] if fields.victim is None else [fields.victim])]
    passed = "".join(variant.board.names[square] for square in listed)
    words = (
        format_placement(variant, fields.board),
        SIDE_LETTERS[fields.to_play],
        rights or "-",
        passed or "-",
    )
    return " ".join([*words, str(fields.halfmove_clock), str(fields.fullmove_number)])


def parse_placement(variant: Variant, text: str) -> npt.NDArray[np.uint8]:
    """Read the first field of a FEN.

    Args:
        variant: The game.
        text: Rows from the highest rank down, divided by `/`.

    Returns:
        uint8 [S] piece codes.

    Raises:
        InvalidFen: Rows, row lengths, holes or letters do not fit; a side that has a royal has not exactly one; a pawn
            stands where it must have promoted.
    """
    size = variant.board
    rows = text.split("/")
    if len(rows) != size.ranks:
        raise InvalidFen(f"expected {size.ranks} rows in the first field, got {len(rows)}: {_shown(text)}")
    board = np.zeros(variant.num_squares, np.uint8)
    for y, row in zip(reversed(range(size.ranks)), rows):
        _parse_row(variant, y, row, board)
    _check_royals(variant, board)
    _check_pawns(variant, board)
    return board


def format_placement(variant: Variant, board: npt.NDArray[np.uint8]) -> str:
    """Return the first field of a FEN for uint8 [S] piece codes."""
    size = variant.board
    codes = board.tolist()
    rows = []
    for y in reversed(range(size.ranks)):
        row, run = "", 0
        for x in range(size.files):
            square = size.index.get((x, y))
            if square is not None and codes[square] == EMPTY:
                run += 1
                continue
            row += str(run) if run else ""
            row += "*" if square is None else piece_letter(variant, codes[square])
            run = 0
        rows.append(row + (str(run) if run else ""))
    return "/".join(rows)


def _parse_row(variant: Variant, y: int, row: str, board: npt.NDArray[np.uint8]) -> None:
    """Write one row of the first field into `board`."""
    size = variant.board
    rank = f"rank {size.first_rank + y}"
    x = 0
    for token in _ROW_TOKEN.findall(row):
        if token.isdigit() and not (token.isascii() and 0 < int(token[:3]) <= size.files and token[0] != "0"):
            raise InvalidFen(f"{rank}: expected a run of 1 to {size.files} empty squares, got {_shown(token)}")
        length = int(token) if token.isdigit() else 1
        for cell in range(x, min(x + length, size.files)):
            square = size.index.get((cell, y))
            if (square is None) != (token == "*"):
                expected = "'*', not part of the board" if square is None else "a square"
                place = f"{rank}, {chr(ord('a') + cell)}{size.first_rank + y}"
                raise InvalidFen(f"{place}: expected {expected}, got {_shown(token)}")
            if square is not None and not token.isdigit():
                board[square] = _code_of_token(variant, f"{rank}, {size.names[square]}", token)
        x += length
    if x != size.files:
        raise InvalidFen(f"{rank} has {x} files, expected {size.files}: {_shown(row)}")


def _code_of_token(variant: Variant, place: str, token: str) -> int:
    if not (token.isascii() and token.upper() in variant.type_by_letter):
        known = " ".join(piece.letter for piece in variant.piece_types)
        raise InvalidFen(f"{place}: unknown piece {_shown(token)}, expected one of {known} in either case")
    return letter_code(variant, token)


def _check_royals(variant: Variant, board: npt.NDArray[np.uint8]) -> None:
    for side, name in enumerate(SIDE_NAMES):
        royal = variant.royals[side]
        if royal is None:
            continue
        squares = np.flatnonzero(board == piece_code(royal, side))
        if len(squares) != 1:
            letter = variant.piece_types[royal].letter
            where = ", ".join(variant.board.names[square] for square in squares[:4]) or "none"
            raise InvalidFen(f"expected one {letter} of {name}, got {len(squares)} ({where})")


def _check_pawns(variant: Variant, board: npt.NDArray[np.uint8]) -> None:
    """Refuse pawns where they must have promoted."""
    if variant.pawns is None:
        return
    for side, name in enumerate(SIDE_NAMES):
        for square in np.flatnonzero(board == piece_code(variant.pawns.piece, side)):
            if must_promote(variant, side, int(square)):
                raise InvalidFen(f"{variant.board.names[square]}: a pawn of {name} must have promoted there")


def _parse_rights(variant: Variant, word: str, board: npt.NDArray[np.uint8]) -> tuple[bool, bool, bool, bool]:
    letters = "" if word == "-" else word
    if not word or any(letter not in RIGHTS_LETTERS or letters.count(letter) != 1 for letter in letters):
        raise InvalidFen(f"castling rights: expected '-' or letters of {RIGHTS_LETTERS!r}, got {_shown(word)}")
    for letter in letters:
        number = RIGHTS_LETTERS.index(letter)
        castling, side = variant.castlings[number], number // 2
        if castling is None:
            raise InvalidFen(f"castling rights: {letter!r}, but {variant.title} has no such castling")
        for square, types in (
            (castling.king_from, castling.king_types),
            (castling.partner_from, castling.partner_types),
        ):
            _check_home(variant, letter, square, [piece_code(number, side) for number in types], board)
    rights = [letter in letters for letter in RIGHTS_LETTERS]
    return rights[0], rights[1], rights[2], rights[3]


def _check_home(variant: Variant, right: str, square: int, codes: Sequence[int], board: npt.NDArray[np.uint8]) -> None:
    if board[square] not in codes:
        expected = " or ".join(repr(piece_letter(variant, code)) for code in codes)
        found = piece_letter(variant, int(board[square]))
        raise InvalidFen(
            f"castling rights: {right!r} needs {expected} on {variant.board.names[square]}, got "
            f"{repr(found) if found else 'an empty square'}"
        )


def _parse_passed(variant: Variant, word: str, board: npt.NDArray[np.uint8]) -> tuple[tuple[int, ...], int | None]:
    """Return the squares that are listed, ascending, and apart from them the pawn's where they may need it."""
    if word == "-":
        return (), None
    names = _SQUARE.findall(word)
    if "".join(names) != word:
        raise InvalidFen(f"en passant: expected '-' or squares such as 'e3', got {_shown(word)}")
    for name in names:
        if name not in variant.board.index_by_name:
            raise InvalidFen(f"en passant: no square {name!r} on this board")
        if names.count(name) != 1:
            raise InvalidFen(f"en passant: {name!r} is listed twice")
    squares = sorted(variant.board.index_by_name[name] for name in names)
    if variant.pawns is None or len(variant.pawns.forward) < 2:
        return tuple(squares), None
    passed = tuple(square for square in squares if board[square] == EMPTY)
    pawns = [square for square in squares if board[square] != EMPTY]
    if not passed or len(pawns) > 1:
        raise InvalidFen(f"en passant: expected empty squares and at most one pawn that passed, got {_shown(word)}")
    return passed, pawns[0] if pawns else None


def _parse_counter(field: str, word: str, low: int, high: int) -> int:
    if not (word.isascii() and word.isdigit() and len(word) <= len(str(high)) and low <= int(word) <= high):
        raise InvalidFen(f"{field}: expected a number from {low} to {high}, got {_shown(word)}")
    return int(word)


def _shown(text: str) -> str:
    """Quote a piece of wrong input, cut to a readable length."""
    return repr(text if len(text) <= _SHOWN_LENGTH else text[:_SHOWN_LENGTH] + "...")
