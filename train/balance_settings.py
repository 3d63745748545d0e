"""What can be compared: a game with options on or from another position, or a run under the rules it trained on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from envs import InvalidFen, InvalidVariant, Position, Variant, load_variant
from models.checkpoint import load_player
from train.config import RunConfig, from_document
from train.config_errors import ConfigError
from train.players import CONFIG, check_plugins
from train.plugins import NETWORK

OPTION, START = "+", "@"
FORM = "GAME[+OPTION...][@FEN], FILE.yaml[+OPTION...][@FEN] or the folder of a run"


@dataclass(frozen=True)
class Setting:
    """One game as it is played.

    Attributes:
        label: how it was asked for.
        variant: the game, with the position from which it begins.
        rules: the game as its file has it, of which the alpha-beta engine's evaluation is learned.
        run: folder of the run or checkpoint whose network plays; None for the alpha-beta engine.
        state: of its newest checkpoint.
    """

    label: str
    variant: Variant
    rules: Variant
    run: Path | None = None
    state: Mapping[str, Any] | None = None

    @property
    def config(self) -> RunConfig | None:
        """The run's config."""
        return None if self.state is None else from_document(self.state[CONFIG], f"{self.run}: config")


def read_setting(text: str) -> Setting:
    """Return the setting that a text names, of the form `FORM`.

    Raises:
        InvalidVariant: there is no such game or option.
        InvalidFen: no game can begin from that position.
        ConfigError: a run is asked to play by rules that it has not trained on, or its plugin is not loaded.
        FileNotFoundError: a folder holds no run.
        CorruptFile, CheckpointMismatch: see `models.checkpoint.load_player`.
    """
    if Path(text).is_dir():
        _, variant, state = load_player(Path(text), check=partial(check_plugins, keys=(NETWORK,)))
        return Setting(text, variant, variant, Path(text), state)
    asked, at, fen = text.partition(START)
    name, *options = asked.split(OPTION)
    if Path(name).is_dir():
        raise ConfigError(f"{text}: a network plays by the rules that it trained on alone, name the run as {name}")
    if "" in options or (at and not fen.strip()):
        raise InvalidVariant(f"{text!r}: expected {FORM}")
    rules = load_variant(name, dict.fromkeys(options, True))
    return Setting(text, _beginning(rules, fen.strip()) if at else rules, rules)


def _beginning(rules: Variant, fen: str) -> Variant:
    """Return a game that begins from another position.

    Raises:
        InvalidFen: no game can begin from there.
    """
    position = Position(rules, fen)
    if position.outcome() is not None:
        raise InvalidFen(f"{fen}: the game is over before it begins")
    return replace(rules, start_fens=(position.fen(),))
