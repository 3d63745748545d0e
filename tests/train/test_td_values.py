"""Piece values by temporal differences: planted evaluations are covered, with games as the clusters alone."""

import numpy as np
import pytest
from scipy.special import expit

from envs import engine_for, load_variant
from envs.notation import piece_code
from train.evaluation_features import Features
from train.evaluation_games import LearningGame
from train.evaluation_learning import LearningSettings
from train.piece_values import MethodValues
from train.piece_values.td import Learned, combined, td_values, values_of, worth_matrix
from train.piece_values.td_equations import Equations, design_of
from train.progress import Reporter
from train.ratings import Interval

FEATURES = Features.of(engine_for(load_variant("gardner")))
LETTERS = "QRBNP"
PLANTED = dict(zip(LETTERS, (3.2, 1.9, 1.4, 1.3, 0.5)))
LENGTH = 4
SETTINGS = LearningSettings(trace_decay=0.5, square_spread=0.05, positions_per_game=LENGTH)


def simulate(seed: int, games: int) -> list[LearningGame]:
    """Make games in which nothing happens until the result is drawn from what stands on the board."""
    rng = np.random.default_rng(seed)
    kinds = [FEATURES.letters.index(letter) for letter in LETTERS]
    codes = np.array([[piece_code(kind, side) for kind in kinds] for side in (0, 1)])
    boards = np.zeros((games, 25), np.uint8)
    held = rng.random(boards.shape) < rng.uniform(0.05, 0.4, (games, 1))
    chosen = rng.choice(len(LETTERS), boards.shape, p=[0.1, 0.15, 0.15, 0.2, 0.4])
    boards[held] = codes[rng.integers(0, 2, boards.shape), chosen][held]
    truth = np.zeros(FEATURES.num_terms + FEATURES.num_kinds + 1)
    truth[[FEATURES.num_terms + kind for kind in kinds]] = list(PLANTED.values())
    chance = expit(design_of(FEATURES, boards, np.zeros(games, np.uint8)) @ truth)
    scores = (rng.random(games) < chance).astype(np.float64)
    movers, open_ends = np.arange(LENGTH, dtype=np.uint8) % 2, np.full(LENGTH, np.nan, np.float32)
    return [LearningGame(np.tile(board, (LENGTH, 1)), movers, open_ends, score) for board, score in zip(boards, scores)]


def learned_from(games: list[LearningGame]) -> Learned:
    equations = Equations.of(FEATURES, games, SETTINGS)
    return Learned(equations, equations.refined(np.zeros(equations.num_parameters), steps=8))


def measured(seeds: list[int], games: int, resamples: int = 200) -> MethodValues:
    return values_of([learned_from(simulate(seed, games)) for seed in seeds], seeds=seeds, resamples=resamples)


def hits(values: MethodValues) -> list[bool]:
    found = []
    for piece in values.pieces:
        if piece.value is not None and piece.letter in "QRBN":
            found.append(piece.value.low <= PLANTED[piece.letter] / PLANTED["P"] <= piece.value.high)
    return found


def with_positions_as_games(games: list[LearningGame]) -> list[LearningGame]:
    """Treat every position as if it were a game of its own: the wrong unit."""
    return [
        LearningGame(game.boards[at : at + 1], game.movers[at : at + 1], game.decided[at : at + 1], game.white_score)
        for game in games
        for at in range(LENGTH)
    ]


def test_planted_values_are_found_and_each_seed_is_a_split() -> None:
    values = measured([1, 2, 3], games=1000)
    for piece in values.pieces:
        assert piece.value is not None
        assert piece.value.estimate == pytest.approx(PLANTED[piece.letter] / PLANTED["P"], rel=0.2)
        assert piece.log_odds is not None
        assert piece.log_odds.estimate == pytest.approx(PLANTED[piece.letter], rel=0.2)
    assert [split.name for split in values.splits] == ["seed 1", "seed 2", "seed 3"]
    assert values.games == values.decisive_games == 3000


def test_intervals_hold_the_planted_values_in_most_of_20_data_sets() -> None:
    found = [hit for seed in range(20) for hit in hits(measured([seed], games=300, resamples=100))]
    assert len(found) > 60
    assert 0.89 <= np.mean(found) <= 0.99


@pytest.mark.slow
def test_coverage_over_1000_data_sets_lies_between_93_and_97_percent() -> None:
    found = [hit for seed in range(1000) for hit in hits(measured([seed], games=600, resamples=400))]
    assert 0.93 <= np.mean(found) <= 0.97


@pytest.mark.slow
def test_coverage_with_three_seeds_lies_between_93_and_98_percent() -> None:
    found = [hit for seed in range(300) for hit in hits(measured([3 * seed, 3 * seed + 1, 3 * seed + 2], games=400))]
    assert 0.93 <= np.mean(found) <= 0.98


def test_positions_as_units_give_intervals_that_miss_the_planted_values() -> None:
    found = []
    for seed in range(8):
        wrong = learned_from(with_positions_as_games(simulate(seed, games=200)))
        found += hits(values_of([wrong], seeds=[seed], resamples=100))
    assert np.mean(found) < 0.85


def test_a_games_influence_is_what_leaving_it_out_changes() -> None:
    games = simulate(seed=5, games=200)
    whole = learned_from(games)
    worth, _ = worth_matrix(FEATURES, whole.equations.standing)
    pawn = worth[FEATURES.letters.index("P")]
    ratios = worth @ whole.parameters / (pawn @ whole.parameters)
    influence = whole.equations.influence(whole.parameters)
    expected = ((influence @ worth.T) - ratios * (influence @ pawn)[:, None]) / (pawn @ whole.parameters)
    for left_out in (0, 7, 150):
        rest = learned_from(games[:left_out] + games[left_out + 1 :])
        moved = ratios - worth @ rest.parameters / (pawn @ rest.parameters)
        np.testing.assert_allclose(moved, expected[left_out], atol=0.15 * np.abs(expected).max() + 1e-3)


def test_as_many_positions_of_a_game_count_as_the_learner_takes_spread_evenly() -> None:
    (game,) = simulate(seed=6, games=1)
    decided = np.where(np.arange(50) % 5 == 0, np.float32(1), np.float32(np.nan))
    boards, movers = np.tile(game.boards[:1], (50, 1)), np.zeros(50, np.uint8)
    games = [LearningGame(boards, movers, decided, 1.0), LearningGame(boards[:3], movers[:3], decided[1:4], 0.0)]
    equations = Equations.of(FEATURES, games, LearningSettings(positions_per_game=10))
    counted = np.flatnonzero(equations._is_counted)
    assert len(counted) == 10 + 3
    assert np.isnan(equations.decided[counted]).all()
    assert np.diff(counted[:10]).max() <= 6


def test_seeds_that_differ_widen_the_interval_and_those_that_agree_narrow_it() -> None:
    alike = combined([Interval(3.0, 2.5, 3.5), Interval(3.0, 2.5, 3.5), Interval(3.0, 2.5, 3.5)])
    assert alike.high - alike.estimate == pytest.approx(0.5 / np.sqrt(3), rel=1e-6)
    apart = combined([Interval(2.0, 1.9, 2.1), Interval(3.0, 2.9, 3.1), Interval(4.0, 3.9, 4.1)])
    assert apart.estimate == pytest.approx(3.0)
    assert apart.high > 5.0  # two degrees of freedom
    assert combined([Interval(3.0, 2.0, 5.0)]) == Interval(3.0, 2.0, 5.0)


def test_an_evaluation_is_learned_with_each_seed_and_equal_seeds_give_equal_values() -> None:
    variant = load_variant("fides_vs_rookies")
    settings = LearningSettings(games=4, games_per_round=2, depth=1, max_plies=40)
    quiet = Reporter(quiet=True)
    values = td_values(variant, seeds=(3, 4), settings=settings, resamples=100, reporter=quiet)
    alone = td_values(variant, seeds=(4,), settings=settings, resamples=100, reporter=quiet)
    assert alone.pieces == values.splits[1].pieces
    letters = [piece.letter for piece in values.pieces]
    assert {"P", "p", "Q", "c"} <= set(letters)  # sides that differ are told apart
    assert "K" not in letters
    assert "k" not in letters
    assert values.method == "td"
    with pytest.raises(ValueError, match="seeds: expected different ones"):
        td_values(variant, seeds=(1, 1), settings=settings, reporter=quiet)
