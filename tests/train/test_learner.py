"""The learner: what gets a gradient, what plays, and what happens when numbers break."""

import dataclasses

import numpy as np
import pytest
import torch

from models.network import GameSpec, NetworkConfig, PolicyValueNetwork, untrained_network
from train.config_sections import LearnerConfig
from train.learner import (
    MAX_SKIPPED_IN_A_ROW,
    STATISTICS_BATCHES,
    Learner,
    NonFiniteLossError,
    compute_losses,
    estimate_statistics,
    soften,
)
from train.metrics import METRICS
from train.replay import HOLE, Batch

ACTIONS, WIDTH = 90, 12
SPEC = GameSpec(
    observation_shape=(6, 4, 5),
    piece_planes=4,
    action_planes=6,
    gather_index=np.random.default_rng(0).permutation(6 * 20)[:ACTIONS].astype(np.int32),
    num_squares=20,
    action_hash="a",
    rules_hash="r",
)
CFG = NetworkConfig(blocks=2, channels=16, value_channels=8, value_hidden=32)
AUXILIARY = dataclasses.replace(CFG, soft_policy=True, future_pieces=True)
QUICK = LearnerConfig(learning_rate=0.01, warmup_steps=10)


def make_network(seed: int = 0, cfg: NetworkConfig = CFG) -> PolicyValueNetwork:
    return untrained_network(SPEC, cfg, seed=seed)


def make_batch(rows: int = 32, *, seed: int = 0) -> Batch:
    """Make random rows; every fourth has no policy, every fifth no end."""
    rng = np.random.default_rng(seed)
    legal = np.stack([rng.permutation(ACTIONS)[:WIDTH] for _ in range(rows)]).astype(np.int64)
    legal[np.arange(WIDTH) >= rng.integers(2, WIDTH + 1, rows)[:, None]] = -1
    target = rng.dirichlet(np.full(WIDTH, 0.3), rows) * (legal >= 0)
    target /= target.sum(axis=1, keepdims=True)
    has_policy = np.arange(rows) % 4 != 0
    target[~has_policy] = 0
    moves_left = rng.integers(1, 90, rows).astype(np.float32)
    moves_left[::5] = np.nan
    observations = rng.integers(0, 2, (rows, *SPEC.observation_shape)).astype(np.float32)
    return Batch(
        observations=observations,
        legal_actions=legal,
        policy_target=target.astype(np.float32),
        has_policy=has_policy,
        wdl_target=rng.dirichlet(np.ones(3), rows).astype(np.float32),
        moves_left=moves_left,
        future_pieces=np.where(rng.random((rows, 4, 5)) < 0.1, HOLE, rng.integers(0, 5, (rows, 4, 5))),
    )


def flat(tensors: dict[str, torch.Tensor]) -> torch.Tensor:
    return torch.cat([tensor.detach().flatten().float() for tensor in tensors.values()])


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


def test_illegal_logits_get_no_gradient_and_legal_ones_do():
    network, batch = make_network(), make_batch(1)
    batch = dataclasses.replace(batch, has_policy=np.array([True]), policy_target=np.eye(1, WIDTH, dtype=np.float32))
    planes: list[torch.Tensor] = []

    def keep(_module: torch.nn.Module, _inputs: object, output: torch.Tensor) -> None:
        output.retain_grad()
        planes.append(output)

    network.policy.register_forward_hook(keep)
    losses = compute_losses(network, batch)
    losses.policy.backward()
    gradient = planes[0].grad.flatten().numpy()
    legal = batch.legal_actions[batch.legal_actions >= 0]
    touched = set(np.flatnonzero(gradient))
    assert touched == set(SPEC.gather_index[legal].tolist())
    assert gradient.sum() == pytest.approx(0, abs=1e-6)


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
    assert (network.policy.weight.grad == 0).all()
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
    cfg = LearnerConfig(moves_left_weight=0.5, soft_policy_weight=3.0, future_pieces_weight=0.7)
    weights = {"policy_loss": 1, "value_loss": 1, "moves_left_loss": 0.5}
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


# Steps and snapshots


def test_the_step_size_warms_up_and_stays():
    learner = Learner(make_network(), LearnerConfig(learning_rate=0.01, warmup_steps=4))
    rates = [learner.step(make_batch(4))["learning_rate"] for _ in range(6)]
    assert rates == pytest.approx([0.0025, 0.005, 0.0075, 0.01, 0.01, 0.01])


def test_gradients_are_clipped_before_they_move_the_weights():
    batch = make_batch()
    loud, quiet = (Learner(make_network(), LearnerConfig(clip_norm=norm)) for norm in (1e9, 1e-3))
    assert loud.step(batch)["gradient_norm"] == pytest.approx(quiet.step(batch)["gradient_norm"])
    norms = [
        torch.stack(
            [value.norm() for name, value in one.tensors().optimizer.items() if name.endswith("exp_avg")]
        ).norm()
        for one in (loud, quiet)
    ]
    assert norms[1] <= 1.01e-3 * 0.1 < norms[0]


def test_before_the_first_snapshot_the_initial_weights_play():
    learner = Learner(make_network(), QUICK)
    initial = flat(make_network().state_dict())
    learner.step(make_batch())
    assert torch.equal(flat(learner.playing_network.state_dict()), initial)
    learner.snapshot()
    networks = (learner.playing_network, learner.network)
    assert torch.equal(*(flat(dict(network.named_parameters())) for network in networks))


def test_what_plays_is_the_running_mean_of_snapshots():
    learner = Learner(make_network(), LearnerConfig(learning_rate=0.01, ema_snapshots=3))
    seen, expected = [], torch.zeros(0)
    for number in range(6):
        learner.step(make_batch(seed=number))
        learner.snapshot()
        seen.append(flat(dict(learner.network.named_parameters())))
        expected = seen[0] if number == 0 else expected + (seen[-1] - expected) / (1, 1, 2, 2, 3, 3)[number]
        torch.testing.assert_close(flat(dict(learner.playing_network.named_parameters())), expected, atol=1e-6, rtol=0)
    assert not learner.playing_network.training


def test_the_statistics_of_what_plays_are_those_that_its_own_weights_see():
    learner = Learner(make_network(), LearnerConfig(learning_rate=0.03, warmup_steps=0, ema_snapshots=4))
    for number in range(9):
        batches = [make_batch(64, seed=10 * number + index) for index in range(STATISTICS_BATCHES + 1)]
        for batch in batches:
            learner.step(batch)
        learner.snapshot()
    stem = learner.playing_network.stem
    seen = [stem.conv(torch.from_numpy(batch.observations)).detach() for batch in batches[1:]]
    mean = torch.stack([features.mean(dim=(0, 2, 3)) for features in seen]).mean(dim=0)
    variance = torch.stack([features.var(dim=(0, 2, 3)) for features in seen]).mean(dim=0)
    torch.testing.assert_close(stem.norm.running_mean, mean, atol=1e-4, rtol=1e-3)
    torch.testing.assert_close(stem.norm.running_var, variance, atol=1e-4, rtol=1e-3)
    assert not learner.playing_network.training


def test_learning_goes_on_from_a_checkpoint_as_if_never_interrupted():
    straight, first = Learner(make_network(), QUICK), Learner(make_network(), QUICK)
    resumed = Learner(make_network(seed=9), QUICK)
    for number in range(4):
        for learner in (straight, first):
            learner.step(make_batch(seed=number))
    first.snapshot()
    straight.snapshot()
    resumed.restore(first.tensors(), first.counters())
    for number in range(4, 8):
        metrics = [learner.step(make_batch(seed=number)) for learner in (straight, resumed)]
        assert metrics[0] == metrics[1]
    for learner in (straight, resumed):
        learner.snapshot()
    for part in ("model", "learner", "optimizer"):
        one, other = getattr(straight.tensors(), part), getattr(resumed.tensors(), part)
        assert one.keys() == other.keys()
        assert all(torch.equal(one[name], other[name]) for name in one)
    assert straight.counters() == resumed.counters() == {"steps": 8, "snapshots": 2, "skipped_steps": 0}


def test_restoring_copies_so_that_the_checkpoint_stays_as_it_was():
    learner, resumed = Learner(make_network(), QUICK), Learner(make_network(), QUICK)
    learner.step(make_batch())
    kept = flat(learner.tensors().optimizer).clone()
    resumed.restore(learner.tensors(), learner.counters())
    resumed.step(make_batch(seed=1))
    assert torch.equal(flat(learner.tensors().optimizer), kept)


def broken(batch: Batch, where: str) -> Batch:
    values = getattr(batch, where).copy()
    values[0] = np.inf
    return dataclasses.replace(batch, **{where: values})


@pytest.mark.parametrize("where", ["observations", "wdl_target", "policy_target"])
def test_a_step_that_is_not_finite_changes_nothing_and_is_counted(where):
    learner = Learner(make_network(), QUICK)
    batch = dataclasses.replace(make_batch(), has_policy=np.ones(32, dtype=bool))
    learner.step(batch)
    before = {part: flat(getattr(learner.tensors(), part)).clone() for part in ("learner", "optimizer")}
    metrics = learner.step(broken(batch, where))
    assert metrics["skipped"] == 1
    for part, values in before.items():
        assert torch.equal(flat(getattr(learner.tensors(), part)), values)
    assert learner.counters() == {"steps": 1, "snapshots": 0, "skipped_steps": 1}
    assert learner.step(batch)["skipped"] == 0


def test_several_steps_in_a_row_that_are_not_finite_stop_with_their_cause():
    learner = Learner(make_network(), QUICK)
    bad = broken(make_batch(), "wdl_target")
    for _ in range(MAX_SKIPPED_IN_A_ROW - 1):
        learner.step(bad)
    learner.step(make_batch())
    for _ in range(MAX_SKIPPED_IN_A_ROW - 1):
        learner.step(bad)
    with pytest.raises(NonFiniteLossError, match=r"after step 1; .*'value_loss': inf.*not finite: stem\.conv"):
        learner.step(bad)
    assert torch.isfinite(flat(learner.network.state_dict())).all()


def test_the_gradients_that_broke_are_named_and_no_others():
    learner = Learner(make_network(), QUICK)
    learner.network.policy.bias.register_hook(lambda gradient: gradient * np.nan)
    for _ in range(MAX_SKIPPED_IN_A_ROW - 1):
        learner.step(make_batch())
    with pytest.raises(NonFiniteLossError, match=r"gradients not finite: policy\.bias$"):
        learner.step(make_batch())
