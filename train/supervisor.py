"""Supervision of worker processes: bounded requests, heartbeats, restarts. Knows nothing of Ray, nor of chess.

A worker that has died, or that answers neither a request nor a ping for too long, is ended and replaced by one with a
new life number (which gives it a fresh random stream), and is asked anew for what is missing. Exceptions of a worker's
own code are no deaths: they surface at once.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

_log = logging.getLogger(__name__)

REQUESTS_IN_FLIGHT = 2
"""One that a worker is at, and one that waits for it, so that it never waits for us."""
PINGS_PER_TIMEOUT = 4
LONGEST_WAIT_S = 1.0
LIVES = 1 << 16
"""Lives of a worker that may begin in one iteration."""

DEAD, HUNG, LOST, SERVICES = "restarted_dead", "restarted_hung", "lost_positions", "restarted_inference"
FAULTS = (DEAD, HUNG, LOST, SERVICES)
"""What is counted: workers that died, that hung, known positions of the games lost with them, inference processes."""


class ProcessDied(Exception):
    """A process or its machine is gone; what it was asked may have been done or not."""


class TooManyRestarts(RuntimeError):
    """A process died again and again without doing anything."""


class Process(Protocol):
    """One process of the fleet; the tickets that it gives are redeemed by the fleet."""

    def ask(self, method: str, *arguments: object) -> Hashable:
        """Ask for something; requests are done in the order in which they are made."""
        ...

    def ping(self) -> Hashable:
        """Ask for a sign of life, which comes at once, whatever the process is busy with."""
        ...

    def heard(self, answer: object) -> None:
        """Take the answer to a ping."""
        ...

    def kill(self) -> None:
        """End the process, suspended or not; it may be gone already."""
        ...


class Fleet(Protocol):
    """Starts processes and hears from them.

    Attributes:
        num_workers: processes that are given work.
        num_services: processes that those need, which are only watched.
    """

    num_workers: int
    num_services: int

    def start(self, number: int, life: int | None) -> Process:
        """Start a worker, without waiting for it; its first life has no number."""
        ...

    def start_service(self, number: int) -> Process:
        """Start, or start again, a process that serves the workers; only pinged here."""
        ...

    def ready(self, tickets: Sequence[Any], timeout_s: float) -> Sequence[Hashable]:
        """Wait for the first answers; none after the timeout."""
        ...

    def answer(self, ticket: Any) -> Any:
        """Return an answer that is ready.

        Raises:
            ProcessDied: There is none, and there will not be.
            Exception: Whatever the process's own code raised.
        """
        ...


class Job(Protocol):
    """What the workers are asked for in one call of `Supervisor.run`."""

    def next_request(self, number: int) -> tuple[object, ...] | None:
        """Return the next method and arguments for a worker, or None when it has been asked for everything."""
        ...

    def receive(self, number: int, answer: Any) -> None:
        """Take a worker's answer to the oldest of its requests."""
        ...

    def lose(self, number: int) -> None:
        """Forget what a worker was asked and has not answered; another takes its place."""
        ...


@dataclass(frozen=True)
class Patience:
    """When a process is given up.

    Attributes:
        heartbeat_timeout_s: silence after which a process counts as hung.
        start_timeout_s: the same for one that has not spoken yet.
        max_restarts: restarts of a worker in a row, without an answer between them, before all is given up.
    """

    heartbeat_timeout_s: float
    start_timeout_s: float
    max_restarts: int


@dataclass(eq=False)
class _Seat:
    """A place in the fleet, which processes take one after the other."""

    number: int
    is_service: bool
    process: Process
    heard_at: float
    requests: deque[Hashable] = field(default_factory=deque)
    ping: Hashable | None = None
    pinged_at: float | None = None
    has_spoken: bool = False
    deaths_in_a_row: int = 0
    first_death: str = ""


class Supervisor:
    """Keeps a fleet at full strength while it works.

    Attributes:
        iteration: of the run; lives that begin in it are numbered from `iteration * LIVES + 1`.
        faults: what happened so far, by the names in `FAULTS`.
    """

    def __init__(
        self,
        fleet: Fleet,
        patience: Patience,
        *,
        on_loss: Callable[[int], None] = lambda number: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start all processes, services first; does not wait for them.

        Args:
            fleet: What starts them.
            patience: When one is given up.
            on_loss: Told the number of each worker that is replaced.
            clock: Seconds.
        """
        self._fleet, self._patience, self._on_loss, self._clock = fleet, patience, on_loss, clock
        self._interval = min(LONGEST_WAIT_S, patience.heartbeat_timeout_s / PINGS_PER_TIMEOUT)
        services = [_Seat(number, True, fleet.start_service(number), clock()) for number in range(fleet.num_services)]
        self._workers = [
            _Seat(number, False, fleet.start(number, None), clock()) for number in range(fleet.num_workers)
        ]
        self._seats = services + self._workers
        self._lives = 0
        self.iteration = 0
        self.faults: Counter[str] = Counter(dict.fromkeys(FAULTS, 0))

    def begin_iteration(self, iteration: int) -> None:
        """Number the lives of replacements by this iteration from now on."""
        if iteration != self.iteration:
            self.iteration, self._lives = iteration, 0

    def run(self, job: Job) -> None:
        """Ask the workers for what a job says until all of it is answered.

        Raises:
            TooManyRestarts: A process died over and over; the message begins with the first death.
            Exception: What a worker's own code raised.
        """
        for seat in self._seats:
            seat.heard_at = self._clock()  # nobody listened between two jobs
            seat.requests.clear()  # of a job that failed
        for seat in self._workers:
            self._refill(seat, job)
        turned_at = self._clock()
        while any(seat.requests for seat in self._workers):
            now = self._clock()  # before the wait: a stop of this process is nobody's silence
            if now - turned_at > self._patience.heartbeat_timeout_s / 2:
                for seat in self._seats:
                    seat.heard_at = now
            turned_at = now
            self._ping_all()
            for seat, ticket in self._ready():
                self._take(seat, ticket, job)
            for seat in self._seats:
                if now - seat.heard_at > self._timeout(seat):
                    self._replace(seat, job, HUNG, f"no answer for {now - seat.heard_at:.0f} s")

    def _ready(self) -> list[tuple[_Seat, Hashable]]:
        waiting: dict[Hashable, _Seat] = {}
        for seat in self._seats:
            if seat.requests:
                waiting[seat.requests[0]] = seat
            if seat.ping is not None:
                waiting[seat.ping] = seat
        return [(waiting[ticket], ticket) for ticket in self._fleet.ready(list(waiting), self._interval)]

    def _take(self, seat: _Seat, ticket: Hashable, job: Job) -> None:
        """Read one answer, unless its process has been replaced meanwhile."""
        is_ping = ticket == seat.ping
        if not is_ping and not (seat.requests and ticket == seat.requests[0]):
            return
        try:
            answer = self._fleet.answer(ticket)
        except ProcessDied as death:
            self._replace(seat, job, DEAD, str(death))
            return
        seat.heard_at, seat.has_spoken = self._clock(), True
        if is_ping:
            seat.ping = None
            seat.process.heard(answer)
        else:
            seat.requests.popleft()
            job.receive(seat.number, answer)
            self._refill(seat, job)
        if seat.is_service or not is_ping:
            seat.deaths_in_a_row = 0

    def _refill(self, seat: _Seat, job: Job) -> None:
        while len(seat.requests) < REQUESTS_IN_FLIGHT:
            request = job.next_request(seat.number)
            if request is None:
                return
            method, *arguments = request
            seat.requests.append(seat.process.ask(str(method), *arguments))

    def _ping_all(self) -> None:
        now = self._clock()
        every = self._patience.heartbeat_timeout_s / PINGS_PER_TIMEOUT
        for seat in self._seats:
            if seat.ping is None and (seat.pinged_at is None or now - seat.pinged_at >= every):
                seat.ping, seat.pinged_at = seat.process.ping(), now

    def _timeout(self, seat: _Seat) -> float:
        return self._patience.heartbeat_timeout_s if seat.has_spoken else self._patience.start_timeout_s

    def _replace(self, seat: _Seat, job: Job, kind: str, cause: str) -> None:
        """End a process, count it, and let another take its seat and its work."""
        if kind == HUNG or not seat.is_service:
            seat.process.kill()  # a service that died restarts by itself
        self.faults[SERVICES if seat.is_service else kind] += 1
        seat.first_death = cause if not seat.deaths_in_a_row else seat.first_death
        seat.deaths_in_a_row += 1
        name = f"{'inference process' if seat.is_service else 'worker'} {seat.number}"
        if seat.deaths_in_a_row > self._patience.max_restarts:
            raise TooManyRestarts(
                f"{name} died {seat.deaths_in_a_row} times in a row without an answer, "
                f"ray.max_restarts is {self._patience.max_restarts}; the first time: {seat.first_death}"
            )
        _log.warning("%s is lost and replaced: %s", name, cause.partition("\n")[0])
        if seat.is_service:
            seat.process = self._fleet.start_service(seat.number)
        else:
            self._lives += 1
            seat.process = self._fleet.start(seat.number, self.iteration * LIVES + self._lives)
            self._on_loss(seat.number)
            job.lose(seat.number)
        seat.requests.clear()
        seat.ping, seat.pinged_at, seat.has_spoken, seat.heard_at = None, None, False, self._clock()
        if not seat.is_service:
            self._refill(seat, job)


class AskAll:
    """A job: one method of every worker, once; a replacement is asked again."""

    def __init__(self, method: str, arguments: Sequence[tuple[object, ...]]) -> None:
        """Say what to ask.

        Args:
            method: A method of the workers.
            arguments: Its arguments, by worker.
        """
        self._method, self._arguments = method, arguments
        self._asked = [False] * len(arguments)
        self.answers: list[Any] = [None] * len(arguments)
        """What the workers said, by worker."""

    def next_request(self, number: int) -> tuple[object, ...] | None:
        """See `Job`."""
        if self._asked[number]:
            return None
        self._asked[number] = True
        return (self._method, *self._arguments[number])

    def receive(self, number: int, answer: Any) -> None:
        """See `Job`."""
        self.answers[number] = answer

    def lose(self, number: int) -> None:
        """See `Job`."""
        self._asked[number] = False
