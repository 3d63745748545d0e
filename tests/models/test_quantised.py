"""Int8 inference: near the float graph on real positions, and exactly the same answers whenever it is asked again."""

import time

import numpy as np
import onnx
import pytest
import torch

from envs import VectorEnv, engine_for, legal_actions, load_variant, observe
from models.evaluator import OnnxEvaluator, TorchEvaluator, export_graph, make_evaluator, open_session, weights_of
from models.network import GameSpec, NetworkConfig, PolicyValueNetwork, untrained_network
from models.quantised import BLOCKS, Int8Evaluator, quantise

GAMES = {
    "gardner": NetworkConfig(blocks=1, channels=8, squeeze_excitation=False),
    "palace_ninja_guards": NetworkConfig(blocks=2, channels=16, global_pooling=True),  # a board with holes
}
POLICY_BOUND, VALUE_BOUND = 0.01, 0.005
"""Most that int8 may change: mean total variation of the policy, mean difference of the value."""


def random_positions(variant: str, *, seed: int, count: int = 64) -> tuple[np.ndarray, np.ndarray]:
    """Return positions of random games, 8 plies in."""
    env = VectorEnv(load_variant(variant), count, seed=seed)
    for _ in range(8):
        env.step(env.sample_actions())
        env.reset(env.over)
    return observe(env.game, env.states), legal_actions(env.game, env.states)[0]


def make_network(variant: str, *, seed: int) -> PolicyValueNetwork:
    """Make a network with opinions: weights and normalisation statistics as after training, drawn at random."""
    generator = torch.Generator().manual_seed(seed)
    network = untrained_network(GameSpec.of(engine_for(load_variant(variant))), GAMES[variant], seed=seed)
    for name, tensor in network.state_dict().items():
        if "running_var" in name:
            tensor.copy_(0.2 + 3 * torch.rand(tensor.shape, generator=generator))
        elif tensor.is_floating_point():
            strength = 0.5 if name.startswith(("policy.", "value.wdl.")) else 0.1
            tensor.add_(strength * torch.randn(tensor.shape, generator=generator))
    return network.eval()


@pytest.fixture(scope="module", params=list(GAMES))
def exported(request) -> tuple[str, bytes]:
    return request.param, export_graph(make_network(request.param, seed=0))


@pytest.fixture(scope="module")
def int8(exported) -> Int8Evaluator:
    variant, graph = exported
    return Int8Evaluator(graph, calibration=random_positions(variant, seed=1))


def policy_of(logits: np.ndarray, legal: np.ndarray) -> np.ndarray:
    odds = np.where(legal < 0, 0, np.exp(logits - logits.max(axis=1, keepdims=True)))
    return odds / odds.sum(axis=1, keepdims=True)


def assert_near(evaluator, network: PolicyValueNetwork, inputs: tuple[np.ndarray, np.ndarray]) -> None:
    """Compare with single precision on positions that the calibration has not seen."""
    (logits, wdl), (right_logits, right_wdl) = evaluator(*inputs), TorchEvaluator(network)(*inputs)
    assert logits.dtype == wdl.dtype == np.float32
    policy, right_policy = policy_of(logits, inputs[1]), policy_of(right_logits, inputs[1])
    off, value_off = np.abs(policy - right_policy).sum(axis=1) / 2, np.abs((wdl - right_wdl) @ [1, 0, -1])
    assert 0 < off.mean() < POLICY_BOUND  # not 0: it does compute in 8 bits
    assert value_off.mean() < VALUE_BOUND
    assert right_policy.max(axis=1).mean() > 10 * POLICY_BOUND  # the network has opinions to lose


def as_it_was(int8, variant: str, *, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Publish the weights of a seed; return the answers on some positions."""
    int8.publish(weights_of(make_network(variant, seed=seed)))
    return int8(*random_positions(variant, seed=3))


def test_int8_is_near_single_precision_and_the_same_weights_give_the_same_answers_again(exported, int8):
    variant, _ = exported
    answers = []
    for seed in (0, 1, 0):
        answers.append(as_it_was(int8, variant, seed=seed))
        assert_near(int8, make_network(variant, seed=seed), random_positions(variant, seed=2))
    for first, second, third in zip(*answers, strict=True):
        np.testing.assert_array_equal(first, third)
        assert not np.array_equal(first, second)


def test_an_answer_does_not_depend_on_the_rest_of_the_batch(exported, int8):
    variant, _ = exported
    observations, legal = random_positions(variant, seed=3)
    whole = as_it_was(int8, variant, seed=0)
    for rows in (slice(0, 1), slice(5, 22), slice(63, 0, -2)):
        for part, right in zip(int8(np.ascontiguousarray(observations[rows]), legal[rows]), whole, strict=True):
            np.testing.assert_array_equal(part, right[rows])


def test_every_weight_of_the_blocks_is_stored_in_8_bits_and_no_other_is(exported, int8):
    variant, graph = exported
    model = quantise(onnx.load_from_string(graph), random_positions(variant, seed=1))
    kinds = {tensor.name: tensor.data_type for tensor in model.graph.initializer}
    convolutions = 2 * GAMES[variant].blocks
    weights = [name for name in kinds if name.startswith(BLOCKS) and name.endswith("conv.weight.integers")]
    assert len(weights) == convolutions
    assert {kinds[name] for name in weights} == {onnx.TensorProto.INT8}
    assert kinds["folded.stem.conv.weight"] == kinds["folded.policy.planes.weight"] == onnx.TensorProto.FLOAT
    assert not [name for name in kinds if name.startswith(BLOCKS) and name.endswith("conv.weight")]


def test_publishing_is_quick(exported, int8):
    weights = weights_of(make_network(exported[0], seed=1))
    start = time.perf_counter()
    int8.publish(weights)
    assert time.perf_counter() - start < 0.5


@pytest.mark.parametrize("change", ["renamed", "reshaped", "not finite", "too large"])
def test_weights_that_cannot_be_used_are_refused_and_the_old_ones_stay(exported, int8, change):
    variant, _ = exported
    before = as_it_was(int8, variant, seed=0)
    weights = weights_of(make_network(variant, seed=1))
    name = f"{BLOCKS}0.first.conv.bias"
    values = weights.pop(name)
    if change == "too large":
        weights = {one: np.float32(1e30) * array for one, array in (*weights.items(), (name, values))}
    elif change == "not finite":
        weights[name] = np.full_like(values, np.nan)
    else:
        weights["other" if change == "renamed" else name] = values[:-1]
    error, message = (FloatingPointError, "not finite") if change == "too large" else (ValueError, name)
    with pytest.raises(error, match=message):
        int8.publish(weights)
    for mine, right in zip(int8(*random_positions(variant, seed=3)), before, strict=True):
        np.testing.assert_array_equal(mine, right)


def test_a_channel_of_nothing_but_a_bias_keeps_it(exported, int8):
    variant, graph = exported
    weights = weights_of(make_network(variant, seed=0))
    for part, value in (("weight", 0), ("bias", 3)):
        weights[f"{BLOCKS}0.second.conv.{part}"][:4] = value
    int8.publish(weights)
    single = OnnxEvaluator(graph)
    single.publish(weights)
    inputs = random_positions(variant, seed=2)
    np.testing.assert_allclose(int8(*inputs)[1], single(*inputs)[1], atol=10 * VALUE_BOUND)


def test_holes_stay_exactly_zero(exported):
    variant, graph = exported
    observations, legal = random_positions(variant, seed=2)
    model = quantise(onnx.load_from_string(graph), random_positions(variant, seed=1))
    heads = next(node for node in model.graph.node if "folded.value.reduce.conv.weight" in node.input)
    del model.graph.output[:]
    model.graph.output.append(onnx.helper.make_tensor_value_info(heads.input[0], onnx.TensorProto.FLOAT, None))
    (planes,) = open_session(model, 1).run(None, {"observations": observations, "legal_actions": legal})
    on_board = (observations[0, -1] == 1)[None, None]
    assert (variant == "gardner") == bool(on_board.all())
    assert not planes[~np.broadcast_to(on_board, planes.shape)].any()
    assert planes.any()


def test_a_network_without_such_blocks_is_refused(exported):
    variant, graph = exported
    own = graph.replace(BLOCKS.encode(), b"folded.towers.")
    assert OnnxEvaluator(own)(*random_positions(variant, seed=2))
    with pytest.raises(ValueError, match=r"no residual blocks as those of network\.kind 'resnet'"):
        Int8Evaluator(own, calibration=random_positions(variant, seed=1))


def test_the_precision_is_chosen_by_name(exported):
    variant, graph = exported
    network, calibration = make_network(variant, seed=1), random_positions(variant, seed=1)
    made = make_evaluator(network, device="cpu", graph=graph, precision="int8", calibration=calibration)
    assert isinstance(made, Int8Evaluator)
    assert_near(made, network, random_positions(variant, seed=2))
    assert isinstance(make_evaluator(network, device="cpu", graph=graph, calibration=calibration), OnnxEvaluator)
    with pytest.raises(ValueError, match="int8' is for ONNX Runtime"):
        make_evaluator(network, backend="torch", graph=graph, precision="int8", calibration=calibration)
    with pytest.raises(ValueError, match="needs a calibration"):
        make_evaluator(network, graph=graph, precision="int8")
