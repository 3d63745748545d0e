"""Piece values from handicap matches: planted weights are covered, matches are about even, opinions are told apart."""

from dataclasses import replace

import numpy as np
import pytest

from envs import engine_for, load_variant
from envs.notation import parse_fields, piece_code
from tests.train.planted_games import WEIGHTS, WHITE_ADVANTAGE, PlantedGames, draw_scores, planted_players
from train.evaluation_tables import table_for
from train.piece_values.handicap import (
    OPINION_SHARE,
    OPINIONS,
    HandicapGames,
    draw_match,
    join_handicaps,
    opinion_split,
    own_pawns,
    play_handicap,
    values_by_handicap,
)
from train.piece_values.kept_games import KeptGames
from train.piece_values.odds import Players
from train.piece_values.odds_games import Settings, estimate_values
from train.piece_values.positions import InsufficientData

QUICK = Settings(resamples=100)
PAIRS = 200


@pytest.fixture(scope="module")
def pool() -> HandicapGames:
    return play_handicap(planted_players(1), PAIRS, seed=1)


def drawn_again(played: HandicapGames, seed: int, *, shared: float = 0.0, follow: float = 0.0) -> HandicapGames:
    """Draw other results for the same starts.

    Args:
        played: the games.
        seed: of the results.
        shared: see `draw_scores`.
        follow: how much of a change of the players' opinion of a piece its worth follows.
    """
    games = played.games
    weights = np.array([WEIGHTS[letter] for letter in games.letters])
    difference = games.difference.astype(float)
    rows = np.arange(len(difference))
    difference[rows, played.subject] *= 1 + follow * (played.opinion - 1)
    logits = WHITE_ADVANTAGE + difference @ weights
    scores = draw_scores(np.random.default_rng(seed), logits, shared=shared)
    return replace(played, games=replace(games, white_score=scores))


def hits(played: HandicapGames, settings: Settings = QUICK) -> list[bool]:
    """Say for each value in pawns whether its interval holds the planted one."""
    found = []
    for piece in estimate_values(played.plain, settings).pieces:
        weight = WEIGHTS[piece.letter]
        assert piece.log_odds is not None
        found.append(piece.log_odds.low <= weight <= piece.log_odds.high)
        if piece.letter != "P" and piece.value is not None:
            found.append(piece.value.low <= weight / WEIGHTS["P"] <= piece.value.high)
    return found


def test_planted_weights_are_recovered_through_the_matches_that_are_really_drawn(pool: HandicapGames) -> None:
    values = values_by_handicap(drawn_again(join_handicaps([pool] * 4), 3), QUICK, basis="planted")
    for piece in values.pieces:
        assert piece.value is not None
        assert piece.value.estimate == pytest.approx(WEIGHTS[piece.letter] / WEIGHTS["P"], rel=0.2)
    assert values.games == round(8 * PAIRS * (1 - OPINION_SHARE * len(OPINIONS)))
    names = {split.name for split in values.splits}
    assert names >= {"first copy", "second copy", "own values +20 %", "own values -20 %"}


def test_intervals_hold_the_planted_weights_in_most_of_100_data_sets(pool: HandicapGames) -> None:
    found = [hit for seed in range(100) for hit in hits(drawn_again(pool, seed))]
    assert 0.90 <= np.mean(found) <= 0.99


@pytest.mark.slow
def test_coverage_over_1000_data_sets_lies_between_93_and_97_percent() -> None:
    pool = play_handicap(planted_players(1), 4 * PAIRS, seed=1)
    found = [hit for seed in range(1000) for hit in hits(drawn_again(pool, seed), Settings(resamples=400))]
    assert 0.93 <= np.mean(found) <= 0.97


def test_games_as_clusters_miss_the_planted_weights_where_the_games_of_a_pair_depend_on_each_other(
    pool: HandicapGames,
) -> None:
    right, wrong = [], []
    for seed in range(12):
        once = drawn_again(pool, seed, shared=1.0)
        played = join_handicaps([once] * 3)  # each pair depends on two others besides
        right += hits(replace(played, games=replace(played.games, pair=np.tile(once.games.pair, 3))))
        wrong += hits(replace(played, games=replace(played.games, pair=np.arange(played.subject.size))))
    assert np.mean(wrong) < 0.8
    assert np.mean(right) > 0.87


def test_matches_come_to_be_even_where_the_players_are_wrong_about_a_piece() -> None:
    weights = {**WEIGHTS, "N": 2.4}
    players = planted_players(2)
    kept = PlantedGames(2, weights=weights)
    played = play_handicap(replace(players, kept=kept), 160, seed=3)
    knight = played.games.letters.index("N")
    logits = played.games.difference @ np.array([weights[letter] for letter in played.games.letters])
    about = np.abs(logits[(played.subject == knight) & (played.opinion == 1)])
    assert about[-20:].mean() < about[:20].mean() - 0.2
    assert about[-20:].mean() < 0.7


def test_a_match_sets_one_piece_against_others_and_half_of_them_leave_the_last_copy() -> None:
    players = planted_players(0)
    own, rng = own_pawns(players), np.random.default_rng(5)
    letters = [piece.letter for piece in players.game.variant.piece_types]
    rook, pawn = letters.index("R"), letters.index("P")
    last_copies = 0
    for _ in range(30):
        match = draw_match(players, rook, own, rng)
        assert match is not None
        missing = np.array(match.missing)
        assert sorted(missing[:, rook].tolist()) in ([0, 1], [1, 2])
        last_copies += int(missing[:, rook].max() == 2)
        side = int(missing[:, rook].argmax())
        assert missing[side, pawn] == 0
        assert missing[1 - side].sum() >= 1
        assert abs(match.difference @ own) < 2.5
    assert 7 <= last_copies <= 23


def test_pawn_odds_are_one_or_two_pawns_of_one_side() -> None:
    players = planted_players(0)
    own, rng = own_pawns(players), np.random.default_rng(6)
    pawn = players.game.variant.type_by_letter["P"]
    found = {draw_match(players, pawn, own, rng).missing for _ in range(30)}  # type: ignore[union-attr]
    assert {tuple(sorted((sum(white), sum(black)))) for white, black in found} == {(0, 1), (0, 2)}


def test_opinion_scales_the_rows_of_the_piece_of_the_match_and_no_others() -> None:
    players = planted_players(4)
    played = play_handicap(players, 40, seed=1)
    assert isinstance(players.kept, PlantedGames)
    turned = np.flatnonzero(played.opinion == OPINIONS[0])
    assert turned.size == 2 * round(40 * OPINION_SHARE)
    variant, table = players.game.variant, players.table.weights
    for number in turned:
        letter = played.games.letters[played.subject[number]]
        weights = players.kept.orders[number].weights[0]
        own = [piece_code(variant.type_by_letter[letter], side) for side in (0, 1)]
        others = np.setdiff1d(np.arange(len(table)), own)
        np.testing.assert_array_equal(weights[own], np.rint(OPINIONS[0] * table[own]))
        np.testing.assert_array_equal(weights[others], table[others])


def test_values_that_follow_the_players_opinion_show_in_the_splits(pool: HandicapGames) -> None:
    many = join_handicaps([pool] * 4)

    def queen(follow: float, factor: float) -> float:
        (found,) = opinion_split(drawn_again(many, 5, follow=follow), factor, QUICK)
        value = next(piece.value for piece in found.pieces if piece.letter == "Q")
        assert value is not None
        return value.estimate

    planted = WEIGHTS["Q"] / WEIGHTS["P"]
    assert queen(1.0, 1.2) > 1.1 * planted > 0.95 * planted > queen(1.0, 0.8)
    assert queen(0.0, 1.2) == pytest.approx(planted, rel=0.12)


def test_a_game_without_pawns_or_with_armies_that_cannot_change_colours_is_refused() -> None:
    with pytest.raises(InsufficientData, match="only one side owns"):
        play_handicap(planted_players(0, "horde"), 10, seed=0)
    bare = load_variant("chess")
    game = engine_for(replace(bare, pawns=None, name="bare"))
    with pytest.raises(InsufficientData, match=r"no unit: .* has no pawns"):
        play_handicap(Players(game, table_for(bare), PlantedGames(0)), 10, seed=0)


def test_the_same_seed_gives_the_same_games_with_one_thread_or_two() -> None:
    game = engine_for(load_variant("gardner"))

    def played(threads: int) -> HandicapGames:
        return play_handicap(
            Players(game, table_for(game.variant), KeptGames(None, depth=1, threads=threads)), 20, seed=4
        )

    one, two = played(1), played(2)
    np.testing.assert_array_equal(one.games.white_score, two.games.white_score)
    np.testing.assert_array_equal(one.games.counts, two.games.counts)
    assert (one.games.seed == 4).all()


def test_both_games_of_a_pair_begin_with_random_plies_of_their_own() -> None:
    players = planted_players(0)
    play_handicap(players, 10, seed=1)
    assert isinstance(players.kept, PlantedGames)
    assert {order.random_plies for order in players.kept.orders} == {4}
    assert len({order.seed for order in players.kept.orders}) == len(players.kept.orders)
    assert parse_fields(players.game.variant, players.kept.orders[0].fen).to_play == 0
