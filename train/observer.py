"""All that is written about a run while it goes on: metrics, histograms, pictures, texts, the line a person reads.

The loop tells an observer what an iteration made, once, before it saves: a run that is killed during the save drops
that iteration's metrics with the iteration, and one that is killed after it has both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

import envs
from envs import CompiledGame
from envs.reference import actions_table
from envs.rule_sheet import rule_sheet
from train.arena import MatchResult
from train.config import RunConfig
from train.iteration_metrics import (
    Numbers,
    StepMeans,
    Stopwatch,
    buffer_numbers,
    complete,
    game_numbers,
    match_numbers,
    piece_numbers,
    search_numbers,
    value_error,
)
from train.learner import Learner
from train.metrics import CHARTS, MetricsWriter, Picture, as_code, match_charts
from train.pictures import Opinion, last_positions, opinions, position_with_policy
from train.piece_values import Report
from train.replay import Batch, ReplayBuffer
from train.resources import ResourceMeter
from train.selfplay import SelfPlayStats
from train.shards import GameRecord, ShardInfo

MAX_LAYERS = 32
"""Layers whose weights and gradients are shown, at most."""
MAX_VALUES = 10_000
"""Numbers of a layer that its histogram looks at, evenly spread, at most."""


@dataclass(frozen=True, eq=False)
class Iteration:
    """What an iteration made.

    Attributes:
        number: The iteration, from 1.
        games: Finished games.
        stats: What self-play counted.
        steps: What the learner's steps returned.
        new_rows: Rows with a policy that the games brought.
        matches: Played after the iteration's learning.
        totals: Metrics of the whole run that the loop counts, by their full names.
        faults: Counts since start or resume, by their names in the group `faults`.
        is_int8: Whether self-play evaluated in int8.
    """

    number: int
    games: Sequence[GameRecord]
    stats: SelfPlayStats
    steps: StepMeans
    new_rows: int
    matches: Sequence[MatchResult] = ()
    totals: Mapping[str, int] = field(default_factory=dict)
    faults: Mapping[str, int] = field(default_factory=dict)
    is_int8: bool = False


class RunObserver:
    """Measures and shows one run.

    Attributes:
        clock: Times the phases; the loop tells it when each begins and ends.
    """

    def __init__(
        self, run_dir: Path, cfg: RunConfig, game: CompiledGame, *, learner: Learner, resume_after: int | None
    ) -> None:
        """Open the run's metrics and write down what it is.

        Args:
            run_dir: The run's folder.
            cfg: Its config.
            game: Its game.
            learner: Looked at, never changed.
            resume_after: Iteration after which a run goes on; None for a new one.

        Raises:
            FileExistsError: A new run has metrics already.
            OSError: The files cannot be written.
        """
        self.clock = Stopwatch()
        self._cfg, self._game, self._learner = cfg, game, learner
        self._metrics = MetricsWriter(run_dir, resume_after=resume_after)
        self._resources = ResourceMeter(run_dir)
        self._metrics.texts(
            {
                "config": as_code(cfg.to_yaml()),
                "rules": as_code(rule_sheet(game.variant)),
                "actions": "\n".join(actions_table(game)),
            }
        )
        self._metrics.charts({**match_charts(cfg.evaluation.opponent), **CHARTS})

    def iteration(self, made: Iteration, replay: ReplayBuffer, shards: Sequence[ShardInfo]) -> str:
        """Write an iteration's metrics, and what else is due.

        Args:
            made: What it made.
            replay: The window.
            shards: All of the run, this iteration's too, oldest first.

        Returns:
            A line for people.

        Raises:
            OSError: The disk is full, or a file cannot be written; names it.
        """
        with self.clock.time("observe"):
            held_out = replay.held_out_batches(self._cfg.learner.batch_size)
            measured: Numbers = {
                **game_numbers(made.games),
                "selfplay/int8": int(made.is_int8),
                **search_numbers(made.stats, self._cfg.search, made.number),
                "search/value_error": value_error(self._game, made.games),
                **self._learning(made, held_out),
                **buffer_numbers(replay, shards, made.number),
                **made.totals,
                **{f"faults/{name}": count for name, count in made.faults.items()},
                **{name: value for match in made.matches for name, value in match_numbers(match).items()},
                **self._resources.numbers(),
            }
        times = self.clock.numbers(made.stats, games=len(made.games), steps=made.steps.count)
        self.clock.restart()
        numbers = complete({**measured, **times})
        with self.clock.time("observe"):
            self._show(made, numbers)
        return iteration_line(made.number, self._cfg.iterations, numbers)

    def conclude(self, iteration: int, match: MatchResult, report: Report | None) -> None:
        """Write what was found after the last iteration."""
        self._metrics.write(iteration, {**match_numbers(match), **piece_numbers(report)})

    def close(self) -> None:
        """Close the files."""
        self._metrics.close()

    def _show(self, made: Iteration, numbers: Numbers) -> None:
        self._metrics.write(made.number, numbers)
        if self._is_due(made.number, self._cfg.metrics.histograms_every):
            self._metrics.histograms(made.number, self._histograms(made.games))
        if self._is_due(made.number, self._cfg.metrics.pictures_every):
            self._metrics.pictures(made.number, self._pictures(made.games))

    def _learning(self, made: Iteration, held_out: Sequence[Batch]) -> Numbers:
        """Return the `train` group and the learner's faults."""
        learner = self._learner
        rows = made.steps.count * self._cfg.learner.batch_size
        losses = learner.held_out_losses(held_out) if held_out else {}
        return {
            **made.steps.numbers(),
            **{f"train/{name}": value for name, value in losses.items()},
            "train/weight_norm": float(torch.nn.utils.get_total_norm(list(learner.network.parameters()))),
            "train/steps": learner.steps,
            "train/epochs": rows / made.new_rows if made.new_rows else None,
            "faults/skipped_steps": learner.skipped_steps,
            "faults/rollbacks": learner.rollbacks,
        }

    def _is_due(self, number: int, every: int) -> bool:
        return every > 0 and (number % every == 0 or number in (1, self._cfg.iterations))

    def _histograms(self, games: Sequence[GameRecord]) -> dict[str, npt.NDArray[np.float64]]:
        return {**game_histograms(self._game, games), **dict(layer_histograms(self._learner.network))}

    def _pictures(self, games: Sequence[GameRecord]) -> dict[str, Picture]:
        pictures = {"games/last_positions": last_positions(self._game, games)}
        chosen = position_with_policy(games)
        if chosen is not None:
            record, ply = chosen
            views = [self._network_opinion(record, ply), search_opinion(record, ply)]
            pictures["search/position"] = opinions(self._game, record, ply, views)
        return {name: picture for name, picture in pictures.items() if picture is not None}

    def _network_opinion(self, record: GameRecord, ply: int) -> Opinion:
        """Ask the weights that play next."""
        row = record.states[ply : ply + 1]
        actions, _ = envs.legal_actions(self._game, row)
        network = self._learner.playing_network
        device = network.gather_index.device
        inputs = (
            torch.from_numpy(part).to(device) for part in (envs.observe(self._game, row), actions.astype(np.int64))
        )
        with torch.no_grad():
            output = network(*inputs)
        policy = torch.softmax(output.policy_logits[0].float(), 0).cpu().numpy()
        win, _, loss = torch.softmax(output.wdl_logits[0].float(), 0).tolist()
        return Opinion("network now", actions[0], policy, win - loss)


def search_opinion(record: GameRecord, ply: int) -> Opinion:
    """Return what the search found in a game; its policy is the target that trains."""
    entries = slice(int(record.policy_index[ply]), int(record.policy_index[ply + 1]))
    value = float(record.root_values[ply])
    return Opinion("search then", record.policy_actions[entries], record.policy_probs[entries], value)


def game_histograms(game: CompiledGame, games: Sequence[GameRecord]) -> dict[str, npt.NDArray[np.float64]]:
    """Return the numbers behind the histograms of the group `games`; float64, any length."""
    if not games:
        return {}
    ends = np.stack([envs.replay_actions(game, record.start_fen, record.actions)[0][-1] for record in games])
    counts = envs.piece_counts(game, ends).sum(axis=2)
    played = [record.actions[record.opening_plies :] for record in games]
    values = [record.root_values[record.opening_plies :] for record in games]
    return {
        "games/plies": np.array([record.num_plies for record in games], np.float64),
        "games/material_left": (counts[:, 0] - counts[:, 1]).astype(np.float64),
        "games/root_values": np.concatenate(values).astype(np.float64),
        "games/policy_entropy": np.concatenate([policy_entropies(record) for record in games]),
        "games/planes": game.encoding.plane[np.concatenate(played)].astype(np.float64),
    }


def policy_entropies(record: GameRecord) -> npt.NDArray[np.float64]:
    """Return the entropies of a game's policy targets in nats, one for each ply that has one."""
    probs = record.policy_probs.astype(np.float64)
    parts = probs * -np.log(np.maximum(probs, np.finfo(np.float64).tiny))
    starts = record.policy_index[:-1][np.diff(record.policy_index) > 0]
    return np.add.reduceat(parts, starts) if len(starts) else np.zeros(0)


def layer_histograms(network: torch.nn.Module) -> Iterator[tuple[str, npt.NDArray[np.float64]]]:
    """Yield numbers of the weights and last gradients of a network's layers, evenly spread over the network."""
    layers = [(name, weights) for name, weights in network.named_parameters() if weights.ndim > 1]
    for index in np.unique(np.linspace(0, len(layers) - 1, min(MAX_LAYERS, len(layers))).round().astype(int)).tolist():
        name, weights = layers[index]
        yield f"weights/{name}", _spread(weights)
        if weights.grad is not None:
            yield f"gradients/{name}", _spread(weights.grad)


def iteration_line(number: int, iterations: int, numbers: Numbers) -> str:
    """Return an iteration's main numbers in a line."""

    def show(name: str, form: str) -> str:
        value = numbers.get(name)
        return "-" if value is None else format(value, form)

    return (
        f"[{number}/{iterations}] {show('selfplay/games', 'd')} games, {show('selfplay/plies', '.0f')} plies, "
        f"decisive {show('outcome/decisive_share', '.0%')}, cut {show('outcome/cut_share', '.0%')} | "
        f"policy KL {show('train/policy_kl', '.3f')}, value {show('train/value_loss', '.3f')} | "
        f"{show('perf/positions_per_s', '.0f')} positions/s, self-play {show('perf/selfplay_s', '.1f')} s, "
        f"learning {show('perf/learn_s', '.1f')} s, idle {show('perf/idle_core_share', '.0%')}"
    )


def _spread(values: torch.Tensor) -> npt.NDArray[np.float64]:
    """Return at most `MAX_VALUES` of a tensor's numbers, evenly spread."""
    flat = values.detach().reshape(-1)
    return flat[:: -(-len(flat) // MAX_VALUES)].double().cpu().numpy()
