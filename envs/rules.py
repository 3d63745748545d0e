"""The rules, slow and obvious: the specification of every game, to be read beside the inventor's page.

One position at a time, plain Python, no tables but the paths of pieces on an empty board (`paths.py`); what a board
alone says about the end of a game is in `game_end.py`. The compiled kernels say the same thing fast; tests hold the
two together on every ply of random games.

Dims: S real squares. A square is an index 0..S-1 of `Variant.board`. A piece is its letter, capital for
White. Sides are 0 (White) and 1 (Black).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from envs.game_end import board_outcome, outcome_for
from envs.notation import MAX_FULLMOVE_NUMBER
from envs.paths import (
    Path,
    approaches,
    letter_of,
    may_promote,
    must_promote,
    paths_of,
    pawn_routes,
    royal_letter,
    side_of,
)
from envs.termination import Outcome, Termination
from envs.variant import WHITE, Castling, Pawns, Variant

Pieces = tuple[str, ...]
"""S letters, capital for White, `""` for an empty square."""

NUM_BARE_KINGS = 2


@dataclass(frozen=True)
class State:
    """A position.

    Attributes:
        board: S letters, capital for White, `""` where empty.
        to_play: Side to move.
        rights: Castling rights in the order of `Variant.castlings`.
        passed: Squares that the pawn that just moved passed over, whether or not a capture there is possible.
        victim: Where that pawn stands now, None without passed squares.
        halfmove_clock: Plies since the last capture or pawn move; stays at `Variant.clock_limit`.
        fullmove_number: Counted up after Black's moves; stays at the highest number that a FEN can say.
    """

    board: Pieces
    to_play: int
    rights: tuple[bool, ...]
    passed: tuple[int, ...] = ()
    victim: int | None = None
    halfmove_clock: int = 0
    fullmove_number: int = 1


class Kind(Enum):
    """What a move is, beyond from, to and promotion."""

    PLAIN = "plain"
    CASTLING = "castling"
    EN_PASSANT = "en passant"


class Move(NamedTuple):
    """A move.

    Attributes:
        from_square: Where the piece stands; the king's square in castling.
        to_square: Where it lands.
        promotion: Capital letter of the piece that a pawn becomes, else `""`.
        victims: Squares of all pieces that disappear, own ones included.
        kind: Plain, castling or en passant.
    """

    from_square: int
    to_square: int
    promotion: str = ""
    victims: tuple[int, ...] = ()
    kind: Kind = Kind.PLAIN


# --- How pieces move --------------------------------------------------------------------------


def captures_and_steps(
    variant: Variant, board: Sequence[str], piece: str, path: Path
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield `(to square, victims)` of each move that `piece` has along `path`."""
    if path.ray.overruns:
        yield from _overrun(variant, board, piece, path)
        return
    kind = variant.piece_types[variant.type_by_letter[piece.upper()]]
    shot: tuple[int, ...] = ()  # the first piece on the way, once fired through
    for square in path.landings:
        if not board[square]:
            if path.ray.quiet:
                yield square, shot
            continue
        may_land = _may_hit(variant, piece, board[square], own=kind.captures_own)
        may_fire = _may_hit(variant, piece, board[square], own=kind.fires_through_own)
        if shot:
            has_shot_own = side_of(board[shot[0]]) == side_of(piece)
            if may_land or (may_fire and has_shot_own):
                yield square, (*shot, square)
            return  # never past a second piece
        if path.ray.capture and may_land:
            yield square, (square,)
        if not (path.ray.fires_through and may_fire):
            return
        shot = (square,)


def _overrun(variant: Variant, board: Sequence[str], piece: str, path: Path) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Jump exactly two squares: an enemy jumped over is captured as well, a friend is not harmed."""
    kind = variant.piece_types[variant.type_by_letter[piece.upper()]]
    (square,) = path.landings
    over = path.jumped
    jumped = () if over is None or not board[over] or side_of(board[over]) == side_of(piece) else (over,)
    if not board[square]:
        yield square, jumped
    elif _may_hit(variant, piece, board[square], own=kind.captures_own):
        yield square, (*jumped, square)


def _may_hit(variant: Variant, piece: str, other: str, *, own: bool) -> bool:
    """Return whether `piece` may capture `other`: an enemy or, if it may hit its `own`, any of them but its royal."""
    side = side_of(piece)
    return side_of(other) != side or (own and other != royal_letter(variant, side))


def pseudo_legal_moves(variant: Variant, state: State) -> list[Move]:
    """Return the moves of the side to move, the king's safety left aside except in castling; each once."""
    moves: list[Move] = []
    for square, piece in enumerate(state.board):
        if not piece or side_of(piece) != state.to_play:
            continue
        if is_pawn(variant, piece):
            moves += _pawn_moves(variant, state, square)
            continue
        for path in paths_of(variant, piece, square):
            for to_square, victims in captures_and_steps(variant, state.board, piece, path):
                moves.append(Move(square, to_square, "", victims))
    moves += _castling_moves(variant, state)
    return list(dict.fromkeys(moves))


# --- Pawns ------------------------------------------------------------------------------------


def is_pawn(variant: Variant, piece: str) -> bool:
    """Return whether a piece letter of either side is the pawn's."""
    return variant.pawns is not None and variant.type_by_letter[piece.upper()] == variant.pawns.piece


def _pawn_moves(variant: Variant, state: State, square: int) -> Iterator[Move]:
    pawns, piece = variant.pawns, state.board[square]
    assert pawns is not None
    for to_square in pawn_steps(variant, pawns, state, square):
        yield from _with_promotions(variant, pawns, state.to_play, Move(square, to_square))
    for path in paths_of(variant, piece, square):
        for to_square, victims in captures_and_steps(variant, state.board, piece, path):
            yield from _with_promotions(variant, pawns, state.to_play, Move(square, to_square, "", victims))
        for to_square in path.landings:
            if to_square in state.passed:
                assert state.victim is not None
                move = Move(square, to_square, "", (state.victim,), Kind.EN_PASSANT)
                yield from _with_promotions(variant, pawns, state.to_play, move)


def pawn_steps(variant: Variant, pawns: Pawns, state: State, square: int) -> Iterator[int]:
    """Step onto empty squares, several times from a start rank; a square of promotion ends it."""
    for route in pawn_routes(variant, state.to_play, square):
        for to_square in route:
            if state.board[to_square]:
                break
            yield to_square


def squares_passed(variant: Variant, state: State, move: Move) -> tuple[int, ...]:
    """Return the squares that a pawn lands on before it ends its first steps, ascending; none in any other move."""
    if not is_pawn(variant, state.board[move.from_square]) or move.victims or move.promotion:
        return ()
    for route in pawn_routes(variant, state.to_play, move.from_square):
        if move.to_square in route:
            return tuple(sorted(route[: route.index(move.to_square)]))
    return ()


def _with_promotions(variant: Variant, pawns: Pawns, side: int, move: Move) -> Iterator[Move]:
    """Yield a pawn's move with each of its promotions, and without one where it need not promote."""
    if may_promote(variant, side, move.to_square):
        for piece_type in pawns.promotes_to[side]:
            yield move._replace(promotion=variant.piece_types[piece_type].letter)
    if not must_promote(variant, side, move.to_square):
        yield move


# --- Castling ---------------------------------------------------------------------------------


def _castling_moves(variant: Variant, state: State) -> Iterator[Move]:
    for number, castling in enumerate(variant.castlings):
        if castling is None or number // 2 != state.to_play or not state.rights[number]:
            continue
        if _castling_is_clear(variant, state.board, castling) and _castling_is_safe(variant, state, castling):
            yield Move(castling.king_from, castling.king_to, "", (), Kind.CASTLING)


def _row(variant: Variant, first: int, last: int) -> list[int]:
    """Return the squares from one square of a rank to another, both included, holes left out."""
    (x, y), (end, _) = variant.board.squares[first], variant.board.squares[last]
    step = 1 if end >= x else -1
    index = variant.board.index
    return [index[column, y] for column in range(x, end + step, step) if (column, y) in index]


def _castling_is_clear(variant: Variant, board: Pieces, castling: Castling) -> bool:
    """Nothing stands between king and partner, nor on any square that either of them passes or lands on."""
    own = {castling.king_from, castling.partner_from}
    crossed = (
        set(_row(variant, castling.king_from, castling.partner_from))
        | set(_row(variant, castling.king_from, castling.king_to))
        | set(_row(variant, castling.partner_from, castling.partner_to))
    )
    return not any(board[square] for square in crossed - own)


def _castling_is_safe(variant: Variant, state: State, castling: Castling) -> bool:
    """A royal is attacked neither at home nor on its way nor at its goal, the partner still at home."""
    if variant.royals[state.to_play] is None:
        return True
    kingless = list(state.board)
    kingless[castling.king_from] = ""
    return not any(
        attacked(variant, kingless, square, 1 - state.to_play)
        for square in _row(variant, castling.king_from, castling.king_to)
    )


# --- Attacks and legality ---------------------------------------------------------------------


def attacked(variant: Variant, board: Sequence[str], square: int, by_side: int) -> bool:
    """Return whether a piece on `square` could be captured by a move of `by_side`, in passing too.

    Args:
        variant: The game.
        board: S letters.
        square: A piece of the other side is thought to stand here, whatever does.
        by_side: The attacker.
    """
    if not board[square] or side_of(board[square]) == by_side:
        any_piece = letter_of(variant, 0, 1 - by_side)  # its side is all that counts
        board = [*board[:square], any_piece, *board[square + 1 :]]
    for source, piece, path in approaches(variant, by_side, square):
        if board[source] == piece:
            for _, victims in captures_and_steps(variant, board, piece, path):
                if square in victims:
                    return True
    return False


def king_square(variant: Variant, board: Sequence[str], side: int) -> int | None:
    """Return where a side's royal stands, None if it has none."""
    royal = royal_letter(variant, side)
    return None if royal is None else board.index(royal)


def king_attacked(variant: Variant, board: Sequence[str], side: int) -> bool:
    """Return whether a side's royal could be captured; never without one."""
    square = king_square(variant, board, side)
    return square is not None and attacked(variant, board, square, 1 - side)


def in_check(variant: Variant, state: State) -> bool:
    """Return whether the side to move is in check."""
    return king_attacked(variant, state.board, state.to_play)


def legal_moves(variant: Variant, state: State) -> list[Move]:
    """Return the legal moves in the order of the board; none once the board has ended the game."""
    if board_outcome(variant, state.board, 1 - state.to_play) is not None:
        return []
    return [move for move in pseudo_legal_moves(variant, state) if leaves_king_safe(variant, state, move)]


def leaves_king_safe(variant: Variant, state: State, move: Move) -> bool:
    """Return whether the mover's king cannot be captured after a pseudo-legal move."""
    return not king_attacked(variant, board_after(variant, state, move), state.to_play)


def legal_passed(variant: Variant, state: State) -> tuple[int, ...]:
    """Return the squares on which an en passant capture is legal now, ascending."""
    if not state.passed:
        return ()
    captures = (move for move in legal_moves(variant, state) if move.kind is Kind.EN_PASSANT)
    return tuple(sorted({move.to_square for move in captures}))


# --- Making a move ----------------------------------------------------------------------------


def board_after(variant: Variant, state: State, move: Move) -> list[str]:
    """Return the S letters after a move."""
    board = list(state.board)
    piece = board[move.from_square]
    if move.promotion:
        piece = move.promotion if state.to_play == WHITE else move.promotion.lower()
    board[move.from_square] = ""
    for square in move.victims:
        board[square] = ""
    if move.kind is Kind.CASTLING:
        castling = _castling_of(variant, state, move)
        partner, board[castling.partner_from] = board[castling.partner_from], ""
        board[castling.partner_to] = partner
    board[move.to_square] = piece
    return board


def _castling_of(variant: Variant, state: State, move: Move) -> Castling:
    for castling in variant.castlings[2 * state.to_play : 2 * state.to_play + 2]:
        if castling is not None and castling.king_to == move.to_square:
            return castling
    raise AssertionError(f"{move} is no castling of this game")


def make(variant: Variant, state: State, move: Move) -> State:
    """Return the position after a legal move."""
    passed = squares_passed(variant, state, move)
    touched = {move.from_square, *move.victims}
    resets_clock = bool(move.victims) or is_pawn(variant, state.board[move.from_square])
    return State(
        board=tuple(board_after(variant, state, move)),
        to_play=1 - state.to_play,
        rights=tuple(
            right and castling is not None and not {castling.king_from, castling.partner_from} & touched
            for right, castling in zip(state.rights, variant.castlings)
        ),
        passed=passed,
        victim=move.to_square if passed else None,
        halfmove_clock=0 if resets_clock else min(state.halfmove_clock + 1, variant.clock_limit),
        fullmove_number=min(state.fullmove_number + state.to_play, MAX_FULLMOVE_NUMBER),
    )


# --- The end of the game ----------------------------------------------------------------------


Identity = tuple[Pieces, int, tuple[bool, ...], tuple[int, ...], int | None]


def identity(variant: Variant, state: State) -> Identity:
    """Return what repeated positions share: board, side, castling rights, legal en passant squares and their victim."""
    passed = legal_passed(variant, state)
    return state.board, state.to_play, state.rights, passed, state.victim if passed else None


def outcome(
    variant: Variant,
    state: State,
    earlier: Sequence[Identity] = (),
    *,
    moves: Sequence[Move] | None = None,
) -> Outcome | None:
    """Return how the game has ended, or None.

    Args:
        variant: The game.
        state: The position now.
        earlier: Identities of the positions before it in this game.
        moves: Its legal moves, when they are known already.
    """
    ends, to_play = variant.ends, state.to_play
    ended = board_outcome(variant, state.board, 1 - to_play)
    if ended is not None:
        return ended
    if not (legal_moves(variant, state) if moves is None else moves):
        if in_check(variant, state):
            return outcome_for(to_play, "loss", Termination.CHECKMATE)
        return outcome_for(to_play, ends.stalemate, Termination.STALEMATE)
    if ends.bare_kings_draw and sum(map(bool, state.board)) == NUM_BARE_KINGS:
        return outcome_for(to_play, "draw", Termination.BARE_KINGS)
    if ends.repetition_times and earlier.count(identity(variant, state)) + 1 >= ends.repetition_times:
        return outcome_for(to_play, ends.repetition_result, Termination.REPETITION)
    if ends.move_limit and state.halfmove_clock >= ends.move_limit:
        return outcome_for(to_play, "draw", Termination.FIFTY_MOVES)
    return None
