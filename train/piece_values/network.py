"""Piece values by a network: how its forecast falls when a piece is taken off the board.

From quiet positions of a run's games one piece of each kind and side is removed, where what is left is a position in
which the game goes on. A removal costs the piece's owner so much of the log-odds of the expected score, win plus half a
draw, by the value head alone. The mean over removals from the side to move and the mean over those from the other side
count alike, so that what the network thinks of the move cancels. A value is such a mean over that of the same owner's
pawns in the same positions: dear pieces stand in openings, where every removal costs less. Games are clusters.

Forecasts near certainty carry no scale: positions whose own lies beyond `SURE` are left out, and what is left after a
removal is clipped there, which makes dear pieces cheaper; both shares are stated. A network is read only under the
rules that it trained on, since the games are those of its own run. What it values is what its training has taught it.

Dims: N positions, M removals, G games, K kinds, R resamples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from envs import CompiledGame, to_play
from envs.variant import WHITE
from models.evaluator import Evaluator
from train.piece_values.estimates import MethodValues, PieceEstimate, Split
from train.piece_values.fits import NO_UNIT, Fits, Progress
from train.piece_values.logistic import Floats
from train.piece_values.positions import InsufficientData
from train.piece_values.removals import MOVER, OTHER, Removals, expected_scores, remove_pieces
from train.shards import GameRecord

SURE = 0.02, 0.98
"""Expected scores beyond which a forecast carries no scale."""
POSITIONS_PER_GAME = 4
MOST_GAMES = 1000


@dataclass(frozen=True)
class NetworkSettings:
    """How a network is asked.

    Attributes:
        games: newest games of the run, at most.
        positions_per_game: drawn from each, at most.
        min_games_per_piece: with fewer games that a piece was removed in it has no value.
        resamples: R.
        seed: of what is drawn, and of the bootstrap.
    """

    games: int = MOST_GAMES
    positions_per_game: int = POSITIONS_PER_GAME
    min_games_per_piece: int = 20
    resamples: int = 1000
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Losses:
    """What removals cost.

    Attributes:
        letters: of the kinds, [K].
        loss: log-odds that the owner's score falls by, [M].
        pawn: the same for a pawn of the owner in the same position, NaN where none was removed, [M].
        kind: intp [M].
        owner: intp [M].
        game: intp [M].
        num_games: G.
    """

    letters: tuple[str, ...]
    loss: Floats
    pawn: Floats
    kind: NDArray[np.intp]
    owner: NDArray[np.intp]
    game: NDArray[np.intp]
    num_games: int

    def take(self, chosen: NDArray[np.bool_]) -> Losses:
        """Return the removals where `chosen` [M] holds; games keep their numbers."""
        parts = {name: getattr(self, name)[chosen] for name in ("loss", "pawn", "kind", "owner", "game")}
        return replace(self, **parts)

    def games_with_each(self) -> NDArray[np.intp]:
        """Count the games that each kind was removed in, [K]."""
        pairs = np.unique(self.game * len(self.letters) + self.kind)
        return np.bincount(pairs % len(self.letters), minlength=len(self.letters))


def network_values(
    game: CompiledGame,
    evaluator: Evaluator,
    records: Sequence[GameRecord],
    *,
    settings: NetworkSettings,
    progress: Progress | None = None,
) -> MethodValues:
    """Ask a network what the pieces in its own run's games are worth.

    Args:
        game: that the network was trained on.
        evaluator: the network.
        records: games of its run; whether they were cut short does not matter, since their results are not used.
        settings: how it is asked.
        progress: called with the evaluations done and wanted.

    Raises:
        InsufficientData: the game has no pawns, or too few removals leave a position.
    """
    if game.variant.pawns is None:
        raise InsufficientData(f"no unit: {game.variant.title} has no pawns")
    newest = records[-settings.games :]
    removals = remove_pieces(game, newest, positions_per_game=settings.positions_per_game, seed=settings.seed)
    scores = expected_scores(game, evaluator, np.concatenate([removals.positions, removals.left]), progress)
    losses, shares = losses_of(game, removals, scores)
    opening = removals.is_opening[removals.origin[shares.used]]
    splits = {
        "opening": losses.take(opening),
        "ending": losses.take(~opening),
        "owner to move": losses.take(losses.owner == MOVER),
        "opponent to move": losses.take(losses.owner == OTHER),
    }
    results = np.array([record.white_score for record in newest], np.float64)
    return MethodValues(
        method="network",
        pieces=_pieces(game, losses, settings, must_have_unit=True),
        games=len(np.unique(losses.game)),
        decisive_games=int(np.isin(results[np.unique(losses.game)], (0.0, 1.0)).sum()),
        cut_games=0,
        splits=tuple(Split(name, _pieces(game, part, settings)) for name, part in splits.items()),
        basis=(
            f"{losses.loss.size} removals from {len(removals.positions)} quiet positions of {removals.num_games} games "
            f"by the value head alone; {100 * shares.sure:.0f} % of the positions left out and "
            f"{100 * shares.clipped:.0f} % of the removals clipped, their score beyond {SURE[0]} to {SURE[1]}; "
            f"{settings.resamples} resamples of games"
        ),
        checks={
            "positions": len(removals.positions),
            "removals": int(losses.loss.size),
            "share_left_out": shares.sure,
            "share_clipped": shares.clipped,
            "share_clipped_by_piece": shares.clipped_by_kind,
            "resamples": settings.resamples,
            "seed": settings.seed,
        },
    )


@dataclass(frozen=True, eq=False)
class Shares:
    """What certainty left out.

    Attributes:
        used: which removals are used, bool [M].
        sure: share of the positions that are left out.
        clipped: share of the removals used that are clipped.
        clipped_by_kind: the same for each letter.
    """

    used: NDArray[np.bool_]
    sure: float
    clipped: float
    clipped_by_kind: dict[str, float]


def losses_of(game: CompiledGame, removals: Removals, scores: Floats) -> tuple[Losses, Shares]:
    """Return what removals cost their owners.

    Args:
        game: the game.
        removals: what was removed.
        scores: White's expected scores of the positions, then of what was left, [N + M].

    Raises:
        InsufficientData: every position is certain.
    """
    low, high = SURE
    before, after = scores[: len(removals.positions)], scores[len(removals.positions) :]
    is_open = (before >= low) & (before <= high)
    used = is_open[removals.origin]
    if not used.any():
        raise InsufficientData(f"positions with an expected score of {low} to {high}: none of {len(before)}")
    movers = to_play(game, removals.left)
    sign = np.where((movers == WHITE) == (removals.owner == MOVER), 1.0, -1.0)
    fall = sign * (logit(np.clip(before, low, high))[removals.origin] - logit(np.clip(after, low, high)))
    clipped = ((after < low) | (after > high))[used]
    kind = removals.kind[used]
    losses = Losses(
        removals.letters, fall[used], _pawn_losses(game, removals, fall)[used], kind, removals.owner[used],
        removals.game[removals.origin[used]], removals.num_games,
    )  # fmt: skip
    by_kind = {
        letter: float(clipped[kind == k].mean()) for k, letter in enumerate(removals.letters) if (kind == k).any()
    }
    return losses, Shares(used, float(1 - is_open.mean()), float(clipped.mean()), by_kind)


def _pawn_losses(game: CompiledGame, removals: Removals, loss: Floats) -> Floats:
    """Return what a pawn of the same owner costs in the same position, NaN where none was removed, [M]."""
    assert game.variant.pawns is not None
    pawn = game.variant.piece_types[game.variant.pawns.piece].letter
    is_pawn = np.array([letter.upper() == pawn for letter in removals.letters])[removals.kind]
    by_place = np.full((len(removals.positions), 2), np.nan)
    by_place[removals.origin[is_pawn], removals.owner[is_pawn]] = loss[is_pawn]
    found: Floats = by_place[removals.origin, removals.owner]
    return found


def fit_losses(losses: Losses, *, resamples: int, seed: int) -> Fits:
    """Return mean losses over both owners alike, with resamples of games; [3 K] features.

    First come the mean losses of all kinds, then the same where a pawn was removed too, then that pawn's.

    Args:
        losses: of at least one game.
        resamples: R.
        seed: of the bootstrap.
    """
    games, game = np.unique(losses.game, return_inverse=True)
    has_pawn = ~np.isnan(losses.pawn)
    pawn = np.where(has_pawn, losses.pawn, 0.0)
    shape, place = (len(games), 2, len(losses.letters)), (game, losses.owner, losses.kind)
    sums, counts = zip(
        *(_totals(shape, place, *part) for part in (
            (losses.loss, np.ones(len(game))), (losses.loss * has_pawn, has_pawn), (pawn, has_pawn)))
    )  # fmt: skip
    total, number = np.concatenate(sums, axis=2), np.concatenate(counts, axis=2)
    estimate, by_owner = _means(total.sum(axis=0), number.sum(axis=0))
    held = np.maximum(number.sum(axis=0), 1.0)
    owners = np.maximum((number.sum(axis=0) > 0).sum(axis=0), 1)
    influence = ((total - np.nan_to_num(by_owner) * number) / held).sum(axis=1) / owners
    drawn = np.random.default_rng(seed).multinomial(len(games), np.full(len(games), 1 / len(games)), size=resamples)
    flat = (-1, *total.shape[1:])
    resampled, _ = _means(
        *((drawn.astype(np.float64) @ part.reshape(len(games), -1)).reshape(flat) for part in (total, number))
    )
    return Fits(estimate, resampled, influence, float("nan"))


def _totals(
    shape: tuple[int, int, int], place: tuple[NDArray[np.intp], ...], values: Floats, counts: NDArray[np.generic]
) -> tuple[Floats, Floats]:
    """Return sums of values and of counts [M] at their places, [G, 2, K] each."""
    sums, numbers = np.zeros(shape), np.zeros(shape)
    np.add.at(sums, place, values)
    np.add.at(numbers, place, counts.astype(np.float64))
    return sums, numbers


def _means(sums: Floats, counts: Floats) -> tuple[Floats, Floats]:
    """Return means over owners [..., K] of means [..., 2, K]; an owner without any does not count; 0 without both."""
    has_any = counts > 0
    by_owner = np.where(has_any, sums / np.where(has_any, counts, 1.0), np.nan)
    known = has_any.sum(axis=-2)
    mean = np.where(known > 0, np.nansum(by_owner, axis=-2) / np.maximum(known, 1), 0.0)
    return mean, by_owner


def _pieces(
    game: CompiledGame, losses: Losses, settings: NetworkSettings, *, must_have_unit: bool = False
) -> tuple[PieceEstimate, ...]:
    """Return one entry per kind.

    Raises:
        InsufficientData: pawns were removed in too few games; only if `must_have_unit`.
    """
    counts, needed = losses.games_with_each(), settings.min_games_per_piece
    has_enough = counts >= needed
    assert game.variant.pawns is not None
    pawn = game.variant.piece_types[game.variant.pawns.piece].letter
    pawns = [kind for kind, letter in enumerate(losses.letters) if letter.upper() == pawn and has_enough[kind]]
    if must_have_unit and not pawns:
        raise InsufficientData(f"no unit, the pawn ({pawn}): removed in too few games, at least {needed} are needed")
    reason = f"removed in {{}} games, at least {needed} are needed"
    entries = {
        letter: PieceEstimate(letter, int(count), None, None, reason.format(count))
        for letter, count in zip(losses.letters, counts)
    }
    if pawns:
        fits = fit_losses(losses, resamples=settings.resamples, seed=settings.seed)
        entries |= {
            losses.letters[kind]: _entry(fits, losses.letters[kind], kind, len(losses.letters), int(counts[kind]))
            for kind in np.flatnonzero(has_enough).tolist()
        }
    return tuple(entries.values())


def _entry(fits: Fits, letter: str, kind: int, num_kinds: int, games: int) -> PieceEstimate:
    """Return the entry of a kind that was removed in enough games."""
    alongside, pawn = num_kinds + kind, 2 * num_kinds + kind
    has_unit = fits.weight(pawn).low > 0
    value = fits.ratio(alongside, pawn) if has_unit else None
    return PieceEstimate(letter, games, fits.weight(kind), value, "" if has_unit else NO_UNIT)
