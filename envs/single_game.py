"""One game as the interfaces of other libraries show it: what each side sees, may play, has won; text and pictures.

`envs.pettingzoo_env` and `train.gymnasium_env` are built on it. Sides are 0 White and 1 Black.
Dims: A actions, C x H x W observation.
"""

from __future__ import annotations

import copy
import operator
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from envs import layout
from envs.board_picture import BoardView, board_pixels
from envs.position import Position
from envs.render import draw_row
from envs.rows import board_of, observe
from envs.termination import Termination
from envs.variant import BLACK, Variant
from envs.vector_env import VectorEnv

RENDER_MODES = ("ansi", "human", "rgb_array")
"""A text; the text on stdout; a picture, uint8 [height, width, 3]."""
PLY_CAP = 300
"""Plies after which a game is truncated by default."""
PLY_CAP_NAME, ILLEGAL_ACTION = "ply_cap", "illegal_action"
"""Endings that are none of the rules'."""
NAMESPACE = "AsylumZero"
"""Of the names under which games are registered with other libraries."""


class SingleGame:
    """One game, played to its end or to the ply cap.

    Attributes:
        env: Its only lane is the game.
        render_mode: One of `RENDER_MODES`, or None.
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
        """Set up a game at its first start position.

        Args:
            variant: A built-in name, the path of a variant file, or a resolved variant (then without `options`).
            options: Option name -> on.
            fen: Where every game starts; by default at a start position of the variant.
            max_plies: The ply cap; None for none.
            render_mode: What `render` returns.

        Raises:
            InvalidVariant: The game cannot be honoured.
            InvalidFen: `fen` is no position of the game.
            ValueError: `max_plies` or `render_mode` is wrong, or the game is over in `fen`.
        """
        if render_mode not in (None, *RENDER_MODES):
            raise ValueError(f"render_mode: expected {', '.join(RENDER_MODES)} or None, got {render_mode!r}")
        self.env = VectorEnv(variant, 1, options, max_plies=max_plies)
        self.render_mode = render_mode
        self._fen = fen
        self._moved: tuple[int, ...] = ()
        self._loser: int | None = None
        self.reset(self.env.rng)

    def __deepcopy__(self, memo: dict[int, Any]) -> SingleGame:
        """Return an independent copy; the compiled tables are shared."""
        twin = copy.copy(self)
        twin.env = self.env.copy()
        return twin

    @property
    def to_play(self) -> int:
        """The side to move."""
        return int(self.env.to_play[0])

    @property
    def terminated(self) -> bool:
        """Whether the rules or an illegal action have ended the game."""
        return self._loser is not None or bool(self.env.terminations[0])

    @property
    def truncated(self) -> bool:
        """Whether the ply cap has ended the game."""
        return self._loser is None and bool(self.env.truncated[0])

    @property
    def ending(self) -> str | None:
        """Why the game has ended: a `Termination` in lower case, `ply_cap`, `illegal_action`; None while it goes on."""
        if self._loser is not None:
            return ILLEGAL_ACTION
        number = int(self.env.terminations[0])
        if number:
            return Termination(number).name.lower()
        return PLY_CAP_NAME if self.truncated else None

    def reset(self, rng: np.random.Generator, fen: str | None = None) -> None:
        """Start a new game.

        Args:
            rng: Draws the start position where the variant has several; used by later resets of `env`, too.
            fen: Where this game starts; by default where every game does.

        Raises:
            InvalidFen: `fen` is no position of the game; nothing has changed.
            ValueError: The game is over there; nothing has changed.
        """
        start = self._fen if fen is None else fen
        if start is not None and (outcome := Position(self.env.variant, start).outcome()):
            raise ValueError(f"fen: the game is over there ({outcome.termination.name.lower()}): {start}")
        self.env.rng = rng
        self._moved, self._loser = (), None
        if start is None:
            self.env.reset()
        else:
            self.env.set_fen(0, start)

    def forfeit(self) -> None:
        """End the game as lost by the side to move, for an illegal action."""
        self._loser = self.to_play

    def play(self, action: SupportsIndex) -> None:
        """Play an action of the side to move.

        Raises:
            IllegalAction: It is not legal; nothing has changed.
            TypeError: It is no whole number.
        """
        action = whole(action)
        encoding, flipped = self.env.game.encoding, self.env.variant.board.flipped
        was_black = self.to_play == BLACK
        self.env.step(np.array([action]))
        squares = int(encoding.from_square[action]), int(encoding.to_square[action])
        self._moved = tuple(flipped[square] for square in squares) if was_black else squares

    def reward(self, side: int) -> float:
        """Return 1 if a side has won, -1 if it has lost, else 0."""
        if self._loser is not None:
            return -1.0 if side == self._loser else 1.0
        if not self.terminated:
            return 0.0
        score = 2 * float(self.env.white_score[0]) - 1
        return (-score if side == BLACK else score) + 0.0  # never -0.0

    def observe(self, side: int) -> npt.NDArray[np.float32]:
        """Return the planes of a side as if it were to move, float32 [C, H, W] (`envs.observation`)."""
        row = self.env.states[:1].copy()
        row.view(np.uint8)[0, layout.TO_PLAY] = side
        planes: npt.NDArray[np.float32] = observe(self.env.game, row)[0]
        return planes

    def action_mask(self, side: int) -> npt.NDArray[np.int8]:
        """Return 1 for each legal action of a side, int8 [A]; all 0 while the other one is to move, and at the end."""
        mask = self.env.legal_action_mask[0].astype(np.int8)
        return mask if side == self.to_play and self._loser is None else np.zeros_like(mask)

    def render(self) -> str | npt.NDArray[np.uint8] | None:
        """Return a text or a picture, or print the text, as `render_mode` says."""
        if self.render_mode == "rgb_array":
            view = BoardView(board_of(self.env.game, self.env.states[0]), moved=self._moved)
            return board_pixels(self.env.variant, view)
        text = draw_row(self.env.game, self.env.states[0])
        if self.ending:
            text += f"; over: {self.ending.replace('_', ' ')}"
        if self.render_mode == "human":
            sys.stdout.write(f"{text}\n\n")
            return None
        return text


def whole(action: SupportsIndex) -> int:
    """Return an action as an int.

    Raises:
        TypeError: It is no whole number.
    """
    try:
        return operator.index(action)
    except TypeError:
        raise TypeError(f"action: expected a whole number, got {action!r}") from None
