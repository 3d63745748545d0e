"""Checkpoints: whole or not there, refused by name when damaged, never of another game."""

import dataclasses
import json
import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import envs
from models.checkpoint import (
    FILES,
    FOLDER,
    TrainingTensors,
    check_identity,
    checkpoint_paths,
    identity,
    load_checkpoint,
    load_latest,
    load_player,
    load_weights,
    save_checkpoint,
)
from models.network import GameSpec, NetworkConfig, PolicyValueNetwork, untrained_network
from models.sealed_folder import MANIFEST, _render_manifest
from models.storage import CheckpointMismatch, CorruptFile, DiskFull, sha256_hex
from tests.kills import Killed, kill_at

CFG = NetworkConfig(blocks=1, channels=8, value_channels=2, value_hidden=8)
LANES = {"lanes-000.npz": b"games under way", "lanes-001.npz": b"and more of them"}
EVERY_FILE = (*FILES, *LANES, MANIFEST)


def make_variant(name: str = "gardner", **options: bool) -> envs.Variant:
    return envs.load_variant(name, options)


def make_network(variant: envs.Variant, *, seed: int = 0, cfg: NetworkConfig = CFG) -> PolicyValueNetwork:
    return untrained_network(GameSpec.of(envs.engine_for(variant)), cfg, seed=seed)


def save(run: Path, iteration: int, variant: envs.Variant | None = None, **extra: Any) -> Path:
    """Save a checkpoint whose weights depend on its number."""
    variant = variant or make_variant()
    network = make_network(variant, seed=iteration)
    tensors = TrainingTensors(
        model=network.state_dict(),
        learner={name: tensor + 1 for name, tensor in network.state_dict().items()},
        optimizer={"policy.bias.step": torch.tensor(float(iteration))},
    )
    state = {**identity(variant, network), "counters": {"steps": iteration}, **extra}
    return save_checkpoint(run, iteration, tensors=tensors, state=state, attachments=LANES)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("saved")
    save(run, 1)
    save(run, 2)
    return run


@pytest.fixture
def run(saved: Path, tmp_path: Path) -> Path:
    """A run with checkpoints 1 and 2."""
    shutil.copytree(saved, tmp_path, dirs_exist_ok=True)
    return tmp_path


FAULTS = {
    "deleted": lambda path, content: path.unlink(),
    "emptied": lambda path, content: path.write_bytes(b""),
    "its first byte alone": lambda path, content: path.write_bytes(content[:1]),
    "half of it": lambda path, content: path.write_bytes(content[: len(content) // 2]),
    "all but its last byte": lambda path, content: path.write_bytes(content[:-1]),
    "longer": lambda path, content: path.write_bytes(content + b" "),
    **{
        f"bit {bit} of byte {place:.0%} flipped": lambda path, content, place=place, bit=bit: flip(path, place, bit)
        for place, bit in ((0, 0), (0, 7), (0.3, 3), (0.6, 1), (0.999, 0))
    },
    "a link to itself elsewhere": lambda path, content: link(path),
    "a link to nothing": lambda path, content: (path.unlink(), path.symlink_to("nothing")),
    "a folder": lambda path, content: (path.unlink(), path.mkdir()),
    "a pipe": lambda path, content: (path.unlink(), os.mkfifo(path)),
}
"""What can happen to a file, by name."""


def flip(path: Path, place: float, bit: int) -> None:
    content = bytearray(path.read_bytes())
    content[int(len(content) * place)] ^= 1 << bit
    path.write_bytes(content)


def link(path: Path) -> None:
    elsewhere = path.parents[2] / f"elsewhere-{path.name}"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


def damage(path: Path, how: str) -> None:
    FAULTS[how](path, path.read_bytes())


def test_what_was_saved_comes_back(tmp_path):
    rng_state = {"bit_generator": "PCG64", "state": {"state": 2**127 + 1, "inc": 3}}
    path = save(tmp_path, 7, rng=rng_state, shards=[{"name": "00007-0.npz"}])
    checkpoint = load_checkpoint(path)
    network = make_network(make_variant(), seed=7)
    assert path == tmp_path / FOLDER / "000007"
    assert checkpoint.iteration == 7
    assert checkpoint.state["rng"] == rng_state
    assert checkpoint.state["shards"] == [{"name": "00007-0.npz"}]
    assert checkpoint.tensors.optimizer["policy.bias.step"] == 7
    assert checkpoint.attachments == LANES
    for name, tensor in network.state_dict().items():
        assert torch.equal(checkpoint.tensors.model[name], tensor)
        assert torch.equal(checkpoint.tensors.learner[name], tensor + 1)


def test_a_checkpoint_holds_the_documented_files_and_no_pickle(run):
    folder = run / FOLDER / "000002"
    assert {path.name for path in folder.iterdir()} == set(EVERY_FILE)
    assert {path.name for path in folder.parent.iterdir()} == {"000001", "000002"}
    assert not any(path.read_bytes().startswith((b"\x80", b"PK")) for path in folder.iterdir())


@pytest.mark.parametrize("name", EVERY_FILE)
@pytest.mark.parametrize("how", FAULTS)
def test_a_damaged_file_is_refused_by_name_and_the_previous_checkpoint_used(run, name, how, caplog):
    path = run / FOLDER / "000002" / name
    damage(path, how)
    with pytest.raises(CorruptFile, match=f"000002/{name}"):
        load_checkpoint(path.parent)
    with caplog.at_level(logging.WARNING):
        latest = load_latest(run)
    assert latest is not None
    assert latest.iteration == 1
    assert f"000002/{name}" in caplog.text
    assert "000001" in caplog.text


@pytest.mark.parametrize("make", [Path.touch, Path.mkdir, lambda path: path.symlink_to("nothing")])
def test_a_file_that_the_manifest_does_not_list_is_refused_by_name(run, make):
    make(run / FOLDER / "000002" / "lanes-002.npz")
    with pytest.raises(CorruptFile, match=r"000002/lanes-002\.npz: the manifest does not list it"):
        load_checkpoint(run / FOLDER / "000002")


def test_a_link_to_a_valid_checkpoint_is_none(run):
    (run / FOLDER / "000003").symlink_to("000002")
    with pytest.raises(CorruptFile, match="000003: a link"):
        load_checkpoint(run / FOLDER / "000003")


@pytest.mark.parametrize(
    "name", ["../lanes.npz", "/lanes.npz", "a/b.npz", "LANES.npz", ".npz", "lanes", "", "state.json"]
)
def test_an_attachment_with_another_kind_of_name_is_not_written(tmp_path, name):
    network = make_network(make_variant())
    empty = TrainingTensors({}, {}, {})
    with pytest.raises(ValueError, match=r"expected a name|of that name"):
        save_checkpoint(
            tmp_path, 1, tensors=empty, state=identity(make_variant(), network), attachments={name: b"content"}
        )
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def rewrite_manifest(folder: Path, change: Callable[[dict[str, str]], object], *, version: int) -> None:
    """Change which files a manifest lists, and seal it again."""
    digests = json.loads((folder / MANIFEST).read_bytes())["files"]
    change(digests)
    (folder / MANIFEST).write_bytes(_render_manifest(digests, version, FILES))


@pytest.mark.parametrize("name", ["../000001/state.json", "/etc/hostname", "a/b.npz", "..", ""])
def test_a_manifest_never_leads_out_of_its_folder(run, name):
    folder = run / FOLDER / "000002"
    digest = sha256_hex((run / FOLDER / "000001" / "state.json").read_bytes())
    rewrite_manifest(folder, lambda digests: digests.update({name: digest}), version=2)
    with pytest.raises(CorruptFile, match=MANIFEST):
        load_checkpoint(folder)


def test_a_checkpoint_of_the_first_format_is_still_read_but_not_with_attachments(run):
    folder = run / FOLDER / "000002"
    rewrite_manifest(folder, lambda digests: None, version=1)
    with pytest.raises(CorruptFile, match=MANIFEST):
        load_checkpoint(folder)
    for name in LANES:
        (folder / name).unlink()
    rewrite_manifest(folder, lambda digests: [digests.pop(name) for name in LANES], version=1)
    checkpoint = load_checkpoint(folder)
    assert checkpoint.state["counters"] == {"steps": 2}
    assert checkpoint.attachments == {}


def test_every_single_flipped_byte_of_the_manifest_is_seen(run):
    path = run / FOLDER / "000002" / MANIFEST
    content = path.read_bytes()
    for position in range(len(content)):
        path.write_bytes(content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :])
        with pytest.raises((CorruptFile, CheckpointMismatch), match=MANIFEST):
            load_checkpoint(path.parent)


def test_a_file_of_another_checkpoint_does_not_pass(run):
    shutil.copy(run / FOLDER / "000001" / FILES[0], run / FOLDER / "000002" / FILES[0])
    with pytest.raises(CorruptFile, match=FILES[0]):
        load_checkpoint(run / FOLDER / "000002")


def test_a_run_whose_checkpoints_are_all_damaged_is_refused_not_restarted(run):
    for path in checkpoint_paths(run):
        damage(path / FILES[0], "half of it")
    with pytest.raises(CorruptFile, match=r"no valid checkpoint.*000002.*000001"):
        load_latest(run)
    with pytest.raises(CorruptFile, match="no valid checkpoint"):
        load_player(run)


def test_a_run_without_checkpoints_has_no_latest_and_no_player(tmp_path):
    assert load_latest(tmp_path) is None
    with pytest.raises(FileNotFoundError, match="no checkpoint"):
        load_player(tmp_path)


@pytest.mark.parametrize("step", range(11))
def test_a_save_killed_at_any_step_leaves_the_previous_checkpoint_and_a_clean_way_on(run, step, monkeypatch):
    kill_at(monkeypatch, "fsync", step)
    killed = False
    try:
        save(run, 3)
    except Killed:
        killed = True
    monkeypatch.undo()
    latest = load_latest(run)
    assert killed == (step < 10)
    assert latest is not None
    renamed = step >= 8
    assert latest.iteration == (3 if renamed else 2)
    if not renamed:
        save(run, 3)
    assert [path.name for path in checkpoint_paths(run)] == ["000003", "000002", "000001"]
    assert not list((run / FOLDER).glob(".tmp*"))


def test_a_full_disk_stops_the_save_and_changes_nothing(run, monkeypatch):
    def full_disk(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    before = sorted(path.name for path in (run / FOLDER).rglob("*"))
    monkeypatch.setattr("os.fsync", full_disk)
    with pytest.raises(DiskFull, match=r"\.tmp-000003/model.safetensors: No space left .* MB are free"):
        save(run, 3)
    assert sorted(path.name for path in (run / FOLDER).rglob("*")) == before


def test_a_valid_checkpoint_is_never_overwritten_and_a_refused_one_is_set_aside(run):
    with pytest.raises(FileExistsError, match="000002"):
        save(run, 2)
    damage(run / FOLDER / "000002" / FILES[1], "half of it")
    save(run, 2)
    latest = load_latest(run)
    assert latest is not None
    assert latest.iteration == 2
    assert (run / FOLDER / "000002.refused-1" / FILES[1]).exists()


def test_a_state_without_its_game_is_not_saved(tmp_path):
    empty = TrainingTensors({}, {}, {})
    with pytest.raises(ValueError, match="game, network"):
        save_checkpoint(tmp_path, 1, tensors=empty, state={"counters": {}})


def test_a_player_is_rebuilt_from_the_checkpoint_alone(run):
    network, variant, state = load_player(run)
    expected = make_network(make_variant(), seed=2)
    assert variant.rules_hash == make_variant().rules_hash
    assert variant.name == "gardner"
    assert not network.training
    assert state["counters"] == {"steps": 2}
    assert all(torch.equal(tensor, expected.state_dict()[name]) for name, tensor in network.state_dict().items())
    older, _, state = load_player(run / FOLDER / "000001")
    assert state["counters"] == {"steps": 1}
    assert not torch.equal(older.stem.conv.weight, network.stem.conv.weight)


def test_options_travel_with_the_checkpoint(tmp_path):
    variant = make_variant("asylum", friendly_fire=True)
    save(tmp_path, 1, variant)
    _, loaded, _ = load_player(tmp_path)
    assert loaded.options["friendly_fire"]
    assert loaded.rules_hash == variant.rules_hash
    assert loaded.rules_hash != make_variant("asylum").rules_hash


def rewrite_state(run: Path, change: Any) -> Path:
    """Save checkpoint 2 again with a changed state, validly signed."""
    checkpoint = load_checkpoint(run / FOLDER / "000002")
    state = json.loads(json.dumps(checkpoint.state))
    change(state)
    shutil.rmtree(checkpoint.path)
    return save_checkpoint(run, 2, tensors=checkpoint.tensors, state=state)


@pytest.mark.parametrize(
    "change",
    [
        {"channels": 10**9},
        {"blocks": 10**9},
        {"channels": 8.5},
        {"blocks": "1"},
        {"blocks": True},
        {"channels": -8},
        {"value_hidden": 2**70},
        {"squeeze_excitation": 1},
        {"kind": ["resnet"]},
    ],
)
def test_a_network_of_impossible_size_is_refused_before_it_is_built(run, change):
    rewrite_state(run, lambda state: state["network"].update(change))
    with pytest.raises(CheckpointMismatch, match=r"000002: .*(network|weights)"):
        load_player(run)


@pytest.mark.parametrize(
    "change",
    [
        lambda state: state.update(game=[]),
        lambda state: state.update(network=None),
        lambda state: state["game"].update(document="chess"),
        lambda state: state["game"].update(options={"friendly_fire": 1}),
        lambda state: state["game"].pop("rules_hash"),
        lambda state: state["game"].pop("name"),
    ],
)
def test_a_state_of_another_shape_is_refused_by_name(run, change):
    rewrite_state(run, change)
    with pytest.raises(CorruptFile, match=r"000002/state\.json: "):
        load_player(run / FOLDER / "000002")


def test_a_foreign_rules_hash_is_refused(run):
    rewrite_state(run, lambda state: state["game"].update(rules_hash="0" * 64))
    with pytest.raises(CheckpointMismatch, match=r"000002.*rules_hash \(the same file"):
        load_player(run)


def test_a_changed_variant_is_refused_with_the_keys_that_changed():
    old, new = make_variant("asylum"), make_variant("asylum", friendly_fire=True)
    document = json.loads(json.dumps(old.document))
    document["pawns"]["first_steps"] = 2
    changed = envs.variant_from_document(document, old.options, name="asylum")
    stored = identity(old, make_network(old))
    check_identity(stored, stored, "run")
    with pytest.raises(CheckpointMismatch, match=r"run: .*: options\.friendly_fire$"):
        check_identity(stored, identity(new, make_network(new)), "run")
    with pytest.raises(CheckpointMismatch, match=r"changed: variant\.pawns\.first_steps$"):
        check_identity(stored, identity(changed, make_network(changed)), "run")


def test_a_changed_network_is_refused_with_the_keys_that_changed():
    variant = make_variant()
    wide = NetworkConfig(blocks=1, channels=16, squeeze_excitation=False, value_channels=2, value_hidden=8)
    with pytest.raises(CheckpointMismatch, match=r"network\.channels, network\.squeeze_excitation$"):
        check_identity(
            identity(variant, make_network(variant)),
            identity(variant, make_network(variant, cfg=wide)),
            "run",
        )


def test_a_network_that_this_version_does_not_know_is_refused(run):
    rewrite_state(run, lambda state: state["network"].update(attention_heads=4))
    with pytest.raises(CheckpointMismatch, match="attention_heads"):
        load_player(run)


def test_a_kind_of_network_that_nothing_registers_is_refused_and_its_plugin_asked_for(run):
    rewrite_state(run, lambda state: state["network"].update(kind="mixer"))
    message = r"000002: .*network\.kind 'mixer' is not known: give the plugin file that registers it"
    with pytest.raises(CheckpointMismatch, match=message):
        load_player(run)


def test_networks_of_two_kinds_are_not_taken_for_each_other():
    variant = make_variant()
    stored = identity(variant, make_network(variant))
    other = json.loads(json.dumps(stored))
    other["network"]["kind"] = "mixer"
    with pytest.raises(CheckpointMismatch, match=r"network\.kind$"):
        check_identity(stored, other, "run")


def test_a_checkpoint_older_than_a_network_key_means_its_default(run):
    later = ("kind", "soft_policy", "future_pieces")
    rewrite_state(run, lambda state: [state["network"].pop(key) for key in later])
    network, variant, state = load_player(run)
    assert network.cfg == CFG
    check_identity(state, identity(variant, make_network(variant)), "run")
    softer = identity(variant, make_network(variant, cfg=dataclasses.replace(CFG, soft_policy=True)))
    with pytest.raises(CheckpointMismatch, match=r"network\.soft_policy$"):
        check_identity(state, softer, "run")


def test_weights_of_another_network_are_refused_by_tensor_name(run):
    wide = make_network(make_variant(), cfg=NetworkConfig(blocks=2, channels=8, value_channels=2, value_hidden=8))
    checkpoint = load_checkpoint(run / FOLDER / "000002")
    with pytest.raises(CheckpointMismatch, match=r"blocks\.1\.first\.conv\.weight"):
        load_weights(wide, checkpoint.tensors.model, checkpoint.path)


def test_a_newer_format_is_refused_as_such(run, monkeypatch):
    monkeypatch.setattr("models.sealed_folder.FORMAT", 3)
    save(run, 3)
    monkeypatch.undo()
    with pytest.raises(CheckpointMismatch, match="format 3, this version reads up to 2"):
        load_checkpoint(run / FOLDER / "000003")
