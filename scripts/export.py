"""Write a run's games, or those of one shard, as PGN.

python scripts/export.py runs/mine --last 20 --out games.pgn
"""

import re
import sys
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

sys.path[0] = str(Path(__file__).resolve().parents[1])

from envs import load_variant
from scripts.command_line import new_app, with_exit_codes
from train.pgn import game_text, stored_games

app = new_app()


@app.command()
@with_exit_codes
def main(
    source: Annotated[Path, typer.Argument(metavar="RUN_OR_SHARD", help="A run, one of its checkpoints, or a shard.")],
    out: Annotated[Path | None, typer.Option(help="File to write; by default stdout.")] = None,
    last: Annotated[int | None, typer.Option(min=1, help="Only so many games, the newest.")] = None,
    iterations: Annotated[str | None, typer.Option(metavar="A:B", help="Only those of iterations A to B.")] = None,
    values: Annotated[bool, typer.Option("--values", help="Root values for the mover as comments.")] = False,
    variant: Annotated[str | None, typer.Option(help="The game of a shard that lies in no run's folder.")] = None,
    option: Annotated[list[str] | None, typer.Option(help="Switch an option of --variant on.")] = None,
) -> None:
    """Write games as PGN, oldest first. A move that captures off its target names both squares: Rxd4xd7, Rxd4-d7."""
    given = load_variant(variant, dict.fromkeys(option or [], True)) if variant else None
    games = stored_games(source, variant=given, last=last, iterations=_span(iterations))
    event = source.resolve().stem if source.is_file() else source.resolve().name
    texts = (f"{game_text(game, record, event=event, place=place, values=values)}\n" for game, record, place in games)
    first = next(texts, None)
    if first is None:
        raise ValueError(f"{source}: no such game")
    if out is None:
        sys.stdout.writelines(chain([first], texts))
        return
    with out.open("w", encoding="utf-8") as file:
        file.writelines(chain([first], texts))
    print(f"wrote {out}", file=sys.stderr)


def _span(text: str | None) -> range | None:
    """Return the iterations that `A:B` names, B included."""
    if text is None:
        return None
    match = re.fullmatch(r"(\d{1,9}):(\d{1,9})", text, re.ASCII)
    if match is None or int(match[1]) > int(match[2]):
        raise typer.BadParameter(f"--iterations: expected A:B with A at most B, got {text!r}")
    return range(int(match[1]), int(match[2]) + 1)


if __name__ == "__main__":
    app()
