"""Piece values from handicap matches, after H. G. Muller: a piece against pawns, and pawns alone as the unit.

In a match one side begins without a piece X and the other without about as much: k pawns, where k is drawn around the
number at which the match is even. It begins from what the players think, and is found anew after each round from the
games so far. Pawns run out: what is worth more than half of a side's pawns is set against lesser pieces, drawn at
random, and pawns for the rest. In games of pawn odds one side begins without one or two pawns and the other with all;
they carry the unit. All games enter one regression with the pair as cluster, so that X is worth what it takes to make
the match even. Which copy of X, which pawns and which side are drawn at random; where there are two copies, in half of
the matches both sides begin without one, so that the match is about the last one.

Do the values follow the players' own opinion? For each X its matches are played again with the players' weights of X
a fifth higher and a fifth lower; the answers are splits.

Source: H. G. Muller's piece-value measurements, described in the TalkChess forum and at https://www.chessvariants.com.
Dims: G games, T piece types.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from envs import CompiledGame
from envs.notation import piece_code
from train.piece_values.estimates import MethodValues, Split
from train.piece_values.fits import check_games, sums_of_starts
from train.piece_values.logistic import Floats
from train.piece_values.odds import Players, play_pairs, seed_splits
from train.piece_values.odds_games import (
    OddsGames,
    Settings,
    brief,
    copy_splits,
    estimate_values,
    fit_columns,
    games_of_pairs,
    joined,
    measured_types,
)
from train.piece_values.paired_starts import Army, PairedStart, check_colours, own_values
from train.piece_values.positions import InsufficientData
from train.progress import Update
from train.starts import MAX_TRIES, array_start

OPINIONS = (1.2, 0.8)
"""Factors on the players' own value of the piece that is measured."""
OPINION_SHARE = 0.1
"""Of all pairs, for each opinion."""
ROUNDS = 4
"""After each, the number of pawns that makes a match even is found anew."""
SPREAD = 1.0
"""Pawns on either side of even that matches are drawn from."""
PAWN_SHARE = 3.0
"""Pairs of pawn odds for each pair of a piece's match."""
MOST_PAWN_ODDS = 2
RANDOM_PLIES = 4
LEAST_PAWN = 0.01
"""Logits; a pawn that the players value less tells them nothing about other pieces."""
FURTHEST = 2.0
"""Factor on the players' own value that the search for an even match stays within."""


@dataclass(frozen=True, eq=False)
class HandicapGames:
    """Games of matches.

    Attributes:
        games: all of them.
        subject: index into `games.letters` of the piece that a game's match is about, int64 [G].
        opinion: factor on the players' own value of it, float64 [G].
    """

    games: OddsGames
    subject: NDArray[np.int64]
    opinion: Floats

    @property
    def plain(self) -> OddsGames:
        """The games in which players go by their own values."""
        return self.games.take(self.opinion == 1)


def play_handicap(players: Players, pairs: int, *, seed: int, update: Update = lambda done: None) -> HandicapGames:
    """Play matches of every piece against pawns; the same arguments give the same games.

    Args:
        players: who plays.
        pairs: starts in all, each played twice; a tenth of them for each of `OPINIONS`.
        seed: of the starts and games.
        update: told how many games are done.

    Raises:
        InsufficientData: no pawns to measure in, or the armies differ and cannot change colours.
    """
    if players.game.variant.pawns is None:
        raise InsufficientData(f"no unit: {players.game.variant.title} has no pawns")
    check_colours(players.game)
    game, rng = players.game, np.random.default_rng([seed, 2])
    own = own_pawns(players)
    parts: list[HandicapGames] = []

    def play(subjects: Sequence[int], factor: float) -> None:
        even = even_values(join_handicaps(parts).plain, own, measured_types(game)) if parts else own
        done = sum(part.subject.size for part in parts)
        matches = [(kind, _draw_until(players, kind, even, rng)) for kind in subjects]
        parts.append(_play_matches(players, matches, factor, rng, lambda more: update(done + more)))

    for_opinions = round(OPINION_SHARE * pairs)
    plain = pairs - for_opinions * len(OPINIONS)
    for number in range(ROUNDS):
        play(_subjects(game, plain * (number + 1) // ROUNDS - plain * number // ROUNDS, PAWN_SHARE), 1.0)
    for factor in OPINIONS:
        play(_subjects(game, for_opinions, 0.0), factor)
    played = join_handicaps(parts)
    return replace(played, games=replace(played.games, seed=np.full(played.subject.size, seed)))


def join_handicaps(parts: Sequence[HandicapGames]) -> HandicapGames:
    """Return the games of several seeds, their pairs kept apart."""
    return HandicapGames(
        joined(part.games for part in parts),
        np.concatenate([part.subject for part in parts]),
        np.concatenate([part.opinion for part in parts]),
    )


def values_by_handicap(played: HandicapGames, settings: Settings, *, basis: str) -> MethodValues:
    """Estimate piece values from matches, with splits by copy, by seed and by the players' opinion.

    Args:
        played: from `play_handicap`, of one seed or several.
        settings: of the fit.
        basis: players and depth, in a few words.

    Raises:
        InsufficientData: too little for any value.
    """
    plain = played.plain
    estimate = estimate_values(plain, settings)
    splits = [*copy_splits(plain, settings), *seed_splits(plain, settings)]
    for factor in OPINIONS:
        splits += opinion_split(played, factor, settings)
    return estimate.to_method("handicap", plain, splits=splits, basis=basis)


def opinion_split(played: HandicapGames, factor: float, settings: Settings) -> list[Split]:
    """Return what pieces are worth where the players value the piece of the match by another factor.

    The piece of a match has a weight of its own in these games; everything else is as in the plain games, which are
    fitted together with them.
    """
    games = played.games
    used = ~np.isnan(games.white_score) & ((played.opinion == 1) | (played.opinion == factor))
    games, subject, turned = games.take(used), played.subject[used], played.opinion[used] == factor
    difference = games.difference
    is_subject = turned[:, None] & (subject[:, None] == np.arange(len(games.letters)))
    others, own = np.where(is_subject, 0, difference), np.where(is_subject, difference, 0)
    least = settings.min_games_per_piece
    known = [kind for kind in range(len(games.letters)) if (others[:, kind] != 0).sum() >= least]
    asked = [kind for kind in known if (own[:, kind] != 0).sum() >= least]
    names = [games.letters[kind] for kind in known] + [games.letters[kind] + "'" for kind in asked]
    columns = np.column_stack((others[:, known], own[:, asked]))
    try:
        check_games(games.white_score, 0, least=settings.min_games)
        fitted = fit_columns(games, columns, names, settings=brief(settings))
    except InsufficientData:
        return []
    pieces = [replace(piece, letter=piece.letter[0]) for piece in fitted.pieces if piece.letter.endswith("'")]
    return [Split(f"own values {factor - 1:+.0%}".replace("%", " %"), tuple(pieces))] if pieces else []


def own_pawns(players: Players) -> Floats:
    """Return how many pawns the players think each piece type is worth, by index, [types]."""
    pawns = players.game.variant.pawns
    assert pawns is not None
    own = own_values(players.table, players.game)
    return np.asarray(np.maximum(own / max(own[pawns.piece], LEAST_PAWN), 0.0), np.float64)


def _subjects(game: CompiledGame, pairs: int, pawn_share: float) -> list[int]:
    """Return the piece types that matches are about: each as often as another, the pawn `pawn_share` times as often."""
    pawns = game.variant.pawns
    counts = Army(game, game.variant.start_fen).counts.sum(axis=0)
    share = {kind: 1.0 for kind in measured_types(game) if counts[kind]}
    if pawns is not None and pawns.piece in share:
        share[pawns.piece] = pawn_share
    ends = np.round(np.cumsum(list(share.values())) / sum(share.values()) * pairs).astype(int)
    return [kind for kind, number in zip(share, np.diff(ends, prepend=0).tolist()) for _ in range(number)]


def _draw_until(players: Players, kind: int, even: Floats, rng: np.random.Generator) -> PairedStart:
    for _ in range(MAX_TRIES):
        start = draw_match(players, kind, even, rng)
        if start is not None:
            return start
    raise InsufficientData(f"matches about {players.game.variant.piece_types[kind].name}: none in {MAX_TRIES} tries")


def _play_matches(
    players: Players,
    matches: Sequence[tuple[int, PairedStart]],
    factor: float,
    rng: np.random.Generator,
    update: Update,
) -> HandicapGames:
    """Play matches, each about a piece type that both players value by another factor."""
    scaled = {kind: _scaled(players.table.weights, kind, factor) for kind, _ in matches}
    starts, weights = [start for _, start in matches], [scaled[kind] for kind, _ in matches]
    scores = play_pairs(players, starts, rng=rng, weights=weights, random_plies=RANDOM_PLIES, update=update)
    kinds = measured_types(players.game)
    subject = np.repeat([kinds.index(kind) for kind, _ in matches], 2).astype(np.int64)
    return HandicapGames(games_of_pairs(players.game, starts, scores), subject, np.full(subject.size, factor))


def _scaled(weights: NDArray[np.int32], kind: int, factor: float) -> NDArray[np.int32]:
    """Return weights int32 [R, S] with both sides' rows of a piece type multiplied."""
    scaled = weights.astype(np.float64)
    scaled[[piece_code(kind, side) for side in (0, 1)]] *= factor
    return np.rint(scaled).astype(np.int32)


def draw_match(players: Players, kind: int, even: Floats, rng: np.random.Generator) -> PairedStart | None:
    """Draw the start of a match about a piece type.

    Args:
        players: who plays.
        kind: index of the piece type; for the pawn's the match is pawn odds.
        even: pawns that each type is thought to be worth, by index, [types].
        rng: consumed.

    Returns:
        None where the draw is no match: no game goes on from it, or nobody has the piece.
    """
    assert players.game.variant.pawns is not None
    pawn = players.game.variant.pawns.piece
    army = Army(players.game, array_start(players.game, rng))
    owners = [side for side in (0, 1) if army.counts[side, kind]]
    if not owners:
        return None
    side = int(rng.choice(owners))
    if kind == pawn:
        return army.without(_some(army.standing(side, pawn), int(rng.integers(1, MOST_PAWN_ODDS + 1)), rng))
    taken = [_some(army.standing(side, kind), 1, rng)]
    if len(owners) == 2 and army.counts[:, kind].min() > 1 and rng.random() < 0.5:
        taken = [_some(army.standing(one, kind), 1 + (one == side), rng) for one in owners]
    paid = _payment(army, 1 - side, even, (kind, pawn), rng)
    return army.without(np.concatenate([*taken, *paid]))


def _payment(
    army: Army, side: int, even: Floats, kind_and_pawn: tuple[int, int], rng: np.random.Generator
) -> list[NDArray[np.intp]]:
    """Draw what a side lacks for a piece: lesser pieces while its pawns would not do, and pawns for the rest."""
    kind, pawn = kind_and_pawn
    left = even[kind] + rng.uniform(-SPREAD, SPREAD)
    pawns = army.standing(side, pawn)
    stock = {
        other: _some(army.standing(side, other), len(army.removable), rng)
        for other in np.flatnonzero(even > 1).tolist()
    }
    paid = []
    while left > len(pawns) // 2:
        cheaper = [o for o, squares in stock.items() if o not in (kind, pawn) and len(squares) and even[o] <= left]
        if not cheaper:
            break
        other = int(rng.choice(cheaper))
        paid.append(stock[other][:1])
        stock[other] = stock[other][1:]
        left -= even[other]
    number = min(len(pawns), max(0, int(left + rng.random())))
    return [*paid, _some(pawns, number, rng)]


def even_values(games: OddsGames, own: Floats, kinds: Sequence[int]) -> Floats:
    """Return how many pawns each piece is worth by the games so far, for drawing more of them, [types].

    Args:
        games: finished and unfinished ones.
        own: pawns that the players think each type is worth, [types].
        kinds: the types of `games.letters`.
    """
    done = games.finished()
    if not done.white_score.size or games.pawn is None:
        return own
    columns = np.column_stack((np.ones(len(done.difference)), done.difference)).astype(np.float64)
    sums = sums_of_starts(columns, done.white_score, done.pair)
    weights = sums.fit(np.ones(len(columns)), np.zeros(columns.shape[1]))[1:]
    unit = weights[games.letters.index(games.pawn)]
    even = own.copy()
    if unit > 0:
        for kind, weight in zip(kinds, weights):
            even[kind] = np.clip(weight / unit, own[kind] / FURTHEST, own[kind] * FURTHEST)
    return even


def _some(squares: NDArray[np.intp], number: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return up to so many of the squares, drawn at random."""
    chosen: NDArray[np.intp] = rng.permutation(squares)[:number]
    return chosen
