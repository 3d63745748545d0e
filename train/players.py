"""Players by the name that a command line or config gives them.

`random`, `greedy` or another baseline; `alphabeta:3`, the alpha-beta engine by plies, or `alphabeta:50ms`, by time for
each move; the folder of a run (its newest checkpoint) or of one checkpoint. Before a run or a checkpoint may stand
`policy:`, its network without any search, and `int8:`, evaluated in int8, in this order; before a run last
`untrained:`, the same run before it learned anything (its checkpoint 0).
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envs import Variant
from envs.bounded_memory import remember
from train.alphabeta import AlphaBetaPlayer, parse_alphabeta
from train.arena import Player
from train.baselines import BASELINES
from train.config import RunConfig, from_document
from train.network_players import PolicyPlayer, TimedPlayer
from train.plugins import PLAYER_KEYS, RECORD, check_names
from train.precision import FLOAT32, INT8, calibration_positions
from train.search import SearchPlayer, SearchSettings

if TYPE_CHECKING:
    from models.network import PolicyValueNetwork

POLICY_ONLY, AS_INT8, UNTRAINED = "policy:", "int8:", "untrained:"
ALPHABETA = "alphabeta"
CONFIG = "config"
"""Key of a checkpoint's state that holds the resolved config."""
GRAPHS: dict[str, bytes] = {}
"""Exported networks by architecture, since exporting takes seconds; a process that has them may give them to others."""
MAX_GRAPHS = 16


class UnknownPlayer(ValueError):
    """A text that names no player."""


@dataclass(frozen=True)
class Contestant:
    """A player, and what its name implies.

    Attributes:
        player: the player.
        variant: the game that it was trained on; None if it plays any.
        config: of its run; None without a run.
        checkpoint: the folder that it was loaded from; None without one.
        weights_hash: SHA-256 of its network's weights; None without one.
        searches: whether it looks ahead, so that its games take long.
    """

    player: Player
    variant: Variant | None = None
    config: RunConfig | None = None
    checkpoint: Path | None = None
    weights_hash: str | None = None
    searches: bool = False

    @property
    def is_timed(self) -> bool:
        """Whether it thinks by the clock."""
        return getattr(self.player, "seconds", None) is not None


def make_player(text: str, *, simulations: int, seconds: float | None = None, threads: int = 1) -> Contestant:
    """Make the player that a text names.

    Args:
        text: see the module's docstring.
        simulations: per move, for networks that search.
        seconds: wall time per move instead, for networks that search and for `alphabeta` without a number.
        threads: of a network's evaluation.

    Raises:
        UnknownPlayer: the text names neither a baseline nor a folder with checkpoints.
        CorruptFile, CheckpointMismatch: see `models.checkpoint.load_player`.
        ValueError: a network has no int8 form.
    """
    if text in BASELINES:
        return Contestant(BASELINES[text]())
    if text.partition(":")[0] == ALPHABETA:
        return Contestant(_alphabeta(text, seconds), searches=True)
    name = text.removeprefix(POLICY_ONLY).removeprefix(AS_INT8)
    if not name.removeprefix(UNTRAINED).strip():
        raise UnknownPlayer(f"player '{text}': expected a name, got nothing{' behind the colon' if text else ''}")
    folder = Path(name.removeprefix(UNTRAINED))
    if not folder.is_dir():
        near = get_close_matches(text, [*BASELINES, ALPHABETA], n=1)
        hint = f", did you mean '{near[0]}'?" if near else f" ({', '.join(BASELINES)}, alphabeta:PLIES)"
        raise UnknownPlayer(f"player '{text}': expected a run, a checkpoint or a baseline{hint}")
    if name.startswith(UNTRAINED):
        folder = _first_checkpoint(folder)
    loaded = _load(folder, text, threads)
    return loaded if text.startswith(POLICY_ONLY) else _with_search(loaded, text, simulations, seconds)


def common_variant(contestants: list[Contestant], given: Variant | None) -> Variant:
    """Return the one game that all contestants can play.

    Args:
        contestants: the players of a match.
        given: the game asked for; None takes it from the players.

    Raises:
        UnknownPlayer: no game is known, or a player was trained on other rules.
    """
    trained = [contestant.variant for contestant in contestants if contestant.variant]
    variant = given or (trained[0] if trained else None)
    if variant is None:
        raise UnknownPlayer("these players play any game: say which one")
    for contestant in contestants:
        if contestant.variant and contestant.variant.rules_hash != variant.rules_hash:
            own = contestant.variant
            raise UnknownPlayer(
                f"player '{contestant.player.name}' was trained on {describe(own)} ({own.rules_hash[:12]}), "
                f"not on {describe(variant)} ({variant.rules_hash[:12]})"
            )
    return variant


def describe(variant: Variant) -> str:
    """Return a game's name with the options that are on, `asylum+friendly_fire`."""
    return "+".join([variant.name, *(option for option, is_on in variant.options.items() if is_on)])


def check_plugins(state: dict[str, Any], keys: Collection[str] = PLAYER_KEYS) -> None:
    """Refuse a checkpoint's state that needs a plugin which its user has not loaded.

    Args:
        state: of the checkpoint.
        keys: the config's names that are needed.

    Raises:
        ConfigError: names each plugin that is missing.
    """
    check_names(from_document(state[CONFIG], "checkpoint: config"), keys=keys, recorded=state.get(RECORD, ()))


def _first_checkpoint(run_dir: Path) -> Path:
    from models.checkpoint import checkpoint_paths

    paths = checkpoint_paths(run_dir)
    if not paths or int(paths[-1].name) != 0:
        raise UnknownPlayer(f"{run_dir}: no checkpoint 0, which holds the untrained weights")
    return paths[-1]


def _alphabeta(text: str, seconds: float | None) -> AlphaBetaPlayer:
    try:
        if text == ALPHABETA and seconds is not None:
            return AlphaBetaPlayer(seconds=seconds)
        return parse_alphabeta(text)
    except ValueError as error:
        raise UnknownPlayer(f"player {error}") from None


def _load(folder: Path, text: str, threads: int) -> Contestant:
    """Return the network of a checkpoint as a player without search."""
    from models.checkpoint import load_player
    from models.evaluator import make_evaluator

    try:
        network, variant, state = load_player(folder, check=check_plugins)
    except FileNotFoundError as error:
        raise UnknownPlayer(str(error)) from None
    precision = INT8 if text.removeprefix(POLICY_ONLY).startswith(AS_INT8) else FLOAT32
    calibration = calibration_positions(variant) if precision == INT8 else None
    evaluator = make_evaluator(
        network, threads=threads, graph=_graph(network), precision=precision, calibration=calibration
    )
    config = from_document(state[CONFIG], f"{folder}: config")
    return Contestant(PolicyPlayer(evaluator, name=text), variant, config, folder, _weights_hash(network))


def _with_search(loaded: Contestant, text: str, simulations: int, seconds: float | None) -> Contestant:
    """Let a network search, by the clock or by simulations."""
    assert isinstance(loaded.player, PolicyPlayer)
    assert loaded.config is not None
    evaluator = loaded.player.evaluator
    player: Player
    if seconds is not None:
        player = TimedPlayer(evaluator, seconds=seconds, name=f"{text}@{seconds * 1000:g}ms")
    else:
        settings = SearchSettings.of(loaded.config.search)
        name = f"{text}@{simulations}"
        player = SearchPlayer(evaluator, num_simulations=simulations, name=name, settings=settings)
    return replace(loaded, player=player, searches=True)


def _graph(network: PolicyValueNetwork) -> bytes | None:
    """Return the exported graph of a network's architecture; None on a GPU, which needs none."""
    import torch

    from models.evaluator import export_graph

    if torch.cuda.is_available():
        return None
    key = f"{network.cfg} {network.spec.action_hash} {network.spec.rules_hash}"
    return GRAPHS.get(key) or remember(GRAPHS, key, export_graph(network), MAX_GRAPHS)


def _weights_hash(network: PolicyValueNetwork) -> str:
    digest = hashlib.sha256()
    for name, tensor in sorted(network.state_dict().items()):
        digest.update(name.encode() + tensor.cpu().numpy().tobytes())
    return digest.hexdigest()
