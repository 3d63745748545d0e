"""The policy-value network: a residual tower with a spatial policy head, a WDL head and a moves-left head.

Dims: N batch, C observation planes, H x W the grid, A actions, P action planes, M legal actions of a row
(padded), F channels. Every output belongs to the player to move of its row.

Sources: AlphaZero (Silver et al. 2018) for the tower; squeeze-and-excitation with scale and shift as in lc0;
global pooling as in KataGo (Wu 2019, section 3.3). The policy head has one plane per displacement, gathered
at the legal actions, so that no layer is A wide. Normalisation is BatchNorm, always behind a convolution:
`InferenceNetwork` merges the two.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

if TYPE_CHECKING:
    from envs import CompiledGame

NUM_RESULTS = 3
"""Win, draw, loss: the order of every WDL array."""
MOVES_LEFT_SCALE = 100.0
"""Plies per unit of the moves-left head's raw output; keeps its gradients of order one."""
LAST_LAYER_STD = 0.01
"""Initial weights of the last layers: an untrained network is near-uniform and sees near-even games."""


@dataclass(frozen=True)
class NetworkConfig:
    """Size and parts of a network.

    Attributes:
        blocks: residual blocks, two 3x3 convolutions each.
        channels: F, channels of the tower.
        squeeze_excitation: scale and shift the channels of each block by the board's mean activations.
        global_pooling: add the board's mean and maximum to every second block and to the policy head.
        value_channels: channels that the value head pools over the board.
        value_hidden: width of the value head's hidden layer.
    """

    blocks: int = 5
    channels: int = 64
    squeeze_excitation: bool = True
    global_pooling: bool = False
    value_channels: int = 32
    value_hidden: int = 64

    def __post_init__(self) -> None:
        """Refuse sizes that make no network.

        Raises:
            ValueError: a size is below its minimum.
        """
        minima = {"blocks": 1, "channels": 4, "value_channels": 1, "value_hidden": 1}
        for name, minimum in minima.items():
            if getattr(self, name) < minimum:
                raise ValueError(f"network.{name} is {getattr(self, name)}, expected at least {minimum}")


@dataclass(frozen=True, eq=False)
class GameSpec:
    """All that a network needs to know of a game.

    Attributes:
        observation_shape: (C, H, W); the last plane is 1 on real squares, 0 on holes.
        action_planes: P.
        gather_index: int32 [A], plane * H * W + from-cell of each action, seen by its mover.
        num_squares: S; S < H * W means that the grid has holes.
        action_hash: hash of the action encoding.
        rules_hash: hash of the compiled rules and options.
    """

    observation_shape: tuple[int, int, int]
    action_planes: int
    gather_index: NDArray[np.int32]
    num_squares: int
    action_hash: str
    rules_hash: str

    @property
    def num_actions(self) -> int:
        """A, the number of actions."""
        return len(self.gather_index)

    @property
    def has_holes(self) -> bool:
        """Whether some cell of the grid is no square of the board."""
        return self.num_squares < self.observation_shape[1] * self.observation_shape[2]

    @classmethod
    def of(cls, game: CompiledGame) -> GameSpec:
        """Read the spec off a compiled game."""
        return cls(
            observation_shape=game.observation_shape,
            action_planes=game.encoding.num_planes,
            gather_index=game.encoding.gather_index,
            num_squares=game.variant.num_squares,
            action_hash=game.encoding.hash,
            rules_hash=game.variant.rules_hash,
        )


class ConvNorm(nn.Module):
    """A convolution without bias and its BatchNorm; after `fold` one convolution with bias."""

    def __init__(self, inputs: int, outputs: int, kernel_size: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel_size, padding=kernel_size // 2, bias=False)
        self.norm: nn.Module = nn.BatchNorm2d(outputs)
        nn.init.kaiming_normal_(self.conv.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        """Map [N, inputs, H, W] to [N, outputs, H, W]."""
        normalised: Tensor = self.norm(self.conv(x))
        return normalised

    def fold(self) -> None:
        """Merge the normalisation's running statistics into the convolution, in place; for inference only."""
        if isinstance(self.norm, nn.BatchNorm2d):
            self.conv = fuse_conv_bn_eval(self.conv.eval(), self.norm.eval())
            self.norm = nn.Identity()


class SqueezeExcitation(nn.Module):
    """Per-channel scale and shift, computed from the board's mean activations."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.squeeze = nn.Linear(channels, max(channels // 4, 8))
        self.scale = nn.Linear(self.squeeze.out_features, channels)
        self.shift = nn.Linear(self.squeeze.out_features, channels)

    def forward(self, x: Tensor, mean: Tensor) -> Tensor:
        """Scale and shift x [N, F, H, W] by its mean [N, F]."""
        hidden = torch.relu(self.squeeze(mean))
        scale = torch.sigmoid(self.scale(hidden))[:, :, None, None]
        shift: Tensor = self.shift(hidden)[:, :, None, None]
        return x * scale + shift


class PooledBias(nn.Module):
    """Adds a linear function of the board's mean and maximum to every square."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(2 * inputs, outputs)
        nn.init.zeros_(self.linear.bias)

    def forward(self, x: Tensor, source: Tensor, mean: Tensor) -> Tensor:
        """Add to x [N, outputs, H, W] what a source and its mean say.

        Args:
            x: where to add.
            source: [N, inputs, H, W], at least 0, zero on holes.
            mean: [N, inputs], the source's mean over real squares.
        """
        bias: Tensor = self.linear(torch.cat((mean, source.amax(dim=(2, 3))), dim=1))
        return x + bias[:, :, None, None]


class ResidualBlock(nn.Module):
    """Two normalised 3x3 convolutions and a skip connection."""

    def __init__(self, cfg: NetworkConfig, *, squares_share: float, pooled: bool) -> None:
        super().__init__()
        self.first = ConvNorm(cfg.channels, cfg.channels, 3)
        self.second = ConvNorm(cfg.channels, cfg.channels, 3)
        self.excitation = SqueezeExcitation(cfg.channels) if cfg.squeeze_excitation else None
        self.pooled_bias = PooledBias(cfg.channels, cfg.channels) if pooled else None
        self.squares_share = squares_share

    def forward(self, x: Tensor, squares: Tensor | None) -> Tensor:
        """Map x [N, F, H, W] to the same shape, both zero on holes.

        Args:
            x: output of the layer before.
            squares: 1 on squares, 0 on holes [N, 1, H, W]; None where the grid has no holes.
        """
        y = torch.relu(self.first(x))
        if self.pooled_bias is not None:
            y = self.pooled_bias(y, x, x.mean(dim=(2, 3)) / self.squares_share)
        y = self.second(y if squares is None else y * squares)
        if self.excitation is not None:
            seen = y if squares is None else y * squares
            y = self.excitation(y, seen.mean(dim=(2, 3)) / self.squares_share)
        y = torch.relu(x + y)
        return y if squares is None else y * squares


class ValueHead(nn.Module):
    """Result and moves left, from the mean and the maximum of a few channels over the board.

    Pooling counts what is on the board wherever it stands; a head that reads every square by itself learns single
    games by heart long before it can count material.
    """

    def __init__(self, cfg: NetworkConfig, *, squares_share: float) -> None:
        super().__init__()
        self.squares_share = squares_share
        self.reduce = ConvNorm(cfg.channels, cfg.value_channels, 1)
        self.hidden = nn.Linear(2 * cfg.value_channels, cfg.value_hidden)
        self.wdl = nn.Linear(cfg.value_hidden, NUM_RESULTS)
        self.moves_left = nn.Linear(cfg.value_hidden, 1)
        for layer in (self.wdl, self.moves_left):
            nn.init.normal_(layer.weight, std=LAST_LAYER_STD)
            nn.init.zeros_(layer.bias)

    def forward(self, x: Tensor, squares: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return WDL logits [N, 3] and plies left [N] of x [N, F, H, W]."""
        y = torch.relu(self.reduce(x))
        y = y if squares is None else y * squares
        pooled = torch.cat((y.mean(dim=(2, 3)) / self.squares_share, y.amax(dim=(2, 3))), dim=1)
        hidden = torch.relu(self.hidden(pooled))
        moves_left = nn.functional.softplus(self.moves_left(hidden))[:, 0] * MOVES_LEFT_SCALE
        return self.wdl(hidden), moves_left


class PolicyValueNetwork(nn.Module):
    """The network of one game.

    Attributes:
        spec: the game it was made for.
        cfg: its size and parts.
        gather_index: int64 [A] buffer; belongs to the game, so it is not part of the state dict.
    """

    gather_index: Tensor

    def __init__(self, spec: GameSpec, cfg: NetworkConfig) -> None:
        """Build a network; its weights come from torch's global generator, see `untrained_network`."""
        super().__init__()
        planes, height, width = spec.observation_shape
        self.spec, self.cfg = spec, cfg
        share = spec.num_squares / (height * width)
        self.stem = ConvNorm(planes, cfg.channels, 3)
        self.blocks = nn.ModuleList(
            ResidualBlock(cfg, squares_share=share, pooled=cfg.global_pooling and index % 2 == 1)
            for index in range(cfg.blocks)
        )
        self.policy = nn.Conv2d(cfg.channels, spec.action_planes, 1)
        self.policy_bias = PooledBias(cfg.channels, spec.action_planes) if cfg.global_pooling else None
        self.value = ValueHead(cfg, squares_share=share)
        self.squares_share = share
        nn.init.normal_(self.policy.weight, std=LAST_LAYER_STD)
        nn.init.zeros_(_bias(self.policy))
        if self.policy_bias is not None:
            nn.init.normal_(self.policy_bias.linear.weight, std=LAST_LAYER_STD)
        index = torch.from_numpy(spec.gather_index.astype(np.int64))
        self.register_buffer("gather_index", index, persistent=False)

    def forward(self, observations: Tensor, legal_actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Evaluate a batch of positions.

        Args:
            observations: float32 [N, C, H, W], seen by the player to move.
            legal_actions: int64 [N, M], padded with -1.

        Returns:
            Policy logits float32 [N, M], one per listed action (padded entries hold action 0's), WDL logits
            [N, 3]: win, draw, loss of the player to move, and plies left [N], at least 0.
        """
        squares = observations[:, -1:] if self.spec.has_holes else None
        x = torch.relu(self.stem(observations))
        x = x if squares is None else x * squares
        for block in self.blocks:
            x = block(x, squares)
        planes = self.policy(x)
        if self.policy_bias is not None:
            planes = self.policy_bias(planes, x, x.mean(dim=(2, 3)) / self.squares_share)
        index = self.gather_index[legal_actions.clamp(min=0)]
        policy_logits = planes.flatten(1).gather(1, index)
        wdl_logits, moves_left = self.value(x, squares)
        return policy_logits, wdl_logits, moves_left


def untrained_network(spec: GameSpec, cfg: NetworkConfig, *, seed: int) -> PolicyValueNetwork:
    """Return a new network whose weights depend on the seed alone; the global generator is left alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return PolicyValueNetwork(spec, cfg)


class InferenceNetwork(nn.Module):
    """What search needs of a network, with every normalisation folded: prior logits and WDL probabilities."""

    def __init__(self, network: PolicyValueNetwork) -> None:
        """Copy and fold a network; the original is left alone."""
        super().__init__()
        self.folded = copy.deepcopy(network).cpu().float().eval().requires_grad_(False)
        for module in self.folded.modules():
            if isinstance(module, ConvNorm):
                module.fold()

    def forward(self, observations: Tensor, legal_actions: Tensor) -> tuple[Tensor, Tensor]:
        """Return prior logits [N, M] and WDL probabilities [N, 3]; actions may be int32."""
        policy_logits, wdl_logits, _ = self.folded(observations, legal_actions.long())
        return policy_logits, torch.softmax(wdl_logits, dim=1)


def _bias(layer: nn.Conv2d) -> Tensor:
    """Return the bias of a layer that has one."""
    assert layer.bias is not None
    return layer.bias
