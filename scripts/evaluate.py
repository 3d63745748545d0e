"""Play matches: paired openings, both colours, scores with intervals.

python scripts/evaluate.py runs/mine --against random,alphabeta:1 --compare untrained:runs/mine --games 200
"""

import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

sys.path[0] = str(Path(__file__).resolve().parents[1])

from envs import Variant, load_variant
from scripts.command_line import PLUGIN_HELP, new_app, print_json, with_exit_codes
from scripts.match_tables import Outcome, Row, difference, print_rows
from scripts.matches import (
    OUT_HELP,
    WORKERS_HELP,
    is_timed,
    learn_tables,
    leave,
    open_tournament,
    play_on,
    workers_for,
)
from train.arena import MatchSettings
from train.match_workers import CrewTask
from train.move_time import LEAST_SECONDS, MOST_SECONDS
from train.player_keys import player_keys
from train.players import Contestant, common_variant, describe, make_player
from train.plugins import load_plugins
from train.progress import Reporter
from train.provenance import provenance
from train.sprt import Sprt
from train.tournament import Fixture, Tournament

DEFAULT_MAX_PLIES = 300
PLAYER_HELP = (
    "random, greedy or another baseline, alphabeta:PLIES or alphabeta:50ms, a run or a checkpoint; before these two "
    "policy: (no search), int8:, and before a run untrained:"
)
app = new_app()


@app.command()
@with_exit_codes
def main(
    player: Annotated[str, typer.Argument(help=PLAYER_HELP)],
    against: Annotated[str, typer.Option(help="Opponents, separated by commas.")] = "random",
    games: Annotated[int, typer.Option(help="Games of each match, an even number.")] = 100,
    compare: Annotated[str | None, typer.Option(help="A second player over the same openings.")] = None,
    variant: Annotated[str | None, typer.Option(help="The game; by default that of the players.")] = None,
    option: Annotated[list[str] | None, typer.Option(help="Switch an option of --variant on.")] = None,
    simulations: Annotated[int, typer.Option(min=1, help="Per move, for networks that search.")] = 32,
    seconds_per_move: Annotated[
        float | None,
        typer.Option(
            min=LEAST_SECONDS, max=MOST_SECONDS, help="Equal time instead, for networks that search and for alphabeta."
        ),
    ] = None,
    random_plies: Annotated[int, typer.Option(min=0, help="Random plies of each opening.")] = 4,
    balanced: Annotated[bool, typer.Option(help="Leave out openings that lose material or the game at once.")] = True,
    max_plies: Annotated[int | None, typer.Option(min=2, help="Ply cap; by default the run's.")] = None,
    sprt: Annotated[
        str | None, typer.Option(metavar="ELO0,ELO1", help="Stop as soon as this test decides; --games is the most.")
    ] = None,
    workers: Annotated[int | None, typer.Option(min=0, help=WORKERS_HELP)] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help=OUT_HELP)] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of openings and players.")] = 0,
    plugin: Annotated[list[Path] | None, typer.Option(metavar="FILE", help=PLUGIN_HELP)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Play PLAYER against each opponent; print scores with 95 % intervals, pairs as units.

    Ctrl-C prints what there is; with --out the same command then goes on, without it the games are gone. Games in
    which a player crashes or makes an illegal move count for nobody, and the exit code is then 1.
    """
    if option and variant is None:
        raise typer.BadParameter("--option switches an option of --variant: name the game too")
    plugins, opponents = load_plugins(plugin or []), against.split(",")
    mine = [player, *([] if compare is None else [compare])]
    made = {text: make_player(text, simulations=simulations, seconds=seconds_per_move) for text in [*mine, *opponents]}
    given = load_variant(variant, dict.fromkeys(option or [], True)) if variant else None
    game, config = common_variant(list(made.values()), given), made[player].config
    try:
        cap = max_plies or (config.evaluation.max_plies if config else DEFAULT_MAX_PLIES)
        settings, test = MatchSettings(games, random_plies, seed, cap, balanced), _parse_sprt(sprt)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    learn_tables(game, made.values(), Reporter())
    keys = player_keys(made, game, plugins)
    fixtures = [[Fixture.of((one, other), made, keys) for one in mine] for other in opponents]
    count = workers_for(workers, made.values(), games * len(mine) * len(opponents))
    task = CrewTask.of(game, simulations=simulations, seconds=seconds_per_move, plugins=plugins)
    timed = is_timed(made.values())
    with open_tournament(task, game, settings, workers=count, out=out, timed=timed) as tournament:
        stop = play_on(partial(_play, tournament, fixtures, settings, test))
        rows = [[_outcome(tournament, one, test) for one in row] for row in fixtures]
    if as_json:
        thinking = {"simulations": simulations, "seconds_per_move": seconds_per_move}
        print_json({**_basis(game, made[player], seed), **thinking, "matches": [_document(row) for row in rows]})
    else:
        print_rows(_title(game, settings), rows)
    leave([outcome.match for row in rows for outcome in row], stop)


def _parse_sprt(text: str | None) -> Sprt | None:
    """Return the test that `--sprt` asks for.

    Raises:
        ValueError: the text is no test.
    """
    if text is None:
        return None
    try:
        elo0, elo1 = map(float, text.split(","))
    except ValueError:
        raise ValueError(f"--sprt: expected two Elo differences as in 0,30, got '{text}'") from None
    return Sprt(elo0, elo1)


def _play(tournament: Tournament, fixtures: list[list[Fixture]], settings: MatchSettings, test: Sprt | None) -> None:
    """Play the matches in turn."""
    for fixture in (one for row in fixtures for one in row):
        with Reporter().task(f"{fixture.names[0]} against {fixture.names[1]}", settings.games) as update:
            if test is None:
                tournament.play([fixture], update)
            else:
                tournament.play_until(fixture, test, update)


def _outcome(tournament: Tournament, fixture: Fixture, test: Sprt | None) -> Outcome:
    state = test.to_document(tournament.ordered_scores(fixture)) if test else None
    return Outcome(tournament.result(fixture, test), state)


def _basis(game: Variant, mine: Contestant, seed: int) -> dict[str, Any]:
    return provenance(game, config_hash=mine.config.config_hash() if mine.config else None, seeds={"match": seed})


def _document(row: Row) -> dict[str, Any]:
    """Return a match; with a second player's match over its openings also that, and the difference."""
    document = row[0].to_document()
    if len(row) > 1:
        gap = difference(row)
        document["compared"] = row[1].to_document()
        document["difference"] = gap.to_document() if gap else None
    return document


def _title(game: Variant, settings: MatchSettings) -> str:
    plies = f"{settings.random_plies} random plies{', balanced' if settings.balanced else ''}"
    return f"{describe(game)}: matches of {settings.games} games, {plies}, ply cap {settings.max_plies} (a draw)"


if __name__ == "__main__":
    app()
