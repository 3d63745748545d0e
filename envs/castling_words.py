"""Castling in words."""

from __future__ import annotations

from collections.abc import Iterable

from envs.game_words import Entry, capitalised, listed, piece_names
from envs.notation import RIGHTS_LETTERS, SIDE_NAMES
from envs.variant import BLACK, WHITE, Castling, Variant

WINGS = ("kingside", "queenside")


def castling_entries(variant: Variant) -> list[Entry]:
    """Return an entry for each castling move, then the conditions."""
    moves = [_one_move(variant, number, move) for number, move in enumerate(variant.castlings) if move]
    conditions = {side: _conditions(variant, side) for side in (WHITE, BLACK) if _of_side(variant, side)}
    if len(conditions) == 1:
        (side,) = conditions
        only = f"Only {SIDE_NAMES[side]} castles."
        return [*moves, Entry("Conditions", (only, *conditions[side], _written(variant, side)))]
    if conditions[WHITE] == conditions[BLACK]:
        return [*moves, Entry("Conditions", (*conditions[WHITE], _written(variant, WHITE)))]
    return moves + [
        Entry(f"{SIDE_NAMES[side]} conditions", (*sentences, _written(variant, side)))
        for side, sentences in conditions.items()
    ]


def _of_side(variant: Variant, side: int) -> list[Castling]:
    return [move for move in variant.castlings[2 * side : 2 * side + 2] if move is not None]


def _king(variant: Variant, side: int) -> str:
    """Name what castles: the royal, or whatever stands on its square in the start positions."""
    royal = variant.royals[side]
    types = {number for move in _of_side(variant, side) for number in move.king_types}
    return piece_names(variant, sorted(types) if royal is None else [royal])


def _conditions(variant: Variant, side: int) -> tuple[str, ...]:
    king = _king(variant, side)
    types = {number for move in _of_side(variant, side) for number in move.partner_types}
    partner = f"the {piece_names(variant, types)}" if len(types) == 1 else "its partner"
    if variant.royals[side] is None:
        return (
            f"The {king} and {partner} have not moved.",
            "The right is also lost when either is captured at home in any way.",
            "Attacks do not matter.",
        )
    return (
        f"The {king} is not in check, and it and {partner} have not moved.",
        f"The right is also lost when {partner} is captured at home in any way.",
    )


def _written(variant: Variant, side: int) -> str:
    move = _of_side(variant, side)[0]
    names = variant.board.names
    return f"The move is written as the {_king(variant, side)}'s: {names[move.king_from]}{names[move.king_to]}."


def _one_move(variant: Variant, number: int, move: Castling) -> Entry:
    side = number // 2
    names, squares, index = variant.board.names, variant.board.squares, variant.board.index
    (king_x, y), (to_x, _) = squares[move.king_from], squares[move.king_to]
    partner_x, partner_to_x = squares[move.partner_from][0], squares[move.partner_to][0]
    swept = {
        x
        for a, b in ((king_x, partner_x), (king_x, to_x), (partner_x, partner_to_x))
        for x in range(min(a, b), max(a, b) + 1)
    } - {king_x, partner_x}
    step = 1 if to_x > king_x else -1
    safe = set() if variant.royals[side] is None else {*range(king_x + step, to_x + step, step)}

    def at(files: Iterable[int]) -> str:
        return listed(names[index[x, y]] for x in sorted(files))

    king, partner = capitalised(_king(variant, side)), piece_names(variant, move.partner_types)
    path = f"{names[move.king_from]} to {names[move.king_to]}, {partner} {names[move.partner_from]} to"
    sentences = [f"{king} {path} {names[move.partner_to]}."]
    demands = [f"{at(swept)} must be empty"] if swept else []
    demands += [f"{at(safe)} {'' if swept else 'must be '}not attacked"] if safe else []
    sentences += [f"{', '.join(demands)}."] if demands else []
    sentences += [f"{at(swept - safe)} may be attacked."] if safe and swept - safe else []
    return Entry(f"{SIDE_NAMES[side]} {WINGS[number % 2]}", (*sentences, *_starts_without(variant, number)))


def _starts_without(variant: Variant, number: int) -> list[str]:
    """Say in how many of the start positions the right is missing, where it is in any."""
    starts = variant.start_fens
    missing = sum(RIGHTS_LETTERS[number] not in fen.split(" ")[2] for fen in starts)
    if not missing:
        return []
    if missing == len(starts):
        return ["No start position gives this right, so it is never had."]
    return [f"The right is missing in {missing} of the {len(starts)} start positions."]
