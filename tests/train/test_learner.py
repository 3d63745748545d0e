"""The learner: its schedule, what plays, and what happens when numbers break."""

import dataclasses
import json

import numpy as np
import pytest
import torch

from tests.train.learner_batches import (  # noqa: F401 - the fixture is used by being here
    QUICK,
    flat,
    make_batch,
    make_network,
    one_thread,
)
from train.config_sections import LearnerConfig
from train.learner import (
    MAX_SKIPPED_IN_A_ROW,
    STATISTICS_BATCHES,
    Learner,
    NonFiniteLossError,
    learning_rate,
    pick_device,
    reduced_precision,
)
from train.losses import compute_losses
from train.replay import Batch

# Steps and snapshots


def test_the_step_size_warms_up_and_stays():
    learner = Learner(make_network(), LearnerConfig(learning_rate=0.01, warmup_steps=4))
    rates = [learner.step(make_batch(4))["learning_rate"] for _ in range(6)]
    assert rates == pytest.approx([0.0025, 0.005, 0.0075, 0.01, 0.01, 0.01])


@pytest.mark.parametrize(
    ("decay", "expected"),
    [("none", [1, 1, 1, 1]), ("linear", [1, 0.775, 0.55, 0.1]), ("cosine", [1, 0.868, 0.55, 0.1])],
)
def test_the_step_size_decays_with_the_share_of_the_run_that_is_done(decay, expected):
    cfg = LearnerConfig(learning_rate=0.01, warmup_steps=0, decay=decay, final_rate_share=0.1)
    learner, rates = Learner(make_network(), cfg), []
    for share in (0, 0.25, 0.5, 1):
        learner.set_progress(share)
        rates.append(learner.step(make_batch(4))["learning_rate"] / 0.01)
    assert rates == pytest.approx(expected, abs=1e-3)


def test_warm_up_and_decay_multiply():
    cfg = LearnerConfig(learning_rate=0.01, warmup_steps=10, decay="linear", final_rate_share=0.5)
    assert learning_rate(cfg, 4, 0.5) == pytest.approx(0.01 * 0.5 * 0.75)


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
    cfg = QUICK.model_copy(update={"decay": "cosine"})
    straight, first = Learner(make_network(), cfg), Learner(make_network(), cfg)
    resumed = Learner(make_network(seed=9), cfg)
    resumed.step(make_batch(seed=50))
    for learner in (straight, first):
        learner.set_progress(0.2)
        for number in range(4):
            learner.step(make_batch(seed=number))
        learner.step(broken(make_batch(), "wdl_target"))
        learner.snapshot()
    resumed.restore(first.tensors(), json.loads(json.dumps(first.counters())))
    for learner in (straight, resumed):
        learner.set_progress(0.4)
    for number in range(4, 8):
        metrics = [learner.step(make_batch(seed=number)) for learner in (straight, resumed)]
        assert metrics[0] == metrics[1]
    assert_equal_learners(straight, resumed)
    for learner in (straight, resumed):
        learner.snapshot()
    assert_equal_learners(straight, resumed)
    assert straight.counters() | {"steps": 8, "snapshots": 2, "skipped_steps": 1} == straight.counters()


def assert_equal_learners(*learners: Learner) -> None:
    """Compare all that a checkpoint keeps, bit for bit."""
    for part in ("model", "learner", "optimizer"):
        one, other = (getattr(learner.tensors(), part) for learner in learners)
        assert one.keys() == other.keys()
        assert all(torch.equal(one[name], other[name]) for name in one)
    assert learners[0].counters() == learners[1].counters()


def test_the_same_seed_and_batches_give_the_same_weights_bit_for_bit():
    learners = [Learner(make_network(), QUICK) for _ in range(2)]
    for learner in learners:
        for number in range(3):
            learner.step(make_batch(seed=number))
        learner.snapshot()
    assert_equal_learners(*learners)


def test_held_out_losses_are_those_of_the_weights_that_play_and_change_nothing():
    learner, batches = Learner(make_network(), QUICK), [make_batch(16, seed=1), make_batch(9, seed=2)]
    for _ in range(3):
        learner.step(make_batch())
    learner.snapshot()
    learner.step(make_batch(seed=3))
    before = flat(learner.tensors().model).clone()
    losses = learner.held_out_losses(batches)
    assert losses.keys() == {"held_out_policy_loss", "held_out_policy_kl", "held_out_value_loss"}
    with torch.no_grad():
        parts = [compute_losses(learner.playing_network, batch) for batch in batches]
    by_hand = (16 * parts[0].value.item() + 9 * parts[1].value.item()) / 25
    assert losses["held_out_value_loss"] == pytest.approx(by_hand)
    assert torch.equal(flat(learner.tensors().model), before)
    assert not learner.playing_network.training
    assert learner.held_out_losses([]) == {}


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


# Numbers that break


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
    assert (learner.steps, learner.skipped_steps, learner.rollbacks) == (1, 1, 0)
    assert learner.step(batch)["skipped"] == 0


def test_bad_steps_between_good_ones_only_skip():
    learner = Learner(make_network(), QUICK)
    for _ in range(4):
        for _ in range(MAX_SKIPPED_IN_A_ROW - 1):
            learner.step(broken(make_batch(), "wdl_target"))
        learner.step(make_batch())
    assert (learner.steps, learner.rollbacks) == (4, 0)
    assert learner.skipped_steps == 4 * (MAX_SKIPPED_IN_A_ROW - 1)


def ruin(learner: Learner) -> None:
    """Break a weight, so that no step is finite any more."""
    with torch.no_grad():
        learner.network.stem.conv.weight[0, 0, 0, 0] = np.nan


@pytest.mark.parametrize("phases", [0, 1])
def test_several_bad_steps_in_a_row_go_back_to_the_start_of_the_phase_and_learning_goes_on(phases):
    learner, straight = Learner(make_network(), QUICK), Learner(make_network(), QUICK)
    for one in (learner, straight) * phases:
        one.step(make_batch())
        one.snapshot()
    learner.step(make_batch(seed=1))
    ruin(learner)
    for _ in range(MAX_SKIPPED_IN_A_ROW):
        assert learner.step(make_batch(seed=2))["skipped"] == 1
    assert (learner.steps, learner.rollbacks, learner.skipped_steps) == (phases, 1, MAX_SKIPPED_IN_A_ROW)
    for one in (learner, straight):
        assert one.step(make_batch(seed=3))["skipped"] == 0
    for part in ("learner", "optimizer"):
        assert torch.equal(*(flat(getattr(one.tensors(), part)) for one in (learner, straight)))


def test_bad_steps_that_go_on_after_going_back_stop_and_name_input_and_losses():
    learner = Learner(make_network(), QUICK)
    learner.step(make_batch())
    bad = broken(make_batch(), "wdl_target")
    for _ in range(2 * MAX_SKIPPED_IN_A_ROW - 1):
        learner.step(bad)
    with pytest.raises(NonFiniteLossError, match=r"inputs: wdl_target; losses: loss, value_loss, .*gradients: stem\."):
        learner.step(bad)
    assert learner.rollbacks == 1
    assert torch.isfinite(flat(learner.network.state_dict())).all()


def test_an_infinite_gradient_is_caught_and_named_alone():
    learner = Learner(make_network(), QUICK)
    learner.network.policy.planes.bias.register_hook(lambda gradient: gradient * np.inf)
    for _ in range(2 * MAX_SKIPPED_IN_A_ROW - 1):
        assert learner.step(make_batch())["skipped"] == 1
    with pytest.raises(NonFiniteLossError, match=r"losses: gradient_norm; gradients: policy\.planes\.bias$"):
        learner.step(make_batch())


def test_going_back_is_forgiven_after_a_phase_without_it():
    learner = Learner(make_network(), QUICK)
    for is_bad in (True, False, True):
        learner.step(make_batch())
        if is_bad:
            ruin(learner)
            for _ in range(MAX_SKIPPED_IN_A_ROW):
                learner.step(make_batch())
        learner.step(make_batch())
        learner.snapshot()
    assert learner.rollbacks == 2
    learner.step(make_batch())
    ruin(learner)
    for _ in range(MAX_SKIPPED_IN_A_ROW - 1):
        learner.step(make_batch())
    with pytest.raises(NonFiniteLossError, match=r"weights: stem\.conv\.weight"):  # in two phases, one after the other
        learner.step(make_batch())


# Devices and precision


def test_a_gpu_that_is_not_there_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert pick_device("auto") == pick_device("cpu") == "cpu"
    with pytest.raises(ValueError, match=r"learner\.device is cuda, but PyTorch finds no GPU"):
        Learner(make_network(), LearnerConfig(device="cuda"))


def test_precision_is_reduced_on_a_gpu_only_and_only_if_asked(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda **_: True)
    assert reduced_precision(LearnerConfig(), "cuda") == torch.bfloat16
    assert reduced_precision(LearnerConfig(), "cpu") is None
    assert reduced_precision(LearnerConfig(mixed_precision=False), "cuda") is None
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda **_: False)
    assert reduced_precision(LearnerConfig(), "cuda") == torch.float16


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_mixed_precision_learns_skips_and_resumes_as_float32_does(dtype, monkeypatch):
    monkeypatch.setattr("train.learner.reduced_precision", lambda *_: dtype)
    learner, resumed = Learner(make_network(), QUICK), Learner(make_network(seed=9), QUICK)
    first = learner.step(make_batch())
    for _ in range(60):
        last = learner.step(make_batch())
    assert last["policy_kl"] < 0.5 * first["policy_kl"]
    assert learner.step(broken(make_batch(), "wdl_target"))["skipped"] == 1
    learner.snapshot()
    resumed.restore(learner.tensors(), json.loads(json.dumps(learner.counters())))
    for number in range(3):
        metrics = [one.step(make_batch(seed=number)) for one in (learner, resumed)]
        assert metrics[0] == metrics[1]
    assert_equal_learners(learner, resumed)


def test_a_scale_too_large_for_float16_is_lowered_without_counting_as_a_fault(monkeypatch):
    monkeypatch.setattr("train.learner.reduced_precision", lambda *_: torch.float16)
    learner = Learner(make_network(), QUICK)
    learner.restore(learner.tensors(), learner.counters() | {"loss_scale": 2.0**40})
    skips = 0
    while learner.step(make_batch())["skipped"]:
        skips += 1
    assert skips > MAX_SKIPPED_IN_A_ROW
    assert learner.rollbacks == 0
    assert learner.counters()["loss_scale"] == 2.0 ** (40 - skips)
