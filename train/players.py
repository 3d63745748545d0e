"""Players by the name that a command line or config gives them.

`random`, `greedy` or another baseline; the folder of a run (its newest checkpoint) or of one checkpoint;
`untrained:RUN`, the same run before it learned anything (its checkpoint 0). `int8:` before a run or a checkpoint
evaluates in int8.
"""

from collections.abc import Collection
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from envs import Variant
from train.arena import Player
from train.baselines import BASELINES
from train.config import RunConfig, from_document
from train.plugins import PLAYER_KEYS, RECORD, check_names
from train.precision import FLOAT32, INT8, calibration_positions
from train.search import SearchPlayer, SearchSettings

UNTRAINED, AS_INT8 = "untrained:", "int8:"
CONFIG = "config"
"""Key of a checkpoint's state that holds the resolved config."""


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
    """

    player: Player
    variant: Variant | None = None
    config: RunConfig | None = None
    checkpoint: Path | None = None


def make_player(text: str, *, simulations: int) -> Contestant:
    """Make the player that a text names.

    Args:
        text: see the module's docstring.
        simulations: per move, for players that search.

    Raises:
        UnknownPlayer: the text names neither a baseline nor a folder with checkpoints.
        CorruptFile, CheckpointMismatch: see `models.checkpoint.load_player`.
        ValueError: a network has no int8 form.
    """
    if text in BASELINES:
        return Contestant(BASELINES[text]())
    name = text.removeprefix(AS_INT8)
    folder = Path(name.removeprefix(UNTRAINED))
    if not folder.is_dir():
        near = get_close_matches(text, BASELINES, n=1)
        hint = f", did you mean '{near[0]}'?" if near else f" ({', '.join(BASELINES)})"
        raise UnknownPlayer(f"player '{text}': expected a run, a checkpoint or a baseline{hint}")
    return _load(_first_checkpoint(folder) if name.startswith(UNTRAINED) else folder, text, simulations)


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


def _load(folder: Path, name: str, simulations: int) -> Contestant:
    from models.checkpoint import load_player
    from models.evaluator import make_evaluator

    try:
        network, variant, state = load_player(folder, check=check_plugins)
    except FileNotFoundError as error:
        raise UnknownPlayer(str(error)) from None
    config = from_document(state[CONFIG], f"{folder}: config")
    settings = SearchSettings.of(config.search)
    precision = INT8 if name.startswith(AS_INT8) else FLOAT32
    calibration = calibration_positions(variant) if precision == INT8 else None
    player = SearchPlayer(
        make_evaluator(network, precision=precision, calibration=calibration),
        num_simulations=simulations,
        name=f"{name}@{simulations}",
        settings=settings,
    )
    return Contestant(player, variant, config, folder)
