"""What scripts share: exit codes, tables and JSON. Data goes to stdout, everything else to stderr."""

import functools
import json
import logging
import os
import sys
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import typer
from rich.console import Console

from envs import InvalidFen, InvalidVariant
from models.evaluator import ExportError
from train.config import ConfigError
from train.players import UnknownPlayer
from train.supervisor import TooManyRestarts

FAILED, USAGE, INTERRUPTED = 1, 2, 130
USAGE_ERRORS = (ConfigError, InvalidFen, InvalidVariant, UnknownPlayer)
"""What a user typed or wrote is wrong; other errors are failures."""
PLAIN_WIDTH = 120
PLUGIN_HELP = "A file of your own code, for runs that used one; it runs with your rights. Repeatable."
P = ParamSpec("P")
R = TypeVar("R")


def new_app() -> typer.Typer:
    """Return an app that leaves tracebacks as they are."""
    return typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def with_exit_codes(command: Callable[P, R]) -> Callable[P, R]:
    """Turn errors into a line on stderr and an exit code: 1 failed, 2 usage, 130 interrupted."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s: %(message)s")
        try:
            return command(*args, **kwargs)
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:  # whoever read the output has gone, as `head` does
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(FAILED) from None
        except (ValueError, OSError, ExportError, FloatingPointError, TooManyRestarts) as error:
            print(f"error: {error}", file=sys.stderr)
            raise typer.Exit(USAGE if isinstance(error, USAGE_ERRORS) else FAILED) from None

    return wrapped


def stdout_console() -> Console:
    """Return a console for tables on stdout; wide where no terminal limits it."""
    return Console(width=None if sys.stdout.isatty() else PLAIN_WIDTH)


def print_json(document: dict[str, Any]) -> None:
    """Print one JSON object to stdout."""
    print(json.dumps(document, allow_nan=False))
