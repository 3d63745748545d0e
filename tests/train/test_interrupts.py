"""Ctrl-C: the first asks, the second stops, and what was there before comes back."""

import os
import signal
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest

from train.interrupts import NOTICE, StopRequest

ROOT = Path(__file__).resolve().parents[2]
LOOP = """
import sys, time
from train.interrupts import StopRequest
try:
    with StopRequest() as stop:
        print("ready", flush=True)
        while not stop.requested:
            time.sleep(0.01)
        print("saving", flush=True)
        time.sleep(float(sys.argv[1]))
        print("saved", flush=True)
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.fixture(autouse=True)
def default_handlers():
    """A shell that runs the suite in the background has SIGINT ignored."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_only_asks_and_the_second_stops(first, second):
    said = []
    with StopRequest(said.append) as stop:
        assert not stop.requested
        signal.raise_signal(first)
        assert stop.requested
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(second)
    assert said == [NOTICE]


def test_the_handlers_of_before_come_back():
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    with StopRequest():
        assert signal.getsignal(signal.SIGINT) != before[signal.SIGINT]
    assert {number: signal.getsignal(number) for number in before} == before


def test_a_signal_that_was_ignored_stays_ignored():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with StopRequest(pytest.fail) as stop:
        signal.raise_signal(signal.SIGINT)
        assert not stop.requested
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_outside_the_main_thread_nothing_changes():
    before = signal.getsignal(signal.SIGINT)
    seen = []

    def work():
        with StopRequest() as stop:
            seen.append((stop.requested, signal.getsignal(signal.SIGINT)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [(False, before)]


def start(seconds: float, sigint: signal.Handlers = signal.SIG_DFL) -> subprocess.Popen[str]:
    """Start a process that saves for so many seconds once it is asked to stop."""
    running = subprocess.Popen(
        [sys.executable, "-c", LOOP, str(seconds)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=partial(signal.signal, signal.SIGINT, sigint),  # noqa: PLW1509 - background shells ignore it
    )
    assert running.stdout is not None
    assert running.stdout.readline() == "ready\n"
    return running


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_process_saves_after_one_signal(number):
    running = start(0.1)
    running.send_signal(number)
    out, err = running.communicate(timeout=20)
    assert (out, running.returncode) == ("saving\nsaved\n", 0)
    assert err.count(NOTICE) == 1


def test_a_process_stops_at_once_after_two():
    running = start(60)
    running.send_signal(signal.SIGINT)
    assert running.stdout is not None
    assert running.stdout.readline() == "saving\n"
    running.send_signal(signal.SIGINT)
    out, _ = running.communicate(timeout=20)
    assert (out, running.returncode) == ("", 130)


def test_a_process_in_the_background_of_a_script_heeds_sigterm_alone():
    running = start(0.1, signal.SIG_IGN)
    running.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        running.wait(timeout=0.3)
    running.send_signal(signal.SIGTERM)
    out, _ = running.communicate(timeout=20)
    assert (out, running.returncode) == ("saving\nsaved\n", 0)
