"""Games checked by the rules before they are stored; wrong ones go to quarantine, and many of them stop the run.

Dims: T plies of a game, E entries of its sparse policies.
"""

from __future__ import annotations

import hashlib
import logging
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

import envs
from models.storage import write_atomically
from train.shards import ENDING, GameRecord, ShardInfo, encode_games, write_shard

if TYPE_CHECKING:
    from envs import CompiledGame

POLICY_SUM_TOLERANCE = 1e-3
WHITE_SCORES = {"w": 1.0, "b": 0.0, None: 0.5}
"""White's score by the winner."""
OPPONENTS = {"w": "b", "b": "w"}
MAX_QUARANTINED = 100
"""Games in quarantine; with one more the run stops, since no rare accident makes so many."""
MAX_KIND = 40
_REASON_ENDING = ".txt"
_log = logging.getLogger(__name__)


class TooManyBadGames(ValueError):
    """Self-play makes wrong games; what they are lies in quarantine."""


def verify_game(game: CompiledGame, record: GameRecord) -> str | None:
    """Replay a game by the rules and compare everything that can be compared.

    Args:
        game: whose game it is.
        record: the game.

    Returns:
        None if the record is right, else the first thing that is wrong, in words.
    """
    return _form_fault(game, record) or _rules_fault(game, record) or _policy_fault(game, record)


def hold_out(games: Sequence[GameRecord], share: float) -> list[GameRecord]:
    """Return games with a share of them marked as held out; each game's seed alone decides on it."""
    return [replace(record, held_out=_fraction(record.seed) < share) for record in games]


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

    Raises:
        TooManyBadGames: more than `MAX_QUARANTINED` lie in quarantine; nothing is stored.
        OSError: the disk is full, or there is such a shard.
    """
    good: list[GameRecord] = []
    bad = 0
    for number, record in enumerate(games):
        reason = verify_game(game, record)
        if reason is None:
            good.append(record)
            continue
        bad += 1
        _put_in_quarantine(game, record, reason, quarantine / f"{name}-{number}")
        _log.error("game %d of %s put in quarantine: %s", number, name, reason)
    return (write_shard(folder, name, good, game) if good else None), bad


def _fraction(seed: int) -> float:
    """Return a number in [0, 1) that is evenly spread over seeds, however those are chosen."""
    return int.from_bytes(hashlib.sha256(b"held out %d" % seed).digest()[:8], "big") / 2**64


def _put_in_quarantine(game: CompiledGame, record: GameRecord, reason: str, place: Path) -> None:
    """Write a bad game as `place.npz`, if it can be written, and what is wrong as `place.txt`."""
    folder = place.parent
    folder.mkdir(parents=True, exist_ok=True)
    number = sum(1 for _ in folder.glob(f"*{_REASON_ENDING}"))
    if number >= MAX_QUARANTINED:
        raise TooManyBadGames(
            f"{folder}: {number} games lie in quarantine, and the next one is wrong too ({reason}): find out why, then "
            "move the folder away and resume"
        )
    try:
        content = encode_games([record], game)
    except (ValueError, TypeError, OverflowError) as error:
        reason += f"\nthe game itself cannot be written: {error}"
    else:
        write_atomically(place.with_name(place.name + ENDING), content)
    write_atomically(place.with_name(place.name + _REASON_ENDING), f"{reason}\n".encode())


def _form_fault(game: CompiledGame, record: GameRecord) -> str | None:
    """Return what is wrong with types, shapes and ranges, or None."""
    plies, entries = np.shape(record.actions)[:1], np.shape(record.policy_actions)[:1]
    expected = {
        "actions": (plies, np.int32),
        "states": ((*plies, game.state_words), np.uint64),
        "policy_index": ((sum(plies) + 1,), np.int64),
        "policy_actions": (entries, np.int32),
        "policy_probs": (entries, np.float32),
        "root_values": (plies, np.float32),
    }
    for name, (shape, dtype) in expected.items():
        array = getattr(record, name)
        if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype != dtype or not shape:
            found = f"{getattr(array, 'dtype', type(array).__name__)} {np.shape(array)}"
            return f"{name} is {found}, expected {np.dtype(dtype).name} {shape}"
    ends = record.policy_index
    if ends[0] != 0 or ends[-1] != sum(entries) or (np.diff(ends) < 0).any():
        return f"policy_index does not divide {sum(entries)} entries"
    limits = {"seed": 1 << 64, "model_version": 1 << 63, "opening_plies": record.num_plies + 1, "termination": 256}
    for name, limit in limits.items():
        number = getattr(record, name)
        if isinstance(number, bool) or not isinstance(number, int | np.integer) or not 0 <= number < limit:
            return f"{name} is {number!r:.60} in a game of {record.num_plies} plies, expected 0 to {limit - 1}"
    for name, kind in (("start_fen", str), ("start_kind", str), ("resigned", str), ("white_score", float)):
        value = getattr(record, name)
        if not isinstance(value, kind):
            return f"{name} is {value!r:.60}, expected a {kind.__name__}"
    if not 0 < len(record.start_kind) <= MAX_KIND:
        return f"start_kind is {record.start_kind!r:.60}"
    if not (np.abs(record.root_values) <= 1).all():
        return "a root value is outside [-1, 1]"
    return None


def _rules_fault(game: CompiledGame, record: GameRecord) -> str | None:
    """Return where a game is not what the rules make of its moves, or None."""
    try:
        played, outcome = envs.replay_actions(game, record.start_fen, record.actions)
    except (envs.IllegalAction, envs.InvalidFen) as error:
        return f"not playable: {error}"
    wrong = np.flatnonzero((played[:-1] != record.states).any(axis=1))
    if len(wrong):
        return f"position before ply {wrong[0]} is not the one that the moves lead to"
    termination = 0 if outcome is None else outcome.termination.value
    if record.termination != termination:
        return f"termination is {record.termination}, by the rules {termination}"
    if record.resigned not in ("", "w", "b") or (record.resigned and outcome is not None):
        return f"resigned is {record.resigned!r:.60} in a game whose termination is {termination}"
    score = math.nan if outcome is None else WHITE_SCORES[outcome.winner]
    if record.resigned:
        score = WHITE_SCORES[OPPONENTS[record.resigned]]
    if record.white_score != score and not (math.isnan(score) and math.isnan(record.white_score)):
        return f"white_score is {record.white_score}, by the rules {score}"
    return None


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
    twice = _first_repeated(row * game.num_actions + actions)
    if twice is not None:
        return f"the policy of ply {plies[row[twice]]} lists an action twice"
    if not (record.policy_probs >= 0).all():
        return "a policy holds a probability below 0"
    totals = np.add.reduceat(record.policy_probs, record.policy_index[plies])
    off = np.flatnonzero(~(np.abs(totals - 1) <= POLICY_SUM_TOLERANCE))
    return f"the policy of ply {plies[off[0]]} sums to {totals[off[0]]:.4f}" if len(off) else None


def _first_repeated(keys: npt.NDArray[np.int64]) -> int | None:
    """Return the place of a key that occurs a second time, or None."""
    order = np.argsort(keys, kind="stable")
    repeats = order[1:][np.diff(keys[order]) == 0]
    return int(repeats.min()) if len(repeats) else None
