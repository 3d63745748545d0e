"""Ctrl-C while a script loads what takes seconds: it ends at once, without a traceback. Loads nothing heavy itself."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from types import FrameType

INTERRUPTED = 130
WAIT = "loading ..."


@contextmanager
def ends_quietly(*, tells: bool = False) -> Iterator[None]:
    """Exit with 130 on Ctrl-C in what follows.

    Args:
        tells: Whether a terminal shows meanwhile that something is loading.
    """
    if current_thread() is not main_thread():  # which alone is sent signals
        yield
        return
    tells = tells and sys.stderr.isatty()
    print(f"{WAIT}\r" if tells else "", end="", file=sys.stderr, flush=True)
    before = signal.signal(signal.SIGINT, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        print(f"{' ' * len(WAIT)}\r" if tells else "", end="", file=sys.stderr, flush=True)


def _end(_number: int, _frame: FrameType | None) -> None:
    os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)
