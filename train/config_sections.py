"""The sections of a run's configuration: every key with its type, range, default and meaning.

The field descriptions are the reference; `train.config.config_table` prints them.
"""

import re
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator


class Section(BaseModel):
    """A mapping of the config: unknown keys are refused, types are exact, values never change."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, allow_inf_nan=False, use_attribute_docstrings=True
    )


class RayConfig(Section):
    """Where the workers run, and what is done when one fails (docs/cluster.md)."""

    address: str | None = None
    """HOST:PORT of a Ray cluster to join, of which this machine is a node; null starts a local one."""
    allow_unauthenticated: bool = False
    """Join a cluster even if it asks nobody for a token; then whoever reaches its ports can run code on it."""
    heartbeat_timeout_s: float = Field(default=60.0, gt=0)
    """A worker that is silent for so long is hung: it is killed and replaced."""
    start_timeout_s: float = Field(default=300.0, gt=0)
    """The same for one that is starting, or waits for a free CPU."""
    max_restarts: int = Field(default=10, ge=0)
    """Restarts of one worker in a row, without an answer between them, before the run stops."""
    inference_actors: int = Field(default=0, ge=0, le=1000)
    """Processes that evaluate for all workers, in batches; 0: each worker evaluates for itself."""
    inference_device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where they do; `auto`: on GPUs if Ray has one for each, else on CPUs."""
    inference_batch: int = Field(default=2048, ge=1)
    """Rows of a batch at most."""
    inference_wait_ms: float = Field(default=2.0, ge=0, le=1000)
    """How long the first request of a batch waits for others."""

    @model_validator(mode="after")
    def _address_is_one(self) -> Self:
        if self.address is not None and not re.fullmatch(r"[^\s/:]+:\d{1,5}", self.address):
            raise ValueError(f"address is '{self.address}', expected HOST:PORT, such as 10.0.0.1:6379")
        return self


class StageConfig(Section):
    """Budgets of self-play's searches from an iteration on."""

    iteration: int = Field(ge=2)
    """First iteration of the stage, counted from 1."""
    num_simulations: int = Field(ge=1, le=100_000)
    """Simulations of a full search."""
    fast_simulations: int = Field(ge=1, le=100_000)
    """Simulations of a fast search."""

    @model_validator(mode="after")
    def _fast_is_not_slower(self) -> Self:
        _check_budgets(self.num_simulations, self.fast_simulations)
        return self


def _check_budgets(num_simulations: int, fast_simulations: int) -> None:
    if fast_simulations > num_simulations:
        limit = f"num_simulations = {num_simulations}"
        raise ValueError(f"fast_simulations is {fast_simulations}, expected at most {limit}")


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
    stages: list[StageConfig] = Field(default_factory=list)
    """Budgets that grow with the run: `[{iteration: 50, num_simulations: 32, fast_simulations: 12}, ...]`."""
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
    def _budgets_fit(self) -> Self:
        _check_budgets(self.num_simulations, self.fast_simulations)
        starts = [stage.iteration for stage in self.stages]
        if starts != sorted(set(starts)):
            raise ValueError(f"stages begin at iterations {starts}, expected each one later than the one before")
        return self

    def budgets(self, iteration: int) -> tuple[int, int]:
        """Return the simulations of a full and of a fast search in an iteration, counted from 1."""
        budgets = self.num_simulations, self.fast_simulations
        for stage in self.stages:
            if iteration >= stage.iteration:
                budgets = stage.num_simulations, stage.fast_simulations
        return budgets

    @property
    def most_simulations(self) -> int:
        """The largest budget of the whole run."""
        return max(self.num_simulations, *(stage.num_simulations for stage in self.stages), 0)


class SelfplayConfig(Section):
    """How games are made."""

    games_per_worker: int = Field(default=64, ge=1, le=65_536)
    """Games that a worker plays in lockstep."""
    positions_per_iteration: int = Field(default=4096, ge=1)
    """Positions that each worker makes in an iteration."""
    max_plies: int = Field(default=300, ge=2, le=100_000)
    """Ply cap; a game that reaches it is cut, not drawn."""
    sampled_plies: int = Field(default=30, ge=0)
    """Plies from the start whose move is drawn."""
    sampled_from: Literal["visits", "policy"] = "visits"
    """What they are drawn from: root visits, or the policy target, which few simulations leave sharper."""
    temperature: float = Field(default=1.0, gt=0)
    """Those to the power of 1 / this are the odds of that draw."""
    odds_share: float = Field(default=0.2, ge=0, le=1)
    """Share of games that start from random material odds."""
    random_share: float = Field(default=1.0, ge=0, le=1)
    """Share of games that open with random plies."""
    random_plies: int = Field(default=4, ge=0)
    """At most so many random plies open such a game; they train nothing. With `stagger_plies`: below `max_plies`."""
    stagger_plies: int = Field(default=0, ge=0)
    """At most so many random plies more in a lane's first game, so that lanes end apart; bounded as `random_plies`."""
    resign_value: float | None = Field(default=None, gt=0, lt=1)
    """A player resigns whose root value is below minus this on `resign_moves` moves in a row; null: nobody resigns."""
    resign_moves: int = Field(default=3, ge=1)
    """So many own moves in a row."""
    resign_playthrough: float = Field(default=0.1, gt=0, le=1)
    """Share of games that ignore resignation; they measure how often it would have been wrong."""

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
    policy_pairs: int = Field(default=16, ge=0)
    """Features of from- and to-square whose product is part of a move's logit; 0 for none."""
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
    decay: Literal["none", "linear", "cosine"] = "none"
    """How the step size falls over the run."""
    final_rate_share: float = Field(default=0.1, gt=0, le=1)
    """What it falls to by the last iteration, as a share of `learning_rate`."""
    passes: float = Field(default=4.0, gt=0, le=1000)
    """Times that each new full-search row is trained on."""
    ema_snapshots: int = Field(default=8, ge=1)
    """Snapshots that the playing weights average over."""
    outcome_weight: float = Field(default=0.5, ge=0, le=1)
    """Value target: share of the result, rest root value."""
    value_weight: float = Field(default=1.0, ge=0)
    """Weight of the win-draw-loss loss; the policy's is 1."""
    moves_left_weight: float = Field(default=0.02, ge=0)
    """Weight of the moves-left loss."""
    soft_policy_weight: float = Field(default=8.0, ge=0)
    """Weight of the soft policy's loss; KataGo's, since flat targets give small gradients."""
    future_pieces_weight: float = Field(default=1.0, ge=0)
    """Weight of the future board's loss, a mean over squares."""
    future_plies: int = Field(default=8, ge=1)
    """How many plies ahead that board is; near the end, the last board, or none if the ply cap cut the game."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where the network learns; `auto`: on a GPU if there is one."""
    mixed_precision: bool = True
    """On a GPU: run the network in bfloat16 (or float16, with scaled losses) where that is safe."""


class WarmStartConfig(Section):
    """An optional supervised start: games that a new run learns from before its first iteration."""

    player: str | None = Field(default=None, min_length=1)
    """Baseline that plays both sides of these games, such as `greedy`, `alphabeta:2` or one that a plugin registers;
    null: none."""
    shards: str | None = Field(default=None, min_length=1)
    """Folder of stored games of the same rules (`replay/` of another run) to learn from instead; null: none."""
    games: int = Field(default=512, ge=1, le=100_000)
    """Games that the player plays."""
    max_plies: int = Field(default=200, ge=2, le=100_000)
    """Their ply cap; a game that reaches it counts as even."""
    random_plies: int = Field(default=8, ge=0)
    """At most so many random plies open each of them; they train nothing."""
    passes: float = Field(default=2.0, gt=0, le=1000)
    """Times that each position with a policy is trained on."""

    @model_validator(mode="after")
    def _games_come_from_one_source(self) -> Self:
        if self.player is not None and self.shards is not None:
            raise ValueError("player and shards are both set, expected one of them")
        if self.random_plies >= self.max_plies:
            raise ValueError(f"random_plies is {self.random_plies}, expected fewer than max_plies = {self.max_plies}")
        return self


class ReplayConfig(Section):
    """The window of rows that the learner draws from: c(1 + b((N/c)^a - 1)/a) rows out of N."""

    window_base: int = Field(default=250_000, ge=1)
    """c: rows after which the window grows slower than the data."""
    alpha: float = Field(default=0.75, gt=0, le=1)
    """a: exponent of the growth."""
    beta: float = Field(default=0.4, ge=0, le=1)
    """b: growth of the window per row at c."""
    max_memory_mb: int = Field(default=4096, ge=1)
    """Memory of the window; it holds fewer rows where they would not fit."""
    policy_share: float = Field(default=0.75, gt=0, le=1)
    """Share of a batch that is drawn from rows with a policy; the rest trains the value alone."""
    mirror: bool = True
    """Reflect every other row drawn from left to right, where the rules and its castling rights allow it."""
    held_out_share: float = Field(default=0.05, ge=0, le=0.5)
    """Share of games that never train; the loss on them shows what was learnt."""
    held_out_rows: int = Field(default=2048, ge=1)
    """Rows of held-out games that this loss is taken over at most, the newest."""
    pgn_every: int = Field(default=10, ge=0)
    """Iterations between files of games in `games/`; 0 writes none."""
    pgn_games: int = Field(default=10, ge=1)
    """Games of such a file, the last of its iteration."""


class CheckpointsConfig(Section):
    """Which checkpoints stay; the first one and the newest valid one always do."""

    keep_last: int = Field(default=5, ge=1)
    """How many of the newest checkpoints stay."""
    keep_every: int = Field(default=10, ge=0)
    """Checkpoints whose number this divides stay too, to play against or go back to; 0 keeps none of these."""


class EvaluationConfig(Section):
    """Matches during and after training."""

    opponent: str = "random"
    """Baseline to play against: `random`, `greedy`, `alphabeta:PLIES`, or one that a plugin registers."""
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


class MetricsConfig(Section):
    """What TensorBoard shows beside numbers, which every iteration writes."""

    histograms_every: int = Field(default=10, ge=0)
    """Iterations between histograms, after the first ones; 0 shows none."""
    pictures_every: int = Field(default=10, ge=0)
    """Iterations between pictures of boards, after the first ones; 0 shows none."""
