"""What scripts that play matches share: how many processes play, and a tournament that cleans up after itself."""

import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from envs import Variant
from scripts.command_line import FAILED, INTERRUPTED
from train.alphabeta import AlphaBetaPlayer
from train.arena import MatchResult, MatchSettings
from train.evaluation_tables import table_for
from train.match_file import GamesInMemory, MatchFile
from train.match_workers import LEAST_GAMES, MOST_GAMES, CrewTask, start_crew
from train.players import Contestant
from train.progress import Reporter
from train.resources import num_cores
from train.tournament import Tournament

MANY_GAMES = 200
"""From so many on it is worth starting processes."""
WORKERS_HELP = (
    f"Processes; 0 is this one. By default all cores where somebody searches and {MANY_GAMES} games or more are to be "
    "played, or where time counts, else 0: starting them takes 10 to 20 s."
)
OUT_HELP = "Keep every game in this file as it ends; what it has is not played again. Without it no game is kept."
Stop = KeyboardInterrupt | OSError
"""What ends matches early and leaves results to print: Ctrl-C, or a game that cannot be kept."""


def workers_for(asked: int | None, players: Collection[Contestant], games: int) -> int:
    """Return how many processes play.

    Args:
        asked: for by the user; None decides by the rest.
        players: of the matches.
        games: of all matches.
    """
    if asked is not None:
        return asked
    is_long = is_timed(players) or (games >= MANY_GAMES and any(player.searches for player in players))
    return num_cores() if is_long and num_cores() > 1 else 0


def is_timed(players: Collection[Contestant]) -> bool:
    """Return whether somebody thinks by the clock."""
    return any(player.is_timed for player in players)


def basis_of(variant: Variant, settings: MatchSettings) -> dict[str, Any]:
    """Return what all games of matches rest on as plain data; the number of games is no part of it."""
    return {
        "variant": variant.name,
        "options": dict(variant.options),
        "rules_hash": variant.rules_hash,
        "random_plies": settings.random_plies,
        "balanced": settings.balanced,
        "max_plies": settings.max_plies,
        "seed": settings.seed,
    }


@contextmanager
def open_tournament(
    task: CrewTask,
    variant: Variant,
    settings: MatchSettings,
    *,
    workers: int,
    out: Path | None,
    timed: bool,
) -> Iterator[Tournament]:
    """Draw the openings, open the file of games and start the crew while the block runs.

    Args:
        task: what the players share.
        variant: the game.
        settings: of every match.
        workers: processes, 0 for this one.
        out: the file of games; None keeps them in memory.
        timed: somebody thinks by the clock.

    Raises:
        ConfigError: the file's games rest on something else.
        ValueError: there are not enough openings.
    """
    openings = settings.openings(variant)
    games = GamesInMemory() if out is None else MatchFile(out, basis_of(variant, settings), openings)
    try:
        crew = start_crew(task, workers)
        try:
            most = LEAST_GAMES if timed else MOST_GAMES
            yield Tournament(variant, settings, crew, games, workers=workers, most_games=most, openings=openings)
        finally:
            crew.close()
    finally:
        games.close()


def play_on(play: Callable[[], object]) -> Stop | None:
    """Play matches to their end; return what has stopped them before."""
    try:
        play()
    except (KeyboardInterrupt, OSError) as stop:
        return stop
    return None


def learn_tables(variant: Variant, players: Collection[Contestant], reporter: Reporter) -> None:
    """Make sure that the alpha-beta engine knows what pieces are worth, before many processes ask."""
    if any(isinstance(contestant.player, AlphaBetaPlayer) for contestant in players):
        table_for(variant, reporter=reporter)


def leave(matches: Iterable[MatchResult], stop: Stop | None) -> None:
    """Leave with the exit code of matches that were stopped, or in which a player failed; else return."""
    if stop is not None:
        why = "interrupted" if isinstance(stop, KeyboardInterrupt) else f"error: {stop}"
        print(f"{why}; only whole pairs of games that had ended count, rather short ones", file=sys.stderr)
        raise typer.Exit(INTERRUPTED if isinstance(stop, KeyboardInterrupt) else FAILED)
    failures = [failure for match in matches for failure in match.failures]
    for failure in failures:
        print(f"error: {failure.player}: {failure.kind} in {failure.games} games: {failure.example}", file=sys.stderr)
    if failures:
        raise typer.Exit(FAILED)
