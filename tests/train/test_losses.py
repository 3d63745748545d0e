"""The losses: what gets a gradient, and what a loop over rows and squares gives."""

import dataclasses

import numpy as np
import pytest
import torch

from models.network import NetworkOutput, PolicyValueNetwork
from tests.train.learner_batches import (  # noqa: F401 - the fixture is used by being here
    AUXILIARY,
    QUICK,
    SPEC,
    WIDTH,
    make_batch,
    make_network,
    one_thread,
)
from train.config_sections import LearnerConfig
from train.learner import Learner, estimate_statistics
from train.losses import compute_losses, mean_losses, soften
from train.metrics import METRICS
from train.replay import HOLE, Batch


def test_one_batch_overfits():
    batch = make_batch()
    learner = Learner(make_network(), QUICK)
    first = learner.step(batch)
    for _ in range(250):
        last = learner.step(batch)
    entropy = first["policy_loss"] - first["policy_kl"]
    assert first["policy_kl"] > 0.5
    assert last["policy_kl"] < 0.02
    assert last["policy_loss"] == pytest.approx(entropy, abs=0.02)
    value_floor = -(batch.wdl_target * np.log(batch.wdl_target)).sum(axis=1).mean()
    assert last["value_loss"] == pytest.approx(value_floor, abs=0.02)
    assert last["moves_left_loss"] < 0.02 < first["moves_left_loss"]


def kept_logits(network: PolicyValueNetwork) -> list[torch.Tensor]:
    """Return a list that takes, at each evaluation, the policy and the soft policy logits with their gradients."""
    kept: list[torch.Tensor] = []

    def keep(_module: torch.nn.Module, _inputs: object, output: NetworkOutput) -> None:
        for logits in (output.policy_logits, output.soft_policy_logits):
            logits.retain_grad()
            kept.append(logits)

    network.register_forward_hook(keep)
    return kept


def test_padding_gets_exactly_no_gradient_and_every_legal_logit_some():
    network, batch = make_network(cfg=AUXILIARY).train(), make_batch()
    kept = kept_logits(network)
    losses = compute_losses(network, batch)
    (losses.policy + losses.soft_policy).backward()
    is_legal = batch.legal_actions >= 0
    for logits in kept:
        gradient = logits.grad.numpy()
        assert (gradient[~is_legal] == 0).all()
        assert (gradient[~batch.has_policy] == 0).all()
        assert (gradient[is_legal & batch.has_policy[:, None]] != 0).all()
        assert gradient.sum(axis=1) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("head", ["policy", "soft_policy"])
def test_planes_of_illegal_actions_get_exactly_no_gradient(head):
    network, batch = make_network(cfg=AUXILIARY).eval(), make_batch(1)
    batch = dataclasses.replace(batch, has_policy=np.array([True]), policy_target=np.eye(1, WIDTH, dtype=np.float32))
    planes: list[torch.Tensor] = []

    def keep(_module: torch.nn.Module, _inputs: object, output: torch.Tensor) -> None:
        output.retain_grad()
        planes.append(output)

    getattr(network, head).planes.register_forward_hook(keep)
    losses = compute_losses(network, batch)
    (losses.policy + losses.soft_policy).backward()
    gradient = planes[0].grad.flatten().numpy()
    legal = batch.legal_actions[batch.legal_actions >= 0]
    assert set(np.flatnonzero(gradient)) == set(SPEC.gather_index[legal].tolist())
    assert gradient.sum() == pytest.approx(0, abs=1e-6)


def test_a_won_row_raises_the_chance_of_the_player_to_move_and_a_lost_one_lowers_it():
    batch, network = make_batch(2), make_network()
    batch = dataclasses.replace(batch, wdl_target=np.eye(3, dtype=np.float32)[[0, 2]])
    learner = Learner(network, QUICK)
    for _ in range(60):
        learner.step(batch)
    with torch.no_grad():
        output = network.train()(torch.from_numpy(batch.observations), torch.from_numpy(batch.legal_actions))
    win, _, loss = output.wdl_logits.softmax(dim=1).T
    assert win[0] > 0.9
    assert loss[1] > 0.9


def test_bfloat16_gives_nearly_the_losses_and_the_gradient_of_float32():
    network, batch = make_network(cfg=AUXILIARY), make_batch(128)
    gradients = []
    for dtype in (None, torch.bfloat16):
        losses = compute_losses(network.train(), batch, autocast=dtype)
        assert all(value.dtype == torch.float32 for value in losses.named().values())
        network.zero_grad()
        losses.total(LearnerConfig()).backward()
        gradients.append(torch.cat([part.grad.flatten() for part in network.parameters()]))
        gradients.append(torch.stack(list(losses.named().values())).detach())
    torch.testing.assert_close(gradients[1], gradients[3], rtol=0.02, atol=0.02)
    assert torch.cosine_similarity(gradients[0], gradients[2], dim=0) > 0.99
    assert not torch.equal(gradients[0], gradients[2])


def test_mean_losses_weigh_each_row_alike_whatever_its_batch():
    network, batch = make_network().eval(), make_batch(30)
    parts = [
        Batch(*(getattr(batch, field.name)[rows] for field in dataclasses.fields(Batch)))
        for rows in (slice(0, 7), slice(7, 8), slice(8, 30))
    ]
    whole, split = mean_losses(network, [batch]), mean_losses(network, parts)
    assert split == pytest.approx(whole, rel=1e-5)
    assert whole.keys() == {"policy_loss", "policy_kl", "value_loss"}


def test_losses_over_no_rows_are_missing():
    batch = make_batch(4)
    none = dataclasses.replace(batch, has_policy=np.zeros(4, bool), policy_target=np.zeros_like(batch.policy_target))
    assert mean_losses(make_network().eval(), [none]).keys() == {"value_loss"}
    assert mean_losses(make_network().eval(), []) == {}


def test_padding_wider_changes_no_loss():
    network, batch = make_network(cfg=AUXILIARY).eval(), make_batch()
    wide = dataclasses.replace(
        batch,
        legal_actions=np.pad(batch.legal_actions, ((0, 0), (0, 9)), constant_values=-1),
        policy_target=np.pad(batch.policy_target, ((0, 0), (0, 9))),
    )
    for narrow, padded in zip(*(compute_losses(network, one).named().values() for one in (batch, wide))):
        torch.testing.assert_close(narrow, padded)


def test_a_row_without_policy_trains_the_value_only():
    network, batch = make_network(), make_batch(8)
    none = dataclasses.replace(
        batch, has_policy=np.zeros(8, dtype=bool), policy_target=np.zeros_like(batch.policy_target)
    )
    losses = compute_losses(network, none)
    assert losses.policy.item() == 0
    (losses.policy + losses.value).backward()
    assert (network.policy.planes.weight.grad == 0).all()
    assert (network.value.wdl.weight.grad != 0).any()
    assert (network.stem.conv.weight.grad != 0).any()


def test_the_policy_loss_is_a_mean_over_rows_with_a_policy():
    network, batch = make_network().eval(), make_batch(8)
    chosen = np.flatnonzero(batch.has_policy)
    only = Batch(*(getattr(batch, field.name)[chosen] for field in dataclasses.fields(Batch)))
    torch.testing.assert_close(compute_losses(network, batch).policy, compute_losses(network, only).policy)


def test_a_row_without_an_end_does_not_train_moves_left():
    network, batch = make_network(), make_batch(8)
    unknown = dataclasses.replace(batch, moves_left=np.full(8, np.nan, dtype=np.float32))
    loss = compute_losses(network, unknown).moves_left
    loss.backward()
    assert loss.item() == 0
    assert (network.value.moves_left.weight.grad == 0).all()


# Auxiliary heads


def test_the_soft_policy_is_the_fourth_root_of_the_policy_over_its_support():
    batch = make_batch(9)
    softer = soften(torch.from_numpy(batch.policy_target)).numpy()
    for row, target in enumerate(batch.policy_target):
        roots = [float(share) ** 0.25 if share > 0 else 0.0 for share in target]
        expected = [root / sum(roots) if batch.has_policy[row] else 0.0 for root in roots]
        assert softer[row] == pytest.approx(expected, abs=1e-6)
    assert (softer[batch.legal_actions < 0] == 0).all()


def test_auxiliary_losses_are_what_a_loop_over_rows_and_squares_gives():
    network, batch = make_network(cfg=AUXILIARY).eval(), make_batch(9)
    with torch.no_grad():
        losses = compute_losses(network, batch)
        output = network(torch.from_numpy(batch.observations), torch.from_numpy(batch.legal_actions))
    softer = soften(torch.from_numpy(batch.policy_target)).numpy()
    policies, squares = [], []
    for row in range(9):
        width = int((batch.legal_actions[row] >= 0).sum())
        log_policy = output.soft_policy_logits[row, :width].log_softmax(dim=0).numpy()
        if batch.has_policy[row]:
            policies.append(-(softer[row, :width] * log_policy).sum())
        for rank, file in np.argwhere(batch.future_pieces[row] != HOLE):
            log_pieces = output.future_logits[row, :, rank, file].log_softmax(dim=0)
            squares.append(-float(log_pieces[batch.future_pieces[row, rank, file]]))
    assert losses.soft_policy.item() == pytest.approx(np.mean(policies), rel=1e-5)
    assert losses.future_pieces.item() == pytest.approx(np.mean(squares), rel=1e-5)


def test_one_batch_overfits_the_auxiliary_heads_too():
    batch = make_batch(16)
    learner = Learner(make_network(cfg=AUXILIARY), QUICK)
    first = learner.step(batch)
    for _ in range(250):
        last = learner.step(batch)
    softer = soften(torch.from_numpy(batch.policy_target))[torch.from_numpy(batch.has_policy)]
    floor = -torch.xlogy(softer, softer).sum(dim=1).mean().item()
    assert first["soft_policy_loss"] > floor + 0.1
    assert last["soft_policy_loss"] == pytest.approx(floor, abs=0.03)
    assert first["future_pieces_loss"] > 1.4
    assert last["future_pieces_loss"] < 0.3
    assert last["policy_kl"] < 0.05
    assert last["value_loss"] < first["value_loss"]


def test_holes_get_no_gradient_from_the_future_board_and_squares_do():
    network, batch = make_network(cfg=AUXILIARY), make_batch(3)
    planes: list[torch.Tensor] = []

    def keep(_module: torch.nn.Module, _inputs: object, output: torch.Tensor) -> None:
        output.retain_grad()
        planes.append(output)

    network.future.register_forward_hook(keep)
    compute_losses(network, batch).future_pieces.backward()
    touched = planes[0].grad.abs().sum(dim=1).numpy() > 0
    np.testing.assert_array_equal(touched, batch.future_pieces != HOLE)


def test_auxiliary_losses_count_with_their_weights_and_where_they_are_reported():
    batch = make_batch()
    cfg = LearnerConfig(value_weight=2.5, moves_left_weight=0.5, soft_policy_weight=3.0, future_pieces_weight=0.7)
    weights = {"policy_loss": 1, "value_loss": 2.5, "moves_left_loss": 0.5}
    weights |= {"soft_policy_loss": 3.0, "future_pieces_loss": 0.7}
    learner = Learner(make_network(cfg=AUXILIARY), cfg)
    metrics = learner.step(batch)
    assert metrics["loss"] == pytest.approx(sum(share * metrics[name] for name, share in weights.items()))
    assert {*learner.metric_names, "learning_rate", "skipped"} == metrics.keys()
    assert all(f"train/{name}" in METRICS for name in learner.metric_names)


def test_a_loss_without_weight_is_left_out_even_where_it_is_not_finite():
    cfg = LearnerConfig(moves_left_weight=0, soft_policy_weight=0, future_pieces_weight=0)
    learner = Learner(make_network(cfg=AUXILIARY), cfg)
    for head in (learner.network.value.moves_left, learner.network.future):
        torch.nn.init.constant_(head.weight, np.inf)
    metrics = learner.step(make_batch())
    assert not np.isfinite(metrics["moves_left_loss"])
    assert not np.isfinite(metrics["future_pieces_loss"])
    assert metrics["skipped"] == 0
    assert metrics["loss"] == pytest.approx(metrics["policy_loss"] + metrics["value_loss"])


def test_a_batch_without_any_future_board_does_not_train_that_head():
    batch = dataclasses.replace(make_batch(), future_pieces=np.full((32, 4, 5), HOLE))
    metrics = Learner(make_network(cfg=AUXILIARY), QUICK).step(batch)
    assert metrics["future_pieces_loss"] == 0
    assert metrics["skipped"] == 0


def test_a_network_without_auxiliary_heads_reports_none_and_needs_no_future_boards():
    learner = Learner(make_network(), QUICK)
    metrics = learner.step(dataclasses.replace(make_batch(), future_pieces=None))
    assert not any("soft" in name or "future" in name for name in metrics)
    assert {*learner.metric_names, "learning_rate", "skipped"} == metrics.keys()


def test_a_head_that_the_config_asks_for_and_nothing_serves_is_refused():
    network, batch = make_network(cfg=AUXILIARY), make_batch(4)
    with pytest.raises(ValueError, match="the batch holds no future boards"):
        compute_losses(network, dataclasses.replace(batch, future_pieces=None))
    network.soft_policy = None
    with pytest.raises(ValueError, match=r"network\.soft_policy is set, but networks of the kind 'resnet' have no"):
        compute_losses(network, batch)


def test_statistics_of_every_kind_of_batch_normalisation_are_estimated():
    network, batch = make_network(), make_batch(64)
    network.value.hidden = torch.nn.Sequential(network.value.hidden, torch.nn.BatchNorm1d(32))
    seen: list[torch.Tensor] = []
    network.value.hidden[0].register_forward_hook(lambda _module, _inputs, output: seen.append(output))
    estimate_statistics(network, [batch])
    torch.testing.assert_close(network.value.hidden[1].running_mean, seen[0].mean(dim=0))
