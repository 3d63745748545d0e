"""Games by the slow rules, in a `Position` and in the lanes of a `VectorEnv`, compared through their public faces.

`comparison.py` looks into the rows of the kernels; nothing here does, so it holds for any engine with this interface.
"""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import numpy.typing as npt

from envs import Position, VectorEnv, observe, replay_actions, rules, rules_fen
from envs.notation import RIGHTS_LETTERS
from envs.observation import clock_scale, observation_planes
from envs.variant import BLACK, Variant
from tests.envs.random_games import Temper, pick_move
from tests.envs.random_positions import scattered

PLIES_AFTER_A_DRAW = 2
STEPS_BIAS = 0.4
PIECE_PLANE = re.compile(r"(own|enemy) .* \((.)\)")
RIGHT_PLANE = re.compile(r"(own|enemy) (king|queen)side castling")


class Difference(AssertionError):
    """The kernels and the rules disagree."""


class Game:
    """One game, by the rules and in a `Position`.

    Attributes:
        start: The FEN that it began with.
        state: The position by the rules, with its identity, legal moves by name and outcome beside.
        position: The same position by the kernels.
        earlier: Identities of the positions before this one.
        actions: What has been played in the lane, in the action encoding.
        played: The moves so far.
        last_mover: `"w"` or `"b"`, who has just moved.
    """

    def __init__(self, variant: Variant, fen: str) -> None:
        self.variant = variant
        self.last_mover = ""
        self.start = fen
        self.position = Position(variant, fen=fen)
        self.earlier: list[rules.Identity] = []
        self.actions: list[int] = []
        self.played: list[rules.Move] = []
        self._enter(rules_fen.parse_fen(variant, fen))

    def push(self, name: str) -> None:
        move = self.moves[name]
        self.last_mover = "wb"[self.state.to_play]
        self.earlier.append(self.identity)
        self.played.append(move)
        self.position.push(name)
        self._enter(rules.make(self.variant, self.state, move))

    @property
    def captures(self) -> dict[str, list[str]]:
        """Squares of all pieces that each legal move captures."""
        names = self.variant.board.names
        return {name: sorted(names[square] for square in move.victims) for name, move in self.moves.items()}

    def _enter(self, state: rules.State) -> None:
        self.state = state
        self.identity = rules.identity(self.variant, state)
        listed = rules.legal_moves(self.variant, state)
        self.moves = {rules_fen.move_name(self.variant, move): move for move in listed}
        if len(self.moves) != len(listed):
            raise Difference(f"two legal moves have one name in {rules_fen.fen(self.variant, state)}: {listed}")
        self.outcome = rules.outcome(self.variant, state, self.earlier, moves=listed)


class SideBySide:
    """Plays games of one variant in all engines; every position is compared.

    Attributes:
        seen: What has happened, counted.
    """

    def __init__(self, variant: Variant, seed: int, num_lanes: int = 3) -> None:
        self.variant = variant
        self.rng = np.random.default_rng([seed, 5])
        self.env = VectorEnv(variant, num_lanes, seed=seed, num_threads=1 + seed % 2)
        self.planes = [plane.name for plane in observation_planes(variant)]
        self.keys: dict[rules.Identity, int] = {}
        self.identities: dict[int, rules.Identity] = {}
        self.seen: Counter[str] = Counter()

    def play(self, num_rounds: int, max_plies: int) -> Counter[str]:
        """Play a game in every lane, several times: first from the start, then also from other positions."""
        for number in range(num_rounds):
            self.env.reset()
            for lane in range(self.env.num_envs):
                self._expect(self.env.fen(lane), "start", True, self.env.fen(lane) in self.variant.start_fens)
                self.seen[self.env.fen(lane)] += 1
                if number % 2:
                    self.env.set_fen(lane, scattered(self.variant, self.rng))
            self._play_round([Game(self.variant, self.env.fen(lane)) for lane in range(self.env.num_envs)], max_plies)
        return self.seen

    def _play_round(self, games: list[Game], max_plies: int) -> None:
        tempers = [Temper.draw(self.rng) for _ in games]
        self._compare_all(games, set(range(len(games))))
        for _ in range(max_plies):
            running = {lane for lane, game in enumerate(games) if game.outcome is None}
            if not running:
                break
            self._step(games, running, tempers)
            self._compare_all(games, running)
        for lane, game in enumerate(games):
            self._compare_replay(lane, game)
            self._play_on(game)

    def _step(self, games: list[Game], running: set[int], tempers: list[Temper]) -> None:
        actions = np.zeros(len(games), np.int64)
        for lane in running:
            game = games[lane]
            move = self._pick(game, tempers[lane])
            name = rules_fen.move_name(self.variant, move)
            actions[lane] = self.env.move_to_action(lane, name)
            game.actions.append(int(actions[lane]))
            self._note(game, move)
            game.push(name)
        rewards, _, _ = self.env.step(actions)
        for lane in running:
            game = games[lane]
            winner = None if game.outcome is None else game.outcome.winner
            due = 0.0 if winner is None else 1.0 if winner == game.last_mover else -1.0
            self._expect(game.position.fen(), "reward", due, float(rewards[lane]))

    def _pick(self, game: Game, temper: Temper) -> rules.Move:
        """Pick a move as `pick_move` does, but more often a pawn's first steps, which may be captured in passing."""
        listed = list(game.moves.values())
        if self.variant.pawns is not None and self.rng.random() < STEPS_BIAS:
            passing = [move for move in listed if rules.squares_passed(self.variant, game.state, move)]
            if passing:
                return passing[self.rng.integers(len(passing))]
        last = game.played[-2] if len(game.played) > 1 else None
        return pick_move(self.variant, self.rng, temper, state=game.state, moves=listed, last=last)

    def _note(self, game: Game, move: rules.Move) -> None:
        own = {square for square in move.victims if game.state.board[square].isupper() == (game.state.to_play != BLACK)}
        self.seen["captures"] += bool(move.victims)
        self.seen["own captures"] += bool(own)
        self.seen["double captures"] += len(move.victims) == 2
        self.seen["promotions"] += bool(move.promotion)
        self.seen[move.kind.value] += 1

    # --- Comparison ---------------------------------------------------------------------------

    def _compare_all(self, games: list[Game], lanes: set[int]) -> None:
        planes = self.env.observe()
        for lane in lanes:
            game = games[lane]
            self._compare_position(game)
            self._compare_lane(lane, game)
            self._compare_planes(game, planes[lane])

    def _compare_position(self, game: Game) -> None:
        variant, position, state = self.variant, game.position, game.state
        fen = rules_fen.fen(variant, state)
        check = rules.in_check(variant, state)
        facts = {
            "FEN": (fen, position.fen()),
            "legal moves": (sorted(game.moves), position.legal_moves()),
            "captures": (game.captures, {name: position.captures(name) for name in position.legal_moves()}),
            "check": (check, position.in_check),
            "clock": (state.halfmove_clock, position.halfmove_clock),
            "repetitions": (game.earlier.count(game.identity), position.repetitions),
            "outcome": (game.outcome, position.outcome()),
        }
        for what, (expected, actual) in facts.items():
            self._expect(fen, what, expected, actual)
        self._compare_keys(fen, game.identity, position.key)
        self._compare_reading(game, fen)
        self.seen["positions"] += 1
        self.seen["checks"] += check
        if game.outcome is not None:
            self.seen[game.outcome.termination.name] += 1
            self.seen[f"won by {game.outcome.winner}"] += 1

    def _compare_keys(self, fen: str, identity: rules.Identity, key: int) -> None:
        """Equal positions have equal keys, different ones different keys, in all games of this variant."""
        self._expect(fen, "key of an equal position", self.keys.setdefault(identity, key), key)
        self._expect(fen, "position of an equal key", self.identities.setdefault(key, identity), identity)

    def _compare_reading(self, game: Game, fen: str) -> None:
        """Both readers read what was written; it is the same position again."""
        again = Game(self.variant, fen)
        read = again.position
        self._expect(fen, "FEN written again", (fen, fen), (rules_fen.fen(self.variant, again.state), read.fen()))
        captures = {name: read.captures(name) for name in read.legal_moves()}
        self._expect(fen, "captures of the FEN", again.captures, captures)
        self._expect(fen, "position of the FEN", game.identity, again.identity)
        self._expect(fen, "key of the FEN", game.position.key, read.key)

    def _compare_lane(self, lane: int, game: Game) -> None:
        env, fen = self.env, game.position.fen()
        actions = env.legal_actions(lane).tolist()
        names = sorted(env.action_to_move(lane, action) for action in actions)
        self._expect(fen, "FEN of the lane", fen, env.fen(lane))
        self._expect(fen, "legal moves of the lane", [] if game.outcome else sorted(game.moves), names)
        self._expect(fen, "mask of the lane", sorted(actions), np.flatnonzero(env.legal_action_mask[lane]).tolist())
        self._expect(fen, "count of the lane", len(names), int(env.legal_counts[lane]))
        self._expect(fen, "check of the lane", game.position.in_check, bool(env.in_check[lane]))
        self._expect(fen, "outcome of the lane", game.outcome, env.outcome[lane])
        self._expect(fen, "key of the lane", game.position.key, int(env.keys[lane]))
        self._expect(fen, "row of the lane", game.position.row().tobytes(), env.states[lane].tobytes())

    def _compare_planes(self, game: Game, planes: npt.NDArray[np.float32]) -> None:
        """Compare planes float32 [C, H, W] with what `observation.py` says that they mean."""
        board = self.variant.board
        xs, ys = (np.array(column) for column in zip(*board.squares))
        rows = ys if game.state.to_play != BLACK else board.ranks - 1 - ys
        expected = np.zeros(planes.shape, np.float32)
        letters = np.array(game.state.board)
        for number, name in enumerate(self.planes):
            expected[number, rows, xs] = self._plane_values(game, name, letters)
        if not np.allclose(expected, planes, atol=1e-6):
            number = int(np.argmax(np.abs(expected - planes).max(axis=(1, 2))))
            self._expect(
                game.position.fen(),
                f"plane {self.planes[number]!r}",
                expected[number].tolist(),
                planes[number].tolist(),
            )

    def _plane_values(self, game: Game, name: str, letters: npt.NDArray[np.str_]) -> npt.ArrayLike:
        """Return what a plane holds, a number or one for each square; `letters` are those on the squares."""
        state = game.state
        times = game.earlier.count(game.identity) if self.variant.ends.repetition_times else 0  # not counted if off
        match = PIECE_PLANE.fullmatch(name) or RIGHT_PLANE.fullmatch(name)
        if match:
            white = (match[1] == "own") == (state.to_play != BLACK)
            letter = match[2][0].upper() if white else match[2][0].lower()
            return state.rights[RIGHTS_LETTERS.index(letter)] if name.endswith("castling") else letters == letter
        if name == "en passant":
            return np.isin(np.arange(len(letters)), game.identity[3])
        values = {
            "clock": min(state.halfmove_clock / clock_scale(self.variant), 1),
            "repeated once": times == 1,
            "repeated twice": times >= 2,
            "black to move": state.to_play == BLACK,
            "board": True,
        }
        return values[name]

    def _compare_replay(self, lane: int, game: Game) -> None:
        """Play a lane's game again from its actions."""
        rows, outcome = replay_actions(self.env.game, game.start, game.actions)
        fen = game.position.fen()
        self._expect(fen, "replayed row", self.env.states[lane].tobytes(), rows[-1].tobytes())
        self._expect(fen, "replayed outcome", game.outcome, outcome)
        self._expect(
            fen, "planes", True, np.array_equal(observe(self.env.game, rows[-1:])[0], self.env.observe()[lane])
        )

    def _play_on(self, game: Game) -> None:
        """A drawn game may be played on in a `Position`."""
        for _ in range(PLIES_AFTER_A_DRAW):
            if game.outcome is None or not game.moves:
                return
            names = sorted(game.moves)
            game.push(names[int(self.rng.integers(len(names)))])
            self._compare_position(game)

    def _expect(self, fen: str, what: str, expected: object, actual: object) -> None:
        if expected != actual:
            raise Difference(f"{what} in {fen}: the rules say {expected}, the kernels {actual}")
