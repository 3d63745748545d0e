"""Piece values from results: how much a difference in pieces moves the odds of the game.

Model (Tomasev, Paquet, Hassabis and Kramnik 2020, arXiv 2009.04374, fit tanh of a weighted material
difference to the results of self-play games; tanh(x) is the logistic function of 2x on another scale):

    log-odds of White's score = white advantage + side to move + sum of weight * (White's - Black's count)

A draw is half a win. A piece's value in pawns is its weight over the pawn's. Positions of a game share its
result, so the **game** is the cluster (`fits.py`). It says who won with more of what, not what the pieces did: a
player who is winning anyway wins pieces. A piece that only one side ever has cannot be told from that side's
advantage: it stays in the fit, but has no value.

Dims: N positions, G games, T piece types, K of them with enough data, U distinct feature rows, F = 2 + K features.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from train.config_sections import PieceValuesConfig
from train.piece_values.estimates import MethodValues, PieceEstimate, Split
from train.piece_values.fits import Progress, Sums, check_games, drop_rare, fit_with_resamples
from train.piece_values.positions import Details, InsufficientData, Positions

COMMON_FEATURES = ("White's advantage", "side to move")
"""Features before the pieces'."""
SPLIT_RESAMPLES = 200
"""Resamples behind the intervals of a split, at most."""
SIDE_NAMES = ("White", "Black")
MORE = "+"
"""Behind the letter of a piece's further copies."""


def estimate_values(
    positions: Positions, *, settings: PieceValuesConfig, seed: int, progress: Progress | None = None
) -> MethodValues:
    """Fit the outcome model and bootstrap it over games.

    Args:
        positions: positions of finished games.
        settings: thresholds, weighting, number of resamples; where it wants quiet positions only and the details are
            known, the others are left out.
        seed: of the bootstrap.
        progress: called with the resamples done and wanted.

    Raises:
        InsufficientData: too little for any value.
    """
    used = positions
    if settings.quiet_only and used.details is not None:
        used = used.take(used.details.is_quiet)
    used, refusals = drop_rare(used, settings.min_games_per_piece)
    check_games(used.white_score, used.cut_games, least=settings.min_games)
    kept = [letter for letter in used.letters if letter not in refusals]
    one_sided = _one_sided(used, kept)
    sums = summarise(used, kept, settings.weighting)
    fits = fit_with_resamples(
        sums, [*COMMON_FEATURES, *kept], resamples=settings.bootstrap, seed=seed, progress=progress
    )
    feature = {letter: len(COMMON_FEATURES) + index for index, letter in enumerate(kept)}
    games = dict(zip(used.letters, used.games_with_difference().tolist()))
    measured = {**fits.pieces(feature, games, unit=feature[used.pawn]), **refusals, **one_sided}
    return MethodValues(
        method="outcome",
        pieces=tuple(measured[letter] for letter in used.letters),
        games=used.num_games,
        decisive_games=used.decisive_games,
        cut_games=positions.cut_games,
        terms={name: fits.weight(index) for index, name in enumerate(COMMON_FEATURES)},
        basis=(
            f"{used.game.size} {'quiet ' if settings.quiet_only else ''}positions of {used.num_games} games, each "
            f"{settings.weighting} weighing the same; {settings.bootstrap} resamples of games; "
            f"condition number {fits.condition:.0f}"
        ),
        checks={
            "positions": used.game.size,
            "condition_number": fits.condition,
            "resamples": settings.bootstrap,
            "seed": seed,
            "quiet_only": settings.quiet_only,
            "weighting": settings.weighting,
        },
    )


def outcome_splits(positions: Positions, *, settings: PieceValuesConfig, seed: int) -> tuple[Split, ...]:
    """Return what the values become with other positions, weights or ways to count.

    Args:
        positions: all of them, with details; not the quiet ones alone.
        settings: as for `estimate_values`.
        seed: of the bootstrap.
    """
    details = positions.details
    if details is None:
        raise ValueError("positions: expected details, got none")
    settings = settings.model_copy(update={"bootstrap": min(settings.bootstrap, SPLIT_RESAMPLES)})
    others = settings.model_copy(update={"quiet_only": not settings.quiet_only})
    weighting = "position" if settings.weighting == "game" else "game"
    reweighted = settings.model_copy(update={"weighting": weighting})
    ways: dict[str, tuple[Positions, PieceValuesConfig]] = {
        "opening": (positions.take(details.is_opening), settings),
        "ending": (positions.take(~details.is_opening), settings),
        "quiet positions" if others.quiet_only else "all positions": (positions, others),
        f"each {weighting} weighing the same": (positions, reweighted),
        "promoted men as pawns": (as_they_began(positions, details), settings),
    }
    splits = [Split(name, _pieces_or_refusals(*way, seed=seed)) for name, way in ways.items()]
    return (*splits, *_copies(positions, details, settings, seed))


def as_they_began(positions: Positions, details: Details) -> Positions:
    """Return positions whose promoted men count as the pawns that they were."""
    pawn = positions.letters.index(positions.pawn)
    material = positions.material - (details.promoted[:, 0] - details.promoted[:, 1])
    promoted = details.promoted.sum(axis=2, dtype=np.int16)
    material[:, pawn] += promoted[:, 0] - promoted[:, 1]
    return replace(positions, material=material)


def by_copies(positions: Positions, details: Details) -> Positions:
    """Return positions in which the first of several pieces of a type and the further ones count apart.

    The further ones go by the letter and `MORE`.
    """
    letters, columns = list(positions.letters), [positions.material]
    for index, letter in enumerate(positions.letters):
        counts = details.counts[:, :, index]
        if letter == positions.pawn or counts.max(initial=0) <= 1:
            continue
        first, further = np.minimum(counts, 1), np.maximum(counts - 1, 0)
        columns[0] = columns[0].copy()
        columns[0][:, index] = first[:, 0] - first[:, 1]
        letters.append(letter + MORE)
        columns.append((further[:, 0] - further[:, 1])[:, None])
    return replace(positions, letters=tuple(letters), material=np.hstack(columns))


def summarise(positions: Positions, letters: list[str], weighting: str) -> Sums:
    """Merge positions of equal features.

    Args:
        positions: N positions.
        letters: the piece types that are features, K of them.
        weighting: "game": each game weighs 1; "position": each position weighs the same, G in all.
    """
    columns = [positions.letters.index(letter) for letter in letters]
    side = np.where(positions.white_to_move, 1, -1).astype(np.int16)
    rows, row = np.unique(np.column_stack((side, positions.material[:, columns])), axis=0, return_inverse=True)
    if weighting == "game":
        each = 1.0 / np.bincount(positions.game, minlength=positions.num_games)[positions.game]
    else:
        each = np.full(positions.game.size, positions.num_games / positions.game.size)
    shape = (len(rows), positions.num_games)
    weight = sparse.coo_array((each, (row.ravel(), positions.game)), shape=shape).tocsr()
    features = np.column_stack((np.ones(len(rows)), rows)).astype(np.float64)
    return Sums(features, weight, positions.white_score)


def _one_sided(positions: Positions, letters: list[str]) -> dict[str, PieceEstimate]:
    """Return a refusal for each piece that only one side has in any position.

    Raises:
        InsufficientData: the pawn is one.
    """
    games = dict(zip(positions.letters, positions.games_with_difference().tolist()))
    refusals = {}
    for letter in letters:
        owners = np.flatnonzero(_has(positions, letter).any(axis=0))
        if len(owners) == 1:
            reason = f"only {SIDE_NAMES[owners[0]]} ever has one: games with colours swapped are needed"
            refusals[letter] = PieceEstimate(letter, games[letter], None, None, reason)
    if positions.pawn in refusals:
        raise InsufficientData(f"no unit, the pawn ({positions.pawn}): {refusals[positions.pawn].refusal}")
    return refusals


def _has(positions: Positions, letter: str) -> NDArray[np.bool_]:
    """Return whether White and Black have a piece of a type, as far as is known, bool [N, 2]."""
    index = positions.letters.index(letter)
    if positions.details is not None and index < positions.details.counts.shape[2]:
        return np.asarray(positions.details.counts[:, :, index] > 0)
    return np.stack([positions.material[:, index] > 0, positions.material[:, index] < 0], axis=1)


def _pieces_or_refusals(positions: Positions, settings: PieceValuesConfig, *, seed: int) -> tuple[PieceEstimate, ...]:
    """Return the pieces' values, or why there are none."""
    try:
        return estimate_values(positions, settings=settings, seed=seed).pieces
    except InsufficientData as error:
        games = positions.games_with_difference().tolist()
        return tuple(
            PieceEstimate(letter, count, None, None, str(error)) for letter, count in zip(positions.letters, games)
        )


def _copies(positions: Positions, details: Details, settings: PieceValuesConfig, seed: int) -> tuple[Split, ...]:
    """Return the values of the first copy of each piece and of the further ones; none where no side ever has two."""
    told_apart = by_copies(positions, details)
    if len(told_apart.letters) == len(positions.letters):
        return ()
    pieces: Mapping[str, PieceEstimate] = {
        piece.letter: piece for piece in _pieces_or_refusals(told_apart, settings, seed=seed)
    }
    several = [letter for letter in positions.letters if letter + MORE in pieces]
    further = [replace(pieces[letter + MORE], letter=letter) for letter in several]
    return (
        Split("first copy", tuple(pieces[letter] for letter in several)),
        Split("second copy", tuple(further)),
    )
