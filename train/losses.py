"""What the learner lowers: a masked policy loss, a win-draw-loss loss, a moves-left loss and auxiliary losses.

Dims: N rows of a batch, M legal actions of a row, T piece types, H x W the grid.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy, log_softmax, smooth_l1_loss

from models.layers import MOVES_LEFT_SCALE
from models.network import NetworkOutput, PolicyValueNetwork
from train.replay import HOLE

if TYPE_CHECKING:
    from train.config_sections import LearnerConfig
    from train.replay import Batch

MASKED_LOGIT = -1e9
"""Stands for minus infinity without making 0 * inf; its exponential is exactly 0."""
AUXILIARY_HEADS = ("soft_policy", "future_pieces")
"""Fields of `NetworkConfig` that ask for a head which only trains."""
SOFT_POLICY_POWER = 0.25
"""The soft policy is the policy target to this power, as in KataGo (KataGoMethods.md, T = 4)."""


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
        loss = self.policy
        for weight, part in (
            (cfg.value_weight, self.value),
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


def compute_losses(network: PolicyValueNetwork, batch: Batch, *, autocast: torch.dtype | None = None) -> Losses:
    """Run a network on a batch; padded entries, illegal actions and holes of the board get no gradient.

    Args:
        network: in the mode it is in.
        batch: moved to the network's device.
        autocast: precision in which the network runs where that is safe; None is float32. Losses are float32.

    Raises:
        ValueError: the network's config asks for an auxiliary head that the network or the batch does not serve.
    """
    device = network.gather_index.device
    legal, target = on_device(batch.legal_actions, device), on_device(batch.policy_target, device)
    has_policy = on_device(batch.has_policy, device)
    plies = on_device(batch.moves_left, device)
    output = _evaluate(network, on_device(batch.observations, device), legal, autocast)
    policy_rows = has_policy.sum().clamp(min=1)
    known = torch.isfinite(plies)
    left, known_left = output.moves_left / MOVES_LEFT_SCALE, torch.nan_to_num(plies) / MOVES_LEFT_SCALE
    error = smooth_l1_loss(left, known_left, reduction="none")

    def policy_loss(logits: Tensor, target: Tensor) -> Tensor:
        log_policy = log_softmax(logits.masked_fill(legal < 0, MASKED_LOGIT), dim=1)
        return -((target * log_policy).sum(dim=1) * has_policy).sum() / policy_rows

    soft = _head(network, "soft_policy", output.soft_policy_logits)
    wdl_target = on_device(batch.wdl_target, device)
    return Losses(
        policy=policy_loss(output.policy_logits, target),
        policy_entropy=-(torch.xlogy(target, target).sum(dim=1) * has_policy).sum() / policy_rows,
        value=-(wdl_target * log_softmax(output.wdl_logits, dim=1)).sum(dim=1).mean(),
        moves_left=(error * known).sum() / known.sum().clamp(min=1),
        soft_policy=None if soft is None else policy_loss(soft, soften(target)),
        future_pieces=_future_loss(_head(network, "future_pieces", output.future_logits), batch),
    )


def mean_losses(network: PolicyValueNetwork, batches: Iterable[Batch]) -> dict[str, float]:
    """Return `policy_loss`, `policy_kl` and `value_loss` over the rows of all batches; those without any are missing.

    Args:
        network: in evaluation mode.
        batches: of any sizes.
    """
    sums: Counter[str] = Counter()
    rows: Counter[str] = Counter()
    with torch.inference_mode():
        for batch in batches:
            losses = compute_losses(network, batch).named()
            policy_rows = int(batch.has_policy.sum())
            weights = {"policy_loss": policy_rows, "policy_kl": policy_rows, "value_loss": len(batch.has_policy)}
            rows.update(weights)
            sums.update({name: weight * losses[name].item() for name, weight in weights.items()})
    return {name: sums[name] / rows[name] for name in sums if rows[name]}


def on_device(array: NDArray[Any], device: torch.device) -> Tensor:
    """Return an array as a tensor on a device; on a CPU it aliases the array, to a GPU it is copied meanwhile."""
    tensor = torch.from_numpy(array)
    return tensor if device.type == "cpu" else tensor.pin_memory().to(device, non_blocking=True)


def _evaluate(
    network: PolicyValueNetwork, observations: Tensor, legal: Tensor, autocast: torch.dtype | None
) -> NetworkOutput:
    """Run a network; its outputs are float32 whatever the precision inside."""
    if autocast is None:
        output: NetworkOutput = network(observations, legal)
        return output
    with torch.autocast(legal.device.type, dtype=autocast):
        reduced: NetworkOutput = network(observations, legal)
    parts = {name: part.float() for name, part in reduced._asdict().items() if part is not None}
    return NetworkOutput(**parts)


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
    target = on_device(batch.future_pieces, logits.device)
    return cross_entropy(logits, target, ignore_index=HOLE, reduction="sum") / (target != HOLE).sum().clamp(min=1)
