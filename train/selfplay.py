"""Self-play: many games at once, each searched with its own budget, recorded as they are played.

Every lane is one game. A round of the search evaluates one leaf in every lane; the lanes whose search has just ended
move and start the next search, so that the batch stays full. Games go on across calls, with newer weights.
Dims: B lanes. Values belong to the player to move.
Source: playout cap randomisation from Wu 2019, "Accelerating self-play learning in Go", section 3.1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from envs import CompiledGame, VectorEnv
from envs.notation import SIDE_LETTERS
from models.evaluator import Evaluator
from models.storage import CheckpointMismatch
from train.config_sections import SearchConfig, SelfplayConfig
from train.lanes import GameUnderWay, Lanes, pack_lanes, unpack_lanes
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
        resignations_checked: Games played on to their end though a player would have resigned.
        resignations_wrong: Those among them which that player did not lose.
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
    resignations_checked: int = 0
    resignations_wrong: int = 0

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


@dataclass(frozen=True)
class Assignment:
    """What a worker is told to make.

    Attributes:
        num_positions: moves to search at least.
        model_version: of the weights that play; kept with the games that end.
        iteration: of the run, from 1; it sets the budgets. In a new one searches under way begin anew.
    """

    num_positions: int
    model_version: int
    iteration: int


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
        self._search = Search(game, num_lanes, search.most_simulations, SearchSettings.of(search))
        self._iteration: int | None = None
        self._budgets = search.budgets(1)
        self._lanes = np.arange(num_lanes)
        self._num_games = [0] * num_lanes
        self._games = [self._start_game(lane) for lane in range(num_lanes)]

    def play(
        self, evaluator: Evaluator, assignment: Assignment, *, progress: Callable[[int], None] | None = None
    ) -> tuple[list[GameRecord], SelfPlayStats]:
        """Play until at least the assigned number of moves have been searched.

        Args:
            evaluator: Scores positions; the same within an iteration.
            assignment: What to make.
            progress: Called with the positions made so far after every round that moved.

        Returns:
            The games that ended, in the order in which they did, and counts.
        """
        finished: list[GameRecord] = []
        stats = SelfPlayStats()
        if assignment.iteration != self._iteration:
            self._begin_iteration(assignment.iteration)
        before = self._search.evaluations, self._search.recalled, self._search.depths
        while stats.positions < assignment.num_positions:
            done = self._search.advance(self._lanes, evaluator)
            if done.any():
                finished += self._move(np.flatnonzero(done), assignment.model_version, stats)
                if progress is not None:
                    progress(stats.positions)
        stats.evaluations = self._search.evaluations - before[0]
        stats.recalled = self._search.recalled - before[1]
        stats.depths = self._search.depths - before[2]
        return finished, stats

    def forget_evaluations(self) -> None:
        """Let nothing be remembered of the evaluator so far; new iterations do so by themselves."""
        self._search.forget_evaluations()

    @property
    def positions_under_way(self) -> int:
        """Moves searched so far in the games that have not ended."""
        return sum(len(game.actions) - game.opening_plies for game in self._games)

    def lanes(self) -> bytes:
        """Return the games under way, for `restore_lanes` between two iterations."""
        return pack_lanes(Lanes(self._seed, tuple(self._num_games), tuple(self._games)), self._env.game)

    def restore_lanes(self, content: bytes, where: str = "lanes") -> None:
        """Go on with games under way: the next iteration is as it would have been.

        Args:
            content: What `lanes` returned for the same game and number of games.
            where: Its name in errors.

        Raises:
            CorruptFile: The content is damaged; the games here go on.
            CheckpointMismatch: It holds games of another game, another number of them, or one that has reached the ply
                cap; likewise.
        """
        lanes = unpack_lanes(content, self._env.game, where)
        if len(lanes.games) != len(self._lanes):
            raise CheckpointMismatch(f"{where}: {len(lanes.games)} games, expected {len(self._lanes)}")
        longest = max(len(game.actions) for game in lanes.games)
        if longest >= self._cfg.max_plies:
            raise CheckpointMismatch(f"{where}: a game of {longest} plies, max_plies is {self._cfg.max_plies}")
        self._seed, self._num_games, self._games = lanes.seed, list(lanes.num_games), list(lanes.games)
        for lane, game in enumerate(self._games):
            self._env.set_fen(lane, game.start_fen)
        for ply in range(longest):
            moving = np.array([ply < len(game.actions) for game in self._games])
            actions = [game.actions[ply] if moves else 0 for game, moves in zip(self._games, moving, strict=True)]
            self._env.step(actions, moving)
        self._iteration = None

    def _begin_iteration(self, iteration: int) -> None:
        """Let every lane search its position anew with the iteration's weights and budgets."""
        self._iteration, self._budgets = iteration, self._search_cfg.budgets(iteration)
        self.forget_evaluations()
        for lane in range(len(self._lanes)):
            self._begin_search(lane)

    def _move(self, lanes: npt.NDArray[np.intp], model_version: int, stats: SelfPlayStats) -> list[GameRecord]:
        """Play the searched moves of lanes, replace the games that ended, and start the next searches."""
        actions = np.zeros(len(self._lanes), np.int64)
        moving = np.zeros(len(self._lanes), np.bool_)
        finished = []
        for lane in lanes.tolist():
            found = self._search.result(lane)
            stats.count(found, full=self._games[lane].is_full)
            actions[lane] = self._decide(lane, found)
            moving[lane] = True
        self._env.step(actions, moving)
        over = self._env.over
        for lane in lanes.tolist():
            resigned = "" if over[lane] else self._resigning(self._games[lane])
            if over[lane] or resigned:
                finished.append(self._finish(lane, resigned, model_version, stats))
                self._games[lane] = self._start_game(lane)
            else:
                self._draw_budget(self._games[lane])
            self._begin_search(lane)
        return finished

    def _decide(self, lane: int, found: SearchResult) -> int:
        """Choose and record the move of a lane whose search has ended."""
        game = self._games[lane]
        action = found.action
        if len(game.actions) < self._cfg.sampled_plies:
            chances = found.policy if self._cfg.sampled_from == "policy" else found.visit_counts
            odds = (chances / chances.max()) ** (1 / self._cfg.temperature)
            ladder = odds.cumsum()
            action = int(found.legal_actions[ladder.searchsorted(game.rng.random() * ladder[-1], side="right")])
        self._watch_for_resignation(game, int(self._env.to_play[lane]), found.value)
        game.states.append(self._env.states[lane].copy())
        game.actions.append(action)
        game.values.append(found.value)
        game.policies.append((found.legal_actions, found.policy) if game.is_full else _NO_POLICY)
        return action

    def _watch_for_resignation(self, game: GameUnderWay, side: int, value: float) -> None:
        """Note how long the side to move has thought its game lost."""
        if self._cfg.resign_value is None:
            return
        game.streaks[side] = game.streaks[side] + 1 if value < -self._cfg.resign_value else 0
        if game.streaks[side] >= self._cfg.resign_moves and game.would_resign < 0:
            game.would_resign = side

    def _resigning(self, game: GameUnderWay) -> str:
        """Return who resigns now: "w", "b" or nobody."""
        return "" if game.would_resign < 0 or game.plays_on else SIDE_LETTERS[game.would_resign]

    def _finish(self, lane: int, resigned: str, model_version: int, stats: SelfPlayStats) -> GameRecord:
        """Return the record of a lane's game, and count what it says of resignation."""
        game, words = self._games[lane], self._env.game.state_words
        if resigned:
            score, termination = float(game.would_resign), 0  # 0 is White, whose resignation scores 0
        else:
            score, termination = float(self._env.white_score[lane]), int(self._env.terminations[lane])
        if game.plays_on and game.would_resign >= 0 and termination:  # what the ply cap cut says nothing
            stats.resignations_checked += 1
            stats.resignations_wrong += score != game.would_resign
        return game.record(score, termination, model_version=model_version, words=words, resigned=resigned)

    def _draw_budget(self, game: GameUnderWay) -> None:
        game.is_full = bool(game.rng.random() < self._search_cfg.full_search_share)

    def _begin_search(self, lane: int) -> None:
        game = self._games[lane]
        full, fast = self._budgets
        budget, rng = (full, game.rng) if game.is_full else (fast, None)  # fast searches play as well as they can
        self._search.begin(lane, self._env.states[lane], self._env.histories[lane], budget=budget, rng=rng)

    def _start_game(self, lane: int) -> GameUnderWay:
        """Set a lane to a new start position and play its random opening."""
        number = self._num_games[lane]
        self._num_games[lane] += 1
        entropy = np.random.SeedSequence([*self._seed, lane, number])
        seed = int(entropy.generate_state(1, np.uint64)[0]) & ((1 << SEED_BITS) - 1)
        rng = np.random.default_rng(seed)
        for _ in range(MAX_START_TRIES):
            game = self._open(lane, seed, rng, is_first=number == 0)
            if not self._env.over[lane]:
                self._draw_budget(game)
                return game
        raise RuntimeError(f"no game could be started in {MAX_START_TRIES} tries: every opening ended at once")

    def _open(self, lane: int, seed: int, rng: np.random.Generator, *, is_first: bool) -> GameUnderWay:
        cfg = self._cfg
        num_plies = int(rng.integers(cfg.random_plies + 1)) if rng.random() < cfg.random_share else 0
        num_plies += int(rng.integers(cfg.stagger_plies + 1)) if is_first else 0
        is_odds = bool(rng.random() < cfg.odds_share)
        plays_on = bool(rng.random() < cfg.resign_playthrough)
        fen = odds_start(self._env.game, rng) if is_odds else array_start(self._env.game, rng)
        self._env.set_fen(lane, fen)
        kind = ODDS if is_odds else RANDOM if num_plies else ARRAY
        game = GameUnderWay(seed, rng, fen, kind, plays_on)
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
