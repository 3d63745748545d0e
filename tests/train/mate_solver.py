"""Wins in one and in two moves by exhaustion, over positions of random and of capture-rich games of any game.

The solver knows nothing of search trees: it makes every move, generates, asks for the verdict, and keeps the game's
history up to date. Dims: M legal moves, L keys of a history.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from envs import CompiledGame, VectorEnv, layout
from envs.game_kernels import remember, verdict
from envs.jit import njit
from envs.kernels import LOSS, REVERSIBLE_SHIFT, U0, U1, U3, U4, U, generate, make
from envs.rows import board_of, legal_moves, thread_scratch
from models.evaluator import Evaluator
from train.analysis import Analysis, AnalysisSettings
from train.search import Search, SearchSettings

WON, LOST, GOES_ON_OR_DRAWN = 1, -1, 0
CAPTURE_BIAS = 0.7
DEPTH = 4
EXTRA_VICTIM = np.uint64(1 << 42)


@dataclass(frozen=True)
class Sample:
    """A position in which the game goes on: uint64 [W], uint64 [L]."""

    row: np.ndarray
    history: np.ndarray


@dataclass(frozen=True)
class Solved:
    """What exhaustion says of each legal move, bool [M], in the order of `actions` int32 [M].

    Attributes:
        actions: The legal moves.
        wins: The move wins at once.
        loses: The move loses at once, or the opponent then has a win at once.
        wins_in_two: Every reply leaves a win at once (or loses at once); never where some move wins at once.
    """

    actions: np.ndarray
    wins: np.ndarray
    loses: np.ndarray
    wins_in_two: np.ndarray

    @property
    def is_win(self) -> bool:
        return bool(self.wins.any())

    @property
    def is_avoidable_loss(self) -> bool:
        """Whether some moves lose to a win at once, and others do not; where no move wins at once."""
        return not self.wins.any() and bool(self.loses.any()) and not self.loses.all()

    @property
    def is_win_in_two(self) -> bool:
        return bool(self.wins_in_two.any())


# --- Solving ------------------------------------------------------------------------------------


@njit
def play(arrays, depth, m):
    """Play move `m` of the list of row `depth` onto row `depth + 1`, and enter it into the history.

    Args:
        arrays: The tables, Zobrist numbers, rows as bytes and as words, history, moves and scratch of the kernels.

    Returns:
        The number of moves there, 0 where the game is over; its result for the player who moved; the place in the
        history and the key that was there.
    """
    tab, zob, s8, s64, history, moves, scratch = arrays
    words = len(s64) // DEPTH
    width = len(moves) // DEPTH
    for i in range(words):
        s64[(depth + 1) * words + i] = s64[depth * words + i]
    w = U((depth + 1) * words)
    make(tab, zob, s8, s64, w, moves[depth * width + m])
    place = np.int64(s64[w + U3] >> REVERSIBLE_SHIFT)
    saved = history[place]
    remember(tab, s8, s64, w, history, U0, len(history))
    packed = generate(tab, s8, s64, w, scratch, moves, U((depth + 1) * width))
    ended = verdict(tab, s8, s64, w, packed >> U1, packed & U1)
    result = GOES_ON_OR_DRAWN
    if ended >> U4:
        result = WON if ended >> U4 == LOSS else LOST
    count = 0 if ended else np.int64(packed >> U1)
    return count, result, place, saved


@njit
def wins_at_once(arrays, depth, count):
    """Return whether one of the `count` moves of row `depth` wins at once."""
    for m in range(count):
        _, result, place, saved = play(arrays, depth, m)
        arrays[4][place] = saved
        if result == WON:
            return True
    return False


@njit
def every_reply_loses(arrays, count):
    """Return whether after each of the `count` moves of row 1 the other side wins at once, or has won."""
    for m in range(count):
        replies, result, place, saved = play(arrays, 1, m)
        lost = result == LOST or wins_at_once(arrays, 2, replies)
        arrays[4][place] = saved
        if not lost:
            return False
    return count > 0


@njit
def solve_moves(arrays, found):
    """Fill `found`, bool [3, M]: `wins`, `loses` and `wins_in_two` of row 0, whose M moves are listed."""
    wins, loses, wins_in_two = found
    for m in range(len(wins)):
        replies, result, place, saved = play(arrays, 0, m)
        wins[m] = result == WON
        loses[m] = result == LOST or wins_at_once(arrays, 1, replies)
        arrays[4][place] = saved
    if wins.any():
        return
    for m in range(len(wins)):
        if not loses[m]:
            replies, result, place, saved = play(arrays, 0, m)
            wins_in_two[m] = every_reply_loses(arrays, replies)
            arrays[4][place] = saved


def solve(game: CompiledGame, sample: Sample) -> Solved:
    """Return what exhaustion says of a position's moves."""
    listed, counts, _ = legal_moves(game, sample.row[np.newaxis])
    count = int(counts[0])
    bound = game.legal_bound(board_of(game, sample.row))
    rows = np.zeros((DEPTH, game.state_words), np.uint64)
    rows[0] = sample.row
    moves = np.zeros((DEPTH, bound), np.uint64)
    moves[0, :count] = listed[0, :count]
    history = np.pad(sample.history, (0, DEPTH))
    found = np.zeros((3, count), np.bool_)
    solve_moves(
        (
            game.tables, game.zobrist, rows.view(np.uint8).reshape(-1), rows.reshape(-1), history, moves.reshape(-1),
            thread_scratch(),
        ),
        found,
    )  # fmt: skip
    return Solved(((moves[0, :count] >> np.uint64(16)) & np.uint64(0xFFFF)).astype(np.int32), *found)


# --- Positions ----------------------------------------------------------------------------------


def sample_positions(
    name: str, *, games: int = 12, plies: int = 240, every: int = 7, seed: int = 11
) -> Iterator[Sample]:
    """Yield every position at a multiple of `every` plies of games, half of them random, half rich in captures.

    Raises:
        ValueError: `every` is even, so that the same side would be to move in all of them.
    """
    if every % 2 == 0:
        raise ValueError(f"every: expected an odd number of plies, got {every}")
    env = VectorEnv(name, games, seed=seed)
    env.reset()
    hungry = np.arange(games) >= games // 2
    for ply in range(plies):
        if env.over.all():
            return
        if ply % every == 0:
            for lane in np.flatnonzero(~env.over):
                place = int(env.states[lane, 3] >> REVERSIBLE_SHIFT)
                yield Sample(env.states[lane].copy(), env.histories[lane, : place + 1].copy())
        env.step(_draw(env, hungry))


def _draw(env: VectorEnv, hungry: np.ndarray) -> np.ndarray:
    """Draw a move for each lane: any, or in a hungry lane mostly a capture."""
    moves, counts, _ = legal_moves(env.game, env.states)
    boards = np.array([board_of(env.game, row) for row in env.states])
    targets = ((moves >> np.uint64(8)) & np.uint64(0xFF)).astype(np.int64)
    targets = np.where(np.arange(moves.shape[1]) < counts[:, None], targets, 0)
    takes = (np.take_along_axis(boards, targets, axis=1) != 0) | (moves & EXTRA_VICTIM != 0)
    takes &= hungry[:, None] & (env.rng.random(env.num_envs) < CAPTURE_BIAS)[:, None]
    listed = np.arange(moves.shape[1]) < counts[:, None]
    wanted = np.where((takes & listed).any(axis=1)[:, None], takes & listed, listed)
    chosen = np.where(wanted, env.rng.random(wanted.shape), -1).argmax(axis=1)
    return ((moves[np.arange(env.num_envs), chosen] >> np.uint64(16)) & np.uint64(0xFFFF)).astype(np.int64)


# --- Rates --------------------------------------------------------------------------------------

Chooser = Callable[[CompiledGame, Sample, int], int]
"""Chooses an action of a position, within a budget of simulations."""


@dataclass
class Rates:
    """How many of the positions with a property were played right."""

    positions: int = 0
    white_to_move: int = 0
    wins: int = 0
    wins_found: int = 0
    avoidable: int = 0
    avoided: int = 0
    wins_in_two: int = 0
    wins_in_two_found: int = 0

    def __add__(self, other: Rates) -> Rates:
        return Rates(*(getattr(self, name) + getattr(other, name) for name in vars(self)))

    def __str__(self) -> str:
        return (
            f"{self.positions} positions ({self.white_to_move} with White to move): "
            f"win in 1 {self.wins_found}/{self.wins}, loss in 1 avoided {self.avoided}/{self.avoidable}, "
            f"win in 2 {self.wins_in_two_found}/{self.wins_in_two}"
        )


def measure(game: CompiledGame, samples: Iterator[Sample], choose: Chooser, *, deep: int | None) -> Rates:
    """Measure a chooser on every sample.

    Args:
        game: The compiled game.
        samples: The positions.
        choose: What is measured; wins and losses in one have a budget of legal moves + 1 simulations.
        deep: The budget for wins in two; None leaves them out.
    """
    rates = Rates()
    for sample in samples:
        solved = solve(game, sample)
        rates.positions += 1
        rates.white_to_move += not sample.row.view(np.uint8)[layout.TO_PLAY]
        shallow = len(solved.actions) + 1
        if solved.is_win:
            rates.wins += 1
            rates.wins_found += bool(solved.wins[solved.actions == choose(game, sample, shallow)][0])
        if solved.is_avoidable_loss:
            rates.avoidable += 1
            rates.avoided += not solved.loses[solved.actions == choose(game, sample, shallow)][0]
        if solved.is_win_in_two and deep is not None:
            rates.wins_in_two += 1
            rates.wins_in_two_found += bool(solved.wins_in_two[solved.actions == choose(game, sample, deep)][0])
    return rates


def analysis_chooser(evaluator: Evaluator, settings: AnalysisSettings | None = None) -> Chooser:
    """Return what plays the best line of an analysis."""

    def choose(game: CompiledGame, sample: Sample, budget: int) -> int:
        analysis = Analysis(game, evaluator, settings)
        analysis.begin(sample.row, sample.history)
        analysis.run(budget)
        return analysis.result().lines[0].action

    return choose


def selfplay_chooser(evaluator: Evaluator, simulations: int = 16) -> Chooser:
    """Return what plays as self-play does, without noise: Gumbel search with the same simulations whatever is asked."""
    settings = SearchSettings(max_considered_actions=16)

    def choose(game: CompiledGame, sample: Sample, budget: int) -> int:
        search = Search(game, 1, simulations, settings)
        search.begin(0, sample.row, sample.history, budget=simulations, rng=None)
        while not search.advance(np.arange(1), evaluator)[0]:
            pass
        return search.result(0).action

    return choose
