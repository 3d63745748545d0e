"""Matches between two players: paired openings, colours swapped, scores with the pairs as units.

Dims: P pairs of games. Both games of a pair begin with one opening; the first player is White in one and Black in the
other. A game that reaches the ply cap is scored as a draw here (nobody won it) and counted apart. Nothing is
adjudicated. A game in which a player failed, and its pair's other game, count for nobody; they are listed by player
and kind.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from envs import Variant, VectorEnv
from train import ratings
from train.match_games import FAILURES, PLY_CAP, PlayedGame, PlayerFailed, orders_of, play_games
from train.openings import Opening, draw_openings
from train.ratings import Interval, elo_interval, normal_elo, pentanomial_counts, score_interval, superiority

LEAST_PAIRS = 2
"""Fewer have no interval."""
Progress = Callable[[int, int], None]


class Player(Protocol):
    """Chooses moves for any number of games at once.

    One whose choices depend on nothing but the games may say so with an attribute `is_deterministic = True`: it is then
    asked for many games at once. Any other is asked game by game, each with its own random stream, so that a game is
    the same whatever is played beside it.

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
        games: two for each pair, at least 4.
        random_plies: length of the openings.
        seed: of openings and players.
        max_plies: ply cap, opening included.
        balanced: openings are near equal, see `openings`.
    """

    games: int
    random_plies: int = 4
    seed: int = 0
    max_plies: int = 300
    balanced: bool = False

    def __post_init__(self) -> None:
        """Refuse a match that cannot be played.

        Raises:
            ValueError: a field is out of range.
        """
        if self.games < 4 or self.games % 2:
            raise ValueError(f"games is {self.games}, expected an even number of at least 4: pairs of games")
        if not 0 <= self.random_plies < self.max_plies:
            raise ValueError(f"random_plies is {self.random_plies}, expected 0 to {self.max_plies - 1}")

    def openings(self, variant: Variant) -> list[Opening]:
        """Draw the openings, one for each pair.

        Raises:
            ValueError: there are not enough.
        """
        return draw_openings(variant, self.games // 2, plies=self.random_plies, seed=self.seed, balanced=self.balanced)


@dataclass(frozen=True)
class Failure:
    """Games that a player's failures ended.

    Attributes:
        player: its name; "a process" where a process died, which does not say for whom.
        kind: one of `match_games.FAILURES`.
        games: how many.
        example: what happened in one of them.
    """

    player: str
    kind: str
    games: int
    example: str


@dataclass(frozen=True)
class MatchResult:
    """A match, finished or not, from the first player's view. Games count in whole pairs only.

    Attributes:
        players: names of the first and the second player.
        variant: name of the game.
        options: its options.
        rules_hash: of its compiled rules.
        settings: how it was to be played.
        wins: games won.
        draws: games drawn, those cut by the ply cap included.
        losses: games lost.
        pair_scores: mean score of the two games of each pair, [P].
        starts: FEN from which each pair's opening begins, [P].
        openings: moves of each pair's opening, [P].
        white_score: White's mean score over the games; NaN without any.
        terminations: games by how they ended: `Termination` names in lower case, and `ply_cap`.
        distinct_games: different games, by start and moves.
        plies: mean length of the games, openings included; NaN without any.
        left_out: games that ended and do not count, since they or their pair's other game failed or is missing.
        failures: of the players.
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
    left_out: int = 0
    failures: tuple[Failure, ...] = ()

    @classmethod
    def of(
        cls, variant: Variant, players: tuple[str, str], settings: MatchSettings, games: Iterable[PlayedGame]
    ) -> MatchResult:
        """Sum up games of a match, in any order.

        Args:
            variant: the game.
            players: names of the first and the second player.
            settings: of the match.
            games: those that have ended, failed ones among them.
        """
        ended = sorted(games, key=lambda game: (game.pair, not game.first_is_white))
        pairs = _whole_pairs(ended)
        counted = [game for pair in pairs for game in pair]
        scores = np.array([game.score for game in counted], np.float64)
        white = np.where([game.first_is_white for game in counted], scores, 1 - scores)
        opening = [pair[0].moves.split()[: settings.random_plies] for pair in pairs]
        return cls(
            players=players,
            variant=variant.name,
            options=dict(variant.options),
            rules_hash=variant.rules_hash,
            settings=settings,
            wins=int((scores == 1).sum()),
            draws=int((scores == 0.5).sum()),
            losses=int((scores == 0).sum()),
            pair_scores=tuple(scores.reshape(-1, 2).mean(axis=1).tolist()) if counted else (),
            starts=tuple(pair[0].start_fen for pair in pairs),
            openings=tuple(map(tuple, opening)),
            white_score=float(white.mean()) if counted else float("nan"),
            terminations=dict(Counter(game.ending for game in counted).most_common()),
            distinct_games=len({(game.start_fen, game.moves) for game in counted}),
            plies=float(np.mean([game.plies for game in counted])) if counted else float("nan"),
            left_out=len(ended) - len(counted),
            failures=_failures(players, ended),
        )

    @property
    def games(self) -> int:
        """Games that count; all of them, `settings.games`, unless the match was stopped or a player failed."""
        return 2 * len(self.pair_scores)

    @property
    def score(self) -> Interval:
        """The first player's score with its 95 % interval; the pairs are the units. All of [0, 1] below two pairs."""
        if len(self.pair_scores) < LEAST_PAIRS:
            return Interval(float(np.mean(self.pair_scores or [np.nan])), 0.0, 1.0)
        return score_interval(self.pair_scores)

    @property
    def unfinished(self) -> int:
        """Games that were asked for and have not ended; those that have are then rather the short ones."""
        return self.settings.games - self.games - self.left_out

    @property
    def cut_games(self) -> int:
        """Games cut by the ply cap."""
        return self.terminations.get(PLY_CAP, 0)

    def to_document(self) -> dict[str, Any]:
        """Return plain data (JSON-able); what is unbounded or has no value is null."""
        return {
            "players": list(self.players),
            "variant": self.variant,
            "options": self.options,
            "rules_hash": self.rules_hash,
            "games": self.games,
            "games_asked": self.settings.games,
            "random_plies": self.settings.random_plies,
            "balanced": self.settings.balanced,
            "max_plies": self.settings.max_plies,
            "seed": self.settings.seed,
            "wins": self.wins,
            "draws": self.draws,
            "losses": self.losses,
            "score": self.score.to_document(),
            "elo": elo_interval(self.score).to_document(),
            "superiority": superiority(self.pair_scores),
            "pentanomial": pentanomial_counts(self.pair_scores).tolist(),
            "normal": asdict(normal_elo(pentanomial_counts(self.pair_scores))) if self.pair_scores else None,
            "white_score": self.white_score if self.pair_scores else None,
            "terminations": self.terminations,
            "cut_games": self.cut_games,
            "distinct_games": self.distinct_games,
            "plies": self.plies if self.pair_scores else None,
            "left_out": self.left_out,
            "unfinished": self.unfinished,
            "failures": [asdict(failure) for failure in self.failures],
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
    """Play a match to its end in this process, all games in lockstep.

    Args:
        variant: the game.
        players: first and second player.
        settings: games, openings, seed and ply cap.
        progress: called with the games finished and wanted, whenever some have finished.

    Raises:
        IllegalAction: a player chose an illegal action; the message names both.
        ValueError: there are not enough distinct openings, or a player's answer has the wrong shape.
        Exception: whatever a player raises.
    """
    games = []
    orders = orders_of(settings.openings(variant))
    for game in play_games(variant, players, orders, settings=settings, on_failure=_raise):
        games.append(game)
        if progress:
            progress(len(games), settings.games)
    return MatchResult.of(variant, (players[0].name, players[1].name), settings, games)


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


def _raise(failure: PlayerFailed) -> None:
    raise failure.error


def _whole_pairs(games: Iterable[PlayedGame]) -> list[list[PlayedGame]]:
    """Return the pairs both of whose games have a score."""
    pairs: defaultdict[int, list[PlayedGame]] = defaultdict(list)
    for game in games:
        if game.score is not None:
            pairs[game.pair].append(game)
    return [pair for pair in pairs.values() if len(pair) == 2]


def _failures(players: tuple[str, str], games: Sequence[PlayedGame]) -> tuple[Failure, ...]:
    found: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for game in games:
        if game.ending in FAILURES:
            who = "a process" if game.failed is None else players[game.failed]
            found[who, game.ending].append(game.failure)
    return tuple(Failure(*key, len(examples), examples[0]) for key, examples in found.items())
