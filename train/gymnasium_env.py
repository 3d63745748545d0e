"""Every game as a Gymnasium environment for one agent, against a player of this package.

Needs the extra `gym`. Importing this module registers `AsylumZero/<variant>-v0` for every built-in game:

    gymnasium.make("AsylumZero/asylum-v0", opponent="greedy", colour="white")

See docs/environments.md. Dims: A actions, C x H x W observation; both are those of `VectorEnv`, seen by the agent.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex

import numpy as np
import numpy.typing as npt

from envs import IllegalAction, Variant, list_variants
from envs.single_game import NAMESPACE, PLY_CAP, RENDER_MODES, SingleGame, whole
from envs.variant import WHITE

try:
    import gymnasium
    from gymnasium.spaces import Box, Discrete
    from gymnasium.utils import seeding
except ImportError as error:
    raise ImportError(f"{error}: train.gymnasium_env needs the extra: pip install 'asylum-zero[gym]'") from error

if TYPE_CHECKING:
    from train.arena import Player

COLOURS = ("white", "black")
Colour = Literal["white", "black", "random"]
RESET_OPTIONS = ("fen", "colour")
LEAST_PLIES = 2
"""Of the ply cap: one of the opponent's, where it moves first, and one of the agent's."""
SIMULATIONS = 32
Observation = npt.NDArray[np.float32]
Step = tuple[Observation, float, bool, bool, dict[str, Any]]


def register_games() -> None:
    """Register `AsylumZero/<variant>-v0` for every built-in game, once."""
    for name in list_variants():
        game_id = f"{NAMESPACE}/{name}-v0"
        if game_id not in gymnasium.registry:
            gymnasium.register(game_id, entry_point=f"{__name__}:BaselineEnv", kwargs={"variant": name})


class BaselineEnv(gymnasium.Env[Observation, np.int64]):
    """A game of one agent against a player, which moves by itself.

    An observation is float32 [C, H, W] in 0..1, as the agent sees the board, its own side at row 0. The reward is 1
    when the agent has won, -1 when it has lost, else 0; the ply cap truncates. Every info holds `action_mask`, int8
    [A], 1 for legal, `colour`, the agent's, and at the end `ending`, why the game is over.

    An illegal action loses: the episode ends with reward -1 and the ending `illegal_action`, as it does in
    `envs.pettingzoo_env`, since agents and checkers that know no masks would find a game that raises of no use.
    """

    metadata: dict[str, Any] = {"render_modes": list(RENDER_MODES), "render_fps": 1}  # noqa: RUF012 - as Gymnasium declares it

    def __init__(  # noqa: PLR0913 - a public surface: what `gymnasium.make` is given
        self,
        variant: str | Path | Variant,
        opponent: Player | str = "greedy",
        *,
        options: Mapping[str, bool] | None = None,
        colour: Colour = "random",
        fen: str | None = None,
        max_plies: int | None = PLY_CAP,
        simulations: int = SIMULATIONS,
        render_mode: str | None = None,
    ) -> None:
        """Make an environment.

        Args:
            variant: A built-in name, the path of a variant file, or a resolved variant (then without `options`).
            opponent: A player, or the text of one (`train.players`): `random`, `greedy`, `alphabeta:2`, a run.
                `alphabeta` alone is refused: it has no limit.
            options: Option name -> on.
            colour: The agent's; `random` draws it for each game.
            fen: Where every game starts; by default at a start position of the variant.
            max_plies: The ply cap, plies of both sides, at least 2; None for none.
            simulations: Per move of an opponent that searches.
            render_mode: `ansi`, `human`, `rgb_array` or None.

        Raises:
            InvalidVariant, InvalidFen: The game or the position cannot be honoured.
            UnknownPlayer: The text names no player, or one trained on other rules.
            ValueError: Another argument is wrong.
        """
        if max_plies is not None and max_plies < LEAST_PLIES:
            raise ValueError(f"max_plies: expected at least {LEAST_PLIES} or None, got {max_plies}")
        self._game = SingleGame(variant, options=options, fen=fen, max_plies=max_plies, render_mode=render_mode)
        self.render_mode = render_mode
        self.colour = _checked_colour(colour)
        self.opponent = _make_opponent(opponent, self.variant, simulations) if isinstance(opponent, str) else opponent
        self.observation_space = Box(0.0, 1.0, self._game.env.observation_shape, np.float32)
        self.action_space = Discrete(self._game.env.num_actions)
        self._side = WHITE
        self._is_over = True

    @property
    def variant(self) -> Variant:
        """The rules."""
        return self._game.env.variant

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start a new game; the opponent has moved in it where it moves first.

        Args:
            seed: Of the agent's colour, the start position and the opponent; None goes on with the old stream.
            options: `fen` and `colour`, for this game alone.

        Returns:
            The first observation and its info.

        Raises:
            InvalidFen: The FEN is no position of the game.
            ValueError: Another option is wrong, the game is over in the position, or the opponent moves first there
                and has ended the game with its move. After an error nothing has changed.
        """
        given = options or {}
        _refuse_unknown(given)
        colour = _checked_colour(given.get("colour", self.colour))
        rng = copy.deepcopy(self.np_random) if seed is None else seeding.np_random(seed)[0]
        side = int(rng.integers(2)) if colour == "random" else COLOURS.index(colour)
        game = copy.deepcopy(self._game)
        game.reset(rng, given.get("fen"))
        self._answer(game, side, rng)
        if game.ending:
            raise ValueError(
                f"the opponent's first move ended the game ({game.ending}): choose a position in which no first move"
                " does, or the other colour"
            )
        super().reset(seed=seed)
        self._np_random, self._game, self._side, self._is_over = rng, game, side, False
        if self.render_mode == "human":
            self.render()
        return self._observe(), self._info()

    def step(self, action: SupportsIndex) -> Step:
        """Play an action and the opponent's answer.

        Args:
            action: 0 to A - 1; an illegal one loses the game.

        Returns:
            Observation, reward, terminated, truncated and info: see the class.

        Raises:
            IllegalAction: It is out of range.
            TypeError: It is no whole number.
            ResetNeeded: The game is over.
        """
        if self._is_over:
            raise gymnasium.error.ResetNeeded("the game is over, or none has begun: call reset")
        chosen = whole(action)
        if not 0 <= chosen < self._game.env.num_actions:
            raise IllegalAction(f"action {chosen}: expected 0 to {self._game.env.num_actions - 1}")
        if self.action_masks()[chosen]:
            self._game.play(chosen)
            self._answer(self._game, self._side, self.np_random)
        else:
            self._game.forfeit()
        self._is_over = self._game.ending is not None
        reward = self._game.reward(self._side)
        if self.render_mode == "human":
            self.render()
        return self._observe(), reward, self._game.terminated, self._game.truncated, self._info()

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Return the legal actions, bool [A], as MaskablePPO of sb3-contrib asks for them."""
        return self._game.action_mask(self._side).astype(np.bool_)

    def render(self) -> Any:  # Gymnasium's own type has no plain text
        """Return the text or the picture that `render_mode` asks for, or print the text."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() is called, but the environment was made without a render_mode")
            return None
        return self._game.render()

    def _answer(self, game: SingleGame, side: int, rng: np.random.Generator) -> None:
        """Let the opponent move if it is its turn; `side` is the agent's."""
        if game.ending is None and game.to_play != side:
            (action,) = self.opponent.choose(game.env, np.zeros(1, np.intp), rng)
            game.play(action)

    def _observe(self) -> Observation:
        return self._game.observe(self._side)

    def _info(self) -> dict[str, Any]:
        ending = {} if self._game.ending is None else {"ending": self._game.ending}
        return {"action_mask": self._game.action_mask(self._side), "colour": COLOURS[self._side], **ending}


def _make_opponent(text: str, variant: Variant, simulations: int) -> Player:
    from train.players import common_variant, make_player  # PyTorch, which a given player may do without

    contestant = make_player(text, simulations=simulations)
    common_variant([contestant], variant)
    return contestant.player


def _checked_colour(colour: str) -> str:
    if colour not in (*COLOURS, "random"):
        raise ValueError(f"colour: expected white, black or random, got {colour!r}")
    return colour


def _refuse_unknown(options: Mapping[str, Any]) -> None:
    for key in options:
        if key not in RESET_OPTIONS:
            near = get_close_matches(key, RESET_OPTIONS, n=1)
            hint = f", did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"options: expected {' and '.join(RESET_OPTIONS)}, got {key!r}{hint}")


register_games()
