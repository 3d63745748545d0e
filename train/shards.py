"""Finished games on disk: immutable compressed shards, checked by the rules before they are stored.

Dims: T plies of a game, Wd words of a packed position, E entries of the sparse policies of a game.

A shard is an `.npz` of plain arrays (nothing pickled) with its games laid end to end, and a JSON text that
says which format, rules and actions they were written with. It holds all that showing, re-valuing or
exporting takes.
"""

from __future__ import annotations

import io
import json
import logging
import math
import tokenize
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import envs
from envs.layout import LAYOUT_VERSION
from models.storage import CheckpointMismatch, CorruptFile, read_regular, sha256_hex, write_atomically

if TYPE_CHECKING:
    from envs import CompiledGame

FORMAT = 1
POLICY_SUM_TOLERANCE = 1e-3
WHITE_SCORES = {"w": 1.0, "b": 0.0, None: 0.5}
"""White's score by the winner."""

_UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    ValueError,
    LookupError,
    TypeError,
    EOFError,
    SyntaxError,  # NumPy reads an array's header as Python
    tokenize.TokenError,
    OSError,
    RuntimeError,
)
"""All that NumPy and zipfile raise on damaged files."""
_log = logging.getLogger(__name__)


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
        num_rows: plies that train; openings do not.
        num_policy_rows: those among them that have a policy.
    """

    name: str
    sha256: str
    num_games: int
    num_rows: int
    num_policy_rows: int


def write_shard(folder: Path, name: str, games: Sequence[GameRecord], game: CompiledGame) -> ShardInfo:
    """Store games as `folder/name.npz`; when this returns, the disk has it.

    Args:
        folder: made if missing.
        name: file name without ending.
        games: at least one; not checked, see `store_games`.
        game: whose games they are.

    Raises:
        OSError: the disk is full or the folder cannot be written; nothing has changed.
    """
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
    content = buffer.getvalue()
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / f"{name}.npz", content)
    return _info(f"{name}.npz", content, games)


def read_shard(path: Path, game: CompiledGame, *, sha256: str | None = None) -> list[GameRecord]:
    """Read a shard.

    Args:
        path: the file.
        game: whose games it must hold.
        sha256: digest that the run's manifest holds; None trusts the archive's own checksums.

    Raises:
        CorruptFile: the file is missing, truncated, changed or no shard.
        CheckpointMismatch: it holds games of other rules or actions, or of a newer format.
    """
    content = read_regular(path)
    if sha256 is not None and sha256_hex(content) != sha256:
        raise CorruptFile(f"{path}: {len(content)} bytes whose SHA-256 is not the manifest's")
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        meta = json.loads(arrays.pop("meta").tobytes())
    except _UNREADABLE as error:
        raise CorruptFile(f"{path}: unreadable ({type(error).__name__}: {error})") from None
    _check_meta(meta, game, path)
    try:
        return _split(arrays, meta["games"], game.state_words)
    except _UNREADABLE as error:
        raise CorruptFile(f"{path}: arrays do not fit together ({error})") from None


def verify_game(game: CompiledGame, record: GameRecord) -> str | None:
    """Replay a game by the rules and compare everything that can be compared.

    Args:
        game: whose game it is.
        record: the game.

    Returns:
        None if the record is right, else the first thing that is wrong, in words.
    """
    if not 0 <= record.opening_plies <= record.num_plies:
        return f"{record.opening_plies} opening plies in a game of {record.num_plies}"
    try:
        played, outcome = envs.replay_actions(game, record.start_fen, record.actions)
    except (envs.IllegalAction, envs.InvalidFen) as error:
        return f"not playable: {error}"
    states = played[:-1]
    if states.shape != record.states.shape:
        return f"{len(record.states)} positions, expected {len(states)}"
    wrong = np.flatnonzero((states != record.states).any(axis=1))
    if len(wrong):
        return f"position before ply {wrong[0]} is not the one that the moves lead to"
    termination = 0 if outcome is None else outcome.termination.value
    if record.termination != termination:
        return f"termination is {record.termination}, by the rules {termination}"
    score = math.nan if outcome is None else WHITE_SCORES[outcome.winner]
    if record.white_score != score and not (math.isnan(score) and math.isnan(record.white_score)):
        return f"white_score is {record.white_score}, by the rules {score}"
    if not (np.abs(record.root_values[record.opening_plies :]) <= 1).all():
        return "a root value is outside [-1, 1]"
    return _policy_fault(game, record)


def store_games(
    game: CompiledGame, games: Sequence[GameRecord], *, folder: Path, name: str, quarantine: Path
) -> tuple[ShardInfo | None, int]:
    """Verify games and store the right ones; the others go to quarantine, one shard and one reason each.

    Args:
        game: whose games they are.
        games: finished games.
        folder: of the shards.
        name: file name without ending.
        quarantine: folder for bad games.

    Returns:
        The shard, None if no game is left, and the number of games put in quarantine.
    """
    good: list[GameRecord] = []
    bad = 0
    for number, record in enumerate(games):
        reason = verify_game(game, record)
        if reason is None:
            good.append(record)
            continue
        bad += 1
        write_shard(quarantine, f"{name}-{number}", [record], game)
        write_atomically(quarantine / f"{name}-{number}.txt", f"{reason}\n".encode())
        _log.error("game %d of %s put in quarantine: %s", number, name, reason)
    return (write_shard(folder, name, good, game) if good else None), bad


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
            }
            for record in games
        ],
    }


def _check_meta(meta: Any, game: CompiledGame, path: Path) -> None:
    """Raise unless a shard was written for this game by a known format."""
    keys = ("format", "rules_hash", "action_hash", "layout", "games")
    if not isinstance(meta, dict) or any(key not in meta for key in keys):
        raise CorruptFile(f"{path}: no shard: lacks one of {', '.join(keys)}")
    if meta["format"] != FORMAT:
        raise CheckpointMismatch(f"{path}: format {meta['format']}, this version reads {FORMAT}")
    now = {"rules_hash": game.variant.rules_hash, "action_hash": game.encoding.hash, "layout": LAYOUT_VERSION}
    changed = [key for key, value in now.items() if meta[key] != value]
    if changed:
        raise CheckpointMismatch(f"{path}: games of another game than {game.variant.name}: {', '.join(changed)}")


def _split(arrays: dict[str, NDArray[Any]], metas: list[dict[str, Any]], state_words: int) -> list[GameRecord]:
    """Cut a shard's arrays into games; ValueError where they do not fit together."""
    lengths, counts = arrays["lengths"], arrays["policy_counts"]
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
    if (lengths < 0).any() or (counts < 0).any():
        raise ValueError("a negative count")
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
    trained = [np.diff(record.policy_index)[record.opening_plies :] for record in games]
    return ShardInfo(
        name=name,
        sha256=sha256_hex(content),
        num_games=len(games),
        num_rows=sum(len(counts) for counts in trained),
        num_policy_rows=sum(int((counts > 0).sum()) for counts in trained),
    )


def _policy_fault(game: CompiledGame, record: GameRecord) -> str | None:
    """Return what is wrong with a game's policies, or None."""
    counts = np.diff(record.policy_index)
    plies = np.flatnonzero(counts)
    if len(plies) == 0:
        return None
    legal, _ = envs.legal_actions(game, np.ascontiguousarray(record.states[plies]))
    in_range = (record.policy_actions >= 0) & (record.policy_actions < game.num_actions)
    actions = np.where(in_range, record.policy_actions, game.num_actions)
    is_legal = np.zeros((len(plies), game.num_actions + 1), dtype=bool)  # the last column takes the padding
    np.put_along_axis(is_legal, legal, True, axis=1)
    row = np.repeat(np.arange(len(plies)), counts[plies])
    listed = is_legal[row, actions] & in_range
    if not listed.all():
        return f"the policy of ply {plies[row[~listed][0]]} lists an illegal action"
    if not (record.policy_probs >= 0).all():
        return "a policy holds a probability below 0"
    totals = np.add.reduceat(record.policy_probs, record.policy_index[plies])
    off = np.flatnonzero(~(np.abs(totals - 1) <= POLICY_SUM_TOLERANCE))
    return f"the policy of ply {plies[off[0]]} sums to {totals[off[0]]:.4f}" if len(off) else None
