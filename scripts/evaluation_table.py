"""Show the evaluation that the alpha-beta engine goes by in a game, or learn it anew.

python scripts/evaluation_table.py chess
python scripts/evaluation_table.py path/to/my_game.yaml --games 6000 --out my_game.json
"""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

sys.path[0] = str(Path(__file__).resolve().parents[1])

import typer
from rich.table import Table

from envs import Variant, load_variant
from envs.notation import letter_code
from scripts.command_line import new_app, print_json, stdout_console, with_exit_codes
from train.evaluation_learning import LearningSettings, learn_table
from train.evaluation_tables import UNITS, EvaluationTable, table_for, write_table
from train.players import describe
from train.progress import Reporter
from train.provenance import provenance

app = new_app()


@app.command()
@with_exit_codes
def evaluation_table(
    variant: Annotated[str, typer.Argument(help="Built-in name or path of a variant file.")],
    option: Annotated[list[str] | None, typer.Option(help="Option to switch on. Repeatable.")] = None,
    games: Annotated[int | None, typer.Option(min=1, help="Learn anew from so many games.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Learn anew with this seed.")] = None,
    depth: Annotated[int | None, typer.Option(min=1, max=8, help="Learn anew from searches so deep, in plies.")] = None,
    out: Annotated[Path | None, typer.Option(help="File to save the table in.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Print what the pieces of VARIANT are worth to the alpha-beta engine, in pawns.

    Without --games, --seed and --depth it is the table that the engine uses: shipped, or learned on first use and kept.
    """
    game = load_variant(variant, dict.fromkeys(option or [], True))
    reporter, asked = Reporter(), {"games": games, "depth": depth}
    changes = {name: value for name, value in asked.items() if value is not None}
    if changes or seed is not None:
        settings = replace(LearningSettings(), **changes)
        table = learn_table(game, seed=seed or 0, settings=settings, reporter=reporter)
    else:
        table = table_for(game, reporter=reporter)
    if out is not None:
        write_table(out, table, game)
        reporter.say(f"wrote {out}")
    if as_json:
        print_json(_document(game, table))
    else:
        stdout_console().print(_page(game, table))


def _document(variant: Variant, table: EvaluationTable) -> dict[str, Any]:
    return {
        **provenance(variant, config_hash=None, seeds={"learning": table.provenance.get("seed", 0)}),
        "learned": dict(table.provenance),
        "pawn_units": table.pawn,
        "units_per_logit": UNITS,
        "tempo": table.tempo / table.pawn,
        "values": dict(table.values),
    }


def _page(variant: Variant, table: EvaluationTable) -> Table:
    pawn = f"in pawns, each {table.pawn / UNITS:.3f} logits of the score"
    page = Table(
        title=f"{describe(variant)}: learned from {table.provenance.get('games', '?')} games",
        caption=f"{pawn}; the move is worth {table.tempo / table.pawn:.2f}",
    )
    page.add_column("piece")
    page.add_column("name")
    for heading in ("value", "worst square", "best square"):
        page.add_column(heading, justify="right")
    for letter, value in sorted(table.values.items(), key=lambda entry: (entry[0].islower(), -entry[1])):
        own = table.weights[letter_code(variant, letter)] * (1 if letter.isupper() else -1) / table.pawn
        name = variant.piece_types[variant.type_by_letter[letter.upper()]].name
        page.add_row(letter, name, *(f"{number:.2f}" for number in (value, own.min(), own.max())))
    return page


if __name__ == "__main__":
    app()
