"""A search in a thread of its own, while the protocol goes on reading."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Thread, Timer

from envs import CompiledGame
from train.engine_game import Root
from train.engine_thinkers import NO_SCORE, Limits, Line, Report, Stop, Thinker, Thought


@dataclass(frozen=True)
class Task:
    """What is to be searched.

    Attributes:
        thinker: Searches.
        root: The position; without a legal move nothing is searched.
        limits: When to end.
    """

    thinker: Thinker
    root: Root
    limits: Limits


@dataclass(frozen=True)
class Listener:
    """Who is told, from the search's thread.

    Attributes:
        report: Is given what has been found so far.
        answer: Is given the result, once.
        complain: Is told what went wrong.
    """

    report: Report
    answer: Callable[[Thought], None]
    complain: Callable[[str], None]


class RunningSearch:
    """One search; it answers exactly once."""

    def __init__(self, task: Task, listener: Listener, *, held: bool = False) -> None:
        """Start it.

        Args:
            task: What is to be searched.
            listener: Who is told.
            held: Whether the answer is kept back until `stop` or `release`.
        """
        self._task, self._listener = task, listener
        self._stop = Stop(held=held)
        self._timer: Timer | None = None
        self._thread = Thread(target=self._run, name="search", daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        """Whether the answer has not been given yet."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """End the search and wait until it has answered."""
        self._stop.set()
        self.join()

    def release(self, seconds: float | None) -> None:
        """Let the answer out as soon as it is found.

        Args:
            seconds: How much longer to search at most; None for no limit.
        """
        if seconds is not None:
            self._timer = Timer(seconds, self._stop.set)
            self._timer.daemon = True
            self._timer.start()
        self._stop.release()

    def join(self) -> None:
        """Wait until the search has answered."""
        self._thread.join()
        if self._timer is not None:
            self._timer.cancel()

    def _run(self) -> None:
        thought = think_safely(self._task, self._stop, self._listener)
        self._stop.wait()
        self._listener.answer(thought)


def think_safely(task: Task, stop: Stop, listener: Listener) -> Thought:
    """Think; where that fails, or there is nothing to search, return the first move, or none where none is legal.

    Args:
        task: What is to be searched.
        stop: Ends the search early.
        listener: Who is told.
    """
    if not task.root.is_over:
        try:
            return task.thinker.think(task.root, task.limits, stop, listener.report)
        except Exception as error:  # noqa: BLE001 - whatever happens, the GUI is owed a move
            listener.complain(f"the search failed: {type(error).__name__}: {error}")
    moves = (task.limits.only or task.root.moves)[:1]
    return Thought(tuple(Line((move,), 0, None, NO_SCORE) for move in moves), 0, 0, 0, 0.0)


def prepare_safely(thinker: Thinker, game: CompiledGame, complain: Callable[[str], None]) -> None:
    """Prepare a thinker for a game, and say it where that fails."""
    try:
        thinker.prepare(game)
    except Exception as error:  # noqa: BLE001 - the conversation goes on, and the search will say it again
        complain(f"{game.variant.name}: {type(error).__name__}: {error}")
