"""A supervised start: a new network learns from a player's games, or from stored ones, before any self-play.

Dims: B games in lockstep (lanes).

The games are stored in the run's folder `warm_start/`, verified as those of self-play are, and never enter the
replay window. A player's games teach its moves and their result; stored ones teach what they taught their own run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from envs import Variant, VectorEnv
from train.arena import Player
from train.baselines import BASELINES, is_baseline, make_baseline
from train.config import ConfigError, RunConfig
from train.iteration_metrics import StepMeans
from train.lanes import GameUnderWay
from train.learner import Learner
from train.progress import Reporter
from train.replay import ReplayBuffer
from train.resources import num_cores
from train.shards import ENDING, GameRecord, ShardInfo, read_shard
from train.verification import hold_out, store_games

if TYPE_CHECKING:
    from envs import CompiledGame
    from train.config_sections import WarmStartConfig

FOLDER = "warm_start"
"""Of the run's folder; where the games are."""
LANES = 256
"""B, at most."""
WARM_START_STREAM = 0x57A27
"""Sets the random streams of a warm start apart from the run's others."""
NO_POLICY = np.zeros(0, np.int32), np.zeros(0, np.float32)


def warm_start(
    cfg: RunConfig, game: CompiledGame, learner: Learner, *, run_dir: Path, reporter: Reporter
) -> dict[str, float]:
    """Train a new run's learner as `cfg.warm_start` says; it depends on the config and its seed alone.

    Args:
        cfg: the config; without a player and shards nothing is done.
        game: its game.
        learner: changed, and a first snapshot taken.
        run_dir: folder of the run; what a start that was killed left in its `warm_start/` is removed.
        reporter: says what is being done.

    Returns:
        What was done: `games`, `rows`, `steps`, mean losses over the last tenth of the steps under the names of
        `Learner.step`, and `Learner.held_out_losses` of the games set aside. Empty if nothing was asked for.

    Raises:
        ConfigError: see `check_warm_start`.
        CorruptFile, CheckpointMismatch: a shard is damaged, or holds games of another game.
        IllegalAction: the player chose an illegal move.
        ValueError: no game leaves anything to learn.
    """
    if cfg.warm_start.player is None and cfg.warm_start.shards is None:
        return {}
    check_warm_start(cfg.warm_start)
    folder = run_dir / FOLDER
    for leftover in folder.glob(f"*{ENDING}"):
        leftover.unlink()
    infos = []
    for number, games in enumerate(_sources(cfg, game, reporter)):
        kept = hold_out(games, cfg.replay.held_out_share)
        info, _ = store_games(game, kept, folder=folder, name=f"{number:06d}", quarantine=run_dir / "quarantine")
        infos += [info] if info else []
    window = _window(cfg, game, folder, infos)
    done = {"games": sum(info.num_games for info in infos), "rows": window.num_rows}
    return {**done, **_learn(cfg, learner, window, reporter)}


def check_warm_start(cfg: WarmStartConfig) -> None:
    """Raise ConfigError if the player is not known, or the folder holds no shard."""
    if cfg.player is not None and not is_baseline(cfg.player):
        near = get_close_matches(cfg.player, BASELINES, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"expected one of {', '.join(BASELINES)}, or alphabeta:PLIES"
        raise ConfigError(f"warm_start.player: '{cfg.player}' is not known, {hint}")
    if cfg.shards is not None and not _shard_paths(cfg.shards):
        raise ConfigError(f"warm_start.shards: no {ENDING} file in {cfg.shards}")


def play_games(variant: Variant, player: Player, cfg: WarmStartConfig, *, seed: int) -> list[GameRecord]:
    """Let a player play both sides of games; the policy of a position is the move that it played there.

    Args:
        variant: the game.
        player: makes every move after the opening.
        cfg: number of games, openings and ply cap.
        seed: of the openings and the player.

    Returns:
        The games; those that end within their opening are left out.

    Raises:
        IllegalAction: the player chose an illegal move.
    """
    records: list[GameRecord] = []
    for first in range(0, cfg.games, LANES):
        records += _play_lanes(variant, player, cfg, range(first, min(first + LANES, cfg.games)), seed)
    return records


def _sources(cfg: RunConfig, game: CompiledGame, reporter: Reporter) -> Iterable[list[GameRecord]]:
    """Make or read the games, shard by shard."""
    asked = cfg.warm_start
    if asked.player is None:
        return (read_shard(path, game) for path in _shard_paths(asked.shards or ""))
    reporter.say(f"warm start: {asked.games} games of {asked.player} ...")
    return [play_games(game.variant, make_baseline(asked.player), asked, seed=cfg.seed)]


def _shard_paths(folder: str) -> list[Path]:
    return sorted(Path(folder).glob(f"*{ENDING}"))


def _play_lanes(variant: Variant, player: Player, cfg: WarmStartConfig, numbers: range, seed: int) -> list[GameRecord]:
    """Play the games of these numbers in lockstep."""
    env = VectorEnv(variant, len(numbers), max_plies=cfg.max_plies)
    games = [_begin(variant, cfg, number, seed) for number in numbers]
    for lane, game in enumerate(games):
        env.set_fen(lane, game.start_fen)
    rng = np.random.default_rng([seed, WARM_START_STREAM, 1, numbers.start])
    while not env.over.all():
        running = np.flatnonzero(~env.over)
        opens = np.array([len(games[lane].actions) < games[lane].opening_plies for lane in running])
        actions = np.zeros(len(games), np.int64)
        for lane in running[opens].tolist():
            actions[lane] = games[lane].rng.choice(env.legal_actions(lane))
        if not opens.all():
            actions[running[~opens]] = player.choose(env, running[~opens], rng)
        before = env.states.copy()
        env.step(actions)
        _note(games, running, before, actions)
    scores, endings = env.white_score.tolist(), env.terminations.tolist()
    return [
        game.record(scores[lane], endings[lane], model_version=0, words=env.game.state_words)
        for lane, game in enumerate(games)
        if len(game.actions) > game.opening_plies
    ]


def _begin(variant: Variant, cfg: WarmStartConfig, number: int, seed: int) -> GameUnderWay:
    """Draw a game's start and the length of its opening."""
    sequence = np.random.SeedSequence([seed, WARM_START_STREAM, 0, number])
    rng = np.random.default_rng(sequence)
    return GameUnderWay(
        seed=int(sequence.generate_state(1, np.uint64)[0]),
        rng=rng,
        start_fen=variant.start_fens[int(rng.integers(len(variant.start_fens)))],
        start_kind=FOLDER,
        opening_plies=int(rng.integers(cfg.random_plies + 1)),
    )


def _note(
    games: Sequence[GameUnderWay], running: NDArray[np.intp], states: NDArray[np.uint64], actions: NDArray[np.int64]
) -> None:
    """Write down a ply of the games that were running: states before it, and actions, of all lanes."""
    for lane in running.tolist():
        game, action = games[lane], int(actions[lane])
        is_opening = len(game.actions) < game.opening_plies
        game.policies.append(NO_POLICY if is_opening else (np.array([action], np.int32), np.ones(1, np.float32)))
        game.states.append(states[lane])
        game.actions.append(action)
        game.values.append(0.0)


def _window(cfg: RunConfig, game: CompiledGame, folder: Path, infos: Iterable[ShardInfo]) -> ReplayBuffer:
    """Return the stored games, ready to learn from."""
    window = ReplayBuffer(
        game,
        cfg.replay,
        outcome_weight=cfg.learner.outcome_weight if cfg.warm_start.player is None else 1.0,  # it has no root values
        future_plies=cfg.learner.future_plies if cfg.network.future_pieces else None,
    )
    for info in infos:
        window.add(folder, info)
    if window.num_policy_rows == 0:
        raise ValueError(f"{folder}: no position with a policy to learn from")
    return window


def _learn(cfg: RunConfig, learner: Learner, window: ReplayBuffer, reporter: Reporter) -> dict[str, float]:
    """Train on the games of a window and take a snapshot; return steps and losses."""
    size = cfg.learner.batch_size
    steps = window.steps_for(window.num_policy_rows, passes=cfg.warm_start.passes, batch_size=size)
    rng = np.random.default_rng([cfg.seed, WARM_START_STREAM, 2])
    means = StepMeans()
    torch.set_num_threads(num_cores())
    with reporter.task("warm start: learning", steps) as update:
        for number in range(steps):
            taken = learner.step(window.sample(rng, size))
            if number >= steps * 9 // 10:
                means.add(taken)
            update(number + 1)
    learner.snapshot()
    losses = {name.removeprefix("train/"): value for name, value in means.numbers().items() if value is not None}
    return {"steps": steps, **losses, **learner.held_out_losses(window.held_out_batches(size))}
