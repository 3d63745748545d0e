"""The network: what its outputs mean, and what must not change them."""

import numpy as np
import pytest
import torch

from models.network import GameSpec, InferenceNetwork, NetworkConfig, PolicyValueNetwork, untrained_network

PLANES, HEIGHT, WIDTH, ACTION_PLANES, ACTIONS = 7, 5, 6, 9, 120
SMALL = NetworkConfig(blocks=2, channels=8, value_channels=4, value_hidden=16)
VARIETIES = [
    SMALL,
    NetworkConfig(blocks=2, channels=8, squeeze_excitation=False),
    NetworkConfig(blocks=2, channels=8, global_pooling=True),
]


def make_spec(*, holes: int = 0) -> GameSpec:
    cells = np.random.default_rng(0).permutation(ACTION_PLANES * HEIGHT * WIDTH)[:ACTIONS]
    return GameSpec(
        observation_shape=(PLANES, HEIGHT, WIDTH),
        action_planes=ACTION_PLANES,
        gather_index=cells.astype(np.int32),
        num_squares=HEIGHT * WIDTH - holes,
        action_hash="actions",
        rules_hash="rules",
    )


def make_inputs(rows: int, width: int, *, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(seed)
    observations = rng.integers(0, 2, (rows, PLANES, HEIGHT, WIDTH)).astype(np.float32)
    observations[:, -1] = 1
    legal = np.stack([rng.permutation(ACTIONS)[:width] for _ in range(rows)])
    return torch.from_numpy(observations), torch.from_numpy(legal)


def trained(network: PolicyValueNetwork) -> PolicyValueNetwork:
    """Give a network weights and statistics of no special form."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for tensor in network.state_dict().values():
            if tensor.is_floating_point():
                tensor.add_(0.1 * torch.rand(tensor.shape, generator=generator))
    return network


@pytest.mark.parametrize("cfg", VARIETIES)
def test_outputs_have_the_documented_shapes(cfg):
    outputs = untrained_network(make_spec(), cfg, seed=0)(*make_inputs(4, 11))
    assert [tuple(output.shape) for output in outputs] == [(4, 11), (4, 3), (4,)]
    assert (outputs[2] >= 0).all()


@pytest.mark.parametrize("cfg", VARIETIES)
def test_an_untrained_network_is_near_uniform_and_sees_near_even_games(cfg):
    for seed in range(3):
        network = untrained_network(make_spec(), cfg, seed=seed).eval()
        with torch.no_grad():
            logits, wdl_logits, _ = network(*make_inputs(64, 40))
        policy = logits.softmax(dim=1) * 40
        wdl = wdl_logits.softmax(dim=1)
        assert policy.min() > 0.5
        assert policy.max() < 2
        assert (wdl[:, 0] - wdl[:, 2]).abs().max() < 0.1


def test_padded_entries_do_not_change_the_others():
    network = trained(untrained_network(make_spec(), SMALL, seed=0)).eval()
    observations, legal = make_inputs(5, 12)
    padded = torch.cat((legal, torch.full((5, 7), -1)), dim=1)
    with torch.no_grad():
        for narrow, wide in zip(network(observations, legal), network(observations, padded)):
            assert torch.equal(narrow, wide[:, :12] if wide.ndim == 2 and wide.shape[1] > 3 else wide)


def test_each_action_reads_its_own_plane_and_cell():
    network = trained(untrained_network(make_spec(), SMALL, seed=0)).eval()
    observations, _ = make_inputs(2, 1)
    everything = torch.arange(ACTIONS).repeat(2, 1)
    planes: list[torch.Tensor] = []
    network.policy.register_forward_hook(lambda _module, _inputs, output: planes.append(output))
    with torch.no_grad():
        logits = network(observations, everything)[0]
    flat = planes[0].reshape(2, -1).numpy()
    np.testing.assert_array_equal(logits.numpy(), flat[:, network.spec.gather_index])


def test_rows_are_evaluated_independently():
    network = trained(untrained_network(make_spec(), SMALL, seed=0)).eval()
    observations, legal = make_inputs(6, 9)
    with torch.no_grad():
        together = network(observations, legal)
        alone = [network(observations[row : row + 1], legal[row : row + 1]) for row in range(6)]
    for number, whole in enumerate(together):
        torch.testing.assert_close(whole, torch.cat([outputs[number] for outputs in alone]), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("cfg", VARIETIES)
def test_what_lies_on_a_hole_reaches_no_square_past_the_stem(cfg):
    network = trained(untrained_network(make_spec(holes=2), cfg, seed=0)).eval()
    observations, legal = make_inputs(3, 20)
    observations[:, -1, 0, :2] = 0
    seen: list[torch.Tensor] = []
    for block in network.blocks:
        block.register_forward_hook(lambda _module, _inputs, output: seen.append(output))
    with torch.no_grad():
        network(observations, legal)
    assert len(seen) == cfg.blocks
    assert all((output[:, :, 0, :2] == 0).all() and (output[:, :, 1:] != 0).any() for output in seen)


@pytest.mark.parametrize("cfg", VARIETIES)
def test_means_over_the_board_leave_holes_out(cfg):
    block = trained(untrained_network(make_spec(holes=6), cfg, seed=0)).blocks[1].eval()
    features = torch.rand(2, 8, HEIGHT, WIDTH)
    squares = torch.ones(2, 1, HEIGHT, WIDTH)
    squares[:, :, 0] = 0
    features = features * squares
    cut = trained(untrained_network(make_spec(), cfg, seed=0)).blocks[1].eval()
    with torch.no_grad():
        whole, without_rank = block(features, squares), cut(features[:, :, 1:], None)
    torch.testing.assert_close(whole[:, :, 1:], without_rank, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("cfg", VARIETIES)
def test_folding_the_normalisation_changes_nothing(cfg):
    network = trained(untrained_network(make_spec(), cfg, seed=0)).eval()
    inputs = make_inputs(8, 10)
    with torch.no_grad():
        logits, wdl_logits, _ = network(*inputs)
        folded_logits, wdl = InferenceNetwork(network)(*inputs)
    torch.testing.assert_close(folded_logits, logits, atol=1e-4, rtol=0)
    torch.testing.assert_close(wdl, wdl_logits.softmax(dim=1), atol=1e-5, rtol=0)
    assert any(isinstance(module, torch.nn.BatchNorm2d) for module in network.modules())


@pytest.mark.parametrize(("field", "value"), [("blocks", 0), ("channels", 3), ("value_hidden", 0)])
def test_a_size_that_makes_no_network_is_refused_by_name(field, value):
    with pytest.raises(ValueError, match=f"network.{field} is {value}"):
        NetworkConfig(**{field: value})
