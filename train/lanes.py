"""Games under way: what self-play keeps of each, and all of them as bytes that a checkpoint holds.

The bytes are an `.npz` of two plain arrays (nothing pickled): a JSON text with what fixes each lane's future (random
state, budgets, streaks), and the moves so far as a shard (`shards.py`). Positions are not trusted: reading replays
every game by the rules.
"""

from __future__ import annotations

import io
import itertools
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from envs import CompiledGame
from models.storage import CheckpointMismatch, CorruptFile, parse_json
from train.archives import UNREADABLE, read_archive
from train.shards import GameRecord, decode_games, encode_games
from train.verification import verify_game

FORMAT = 1


@dataclass
class GameUnderWay:
    """A game of self-play that has not ended.

    Attributes:
        seed: of its own random stream.
        rng: that stream.
        start_fen: where it began.
        start_kind: see `GameRecord`.
        plays_on: whether it ignores resignation, to measure what that costs.
        opening_plies: random plies at its start.
        is_full: whether the search under way is a full one.
        streaks: how many own moves in a row White and Black have thought theirs lost.
        would_resign: -1, or the side that would have resigned: 0 White, 1 Black.
        states: uint64 [words], the position before each ply.
        actions: of each ply.
        values: root value of each ply, for its mover.
        policies: actions and probabilities of each ply; empty after a fast search.
    """

    seed: int
    rng: np.random.Generator
    start_fen: str
    start_kind: str
    plays_on: bool = False
    opening_plies: int = 0
    is_full: bool = False
    streaks: list[int] = field(default_factory=lambda: [0, 0])
    would_resign: int = -1
    states: list[npt.NDArray[np.uint64]] = field(default_factory=list)
    actions: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    policies: list[tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]] = field(default_factory=list)

    def record(
        self, white_score: float, termination: int, *, model_version: int, words: int, resigned: str = ""
    ) -> GameRecord:
        """Return the game as it stands; `words` is the width of a packed position."""
        sizes = [len(actions) for actions, _ in self.policies]
        none = np.zeros(0)
        return GameRecord(
            start_fen=self.start_fen,
            actions=np.array(self.actions, np.int32),
            states=np.array(self.states, np.uint64).reshape(-1, words),
            policy_index=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            policy_actions=np.concatenate([none, *(actions for actions, _ in self.policies)]).astype(np.int32),
            policy_probs=np.concatenate([none, *(chances for _, chances in self.policies)]).astype(np.float32),
            root_values=np.clip(np.array(self.values, np.float32), -1.0, 1.0),
            white_score=white_score,
            termination=termination,
            model_version=model_version,
            seed=self.seed,
            opening_plies=self.opening_plies,
            start_kind=self.start_kind,
            resigned=resigned,
        )


@dataclass(frozen=True)
class Lanes:
    """All that the games of one worker need to go on as if nothing had happened.

    Attributes:
        seed: what fixes the random streams of the games to come.
        num_games: games begun in each lane so far.
        games: the game of each lane.
    """

    seed: tuple[int, ...]
    num_games: tuple[int, ...]
    games: tuple[GameUnderWay, ...]


_FUTURE = ("plays_on", "is_full", "streaks", "would_resign")
"""Fields of a game under way that its record does not hold."""
_NOBODY_OR_SIDE = (-1, 0, 1)


def pack_lanes(lanes: Lanes, game: CompiledGame) -> bytes:
    """Return lanes as bytes; `unpack_lanes` reads them back."""
    futures = [
        {**{name: getattr(one, name) for name in _FUTURE}, "rng": one.rng.bit_generator.state} for one in lanes.games
    ]
    meta = {"format": FORMAT, "seed": lanes.seed, "num_games": lanes.num_games, "games": futures}
    records = [one.record(math.nan, 0, model_version=0, words=game.state_words) for one in lanes.games]
    buffer = io.BytesIO()
    np.savez(
        buffer,
        allow_pickle=False,
        meta=np.frombuffer(json.dumps(meta).encode(), np.uint8),
        games=np.frombuffer(encode_games(records, game), np.uint8),
    )
    return buffer.getvalue()


def unpack_lanes(content: bytes, game: CompiledGame, where: str) -> Lanes:
    """Read lanes and check every game by the rules.

    Args:
        content: What `pack_lanes` returned.
        game: Whose games they must be.
        where: Their name in errors.

    Raises:
        CorruptFile: They are damaged, or a game is not playable.
        CheckpointMismatch: They are of another game or a newer format.
    """
    try:
        arrays = read_archive(content, ("meta", "games"), where)
        meta, shard = parse_json(arrays["meta"].tobytes(), Path(where)), arrays["games"].tobytes()
        version, futures, num_games = int(meta["format"]), list(meta["games"]), _integers(meta["num_games"])
    except UNREADABLE as error:
        raise CorruptFile(f"{where}: unreadable ({type(error).__name__}: {error})") from None
    if version != FORMAT:
        raise CheckpointMismatch(f"{where}: format {version}, this version reads {FORMAT}")
    records = decode_games(shard, game, Path(where))
    if not len(records) == len(futures) == len(num_games):
        raise CorruptFile(f"{where}: {len(records)} games, {len(futures)} random states")
    for number, record in enumerate(records):
        fault = verify_game(game, record)
        if fault is not None:
            raise CorruptFile(f"{where}: the game of lane {number} is wrong: {fault}")
    try:
        games = tuple(_under_way(record, future) for record, future in zip(records, futures, strict=True))
        return Lanes(_integers(meta["seed"]), num_games, games)
    except UNREADABLE as error:
        raise CorruptFile(f"{where}: a lane's state does not fit ({type(error).__name__}: {error})") from None


def _integers(values: Sequence[Any]) -> tuple[int, ...]:
    return tuple(int(value) for value in values)


def _under_way(record: GameRecord, future: dict[str, Any]) -> GameUnderWay:
    """Join what a game's record and its future say."""
    rng = np.random.default_rng()
    rng.bit_generator.state = future["rng"]
    ends = record.policy_index
    return GameUnderWay(
        seed=record.seed,
        rng=rng,
        start_fen=record.start_fen,
        start_kind=record.start_kind,
        opening_plies=record.opening_plies,
        plays_on=bool(future["plays_on"]),
        is_full=bool(future["is_full"]),
        streaks=[int(future["streaks"][0]), int(future["streaks"][1])],
        would_resign=_NOBODY_OR_SIDE.index(future["would_resign"]) - 1,
        states=list(record.states),
        actions=record.actions.tolist(),
        values=record.root_values.tolist(),
        policies=[
            (record.policy_actions[first:last], record.policy_probs[first:last])
            for first, last in itertools.pairwise(ends)
        ],
    )
