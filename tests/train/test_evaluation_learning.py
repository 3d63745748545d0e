"""Learning an evaluation: planted weights are found again, sides and wings are one, a seed gives one table."""

from dataclasses import replace

import numpy as np
import pytest

from envs import engine_for, load_variant, read_fen
from envs.layout import BLACK_CODE
from train.alphabeta import AlphaBeta
from train.evaluation_features import Features, are_sides_alike, count_standing
from train.evaluation_games import GamePlayer, LearningGame
from train.evaluation_learning import (
    Learner,
    LearningSettings,
    Positions,
    fit,
    lambda_returns,
    learn_table,
    result_scale,
)
from train.evaluation_prior import SmoothPrior, square_correlation
from train.evaluation_tables import UNITS, mirrored
from train.progress import Reporter

QUIET = Reporter(quiet=True)
SHORT = LearningSettings(games=60, games_per_round=30, depth=1, max_plies=80)
PLANTED = {"P": 0.3, "N": 0.9, "B": 1.0, "R": 1.6, "Q": 2.8}


def features_of(name: str) -> Features:
    return Features.of(engine_for(load_variant(name)))


def random_parameters(features: Features, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.0, 0.3, features.num_terms + features.num_kinds + 1)


@pytest.mark.parametrize("name", ["chess", "asylum", "separate_realms_2", "gardner"])
def test_alike_sides_share_every_weight_with_ranks_mirrored(name: str) -> None:
    variant = load_variant(name)
    features = features_of(name)
    weights = np.rint(1000 * features.weights(random_parameters(features))).astype(np.int32)
    assert are_sides_alike(variant)
    assert (mirrored(weights, variant) == weights).all()
    assert not weights[0].any()


@pytest.mark.parametrize("name", ["orda", "horde", "maharajah", "chigorin"])
def test_unlike_sides_have_weights_of_their_own(name: str) -> None:
    variant, features = load_variant(name), features_of(name)
    weights = np.rint(1000 * features.weights(random_parameters(features))).astype(np.int32)
    assert not are_sides_alike(variant)
    assert (mirrored(weights, variant) != weights).any()
    assert len(features.letters) == 2 * len(variant.piece_types)


def test_wings_are_one_where_the_rules_are_the_same_on_both() -> None:
    features = features_of("chess")
    weights = features.weights(random_parameters(features)).reshape(32, 8, 8)
    assert (weights == weights[:, :, ::-1]).all()
    assert (weights != weights[:, ::-1]).any()


def test_a_royal_of_alike_sides_has_square_terms_only() -> None:
    features = features_of("chess")
    parameters = random_parameters(features)
    changed = parameters.copy()
    changed[features.num_terms : -1][features.is_royal] += 5
    assert features.is_royal.sum() == 1
    assert (features.weights(changed) == features.weights(parameters)).all()


def test_royals_of_unlike_sides_say_how_much_better_an_army_is() -> None:
    features = features_of("orda")
    parameters = random_parameters(features)
    changed = parameters.copy()
    changed[features.num_terms : -1][features.is_royal] += (5.0, 2.0)
    change = features.weights(changed) - features.weights(parameters)
    assert np.allclose(change, change[:, :1])  # on every square alike
    assert sorted(change[:, 0].round(9))[:: len(change) - 1] == [-2.0, 5.0]
    assert np.count_nonzero(change[:, 0].round(9)) == 2


@pytest.mark.parametrize("name", ["chess", "orda"])
def test_the_gradient_is_that_of_the_weights(name: str) -> None:
    features, rng = features_of(name), np.random.default_rng(3)
    parameters = random_parameters(features)
    slope = rng.normal(size=features.weights(parameters).shape) * (features.kinds >= 0)[:, None]
    gradient = features.gradient(slope, 0.25)
    assert gradient[-1] == 0.25
    for number in rng.integers(0, len(parameters) - 1, 40):
        step = np.zeros_like(parameters)
        step[number] = 1e-3
        change = features.weights(parameters + step) - features.weights(parameters - step)
        assert gradient[number] == pytest.approx((slope * change).sum() / 2e-3, abs=1e-6)


def test_lambda_returns_blend_what_followed_with_the_result() -> None:
    values = np.array([0.5, 0.6, 0.2])
    assert lambda_returns(values, 1.0, 1.0).tolist() == [1.0, 1.0, 1.0]
    assert lambda_returns(values, 1.0, 0.0).tolist() == [0.6, 0.2, 1.0]
    assert lambda_returns(values, 1.0, 0.5) == pytest.approx([0.6 / 2 + (0.2 / 2 + 1 / 2) / 2, 0.2 / 2 + 1 / 2, 1.0])
    assert lambda_returns(np.array([]), 0.5, 0.5).shape == (0,)


def scattered_boards(num_positions: int, rng: np.random.Generator, densest: float = 0.25) -> np.ndarray:
    """Boards of chess with up to this share of the squares held by pieces that are not royal, of either side."""
    is_held = rng.random((num_positions, 64)) < rng.uniform(0.03, densest, (num_positions, 1))
    codes = rng.integers(2, 7, is_held.shape) + BLACK_CODE * rng.integers(0, 2, is_held.shape)
    return np.where(is_held, codes, 0).astype(np.uint8)


def planted_parameters(features: Features) -> np.ndarray:
    truth = np.zeros(features.num_terms + features.num_kinds + 1)
    for letter, worth in PLANTED.items():
        truth[features.num_terms + features.letters.index(letter)] = worth
    return truth


def test_planted_weights_are_found_again_from_results_drawn_by_them() -> None:
    features, rng = features_of("chess"), np.random.default_rng(0)
    letters, truth = list(features.letters), planted_parameters(features)
    knight = features.terms[letters.index("N") + 1]
    truth[knight[[27, 28, 35, 36]]] = 0.4  # in the middle
    truth[knight[[0, 7, 56, 63]]] = -0.4  # in the corners
    truth[-1] = 0.2
    boards = scattered_boards(20_000, rng)
    movers = rng.integers(0, 2, len(boards)).astype(np.uint8)
    weights = features.weights(truth)
    logits = weights[boards, np.arange(64)].sum(axis=1) + truth[-1] * (1 - 2.0 * movers)
    scores = (rng.random(len(boards)) < 1 / (1 + np.exp(-logits))).astype(np.float64)
    positions = Positions(boards, movers, scores, np.ones(len(boards)), scores)
    found = fit(features, positions, np.zeros_like(truth), LearningSettings())
    assert result_scale(logits, scores, positions.counts) == pytest.approx(1.0, abs=0.03)
    assert result_scale(logits / 1.5, scores, positions.counts) == pytest.approx(1.5, abs=0.05)
    worth, _ = features.worth(features.weights(found), count_standing(boards))
    for letter, planted in PLANTED.items():
        assert worth[letters.index(letter)] == pytest.approx(planted, rel=0.08), letter
    middle, corner = (features.weights(found)[letters.index("N") + 1, square] for square in (27, 0))
    assert middle - corner > 0.3
    assert found[-1] == pytest.approx(0.2, abs=0.05)


def test_planted_values_are_found_again_by_temporal_differences_of_whole_games() -> None:
    game, rng = engine_for(load_variant("chess")), np.random.default_rng(1)
    learner = Learner(game, LearningSettings(games=1, trace_decay=0.5), seed=0)
    weights = learner.features.weights(planted_parameters(learner.features))
    games = []
    for board in scattered_boards(4000, rng, densest=0.12):  # nothing happens until the result is drawn
        logit = weights[board, np.arange(64)].sum()
        boards, movers = np.tile(board, (6, 1)), np.arange(6, dtype=np.uint8) % 2
        score = float(rng.random() < 1 / (1 + np.exp(-logit)))
        games.append(LearningGame(boards, movers, np.full(6, np.nan, np.float32), score))
    learner.add_round(games)
    learner.fit_round()
    table = learner.table(0)
    for letter, planted in PLANTED.items():
        assert table.values[letter] * table.pawn == pytest.approx(UNITS * planted, rel=0.15, abs=90), letter


def test_a_leaf_has_the_score_of_the_search_that_led_to_it() -> None:
    game = engine_for(load_variant("chess"))
    rng = np.random.default_rng(5)
    features = Features.of(game)
    parameters = random_parameters(features, seed=1)
    parameters[features.num_terms : -1] = [0.0, *(PLANTED[letter] for letter in features.letters[1:])]
    weights = np.rint(UNITS * features.weights(parameters)).astype(np.int32)
    fen = "r1bqkbnr/pppp1ppp/2n5/4p3/2B1P3/5Q2/PPPP1PPP/RNB1K1NR b KQkq - 3 3"
    found = GamePlayer(game, depth=2, max_plies=2).play(
        fen, np.stack([weights, weights]), 30, random_plies=0, seed=int(rng.integers(100))
    )
    best = AlphaBeta(game, weights, tempo=30, table_bits=0).search(read_fen(game, fen), depth=2).best
    value = weights[found.boards[0], np.arange(64)].sum() + (30 if found.movers[0] == 0 else -30)
    assert -value == best.score  # Black is to move
    assert np.isnan(found.white_score)
    assert len(found.boards) == 2


def test_games_have_results_and_the_same_seed_plays_the_same_game() -> None:
    game = engine_for(load_variant("gardner"))
    features = Features.of(game)
    weights = np.rint(UNITS * features.weights(random_parameters(features))).astype(np.int32)
    player, both = GamePlayer(game, depth=1, max_plies=200), np.stack([weights, weights])
    fen = game.variant.start_fen
    scores = {player.play(fen, both, 0, random_plies=6, seed=seed).white_score for seed in range(30)}
    assert {0.0, 1.0} <= scores
    one, other, third = (player.play(fen, both, 0, random_plies=6, seed=seed) for seed in (4, 4, 5))
    assert (one.boards == other.boards).all()
    assert one.boards.shape != third.boards.shape or (one.boards != third.boards).any()


def test_a_seed_and_its_settings_give_the_same_file_byte_for_byte() -> None:
    variant = load_variant("gardner")
    texts = [learn_table(variant, seed=seed, settings=SHORT, reporter=QUIET).to_text(variant) for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]


def test_no_games_are_refused() -> None:
    with pytest.raises(ValueError, match="games: expected at least 1, got 0"):
        replace(SHORT, games=0)


def test_a_few_seconds_of_gardner_order_the_pieces() -> None:
    settings = LearningSettings(games=800, games_per_round=100, depth=2)
    values = learn_table(load_variant("gardner"), settings=settings, reporter=QUIET).values
    assert values["Q"] > values["R"] > values["N"] > values["P"] == 1.0


def test_a_game_of_unlike_sides_is_learned_with_separate_values() -> None:
    learner = Learner(engine_for(load_variant("orda")), replace(SHORT, games=30), seed=0)
    learner.play_round()
    learner.fit_round()
    table = learner.table(0)
    assert {"N", "l", "h"} <= set(table.values)
    assert "K" not in table.values
    assert "k" not in table.values
    assert table.rules_hash == load_variant("orda").rules_hash


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_chess_values_from_any_seed_are_those_of_chess(seed: int) -> None:
    settings = LearningSettings(games=2400, depth=4)
    values = learn_table(load_variant("chess"), seed=seed, settings=settings, reporter=QUIET).values
    assert values["P"] < values["N"]
    assert values["B"] < values["R"] < values["Q"]
    assert all(2 <= values[minor] <= 4 for minor in "NB")
    assert 3.5 <= values["R"] <= 6.5
    assert 6 <= values["Q"] <= 11


@pytest.mark.parametrize("name", ["chess", "palace_ninja_guards", "maharajah"])
def test_the_prior_holds_near_squares_for_alike_and_far_ones_not(name: str) -> None:
    features = features_of(name)
    correlation = square_correlation(features, reach=2.0, roughness=0.1)
    used = np.unique(features.terms[features.terms >= 0] % len(correlation))
    between = correlation[np.ix_(used, used)]
    apart = np.sqrt(((features.places[used][:, None] - features.places[used]) ** 2).sum(axis=2))
    assert np.allclose(np.diag(between), 1)
    assert between[apart == 1].min() > 0.7
    assert abs(between[apart > 6]).max() < 0.05
    assert np.linalg.eigvalsh(correlation).min() > 0


def test_white_parameters_are_those_of_the_evaluation_on_another_scale() -> None:
    features, rng = features_of("orda"), np.random.default_rng(0)
    prior = SmoothPrior.of(features, LearningSettings())
    parameters, slope = random_parameters(features), rng.normal(size=features.num_terms + features.num_kinds + 1)
    white = prior.whiten(parameters)
    np.testing.assert_allclose(prior.colour(white), parameters, atol=1e-9)
    step = rng.normal(size=len(white))
    change = slope @ (prior.colour(white + step) - prior.colour(white))
    assert prior.colour_gradient(slope) @ step == pytest.approx(change)
