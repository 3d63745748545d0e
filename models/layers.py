"""The parts of the residual network: normalised convolutions, squeeze-and-excitation, pooled biases, heads.

Dims: N batch, H x W the grid, F channels. Planes inside a network are zero on the holes of a board, so that a mean
over the grid divided by `squares_share` is one over real squares.

Sources: squeeze-and-excitation with scale and shift as in lc0; pooled biases as global pooling in KataGo (Wu 2019,
section 3.3); blocks whose last gain begins as 0: Goyal et al. 2017, section 5.1.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import pad, softplus
from torch.nn.utils.fusion import fuse_conv_bn_eval

NUM_RESULTS = 3
"""Win, draw, loss: the order of every WDL array."""
MOVES_LEFT_SCALE = 100.0
"""Plies per unit of the moves-left head's raw output; keeps its gradients of order one."""
LAST_LAYER_STD = 0.01
"""Initial weights of the last layers: an untrained network is near-uniform and sees near-even games."""
CHANNEL_MULTIPLE = 4
"""Input channels of ONNX Runtime's blocked convolutions; with others it takes a path of half the speed."""


def last_layer(layer: nn.Linear | nn.Conv2d) -> None:
    """Initialise a layer whose output is a head's."""
    nn.init.normal_(layer.weight, std=LAST_LAYER_STD)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)


class ConvNorm(nn.Module):
    """A convolution without bias and its BatchNorm; after `fold` one convolution with bias."""

    def __init__(self, inputs: int, outputs: int, kernel_size: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel_size, padding=kernel_size // 2, bias=False)
        self.norm: nn.Module = nn.BatchNorm2d(outputs)
        self._missing_channels = 0
        nn.init.kaiming_normal_(self.conv.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        """Map [N, inputs, H, W] to [N, outputs, H, W]."""
        if self._missing_channels:
            x = pad(x, (0, 0, 0, 0, 0, self._missing_channels))
        normalised: Tensor = self.norm(self.conv(x))
        return normalised

    def fold(self) -> None:
        """Merge the normalisation's running statistics into the convolution, in place; for inference only.

        Input channels are filled up with zeros to a multiple of `CHANNEL_MULTIPLE`.
        """
        if not isinstance(self.norm, nn.BatchNorm2d):
            return
        self.conv = fuse_conv_bn_eval(self.conv.eval(), self.norm.eval())
        self.norm = nn.Identity()
        self._missing_channels = -self.conv.in_channels % CHANNEL_MULTIPLE
        self.conv.in_channels += self._missing_channels
        self.conv.weight = nn.Parameter(pad(self.conv.weight, (0, 0, 0, 0, 0, self._missing_channels)))


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
        """Add to x [N, outputs, H, W] what a source and its mean say, see `bias`."""
        return x + self.bias(source, mean)[:, :, None, None]

    def bias(self, source: Tensor, mean: Tensor) -> Tensor:
        """Return what is added to every square [N, outputs].

        Args:
            source: [N, inputs, H, W], at least 0, zero on holes.
            mean: [N, inputs], the source's mean over real squares.
        """
        bias: Tensor = self.linear(torch.cat((mean, source.amax(dim=(2, 3))), dim=1))
        return bias


class ResidualBlock(nn.Module):
    """Two normalised 3x3 convolutions and a skip connection; untrained convolutions count for nothing."""

    def __init__(self, channels: int, *, squares_share: float, excited: bool, pooled: bool) -> None:
        super().__init__()
        self.first = ConvNorm(channels, channels, 3)
        self.second = ConvNorm(channels, channels, 3)
        self.excitation = SqueezeExcitation(channels) if excited else None
        self.pooled_bias = PooledBias(channels, channels) if pooled else None
        self.squares_share = squares_share
        # Before there are statistics, blocks of unit gain would double the activations' variance, one after the other.
        assert isinstance(self.second.norm, nn.BatchNorm2d)
        nn.init.zeros_(self.second.norm.weight)

    def forward(self, x: Tensor, squares: Tensor | None) -> Tensor:
        """Map x [N, F, H, W] to the same shape, both zero on holes.

        Args:
            x: output of the layer before.
            squares: 1 on squares, 0 on holes [N, 1, H, W]; None where the grid has no holes.
        """
        y = torch.relu_(self.first(x))
        if self.pooled_bias is not None:
            y = self.pooled_bias(y, x, x.mean(dim=(2, 3)) / self.squares_share)
        y = self.second(y if squares is None else y * squares)
        if self.excitation is not None:
            seen = y if squares is None else y * squares
            y = self.excitation(y, seen.mean(dim=(2, 3)) / self.squares_share)
        y = torch.relu_(x + y)
        return y if squares is None else y * squares


class PolicyHead(nn.Module):
    """Logits of moves: a 1x1 convolution to one plane for each kind of step, read at the from-square, and more.

    By choice there are a bias from the whole board, and a term of the pair of from- and to-square: a plane must learn
    for each step apart what is worth taking at its end, a pair learns it once.
    """

    def __init__(self, channels: int, planes: int, *, squares_share: float, pooled: bool, pairs: int) -> None:
        super().__init__()
        self.planes = nn.Conv2d(channels, planes, 1)
        self.squares_share = squares_share
        self.pooled_bias = PooledBias(channels, planes) if pooled else None
        self.pair_term = PairTerm(channels, pairs) if pairs else None
        last_layer(self.planes)
        if self.pooled_bias is not None:
            last_layer(self.pooled_bias.linear)

    def forward(self, x: Tensor, index: Tensor, targets: Tensor) -> Tensor:
        """Return the logits [N, M] of moves.

        Args:
            x: [N, channels, H, W], zero on holes.
            index: int64 [N, M], plane * H * W + from-cell.
            targets: int64 [N, M], to-cell.
        """
        # In training, all planes and their gradients would take a tenth of a step's time.
        logits = self._entries(x, index) if self.training else self.planes(x).flatten(1).gather(1, index)
        cells = x.shape[2] * x.shape[3]
        if self.pooled_bias is not None:
            bias = self.pooled_bias.bias(x, x.mean(dim=(2, 3)) / self.squares_share)
            logits = logits + bias.gather(1, index // cells)
        return logits if self.pair_term is None else logits + self.pair_term(x, index % cells, targets)

    def _entries(self, x: Tensor, index: Tensor) -> Tensor:
        """Return entries [N, M] of the planes without making the others."""
        cells = x.shape[2] * x.shape[3]
        plane, cell = index // cells, index % cells + cells * torch.arange(len(x), device=x.device)[:, None]
        features = x.permute(0, 2, 3, 1).reshape(-1, x.shape[1]).index_select(0, cell.flatten())
        weights = self.planes.weight.flatten(1).index_select(0, plane.flatten())
        assert self.planes.bias is not None
        logits: Tensor = (features * weights).sum(dim=1) + self.planes.bias.index_select(0, plane.flatten())
        return logits.view(index.shape)


class PairTerm(nn.Module):
    """A number for each pair of squares: the product of their features, and a bias of the second."""

    def __init__(self, channels: int, features: int) -> None:
        super().__init__()
        self.source = nn.Conv2d(channels, features, 1)
        self.target = nn.Conv2d(channels, features + 1, 1)
        self.scale = features**-0.5
        last_layer(self.target)

    def forward(self, x: Tensor, sources: Tensor, targets: Tensor) -> Tensor:
        """Map x [N, channels, H, W] and cells int64 [N, M] to [N, M]."""
        source, target = _at(self.source(x), sources), _at(self.target(x), targets)
        logits: Tensor = (source * target[..., :-1]).sum(dim=-1) * self.scale + target[..., -1]
        return logits


def _at(planes: Tensor, cells: Tensor) -> Tensor:
    """Return what planes [N, F, H, W] hold at cells int64 [N, M]: [N, M, F]."""
    by_cell = planes.flatten(2).transpose(1, 2)  # (N, H * W, F)
    found: Tensor = by_cell.gather(1, cells[:, :, None].expand(-1, -1, planes.shape[1]))
    return found


class ValueHead(nn.Module):
    """Result and moves left, from the mean and the maximum of a few channels over the board.

    Pooling counts what is on the board wherever it stands; a head that reads every square by itself learns single
    games by heart long before it can count material.
    """

    def __init__(self, channels: int, *, reduced: int, hidden: int, squares_share: float) -> None:
        super().__init__()
        self.squares_share = squares_share
        self.reduce = ConvNorm(channels, reduced, 1)
        self.hidden = nn.Linear(2 * reduced, hidden)
        self.wdl = nn.Linear(hidden, NUM_RESULTS)
        self.moves_left = nn.Linear(hidden, 1)
        last_layer(self.wdl)
        last_layer(self.moves_left)

    def forward(self, x: Tensor, squares: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return WDL logits [N, 3] and plies left [N] of x [N, F, H, W]."""
        y = torch.relu_(self.reduce(x))
        y = y if squares is None else y * squares
        pooled = torch.cat((y.mean(dim=(2, 3)) / self.squares_share, y.amax(dim=(2, 3))), dim=1)
        hidden = torch.relu(self.hidden(pooled))
        return self.wdl(hidden), softplus(self.moves_left(hidden))[:, 0] * MOVES_LEFT_SCALE
