"""Piece values by a network: pieces are taken off legally, a planted forecast is read back, games are the clusters."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit

from envs import Position, boards, engine_for, load_variant, to_play
from envs.rows import format_fen
from models.evaluator import UniformEvaluator
from tests.train.stored_run import make_run, random_games
from train.piece_values import InsufficientData, MethodValues
from train.piece_values.network import Losses, NetworkSettings, fit_losses, losses_of, network_values
from train.piece_values.removals import MOVER, OTHER, Removals, expected_scores, kind_letters, remove_pieces
from train.piece_values.stored_games import ask_network

GAME = engine_for(load_variant("gardner"))
LETTERS = kind_letters(GAME)
PLANTED = {"Q": 1.6, "R": 0.9, "B": 0.6, "N": 0.7, "P": 0.25}
WEIGHTS = np.array([PLANTED[letter] for letter in LETTERS])
PAWN = LETTERS.index("P")
TEMPO = 0.3
SETTINGS = NetworkSettings(resamples=100, positions_per_game=3)


@pytest.fixture(scope="module")
def removals() -> Removals:
    records = random_games(GAME, 30, seed=1, max_plies=60)
    return remove_pieces(GAME, records, positions_per_game=3, seed=0)


class Hopeful:
    """Thinks that whoever is to move will win."""

    def __call__(
        self, observations: NDArray[np.float32], legal_actions: NDArray[np.int32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        wdl = np.tile(np.array([0.7, 0.2, 0.1], np.float32), (len(legal_actions), 1))
        return np.zeros(legal_actions.shape, np.float32), wdl


def counts(rows: np.ndarray) -> np.ndarray:
    """Count White's pieces less Black's, [N, K]."""
    found = boards(GAME, rows)
    types = [GAME.variant.type_by_letter[letter] for letter in LETTERS]
    return np.stack([(found == kind + 1).sum(axis=1) - (found == kind + 17).sum(axis=1) for kind in types], axis=1)


def test_one_piece_is_missing_and_the_game_goes_on(removals: Removals) -> None:
    before, after = boards(GAME, removals.positions)[removals.origin], boards(GAME, removals.left)
    changed = before != after
    assert (changed.sum(axis=1) == 1).all()
    assert (after[changed] == 0).all()
    gone = before[changed]
    sides = (gone > 16).astype(int)
    assert [GAME.variant.piece_types[(code - 1) % 16].letter for code in gone] == [
        LETTERS[kind] for kind in removals.kind
    ]
    assert (to_play(GAME, removals.left) == to_play(GAME, removals.positions)[removals.origin]).all()
    assert ((sides == to_play(GAME, removals.left)) == (removals.owner == MOVER)).all()
    for row in removals.left[::17]:
        assert Position("gardner", format_fen(GAME, row)).outcome() is None
    pairs = np.stack([removals.origin, removals.kind, removals.owner], axis=1)
    assert len(np.unique(pairs, axis=0)) == len(pairs)  # one of each kind and side


def test_a_planted_forecast_is_read_back_whoever_is_to_move(removals: Removals) -> None:
    rows = np.concatenate([removals.positions, removals.left])
    mover = 1.0 - 2.0 * to_play(GAME, rows)
    scores = expit(counts(rows) @ WEIGHTS + TEMPO * mover)
    losses, shares = losses_of(GAME, removals, scores)
    assert 0 < shares.used.sum() <= len(removals.left)
    fits = fit_losses(losses, resamples=50, seed=0)
    light = [kind for kind, letter in enumerate(LETTERS) if letter in "NBP"]
    np.testing.assert_allclose(fits.estimate[light], WEIGHTS[light], rtol=0.06)  # but for a few that are clipped
    knight = len(LETTERS) + LETTERS.index("N")
    ratio = fits.ratio(knight, knight + len(LETTERS))
    assert ratio.estimate == pytest.approx(PLANTED["N"] / PLANTED["P"], rel=0.05)
    mirrored, _ = losses_of(GAME, removals, 1 - scores)
    np.testing.assert_allclose(fit_losses(mirrored, resamples=50, seed=0).estimate, -fits.estimate)


def test_positions_that_are_certain_are_left_out_and_counted(removals: Removals) -> None:
    before = np.where(np.arange(len(removals.positions)) % 2, 0.5, 0.99)
    scores = np.concatenate([before, np.full(len(removals.left), 0.001)])
    losses, shares = losses_of(GAME, removals, scores)
    assert shares.sure == pytest.approx(1 - (np.arange(len(before)) % 2).mean())
    assert shares.clipped == 1.0
    np.testing.assert_allclose(np.abs(losses.loss), np.log(0.98 / 0.02))
    with pytest.raises(InsufficientData, match=r"expected score of 0\.02 to 0\.98: none of"):
        losses_of(GAME, removals, np.full_like(scores, 0.99))


def test_an_expected_score_is_whites_whoever_is_to_move(removals: Removals) -> None:
    scores = expected_scores(GAME, Hopeful(), removals.positions)
    white = to_play(GAME, removals.positions) == 0
    assert 0 < white.mean() < 1
    np.testing.assert_allclose(scores, np.where(white, 0.8, 0.2), atol=1e-6)


def simulate(seed: int, games: int, removed: int = 6) -> Losses:
    """Make losses that depend on each other within a game."""
    rng = np.random.default_rng(seed)
    game = np.repeat(np.arange(games), removed)
    kind = rng.choice(len(LETTERS), game.size)
    owner = np.where(rng.random(game.size) < 0.7, MOVER, OTHER)
    stretch = np.exp(rng.normal(0, 0.4, games))[game] / np.exp(0.08)
    common = rng.normal(0, 0.1, games)[game] + np.where(owner == MOVER, 0.1, -0.1)
    stretch[kind == LETTERS.index("Q")] *= 0.5  # queens stand where everything costs less
    loss, pawn = (worth * stretch + common + rng.normal(0, 0.1, game.size) for worth in (WEIGHTS[kind], WEIGHTS[PAWN]))
    pawn[rng.random(game.size) < 0.2] = np.nan
    return Losses(LETTERS, loss, np.where(kind == PAWN, loss, pawn), kind, owner, game, games)


def hits(losses: Losses, resamples: int) -> list[bool]:
    fits = fit_losses(losses, resamples=resamples, seed=0)
    num = len(LETTERS)
    ratios = [(fits.ratio(num + k, 2 * num + k), WEIGHTS[k] / WEIGHTS[PAWN]) for k in range(num) if k != PAWN]
    return [interval.low <= truth <= interval.high for interval, truth in ratios]


def test_intervals_hold_the_planted_values_in_most_of_100_data_sets() -> None:
    found = [hit for seed in range(100) for hit in hits(simulate(seed, games=150), resamples=100)]
    assert 0.89 <= np.mean(found) <= 0.99


@pytest.mark.slow
def test_coverage_over_1000_data_sets_lies_between_93_and_97_percent() -> None:
    found = [hit for seed in range(1000) for hit in hits(simulate(seed, games=300), resamples=400)]
    assert 0.93 <= np.mean(found) <= 0.97


def test_removals_as_units_give_intervals_that_miss_the_planted_values() -> None:
    found = []
    for seed in range(20):
        losses = simulate(seed, games=60, removed=80)
        wrong = replace(losses, game=np.arange(losses.game.size), num_games=losses.game.size)
        found += hits(wrong, resamples=100)
    assert np.mean(found) < 0.85


def test_a_network_is_asked_about_the_games_of_its_own_run(tmp_path: Path) -> None:
    make_run(tmp_path, 40)
    values = ask_network(tmp_path / "checkpoints" / "000001", resamples=100)
    assert values.method == "network"
    assert {piece.letter for piece in values.pieces} == set(LETTERS)
    assert [split.name for split in values.splits] == ["opening", "ending", "owner to move", "opponent to move"]
    assert "left out" in values.basis
    with pytest.raises(InsufficientData, match="quiet positions to take a piece from: none in 0 games"):
        ask_network(tmp_path / "checkpoints" / "000000")


def test_a_forecast_in_a_game_of_unlike_sides_tells_them_apart() -> None:
    game = engine_for(load_variant("fides_vs_rookies"))
    records = random_games(game, 12, seed=3, max_plies=40)

    settings = replace(SETTINGS, min_games_per_piece=2)
    values: MethodValues = network_values(game, UniformEvaluator(), records, settings=settings)
    letters = [piece.letter for piece in values.pieces]
    assert {"P", "p", "Q", "q", "c"} <= set(letters)
    assert all(piece.refusal for piece in values.pieces)  # nothing is worth anything to it
