"""Rate a run's checkpoints and some baselines on one ladder, with error bars, against games, hours and evaluations.

python scripts/ladder.py runs/mine --against greedy,alphabeta:1 --checkpoints 8 --games 40
"""

import json
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

sys.path[0] = str(Path(__file__).resolve().parents[1])

from rich.box import SIMPLE_HEAVY
from rich.table import Table

from envs import Variant
from models.storage import sha256_hex
from scripts.command_line import PLUGIN_HELP, new_app, print_json, stdout_console, with_exit_codes
from scripts.matches import (
    WORKERS_HELP,
    basis_of,
    is_timed,
    learn_tables,
    leave,
    open_tournament,
    play_on,
    workers_for,
)
from train.arena import MatchResult, MatchSettings
from train.ladder import ANCHOR, Ladder, choose_checkpoints, rate, schedule, spent_by
from train.ladder_report import save_ladder
from train.match_workers import CrewTask
from train.player_keys import player_keys
from train.players import common_variant, describe, make_player
from train.plugins import load_plugins
from train.progress import Reporter
from train.provenance import provenance
from train.runs import read_config
from train.tournament import Fixture, Tournament

GAMES_FILE = "ladder_games-{}.jsonl"
BASIS_DIGITS = 8
app = new_app()


@app.command()
@with_exit_codes
def main(
    run: Annotated[Path, typer.Argument(help="The folder of a run.")],
    against: Annotated[
        str, typer.Option(help="Baselines besides random, weakest first, separated by commas.")
    ] = "greedy,alphabeta:1",
    checkpoints: Annotated[int, typer.Option(min=2, help="Of the run, at most.")] = 8,
    games: Annotated[int, typer.Option(help="Games of each match, an even number.")] = 40,
    simulations: Annotated[int, typer.Option(min=1, help="Per move, of the checkpoints.")] = 32,
    random_plies: Annotated[int, typer.Option(min=0, help="Random plies of each opening.")] = 4,
    max_plies: Annotated[int | None, typer.Option(min=2, help="Ply cap; by default the run's.")] = None,
    workers: Annotated[int | None, typer.Option(min=0, help=WORKERS_HELP)] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of openings and players.")] = 0,
    plugin: Annotated[list[Path] | None, typer.Option(metavar="FILE", help=PLUGIN_HELP)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Play what is missing of the ladder of RUN; print it, and write report/ladder.* and the run's TensorBoard.

    Every game is kept in report/ladder_games-*.jsonl, a file for each choice of game, seed, openings and ply cap: the
    same command goes on where it was stopped, and Ctrl-C prints what there is.
    """
    config, plugins = read_config(run), load_plugins(plugin or [])
    chosen = {str(path): int(path.name) for path in choose_checkpoints(run, checkpoints)}
    baselines = list(dict.fromkeys([ANCHOR, *filter(None, against.split(","))]))
    made = {text: make_player(text, simulations=simulations) for text in [*chosen, *baselines]}
    game = common_variant(list(made.values()), None)
    try:
        settings = MatchSettings(games, random_plies, seed, max_plies or config.evaluation.max_plies, balanced=True)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    learn_tables(game, made.values(), Reporter())
    keys = player_keys(made, game, plugins)
    fixtures = [Fixture.of(texts, made, keys) for texts in schedule(list(chosen), baselines)]
    count = workers_for(workers, made.values(), games * len(fixtures))
    task = CrewTask.of(game, simulations=simulations, plugins=plugins)
    timed, out = is_timed(made.values()), _games_file(run, game, settings)
    with open_tournament(task, game, settings, workers=count, out=out, timed=timed) as tournament:
        stop = play_on(partial(_play, tournament, fixtures, games * len(fixtures)))
        names = {text: f"iteration {iteration}" for text, iteration in chosen.items()}
        matches = [_named(tournament.result(fixture), fixture, names) for fixture in fixtures]
    iterations = {names[text]: iteration for text, iteration in chosen.items()}
    try:
        ladder = rate(matches, iterations, spent_by(run))
    except ValueError:
        leave(matches, stop)  # too little was played
        raise
    basis = provenance(game, config_hash=config.config_hash(), seeds={"match": seed})
    _report(ladder, game, {**basis, "simulations": simulations} if as_json else None)
    unsaved = play_on(partial(_save, ladder, run, {**basis, "run": str(run), "simulations": simulations}))
    leave(matches, stop or unsaved)


def _games_file(run: Path, game: Variant, settings: MatchSettings) -> Path:
    """Return the file of the games that rest on the same as these."""
    digest = sha256_hex(json.dumps(basis_of(game, settings), sort_keys=True).encode())
    return run / "report" / GAMES_FILE.format(digest[:BASIS_DIGITS])


def _play(tournament: Tournament, fixtures: list[Fixture], games: int) -> None:
    with Reporter().task(f"{len(fixtures)} matches", games) as update:
        tournament.play(fixtures, update)


def _named(match: MatchResult, fixture: Fixture, names: dict[str, str]) -> MatchResult:
    """Return a match with the names of the rungs."""
    first, second = (names.get(text, text) for text in fixture.texts)
    return replace(match, players=(first, second))


def _save(ladder: Ladder, run: Path, basis: dict[str, Any]) -> None:
    print("\n".join(map(str, save_ladder(ladder, run, basis))), file=sys.stderr)


def _report(ladder: Ladder, game: Variant, basis: dict[str, Any] | None) -> None:
    """Print the ladder: with a basis as JSON."""
    if basis is not None:
        print_json({**basis, **ladder.to_document()})
        return
    rungs = Table(title=f"{describe(game)}: Elo above {ANCHOR}", box=SIMPLE_HEAVY)
    for heading in ("player", "Elo", "95 %", "matches", "games"):
        rungs.add_column(heading, justify="left" if heading == "player" else "right")
    for rung in ladder.rungs:
        numbers = (f"{rung.elo.estimate:+.0f}", rung.elo.range_text("+.0f"), rung.matches, rung.match_games)
        rungs.add_row(rung.name, *map(str, numbers))
    matches = Table(title="what it rests on", box=SIMPLE_HEAVY)
    for heading in ("player", "opponent", "W / D / L", "score", "expected"):
        matches.add_column(heading, justify="left" if heading in ("player", "opponent") else "right")
    for match in ladder.matches:
        counts = f"{match.wins} / {match.draws} / {match.losses}"
        scores = (f"{match.score.estimate:.3f}", f"{ladder.expected_score(match):.3f}")
        matches.add_row(*match.players, counts, *scores)
    console = stdout_console()
    console.print(rungs)
    console.print(matches)


if __name__ == "__main__":
    app()
