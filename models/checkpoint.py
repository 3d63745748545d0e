"""Checkpoints: one folder per iteration that exists if and only if its manifest verifies.

    checkpoints/000123/model.safetensors       the weights that play (averaged)
                       learner.safetensors     the weights that learn
                       optimizer.safetensors   the optimiser's moments
                       state.json              game, network, counters, rng states, shards
                       MANIFEST.json           SHA-256 of the four above; written last
The folder is written under a temporary name and renamed. Nothing is pickled. Loading falls back through older
checkpoints and says so; where none is valid it raises: it never goes on from random weights.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

from models.network import GameSpec, NetworkConfig, PolicyValueNetwork, network_class
from models.storage import (
    TEMPORARY_PREFIX,
    CheckpointMismatch,
    CorruptFile,
    read_regular,
    sha256_hex,
    sync_folder,
    write_durably,
)

if TYPE_CHECKING:
    from envs import Variant

FORMAT = 1
FOLDER = "checkpoints"
TENSOR_FILES = ("model.safetensors", "learner.safetensors", "optimizer.safetensors")
STATE = "state.json"
MANIFEST = "MANIFEST.json"
FILES = (*TENSOR_FILES, STATE)
HASHES = ("rules_hash", "action_hash", "observation_hash")
GAME, NETWORK = "game", "network"
"""Keys of the state that `identity` writes and that loading checks."""

_NAME = re.compile(r"\d{6,}")
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
    """

    path: Path
    iteration: int
    tensors: TrainingTensors
    state: dict[str, Any]


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


def save_checkpoint(run_dir: Path, iteration: int, *, tensors: TrainingTensors, state: Mapping[str, Any]) -> Path:
    """Write a checkpoint; when this returns, the disk has it.

    The leftovers of killed writes are removed: two processes must not save into one run at a time.

    Args:
        run_dir: the run's folder.
        iteration: number of the checkpoint, at least 0.
        tensors: weights and moments, on any device.
        state: JSON-able, with finite numbers; must hold what `identity` returns.

    Returns:
        The checkpoint's folder.

    Raises:
        FileExistsError: there is a valid checkpoint of that number.
        OSError: the disk is full or the folder cannot be written; nothing has changed.
    """
    missing = {GAME, NETWORK} - state.keys()
    if missing:
        raise ValueError(f"state lacks {', '.join(sorted(missing))}: add what identity() returns")
    by_file = dict(zip(TENSOR_FILES, (tensors.model, tensors.learner, tensors.optimizer)))
    contents = {name: safetensors.torch.save(_storable(by_file[name])) for name in TENSOR_FILES}
    contents[STATE] = json.dumps(state, indent=1, allow_nan=False).encode()
    manifest = _render_manifest({name: sha256_hex(contents[name]) for name in FILES})
    folder = run_dir / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    _remove_unfinished(folder)
    final = folder / f"{iteration:06d}"
    temporary = folder / f"{TEMPORARY_PREFIX}{final.name}"
    try:
        temporary.mkdir()
        for name in FILES:
            write_durably(temporary / name, contents[name])
        write_durably(temporary / MANIFEST, manifest)
        sync_folder(temporary)
        _set_aside_invalid(final)
        temporary.rename(final)
    except OSError:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    sync_folder(folder)
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
    contents = _verified_contents(path)
    tensors = TrainingTensors(*(_parse_tensors(path / name, contents[name]) for name in TENSOR_FILES))
    return Checkpoint(path, int(path.name), tensors, _parse_state(path / STATE, contents[STATE]))


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

    in_a_run = path.resolve().parent.name == FOLDER and _NAME.fullmatch(path.name) is not None
    is_checkpoint = in_a_run or (path / MANIFEST).exists()
    checkpoint = load_checkpoint(path) if is_checkpoint and path.is_dir() else load_latest(path)
    if checkpoint is None:
        raise FileNotFoundError(f"{path}: no checkpoint here")
    state = checkpoint.state
    if check is not None:
        check(state)
    game = state[GAME]
    variant = variant_from_document(game["document"], game["options"], name=game["name"])
    cfg = _network_config(state[NETWORK], checkpoint.path)
    network = network_class(cfg.kind)(GameSpec.of(engine_for(variant)), cfg)
    check_identity(state, identity(variant, network), str(checkpoint.path))
    load_weights(network, checkpoint.tensors.model, checkpoint.path / TENSOR_FILES[0])
    return network.eval(), variant, state


def load_weights(network: PolicyValueNetwork, tensors: Mapping[str, Tensor], where: Path) -> None:
    """Copy stored weights into a network.

    Raises:
        CheckpointMismatch: names the tensors that are missing, unknown or of another shape.
    """
    own = network.state_dict()
    wrong = sorted(own.keys() ^ tensors.keys())
    wrong += [name for name in own if name in tensors and own[name].shape != tensors[name].shape]
    if wrong:
        raise CheckpointMismatch(f"{where}: made for another network; differing tensors: {', '.join(wrong)}")
    network.load_state_dict(tensors)


def _network_config(section: Mapping[str, Any], where: Path) -> NetworkConfig:
    try:
        cfg = NetworkConfig(**section)
        network_class(cfg.kind)
    except (TypeError, ValueError) as error:
        raise CheckpointMismatch(f"{where}: a network that is not known here ({error})") from None
    return cfg


def _render_manifest(digests: Mapping[str, str]) -> bytes:
    """Return the manifest's only valid text for these digests, its own digest included."""
    body = {"format": FORMAT, "files": {name: digests[name] for name in FILES}}
    digest = sha256_hex(json.dumps(body).encode())
    return json.dumps({**body, "sha256": digest}, indent=1).encode()


def _verified_contents(path: Path) -> dict[str, bytes]:
    """Read the files of a checkpoint, each of which the manifest must confirm."""
    raw = read_regular(path / MANIFEST)
    try:
        manifest = json.loads(raw)
        version, digests = int(manifest["format"]), dict(manifest["files"])
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptFile(f"{path / MANIFEST}: unreadable ({type(error).__name__})") from None
    if version > FORMAT:
        raise CheckpointMismatch(f"{path / MANIFEST}: format {version}, this version reads up to {FORMAT}")
    if digests.keys() != set(FILES) or raw != _render_manifest(digests):
        raise CorruptFile(f"{path / MANIFEST}: changed since it was written")
    contents = {}
    for name in FILES:
        contents[name] = read_regular(path / name)
        if sha256_hex(contents[name]) != digests[name]:
            raise CorruptFile(f"{path / name}: {len(contents[name])} bytes whose SHA-256 is not the manifest's")
    return contents


def _parse_tensors(path: Path, content: bytes) -> dict[str, Tensor]:
    try:
        return safetensors.torch.load(content)
    except SafetensorError as error:
        raise CorruptFile(f"{path}: no safetensors file ({error})") from None


def _parse_state(path: Path, content: bytes) -> dict[str, Any]:
    try:
        state = json.loads(content)
    except ValueError as error:
        raise CorruptFile(f"{path}: no JSON ({error})") from None
    if not isinstance(state, dict) or {GAME, NETWORK} - state.keys():
        raise CorruptFile(f"{path}: lacks {GAME} or {NETWORK}")
    return state


def _storable(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return tensors on the CPU, contiguous, each with memory of its own, as safetensors needs them."""
    return {name: tensor.detach().cpu().clone().contiguous() for name, tensor in tensors.items()}


def _remove_unfinished(folder: Path) -> None:
    """Remove what killed writes left behind."""
    for path in folder.glob(f"{TEMPORARY_PREFIX}*"):
        shutil.rmtree(path)


def _set_aside_invalid(final: Path) -> None:
    """Make room for a checkpoint whose earlier copy was refused; a valid one stays."""
    if not os.path.lexists(final):
        return
    try:
        load_checkpoint(final)
    except CorruptFile:
        number = 1
        while os.path.lexists(aside := final.with_name(f"{final.name}.refused-{number}")):
            number += 1
        final.rename(aside)
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
