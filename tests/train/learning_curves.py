"""Learning curves, playout cap on and off: python -m tests.train.learning_curves FOLDER [GAME ...]

Every arm trains on every game with each of `SEEDS`, in this process, until self-play has spent the game's budget of
network evaluations; only the search and the quota of positions differ between arms. The weights after each quarter of
the budget play `random`, the last ones also `greedy` and each other, all with one and the same search, so that only
what was learned differs. What FOLDER holds already is not done again. Tables go to stdout, a chart to FOLDER.
"""

from __future__ import annotations

import itertools
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envs import load_variant
from models.checkpoint import checkpoint_paths, load_player
from models.evaluator import make_evaluator
from train.arena import MatchSettings, Player, play_match
from train.baselines import BASELINES
from train.config import RunConfig, from_document
from train.loop import Trainer
from train.metrics import read_metrics
from train.progress import Reporter
from train.runs import RunFolder
from train.search import SearchPlayer

SEEDS = (1, 2)
QUARTERS = (1, 2, 3, 4)
LAST = QUARTERS[-1]
ROUNDS = 18
"""Training iterations into which a budget is divided."""
FULL, FAST, FULL_SHARE = 32, 8, 0.25
"""Simulations of the two kinds of search, and how many are full with the cap on; without it all are."""
PLAY_SIMULATIONS, PLAY_CAP = 16, 150
"""Simulations (of `gumbel`) and ply cap of the matches."""
BASELINE_GAMES = 40
"""Games of a match against a baseline."""


@dataclass(frozen=True)
class Arm:
    """What is compared: a search policy, and the share of full searches."""

    policy: str
    full_share: float

    @property
    def name(self) -> str:
        """What tables call it."""
        return f"{self.policy}, cap {'on' if self.full_share < 1 else 'off'}"

    @property
    def simulations_per_position(self) -> float:
        """Mean simulations of a move."""
        return self.full_share * FULL + (1 - self.full_share) * FAST


ARMS = tuple(Arm(policy, share) for policy in ("gumbel", "puct") for share in (FULL_SHARE, 1.0))


@dataclass(frozen=True)
class Setting:
    """One game's runs: budget of network evaluations, self-play, and games of a match between two agents."""

    budget: int
    selfplay: dict[str, Any]
    direct_games: int


SETTINGS = {
    "gardner": Setting(360_000, {"max_plies": 100, "odds_share": 0.3, "stagger_plies": 30}, 40),
    "separate_realms_2": Setting(240_000, {"max_plies": 150, "odds_share": 0.5, "stagger_plies": 60}, 24),
}


@dataclass(frozen=True)
class Agent:
    """One run's weights after some quarters of its budget."""

    folder: Path
    game: str
    arm: int
    seed: int
    quarter: int = LAST

    @property
    def run_dir(self) -> Path:
        """Folder of the run."""
        return self.folder / f"{self.game}-arm{self.arm}-seed{self.seed}"

    @property
    def name(self) -> str:
        """What names its matches."""
        return f"{self.run_dir.name}-q{self.quarter}"

    def player(self) -> Player:
        """Load the first checkpoint by which the quarters were spent; all play by the same search."""
        spent, wanted = evaluations(self.run_dir), SETTINGS[self.game].budget * self.quarter
        iteration = next(number for number, count in enumerate(spent) if count * LAST >= wanted)
        path = next(path for path in checkpoint_paths(self.run_dir) if int(path.name) == iteration)
        network, _, _ = load_player(path)
        return SearchPlayer(make_evaluator(network), num_simulations=PLAY_SIMULATIONS, name=self.name)


def run_config(agent: Agent) -> RunConfig:
    """Return the config of a run; its quota of positions is worth 1 / `ROUNDS` of the budget in simulations."""
    setting, arm = SETTINGS[agent.game], ARMS[agent.arm]
    quota = int(setting.budget / ROUNDS / arm.simulations_per_position)
    search = {"num_simulations": FULL, "fast_simulations": FAST, "full_search_share": arm.full_share}
    return from_document({
        "variant": agent.game, "seed": agent.seed, "workers": 0, "iterations": 10 * ROUNDS,
        "search": {"policy": arm.policy, **search},
        "selfplay": {**setting.selfplay, "positions_per_iteration": quota},
        "network": {"blocks": 2, "channels": 32},
        "learner": {"batch_size": 128, "ema_snapshots": 4, "warmup_steps": 50},
        "checkpoints": {"keep_every": 1},
        "evaluation": {"games": 4},
    })  # fmt: skip


def evaluations(run_dir: Path) -> list[int]:
    """Return the network evaluations that self-play has spent by the end of each iteration, beginning with 0."""
    spent = [
        float(numbers["perf/evaluations_per_s"] or 0) * float(numbers["perf/selfplay_s"] or 0)
        for _, numbers in read_metrics(run_dir)
    ]
    return list(itertools.accumulate([0, *map(round, spent)]))


def train_agent(agent: Agent) -> None:
    """Train until the budget is spent, and note what that took; nothing if it is noted already."""
    note = agent.run_dir.with_suffix(".json")
    if note.exists():
        return
    folder = RunFolder(agent.run_dir)
    try:
        trainer = Trainer(run_config(agent), folder, resume=False, reporter=Reporter())
        while evaluations(agent.run_dir)[-1] < SETTINGS[agent.game].budget:
            trainer.iterate()
        trainer.close()
    finally:
        folder.close()
    last = read_metrics(agent.run_dir)[-1][1]
    names = {"positions": "selfplay/total_positions", "games": "selfplay/total_games", "steps": "train/steps"}
    taken = {name: last[key] for name, key in names.items()}
    note.write_text(json.dumps({"evaluations": evaluations(agent.run_dir)[-1], **taken}))


def match(one: Agent, other: Agent | str, games: int) -> dict[str, Any]:
    """Return the document of a match against an agent or a baseline, played unless it is stored."""
    opponent = other if isinstance(other, str) else other.name
    path = one.folder / f"{one.name}-{opponent}.match.json"
    if not path.exists():
        second = BASELINES[other]() if isinstance(other, str) else other.player()
        settings = MatchSettings(games=games, max_plies=PLAY_CAP)
        result = play_match(load_variant(one.game), (one.player(), second), settings=settings)
        path.write_text(json.dumps(result.to_document()))
        print(f"{path.stem}: {result.wins}/{result.draws}/{result.losses}", file=sys.stderr, flush=True)
    document: dict[str, Any] = json.loads(path.read_text())
    return document


def agents(folder: Path, game: str) -> list[Agent]:
    """Return the agents of a game at the end of their runs, seed by seed."""
    return [Agent(folder, game, arm, seed) for seed in SEEDS for arm in range(len(ARMS))]


def rivals(folder: Path, game: str) -> list[tuple[Agent, Agent]]:
    """Return the pairs of agents of different arms."""
    return [pair for pair in itertools.combinations(agents(folder, game), 2) if pair[0].arm != pair[1].arm]


def against_random(agent: Agent) -> list[dict[str, Any]]:
    """Return the matches against `random` of an agent's run, quarter by quarter."""
    earlier = (Agent(agent.folder, agent.game, agent.arm, agent.seed, quarter) for quarter in QUARTERS)
    return [match(each, "random", BASELINE_GAMES) for each in earlier]


def measure(folder: Path, game: str) -> None:
    """Train and match whatever of one game is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    for agent in agents(folder, game):
        train_agent(agent)
    for one, other in rivals(folder, game):
        match(one, other, SETTINGS[game].direct_games)
    for agent in agents(folder, game):
        against_random(agent)
        match(agent, "greedy", BASELINE_GAMES)


def main() -> None:
    """Measure the games named, by default all, and report on them."""
    folder, games = Path(sys.argv[1]), sys.argv[2:] or list(SETTINGS)
    for game in games:
        measure(folder, game)
    from tests.train.learning_tables import draw_chart, print_tables

    print_tables(folder, games)
    draw_chart(folder, games)


if __name__ == "__main__":
    main()
