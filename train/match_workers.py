"""Who plays the games of matches: this process, or processes of a local Ray, each with players of its own.

Players are made from their texts wherever they play. A job is some games of one match that are played in lockstep; the
games are the same however they are spread over jobs and processes, unless a player thinks by the clock. A process that
dies takes no game with it: each of those it was playing is played again alone, and one that kills a process again has
failed, by nobody knows whom.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from envs import Variant, variant_from_document
from train.arena import MatchSettings
from train.evaluation_tables import EvaluationTable, held_table, hold_table
from train.match_games import CRASH, GameOrder, PlayedGame, play_games
from train.players import GRAPHS, Contestant, make_player
from train.plugins import Plugin, import_plugins
from train.workers import SINGLE_THREAD, start_ray

MOST_GAMES = 128
"""Games in lockstep at most: half of them wait for either player, and networks evaluate 64 positions at once."""
LEAST_GAMES = 2
JOBS_PER_WORKER = 4
"""So that all workers end at about the same time."""


@dataclass(frozen=True)
class CrewTask:
    """What all players of a crew share, by content.

    Attributes:
        document: the merged variant file.
        options: option name -> on.
        name: of the variant.
        simulations: see `players.make_player`.
        seconds: likewise.
        plugins: of the players.
        graphs: see `players.GRAPHS`.
        table: the learned evaluation of the game; None if no player needs one.
    """

    document: Mapping[str, Any]
    options: Mapping[str, bool]
    name: str
    simulations: int
    seconds: float | None
    plugins: tuple[Plugin, ...]
    graphs: Mapping[str, bytes]
    table: EvaluationTable | None

    @classmethod
    def of(
        cls, variant: Variant, *, simulations: int, seconds: float | None = None, plugins: tuple[Plugin, ...] = ()
    ) -> CrewTask:
        """Return the task of a game; what this process has exported or learned the workers need not do again."""
        game = variant.document, variant.options, variant.name
        return cls(*game, simulations, seconds, plugins, dict(GRAPHS), held_table(variant))


@dataclass(frozen=True)
class Job:
    """Games of one match.

    Attributes:
        players: texts of its first and its second player.
        settings: of the match.
        orders: the games.
        is_retry: a process that played them has died.
    """

    players: tuple[str, str]
    settings: MatchSettings
    orders: tuple[GameOrder, ...]
    is_retry: bool = False


Played = tuple[Job, PlayedGame]


class Crew(Protocol):
    """Plays jobs."""

    def play(self, jobs: Iterable[Job]) -> Generator[Played, None, None]:
        """Yield games as they end; jobs begin in their order. Whoever stops asking stops the games."""
        ...

    def close(self) -> None:
        """End the processes."""
        ...


def jobs_of(
    players: tuple[str, str],
    settings: MatchSettings,
    orders: Sequence[GameOrder],
    *,
    workers: int,
    most: int = MOST_GAMES,
) -> list[Job]:
    """Divide games of a match into jobs of about equal size.

    Args:
        players: texts of the first and the second player.
        settings: of the match.
        orders: the games.
        workers: processes that share them; 0 is one, this process.
        most: games of a job at most, even.
    """
    share = -(-len(orders) // (max(1, workers) * (JOBS_PER_WORKER if workers else 1)))
    size = min(max(share + share % 2, LEAST_GAMES), most)
    return [Job(players, settings, tuple(orders[first : first + size])) for first in range(0, len(orders), size)]


def start_crew(task: CrewTask, workers: int) -> Crew:
    """Start a crew: 0 workers are this process, more are a local Ray's."""
    return LocalCrew(task) if workers == 0 else RayCrew(task, workers)


class LocalCrew:
    """This process."""

    def __init__(self, task: CrewTask) -> None:
        """Make a crew whose players are made when they are needed."""
        import_plugins(task.plugins)
        GRAPHS.update(task.graphs)
        if task.table is not None:
            hold_table(task.table)
        self._task = task
        self._variant = variant_from_document(task.document, task.options, name=task.name)
        self._players: dict[str, Contestant] = {}

    def play(self, jobs: Iterable[Job]) -> Generator[Played, None, None]:
        """See `Crew`."""
        for job in jobs:
            players = self._player(job.players[0]).player, self._player(job.players[1]).player
            for game in play_games(self._variant, players, job.orders, settings=job.settings):
                yield job, game

    def close(self) -> None:
        """Do nothing: there is no process to end."""

    def _player(self, text: str) -> Contestant:
        if text not in self._players:
            self._players[text] = make_player(text, simulations=self._task.simulations, seconds=self._task.seconds)
        return self._players[text]


class RayCrew:
    """Processes of a local Ray, one job each at a time."""

    def __init__(self, task: CrewTask, workers: int) -> None:
        """Start Ray; its processes start with the first jobs.

        Args:
            task: what the players share.
            workers: processes.
        """
        self._ray, self._session = start_ray(workers)
        try:
            remote: Any = self._ray.remote
            self._class = remote(num_cpus=1, runtime_env={"env_vars": SINGLE_THREAD})(_MatchActor)
            self._task = self._ray.put(task)
        except BaseException:
            self.close()
            raise
        self._idle: list[Any] = [None] * workers
        """Actors that wait, None for those that have not been started."""

    def play(self, jobs: Iterable[Job]) -> Generator[Played, None, None]:
        """See `Crew`."""
        waiting, retries = iter(jobs), deque[Job]()
        under_way: dict[Any, _UnderWay] = {}
        try:
            while True:
                while self._idle and (job := retries.popleft() if retries else next(waiting, None)) is not None:
                    begun = self._begin(job)
                    under_way[begun.games] = begun
                if not under_way:
                    return
                ready, _ = self._ray.wait(list(under_way), num_returns=1)
                begun = under_way[ready[0]]
                game, died = self._next(begun)
                if game is not None:
                    yield begun.job, game
                    continue
                del under_way[begun.games]
                self._idle.append(None if died else begun.actor)
                if died and begun.job.is_retry:
                    yield from ((begun.job, _killed(order)) for order in begun.left)
                elif died:
                    retries.extend(replace(begun.job, orders=(order,), is_retry=True) for order in begun.left)
        finally:
            for begun in under_way.values():  # whoever asked has had enough
                self._ray.kill(begun.actor)
                self._idle.append(None)

    def close(self) -> None:
        """See `Crew`."""
        self._ray.shutdown()
        self._session.close()

    def _begin(self, job: Job) -> _UnderWay:
        actor = self._idle.pop() or self._class.remote(self._task)
        return _UnderWay(job, actor, actor.play.options(num_returns="streaming").remote(job), list(job.orders))

    def _next(self, begun: _UnderWay) -> tuple[PlayedGame | None, bool]:
        """Return the next game of a job, None at its end; and whether its process died."""
        from ray import exceptions

        try:
            game: PlayedGame = self._ray.get(next(begun.games))
        except StopIteration:
            return None, False
        except exceptions.RayTaskError as error:
            cause: Any = error
            raise cause.as_instanceof_cause() from None
        except (exceptions.RayActorError, exceptions.WorkerCrashedError, exceptions.OutOfMemoryError):
            return None, True
        begun.left = [
            order for order in begun.left if (order.pair, order.first_is_white) != (game.pair, game.first_is_white)
        ]
        return game, False


@dataclass(eq=False)
class _UnderWay:
    """A job that an actor plays: the generator of its games, and the games that have not ended."""

    job: Job
    actor: Any
    games: Any
    left: list[GameOrder]


class _MatchActor:
    """A `LocalCrew` in a process of its own."""

    def __init__(self, task: CrewTask) -> None:
        self._crew = LocalCrew(task)

    def play(self, job: Job) -> Iterator[PlayedGame]:
        """Yield the games of a job as they end."""
        for _, game in self._crew.play([job]):
            yield game


def _killed(order: GameOrder) -> PlayedGame:
    """Return a game that killed the process it was played in."""
    return PlayedGame(
        pair=order.pair,
        first_is_white=order.first_is_white,
        score=None,
        ending=CRASH,
        plies=len(order.opening.moves),
        start_fen=order.opening.start_fen,
        moves=" ".join(order.opening.moves),
        failure="the process that played this game died, twice",
    )
