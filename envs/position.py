"""One game, move by move: the engine of the vectorised environment behind a chess programmer's interface."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from envs import game_kernels, kernels, layout
from envs.errors import IllegalAction
from envs.layout import U64Array
from envs.notation import NO_PROMOTION, format_move, parse_move
from envs.render import draw_row
from envs.rows import engine_for, format_fen, outcome_of_verdict, read_fen, thread_scratch
from envs.tables import CompiledGame
from envs.termination import Outcome
from envs.variant import Variant
from envs.variant_loader import load_variant

_ROW = np.uint64(0)


class Position:
    """A position with the game that led to it.

    Moves are text: from, to and a promotion letter (`a2a5`, `a9a10q`); castling is the king's move. A drawn game may
    be played on: only checkmate, stalemate, a reached goal and extinction leave no moves.
    """

    def __init__(
        self, variant: str | Path | Variant, fen: str | None = None, options: Mapping[str, bool] | None = None
    ) -> None:
        """Set up a position.

        Args:
            variant: A built-in name, the path of a variant file, or a resolved variant (then without `options`).
            fen: The position; the start position by default.
            options: Option name -> on.

        Raises:
            InvalidVariant: The game cannot be honoured.
            InvalidFen: The FEN is no position of the game.
        """
        if isinstance(variant, Variant) and options:
            raise ValueError("options: a resolved variant has its options applied already")
        resolved = variant if isinstance(variant, Variant) else load_variant(variant, options)
        self.game: CompiledGame = engine_for(resolved)
        self._rows = [read_fen(self.game, resolved.start_fen if fen is None else fen)]
        self._pushed: list[str] = []
        self._legal: dict[str, int] | None = None
        self._check = False
        self._generate()

    def __str__(self) -> str:
        """Return the board as text, with what a FEN says beside it."""
        return draw_row(self.game, self._rows[-1])

    @property
    def variant(self) -> Variant:
        """The rules."""
        return self.game.variant

    @property
    def to_play(self) -> str:
        """The side to move, `"w"` or `"b"`."""
        return "wb"[int(self._bytes()[layout.TO_PLAY])]

    @property
    def in_check(self) -> bool:
        """Whether the side to move is in check."""
        return self._check

    @property
    def halfmove_clock(self) -> int:
        """Plies since the last capture or pawn move."""
        return int(self._bytes()[layout.CLOCK : layout.CLOCK + 2].view(np.uint16)[0])

    @property
    def repetitions(self) -> int:
        """How often the position has occurred before in this game: 0 when it is new, 2 at a threefold repetition."""
        return sum(int(row[0] == self._rows[-1][0]) for row in self._rows[:-1])

    @property
    def key(self) -> int:
        """Zobrist key, 64 bits: board, side to move, castling rights and legal en passant captures."""
        return int(self._rows[-1][0])

    @property
    def moves_played(self) -> list[str]:
        """The moves pushed so far."""
        return list(self._pushed)

    def legal_moves(self) -> list[str]:
        """Return the legal moves, sorted."""
        return sorted(self._moves())

    def captures(self, move: str) -> list[str]:
        """Return the squares of all pieces that a legal move captures, sorted.

        Raises:
            IllegalAction: The move is not legal.
        """
        word = self._word(move)
        start, to = word & 0xFF, word >> 8 & 0xFF
        board = self._bytes()[layout.HEADER_BYTES :]
        castles = word >> layout.CASTLE_FLAG & 1
        victims = {to} if board[to] and to != start and not castles else set()
        if word >> layout.EXTRA_FLAG & 1:
            victims.add(word >> 48)
        return sorted(self.variant.board.names[square] for square in victims)

    def castles(self, move: str) -> bool:
        """Return whether a legal move is castling.

        Raises:
            IllegalAction: The move is not legal.
        """
        return bool(self._word(move) >> layout.CASTLE_FLAG & 1)

    def push(self, move: str) -> None:
        """Play a legal move.

        Raises:
            IllegalAction: The move is not legal; nothing has changed.
        """
        word = self._word(move)
        row = self._rows[-1].copy()
        kernels.make(self.game.tables, self.game.zobrist, row.view(np.uint8), row, _ROW, np.uint64(word))
        self._rows.append(row)
        row.view(np.uint8)[layout.REPETITIONS] = min(self.repetitions, int(self.game.tables[layout.T_REPETITIONS]))
        self._pushed.append(move)
        self._generate()

    def pop(self) -> str:
        """Take the last move back and return it.

        Raises:
            IndexError: No move has been played.
        """
        if not self._pushed:
            raise IndexError("no move to take back")
        self._rows.pop()
        self._generate()
        return self._pushed.pop()

    def fen(self) -> str:
        """Return the FEN: six fields."""
        return format_fen(self.game, self._rows[-1])

    def row(self) -> U64Array:
        """Return the packed position as a copy, uint64 [words]."""
        return self._rows[-1].copy()

    def copy(self) -> Position:
        """Return an independent copy, history included."""
        twin = copy.copy(self)
        twin._rows = [row.copy() for row in self._rows]
        twin._pushed = list(self._pushed)
        return twin

    def outcome(self) -> Outcome | None:
        """Return how the rules have ended the game, or None."""
        row = self._rows[-1]
        num_moves = np.uint64(len(self._moves()))
        verdict = game_kernels.verdict(self.game.tables, row.view(np.uint8), row, _ROW, num_moves, self._check)
        return outcome_of_verdict(int(verdict), int(self._bytes()[layout.TO_PLAY]))

    def move_to_action(self, move: str) -> int:
        """Return the action id of a legal move.

        Raises:
            IllegalAction: The move is not legal.
        """
        return self._word(move) >> 16 & 0xFFFF

    def _bytes(self) -> layout.U8Array:
        return self._rows[-1].view(np.uint8)

    def _moves(self) -> dict[str, int]:
        if self._legal is None:
            self._legal = {self._name(int(word)): int(word) for word in self._words}
        return self._legal

    def _name(self, word: int) -> str:
        promotion = (word >> 32 & 15) - 1
        return format_move(self.variant, word & 0xFF, word >> 8 & 0xFF, promotion if promotion >= 0 else NO_PROMOTION)

    def _word(self, move: str) -> int:
        word = self._moves().get(move)
        if word is None:
            parse_move(self.variant, move)
            raise IllegalAction(f"move {move!r} is not legal in {self.fen()}")
        return word

    def _generate(self) -> None:
        row = self._rows[-1]
        words = np.empty(self.game.legal_bound(self._bytes()[layout.HEADER_BYTES :]), np.uint64)
        packed = int(kernels.generate(self.game.tables, row.view(np.uint8), row, _ROW, thread_scratch(), words, _ROW))
        self._words = words[: packed >> 1]
        self._check = bool(packed & 1)
        self._legal = None
