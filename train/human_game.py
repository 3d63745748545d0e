"""A game of a person against an engine, in words: what a move does, why it is refused, how the game ended, its PGN.

Moves are the text of `envs.notation`. Sides are 0 White and 1 Black.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np
import numpy.typing as npt

from envs import IllegalAction, Outcome, Position, Termination, Variant
from envs.ending_words import ending_entries, move_limit_name
from envs.game_end import goal_square
from envs.game_words import capitalised, listed, with_article
from envs.notation import BLACK_CODE, NO_PROMOTION, SIDE_NAMES, format_move, parse_move, parse_square, piece_letter
from envs.rows import board_of
from train.engine_game import EngineGame
from train.pgn import CUT, RESULTS, tagged_text

RESIGNATION = "the resignation"
CASTLINGS = ("oo", "ooo")
"""Towards the last file and towards the first, as they are typed, without what stands between the letters."""
_BETWEEN = re.compile(r"[\s=-]+")
MOST_LISTED = 12
"""Moves that an explanation lists at most."""
HEADINGS = {
    Termination.CHECKMATE: "Checkmate",
    Termination.STALEMATE: "Stalemate",
    Termination.REPETITION: "Repetition",
    Termination.BARE_KINGS: "Bare kings",
    Termination.EXTINCTION: "Extinction",
}
"""Those of the rules in the rule sheet; goals have their own names, and the move limit one of two."""


class HumanGame(EngineGame):
    """A game that can be resigned and written down.

    Attributes:
        start_fen: Where it began.
        resigned: The side that has given up, or None.
    """

    def __init__(self, variant: Variant, fen: str | None = None) -> None:
        """Set up a position.

        Args:
            variant: The rules.
            fen: Where the game begins; None for the first start position.

        Raises:
            InvalidFen: The FEN is no position of the game.
        """
        super().__init__(variant)
        self.set_up(fen)
        self.start_fen = self.position.fen()
        self.resigned: int | None = None

    @property
    def winner(self) -> int | None:
        """The side that has won; None while the game goes on and after a draw."""
        if self.resigned is not None:
            return 1 - self.resigned
        outcome = self.outcome()
        return None if outcome is None or outcome.winner is None else "wb".index(outcome.winner)

    @property
    def is_over(self) -> bool:
        """Whether the rules or a resignation have ended the game."""
        return self.resigned is not None or self.outcome() is not None

    @property
    def actions(self) -> npt.NDArray[np.int32]:
        """The moves played, int32 [T], each seen by its player."""
        replayed = Position(self.variant, self.start_fen)
        actions = []
        for move in self.moves:
            actions.append(replayed.move_to_action(move))
            replayed.push(move)
        return np.array(actions, np.int32)

    def undo(self, side: int) -> list[str]:
        """Take back a resignation, or else moves until a side is to move again, at least one.

        Returns:
            What was taken back, the last first; nothing, and nothing has changed, if there is no such position.
        """
        if self.resigned is not None:
            self.resigned = None
            return [RESIGNATION]
        begun_by = (self.side + len(self.moves)) % 2
        if len(self.moves) <= (begun_by != side):
            return []
        taken = [self.position.moves_played[-1]]
        self.pop()
        while self.side != side:
            taken.append(self.position.moves_played[-1])
            self.pop()
        return taken

    def ending(self) -> str:
        """Return in words how the game has ended: what happened, the result, and the rule.

        Raises:
            ValueError: It goes on.
        """
        if self.resigned is not None:
            return f"{SIDE_NAMES[self.resigned]} resigns. {SIDE_NAMES[1 - self.resigned]} wins."
        outcome = self.outcome()
        if outcome is None:
            raise ValueError("the game goes on")
        heading = self._heading(outcome)
        result = "A draw." if self.winner is None else f"{SIDE_NAMES[self.winner]} wins."
        rules = [" ".join(entry.sentences) for entry in ending_entries(self.variant) if entry.heading == heading]
        return f"{heading}. {result}{''.join(f' The rule: {rule}' for rule in rules)}"

    def pgn(self, players: tuple[str, str], tags: Mapping[str, str]) -> str:
        """Return the game as PGN, ending in a line feed.

        Args:
            players: Names of White and Black.
            tags: Others that are known, such as Date.
        """
        outcome = self.outcome()
        score = {None: 0.5, 0: 1.0, 1: 0.0}[self.winner]
        unended = "unterminated" if self.resigned is None else "resignation"
        told = {
            "White": players[0],
            "Black": players[1],
            "Result": RESULTS[score] if self.is_over else CUT,
            "Termination": "normal" if outcome and self.resigned is None else unended,
            **({"Ending": outcome.termination.name.lower().replace("_", " ")} if outcome else {}),
            "PlyCount": str(len(self.moves)),
        }
        return tagged_text(self.position.game, self, {**tags, **told})

    def _heading(self, outcome: Outcome) -> str:
        if outcome.termination is Termination.FIFTY_MOVES:
            return capitalised(move_limit_name(self.variant))
        if outcome.termination in HEADINGS:
            return HEADINGS[outcome.termination]
        board = [piece_letter(self.variant, code) for code in codes_of(self.position).tolist()]
        goals = self.variant.ends.goals
        reached = (goal.name for goal in goals if goal_square(self.variant, board, goal, 1 - self.side) is not None)
        return capitalised(next(reached))


@dataclass(frozen=True)
class Standing:
    """A piece on a board.

    Attributes:
        name: Its type's.
        side: Whose it is.
    """

    name: str
    side: int


def codes_of(position: Position) -> npt.NDArray[np.uint8]:
    """Return the board of a position, uint8 [S] piece codes."""
    return board_of(position.game, position.row())


def standing_on(position: Position, square: str) -> Standing | None:
    """Return the piece on a square, or None.

    Raises:
        ValueError: The board has no such square.
    """
    code = int(codes_of(position)[parse_square(position.variant, square)])
    if not code:
        return None
    side, number = divmod(code - 1, BLACK_CODE)
    return Standing(position.variant.piece_types[number].name, side)


def move_in_words(position: Position, move: str) -> str:
    """Return the piece that a legal move moves, and what the move does.

    Raises:
        IllegalAction: The move is not legal.
    """
    mover = standing_on(position, start_of(position, move))
    assert mover is not None
    return ", ".join([mover.name, *effects(position, move)])


def effects(position: Position, move: str) -> list[str]:
    """Return what a legal move does besides moving a piece: castling, captures, promotion.

    Raises:
        IllegalAction: The move is not legal.
    """
    variant = position.variant
    _, _, promotion = parse_move(variant, move)
    side = "wb".index(position.to_play)
    words = ["castles"] if position.castles(move) else []
    victims = [(square, standing_on(position, square)) for square in position.captures(move)]
    if victims:
        words.append("captures " + listed(_victim(square, victim, side) for square, victim in victims))
    if promotion != NO_PROMOTION:
        words.append(f"becomes {with_article(variant.piece_types[promotion].name)}")
    return words


def _victim(square: str, victim: Standing | None, side: int) -> str:
    assert victim is not None
    return f"{'its own ' if victim.side == side else ''}{victim.name} on {square}"


def move_meant(position: Position, text: str) -> str:
    """Return the move that a typed text means: `e2 e4`, `e2-e4`, `e7e8=Q` and `O-O` or `0-0` are understood.

    Args:
        position: The position.
        text: What was typed.

    Returns:
        A move, which need not be legal, or the text in lower case if it is none.
    """
    typed = _BETWEEN.sub("", text.lower())
    written = typed.replace("0", "o")
    if written in CASTLINGS:
        castling = position.variant.castlings[2 * "wb".index(position.to_play) + CASTLINGS.index(written)]
        move = format_move(position.variant, castling.king_from, castling.king_to) if castling else ""
        return move if move in position.legal_moves() and position.castles(move) else text.lower()
    return typed


def why_illegal(position: Position, text: str) -> str:
    """Return why a text is no legal move, with the legal moves that come near to it.

    Args:
        position: The position.
        text: What was typed; not a legal move.
    """
    legal = position.legal_moves()
    if _BETWEEN.sub("", text.lower()).replace("0", "o") in CASTLINGS:
        side = SIDE_NAMES["wb".index(position.to_play)]
        return f"{text}: {f'{side} cannot castle so now' if can_castle(position) else 'this game has no castling'}"
    longer = [move for move in legal if len(text) >= 4 and move[:-1] == text]
    if longer:
        return f"{text}: say what it becomes: {shown(longer)}"
    try:
        square = start_of(position, text)
    except IllegalAction as error:
        return f"{error}{did_you_mean(text, legal)}"
    standing = standing_on(position, square)
    if standing is None:
        return f"{text}: there is no piece on {square}{did_you_mean(text, legal)}"
    if standing.side != "wb".index(position.to_play):
        return f"{text}: the {standing.name} on {square} is {SIDE_NAMES[standing.side]}'s{did_you_mean(text, legal)}"
    mine = moves_from(position, square)
    check = f"{SIDE_NAMES[standing.side]} is in check. " if position.in_check else ""
    if not mine:
        return f"{text}: {check}The {standing.name} on {square} has no legal move now"
    return f"{text}: {check}The {standing.name} on {square} may go {shown(mine)}"


def can_castle(position: Position) -> bool:
    """Return whether there is castling in a game, now or at another time."""
    return any(position.variant.castlings)


def start_of(position: Position, move: str) -> str:
    """Return the square that a move starts from.

    Raises:
        IllegalAction: The text is no move on this board.
    """
    return position.variant.board.names[parse_move(position.variant, move)[0]]


def moves_from(position: Position, square: str) -> list[str]:
    """Return the legal moves from a square, sorted."""
    parse_square(position.variant, square)
    return [move for move in position.legal_moves() if start_of(position, move) == square]


def shown(moves: list[str]) -> str:
    """Return moves on a line, not too many."""
    more = len(moves) - MOST_LISTED
    return " ".join(moves) if more <= 0 else f"{' '.join(moves[:MOST_LISTED])} and {more} more"


def did_you_mean(text: str, known: list[str]) -> str:
    """Return a question that ends a message, or nothing if no known word is near."""
    near = get_close_matches(text, known, n=1)
    return f". Did you mean {near[0]}?" if near else ""
