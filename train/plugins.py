"""Files of a user's own code: networks, search policies and baselines, registered by name.

A plugin is one Python file that registers something as it is imported. Its user names it, in a config (`plugins`) or
on a command line (`--plugin`), and its code runs with its user's rights; what a run or a checkpoint says of plugins is
only ever shown and compared. Workers, on other machines too, get a plugin by content. See docs/extend.md.
"""

from __future__ import annotations

import hashlib
import importlib.util
import linecache
import logging
import sys
import traceback
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from train.baselines import BASELINES, is_baseline, register_baseline
from train.config import ConfigError, RunConfig
from train.search_policies import BUILT_IN, SEARCH_POLICIES, SearchSettings, policy_names, register_search_policy

if TYPE_CHECKING:
    from models.network import PolicyValueNetwork

__all__ = [
    "Plugin", "check_names", "import_plugins", "load_plugins", "register_baseline", "register_network",
    "register_search_policy",
]  # fmt: skip

NETWORK, POLICY, OPPONENT = "network.kind", "search.policy", "evaluation.opponent"
"""Config keys that hold a registered name."""
PLAYER_KEYS = (NETWORK, POLICY)
"""Those that a trained player needs."""
POLICY_METHODS = ("root_noise", "select", "conclude")
"""Those of `SearchPolicy`."""
RECORD = "plugins"
"""Key under which a run's manifest and a checkpoint's state hold `Plugin.record` of each plugin; older ones lack it."""
MODULE_PREFIX = "_asylum_zero_plugin_"
_log = logging.getLogger(__name__)
_loaded: dict[str, Plugin] = {}
"""Plugins that this process has loaded from files, by the name of their module."""


@dataclass(frozen=True)
class Plugin:
    """One file of a user's own code.

    Attributes:
        name: Of the file, without its folder.
        source: Its content.
        registers: What it registered, as a config would name it: `search.policy=ucb`.
    """

    name: str
    source: bytes
    registers: tuple[str, ...] = ()

    @property
    def sha256(self) -> str:
        """The SHA-256 of the file, 64 hex digits."""
        return hashlib.sha256(self.source).hexdigest()

    @property
    def module(self) -> str:
        """Name of the module that the file becomes; equal contents are one module."""
        return MODULE_PREFIX + self.sha256

    def record(self) -> dict[str, Any]:
        """Return what a run keeps of the plugin (JSON-able)."""
        return {"file": self.name, "sha256": self.sha256, "registers": list(self.registers)}


def register_network(name: str) -> Callable[[type[PolicyValueNetwork]], type[PolicyValueNetwork]]:
    """Register a subclass of `PolicyValueNetwork` under a name of `network.kind`; a class decorator."""
    from models.network import register_network as register  # PyTorch, which a worker does without

    return register(name)


def load_plugins(paths: Iterable[str | Path]) -> tuple[Plugin, ...]:
    """Run files of the user's own code in this process, each content once.

    Args:
        paths: Files that the user named; relative ones start from the working directory.

    Raises:
        ConfigError: A file is missing or no Python file, fails, or registers nothing or a name that is taken; then
            nothing of it stays registered.
    """
    return tuple(dict.fromkeys(_load(Path(path)) for path in paths))


def import_plugins(plugins: Iterable[Plugin]) -> None:
    """Run plugins that came by content, unless this process has run them already."""
    for plugin in plugins:
        if plugin.module not in sys.modules:
            _execute(plugin)


def check_names(
    cfg: RunConfig, *, keys: Collection[str] | None = None, recorded: Sequence[Mapping[str, Any]] = ()
) -> None:
    """Refuse a config with a name that neither this package nor a loaded plugin knows, or an unfit search policy.

    Args:
        cfg: The config.
        keys: Which of its names are needed; None is all of them.
        recorded: `Plugin.record` of the plugins that the config's run began with. They are never loaded from here:
            the error asks for them, and a file of another content is warned about.

    Raises:
        ConfigError: For each such name, says what is known, or which plugin is missing; for a policy, what is wrong.
    """
    sections, faults = cfg.to_document(), []
    for key, registry in _registries().items():
        if keys is not None and key not in keys:
            continue
        section, field = key.split(".")
        name, known = sections[section][field], policy_names() if key == POLICY else list(registry)
        before = next((plugin for plugin in recorded if f"{key}={name}" in plugin["registers"]), None)
        if name not in known and not (key == OPPONENT and is_baseline(name)):
            faults.append(_unknown(key, name, known) if before is None else _missing(key, name, before))
            continue
        if before is not None:
            _compare(f"{key}={name}", before)
        if key == POLICY and name not in BUILT_IN:
            faults += _faults_of_policy(cfg)
    if faults:
        raise ConfigError("\n".join(faults))


def _faults_of_policy(cfg: RunConfig) -> list[str]:
    """Make the policy that a config names, as each worker will, and say what is wrong with it."""
    name = cfg.search.policy
    try:
        policy = SEARCH_POLICIES[name](SearchSettings.of(cfg.search))
    except Exception as error:  # noqa: BLE001 - whatever a user's own code raises
        return [f"{POLICY}: '{name}' cannot be made from SearchSettings: {type(error).__name__}: {error}"]
    missing = [method for method in POLICY_METHODS if not callable(getattr(policy, method, None))]
    return [f"{POLICY}: '{name}' lacks the methods {', '.join(missing)}"] if missing else []


def _unknown(key: str, name: str, known: Collection[str]) -> str:
    near = get_close_matches(name, known, n=1)
    hint = f", did you mean '{near[0]}'?" if near else ""
    return f"{key}: expected {' or '.join(known)}, or the name that a plugin registers, got '{name}'{hint}"


def _missing(key: str, name: str, before: Mapping[str, Any]) -> str:
    return (
        f"{key}: '{name}' is registered by the plugin {before['file']} (SHA-256 {before['sha256']}), whose code is "
        f"never loaded from a run: if you trust your copy of it, add --plugin {before['file']}"
    )


def _compare(registered: str, before: Mapping[str, Any]) -> None:
    """Warn if a name is registered by other code than before."""
    for plugin in _loaded.values():
        if registered in plugin.registers and plugin.sha256 != before["sha256"]:
            _log.warning(
                "%s: plugin %s has SHA-256 %s; the run began with %s, %s",
                registered, plugin.name, plugin.sha256, before["file"], before["sha256"],
            )  # fmt: skip


def _registries() -> dict[str, dict[str, Any]]:
    """Return what is registered, by the config key that names it."""
    from models.network import NETWORKS

    return {NETWORK: NETWORKS, POLICY: SEARCH_POLICIES, OPPONENT: BASELINES}


def _load(path: Path) -> Plugin:
    if path.suffix != ".py":
        raise ConfigError(f"plugin {path}: expected a Python file, NAME.py")
    if not path.is_file():
        raise ConfigError(f"plugin {path}: no such file")
    plugin = Plugin(path.name, path.read_bytes())
    if plugin.module not in _loaded:
        _loaded[plugin.module] = _registered(plugin)
    return _loaded[plugin.module]


def _registered(plugin: Plugin) -> Plugin:
    """Run a plugin and return it with what it registered; if it fails, take that back."""
    registries = _registries()
    before = {key: dict(registry) for key, registry in registries.items()}
    try:
        _execute(plugin)
        new = tuple(f"{key}={name}" for key, registry in registries.items() for name in registry.keys() - before[key])
        if not new:
            raise ConfigError(f"plugin {plugin.name}: registers nothing: no network, search policy or baseline")
    except ConfigError:
        sys.modules.pop(plugin.module, None)
        for key, registry in registries.items():
            registry.clear()
            registry.update(before[key])
        raise
    return Plugin(plugin.name, plugin.source, tuple(sorted(new)))


def _execute(plugin: Plugin) -> None:
    """Run a plugin as a module of its own.

    Raises:
        ConfigError: It fails; the message names its line and the exception.
    """
    module = ModuleType(plugin.module)
    module.__file__ = plugin.name
    sys.modules[plugin.module] = module  # before it runs: dataclasses look their module up
    try:
        text = importlib.util.decode_source(plugin.source)
        linecache.cache[plugin.name] = (len(text), None, text.splitlines(keepends=True), plugin.name)
        exec(compile(plugin.source, plugin.name, "exec"), module.__dict__)
    except (Exception, SystemExit) as error:
        del sys.modules[plugin.module]
        raise ConfigError(_failure(plugin, error)) from error


def _failure(plugin: Plugin, error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return f"plugin {plugin.name}:{error.lineno}: {type(error).__name__}: {error.msg}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == plugin.name]
    place = f"{plugin.name}:{lines[-1]}" if lines else plugin.name
    return f"plugin {place}: {type(error).__name__}: {error}"
