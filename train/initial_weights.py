"""A new run that begins with the weights of another: the same game and network, nothing else of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from models.checkpoint import TENSOR_FILES, check_identity, load_run_or_checkpoint, load_weights
from models.storage import read_regular, sha256_hex
from train.config_errors import ConfigError
from train.learner import Learner


def adopt_weights(learner: Learner, source: str, expected: dict[str, Any]) -> dict[str, Any]:
    """Give a learner that has not learned yet the playing and learning weights of another run.

    Args:
        learner: changed; its moments and counters stay those of a new run.
        source: a run's folder, for its newest valid checkpoint, or a checkpoint's.
        expected: what `identity` returns for the new run.

    Returns:
        What a run's manifest records of it (JSON-able): the checkpoint, its number, and the SHA-256 of the weights.

    Raises:
        ConfigError: there is no checkpoint.
        CorruptFile: see `load_checkpoint`.
        CheckpointMismatch: it is of another game or network; names the keys that differ.
    """
    try:
        checkpoint = load_run_or_checkpoint(Path(source))
    except FileNotFoundError as error:
        raise ConfigError(f"initial_weights: {error}") from None
    check_identity(checkpoint.state, expected, str(checkpoint.path))
    load_weights(learner.network, checkpoint.tensors.learner, checkpoint.path / TENSOR_FILES[1])
    load_weights(learner.playing_network, checkpoint.tensors.model, checkpoint.path / TENSOR_FILES[0])
    digest = sha256_hex(read_regular(checkpoint.path / TENSOR_FILES[0]))
    return {"checkpoint": str(checkpoint.path.resolve()), "iteration": checkpoint.iteration, "sha256": digest}
