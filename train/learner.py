"""The learner: AdamW with warm-up, decay and clipping, averaged weights that play, and a guard against broken numbers.

What plays is a running mean of snapshots of the learning weights, one per training phase (as in KataGo; Izmailov et
al. 2018). A step whose loss or gradient is not finite changes nothing. Several in a row take learning back to where
its phase began; if that was so in the phase before, or happens again, the run stops with the cause.
"""

from __future__ import annotations

import copy
import ctypes
import math
import sys
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from models.checkpoint import TrainingTensors
from models.network import PolicyValueNetwork
from train.losses import AUXILIARY_HEADS, compute_losses, mean_losses, on_device

if TYPE_CHECKING:
    from train.config_sections import LearnerConfig
    from train.replay import Batch

MAX_SKIPPED_IN_A_ROW = 5
"""So many steps in a row that are not finite take learning back to the start of its phase."""
STATISTICS_BATCHES = 2
"""So many batches re-estimate the normalisation statistics of averaged weights."""
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Numbers of glibc's `mallopt` (malloc.h)."""
LARGEST_KEPT_BLOCK = 2**25
"""Bytes; the most that every version of glibc allows."""


class NonFiniteLossError(FloatingPointError):
    """Training broke down: losses or gradients are not finite, and going back to the phase's start did not help."""


def learning_rate(cfg: LearnerConfig, steps: int, share_of_run: float) -> float:
    """Return AdamW's step size: warm-up by steps times decay by the share of the run that is done.

    Args:
        cfg: peak, warm-up and decay.
        steps: steps taken before this one.
        share_of_run: in [0, 1].
    """
    warmth = min(1.0, (steps + 1) / max(1, cfg.warmup_steps))
    gone = {"none": 0.0, "linear": share_of_run, "cosine": (1 - math.cos(math.pi * share_of_run)) / 2}[cfg.decay]
    return cfg.learning_rate * warmth * (1 - gone * (1 - cfg.final_rate_share))


def pick_device(name: str) -> str:
    """Return the torch device that `learner.device` means here.

    Raises:
        ValueError: a GPU is asked for and PyTorch finds none.
    """
    if name == "cuda" and not torch.cuda.is_available():
        raise ValueError("learner.device is cuda, but PyTorch finds no GPU: expected one, or cpu or auto")
    return name if name != "auto" else "cuda" if torch.cuda.is_available() else "cpu"


def reduced_precision(cfg: LearnerConfig, device: str) -> torch.dtype | None:
    """Return the type in which a network trains where that is safe; None is float32 throughout."""
    if not cfg.mixed_precision or not device.startswith("cuda"):
        return None
    return torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float16


def keep_freed_memory() -> None:
    """Have the C library keep the memory of freed tensors for the next step.

    glibc gives large blocks back to the system, and fetching them anew, page by page, took a sixth of a step's time.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:  # other C libraries have other rules
        mallopt(M_MMAP_THRESHOLD, LARGEST_KEPT_BLOCK)
        mallopt(M_TRIM_THRESHOLD, 2**31 - 1)


def estimate_statistics(network: PolicyValueNetwork, batches: Iterable[Batch]) -> None:
    """Set a network's normalisation statistics to what its own weights see; leaves it in evaluation mode."""
    norms = [module for module in network.modules() if isinstance(module, _BatchNorm)]
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # the plain mean over batches
    network.train()
    device = network.gather_index.device
    with torch.no_grad():
        for batch in batches:
            network(on_device(batch.observations, device), on_device(batch.legal_actions, device))
    network.eval()
    for norm, momentum in zip(norms, momenta):
        norm.momentum = momentum


class Learner:
    """Trains one network.

    Attributes:
        network: the learning weights; owned and changed by the learner.
        playing_network: the averaged weights, in evaluation mode; before the first snapshot the initial ones.
        steps: training steps taken, skipped ones not counted.
        snapshots: snapshots averaged so far.
        skipped_steps: steps that were not finite.
        rollbacks: times that learning went back to the start of its phase.
    """

    def __init__(self, network: PolicyValueNetwork, cfg: LearnerConfig, *, device: str | None = None) -> None:
        """Take over a network.

        Args:
            network: moved to the device and changed from now on.
            cfg: how to learn.
            device: a torch device; None takes that of the config.

        Raises:
            ValueError: see `pick_device`.
        """
        keep_freed_memory()
        device = pick_device(cfg.device) if device is None else device
        self.network = network.to(device)
        self.network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.playing_network = copy.deepcopy(self.network).eval().requires_grad_(False)
        self.steps = self.snapshots = self.skipped_steps = self.rollbacks = 0
        self._skipped_in_a_row = 0
        self._phases_since_rollback = 2
        self._progress = 0.0
        self._recent: deque[Batch] = deque(maxlen=STATISTICS_BATCHES)
        self._phase_start: tuple[TrainingTensors, int] | None = None
        self._cfg = cfg
        decayed = [parameter for parameter in self.network.parameters() if parameter.ndim > 1]
        others = [parameter for parameter in self.network.parameters() if parameter.ndim <= 1]
        groups: list[dict[str, Any]] = [{"params": decayed}, {"params": others, "weight_decay": 0.0}]
        self._optimizer = torch.optim.AdamW(groups, lr=cfg.learning_rate, weight_decay=cfg.weight_decay, fused=True)
        self._precision = reduced_precision(cfg, device)
        # Only float16 needs its losses scaled up so that small gradients do not vanish.
        self._scaler = torch.amp.GradScaler(torch.device(device).type, enabled=self._precision == torch.float16)

    @property
    def metric_names(self) -> tuple[str, ...]:
        """The names of the losses and the norm that `step` returns."""
        heads = [f"{name}_loss" for name in AUXILIARY_HEADS if getattr(self.network.cfg, name)]
        return ("loss", "policy_loss", "policy_kl", "value_loss", "moves_left_loss", *heads, "gradient_norm")

    def set_progress(self, share_of_run: float) -> None:
        """Say how much of the run is done, in [0, 1]; the step size decays by it. Call before each training phase."""
        self._progress = min(max(share_of_run, 0.0), 1.0)

    def step(self, batch: Batch) -> dict[str, float]:
        """Take one training step.

        Args:
            batch: rows to train on.

        Returns:
            Metrics: `loss` and its parts (those of auxiliary heads where the network has them), `policy_kl`
            (policy loss less the entropy of its targets), `gradient_norm` before clipping, `learning_rate`,
            `skipped` (1 if the step changed nothing).

        Raises:
            ValueError: see `compute_losses`.
            NonFiniteLossError: steps are not finite although learning went back; the message names the cause.
        """
        if self._phase_start is None:
            self._phase_start = _copied(self.tensors()), self.steps
        rate = learning_rate(self._cfg, self.steps, self._progress)
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        statistics = {name: buffer.clone() for name, buffer in self.network.named_buffers()}
        metrics = self._backward(batch)
        is_finite = math.isfinite(metrics["loss"]) and math.isfinite(metrics["gradient_norm"])
        if is_finite:
            norm = torch.tensor(metrics["gradient_norm"], device=self.network.gather_index.device)
            clip_grads_with_norm_(self.network.parameters(), self._cfg.clip_norm, norm)
            self._scaler.step(self._optimizer)
            self._recent.append(batch)
            self.steps += 1
            self._skipped_in_a_row = 0
        else:
            self._skip(batch, statistics, metrics)
        self._scaler.update()
        return {**metrics, "learning_rate": rate, "skipped": float(not is_finite)}

    def snapshot(self) -> None:
        """Fold the learning weights into the averaged ones; call once at the end of each training phase.

        Early averages span the newer half of the snapshots, until that is `ema_snapshots`. Normalisation
        statistics are not averaged but estimated anew from the phase's last batches, since averaged weights
        see other activations.
        """
        self.snapshots += 1
        self._phases_since_rollback += 1
        self._phase_start = None
        share = 1 / min((self.snapshots + 1) // 2, self._cfg.ema_snapshots)
        learning = self.network.state_dict()
        with torch.no_grad():
            for name, average in self.playing_network.state_dict().items():
                if average.is_floating_point():
                    average.lerp_(learning[name], share)
                else:
                    average.copy_(learning[name])
        if self._recent:
            estimate_statistics(self.playing_network, self._recent)
            self._recent.clear()

    def held_out_losses(self, batches: Sequence[Batch]) -> dict[str, float]:
        """Return the losses of the weights that play on games that they were not trained on.

        Args:
            batches: rows of held-out games.

        Returns:
            `held_out_policy_loss`, `held_out_policy_kl` (less the entropy of its targets) and `held_out_value_loss`,
            means over rows; those without a row to take them over are missing.
        """
        losses = mean_losses(self.playing_network, batches)
        return {f"held_out_{name}": value for name, value in losses.items()}

    def tensors(self) -> TrainingTensors:
        """Return what a checkpoint keeps; aliases the live tensors."""
        moments = {
            f"{name}.{key}": value
            for name, parameter in self.network.named_parameters()
            for key, value in self._optimizer.state.get(parameter, {}).items()
        }
        return TrainingTensors(self.playing_network.state_dict(), self.network.state_dict(), moments)

    def counters(self) -> dict[str, int | float]:
        """Return what a checkpoint's state keeps beside the tensors, JSON-able."""
        scale = self._scaler.state_dict()
        return {
            "steps": self.steps,
            "snapshots": self.snapshots,
            "skipped_steps": self.skipped_steps,
            "skipped_in_a_row": self._skipped_in_a_row,
            "rollbacks": self.rollbacks,
            "phases_since_rollback": self._phases_since_rollback,
            "loss_scale": scale.get("scale", 1.0),
            "loss_scale_age": scale.get("_growth_tracker", 0),
        }

    def restore(self, tensors: TrainingTensors, counters: Mapping[str, int | float]) -> None:
        """Go on from the end of a training phase of the same network.

        Args:
            tensors: what `tensors` returned; copied.
            counters: what `counters` returned.

        Raises:
            KeyError, RuntimeError: they are of another network.
        """
        self.playing_network.load_state_dict(tensors.model)
        self._restore_learning(tensors)
        counters = {**self.counters(), **counters}  # those of older checkpoints lack some
        self.steps, self.snapshots = int(counters["steps"]), int(counters["snapshots"])
        self.skipped_steps, self.rollbacks = int(counters["skipped_steps"]), int(counters["rollbacks"])
        self._skipped_in_a_row = int(counters["skipped_in_a_row"])
        self._phases_since_rollback = int(counters["phases_since_rollback"])
        self._phase_start = None
        self._recent.clear()
        if self._scaler.is_enabled():
            scale = {"scale": counters["loss_scale"], "_growth_tracker": int(counters["loss_scale_age"])}
            self._scaler.load_state_dict({**self._scaler.state_dict(), **scale})

    def _backward(self, batch: Batch) -> dict[str, float]:
        """Compute losses and gradients, not clipped; return them as numbers."""
        self.network.train()
        self._optimizer.zero_grad(set_to_none=True)
        losses = compute_losses(self.network, batch, autocast=self._precision)
        loss = losses.total(self._cfg)
        self._scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
        self._scaler.unscale_(self._optimizer)
        norm = get_total_norm([part.grad for part in self.network.parameters() if part.grad is not None])
        return _as_floats({"loss": loss, **losses.named(), "gradient_norm": norm})

    def _restore_learning(self, tensors: TrainingTensors) -> None:
        """Copy learning weights and moments."""
        self.network.load_state_dict(tensors.learner)
        moments: dict[str, dict[str, Tensor]] = {}
        for key, value in tensors.optimizer.items():
            name, _, kind = key.rpartition(".")
            moments.setdefault(name, {})[kind] = value
        parameters = dict(self.network.named_parameters())
        self._optimizer.state.clear()
        for name, values in moments.items():
            own = parameters[name]
            self._optimizer.state[own] = {
                kind: value.to(own.device, copy=True) if value.ndim == 0 else torch.empty_like(own).copy_(value)
                for kind, value in values.items()
            }

    def _skip(self, batch: Batch, statistics: Mapping[str, Tensor], metrics: Mapping[str, float]) -> None:
        """Undo a step that is not finite: put the normalisation statistics back; the rest is untouched.

        After several in a row go back to the start of the phase, or raise NonFiniteLossError.
        """
        for name, buffer in self.network.named_buffers():
            buffer.copy_(statistics[name])
        self.skipped_steps += 1
        if math.isfinite(metrics["loss"]) and self._scaler.get_scale() > 1:
            return  # the scaler found the largest scale that float16 bears
        self._skipped_in_a_row += 1
        if self._skipped_in_a_row < MAX_SKIPPED_IN_A_ROW:
            return
        if self._phases_since_rollback < 2:
            raise NonFiniteLossError(self._cause(batch, metrics))
        assert self._phase_start is not None
        tensors, self.steps = self._phase_start
        self._restore_learning(tensors)
        self._recent.clear()
        self.rollbacks += 1
        self._skipped_in_a_row = self._phases_since_rollback = 0

    def _cause(self, batch: Batch, metrics: Mapping[str, float]) -> str:
        """Say which inputs, losses, weights and gradients are not finite."""
        arrays = {field.name: getattr(batch, field.name) for field in fields(batch) if field.name != "moves_left"}
        parameters = dict(self.network.named_parameters())
        parts: dict[str, list[str]] = {
            "inputs": [name for name, array in arrays.items() if array is not None and not np.isfinite(array).all()],
            "losses": [name for name, value in metrics.items() if not math.isfinite(value)],
            "weights": [name for name, value in parameters.items() if not torch.isfinite(value).all()],
            "gradients": [
                name for name, value in parameters.items() if value.grad is not None and not value.grad.isfinite().all()
            ],
        }
        found = "; ".join(f"{part}: {', '.join(names[:5])}" for part, names in parts.items() if names)
        return (
            f"{self._skipped_in_a_row} training steps in a row were not finite after step {self.steps}, although "
            f"learning had gone back to the start of its phase; not finite are {found}"
        )


def _copied(tensors: TrainingTensors) -> TrainingTensors:
    """Return copies of the tensors that learn; those that play are left out."""
    copies = ({name: tensor.clone() for name, tensor in part.items()} for part in (tensors.learner, tensors.optimizer))
    return TrainingTensors({}, *copies)


def _as_floats(named: Mapping[str, Tensor]) -> dict[str, float]:
    """Fetch scalars from the device at once."""
    fetched: list[float] = torch.stack([value.detach() for value in named.values()]).tolist()
    return dict(zip(named, fetched))
