"""Tables and the chart of what `learning_curves.py` has measured."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.axes import Axes

from tests.train.learning_curves import (
    ARMS,
    BASELINE_GAMES,
    LAST,
    QUARTERS,
    SEEDS,
    SETTINGS,
    Agent,
    against_random,
    agents,
    match,
    rivals,
)
from train.ratings import Interval, elo_interval, score_interval

CHART = "learning_curves.png"
COLOURS = ("tab:blue", "tab:cyan", "tab:red", "tab:orange")


class Duel(NamedTuple):
    """Games between two agents, or between all agents of two arms, seen by the first."""

    wins: int
    draws: int
    losses: int
    pair_scores: tuple[float, ...]

    @property
    def score(self) -> Interval:
        """The first side's score with its 95 % interval; pairs of games are the units."""
        return score_interval(self.pair_scores)

    @property
    def cells(self) -> str:
        """Cells of a table: W / D / L, score and interval, Elo and interval."""
        score, elo = self.score, elo_interval(self.score)
        counts = f"{self.wins} / {self.draws} / {self.losses}"
        elo_text = f"{elo.estimate:+.0f} ({elo.range_text('+.0f')})"
        return f"{counts} | {score.estimate:.3f} ({score.range_text('.3f')}) | {elo_text}"


def duel(document: dict[str, Any], *, swapped: bool = False) -> Duel:
    """Return a match as a duel, seen by the second player if `swapped`."""
    wins, draws, losses, scores = (document[key] for key in ("wins", "draws", "losses", "pair_scores"))
    if swapped:
        return Duel(losses, draws, wins, tuple(1 - score for score in scores))
    return Duel(wins, draws, losses, tuple(scores))


def total(duels: Iterable[Duel]) -> Duel:
    """Return several duels as one."""
    parts = list(duels)
    scores = tuple(itertools.chain.from_iterable(part.pair_scores for part in parts))
    return Duel(sum(p.wins for p in parts), sum(p.draws for p in parts), sum(p.losses for p in parts), scores)


def duels_of(folder: Path, game: str) -> dict[tuple[int, int], list[Duel]]:
    """Return the duels of each ordered pair of arms, one for each pair of seeds."""
    found: dict[tuple[int, int], list[Duel]] = {pair: [] for pair in itertools.permutations(range(len(ARMS)), 2)}
    for one, other in rivals(folder, game):
        document = match(one, other, SETTINGS[game].direct_games)
        found[one.arm, other.arm].append(duel(document))
        found[other.arm, one.arm].append(duel(document, swapped=True))
    return found


def against_all(duels: dict[tuple[int, int], list[Duel]], arm: int) -> Duel:
    """Return an arm's games against all other arms."""
    return total(part for (one, _), parts in duels.items() if one == arm for part in parts)


def print_tables(folder: Path, games: list[str]) -> None:
    """Print the tables of some games as Markdown."""
    for game in games:
        print(f"\n### {game}\n")
        _print_runs(folder, game)
        _print_duels(duels_of(folder, game))


def _print_runs(folder: Path, game: str) -> None:
    quarters = " | ".join(f"{100 * quarter // LAST} %" for quarter in QUARTERS)
    print(f"| arm | seed | evaluations | positions | games | steps | {quarters} | `greedy` W / D / L |")
    print("|---|---" * 2 + "|---" * (3 + len(QUARTERS)) + "|")
    for agent in sorted(agents(folder, game), key=lambda agent: (agent.arm, agent.seed)):
        taken = json.loads(agent.run_dir.with_suffix(".json").read_text())
        effort = " | ".join(f"{taken[key]:,}" for key in ("evaluations", "positions", "games", "steps"))
        curve = " | ".join(f"{duel(document).score.estimate:.2f}" for document in against_random(agent))
        greedy = duel(match(agent, "greedy", BASELINE_GAMES))
        counts = f"{greedy.wins} / {greedy.draws} / {greedy.losses}"
        print(f"| {ARMS[agent.arm].name} | {agent.seed} | {effort} | {curve} | {counts} |")


def _print_duels(duels: dict[tuple[int, int], list[Duel]]) -> None:
    print("\n| arm | against | W / D / L | score (95 %) | Elo (95 %) | scores by pairs of seeds |")
    print("|---|---|---|---|---|---|")
    for one, other in itertools.combinations(range(len(ARMS)), 2):
        parts = duels[one, other]
        by_seeds = ", ".join(f"{part.score.estimate:.2f}" for part in parts)
        print(f"| {ARMS[one].name} | {ARMS[other].name} | {total(parts).cells} | {by_seeds} |")
    for arm, _ in enumerate(ARMS):
        print(f"| {ARMS[arm].name} | all others | {against_all(duels, arm).cells} | |")
    gumbel_on, gumbel_off, puct_on, puct_off = range(len(ARMS))
    for title, pairs in (
        ("gumbel | puct, same cap", ((gumbel_on, puct_on), (gumbel_off, puct_off))),
        ("cap on | cap off, same policy", ((gumbel_on, gumbel_off), (puct_on, puct_off))),
    ):
        print(f"| {title} | {total(part for pair in pairs for part in duels[pair]).cells} | |")


def draw_chart(folder: Path, games: list[str]) -> None:
    """Draw, for each game, the scores against `random` and those between the arms."""
    figure, axes = pyplot.subplots(2, len(games), figsize=(5.5 * len(games), 7.5), squeeze=False)
    for column, game in enumerate(games):
        _draw_curves(axes[0, column], folder, game)
        _draw_scores(axes[1, column], duels_of(folder, game))
    axes[0, 0].legend()
    figure.tight_layout()
    figure.savefig(folder / CHART, dpi=110, metadata={"Software": None})


def _draw_curves(axis: Axes, folder: Path, game: str) -> None:
    spent = [quarter / LAST * SETTINGS[game].budget / 1000 for quarter in QUARTERS]
    for arm, colour in enumerate(COLOURS):
        curves = [
            [duel(document).score.estimate for document in against_random(Agent(folder, game, arm, seed))]
            for seed in SEEDS
        ]
        for curve in curves:
            axis.plot(spent, curve, color=colour, linewidth=0.8, alpha=0.5)
        axis.plot(spent, np.mean(curves, axis=0), color=colour, linewidth=2, marker="o", label=ARMS[arm].name)
    axis.set(title=game, xlabel="thousand network evaluations of self-play", ylabel="score against random")
    axis.grid(alpha=0.3)


def _draw_scores(axis: Axes, duels: dict[tuple[int, int], list[Duel]]) -> None:
    for arm, colour in enumerate(COLOURS):
        score = against_all(duels, arm).score
        reach = [[score.estimate - score.low], [score.high - score.estimate]]
        axis.errorbar([arm], [score.estimate], yerr=reach, fmt="o", color=colour, capsize=4)
        by_seeds = [part.score.estimate for (one, _), parts in duels.items() if one == arm for part in parts]
        axis.plot([arm + 0.12] * len(by_seeds), by_seeds, ".", color=colour, alpha=0.4)
    axis.axhline(0.5, color="grey", linewidth=0.8)
    axis.set(ylabel="score against the other arms", xticks=range(len(ARMS)))
    axis.set_xticklabels([arm.name.replace(", ", ",\n") for arm in ARMS])
    axis.grid(axis="y", alpha=0.3)
