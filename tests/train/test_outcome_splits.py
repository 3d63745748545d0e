"""What outcome values become with other positions and ways to count: promoted men, copies, phases, one-sided pieces."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit

from envs import VectorEnv, engine_for, load_variant
from tests.train.stored_run import make_run, random_games
from train.config_sections import PieceValuesConfig
from train.piece_values import InsufficientData, Positions, collect_positions, estimate_values, measure_run
from train.piece_values.outcome import as_they_began, by_copies, outcome_splits
from train.piece_values.positions import Details
from train.piece_values.promotions import promoted_men
from train.shards import GameRecord

GAME = engine_for(load_variant("gardner"))
LETTERS = ("P", "N", "R", "Q")
WEIGHTS = np.array([0.5, 1.4, 2.2, 3.5])
SECOND_ROOK = 1.0
QUICK = PieceValuesConfig(bootstrap=100)


def simulate(seed: int, games: int) -> Positions:
    """Make games whose material stays; a second rook is worth less than the first."""
    rng = np.random.default_rng(seed)
    counts = rng.binomial([3, 1, 2, 1], 0.5, size=(games, 2, 4))
    rooks = counts[:, :, 2]
    worth = counts @ WEIGHTS - (WEIGHTS[2] - SECOND_ROOK) * np.maximum(rooks - 1, 0)
    chance = expit(worth[:, 0] - worth[:, 1])
    lengths = rng.integers(2, 5, size=games)
    each = np.repeat(counts, lengths, axis=0).astype(np.int16)
    size = int(lengths.sum())
    return Positions(
        letters=LETTERS,
        pawn="P",
        material=each[:, 0] - each[:, 1],
        white_to_move=rng.random(size) < 0.5,
        game=np.repeat(np.arange(games, dtype=np.int32), lengths),
        white_score=(rng.random(games) < chance).astype(np.float64),
        details=Details(each, np.zeros_like(each), rng.random(size) < 0.5, np.arange(size) % 3 > 0),
    )


def promoted_by_name(record: GameRecord) -> list[Counter[str]]:
    """Return the letters of the men that were pawns, before each move, by the slow way."""
    env = VectorEnv("gardner", 1)
    env.set_fen(0, record.start_fen)
    squares: set[str] = set()
    found = []
    for action in record.actions:
        rows = env.fen(0).split()[0].split("/")
        board = {}
        for rank, row in zip(range(5, 0, -1), rows):
            spelled = "".join("." * int(letter) if letter.isdigit() else letter for letter in row)
            board.update({f"{name}{rank}": letter for name, letter in zip("abcde", spelled)})
        found.append(Counter(board[square] for square in squares))
        move = env.action_to_move(0, int(action))
        start, target = move[:2], move[2:4]
        is_promoted = start in squares or len(move) > 4
        squares -= {start, target}
        squares |= {target} if is_promoted else set()
        env.step([action])
    return found


def test_promoted_men_are_followed_until_they_are_captured() -> None:
    records = random_games(GAME, 12, seed=2, max_plies=80)
    seen: Counter[str] = Counter()
    for record in records:
        counts = promoted_men(GAME, record)
        for of_sides, names in zip(counts, promoted_by_name(record)):
            for number, piece in enumerate(GAME.variant.piece_types):
                assert of_sides[:, number].tolist() == [names[piece.letter], names[piece.letter.lower()]]
            seen += names
    assert len(seen) > 4  # both sides' and of several types


def test_promoted_men_count_as_pawns_where_that_is_asked() -> None:
    positions = simulate(seed=1, games=10)
    assert positions.details is not None
    promoted = np.zeros_like(positions.details.counts)
    promoted[:, 0, 3] = positions.details.counts[:, 0, 3]  # all of White's queens
    changed = as_they_began(positions, replace(positions.details, promoted=promoted))
    queens = positions.details.counts[:, 0, 3]
    assert (changed.material[:, 3] == positions.material[:, 3] - queens).all()
    assert (changed.material[:, 0] == positions.material[:, 0] + queens).all()
    assert (changed.material[:, 1:3] == positions.material[:, 1:3]).all()


def test_the_first_of_two_rooks_and_the_second_have_values_of_their_own() -> None:
    positions = simulate(seed=2, games=6000)
    assert positions.details is not None
    assert by_copies(positions, positions.details).letters == (*LETTERS, "R+")
    splits = {split.name: split.pieces for split in outcome_splits(positions, settings=QUICK, seed=0)}
    for name, weight in (("first copy", WEIGHTS[2]), ("second copy", SECOND_ROOK)):
        (rook,) = splits[name]
        assert rook.letter == "R"
        assert rook.log_odds is not None
        assert rook.log_odds.estimate == pytest.approx(weight, rel=0.2)


def test_splits_say_what_they_are_and_where_there_is_too_little() -> None:
    positions = simulate(seed=3, games=120)
    splits = {split.name: split.pieces for split in outcome_splits(positions, settings=QUICK, seed=0)}
    assert list(splits) == [
        "opening",
        "ending",
        "all positions",
        "each position weighing the same",
        "promoted men as pawns",
        "first copy",
        "second copy",
    ]
    assert positions.details is not None
    never = replace(positions, details=replace(positions.details, is_opening=np.zeros(len(positions.game), np.bool_)))
    opening = outcome_splits(never, settings=QUICK, seed=0)[0].pieces
    assert all(piece.refusal and piece.value is None for piece in opening)


def test_quiet_positions_alone_are_used_if_asked() -> None:
    positions = simulate(seed=4, games=200)
    assert positions.details is not None
    quiet = positions.take(positions.details.is_quiet)
    every = QUICK.model_copy(update={"quiet_only": False})
    assert estimate_values(positions, settings=QUICK, seed=0).checks["positions"] == quiet.game.size
    assert estimate_values(positions, settings=every, seed=0).checks["positions"] == positions.game.size


def test_a_piece_that_only_one_side_ever_has_is_refused_and_the_others_are_not() -> None:
    positions = simulate(seed=5, games=1500)
    assert positions.details is not None
    counts = positions.details.counts.copy()
    counts[:, 1, 3] = 0
    one_sided = replace(
        positions, material=counts[:, 0] - counts[:, 1], details=replace(positions.details, counts=counts)
    )
    values = {piece.letter: piece for piece in estimate_values(one_sided, settings=QUICK, seed=0).pieces}
    assert values["Q"].refusal == "only White ever has one: games with colours swapped are needed"
    assert values["Q"].value is None
    assert values["Q"].log_odds is None
    assert all(values[letter].value for letter in "PNR")
    counts[:, 0, 0] = 0
    no_pawns = replace(one_sided, material=counts[:, 0] - counts[:, 1])
    with pytest.raises(InsufficientData, match=r"no unit, the pawn \(P\): only Black ever has one"):
        estimate_values(no_pawns, settings=QUICK, seed=0)


def test_positions_of_games_come_with_what_splits_go_by() -> None:
    records = random_games(GAME, 20, seed=1, max_plies=200)
    positions = collect_positions(GAME, records, quiet_only=False)
    details = positions.details
    assert details is not None
    assert (details.counts[:, 0] - details.counts[:, 1] == positions.material).all()
    assert (details.promoted <= details.counts).all()
    men = details.counts.sum(axis=(1, 2)) + 2
    assert (details.is_opening == (men >= 10)).all()  # half of the 20 men of the array


@pytest.mark.slow
def test_a_run_is_measured_with_splits_if_asked(tmp_path: Path) -> None:
    make_run(tmp_path, 120)
    plain, _ = measure_run(tmp_path)
    report, _ = measure_run(tmp_path, with_splits=True)
    assert plain.methods[0].splits == ()
    assert report.methods[0].pieces == plain.methods[0].pieces
    assert "promoted men as pawns" in [split.name for split in report.methods[0].splits]
