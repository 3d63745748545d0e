"""State rows: positions packed for the kernels, in and out of FEN, and batch functions over them.

Dims: N rows, W words a row, M legal moves at most, C planes, H x W' grid. Functions here take rows as uint64 [N, W],
any array of that shape and type, also read-only; they never change their arguments.
"""

from __future__ import annotations

from collections.abc import Iterator
from threading import local

import numpy as np
import numpy.typing as npt

from envs import game_kernels, kernels, lane_kernels, layout
from envs.actions import pawn_steps
from envs.bounded_memory import remember
from envs.errors import IllegalAction, InvalidFen
from envs.jit import announce_compilation
from envs.layout import U8Array, U64Array
from envs.notation import MAX_FULLMOVE_NUMBER, FenFields, format_fields, parse_fields, piece_code
from envs.tables import CompiledGame, compile_game
from envs.termination import Outcome, Termination
from envs.variant import BLACK, WHITE, Variant

_local = local()
_U64 = np.uint64


def thread_scratch() -> layout.U32Array:
    """Return the calling thread's scratch array for the kernels."""
    if not hasattr(_local, "scratch"):
        _local.scratch = np.zeros(kernels.SCRATCH_SIZE, np.uint32)
    scratch: layout.U32Array = _local.scratch
    return scratch


MAX_ENGINES = 128
_engines: dict[str, CompiledGame] = {}


def engine_for(variant: Variant) -> CompiledGame:
    """Return the compiled tables of a variant, shared between calls for the same content."""
    game = _engines.get(variant.content_hash)
    if game is None:
        announce_compilation()
        game = remember(_engines, variant.content_hash, compile_game(variant), MAX_ENGINES)
    return game


def read_fen(game: CompiledGame, text: str) -> U64Array:
    """Read a FEN into a row.

    Args:
        game: The game.
        text: See `notation`.

    Returns:
        uint64 [W].

    Raises:
        InvalidFen: The text does not fit the game, or no game can stand like that.
    """
    return row_of(game, parse_fields(game.variant, text))


def row_of(game: CompiledGame, fields: FenFields) -> U64Array:
    """Set up the position of a FEN's fields, with an empty history, as a row uint64 [W].

    Raises:
        InvalidFen: No game can stand like that.
    """
    row = np.zeros(game.state_words, np.uint64)
    bytes_ = row.view(np.uint8)
    bytes_[layout.HEADER_BYTES : layout.HEADER_BYTES + game.variant.num_squares] = fields.board
    bytes_[layout.TO_PLAY] = fields.to_play
    bytes_[layout.CASTLING] = sum(1 << number for number, right in enumerate(fields.rights) if right)
    bytes_[layout.CLOCK : layout.CLOCK + 2].view(np.uint16)[0] = fields.halfmove_clock
    bytes_[layout.PLY : layout.PLY + 4].view(np.uint32)[0] = 2 * (fields.fullmove_number - 1) + fields.to_play
    victim = _passing_pawn(game.variant, fields) if fields.passed else 0
    passed = np.array(fields.passed, np.uint8)
    game_kernels.set_up(game.tables, game.zobrist, bytes_, row, _U64(0), passed, len(passed), victim)
    _check_royals(game, row)
    return row


def format_fen(game: CompiledGame, row: U64Array) -> str:
    """Return the FEN of a row uint64 [W]."""
    data = np.ascontiguousarray(row).view(np.uint8)
    rights, to_move = int(data[layout.CASTLING]), int(data[layout.TO_PLAY])
    count, victim = int(data[layout.EP_COUNT]), int(data[layout.EP_VICTIM])
    passed = tuple(sorted(data[layout.EP_SQUARES : layout.EP_SQUARES + count].tolist()))
    ply = int(data[layout.PLY : layout.PLY + 4].view(np.uint32)[0])
    board = board_of(game, row)
    is_first = not passed or next(_passing_pawns(game.variant, board, 1 - to_move, passed)) == victim
    return format_fields(game.variant, FenFields(
        board=board,
        to_play=to_move,
        rights=(bool(rights & 1), bool(rights & 2), bool(rights & 4), bool(rights & 8)),
        passed=passed,
        halfmove_clock=int(data[layout.CLOCK : layout.CLOCK + 2].view(np.uint16)[0]),
        fullmove_number=min(ply // 2 + 1, MAX_FULLMOVE_NUMBER),
        victim=None if is_first else victim,
    ))  # fmt: skip


def board_of(game: CompiledGame, row: U64Array) -> U8Array:
    """Return the board of a row as a copy, uint8 [S] piece codes."""
    data = np.ascontiguousarray(row).view(np.uint8)
    return data[layout.HEADER_BYTES : layout.HEADER_BYTES + game.variant.num_squares].copy()


def boards(game: CompiledGame, rows: U64Array) -> U8Array:
    """Return the boards of rows, uint8 [N, S] piece codes."""
    data = _writable(game, rows).view(np.uint8).reshape(len(rows), 8 * game.state_words)
    return data[:, layout.HEADER_BYTES : layout.HEADER_BYTES + game.variant.num_squares]


def actions_of(words: U64Array) -> npt.NDArray[np.int32]:
    """Return the actions in move words (`layout.py`), int32 of the same shape."""
    return ((words >> _U64(16)) & _U64(0xFFFF)).astype(np.int32)


def to_play(game: CompiledGame, rows: U64Array) -> U8Array:
    """Return the side to move of rows, uint8 [N]: 0 White, 1 Black."""
    return _writable(game, rows).view(np.uint8).reshape(len(rows), 8 * game.state_words)[:, layout.TO_PLAY].copy()


def piece_counts(game: CompiledGame, rows: U64Array) -> npt.NDArray[np.int16]:
    """Return how many pieces of each type each side has.

    Returns:
        int16 [N, 2, T]: White's and Black's counts in the order of `Variant.piece_types`.
    """
    codes = boards(game, rows)
    num_types = len(game.variant.piece_types)
    counts = np.empty((len(rows), 2, num_types), np.int16)
    for side in (WHITE, BLACK):
        for number in range(num_types):
            counts[:, side, number] = (codes == number + 1 + side * layout.BLACK_CODE).sum(axis=1)
    return counts


def observe(game: CompiledGame, rows: U64Array, out: npt.NDArray[np.float32] | None = None) -> npt.NDArray[np.float32]:
    """Return the observation planes of rows, seen by the side to move.

    Args:
        game: The game.
        rows: uint64 [N, W].
        out: float32 [N, C, H, W'], C-contiguous, written in place when given.

    Returns:
        float32 [N, C, H, W']; the planes are described in `observation.py`.
    """
    rows = _writable(game, rows)
    shape = (len(rows), *game.observation_shape)
    if out is None:
        out = np.empty(shape, np.float32)
    elif out.shape != shape or out.dtype != np.float32 or not (out.flags.c_contiguous and out.flags.writeable):
        raise ValueError(f"out: expected writable C-contiguous float32 {shape}, got {out.dtype} {out.shape}")
    lane_kernels.observe(game.tables, rows.view(np.uint8).reshape(-1), rows.reshape(-1), out.reshape(-1))
    return out


def legal_moves(game: CompiledGame, rows: U64Array) -> tuple[U64Array, npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
    """Generate the legal moves of rows.

    Returns:
        Move words uint64 [N, bound], of which each row's first `counts` hold; counts int32 [N]; in check bool [N].
    """
    rows = _writable(game, rows).copy()
    bound = game.legal_bound(boards(game, rows))
    moves = np.empty((len(rows), bound), np.uint64)
    counts = np.zeros(len(rows), np.int32)
    checks = np.zeros(len(rows), np.bool_)
    game_kernels.legal_moves(
        game.tables,
        rows.view(np.uint8).reshape(-1),
        rows.reshape(-1),
        moves.reshape(-1),
        bound,
        counts,
        checks,
        thread_scratch(),
    )
    return moves, counts, checks


def legal_actions(
    game: CompiledGame, rows: U64Array, width: int | None = None
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Return the legal actions of rows.

    Args:
        game: The game.
        rows: uint64 [N, W].
        width: M; by default the most legal actions of any row.

    Returns:
        Actions int32 [N, M], padded with -1, and their numbers int32 [N].

    Raises:
        ValueError: A row has more than `width` legal actions.
    """
    moves, counts, _ = legal_moves(game, rows)
    most = int(counts.max(initial=1))
    if width is None:
        width = most
    elif most > width:
        raise ValueError(f"width: a row has {most} legal actions, more than {width}")
    kept = min(width, moves.shape[1])
    actions = np.full((len(rows), width), -1, np.int32)
    listed = ((moves[:, :kept] >> _U64(16)) & _U64(0xFFFF)).astype(np.int32)
    actions[:, :kept] = np.where(np.arange(kept) < counts[:, None], listed, -1)
    return actions, counts


def captured_pieces(game: CompiledGame, rows: U64Array, moves: U64Array) -> U8Array:
    """Return what moves capture, own pieces too.

    Args:
        game: The game.
        rows: uint64 [N, W].
        moves: uint64 [N, M], legal moves of each row as `legal_moves` returns them; a move word 0 captures nothing.

    Returns:
        uint8 [N, M, 2]: codes of the piece on the target and of the one elsewhere, 0 for none.
    """
    codes = boards(game, rows)
    start, target, elsewhere = (((moves >> _U64(shift)) & _U64(0xFF)).astype(np.intp) for shift in (0, 8, 48))
    flags = moves >> _U64(layout.CASTLE_FLAG)
    castles, has_extra = flags & _U64(1), flags >> _U64(layout.EXTRA_FLAG - layout.CASTLE_FLAG) & _U64(1)
    lands = np.where((start == target) | (castles == 1), 0, np.take_along_axis(codes, target, axis=1))
    return np.stack([lands, np.where(has_extra == 1, np.take_along_axis(codes, elsewhere, axis=1), 0)], axis=-1)


def replay_actions(game: CompiledGame, start_fen: str, actions: npt.ArrayLike) -> tuple[U64Array, Outcome | None]:
    """Play a game from its actions.

    Args:
        game: The game.
        start_fen: Where it begins, with an empty history.
        actions: int [T], each seen by the side to move.

    Returns:
        Rows uint64 [T + 1, W], the last one after the last action, and the outcome (None when the rules have not
        ended the game).

    Raises:
        InvalidFen: The FEN is no position of the game.
        IllegalAction: An action is not legal, or the game was over before it; the message names its number.
    """
    played = checked_actions(actions, None)
    rows = np.zeros((len(played) + 1, game.state_words), np.uint64)
    rows[0] = read_fen(game, start_fen)
    moves = np.empty(game.legal_bound(board_of(game, rows[0])), np.uint64)
    history = np.zeros(min(len(rows), layout.LONGEST_HISTORY), np.uint64)
    count, ended = game_kernels.replay(
        game.tables,
        game.zobrist,
        rows.view(np.uint8).reshape(-1),
        rows.reshape(-1),
        history,
        moves,
        played,
        thread_scratch(),
    )
    if count < len(played):
        why = "comes after the end of the game" if ended else "is not legal"
        raise IllegalAction(f"action {count} of {len(played)} ({played[count]}) {why}: {format_fen(game, rows[count])}")
    return rows, outcome_of_verdict(int(ended), int(rows[-1].view(np.uint8)[layout.TO_PLAY]))


def checked_actions(actions: npt.ArrayLike, length: int | None) -> npt.NDArray[np.int64]:
    """Return actions as int64 [length], any length if None.

    Raises:
        ValueError: They are not integers of that shape.
    """
    given = np.asarray(actions)
    if given.dtype == np.int64 and given.shape == (length,) and given.flags.carray:
        return given  # as most callers give them, in no time
    is_empty = given.size == 0 and length in (None, 0)
    if given.ndim != 1 or length not in (None, len(given)) or not (given.dtype.kind in "iu" or is_empty):
        raise ValueError(f"actions: expected integers [{length or 'T'}], got {given.dtype} {list(given.shape)}")
    return np.require(given, np.int64, ["C", "W"])


def outcome_of(termination: int, white_score: float) -> Outcome | None:
    """Return the outcome that a termination number and White's score stand for; None while the game goes on."""
    if not termination:
        return None
    winner = {1.0: "w", 0.0: "b"}.get(white_score)
    return Outcome(Termination(termination), winner)  # type: ignore[arg-type]


def outcome_of_verdict(verdict: int, to_move: int) -> Outcome | None:
    """Return the outcome that a verdict (`layout.py`) on a position with `to_move` to play stands for."""
    return outcome_of(verdict & 15, float(lane_kernels.white_score_of(verdict, to_move))) if verdict else None


def _writable(game: CompiledGame, rows: U64Array) -> U64Array:
    """Return rows as the kernels need them: C-contiguous, writable, uint64 [N, W]."""
    if rows.ndim != 2 or rows.shape[1] != game.state_words or rows.dtype != np.uint64:
        raise ValueError(f"rows: expected uint64 [N, {game.state_words}], got {rows.dtype} {list(rows.shape)}")
    return np.require(rows, requirements=["C", "W"])


def _passing_pawn(variant: Variant, fields: FenFields) -> int:
    """Return where the pawn stands that has just passed over all listed squares.

    Raises:
        InvalidFen: No pawn of the side that just moved can have.
    """
    for victim in _passing_pawns(variant, fields.board, 1 - fields.to_play, fields.passed):
        if fields.victim in (None, victim):
            return victim
    squares = [*fields.passed, *([] if fields.victim is None else [fields.victim])]
    names = ", ".join(variant.board.names[square] for square in squares)
    raise InvalidFen(f"en passant: no pawn of the side that just moved can have passed over {names} in its last move")


def _passing_pawns(variant: Variant, board: U8Array, mover: int, passed: tuple[int, ...]) -> Iterator[int]:
    """Yield where the pawns of `mover` stand that may have passed all listed squares, in the order of the board."""
    pawns = variant.pawns
    if pawns is None:
        return
    pawn = piece_code(pawns.piece, mover)
    for start, (_, y) in enumerate(variant.board.squares):
        if y not in pawns.start_ranks[mover] or board[start]:
            continue
        for run in pawn_steps(variant, start, mover):
            occupied = next((n for n, square in enumerate(run) if board[square]), 0)
            if occupied and board[run[occupied]] == pawn and set(passed) <= set(run[:occupied]):
                yield run[occupied]


def _check_royals(game: CompiledGame, row: U64Array) -> None:
    names, data = game.variant.board.names, row.view(np.uint8)
    mover = int(data[layout.TO_PLAY])
    if game_kernels.royal_attacked(game.tables, data, _U64(0), _U64(1 - mover)):
        square = names[int(data[layout.ROYALS + 1 - mover])]
        raise InvalidFen(f"the side that just moved is in check: its royal piece on {square} could be captured")
    for goal in range(len(game.variant.ends.goals)):
        board = _U64(layout.HEADER_BYTES)
        reached = int(game_kernels.stands_on_goal(game.tables, data, board, _U64(mover), _U64(goal)))
        if reached:
            raise InvalidFen(f"the side to move has a piece on {names[reached - 1]}, where it has already won")
