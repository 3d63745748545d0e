"""One iteration's numbers, under the names that `metrics.py` explains."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from envs import Termination
from train.arena import MatchResult
from train.piece_values import Report
from train.selfplay import ODDS, SelfPlayStats
from train.shards import GameRecord

Numbers = dict[str, float | int | None]


class Stopwatch:
    """Times the phases of one iteration.

    Attributes:
        steps: Training steps taken in the learning phase.
    """

    def __init__(self) -> None:
        """Start the clock of the whole iteration."""
        self._started = time.perf_counter()
        self._seconds: dict[str, float] = {}
        self.steps = 0

    @contextmanager
    def time(self, phase: str) -> Iterator[None]:
        """Add the block's wall time to a phase."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self._seconds[phase] = self._seconds.get(phase, 0.0) + time.perf_counter() - started

    def numbers(self, stats: SelfPlayStats) -> Numbers:
        """Return the `perf` group."""
        whole = time.perf_counter() - self._started
        selfplay, learn = self._seconds["selfplay"], self._seconds["learn"]
        return {
            "perf/positions_per_s": stats.positions / selfplay,
            "perf/evaluations_per_s": stats.evaluations / selfplay,
            "perf/overall_positions_per_s": stats.positions / whole,
            "perf/steps_per_s": self.steps / learn if self.steps else None,
            "perf/iteration_s": whole,
            **{f"perf/{phase}_s": seconds for phase, seconds in self._seconds.items()},
        }


def game_numbers(games: list[GameRecord]) -> Numbers:
    """Return the `selfplay` and `outcome` groups of an iteration's games."""
    ended = [game for game in games if game.termination]
    scores = np.array([game.white_score for game in ended])
    kinds = Counter(Termination(game.termination).name.lower() for game in ended)
    return {
        "selfplay/games": len(games),
        "selfplay/plies": _mean([game.num_plies for game in games]),
        "selfplay/odds_share": _mean([game.start_kind == ODDS for game in games]),
        "outcome/white_score": _mean(scores),
        "outcome/decisive_share": _mean(scores != 0.5),
        "outcome/draw_share": _mean(scores == 0.5),
        "outcome/cut_share": _mean([not game.termination for game in games]),
        **{f"outcome/ended_by/{kind}": count / len(ended) for kind, count in sorted(kinds.items())},
    }


def _mean(values: npt.ArrayLike) -> float | None:
    """Return the mean of numbers, None of none."""
    array = np.asarray(values, np.float64)
    return float(array.mean()) if array.size else None


def search_numbers(stats: SelfPlayStats) -> Numbers:
    """Return the `search` group."""
    full = stats.full_searches
    return {
        "selfplay/positions": stats.positions,
        "search/simulations": stats.simulations / stats.positions,
        "search/full_share": full / stats.positions,
        "search/depth": stats.depths / max(1, stats.evaluations + stats.recalled),
        "search/recalled_share": stats.recalled / max(1, stats.evaluations + stats.recalled),
        "search/root_value": stats.root_values / stats.positions,
        "search/policy_entropy": stats.policy_entropies / full if full else None,
        "search/prior_kl": stats.prior_divergences / full if full else None,
    }


def match_numbers(match: MatchResult | None) -> Numbers:
    """Return the `eval` group, empty without a match."""
    if match is None:
        return {}
    score, opponent = match.score, match.players[1]
    return {
        f"eval/score/{opponent}": score.estimate,
        f"eval/score_low/{opponent}": score.low,
        f"eval/score_high/{opponent}": score.high,
        f"eval/draw_share/{opponent}": match.draws / match.settings.games,
        f"eval/plies/{opponent}": match.plies,
    }


def piece_numbers(report: Report | None) -> Numbers:
    """Return the `pieces` group: the values in pawns that there are."""
    numbers: Numbers = {}
    for piece in report.values.pieces if report is not None else ():
        if piece.value is not None:
            numbers[f"pieces/value/{piece.letter}"] = piece.value.estimate
            numbers[f"pieces/value_low/{piece.letter}"] = piece.value.low
            numbers[f"pieces/value_high/{piece.letter}"] = piece.value.high
    return numbers
