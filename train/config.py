"""A run's configuration: strict YAML in, one frozen typed object out, nothing ignored and nothing guessed.

`load_config` reads a file, applies `--set a.b=c` overrides, checks every key, type and range, and names the
file, the line, the key path, what was expected and what was given. Presets inherit nothing.
What each key means stands in `config_sections.py`; `config_table` prints it.
"""

import hashlib
import json
from pathlib import Path
from typing import Any, Self

import yaml
from pydantic import Field, ValidationError, model_validator

from envs.strict_yaml import InvalidYaml, Lines, describe_type, parse_value, read_yaml
from train.config_errors import ConfigError, explain
from train.config_sections import (
    CheckpointsConfig,
    EvaluationConfig,
    InferenceConfig,
    LearnerConfig,
    MetricsConfig,
    NetworkSection,
    PieceValuesConfig,
    RayConfig,
    ReplayConfig,
    SearchConfig,
    Section,
    SelfplayConfig,
    WarmStartConfig,
)

__all__ = ["ConfigError", "RunConfig", "config_table", "from_document", "load_config"]

UNHASHED_KEYS = ("name", "run_root", "ray", "plugins", "checkpoints", "metrics")
"""Top-level keys that say where things are and what is shown, not what is computed; the config hash leaves them out."""
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
    initial_weights: str | None = Field(default=None, min_length=1)
    """A run or checkpoint of the same game and network whose weights a new run begins with; null: random ones."""
    ray: RayConfig = RayConfig()
    search: SearchConfig = SearchConfig()
    selfplay: SelfplayConfig = SelfplayConfig()
    network: NetworkSection = NetworkSection()
    learner: LearnerConfig = LearnerConfig()
    replay: ReplayConfig = ReplayConfig()
    warm_start: WarmStartConfig = WarmStartConfig()
    inference: InferenceConfig = InferenceConfig()
    checkpoints: CheckpointsConfig = CheckpointsConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    piece_values: PieceValuesConfig = PieceValuesConfig()
    metrics: MetricsConfig = MetricsConfig()

    @model_validator(mode="after")
    def _cluster_needs_workers(self) -> Self:
        if self.ray.address is not None and self.workers == 0:
            raise ValueError("ray.address is set, but workers is 0: one process needs no cluster")
        if self.ray.inference_actors and self.workers == 0:
            raise ValueError("ray.inference_actors is set, but workers is 0: one process evaluates for itself")
        if self.ray.inference_actors and self.inference.precision == "int8":
            raise ValueError("ray.inference_actors is set and inference.precision int8, expected float32: workers only")
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
        """Hash what the run computes (SHA-256, 16 hex digits); `UNHASHED_KEYS` do not count."""
        document = {key: value for key, value in self.to_document().items() if key not in UNHASHED_KEYS}
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
