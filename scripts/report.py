"""Report on a game: rules, piece values, balance, sample games; of a training run also how it learned. One HTML file.

python scripts/report.py my_game.yaml --minutes 15
python scripts/report.py runs/seed1 runs/seed2
"""

import shlex
import sys
from pathlib import Path
from typing import Annotated

sys.path[0] = str(Path(__file__).resolve().parents[1])

import typer

from scripts.command_line import PLUGIN_HELP, new_app, with_exit_codes
from train.balance_settings import FORM
from train.piece_values.measure import FEWEST_GAMES
from train.plugins import load_plugins
from train.progress import Reporter
from train.report import Settings, Subject, find_subjects, write_report

REPORTS = Path("reports")
"""Where reports of games go unless told otherwise."""
app = new_app()


@app.command()
@with_exit_codes
def main(
    targets: Annotated[
        list[str],
        typer.Argument(metavar="GAME_OR_RUN...", help=f"Each {FORM}."),
    ],
    *,
    minutes: Annotated[float, typer.Option(min=0, help="For the games of each report; 0 plays none.")] = 15.0,
    depth: Annotated[int, typer.Option(min=1, help="Plies that the players of these games search.")] = 3,
    games: Annotated[
        int | None, typer.Option(min=FEWEST_GAMES, help="Of each measurement, however long they take.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Repetitions of each measurement of piece values.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="The first of them.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Folder of the report; of several, each in one of its own.")] = None,
    plugin: Annotated[list[Path] | None, typer.Option(metavar="FILE", help=PLUGIN_HELP)] = None,
) -> None:
    """Write one report for each game, and one for all runs that differ in their seeds alone; print their paths.

    Games are kept in the report's folder: the same command goes on where it was stopped.
    """
    load_plugins(plugin or [])
    settings = Settings(minutes, depth, games, seeds, seed)
    subjects = find_subjects(targets)
    for subject in subjects:
        folder = _folder(subject, out, is_alone=len(subjects) == 1)
        command = _command(subject, settings, folder, plugin or [])
        print(write_report(subject, settings, folder, command=command, reporter=Reporter()))


def _folder(subject: Subject, out: Path | None, *, is_alone: bool) -> Path:
    if out is not None:
        return out if is_alone else out / subject.name
    return subject.runs[0].path / "report" if len(subject.runs) == 1 else REPORTS / subject.name


def _command(subject: Subject, settings: Settings, folder: Path, plugins: list[Path]) -> str:
    """Return the command that makes one of the reports, with every number that it rests on."""
    amount = ["--minutes", f"{settings.minutes:g}"] if settings.games is None else ["--games", settings.games]
    words = ["python", "scripts/report.py", *subject.targets, *amount, "--depth", settings.depth]
    words += ["--seeds", settings.seeds, "--seed", settings.seed, "--out", folder]
    words += [word for file in plugins for word in ("--plugin", file)]
    return shlex.join(map(str, words))


if __name__ == "__main__":
    app()
