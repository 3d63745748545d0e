"""Matches in many processes: the same games as in one, and a process that dies spoils none but those that kill it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from envs import Variant, load_variant
from train import evaluation_tables
from train.arena import MatchSettings
from train.evaluation_tables import hold_table, table_for
from train.match_games import CRASH, PlayedGame, orders_of
from train.match_workers import Crew, CrewTask, Job, LocalCrew, RayCrew, jobs_of
from train.plugins import load_plugins

SETTINGS = MatchSettings(games=12, random_plies=2, seed=3, max_plies=60)
PLAYERS = ("greedy", "random")
DEADLY = """
import os
from pathlib import Path
from train.baselines import RandomPlayer
from train.plugins import register_baseline

@register_baseline("deadly{always}")
class Deadly(RandomPlayer):
    def choose(self, env, lanes, rng):
        once = Path({flag!r})
        wants = env.fen(int(lanes[0])).split()[0] == {board!r}
        if wants and ({always} or not once.exists()):
            once.touch()
            os.kill(os.getpid(), 9)
        return super().choose(env, lanes, rng)
"""


@pytest.fixture(scope="module")
def gardner() -> Variant:
    return load_variant("gardner")


def games_of(crew: Crew, jobs: list[Job]) -> dict[tuple[tuple[str, str], int, bool], PlayedGame]:
    return {(job.players, game.pair, game.first_is_white): game for job, game in crew.play(jobs)}


def jobs(variant: Variant, players: tuple[str, str] = PLAYERS, *, workers: int) -> list[Job]:
    return jobs_of(players, SETTINGS, orders_of(SETTINGS.openings(variant)), workers=workers)


def test_a_process_is_given_the_learned_table_and_looks_for_none(
    gardner: Variant, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = replace(table_for(gardner), tempo=77)
    monkeypatch.setattr(evaluation_tables, "_known", {})
    hold_table(table)
    task = CrewTask.of(gardner, simulations=1)
    monkeypatch.setattr(evaluation_tables, "_known", {})  # as in another process
    LocalCrew(task)
    assert table_for(gardner) is table


@pytest.fixture
def crew(gardner: Variant) -> Iterator[RayCrew]:
    crew = RayCrew(CrewTask.of(gardner, simulations=1), 2)
    yield crew
    crew.close()


def test_games_in_two_processes_are_those_of_one(gardner: Variant, crew: RayCrew) -> None:
    local = games_of(LocalCrew(CrewTask.of(gardner, simulations=1)), jobs(gardner, workers=0))
    assert games_of(crew, jobs(gardner, workers=2)) == local


@pytest.mark.slow
def test_who_stops_asking_stops_the_games_and_may_ask_anew(gardner: Variant, crew: RayCrew) -> None:
    some = crew.play(jobs(gardner, workers=2))
    next(some)
    some.close()
    assert len(games_of(crew, jobs(gardner, workers=2))) == 12


@pytest.mark.slow
@pytest.mark.parametrize("always", [False, True])
def test_a_process_that_dies_loses_no_game_but_those_that_kill_it_again(
    gardner: Variant, tmp_path: Path, always: bool
) -> None:
    opening = SETTINGS.openings(gardner)[3]
    file = tmp_path / "deadly.py"
    file.write_text(DEADLY.format(flag=str(tmp_path / "flag"), board=opening.position.split()[0], always=always))
    task = CrewTask.of(gardner, simulations=1, plugins=load_plugins([file]))
    crew = RayCrew(task, 2)
    try:
        games = games_of(crew, jobs(gardner, (f"deadly{always}", "random"), workers=1))
    finally:
        crew.close()
    assert len(games) == 12
    failed = [game for game in games.values() if game.score is None]
    assert len(failed) == (1 if always else 0)
    for game in failed:
        assert (game.pair, game.ending, game.failed) == (3, CRASH, None)
        assert "the process that played this game died" in game.failure


@pytest.mark.slow
def test_an_error_in_making_a_player_is_that_error(gardner: Variant, crew: RayCrew) -> None:
    with pytest.raises(ValueError, match="player 'nobody'"):
        games_of(crew, jobs(gardner, ("nobody", "random"), workers=2))
