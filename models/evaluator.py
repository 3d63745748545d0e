"""Evaluators: one seam between search and whatever scores positions.

Dims: N batch, C observation planes, H x W the grid, M legal actions of a row (padded with -1).

Importing this module imports no torch: a self-play worker that evaluates by ONNX Runtime receives a graph and
weights, and stays small. The graph is exported once per architecture, every normalisation folded into its
convolution. Its initialisers bear the names of `weights_of`; publishing replaces them, without a new trace.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray

if TYPE_CHECKING:
    from models.network import PolicyValueNetwork

Weights = Mapping[str, NDArray[np.float32]]
"""Folded inference weights by name, as `weights_of` returns them."""
Backend = Literal["auto", "onnx", "torch"]

_INPUTS = ["observations", "legal_actions"]
_OUTPUTS = ["prior_logits", "wdl"]
_TRAINING_ONLY = ".moves_left."


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
            ValueError: a name or shape differs; the old weights stay in use.
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
        self._model = onnx.load_from_string(graph)
        self._initialisers = {tensor.name: tensor for tensor in self._model.graph.initializer}
        self._session = self._open()

    def __call__(
        self, observations: NDArray[np.float32], legal_actions: NDArray[np.int32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Evaluate, see `Evaluator`."""
        prior_logits, wdl = self._session.run(_OUTPUTS, {"observations": observations, "legal_actions": legal_actions})
        return prior_logits, wdl

    def publish(self, weights: Weights) -> None:
        """Replace the weights, see `NetworkEvaluator`."""
        expected = {name: tuple(self._initialisers[name].dims) for name in _weight_names(self._initialisers)}
        _check_weights(expected, weights)
        for name, values in weights.items():
            self._initialisers[name].raw_data = np.ascontiguousarray(values, dtype="<f4").tobytes()
        self._session = self._open()

    def _open(self) -> onnxruntime.InferenceSession:
        """Return a session on the model as it is now."""
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self._threads
        options.inter_op_num_threads = 1
        options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        return onnxruntime.InferenceSession(
            self._model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )


class TorchEvaluator:
    """PyTorch: half precision on a GPU, single precision on a CPU."""

    def __init__(self, network: PolicyValueNetwork, *, device: str = "cpu") -> None:
        """Copy and fold a network; later changes to it need `publish`.

        Args:
            network: any mode, any device; left alone.
            device: a torch device.
        """
        import torch

        from models.network import InferenceNetwork

        self._torch = torch
        self._device = torch.device(device)
        self._dtype = torch.float16 if self._device.type == "cuda" else torch.float32
        self._network = InferenceNetwork(network).to(self._device, self._dtype)
        self._network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def __call__(
        self, observations: NDArray[np.float32], legal_actions: NDArray[np.int32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Evaluate, see `Evaluator`."""
        torch = self._torch
        with torch.inference_mode():
            planes = torch.from_numpy(observations).to(self._device, self._dtype, memory_format=torch.channels_last)
            actions = torch.from_numpy(legal_actions).to(self._device)
            prior_logits, wdl = self._network(planes, actions)
            return prior_logits.float().cpu().numpy(), wdl.float().cpu().numpy()

    def publish(self, weights: Weights) -> None:
        """Replace the weights, see `NetworkEvaluator`."""
        own = self._network.state_dict()
        _check_weights({name: tuple(own[name].shape) for name in _weight_names(own)}, weights)
        tensors = {name: self._torch.from_numpy(np.asarray(values)) for name, values in weights.items()}
        self._network.load_state_dict(tensors, strict=False)


def weights_of(network: PolicyValueNetwork) -> dict[str, NDArray[np.float32]]:
    """Return copies of a network's inference weights, normalisation folded, by name."""
    from models.network import InferenceNetwork

    tensors = InferenceNetwork(network).state_dict()
    return {name: tensors[name].numpy() for name in _weight_names(tensors)}


def export_graph(network: PolicyValueNetwork) -> bytes:
    """Export a network for `OnnxEvaluator`; takes seconds, needed once per architecture.

    Args:
        network: any mode, any device; left alone.

    Returns:
        A serialised ONNX model with free N and M, whose initialisers include all of `weights_of`.
    """
    import torch

    from models.network import InferenceNetwork

    batch, moves = torch.export.Dim("batch"), torch.export.Dim("moves")
    examples = (torch.zeros(2, *network.spec.observation_shape), torch.zeros(2, 3, dtype=torch.int32))
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
    assert program is not None
    model = program.model_proto
    exported = {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer}
    _check_weights({name: exported[name] for name in _weight_names(exported)}, weights_of(network))
    graph: bytes = model.SerializeToString()
    return graph


def make_evaluator(
    network: PolicyValueNetwork,
    *,
    backend: Backend = "auto",
    device: str | None = None,
    threads: int = 1,
    graph: bytes | None = None,
) -> NetworkEvaluator:
    """Choose an evaluator for a network.

    Args:
        network: left alone; later changes need `publish`.
        backend: "auto" is torch on a GPU if there is one, else ONNX Runtime.
        device: torch device; None is the GPU if there is one, else the CPU. ONNX Runtime uses the CPU.
        threads: threads of one evaluation, ONNX Runtime only.
        graph: an earlier `export_graph` of the same architecture, which saves exporting again.
    """
    import torch

    if device is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if backend == "torch" or (backend == "auto" and device != "cpu"):
        return TorchEvaluator(network, device=device)
    if graph is None:
        return OnnxEvaluator(export_graph(network), threads=threads)
    evaluator = OnnxEvaluator(graph, threads=threads)
    evaluator.publish(weights_of(network))
    return evaluator


def _weight_names(named: Mapping[str, Any]) -> list[str]:
    """Return the names of weights that evaluation uses: constants and the moves-left head are none."""
    return [name for name in named if name.endswith((".weight", ".bias")) and _TRAINING_ONLY not in name]


def _check_weights(expected: Mapping[str, tuple[int, ...]], weights: Weights) -> None:
    """Raise ValueError unless names and shapes agree."""
    if expected.keys() != weights.keys():
        names = ", ".join(sorted(expected.keys() ^ weights.keys()))
        raise ValueError(f"weights are of another architecture: {names} on one side only")
    for name, shape in expected.items():
        if weights[name].shape != shape:
            found = weights[name].shape
            raise ValueError(f"weights are of another architecture: {name} is {found}, expected {shape}")


@contextmanager
def _quiet_exporter() -> Iterator[None]:
    """Silence the exporter's notes about packages and settings that do not concern us."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
