"""Piece values of a run: its config and committed games in, a report out."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from envs import CompiledGame, engine_for
from models.checkpoint import FOLDER, load_player
from train.config import RunConfig, from_document
from train.piece_values.outcome import estimate_values
from train.piece_values.positions import collect_positions
from train.piece_values.report import Report
from train.players import CONFIG, check_plugins
from train.plugins import NETWORK
from train.provenance import provenance
from train.shards import GameRecord, read_shard

REPLAY_FOLDER = "replay"
SHARDS = "shards"
"""Key of a checkpoint's state that lists the run's committed shards, each a `ShardInfo` as a mapping."""
Progress = Callable[[int, int], None]


def measure_games(
    game: CompiledGame,
    records: Iterable[GameRecord],
    config: RunConfig,
    *,
    seed: int | None = None,
    progress: Progress | None = None,
) -> Report:
    """Estimate piece values from games.

    Args:
        game: whose games they are.
        records: games; those cut short are left out and counted.
        config: of the run that made them; its `piece_values` section says how.
        seed: of the bootstrap; None is the run's.
        progress: called with resamples done and wanted.

    Raises:
        InsufficientData: too little for any value.
    """
    settings = config.piece_values
    bootstrap_seed = config.seed if seed is None else seed
    positions = collect_positions(game, records, quiet_only=settings.quiet_only)
    values = estimate_values(positions, settings=settings, seed=bootstrap_seed, progress=progress)
    seeds = {"run": config.seed, "bootstrap": bootstrap_seed}
    basis = provenance(game.variant, config_hash=config.config_hash(), seeds=seeds)
    return Report(values, game.variant, {**basis, "settings": settings.model_dump()})


def measure_run(
    path: Path, *, seed: int | None = None, resamples: int | None = None, progress: Progress | None = None
) -> tuple[Report, Path]:
    """Estimate piece values from all games that a run has committed.

    Args:
        path: folder of a run, or of one of its checkpoints: then the games up to it.
        seed: of the bootstrap; None is the run's.
        resamples: bootstrap resamples; None is the config's.
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
    run_dir = path if (path / FOLDER).is_dir() else path.resolve().parents[1]
    game = engine_for(variant)
    records = _stored_games(run_dir / REPLAY_FOLDER, game, state[SHARDS])
    return measure_games(game, records, config, seed=seed, progress=progress), run_dir


def _stored_games(folder: Path, game: CompiledGame, shards: list[dict[str, Any]]) -> Iterator[GameRecord]:
    for shard in shards:
        yield from read_shard(folder / shard["name"], game, sha256=shard["sha256"])
