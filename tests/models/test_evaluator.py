"""Evaluators: ONNX Runtime says what PyTorch says, also after new weights have been published."""

import subprocess
import sys
import time

import numpy as np
import onnx
import pytest
import torch

from models.evaluator import (
    OnnxEvaluator,
    TorchEvaluator,
    UniformEvaluator,
    export_graph,
    make_evaluator,
    weights_of,
)
from models.network import GameSpec, NetworkConfig, PolicyValueNetwork, untrained_network

ACTIONS = 150
CONFIGS = {
    "with squeeze-and-excitation": NetworkConfig(blocks=2, channels=16),
    "with global pooling": NetworkConfig(blocks=2, channels=16, squeeze_excitation=False, global_pooling=True),
}
HOLES = {"with squeeze-and-excitation": 0, "with global pooling": 3}
SHAPES = [(1, 1), (1, 37), (32, 50), (7, 13), (33, 2)]


def make_network(kind: str, *, seed: int = 0) -> PolicyValueNetwork:
    """Make a network with weights and normalisation statistics that depend on the seed."""
    rng = np.random.default_rng(0)
    spec = GameSpec(
        observation_shape=(6, 5, 6),
        action_planes=8,
        gather_index=rng.permutation(8 * 30)[:ACTIONS].astype(np.int32),
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
        logits, wdl_logits, _ = network(torch.from_numpy(observations), torch.from_numpy(legal).long())
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


def test_the_graph_holds_every_weight_by_name_and_nothing_else_that_training_changes(exported):
    kind, graph = exported
    initialisers = {tensor.name: tuple(tensor.dims) for tensor in onnx.load_from_string(graph).graph.initializer}
    weights = weights_of(make_network(kind))
    assert {name: array.shape for name, array in weights.items()} == {
        name: shape for name, shape in initialisers.items() if not name.endswith("gather_index")
    }
    assert not any("moves_left" in name for name in weights)


def test_publishing_is_quick(exported):
    kind, graph = exported
    evaluator, weights = OnnxEvaluator(graph), weights_of(make_network(kind, seed=1))
    start = time.perf_counter()
    evaluator.publish(weights)
    assert time.perf_counter() - start < 0.5


@pytest.mark.parametrize("change", ["renamed", "missing", "reshaped"])
def test_weights_of_another_architecture_are_refused_and_the_old_ones_stay(exported, change):
    kind, graph = exported
    network = make_fresh_network(kind)
    name = "folded.policy.bias"
    weights = weights_of(make_network(kind, seed=1))
    values = weights.pop(name)
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


def test_a_worker_that_evaluates_by_onnx_runtime_imports_no_torch():
    script = "import sys, models.evaluator, train.shards; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
