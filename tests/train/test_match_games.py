"""Games of a match: each is the same whatever is played beside it, and a player that fails spoils no other game."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from numpy.typing import NDArray

from envs import Variant, VectorEnv, legal_actions, load_variant
from tests.train.match_players import Searcher
from train.arena import MatchResult, MatchSettings, Player
from train.baselines import GreedyPlayer, RandomPlayer
from train.match_games import CRASH, ILLEGAL_MOVE, PLY_CAP, GameOrder, PlayedGame, PlayerFailed, orders_of, play_games
from train.openings import draw_openings

SETTINGS = MatchSettings(games=12, random_plies=2, seed=3, max_plies=60)


@pytest.fixture(scope="module")
def gardner() -> Variant:
    return load_variant("gardner")


@pytest.fixture(scope="module")
def orders(gardner: Variant) -> list[GameOrder]:
    return orders_of(SETTINGS.openings(gardner))


@dataclass
class LastMove:
    """Plays the highest legal action, for many games at once; counts how often it was asked."""

    name: str = "last"
    is_deterministic = True
    asked: list[int] = field(default_factory=list)

    def choose(self, env: VectorEnv, lanes: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.int32]:
        self.asked.append(len(lanes))
        actions, _ = legal_actions(env.game, env.states[lanes])
        return actions.max(axis=1)


@dataclass
class Failing:
    """A player that fails in one pair, by an exception or by an illegal move, at its third move."""

    how: str
    bad_ply: int
    name: str = "failing"
    is_deterministic = True

    def choose(self, env: VectorEnv, lanes: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.int32]:
        actions = legal_actions(env.game, env.states[lanes])[0].max(axis=1)
        bad = (env.plies[lanes] >= self.bad_ply) & (lanes == 0)
        if bad.any() and self.how == CRASH:
            raise RuntimeError("out of ideas")
        return np.where(bad, -1, actions).astype(np.int32)


def by_number(games: Iterable[PlayedGame]) -> dict[tuple[int, bool], PlayedGame]:
    return {(game.pair, game.first_is_white): game for game in games}


def play(
    variant: Variant, players: tuple[Player, Player], orders: list[GameOrder]
) -> dict[tuple[int, bool], PlayedGame]:
    return by_number(play_games(variant, players, orders, settings=SETTINGS))


@pytest.mark.parametrize("size", [1, 2, 3, 12])
def test_a_game_is_the_same_whatever_is_played_beside_it(gardner: Variant, orders: list[GameOrder], size: int) -> None:
    whole = play(gardner, (RandomPlayer(), GreedyPlayer()), orders)
    mixed = [orders[number] for number in np.random.default_rng(1).permutation(len(orders))]
    parts: dict[tuple[int, bool], PlayedGame] = {}
    for first in range(0, len(mixed), size):
        parts |= play(gardner, (RandomPlayer(), GreedyPlayer()), mixed[first : first + size])
    assert parts == whole
    assert len(whole) == 12


def test_both_games_of_a_pair_and_both_players_draw_numbers_of_their_own(
    gardner: Variant, orders: list[GameOrder]
) -> None:
    games = play(gardner, (RandomPlayer(), RandomPlayer()), orders)
    assert len({game.moves for game in games.values()}) == 12


def test_a_deterministic_player_is_asked_for_all_its_games_at_once_and_another_game_by_game(
    gardner: Variant, orders: list[GameOrder]
) -> None:
    player, other = LastMove(), RandomPlayer()
    play(gardner, (player, other), orders)
    assert player.asked[0] == 6  # White in one game of each pair, when all begin
    single = LastMove()
    single.is_deterministic = False
    play(gardner, (single, other), orders)
    assert set(single.asked) == {1}


def test_the_moves_of_a_game_lead_to_its_end(gardner: Variant, orders: list[GameOrder]) -> None:
    settings = replace(SETTINGS, max_plies=120)
    games = list(play_games(gardner, (Searcher(), RandomPlayer()), orders, settings=settings))
    for game in games:
        env = VectorEnv(gardner, 1, max_plies=settings.max_plies)
        env.set_fen(0, game.start_fen)
        for move in game.moves.split():
            assert not env.over[0]
            env.step([env.move_to_action(0, move)])
        assert env.over[0]
        assert env.plies[0] == game.plies
        assert bool(env.truncated[0]) == (game.ending == PLY_CAP)
        white = 0.5 if env.truncated[0] else env.white_score[0]
        assert game.score == (white if game.first_is_white else 1 - white)
    assert {(game.score, game.first_is_white) for game in games} >= {(1.0, True), (1.0, False)}


@pytest.mark.parametrize("how", [CRASH, ILLEGAL_MOVE])
@pytest.mark.parametrize("failing", [0, 1])
def test_a_failure_ends_its_game_without_a_score_and_no_other(
    gardner: Variant, orders: list[GameOrder], how: str, failing: int
) -> None:
    players: list[Player] = [LastMove(), LastMove()]
    sound = play(gardner, (players[0], players[1]), orders)
    players[failing] = Failing(how, bad_ply=4)
    seen: list[PlayerFailed] = []
    chosen = (players[0], players[1])
    games = by_number(play_games(gardner, chosen, orders, settings=SETTINGS, on_failure=seen.append))
    failed = games.pop((0, True))
    assert (failed.score, failed.ending, failed.failed) == (None, how, failing)
    assert "out of ideas" in failed.failure if how == CRASH else "failing chose action -1" in failed.failure
    assert failed.plies == len(failed.moves.split()) == 4 + failing
    assert sound[0, True].moves.startswith(failed.moves)
    del sound[0, True]
    assert games == sound
    assert [failure.kind for failure in seen] == [how]


def test_a_failed_game_and_its_partner_count_for_nobody_and_are_listed(
    gardner: Variant, orders: list[GameOrder]
) -> None:
    games = list(play(gardner, (LastMove(), Failing(CRASH, bad_ply=4)), orders).values())
    result = MatchResult.of(gardner, ("last", "failing"), SETTINGS, games)
    assert (result.games, result.left_out, len(result.pair_scores)) == (10, 2, 5)
    assert result.wins + result.draws + result.losses == 10
    (failure,) = result.failures
    assert (failure.player, failure.kind, failure.games) == ("failing", CRASH, 1)
    assert result.to_document()["failures"][0]["example"] == failure.example


def test_a_match_that_was_stopped_counts_whole_pairs(gardner: Variant, orders: list[GameOrder]) -> None:
    games = play(gardner, (LastMove(), RandomPlayer()), orders)
    some = [games[0, True], games[0, False], games[3, True], games[2, False]]
    result = MatchResult.of(gardner, ("a", "b"), SETTINGS, some)
    assert (result.games, result.left_out) == (2, 2)
    assert (result.score.low, result.score.high) == (0, 1)  # one pair says nothing yet
    nothing = MatchResult.of(gardner, ("a", "b"), SETTINGS, []).to_document()
    assert (nothing["games"], nothing["score"]["estimate"], nothing["white_score"]) == (0, None, None)


def test_openings_are_balanced_if_asked_for(gardner: Variant) -> None:
    plain = draw_openings(gardner, 40, plies=6, seed=1)
    balanced = draw_openings(gardner, 40, plies=6, seed=1, balanced=True)
    assert balanced == draw_openings(gardner, 40, plies=6, seed=1, balanced=True)
    assert draw_openings(gardner, 15, plies=6, seed=1, balanced=True) == balanced[:15]
    assert balanced != plain
    assert [opening for opening in balanced if opening in plain] == [one for one in plain if one in balanced]


def test_an_opening_that_hangs_a_queen_is_not_balanced(gardner: Variant) -> None:
    taken = [
        opening
        for opening in draw_openings(gardner, 300, plies=4, seed=2)
        if opening.position.split()[0].count("q") == 0
    ]
    assert taken  # somebody lost a queen
    kept = {opening.position for opening in draw_openings(gardner, 300, plies=4, seed=2, balanced=True)}
    one_sided = [opening for opening in taken if "Q" in opening.position.split()[0]]
    assert one_sided
    assert not kept & {opening.position for opening in one_sided}
