"""One iteration's numbers, under the names that `metrics.py` explains.

What had nothing to measure is None, never missing: every iteration of every run has the same names, apart from those
that stand for a piece, a termination or an opponent.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

import envs
from envs import CompiledGame, Termination
from train.metrics import METRICS
from train.selfplay import ARRAY, ODDS, RANDOM, SelfPlayStats

if TYPE_CHECKING:
    from train.arena import MatchResult
    from train.config_sections import SearchConfig
    from train.piece_values import Report
    from train.replay import ReplayBuffer
    from train.shards import GameRecord, ShardInfo

Numbers = dict[str, float | int | None]

PHASES = ("selfplay", "replay", "learn", "match", "observe", "save")
START_KINDS = (ARRAY, ODDS, RANDOM)
RESIGNATION = "resignation"
NOT_AVERAGED = ("learning_rate", "skipped")
Z95 = 1.96
MB = 1e6


class Stopwatch:
    """Times the phases of iterations; what happens after `restart` belongs to the next one."""

    def __init__(self) -> None:
        """Start the clock."""
        self.restart()

    def restart(self) -> None:
        """Begin a new iteration."""
        self._started = time.perf_counter()
        self._seconds: dict[str, float] = {}

    @contextmanager
    def time(self, phase: str) -> Iterator[None]:
        """Add the block's wall time to a phase, one of `PHASES`."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self._seconds[phase] = self._seconds.get(phase, 0.0) + time.perf_counter() - started

    def numbers(self, stats: SelfPlayStats, *, games: int, steps: int) -> Numbers:
        """Return the `perf` group's times and rates.

        Args:
            stats: What self-play counted.
            games: That ended.
            steps: Training steps taken.
        """
        whole = time.perf_counter() - self._started
        selfplay, learn = self._seconds.get("selfplay"), self._seconds.get("learn")
        return {
            "perf/positions_per_s": stats.positions / selfplay if selfplay else None,
            "perf/evaluations_per_s": stats.evaluations / selfplay if selfplay else None,
            "perf/overall_positions_per_s": stats.positions / whole,
            "perf/games_per_hour": 3600 * games / whole,
            "perf/steps_per_s": steps / learn if steps and learn else None,
            "perf/iteration_s": whole,
            **{f"perf/{phase}_s": self._seconds.get(phase) for phase in PHASES},
        }


class StepMeans:
    """Means of what training steps return.

    Attributes:
        count: Steps so far, skipped ones too.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self.count = 0
        self._rate: float | None = None
        self._sums: Counter[str] = Counter()
        self._taken = 0

    def add(self, step: Mapping[str, float]) -> None:
        """Add what `Learner.step` returned; of skipped steps only the number counts."""
        self.count += 1
        self._rate = step["learning_rate"]
        if not step["skipped"]:
            self._taken += 1
            self._sums.update({name: value for name, value in step.items() if name not in NOT_AVERAGED})

    def numbers(self) -> Numbers:
        """Return the losses, the norm and the last step size under their names in the group `train`."""
        means: Numbers = {f"train/{name}": total / self._taken for name, total in self._sums.items()}
        return {**means, "train/learning_rate": self._rate}


def game_numbers(games: Sequence[GameRecord]) -> Numbers:
    """Return what an iteration's games say of the groups `selfplay`, `outcome` and `search`."""
    ended = [game for game in games if np.isfinite(game.white_score)]
    scores = np.array([game.white_score for game in ended])
    kinds = Counter(ending_name(game) for game in ended)
    moves = Counter((game.start_fen, game.actions.tobytes()) for game in games)
    low, high = _interval(scores)
    return {
        "selfplay/games": len(games),
        "selfplay/plies": _mean([game.num_plies for game in games]),
        **{f"selfplay/{kind}_share": _mean([game.start_kind == kind for game in games]) for kind in START_KINDS},
        "selfplay/resigned_share": _mean([bool(game.resigned) for game in games]),
        "selfplay/distinct_share": _mean([moves[game.start_fen, game.actions.tobytes()] == 1 for game in games]),
        "outcome/white_score": _mean(scores),
        "outcome/white_score_low": low,
        "outcome/white_score_high": high,
        "outcome/decisive_share": _mean(scores != 0.5),
        "outcome/draw_share": _mean(scores == 0.5),
        "outcome/cut_share": _mean([np.isnan(game.white_score) for game in games]),
        **{f"outcome/ended_by/{kind}": count / len(ended) for kind, count in sorted(kinds.items())},
    }


def ending_name(game: GameRecord) -> str:
    """Return why a game ended, in a word."""
    if game.resigned:
        return RESIGNATION
    return Termination(game.termination).name.lower() if game.termination else "ply_cap"


def value_error(game: CompiledGame, games: Sequence[GameRecord]) -> float | None:
    """Return the mean squared difference of root values and results over the searched positions of finished games.

    Both are in [-1, 1] for the player to move: always saying 0 gives the share of positions in decisive games.
    """
    errors = []
    for record in games:
        if np.isfinite(record.white_score):
            first = record.opening_plies
            sides = envs.to_play(game, record.states[first:])
            results = (2 * record.white_score - 1) * np.where(sides == 0, 1, -1)
            errors.append((record.root_values[first:] - results) ** 2)
    return _mean(np.concatenate(errors)) if errors else None


def search_numbers(stats: SelfPlayStats, cfg: SearchConfig, iteration: int) -> Numbers:
    """Return what self-play counted in an iteration (from 1), and the budgets that it had."""
    full, positions = stats.full_searches, max(1, stats.positions)
    leaves, checks = max(1, stats.evaluations + stats.recalled), stats.resignations_checked
    full_budget, fast_budget = cfg.budgets(iteration)
    return {
        "selfplay/positions": stats.positions,
        "selfplay/resign_checks": checks,
        "selfplay/resign_false_positive_share": stats.resignations_wrong / checks if checks else None,
        "search/simulations": stats.simulations / positions,
        "search/full_budget": full_budget,
        "search/fast_budget": fast_budget,
        "search/full_share": full / positions,
        "search/depth": stats.depths / leaves,
        "search/recalled_share": stats.recalled / leaves,
        "search/root_value": stats.root_values / positions,
        "search/policy_entropy": stats.policy_entropies / full if full else None,
        "search/prior_kl": stats.prior_divergences / full if full else None,
    }


def buffer_numbers(replay: ReplayBuffer, shards: Sequence[ShardInfo], iteration: int) -> Numbers:
    """Return the `buffer` group.

    Args:
        replay: The window.
        shards: All of the run, oldest first; a shard's name is the number of iterations before it.
        iteration: The iteration (from 1) that has just been added.
    """
    return {
        "buffer/rows": replay.num_rows,
        "buffer/policy_rows": replay.num_policy_rows,
        "buffer/held_out_rows": replay.num_held_out_rows,
        "buffer/total_rows": replay.total_rows,
        "buffer/age": _window_age(replay.num_rows, shards, iteration),
        "buffer/mb": replay.num_bytes / MB,
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


def complete(numbers: Mapping[str, float | int | None]) -> Numbers:
    """Return an iteration's numbers with None for every name of `METRICS` that they lack."""
    return {**{name: None for name in METRICS if not name.endswith("*")}, **numbers}


def _mean(values: npt.ArrayLike) -> float | None:
    """Return the mean of numbers, None of none."""
    array = np.asarray(values, np.float64)
    return float(array.mean()) if array.size else None


def _interval(scores: npt.NDArray[np.float64]) -> tuple[float | None, float | None]:
    """Return the ends of a 95 % interval of a mean in [0, 1], by the normal approximation."""
    if len(scores) < 2:
        return None, None
    mean, half = float(scores.mean()), Z95 * float(scores.std(ddof=1)) / len(scores) ** 0.5
    return max(0.0, mean - half), min(1.0, mean + half)


def _window_age(rows: int, shards: Sequence[ShardInfo], iteration: int) -> float | None:
    """Return the mean age of the newest rows in iterations."""
    left, ages = rows, 0.0
    for shard in reversed(shards):
        counted = min(left, shard.num_rows)
        ages += counted * (iteration - 1 - int(Path(shard.name).stem))
        left -= counted
        if left == 0:
            break
    return ages / rows if rows else None
