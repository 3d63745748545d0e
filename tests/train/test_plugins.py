"""Plugins: the page's examples train, resume and play; what is wrong is refused; nothing stored ever makes code run."""

import hashlib
import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
import yaml
from typer.testing import CliRunner, Result

from envs import VectorEnv, engine_for, load_variant
from models import network
from models.checkpoint import checkpoint_paths, identity, load_checkpoint, save_checkpoint
from models.evaluator import UniformEvaluator
from models.network import GameSpec, NetworkConfig, untrained_network
from scripts import evaluate, piece_values, train
from tests.train.stored_run import config
from train import plugins
from train.baselines import BASELINES, RandomPlayer
from train.config import ConfigError, RunConfig
from train.learner import Learner
from train.players import make_player
from train.plugins import check_names, load_plugins
from train.runs import RunFolder, plugins_of_run
from train.search import SEARCH_POLICIES, Node, SearchSettings
from train.selfplay import Assignment
from train.worker import SelfPlayWorker, WorkerTask

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "extend.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"```\w+\n# (\S+)\n(.*?)```", re.DOTALL)
EXAMPLES = {name: f"# {name}\n{rest}" for name, rest in BLOCK.findall(PAGE)}
OWN = ["mixer.py", "regularized.py", "captures_first.py"]
REGISTRIES: list[dict[str, Any]] = [network.NETWORKS, SEARCH_POLICIES, BASELINES, plugins._loaded]
BUILT_IN = [dict(registry) for registry in REGISTRIES]
PLAYS_AT_ONCE = """
from pathlib import Path
from train.plugins import register_baseline, register_search_policy
Path("ran").write_text("x" + (Path("ran").read_text() if Path("ran").exists() else ""))

@register_search_policy("at_once")
class AtOnce:
    def __init__(self, settings): pass
    def root_noise(self, num_moves, rng): return rng.random(num_moves)
    def select(self, node): return int((node.prior - node.visit_counts).argmax())
    def conclude(self, root): return 0, root.prior
"""


def forget() -> None:
    """Be as a new process is: without plugins."""
    for registry, built_in in zip(REGISTRIES, BUILT_IN):
        registry.clear()
        registry.update(built_in)
    for name in [name for name in sys.modules if name.startswith(plugins.MODULE_PREFIX)]:
        del sys.modules[name]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Work in a folder of one's own, and leave no plugin behind."""
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    forget()


def write(text: str, name: str = "mine.py") -> Path:
    Path(name).write_text(text, encoding="utf-8")
    return Path(name)


def error_of(call: Callable[[], object]) -> str:
    with pytest.raises(ConfigError) as raised:
        call()
    return str(raised.value)


# --- docs/extend.md -----------------------------------------------------------------------------


def command(app: typer.Typer, *words: str) -> Result:
    forget()
    return CliRunner().invoke(app, words)


def given(names: list[str]) -> list[str]:
    return [word for name in names for word in ("--plugin", name)]


def test_the_examples_of_the_page_train_together_and_are_taken_up_and_played_against(folder: Path) -> None:
    for name, text in EXAMPLES.items():
        write(text, name)
    tiny = {
        "iterations": 2, "workers": 0, "network": {"kind": "mixer", "blocks": 1, "channels": 8},
        "search": {"policy": "regularized", "num_simulations": 6, "fast_simulations": 3},
        "selfplay": {"games_per_worker": 8, "positions_per_iteration": 250, "max_plies": 40},
        "learner": {"batch_size": 32}, "piece_values": {"bootstrap": 100},
        "evaluation": {"opponent": "captures_first", "games": 4, "simulations": 2, "max_plies": 20},
    }  # fmt: skip
    write(yaml.dump({**yaml.safe_load(EXAMPLES["own.yaml"]), **tiny}), "tiny.yaml")
    done = command(train.app, "tiny.yaml", "--run-dir", "run")
    assert done.exit_code == 0, done.stderr
    assert "against captures_first" in done.stdout
    manifest = json.loads(Path("run/manifest.json").read_text())
    registered = ["network.kind=mixer", "search.policy=regularized", "evaluation.opponent=captures_first"]
    for name, key, record in zip(OWN, registered, manifest["plugins"], strict=True):
        digest = hashlib.sha256(EXAMPLES[name].encode()).hexdigest()
        assert record == {"file": name, "sha256": digest, "registers": [key]}
    newest = checkpoint_paths(Path("run"))[0]
    assert load_checkpoint(newest).state["plugins"] == manifest["plugins"]

    shutil.rmtree(newest)
    for missing in OWN:
        refused = command(train.app, "--resume", "--run-dir", "run", *given([name for name in OWN if name != missing]))
        assert refused.exit_code == 2
        assert f"--plugin {missing}" in refused.stderr
    resumed = command(train.app, "--resume", "--run-dir", "run", *given(OWN))
    assert resumed.exit_code == 0, resumed.stderr
    assert checkpoint_paths(Path("run"))[0] == newest

    match = ["--against", "captures_first", "--games", "4", "--simulations", "2", "--max-plies", "20", "--json"]
    for refused in (command(evaluate.app, "run", *match), command(piece_values.app, "run")):
        assert refused.exit_code == 2
        assert "add --plugin mixer.py" in refused.stderr
    played = command(evaluate.app, "run", *match, *given(OWN))
    assert played.exit_code == 0, played.stderr
    assert json.loads(played.stdout)["matches"][0]["players"][1] == "captures_first"


@pytest.mark.parametrize("name", OWN)
def test_an_example_of_the_page_has_fewer_than_60_lines(name: str) -> None:
    assert len(EXAMPLES[name].splitlines()) < 60


def test_the_pages_search_policy_is_the_regularised_optimum(folder: Path) -> None:
    load_plugins([write(EXAMPLES["regularized.py"])])
    policy = SEARCH_POLICIES["regularized"](SearchSettings())
    prior, values = np.array([0.5, 0.3, 0.2], np.float32), np.array([-0.2, 0.4, 0.1], np.float32)
    visits = np.array([3, 5, 2], np.int32)
    actions, noise = np.arange(3, dtype=np.int32), np.zeros(3, np.float32)
    node = Node(True, actions, np.log(prior), prior, visits, values, 0.1, noise, 10, 16)
    _, found = policy.conclude(node)
    weight = SearchSettings().c_puct * np.sqrt(11) / 13

    def objective(candidate: np.ndarray) -> float:
        return float(values @ candidate - weight * (prior * np.log(prior / candidate)).sum())

    nearby = np.random.default_rng(0).dirichlet(300 * found, 2000)
    assert objective(found.astype(np.float64)) >= max(map(objective, nearby)) - 1e-5


def test_the_pages_baseline_takes_what_it_can(folder: Path) -> None:
    load_plugins([write(EXAMPLES["captures_first.py"])])
    env = VectorEnv("gardner", 8)
    env.set_fen(5, "k4/5/5/p4/R3K w - - 0 1")
    player, rng = BASELINES["captures_first"](), np.random.default_rng(1)
    chosen = np.array([player.choose(env, np.array([0, 5]), rng) for _ in range(20)])
    assert {env.action_to_move(5, int(action)) for action in chosen[:, 1]} == {"a1a2"}
    assert 1 < len(set(chosen[:, 0])) <= len(env.legal_actions(0))


# --- Errors -------------------------------------------------------------------------------------

BASELINE = "from train.plugins import register_baseline\nregister_baseline('{}')(lambda: None)\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\n", "plugin mine.py: registers nothing: no network, search policy or baseline"),
        ("x = 1\n\nx = y\n", "plugin mine.py:3: NameError: name 'y' is not defined"),
        ("def f():\n    raise OSError('no')\nf()\n", "plugin mine.py:2: OSError: no"),
        ("import sys\nsys.exit(3)\n", "plugin mine.py:2: SystemExit: 3"),
        ("x = 1\nx = (\n", "plugin mine.py:2: SyntaxError: '(' was never closed"),
        ("import json\njson.loads('{')\n", "plugin mine.py:2: JSONDecodeError"),
        (BASELINE.format("random"), "plugin mine.py:2: ValueError: baseline 'random': there is one of that name"),
        (BASELINE.format("a,b"), "plugin mine.py:2: ValueError: baseline 'a,b': expected a plain name"),
        ("from train.plugins import register_search_policy as r\nr('puct')(print)\n", "plugin mine.py:2: ValueError"),
        ("from train.plugins import register_network as r\nr('resnet')(print)\n", "plugin mine.py:2: ValueError"),
    ],
)  # fmt: skip
def test_a_plugin_that_cannot_be_used_is_refused_with_its_line(text: str, message: str) -> None:
    path = write(text)
    assert message in error_of(lambda: load_plugins([path]))


def test_a_file_that_is_missing_or_is_no_python_is_refused() -> None:
    assert error_of(lambda: load_plugins(["mine.py"])) == "plugin mine.py: no such file"
    assert "expected a Python file" in error_of(lambda: load_plugins([write("", "mine.txt")]))


def test_a_plugin_that_fails_leaves_nothing_behind_so_that_it_can_be_corrected() -> None:
    error_of(lambda: load_plugins([write(BASELINE.format("mine") + "1 / 0\n")]))
    assert "mine" not in BASELINES
    (plugin,) = load_plugins([write(BASELINE.format("mine"))])
    assert plugin.registers == ("evaluation.opponent=mine",)


def test_a_plugin_that_fails_in_a_worker_fails_there_again() -> None:
    plugin = plugins.Plugin("mine.py", b"1 / 0\n")
    for _ in range(2):
        assert "plugin mine.py:1: ZeroDivisionError" in error_of(lambda: plugins.import_plugins([plugin]))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("def select", "def choose", "search.policy: 'at_once' lacks the methods select"),
        (
            "(self, settings): pass",
            "(self): pass",
            "search.policy: 'at_once' cannot be made from SearchSettings: TypeError",
        ),
    ],
)
def test_a_search_policy_that_cannot_search_is_refused_before_anything_is_written(
    old: str, new: str, message: str
) -> None:
    write(PLAYS_AT_ONCE.replace(old, new))
    write(yaml.dump({"variant": "gardner", "plugins": ["mine.py"], "search": {"policy": "at_once"}}), "c.yaml")
    refused = command(train.app, "c.yaml", "--run-dir", "run")
    assert refused.exit_code == 2
    assert message in refused.stderr
    assert not Path("run").exists()


NETWORK = """
from models.network import ResidualNetwork
from train.plugins import register_network

@register_network("mine")
class Mine(ResidualNetwork):
    def forward(self, observations, legal_actions):
        output = super().forward(observations, legal_actions)
        {}
"""


@pytest.mark.parametrize(
    ("end", "message"),
    [
        ("return output._replace(moves_left=output.moves_left[:, None])", "moves_left is float32 [3, 1]"),
        ("return output if output.wdl_logits.sum() > 0 else None", "has no ONNX graph: mine.py:9: "),
    ],
)
def test_a_network_that_cannot_be_used_is_a_line_and_leaves_no_run(end: str, message: str) -> None:
    write(NETWORK.format(end))
    write(yaml.dump({"variant": "gardner", "plugins": ["mine.py"], "network": {"kind": "mine", "blocks": 1}}), "c.yaml")
    refused = command(train.app, "c.yaml", "--run-dir", "run")
    assert refused.exit_code == 1
    assert "error: network.kind 'mine'" in refused.stderr
    assert message in refused.stderr
    assert not Path("run/config.yaml").exists()


def test_the_same_content_runs_once_and_a_name_of_another_plugin_is_taken() -> None:
    first, again = write(PLAYS_AT_ONCE, "a.py"), write(PLAYS_AT_ONCE, "b.py")
    assert len(load_plugins([first, first, again])) == 1
    assert load_plugins([first]) == load_plugins([again])
    assert Path("ran").read_text() == "x"
    other = write(PLAYS_AT_ONCE + "\n", "c.py")
    assert "search policy 'at_once'" in error_of(lambda: load_plugins([other]))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"search": {"policy": "gumbl"}}, "search.policy: expected gumbel or puct, or the name that a plugin "
         "registers, got 'gumbl', did you mean 'gumbel'?"),
        ({"network": {"kind": "resnt"}}, "network.kind: expected resnet"),
        ({"evaluation": {"opponent": "radnom"}}, "got 'radnom', did you mean 'random'?"),
    ],
)  # fmt: skip
def test_a_name_that_nothing_registers_is_refused_before_anything_is_written(
    changes: dict[str, object], message: str
) -> None:
    write(yaml.dump({"variant": "gardner", **changes}), "c.yaml")
    for extra in ([], ["--dry-run"]):
        done = command(train.app, "c.yaml", "--run-dir", "run", *extra)
        assert done.exit_code == 2
        assert message in done.stderr
    assert not Path("run").exists()


def test_a_plugin_of_a_new_run_is_named_in_its_config() -> None:
    write("variant: gardner\n", "c.yaml")
    write(BASELINE.format("mine"))
    refused = command(train.app, "c.yaml", "--plugin", "mine.py")
    assert refused.exit_code == 2
    assert "--set plugins=[mine.py]" in refused.stderr
    words = ["--set", "plugins=[mine.py]", "--set", "evaluation.opponent=mine", "--dry-run"]
    assert command(train.app, "c.yaml", *words).exit_code == 0
    wrong = command(train.app, "c.yaml", "--set", "plugins=mine.py", "--dry-run")
    assert "--set: plugins: expected a list, got 'mine.py' (a string)" in wrong.stderr


# --- Workers ------------------------------------------------------------------------------------


class Uniform(UniformEvaluator):
    """Stands for the network of a worker."""

    def __init__(self, graph: bytes, *, threads: int) -> None:
        assert graph == b"graph"


def task_of(cfg: RunConfig) -> WorkerTask:
    return WorkerTask.of(cfg, load_variant("gardner"), life=0, graph=b"graph", plugins=load_plugins(cfg.plugins))


def at_once(**changes: object) -> RunConfig:
    write(PLAYS_AT_ONCE)
    selfplay = {"games_per_worker": 4, "max_plies": 30}
    return config(plugins=["mine.py"], search={"policy": "at_once"}, selfplay=selfplay, **changes)


def test_a_worker_elsewhere_runs_the_policy_by_content(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("train.worker.OnnxEvaluator", Uniform)
    task = task_of(at_once())
    Path("mine.py").unlink()
    here = SelfPlayWorker(task, 0).play(Assignment(100, 0, 1))
    assert Path("ran").read_text() == "x"
    forget()
    there = SelfPlayWorker(task, 0).play(Assignment(100, 0, 1))
    assert Path("ran").read_text() == "xx"
    assert here[1] == there[1]
    assert here[1].positions >= 100


def test_workers_get_only_the_file_that_searches() -> None:
    write(BASELINE.format("mine"), "other.py")
    cfg = at_once()
    both = cfg.model_copy(update={"plugins": ["other.py", "mine.py"]})
    assert [plugin.name for plugin in task_of(both).plugins] == ["mine.py"]
    built_in = both.model_copy(update={"search": config().search})
    assert task_of(built_in).plugins == ()


# --- Stored runs --------------------------------------------------------------------------------


def stored_run() -> RunConfig:
    """Write a run whose config, manifest and checkpoint name a plugin that lies beside it; it has not run."""
    cfg = at_once()
    run, variant, loaded = RunFolder(Path("run")), load_variant("gardner"), load_plugins(cfg.plugins)
    run.begin(cfg, variant, loaded)
    run.close()
    net = untrained_network(GameSpec.of(engine_for(variant)), NetworkConfig(**cfg.network.model_dump()), seed=1)
    records = [plugin.record() for plugin in loaded]
    state = {**identity(variant, net), "config": cfg.to_document(), "plugins": records, "shards": []}
    save_checkpoint(Path("run"), 0, tensors=Learner(net, cfg.learner).tensors(), state=state)
    shutil.copy("mine.py", "run/mine.py")
    Path("ran").unlink()
    forget()
    return cfg


def test_neither_a_run_nor_a_checkpoint_ever_makes_code_run() -> None:
    cfg = stored_run()
    digest = hashlib.sha256(PLAYS_AT_ONCE.encode()).hexdigest()
    for call in (
        lambda: make_player("run", simulations=2),
        lambda: make_player("run/checkpoints/000000", simulations=2),
        lambda: make_player("untrained:run", simulations=2),
        lambda: plugins_of_run(cfg, Path("run"), resume=True),
    ):
        message = error_of(call)
        assert f"the plugin mine.py (SHA-256 {digest})" in message
        assert message.endswith("add --plugin mine.py")
    assert command(train.app, "--resume", "--run-dir", "run").exit_code == 2
    assert command(evaluate.app, "run").exit_code == 2
    assert not Path("ran").exists()
    assert plugins_of_run(cfg, Path("run"), resume=True, given=["mine.py"])
    assert Path("ran").exists()


def test_a_plugin_that_has_changed_since_is_used_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    cfg = stored_run()
    plugins_of_run(cfg, Path("run"), resume=True, given=["mine.py"])
    assert not caplog.records
    forget()
    changed = write(PLAYS_AT_ONCE + "# changed\n", "newer.py")
    plugins_of_run(cfg, Path("run"), resume=True, given=[changed])
    (record,) = caplog.records
    old, new = (hashlib.sha256(text.encode()).hexdigest() for text in (PLAYS_AT_ONCE, changed.read_text()))
    expected = f"plugin newer.py has SHA-256 {new}; the run began with mine.py, {old}"
    assert record.getMessage() == f"search.policy=at_once: {expected}"


def test_a_run_of_built_in_names_needs_no_plugin_however_its_config_names_some() -> None:
    cfg = config(plugins=["gone.py"])
    check_names(cfg)
    assert plugins_of_run(cfg, Path("run"), resume=True) == ()
    assert isinstance(make_player("random", simulations=1).player, RandomPlayer)


def test_where_a_plugin_lies_is_no_part_of_what_a_run_computes() -> None:
    assert config(plugins=["a.py"]).config_hash() == config(plugins=["b/a.py"]).config_hash()
