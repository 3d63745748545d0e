"""Processes that end at once, inside this one: an operating-system call that raises where a kill would strike."""

import os
from typing import Any

import pytest


class Killed(BaseException):
    """Stands for a process that ends at once."""


def kill_at(monkeypatch: pytest.MonkeyPatch, name: str, step: int) -> None:
    """Let `os.NAME` work `step` times and then raise `Killed`, until the patch is undone."""
    calls = 0
    original = getattr(os, name)

    def counting(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > step:
            raise Killed
        return original(*args, **kwargs)

    monkeypatch.setattr(f"os.{name}", counting)
