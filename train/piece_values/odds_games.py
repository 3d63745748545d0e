"""Games in which chance decided what each side lacks at the start, and what their results say of the pieces.

Model: log-odds of White's score = White's advantage + army + sum of weight * (White's - Black's count at the start),
counts taken less those of the full arrays, so that where the armies differ their whole difference is the army's term
and a piece's weight comes from its absence alone. Material later in the game is not looked at: what is fitted was
decided before the first move, so the weights are effects, not signs, of having a piece. The cluster is the pair: the
two games of one start with the colours of the armies swapped.

Dims: G games, T piece types without a royal of both sides, K fitted columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from envs import CompiledGame
from envs.layout import U8Array
from envs.notation import piece_code
from train.piece_values.estimates import MethodValues, PieceEstimate, Split
from train.piece_values.fits import Progress, check_games, drop_rare, fit_with_resamples, sums_of_starts
from train.piece_values.logistic import Floats
from train.piece_values.paired_starts import Army, PairedStart
from train.piece_values.positions import InsufficientData
from train.ratings import Interval

I16Array = NDArray[np.int16]
WHITE_ADVANTAGE, ARMY = "White's advantage", "White's array against Black's"
ROWS = ("counts", "array", "army", "white_score", "pair", "seed")
"""Attributes of `OddsGames` with an entry for each game."""
SPLIT_RESAMPLES = 400
"""At most, for the intervals of splits."""


@dataclass(frozen=True)
class Settings:
    """How games are fitted.

    Attributes:
        resamples: of the pairs, behind each interval.
        seed: of the resamples.
        min_games: fewer finished games than this: no values at all.
        min_games_per_piece: fewer games with a difference in a piece: no value for it.
    """

    resamples: int = 1000
    seed: int = 0
    min_games: int = 50
    min_games_per_piece: int = 20


@dataclass(frozen=True, eq=False)
class OddsGames:
    """Games from starts that lack pieces.

    Attributes:
        letters: letter of each piece type, [T].
        pawn: letter of the piece that is worth 1; None without pawns.
        counts: how many White and Black have at the start, int16 [G, 2, T].
        array: how many they have in the full array, int16 [G, 2, T].
        army: 1 where White has the army that it has in the game's own array, -1 where colours are swapped, int8 [G].
        white_score: 1, 0.5 or 0; NaN for a game that was cut short, float64 [G].
        pair: number of the pair that the game belongs to, int64 [G].
        seed: number of the seed that drew it, int64 [G].
    """

    letters: tuple[str, ...]
    pawn: str | None
    counts: I16Array
    array: I16Array
    army: NDArray[np.int8]
    white_score: Floats
    pair: NDArray[np.int64]
    seed: NDArray[np.int64]

    @property
    def difference(self) -> I16Array:
        """White's count less Black's, less what the arrays differ by, int16 [G, T]."""
        return _excess(self.counts, self.array)

    @property
    def missing(self) -> Floats:
        """Share of the arrays' pieces that both sides together lack, float64 [G]."""
        share: Floats = 1 - self.counts.sum(axis=(1, 2)) / np.maximum(1, self.array.sum(axis=(1, 2)))
        return share

    def take(self, chosen: NDArray[np.bool_]) -> OddsGames:
        """Return the games where `chosen` [G] holds."""
        rows: dict[str, Any] = {name: getattr(self, name)[chosen] for name in ROWS}
        return replace(self, **rows)

    def games_with_difference(self) -> NDArray[np.int64]:
        """Count the games with a difference in each type, [T]."""
        games: NDArray[np.int64] = (self.difference != 0).sum(axis=0)
        return games

    def even_in(self, columns: list[int]) -> OddsGames:
        """Return the games without a difference in some types."""
        return self.take((self.difference[:, columns] == 0).all(axis=1))

    def finished(self) -> OddsGames:
        """Return the games that were not cut short."""
        return self.take(~np.isnan(self.white_score))


@dataclass(frozen=True)
class Estimate:
    """What a fit says.

    Attributes:
        pieces: one entry per piece type.
        terms: the other terms in log-odds.
        games: games used. decisive_games: those with a winner.
        condition: number of the fit.
    """

    pieces: tuple[PieceEstimate, ...]
    terms: Mapping[str, Interval]
    games: int
    decisive_games: int
    condition: float

    def to_method(self, method: str, games: OddsGames, *, splits: Sequence[Split], basis: str) -> MethodValues:
        """Return the estimate as a method's result; `basis` says who played, in a few words."""
        seeds = [int(seed) for seed in np.unique(games.seed)]
        return MethodValues(
            method=method,
            pieces=self.pieces,
            games=self.games,
            decisive_games=self.decisive_games,
            cut_games=int(np.isnan(games.white_score).sum()),
            terms=self.terms,
            splits=tuple(splits),
            basis=f"{basis}; clusters are pairs of games; condition number {self.condition:.0f}",
            checks={"condition_number": self.condition, "seeds": seeds, "pairs": int(np.unique(games.pair).size)},
        )


def games_of_pairs(
    game: CompiledGame, starts: Sequence[PairedStart], white_scores: Floats, *, seed: int = 0
) -> OddsGames:
    """Return the games of starts and their twins as arrays.

    Args:
        game: the game.
        starts: each was played twice: as it is, then with the colours swapped where that is possible.
        white_scores: results in this order, [2 * starts].
        seed: number of the seed that drew them.
    """
    kinds = measured_types(game)
    full = Army(game, game.variant.start_fen).counts
    missing = np.array([start.missing for start in starts], np.int16).reshape(-1, *full.shape)
    swapped = np.array([start.swapped_fen is not None for start in starts], np.bool_)
    counts = np.repeat(full - missing, 2, axis=0)
    array = np.repeat(full[None], len(counts), axis=0)
    turned = np.zeros(len(counts), np.bool_)
    turned[1::2] = swapped
    counts[turned], array[turned] = counts[turned][:, ::-1], array[turned][:, ::-1]
    return OddsGames(
        *_letters(game),
        counts=counts[:, :, kinds],
        array=array[:, :, kinds],
        army=np.where(turned, -1, 1).astype(np.int8),
        white_score=white_scores,
        pair=np.arange(len(counts), dtype=np.int64) // 2,
        seed=np.full(len(counts), seed, np.int64),
    )


def games_of_starts(game: CompiledGame, boards: U8Array, white_scores: Floats) -> OddsGames:
    """Return games that are no pairs as arrays, each a cluster of its own.

    Args:
        game: the game.
        boards: piece codes at each start, [G, S].
        white_scores: results, [G].
    """
    kinds = measured_types(game)
    counts = np.stack([[(boards == piece_code(kind, side)).sum(axis=1) for kind in kinds] for side in (0, 1)], axis=0)
    full = Army(game, game.variant.start_fen).counts[:, kinds]
    games = len(boards)
    return OddsGames(
        *_letters(game),
        counts=counts.transpose(2, 0, 1).astype(np.int16),
        array=np.repeat(full[None], games, axis=0),
        army=np.ones(games, np.int8),
        white_score=white_scores,
        pair=np.arange(games, dtype=np.int64),
        seed=np.zeros(games, np.int64),
    )


def joined(parts: Iterable[OddsGames]) -> OddsGames:
    """Return the games of several sets, their pairs kept apart."""
    sets = list(parts)
    rows: dict[str, list[Any]] = {name: [getattr(part, name) for part in sets] for name in ROWS}
    offset = np.cumsum([0] + [int(part.pair.max(initial=-1)) + 1 for part in sets[:-1]])
    rows["pair"] = [pair + first for pair, first in zip(rows["pair"], offset)]
    joint: dict[str, Any] = {name: np.concatenate(arrays) for name, arrays in rows.items()}
    return replace(sets[0], **joint)


def measured_types(game: CompiledGame) -> list[int]:
    """Return the piece types that have a value: all but one that is royal for both sides."""
    variant = game.variant
    return [kind for kind in range(len(variant.piece_types)) if set(variant.royals) != {kind}]


def estimate_values(games: OddsGames, settings: Settings, *, progress: Progress | None = None) -> Estimate:
    """Fit the model and draw its pairs again.

    Args:
        games: games; those cut short are left out.
        settings: of the fit.
        progress: called with the resamples done and wanted.

    Raises:
        InsufficientData: too little for any value.
    """
    used, refusals = drop_rare(games.finished(), settings.min_games_per_piece)
    cut = int(np.isnan(games.white_score).sum())
    check_games(used.white_score, cut, least=settings.min_games)
    kept = [letter for letter in used.letters if letter not in refusals]
    columns = used.difference[:, [used.letters.index(letter) for letter in kept]]
    fitted = fit_columns(used, columns, kept, settings=settings, progress=progress)
    measured = {piece.letter: piece for piece in fitted.pieces}
    return replace(fitted, pieces=tuple(measured.get(letter) or refusals[letter] for letter in used.letters))


def fit_columns(
    games: OddsGames,
    columns: I16Array,
    letters: Sequence[str],
    *,
    settings: Settings,
    progress: Progress | None = None,
) -> Estimate:
    """Fit columns [G, K], which `letters` [K] name, and the common terms; the pawn's column is the unit."""
    common = {WHITE_ADVANTAGE: np.ones(len(columns), np.int16)}
    if (games.array[:, 0] != games.array[:, 1]).any() and np.unique(games.army).size > 1:
        common[ARMY] = games.army.astype(np.int16)
    features = np.column_stack([*common.values(), columns])
    sums = sums_of_starts(features, games.white_score, games.pair)
    names = [*common, *letters]
    fits = fit_with_resamples(sums, names, resamples=settings.resamples, seed=settings.seed, progress=progress)
    feature = {letter: len(common) + number for number, letter in enumerate(letters)}
    with_difference = dict(zip(letters, (columns != 0).sum(axis=0).tolist()))
    unit = feature.get(games.pawn) if games.pawn else None
    pieces = fits.pieces(feature, with_difference, unit=unit)
    return Estimate(
        pieces=tuple(pieces.values()),
        terms={name: fits.weight(number) for number, name in enumerate(common)},
        games=games.white_score.size,
        decisive_games=int(np.isin(games.white_score, (0.0, 1.0)).sum()),
        condition=fits.condition,
    )


def split(name: str, games: OddsGames, settings: Settings) -> list[Split]:
    """Return the values by a part of the games as a list of one split; an empty list where there is too little."""
    try:
        estimate = estimate_values(games, brief(settings))
    except InsufficientData:
        return []
    return [Split(name, estimate.pieces)]


def copy_splits(games: OddsGames, settings: Settings) -> list[Split]:
    """Return what the first piece of each type is worth, and what the further ones are; where both occur."""
    used, refusals = drop_rare(games.finished(), settings.min_games_per_piece)
    pawn = used.letters.index(used.pawn) if used.pawn else -1
    first = _excess(np.minimum(used.counts, 1), np.minimum(used.array, 1))
    further = used.difference - first
    least = settings.min_games_per_piece
    columns, names = [], []
    for kind, letter in enumerate(used.letters):
        both = [(1, first[:, kind]), (2, further[:, kind])]
        if letter in refusals:
            continue
        if kind == pawn or any((column != 0).sum() < least for _, column in both):
            both = [(0, used.difference[:, kind])]
        columns += [column for _, column in both]
        names += [letter if copy == 0 else f"{letter}{copy}" for copy, _ in both]
    if all(len(name) == 1 for name in names):
        return []
    try:
        check_games(used.white_score, 0, least=settings.min_games)
        fitted = fit_columns(used, np.column_stack(columns), names, settings=brief(settings))
    except InsufficientData:
        return []
    return [
        Split(
            title, tuple(replace(piece, letter=piece.letter[0]) for piece in fitted.pieces if piece.letter[1:] == copy)
        )
        for title, copy in (("first copy", "1"), ("second copy", "2"))
    ]


def brief(settings: Settings) -> Settings:
    """Return settings with fewer resamples, for splits."""
    return replace(settings, resamples=min(settings.resamples, SPLIT_RESAMPLES))


def _letters(game: CompiledGame) -> tuple[tuple[str, ...], str | None]:
    """Return the letters of the types that have a value, and the pawn's."""
    types, pawns = game.variant.piece_types, game.variant.pawns
    return tuple(types[kind].letter for kind in measured_types(game)), types[pawns.piece].letter if pawns else None


def _excess(counts: I16Array, array: I16Array) -> I16Array:
    """Return White's count less Black's, less the same of the arrays, from int16 [G, 2, T]."""
    return (counts[:, 0] - counts[:, 1]) - (array[:, 0] - array[:, 1])
