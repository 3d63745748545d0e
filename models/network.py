"""Policy-value networks: what every one takes and gives, the registry of their kinds, and the residual tower.

Dims: N batch, C observation planes, H x W the grid, A actions, P action planes, M legal actions of a row
(padded), F channels, T piece types. Every output belongs to the player to move of its row.

Sources: AlphaZero (Silver et al. 2018) for the tower, whose parts are in `layers.py`. A policy head has one plane
per displacement, gathered at the legal actions, so that no layer is A wide. Two auxiliary heads only train: the
soft policy (KataGo's KataGoMethods.md, "Auxiliary Soft Policy Target") and a piece map of the board some plies
later (after KataGo's future-position head).
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from models.layers import ConvNorm, PolicyHead, ResidualBlock, ValueHead, last_layer

if TYPE_CHECKING:
    from envs import CompiledGame


@dataclass(frozen=True)
class NetworkConfig:
    """Kind, size and parts of a network.

    Attributes:
        kind: a name of `NETWORKS`.
        blocks: residual blocks, two 3x3 convolutions each.
        channels: F, channels of the tower.
        squeeze_excitation: scale and shift the channels of each block by the board's mean activations.
        global_pooling: add the board's mean and maximum to every second block, from the second on, and to the policy
            head.
        policy_pairs: features of from- and to-square whose product is part of a move's logit; 0 for none.
        value_channels: channels that the value head pools over the board.
        value_hidden: width of the value head's hidden layer.
        soft_policy: train a second policy head on a flattened policy target.
        future_pieces: train a head that predicts where each piece will stand some plies later.
    """

    kind: str = "resnet"
    blocks: int = 5
    channels: int = 64
    squeeze_excitation: bool = True
    global_pooling: bool = False
    policy_pairs: int = 16
    value_channels: int = 32
    value_hidden: int = 64
    soft_policy: bool = False
    future_pieces: bool = False

    def __post_init__(self) -> None:
        """Refuse sizes that make no network.

        Raises:
            ValueError: a size is below its minimum.
        """
        minima = {"blocks": 1, "channels": 4, "policy_pairs": 0, "value_channels": 1, "value_hidden": 1}
        for name, minimum in minima.items():
            if getattr(self, name) < minimum:
                raise ValueError(f"network.{name} is {getattr(self, name)}, expected at least {minimum}")


@dataclass(frozen=True, eq=False)
class GameSpec:
    """All that a network needs to know of a game.

    Attributes:
        observation_shape: (C, H, W); the last plane is 1 on real squares, 0 on holes.
        piece_planes: 2T; the first of the C planes, own pieces by type and then the enemy's.
        action_planes: P.
        gather_index: int32 [A], plane * H * W + from-cell of each action, seen by its mover.
        target_index: int32 [A], to-cell of each action, likewise.
        num_squares: S; S < H * W means that the grid has holes.
        action_hash: hash of the action encoding.
        rules_hash: hash of the compiled rules and options.
    """

    observation_shape: tuple[int, int, int]
    piece_planes: int
    action_planes: int
    gather_index: NDArray[np.int32]
    target_index: NDArray[np.int32]
    num_squares: int
    action_hash: str
    rules_hash: str

    @property
    def num_actions(self) -> int:
        """A, the number of actions."""
        return len(self.gather_index)

    @property
    def squares_share(self) -> float:
        """Share of the grid's cells that are squares of the board; below 1 the grid has holes."""
        return self.num_squares / (self.observation_shape[1] * self.observation_shape[2])

    @classmethod
    def of(cls, game: CompiledGame) -> GameSpec:
        """Read the spec off a compiled game."""
        return cls(
            observation_shape=game.observation_shape,
            piece_planes=2 * len(game.variant.piece_types),
            action_planes=game.encoding.num_planes,
            gather_index=game.encoding.gather_index,
            target_index=game.encoding.target_index,
            num_squares=game.variant.num_squares,
            action_hash=game.encoding.hash,
            rules_hash=game.variant.rules_hash,
        )


class NetworkOutput(NamedTuple):
    """What a network says of N positions.

    Attributes:
        policy_logits: [N, M], one per listed action, whatever in the padded entries.
        wdl_logits: [N, 3]: win, draw, loss of the player to move.
        moves_left: [N], plies to the end, at least 0.
        soft_policy_logits: [N, M]; None without that head.
        future_logits: [N, 2T + 1, H, W]: empty, own piece by type, enemy piece by type; None without that head.
    """

    policy_logits: Tensor
    wdl_logits: Tensor
    moves_left: Tensor
    soft_policy_logits: Tensor | None = None
    future_logits: Tensor | None = None


class PolicyValueNetwork(nn.Module):
    """Base class of the networks of one game.

    Attributes:
        spec: the game it was made for.
        cfg: its kind, size and parts.
        gather_index: int64 [A] buffer; belongs to the game, so it is not part of the state dict.
        target_index: int64 [A] buffer; likewise.
    """

    gather_index: Tensor
    target_index: Tensor

    def __init__(self, spec: GameSpec, cfg: NetworkConfig) -> None:
        """Keep spec and config; weights come from torch's global generator, see `untrained_network`."""
        super().__init__()
        self.spec, self.cfg = spec, cfg
        for name in ("gather_index", "target_index"):
            self.register_buffer(name, torch.from_numpy(getattr(spec, name).astype(np.int64)), persistent=False)

    def forward(self, observations: Tensor, legal_actions: Tensor) -> NetworkOutput:
        """Evaluate a batch of positions.

        Args:
            observations: float32 [N, C, H, W], seen by the player to move.
            legal_actions: int64 [N, M], padded with -1.
        """
        raise NotImplementedError

    def gather_policy(self, planes: Tensor, legal_actions: Tensor) -> Tensor:
        """Return the logits [N, M] of listed actions out of planes [N, P, H, W]; padding gets action 0's."""
        return planes.flatten(1).gather(1, self.gather_index[legal_actions.clamp(min=0)])

    def fold(self) -> None:
        """Keep what inference needs, in place: merges normalisation into convolutions, drops training-only heads.

        It may rename and reshape tensors, but must do the same to every network of one architecture.
        """
        for module in self.modules():
            if isinstance(module, ConvNorm):
                module.fold()


NETWORKS: dict[str, type[PolicyValueNetwork]] = {}
"""Kinds of networks by the name that a config gives."""


def register_network(name: str) -> Callable[[type[PolicyValueNetwork]], type[PolicyValueNetwork]]:
    """Return a class decorator that makes a network available as `network.kind`.

    Raises:
        ValueError: the name is taken.
    """

    def register(network: type[PolicyValueNetwork]) -> type[PolicyValueNetwork]:
        if name in NETWORKS:
            raise ValueError(f"network.kind '{name}' is taken by {NETWORKS[name].__qualname__}")
        NETWORKS[name] = network
        return network

    return register


@register_network("resnet")
class ResidualNetwork(PolicyValueNetwork):
    """A residual tower with a spatial policy head, a value head and the auxiliary heads of its config."""

    def __init__(self, spec: GameSpec, cfg: NetworkConfig) -> None:
        """Build it, see `PolicyValueNetwork`."""
        super().__init__(spec, cfg)
        share, channels = spec.squares_share, cfg.channels
        self.stem = ConvNorm(spec.observation_shape[0], channels, 3)
        self.blocks = nn.ModuleList(
            ResidualBlock(
                channels,
                squares_share=share,
                excited=cfg.squeeze_excitation,
                pooled=cfg.global_pooling and index % 2 == 1,
            )
            for index in range(cfg.blocks)
        )
        self.policy = self._policy_head()
        self.value = ValueHead(channels, reduced=cfg.value_channels, hidden=cfg.value_hidden, squares_share=share)
        self.soft_policy = self._policy_head() if cfg.soft_policy else None
        self.future = nn.Conv2d(channels, spec.piece_planes + 1, 1) if cfg.future_pieces else None
        if self.future is not None:
            last_layer(self.future)

    def forward(self, observations: Tensor, legal_actions: Tensor) -> NetworkOutput:
        """Evaluate a batch of positions, see `PolicyValueNetwork`."""
        squares = observations[:, -1:] if self.spec.squares_share < 1 else None
        x = torch.relu_(self.stem(observations))
        x = x if squares is None else x * squares
        for block in self.blocks:
            x = block(x, squares)
        wdl_logits, moves_left = self.value(x, squares)
        soft = None if self.soft_policy is None else self._policy_logits(self.soft_policy, x, legal_actions)
        return NetworkOutput(
            policy_logits=self._policy_logits(self.policy, x, legal_actions),
            wdl_logits=wdl_logits,
            moves_left=moves_left,
            soft_policy_logits=soft,
            future_logits=None if self.future is None else self.future(x),
        )

    def fold(self) -> None:
        """Keep what inference needs, see `PolicyValueNetwork`."""
        super().fold()
        self.soft_policy = self.future = None

    def _policy_logits(self, head: PolicyHead, x: Tensor, legal_actions: Tensor) -> Tensor:
        actions = legal_actions.clamp(min=0)
        logits: Tensor = head(x, self.gather_index[actions], self.target_index[actions])
        return logits

    def _policy_head(self) -> PolicyHead:
        return PolicyHead(
            self.cfg.channels,
            self.spec.action_planes,
            squares_share=self.spec.squares_share,
            pooled=self.cfg.global_pooling,
            pairs=self.cfg.policy_pairs,
        )


def network_class(kind: str) -> type[PolicyValueNetwork]:
    """Return the class of a kind of networks.

    Raises:
        ValueError: nothing registers it; the message lists what is known.
    """
    if kind not in NETWORKS:
        known = ", ".join(sorted(NETWORKS))
        raise ValueError(f"network.kind '{kind}' is not known: give the plugin file that registers it (known: {known})")
    return NETWORKS[kind]


def untrained_network(spec: GameSpec, cfg: NetworkConfig, *, seed: int) -> PolicyValueNetwork:
    """Return a new network whose weights depend on the seed alone; the global generator is left alone.

    Raises:
        ValueError: the config's kind is not known.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return network_class(cfg.kind)(spec, cfg)


def example_inputs(spec: GameSpec, rows: int, width: int) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Return observations [N, C, H, W] and legal actions [N, M] that look like positions: some pieces, some padding."""
    rng = np.random.default_rng(rows)
    grid = spec.observation_shape[1:]
    observations = (rng.random((rows, *spec.observation_shape)) < 1 / spec.piece_planes).astype(np.float32)
    observations[:, -1] = (np.arange(grid[0] * grid[1]) < spec.num_squares).reshape(grid)
    observations *= observations[:, -1:]
    actions = rng.integers(0, spec.num_actions, (rows, width), dtype=np.int32)
    actions[:, 1:] = np.where(rng.random((rows, width - 1)) < 0.2, -1, actions[:, 1:])
    return observations, actions


def check_network(network: PolicyValueNetwork) -> None:
    """Refuse a network that cannot be trained; evaluates a copy of it, in training mode, on examples.

    Raises:
        ValueError: no parameter needs a gradient, or an output is not what `NetworkOutput` says, or an auxiliary head
            that the config asks for is missing.
    """
    where, rows, width = f"network.kind '{network.cfg.kind}'", 3, 4
    if not any(parameter.requires_grad for parameter in network.parameters()):
        raise ValueError(f"{where}: no parameter needs a gradient, expected some to train")
    observations, actions = map(torch.from_numpy, example_inputs(network.spec, rows, width))
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        output = copy.deepcopy(network).cpu().train()(observations, actions.long())
    if not isinstance(output, NetworkOutput):
        raise ValueError(f"{where}: forward returns a {type(output).__name__}, expected a NetworkOutput")
    expected = {"policy_logits": (rows, width), "wdl_logits": (rows, 3), "moves_left": (rows,)}
    if network.cfg.soft_policy:
        expected["soft_policy_logits"] = (rows, width)
    if network.cfg.future_pieces:
        expected["future_logits"] = (rows, network.spec.piece_planes + 1, *network.spec.observation_shape[1:])
    for name, shape in expected.items():
        found, wanted = _described(getattr(output, name)), f"float32 {list(shape)}"
        if found != wanted:
            raise ValueError(f"{where}: {name} is {found} for N = {rows}, M = {width}, expected {wanted}")


def _described(value: object) -> str:
    """Return type and shape of an output."""
    if isinstance(value, Tensor):
        return f"{str(value.dtype).removeprefix('torch.')} {list(value.shape)}"
    return "missing" if value is None else f"a {type(value).__name__}"


class InferenceNetwork(nn.Module):
    """What search needs of a network, folded: prior logits and WDL probabilities."""

    def __init__(self, network: PolicyValueNetwork) -> None:
        """Copy and fold a network; the original is left alone."""
        super().__init__()
        self.folded = copy.deepcopy(network).cpu().float().eval()
        self.folded.fold()
        self.folded.requires_grad_(False)

    def forward(self, observations: Tensor, legal_actions: Tensor) -> tuple[Tensor, Tensor]:
        """Return prior logits [N, M] and WDL probabilities [N, 3], float32 both; actions may be int32."""
        output = self.folded(observations, legal_actions.long())
        return output.policy_logits.float(), torch.softmax(output.wdl_logits.float(), dim=1)
