"""The supervisor, with a fleet that is played by hand: who is asked for what, who is replaced, and when it ends."""

from collections import deque
from types import SimpleNamespace

import pytest

from train.quotas import CHUNKS, Order, QuotaJob
from train.selfplay import SelfPlayStats
from train.supervisor import (
    DEAD,
    HUNG,
    LIVES,
    REQUESTS_IN_FLIGHT,
    SERVICES,
    AskAll,
    Patience,
    ProcessDied,
    Supervisor,
    TooManyRestarts,
)
from train.worker import ChunkPlayed

OVERSHOOT = 3
"""Positions that a round adds to what was asked for."""
PATIENCE = Patience(heartbeat_timeout_s=10.0, start_timeout_s=30.0, max_restarts=2)


class FakeProcess:
    """Does one request in a second of the fleet's clock; may die after some, hang after some, or never start."""

    def __init__(self, fleet, number, life, *, dies_after=None, hangs_after=None, fails_after=None, busy_until=0):
        self.fleet, self.number, self.life = fleet, number, life
        self.limits = SimpleNamespace(dies=dies_after, hangs=hangs_after, fails=fails_after, busy=busy_until)
        self.requests, self.pings, self.answers = deque(), deque(), {}
        self.done = self.made = 0
        self.most_in_flight = 0
        self.is_killed = self.is_dead = False

    def ask(self, method, *arguments):
        ticket = object()
        self.requests.append((ticket, method, arguments))
        self.most_in_flight = max(self.most_in_flight, len(self.requests))
        return ticket

    def ping(self):
        self.pings.append(object())
        return self.pings[-1]

    def heard(self, answer):
        assert answer == "here"

    def kill(self):
        self.is_killed = True

    def hangs(self):
        return self.limits.hangs is not None and self.done >= self.limits.hangs

    def work(self):
        if self.is_killed or self.hangs():
            return
        self.is_dead = self.limits.dies is not None and self.done >= self.limits.dies
        while self.pings:
            self.answers[self.pings.popleft()] = ProcessDied("dead") if self.is_dead else "here"
        if self.requests and not self.is_dead and self.fleet.now >= self.limits.busy:
            ticket, method, arguments = self.requests.popleft()
            fails = self.limits.fails is not None and self.done >= self.limits.fails
            self.answers[ticket] = KeyError("a bug") if fails else self.answer(method, arguments)
            self.done += 1
        elif self.is_dead:
            self.answers.update((ticket, ProcessDied(f"life {self.life} broke")) for ticket, *_ in self.requests)
            self.requests.clear()

    def answer(self, method, arguments):
        if method != "play_chunk":
            return f"{method} {self.number} {self.life} {arguments}"
        _, chunk = arguments
        assert chunk.is_first == (self.made == 0)
        made = max(0, chunk.target - self.made) + OVERSHOOT if chunk.target > self.made else 0
        first = (self.number, self.life, self.made)
        self.made += made
        return ChunkPlayed([first], SelfPlayStats(positions=made), under_way=7)


class FakeFleet:
    """Processes by number and life, made as `plan` says; waiting for them lets their clock run."""

    def __init__(self, num_workers=2, num_services=0, plan=lambda number, life: {}):
        self.num_workers, self.num_services, self.plan = num_workers, num_services, plan
        self.now, self.processes, self.services = 0.0, [], []

    def start(self, number, life):
        self.processes.append(FakeProcess(self, number, life, **self.plan(number, life)))
        return self.processes[-1]

    def start_service(self, number):
        limits = self.plan("service", len(self.services))
        self.services.append(FakeProcess(self, number, len(self.services), **limits))
        return self.services[-1]

    def ready(self, tickets, timeout_s):
        """Return one ticket, of which there may be more; a second goes by where there is none."""
        found = self.answered(tickets)
        if not found:
            self.now += 1.0
            for process in self.processes + self.services:
                process.work()
            found = self.answered(tickets)
        return found[:1]

    def answered(self, tickets):
        return [ticket for ticket in tickets if any(ticket in p.answers for p in self.processes + self.services)]

    def answer(self, ticket):
        for process in self.processes + self.services:
            if ticket in process.answers:
                answer = process.answers.pop(ticket)
                if isinstance(answer, Exception):
                    raise answer
                return answer
        raise AssertionError("no such answer")


def supervise(fleet, *, quota=80, iteration=5, patience=PATIENCE):
    supervisor = Supervisor(fleet, patience, clock=lambda: fleet.now)
    supervisor.begin_iteration(iteration)
    seen = []
    under_way = [0] * fleet.num_workers
    job = QuotaJob(Order(quota, 1, iteration, "weights"), under_way, seen.append)
    supervisor.run(job)
    assert seen == sorted(seen)
    assert under_way == [7] * fleet.num_workers
    return supervisor, *job.played()


def test_healthy_workers_get_their_quota_in_chunks_few_at_a_time():
    fleet = FakeFleet(num_workers=3)
    supervisor, games, stats = supervise(fleet)
    assert stats.positions == 3 * (80 + OVERSHOOT)
    assert games == sorted(games)
    assert len(games) == 3 * CHUNKS
    assert [process.most_in_flight for process in fleet.processes] == [REQUESTS_IN_FLIGHT] * 3
    assert not any(supervisor.faults.values())


def test_a_dead_worker_is_replaced_and_makes_what_is_missing_only():
    fleet = FakeFleet(plan=lambda number, life: {"dies_after": 4} if (number, life) == (1, None) else {})
    supervisor, games, stats = supervise(fleet)
    assert supervisor.faults[DEAD] == 1
    assert [(process.number, process.life) for process in fleet.processes] == [(0, None), (1, None), (1, 5 * LIVES + 1)]
    assert fleet.processes[1].is_killed
    assert len(set(games)) == len(games)
    made = fleet.processes[1].made
    assert 40 <= made < 80
    assert fleet.processes[2].made == 80 - made + OVERSHOOT
    assert stats.positions == 2 * (80 + OVERSHOOT)


def test_a_hung_worker_is_killed_and_replaced():
    fleet = FakeFleet(plan=lambda number, life: {"hangs_after": 3} if (number, life) == (0, None) else {})
    supervisor, _, stats = supervise(fleet)
    assert (supervisor.faults[HUNG], supervisor.faults[DEAD]) == (1, 0)
    assert fleet.processes[0].is_killed
    assert stats.positions == 2 * (80 + OVERSHOOT)


def test_a_worker_that_is_long_at_a_request_but_answers_pings_is_left_alone():
    fleet = FakeFleet(plan=lambda number, life: {"busy_until": 200} if number == 0 else {})
    supervisor, _, _ = supervise(fleet)
    assert fleet.now > 200
    assert not any(supervisor.faults.values())


def test_one_that_never_starts_is_given_the_longer_time():
    fleet = FakeFleet(plan=lambda number, life: {"hangs_after": 0} if (number, life) == (0, None) else {})
    supervisor, _, _ = supervise(fleet)
    assert supervisor.faults[HUNG] == 1
    assert PATIENCE.start_timeout_s < fleet.now < PATIENCE.start_timeout_s + 20


def test_a_worker_that_dies_again_and_again_ends_the_run_with_the_first_cause():
    fleet = FakeFleet(plan=lambda number, life: {"dies_after": 2 if life is None else 0} if number == 1 else {})
    with pytest.raises(
        TooManyRestarts, match=r"worker 1 died 3 times in a row .*max_restarts is 2.*: (life None|dead)"
    ):
        supervise(fleet)
    assert len(fleet.processes) == 2 + PATIENCE.max_restarts


def test_deaths_with_progress_between_them_never_end_it():
    fleet = FakeFleet(plan=lambda number, life: {"dies_after": 1} if number == 0 else {})
    supervisor, _, stats = supervise(fleet)
    assert supervisor.faults[DEAD] > PATIENCE.max_restarts
    assert stats.positions >= 2 * 80


def test_what_a_worker_s_code_raises_is_raised_and_nothing_is_restarted():
    fleet = FakeFleet(plan=lambda number, life: {"fails_after": 2} if number == 1 else {})
    with pytest.raises(KeyError, match="a bug"):
        supervise(fleet)
    assert len(fleet.processes) == 2


@pytest.mark.parametrize("where", ["ready", "answer"])
@pytest.mark.parametrize("number", [0, 1])
def test_a_supervisor_that_was_suspended_itself_kills_nobody(where, number):
    """In its wait or between two answers, of which the first or the second is older than all patience then."""
    fleet = FakeFleet()
    call, calls = getattr(fleet, where), []

    def suspended(*arguments):
        found = call(*arguments)
        calls.append(None)
        if len(calls) % 6 == number:
            fleet.now += 1000
        return found

    setattr(fleet, where, suspended)
    supervisor, _, _ = supervise(fleet)
    assert fleet.now > 1000
    assert not any(supervisor.faults.values())


def test_a_service_that_hangs_is_started_again_without_disturbing_the_workers():
    fleet = FakeFleet(
        num_services=1, plan=lambda number, life: {"hangs_after": 0} if (number, life) == ("service", 0) else {}
    )
    patience = Patience(heartbeat_timeout_s=2.0, start_timeout_s=4.0, max_restarts=2)
    supervisor, _, stats = supervise(fleet, patience=patience)
    assert supervisor.faults[SERVICES] == 1
    assert len(fleet.services) == 2
    assert stats.positions == 2 * (80 + OVERSHOOT)


def test_all_are_asked_once_and_a_replacement_anew():
    fleet = FakeFleet(plan=lambda number, life: {"dies_after": 0} if (number, life) == (1, None) else {})
    supervisor = Supervisor(fleet, PATIENCE, clock=lambda: fleet.now)
    supervisor.begin_iteration(2)
    job = AskAll("restore_lanes", [("a",), ("b",)])
    supervisor.run(job)
    assert job.answers == ["restore_lanes 0 None ('a',)", f"restore_lanes 1 {2 * LIVES + 1} ('b',)"]


def test_what_a_failed_job_left_behind_is_not_taken_for_the_next_one_s():
    fleet = FakeFleet(plan=lambda number, life: {"fails_after": 2} if number == 1 else {})
    supervisor = Supervisor(fleet, PATIENCE, clock=lambda: fleet.now)
    with pytest.raises(KeyError):
        supervisor.run(QuotaJob(Order(80, 1, 1, "weights"), [0, 0], lambda _: None))
    fleet.processes[1].limits.fails = None
    job = AskAll("lanes", [(), ()])
    supervisor.run(job)
    assert job.answers == ["lanes 0 None ()", "lanes 1 None ()"]
