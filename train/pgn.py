"""Games as PGN: a roster of tags, and moves as a player of the game would write them.

Moves are SAN (https://www.saremba.de/chessgml/standards/pgn/pgn-complete.htm, section 8.2.3), told apart by file, rank
or square where the piece's letter and target do not suffice. Two things go beyond it. A move that captures off its
target names that square too: `Rxd4xd7` takes on d4 and on d7, `Rxd4-d7` takes on d4 and ends on d7; en passant is
written as ever, `exd6`. Pieces have the letters of the variant file, ranks may have two digits. Tags beside the seven:
Variant, Options (those that are on), SetUp and FEN (unless the game began from the first start position), Termination
(normal, resignation or unterminated), Ending (the rule that ended it), and what is known of how the game was made.
"""

from __future__ import annotations

import math
import textwrap
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

import envs
from envs import CompiledGame, Termination, Variant, engine_for, layout, variant_from_document
from envs.notation import parse_fields
from envs.rows import legal_moves
from models.checkpoint import FOLDER, GAME, Checkpoint, load_run_or_checkpoint
from models.storage import write_atomically
from train.shards import ENDING, GameRecord, ShardInfo, read_index, read_listed, read_shard

RESULTS = {1.0: "1-0", 0.0: "0-1", 0.5: "1/2-1/2"}
CUT = "*"
ROSTER = {
    "Event": "?", "Site": "?", "Date": "????.??.??", "Round": "-", "White": "?", "Black": "?", "Result": CUT,
}  # fmt: skip
"""The seven tags that every game has, and their values while unknown."""
LINE = 80
MAX_FILES = 200
"""Files of games that a run keeps, the newest."""
_PGN = ".pgn"
_KINGSIDE, _QUEENSIDE = "O-O", "O-O-O"


class PlayedMoves(Protocol):
    """The moves of a game.

    Attributes:
        start_fen: where it begins.
        actions: int32 [T], each seen by its player.
    """

    @property
    def start_fen(self) -> str:
        """See the class."""

    @property
    def actions(self) -> NDArray[np.int32]:
        """See the class."""


def write_newest(
    games: Sequence[GameRecord], game: CompiledGame, *, folder: Path, iteration: int, most: int
) -> Path | None:
    """Write the last games of an iteration, and remove the oldest such files beyond `MAX_FILES`.

    Args:
        games: of the iteration, in the order in which they ended.
        game: whose games they are.
        folder: of the files, inside the run's; made if missing.
        iteration: counted from 1; names the file and the rounds.
        most: games to write at most.

    Returns:
        The file, None without games.

    Raises:
        OSError: the disk is full or the folder cannot be written.
    """
    if not games:
        return None
    first = max(0, len(games) - most)
    texts = [
        game_text(game, record, event=folder.resolve().parent.name, place=f"{iteration}.{number}", values=True)
        for number, record in enumerate(games[first:], first + 1)
    ]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{iteration:06d}{_PGN}"
    write_atomically(path, "\n".join(texts).encode())
    for old in sorted(folder.glob(f"*{_PGN}"))[:-MAX_FILES]:
        old.unlink()
    return path


def stored_games(
    source: Path, *, variant: Variant | None = None, last: int | None = None, iterations: range | None = None
) -> Iterator[tuple[CompiledGame, GameRecord, str]]:
    """Yield games of a run or a shard, oldest first, with the game they are of and their place (`12.3`).

    Args:
        source: a run's folder, one of its checkpoints (then the games up to it), or a shard.
        variant: the game of a shard that lies in no run's folder.
        last: only so many, the newest.
        iterations: only those of these, counted from 1.

    Raises:
        FileNotFoundError: there is no such run or shard.
        ValueError: a shard lies in no run's folder, and no game is given.
        CorruptFile, CheckpointMismatch: see `load_run_or_checkpoint`, `read_shard` and `read_listed`.
    """
    if source.suffix == ENDING:
        game = engine_for(variant or _variant_of_run(source))
        batches: Iterable[tuple[Path, list[GameRecord]]] = [(source, read_shard(source, game))]
    else:
        checkpoint = load_run_or_checkpoint(source)
        run_dir = source if (source / FOLDER).is_dir() else source.resolve().parents[1]
        infos = read_index(checkpoint.state["shards"], str(checkpoint.path))
        if iterations is not None:
            infos = [info for info in infos if _iteration(Path(info.name)) in iterations]
        if last is not None:
            infos = _newest(infos, last)
        game, folder = engine_for(variant_of(checkpoint)), run_dir / "replay"
        batches = ((folder / info.name, read_listed(folder, info, game)) for info in infos)
    placed = (
        (record, f"{_iteration(path) or path.stem}.{number}")
        for path, records in batches
        for number, record in enumerate(records, 1)
    )
    for record, place in deque(placed, maxlen=last) if last is not None else placed:
        yield game, record, place


def game_text(game: CompiledGame, record: GameRecord, *, event: str, place: str, values: bool = False) -> str:
    """Return a game as PGN, ending in a line feed.

    Args:
        game: whose game it is.
        record: the game.
        event: its Event tag, such as the name of a run; names the players too.
        place: its Round tag.
        values: whether the root value for the mover follows each searched move as a comment.

    Raises:
        IllegalAction, InvalidFen: the record is not playable.
    """
    tags = {
        "Event": event,
        "Round": place,
        "White": f"{event}:{record.model_version}",
        "Black": f"{event}:{record.model_version}",
        "Result": CUT if math.isnan(record.white_score) else RESULTS[record.white_score],
        **_tags_of_record(record),
    }
    searched = range(record.opening_plies, record.num_plies) if values else ()
    return tagged_text(game, record, tags, {ply: f"{record.root_values[ply]:+.2f}" for ply in searched})


def tagged_text(
    game: CompiledGame, played: PlayedMoves, tags: Mapping[str, str], comments: Mapping[int, str] | None = None
) -> str:
    """Return a game as PGN with tags of one's own, ending in a line feed.

    Args:
        game: whose game it is.
        played: its moves.
        tags: what is known of the seven of the roster, Result among them, and others to stand after those of the rules.
        comments: what follows moves, by their plies from 0.

    Raises:
        IllegalAction, InvalidFen: the moves are not playable.
    """
    roster = {name: tags.get(name, unknown) for name, unknown in ROSTER.items()}
    further = {name: value for name, value in tags.items() if name not in roster}
    lines = {**roster, **_tags_of_rules(game.variant, played.start_fen), **further}
    head = [f'[{name} "{_escaped(value)}"]' for name, value in lines.items()]
    words = [*_movetext(game, played, comments or {}), roster["Result"]]
    body = textwrap.wrap(" ".join(words), LINE, break_long_words=False, break_on_hyphens=False)
    return "\n".join([*head, "", *body, ""])


def move_names(game: CompiledGame, played: PlayedMoves) -> list[str]:
    """Return the moves of a game in SAN, see the module.

    Raises:
        IllegalAction, InvalidFen: the moves are not playable.
    """
    rows, outcome = envs.replay_actions(game, played.start_fen, played.actions)
    words, counts, checks = legal_moves(game, rows)
    boards = envs.boards(game, rows).tolist()
    names = []
    for ply, action in enumerate(played.actions.tolist()):
        legal = words[ply, : counts[ply]].tolist()
        word = next(word for word in legal if word >> 16 & 0xFFFF == action)
        names.append(_move_name(game.variant, boards[ply], legal, word) + ("+" if checks[ply + 1] else ""))
    if names and outcome is not None and outcome.termination is Termination.CHECKMATE:
        names[-1] = names[-1].removesuffix("+") + "#"
    return names


def _movetext(game: CompiledGame, played: PlayedMoves, comments: Mapping[int, str]) -> Iterator[str]:
    """Yield the words of a game's moves: numbers, moves, comments."""
    fields = parse_fields(game.variant, played.start_fen)
    begin = 2 * fields.fullmove_number - 2 + fields.to_play
    is_apart = True  # a number stands before White's moves, the first move and those after a comment
    for ply, name in enumerate(move_names(game, played)):
        number, side = divmod(begin + ply, 2)
        if side == 0 or is_apart:
            yield f"{number + 1}{'.' if side == 0 else '...'}"
        yield name
        is_apart = ply in comments
        if is_apart:
            yield f"{{{comments[ply]}}}"


def _move_name(variant: Variant, board: list[int], legal: list[int], word: int) -> str:
    """Return a move in SAN without its mark of check.

    Args:
        variant: The game.
        board: piece codes by square, before the move.
        legal: move words of all legal moves.
        word: the move word.
    """
    if word >> layout.CASTLE_FLAG & 1:
        return _QUEENSIDE if word >> 36 & 1 else _KINGSIDE
    start, to = _ends_of(word)
    kind, names = (board[start] - 1) % layout.BLACK_CODE, variant.board.names
    is_pawn = variant.pawns is not None and kind == variant.pawns.piece
    has_victim, takes = bool(word >> layout.EXTRA_FLAG & 1), bool(board[to]) and to != start
    origin = _origin(names, start, _rivals(board, legal, word))
    if is_pawn and (takes or has_victim) and len(origin) < len(names[start]):
        origin = names[start][0]
    target = f"x{names[to]}" if takes or (is_pawn and has_victim) else names[to]
    if has_victim and not is_pawn:
        target = f"x{names[word >> 48 & 0xFF]}{'' if takes else '-'}{target}"
    promotion = word >> 32 & 15
    letter = "" if is_pawn else variant.piece_types[kind].letter
    return letter + origin + target + (f"={variant.piece_types[promotion - 1].letter}" if promotion else "")


def _rivals(board: list[int], legal: list[int], word: int) -> set[int]:
    """Return the squares of other pieces of one kind that may move to a move's target."""
    start, to = _ends_of(word)
    ends = [_ends_of(other) for other in legal if not other >> layout.CASTLE_FLAG & 1]
    return {source for source, target in ends if target == to and source != start and board[source] == board[start]}


def _ends_of(word: int) -> tuple[int, int]:
    return word & 0xFF, word >> 8 & 0xFF


def _origin(names: Sequence[str], start: int, rivals: set[int]) -> str:
    """Return the least that tells a square from others: nothing, its file, its rank or its name."""
    name, others = names[start], [names[square] for square in rivals]
    if not others:
        return ""
    if all(other[0] != name[0] for other in others):
        return name[0]
    return name[1:] if all(other[1:] != name[1:] for other in others) else name


def _tags_of_rules(variant: Variant, start_fen: str) -> dict[str, str]:
    options = [option for option, is_on in variant.options.items() if is_on]
    return {
        "Variant": variant.name,
        **({"Options": ", ".join(options)} if options else {}),
        **({"SetUp": "1", "FEN": start_fen} if start_fen != variant.start_fen else {}),
    }


def _tags_of_record(record: GameRecord) -> dict[str, str]:
    ending = Termination(record.termination).name.lower().replace("_", " ") if record.termination else ""
    unended = "resignation" if record.resigned else "unterminated"
    return {
        "Termination": "normal" if ending else unended,
        **({"Ending": ending} if ending else {}),
        "PlyCount": str(record.num_plies),
        "ModelVersion": str(record.model_version),
        "Start": record.start_kind,
        "OpeningPlies": str(record.opening_plies),
        "Seed": str(record.seed),
    }


def _escaped(text: str) -> str:
    """Return a tag's value on one line, quotes and backslashes escaped."""
    plain = "".join(letter if letter.isprintable() else " " for letter in text)
    return plain.replace("\\", "\\\\").replace('"', '\\"')


def variant_of(checkpoint: Checkpoint) -> Variant:
    """Return the game of a checkpoint, rebuilt from the file that it holds."""
    game = checkpoint.state[GAME]
    return variant_from_document(game["document"], game["options"], name=game["name"])


def _variant_of_run(shard: Path) -> Variant:
    try:
        return variant_of(load_run_or_checkpoint(shard.resolve().parents[1]))
    except FileNotFoundError:
        raise ValueError(f"{shard}: lies in no run's folder, so its game must be named") from None


def _iteration(shard: Path) -> int | None:
    """Return the iteration that a shard's name stands for, counted from 1."""
    return int(shard.stem) + 1 if shard.stem.isdecimal() else None


def _newest(infos: list[ShardInfo], games: int) -> list[ShardInfo]:
    """Return the newest shards that hold so many games."""
    first = len(infos)
    while first > 0 and games > 0:
        first -= 1
        games -= infos[first].num_games
    return infos[first:]
