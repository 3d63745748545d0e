"""The matches that a run plays by itself: against its opponent, and of int8 against float32."""

from __future__ import annotations

from envs import Variant
from models.evaluator import make_evaluator
from models.network import PolicyValueNetwork
from train.arena import MatchResult, MatchSettings, play_match
from train.config import RunConfig
from train.openings import draw_openings
from train.players import make_player
from train.precision import INT8, Verdict, play_precisions
from train.progress import Reporter
from train.resources import num_cores
from train.search import SearchPlayer, SearchSettings


class RunMatches:
    """Plays a run's matches when they are due.

    Attributes:
        verdict: What the match of precisions found; None before it, and without int8.
    """

    def __init__(self, cfg: RunConfig, variant: Variant, graph: bytes, reporter: Reporter) -> None:
        """Make sure that the matches can be played.

        Args:
            cfg: The run's config.
            variant: Its game.
            graph: `export_graph` of its network.
            reporter: Shows progress.

        Raises:
            ValueError: There are too few distinct openings.
        """
        self._cfg, self._variant, self._graph, self._reporter = cfg, variant, graph, reporter
        own = cfg.evaluation
        self._settings = MatchSettings(own.games, own.random_plies, cfg.seed, own.max_plies)
        self.verdict: Verdict | None = None
        most = max(own.games, cfg.inference.match_games if cfg.inference.precision == INT8 else 0)
        draw_openings(variant, most // 2, plies=own.random_plies, seed=cfg.seed)

    @property
    def plays_int8(self) -> bool:
        """Whether self-play evaluates in int8."""
        asked = self._cfg.inference.precision == INT8
        return asked and self.verdict is not None and self.verdict.precision == INT8

    def play_due(self, network: PolicyValueNetwork, name: str, iteration: int) -> list[MatchResult]:
        """Play the matches that are due after an iteration; the verdict may change.

        Args:
            network: The weights that play.
            name: Of the run.
            iteration: How many iterations are done.
        """
        played = []
        cfg, is_last = self._cfg, iteration >= self._cfg.iterations
        if cfg.evaluation.every and iteration % cfg.evaluation.every == 0 and not is_last:
            played.append(self.play(network, name, iteration))
        is_open = cfg.inference.precision == INT8 and self.verdict is None
        if is_open and cfg.inference.match_from <= iteration and not is_last:
            played.append(self._judge_int8(network, iteration))
        return played

    def play(self, network: PolicyValueNetwork, name: str, iteration: int) -> MatchResult:
        """Play the configured opponent with the weights that play."""
        own = self._cfg.evaluation
        evaluator = make_evaluator(network, threads=num_cores(), graph=self._graph)
        settings = SearchSettings.of(self._cfg.search)
        player = SearchPlayer(evaluator, num_simulations=own.simulations, name=f"{name}:{iteration}", settings=settings)
        opponent = make_player(own.opponent, simulations=own.simulations).player
        with self._reporter.task(f"match against {own.opponent}", own.games) as update:
            return play_match(
                self._variant, (player, opponent), settings=self._settings, progress=lambda done, _: update(done)
            )

    def _judge_int8(self, network: PolicyValueNetwork, iteration: int) -> MatchResult:
        """Let the weights that play show whether int8 is good enough for self-play."""
        with self._reporter.task("match of int8 against float32", self._cfg.inference.match_games) as update:
            match = play_precisions(self._cfg, self._variant, network, graph=self._graph, progress=update)
        self.verdict = Verdict.of(match, iteration)
        self._reporter.say(str(self.verdict))
        return match
