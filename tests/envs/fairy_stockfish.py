"""Fairy-Stockfish (pyffish) as an oracle: one game after another played side by side, compared at every position.

Compared: legal moves, check, FEN, and whether and how the game has ended. Its ranks always begin with 1, and it lists
en passant squares by its own rule: ours, where a capture is legal, are among them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyffish

from envs import Outcome, Position, Termination, rules, rules_fen
from envs.variant import Variant
from tests.envs.random_games import Temper, pick_move, starts
from tests.envs.rules_position import RulesPosition

AnyPosition = Position | RulesPosition
MAX_PLIES = 40
REPETITIONS_TO_ASK, CLOCK_TO_ASK = 2, 99
WINNERS = {1: "the player to move", 0: "nobody", -1: "the player who moved"}


class Difference(AssertionError):
    """The engine and the oracle disagree."""


@dataclass(frozen=True)
class Oracle:
    """A game of Fairy-Stockfish.

    Attributes:
        name: Its name there.
        counts_plies: Whether its half-move clock counts as ours does.
        rights: Letters of the castling rights that it can hold.
        has_rights: Whether its FEN has the fields of castling and en passant.
        without: Letters of pieces, as a FEN writes them, that it takes for royal and no game of ours can come to have.
    """

    name: str
    counts_plies: bool = True
    rights: str = "KQkq"
    has_rights: bool = True
    without: str = ""


class Game:
    """A game as Fairy-Stockfish sees it.

    Each question costs a millisecond, and more for each move since the position that it is asked about. So it is asked
    about one position at a time, about the moves since the start only where a position occurs again, and about draws
    only where one may be.
    """

    def __init__(self, oracle: Oracle, variant: Variant, fen: str) -> None:
        self._oracle = oracle
        self._shift = 1 - variant.board.first_rank
        placement, *rest = fen.split(" ")
        self._start = " ".join([placement, *(self.squares(field) for field in rest)])
        self._fens = [pyffish.get_fen(oracle.name, self._start, [])]
        self._moves: list[str] = []

    def squares(self, text: str) -> str:
        """Rename the squares in a text: the oracle's ranks begin with 1."""
        return re.sub(r"([a-p])(\d+)", lambda square: f"{square[1]}{int(square[2]) + self._shift}", text)

    def push(self, move: str) -> None:
        self._moves.append(self.squares(move))
        self._fens.append(pyffish.get_fen(self._oracle.name, self._fens[-1], self._moves[-1:]))

    def legal_moves(self) -> list[str]:
        return sorted(pyffish.legal_moves(self._oracle.name, self._fens[-1], []))

    def in_check(self) -> bool:
        return pyffish.gives_check(self._oracle.name, self._fens[-1], [])

    def fen(self) -> list[str]:
        """Return the fields of the FEN, `-` for rights and en passant where it has none."""
        fields = self._fens[-1].split(" ")
        return fields if self._oracle.has_rights else [*fields[:2], "-", "-", *fields[-2:]]

    def end(self, moves: list[str], expected: bool) -> tuple[bool, int | None]:
        """Return whether the rules end the game at once, and the result for the player to move, None while it goes on.

        Args:
            moves: Its legal moves now, none in a game that is over at once.
            expected: Whether we say that the game is over.
        """
        position: tuple[str, str, list[str]] = (self._oracle.name, self._fens[-1], [])
        if not moves:
            over, value = pyffish.is_immediate_game_end(*position)
            return over, int(np.sign(value if over else pyffish.game_result(*position)))
        occurs_again = self._occurs_again()
        if not (expected or occurs_again or int(self._fens[-1].split(" ")[-2]) >= CLOCK_TO_ASK):
            return False, None
        if occurs_again:
            position = (self._oracle.name, self._start, self._moves)
        over, value = pyffish.is_optional_game_end(*position)
        return False, int(np.sign(value)) if over else None

    def _occurs_again(self) -> bool:
        identities = [fen.split(" ")[:3] for fen in self._fens]
        return identities.count(identities[-1]) > REPETITIONS_TO_ASK


def play(
    variant: Variant,
    oracle: Oracle,
    make_position: Callable[[str], AnyPosition],
    *,
    num_positions: int,
    seed: int,
) -> Counter[str]:
    """Play random games and compare every position; return how often what was seen."""
    rng = np.random.default_rng(seed)
    seen: Counter[str] = Counter()
    for start in starts(variant, rng):
        if set(start.split(" ")[0]) & set(oracle.without):
            continue
        fen = without_rights(start, oracle.rights)
        position, game = make_position(fen), Game(oracle, variant, fen)
        state, temper, last = rules_fen.parse_fen(variant, fen), Temper.draw(rng), [None, None]
        for _ in range(MAX_PLIES):
            outcome = compare(oracle, position, game)
            seen["positions"] += 1
            if outcome is not None:
                seen[outcome] += 1
                break
            moves = rules.legal_moves(variant, state)
            move = pick_move(variant, rng, temper, state=state, moves=moves, last=last[-2])
            last.append(move)
            seen[move.kind.value] += 1
            seen["promotions"] += bool(move.promotion)
            name = rules_fen.move_name(variant, move)
            position.push(name)
            game.push(name)
            state = rules.make(variant, state, move)
        if seen["positions"] >= num_positions:
            return seen
    raise AssertionError("unreachable")


def without_rights(fen: str, kept: str) -> str:
    placement, side, rights, *rest = fen.split(" ")
    return " ".join([placement, side, "".join(right for right in rights if right in kept) or "-", *rest])


def compare(oracle: Oracle, position: AnyPosition, game: Game) -> str | None:
    """Compare one position; return the name of the termination when the game is over."""
    outcome, their_moves = position.outcome(), game.legal_moves()
    over_at_once, result = game.end(their_moves, outcome is not None)
    own, theirs = position.fen().split(" "), game.fen()
    facts: dict[str, tuple[object, object]] = {
        "FEN": (own[:3], theirs[:3]),
        "en passant": (_passed(game, own[3]) <= _passed(game, theirs[3], renamed=True), True),
    }
    if oracle.counts_plies:
        facts["counters"] = (own[4:], theirs[4:])
    if not over_at_once:
        facts["legal moves"] = (sorted(game.squares(move) for move in position.legal_moves()), their_moves)
        facts["check"] = (position.in_check, game.in_check())
    if outcome is None or outcome.termination not in _unseen(oracle):
        facts["end"] = (_result(position, outcome), None if result is None else WINNERS[result])
    for what, (ours, other) in facts.items():
        if ours != other:
            raise Difference(f"{what} in {position.fen()}: we say {ours}, pyffish {other}")
    return None if outcome is None else outcome.termination.name


def _passed(game: Game, field: str, renamed: bool = False) -> set[str]:
    squares = re.findall(r"[a-p]\d+", field)
    return set(squares) if renamed else {game.squares(square) for square in squares}


def _unseen(oracle: Oracle) -> set[Termination]:
    """The ends of which this oracle knows nothing."""
    return {Termination.BARE_KINGS} | (set() if oracle.counts_plies else {Termination.FIFTY_MOVES})


def _result(position: AnyPosition, outcome: Outcome | None) -> str | None:
    if outcome is None:
        return None
    if outcome.winner is None:
        return WINNERS[0]
    return WINNERS[1 if outcome.winner == position.to_play else -1]
