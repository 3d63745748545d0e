"""Piece values by outcome: planted weights are recovered and covered, too little data is refused."""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from scipy.optimize import minimize
from scipy.special import expit

from envs import load_variant
from train.config_sections import PieceValuesConfig
from train.piece_values import InsufficientData, MethodValues, Positions, Report, estimate_values
from train.piece_values.bootstrap import bca_interval
from train.piece_values.logistic import RIDGE
from train.piece_values.outcome import COMMON_FEATURES, summarise
from train.provenance import provenance

LETTERS = ("P", "N", "B", "R", "Q")
WEIGHTS = np.array([0.5, 1.4, 1.5, 2.2, 3.5])
WHITE_ADVANTAGE = 0.2
DRAWS = 0.4
QUICK = PieceValuesConfig(bootstrap=100)


def simulate(seed: int, games: int, weights: Sequence[float] | np.ndarray = WEIGHTS) -> Positions:
    """Make games that follow the model exactly: material stays, the result is drawn from it."""
    rng = np.random.default_rng(seed)
    material = rng.choice([-1, 0, 1], p=[0.2, 0.6, 0.2], size=(games, len(LETTERS)))
    material[:, 0] = rng.binomial(4, 0.5, size=games) - 2
    chance = expit(WHITE_ADVANTAGE + material @ np.asarray(weights))
    draw = 2 * DRAWS * np.minimum(chance, 1 - chance)  # leaves the expected score as it is
    draws = rng.random(games) < draw
    wins = rng.random(games) < (chance - draw / 2) / (1 - draw)
    lengths = rng.integers(5, 60, size=games)
    return Positions(
        letters=LETTERS,
        pawn="P",
        material=np.repeat(material, lengths, axis=0).astype(np.int16),
        white_to_move=rng.random(lengths.sum()) < 0.5,
        game=np.repeat(np.arange(games, dtype=np.int32), lengths),
        white_score=np.where(draws, 0.5, wins.astype(np.float64)),
    )


def estimate(positions: Positions, settings: PieceValuesConfig = QUICK, seed: int = 1) -> MethodValues:
    return estimate_values(positions, settings=settings, seed=seed)


def with_positions_as_games(positions: Positions) -> Positions:
    """Treat every position as if it were a game of its own: the wrong unit."""
    number = np.arange(positions.game.size, dtype=np.int32)
    return replace(positions, game=number, white_score=positions.white_score[positions.game])


def covered(values: MethodValues) -> list[bool]:
    """Say for each weight, and for each value in pawns, whether its interval holds the planted one."""
    hits = []
    for piece, weight in zip(values.pieces, WEIGHTS):
        assert piece.log_odds is not None
        hits.append(piece.log_odds.low <= weight <= piece.log_odds.high)
        if piece.letter != "P" and piece.value is not None:
            hits.append(piece.value.low <= weight / WEIGHTS[0] <= piece.value.high)
    return hits


def coverage(data_sets: int, games: int, resamples: int) -> float:
    settings = PieceValuesConfig(bootstrap=resamples)
    hits = [hit for seed in range(data_sets) for hit in covered(estimate(simulate(seed, games), settings))]
    return float(np.mean(hits))


def test_planted_values_are_recovered_from_many_games() -> None:
    values = estimate(simulate(seed=5, games=4000))
    for piece, weight in zip(values.pieces, WEIGHTS):
        assert piece.value is not None
        assert piece.value.estimate == pytest.approx(weight / WEIGHTS[0], rel=0.15)
        assert piece.value.low <= piece.value.estimate <= piece.value.high
    assert values.terms["White's advantage"].low <= WHITE_ADVANTAGE <= values.terms["White's advantage"].high
    assert values.terms["side to move"].low <= 0 <= values.terms["side to move"].high


def test_intervals_hold_the_planted_values_in_most_of_100_data_sets() -> None:
    assert 0.90 <= coverage(100, games=120, resamples=100) <= 0.99


@pytest.mark.slow
def test_coverage_over_1000_data_sets_lies_between_93_and_97_percent() -> None:
    assert 0.93 <= coverage(1000, games=600, resamples=400) <= 0.97


def test_positions_as_units_give_intervals_that_miss_the_planted_values() -> None:
    hits = []
    for seed in range(8):
        wrong = with_positions_as_games(simulate(seed, games=150))
        hits += covered(estimate(wrong))
    assert np.mean(hits) < 0.6


def test_a_merged_fit_is_the_fit_of_every_single_position() -> None:
    positions = simulate(seed=3, games=120)
    sums = summarise(positions, list(LETTERS), "game")
    merged = sums.fit(np.ones(positions.num_games), np.zeros(sums.features.shape[1]))
    side = np.where(positions.white_to_move, 1.0, -1.0)
    features = np.column_stack((np.ones(side.size), side, positions.material))
    weight = 1 / np.bincount(positions.game)[positions.game]
    score = positions.white_score[positions.game]

    def loss(fit: np.ndarray) -> float:
        log_odds = features @ fit
        return float(weight @ (np.logaddexp(0, log_odds) - score * log_odds) + RIDGE / 2 * fit @ fit)

    single = minimize(loss, np.zeros(features.shape[1]), method="BFGS", options={"gtol": 1e-7}).x
    np.testing.assert_allclose(merged, single, atol=1e-4)


def test_a_draw_counts_as_half_a_win_and_half_a_loss() -> None:
    positions = simulate(seed=4, games=200)
    sums = summarise(positions, list(LETTERS), "game")
    start = np.zeros(sums.features.shape[1])
    drawn = positions.white_score == 0.5
    assert drawn.sum() > 20
    as_wins = replace(sums, white_score=np.where(drawn, 1.0, sums.white_score))
    as_losses = replace(sums, white_score=np.where(drawn, 0.0, sums.white_score))
    kept = sums.fit(np.ones(200), start)
    assert not np.allclose(kept, as_wins.fit(np.ones(200), start), atol=0.05)
    doubled = replace(
        sums, weight=type(sums.weight)(np.hstack([sums.weight.toarray() / 2] * 2)),
        white_score=np.concatenate((as_wins.white_score, as_losses.white_score)),
    )  # fmt: skip
    np.testing.assert_allclose(doubled.fit(np.ones(400), start), kept, atol=1e-6)


def test_colours_swapped_leave_the_values_and_turn_the_advantage() -> None:
    positions = simulate(seed=6, games=300)
    swapped = replace(
        positions, material=-positions.material, white_to_move=~positions.white_to_move,
        white_score=1 - positions.white_score,
    )  # fmt: skip
    one, other = estimate(positions), estimate(swapped)
    advantages, moves = ([values.terms[name].estimate for values in (one, other)] for name in COMMON_FEATURES)
    for piece, mirrored in zip(one.pieces, other.pieces):
        assert piece.log_odds is not None
        assert mirrored.log_odds is not None
        assert piece.log_odds.estimate == pytest.approx(mirrored.log_odds.estimate, abs=1e-6)
    assert advantages[0] == pytest.approx(-advantages[1], abs=1e-6)
    assert moves[0] == pytest.approx(moves[1], abs=1e-6)


def test_the_same_seed_gives_the_same_intervals_and_another_seed_others() -> None:
    positions = simulate(seed=7, games=100)
    assert estimate(positions, seed=1) == estimate(positions, seed=1)
    assert estimate(positions, seed=1).pieces != estimate(positions, seed=2).pieces


def test_weighting_by_position_lets_long_games_count_more() -> None:
    positions = simulate(seed=8, games=150)
    by_game = summarise(positions, list(LETTERS), "game").weight.sum(axis=0)
    by_position = summarise(positions, list(LETTERS), "position").weight.sum(axis=0)
    np.testing.assert_allclose(by_game, 1)
    np.testing.assert_allclose(by_position, 150 * np.bincount(positions.game) / positions.game.size)


def test_a_pawn_whose_interval_holds_0_is_no_unit() -> None:
    values = estimate(simulate(seed=9, games=120, weights=[0.0, *WEIGHTS[1:]]))
    pawn, queen = values.pieces[0], values.pieces[-1]
    assert pawn.log_odds is not None
    assert pawn.log_odds.low < 0 < pawn.log_odds.high
    assert pawn.value is None
    assert queen.value is None
    assert queen.refusal == "the pawn's interval holds 0"
    assert queen.log_odds is not None
    assert queen.log_odds.low > 0


def test_a_piece_with_too_few_games_is_refused_and_the_others_are_not() -> None:
    positions = simulate(seed=10, games=300)
    knight = LETTERS.index("N")
    uneven = np.unique(positions.game[positions.material[:, knight] != 0])
    few = positions.take(~np.isin(positions.game, uneven[:-3]))
    values = estimate(few)
    assert values.pieces[knight].value is None
    assert values.pieces[knight].games == 3
    assert values.pieces[knight].refusal == "a difference in 3 games, at least 20 are needed"
    assert all(piece.value for piece in values.pieces if piece.letter != "N")
    assert values.games == few.num_games - 3  # games that hinge on the refused piece are left out


def test_too_little_data_is_refused_with_what_is_missing() -> None:
    positions = simulate(seed=11, games=200)
    with pytest.raises(InsufficientData, match=r"40 finished games \(7 more were cut short\), at least 50"):
        estimate(
            replace(positions.take(positions.game < 40), cut_games=7),
            PieceValuesConfig(min_games_per_piece=2),
        )
    drawn = np.where(np.arange(200) < 195, 0.5, positions.white_score)
    with pytest.raises(InsufficientData, match=r"\d decisive games among 200, at least 10"):
        estimate(replace(positions, white_score=drawn))
    even = positions.material.copy()
    even[:, 0] = 0
    with pytest.raises(InsufficientData, match=r"no unit, the pawn \(P\): a difference in 0 games"):
        estimate(replace(positions, material=even))


def test_pieces_that_always_go_together_are_refused_by_name() -> None:
    positions = simulate(seed=12, games=200)
    tied = positions.material.copy()
    tied[:, 2] = tied[:, 1]
    with pytest.raises(InsufficientData, match="tell these apart: N, B"):
        estimate(replace(positions, material=tied))


def test_results_that_pieces_decide_alone_stay_finite() -> None:
    positions = simulate(seed=13, games=100, weights=[40.0, 120, 120, 200, 400])
    values = estimate(positions)
    assert all(piece.log_odds and np.isfinite(piece.log_odds.high) for piece in values.pieces)


def test_an_interval_moves_along_with_a_monotone_change_of_scale() -> None:
    rng = np.random.default_rng(1)
    sample = rng.normal(1, 0.2, size=2000)
    influence = rng.normal(size=50)
    plain, bent = bca_interval(1.0, sample, influence), bca_interval(np.e, np.exp(sample), influence)
    assert (bent.low, bent.high) == pytest.approx((np.exp(plain.low), np.exp(plain.high)))


@pytest.fixture
def report() -> Report:
    gardner = load_variant("gardner")
    letters = tuple(gardner.piece_types[index].letter for index in range(6) if index not in gardner.royals)
    assert set(letters) == set(LETTERS)
    positions = replace(simulate(seed=14, games=250), letters=LETTERS, cut_games=50)
    basis = provenance(gardner, config_hash="c0ffee", seeds={"bootstrap": 1})
    return Report((estimate(positions),), gardner, basis)


def test_a_report_writes_json_csv_and_pictures_that_agree(report: Report, tmp_path: Path) -> None:
    document, rows, png, svg = report.write(tmp_path / "report")
    stored = json.loads(document.read_text())
    assert stored["variant"] == "gardner"
    assert stored["config_hash"] == "c0ffee"
    assert stored["seeds"] == {"bootstrap": 1}
    assert {"rules_hash", "options", "versions"} <= stored.keys()
    estimates = [piece["value"]["estimate"] for piece in stored["pieces"]]
    assert estimates == sorted(estimates, reverse=True)
    table = list(csv.DictReader(io.StringIO(rows.read_text())))
    for row, piece in zip(table, stored["pieces"]):
        assert row["letter"] == piece["letter"]
        assert float(row["value_low"]) == piece["value"]["low"]
        assert float(row["elo_high"]) == piece["methods"]["outcome"]["elo"]["high"]
    assert png.read_bytes().startswith(b"\x89PNG")
    text = svg.read_text()
    assert "queen (Q)" in text
    assert "biased: 17 % of the games were cut short" in text
    again = report.write(tmp_path / "again")
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in (document, rows, png, svg)]


def test_a_table_names_bias_and_refusals(report: Report) -> None:
    refused = replace(report.values.pieces[1], value=None, log_odds=None, refusal="a difference in 3 games")
    pieces = (report.values.pieces[0], refused, *report.values.pieces[2:])
    odd = replace(report, methods=(replace(report.values, pieces=pieces),))
    console = Console(width=100, file=io.StringIO())
    console.print(odd.table())
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "biased: 17 % of the games were cut short" in text
    assert "no value in pawns for N: a difference in 3 games" in text
    assert "the unit" in text
    assert "250 games" in text
    assert odd.to_document()["pieces"][-1]["letter"] == "N"
    assert odd.to_csv().splitlines()[-1].startswith("N,knight,")


def test_a_report_without_a_unit_draws_log_odds(report: Report, tmp_path: Path) -> None:
    pieces = tuple(replace(piece, value=None, refusal="no unit") for piece in report.values.pieces)
    bare = replace(report, methods=(replace(report.values, pieces=pieces, cut_games=0),))
    paths = bare.write(tmp_path)
    assert "log-odds of one piece" in paths[-1].read_text()
    assert bare.warning == ""
    headings = [column.header for column in bare.table().columns]
    assert headings == ["piece", "log-odds", "95 %", "Elo", "games"]
    assert "no value in pawns for Q R" in str(bare.table().caption)


def test_an_unbounded_end_is_null_in_json_and_an_arrow_in_the_picture(report: Report, tmp_path: Path) -> None:
    queen = report.values.pieces[-1]
    assert queen.value is not None
    endless = replace(queen, value=replace(queen.value, high=np.inf))
    wide = replace(report, methods=(replace(report.values, pieces=(*report.values.pieces[:-1], endless)),))
    paths = wide.write(tmp_path)
    assert json.loads(paths[0].read_text())["pieces"][0]["value"]["high"] is None
    assert "unbounded" in paths[-1].read_text()


@pytest.mark.slow
def test_a_thousand_resamples_of_150_000_positions_take_under_30_seconds() -> None:
    import time

    rng = np.random.default_rng(1)
    games, length = 1500, 100
    steps = rng.choice([-1, 0, 1], p=[0.03, 0.94, 0.03], size=(games, length, len(LETTERS)))
    material = steps.cumsum(axis=1)
    chance = expit(material[:, -1] @ WEIGHTS)
    positions = Positions(
        LETTERS, "P", material.reshape(-1, len(LETTERS)).astype(np.int16), rng.random(games * length) < 0.5,
        np.repeat(np.arange(games, dtype=np.int32), length), (rng.random(games) < chance).astype(np.float64),
    )  # fmt: skip
    started = time.process_time()
    estimate(positions, PieceValuesConfig(bootstrap=1000))
    assert time.process_time() - started < 30
