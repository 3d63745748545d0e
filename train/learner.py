"""The learner: AdamW on a masked policy loss, a win-draw-loss loss, a small moves-left loss and auxiliary losses.

Dims: N rows of a batch, M legal actions of a row, T piece types, H x W the grid.

What plays are averaged weights: a running mean of snapshots of the learning weights, one per training phase
(as in KataGo; Izmailov et al. 2018). A step whose loss or gradient is not finite changes nothing; several
in a row stop the run with their cause.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, log_softmax, smooth_l1_loss
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from models.checkpoint import TrainingTensors
from models.layers import MOVES_LEFT_SCALE
from models.network import NetworkOutput, PolicyValueNetwork
from train.replay import HOLE

if TYPE_CHECKING:
    from train.config_sections import LearnerConfig
    from train.replay import Batch

MAX_SKIPPED_IN_A_ROW = 5
"""So many steps in a row that are not finite stop the run."""
STATISTICS_BATCHES = 4
"""So many batches re-estimate the normalisation statistics of averaged weights."""
MASKED_LOGIT = -1e9
"""Stands for minus infinity without making 0 * inf; its exponential is exactly 0."""
AUXILIARY_HEADS = ("soft_policy", "future_pieces")
"""Fields of `NetworkConfig` that ask for a head which only trains."""
SOFT_POLICY_POWER = 0.25
"""The soft policy is the policy target to this power, as in KataGo (KataGoMethods.md, T = 4)."""


class NonFiniteLossError(FloatingPointError):
    """Training broke down: several steps in a row had a loss or gradient that is not finite."""


@dataclass(frozen=True)
class Losses:
    """Losses of a batch, scalar tensors.

    Attributes:
        policy: cross-entropy over legal actions, mean over rows with a policy (0 if there is none).
        policy_entropy: entropy of the policy targets, the least that `policy` can be.
        value: cross-entropy over win, draw and loss, mean over rows.
        moves_left: smooth L1 in units of 100 plies, mean over rows whose end is known (0 if there is none).
        soft_policy: as `policy`, for the soft policy; None without that head.
        future_pieces: cross-entropy over what stands on a square, mean over all squares with a target (0 if there is
            none); None without that head.
    """

    policy: Tensor
    policy_entropy: Tensor
    value: Tensor
    moves_left: Tensor
    soft_policy: Tensor | None = None
    future_pieces: Tensor | None = None

    def total(self, cfg: LearnerConfig) -> Tensor:
        """Return the weighted sum that training lowers; what has no weight is left out, whatever it is."""
        loss = self.policy + self.value
        for weight, part in (
            (cfg.moves_left_weight, self.moves_left),
            (cfg.soft_policy_weight, self.soft_policy),
            (cfg.future_pieces_weight, self.future_pieces),
        ):
            if part is not None and weight > 0:
                loss = loss + weight * part
        return loss

    def named(self) -> dict[str, Tensor]:
        """Return what is reported of the losses that there are."""
        named = {
            "policy_loss": self.policy,
            "policy_kl": self.policy - self.policy_entropy,
            "value_loss": self.value,
            "moves_left_loss": self.moves_left,
            "soft_policy_loss": self.soft_policy,
            "future_pieces_loss": self.future_pieces,
        }
        return {name: value for name, value in named.items() if value is not None}


def soften(policy_target: Tensor) -> Tensor:
    """Return policy targets [N, M] to the power `SOFT_POLICY_POWER`, each row summing to 1 again, or all zero."""
    softer = policy_target**SOFT_POLICY_POWER
    return softer / softer.sum(dim=1, keepdim=True).clamp(min=torch.finfo(softer.dtype).tiny)


def compute_losses(network: PolicyValueNetwork, batch: Batch) -> Losses:
    """Run a network on a batch; padded entries, illegal actions and holes of the board get no gradient.

    Args:
        network: in the mode it is in.
        batch: moved to the network's device.

    Raises:
        ValueError: the network's config asks for an auxiliary head that the network or the batch does not serve.
    """
    device = network.gather_index.device
    legal = torch.from_numpy(batch.legal_actions).to(device)
    target = torch.from_numpy(batch.policy_target).to(device)
    has_policy = torch.from_numpy(batch.has_policy).to(device)
    wdl_target = torch.from_numpy(batch.wdl_target).to(device)
    plies = torch.from_numpy(batch.moves_left).to(device)
    output: NetworkOutput = network(torch.from_numpy(batch.observations).to(device), legal)
    policy_rows = has_policy.sum().clamp(min=1)
    known = torch.isfinite(plies)
    left, known_left = output.moves_left / MOVES_LEFT_SCALE, torch.nan_to_num(plies) / MOVES_LEFT_SCALE
    error = smooth_l1_loss(left, known_left, reduction="none")

    def policy_loss(logits: Tensor, target: Tensor) -> Tensor:
        log_policy = log_softmax(logits.masked_fill(legal < 0, MASKED_LOGIT), dim=1)
        return -((target * log_policy).sum(dim=1) * has_policy).sum() / policy_rows

    soft = _head(network, "soft_policy", output.soft_policy_logits)
    return Losses(
        policy=policy_loss(output.policy_logits, target),
        policy_entropy=-(torch.xlogy(target, target).sum(dim=1) * has_policy).sum() / policy_rows,
        value=-(wdl_target * log_softmax(output.wdl_logits, dim=1)).sum(dim=1).mean(),
        moves_left=(error * known).sum() / known.sum().clamp(min=1),
        soft_policy=None if soft is None else policy_loss(soft, soften(target)),
        future_pieces=_future_loss(_head(network, "future_pieces", output.future_logits), batch),
    )


def _head(network: PolicyValueNetwork, name: str, logits: Tensor | None) -> Tensor | None:
    """Return an auxiliary head's logits where the config asks for them, else None."""
    if not getattr(network.cfg, name):
        return None
    if logits is None:
        raise ValueError(f"network.{name} is set, but networks of the kind '{network.cfg.kind}' have no such head")
    return logits


def _future_loss(logits: Tensor | None, batch: Batch) -> Tensor | None:
    """Return the loss of piece maps [N, 2T + 1, H, W], None without them."""
    if logits is None:
        return None
    if batch.future_pieces is None:
        raise ValueError("network.future_pieces is set, but the batch holds no future boards")
    target = torch.from_numpy(batch.future_pieces).to(logits.device)
    return cross_entropy(logits, target, ignore_index=HOLE, reduction="sum") / (target != HOLE).sum().clamp(min=1)


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
            network(*(torch.from_numpy(part).to(device) for part in (batch.observations, batch.legal_actions)))
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
    """

    def __init__(self, network: PolicyValueNetwork, cfg: LearnerConfig, *, device: str = "cpu") -> None:
        """Take over a network.

        Args:
            network: moved to the device and changed from now on.
            cfg: how to learn.
            device: a torch device.
        """
        self.network = network.to(device)
        self.network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.playing_network = copy.deepcopy(self.network).eval().requires_grad_(False)
        self.steps = self.snapshots = self.skipped_steps = 0
        self._skipped_in_a_row = 0
        self._recent: deque[Batch] = deque(maxlen=STATISTICS_BATCHES)
        self._cfg = cfg
        decayed = [parameter for parameter in self.network.parameters() if parameter.ndim > 1]
        others = [parameter for parameter in self.network.parameters() if parameter.ndim <= 1]
        groups: list[dict[str, Any]] = [{"params": decayed}, {"params": others, "weight_decay": 0.0}]
        self._optimizer = torch.optim.AdamW(groups, lr=cfg.learning_rate, weight_decay=cfg.weight_decay, fused=True)

    @property
    def metric_names(self) -> tuple[str, ...]:
        """The names of the losses and the norm that `step` returns."""
        heads = [f"{name}_loss" for name in AUXILIARY_HEADS if getattr(self.network.cfg, name)]
        return ("loss", "policy_loss", "policy_kl", "value_loss", "moves_left_loss", *heads, "gradient_norm")

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
            NonFiniteLossError: several steps in a row were not finite; the message names the cause.
        """
        rate = self._cfg.learning_rate * min(1.0, (self.steps + 1) / max(1, self._cfg.warmup_steps))
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        statistics = {name: buffer.clone() for name, buffer in self.network.named_buffers()}
        self.network.train()
        self._optimizer.zero_grad(set_to_none=True)
        losses = compute_losses(self.network, batch)
        loss = losses.total(self._cfg)
        loss.backward()  # type: ignore[no-untyped-call]
        norm = get_total_norm([part.grad for part in self.network.parameters() if part.grad is not None])
        metrics = _as_floats({"loss": loss, **losses.named(), "gradient_norm": norm})
        is_finite = bool(torch.isfinite(loss) and torch.isfinite(norm))
        if is_finite:
            clip_grads_with_norm_(self.network.parameters(), self._cfg.clip_norm, norm)
            self._optimizer.step()
            self._recent.append(batch)
            self.steps += 1
            self._skipped_in_a_row = 0
        else:
            self._skip(statistics, metrics)
        return {**metrics, "learning_rate": rate, "skipped": float(not is_finite)}

    def snapshot(self) -> None:
        """Fold the learning weights into the averaged ones; call once at the end of each training phase.

        Early averages span the newer half of the snapshots, until that is `ema_snapshots`. Normalisation
        statistics are not averaged but estimated anew from the phase's last batches, since averaged weights
        see other activations.
        """
        self.snapshots += 1
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

    def tensors(self) -> TrainingTensors:
        """Return what a checkpoint keeps; aliases the live tensors."""
        moments = {
            f"{name}.{key}": value
            for name, parameter in self.network.named_parameters()
            for key, value in self._optimizer.state.get(parameter, {}).items()
        }
        return TrainingTensors(self.playing_network.state_dict(), self.network.state_dict(), moments)

    def counters(self) -> dict[str, int]:
        """Return what a checkpoint's state keeps beside the tensors."""
        return {"steps": self.steps, "snapshots": self.snapshots, "skipped_steps": self.skipped_steps}

    def restore(self, tensors: TrainingTensors, counters: Mapping[str, int]) -> None:
        """Go on from a checkpoint of the same network.

        Args:
            tensors: what `tensors` returned; copied.
            counters: what `counters` returned.

        Raises:
            KeyError, RuntimeError: they are of another network.
        """
        self.network.load_state_dict(tensors.learner)
        self.playing_network.load_state_dict(tensors.model)
        moments: dict[str, dict[str, Tensor]] = {}
        for key, value in tensors.optimizer.items():
            name, _, kind = key.rpartition(".")
            moments.setdefault(name, {})[kind] = value
        parameters = dict(self.network.named_parameters())
        for name, values in moments.items():
            own = parameters[name]
            self._optimizer.state[own] = {
                kind: value.clone() if value.ndim == 0 else torch.empty_like(own).copy_(value)
                for kind, value in values.items()
            }
        self.steps, self.snapshots = counters["steps"], counters["snapshots"]
        self.skipped_steps = counters["skipped_steps"]

    def _skip(self, statistics: Mapping[str, Tensor], metrics: Mapping[str, float]) -> None:
        """Undo a step that is not finite: put the normalisation statistics back; the rest is untouched."""
        for name, buffer in self.network.named_buffers():
            buffer.copy_(statistics[name])
        self.skipped_steps += 1
        self._skipped_in_a_row += 1
        if self._skipped_in_a_row < MAX_SKIPPED_IN_A_ROW:
            return
        gradients = [
            name
            for name, parameter in self.network.named_parameters()
            if parameter.grad is not None and not torch.isfinite(parameter.grad).all()
        ]
        raise NonFiniteLossError(
            f"{self._skipped_in_a_row} training steps in a row were not finite after step {self.steps}; "
            f"last losses {dict(metrics)}; gradients not finite: {', '.join(gradients[:5]) or 'none'}"
        )


def _as_floats(named: Mapping[str, Tensor]) -> dict[str, float]:
    """Fetch scalars from the device at once."""
    fetched: list[float] = torch.stack([value.detach() for value in named.values()]).tolist()
    return dict(zip(named, fetched))
