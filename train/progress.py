"""Progress bars on stderr for long work; on a terminal they move, elsewhere each finished task is one line."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from train.resources import IdleMeter

Update = Callable[[int], None]
BAR_WIDTH = 12
"""So that a line fits into 80 columns."""


class IdleColumn(ProgressColumn):
    """The share of this machine's core time that was idle since the bar appeared."""

    max_refresh = 1.0

    def __init__(self) -> None:
        """Begin to measure."""
        super().__init__()
        self._meter = IdleMeter()

    def render(self, task: Task) -> Text:
        """Return what the bar shows."""
        share = self._meter.share()
        return Text("" if share is None else f"idle {share:.0%}")


class Reporter:
    """Says what a run is doing."""

    def __init__(self, *, quiet: bool = False) -> None:
        """Make a reporter.

        Args:
            quiet: Say nothing at all (tests).
        """
        self._console = Console(stderr=True, highlight=False, soft_wrap=True, quiet=quiet)

    def say(self, text: str) -> None:
        """Print a line."""
        self._console.print(text, markup=False)

    @contextmanager
    def task(self, description: str, total: int, *, keep: bool = True) -> Iterator[Update]:
        """Show a bar while the block runs.

        Args:
            description: What is being done.
            total: Units of work.
            keep: Leave a line behind when it is done.

        Yields:
            A function that is told how many units are done so far.
        """
        started = time.monotonic()
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=BAR_WIDTH),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            IdleColumn(),
        )
        with Progress(*columns, console=self._console, transient=True, disable=not sys.stderr.isatty()) as bar:
            number = bar.add_task(description, total=total)
            yield lambda done: bar.update(number, completed=min(done, total))
        if keep:
            self.say(f"{description}: done in {time.monotonic() - started:.1f} s")
