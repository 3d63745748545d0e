"""How games end, in words."""

from __future__ import annotations

from envs.game_words import (
    ORDINALS,
    Entry,
    capitalised,
    listed,
    ordinal,
    piece_names,
    plural,
    square_names,
    with_article,
)
from envs.notation import SIDE_NAMES
from envs.pawn_words import promotion_squares
from envs.variant import BLACK, WHITE, Extinction, Goal, Pawns, Result, Variant

FIFTY_MOVES = 100
VERBS: dict[Result, str] = {"win": "wins", "loss": "loses", "draw": "draws"}


def ending_entries(variant: Variant) -> list[Entry]:
    """Return the ways to end a game in the order in which they count, and what does not end it."""
    ends = variant.ends
    entries = _goals(variant)
    entries += [_extinction(variant, ends.extinction)] if ends.extinction else []
    entries += [_checkmate(variant)] if any(royal is not None for royal in variant.royals) else []
    entries.append(_stalemate(variant))
    entries += [_bare_kings(variant)] if ends.bare_kings_draw else []
    entries += [_repetition(variant)] if ends.repetition_times else []
    entries += [_move_limit(variant)] if ends.move_limit else []
    order = ", ".join(_inner(entry.heading) for entry in entries)
    return [*entries, *_no_limit(variant), Entry("Several at once", (f"The first that holds counts: {order}.",))]


def move_limit_name(variant: Variant) -> str:
    """Return what the rule about moves without capture or pawn move is called."""
    return "fifty moves" if variant.ends.move_limit == FIFTY_MOVES else "move limit"


def _inner(heading: str) -> str:
    return heading[0].lower() + heading[1:]


# --- Wins and losses ----------------------------------------------------------------------------


def _goals(variant: Variant) -> list[Entry]:
    """Return an entry for each name of a goal."""
    sentences: dict[str, list[str]] = {}
    for goal in variant.ends.goals:
        sentences.setdefault(capitalised(goal.name), []).extend(_goal(variant, goal))
    return [Entry(name, tuple(said)) for name, said in sentences.items()]


def _goal(variant: Variant, goal: Goal) -> list[str]:
    is_any = len(goal.pieces) == len(variant.piece_types)
    piece = "Any piece" if is_any else capitalised(with_article(piece_names(variant, goal.pieces)))
    white, black = (square_names(variant, squares) if squares else "" for squares in goal.squares)
    if white == black:
        sentences = [f"{piece} that makes a legal move onto {white} wins at once."]
    elif white and black:
        sentences = [f"{piece} that makes a legal move onto {white} (White) or {black} (Black) wins at once."]
    else:
        side = WHITE if white else BLACK
        sentences = [
            f"{piece} of {SIDE_NAMES[side]} that makes a legal move onto {white or black} wins at once.",
            f"{SIDE_NAMES[1 - side]} has no such goal.",
        ]
    if not is_any and _promotion_decides(variant, goal):
        sentences.append("A pawn that promotes there counts as what it becomes.")
    if not is_any and _castling_arrives(variant, goal):
        sentences.append("It also wins when castling brings it there as the partner.")
    return sentences


def _promotion_decides(variant: Variant, goal: Goal) -> bool:
    pawns = variant.pawns
    return pawns is not None and any(
        {*promotion_squares(variant, side)} & {*goal.squares[side]}
        and {pawns.piece, *pawns.promotes_to[side]} & {*goal.pieces}
        for side in (WHITE, BLACK)
    )


def _castling_arrives(variant: Variant, goal: Goal) -> bool:
    return any(
        move is not None and move.partner_to in goal.squares[number // 2] and {*move.partner_types} & {*goal.pieces}
        for number, move in enumerate(variant.castlings)
    )


def _extinction(variant: Variant, extinction: Extinction) -> Entry:
    result, pieces = extinction.result, extinction.pieces
    if pieces is None:
        lost = "that has no piece left"
    elif len(pieces) == 1:
        lost = f"that has no {piece_names(variant, pieces)} left"
    else:
        lost = f"that has lost its last {piece_names(variant, pieces)} (one of these kinds is enough)"
    if result == "draw":
        sentences = [f"The game is a draw as soon as there is a side {lost}."]
    else:
        sentences = [f"A side {lost} {VERBS[result]} at once."]
    pawns = variant.pawns
    if pieces is not None and pawns is not None:
        promoted = {target for targets in pawns.promotes_to for target in targets}
        if {pawns.piece, *promoted} & {*pieces}:
            sentences.append("A promoted pawn counts as what it has become.")
    if result != "draw" and pieces is not None and _mover_may_lose_pieces(variant, pieces, pawns):
        sentences.append("If it holds for both sides at once, the side that has just moved is the one that counts.")
    return Entry("Extinction", tuple(sentences))


def _mover_may_lose_pieces(variant: Variant, pieces: tuple[int, ...], pawns: Pawns | None) -> bool:
    """Return whether a move can take listed pieces from the side that makes it."""
    takes_own = any(piece.captures_own or piece.fires_through_own for piece in variant.piece_types)
    return takes_own or (pawns is not None and pawns.piece in pieces)


def _checkmate(variant: Variant) -> Entry:
    white, black = variant.royals
    if white is not None and white == black:
        king = capitalised(with_article(variant.piece_types[white].name))
        return Entry("Checkmate", (f"{king} in check with no legal move is mated: its side loses.",))
    names = {side: variant.piece_types[number].name for side, number in enumerate(variant.royals) if number is not None}
    if len(names) == 2:
        kings = listed((f"{with_article(name)} of {SIDE_NAMES[side]}" for side, name in names.items()), "or")
        text = f"{capitalised(kings)} in check with no legal move is mated: its side loses."
        return Entry("Checkmate", (text,))
    ((side, name),) = names.items()
    return Entry("Checkmate", (
        f"{SIDE_NAMES[side]}'s {name} in check with no legal move is mated: {SIDE_NAMES[side]} loses.",
        f"{SIDE_NAMES[1 - side]} has no royal piece and can be neither in check nor mated.",
    ))  # fmt: skip


def _stalemate(variant: Variant) -> Entry:
    result = variant.ends.stalemate
    has_royals = any(royal is not None for royal in variant.royals)
    if result == "draw":
        return Entry("Stalemate", (f"No legal move{' without being in check' if has_royals else ''} is a draw.",))
    quietly = " and is not in check" if has_royals else ""
    return Entry("Stalemate", (f"The side that has no legal move{quietly} {VERBS[result]}.",))


# --- Draws and limits ---------------------------------------------------------------------------


def _bare_kings(variant: Variant) -> Entry:
    white, black = (variant.piece_types[royal].name for royal in variant.royals if royal is not None)
    kings = f"The two {plural(white)}" if white == black else f"White's {white} and Black's {black}"
    return Entry("Bare kings", (f"{kings} alone on the board are a draw.",))


def _repetition(variant: Variant) -> Entry:
    ends, pawns = variant.ends, variant.pawns
    passing = pawns is not None and pawns.first_steps > 1
    same = ["the same board and side to move"]
    same += ["the same castling rights"] if any(variant.castlings) else []
    same += ["the same legal en passant captures"] if passing else []
    again = f"the same position for the {ORDINALS[ends.repetition_times]} time"
    if ends.repetition_result == "draw":
        sentences = [f"{capitalised(again)} is a draw: {', '.join(same)}."]
    else:
        mover, other = ("loses", "wins") if ends.repetition_result == "win" else ("wins", "loses")
        sentences = [
            f"The player whose move brings about {again} {mover}, the player to move then {other}.",
            f"What must be the same: {listed(same)}.",
        ]
    return Entry("Repetition", (*sentences, *repetition_notes(variant)))


def repetition_notes(variant: Variant) -> list[str]:
    """Return what the pawns of a game mean for repetition, where it is not what they mean in chess."""
    pawns = variant.pawns
    if pawns is None or not pawns.can_return:
        return []
    return [f"Pawns can step {_returns(pawns)} here, so positions from before a pawn move may come again and count."]


def _returns(pawns: Pawns) -> str:
    kinds = {"sideways" if step[1] == 0 else "backward" for step in pawns.quiet if step[1] <= 0}
    return listed(sorted(kinds, reverse=True), "or")


def _move_limit(variant: Variant) -> Entry:
    limit, pawns = variant.ends.move_limit, variant.pawns
    has_royals = any(royal is not None for royal in variant.royals)
    without = "a capture" if pawns is None else "a capture or pawn move"
    end = "mate" if has_royals else "win"
    count = "1 ply without {} is" if limit == 1 else f"{limit} plies without {{}} are"
    sentences = [f"{count.format(without)} a draw; a {end} on the {ordinal(limit)} is still a {end}."]
    if pawns is not None and pawns.can_return:
        sentences.append(f"A pawn move {_returns(pawns)} counts as a pawn move too.")
    return Entry(capitalised(move_limit_name(variant)), tuple(sentences))


def _no_limit(variant: Variant) -> list[Entry]:
    """Say which of the usual limits a game does not have."""
    ends = variant.ends
    without = "capture" if variant.pawns is None else "capture or pawn move"
    entries = []
    if not ends.repetition_times:
        entries.append(Entry("No repetition", ("A position may come again any number of times.",)))
    if not ends.move_limit:
        entries.append(Entry("No move limit", (f"Any number of plies may pass without a {without}.",)))
    return entries
