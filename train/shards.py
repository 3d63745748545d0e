"""Finished games on disk: immutable compressed shards, and the index of a run's shards.

Dims: T plies of a game, Wd words of a packed position, E entries of the sparse policies of a game.

A shard is an `.npz` of plain arrays (nothing pickled) with its games laid end to end, and a JSON text that
says which format, rules and actions they were written with. It holds all that re-encoding, re-valuing or
exporting takes. `verification.py` checks games by the rules before they are stored.

The index is a list of `ShardInfo` in the state of each checkpoint, so that every checkpoint stands alone: 210 bytes a
shard, two megabytes and a tenth of a second for 10,000.
"""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from envs.layout import LAYOUT_VERSION
from models.storage import CheckpointMismatch, CorruptFile, read_regular, sha256_hex, write_atomically
from train.archives import MAX_BYTES, UNREADABLE, read_archive

if TYPE_CHECKING:
    from envs import CompiledGame

FORMAT, OLDEST_FORMAT = 2, 1
"""Format 1 knew neither resigned nor held-out games."""
ENDING = ".npz"
ARRAYS = ("lengths", "actions", "states", "policy_counts", "policy_actions", "policy_probs", "root_values")
_YOUNGER_COUNTS = ("num_entries", "num_held_out_rows")
"""What an index of format 1 lacks; 0 there."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}\.npz", re.ASCII)
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True, eq=False)
class GameRecord:
    """One game of self-play, finished by its rules or cut by the ply cap.

    Attributes:
        start_fen: where it began.
        actions: int32 [T], side-relative action ids.
        states: uint64 [T, Wd], the packed position before each action.
        policy_index: int64 [T + 1]; the policy of ply t is entries policy_index[t] to policy_index[t + 1];
            none after a fast search, which trains the value only.
        policy_actions: int32 [E].
        policy_probs: float32 [E], summing to 1 for each ply that has entries.
        root_values: float32 [T] in [-1, 1], for the mover; what the search thought.
        white_score: 1, 0.5 or 0; nan if the game was cut.
        termination: `Termination` value; 0 if the game was cut.
        model_version: version of the weights that played the last move.
        seed: seed of the game's own random stream.
        opening_plies: plies played at random before search began; they train nothing.
        start_kind: "array", "odds" or "random".
        resigned: "w" or "b" if that side gave up, else empty; then no rule had ended the game.
        held_out: whether it never trains, so that the loss on it shows what was learnt.
    """

    start_fen: str
    actions: NDArray[np.int32]
    states: NDArray[np.uint64]
    policy_index: NDArray[np.int64]
    policy_actions: NDArray[np.int32]
    policy_probs: NDArray[np.float32]
    root_values: NDArray[np.float32]
    white_score: float
    termination: int
    model_version: int
    seed: int
    opening_plies: int
    start_kind: str
    resigned: str = ""
    held_out: bool = False

    @property
    def num_plies(self) -> int:
        """T."""
        return len(self.actions)


@dataclass(frozen=True)
class ShardInfo:
    """What a run's manifest keeps of a shard (JSON-able by `dataclasses.asdict`).

    Attributes:
        name: file name, without folder.
        sha256: of the file's content.
        num_games: games.
        num_rows: plies that train; those of openings and of held-out games do not.
        num_policy_rows: those among them that have a policy.
        num_entries: moves that their policies list.
        num_held_out_rows: plies of held-out games, openings apart.
    """

    name: str
    sha256: str
    num_games: int
    num_rows: int
    num_policy_rows: int
    num_entries: int = 0
    num_held_out_rows: int = 0

    def __post_init__(self) -> None:
        """Raise ValueError or TypeError if the name is no plain file name, or a count is none."""
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"shard: expected a plain file name ending in {ENDING}, got {self.name!r:.99}")
        if not _DIGEST.fullmatch(self.sha256):
            raise ValueError(f"shard {self.name}: expected a SHA-256, got {self.sha256!r:.99}")
        counts = {name: value for name, value in vars(self).items() if name.startswith("num_")}
        if any(type(value) is not int or value < 0 for value in counts.values()):
            raise ValueError(f"shard {self.name}: expected counts from 0, got {counts}")


def write_index(infos: Iterable[ShardInfo]) -> list[dict[str, Any]]:
    """Return an index as a checkpoint's state keeps it (JSON-able); `read_index` reads it back."""
    return [asdict(info) for info in infos]


def read_index(document: Any, where: str) -> list[ShardInfo]:
    """Read an index.

    Args:
        document: what `write_index` returned.
        where: its name in errors.

    Raises:
        CorruptFile: it is no list of shards, or names one twice.
    """
    known = {field.name for field in fields(ShardInfo)}
    try:
        infos = [ShardInfo(**{key: value for key, value in entry.items() if key in known}) for entry in document]
    except (TypeError, ValueError, AttributeError) as error:
        raise CorruptFile(f"{where}: no index of shards ({error})") from None
    if len({info.name for info in infos}) < len(infos):
        raise CorruptFile(f"{where}: lists a shard twice")
    return infos


def encode_games(games: Sequence[GameRecord], game: CompiledGame) -> bytes:
    """Return games as the content of a shard; `decode_games` reads it back."""
    arrays: dict[str, NDArray[Any]] = {
        "meta": np.frombuffer(json.dumps(_meta(games, game), allow_nan=False).encode(), dtype=np.uint8),
        "lengths": np.array([record.num_plies for record in games], dtype=np.int32),
        "actions": np.concatenate([record.actions for record in games]),
        "states": np.concatenate([record.states for record in games]),
        "policy_counts": np.concatenate([np.diff(record.policy_index) for record in games]).astype(np.int32),
        "policy_actions": np.concatenate([record.policy_actions for record in games]),
        "policy_probs": np.concatenate([record.policy_probs for record in games]),
        "root_values": np.concatenate([record.root_values for record in games]),
    }
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def write_shard(folder: Path, name: str, games: Sequence[GameRecord], game: CompiledGame) -> ShardInfo:
    """Store games as `folder/name.npz`; when this returns, the disk has it.

    Args:
        folder: made if missing.
        name: file name without ending.
        games: at least one; not checked, see `store_games`.
        game: whose games they are.

    Raises:
        FileExistsError: there is such a shard; shards never change.
        OSError: the disk is full or the folder cannot be written; nothing has changed.
    """
    path = folder / f"{name}{ENDING}"
    if path.exists():
        raise FileExistsError(f"{path}: there is such a shard, and shards never change")
    content = encode_games(games, game)
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(path, content)
    return _info(path.name, content, games)


def read_shard(path: Path, game: CompiledGame, *, sha256: str | None = None) -> list[GameRecord]:
    """Read a shard; what its games say is not checked by the rules.

    Args:
        path: the file.
        game: whose games it must hold.
        sha256: digest that the run's index holds; None trusts the archive's own checksums.

    Raises:
        CorruptFile: the file is missing, truncated, changed, too large or no shard.
        CheckpointMismatch: it holds games of other rules or actions, or of a newer format.
    """
    if path.is_file() and path.stat().st_size > MAX_BYTES:
        raise CorruptFile(f"{path}: {path.stat().st_size} bytes, expected at most {MAX_BYTES}")
    content = read_regular(path)
    if sha256 is not None and sha256_hex(content) != sha256:
        raise CorruptFile(f"{path}: {len(content)} bytes whose SHA-256 is not the manifest's")
    return decode_games(content, game, path)


def read_listed(folder: Path, info: ShardInfo, game: CompiledGame) -> list[GameRecord]:
    """Read a shard that an index lists.

    Raises:
        CorruptFile, CheckpointMismatch: see `read_shard`; or its counts are not those of the index.
    """
    path = folder / info.name
    records = read_shard(path, game, sha256=info.sha256)
    counts = _counts(records)
    listed = {key: getattr(info, key) for key in counts}
    wrong = [f"{key} {n}" for key, n in listed.items() if n != counts[key] and (n or key not in _YOUNGER_COUNTS)]
    if wrong:
        raise CorruptFile(f"{path}: the index says {', '.join(wrong)}; it holds {counts}")
    return records


def decode_games(content: bytes, game: CompiledGame, path: Path) -> list[GameRecord]:
    """Read what `encode_games` returned; `path` is its name in errors.

    Raises:
        CorruptFile, CheckpointMismatch: see `read_shard`.
    """
    arrays = read_archive(content, ("meta", *ARRAYS), path)
    try:
        meta = json.loads(arrays.pop("meta").tobytes())
    except UNREADABLE as error:
        raise CorruptFile(f"{path}: unreadable ({type(error).__name__}: {error})") from None
    _check_meta(meta, game, path)
    try:
        return _split(arrays, [_game_meta(entry) for entry in meta["games"]], game.state_words)
    except UNREADABLE as error:
        raise CorruptFile(f"{path}: arrays do not fit together ({error})") from None


def _meta(games: Sequence[GameRecord], game: CompiledGame) -> dict[str, Any]:
    """Return what a shard says beside its arrays."""
    return {
        "format": FORMAT,
        "rules_hash": game.variant.rules_hash,
        "action_hash": game.encoding.hash,
        "layout": LAYOUT_VERSION,
        "games": [
            {
                "start_fen": record.start_fen,
                "white_score": None if math.isnan(record.white_score) else record.white_score,
                "termination": int(record.termination),
                "model_version": int(record.model_version),
                "seed": int(record.seed),
                "opening_plies": int(record.opening_plies),
                "start_kind": record.start_kind,
                "resigned": record.resigned,
                "held_out": record.held_out,
            }
            for record in games
        ],
    }


def _check_meta(meta: Any, game: CompiledGame, path: Path) -> None:
    """Raise unless a shard was written for this game by a known format."""
    keys = ("format", "rules_hash", "action_hash", "layout", "games")
    if not isinstance(meta, dict) or any(key not in meta for key in keys):
        raise CorruptFile(f"{path}: no shard: lacks one of {', '.join(keys)}")
    if meta["format"] not in range(OLDEST_FORMAT, FORMAT + 1):
        raise CheckpointMismatch(
            f"{path}: format {meta['format']!r:.20}, this version reads {OLDEST_FORMAT} to {FORMAT}"
        )
    now = {"rules_hash": game.variant.rules_hash, "action_hash": game.encoding.hash, "layout": LAYOUT_VERSION}
    changed = [key for key, value in now.items() if meta[key] != value]
    if changed:
        raise CheckpointMismatch(f"{path}: games of another game than {game.variant.name}: {', '.join(changed)}")


_META_TYPES: Mapping[str, tuple[type, ...]] = {
    "start_fen": (str,),
    "white_score": (float, int, type(None)),
    "termination": (int,),
    "model_version": (int,),
    "seed": (int,),
    "opening_plies": (int,),
    "start_kind": (str,),
    "resigned": (str,),
    "held_out": (bool,),
}
_YOUNGER_KEYS: Mapping[str, Any] = {"resigned": "", "held_out": False}
"""What format 1 lacks."""


def _game_meta(entry: Any) -> dict[str, Any]:
    """Return what a shard says of one game; ValueError where a key is missing, unknown or of another type."""
    if not isinstance(entry, dict):
        raise ValueError(f"a game that is {type(entry).__name__}")
    found = {**_YOUNGER_KEYS, **entry}
    wrong = [key for key, types in _META_TYPES.items() if type(found.get(key, ...)) not in types]
    if wrong or found.keys() != _META_TYPES.keys():
        raise ValueError(f"a game whose keys are {', '.join(map(str, found))[:200]}, wrong: {', '.join(wrong)}")
    if any(type(value) is int and not 0 <= value < 1 << 64 for value in found.values()):
        raise ValueError("a game with a number out of range")
    return found


def _split(arrays: dict[str, NDArray[Any]], metas: list[dict[str, Any]], state_words: int) -> list[GameRecord]:
    """Cut a shard's arrays into games; ValueError where they do not fit together."""
    lengths, counts = arrays["lengths"], arrays["policy_counts"]
    if min(lengths.min(initial=0), counts.min(initial=0)) < 0:
        raise ValueError("a negative count")
    rows, entries = int(lengths.sum()), int(counts.sum())
    expected = {
        "lengths": ((len(metas),), np.int32),
        "actions": ((rows,), np.int32),
        "states": ((rows, state_words), np.uint64),
        "policy_counts": ((rows,), np.int32),
        "policy_actions": ((entries,), np.int32),
        "policy_probs": ((entries,), np.float32),
        "root_values": ((rows,), np.float32),
    }
    for name, (shape, dtype) in expected.items():
        if arrays[name].shape != shape or arrays[name].dtype != dtype:
            raise ValueError(f"{name} is {arrays[name].dtype} {arrays[name].shape}, expected {shape}")
    row_ends = np.cumsum(lengths)
    if any(not 0 <= meta["opening_plies"] <= length for meta, length in zip(metas, lengths)):
        raise ValueError("more opening plies than plies")
    index = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
    return [
        _cut(arrays, index, slice(int(end - length), int(end)), meta)
        for meta, length, end in zip(metas, lengths, row_ends)
    ]


def _cut(arrays: dict[str, NDArray[Any]], index: NDArray[np.int64], rows: slice, meta: dict[str, Any]) -> GameRecord:
    """Return one game of a shard; its arrays are views."""
    first, last = int(index[rows.start]), int(index[rows.stop])
    fields = dict(meta)
    score = fields.pop("white_score")
    return GameRecord(
        actions=arrays["actions"][rows],
        states=arrays["states"][rows],
        policy_index=index[rows.start : rows.stop + 1] - first,
        policy_actions=arrays["policy_actions"][first:last],
        policy_probs=arrays["policy_probs"][first:last],
        root_values=arrays["root_values"][rows],
        white_score=math.nan if score is None else float(score),
        **fields,
    )


def _info(name: str, content: bytes, games: Sequence[GameRecord]) -> ShardInfo:
    """Describe a shard."""
    return ShardInfo(name=name, sha256=sha256_hex(content), **_counts(games))


def _counts(games: Sequence[GameRecord]) -> dict[str, int]:
    """Return the counts of a `ShardInfo`."""
    kept_apart = sum(record.num_plies - record.opening_plies for record in games if record.held_out)
    trained = [np.diff(record.policy_index)[record.opening_plies :] for record in games if not record.held_out]
    return {
        "num_games": len(games),
        "num_rows": sum(len(counts) for counts in trained),
        "num_policy_rows": sum(int((counts > 0).sum()) for counts in trained),
        "num_entries": sum(int(counts.sum()) for counts in trained),
        "num_held_out_rows": kept_apart,
    }
