"""Play matches: paired openings, both colours, scores with intervals.

python scripts/evaluate.py runs/mine --against random --compare untrained:runs/mine --games 200
"""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

sys.path[0] = str(Path(__file__).resolve().parents[1])

from rich.box import SIMPLE_HEAVY
from rich.table import Table

from envs import Variant, load_variant
from scripts.command_line import PLUGIN_HELP, new_app, print_json, stdout_console, with_exit_codes
from train.arena import MatchResult, MatchSettings, difference_interval, play_match
from train.players import Contestant, common_variant, describe, make_player
from train.plugins import load_plugins
from train.progress import Reporter
from train.provenance import provenance
from train.ratings import Interval, elo_interval

DEFAULT_MAX_PLIES = 300
HEADINGS = ("W / D / L", "score", "95 %", "Elo", "95 %", "cut", "plies", "distinct")
app = new_app()


@app.command()
@with_exit_codes
def main(
    player: Annotated[
        str, typer.Argument(help="random, greedy or another baseline, a run, a checkpoint, untrained:RUN or int8:RUN")
    ],
    against: Annotated[str, typer.Option(help="Opponents, separated by commas.")] = "random",
    games: Annotated[int, typer.Option(help="Games of each match, an even number.")] = 100,
    compare: Annotated[str | None, typer.Option(help="A second player over the same openings.")] = None,
    variant: Annotated[str | None, typer.Option(help="The game; by default that of the players.")] = None,
    option: Annotated[list[str] | None, typer.Option(help="Switch an option of --variant on.")] = None,
    simulations: Annotated[int, typer.Option(min=1, help="Per move, for players that search.")] = 32,
    random_plies: Annotated[int, typer.Option(min=0, help="Random plies of each opening.")] = 4,
    max_plies: Annotated[int | None, typer.Option(min=2, help="Ply cap; by default the run's.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of openings and players.")] = 0,
    plugin: Annotated[list[Path] | None, typer.Option(metavar="FILE", help=PLUGIN_HELP)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Play PLAYER against each opponent; print scores with 95 % intervals, pairs as units."""
    if option and variant is None:
        raise typer.BadParameter("--option switches an option of --variant: name the game too")
    load_plugins(plugin or [])
    mine = [make_player(name, simulations=simulations) for name in (player, compare) if name]
    opponents = [make_player(name, simulations=simulations) for name in against.split(",")]
    given = load_variant(variant, dict.fromkeys(option or [], True)) if variant else None
    game = common_variant([*mine, *opponents], given)
    cap = max_plies or (mine[0].config.evaluation.max_plies if mine[0].config else DEFAULT_MAX_PLIES)
    try:
        settings = MatchSettings(games, random_plies, seed, cap)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    rows = [[_play(game, one, opponent, settings) for one in mine] for opponent in opponents]
    if as_json:
        config_hash = mine[0].config.config_hash() if mine[0].config else None
        basis = provenance(game, config_hash=config_hash, seeds={"match": seed})
        print_json({**basis, "simulations": simulations, "matches": [_document(row) for row in rows]})
    else:
        stdout_console().print(_table(rows, game))


def _play(game: Variant, one: Contestant, other: Contestant, settings: MatchSettings) -> MatchResult:
    title = f"{one.player.name} against {other.player.name}"
    with Reporter().task(title, settings.games) as update:
        players = (one.player, other.player)
        return play_match(game, players, settings=settings, progress=lambda done, _: update(done))


def _document(row: list[MatchResult]) -> dict[str, Any]:
    """Return a match; with a second player's match over its openings also that, and the difference."""
    document = row[0].to_document()
    if len(row) > 1:
        document["compared"] = row[1].to_document()
        document["difference"] = difference_interval(row[0], row[1]).to_document()
    return document


def _table(rows: list[list[MatchResult]], game: Variant) -> Table:
    settings = rows[0][0].settings
    title = f"{describe(game)}: matches of {settings.games} games, {settings.random_plies} random plies, "
    table = Table(title=f"{title}ply cap {settings.max_plies} (a draw)", box=SIMPLE_HEAVY)
    table.add_column("player")
    table.add_column("opponent")
    for heading in HEADINGS:
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        for match in row:
            counts = f"{match.wins} / {match.draws} / {match.losses}"
            numbers = (*_cells(match.score, ".3f"), *_cells(elo_interval(match.score), "+.0f"))
            ending = (str(match.cut_games), f"{match.plies:.0f}", str(match.distinct_games))
            table.add_row(*match.players, counts, *numbers, *ending)
        if len(row) > 1:
            table.add_row("difference", "", "", *_cells(difference_interval(row[0], row[1]), "+.3f"))
    return table


def _cells(interval: Interval, style: str) -> tuple[str, str]:
    return format(interval.estimate, style), interval.range_text(style)


if __name__ == "__main__":
    app()
