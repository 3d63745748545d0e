"""Evaluators: one seam between search and whatever scores positions.

Dims: N batch, C observation planes, H x W the grid, M legal actions of a row (padded with -1).

Importing this module imports no torch: a self-play worker that evaluates by ONNX Runtime receives a graph and
weights, and stays small. The graph is exported once per architecture, of the folded network. It lists all of
`weights_of` in its metadata; publishing replaces those that are its initialisers, without a new trace.
"""

from __future__ import annotations

import copy
import io
import json
import logging
import traceback
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch

    from models.network import PolicyValueNetwork

Weights = Mapping[str, NDArray[np.float32]]
"""The floating-point tensors of a folded network by name, as `weights_of` returns them."""
Shapes = dict[str, tuple[int, ...]]
Calibration = tuple[NDArray[np.float32], NDArray[np.int32]]
"""Positions that int8 inference measures its ranges on: observations [N, C, H, W] and legal actions [N, M]."""
Backend = Literal["auto", "onnx", "torch"]
Precision = Literal["float32", "int8"]
PARITY_TOLERANCE = 1e-4
"""How far outputs of an exported graph may be from the network's; where these exceed 1, relative to the largest."""
PARITY_SHAPES = ((1, 5), (2, 3), (17, 40))
"""Batch sizes N and widths M at which an export is checked."""

_INPUTS = ["observations", "legal_actions"]
_OUTPUTS = ["prior_logits", "wdl"]
_WEIGHTS = "weights"
"""Key of the graph's metadata: JSON of the shapes of `weights_of` by name."""


class ExportError(RuntimeError):
    """A network cannot be exported, or its graph does not say what it says."""


class Evaluator(Protocol):
    """Scores a batch of positions for the players to move."""

    def __call__(
        self, observations: NDArray[np.float32], legal_actions: NDArray[np.int32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Evaluate; consumes no rng and keeps no reference to its arguments.

        Args:
            observations: float32 [N, C, H, W], seen by the player to move.
            legal_actions: int32 [N, M], padded with -1.

        Returns:
            Prior logits float32 [N, M], whatever in the padded entries, and WDL probabilities float32 [N, 3]:
            win, draw, loss of the player to move.
        """
        ...


class NetworkEvaluator(Evaluator, Protocol):
    """An evaluator whose weights can be replaced."""

    def publish(self, weights: Weights) -> None:
        """Use these weights from now on.

        Args:
            weights: what `weights_of` returns for a network of the same architecture.

        Raises:
            ValueError: a name or shape differs, or a weight is not finite; the old weights stay in use.
        """
        ...


class UniformEvaluator:
    """Knows nothing: equal priors, equal chances of the three results."""

    def __call__(
        self, observations: NDArray[np.float32], legal_actions: NDArray[np.int32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return zero logits [N, M] and thirds [N, 3]."""
        wdl = np.full((len(observations), 3), 1 / 3, dtype=np.float32)
        return np.zeros(legal_actions.shape, dtype=np.float32), wdl


class OnnxEvaluator:
    """ONNX Runtime on a CPU."""

    def __init__(self, graph: bytes, *, threads: int = 1) -> None:
        """Open a session.

        Args:
            graph: what `export_graph` returns.
            threads: threads of one evaluation; one-thread workers side by side beat one worker with several.
        """
        self._threads = threads
        self._graph = PublishedGraph(graph)
        self._session = open_session(self._graph.model, threads)

    def __call__(
        self, observations: NDArray[np.float32], legal_actions: NDArray[np.int32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Evaluate, see `Evaluator`."""
        prior_logits, wdl = self._session.run(_OUTPUTS, {"observations": observations, "legal_actions": legal_actions})
        return prior_logits, wdl

    def publish(self, weights: Weights) -> None:
        """Replace the weights, see `NetworkEvaluator`."""
        self._graph.publish(weights)
        self._session = open_session(self._graph.model, self._threads)


class PublishedGraph:
    """An exported graph whose weights can be replaced.

    Attributes:
        model: the graph with its weights as they are now.
    """

    def __init__(self, graph: bytes) -> None:
        """Read what `export_graph` returns."""
        self._graph = graph
        self.model = onnx.load_from_string(graph)
        shapes = next(entry.value for entry in self.model.metadata_props if entry.key == _WEIGHTS)
        self._shapes: Shapes = {name: tuple(shape) for name, shape in json.loads(shapes).items()}

    def publish(self, weights: Weights) -> None:
        """Replace `model` by one with these weights, see `NetworkEvaluator`."""
        _check_weights(self._shapes, weights)
        model = onnx.load_from_string(self._graph)  # a message would keep the memory of all weights that it ever had
        for tensor in (one for one in model.graph.initializer if one.name in self._shapes):
            tensor.raw_data = np.ascontiguousarray(weights[tensor.name], dtype="<f4").tobytes()
        self.model = model


def open_session(model: onnx.ModelProto, threads: int) -> onnxruntime.InferenceSession:
    """Open a session on a CPU.

    Args:
        model: may be changed afterwards.
        threads: threads of one evaluation.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


class TorchEvaluator:
    """PyTorch: half precision on a GPU, single precision on a CPU."""

    def __init__(self, network: PolicyValueNetwork, *, device: str = "cpu", dtype: torch.dtype | None = None) -> None:
        """Copy and fold a network; later changes to it need `publish`.

        Args:
            network: any mode, any device; left alone.
            device: a torch device.
            dtype: of weights and activations; None is float16 on a GPU, float32 elsewhere. Outputs are float32.
        """
        import torch

        from models.network import InferenceNetwork

        self._torch = torch
        self._device = torch.device(device)
        self._dtype = dtype or (torch.float16 if self._device.type == "cuda" else torch.float32)
        self._network = InferenceNetwork(network).to(self._device, self._dtype)
        self._network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def __call__(
        self, observations: NDArray[np.float32], legal_actions: NDArray[np.int32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Evaluate, see `Evaluator`.

        Raises:
            FloatingPointError: an output is not finite, padded entries aside.
        """
        torch = self._torch
        with torch.inference_mode():
            # To the device as they are: a CPU would convert and reorder more slowly than the wider copy takes.
            planes, actions = (self._to_device(values) for values in (observations, legal_actions))
            planes = planes.to(self._dtype, memory_format=torch.channels_last)
            prior_logits, wdl = (output.cpu().numpy() for output in self._network(planes, actions))
        if not (np.isfinite(wdl).all() and np.isfinite(prior_logits[legal_actions >= 0]).all()):
            raise FloatingPointError(f"the network's outputs are not finite in {self._dtype}")
        return prior_logits, wdl

    def publish(self, weights: Weights) -> None:
        """Replace the weights, see `NetworkEvaluator`."""
        state = self._network.state_dict()
        own = {name: tensor for name, tensor in state.items() if tensor.is_floating_point()}
        _check_weights({name: tuple(tensor.shape) for name, tensor in own.items()}, weights)
        for name, tensor in own.items():
            tensor.copy_(self._torch.from_numpy(np.asarray(weights[name])))

    def _to_device(self, values: NDArray[Any]) -> torch.Tensor:
        """Copy an array, on the way to a GPU through pinned memory and without waiting for it."""
        tensor = self._torch.from_numpy(values)
        if self._device.type == "cuda":
            tensor = tensor.pin_memory()
        return tensor.to(self._device, non_blocking=True)


def weights_of(network: PolicyValueNetwork) -> dict[str, NDArray[np.float32]]:
    """Return copies of the floating-point tensors of a network, folded for inference, by name."""
    from models.network import InferenceNetwork

    state = InferenceNetwork(network).state_dict()
    return {name: tensor.numpy() for name, tensor in state.items() if tensor.is_floating_point()}


def export_graph(network: PolicyValueNetwork) -> bytes:
    """Export a network for `OnnxEvaluator`; takes seconds, needed once per architecture.

    The graph is compared with the network, with other weights published into it, so that one which lost a weight,
    or has a batch size built in, does not get away.

    Args:
        network: any mode, any device; left alone.

    Returns:
        A serialised ONNX model with free N and M.

    Raises:
        ExportError: there is no graph of it, or that cannot be run, or its outputs differ from the network's.
        FloatingPointError, ValueError: an output or a weight of the network is not finite.
    """
    model = _trace(network)
    shapes = {name: array.shape for name, array in weights_of(network).items()}
    model.metadata_props.add(key=_WEIGHTS, value=json.dumps(shapes))
    graph: bytes = model.SerializeToString()
    _check_parity(graph, network)
    return graph


def make_evaluator(  # noqa: PLR0913 - the one place where an evaluator is chosen
    network: PolicyValueNetwork,
    *,
    backend: Backend = "auto",
    device: str | None = None,
    threads: int = 1,
    graph: bytes | None = None,
    precision: Precision = "float32",
    calibration: Calibration | None = None,
) -> NetworkEvaluator:
    """Choose an evaluator for a network.

    Args:
        network: left alone; later changes need `publish`.
        backend: "auto" is ONNX Runtime on a CPU, torch elsewhere. On a GPU, networks of the kind "resnet" are
            evaluated in half precision, a user's own in single.
        device: a torch device; None is the GPU if there is one and the rest allows it, else the CPU.
        threads: threads of one evaluation, ONNX Runtime only.
        graph: an earlier `export_graph` of the same architecture, which saves exporting again.
        precision: "int8" is ONNX Runtime with the residual blocks in 8 bits.
        calibration: positions that "int8" needs, see `models.quantised`.

    Raises:
        ValueError: the backend is unknown or cannot use the device; "int8" without calibration or residual blocks.
    """
    import torch

    if backend not in get_args(Backend):
        raise ValueError(f"backend is '{backend}', expected one of {', '.join(get_args(Backend))}")
    if precision == "int8" and (backend == "torch" or calibration is None):
        raise ValueError("precision 'int8' is for ONNX Runtime (backend 'onnx' or 'auto') and needs a calibration")
    uses_onnx = backend == "onnx" or precision == "int8"
    if device is None:
        device = "cuda" if torch.cuda.is_available() and not uses_onnx else "cpu"
    on_cpu = torch.device(device).type == "cpu"
    if uses_onnx and not on_cpu:
        raise ValueError(f"ONNX Runtime evaluates on a CPU: expected device 'cpu', got '{device}'")
    if backend == "torch" or not on_cpu:
        return TorchEvaluator(network, device=device, dtype=None if network.cfg.kind == "resnet" else torch.float32)
    made = graph or export_graph(network)
    evaluator = _onnx_evaluator(made, threads, calibration if precision == "int8" else None)
    if graph is not None:
        evaluator.publish(weights_of(network))
    return evaluator


def _onnx_evaluator(graph: bytes, threads: int, calibration: Calibration | None) -> NetworkEvaluator:
    """Return an evaluator in int8 where there is a calibration, else in single precision."""
    if calibration is None:
        return OnnxEvaluator(graph, threads=threads)
    from models.quantised import Int8Evaluator  # imports this module

    return Int8Evaluator(graph, calibration=calibration, threads=threads)


def _check_weights(expected: Shapes, weights: Weights) -> None:
    """Raise ValueError unless names and shapes agree and all values are finite."""
    if expected.keys() != weights.keys():
        names = ", ".join(sorted(expected.keys() ^ weights.keys()))
        raise ValueError(f"weights are of another architecture: {names} on one side only")
    for name, shape in expected.items():
        if weights[name].shape != shape:
            found = weights[name].shape
            raise ValueError(f"weights are of another architecture: {name} is {found}, expected {shape}")
        if not np.isfinite(weights[name]).all():
            raise ValueError(f"weights are not finite: {name}")


def _trace(network: PolicyValueNetwork) -> onnx.ModelProto:
    """Return the graph of a network, or raise ExportError."""
    import torch

    from models.network import InferenceNetwork

    batch, moves = torch.export.Dim("batch"), torch.export.Dim("moves")
    examples = (torch.zeros(2, *network.spec.observation_shape), torch.zeros(2, 3, dtype=torch.int32))
    try:
        with _quiet_exporter():
            # The exporter's optimiser merges equal initialisers (fresh biases), which publishing needs apart.
            program = torch.onnx.export(
                InferenceNetwork(network),
                examples,
                input_names=_INPUTS,
                output_names=_OUTPUTS,
                dynamic_shapes={"observations": {0: batch}, "legal_actions": {0: batch, 1: moves}},
                optimize=False,
                verbose=False,
            )
    except Exception as error:
        raise ExportError(f"network.kind '{network.cfg.kind}' has no ONNX graph: {_cause(error)}") from error
    assert program is not None
    return program.model_proto


def _cause(error: BaseException) -> str:
    """Return, in a line, where and with what an error began that the exporter wraps in others."""
    while error.__cause__ is not None:
        error = error.__cause__
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "site-packages" not in f.filename]
    place = f"{frames[-1].filename}:{frames[-1].lineno}: " if frames else ""
    return f"{place}{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"


def _check_parity(graph: bytes, network: PolicyValueNetwork) -> None:
    """Raise ExportError unless a graph says what its network says, with the network's weights and with others."""
    from models.network import example_inputs

    evaluator = OnnxEvaluator(graph)
    for one in (network, _disturbed(network)):
        evaluator.publish(weights_of(one))
        torch_evaluator = TorchEvaluator(one)
        for rows, width in PARITY_SHAPES:
            inputs = example_inputs(network.spec, rows, width)
            listed = inputs[1] >= 0
            where = f"network.kind '{network.cfg.kind}', N = {rows}, M = {width}"
            try:
                found = evaluator(*inputs)
            except Exception as error:
                raise ExportError(f"{where}: its ONNX graph does not run: {error}") from error
            for name, mine, right in zip(_OUTPUTS, found, torch_evaluator(*inputs)):
                part = listed if name == _OUTPUTS[0] else ...
                bound = PARITY_TOLERANCE * max(1.0, float(np.abs(right[part]).max()))
                off = float(np.abs(mine[part] - right[part]).max()) if mine.shape == right.shape else np.inf
                if not off <= bound:
                    raise ExportError(f"{where}: its ONNX graph is off by {off:.2g} in {name}, at most {bound:.2g}")


def _disturbed(network: PolicyValueNetwork) -> PolicyValueNetwork:
    """Return a copy with every floating-point tensor changed a little; a variance, as all vectors, grows."""
    import torch

    other = copy.deepcopy(network)
    generator = torch.Generator().manual_seed(0)
    for tensor in other.state_dict().values():
        if tensor.is_floating_point():
            first, second = torch.rand((2, *tensor.shape), generator=generator).to(tensor)
            tensor.mul_(1 + 0.1 * first).add_(0.01 * (second - 0.5 if tensor.ndim > 1 else second))
    return other


@contextmanager
def _quiet_exporter() -> Iterator[None]:
    """Silence the exporter's notes about packages and settings, and its listing of a graph that failed."""
    disabled = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings(), redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)
