"""Random games rich in captures, from many kinds of starts: what the tests of the rules are fed with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from envs import InvalidFen, list_variants, load_variant
from envs.notation import BLACK_CODE, RIGHTS_LETTERS, FenFields, format_fields, parse_fields, piece_code
from envs.reference import MAIN_GAMES
from envs.rules import Kind, Move, State
from envs.rules_fen import parse_fen
from envs.variant import BLACK, WHITE, Variant

PERFT_FOLDER = Path(__file__).parent.parent / "perft"
VARIANTS_FOLDER = Path(__file__).parent / "variants"
CAPTURE_BIASES = (0.1, 0.4, 0.8)
RARE_BIAS, PAWN_BIAS = 0.6, 0.25
SHUFFLE_BIASES = (0.0, 0.0, 0.0, 0.0, 0.6)


@dataclass(frozen=True)
class Temper:
    """How a random game is played: how often a capture is preferred, and how often a move is taken back."""

    capture_bias: float
    shuffle_bias: float

    @classmethod
    def draw(cls, rng: np.random.Generator) -> Temper:
        return cls(float(rng.choice(CAPTURE_BIASES)), float(rng.choice(SHUFFLE_BIASES)))


def all_settings() -> list[Variant]:
    """Return every main game, plain and with each of its options on."""
    settings = []
    for name in MAIN_GAMES:
        plain = load_variant(name)
        settings += [plain, *(load_variant(name, {option: True}) for option in plain.options)]
    return settings


def library_games() -> list[Variant]:
    """Return the built-in games but the main ones."""
    return [load_variant(name) for name in list_variants() if name not in MAIN_GAMES]


def own_games() -> list[Variant]:
    """Return games that only the tests know, read by path: more of what a variant file can say."""
    return [load_variant(file) for file in sorted(VARIANTS_FOLDER.glob("*.yaml"))]


def setting_name(variant: Variant) -> str:
    return "+".join([variant.name, *(option for option, on in variant.options.items() if on)])


def pick_move(
    variant: Variant,
    rng: np.random.Generator,
    temper: Temper,
    *,
    state: State,
    moves: list[Move],
    last: Move | None,
) -> Move:
    """Pick a move: often a rare one (castling, en passant, promotion, a victim off its target), or a capture.

    Args:
        variant: The game.
        rng: Consumed.
        temper: How this game is played.
        state: The position.
        moves: Its legal moves, at least one.
        last: The last move of the side to move, which may be taken back.
    """
    pawn = "" if variant.pawns is None else variant.piece_types[variant.pawns.piece].letter
    tastes: tuple[tuple[float, Callable[[Move], bool]], ...] = (
        (temper.shuffle_bias, lambda m: last is not None and m[:2] == (last.to_square, last.from_square)),
        (RARE_BIAS, lambda m: bool(m.promotion or m.kind is not Kind.PLAIN or {*m.victims} - {m.to_square})),
        (temper.capture_bias, lambda m: bool(m.victims)),
        (PAWN_BIAS, lambda m: state.board[m.from_square].upper() == pawn),
    )
    for bias, liked in tastes:
        if rng.random() < bias:
            chosen = [move for move in moves if liked(move)]
            if chosen:
                return chosen[rng.integers(len(chosen))]
    return moves[rng.integers(len(moves))]


def starts(variant: Variant, rng: np.random.Generator) -> Iterator[str]:
    """Yield start positions without end: the array, perft positions, odds and random placements."""
    known = [fen for fen in _perft_positions(variant.name) if _is_position(variant, fen)] or [variant.start_fen]
    while True:
        yield variant.start_fen
        yield str(rng.choice(known))
        yield _valid(variant, rng, _odds)
        yield _valid(variant, rng, _scatter)
        yield _valid(variant, rng, _tension)


def _perft_positions(name: str) -> list[str]:
    file = PERFT_FOLDER / f"{name}.perft"
    lines = file.read_text().splitlines() if file.exists() else []
    return [line.split(" ;")[0].split("] ")[-1] for line in lines if line and not line.startswith("#")]


def _is_position(variant: Variant, fen: str) -> bool:
    try:
        parse_fen(variant, fen)
    except InvalidFen:
        return False
    return True


def _valid(variant: Variant, rng: np.random.Generator, make_fields) -> str:  # type: ignore[no-untyped-def]
    while True:
        text = format_fields(variant, make_fields(variant, rng))
        if _is_position(variant, text):
            return text


def _odds(variant: Variant, rng: np.random.Generator) -> FenFields:
    """The array without some of its pieces, some others replaced, pawns advanced."""
    start = parse_fields(variant, variant.start_fen)
    board = start.board.copy()
    royals = _royal_codes(variant)
    pawn = -1 if variant.pawns is None else variant.pawns.piece + 1
    loss = rng.uniform(0, 0.7)
    for square in np.flatnonzero(board):
        code = int(board[square])
        if code in royals:
            continue
        if rng.random() < loss:
            board[square] = 0
        elif code & 15 == pawn and rng.random() < 0.5:
            _advance(variant, rng, board, int(square))
        elif code & 15 != pawn and rng.random() < 0.2:
            board[square] = _random_code(variant, rng, code >> 4)
    return _fields(variant, rng, board)


def _advance(variant: Variant, rng: np.random.Generator, board: np.ndarray, square: int) -> None:
    x, y = variant.board.squares[square]
    side = int(board[square]) >> 4
    y += int(rng.integers(1, variant.board.ranks - 2)) * (1 if side == WHITE else -1)
    target = variant.board.index.get((x, y))
    if target is not None and board[target] == 0:
        board[target], board[square] = board[square], 0


def _royal_codes(variant: Variant) -> list[int]:
    return [piece_code(royal, side) for side, royal in enumerate(variant.royals) if royal is not None]


def _random_code(variant: Variant, rng: np.random.Generator, side: int) -> int:
    pawn = -1 if variant.pawns is None else variant.pawns.piece
    types = [number for number in range(len(variant.piece_types)) if number not in (variant.royals[side], pawn)]
    return int(rng.choice(types)) + 1 + BLACK_CODE * side


def _scatter(variant: Variant, rng: np.random.Generator) -> FenFields:
    """Few pieces anywhere: endings, kings in the open, pawns about to promote."""
    board = np.zeros(variant.num_squares, np.uint8)
    squares = rng.permutation(variant.num_squares)
    royals = _royal_codes(variant)
    for square, royal in zip(squares, royals):
        board[square] = royal
    for square in squares[len(royals) : 2 + int(rng.integers(1, len(squares) // 3))]:
        side = int(rng.integers(2))
        is_pawn = variant.pawns is not None and rng.random() < 0.4
        board[square] = variant.pawns.piece + 1 + BLACK_CODE * side if is_pawn else _random_code(variant, rng, side)
    return _fields(variant, rng, board)


def _tension(variant: Variant, rng: np.random.Generator) -> FenFields:
    """Kings and rooks at home with little between them, pawns about to pass others, some pieces anywhere."""
    start = parse_fields(variant, variant.start_fen)
    home = {square for c in variant.castlings if c is not None for square in (c.king_from, c.partner_from)}
    royals = _royal_codes(variant)
    board = np.zeros_like(start.board)
    pawn = -1 if variant.pawns is None else variant.pawns.piece + 1
    for square in np.flatnonzero(start.board):
        code = int(start.board[square])
        if code in royals or square in home or rng.random() < (0.6 if code & 15 == pawn else 0.1):
            board[square] = code
    for square in np.flatnonzero(board == 0):
        side = int(rng.integers(2))
        y = variant.board.squares[square][1]
        beyond = y - variant.board.ranks / 2 if side == BLACK else variant.board.ranks / 2 - 1 - y
        if variant.pawns is not None and -4 < beyond < 0 and rng.random() < 0.25:
            board[square] = pawn + BLACK_CODE * side
        elif rng.random() < 0.06:
            board[square] = _random_code(variant, rng, side)
    return _fields(variant, rng, board)


def _fields(variant: Variant, rng: np.random.Generator, board: np.ndarray) -> FenFields:
    rights = []
    for number in range(len(RIGHTS_LETTERS)):
        castling, side = variant.castlings[number], number // 2
        at_home = castling is not None and all(
            board[square] in [piece_code(number, side) for number in types]
            for square, types in (
                (castling.king_from, castling.king_types), (castling.partner_from, castling.partner_types),
            )
        )  # fmt: skip
        rights.append(bool(at_home and rng.random() < 0.8))
    to_play = int(rng.integers(2))
    clock = int(rng.choice([0, 0, 0, int(rng.integers(variant.clock_limit + 1))]))
    move_number = int(rng.integers(1, 60))
    assert to_play in (WHITE, BLACK)
    return FenFields(board, to_play, (rights[0], rights[1], rights[2], rights[3]), (), clock, move_number)
