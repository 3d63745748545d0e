"""Keys of players: equal for players of equal strength, whatever a command line calls them.

A key names how a player thinks, and holds a hash of all else that its strength rests on: of a network its weights and
the settings of its search, of the alpha-beta engine its table and its settings, of a plugin its source. So a run is the
same player by any spelling of its path, and another one after more training.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from envs import Variant
from train.alphabeta import PLAYER_TABLE_BITS, QUIESCENCE_PLIES, AlphaBetaPlayer
from train.evaluation_tables import table_for
from train.network_players import TimedPlayer
from train.players import AS_INT8, POLICY_ONLY, Contestant
from train.plugins import NETWORK, OPPONENT, POLICY, Plugin
from train.search import SearchPlayer

KEY_DIGITS = 16


def player_keys(players: Mapping[str, Contestant], variant: Variant, plugins: Iterable[Plugin] = ()) -> dict[str, str]:
    """Return the keys of players.

    Args:
        players: by the texts that made them.
        variant: the game that they play.
        plugins: all that are loaded.
    """
    return {text: _key(text, contestant, variant, list(plugins)) for text, contestant in players.items()}


def _key(text: str, contestant: Contestant, variant: Variant, plugins: list[Plugin]) -> str:
    player, basis = contestant.player, dict[str, Any]()
    registered = {f"{OPPONENT}={text}"}
    name = text
    if isinstance(player, AlphaBetaPlayer):
        name = player.name
        basis = _alphabeta_basis(variant)
    elif contestant.weights_hash is not None and contestant.config is not None:
        name = f"{_modes(text)}network{_thinking(contestant)}"
        settings = getattr(player, "settings", None)
        basis = {"weights": contestant.weights_hash, "search": asdict(settings) if settings else None}
        registered = {f"{NETWORK}={contestant.config.network.kind}", f"{POLICY}={contestant.config.search.policy}"}
    sources = sorted(plugin.sha256 for plugin in plugins if registered & set(plugin.registers))
    if not basis and not sources:
        return name
    return f"{name}#{_digest({**basis, 'plugins': sources})}"


def _alphabeta_basis(variant: Variant) -> dict[str, Any]:
    table = table_for(variant)
    weights = hashlib.sha256(table.weights.astype("<i4").tobytes()).hexdigest()
    settings = {"quiescence_plies": QUIESCENCE_PLIES, "table_bits": PLAYER_TABLE_BITS}
    return {"weights": weights, "tempo": table.tempo, **settings}


def _modes(text: str) -> str:
    """Return the prefixes of a network's text that change how it plays its weights."""
    is_policy = text.startswith(POLICY_ONLY)
    is_int8 = text.removeprefix(POLICY_ONLY).startswith(AS_INT8)
    return POLICY_ONLY * is_policy + AS_INT8 * is_int8


def _thinking(contestant: Contestant) -> str:
    """Return what limits the search of a network, `@32` or `@50ms`."""
    player = contestant.player
    if isinstance(player, SearchPlayer):
        return f"@{player.num_simulations}"
    return f"@{player.seconds * 1000:g}ms" if isinstance(player, TimedPlayer) else ""


def _digest(basis: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(basis, sort_keys=True).encode()).hexdigest()[:KEY_DIGITS]
