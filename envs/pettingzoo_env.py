"""Every game as a PettingZoo environment: two agents in turn (AEC), `player_0` White and `player_1` Black.

Needs the extra `gym`. Importing this module registers `AsylumZero/<variant>-v0` for every built-in game:

    pettingzoo.make("aec", "AsylumZero/asylum-v0", max_plies=200)

See docs/environments.md and https://pettingzoo.farama.org/api/aec/.
Dims: A actions, C x H x W observation; both are those of `VectorEnv`, seen by the agent that they are for.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, SupportsIndex, TypeAlias

import numpy as np
import numpy.typing as npt

from envs.errors import IllegalAction
from envs.single_game import NAMESPACE, PLY_CAP, RENDER_MODES, SingleGame
from envs.variant import Variant
from envs.variant_loader import list_variants

try:
    import gymnasium
    import pettingzoo
    from gymnasium.spaces import Box, Dict, Discrete
    from pettingzoo import AECEnv
    from pettingzoo.utils import wrappers
    from pettingzoo.utils.env import AECIterable
    from pettingzoo.utils.env_logger import EnvLogger
except ImportError as error:
    raise ImportError(f"{error}: envs.pettingzoo_env needs the extra: pip install 'asylum-zero[gym]'") from error

AGENTS = ("player_0", "player_1")
"""White and Black."""
SINCE_RESET = (
    "agent_selection", "rewards", "terminations", "truncations", "infos", "_cumulative_rewards",
)  # fmt: skip
"""What an environment has only once it has been reset."""
Observation: TypeAlias = dict[str, npt.NDArray[Any]]


def register_games() -> None:
    """Register `AsylumZero/<variant>-v0` for every built-in game, once."""
    for name in list_variants():
        game_id = f"{NAMESPACE}/{name}-v0"
        if game_id not in pettingzoo.aec_registry:
            pettingzoo.register("aec", game_id, entry_point=env, kwargs={"variant": name})


def env(variant: str | Path | Variant, **settings: Any) -> AECEnv:
    """Make an environment in which an illegal action loses, and one that is none or a wrong order of calls raises.

    Args:
        variant: A built-in name, the path of a variant file, or a resolved variant (then without `options`).
        settings: Those of `ChessVariantEnv`.
    """
    game = IllegalActionLoses(raw_env(variant, **settings))
    return wrappers.OrderEnforcingWrapper(wrappers.AssertOutOfBoundsWrapper(game))


def raw_env(variant: str | Path | Variant, **settings: Any) -> ChessVariantEnv:
    """Make an environment without wrappers, in which an illegal action raises; see `env`."""
    return ChessVariantEnv(variant, **settings)


class ChessVariantEnv(AECEnv):  # type: ignore[misc]  # PettingZoo is untyped
    """A game between two agents.

    An observation is a dictionary of `observation`, float32 [C, H, W] in 0..1 as the agent sees the board, whether it
    is to move or not, and `action_mask`, int8 [A], 1 for legal, all 0 unless it is to move. At the end both agents are
    rewarded: 1 and -1, or 0 each for a draw and for a game that the ply cap truncates. The info of both then holds
    `ending`, why the game is over.
    """

    def __init__(
        self,
        variant: str | Path | Variant,
        *,
        options: Mapping[str, bool] | None = None,
        fen: str | None = None,
        max_plies: int | None = PLY_CAP,
        render_mode: str | None = None,
    ) -> None:
        """Make an environment; call `reset` before anything else. See `SingleGame` for the arguments and errors."""
        super().__init__()
        self._game = SingleGame(variant, options=options, fen=fen, max_plies=max_plies, render_mode=render_mode)
        vector = self._game.env
        self.metadata = {
            "name": f"{vector.variant.name}_v0",
            "render_modes": list(RENDER_MODES),
            "render_fps": 1,
            "is_parallelizable": False,
        }
        self.render_mode = render_mode
        self.possible_agents = list(AGENTS)
        self.agents: list[str] = []
        self.action_spaces = {agent: Discrete(vector.num_actions) for agent in AGENTS}
        self.observation_spaces = {
            agent: Dict({
                "observation": Box(0.0, 1.0, vector.observation_shape, np.float32),
                "action_mask": Box(0, 1, (vector.num_actions,), np.int8),
            })
            for agent in AGENTS
        }  # fmt: skip
        self._rng = np.random.default_rng()

    @property
    def variant(self) -> Variant:
        """The rules."""
        return self._game.env.variant

    def __getattr__(self, name: str) -> Any:
        """Say why an attribute is missing that there is only after `reset`."""
        reason = f"{name}: call reset first" if name in SINCE_RESET else f"{type(self).__name__} has no {name}"
        raise AttributeError(reason)

    def observation_space(self, agent: str) -> Dict:
        """Return the space of an agent's observations, the same object each time."""
        return self.observation_spaces[AGENTS[_side_of(agent)]]

    def action_space(self, agent: str) -> Discrete:
        """Return the space of an agent's actions, the same object each time."""
        return self.action_spaces[AGENTS[_side_of(agent)]]

    def reset(self, seed: int | None = None, options: Mapping[str, Any] | None = None) -> None:
        """Start a new game.

        Args:
            seed: Of the draw of the start position, where the variant has several; None goes on with the old stream.
            options: `fen` says where this game starts; other keys are ignored, as PettingZoo's tests ask.

        Raises:
            InvalidFen: The FEN is no position of the game; nothing has changed.
            ValueError: The game is over there; nothing has changed.
        """
        rng = self._rng if seed is None else np.random.default_rng(seed)
        self._game.reset(rng, (options or {}).get("fen"))
        self._rng = rng
        self.agents = list(AGENTS)
        self.rewards = dict.fromkeys(AGENTS, 0.0)
        self._cumulative_rewards = dict.fromkeys(AGENTS, 0.0)
        self.terminations = dict.fromkeys(AGENTS, False)
        self.truncations = dict.fromkeys(AGENTS, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in AGENTS}
        self.agent_selection = AGENTS[self._game.to_play]

    def agent_iter(self, max_iter: int = 1 << 63) -> AECIterable:
        """Return the agents in turn, for a loop over `last` and `step`."""
        self._refuse_before_reset("agent_iter")
        return super().agent_iter(max_iter)

    def observe(self, agent: str) -> Observation:
        """Return what an agent sees: see the class."""
        side = _side_of(agent)
        self._refuse_before_reset("observe")
        return {"observation": self._game.observe(side), "action_mask": self._game.action_mask(side)}

    def step(self, action: SupportsIndex | None) -> None:
        """Play an action of the agent whose turn it is; None for one whose game is over.

        Raises:
            IllegalAction: It is not legal; nothing has changed.
            TypeError: It is no whole number.
            AttributeError: The environment was not reset.
            ValueError: No agent is left.
        """
        agent = self.agent_selection
        if agent not in self.agents:
            raise ValueError("step: no agent is left, call reset")
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        if action is None:
            raise TypeError(f"{agent}: expected an action, got None")
        self._game.play(action)
        self._finish_step(agent)

    def forfeit(self) -> None:
        """End the game as lost by the agent whose turn it is, for an illegal action."""
        self._game.forfeit()
        self._finish_step(self.agent_selection)

    def _refuse_before_reset(self, asked: str) -> None:
        if not hasattr(self, SINCE_RESET[0]):
            raise AttributeError(f"{asked}: call reset first")

    def _finish_step(self, agent: str) -> None:
        """Tell what an agent's action has led to."""
        self._cumulative_rewards[agent] = 0.0
        if self._game.ending:
            self.rewards = {other: self._game.reward(side) for side, other in enumerate(AGENTS)}
            self.terminations = dict.fromkeys(AGENTS, self._game.terminated)
            self.truncations = dict.fromkeys(AGENTS, self._game.truncated)
            self.infos = {other: {"ending": self._game.ending} for other in AGENTS}
        self.agent_selection = AGENTS[self._game.to_play]
        self._accumulate_rewards()
        if self.render_mode == "human":
            self.render()

    def render(self) -> str | npt.NDArray[np.uint8] | None:
        """Return the text or the picture that `render_mode` asks for, or print the text."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() is called, but the environment was made without a render_mode")
            return None
        return self._game.render()

    def close(self) -> None:
        """Do nothing: nothing is open."""


class IllegalActionLoses(wrappers.BaseWrapper):  # type: ignore[misc]  # PettingZoo is untyped
    """Ends the game as lost by an agent that plays an illegal action, its `ending` being `illegal_action`.

    PettingZoo's own `TerminateIllegalWrapper` would give the other agent nothing, truncate the game too, and say no
    reason.
    """

    def step(self, action: SupportsIndex | None) -> None:
        """Play an action of the agent whose turn it is."""
        try:
            super().step(action)
        except IllegalAction:
            EnvLogger.warn_on_illegal_move()
            self.unwrapped.forfeit()


def _side_of(agent: str) -> int:
    if agent not in AGENTS:
        raise ValueError(f"agent: expected {' or '.join(AGENTS)}, got {agent!r}")
    return AGENTS.index(agent)


register_games()
