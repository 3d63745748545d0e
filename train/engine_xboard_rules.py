"""A game as XBoard names and draws it: squares, positions, and the description of a game that it does not know.

XBoard counts ranks from 0 on boards of exactly ten ranks and from 1 on others, whatever the game's own names are, and
writes a move that captures on its way as two legs (`a0a4,a4a7`). A game that it does not know is described by `setup`
and `piece` commands: https://www.gnu.org/software/xboard/engine-intf.html, section 9.
"""

from __future__ import annotations

import re

from envs import Position, Variant
from envs.variant import BLACK, WHITE
from train.engine_betza import piece_description
from train.engine_games import CHESS, name_for_guis

RANKS_COUNTED_FROM_ZERO = 10
PAWN_SLOT, ROYAL_SLOT = "P", "K"
SLOTS = "PNBRQFEACWMOHIJGDVLSUK"
"""The pieces that XBoard can draw, in the order of its table; each by the letter that it usually has."""
UNUSED = "."
PARENT = "fairy"
"""The game of XBoard from which an unknown one takes what is not described: where pawns promote, on the last rank."""
NORMAL = "normal"
"""How XBoard calls chess."""
KNOWN_TO_XBOARD = frozenset({NORMAL, "capablanca", "gothic", "knightmate", "berolina", "janus", "makruk"})
"""Games that XBoard knows as they are here."""
EN_PASSANT_FIELD = 3
_MOVE = re.compile(r"([a-p]\d{1,2})([a-p]\d{1,2})(?:,[a-p]\d{1,2}([a-p]\d{1,2}))*([a-z]?)=?", re.IGNORECASE)
_SQUARE = re.compile(r"([a-p])(\d{1,2})")


def xboard_name(name: str) -> str:
    """Return how XBoard calls a game of `engine_games.Games`."""
    return NORMAL if name == CHESS else name_for_guis(name)


class XBoardSquares:
    """Names of squares as XBoard has them, and back."""

    def __init__(self, variant: Variant) -> None:
        """Make it for a game."""
        first = 0 if variant.board.ranks == RANKS_COUNTED_FROM_ZERO else 1
        self._shift = first - variant.board.first_rank

    def move_to_gui(self, position: Position, move: str) -> list[str]:
        """Return the legs of a legal move: one, or two where it captures on its way."""
        return [self.text_to_gui(leg) for leg in _legs(position, move)]

    def has_legs(self, position: Position, move: str, text: str) -> bool:
        """Return whether a text from XBoard goes, leg by leg, as a move does; no text does where it is not legal."""
        return move in position.legal_moves() and "".join(self.move_to_gui(position, move)) == text.lower().rstrip("=")

    def text_to_gui(self, text: str) -> str:
        """Return a move or squares in one word as XBoard has them."""
        return self._shifted(text, self._shift)

    def move_from_gui(self, text: str) -> str | None:
        """Return a move as `envs.notation` has it; None if the text is none."""
        match = _MOVE.fullmatch(text)
        if match is None:
            return None
        start, to, last, promotion = match.groups()
        return self._shifted((start + (last or to)).lower(), -self._shift) + promotion.lower()

    def fen_from_gui(self, fen: str) -> str:
        """Return a FEN with its en passant squares as `envs.notation` names them."""
        fields = fen.split()
        if len(fields) > EN_PASSANT_FIELD:
            fields[EN_PASSANT_FIELD] = self._shifted(fields[EN_PASSANT_FIELD], -self._shift)
        return " ".join(fields)

    def fen_to_gui(self, fen: str) -> str:
        """Return a FEN with its en passant squares as XBoard names them."""
        fields = fen.split()
        fields[EN_PASSANT_FIELD] = self.text_to_gui(fields[EN_PASSANT_FIELD])
        return " ".join(fields)

    @staticmethod
    def _shifted(text: str, shift: int) -> str:
        return _SQUARE.sub(lambda match: f"{match[1]}{int(match[2]) + shift}", text)


def setup_commands(variant: Variant) -> list[str]:
    """Return what tells XBoard a game's board, start position and pieces."""
    board = variant.board
    letters = _table(variant, WHITE) + _table(variant, BLACK).lower()
    start = XBoardSquares(variant).fen_to_gui(variant.start_fen)
    commands = [f"setup ({letters}) {board.files}x{board.ranks}+0_{PARENT} {start}"]
    for number, piece in enumerate(variant.piece_types):
        white, black = (piece_description(variant, number, side) for side in (WHITE, BLACK))
        if white == black:
            commands.append(f"piece {piece.letter}& {white}")
        else:
            commands += [f"piece {piece.letter} {white}", f"piece {piece.letter.lower()} {black}"]
    return commands


def _table(variant: Variant, side: int) -> str:
    """Return the capital letters of a side's pieces, one for each slot."""
    royal, pawns = variant.royals[side], variant.pawns
    slots = dict.fromkeys(SLOTS, UNUSED)
    others = []
    for number, piece in enumerate(variant.piece_types):
        if number == royal:
            slots[ROYAL_SLOT] = piece.letter
        elif pawns is not None and number == pawns.piece:
            slots[PAWN_SLOT] = piece.letter
        else:
            others.append(piece.letter)
    own = [letter for letter in others if letter in slots and letter not in (PAWN_SLOT, ROYAL_SLOT)]
    slots.update(zip(own, own))
    free = [slot for slot in SLOTS if slots[slot] == UNUSED and slot not in (PAWN_SLOT, ROYAL_SLOT)]
    slots.update(zip(free, [letter for letter in others if letter not in own]))
    return "".join(slots.values())


def _legs(position: Position, move: str) -> list[str]:
    """Split a move that captures on its way, other than in passing, into its legs."""
    names = position.variant.board.index_by_name
    match = _SQUARE.match(move)
    start = "" if match is None else match[0]
    to = max((name for name in names if move[len(start) :].startswith(name)), key=len)
    on_the_way = [victim for victim in position.captures(move) if victim != to]
    if not on_the_way or not _is_between(position.variant, start, on_the_way[0], to):
        return [move]
    return [f"{start}{on_the_way[0]},", f"{on_the_way[0]}{move[len(start) :]}"]


def _is_between(variant: Variant, start: str, middle: str, to: str) -> bool:
    (x0, y0), (x1, y1), (x2, y2) = (
        variant.board.squares[variant.board.index_by_name[name]] for name in (start, middle, to)
    )
    is_in_line = (x1 - x0) * (y2 - y0) == (y1 - y0) * (x2 - x0)
    return is_in_line and (x1 - x0) * (x2 - x1) >= 0 and (y1 - y0) * (y2 - y1) >= 0
