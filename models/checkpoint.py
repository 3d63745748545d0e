"""Checkpoints: one folder per iteration that exists if and only if its manifest verifies.

    checkpoints/000123/model.safetensors       the weights that play (averaged)
                       learner.safetensors     the weights that learn
                       optimizer.safetensors   the optimiser's moments
                       state.json              game, network, counters, rng states, shards
                       lanes-00000.npz ...     attachments: whatever else its writer keeps, as plain bytes
                       MANIFEST.json           SHA-256 of all of the above; written last
The folder is written under a temporary name and renamed; it holds what its manifest lists and nothing else. Nothing
is pickled. Loading falls back through older checkpoints and says so; where none is valid it raises: it never goes on
from random weights. Which old ones are kept is for `models.pruning` to say.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

from models.network import GameSpec, NetworkConfig, PolicyValueNetwork, network_class
from models.sealed_folder import MANIFEST, read_sealed, set_aside, write_sealed
from models.storage import (
    CheckpointMismatch,
    CorruptFile,
    naming_full_disk,
    parse_json,
    remove_unfinished,
    sync_folder,
)

if TYPE_CHECKING:
    from envs import Variant

FOLDER = "checkpoints"
TENSOR_FILES = ("model.safetensors", "learner.safetensors", "optimizer.safetensors")
STATE = "state.json"
FILES = (*TENSOR_FILES, STATE)
HASHES = ("rules_hash", "action_hash", "observation_hash")
GAME, NETWORK = "game", "network"
"""Keys of the state that `identity` writes and that loading checks."""

_NAME = re.compile(r"[0-9]{6,18}")
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TrainingTensors:
    """The tensors of a checkpoint, by name.

    Attributes:
        model: weights that play.
        learner: weights that learn.
        optimizer: the optimiser's tensors.
    """

    model: Mapping[str, Tensor]
    learner: Mapping[str, Tensor]
    optimizer: Mapping[str, Tensor]


@dataclass(frozen=True)
class Checkpoint:
    """A verified checkpoint.

    Attributes:
        path: its folder.
        iteration: the number in its name.
        tensors: weights and moments.
        state: everything else, JSON-able; holds at least what `identity` returns.
        attachments: further files, by name.
    """

    path: Path
    iteration: int
    tensors: TrainingTensors
    state: dict[str, Any]
    attachments: Mapping[str, bytes] = field(default_factory=dict)


def identity(variant: Variant, network: PolicyValueNetwork) -> dict[str, Any]:
    """Return the part of a state that says which game and which network the weights belong to (JSON-able)."""
    from envs.observation import observation_hash

    return {
        GAME: {
            "name": variant.name,
            "document": json.loads(json.dumps(variant.document)),
            "options": dict(variant.options),
            "rules_hash": network.spec.rules_hash,
            "action_hash": network.spec.action_hash,
            "observation_hash": observation_hash(variant),
        },
        NETWORK: asdict(network.cfg),
    }


def check_identity(state: Mapping[str, Any], expected: Mapping[str, Any], where: str) -> None:
    """Refuse a state of another game or another network.

    Args:
        state: a checkpoint's state.
        expected: what `identity` returns for the game and network at hand.
        where: name of the checkpoint, for the message.

    Raises:
        CheckpointMismatch: names every key of variant, options or network that changed.
    """
    game, now = state[GAME], expected[GAME]
    hashes = [key for key in HASHES if game.get(key) != now[key]]
    stored = {**asdict(NetworkConfig()), **state[NETWORK]}  # keys younger than a checkpoint have their defaults
    changed = _changed_keys(stored, expected[NETWORK], NETWORK)
    if hashes:
        changed += _changed_keys(game["document"], now["document"], "variant")
        changed += _changed_keys(game["options"], now["options"], "options")
        changed = changed or [f"{key} (the same file, read by other rules code)" for key in hashes]
    if changed:
        raise CheckpointMismatch(f"{where}: made for another game or network; changed: {', '.join(changed)}")


def save_checkpoint(
    run_dir: Path,
    iteration: int,
    *,
    tensors: TrainingTensors,
    state: Mapping[str, Any],
    attachments: Mapping[str, bytes] = MappingProxyType({}),
) -> Path:
    """Write a checkpoint; when this returns, the disk has it.

    The leftovers of killed writes are removed: two processes must not save into one run at a time.

    Args:
        run_dir: the run's folder.
        iteration: number of the checkpoint, at least 0.
        tensors: weights and moments, on any device.
        state: JSON-able, with finite numbers; must hold what `identity` returns.
        attachments: further files of the checkpoint, by name: lower case, with an ending, such as `lanes-00000.npz`.

    Returns:
        The checkpoint's folder.

    Raises:
        ValueError: the state lacks something, or an attachment's name is of another kind.
        FileExistsError: there is a valid checkpoint of that number.
        DiskFull: there is no room for it; nothing has changed.
        OSError: the folder cannot be written; nothing has changed.
    """
    contents = _contents(tensors, state, attachments)
    final = run_dir / FOLDER / f"{iteration:06d}"
    with naming_full_disk(final):
        final.parent.mkdir(parents=True, exist_ok=True)
        remove_unfinished(final.parent)
        _make_room(final)
        write_sealed(final, contents, required=FILES)
        sync_folder(run_dir)
    return final


def load_checkpoint(path: Path) -> Checkpoint:
    """Read and verify one checkpoint.

    Args:
        path: its folder.

    Raises:
        CorruptFile: names the file that is missing, truncated or changed.
        CheckpointMismatch: it was written by a newer format.
    """
    contents = read_sealed(path, required=FILES)
    tensors = TrainingTensors(*(_parse_tensors(path / name, contents.pop(name)) for name in TENSOR_FILES))
    state = _parse_state(path / STATE, contents.pop(STATE))
    return Checkpoint(path, _number_of(path), tensors, state, contents)


def load_latest(run_dir: Path) -> Checkpoint | None:
    """Return the newest valid checkpoint of a run, logging each newer one that is refused.

    Returns:
        The checkpoint, or None if none was ever written.

    Raises:
        CorruptFile: there are checkpoints, but no valid one.
        CheckpointMismatch: the newest readable one was written by a newer format.
    """
    refusals = []
    for path in checkpoint_paths(run_dir):
        try:
            checkpoint = load_checkpoint(path)
        except CorruptFile as error:
            refusals.append(str(error))
            _log.warning("checkpoint refused: %s", error)
            continue
        if refusals:
            _log.warning("going on from the older checkpoint %s", path)
        return checkpoint
    if refusals:
        raise CorruptFile(f"{run_dir}: no valid checkpoint: {'; '.join(refusals)}")
    return None


def checkpoint_paths(run_dir: Path) -> list[Path]:
    """Return the folders of a run's checkpoints, valid or not, newest first."""
    folder = run_dir / FOLDER
    paths = [path for path in folder.iterdir() if _NAME.fullmatch(path.name)] if folder.is_dir() else []
    return sorted(paths, key=lambda path: int(path.name), reverse=True)


def load_run_or_checkpoint(path: Path) -> Checkpoint:
    """Load a checkpoint by its folder, or the newest valid one of a run by the run's folder.

    Raises:
        FileNotFoundError: there is no checkpoint.
        CorruptFile, CheckpointMismatch: see `load_checkpoint`.
    """
    in_a_run = path.resolve().parent.name == FOLDER and _NAME.fullmatch(path.name) is not None
    is_checkpoint = in_a_run or (path / MANIFEST).exists()
    checkpoint = load_checkpoint(path) if is_checkpoint and path.is_dir() else load_latest(path)
    if checkpoint is None:
        raise FileNotFoundError(f"{path}: no checkpoint here")
    return checkpoint


def load_player(
    path: Path, check: Callable[[dict[str, Any]], object] | None = None
) -> tuple[PolicyValueNetwork, Variant, dict[str, Any]]:
    """Load what plays: the averaged weights, with the game they were trained on.

    Args:
        path: a checkpoint's folder, or a run's folder for its newest valid checkpoint.
        check: given the state before anything is built of it; raises to refuse it.

    Returns:
        The network in evaluation mode on the CPU, the variant rebuilt from the stored file, and the state.

    Raises:
        FileNotFoundError: there is no checkpoint.
        CorruptFile: see `load_checkpoint`.
        CheckpointMismatch: the stored game, read by this code, has other rules or actions than in training, or
            the network is of a kind that nothing registers.
    """
    from envs import engine_for, variant_from_document

    checkpoint = load_run_or_checkpoint(path)
    state = checkpoint.state
    if check is not None:
        check(state)
    game = state[GAME]
    variant = variant_from_document(game["document"], game["options"], name=game["name"])
    cfg = _network_config(state[NETWORK], checkpoint.tensors.model, checkpoint.path)
    network = network_class(cfg.kind)(GameSpec.of(engine_for(variant)), cfg)
    check_identity(state, identity(variant, network), str(checkpoint.path))
    load_weights(network, checkpoint.tensors.model, checkpoint.path / TENSOR_FILES[0])
    return network.eval(), variant, state


def load_weights(network: PolicyValueNetwork, tensors: Mapping[str, Tensor], where: Path) -> None:
    """Copy stored weights into a network.

    Raises:
        CheckpointMismatch: names the tensors that are missing, unknown or of another shape or type.
    """
    own = network.state_dict()
    wrong = sorted(own.keys() ^ tensors.keys())
    wrong += [
        name
        for name in own
        if name in tensors and (own[name].shape, own[name].dtype) != (tensors[name].shape, tensors[name].dtype)
    ]
    if wrong:
        raise CheckpointMismatch(f"{where}: made for another network; differing tensors: {', '.join(wrong)}")
    network.load_state_dict(tensors)


def _network_config(section: Mapping[str, Any], model: Mapping[str, Tensor], where: Path) -> NetworkConfig:
    """Return the config of a stored network, no larger than its weights."""
    try:
        cfg = NetworkConfig(**section)
        network_class(cfg.kind)
    except (TypeError, ValueError) as error:
        raise CheckpointMismatch(f"{where}: a network that is not known here ({error})") from None
    for name, default in asdict(NetworkConfig()).items():
        value = getattr(cfg, name)
        if type(value) is not type(default):
            raise CheckpointMismatch(f"{where}: network.{name} is {value!r}, expected as {default!r}")
    elements = sum(tensor.numel() for tensor in model.values())
    sizes = (cfg.blocks, cfg.channels**2, cfg.value_channels, cfg.value_hidden)
    if cfg.kind == NetworkConfig.kind and max(sizes) > elements:
        raise CheckpointMismatch(f"{where}: {elements} stored weights, too few for the network that it names")
    return cfg


def _contents(tensors: TrainingTensors, state: Mapping[str, Any], attachments: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files of a checkpoint by name."""
    missing = {GAME, NETWORK} - state.keys()
    if missing:
        raise ValueError(f"state lacks {', '.join(sorted(missing))}: add what identity() returns")
    taken = sorted(attachments.keys() & set(FILES))
    if taken:
        raise ValueError(f"attachment {taken[0]!r}: a checkpoint has a file of that name")
    by_file = dict(zip(TENSOR_FILES, (tensors.model, tensors.learner, tensors.optimizer)))
    contents = {name: safetensors.torch.save(_storable(by_file[name])) for name in TENSOR_FILES}
    return {**contents, STATE: json.dumps(state, indent=1, allow_nan=False).encode(), **attachments}


def _number_of(path: Path) -> int:
    """Return the number in a checkpoint's name."""
    if not _NAME.fullmatch(path.name):
        raise CorruptFile(f"{path}: expected a folder whose name is a number, such as 000123")
    return int(path.name)


def _parse_tensors(path: Path, content: bytes) -> dict[str, Tensor]:
    try:
        return safetensors.torch.load(content)
    except SafetensorError as error:
        raise CorruptFile(f"{path}: no safetensors file ({error})") from None


def _parse_state(path: Path, content: bytes) -> dict[str, Any]:
    state = parse_json(content, path)
    if not isinstance(state, dict) or {GAME, NETWORK} - state.keys():
        raise CorruptFile(f"{path}: lacks {GAME} or {NETWORK}")
    game = state[GAME]
    kinds = {"name": str, "document": dict, "options": dict, **dict.fromkeys(HASHES, str)}
    if not isinstance(state[NETWORK], dict) or not isinstance(game, dict):
        raise CorruptFile(f"{path}: {GAME} or {NETWORK} is no mapping")
    wrong = [key for key, kind in kinds.items() if not isinstance(game.get(key), kind)]
    if wrong or not all(isinstance(is_on, bool) for is_on in game["options"].values()):
        raise CorruptFile(f"{path}: {GAME}.{wrong[0] if wrong else 'options'} is missing or of another type")
    return state


def _storable(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return tensors on the CPU, contiguous, each with memory of its own, as safetensors needs them."""
    return {name: tensor.detach().cpu().clone().contiguous() for name, tensor in tensors.items()}


def _make_room(final: Path) -> None:
    """Set aside a checkpoint that cannot be read; a valid one stays."""
    if not os.path.lexists(final):
        return
    try:
        load_checkpoint(final)
    except CorruptFile:
        set_aside(final)
        return
    raise FileExistsError(f"{final}: a valid checkpoint of that number exists")


def _changed_keys(old: Any, new: Any, prefix: str) -> list[str]:
    """Return the dotted paths at which two JSON-able values differ."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        return [
            path
            for key in sorted(old.keys() | new.keys(), key=str)
            for path in _changed_keys(old.get(key), new.get(key), f"{prefix}.{key}")
        ]
    return [] if old == new else [prefix]
