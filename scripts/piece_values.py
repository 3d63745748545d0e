"""Measure what the pieces are worth, with intervals: of any game without a network, or from a run's own games.

python scripts/piece_values.py chess --minutes 30 --out values/chess
python scripts/piece_values.py asylum+friendly_fire --games 4000
python scripts/piece_values.py runs/mine
"""

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

sys.path[0] = str(Path(__file__).resolve().parents[1])

from models.checkpoint import FOLDER
from scripts.command_line import PLUGIN_HELP, new_app, print_json, stdout_console, with_exit_codes
from train.balance_settings import Setting, read_setting
from train.piece_values.estimates import METHODS
from train.piece_values.measure import DEPTH, GAMES, MeasurePlan
from train.piece_values.measure import METHODS as WITHOUT_NETWORK
from train.piece_values.report import Report
from train.piece_values.surveys import StoredRun, survey_game, survey_run
from train.plugins import load_plugins
from train.progress import Reporter

TARGET_HELP = "GAME[+OPTION...], FILE.yaml[+OPTION...], or the folder of a run or checkpoint."
METHOD_HELP = f"Separated by commas, of {', '.join(METHODS)}; by default {','.join(WITHOUT_NETWORK)}, of a run outcome."
app = new_app()


@app.command()
@with_exit_codes
def main(
    target: Annotated[str, typer.Argument(metavar="TARGET", help=TARGET_HELP)],
    method: Annotated[str | None, typer.Option(help=METHOD_HELP)] = None,
    minutes: Annotated[float | None, typer.Option(help="Play for about so long in all.")] = None,
    games: Annotated[int | None, typer.Option(help=f"Of each method with each seed; {GAMES} by default.")] = None,
    depth: Annotated[int, typer.Option(min=1, max=8, help="Plies that each move is searched.")] = DEPTH,
    seeds: Annotated[str, typer.Option(help="Of the games, separated by commas.")] = "0,1,2",
    out: Annotated[Path | None, typer.Option(help="Folder for files and games; of a run by default report/.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Of a run's bootstrap; by default the run's.")] = None,
    resamples: Annotated[int | None, typer.Option(min=100, help="Behind each interval.")] = None,
    plugin: Annotated[list[Path] | None, typer.Option(metavar="FILE", help=PLUGIN_HELP)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Print what the pieces are worth; write it as JSON and CSV, and as a forest plot (PNG, SVG).

    A game is played by the alpha-beta engine with the game's learned evaluation; what has been played is kept in the
    folder of --out, where the same command goes on. Of a run its own games are read.
    """
    if games is not None and minutes is not None:
        raise typer.BadParameter("--games and --minutes: expected one of them, got both")
    load_plugins(plugin or [])
    setting = read_setting(target)
    methods = _methods(method, is_run=setting.run is not None)
    try:
        plan = MeasurePlan(games=games, minutes=minutes, depth=depth, seeds=_numbers(seeds))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    if resamples is not None:
        plan = replace(plan, resamples=resamples)
    reporter = Reporter()
    if setting.run is None or setting.config is None:
        plan, command = replace(plan, methods=methods), _command(target, methods, plan, out)
        report = survey_game(setting.variant, plan=plan, folder=out, command=command, reporter=reporter)
    else:
        run = StoredRun(setting.run, setting.variant, setting.config, seed, resamples)
        out = out or _run_folder(setting) / "report"
        report = survey_run(run, methods, plan=plan, folder=out, reporter=reporter)
    _show(report, out, reporter, as_json=as_json)


def _methods(text: str | None, *, is_run: bool) -> tuple[str, ...]:
    """Return the methods that were asked for.

    Raises:
        BadParameter: one is unknown, named twice, or needs a run.
    """
    if text is None:
        return ("outcome",) if is_run else WITHOUT_NETWORK
    methods = tuple(text.split(","))
    for name in methods:
        if name not in METHODS:
            raise typer.BadParameter(f"method {name!r}: known are {', '.join(METHODS)}")
        if methods.count(name) > 1:
            raise typer.BadParameter(f"method {name!r}: named twice")
        if not is_run and name not in WITHOUT_NETWORK:
            raise typer.BadParameter(f"method {name!r} needs a run; without one: {', '.join(WITHOUT_NETWORK)}")
    return methods


def _numbers(text: str) -> tuple[int, ...]:
    if not all(word.isdecimal() for word in text.split(",")):
        raise ValueError(f"seeds: expected numbers separated by commas, got {text!r}")
    return tuple(map(int, text.split(",")))


def _command(target: str, methods: tuple[str, ...], plan: MeasurePlan, out: Path | None) -> str:
    """Return the command that remakes a report of a game, the number of games left to be filled in."""
    words = ["python", "scripts/piece_values.py", target, "--method", ",".join(methods), "--depth", plan.depth]
    words += ["--seeds", ",".join(map(str, plan.seeds)), "--resamples", plan.resamples]
    return shlex.join(map(str, [*words, *([] if out is None else ["--out", out])])) + " --games {games}"


def _run_folder(setting: Setting) -> Path:
    """Return the folder of a run, also where one of its checkpoints was named."""
    assert setting.run is not None
    return setting.run if (setting.run / FOLDER).is_dir() else setting.run.resolve().parents[1]


def _show(report: Report, out: Path | None, reporter: Reporter, *, as_json: bool) -> None:
    """Print a report, and write it where there is a folder for it."""
    if out is not None:
        reporter.say(f"wrote {', '.join(map(str, report.write(out)))}")
    if report.command:
        reporter.say(f"again: {report.command}")
    if as_json:
        print_json(report.to_document())
        return
    stdout_console().print(report.table())
    splits = report.split_table()
    if splits is not None and len(report.methods) > 1:
        stdout_console().print(splits)


if __name__ == "__main__":
    app()
