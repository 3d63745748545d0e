"""Measure how balanced a game is, or what a rule changes, with intervals and without a training run.

python scripts/balance.py asylum --versus asylum+friendly_fire --games 1000 --out balance/asylum
"""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

sys.path[0] = str(Path(__file__).resolve().parents[1])

from scripts.command_line import INTERRUPTED, PLUGIN_HELP, new_app, print_json, stdout_console, with_exit_codes
from train.balance import BalancePlan, measure_balance, read_setting
from train.balance_settings import FORM
from train.plugins import load_plugins
from train.progress import Reporter

DEFAULT_GAMES = 1000
app = new_app()


@app.command()
@with_exit_codes
def main(
    a: Annotated[str, typer.Argument(metavar="A", help=FORM)],
    versus: Annotated[str | None, typer.Option(metavar="B", help="What A is compared with, of the same form.")] = None,
    games: Annotated[int | None, typer.Option(help=f"Games of each; {DEFAULT_GAMES} by default.")] = None,
    minutes: Annotated[float | None, typer.Option(help="Play for so long instead, new tables apart.")] = None,
    depth: Annotated[int, typer.Option(min=1, max=8, help="Plies that each move is searched.")] = 3,
    random_plies: Annotated[int, typer.Option(min=0, help="Random plies of each opening.")] = 4,
    max_plies: Annotated[int, typer.Option(min=2, help="Ply cap; games that reach it have no result.")] = 500,
    seed: Annotated[int, typer.Option(min=0, help="Of openings and ties.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Folder for files and games; the same command goes on there.")
    ] = None,
    plugin: Annotated[list[Path] | None, typer.Option(metavar="FILE", help=PLUGIN_HELP)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Print the balance of A, or A and B compared; with --out also as JSON and CSV, and as a picture (PNG, SVG).

    A run's figures are those of its own self-play. Ctrl-C prints what there is.
    """
    load_plugins(plugin or [])
    count = DEFAULT_GAMES if games is None and minutes is None else games
    try:
        plan = BalancePlan(count, minutes, depth, random_plies, seed, max_plies)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    settings = [read_setting(text) for text in (a, versus) if text is not None]
    reporter = Reporter()
    command = _command(a, versus, plan, out, plugin or [])
    report = measure_balance(settings, plan=plan, folder=out, reporter=reporter, command=command)
    if out is not None:
        reporter.say(f"wrote {', '.join(map(str, report.write(out)))}")
    if as_json:
        print_json(report.document())
    else:
        stdout_console().print(report.table())
    if report.stopped:
        reporter.say("interrupted" if out is None else "interrupted; the same command goes on")
        raise typer.Exit(INTERRUPTED)


def _command(a: str, versus: str | None, plan: BalancePlan, out: Path | None, plugins: list[Path]) -> str:
    """Return the command that remakes a report, with every number that it rests on."""
    amount = ["--games", plan.games] if plan.minutes is None else ["--minutes", f"{plan.minutes:g}"]
    words = ["python", "scripts/balance.py", a, *([] if versus is None else ["--versus", versus]), *amount]
    words += ["--depth", plan.depth, "--random-plies", plan.random_plies, "--max-plies", plan.max_plies]
    words += ["--seed", plan.seed, *([] if out is None else ["--out", out])]
    words += [word for file in plugins for word in ("--plugin", file)]
    return shlex.join(map(str, words))


if __name__ == "__main__":
    app()
