"""Matches: paired openings, swapped colours, scores that add up, and players that must obey the rules."""

import json
from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.typing import NDArray

from envs import IllegalAction, Variant, VectorEnv, legal_actions, load_variant
from tests.train.match_players import Searcher
from train.arena import MatchSettings, difference_interval, play_match
from train.baselines import RandomPlayer
from train.openings import draw_openings

SHORT = MatchSettings(games=40, random_plies=2, seed=3, max_plies=60)


@pytest.fixture(scope="module")
def gardner() -> Variant:
    return load_variant("gardner")


@dataclass
class FirstMove:
    """Plays the lowest legal action, and keeps what it saw."""

    name: str = "first"

    def __post_init__(self) -> None:
        self.sides: list[tuple[int, int]] = []

    def choose(self, env: VectorEnv, lanes: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.int32]:
        self.sides += [(int(lane) % 2, int(env.to_play[lane])) for lane in lanes]
        assert not env.over[lanes].any()
        actions, counts = legal_actions(env.game, env.states[lanes])
        return np.sort(actions, axis=1)[range(len(lanes)), actions.shape[1] - counts]


def test_openings_are_distinct_unfinished_and_the_first_ones_do_not_depend_on_their_number(
    gardner: Variant,
) -> None:
    many = draw_openings(gardner, 60, plies=4, seed=5)
    assert len({opening.position for opening in many}) == 60
    assert draw_openings(gardner, 25, plies=4, seed=5) == many[:25]
    assert draw_openings(gardner, 25, plies=4, seed=6) != many[:25]
    env = VectorEnv(gardner, 1)
    for opening in many:
        env.reset()
        for action, move in zip(opening.actions, opening.moves):
            assert env.action_to_move(0, action) == move
            env.step([action])
        assert not env.over[0]
        assert env.fen(0).startswith(opening.position)


def test_too_few_distinct_openings_are_refused(gardner: Variant) -> None:
    with pytest.raises(ValueError, match="gardner: 1 distinct openings of 0 random plies, 5 are needed"):
        draw_openings(gardner, 5, plies=0, seed=1)
    with pytest.raises(ValueError, match="7 distinct openings of 1 random plies"):
        draw_openings(gardner, 30, plies=1, seed=1)


def test_finished_games_are_no_openings(gardner: Variant) -> None:
    openings = draw_openings(gardner, 10, plies=60, seed=2)  # many random games are over by then
    assert all(len(opening.moves) == 60 for opening in openings)


def test_random_against_itself_adds_up_and_is_fair(gardner: Variant) -> None:
    settings = replace(SHORT, games=200, random_plies=4, max_plies=150)
    result = play_match(gardner, (RandomPlayer("a"), RandomPlayer("b")), settings=settings)
    assert result.wins + result.draws + result.losses == 200
    assert sum(result.terminations.values()) == 200
    assert result.cut_games == result.terminations["ply_cap"]
    assert result.score.estimate == pytest.approx((result.wins + result.draws / 2) / 200)
    assert result.score.low <= 0.5 <= result.score.high
    assert result.distinct_games == 200
    assert 2 < result.plies <= 150


def test_the_same_seed_gives_the_same_match_and_another_seed_another(gardner: Variant) -> None:
    players = (RandomPlayer("a"), RandomPlayer("b"))
    first = play_match(gardner, players, settings=SHORT)
    assert play_match(gardner, players, settings=SHORT) == first
    assert play_match(gardner, players, settings=replace(SHORT, seed=4)).openings != first.openings


def test_a_player_that_takes_pieces_beats_random_with_either_colour(gardner: Variant) -> None:
    settings = MatchSettings(games=16, random_plies=2, seed=1, max_plies=120)
    result = play_match(gardner, (Searcher(), RandomPlayer()), settings=settings)
    mirrored = play_match(gardner, (RandomPlayer(), Searcher()), settings=settings)
    assert result.score.low > 0.5
    assert mirrored.score.high < 0.5


def test_each_pair_swaps_colours_and_asks_only_whose_turn_it_is(gardner: Variant) -> None:
    player = FirstMove()
    play_match(gardner, (player, RandomPlayer()), settings=SHORT)
    assert set(player.sides) == {(0, 0), (1, 1)}  # White in even lanes, Black in odd ones


def test_two_deterministic_players_of_the_same_kind_split_every_pair(gardner: Variant) -> None:
    result = play_match(gardner, (FirstMove("a"), FirstMove("b")), settings=SHORT)
    assert set(result.pair_scores) == {0.5}  # the two games of a pair are the same game
    assert result.distinct_games == 20


def test_games_cut_by_the_ply_cap_are_draws_and_counted_apart(gardner: Variant) -> None:
    settings = replace(SHORT, max_plies=3)
    result = play_match(gardner, (RandomPlayer("a"), RandomPlayer("b")), settings=settings)
    assert (result.wins, result.draws, result.losses, result.cut_games) == (0, 40, 0, 40)
    assert result.plies == 3


def test_a_difference_is_paired_over_common_openings(gardner: Variant) -> None:
    settings = MatchSettings(games=60, random_plies=2, seed=1, max_plies=120)
    strong = play_match(gardner, (Searcher(), RandomPlayer()), settings=settings)
    weak = play_match(gardner, (RandomPlayer("weak"), RandomPlayer()), settings=settings)
    difference = difference_interval(strong, weak)
    assert difference.estimate == pytest.approx(strong.score.estimate - weak.score.estimate)
    assert difference.low > 0
    elsewhere = play_match(gardner, (RandomPlayer("weak"), RandomPlayer()), settings=replace(settings, seed=2))
    with pytest.raises(ValueError, match="different openings"):
        difference_interval(strong, elsewhere)
    with pytest.raises(ValueError, match="different opponents: random and other"):
        difference_interval(strong, replace(weak, players=("weak", "other")))


def test_progress_counts_up_to_all_games(gardner: Variant) -> None:
    seen: list[tuple[int, int]] = []
    play_match(gardner, (RandomPlayer(), RandomPlayer()), settings=SHORT, progress=lambda *now: seen.append(now))
    assert seen[-1] == (40, 40)
    assert seen == sorted(set(seen))


def test_a_result_is_strict_json(gardner: Variant) -> None:
    result = play_match(gardner, (RandomPlayer("a"), RandomPlayer("b")), settings=SHORT)
    document = json.loads(json.dumps(result.to_document(), allow_nan=False))
    assert document["players"] == ["a", "b"]
    assert document["rules_hash"] == gardner.rules_hash
    assert sum(document["pentanomial"]) == 20
    assert len(document["openings"]) == 20


@pytest.mark.parametrize("bad", [-1, 10**6, None])
def test_an_illegal_choice_is_an_error_that_names_the_player(gardner: Variant, bad: int | None) -> None:
    @dataclass
    class Cheat:
        name: str = "cheat"

        def choose(self, env: VectorEnv, lanes: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.int32]:
            illegal = np.flatnonzero(~env.legal_action_mask[lanes[0]])[0] if bad is None else bad
            return np.full(len(lanes), illegal, dtype=np.int32)

    with pytest.raises(IllegalAction, match=r"cheat chose action -?\d+, which is illegal: .*/"):
        play_match(gardner, (Cheat(), RandomPlayer()), settings=SHORT)


def test_an_answer_of_the_wrong_shape_is_an_error_that_names_the_player(gardner: Variant) -> None:
    @dataclass
    class Sloppy:
        name: str = "sloppy"
        is_deterministic = True

        def choose(self, env: VectorEnv, lanes: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.int32]:
            return np.zeros(len(lanes) + 1, dtype=np.int32)

    with pytest.raises(ValueError, match="sloppy: expected 1 integer actions, got int32 \\[2\\]"):
        play_match(gardner, (Sloppy(), RandomPlayer()), settings=SHORT)


@pytest.mark.parametrize("change", [{"games": 7}, {"games": 2}, {"random_plies": 60}, {"random_plies": -1}])
def test_a_match_that_cannot_be_played_is_refused(change: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="expected"):
        replace(SHORT, **change)
