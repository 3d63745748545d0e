"""Piece values from random material odds: chance takes pieces off the start array, the engine plays on from there.

Which pieces a side lacks is drawn, not chosen by a player, so the fitted weights are effects. The starts are drawn so
that they tell ratios well. Few pieces are missing, up to `MOST_MISSING` of a side: from emptier boards a pawn is worth
to weak players what they can do with it, which is little. Each missing piece is of a type drawn first, so that rare
types are measured as well as common ones. Starts that the players themselves think lopsided (`MOST_IMBALANCE`) are
drawn again: near-even games are where a logistic model needs to hold least far, and where a game tells most, since each
sets one combination of pieces against another. That the players' opinion picks the starts moves no weight, since
weights are fitted to results given the start.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from envs import CompiledGame
from envs.notation import parse_fields
from train.evaluation_tables import EvaluationTable, mirrored
from train.piece_values.estimates import MethodValues, Split
from train.piece_values.kept_games import KeptGames
from train.piece_values.logistic import Floats
from train.piece_values.odds_games import (
    OddsGames,
    Settings,
    copy_splits,
    estimate_values,
    games_of_pairs,
    games_of_starts,
    split,
)
from train.piece_values.paired_starts import Army, PairedStart, check_colours, one_sided_pieces, own_values
from train.piece_values.positions import InsufficientData
from train.progress import Update
from train.shards import GameRecord
from train.starts import array_start
from train.table_games import GameOrder

MOST_IMBALANCE = 1.5
"""Logits of the expected score, by what the players think."""
MOST_MISSING = 4
"""Pieces of a side."""
PAWN_SHARE = 3.0
"""How often a missing piece is a pawn, for each time that it is another type."""
OPENING_MISSING = 0.35
"""Up to this share of the pieces missing a start counts as an opening."""
MAX_TRIES = 10_000
ODDS = "odds"
"""Kind of start in a run's games (`GameRecord.start_kind`)."""


@dataclass(frozen=True, eq=False)
class Players:
    """Who plays: the alpha-beta engine on both sides.

    Attributes:
        game: the game.
        table: what both go by.
        kept: plays the games, or knows them.
    """

    game: CompiledGame
    table: EvaluationTable
    kept: KeptGames


def play_odds(players: Players, pairs: int, *, seed: int, update: Update = lambda done: None) -> OddsGames:
    """Play games from random odds, each start twice; the same arguments give the same games.

    Args:
        players: who plays.
        pairs: starts.
        seed: of the starts and games.
        update: told how many games are done.

    Raises:
        InsufficientData: the armies differ and cannot change colours.
    """
    check_colours(players.game)
    rng = np.random.default_rng([seed, 0])
    starts = [draw_odds(players, rng) for _ in range(pairs)]
    scores = play_pairs(players, starts, rng=rng, update=update)
    return games_of_pairs(players.game, starts, scores, seed=seed)


def draw_odds(players: Players, rng: np.random.Generator) -> PairedStart:
    """Draw a start that lacks random pieces and that the players think about even.

    Raises:
        InsufficientData: no such start was found, as in a game with nothing to take off.
    """
    own = own_values(players.table, players.game)
    army = Army(players.game, array_start(players.game, rng))
    for _ in range(MAX_TRIES):
        squares = np.concatenate([_some_of_a_side(army, side, rng) for side in (0, 1)])
        counts = army.counts_without(np.isin(army.removable, squares))
        if squares.size and abs((counts[0] - counts[1]) @ own) < MOST_IMBALANCE:
            start = army.without(squares)
            if start is not None and start.difference.any():
                return start
    raise InsufficientData(f"about even starts with pieces missing: none in {MAX_TRIES} tries")


def _some_of_a_side(army: Army, side: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return the squares of up to `MOST_MISSING` pieces of a side, each of a type that is drawn first."""
    pawns = army.game.variant.pawns
    left = {kind: rng.permutation(army.standing(side, kind)) for kind in np.flatnonzero(army.counts[side]).tolist()}
    taken = []
    for _ in range(int(rng.integers(MOST_MISSING + 1))):
        kinds = [kind for kind, squares in left.items() if squares.size]
        if not kinds:
            break
        shares = np.array([PAWN_SHARE if pawns is not None and kind == pawns.piece else 1.0 for kind in kinds])
        kind = int(rng.choice(kinds, p=shares / shares.sum()))
        taken.append(left[kind][0])
        left[kind] = left[kind][1:]
    return np.array(taken, np.intp)


def play_pairs(  # noqa: PLR0913 - what is played, and how
    players: Players,
    starts: Sequence[PairedStart],
    *,
    rng: np.random.Generator,
    weights: Sequence[NDArray[np.int32]] | None = None,
    random_plies: int = 0,
    update: Update = lambda done: None,
) -> Floats:
    """Play each start, then its twin (or the start again where there is none).

    Args:
        players: who plays.
        starts: S of them.
        rng: of the games; consumed.
        weights: of the evaluation that both players go by in each start, S times int32 [R, squares]; their table's if
            None. In the twin they are mirrored.
        random_plies: a game begins with so many random moves.
        update: told how many games are done.

    Returns:
        White's scores, NaN for games that were cut short, [2 * S].
    """
    table, variant = players.table, players.game.variant
    weights = weights or [table.weights] * len(starts)
    turned = {id(own): mirrored(own, variant) for own in weights}
    orders = []
    for start, own in zip(starts, weights, strict=True):
        twin = (start.fen, own) if start.swapped_fen is None else (start.swapped_fen, turned[id(own)])
        for fen, side in ((start.fen, own), twin):
            both = np.broadcast_to(side, (2, *side.shape))
            orders.append(GameOrder(fen, both, table.tempo, random_plies, int(rng.integers(1 << 62))))
    results = players.kept.play(players.game, orders, update=update)
    return np.array([result.white_score for result in results], np.float64)


def odds_of_records(game: CompiledGame, records: Iterable[GameRecord]) -> OddsGames:
    """Return a run's games that began from odds; each is a cluster of its own.

    Args:
        game: the run's.
        records: its games; those from other starts are left out.

    Raises:
        InsufficientData: no game began from odds, or the armies differ: a run's games never swap their colours.
    """
    fens, scores = [], []
    for record in records:
        if record.start_kind == ODDS:
            fens.append(record.start_fen)
            scores.append(record.white_score)
    if not fens:
        raise InsufficientData("no game that began from material odds")
    pieces = one_sided_pieces(game)
    if pieces:
        raise InsufficientData(
            f"pieces that only one side owns, {', '.join(pieces)}, need games with colours swapped, and a run has none"
        )
    boards = np.stack([parse_fields(game.variant, fen).board for fen in fens])
    return games_of_starts(game, boards, np.array(scores, np.float64))


def values_by_odds(games: OddsGames, settings: Settings, *, basis: str) -> MethodValues:
    """Estimate piece values from games with odds, with splits by stage, copy and seed.

    Args:
        games: from `play_odds` or `odds_of_records`, of one seed or several (`odds_games.joined`).
        settings: of the fit.
        basis: players and depth, in a few words.

    Raises:
        InsufficientData: too little for any value.
    """
    estimate = estimate_values(games, settings)
    few = games.missing <= OPENING_MISSING
    splits = []
    if few.any() and not few.all():
        splits += [*split("opening", games.take(few), settings), *split("ending", games.take(~few), settings)]
    splits += [*copy_splits(games, settings), *seed_splits(games, settings)]
    return estimate.to_method("odds", games, splits=splits, basis=basis)


def seed_splits(games: OddsGames, settings: Settings) -> list[Split]:
    """Return the estimate by each seed, where there are several."""
    seeds = np.unique(games.seed)
    if seeds.size < 2:
        return []
    return [part for seed in seeds for part in split(f"seed {seed}", games.take(games.seed == seed), settings)]
