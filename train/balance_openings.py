"""Openings that two settings of a game share: the same first moves from the corresponding start positions.

An opening is common where its moves are legal in both games, finish neither, and leave nobody ahead at once in either
(`openings.py`). Where there are not enough of them, each game has openings of its own after the common ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from envs import InvalidFen, Position, Variant, engine_for, read_fen, replay_actions
from envs.rows import format_fen
from train.openings import POSITION_FIELDS, Judge, Opening, draw_openings

MOST_DRAWN = 4
"""So many times the wanted number of openings is tried at most."""


@dataclass(frozen=True)
class Openings:
    """Openings of one or two games.

    Attributes:
        lists: for each game, as many as are wanted.
        common: so many first ones are the same moves in all games.
    """

    lists: tuple[list[Opening], ...]
    common: int


def openings_for(variants: Sequence[Variant], count: int, *, plies: int, seed: int) -> Openings:
    """Return balanced openings of one game, or of two with as many common ones as can be found.

    Args:
        variants: one or two games.
        count: openings wanted of each.
        plies: random plies of each.
        seed: of the draws.

    Raises:
        ValueError: a game has too few distinct openings of so many plies.
    """
    first = variants[0]
    if len(variants) == 1:
        return Openings((draw_openings(first, count, plies=plies, seed=seed, balanced=True),), count)
    second, carrier = variants[1], _Carrier(*variants)
    pairs: list[tuple[Opening, Opening]] = []
    drawn: list[Opening] = []
    for wanted in (count, 2 * count, MOST_DRAWN * count):
        if len(pairs) >= count or not carrier.may_carry:
            break
        try:
            drawn = draw_openings(first, wanted, plies=plies, seed=seed, balanced=True)
        except ValueError:
            break
        pairs = [(opening, carried) for opening in drawn if (carried := carrier.carry(opening)) is not None]
    pairs = pairs[:count]
    lists = tuple(
        _filled([pair[side] for pair in pairs], variant, count, plies=plies, seed=seed)
        for side, variant in enumerate((first, second))
    )
    return Openings(lists, len(pairs))


def opened_fen(variant: Variant, opening: Opening) -> str:
    """Return the FEN of the position that an opening leads to."""
    game = engine_for(variant)
    rows, _ = replay_actions(game, opening.start_fen, opening.actions)
    return format_fen(game, rows[-1])


def with_black_first(variant: Variant) -> Variant | None:
    """Return a game from whose start positions Black moves first; None where one of them allows no such thing.

    With the names of the colours exchanged it is the game in which White has Black's army.
    """
    starts = tuple(_black_first(variant))
    return replace(variant, start_fens=starts) if len(starts) == len(variant.start_fens) else None


def _black_first(variant: Variant) -> Iterator[str]:
    for start in variant.start_fens:
        board, side, rights, _, *counters = start.split()
        fen = " ".join([board, {"w": "b", "b": "w"}[side], rights, "-", *counters])
        try:
            read_fen(engine_for(variant), fen)
        except InvalidFen:
            continue
        if Position(variant, fen).outcome() is None:
            yield fen


class _Carrier:
    """Carries openings of one game over to another."""

    def __init__(self, first: Variant, second: Variant) -> None:
        self.may_carry = first.board == second.board and len(first.start_fens) == len(second.start_fens)
        self._first, self._second, self._judge = first, second, Judge(second)

    def carry(self, opening: Opening) -> Opening | None:
        """Return the opening in the other game; None where it is none there."""
        start = self._second.start_fens[self._first.start_fens.index(opening.start_fen)]
        position, actions = Position(self._second, start), []
        for move in opening.moves:
            if move not in position.legal_moves():
                return None
            actions.append(position.move_to_action(move))
            position.push(move)
            if position.outcome() is not None:
                return None
        where = " ".join(position.fen().split()[:POSITION_FIELDS])
        carried = Opening(start, tuple(actions), opening.moves, where)
        return carried if self._judge.is_balanced(carried) else None


def _filled(common: list[Opening], variant: Variant, count: int, *, plies: int, seed: int) -> list[Opening]:
    """Return common openings and after them a game's own ones, `count` together."""
    if len(common) == count:
        return common
    held = {opening.position for opening in common}
    own = draw_openings(variant, count, plies=plies, seed=seed, balanced=True)
    return [*common, *(opening for opening in own if opening.position not in held)][:count]
