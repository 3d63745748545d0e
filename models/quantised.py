"""Int8 inference: the residual blocks of an exported graph in 8 bits, its stem and its heads in single precision.

Dims: N batch, C observation planes, H x W the grid, M legal actions of a row (padded with -1), K output channels.

Activations of the blocks are unsigned bytes with one range each, measured on a fixed set of positions whenever weights
are published; weights are signed bytes with one scale per output channel, biases 32-bit integers. ONNX Runtime reads
QuantizeLinear and DequantizeLinear around an operator as its integer form. Every range holds 0, so that the holes of a
board stay exactly 0. On processors with AVX2 but without VNNI a sum of two products saturates at 16 bits: the same
graph may answer a little differently on another processor.

Sources: Jacob et al. 2018, "Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only
Inference", sections 2 and 3; https://onnxruntime.ai/docs/performance/model-optimizations/quantization.html.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, helper, numpy_helper

from models.evaluator import Calibration, PublishedGraph, Weights, open_session

Range = tuple[float, float]
"""The lowest and the highest value of an activation, 0 included."""
Steps = tuple[list[TensorProto], list[NodeProto]]
"""Constants, and the nodes that use them."""

BLOCKS = "folded.blocks."
"""What the names of the blocks' weights begin with."""
QUANTISED_OPERATORS = frozenset({"Conv", "Add", "Mul"})
ACTIVATION_LEVELS, WEIGHT_LEVELS, BIAS_LEVELS = 2**8 - 1, 2**7 - 1, 2**30
"""Steps from end to end of an activation's range, and from 0 to the largest weight; to a bias at most, which leaves
half of the 32-bit integers to the sum of the products."""
SMALLEST_SCALE = 1e-12
"""Of a channel without weights or bias."""


class Int8Evaluator:
    """ONNX Runtime on a CPU, with the residual blocks in 8 bits; its answers are near those of the float graph."""

    def __init__(self, graph: bytes, *, calibration: Calibration, threads: int = 1) -> None:
        """Quantise a graph and open a session.

        Args:
            graph: what `export_graph` returns, of a network of kind `resnet`.
            calibration: positions like those to come, at least one; kept. The same ones give the same answers.
            threads: threads of one evaluation.

        Raises:
            ValueError: the graph has no residual blocks.
        """
        self._graph, self._calibration, self._threads = PublishedGraph(graph), calibration, threads
        self._session = self._open()

    def __call__(
        self, observations: NDArray[np.float32], legal_actions: NDArray[np.int32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Evaluate, see `Evaluator`."""
        prior_logits, wdl = self._session.run(None, {"observations": observations, "legal_actions": legal_actions})
        return prior_logits, wdl

    def publish(self, weights: Weights) -> None:
        """Replace the weights and measure the ranges anew, see `NetworkEvaluator`."""
        self._graph.publish(weights)
        self._session = self._open()

    def _open(self) -> onnxruntime.InferenceSession:
        return open_session(quantise(self._graph.model, self._calibration), self._threads)


def quantise(model: onnx.ModelProto, calibration: Calibration) -> onnx.ModelProto:
    """Return a model with its residual blocks in 8 bits; the given one is left alone.

    Args:
        model: an exported graph with its weights.
        calibration: positions on which the ranges of activations are measured.

    Raises:
        ValueError: the graph has no residual blocks.
        FloatingPointError: an activation is not finite.
    """
    result = onnx.ModelProto()
    result.CopyFrom(model)
    blocks = _merge_relus(result.graph, _blocks(result.graph))
    names = dict.fromkeys(name for node in blocks for name in (*_activations(node), node.output[0]))
    ranges = _measure(model, list(names), calibration)
    convolutions = [node for node in blocks if node.op_type == "Conv"]
    result.graph.CopyFrom(_in_integers(result.graph, convolutions, ranges))
    return result


def _blocks(graph: onnx.GraphProto) -> list[NodeProto]:
    """Return the nodes from the first convolution of the blocks up to the first one of the heads."""
    places = [place for place, node in enumerate(graph.node) if node.op_type == "Conv"]
    inputs = [graph.node[place].input for place in places]
    is_block = [len(names) == 3 and names[1].startswith(BLOCKS) for names in inputs]
    if True not in is_block:
        raise ValueError("the network has no residual blocks as those of network.kind 'resnet', which int8 needs")
    first = is_block.index(True)
    heads = places[is_block.index(False, first)] if False in is_block[first:] else len(graph.node)
    return list(graph.node[places[first] : heads])


def _merge_relus(graph: onnx.GraphProto, nodes: list[NodeProto]) -> list[NodeProto]:
    """Drop each ReLU behind a quantised operator, in place: a range that begins at 0 does the same.

    Returns:
        The quantised operators among the nodes.
    """
    quantised = [node for node in nodes if node.op_type in QUANTISED_OPERATORS]
    producers = {node.output[0]: node for node in quantised}
    uses = Counter(name for node in graph.node for name in node.input)
    for node in nodes:
        source = node.input[0] if node.op_type == "Relu" else ""
        if source in producers and uses[source] == 1:
            producers[source].output[0] = node.output[0]
            graph.node.remove(node)
    return quantised


def _activations(node: NodeProto) -> list[str]:
    """Return the inputs of a quantised operator that are no weights."""
    return list(node.input[:1] if node.op_type == "Conv" else node.input)


def _measure(model: onnx.ModelProto, names: list[str], calibration: Calibration) -> dict[str, Range]:
    """Return the ranges of tensors of a float model over some positions."""
    measuring = onnx.ModelProto()
    measuring.CopyFrom(model)
    del measuring.graph.output[:]
    for name in names:
        for operator in ("ReduceMin", "ReduceMax"):
            output = f"{name}.{operator}"
            measuring.graph.node.append(helper.make_node(operator, [name], [output], keepdims=0))
            measuring.graph.output.append(helper.make_tensor_value_info(output, TensorProto.FLOAT, []))
    observations, legal_actions = calibration
    session = open_session(measuring, 1)
    ends = session.run(None, {"observations": observations, "legal_actions": legal_actions})
    found = np.array(ends, np.float64).reshape(-1, 2)
    if not np.isfinite(found).all():
        raise FloatingPointError("the network's activations are not finite")
    return {name: (min(0.0, low), max(0.0, high)) for name, (low, high) in zip(names, found.tolist(), strict=True)}


def _in_integers(graph: onnx.GraphProto, convolutions: list[NodeProto], ranges: dict[str, Range]) -> onnx.GraphProto:
    """Return a graph with integers for the weights of convolutions and for the activations that have ranges.

    Args:
        graph: the names of its nodes' inputs are changed in place.
        convolutions: nodes of the graph.
        ranges: by the activation's name.
    """
    weights = {tensor.name: tensor for tensor in graph.initializer}
    steps = []
    for node in convolutions:
        weight, bias = (weights.pop(name) for name in node.input[1:])
        steps.append(_integer_weights(weight, bias, _scale(ranges[node.input[0]])))
    constants = [*weights.values(), *(constant for found, _ in steps for constant in found)]
    nodes = [node for _, found in steps for node in found]
    read_as: dict[str, str] = {}
    for node in graph.node:
        node.input[:] = [read_as.get(name, name) for name in node.input]
        nodes.append(node)
        for name in node.output:
            if name in ranges:
                found, (there, back) = _integer_activation(name, ranges[name])
                constants += found
                nodes += [there, back]
                read_as[name] = back.output[0]
    return helper.make_graph(nodes, graph.name, graph.input, graph.output, constants)


def _scale(span: Range) -> np.float32:
    """Return what one step of an activation is worth."""
    return np.float32((span[1] - span[0]) / ACTIVATION_LEVELS or 1.0)


def _integer_activation(name: str, span: Range) -> Steps:
    """Return the steps from an activation to bytes and back."""
    scale = _scale(span)
    zero = np.uint8(np.clip(np.rint(-span[0] / scale), 0, ACTIVATION_LEVELS))
    constants = _constants(name, scale=scale, zero=zero)
    ends = [constant.name for constant in constants]
    there = helper.make_node("QuantizeLinear", [name, *ends], [f"{name}.bytes"])
    back = helper.make_node("DequantizeLinear", [f"{name}.bytes", *ends], [f"{name}.seen"])
    return constants, [there, back]


def _integer_weights(weight: TensorProto, bias: TensorProto, input_scale: np.float32) -> Steps:
    """Return the steps from integers to a convolution's weight [K, ...] and bias [K], under their own names."""
    kernel, offset = numpy_helper.to_array(weight), numpy_helper.to_array(bias)
    largest = np.abs(kernel).reshape(len(kernel), -1).max(axis=1) / WEIGHT_LEVELS
    scale = np.maximum(np.maximum(largest, np.abs(offset) / (input_scale * BIAS_LEVELS)), SMALLEST_SCALE)
    scale = scale.astype(np.float32)
    by_channel = scale.reshape(-1, *[1] * (kernel.ndim - 1))
    stored = {
        weight.name: (np.rint(kernel / by_channel).astype(np.int8), scale),
        bias.name: (np.rint(offset.astype(np.float64) / (scale * input_scale)).astype(np.int32), scale * input_scale),
    }
    constants, nodes = [], []
    for name, (integers, steps) in stored.items():
        parts = _constants(name, integers=integers, scale=steps, zero=np.zeros(len(steps), integers.dtype))
        nodes.append(helper.make_node("DequantizeLinear", [part.name for part in parts], [name], axis=0))
        constants += parts
    return constants, nodes


def _constants(name: str, **values: NDArray[np.generic] | np.generic) -> list[TensorProto]:
    return [numpy_helper.from_array(np.asarray(value), f"{name}.{part}") for part, value in values.items()]
