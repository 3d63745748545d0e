"""The network: what its outputs mean, and what must not change them."""

import dataclasses
import itertools
import re
from collections.abc import Callable, Iterator
from typing import ClassVar

import numpy as np
import pytest
import torch

import envs
from envs.reference import MAIN_GAMES
from models.network import (
    NETWORKS,
    GameSpec,
    InferenceNetwork,
    NetworkConfig,
    NetworkOutput,
    PolicyValueNetwork,
    ResidualNetwork,
    check_network,
    register_network,
    untrained_network,
)

PLANES, HEIGHT, WIDTH, ACTION_PLANES, ACTIONS = 7, 5, 6, 9, 120
SMALL = NetworkConfig(blocks=2, channels=8, value_channels=4, value_hidden=16)
VARIETIES = [
    SMALL,
    NetworkConfig(blocks=2, channels=8, squeeze_excitation=False),
    NetworkConfig(blocks=2, channels=8, global_pooling=True, soft_policy=True, future_pieces=True),
]


def make_spec(*, holes: int = 0) -> GameSpec:
    cells = np.random.default_rng(0).permutation(ACTION_PLANES * HEIGHT * WIDTH)[:ACTIONS]
    return GameSpec(
        observation_shape=(PLANES, HEIGHT, WIDTH),
        piece_planes=PLANES - 1,
        action_planes=ACTION_PLANES,
        gather_index=cells.astype(np.int32),
        target_index=np.random.default_rng(1).integers(0, HEIGHT * WIDTH, ACTIONS).astype(np.int32),
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
    assert [tuple(output.shape) for output in outputs[:3]] == [(4, 11), (4, 3), (4,)]
    assert (outputs.moves_left >= 0).all()
    if cfg.soft_policy:
        assert tuple(outputs.soft_policy_logits.shape) == (4, 11)
        assert tuple(outputs.future_logits.shape) == (4, PLANES, HEIGHT, WIDTH)
    else:
        assert outputs.soft_policy_logits is outputs.future_logits is None


@pytest.fixture(scope="module", params=MAIN_GAMES)
def positions(request) -> tuple[GameSpec, torch.Tensor, torch.Tensor]:
    """Reach positions of a main game by random moves: its spec, their observations and legal actions."""
    variant = envs.load_variant(request.param)
    env, rng = envs.VectorEnv(variant, 8, seed=1), np.random.default_rng(1)
    for _ in range(40):
        env.step(np.array([rng.choice(np.flatnonzero(mask)) if mask.any() else 0 for mask in env.legal_action_mask]))
        env.reset(env.over)
    game = envs.engine_for(variant)
    legal, _ = envs.legal_actions(game, env.states)
    return GameSpec.of(game), torch.from_numpy(env.observe()), torch.from_numpy(legal).long()


@pytest.mark.parametrize("blocks", [2, 12])
@pytest.mark.parametrize(("excited", "pooled", "auxiliary"), list(itertools.product((True, False), repeat=3)))
def test_an_untrained_network_is_within_a_factor_of_1_5_of_uniform_and_sees_even_games(
    positions, blocks, excited, pooled, auxiliary
):
    spec, observations, legal = positions
    cfg = NetworkConfig(
        blocks=blocks,
        channels=16,
        squeeze_excitation=excited,
        global_pooling=pooled,
        soft_policy=auxiliary,
        future_pieces=auxiliary,
    )
    with torch.no_grad():
        output = untrained_network(spec, cfg, seed=blocks).eval()(observations, legal)
    real = legal >= 0
    policies = [output.policy_logits] + ([output.soft_policy_logits] if auxiliary else [])
    for logits in policies:
        policy = logits.masked_fill(~real, -torch.inf).softmax(dim=1) * real.sum(dim=1, keepdim=True)
        assert policy[real].min() > 1 / 1.5
        assert policy[real].max() < 1.5
    wdl = output.wdl_logits.softmax(dim=1)
    assert (wdl[:, 0] - wdl[:, 2]).abs().max() < 0.05
    assert (wdl - 1 / 3).abs().max() < 0.05
    if auxiliary:
        future = output.future_logits.softmax(dim=1) * (spec.piece_planes + 1)
        assert future.min() > 1 / 1.5
        assert future.max() < 1.5


@pytest.mark.parametrize("name", MAIN_GAMES)
def test_the_spec_counts_the_piece_planes_that_an_observation_begins_with(name):
    game = envs.engine_for(envs.load_variant(name))
    spec = GameSpec.of(game)
    start = envs.VectorEnv(game.variant, 1).observe()[0]
    names = [plane.name for plane in envs.observation.observation_planes(game.variant)]
    types = spec.piece_planes // 2
    assert [name.split()[0] for name in names[: 2 * types]] == ["own"] * types + ["enemy"] * types
    assert "castling" in names[2 * types]
    assert start[: spec.piece_planes].sum() == (envs.boards(game, envs.VectorEnv(game.variant, 1).states) > 0).sum()


def test_auxiliary_heads_leave_the_other_outputs_and_the_weights_that_play_alone():
    plain, helped = (
        untrained_network(make_spec(), NetworkConfig(blocks=1, channels=8, **heads), seed=4).eval()
        for heads in ({}, {"soft_policy": True, "future_pieces": True})
    )
    inputs = make_inputs(3, 9)
    with torch.no_grad():
        for one, other in zip(plain(*inputs)[:3], helped(*inputs)[:3]):
            assert torch.equal(one, other)
    names = [set(InferenceNetwork(network).state_dict()) for network in (plain, helped)]
    assert names[0] == names[1]
    assert any(name.startswith("soft_policy") for name in helped.state_dict())


def test_padded_entries_do_not_change_the_others():
    network = trained(untrained_network(make_spec(), SMALL, seed=0)).eval()
    observations, legal = make_inputs(5, 12)
    padded = torch.cat((legal, torch.full((5, 7), -1)), dim=1)
    with torch.no_grad():
        narrow, wide = network(observations, legal), network(observations, padded)
    assert torch.equal(narrow.policy_logits, wide.policy_logits[:, :12])
    assert torch.equal(narrow.wdl_logits, wide.wdl_logits)
    assert torch.equal(narrow.moves_left, wide.moves_left)


def test_each_action_reads_its_own_plane_and_cell():
    cfg = dataclasses.replace(SMALL, policy_pairs=0)
    network = trained(untrained_network(make_spec(), cfg, seed=0)).eval()
    observations, _ = make_inputs(2, 1)
    everything = torch.arange(ACTIONS).repeat(2, 1)
    planes: list[torch.Tensor] = []
    network.policy.planes.register_forward_hook(lambda _module, _inputs, output: planes.append(output))
    with torch.no_grad():
        logits = network(observations, everything)[0]
    flat = planes[0].reshape(2, -1).numpy()
    np.testing.assert_array_equal(logits.numpy(), flat[:, network.spec.gather_index])


@pytest.mark.parametrize("cfg", VARIETIES)
def test_training_makes_only_the_listed_logits_and_they_and_their_gradients_are_those_of_all_planes(cfg):
    network = trained(untrained_network(make_spec(), cfg, seed=0))
    head, generator = network.policy, torch.Generator().manual_seed(2)
    _, legal = make_inputs(4, 11)
    legal[0, 5:] = -1
    x = torch.rand((4, cfg.channels, HEIGHT, WIDTH), generator=generator, requires_grad=True)
    upstream = torch.rand((4, 11), generator=generator)
    found = []
    actions = legal.clamp(min=0)
    for is_training in (False, True):
        logits = head.train(is_training)(x, network.gather_index[actions], network.target_index[actions])
        gradients = torch.autograd.grad(logits, [x, *head.parameters()], upstream)
        found.append((logits, *gradients))
    for dense, listed in zip(*found, strict=True):
        torch.testing.assert_close(listed, dense)


def test_a_pair_term_is_the_product_of_what_lies_at_both_ends_of_a_move_and_a_bias_of_its_target():
    network = trained(untrained_network(make_spec(), SMALL, seed=0)).eval()
    term, (rows, width) = network.policy.pair_term, (3, 11)
    rng = np.random.default_rng(0)
    x = torch.rand((rows, SMALL.channels, HEIGHT, WIDTH), generator=torch.Generator().manual_seed(2))
    sources, targets = (torch.from_numpy(rng.integers(0, HEIGHT * WIDTH, (rows, width))) for _ in range(2))
    with torch.no_grad():
        found, source, target = term(x, sources, targets), term.source(x).flatten(2), term.target(x).flatten(2)
    for row, move in np.ndindex(rows, width):
        start, end = source[row, :, sources[row, move]], target[row, :, targets[row, move]]
        expected = start @ end[:-1] / len(start) ** 0.5 + end[-1]
        torch.testing.assert_close(found[row, move], expected)


def test_rows_are_evaluated_independently():
    network = trained(untrained_network(make_spec(), SMALL, seed=0)).eval()
    observations, legal = make_inputs(6, 9)
    with torch.no_grad():
        together = network(observations, legal)
        alone = [network(observations[row : row + 1], legal[row : row + 1]) for row in range(6)]
    for number, whole in enumerate(together[:3]):
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
        logits, wdl_logits = network(*inputs)[:2]
        folded_logits, wdl = InferenceNetwork(network)(*inputs)
    torch.testing.assert_close(folded_logits, logits, atol=1e-4, rtol=0)
    torch.testing.assert_close(wdl, wdl_logits.softmax(dim=1), atol=1e-5, rtol=0)
    assert any(isinstance(module, torch.nn.BatchNorm2d) for module in network.modules())


@pytest.mark.parametrize(("field", "value"), [("blocks", 0), ("channels", 3), ("value_hidden", 0)])
def test_a_size_that_makes_no_network_is_refused_by_name(field, value):
    with pytest.raises(ValueError, match=f"network.{field} is {value}"):
        NetworkConfig(**{field: value})


# Kinds of networks


class Linear(PolicyValueNetwork):
    """Reads everything off the mean of each plane."""

    def __init__(self, spec: GameSpec, cfg: NetworkConfig) -> None:
        super().__init__(spec, cfg)
        self.policy = torch.nn.Conv2d(spec.observation_shape[0], spec.action_planes, 1)
        self.value = torch.nn.Linear(spec.observation_shape[0], 4)

    def forward(self, observations: torch.Tensor, legal_actions: torch.Tensor) -> NetworkOutput:
        value = self.value(observations.mean(dim=(2, 3)))
        policy_logits = self.gather_policy(self.policy(observations), legal_actions)
        return NetworkOutput(policy_logits, value[:, :3], value[:, 3].exp())


@pytest.fixture
def _own_names() -> Iterator[None]:
    """Take back what a test registers."""
    before = dict(NETWORKS)
    yield
    NETWORKS.clear()
    NETWORKS.update(before)


@pytest.mark.usefixtures("_own_names")
def test_a_registered_kind_is_built_by_its_name():
    assert type(untrained_network(make_spec(), NetworkConfig(), seed=0)) is ResidualNetwork
    assert register_network("linear")(Linear) is Linear
    network = untrained_network(make_spec(), NetworkConfig(kind="linear"), seed=0)
    assert type(network) is Linear
    assert [tuple(output.shape) for output in network(*make_inputs(2, 5))[:3]] == [(2, 5), (2, 3), (2,)]


@pytest.mark.usefixtures("_own_names")
def test_a_name_is_not_registered_twice():
    with pytest.raises(ValueError, match=r"network\.kind 'resnet' is taken by ResidualNetwork"):
        register_network("resnet")(Linear)
    assert NETWORKS["resnet"] is ResidualNetwork


def test_an_unknown_kind_asks_for_its_plugin_and_lists_what_is_known():
    message = r"network\.kind 'transformer' is not known: give the plugin file that registers it \(known: .*resnet.*\)"
    with pytest.raises(ValueError, match=message):
        untrained_network(make_spec(), NetworkConfig(kind="transformer"), seed=0)


def test_making_a_network_leaves_the_global_generator_alone():
    torch.manual_seed(3)
    expected = torch.rand(3)
    torch.manual_seed(3)
    first, second = (untrained_network(make_spec(), SMALL, seed=7).state_dict() for _ in range(2))
    assert torch.equal(torch.rand(3), expected)
    assert all(torch.equal(first[name], second[name]) for name in first)


# What a network must give


class Giving(ResidualNetwork):
    """Gives something else in one field."""

    changes: ClassVar[dict[str, Callable[[NetworkOutput], object]]] = {}

    def forward(self, observations: torch.Tensor, legal_actions: torch.Tensor) -> NetworkOutput:
        output = super().forward(observations, legal_actions)
        return output._replace(**{name: change(output) for name, change in self.changes.items()})


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("moves_left", lambda output: output.moves_left[:, None],
         "moves_left is float32 [3, 1] for N = 3, M = 4, expected float32 [3]"),
        ("moves_left", lambda output: None, "moves_left is missing"),
        ("wdl_logits", lambda output: output.wdl_logits[:, :2], "wdl_logits is float32 [3, 2]"),
        ("policy_logits", lambda output: output.policy_logits.double(), "policy_logits is float64 [3, 4]"),
        ("policy_logits", lambda output: [1.0], "policy_logits is a list"),
        ("soft_policy_logits", lambda output: None, "soft_policy_logits is missing"),
        ("future_logits", lambda output: output.future_logits[:, 1:], "future_logits is float32 [3, "),
    ],
)  # fmt: skip
def test_an_output_that_the_contract_does_not_know_is_refused(name, change, message, monkeypatch):
    network = Giving(
        make_spec(), NetworkConfig(kind="giving", blocks=1, channels=8, soft_policy=True, future_pieces=True)
    )
    check_network(network)
    monkeypatch.setattr(Giving, "changes", {name: change})
    with pytest.raises(ValueError, match=re.escape(f"network.kind 'giving': {message}")):
        check_network(network)


def test_a_network_that_returns_a_plain_tuple_or_cannot_learn_is_refused(monkeypatch):
    network = ResidualNetwork(make_spec(), SMALL)
    state = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    check_network(network)
    assert all(torch.equal(tensor, state[name]) for name, tensor in network.state_dict().items())
    with monkeypatch.context() as patch:
        patch.setattr(ResidualNetwork, "forward", lambda *_: (1, 2, 3))
        with pytest.raises(ValueError, match="forward returns a tuple, expected a NetworkOutput"):
            check_network(network)
    with pytest.raises(ValueError, match="no parameter needs a gradient"):
        check_network(network.requires_grad_(False))
