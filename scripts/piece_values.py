"""Measure what the pieces are worth, with intervals, from a run's self-play games.

python scripts/piece_values.py runs/mine
"""

import sys
from pathlib import Path
from typing import Annotated

import typer

sys.path[0] = str(Path(__file__).resolve().parents[1])

from scripts.command_line import PLUGIN_HELP, new_app, print_json, stdout_console, with_exit_codes
from train.piece_values import measure_run
from train.plugins import load_plugins
from train.progress import Reporter

PER_CENT = 100
METHODS = ("outcome",)
app = new_app()


@app.command()
@with_exit_codes
def main(
    run: Annotated[Path, typer.Argument(metavar="RUN_OR_CHECKPOINT", help="A run, or one of its checkpoints.")],
    method: Annotated[str, typer.Option(help=f"Separated by commas, of: {', '.join(METHODS)}.")] = "outcome",
    out: Annotated[Path | None, typer.Option(help="Folder for files; by default the run's report/.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Of the bootstrap; by default the run's.")] = None,
    resamples: Annotated[int | None, typer.Option(min=100, help="Of the games; by default the config's.")] = None,
    plugin: Annotated[list[Path] | None, typer.Option(metavar="FILE", help=PLUGIN_HELP)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Print a table of piece values; write it as JSON and CSV, and as a forest plot (PNG, SVG)."""
    unknown = [name for name in method.split(",") if name not in METHODS]
    if unknown:
        raise typer.BadParameter(f"method {unknown[0]}: known are {', '.join(METHODS)}")
    load_plugins(plugin or [])
    reporter = Reporter()
    with reporter.task("piece values, per cent", PER_CENT) as update:
        report, run_dir = measure_run(
            run, seed=seed, resamples=resamples, progress=lambda done, total: update(PER_CENT * done // total)
        )
    paths = report.write(out or run_dir / "report")
    reporter.say(f"wrote {', '.join(map(str, paths))}")
    if as_json:
        print_json(report.to_document())
    else:
        stdout_console().print(report.table())


if __name__ == "__main__":
    app()
