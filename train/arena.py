"""Matches between two players: paired openings, colours swapped, all games in lockstep in one environment.

Dims: B games (lanes), P = B / 2 pairs. Pair p is lanes 2p and 2p + 1: one opening, the first player is
White in the even lane and Black in the odd one. An opening is a number of uniformly random plies from the
start position; openings are distinct positions and not finished, and depend on the game, the number of
plies and the seed alone, so that other players meet the same ones: the first openings of a longer match are
those of a shorter one.

A game that reaches the ply cap is scored as a draw here (nobody won it) and counted apart. Nothing is
adjudicated.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from envs import IllegalAction, Termination, Variant, VectorEnv, legal_actions
from train import ratings
from train.ratings import Interval, elo_interval, pentanomial_counts, score_interval

PLY_CAP = "ply_cap"
"""Key of the games cut short in `MatchResult.terminations`."""
TRIES_PER_OPENING = 20
POSITION_FIELDS = 4
"""FEN fields that tell positions apart: board, side, castling rights, en passant."""
OPENING_STREAM, PLAYER_STREAM = 0, 1
"""Random streams of a match's seed."""

Progress = Callable[[int, int], None]


class Player(Protocol):
    """Chooses moves for any number of games at once.

    Attributes:
        name: how results call it.
    """

    name: str

    def choose(self, env: VectorEnv, lanes: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.int32]:
        """Choose a legal action for each lane.

        Args:
            env: the games; not changed.
            lanes: lanes to move in, [L]; all are running and wait for this player.
            rng: consumed as the player likes.

        Returns:
            int32 [L].
        """
        ...


@dataclass(frozen=True)
class MatchSettings:
    """How a match is played.

    Attributes:
        games: B, even and at least 4.
        random_plies: length of the openings.
        seed: of openings and players.
        max_plies: ply cap, opening included.
    """

    games: int
    random_plies: int = 4
    seed: int = 0
    max_plies: int = 300

    def __post_init__(self) -> None:
        """Refuse a match that cannot be played.

        Raises:
            ValueError: a field is out of range.
        """
        if self.games < 4 or self.games % 2:
            raise ValueError(f"games is {self.games}, expected an even number of at least 4: pairs of games")
        if not 0 <= self.random_plies < self.max_plies:
            raise ValueError(f"random_plies is {self.random_plies}, expected 0 to {self.max_plies - 1}")


@dataclass(frozen=True)
class MatchResult:
    """A finished match, from the first player's view.

    Attributes:
        players: names of the first and the second player.
        variant: name of the game.
        options: its options.
        rules_hash: of its compiled rules.
        settings: how it was played.
        wins: games won.
        draws: games drawn, those cut by the ply cap included.
        losses: games lost.
        pair_scores: mean score of the two games of each pair, [P].
        starts: FEN from which each pair's opening begins, [P].
        openings: moves of each pair's opening, [P].
        white_score: White's mean score over all games.
        terminations: games by how they ended: `Termination` names in lower case, and `ply_cap`.
        distinct_games: different games, by start and moves, among the B.
        plies: mean length of the games, openings included.
    """

    players: tuple[str, str]
    variant: str
    options: dict[str, bool]
    rules_hash: str
    settings: MatchSettings
    wins: int
    draws: int
    losses: int
    pair_scores: tuple[float, ...]
    starts: tuple[str, ...]
    openings: tuple[tuple[str, ...], ...]
    white_score: float
    terminations: dict[str, int]
    distinct_games: int
    plies: float

    @property
    def score(self) -> Interval:
        """The first player's score with its 95 % interval; the pairs are the units."""
        return score_interval(self.pair_scores)

    @property
    def cut_games(self) -> int:
        """Games cut by the ply cap."""
        return self.terminations.get(PLY_CAP, 0)

    def to_document(self) -> dict[str, Any]:
        """Return plain data (JSON-able); unbounded Elo ends are null."""
        return {
            "players": list(self.players),
            "variant": self.variant,
            "options": self.options,
            "rules_hash": self.rules_hash,
            "games": self.settings.games,
            "random_plies": self.settings.random_plies,
            "max_plies": self.settings.max_plies,
            "seed": self.settings.seed,
            "wins": self.wins,
            "draws": self.draws,
            "losses": self.losses,
            "score": self.score.to_document(),
            "elo": elo_interval(self.score).to_document(),
            "pentanomial": pentanomial_counts(self.pair_scores).tolist(),
            "white_score": self.white_score,
            "terminations": self.terminations,
            "cut_games": self.cut_games,
            "distinct_games": self.distinct_games,
            "plies": self.plies,
            "pair_scores": list(self.pair_scores),
            "starts": list(self.starts),
            "openings": [list(moves) for moves in self.openings],
        }


def play_match(
    variant: Variant,
    players: tuple[Player, Player],
    *,
    settings: MatchSettings,
    progress: Progress | None = None,
) -> MatchResult:
    """Play a match to its end.

    Args:
        variant: the game.
        players: first and second player.
        settings: games, openings, seed and ply cap.
        progress: called with the games finished and wanted, whenever some have finished.

    Raises:
        IllegalAction: a player chose an illegal action; the message names both.
        ValueError: there are not enough distinct openings, or a player's answer has the wrong shape.
    """
    openings = draw_openings(variant, settings.games // 2, plies=settings.random_plies, seed=settings.seed)
    match = _Match(variant, players, settings, openings)
    finished = 0
    while finished < settings.games:
        match.play_ply()
        now = int(match.env.over.sum())
        if progress and now > finished:
            progress(now, settings.games)
        finished = now
    return match.result()


@dataclass(frozen=True)
class Opening:
    """The first moves of a pair of games.

    Attributes:
        start_fen: where they begin, drawn with equal chance where the game has several start positions.
        actions: side-relative action ids.
        moves: the same as moves.
        position: the first four FEN fields that they lead to.
    """

    start_fen: str
    actions: tuple[int, ...]
    moves: tuple[str, ...]
    position: str


def draw_openings(variant: Variant, count: int, *, plies: int, seed: int) -> list[Opening]:
    """Draw openings of uniformly random moves that lead to distinct, unfinished positions.

    Args:
        variant: the game.
        count: openings wanted; the first ones are the same whatever it is.
        plies: length of each.
        seed: of the draws.

    Raises:
        ValueError: `TRIES_PER_OPENING` times `count` draws gave too few.
    """
    found: dict[str, Opening] = {}
    for first in range(0, TRIES_PER_OPENING * count, count):
        for opening in _candidates(variant, range(first, first + count), plies, seed):
            found.setdefault(opening.position, opening)
        if len(found) >= count:
            return list(found.values())[:count]
    raise ValueError(
        f"{variant.name}: {len(found)} distinct openings of {plies} random plies, {count} are needed: "
        "play fewer games or longer openings"
    )


def difference_interval(first: MatchResult, second: MatchResult) -> Interval:
    """Return how much better the first match's first player scored than the second's, with a 95 % interval.

    Args:
        first: a match.
        second: another one over the same openings, against the same opponent.

    Raises:
        ValueError: the openings or the opponents differ.
    """
    begun = [(match.rules_hash, match.starts, match.openings) for match in (first, second)]
    if begun[0] != begun[1]:
        raise ValueError("the matches have different openings: give both the same game, seed, plies and games")
    if first.players[1] != second.players[1]:
        raise ValueError(f"the matches have different opponents: {first.players[1]} and {second.players[1]}")
    return ratings.difference_interval(first.pair_scores, second.pair_scores)


def _candidates(variant: Variant, numbers: range, plies: int, seed: int) -> list[Opening]:
    """Play out the openings of these numbers; those that finish the game are left out."""
    streams = [np.random.default_rng((seed, OPENING_STREAM, number)) for number in numbers]
    draws = np.array([stream.random(plies) for stream in streams])
    starts = [variant.start_fens[int(stream.integers(len(variant.start_fens)))] for stream in streams]
    env = VectorEnv(variant, len(numbers))
    lanes = range(len(numbers))
    for lane, fen in enumerate(starts):
        env.set_fen(lane, fen)
    actions: list[list[int]] = [[] for _ in lanes]
    moves: list[list[str]] = [[] for _ in lanes]
    for ply in range(plies):
        legal, counts = legal_actions(env.game, env.states)
        drawn = legal.shape[1] - counts + (draws[:, ply] * counts).astype(np.int64)
        chosen = np.sort(legal, axis=1)[lanes, np.minimum(drawn, legal.shape[1] - 1)]
        for lane in np.flatnonzero(~env.over).tolist():
            actions[lane].append(int(chosen[lane]))
            moves[lane].append(env.action_to_move(lane, int(chosen[lane])))
        env.step(chosen)
    positions = [" ".join(env.fen(lane).split()[:POSITION_FIELDS]) for lane in lanes]
    played = map(Opening, starts, map(tuple, actions), map(tuple, moves), positions)
    return [opening for opening, over in zip(played, env.over.tolist()) if not over]


class _Match:
    """A match under way.

    Attributes:
        env: the B games.
    """

    def __init__(
        self,
        variant: Variant,
        players: tuple[Player, Player],
        settings: MatchSettings,
        openings: list[Opening],
    ) -> None:
        self.env = VectorEnv(variant, settings.games, max_plies=settings.max_plies)
        self._players, self._settings, self._openings = players, settings, openings
        self._first_is_white = np.arange(settings.games) % 2 == 0
        self._streams = [np.random.default_rng((settings.seed, PLAYER_STREAM, index)) for index in range(2)]
        self._history: list[NDArray[np.int64]] = []
        for lane in range(settings.games):
            self.env.set_fen(lane, openings[lane // 2].start_fen)
        for actions in zip(*(opening.actions for opening in openings)):
            self._step(np.repeat(np.array(actions, dtype=np.int64), 2))

    def play_ply(self) -> None:
        """Let each player move in the running games where it is its turn."""
        running = ~self.env.over
        is_firsts_turn = self._first_is_white == (self.env.to_play == 0)
        actions = np.zeros(self._settings.games, dtype=np.int64)
        for index, has_turn in enumerate((is_firsts_turn, ~is_firsts_turn)):
            lanes = np.flatnonzero(running & has_turn)
            if lanes.size:
                actions[lanes] = self._choose(index, lanes)
        self._step(actions)

    def result(self) -> MatchResult:
        """Sum up the finished match."""
        env, games = self.env, self._settings.games
        white = np.where(env.truncated, 0.5, env.white_score).astype(np.float64)
        scores = np.where(self._first_is_white, white, 1 - white)
        endings = Counter(Termination(number).name.lower() for number in env.terminations.tolist() if number)
        if env.truncated.any():
            endings[PLY_CAP] = int(env.truncated.sum())
        played = np.array(self._history).T
        return MatchResult(
            players=(self._players[0].name, self._players[1].name),
            variant=env.variant.name,
            options=dict(env.variant.options),
            rules_hash=env.variant.rules_hash,
            settings=self._settings,
            wins=int((scores == 1).sum()),
            draws=int((scores == 0.5).sum()),
            losses=int((scores == 0).sum()),
            pair_scores=tuple(scores.reshape(games // 2, 2).mean(axis=1).tolist()),
            starts=tuple(opening.start_fen for opening in self._openings),
            openings=tuple(opening.moves for opening in self._openings),
            white_score=float(white.mean()),
            terminations=dict(endings.most_common()),
            distinct_games=len(
                {(self._openings[lane // 2].start_fen, row.tobytes()) for lane, row in enumerate(played)}
            ),
            plies=float(env.plies.mean()),
        )

    def _choose(self, index: int, lanes: NDArray[np.intp]) -> NDArray[np.int64]:
        """Ask a player, and check its answer."""
        player = self._players[index]
        actions = np.asarray(player.choose(self.env, lanes, self._streams[index]))
        if actions.shape != lanes.shape or actions.dtype.kind not in "iu":
            given = f"{actions.dtype} {list(actions.shape)}"
            raise ValueError(f"{player.name}: expected {lanes.size} integer actions, got {given}")
        inside = (actions >= 0) & (actions < self.env.num_actions)
        legal = inside & self.env.legal_action_mask[lanes, np.where(inside, actions, 0)]
        if not legal.all():
            wrong = int(np.flatnonzero(~legal)[0])
            position = self.env.fen(int(lanes[wrong]))
            raise IllegalAction(f"{player.name} chose action {actions[wrong]}, which is illegal: {position}")
        return actions.astype(np.int64)

    def _step(self, actions: NDArray[np.int64]) -> None:
        self._history.append(np.where(self.env.over, -1, actions))
        self.env.step(actions)
