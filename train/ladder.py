"""The ladder of a run: its checkpoints and some baselines, rated by matches between few of them.

Every checkpoint meets the next one and one baseline, in turn; the first and the last meet all of them, and every
baseline meets the next. So a ladder of C checkpoints takes some 2 C matches, and strength adds up from rung to rung
where a single match would end 100 to 0. Ratings are in Elo above `random` (`ladder_ratings.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from models.checkpoint import checkpoint_paths
from train.arena import MatchResult
from train.config import ConfigError
from train.ladder_ratings import Encounter, fit_ladder, linked_to
from train.metrics import read_metrics
from train.ratings import Interval, score_of_elo

ANCHOR = "random"
SECONDS_PER_HOUR = 3600
LEAST_CHECKPOINTS = 2


@dataclass(frozen=True)
class Spent:
    """What a run had spent when it wrote a checkpoint.

    Attributes:
        games: of self-play.
        hours: of wall time, pauses between a stop and a resume not counted.
        evaluations: of the network, by self-play.
    """

    games: float = 0.0
    hours: float = 0.0
    evaluations: float = 0.0


@dataclass(frozen=True)
class Rung:
    """A player of a ladder.

    Attributes:
        name: `iteration 40`, or that of a baseline.
        elo: its rating above `random`, with its 95 % interval.
        matches: that it played.
        match_games: games of those.
        iteration: of a checkpoint; None of a baseline.
        spent: of a checkpoint; None of a baseline.
    """

    name: str
    elo: Interval
    matches: int
    match_games: int
    iteration: int | None = None
    spent: Spent | None = None

    def to_document(self) -> dict[str, Any]:
        """Return plain data (JSON-able)."""
        return {**asdict(self), "elo": self.elo.to_document()}


@dataclass(frozen=True)
class Ladder:
    """A rated ladder.

    Attributes:
        rungs: baselines, strongest last, and then checkpoints, oldest first.
        matches: those that it rests on, with the names of the rungs.
    """

    rungs: tuple[Rung, ...]
    matches: tuple[MatchResult, ...]

    @property
    def checkpoints(self) -> list[Rung]:
        """The run's own rungs, oldest first."""
        return [rung for rung in self.rungs if rung.iteration is not None]

    @property
    def baselines(self) -> list[Rung]:
        """The others."""
        return [rung for rung in self.rungs if rung.iteration is None]

    def expected_score(self, match: MatchResult) -> float:
        """Return the score of a match's first player that the ratings expect."""
        elo = {rung.name: rung.elo.estimate for rung in self.rungs}
        first, second = match.players
        return score_of_elo(elo[first] - elo[second])

    def to_document(self) -> dict[str, Any]:
        """Return plain data (JSON-able)."""
        matches = [{**match.to_document(), "expected_score": self.expected_score(match)} for match in self.matches]
        return {"anchor": ANCHOR, "rungs": [rung.to_document() for rung in self.rungs], "matches": matches}


def choose_checkpoints(run_dir: Path, most: int) -> list[Path]:
    """Return some of a run's checkpoints, oldest first: the first, the last, and those nearest to even steps between.

    Args:
        run_dir: the run's folder.
        most: checkpoints wanted at most.

    Raises:
        ConfigError: there are fewer than two, or fewer are wanted.
    """
    paths = checkpoint_paths(run_dir)[::-1]
    if min(most, len(paths)) < LEAST_CHECKPOINTS:
        raise ConfigError(f"{run_dir}: a ladder has at least 2 checkpoints, found {len(paths)} and wanted {most}")
    iterations = np.array([int(path.name) for path in paths])
    wanted = np.linspace(iterations[0], iterations[-1], most)
    nearest = {int(np.abs(iterations - target).argmin()) for target in wanted}
    return [paths[number] for number in sorted(nearest)]


def schedule(checkpoints: Sequence[str], baselines: Sequence[str]) -> list[tuple[str, str]]:
    """Return who plays whom, see the module's docstring; first what links checkpoints to baselines.

    Args:
        checkpoints: oldest first.
        baselines: at least one, weakest first.
    """
    pairs = [*zip(baselines[1:], baselines)]
    pairs += [(name, baselines[number % len(baselines)]) for number, name in enumerate(checkpoints)]
    pairs += [*zip(checkpoints[1:], checkpoints)]
    pairs += [(name, baseline) for name in (checkpoints[0], checkpoints[-1]) for baseline in baselines]
    return list(dict.fromkeys(pairs))


def spent_by(run_dir: Path) -> dict[int, Spent]:
    """Return what a run had spent after each iteration, by its metrics; nothing after iteration 0."""
    spent, games, hours, evaluations = {0: Spent()}, 0.0, 0.0, 0.0
    for iteration, metrics in read_metrics(run_dir):
        hours += (metrics.get("perf/iteration_s") or 0) / SECONDS_PER_HOUR
        speed, seconds = metrics.get("perf/evaluations_per_s"), metrics.get("perf/selfplay_s")
        evaluations += (speed or 0) * (seconds or 0)
        games = metrics.get("selfplay/total_games") or games  # an iteration's matches have a line of their own
        spent[iteration] = Spent(games, hours, evaluations)
    return spent


def rate(matches: Iterable[MatchResult], iterations: Mapping[str, int], spent: Mapping[int, Spent]) -> Ladder:
    """Rate the players of matches.

    Args:
        matches: with the names of the rungs; those without a whole pair say nothing, nor do those of players that no
            matches link to `random` (yet).
        iterations: of the names that are checkpoints.
        spent: see `spent_by`; iterations that are not in it have none.

    Raises:
        ValueError: nobody has played `random`.
    """
    begun = [match for match in matches if match.games]
    linked = linked_to(ANCHOR, [match.players for match in begun])
    played = tuple(match for match in begun if match.players[0] in linked)
    ratings = fit_ladder([Encounter(*match.players, match.pair_scores) for match in played], anchor=ANCHOR)
    rungs = []
    for name, elo in ratings.items():
        own = [match for match in played if name in match.players]
        iteration = iterations.get(name)
        rungs.append(
            Rung(
                name=name,
                elo=elo,
                matches=len(own),
                match_games=sum(match.games for match in own),
                iteration=iteration,
                spent=None if iteration is None else spent.get(iteration),
            )
        )
    order = sorted(rungs, key=lambda rung: (-1, rung.elo.estimate) if rung.iteration is None else (rung.iteration, 0))
    return Ladder(tuple(order), played)
