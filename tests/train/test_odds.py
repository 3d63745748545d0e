"""Piece values from random material odds: planted weights are covered, pairs are the clusters, colours are swapped."""

from dataclasses import replace

import numpy as np
import pytest

from envs import Position, engine_for, load_variant
from envs.notation import parse_fields
from tests.train.planted_games import WEIGHTS, WHITE_ADVANTAGE, PlantedGames, draw_scores, planted_players
from tests.train.stored_run import random_games
from train.evaluation_tables import mirrored, table_for
from train.piece_values.kept_games import KeptGames
from train.piece_values.odds import MOST_IMBALANCE, Players, odds_of_records, play_odds, values_by_odds
from train.piece_values.odds_games import (
    ARMY,
    OddsGames,
    Settings,
    estimate_values,
    games_of_pairs,
    joined,
)
from train.piece_values.odds_games import (
    WHITE_ADVANTAGE as ADVANTAGE,
)
from train.piece_values.paired_starts import Army, check_colours, colours_swapped, own_values
from train.piece_values.positions import InsufficientData

QUICK = Settings(resamples=100)


@pytest.fixture(scope="module")
def pool() -> OddsGames:
    return play_odds(planted_players(1), 200, seed=1)


def drawn_again(games: OddsGames, seed: int, *, shared: float = 0.0) -> OddsGames:
    """Draw other results for the same starts."""
    weights = np.array([WEIGHTS[letter] for letter in games.letters])
    logits = WHITE_ADVANTAGE + games.difference @ weights
    return replace(games, white_score=draw_scores(np.random.default_rng(seed), logits, shared=shared))


def hits(games: OddsGames, settings: Settings = QUICK) -> list[bool]:
    """Say for each weight, and each value in pawns, whether its interval holds the planted one."""
    found = []
    for piece in estimate_values(games, settings).pieces:
        weight = WEIGHTS[piece.letter]
        assert piece.log_odds is not None
        found.append(piece.log_odds.low <= weight <= piece.log_odds.high)
        if piece.letter != "P" and piece.value is not None:
            found.append(piece.value.low <= weight / WEIGHTS["P"] <= piece.value.high)
    return found


def test_planted_weights_are_recovered_through_the_starts_that_are_really_drawn(pool: OddsGames) -> None:
    values = values_by_odds(drawn_again(pool, 3), QUICK, basis="planted")
    for piece in values.pieces:
        assert piece.value is not None
        assert piece.value.low <= WEIGHTS[piece.letter] / WEIGHTS["P"] <= piece.value.high
    assert values.terms[ADVANTAGE].low <= WHITE_ADVANTAGE <= values.terms[ADVANTAGE].high
    assert ARMY not in values.terms
    assert values.games == 400
    assert {split.name for split in values.splits} >= {"first copy", "second copy"}


def test_intervals_hold_the_planted_weights_in_most_of_100_data_sets(pool: OddsGames) -> None:
    found = [hit for seed in range(100) for hit in hits(drawn_again(pool, seed))]
    assert 0.90 <= np.mean(found) <= 0.99


@pytest.mark.slow
def test_coverage_over_1000_data_sets_lies_between_93_and_97_percent(pool: OddsGames) -> None:
    found = [hit for seed in range(1000) for hit in hits(drawn_again(pool, seed), Settings(resamples=400))]
    assert 0.93 <= np.mean(found) <= 0.97


def test_games_as_clusters_miss_the_planted_weights_where_the_games_of_a_pair_depend_on_each_other(
    pool: OddsGames,
) -> None:
    right, wrong = [], []
    for seed in range(12):
        once = drawn_again(pool, seed, shared=1.0)
        games = joined([once] * 3)  # each pair depends on two others besides
        right += hits(replace(games, pair=np.tile(once.pair, 3)))
        wrong += hits(replace(games, pair=np.arange(games.pair.size)))
    assert np.mean(wrong) < 0.8
    assert np.mean(right) > 0.87


def test_a_start_and_its_twin_swap_armies_and_keep_the_first_move(pool: OddsGames) -> None:
    np.testing.assert_array_equal(pool.difference[::2], -pool.difference[1::2])
    players = planted_players(2, "asylum")
    play_odds(players, 5, seed=1)
    assert isinstance(players.kept, PlantedGames)
    for first, twin in zip(players.kept.orders[::2], players.kept.orders[1::2]):
        own, turned = (parse_fields(players.game.variant, order.fen) for order in (first, twin))
        assert own.to_play == turned.to_play == 0
        assert own.rights == (*turned.rights[2:], *turned.rights[:2])
        flipped = turned.board[list(players.game.variant.board.flipped)].astype(int)
        np.testing.assert_array_equal(own.board, np.where(flipped == 0, 0, (flipped + 16 - 1) % 32 + 1))


def test_starts_are_about_even_to_the_players(pool: OddsGames) -> None:
    game = engine_for(load_variant("chess"))
    own = own_values(table_for(game.variant), game)
    letters = [piece.letter for piece in game.variant.piece_types]
    worth = pool.difference @ own[[letters.index(letter) for letter in pool.letters]]
    assert np.abs(worth).max() < MOST_IMBALANCE
    assert (pool.difference != 0).any(axis=1).all()


def test_unequal_armies_give_an_army_term_and_pieces_of_both() -> None:
    players = planted_players(3, "orda")
    games = play_odds(players, 60, seed=2)
    assert (games.army[::2] == 1).all()
    assert (games.army[1::2] == -1).all()
    estimate = estimate_values(games, replace(QUICK, min_games_per_piece=5))
    assert ARMY in estimate.terms
    measured = {piece.letter for piece in estimate.pieces if piece.log_odds}
    assert {"L", "H", "A", "Q", "R"} <= measured
    assert isinstance(players.kept, PlantedGames)
    weights = players.kept.orders[1].weights
    np.testing.assert_array_equal(weights[0], mirrored(players.table.weights, players.game.variant))


def test_armies_that_cannot_change_colours_are_refused_with_the_pieces_of_one_side() -> None:
    with pytest.raises(InsufficientData, match=r"only one side owns, Q, R, B, N, need games with colours swapped"):
        play_odds(planted_players(0, "horde"), 2, seed=0)
    check_colours(engine_for(load_variant("fides_vs_clobberers")))


def test_rights_to_castle_go_with_a_missing_rook_in_the_twin_too() -> None:
    game = engine_for(load_variant("chess"))
    army = Army(game, game.variant.start_fen)
    start = army.without(army.standing(0, game.variant.type_by_letter["R"])[:1])
    assert start is not None
    assert start.fen.split()[2] == "Kkq"
    assert start.swapped_fen is not None
    assert start.swapped_fen.split()[2] == "KQk"
    assert Position(game.variant, start.swapped_fen).outcome() is None


def test_a_twin_of_a_twin_is_the_start() -> None:
    for name in ("chess", "asylum", "palace_ninja_guards", "fides_vs_clobberers"):
        game = engine_for(load_variant(name))
        fen = game.variant.start_fen.split()[0]
        twin = colours_swapped(game, game.variant.start_fen)
        assert twin is not None
        again = colours_swapped(game, twin)
        assert again is not None
        assert again.split()[0] == fen


def test_a_piece_with_too_few_games_is_refused_and_the_others_are_not(pool: OddsGames) -> None:
    knight = pool.letters.index("N")
    uneven = np.flatnonzero(pool.difference[:, knight])
    chosen = np.ones(pool.pair.size, np.bool_)
    chosen[uneven[4:]] = False
    estimate = estimate_values(drawn_again(pool, 5).take(chosen), replace(QUICK, min_games_per_piece=10))
    refused = {piece.letter: piece.refusal for piece in estimate.pieces if piece.refusal}
    assert refused == {"N": "a difference in 4 games, at least 10 are needed"}


def test_too_few_games_or_games_cut_short_are_refused_by_number(pool: OddsGames) -> None:
    few = drawn_again(pool, 6).take(pool.pair < 30)
    cut = replace(few, white_score=np.where(few.pair < 10, np.nan, few.white_score))
    with pytest.raises(InsufficientData, match=r"40 finished games \(20 more were cut short\), at least 50"):
        estimate_values(cut, replace(QUICK, min_games_per_piece=1))


def test_seeds_are_pooled_and_shown_as_splits(pool: OddsGames) -> None:
    other = replace(drawn_again(pool, 8), seed=np.full(pool.seed.size, 2))
    both = joined([drawn_again(pool, 7), other])
    assert np.unique(both.pair).size == 400
    values = values_by_odds(both, QUICK, basis="planted")
    assert [split.name for split in values.splits][-2:] == ["seed 1", "seed 2"]
    assert values.checks["seeds"] == [1, 2]


def test_a_runs_games_from_odds_are_read_and_others_left_out() -> None:
    game = engine_for(load_variant("gardner"))
    records = random_games(game, 60, seed=3)
    records[0] = replace(records[0], start_kind="array")
    games = odds_of_records(game, records)
    assert games.white_score.size == 59
    fields = parse_fields(game.variant, records[1].start_fen)
    pawn = game.variant.type_by_letter["P"]
    difference = int((fields.board == pawn + 1).sum()) - int((fields.board == pawn + 17).sum())
    assert games.difference[0, games.letters.index("P")] == difference
    with pytest.raises(InsufficientData, match="no game that began from material odds"):
        odds_of_records(game, records[:1])


def test_the_same_seed_gives_the_same_games_with_one_thread_or_two_and_another_seed_others() -> None:
    game = engine_for(load_variant("gardner"))

    def scores(seed: int, threads: int) -> list[float]:
        players = Players(game, table_for(game.variant), KeptGames(None, depth=1, threads=threads))
        return [float(score) for score in play_odds(players, 6, seed=seed).white_score]

    assert scores(1, 1) == scores(1, 2)
    assert scores(1, 1) != scores(2, 1)


def test_games_of_pairs_without_a_twin_keep_their_colours() -> None:
    game = engine_for(load_variant("horde"))
    army = Army(game, game.variant.start_fen)
    start = army.without(army.standing(1, game.variant.type_by_letter["Q"]))
    assert start is not None
    assert start.swapped_fen is None
    games = games_of_pairs(game, [start], np.array([1.0, 0.0]))
    np.testing.assert_array_equal(games.difference[0], games.difference[1])
