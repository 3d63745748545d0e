"""Where everything lies: the packed state row, the move word, the header of the rule tables.

A position is one row of uint64 words. Seen as bytes:

| bytes | content |
|---|---|
| 0-7 | Zobrist key: board, side to move, castling rights, legal en passant squares and their victim |
| 8 | side to move, 0 White, 1 Black |
| 9 | castling rights, bits in the order of `Variant.castlings` |
| 10, 11 | number of legal en passant squares, square of the pawn they capture |
| 12, 13 | squares of White's and Black's royal, where they have one |
| 14-15 | pieces on the board |
| 16-17 | half-move clock, at most `Variant.clock_limit` |
| 18 | how the board alone has ended the game (goal, extinction): `termination | result << 4`, else 0 |
| 19 | earlier occurrences of the position, as many as matter for the game |
| 20-23 | plies since move 1 of White, as the FEN's move number says |
| 24-29 | the legal en passant squares, ascending |
| 30-31 | plies since the last irreversible move, or since the game was set up: the position's place in its history |
| 32- | the board, one piece code a square: 0 empty, White type t is t + 1, Black type t is 17 + t |

A move is a uint64: from, to (bytes 0, 1), action id (bytes 2-3), promotion code (bits 32-35), castling number
(bits 36-37), flags (bits 40-42), square of a victim that is not on `to` (byte 6).

A verdict is `termination | result << 4`: how a game has ended, 0 while it goes on, and what that is for the player to
move.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

U8Array = npt.NDArray[np.uint8]
U32Array = npt.NDArray[np.uint32]
U64Array = npt.NDArray[np.uint64]

LAYOUT_VERSION = 2
"""Counted up whenever a state row changes its meaning; stored games carry it."""
HEADER_WORDS = 4
HEADER_BYTES = 8 * HEADER_WORDS
TO_PLAY, CASTLING, EP_COUNT, EP_VICTIM, ROYALS, PIECES = 8, 9, 10, 11, 12, 14
CLOCK, STATUS, REPETITIONS, PLY, EP_SQUARES, REVERSIBLE = 16, 18, 19, 20, 24, 30
BLACK_CODE = 16
NUM_CODES = 32
MAX_SQUARES = 256
LONGEST_HISTORY = 1 << 16
CLOCK_SCALE = 100
"""What the clock plane is divided by in a game without a move limit."""
RESULTS = {"draw": 0, "loss": 1, "win": 2}
"""The result in a verdict, for the player to move."""

CASTLE_FLAG, MULTI_STEP_FLAG, EXTRA_FLAG = 40, 41, 42

# Kinds of a group of moves in the move table.
END, LEAP, SLIDE, RAY, FIRE, FIRE_OWN, OVERRUN, PAWN_STEP, PAWN_CAPTURE = range(9)
# A move entry: to (bits 0-7), action (8-23), quiet (24), capture (25), multi-step (26), capture of own pieces (27),
# promotion code (28-31).
ENTRY_QUIET, ENTRY_CAPTURE, ENTRY_MULTI, ENTRY_OWN, ENTRY_PROMOTION = 24, 25, 26, 27, 28

# Header of the rule tables: scalars, then offsets of the parts.
(
    T_SQUARES, T_WORDS, T_ROYAL, T_ROYAL_BLACK, T_PAWN, T_PAWN_RETURNS, T_FORWARD_STEPS, T_FIRST_STEPS, T_BARE_DRAW,
    T_GOALS, T_EXTINCT, T_EXTINCT_RESULT, T_STALEMATE, T_REPETITIONS, T_REPETITION_RESULT, T_MOVE_LIMIT, T_CLOCK_LIMIT,
    T_DEDUPE, T_ACTIONS, T_TYPES, T_PLANES, T_CELLS, T_COLOUR_PLANE, T_MOVES, T_ATTACKS, T_CASTLING, T_KEEP,
    T_PAWN_FROM, T_FORWARD, T_GOAL, T_CELL, T_END,
) = range(32)  # fmt: skip
GOAL_IS_SCEPTER = 31
"""The bit of a goal word that says by which termination it wins."""

# A castling record.
(
    C_KING_FROM, C_KING_TO, C_PARTNER_FROM, C_PARTNER_TO, C_ACTION, C_LISTS,
) = range(6)  # fmt: skip


def zobrist_castling(num_squares: int) -> int:
    """Return the index of the castling numbers in the Zobrist array [32 * S pieces, 16 rights, S e.p., 1 side]."""
    return NUM_CODES * num_squares


def zobrist_en_passant(num_squares: int) -> int:
    """Return the index of the en passant numbers in the Zobrist array: one for each target, one for the victim."""
    return NUM_CODES * num_squares + 16


def zobrist_side(num_squares: int) -> int:
    """Return the index of Black's number in the Zobrist array."""
    return (NUM_CODES + 1) * num_squares + 16


def zobrist_numbers(num_squares: int) -> U64Array:
    """Return the Zobrist numbers of a board size, the same on every machine."""
    count = zobrist_side(num_squares) + 1
    return np.random.Generator(np.random.PCG64(0xA5710)).integers(1, 2**64, size=count, dtype=np.uint64)
