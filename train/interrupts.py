"""Ctrl-C and SIGTERM: the first asks a run to stop once its work is saved, the second stops it at once.

Ray's processes start with SIGINT blocked, so that a Ctrl-C, which a terminal sends to all of them, reaches the trainer
alone. Ray sets a handler for SIGTERM of its own when it starts: enter `StopRequest` after that.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

SIGNALS = (signal.SIGINT, signal.SIGTERM)
NOTICE = "stopping once this iteration is saved; once more stops at once"


class StopRequest:
    """Context in which the first signal only sets `requested` and a second one raises KeyboardInterrupt.

    A signal that was ignored before (as a shell does with SIGINT for what it runs in the background) stays ignored.
    Outside the main thread, which alone may handle signals, nothing changes.

    Attributes:
        requested: whether a signal came.
    """

    def __init__(self, say: Callable[[str], object] | None = None) -> None:
        """Make a request that nobody has made yet.

        Args:
            say: told of the first signal, from within its handler, so that it must not touch a buffered stream that
                may be in use; None writes straight to stderr.
        """
        self.requested = False
        self._say = say or _write_to_stderr
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            caught = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
            self._before = {number: signal.signal(number, self._handle) for number in caught}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
        self._say(NOTICE)


def _write_to_stderr(text: str) -> None:
    os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, f"\n{text}\n".encode())
