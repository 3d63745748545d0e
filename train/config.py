"""A run's configuration: strict YAML in, one frozen typed object out, nothing ignored and nothing guessed.

`load_config` reads a file, applies `--set a.b=c` overrides, checks every key, type and range, and names the
file, the line, the key path, what was expected and what was given. Presets inherit nothing.
The field descriptions below are the reference; `config_table` prints them.
"""

import hashlib
import json
from pathlib import Path
from typing import Any, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from envs.strict_yaml import InvalidYaml, Lines, describe_type, parse_value, read_yaml
from train.config_errors import ConfigError, explain

__all__ = ["ConfigError", "RunConfig", "config_table", "from_document", "load_config"]

LOCATION_KEYS = ("name", "run_root", "ray", "plugins")
"""Top-level keys that say where things are, not what is computed; the config hash leaves them out."""
HASH_DIGITS = 16


class _PlainDumper(yaml.SafeDumper):
    """Writes YAML that the strict loader reads back: strings that look like something else are quoted."""

    def represent_text(self, text: str) -> yaml.ScalarNode:
        """Quote a string unless it is read back as itself."""
        try:
            is_plain = parse_value(text, "a string") == text
        except InvalidYaml:
            is_plain = False
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=None if is_plain else '"')


_PlainDumper.add_representer(str, _PlainDumper.represent_text)


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


class RunConfig(Section):
    """Everything that a training run needs to know."""

    variant: str = Field(min_length=1)
    """A built-in game's name, or the path of a variant file."""
    options: dict[str, bool] = Field(default_factory=dict)
    """Options of the variant, name: true or false."""
    name: str | None = Field(default=None, pattern=r"^[\w][\w.+-]*$")
    """Folder of the run; null makes one."""
    run_root: str = Field(default="runs", min_length=1)
    """Folder that runs are kept in."""
    seed: int = Field(default=1, ge=0, lt=2**63)
    """The one seed of every random stream."""
    iterations: int = Field(default=20, ge=1)
    """Self-play and learning rounds."""
    workers: int = Field(default=2, ge=0, le=10_000)
    """Self-play processes; 0 plays in this process."""
    plugins: list[str] = Field(default_factory=list)
    """Paths of Python files of your own code (networks, search policies, baselines), which run with your rights."""
    ray: RayConfig = RayConfig()
    search: SearchConfig = SearchConfig()
    selfplay: SelfplayConfig = SelfplayConfig()
    network: NetworkSection = NetworkSection()
    learner: LearnerConfig = LearnerConfig()
    replay: ReplayConfig = ReplayConfig()
    inference: InferenceConfig = InferenceConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    piece_values: PieceValuesConfig = PieceValuesConfig()

    @model_validator(mode="after")
    def _cluster_needs_workers(self) -> Self:
        if self.ray.address is not None and self.workers == 0:
            raise ValueError("ray.address is set, but workers is 0: one process needs no cluster")
        return self

    @model_validator(mode="after")
    def _int8_can_be_used(self) -> Self:
        if self.inference.precision == "float32":
            return self
        if self.network.kind != "resnet":
            raise ValueError(f"inference.precision is int8, expected float32 for network.kind '{self.network.kind}'")
        if self.inference.match_from >= self.iterations:
            raise ValueError(
                f"inference.match_from is {self.inference.match_from}, expected fewer than iterations = "
                f"{self.iterations}: int8 would never play"
            )
        return self

    def to_document(self) -> dict[str, Any]:
        """Return the resolved config as plain data (JSON-able); `from_document` reads it back."""
        return self.model_dump(mode="python")

    def to_yaml(self) -> str:
        """Return the resolved config as YAML that `load_config` reads back to an equal config."""
        return yaml.dump(self.to_document(), Dumper=_PlainDumper, sort_keys=False, allow_unicode=True)

    def config_hash(self) -> str:
        """Hash what the run computes (SHA-256, 16 hex digits); `LOCATION_KEYS` do not count."""
        document = {key: value for key, value in self.to_document().items() if key not in LOCATION_KEYS}
        text = json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:HASH_DIGITS]


def load_config(path: str | Path, overrides: list[str] | None = None) -> RunConfig:
    """Read a config file, apply overrides in order, and check everything.

    Args:
        path: a YAML file.
        overrides: `a.b=c` texts, as given to `--set`; the value is parsed as YAML.

    Raises:
        ConfigError: anything is unknown, missing, of another type or out of range; lists every fault.
        OSError: the file cannot be read.
    """
    try:
        document, lines = read_yaml(path)
    except InvalidYaml as error:
        raise ConfigError(str(error)) from None
    for override in overrides or []:
        _apply_override(document, lines, override)
    return from_document(document, str(path), lines)


def from_document(document: dict[str, Any], where: str = "config", lines: Lines | None = None) -> RunConfig:
    """Check plain data (as `RunConfig.to_document` gives it) and build the config.

    Args:
        document: the data.
        where: name of its source, for errors.
        lines: line of each key path, where known; 0 marks a path that came from the command line.

    Raises:
        ConfigError: see `load_config`.
    """
    try:
        return RunConfig.model_validate(document)
    except ValidationError as error:
        raise ConfigError(explain(error, RunConfig, where, lines or {})) from None


def config_table() -> str:
    """Return every key with its type, default and meaning as a Markdown table."""
    rows = ["| key | default | meaning |", "|---|---|---|"]
    return "\n".join(rows + _table_rows(RunConfig, ()))


def _table_rows(section: type[Section], path: tuple[str, ...]) -> list[str]:
    rows = []
    for name, field in section.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, Section):
            rows += _table_rows(field.annotation, (*path, name))
            continue
        default = "(required)" if field.is_required() else json.dumps(field.get_default(call_default_factory=True))
        rows.append(f"| `{'.'.join((*path, name))}` | `{default}` | {field.description} |")
    return rows


def _apply_override(document: dict[str, Any], lines: Lines, override: str) -> None:
    """Set one `a.b=c` in `document` (mutated); what it adds gets line 0 in `lines` (mutated)."""
    key, equals, text = override.partition("=")
    path = tuple(key.split("."))
    if not equals or not all(path):
        raise ConfigError(f"--set {override}: expected KEY=VALUE, such as search.num_simulations=32")
    try:
        value = parse_value(text, f"--set {override}")
    except InvalidYaml as error:
        raise ConfigError(f"--set {override}: {error.reason}") from None
    section = document
    for depth, name in enumerate(path[:-1], start=1):
        if name not in section:
            lines[path[:depth]] = 0
        section = section.setdefault(name, {})
        if not isinstance(section, dict):
            prefix = ".".join(path[:depth])
            raise ConfigError(f"--set {override}: {prefix} is {describe_type(section)}, expected a mapping")
    section[path[-1]] = value
    for stale in [known for known in lines if known[: len(path)] == path]:
        del lines[stale]
    lines[path] = 0
