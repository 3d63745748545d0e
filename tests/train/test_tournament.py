"""Tournaments: nothing is played twice, a stopped match goes on, and a test ends a match where it decides."""

from collections.abc import Generator, Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from envs import Variant, load_variant
from train.arena import MatchResult, MatchSettings
from train.match_file import GamesInMemory, MatchFile
from train.match_games import CRASH, PlayedGame, orders_of
from train.match_workers import CrewTask, Job, LocalCrew, Played, jobs_of
from train.sprt import Sprt
from train.tournament import Fixture, Tournament

SETTINGS = MatchSettings(games=24, random_plies=2, seed=3, max_plies=60)


@pytest.fixture(scope="module")
def gardner() -> Variant:
    return load_variant("gardner")


@pytest.fixture(scope="module")
def fixture() -> Fixture:
    return Fixture(*[("greedy", "random")] * 3)


class Counting:
    """A local crew that counts the games it plays and may stop after some."""

    def __init__(self, variant: Variant, most: int = 1000) -> None:
        self._crew = LocalCrew(CrewTask.of(variant, simulations=1))
        self.played, self._most = 0, most

    def play(self, jobs: Iterable[Job]) -> Generator[Played, None, None]:
        for played in self._crew.play(jobs):
            self.played += 1
            yield played
            if self.played == self._most:
                raise KeyboardInterrupt

    def close(self) -> None:
        pass


def test_a_match_that_was_stopped_goes_on_and_ends_as_if_nothing_had_happened(
    gardner: Variant, fixture: Fixture, tmp_path: Path
) -> None:
    whole = Tournament(gardner, SETTINGS, Counting(gardner), GamesInMemory(), workers=0)
    whole.play([fixture])
    crews = [Counting(gardner, most) for most in (5, 7, 1000, 1000)]
    for number, crew in enumerate(crews):
        file = MatchFile(tmp_path / "games.jsonl", {})
        tournament = Tournament(gardner, SETTINGS, crew, file, workers=0)
        if number < 2:
            with pytest.raises(KeyboardInterrupt):
                tournament.play([fixture])
        else:
            tournament.play([fixture])
        result = tournament.result(fixture)
        file.close()
    assert [crew.played for crew in crews] == [5, 7, 12, 0]
    assert result == whole.result(fixture)


def test_a_longer_match_plays_only_what_is_new_and_a_shorter_one_counts_only_its_own(
    gardner: Variant, fixture: Fixture
) -> None:
    games = GamesInMemory()
    short, long = (replace(SETTINGS, games=number) for number in (8, 12))
    Tournament(gardner, short, Counting(gardner), games, workers=0).play([fixture])
    crew = Counting(gardner)
    longer = Tournament(gardner, long, crew, games, workers=0)
    longer.play([fixture])
    assert crew.played == 4
    assert longer.result(fixture).games == 12
    assert Tournament(gardner, short, crew, games, workers=0).result(fixture).games == 8


def test_progress_counts_what_was_there_already(gardner: Variant, fixture: Fixture) -> None:
    games, seen = GamesInMemory(), list[int]()
    with pytest.raises(KeyboardInterrupt):
        Tournament(gardner, SETTINGS, Counting(gardner, 5), games, workers=0).play([fixture])
    Tournament(gardner, SETTINGS, Counting(gardner), games, workers=0).play([fixture], seen.append)
    assert seen == list(range(5, 25))


def test_a_test_ends_a_match_where_it_decides_and_only_those_pairs_count(gardner: Variant, fixture: Fixture) -> None:
    sprt = Sprt(200, 600)  # which greedy is not
    crew, settings = Counting(gardner), replace(SETTINGS, games=200, random_plies=4)
    tournament = Tournament(gardner, settings, crew, GamesInMemory(), workers=0)
    tournament.play_until(fixture, sprt)
    state = sprt.state(tournament.ordered_scores(fixture))
    assert state.verdict == "H0"
    assert tournament.result(fixture, sprt).games == 2 * state.pairs < 100
    assert crew.played < 100
    before = crew.played
    tournament.play_until(fixture, sprt)  # it has decided
    assert crew.played == before


def test_a_test_looks_at_pairs_in_the_order_of_their_openings(gardner: Variant, fixture: Fixture) -> None:
    games = GamesInMemory()
    tournament = Tournament(gardner, SETTINGS, Counting(gardner), games, workers=0)

    def end(pair: int, first_is_white: bool, score: float | None) -> None:
        ending = CRASH if score is None else "checkmate"
        games.add(fixture.keys, PlayedGame(pair, first_is_white, score, ending, 9, "start", "a b c"))

    for pair, score in ((1, 1.0), (3, 0.0), (0, 0.5)):
        end(pair, True, score)
        end(pair, False, score)
    assert tournament.ordered_scores(fixture) == [0.5, 1.0]  # not yet that of pair 3
    end(2, True, None)
    end(2, False, 1.0)
    assert tournament.ordered_scores(fixture) == [0.5, 1.0, 0.0]  # the failed pair 2 counts for nobody


def test_jobs_hold_every_game_once_in_sizes_that_suit_the_workers(gardner: Variant) -> None:
    orders = orders_of(replace(SETTINGS, games=300, random_plies=4).openings(gardner))
    for workers, most in ((0, 128), (1, 76), (4, 20), (1000, 2)):
        jobs = jobs_of(("a", "b"), SETTINGS, orders, workers=workers)
        assert [order for job in jobs for order in job.orders] == orders
        assert max(len(job.orders) for job in jobs) == most


def test_games_that_failed_are_played_again_by_the_next_process(
    gardner: Variant, fixture: Fixture, tmp_path: Path
) -> None:
    def play(crew: Counting, *failed: PlayedGame) -> MatchResult:
        file = MatchFile(tmp_path / "games.jsonl", {}, SETTINGS.openings(gardner))
        for game in failed:
            file.add(fixture.keys, game)
        tournament = Tournament(gardner, SETTINGS, crew, file, workers=0)
        tournament.play([fixture])
        result = tournament.result(fixture)
        file.close()
        return result

    opening = SETTINGS.openings(gardner)[2]
    text = " ".join(opening.moves)
    failed = PlayedGame(2, True, None, CRASH, len(opening.moves), opening.start_fen, text, 0, "no")
    crews = [Counting(gardner), Counting(gardner)]
    first, second = play(crews[0], failed), play(crews[1])
    assert [crew.played for crew in crews] == [23, 1]
    assert (first.games, len(first.failures), second.games, second.failures) == (22, 1, 24, ())
