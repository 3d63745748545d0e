"""Piece values of a run from what it has stored: its config, committed games and network in, values out."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from envs import CompiledGame, engine_for
from models.checkpoint import FOLDER, load_player
from train.config import RunConfig, from_document
from train.piece_values.estimates import MethodValues
from train.piece_values.fits import Progress
from train.piece_values.network import NetworkSettings, network_values
from train.piece_values.outcome import estimate_values, outcome_splits
from train.piece_values.positions import collect_positions
from train.piece_values.report import Report
from train.players import CONFIG, check_plugins
from train.plugins import NETWORK
from train.provenance import provenance
from train.shards import GameRecord, read_shard

REPLAY_FOLDER = "replay"
SHARDS = "shards"
"""Key of a checkpoint's state that lists the run's committed shards, each a `ShardInfo` as a mapping."""


def measure_games(  # noqa: PLR0913 - a public surface that others rely on
    game: CompiledGame,
    records: Iterable[GameRecord],
    config: RunConfig,
    *,
    seed: int | None = None,
    with_splits: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Estimate piece values from the results of games.

    Args:
        game: whose games they are.
        records: games; those cut short are left out and counted.
        config: of the run that made them; its `piece_values` section says how.
        seed: of the bootstrap; None is the run's.
        with_splits: also say what the values become with other positions, weights and ways to count.
        progress: called with resamples done and wanted.

    Raises:
        InsufficientData: too little for any value.
    """
    settings = config.piece_values
    bootstrap_seed = config.seed if seed is None else seed
    positions = collect_positions(game, records, quiet_only=settings.quiet_only and not with_splits)
    values = estimate_values(positions, settings=settings, seed=bootstrap_seed, progress=progress)
    if with_splits:
        values = replace(values, splits=outcome_splits(positions, settings=settings, seed=bootstrap_seed))
    seeds = {"run": config.seed, "bootstrap": bootstrap_seed}
    basis = provenance(game.variant, config_hash=config.config_hash(), seeds=seeds)
    return Report((values,), game.variant, {**basis, "settings": settings.model_dump()})


def measure_run(
    path: Path,
    *,
    seed: int | None = None,
    resamples: int | None = None,
    with_splits: bool = False,
    progress: Progress | None = None,
) -> tuple[Report, Path]:
    """Estimate piece values from the results of all games that a run has committed.

    Args:
        path: folder of a run, or of one of its checkpoints: then the games up to it.
        seed: of the bootstrap; None is the run's.
        resamples: bootstrap resamples; None is the config's.
        with_splits: see `measure_games`.
        progress: called with resamples done and wanted.

    Returns:
        The report, and the folder of the run.

    Raises:
        FileNotFoundError: there is no checkpoint.
        InsufficientData: too little for any value.
        ConfigError: the run used the network of a plugin that is not loaded.
        CorruptFile, CheckpointMismatch: see `load_player` and `read_shard`.
    """
    _, variant, state = load_player(path, check=partial(check_plugins, keys=(NETWORK,)))
    config = from_document(state[CONFIG], f"{path}: config")
    if resamples is not None:
        section = config.piece_values.model_copy(update={"bootstrap": resamples})
        config = config.model_copy(update={"piece_values": section})
    run_dir = _run_folder(path)
    game = engine_for(variant)
    records = _stored_games(run_dir / REPLAY_FOLDER, game, state[SHARDS])
    return measure_games(game, records, config, seed=seed, with_splits=with_splits, progress=progress), run_dir


def ask_network(
    path: Path, *, seed: int | None = None, resamples: int | None = None, progress: Progress | None = None
) -> MethodValues:
    """Ask the network of a run what the pieces in its own games are worth.

    Args:
        path: folder of a run, or of one of its checkpoints: then its network and the games up to it.
        seed: of positions and bootstrap; None is the run's.
        resamples: bootstrap resamples; None is the config's.
        progress: called with the positions done and wanted.

    Raises:
        InsufficientData: too few positions to take pieces from.
        FileNotFoundError, ConfigError, CorruptFile, CheckpointMismatch: see `measure_run`.
    """
    from models.evaluator import make_evaluator

    network, variant, state = load_player(path, check=partial(check_plugins, keys=(NETWORK,)))
    config = from_document(state[CONFIG], f"{path}: config")
    game = engine_for(variant)
    settings = NetworkSettings(
        min_games_per_piece=config.piece_values.min_games_per_piece,
        resamples=resamples or config.piece_values.bootstrap,
        seed=config.seed if seed is None else seed,
    )
    newest = deque(_stored_games(_run_folder(path) / REPLAY_FOLDER, game, state[SHARDS]), maxlen=settings.games)
    evaluator = make_evaluator(network, backend="torch")  # large batches, and an export would take longer than they do
    return network_values(game, evaluator, list(newest), settings=settings, progress=progress)


def _run_folder(path: Path) -> Path:
    """Return the folder of a run, also where `path` is one of its checkpoints."""
    return path if (path / FOLDER).is_dir() else path.resolve().parents[1]


def _stored_games(folder: Path, game: CompiledGame, shards: list[dict[str, Any]]) -> Iterator[GameRecord]:
    for shard in shards:
        yield from read_shard(folder / shard["name"], game, sha256=shard["sha256"])
