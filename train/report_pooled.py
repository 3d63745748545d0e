"""Piece values by what training runs have stored; those of several runs of one config are pooled, each run a split."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from envs import engine_for
from train.piece_values.estimates import MethodValues, PieceEstimate, Split, refused
from train.piece_values.odds import odds_of_records, values_by_odds
from train.piece_values.odds_games import Settings
from train.piece_values.positions import InsufficientData
from train.piece_values.stored_games import ask_network, measure_games
from train.piece_values.td import combined
from train.progress import Reporter
from train.ratings import Interval
from train.report_training import Run, records_of

PER_CENT = 100
SPLIT_RESAMPLES = 200


def trained_values(runs: Sequence[Run], *, seed: int, reporter: Reporter) -> list[MethodValues]:
    """Measure piece values by the games and networks of runs of one game and config.

    Args:
        runs: at least one.
        seed: of the bootstraps.
        reporter: told what is being done.

    Returns:
        A result by each of `surveys.STORED`; one that can say nothing has a refusal.
    """
    ways: dict[str, Callable[[Sequence[Run], int], MethodValues]] = {
        "outcome": _outcome,
        "odds": _odds,
        "network": _network,
    }
    found = []
    with reporter.task("piece values by what the runs have stored, methods", len(ways)) as update:
        for number, (method, measure) in enumerate(ways.items(), 1):
            try:
                found.append(measure(runs, seed))
            except InsufficientData as error:
                found.append(refused(method, str(error)))
            update(number)
    return found


def _outcome(runs: Sequence[Run], seed: int) -> MethodValues:
    game, config = engine_for(runs[0].variant), runs[0].config
    pooled = measure_games(game, records_of(runs), config, seed=seed, with_splits=True).values
    quick = config.piece_values.model_copy(update={"bootstrap": SPLIT_RESAMPLES})
    brief = config.model_copy(update={"piece_values": quick})
    return _with_splits(pooled, runs, lambda run: measure_games(game, records_of([run]), brief, seed=seed).values)


def _odds(runs: Sequence[Run], seed: int) -> MethodValues:
    section, game = runs[0].config.piece_values, engine_for(runs[0].variant)
    settings = Settings(
        resamples=section.bootstrap,
        seed=seed,
        min_games=section.min_games,
        min_games_per_piece=section.min_games_per_piece,
    )

    def measured(some: Sequence[Run]) -> MethodValues:
        words = f"self-play from odds; {settings.resamples} resamples"
        return values_by_odds(odds_of_records(game, records_of(some)), settings, basis=words)

    return _with_splits(measured(runs), runs, lambda run: measured([run]))


def _network(runs: Sequence[Run], seed: int) -> MethodValues:
    """Return the mean over the runs' networks, with what they differ by in its intervals."""
    each = [ask_network(run.path, seed=seed) for run in runs]
    if len(each) == 1:
        return each[0]
    pieces = tuple(_mean([one.pieces[number] for one in each]) for number in range(len(each[0].pieces)))
    return MethodValues(
        method="network",
        pieces=pieces,
        games=sum(one.games for one in each),
        decisive_games=sum(one.decisive_games for one in each),
        cut_games=0,
        splits=tuple(Split(run.name, one.pieces) for run, one in zip(runs, each, strict=True)),
        basis=f"the mean of {len(each)} networks; {each[0].basis} (the first)",
    )


def _mean(pieces: Sequence[PieceEstimate]) -> PieceEstimate:
    refusals = [piece.refusal for piece in pieces if piece.refusal]
    return PieceEstimate(
        letter=pieces[0].letter,
        games=sum(piece.games for piece in pieces),
        log_odds=_joint([piece.log_odds for piece in pieces]),
        value=_joint([piece.value for piece in pieces]),
        refusal=refusals[0] if refusals else "",
    )


def _joint(intervals: Sequence[Interval | None]) -> Interval | None:
    """Return the mean of intervals; None where one is missing."""
    known = [interval for interval in intervals if interval is not None]
    return combined(known) if len(known) == len(intervals) else None


def _with_splits(pooled: MethodValues, runs: Sequence[Run], measure: Callable[[Run], MethodValues]) -> MethodValues:
    """Return pooled values with a split for each run that has values of its own."""
    parts = []
    for run in runs if len(runs) > 1 else ():
        try:
            parts.append(Split(run.name, measure(run).pieces))
        except InsufficientData:
            continue  # the pooled values say how many games there are
    return replace(pooled, splits=(*pooled.splits, *parts))
