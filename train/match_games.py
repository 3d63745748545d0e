"""The games of a match: any set of them in lockstep, each of which is the same whatever is played beside it.

Dims: B games (lanes) under way, L of them asked at once. A game is a function of the match's settings, its opening and
its colours: every player has a random stream of its own in every game. Players that draw nothing say so with an
attribute `is_deterministic = True` and are asked for all their games at once; others are asked game by game.

A player that fails, by an exception or by a choice that is no legal action, loses nothing and wins nothing: the game
ends there without a score.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from envs import IllegalAction, Termination, Variant, VectorEnv
from train.openings import Opening

if TYPE_CHECKING:
    from train.arena import MatchSettings, Player

PLAYER_STREAM = 1
"""Random streams of a match's seed, further numbered by player, pair and colour; `openings.OPENING_STREAM` is
another."""
PLY_CAP = "ply_cap"
"""How games end that the ply cap cuts short; others end by a `Termination`, or a failure."""
CRASH, ILLEGAL_MOVE = "crash", "illegal_move"
FAILURES = (CRASH, ILLEGAL_MOVE)
ENDINGS = (*(termination.name.lower() for termination in Termination), PLY_CAP, *FAILURES)


@dataclass(frozen=True)
class GameOrder:
    """A game to play.

    Attributes:
        pair: number of its pair, from 0.
        first_is_white: whether the match's first player has White.
        opening: of the pair.
    """

    pair: int
    first_is_white: bool
    opening: Opening


@dataclass(frozen=True)
class PlayedGame:
    """A game that has ended.

    Attributes:
        pair: see `GameOrder`.
        first_is_white: see `GameOrder`.
        score: the first player's: 1, 1/2 or 0; 1/2 if the ply cap cut it; None if a player failed.
        ending: name of the `Termination` in lower case, `PLY_CAP`, or one of `FAILURES`.
        plies: its length, opening included.
        start_fen: where it began.
        moves: from there on, opening included, with spaces between.
        failed: who failed, 0 for the first player and 1 for the second; None if nobody did, or nobody knows who.
        failure: what that player did, with the position.
    """

    pair: int
    first_is_white: bool
    score: float | None
    ending: str
    plies: int
    start_fen: str
    moves: str
    failed: int | None = None
    failure: str = ""

    def to_document(self) -> dict[str, Any]:
        """Return plain data (JSON-able)."""
        return asdict(self)

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> PlayedGame:
        """Return the game in plain data.

        Raises:
            ValueError: a field is missing, unknown, of another type or out of range; says which.
        """
        names = [field.name for field in fields(cls)]
        if set(document) != set(names):
            raise ValueError(f"fields missing or unknown: {', '.join(sorted(set(document) ^ set(names)))}")
        has_score, moves = document["score"] is not None, document["moves"]
        _expect(document, "pair", (int,), "an integer of at least 0", lambda pair: pair >= 0)
        _expect(document, "first_is_white", (bool,), "true or false")
        _expect(
            document, "score", (int, float, type(None)), "0, 0.5, 1 or null", lambda score: score in (0, 0.5, 1, None)
        )
        _expect(document, "ending", (str,), f"one of {', '.join(ENDINGS)}", ENDINGS.__contains__)
        _expect(
            document, "ending", (str,), "a failure only without a score", lambda end: (end in FAILURES) != has_score
        )
        _expect(document, "start_fen", (str,), "text")
        _expect(document, "moves", (str,), "moves with one space between", lambda text: text == " ".join(text.split()))
        length = len(moves.split())
        _expect(document, "plies", (int,), f"the number of moves, {length}", lambda plies: plies == length)
        _expect(document, "failed", (int, type(None)), "0, 1 or null", lambda failed: failed in (0, 1, None))
        _expect(document, "failed", (int, type(None)), "null with a score", lambda who: who is None or not has_score)
        _expect(document, "failure", (str,), "text")
        return cls(**document)

    def check_opening(self, opening: Opening) -> None:
        """Refuse a game that does not begin with an opening.

        Raises:
            ValueError: it does not; says with what it begins.
        """
        begun = self.start_fen, tuple(self.moves.split()[: len(opening.moves)])
        if begun != (opening.start_fen, opening.moves):
            raise ValueError(
                f"pair {self.pair}: expected the opening {' '.join(opening.moves)} from {opening.start_fen}, "
                f"got {' '.join(begun[1])} from {begun[0]}"
            )


def _expect(
    document: Mapping[str, Any],
    name: str,
    types: tuple[type, ...],
    expected: str,
    is_right: Callable[[Any], bool] = lambda value: True,
) -> None:
    """Refuse a field that is of none of the types (True is no integer) or not right."""
    value = document[name]
    if type(value) not in types or not is_right(value):
        raise ValueError(f"{name}: expected {expected}, got {value!r}")


class PlayerFailed(Exception):
    """A player raised or chose no legal action.

    Attributes:
        kind: one of `FAILURES`.
        player: 0 for the match's first, 1 for its second.
        error: what it raised, or what says what it chose.
        lanes: int [L], where; of a crash all that it was asked for.
    """

    def __init__(self, kind: str, player: int, error: Exception, lanes: NDArray[np.intp]) -> None:
        super().__init__(str(error))
        self.kind, self.player, self.error, self.lanes = kind, player, error, lanes


def orders_of(openings: Sequence[Opening]) -> list[GameOrder]:
    """Return the games of a match, two for each opening: the first player has White, then Black."""
    return [GameOrder(pair, white, opening) for pair, opening in enumerate(openings) for white in (True, False)]


def play_games(
    variant: Variant,
    players: tuple[Player, Player],
    orders: Sequence[GameOrder],
    *,
    settings: MatchSettings,
    on_failure: Callable[[PlayerFailed], None] = lambda failure: None,
) -> Iterator[PlayedGame]:
    """Play games to their end.

    Args:
        variant: the game.
        players: the match's first and second player.
        orders: the games, in any order.
        settings: seed and ply cap of the match.
        on_failure: told of each failure before the game is given up; may raise.

    Yields:
        The games as they end.
    """
    if orders:
        yield from _Lockstep(variant, players, orders, settings).play(on_failure)


class _Lockstep:
    """Games under way."""

    def __init__(
        self,
        variant: Variant,
        players: tuple[Player, Player],
        orders: Sequence[GameOrder],
        settings: MatchSettings,
    ) -> None:
        self._env = VectorEnv(variant, len(orders), max_plies=settings.max_plies)
        self._players, self._orders = players, orders
        self._first_is_white = np.array([order.first_is_white for order in orders])
        self._streams = [
            [
                np.random.default_rng((settings.seed, PLAYER_STREAM, player, order.pair, int(order.first_is_white)))
                for order in orders
            ]
            for player in range(2)
        ]
        self._moves = [list(order.opening.moves) for order in orders]
        self._failures: dict[int, PlayerFailed] = {}
        self._running = np.ones(len(orders), np.bool_)
        for lane, order in enumerate(orders):
            self._env.set_fen(lane, order.opening.start_fen)
        for actions in zip(*(order.opening.actions for order in orders)):
            self._env.step(actions)

    def play(self, on_failure: Callable[[PlayerFailed], None]) -> Iterator[PlayedGame]:
        """Play on until all games have ended; yield each as it does."""
        while self._running.any():
            self._play_ply(on_failure)
            ended = np.flatnonzero(self._running & self._env.over).tolist()
            given_up = [lane for lane in self._failures if self._running[lane]]
            self._running[ended + given_up] = False
            yield from map(self._game, ended + given_up)

    def _play_ply(self, on_failure: Callable[[PlayerFailed], None]) -> None:
        """Let each player move in the running games where it is its turn."""
        env = self._env
        is_firsts_turn = self._first_is_white == (env.to_play == 0)
        actions = np.zeros(env.num_envs, dtype=np.int64)
        for player, has_turn in enumerate((is_firsts_turn, ~is_firsts_turn)):
            lanes = np.flatnonzero(self._running & has_turn)
            for asked in self._groups(player, lanes):
                self._fill(player, asked, actions, on_failure)
        moving = self._running.copy()
        moving[list(self._failures)] = False
        for lane in np.flatnonzero(moving).tolist():
            self._moves[lane].append(env.action_to_move(lane, int(actions[lane])))
        env.step(actions, moving)

    def _groups(self, player: int, lanes: NDArray[np.intp]) -> Iterator[NDArray[np.intp]]:
        """Yield lanes that a player is asked for at once."""
        if getattr(self._players[player], "is_deterministic", False):
            yield from [lanes] if lanes.size else []
        else:
            yield from lanes[:, None]

    def _fill(
        self,
        player: int,
        lanes: NDArray[np.intp],
        actions: NDArray[np.int64],
        on_failure: Callable[[PlayerFailed], None],
    ) -> None:
        """Ask a player for lanes; where it fails, ask for each alone, so that other games go on."""
        try:
            actions[lanes] = self._ask(player, lanes)
        except PlayerFailed as failure:
            if lanes.size == 1:
                on_failure(failure)
                self._failures[int(lanes[0])] = failure
                return
            for lane in lanes[:, None]:
                self._fill(player, lane, actions, on_failure)

    def _ask(self, number: int, lanes: NDArray[np.intp]) -> NDArray[np.int64]:
        """Ask a player, and check its answer."""
        player, env = self._players[number], self._env
        try:
            answer = player.choose(env, lanes, self._streams[number][lanes[0]])
        except Exception as error:  # whatever a player raises
            raise PlayerFailed(CRASH, number, error, lanes) from error
        actions = np.asarray(answer)
        if actions.shape != lanes.shape or actions.dtype.kind not in "iu":
            given = f"{actions.dtype} {list(actions.shape)}"
            shapeless = ValueError(f"{player.name}: expected {lanes.size} integer actions, got {given}")
            raise PlayerFailed(CRASH, number, shapeless, lanes)
        inside = (actions >= 0) & (actions < env.num_actions)
        legal = inside & env.legal_action_mask[lanes, np.where(inside, actions, 0)]
        if not legal.all():
            wrong = int(np.flatnonzero(~legal)[0])
            position = env.fen(int(lanes[wrong]))
            illegal = IllegalAction(f"{player.name} chose action {actions[wrong]}, which is illegal: {position}")
            raise PlayerFailed(ILLEGAL_MOVE, number, illegal, lanes)
        return actions.astype(np.int64)

    def _game(self, lane: int) -> PlayedGame:
        """Sum up a game that has ended."""
        env, order, failure = self._env, self._orders[lane], self._failures.get(lane)
        score, ending, failed, failed_how = None, "", None, ""
        if failure is not None:
            ending, failed = failure.kind, failure.player
            failed_how = f"{type(failure.error).__name__}: {failure.error}; in {env.fen(lane)}"
        else:
            white = 0.5 if env.truncated[lane] else float(env.white_score[lane])
            score = white if order.first_is_white else 1 - white
            ending = PLY_CAP if env.truncated[lane] else Termination(int(env.terminations[lane])).name.lower()
        return PlayedGame(
            pair=order.pair,
            first_is_white=order.first_is_white,
            score=score,
            ending=ending,
            plies=int(env.plies[lane]),
            start_fen=order.opening.start_fen,
            moves=" ".join(self._moves[lane]),
            failed=failed,
            failure=failed_how,
        )
