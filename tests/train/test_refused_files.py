"""Files from elsewhere: what is malicious, foreign or torn is refused by name, and nothing outside a run is touched."""

import io
import json
import pickle
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch

import envs
from envs.strict_yaml import InvalidYaml
from models.checkpoint import (
    FILES,
    FOLDER,
    STATE,
    TENSOR_FILES,
    checkpoint_paths,
    identity,
    load_checkpoint,
    load_player,
)
from models.network import GameSpec, NetworkConfig, PolicyValueNetwork, untrained_network
from models.sealed_folder import read_sealed, write_sealed
from models.storage import CheckpointMismatch, CorruptFile
from tests.train.stored_run import TINY, config, make_run
from train.config import ConfigError, load_config
from train.config_sections import LearnerConfig
from train.initial_weights import adopt_weights
from train.lanes import unpack_lanes
from train.learner import Learner
from train.runs import RunFolder, read_config
from train.selfplay import SelfPlay


class Bomb:
    """Leaves a mark when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.mark,)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stored") / "run"
    cfg = make_run(folder, 6, iterations=2)
    (folder / "config.yaml").write_text(cfg.to_yaml())
    return folder


@pytest.fixture
def run(stored: Path, tmp_path: Path) -> Iterator[Path]:
    """A run with checkpoints 0 to 2, beside things that must stay as they are."""
    shutil.copytree(stored, tmp_path / "runs" / "run")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "000007.npz").write_bytes(b"precious")
    (outside / ".tmp-precious").touch()
    yield tmp_path / "runs" / "run"
    assert sorted(path.name for path in outside.iterdir()) == [".tmp-precious", "000007.npz"]
    assert (outside / "000007.npz").read_bytes() == b"precious"
    assert {path.name for path in tmp_path.iterdir()} == {"runs", "outside"}


def reseal(run: Path, change: Callable[[dict[str, bytes]], object]) -> Path:
    """Change the files of checkpoint 2 and write a manifest that fits them."""
    folder = run / FOLDER / "000002"
    contents = read_sealed(folder, required=FILES)
    change(contents)
    shutil.rmtree(folder)
    write_sealed(folder, contents, required=FILES)
    return folder


def edit_state(run: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    def edit(contents: dict[str, bytes]) -> None:
        state = json.loads(contents[STATE])
        change(state)
        contents[STATE] = json.dumps(state).encode()

    return reseal(run, edit)


def pickles(mark: Path) -> dict[str, bytes]:
    """Return what pickle may hide in, by name."""
    torch_file, npz, npy = io.BytesIO(), io.BytesIO(), io.BytesIO()
    torch.save({"weights": Bomb(mark)}, torch_file)
    bombs = np.array([Bomb(mark)], dtype=object)
    np.savez(npz, meta=bombs, games=bombs)
    np.save(npy, bombs)
    plain = pickle.dumps(Bomb(mark))
    return {"pickle": plain, "torch.save": torch_file.getvalue(), "npz": npz.getvalue(), "npy": npy.getvalue()}


@pytest.mark.parametrize("kind", ["pickle", "torch.save", "npz", "npy"])
@pytest.mark.parametrize("name", FILES)
def test_pickle_under_the_name_of_a_checkpoint_file_is_refused_and_never_run(run, name, kind):
    mark = run / "mark"
    folder = reseal(run, lambda contents: contents.update({name: pickles(mark)[kind]}))
    with pytest.raises(CorruptFile, match=rf"000002/{name}: no (safetensors|JSON)"):
        load_checkpoint(folder)
    network, _, state = load_player(run)
    assert isinstance(network, PolicyValueNetwork)
    assert state["shards"]
    assert not mark.exists()


@pytest.mark.parametrize("kind", ["pickle", "torch.save", "npz", "npy"])
def test_pickle_as_games_under_way_is_refused_and_never_run(tmp_path, kind):
    game = envs.engine_for(envs.load_variant("gardner"))
    with pytest.raises(CorruptFile, match=r"lanes-000\.npz"):
        unpack_lanes(pickles(tmp_path / "mark")[kind], game, "lanes-000.npz")
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize("step", range(40))
def test_damaged_games_under_way_change_nothing(step):
    cfg = config(selfplay={"games_per_worker": 2, "random_plies": 4})
    play = SelfPlay(envs.engine_for(envs.load_variant("gardner")), cfg.search, cfg.selfplay, seed=(1, 0, 0))
    before = play.lanes()
    damaged = bytearray(before)
    damaged[len(damaged) * step // 40] ^= 1 << step % 8
    with suppress(CorruptFile, CheckpointMismatch):  # not each bit of a zip archive has a meaning
        play.restore_lanes(bytes(damaged), "lanes-000.npz")
    assert play.lanes() == before
    with pytest.raises(CorruptFile, match=r"lanes-000\.npz"):
        play.restore_lanes(before[: len(before) * step // 40], "lanes-000.npz")


JSON_FAULTS = {
    "NaN": lambda text: text.replace(b'"config"', b'"x": NaN, "config"', 1),
    "infinity": lambda text: text.replace(b'"config"', b'"x": [Infinity], "config"', 1),
    "a key twice": lambda text: text.replace(b'"config"', b'"shards": [], "config"', 1),
    "a number too long": lambda text: text.replace(b'"config"', b'"x": ' + b"9" * 9999 + b', "config"', 1),
    "bottomless": lambda text: text.replace(b'"config"', b'"x": ' + b"[" * 99_999 + b', "config"', 1),
    "deep": lambda text: text.replace(b'"config"', b'"x": ' + b"[" * 99_999 + b"]" * 99_999 + b', "config"', 1),
    "a list": lambda text: b"[" + text + b"]",
    "nothing": lambda text: b"",
    "null": lambda text: b"null",
    "other text": lambda text: text[1:],
}


@pytest.mark.parametrize("how", JSON_FAULTS)
def test_a_state_that_is_not_plain_json_is_refused_though_its_manifest_fits(run, how):
    folder = reseal(run, lambda contents: contents.update({STATE: JSON_FAULTS[how](contents[STATE])}))
    with pytest.raises(CorruptFile, match=r"000002/state\.json"):
        load_checkpoint(folder)


SHARD_NAMES = [
    "../../../outside/000007.npz",
    "/etc/passwd",
    "a/b.npz",
    "..",
    "",
    ".npz",
    "000007.npz\x00",
    "x.pkl",
    7,
    None,
]


def assert_index_refused(run: Path) -> None:
    folder = RunFolder(run)
    checkpoint = folder.take_up()
    assert checkpoint is not None
    with pytest.raises(CorruptFile, match="000002"):
        folder.committed_shards(checkpoint)
    folder.close()


@pytest.mark.parametrize("name", SHARD_NAMES)
def test_a_shard_name_that_leads_elsewhere_is_refused(run, name):
    edit_state(run, lambda state: state["shards"][0].update(name=name))
    assert_index_refused(run)


@pytest.mark.parametrize(
    "change",
    [
        {"sha256": "0" * 63},
        {"sha256": None},
        {"num_rows": -1},
        {"num_rows": 1.5},
        {"num_games": True},
        {"num_games": "6"},
    ],
)
def test_an_index_of_shards_with_impossible_values_is_refused(run, change):
    edit_state(run, lambda state: state["shards"][0].update(change))
    assert_index_refused(run)


@pytest.mark.parametrize("index", [None, 3, "000000.npz", {"a": 1}, [3], [[]], [None]])
def test_something_else_than_an_index_of_shards_is_refused(run, index):
    edit_state(run, lambda state: state.update(shards=index))
    assert_index_refused(run)


YAML_FAULTS = {
    "a Python object": "variant: gardner\nname: !!python/object/apply:pathlib.Path.touch [mark]\n",
    "a tag": "variant: !!str gardner\n",
    "a custom tag": "variant: !include other.yaml\n",
    "an anchor and its alias": "variant: &a gardner\nname: *a\n",
    "a billion laughs": "a: &a [x, x]\nb: &b [*a, *a]\nvariant: [*b, *b]\n",
    "a merge key": "variant: gardner\nsearch: {<<: {num_simulations: 8}}\n",
    "a directive": "%TAG ! tag:x,2000:\n---\nvariant: gardner\n",
    "two documents": "variant: gardner\n---\nvariant: chess\n",
    "a key twice": "variant: gardner\nvariant: chess\n",
    "bottomless nesting": "variant: " + "[" * 5000 + "\n",
    "a number too large": "variant: gardner\nseed: " + "9" * 400 + "\n",
    "infinity": "variant: gardner\nlearner: {learning_rate: .inf}\n",
    "bytes": "variant: \x00gardner\n",
}


@pytest.mark.parametrize("how", YAML_FAULTS)
def test_yaml_beyond_plain_values_is_refused_in_a_run_s_config_and_in_a_variant_file(run, how, monkeypatch):
    monkeypatch.chdir(run)
    (run / "config.yaml").write_text(YAML_FAULTS[how])
    with pytest.raises(ConfigError, match=r"config\.yaml"):
        read_config(run)
    (run / "mine.yaml").write_text("extends: gardner\n" + YAML_FAULTS[how].replace("variant", "title"))
    with pytest.raises((InvalidYaml, envs.InvalidVariant), match=r"mine\.yaml"):
        envs.load_variant("./mine.yaml")
    assert not (run / "mark").exists()


@pytest.mark.parametrize("path", ["../../outside", "/etc", "a/b", "..", ".hidden/.."])
def test_a_run_name_that_leads_elsewhere_is_refused(tmp_path, path):
    (tmp_path / "c.yaml").write_text(f"variant: gardner\nname: {path}\n")
    with pytest.raises(ConfigError, match="plain name"):
        load_config(tmp_path / "c.yaml")


def learner_of(variant: envs.Variant, **changes: Any) -> tuple[Learner, dict[str, Any]]:
    cfg = NetworkConfig(**{**TINY, **changes})
    network = untrained_network(GameSpec.of(envs.engine_for(variant)), cfg, seed=9)
    return Learner(network, LearnerConfig()), identity(variant, network)


def test_a_new_run_takes_over_the_weights_of_a_run_or_of_one_of_its_checkpoints(run):
    for source, number in ((run, 2), (run / FOLDER / "000001", 1)):
        learner, expected = learner_of(envs.load_variant("gardner"))
        record = adopt_weights(learner, str(source), expected)
        stored = load_checkpoint(run / FOLDER / f"{number:06d}").tensors
        assert record["iteration"] == number
        assert record["checkpoint"].endswith(f"{number:06d}")
        assert learner.steps == learner.snapshots == 0
        for name, tensor in learner.network.state_dict().items():
            assert torch.equal(tensor, stored.learner[name])
        for name, tensor in learner.playing_network.state_dict().items():
            assert torch.equal(tensor, stored.model[name])


@pytest.mark.parametrize(
    "variant, network, message",
    [
        ("palace_ninja_guards", {}, r"variant\.board"),
        ("gardner", {"channels": 16}, r"changed: network\.channels$"),
        ("gardner", {"soft_policy": True}, r"changed: network\.soft_policy$"),
    ],
)
def test_weights_of_another_game_or_network_are_refused_with_what_changed(run, variant, network, message):
    learner, expected = learner_of(envs.load_variant(variant), **network)
    before = {name: tensor.clone() for name, tensor in learner.network.state_dict().items()}
    with pytest.raises(CheckpointMismatch, match=message):
        adopt_weights(learner, str(run), expected)
    assert all(torch.equal(tensor, before[name]) for name, tensor in learner.network.state_dict().items())


def test_weights_of_other_rules_under_the_same_name_are_refused_with_what_changed(run):
    variant = envs.load_variant("gardner")
    document = json.loads(json.dumps(variant.document))
    document["pieces"] = {**document.get("pieces", {}), "n": {"name": "knight", "moves": "C"}}
    other = envs.variant_from_document(document, variant.options, name="gardner")
    learner, expected = learner_of(other)
    with pytest.raises(CheckpointMismatch, match=r"variant\.pieces"):
        adopt_weights(learner, str(run), expected)


def test_weights_from_nowhere_are_refused(tmp_path):
    learner, expected = learner_of(envs.load_variant("gardner"))
    with pytest.raises(ConfigError, match=r"initial_weights: .*no checkpoint here"):
        adopt_weights(learner, str(tmp_path / "nowhere"), expected)


@pytest.mark.parametrize("name", TENSOR_FILES[:2])
@pytest.mark.parametrize(
    "change",
    [
        lambda tensors: tensors.popitem(),
        lambda tensors: tensors.update(more=torch.zeros(1)),
        lambda tensors: tensors.update({key: value.double() for key, value in tensors.items()}),
        lambda tensors: tensors.update({key: value[None] for key, value in tensors.items()}),
    ],
)
def test_weights_of_another_shape_or_type_are_refused_by_tensor(run, name, change):
    def edit(contents: dict[str, bytes]) -> None:
        tensors = safetensors.torch.load(contents[name])
        change(tensors)
        contents[name] = safetensors.torch.save(tensors)

    reseal(run, edit)
    learner, expected = learner_of(envs.load_variant("gardner"))
    with pytest.raises(CheckpointMismatch, match=rf"000002/{name}: .*differing tensors"):
        adopt_weights(learner, str(run), expected)


def test_a_folder_that_only_looks_like_a_checkpoint_is_no_player(tmp_path, run):
    fake = run.parent / "fake"
    shutil.copytree(run / FOLDER / "000002", fake)
    with pytest.raises(CorruptFile, match="expected a folder whose name is a number"):
        load_player(fake)
    assert [path.name for path in checkpoint_paths(run)] == ["000002", "000001", "000000"]
