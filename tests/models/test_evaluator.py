"""Evaluators: ONNX Runtime says what PyTorch says, also after new weights have been published."""

import json
import subprocess
import sys
import time

import numpy as np
import onnx
import pytest
import torch

from models import evaluator as evaluators
from models.evaluator import (
    ExportError,
    OnnxEvaluator,
    TorchEvaluator,
    UniformEvaluator,
    export_graph,
    make_evaluator,
    weights_of,
)
from models.network import GameSpec, NetworkConfig, NetworkOutput, PolicyValueNetwork, untrained_network

ACTIONS = 150
CONFIGS = {
    "with squeeze-and-excitation": NetworkConfig(blocks=2, channels=16),
    "with global pooling": NetworkConfig(
        blocks=2, channels=16, squeeze_excitation=False, global_pooling=True, soft_policy=True, future_pieces=True
    ),
}
HOLES = {"with squeeze-and-excitation": 0, "with global pooling": 3}
SHAPES = [(1, 1), (1, 37), (32, 50), (7, 13), (33, 2)]


def make_network(kind: str, *, seed: int = 0) -> PolicyValueNetwork:
    """Make a network with weights and normalisation statistics that depend on the seed."""
    rng = np.random.default_rng(0)
    spec = GameSpec(
        observation_shape=(6, 5, 6),
        piece_planes=4,
        action_planes=8,
        gather_index=rng.permutation(8 * 30)[:ACTIONS].astype(np.int32),
        target_index=rng.integers(0, 30, ACTIONS).astype(np.int32),
        num_squares=30 - HOLES[kind],
        action_hash="a",
        rules_hash="r",
    )
    generator = torch.Generator().manual_seed(seed)
    network = untrained_network(spec, CONFIGS[kind], seed=seed)
    with torch.no_grad():
        for name, tensor in network.state_dict().items():
            if "running_var" in name:
                tensor.copy_(0.2 + 3 * torch.rand(tensor.shape, generator=generator))
            elif tensor.is_floating_point():
                tensor.add_(0.1 * torch.randn(tensor.shape, generator=generator))
    return network


def make_inputs(rows: int, width: int, *, holes: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(rows + width)
    observations = rng.random((rows, 6, 5, 6), dtype=np.float32)
    observations[:, -1] = 1
    observations[:, -1, 0, :holes] = 0
    legal = rng.integers(0, ACTIONS, (rows, width)).astype(np.int32)
    legal[:, width // 2 + 1 :] = np.where(rng.random((rows, width))[:, width // 2 + 1 :] < 0.5, -1, 3)
    return observations, legal


def evaluate_eagerly(network: PolicyValueNetwork, observations: np.ndarray, legal: np.ndarray):
    with torch.no_grad():
        network.eval()
        logits, wdl_logits = network(torch.from_numpy(observations), torch.from_numpy(legal).long())[:2]
    return logits.numpy(), wdl_logits.softmax(dim=1).numpy()


def assert_same(evaluator, network: PolicyValueNetwork, kind: str, *, tolerance: float = 1e-4) -> None:
    for rows, width in SHAPES:
        observations, legal = make_inputs(rows, width, holes=HOLES[kind])
        logits, wdl = evaluator(observations, legal)
        expected_logits, expected_wdl = evaluate_eagerly(network, observations, legal)
        real = legal >= 0
        assert logits.shape == (rows, width)
        assert wdl.shape == (rows, 3)
        assert logits.dtype == wdl.dtype == np.float32
        np.testing.assert_allclose(logits[real], expected_logits[real], atol=tolerance, rtol=0)
        np.testing.assert_allclose(wdl, expected_wdl, atol=tolerance, rtol=0)


def make_fresh_network(kind: str) -> PolicyValueNetwork:
    """Make an untrained network, whose biases are all equal: an exporter may take them for one."""
    return untrained_network(make_network(kind).spec, CONFIGS[kind], seed=5)


@pytest.fixture(scope="module", params=list(CONFIGS))
def exported(request) -> tuple[str, bytes]:
    """Export a graph of each kind; that takes seconds, so the tests share it."""
    return request.param, export_graph(make_fresh_network(request.param))


def test_onnx_and_eager_agree_on_every_batch_shape(exported):
    kind, graph = exported
    assert_same(OnnxEvaluator(graph), make_fresh_network(kind), kind)


def test_onnx_and_eager_agree_after_publishing_other_weights_and_statistics(exported):
    kind, graph = exported
    evaluator = OnnxEvaluator(graph)
    for seed in (1, 2, 1):
        network = make_network(kind, seed=seed)
        evaluator.publish(weights_of(network))
        assert_same(evaluator, network, kind)


def test_the_graph_lists_all_weights_and_holds_those_that_play_needs(exported):
    kind, graph = exported
    model = onnx.load_from_string(graph)
    initialisers = {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer}
    weights = {name: array.shape for name, array in weights_of(make_network(kind)).items()}
    listed = json.loads(next(entry.value for entry in model.metadata_props if entry.key == "weights"))
    assert {name: tuple(shape) for name, shape in listed.items()} == weights
    held = {name for name in weights if name in initialisers}
    assert weights.keys() - held == {f"folded.value.moves_left.{part}" for part in ("weight", "bias")}
    assert all(initialisers[name] == weights[name] for name in held)
    assert not any("soft" in name or "future" in name for name in (*weights, *initialisers))


def test_publishing_is_quick(exported):
    kind, graph = exported
    evaluator, weights = OnnxEvaluator(graph), weights_of(make_network(kind, seed=1))
    start = time.perf_counter()
    evaluator.publish(weights)
    assert time.perf_counter() - start < 0.5


@pytest.mark.parametrize("change", ["renamed", "missing", "reshaped", "more"])
def test_weights_of_another_architecture_are_refused_and_the_old_ones_stay(exported, change):
    kind, graph = exported
    network = make_fresh_network(kind)
    name = "folded.blocks.2.first.conv.bias" if change == "more" else "folded.policy.planes.bias"
    weights = weights_of(make_network(kind, seed=1))
    values = weights.pop(name, np.zeros(16, dtype=np.float32))
    if change != "missing":
        weights["other" if change == "renamed" else name] = values[:-1] if change == "reshaped" else values
    for evaluator in (OnnxEvaluator(graph), TorchEvaluator(network)):
        with pytest.raises(ValueError, match=name):
            evaluator.publish(weights)
        assert_same(evaluator, network, kind)


@pytest.mark.parametrize("kind", CONFIGS)
def test_the_torch_evaluator_agrees_with_the_network_before_and_after_publishing(kind):
    network, other = make_network(kind), make_network(kind, seed=1)
    evaluator = TorchEvaluator(network)
    assert_same(evaluator, network, kind)
    evaluator.publish(weights_of(other))
    assert_same(evaluator, other, kind)


@pytest.mark.parametrize("kind", CONFIGS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.bfloat16, 0.1), (torch.float16, 0.01)])
def test_half_precision_is_near_single_precision_and_answers_in_it(kind, dtype, tolerance):
    network = make_network(kind)
    evaluator = TorchEvaluator(network, dtype=dtype)
    assert_same(evaluator, network, kind, tolerance=tolerance)
    evaluator.publish(weights_of(make_network(kind, seed=1)))
    assert_same(evaluator, make_network(kind, seed=1), kind, tolerance=tolerance)
    sums = evaluator(*make_inputs(32, 50, holes=HOLES[kind]))[1].sum(axis=1)
    np.testing.assert_allclose(sums, 1, atol=1e-6)  # the softmax itself is in single precision


def test_an_overflow_of_half_precision_is_an_error_and_no_opinion():
    kind = "with squeeze-and-excitation"
    network = make_network(kind)
    with torch.no_grad():
        network.stem.conv.weight.mul_(1e6)
    inputs = make_inputs(2, 5, holes=0)
    assert np.isfinite(TorchEvaluator(network)(*inputs)[1]).all()
    with pytest.raises(FloatingPointError, match=r"not finite in torch\.float16$"):
        TorchEvaluator(network, dtype=torch.float16)(*inputs)


# Networks of a user's own


class Own(PolicyValueNetwork):
    """Normalises by itself and scales by a bare parameter and a constant."""

    def __init__(self, spec: GameSpec, cfg: NetworkConfig) -> None:
        super().__init__(spec, cfg)
        self.conv = torch.nn.Conv2d(spec.observation_shape[0], spec.action_planes, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(spec.action_planes)
        self.gain = torch.nn.Parameter(torch.ones(()))
        self.value = torch.nn.Sequential(torch.nn.LayerNorm(spec.action_planes), torch.nn.Linear(spec.action_planes, 4))
        self.register_buffer("offset", torch.full((1,), 0.5), persistent=False)

    def forward(self, observations: torch.Tensor, legal_actions: torch.Tensor) -> NetworkOutput:
        planes = torch.nn.functional.gelu(self.norm(self.conv(observations))) * self.gain + self.offset
        value = self.value(planes.mean(dim=(2, 3)))
        return NetworkOutput(self.gather_policy(planes, legal_actions), value[:, :3], value[:, 3].exp())


def own_network(seed: int) -> Own:
    """Make one that has seen some data."""
    torch.manual_seed(seed)
    network = Own(make_network("with squeeze-and-excitation").spec, NetworkConfig(kind="own"))
    observations, legal = make_inputs(16, 4, holes=0)
    for _ in range(20):
        network(torch.from_numpy(observations) * seed, torch.from_numpy(legal).long())
    with torch.no_grad():
        network.gain.add_(seed)
    return network.eval()


def test_a_network_with_layers_of_its_own_is_exported_and_published_whole():
    evaluator = OnnxEvaluator(export_graph(own_network(1)))
    assert_same(evaluator, own_network(1), "with squeeze-and-excitation")
    other = own_network(2)
    weights = weights_of(other)
    assert {"folded.gain", "folded.norm.running_mean"} <= weights.keys()
    assert not {"folded.offset", "folded.norm.num_batches_tracked"} & weights.keys()
    for one in (evaluator, TorchEvaluator(own_network(1))):
        one.publish(weights)
        assert_same(one, other, "with squeeze-and-excitation")


class Masked(Own):
    """Gives padded entries no chance at all."""

    def forward(self, observations: torch.Tensor, legal_actions: torch.Tensor) -> NetworkOutput:
        output = super().forward(observations, legal_actions)
        return output._replace(policy_logits=output.policy_logits.masked_fill(legal_actions < 0, -torch.inf))


class Undecided(Own):
    """Looks at a value as it is exported."""

    def forward(self, observations: torch.Tensor, legal_actions: torch.Tensor) -> NetworkOutput:
        return super().forward(observations if observations.sum() > 0 else 2 * observations, legal_actions)


def test_what_stands_in_the_padding_is_ignored_also_minus_infinity():
    network = Masked(own_network(1).spec, NetworkConfig(kind="masked"))
    observations, legal = make_inputs(4, 9, holes=0)
    assert (legal < 0).any()
    for evaluator in (TorchEvaluator(network), OnnxEvaluator(export_graph(network))):
        logits, _ = evaluator(observations, legal)
        np.testing.assert_array_equal(np.isfinite(logits), legal >= 0)


def test_a_network_that_has_no_graph_is_refused_with_the_line(capfd):
    network = Undecided(own_network(1).spec, NetworkConfig(kind="undecided"))
    with pytest.raises(
        ExportError, match=r"network\.kind 'undecided' has no ONNX graph: \S*test_evaluator\.py:\d+: "
    ) as raised:
        export_graph(network)
    assert "\n" not in str(raised.value)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_are_not_finite_are_refused_and_the_old_ones_stay(exported, value):
    kind, graph = exported
    network = make_fresh_network(kind)
    weights = weights_of(make_network(kind, seed=1))
    weights["folded.policy.planes.bias"][0] = value
    for evaluator in (OnnxEvaluator(graph), TorchEvaluator(network)):
        with pytest.raises(ValueError, match=r"weights are not finite: folded\.policy\.planes\.bias"):
            evaluator.publish(weights)
        assert_same(evaluator, network, kind)


def lose_a_weight(model: onnx.ModelProto) -> None:
    """Make a constant of a weight, which publishing then does not reach."""
    next(tensor for tensor in model.graph.initializer if tensor.name == "folded.policy.planes.bias").name = "constant"
    for node in model.graph.node:
        node.input[:] = ["constant" if name == "folded.policy.planes.bias" else name for name in node.input]


def change_an_activation(model: onnx.ModelProto) -> None:
    next(node for node in model.graph.node if node.op_type == "Relu").op_type = "Sigmoid"


def build_a_batch_size_in(model: onnx.ModelProto) -> None:
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lose_a_weight, "its ONNX graph is off by .* in prior_logits"),
        (change_an_activation, "its ONNX graph is off by .* in prior_logits"),
        (build_a_batch_size_in, "its ONNX graph does not run: .*observations"),
    ],
)
def test_a_faulty_graph_is_refused(exported, change, message, monkeypatch):
    kind, graph = exported
    model = onnx.load_from_string(graph)
    del model.metadata_props[:]
    monkeypatch.setattr(evaluators, "_trace", lambda _network: model)
    export_graph(make_fresh_network(kind))
    del model.metadata_props[:]
    change(model)
    with pytest.raises(ExportError, match=rf"network\.kind 'resnet', N = 1, M = 5: {message}"):
        export_graph(make_fresh_network(kind))


def test_evaluating_changes_neither_network_nor_arguments(exported):
    kind, graph = exported
    network = make_network(kind)
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    for evaluator in (OnnxEvaluator(graph), TorchEvaluator(network)):
        observations, legal = make_inputs(4, 6, holes=HOLES[kind])
        copies = observations.copy(), legal.copy()
        evaluator(observations, legal)
        np.testing.assert_array_equal(observations, copies[0])
        np.testing.assert_array_equal(legal, copies[1])
    assert network.training
    assert all(torch.equal(tensor, before[name]) for name, tensor in network.state_dict().items())


def test_the_uniform_evaluator_has_no_opinion():
    logits, wdl = UniformEvaluator()(*make_inputs(3, 5, holes=0))
    np.testing.assert_array_equal(logits, np.zeros((3, 5), dtype=np.float32))
    np.testing.assert_allclose(wdl, 1 / 3)


def test_a_backend_is_chosen_by_name(exported, monkeypatch):
    kind, graph = exported
    network = make_network(kind)
    monkeypatch.setattr("models.evaluator.export_graph", lambda _network: graph)
    assert isinstance(make_evaluator(network, backend="torch", device="cpu"), TorchEvaluator)
    assert isinstance(make_evaluator(network, backend="auto", device="cpu"), OnnxEvaluator)


def test_a_device_and_a_backend_that_do_not_go_together_are_refused(exported):
    kind, graph = exported
    network = make_network(kind)
    for device in ("cpu:0", torch.device("cpu")):
        assert isinstance(make_evaluator(network, device=device, graph=graph), OnnxEvaluator)
    with pytest.raises(ValueError, match="backend is 'tpu', expected one of auto, onnx, torch"):
        make_evaluator(network, backend="tpu")
    with pytest.raises(ValueError, match="expected device 'cpu', got 'cuda:0'"):
        make_evaluator(network, backend="onnx", device="cuda:0", graph=graph)


def test_on_a_gpu_only_the_built_in_network_is_evaluated_in_half_precision(monkeypatch):
    monkeypatch.setattr(evaluators, "TorchEvaluator", lambda _network, **given: given)
    for network, dtype in ((make_network("with squeeze-and-excitation"), None), (own_network(1), torch.float32)):
        assert make_evaluator(network, device="cuda:1") == {"device": "cuda:1", "dtype": dtype}


def test_a_worker_that_evaluates_by_onnx_runtime_imports_no_torch():
    script = "import sys, models.evaluator, train.shards; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
