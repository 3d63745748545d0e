"""Self-play: many games at once, each searched with its own budget, recorded as they are played.

Every lane is one game. A round of the search evaluates one leaf in every lane; the lanes whose search has just ended
move and start the next search, so that the batch stays full. Games go on across calls, with newer weights.
Dims: B lanes. Values belong to the player to move.
Source: playout cap randomisation from Wu 2019, "Accelerating self-play learning in Go", section 3.1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from envs import CompiledGame, VectorEnv
from models.evaluator import Evaluator
from train.config_sections import SearchConfig, SelfplayConfig
from train.search import Search, SearchResult, SearchSettings
from train.shards import GameRecord
from train.starts import array_start, odds_start

ARRAY, ODDS, RANDOM = "array", "odds", "random"
SEED_BITS = 62
MAX_START_TRIES = 100


@dataclass
class SelfPlayStats:
    """What a call of `SelfPlay.play` counted; sums, so that those of several workers add up.

    Attributes:
        positions: Moves chosen by search.
        full_searches: Those among them with the full budget.
        evaluations: Network evaluations.
        recalled: Positions whose evaluation was remembered instead.
        simulations: Simulations.
        depths: Sum of the depths of the positions evaluated or recalled.
        root_values: Sum of the absolute root values.
        policy_entropies: Sum of the entropies of the policy targets, in nats.
        prior_divergences: Sum of the divergences of the network's policies from the policy targets, in nats.
    """

    positions: int = 0
    full_searches: int = 0
    evaluations: int = 0
    recalled: int = 0
    simulations: int = 0
    depths: int = 0
    root_values: float = 0.0
    policy_entropies: float = 0.0
    prior_divergences: float = 0.0

    def add(self, other: SelfPlayStats) -> None:
        """Add another call's counts to these."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)

    def count(self, found: SearchResult, *, full: bool) -> None:
        """Count one finished search."""
        self.positions += 1
        self.simulations += int(found.visit_counts.sum())
        self.root_values += abs(found.value)
        if full:
            target = found.policy[found.policy > 0]
            prior = np.maximum(found.prior[found.policy > 0], np.finfo(np.float32).tiny)
            self.full_searches += 1
            self.policy_entropies -= float((target * np.log(target)).sum())
            self.prior_divergences += float((target * np.log(target / prior)).sum())


@dataclass
class _Game:
    """A game under way."""

    seed: int
    rng: np.random.Generator
    start_fen: str
    start_kind: str
    opening_plies: int = 0
    is_full: bool = False
    states: list[npt.NDArray[np.uint64]] = field(default_factory=list)
    actions: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    policies: list[tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]] = field(default_factory=list)

    def record(self, white_score: float, termination: int, model_version: int) -> GameRecord:
        """Return the finished game."""
        sizes = [len(actions) for actions, _ in self.policies]
        return GameRecord(
            start_fen=self.start_fen,
            actions=np.array(self.actions, np.int32),
            states=np.array(self.states, np.uint64),
            policy_index=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            policy_actions=np.concatenate([actions for actions, _ in self.policies]).astype(np.int32),
            policy_probs=np.concatenate([probabilities for _, probabilities in self.policies]).astype(np.float32),
            root_values=np.clip(np.array(self.values, np.float32), -1.0, 1.0),
            white_score=white_score,
            termination=termination,
            model_version=model_version,
            seed=self.seed,
            opening_plies=self.opening_plies,
            start_kind=self.start_kind,
        )


_NO_POLICY = (np.zeros(0, np.int32), np.zeros(0, np.float32))


class SelfPlay:
    """B games of one variant, played by search against itself."""

    def __init__(
        self,
        game: CompiledGame,
        search: SearchConfig,
        selfplay: SelfplayConfig,
        *,
        seed: tuple[int, ...],
    ) -> None:
        """Start B games.

        Args:
            game: The compiled game.
            search: Budgets and knobs of the search.
            selfplay: Numbers of games, starts and caps.
            seed: What fixes every game's random stream, such as the run's seed and the worker's number.
        """
        self._search_cfg, self._cfg = search, selfplay
        self._seed = seed
        num_lanes = selfplay.games_per_worker
        self._env = VectorEnv(game.variant, num_lanes, max_plies=selfplay.max_plies)
        self._search = Search(game, num_lanes, search.num_simulations, SearchSettings.of(search))
        self._model_version: int | None = None
        self._lanes = np.arange(num_lanes)
        self._num_games = np.zeros(num_lanes, np.int64)
        self._games = [self._start_game(lane) for lane in range(num_lanes)]
        for lane in range(num_lanes):
            self._begin_search(lane)

    def play(
        self,
        evaluator: Evaluator,
        num_positions: int,
        *,
        model_version: int,
        progress: Callable[[int], None] | None = None,
    ) -> tuple[list[GameRecord], SelfPlayStats]:
        """Play until at least `num_positions` moves have been searched.

        Args:
            evaluator: Scores positions.
            num_positions: The quota.
            model_version: Stored with the games that end in this call; a new one means new weights.
            progress: Called with the positions made so far after every round that moved.

        Returns:
            The games that ended, in the order in which they did, and counts.
        """
        finished: list[GameRecord] = []
        stats = SelfPlayStats()
        if model_version != self._model_version:
            self.forget_evaluations()
            self._model_version = model_version
        before = self._search.evaluations, self._search.recalled, self._search.depths
        while stats.positions < num_positions:
            done = self._search.advance(self._lanes, evaluator)
            if done.any():
                finished += self._move(np.flatnonzero(done), model_version, stats)
                if progress is not None:
                    progress(stats.positions)
        stats.evaluations = self._search.evaluations - before[0]
        stats.recalled = self._search.recalled - before[1]
        stats.depths = self._search.depths - before[2]
        return finished, stats

    def forget_evaluations(self) -> None:
        """Let nothing be remembered of the evaluator so far; new model versions do so by themselves."""
        self._search.forget_evaluations()

    def _move(self, lanes: npt.NDArray[np.intp], model_version: int, stats: SelfPlayStats) -> list[GameRecord]:
        """Play the searched moves of lanes, replace the games that ended, and start the next searches."""
        actions = np.zeros(len(self._lanes), np.int64)
        moving = np.zeros(len(self._lanes), np.bool_)
        for lane in lanes.tolist():
            found = self._search.result(lane)
            stats.count(found, full=self._games[lane].is_full)
            actions[lane] = self._decide(lane, found)
            moving[lane] = True
        self._env.step(actions, moving)
        finished = []
        over = self._env.over
        for lane in lanes.tolist():
            if over[lane]:
                finished.append(
                    self._games[lane].record(
                        float(self._env.white_score[lane]), int(self._env.terminations[lane]), model_version
                    )
                )
                self._games[lane] = self._start_game(lane)
            self._begin_search(lane)
        return finished

    def _decide(self, lane: int, found: SearchResult) -> int:
        """Choose and record the move of a lane whose search has ended."""
        game = self._games[lane]
        action = found.action
        if len(game.actions) < self._cfg.sampled_plies:
            odds = (found.visit_counts / found.visit_counts.max()) ** (1 / self._cfg.temperature)
            ladder = odds.cumsum()
            action = int(found.legal_actions[ladder.searchsorted(game.rng.random() * ladder[-1], side="right")])
        game.states.append(self._env.states[lane].copy())
        game.actions.append(action)
        game.values.append(found.value)
        game.policies.append((found.legal_actions, found.policy) if game.is_full else _NO_POLICY)
        return action

    def _begin_search(self, lane: int) -> None:
        game = self._games[lane]
        game.is_full = bool(game.rng.random() < self._search_cfg.full_search_share)
        budget = self._search_cfg.num_simulations if game.is_full else self._search_cfg.fast_simulations
        rng = game.rng if game.is_full else None  # fast searches play as well as they can
        self._search.begin(lane, self._env.states[lane], self._env.histories[lane], budget=budget, rng=rng)

    def _start_game(self, lane: int) -> _Game:
        """Set a lane to a new start position and play its random opening."""
        number = int(self._num_games[lane])
        self._num_games[lane] += 1
        entropy = np.random.SeedSequence([*self._seed, lane, number])
        seed = int(entropy.generate_state(1, np.uint64)[0]) & ((1 << SEED_BITS) - 1)
        rng = np.random.default_rng(seed)
        for _ in range(MAX_START_TRIES):
            most = self._cfg.random_plies + (self._cfg.stagger_plies if number == 0 else 0)
            game = self._open(lane, seed, rng, int(rng.integers(most + 1)))
            if not self._env.over[lane]:
                return game
        raise RuntimeError(f"no game could be started in {MAX_START_TRIES} tries: every opening ended at once")

    def _open(self, lane: int, seed: int, rng: np.random.Generator, num_plies: int) -> _Game:
        is_odds = bool(rng.random() < self._cfg.odds_share)
        fen = odds_start(self._env.game, rng) if is_odds else array_start(self._env.game, rng)
        self._env.set_fen(lane, fen)
        game = _Game(seed, rng, fen, ODDS if is_odds else RANDOM if num_plies else ARRAY)
        mask = self._lanes == lane
        while game.opening_plies < num_plies and not self._env.over[lane]:
            action = int(rng.choice(self._env.legal_actions(lane)))
            game.states.append(self._env.states[lane].copy())
            game.actions.append(action)
            game.values.append(0.0)
            game.policies.append(_NO_POLICY)
            game.opening_plies += 1
            self._env.step(np.full(len(self._lanes), action), mask)
        return game
