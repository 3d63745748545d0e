"""The rules, slow and obvious: the specification of every game, to be read beside the inventor's page.

One position at a time, plain Python, no tables but the paths of pieces on an empty board (`paths.py`). The
compiled kernels say the same thing fast; tests hold the two together on every ply of random games.

Dims: S real squares. A square is an index 0..S-1 of `Variant.board`. A piece is its letter, capital for
White. Sides are 0 (White) and 1 (Black).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal, NamedTuple

from envs.notation import MAX_FULLMOVE_NUMBER, MAX_HALFMOVE_CLOCK
from envs.paths import Path, approaches, letter_of, paths_of, side_of
from envs.termination import Outcome, Termination
from envs.variant import WHITE, Castling, Pawns, Variant

Pieces = tuple[str, ...]
"""S letters, capital for White, `""` for an empty square."""

REPETITIONS_TO_DRAW = 3
NUM_BARE_KINGS = 2
COLOURS: tuple[Literal["w"], Literal["b"]] = ("w", "b")


@dataclass(frozen=True)
class State:
    """A position.

    Attributes:
        board: S letters, capital for White, `""` where empty.
        to_play: Side to move.
        rights: Castling rights in the order of `Variant.castlings`.
        passed: Squares that the pawn that just moved passed over, whether or not a capture there is possible.
        victim: Where that pawn stands now, None without passed squares.
        halfmove_clock: Plies since the last capture or pawn move; stays at the highest number that a FEN can say.
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


# --- Pseudo-legal moves -----------------------------------------------------------------------


def captures_and_steps(
    variant: Variant, board: Sequence[str], piece: str, path: Path
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield `(to square, victims)` of each move that `piece` has along `path`."""
    white = piece.isupper()
    if path.ray.overruns:
        yield from _overrun(board, white, path)
        return
    kind = variant.piece_types[variant.type_by_letter[piece.upper()]]
    own_royal = letter_of(variant, variant.royal, side_of(piece))
    shot: tuple[int, ...] = ()  # the first piece on the way, once fired through
    for square in path.landings:
        occupant = board[square]
        if not occupant:
            if path.ray.quiet:
                yield square, shot
            continue
        enemy = occupant.isupper() != white
        own_may_be_hit = kind.fires_through_own and occupant != own_royal
        if shot:
            if enemy or (own_may_be_hit and board[shot[0]].isupper() == white):
                yield square, (*shot, square)
            return  # never past a second piece
        if enemy and path.ray.capture:
            yield square, (square,)
        if not (path.ray.fires_through and (enemy or own_may_be_hit)):
            return
        shot = (square,)


def _overrun(board: Sequence[str], white: bool, path: Path) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Jump exactly two squares: an enemy jumped over is captured as well, a friend is not harmed."""
    (square,) = path.landings
    over = path.jumped
    jumped = () if over is None or not board[over] or board[over].isupper() == white else (over,)
    if not board[square]:
        yield square, jumped
    elif board[square].isupper() != white:
        yield square, (*jumped, square)


def pseudo_legal_moves(variant: Variant, state: State) -> list[Move]:
    """Return the moves of the side to move, the king's safety left aside except in castling; each once."""
    white = state.to_play == WHITE
    moves: list[Move] = []
    pawn = "" if variant.pawns is None else letter_of(variant, variant.pawns.piece, state.to_play)
    for square, piece in enumerate(state.board):
        if not piece or piece.isupper() != white:
            continue
        if piece == pawn:
            moves += _pawn_moves(variant, state, square)
            continue
        for path in paths_of(variant, piece, square):
            for to_square, victims in captures_and_steps(variant, state.board, piece, path):
                moves.append(Move(square, to_square, "", victims))
    moves += _castling_moves(variant, state)
    return list(dict.fromkeys(moves))


def _pawn_moves(variant: Variant, state: State, square: int) -> Iterator[Move]:
    pawns = variant.pawns
    assert pawns is not None
    piece = letter_of(variant, pawns.piece, state.to_play)
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
    """Step over empty squares, several times from a start rank; a promotion rank ends it."""
    x, y = variant.board.squares[square]
    forward = 1 if state.to_play == WHITE else -1
    steps = pawns.first_steps if y in pawns.start_ranks[state.to_play] else 1
    for _ in range(steps):
        y += forward
        to_square = variant.board.index.get((x, y))
        if to_square is None or state.board[to_square]:
            return
        yield to_square
        if y in pawns.promotion_ranks[state.to_play]:
            return


def _with_promotions(variant: Variant, pawns: Pawns, side: int, move: Move) -> Iterator[Move]:
    if variant.board.squares[move.to_square][1] not in pawns.promotion_ranks[side]:
        yield move
        return
    for piece_type in pawns.promotes_to:
        yield move._replace(promotion=variant.piece_types[piece_type].letter)


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
    """The king is attacked neither at home nor on its way nor at its goal, the partner still at home."""
    kingless = list(state.board)
    kingless[castling.king_from] = ""
    return not any(
        attacked(variant, kingless, square, 1 - state.to_play)
        for square in _row(variant, castling.king_from, castling.king_to)
    )


# --- Attacks and legality ---------------------------------------------------------------------


def attacked(variant: Variant, board: Sequence[str], square: int, by_side: int) -> bool:
    """Return whether a king on `square` could be captured by a move of `by_side`, in passing too.

    Args:
        variant: The game.
        board: S letters.
        square: A royal piece of the other side is thought to stand here, whatever does.
        by_side: The attacker.
    """
    royal = letter_of(variant, variant.royal, 1 - by_side)
    if board[square] != royal:
        board = [*board[:square], royal, *board[square + 1 :]]
    for source, piece, path in approaches(variant, by_side, square):
        if board[source] == piece:
            for _, victims in captures_and_steps(variant, board, piece, path):
                if square in victims:
                    return True
    return False


def king_square(variant: Variant, board: Sequence[str], side: int) -> int:
    """Return where a side's royal piece stands."""
    return board.index(letter_of(variant, variant.royal, side))


def in_check(variant: Variant, state: State) -> bool:
    """Return whether the side to move is in check."""
    return attacked(variant, state.board, king_square(variant, state.board, state.to_play), 1 - state.to_play)


def legal_moves(variant: Variant, state: State) -> list[Move]:
    """Return the legal moves in the order of the board; none once a goal has been reached."""
    if goal_reached(variant, state):
        return []
    return [move for move in pseudo_legal_moves(variant, state) if leaves_king_safe(variant, state, move)]


def leaves_king_safe(variant: Variant, state: State, move: Move) -> bool:
    """Return whether the mover's king cannot be captured after a pseudo-legal move."""
    board = board_after(variant, state, move)
    return not attacked(variant, board, king_square(variant, board, state.to_play), 1 - state.to_play)


def legal_passed(variant: Variant, state: State) -> tuple[int, ...]:
    """Return the squares on which an en passant capture is legal now, ascending."""
    if not state.passed or goal_reached(variant, state):
        return ()
    captures = (move for move in pseudo_legal_moves(variant, state) if move.kind is Kind.EN_PASSANT)
    return tuple(sorted({move.to_square for move in captures if leaves_king_safe(variant, state, move)}))


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
    number = variant.type_by_letter[state.board[move.from_square].upper()]
    is_pawn = variant.pawns is not None and number == variant.pawns.piece
    passed = squares_passed(variant, move) if is_pawn and not move.promotion else ()
    touched = {move.from_square, *move.victims}
    return State(
        board=tuple(board_after(variant, state, move)),
        to_play=1 - state.to_play,
        rights=tuple(
            right and castling is not None and not {castling.king_from, castling.partner_from} & touched
            for right, castling in zip(state.rights, variant.castlings)
        ),
        passed=passed,
        victim=move.to_square if passed else None,
        halfmove_clock=0 if is_pawn or move.victims else min(state.halfmove_clock + 1, MAX_HALFMOVE_CLOCK),
        fullmove_number=min(state.fullmove_number + state.to_play, MAX_FULLMOVE_NUMBER),
    )


def squares_passed(variant: Variant, move: Move) -> tuple[int, ...]:
    """Return the squares that a pawn steps over, ascending: none in a capture, nor in a single step."""
    (x, y), (to_x, to_y) = (variant.board.squares[square] for square in (move.from_square, move.to_square))
    if x != to_x:
        return ()
    return tuple(variant.board.index[x, between] for between in range(min(y, to_y) + 1, max(y, to_y)))


# --- The end of the game ----------------------------------------------------------------------


def goal_reached(variant: Variant, state: State) -> bool:
    """Return whether the side that just moved has its king on one of its goal squares."""
    mover = 1 - state.to_play
    goals = variant.goals[mover]
    return bool(goals) and king_square(variant, state.board, mover) in goals


Identity = tuple[Pieces, int, tuple[bool, ...], tuple[int, ...]]


def identity(variant: Variant, state: State) -> Identity:
    """Return what repeated positions share: board, side, castling rights, legal en passant squares."""
    return state.board, state.to_play, state.rights, legal_passed(variant, state)


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
    if goal_reached(variant, state):
        return Outcome(Termination.SCEPTER, COLOURS[1 - state.to_play])
    if not (legal_moves(variant, state) if moves is None else moves):
        if in_check(variant, state):
            return Outcome(Termination.CHECKMATE, COLOURS[1 - state.to_play])
        return Outcome(Termination.STALEMATE, None)
    if variant.bare_kings_draw and sum(map(bool, state.board)) == NUM_BARE_KINGS:
        return Outcome(Termination.BARE_KINGS, None)
    if earlier.count(identity(variant, state)) + 1 >= REPETITIONS_TO_DRAW:
        return Outcome(Termination.REPETITION, None)
    if state.halfmove_clock >= MAX_HALFMOVE_CLOCK:
        return Outcome(Termination.FIFTY_MOVES, None)
    return None
