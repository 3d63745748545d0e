"""What can be compared: a game with options on or from another position, or a run under the rules it trained on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from envs import InvalidFen, InvalidVariant, Position, Variant, list_variants, load_variant
from envs.notation import BLACK_CODE, EMPTY, parse_fields
from envs.variant import BLACK
from models.checkpoint import load_player
from train.config import RunConfig, from_document
from train.config_errors import ConfigError
from train.players import CONFIG, check_plugins
from train.plugins import NETWORK

OPTION, START = "+", "@"
FORM = "GAME[+OPTION...][@FEN], FILE.yaml[+OPTION...][@FEN] or the folder of a run"
_NAME = re.compile(r".*?\.ya?ml(?=[+@]|$)|[^+@]*")
"""The path of a file, which may have the marks in it, or a name, which has none."""


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
    def begins_black(self) -> bool:
        """Whether Black moves first."""
        return parse_fields(self.variant, self.variant.start_fen).to_play == BLACK

    @property
    def is_mirrored(self) -> bool:
        """Whether each side stands in every start position as the other one does."""
        boards = [parse_fields(self.variant, fen).board for fen in self.variant.start_fens]
        flipped = list(self.variant.board.flipped)
        return all((board == np.where(board == EMPTY, EMPTY, board ^ BLACK_CODE)[flipped]).all() for board in boards)

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
    if is_folder(text):
        _, variant, state = load_player(Path(text), check=partial(check_plugins, keys=(NETWORK,)))
        return Setting(text, variant, variant, Path(text), state)
    name = file_or_name(text)
    asked, at, fen = text[len(name) :].partition(START)
    options = asked.split(OPTION)[1:]
    if is_folder(name):
        raise ConfigError(f"{text}: a network plays by the rules that it trained on alone, name the run as {name}")
    if "" in options or (at and not fen.strip()):
        raise InvalidVariant(f"{text!r}: expected {FORM}")
    rules = load_variant(name, dict.fromkeys(options, True))
    return Setting(text, _beginning(rules, fen.strip()) if at else rules, rules)


def is_folder(text: str) -> bool:
    """Return whether a text names a folder; the name of a game never does, `./NAME` is the folder beside it."""
    return text not in list_variants() and Path(text).is_dir()


def file_or_name(text: str) -> str:
    """Return the file or the name of the game in a setting's text."""
    found = _NAME.match(text)
    return found[0] if found else ""


def _beginning(rules: Variant, fen: str) -> Variant:
    """Return a game that begins from another position.

    Raises:
        InvalidFen: no game can begin from there.
    """
    position = Position(rules, fen)
    if position.outcome() is not None:
        raise InvalidFen(f"{fen}: the game is over before it begins")
    return replace(rules, start_fens=(position.fen(),))
