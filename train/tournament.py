"""Matches of a crew: what is missing is played, every game is kept as it ends, and a stopped match goes on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Protocol

from envs import Variant
from train.arena import MatchResult, MatchSettings
from train.match_file import Pairing
from train.match_games import GameOrder, PlayedGame, orders_of
from train.match_workers import MOST_GAMES, Crew, Job, jobs_of
from train.openings import Opening
from train.players import Contestant
from train.sprt import Sprt

SEQUENTIAL_GAMES = 8
"""Games of a job at most while a test may end the match."""
Progress = Callable[[int], object]


class Games(Protocol):
    """Where the games of matches are kept: `MatchFile` or `GamesInMemory`."""

    def games(self, players: Pairing) -> list[PlayedGame]:
        """Return the games of a match that have ended."""
        ...

    def add(self, players: Pairing, game: PlayedGame) -> None:
        """Add a game."""
        ...


@dataclass(frozen=True)
class Fixture:
    """A match that is to be played.

    Attributes:
        texts: what makes the first and the second player.
        names: how results call them.
        keys: what tells their games from others, see `player_keys`.
    """

    texts: tuple[str, str]
    names: tuple[str, str]
    keys: tuple[str, str]

    @classmethod
    def of(cls, texts: tuple[str, str], players: Mapping[str, Contestant], keys: Mapping[str, str]) -> Fixture:
        """Return the match of two players, given by their texts, with what these made and their keys."""
        first, second = texts
        return cls(texts, (players[first].player.name, players[second].player.name), (keys[first], keys[second]))


class Tournament:
    """Plays fixtures of one game."""

    def __init__(  # noqa: PLR0913 - what matches need, and how they are divided
        self,
        variant: Variant,
        settings: MatchSettings,
        crew: Crew,
        games: Games,
        *,
        workers: int,
        most_games: int = MOST_GAMES,
        openings: Sequence[Opening] | None = None,
    ) -> None:
        """Nothing is played yet.

        Args:
            variant: the game.
            settings: of every match.
            crew: who plays.
            games: where games are kept; those that are there already are not played again.
            workers: processes of the crew, 0 for this one.
            most_games: in lockstep; where players think by the clock nothing is gained by many.
            openings: those of the settings; None draws them.

        Raises:
            ValueError: there are not enough openings.
        """
        self._variant, self._settings, self._crew, self._games, self._workers = variant, settings, crew, games, workers
        self._most_games = most_games
        self._orders = orders_of(settings.openings(variant) if openings is None else openings)

    def play(self, fixtures: Sequence[Fixture], progress: Progress = lambda done: None) -> None:
        """Play what is missing of matches; those of equal keys are one.

        Args:
            fixtures: the matches, begun in this order.
            progress: told the games that have ended, of all the fixtures together.
        """
        done = len(self._orders) * len(fixtures) - sum(len(self._missing(fixture)) for fixture in fixtures)
        progress(done)
        of_keys = {fixture.keys: fixture for fixture in reversed(fixtures)}
        distinct = [fixture for fixture in fixtures if of_keys[fixture.keys] is fixture]
        of_texts = {fixture.texts: fixture for fixture in distinct}
        times = Counter(fixture.keys for fixture in fixtures)
        for job, game in self._crew.play(
            job for fixture in distinct for job in self._jobs(fixture, self._missing(fixture))
        ):
            keys = of_texts[job.players].keys
            self._games.add(keys, game)
            done += times[keys]
            progress(done)

    def play_until(self, fixture: Fixture, sprt: Sprt, progress: Progress = lambda done: None) -> None:
        """Play a match until a test has decided, or to its end.

        Args:
            fixture: the match.
            sprt: the test.
            progress: told the games that have ended.
        """
        missing = self._missing(fixture)
        done = len(self._orders) - len(missing)
        jobs = self._jobs(fixture, missing, most=min(self._most_games, SEQUENTIAL_GAMES))
        if sprt.state(self.ordered_scores(fixture)).verdict is not None:
            return
        with closing(self._crew.play(jobs)) as playing:
            for _, game in playing:
                self._games.add(fixture.keys, game)
                done += 1
                progress(done)
                if sprt.state(self.ordered_scores(fixture)).verdict is not None:
                    return

    def ordered_scores(self, fixture: Fixture) -> list[float]:
        """Return the scores of a match's pairs in the order of their openings, as far as none is under way."""
        return [score for _, score in self._ordered(fixture) if score is not None]

    def result(self, fixture: Fixture, sprt: Sprt | None = None) -> MatchResult:
        """Return what there is of a match.

        Args:
            fixture: the match.
            sprt: with a test, only the pairs count that it looked at.
        """
        games = self._ended(fixture)
        if sprt is not None:
            looked_at = sprt.state(self.ordered_scores(fixture)).pairs
            scored = [pair for pair, score in self._ordered(fixture) if score is not None][:looked_at]
            games = [game for game in games if scored and game.pair <= scored[-1]]
        return MatchResult.of(self._variant, fixture.names, self._settings, games)

    def _ended(self, fixture: Fixture) -> list[PlayedGame]:
        """Return the games of a match that have ended, each once, without those beyond its length."""
        found = {(game.pair, game.first_is_white): game for game in self._games.games(fixture.keys)}
        return [game for (pair, _), game in found.items() if 2 * pair < len(self._orders)]

    def _ordered(self, fixture: Fixture) -> Iterator[tuple[int, float | None]]:
        """Yield pairs and their scores, None where a player failed, up to the first that is under way."""
        scores: dict[int, list[float | None]] = {}
        for game in self._ended(fixture):
            scores.setdefault(game.pair, []).append(game.score)
        for pair in range(len(self._orders) // 2):
            if len(scores.get(pair, [])) < 2:
                return
            first, second = scores[pair]
            yield pair, None if first is None or second is None else (first + second) / 2

    def _missing(self, fixture: Fixture) -> list[GameOrder]:
        ended = {(game.pair, game.first_is_white) for game in self._ended(fixture)}
        return [order for order in self._orders if (order.pair, order.first_is_white) not in ended]

    def _jobs(self, fixture: Fixture, orders: Sequence[GameOrder], *, most: int | None = None) -> list[Job]:
        most = self._most_games if most is None else most
        return jobs_of(fixture.texts, self._settings, orders, workers=self._workers, most=most)
