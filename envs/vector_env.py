"""Many games of one variant side by side, stepped together.

Dims: B lanes, A actions, S squares, C x H x W observation. Values belong to the player who moved (`rewards`) or to the
player to move (`observe`); `white_score` is absolute. A lane that has ended stays as it is until it is reset.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt

from envs import kernels, lane_kernels, layout
from envs.errors import IllegalAction
from envs.layout import U64Array
from envs.notation import NO_PROMOTION, format_move, parse_move
from envs.rows import actions_of, checked_actions, engine_for, format_fen, observe, outcome_of, read_fen
from envs.tables import CompiledGame
from envs.termination import Outcome
from envs.variant import BLACK, Variant
from envs.variant_loader import load_variant

NO_CAP = 1 << 31
FIRST_HISTORY = 1026
"""Positions of a game that are kept at first where no rule keeps its history shorter."""
LaneMask = npt.NDArray[np.bool_]


class VectorEnv:
    """B games of one variant.

    Attributes:
        game: The compiled game.
        num_envs: B.
        states: uint64 [B, words], the packed positions (`layout.py`); aliases the environment, copy before keeping.
        in_check: bool [B], whether the side to move is in check; aliases.
        truncated: bool [B], whether the ply cap cut the game short; aliases.
        terminations: uint8 [B], `Termination` values, 0 while the rules let the game go on; aliases.
        white_score: float32 [B], 1, 0.5 or 0 for White, NaN while running and when truncated; aliases.
        legal_counts: int32 [B], the number of legal actions; aliases.
        rng: A generator for its user's draws; resetting uses it in a game with several start positions.
    """

    def __init__(  # noqa: PLR0913 - a public surface that others rely on
        self,
        variant: str | Path | Variant,
        num_envs: int,
        options: Mapping[str, bool] | None = None,
        seed: int = 0,
        max_plies: int | None = None,
        *,
        num_threads: int = 1,
    ) -> None:
        """Make B lanes, each at a start position.

        Args:
            variant: A built-in name, the path of a variant file, or a resolved variant (then without `options`).
            num_envs: B, at least 1.
            options: Option name -> on.
            seed: Seeds `rng`.
            max_plies: Plies from the start of a lane's game after which it is truncated; None for no cap.
            num_threads: Threads that share the lanes of a step; worth it from some hundred lanes on.

        Raises:
            InvalidVariant: The game cannot be honoured.
            ValueError: `num_envs`, `num_threads` or `max_plies` is below 1.
        """
        if num_envs < 1:
            raise ValueError(f"num_envs: expected at least 1, got {num_envs}")
        if num_threads < 1:
            raise ValueError(f"num_threads: expected at least 1, got {num_threads}")
        cap = NO_CAP if max_plies is None else min(operator.index(max_plies), NO_CAP)
        if cap < 1:
            raise ValueError(f"max_plies: expected at least 1 or None, got {max_plies}")
        if isinstance(variant, Variant) and options:
            raise ValueError("options: a resolved variant has its options applied already")
        resolved = variant if isinstance(variant, Variant) else load_variant(variant, options)
        self.game: CompiledGame = engine_for(resolved)
        self.num_envs = num_envs
        self.rng = np.random.default_rng(seed)
        self._starts = np.stack([read_fen(self.game, fen) for fen in resolved.start_fens])
        self._max_plies = cap
        self._longest_history = min(self.game.longest_history, self._max_plies + 2)
        self._history = np.zeros((num_envs, min(self._longest_history, FIRST_HISTORY)), np.uint64)
        self._most_reversible = 0
        self._mask = np.zeros((num_envs, self.num_actions), np.bool_)
        self.states = np.zeros((num_envs, self.game.state_words), np.uint64)
        self.in_check = np.zeros(num_envs, np.bool_)
        self.truncated = np.zeros(num_envs, np.bool_)
        self.terminations = np.zeros(num_envs, np.uint8)
        self.white_score = np.zeros(num_envs, np.float32)
        self.legal_counts = np.zeros(num_envs, np.int32)
        self._rewards = np.zeros(num_envs, np.float32)
        self._start_ply = np.zeros(num_envs, np.uint32)
        self._everyone = np.ones(num_envs, np.bool_)
        self._scratches = [np.zeros(kernels.SCRATCH_SIZE, np.uint32) for _ in range(min(num_threads, num_envs))]
        self._pool = ThreadPoolExecutor(num_threads) if len(self._scratches) > 1 else None
        self._moves = np.zeros((num_envs, max(self._legal_bound(row) for row in self._starts)), np.uint64)
        self._bind()
        self.reset()

    @property
    def variant(self) -> Variant:
        """The rules."""
        return self.game.variant

    @property
    def num_actions(self) -> int:
        """A, the size of the action encoding."""
        return self.game.num_actions

    @property
    def observation_shape(self) -> tuple[int, int, int]:
        """(C, H, W) of one observation."""
        return self.game.observation_shape

    @property
    def to_play(self) -> npt.NDArray[np.uint8]:
        """uint8 [B], 0 White and 1 Black; aliases."""
        return self.states.view(np.uint8)[:, layout.TO_PLAY]

    @property
    def terminated(self) -> LaneMask:
        """Bool [B], whether the rules have ended the game; a copy."""
        return self.terminations.astype(np.bool_)

    @property
    def over(self) -> LaneMask:
        """Bool [B], whether the lane has ended, by the rules or by the cap; a copy."""
        return self.terminated | self.truncated

    @property
    def outcome(self) -> list[Outcome | None]:
        """The outcome of each lane; None while it runs and when it was truncated."""
        return [outcome_of(t, s) for t, s in zip(self.terminations.tolist(), self.white_score.tolist(), strict=True)]

    @property
    def keys(self) -> U64Array:
        """uint64 [B], Zobrist keys of the positions: board, side, rights and legal en passant captures; aliases."""
        return self.states[:, 0]

    @property
    def histories(self) -> U64Array:
        """uint64 [B, L], each game's keys by plies since its last irreversible move; aliases until one outgrows it."""
        return self._history

    @property
    def plies(self) -> npt.NDArray[np.int64]:
        """int64 [B], plies played since the lane was reset or set."""
        played = self.states.view(np.uint8).reshape(self.num_envs, -1)[:, layout.PLY : layout.PLY + 4]
        return np.ascontiguousarray(played).view(np.uint32)[:, 0].astype(np.int64) - self._start_ply

    @property
    def legal_action_mask(self) -> LaneMask:
        """Bool [B, A], True for legal; all False in a lane that has ended; a read-only alias."""
        view = self._mask.view()
        view.flags.writeable = False
        return view

    def reset(self, mask: LaneMask | None = None) -> None:
        """Put lanes back to a start position, drawn from `rng` where the game has several.

        Args:
            mask: bool [B], the lanes to reset; None for all.
        """
        chosen = np.ones(self.num_envs, np.bool_) if mask is None else self._lane_mask(mask)
        lanes = np.flatnonzero(chosen)
        chosen_starts = 0 if len(self._starts) == 1 else self.rng.integers(len(self._starts), size=len(lanes))
        self.states[lanes] = self._starts[chosen_starts]
        self._begin(lanes)

    def observe(self, out: npt.NDArray[np.float32] | None = None) -> npt.NDArray[np.float32]:
        """Return the planes of every lane, float32 [B, C, H, W], seen by its side to move (`observation.py`)."""
        return observe(self.game, self.states, out)

    def step(
        self, actions: npt.ArrayLike, mask: LaneMask | None = None
    ) -> tuple[npt.NDArray[np.float32], LaneMask, LaneMask]:
        """Play one action in every lane that is running.

        Args:
            actions: int [B]; what a lane that has ended or is not in `mask` is given does not matter.
            mask: bool [B], the lanes to move; None for all. The others stay and are rewarded 0.

        Returns:
            Rewards float32 [B] of the players who moved (1 for a win, -1 for a loss, else 0), terminated bool [B],
            truncated bool [B]; copies.

        Raises:
            IllegalAction: An action is not legal; no lane has moved.
            ValueError: The shape or type is wrong.
        """
        moving = self._everyone if mask is None else self._lane_mask(mask)
        chosen = checked_actions(actions, self.num_envs)
        self._lengthen_history()
        illegal = self._step_in_threads(chosen, moving) if self._pool else lane_kernels.step_all(
            *self._arrays, self._lanes, chosen, moving
        )  # fmt: skip
        if illegal >= 0:
            raise self._illegal(illegal, int(chosen[illegal]))
        return self._rewards.copy(), self.terminated, self.truncated.copy()

    def _step_in_threads(self, actions: npt.NDArray[np.int64], moving: LaneMask) -> int:
        """Step the lanes in one slice a thread; returns the first lane with an illegal action, or -1."""
        assert self._pool is not None
        mask = self._arrays[-1]
        illegal = lane_kernels.first_illegal(self.num_actions, mask, self.terminations, self.truncated, actions, moving)
        if illegal >= 0:
            return int(illegal)
        count = len(self._scratches)
        bounds = [self.num_envs * number // count for number in range(count + 1)]
        slices = zip(self._scratches, bounds, bounds[1:], strict=False)
        others = [
            self._pool.submit(
                lane_kernels.step_lanes, *self._arrays, (*self._lanes[:-1], scratch), actions, moving, first, last
            )
            for scratch, first, last in slices
        ]
        for other in others:
            other.result()
        return -1

    def copy(self) -> VectorEnv:
        """Return an independent copy: positions, histories and the generator."""
        twin = copy.copy(self)
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                setattr(twin, name, value.copy())
        twin.rng = copy.deepcopy(self.rng)
        twin._scratches = [scratch.copy() for scratch in self._scratches]
        twin._bind()
        return twin

    def fen(self, lane: int) -> str:
        """Return the FEN of a lane."""
        return format_fen(self.game, self.states[lane])

    def set_fen(self, lane: int, fen: str) -> None:
        """Set a lane to a position, with an empty history.

        Raises:
            InvalidFen: The FEN is no position of the game; the lane is unchanged.
        """
        row = read_fen(self.game, fen)
        self._make_room(row)
        self.states[lane] = row
        self._begin(np.array([range(self.num_envs)[lane]]))

    def legal_actions(self, lane: int) -> npt.NDArray[np.int32]:
        """Return the legal actions of a lane, int32, in the order of generation."""
        return actions_of(self._moves[lane, : self.legal_counts[lane]])

    def sample_actions(self) -> npt.NDArray[np.int64]:
        """Draw a legal action for every lane, each with equal chance; consumes B numbers of `rng`.

        Returns:
            int64 [B], -1 in a lane that has ended.
        """
        actions = np.empty(self.num_envs, np.int64)
        lane_kernels.sample(self._moves.reshape(-1), self.legal_counts, self.rng.random(self.num_envs), actions)
        return actions

    def action_to_move(self, lane: int, action: int) -> str:
        """Return an action of the encoding as a move of the side to move in a lane; it need not be legal.

        Raises:
            IllegalAction: The action is out of range.
        """
        if not 0 <= action < self.num_actions:
            raise IllegalAction(f"action {action}: expected 0 to {self.num_actions - 1}")
        encoding = self.game.encoding
        start, to = int(encoding.from_square[action]), int(encoding.to_square[action])
        if self.to_play[lane] == BLACK:
            start, to = self.variant.board.flipped[start], self.variant.board.flipped[to]
        return format_move(self.variant, start, to, int(encoding.promotion[action]))

    def move_to_action(self, lane: int, move: str) -> int:
        """Return the action of a move of the side to move in a lane; it need not be legal.

        Raises:
            IllegalAction: The text is no move, or no piece of the game could ever make it.
        """
        start, to, promotion = parse_move(self.variant, move)
        if self.to_play[lane] == BLACK:
            start, to = self.variant.board.flipped[start], self.variant.board.flipped[to]
        action = self.game.encoding.action_by_move.get((start, to, promotion))
        if action is None:
            piece = " with that promotion" if promotion != NO_PROMOTION else ""
            raise IllegalAction(f"move {move!r}: no piece of {self.variant.title} could ever make it{piece}")
        return action

    def _illegal(self, lane: int, action: int) -> IllegalAction:
        move = f" ({self.action_to_move(lane, action)})" if 0 <= action < self.num_actions else ""
        return IllegalAction(f"action {action}{move} is not legal in lane {lane}: {self.fen(lane)}")

    def _lane_mask(self, mask: LaneMask) -> LaneMask:
        given = np.asarray(mask)
        if given.shape != (self.num_envs,) or given.dtype != np.bool_:
            raise ValueError(f"mask: expected bool [{self.num_envs}], got {given.dtype} {list(given.shape)}")
        return np.require(given, requirements=["C", "W"])

    def _bind(self) -> None:
        """Gather what the kernels are given, after an array has been replaced."""
        self._arrays = (
            self.game.tables, self.game.zobrist, self.states.view(np.uint8).reshape(-1), self.states.reshape(-1),
            self._history.reshape(-1), self._moves.reshape(-1), self.legal_counts, self._mask.reshape(-1),
        )  # fmt: skip
        self._lanes = (
            self.in_check, self.terminations, self.truncated, self.white_score, self._rewards, self._start_ply,
            self._max_plies, self._scratches[0],
        )  # fmt: skip

    def _begin(self, lanes: npt.NDArray[np.intp]) -> None:
        """Start new games from the rows that have been written to lanes."""
        tables, _, *arrays = self._arrays
        lane_kernels.begin_lanes(tables, *arrays, self._lanes, lanes)

    def _legal_bound(self, row: U64Array) -> int:
        return self.game.legal_bound(row.view(np.uint8)[layout.HEADER_BYTES :])

    def _make_room(self, row: U64Array) -> None:
        """Widen the move lists when a position may lead to more legal moves than they hold."""
        bound = self._legal_bound(row)
        if bound > self._moves.shape[1]:
            self._moves = np.pad(self._moves, ((0, 0), (0, bound - self._moves.shape[1])))
            self._bind()

    def _lengthen_history(self) -> None:
        """Make room for one more position of every game; games that a move limit keeps short never need it."""
        length = self._history.shape[1]
        if length == self._longest_history:
            return
        self._most_reversible += 1
        if self._most_reversible < length - 1:
            return
        places = self.states.view(np.uint8).reshape(self.num_envs, -1)[:, layout.REVERSIBLE : layout.REVERSIBLE + 2]
        self._most_reversible = int(np.ascontiguousarray(places).view(np.uint16).max()) + 1
        if self._most_reversible >= length - 1:
            more = min(2 * length, self._longest_history) - length
            self._history = np.pad(self._history, ((0, 0), (0, more)))
            self._bind()
