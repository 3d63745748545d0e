"""The sections of a run's configuration: every key with its type, range, default and meaning.

The field descriptions are the reference; `train.config.config_table` prints them.
"""

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator


class Section(BaseModel):
    """A mapping of the config: unknown keys are refused, types are exact, values never change."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, allow_inf_nan=False, use_attribute_docstrings=True
    )


class RayConfig(Section):
    """Where the workers run."""

    address: str | None = None
    """Address of a Ray cluster to join; null starts a local one."""


class SearchConfig(Section):
    """Search in self-play."""

    policy: str = "gumbel"
    """Search policy: gumbel, puct, or one that a plugin registers."""
    num_simulations: int = Field(default=16, ge=1, le=100_000)
    """Simulations of a full search; its policy trains."""
    fast_simulations: int = Field(default=8, ge=1, le=100_000)
    """Simulations of a fast search; it trains the value."""
    full_search_share: float = Field(default=0.25, gt=0, le=1)
    """Share of moves that get a full search."""
    max_considered_actions: int = Field(default=16, ge=1)
    """Gumbel: root actions that sequential halving starts from (m)."""
    c_visit: float = Field(default=50.0, ge=0)
    """Gumbel: visit offset in the weight of completed Q-values."""
    c_scale: float = Field(default=1.0, gt=0)
    """Gumbel: scale of completed Q-values, which lie in [0, 1]."""
    c_puct: float = Field(default=1.25, ge=0)
    """PUCT: weight of priors against values, which lie in [-1, 1]."""
    c_puct_base: float = Field(default=19652.0, gt=0)
    """PUCT: visits over which that weight grows."""
    fpu_reduction: float = Field(default=0.2, ge=0)
    """PUCT: how much worse than its node an unvisited move is taken to be."""
    noise_share: float = Field(default=0.25, ge=0, le=1)
    """PUCT: share of Dirichlet noise in the root's priors."""
    noise_total: float = Field(default=10.0, gt=0)
    """PUCT: sum of the noise's concentrations, spread over the legal moves."""
    cache_positions: int = Field(default=65_536, ge=0, le=2**24)
    """Evaluations that a worker remembers at most; games are the same without."""

    @model_validator(mode="after")
    def _fast_is_not_slower(self) -> Self:
        if self.fast_simulations > self.num_simulations:
            limit = f"num_simulations = {self.num_simulations}"
            raise ValueError(f"fast_simulations is {self.fast_simulations}, expected at most {limit}")
        return self


class SelfplayConfig(Section):
    """How games are made."""

    games_per_worker: int = Field(default=64, ge=1, le=65_536)
    """Games that a worker plays in lockstep."""
    positions_per_iteration: int = Field(default=4096, ge=1)
    """Positions that each worker makes in an iteration."""
    max_plies: int = Field(default=300, ge=2, le=100_000)
    """Ply cap; a game that reaches it is cut, not drawn."""
    sampled_plies: int = Field(default=30, ge=0)
    """Plies from the start whose move is drawn from root visits."""
    temperature: float = Field(default=1.0, gt=0)
    """Root visits to the power of 1 / this are the odds of that draw."""
    odds_share: float = Field(default=0.2, ge=0, le=1)
    """Share of games that start from random material odds."""
    random_plies: int = Field(default=4, ge=0)
    """At most so many random plies open a game; they train nothing. With `stagger_plies`: below `max_plies`."""
    stagger_plies: int = Field(default=0, ge=0)
    """At most so many random plies more in a lane's first game, so that lanes end apart; bounded as `random_plies`."""

    @model_validator(mode="after")
    def _openings_leave_a_game(self) -> Self:
        longest = self.random_plies + self.stagger_plies
        if longest >= self.max_plies:
            raise ValueError(
                f"random_plies + stagger_plies is {longest}, expected fewer than max_plies = {self.max_plies}"
            )
        return self


class NetworkSection(Section):
    """Kind, size and parts of the network; `models.network.NetworkConfig` takes the same fields."""

    kind: str = Field(default="resnet", min_length=1)
    """Kind of network: `resnet`, or one that a plugin registers."""
    blocks: int = Field(default=5, ge=1, le=100)
    """Residual blocks, two 3x3 convolutions each."""
    channels: int = Field(default=64, ge=4, le=4096)
    """Channels of the tower."""
    squeeze_excitation: bool = True
    """Scale and shift channels by the board's mean activations."""
    global_pooling: bool = False
    """Add board-wide means and maxima to every second block, from the second on, and to the policy head."""
    value_channels: int = Field(default=32, ge=1)
    """Channels that the value head pools over the board."""
    value_hidden: int = Field(default=64, ge=1)
    """Width of the value head's hidden layer."""
    soft_policy: bool = False
    """Train a second policy head on the policy target to the power 1/4 (auxiliary, as in KataGo)."""
    future_pieces: bool = False
    """Train a head on where each piece stands some plies later (auxiliary)."""


class LearnerConfig(Section):
    """How the network learns."""

    batch_size: int = Field(default=256, ge=1)
    """Rows of a step."""
    learning_rate: float = Field(default=1e-3, gt=0, le=1)
    """AdamW's step size after warm-up."""
    weight_decay: float = Field(default=1e-4, ge=0)
    """AdamW's decoupled weight decay."""
    clip_norm: float = Field(default=1.0, gt=0)
    """Gradients are scaled down to this norm."""
    warmup_steps: int = Field(default=100, ge=0)
    """Steps over which the step size grows from 0."""
    passes: float = Field(default=4.0, gt=0, le=1000)
    """Times that each new full-search row is trained on."""
    ema_snapshots: int = Field(default=8, ge=1)
    """Snapshots that the playing weights average over."""
    outcome_weight: float = Field(default=0.5, ge=0, le=1)
    """Value target: share of the result, rest root value."""
    moves_left_weight: float = Field(default=0.02, ge=0)
    """Weight of the moves-left loss."""
    soft_policy_weight: float = Field(default=8.0, ge=0)
    """Weight of the soft policy's loss; KataGo's, since flat targets give small gradients."""
    future_pieces_weight: float = Field(default=1.0, ge=0)
    """Weight of the future board's loss, a mean over squares."""
    future_plies: int = Field(default=8, ge=1)
    """How many plies ahead that board is; near the end, the last board, or none if the ply cap cut the game."""


class ReplayConfig(Section):
    """The window of rows that the learner draws from: c(1 + b((N/c)^a - 1)/a) rows out of N."""

    window_base: int = Field(default=250_000, ge=1)
    """c: rows after which the window grows slower than the data."""
    alpha: float = Field(default=0.75, gt=0, le=1)
    """a: exponent of the growth."""
    beta: float = Field(default=0.4, ge=0, le=1)
    """b: growth of the window per row at c."""


class EvaluationConfig(Section):
    """Matches during and after training."""

    opponent: str = "random"
    """Baseline to play against: `random`, or one that a plugin registers."""
    games: int = Field(default=100, ge=4, multiple_of=2)
    """Games of a match: pairs of one opening, colours swapped."""
    simulations: int = Field(default=32, ge=1, le=100_000)
    """Simulations per move in matches."""
    random_plies: int = Field(default=4, ge=0)
    """Random plies of each opening."""
    max_plies: int = Field(default=300, ge=2, le=100_000)
    """Ply cap of a match's games; one that reaches it scores as a draw."""
    every: int = Field(default=0, ge=0)
    """Iterations between matches; 0 plays only after the last one."""

    @model_validator(mode="after")
    def _openings_leave_a_game(self) -> Self:
        if self.random_plies >= self.max_plies:
            raise ValueError(f"random_plies is {self.random_plies}, expected fewer than max_plies = {self.max_plies}")
        return self


class InferenceConfig(Section):
    """Precision of self-play's evaluations."""

    precision: Literal["float32", "int8"] = "float32"
    """`float32`, or `int8`: faster, used once a match has shown that it plays about as well (docs/performance.md)."""
    match_from: int = Field(default=10, ge=1)
    """int8: iteration after which that match is played, by the weights of then; float32 until it."""
    match_games: int = Field(default=400, ge=4, multiple_of=2)
    """int8: games of that match; simulations, openings and ply cap are those of `evaluation`."""


class PieceValuesConfig(Section):
    """The outcome regression after training."""

    bootstrap: int = Field(default=1000, ge=100, le=100_000)
    """Resamples of the games behind each interval."""
    min_games: int = Field(default=50, ge=10)
    """Fewer finished games than this: no values at all."""
    min_games_per_piece: int = Field(default=20, ge=2)
    """Fewer games with a difference in a piece: no value for it."""
    quiet_only: bool = True
    """Use positions with no capture or promotion just before or after."""
    weighting: Literal["game", "position"] = "game"
    """What counts once: each game or each position."""
