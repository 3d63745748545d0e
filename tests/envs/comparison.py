"""One game after another in the environment and by the slow rules, compared at every position.

Compared: legal moves with all their victims, position and counters, key (against one from scratch), check,
repetitions, outcome, rewards, and the FEN read back. The same games run in a second environment of another size
with its lanes in another order.
"""

from __future__ import annotations

import sys
from collections import Counter

import numpy as np

from envs import VectorEnv, engine_for, layout, rules, rules_fen
from envs.rows import legal_moves as kernel_moves
from envs.rows import read_fen
from envs.tables import CompiledGame
from envs.variant import BLACK, Variant
from tests.envs.random_games import Temper, pick_move, starts

NUM_LANES = 8
MAX_PLIES_OF_SHORT_GAMES = 12
VICTIM_SHIFT, PROMOTION_SHIFT, ACTION_SHIFT = 40, 32, 16


class Difference(AssertionError):
    """The kernels and the rules disagree."""


class Lane:
    """One game as the slow rules see it.

    Attributes:
        temper: How it is played.
        plies_left: How long it may last.
        played: Its moves so far.
        earlier: Identities of the positions before this one.
        state: The position, with its identity, legal moves and outcome beside.
        compared: Whether this position has been compared.
    """

    def __init__(self, variant: Variant, fen: str, temper: Temper, max_plies: float) -> None:
        self.variant = variant
        self.temper = temper
        self.plies_left = max_plies
        self.played: list[rules.Move] = []
        self.earlier: list[rules.Identity] = []
        self._enter(rules_fen.parse_fen(variant, fen))

    @property
    def running(self) -> bool:
        return self.outcome is None and self.plies_left > 0

    def push(self, move: rules.Move) -> None:
        self.earlier.append(self.identity)
        self.plies_left -= 1
        self.played.append(move)
        self._enter(rules.make(self.variant, self.state, move))

    def _enter(self, state: rules.State) -> None:
        self.state = state
        self.identity = rules.identity(self.variant, state)
        self.moves = rules.legal_moves(self.variant, state)
        self.outcome = rules.outcome(self.variant, state, self.earlier, moves=self.moves)
        self.compared = False


def key_from_scratch(game: CompiledGame, lane: Lane) -> int:
    """Return the Zobrist key as the documentation of `layout` defines it."""
    size = game.variant.num_squares
    codes = read_codes(game, lane.state.board)
    squares = np.flatnonzero(codes)
    key = int(np.bitwise_xor.reduce(game.zobrist[codes[squares] * size + squares]))
    rights = sum(1 << number for number, right in enumerate(lane.state.rights) if right)
    key ^= int(game.zobrist[layout.zobrist_castling(size) + rights])
    for square in lane.identity[3]:
        key ^= int(game.zobrist[layout.zobrist_en_passant(size) + square])
    if lane.identity[3]:
        assert lane.state.victim is not None
        key ^= int(game.zobrist[layout.zobrist_en_passant(size) + lane.state.victim])
    return key ^ (int(game.zobrist[layout.zobrist_side(size)]) if lane.state.to_play == BLACK else 0)


def read_codes(game: CompiledGame, board: rules.Pieces) -> np.ndarray:
    types = game.variant.type_by_letter
    return np.array([types[piece.upper()] + 1 + 16 * piece.islower() if piece else 0 for piece in board], np.int64)


def words_of_rules(game: CompiledGame, lane: Lane) -> list[int]:
    """Return the moves of the rules as sorted numbers: from, to, action, promotion, castling, far victim."""
    flip = game.variant.board.flipped
    black = lane.state.to_play == BLACK
    actions, types = game.encoding.action_by_move, game.variant.type_by_letter
    words = []
    for start, to, letter, victims, kind in lane.moves:
        promotion = types[letter] if letter else -1
        action = actions[(flip[start], flip[to], promotion) if black else (start, to, promotion)]
        word = start | to << 8 | action << ACTION_SHIFT | (promotion + 1) << PROMOTION_SHIFT
        word |= (kind is rules.Kind.CASTLING) << (PROMOTION_SHIFT + 7)
        for victim in victims:
            if victim != to:
                word |= (victim + 1) << VICTIM_SHIFT
        words.append(word)
    return sorted(words)


def words_of_kernels(words: np.ndarray) -> list[int]:
    """Return kernel moves as `words_of_rules` does."""
    castles = words >> np.uint64(layout.CASTLE_FLAG) & np.uint64(1)
    extra = words >> np.uint64(layout.EXTRA_FLAG) & np.uint64(1)
    kept = words & np.uint64((1 << (PROMOTION_SHIFT + 4)) - 1)
    kept |= castles << np.uint64(PROMOTION_SHIFT + 7)
    kept |= extra * ((words >> np.uint64(48)) + np.uint64(1)) << np.uint64(VICTIM_SHIFT)
    return sorted(kept.tolist())


def loses_right_from_afar(variant: Variant, state: rules.State, move: rules.Move) -> bool:
    """Return whether a piece captured off the target takes a castling right with it."""
    near = move._replace(victims=tuple(square for square in move.victims if square == move.to_square))
    return rules.make(variant, state, move).rights != rules.make(variant, state, near).rights


def contents_of_rules(game: CompiledGame, lane: Lane) -> tuple[object, ...]:
    """Return board, side, rights, en passant squares, clock and move number."""
    state = lane.state
    board = bytes(read_codes(game, state.board).astype(np.uint8))
    return (board, state.to_play, state.rights, lane.identity[3], state.halfmove_clock, state.fullmove_number)


def contents_of_row(game: CompiledGame, row: np.ndarray) -> tuple[object, ...]:
    """Return what `contents_of_rules` does."""
    data = row.tobytes()
    board = data[layout.HEADER_BYTES : layout.HEADER_BYTES + game.variant.num_squares]
    rights = tuple(bool(data[layout.CASTLING] >> number & 1) for number in range(4))
    passed = data[layout.EP_SQUARES : layout.EP_SQUARES + data[layout.EP_COUNT]]
    clock = int.from_bytes(data[layout.CLOCK : layout.CLOCK + 2], sys.byteorder)
    ply = int.from_bytes(data[layout.PLY : layout.PLY + 4], sys.byteorder)
    return (board, data[layout.TO_PLAY], rights, tuple(sorted(passed)), clock, ply // 2 + 1)


def without_history(row: np.ndarray) -> bytes:
    """Return a row without what it owes to earlier moves: the count of repetitions, its place in the history."""
    row = row.copy()
    row.view(np.uint8)[layout.REPETITIONS] = 0
    row.view(np.uint8)[layout.REVERSIBLE : layout.REVERSIBLE + 2] = 0
    return row.tobytes()


class Comparison:
    """Plays games in the environment and by the rules, side by side."""

    def __init__(self, variant: Variant, seed: int, num_lanes: int = NUM_LANES, max_plies: float = np.inf) -> None:
        self.variant = variant
        self.max_plies = max_plies
        self.game = engine_for(variant)
        self.rng = np.random.default_rng([seed, 20])
        self.starts = starts(variant, self.rng)
        self.env = VectorEnv(variant, num_lanes)
        self.other = VectorEnv(variant, num_lanes + 3)
        self.place = self.rng.permutation(num_lanes + 3)[:num_lanes]
        self.lanes = [self._begin(number) for number in range(num_lanes)]
        self.seen: Counter[str] = Counter()

    def _begin(self, number: int) -> Lane:
        """Start a game: odd lanes play to the end, even ones the first, eventful plies of many games."""
        fen = next(self.starts)
        max_plies = self.max_plies if number % 2 else MAX_PLIES_OF_SHORT_GAMES
        self.env.set_fen(number, fen)
        self.other.set_fen(int(self.place[number]), fen)
        return Lane(self.variant, fen, Temper.draw(self.rng), max_plies)

    def run(self, num_positions: int) -> Counter[str]:
        """Play until enough positions have been compared and every game is over."""
        while True:
            self._compare_all()
            for number, lane in enumerate(self.lanes):
                if not lane.running and self.seen["positions"] < num_positions:
                    self.lanes[number] = self._begin(number)
            running = [number for number, lane in enumerate(self.lanes) if lane.running]
            if not running:
                return self.seen
            self._step(running)

    def _step(self, running: list[int]) -> None:
        actions = self.env.legal_action_mask.argmax(axis=1)  # lanes that are not running play on unseen
        chosen: dict[int, rules.Move] = {}
        for number in running:
            lane = self.lanes[number]
            last = lane.played[-2] if len(lane.played) > 1 else None
            move = pick_move(self.variant, self.rng, lane.temper, state=lane.state, moves=lane.moves, last=last)
            chosen[number] = move
            actions[number] = self.env.move_to_action(number, rules_fen.move_name(self.variant, move))
            self._note(lane, move)
        others = self.other.legal_action_mask.argmax(axis=1)
        others[self.place] = actions
        rewards, _, _ = self.env.step(actions)
        self.other.step(others)
        for number, move in chosen.items():
            lane = self.lanes[number]
            mover = lane.state.to_play
            lane.push(move)
            winner = None if lane.outcome is None else lane.outcome.winner
            reward = 0.0 if winner is None else 1.0 if winner == "wb"[mover] else -1.0
            self._expect(number, "reward", reward, float(rewards[number]))

    def _note(self, lane: Lane, move: rules.Move) -> None:
        self.seen["captures"] += bool(move.victims)
        self.seen["double captures"] += len(move.victims) == 2
        self.seen["rights lost from afar"] += loses_right_from_afar(self.variant, lane.state, move)
        self.seen["promotions"] += bool(move.promotion)
        self.seen[move.kind.value] += 1

    def _compare_all(self) -> None:
        words, counts, checks = kernel_moves(self.game, self.env.states)
        mask = self.env.legal_action_mask
        for name in ("states", "in_check", "terminations", "legal_counts", "legal_action_mask"):
            if not np.array_equal(getattr(self.env, name), getattr(self.other, name)[self.place]):
                raise Difference(f"{name}: the batch makes a difference")
        for number, lane in enumerate(self.lanes):
            if not lane.compared:
                self._compare(number, words[number, : counts[number]], bool(checks[number]), mask[number])
                lane.compared = True

    def _compare(self, number: int, words: np.ndarray, check: bool, mask: np.ndarray) -> None:
        lane, env = self.lanes[number], self.env
        self.seen["positions"] += 1
        expected_check = rules.in_check(self.variant, lane.state)
        self.seen["checks"] += expected_check
        row = env.states[number]
        self._expect(number, "position", contents_of_rules(self.game, lane), contents_of_row(self.game, row))
        expected = words_of_rules(self.game, lane)
        self._expect(number, "legal moves", expected, words_of_kernels(words))
        actions = [] if lane.outcome else sorted(word >> ACTION_SHIFT & 0xFFFF for word in expected)
        self._expect(number, "mask", actions, np.flatnonzero(mask).tolist())
        self._expect(number, "legal list", actions, sorted(env.legal_actions(number).tolist()))
        self._expect(number, "check of the generator", expected_check, check)
        self._expect(number, "check", expected_check, bool(env.in_check[number]))
        self._expect(number, "key", key_from_scratch(self.game, lane), int(env.keys[number]))
        self._expect(number, "outcome", lane.outcome, env.outcome[number])
        repetitions = min(lane.earlier.count(lane.identity), int(self.game.tables[layout.T_REPETITIONS]))
        self._expect(number, "repetitions", repetitions, int(row.view(np.uint8)[layout.REPETITIONS]))
        fen = env.fen(number)
        self._expect(number, "row read back", without_history(row), without_history(read_fen(self.game, fen)))
        if self.seen["positions"] % 8 == 0:
            self._expect(number, "FEN", rules_fen.fen(self.variant, lane.state), fen)
            again = rules_fen.parse_fen(self.variant, fen)
            self._expect(number, "FEN read back", lane.identity, rules.identity(self.variant, again))
        if lane.outcome is not None:
            self.seen["games"] += 1
            self.seen[lane.outcome.termination.name] += 1

    def _expect(self, number: int, what: str, expected: object, actual: object) -> None:
        if expected != actual:
            fen = rules_fen.fen(self.variant, self.lanes[number].state)
            raise Difference(f"{what} in {fen}: the rules say {expected}, the kernels {actual}")
