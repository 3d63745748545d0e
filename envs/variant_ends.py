"""How the games of a variant file end: goals, extinction and draws, and whether both sides can be beaten at all."""

from __future__ import annotations

from collections.abc import Iterable

from envs.schema import OFF, SIDES, GoalSchema, RepetitionSchema
from envs.strict_yaml import KeyPath
from envs.variant import WHITE, Ends, Extinction, Goal, Pawns
from envs.variant_draft import Draft

ALL = "all"


def end_rules(draft: Draft, pawns: Pawns | None) -> Ends:
    """Return how games end, with the defaults filled in.

    Raises:
        InvalidVariant: A key of `ends` cannot be honoured, or a side cannot be beaten.
    """
    rules = draft.schema.ends
    repetition = rules.repetition if isinstance(rules.repetition, RepetitionSchema) else None
    ends = Ends(
        stalemate=rules.stalemate,
        repetition_times=0 if repetition is None else repetition.times,
        repetition_result="draw" if repetition is None else repetition.result,
        move_limit=rules.move_limit if isinstance(rules.move_limit, int) else 0,
        bare_kings_draw=_bare_kings_draw(draft),
        goals=tuple(_goal(draft, goal, number, pawns) for number, goal in enumerate(rules.goals)),
        extinction=_extinction(draft),
    )
    for side in (0, 1):
        if draft.royals[side] is None and not _can_be_beaten(ends, side):
            raise draft.error(
                ("royal",),
                f"{SIDES[side]} has no royal and could never be beaten: expected a goal of {SIDES[1 - side]} in "
                "`ends.goals`, `ends.extinction`, or an `ends.stalemate` that is no draw",
            )
    return ends


def _bare_kings_draw(draft: Draft) -> bool:
    asked, both = draft.schema.ends.bare_kings, None not in draft.royals
    if asked is not None and asked != OFF and not both:
        raise draft.error(("ends", "bare_kings"), "needs a royal of both sides; without, expected off or nothing")
    return both if asked is None else asked != OFF


def _can_be_beaten(ends: Ends, side: int) -> bool:
    """Return whether some end without checkmate is a loss of `side`."""
    by_goal = any(goal.squares[1 - side] for goal in ends.goals)
    by_extinction = ends.extinction is not None and ends.extinction.result != "draw"
    return by_goal or by_extinction or ends.stalemate != "draw"


# --- Goals ------------------------------------------------------------------------------------


def _goal(draft: Draft, rules: GoalSchema, number: int, pawns: Pawns | None) -> Goal:
    path: KeyPath = ("ends", "goals", number)
    pieces = draft.types_of(rules.by, (*path, "by"))
    white, black = (
        _goal_squares(draft, names, (*path, "squares", side))
        for side, names in zip(SIDES, (rules.squares.white, rules.squares.black), strict=True)
    )
    if not white and not black:
        raise draft.error((*path, "squares"), "expected squares of white, black or both")
    for side, squares in enumerate((white, black)):
        if squares and not _may_have(draft, pawns, side) & set(pieces):
            raise draft.error((*path, "by"), f"{SIDES[side]} never has one of {rules.by!r}, to win by it")
        for square in squares:
            if pawns is not None and pawns.piece in pieces and _promotes_away(draft, pawns, side, square):
                raise draft.error(
                    (*path, "by"),
                    f"a pawn of {SIDES[side]} must promote on {draft.board.names[square]}, so it never wins there; the "
                    "nearest supported form lists what it promotes to",
                )
    return Goal(rules.name, pieces, (white, black))


def _goal_squares(draft: Draft, names: Iterable[str] | None, path: KeyPath) -> tuple[int, ...]:
    index = draft.board.index_by_name
    for name in names or ():
        if name not in index:
            raise draft.error(path, f"no square {name!r} on this board")
    return tuple(sorted({index[name] for name in names or ()}))


def _may_have(draft: Draft, pawns: Pawns | None, side: int) -> set[int]:
    """Return the piece types that a side has at the start or may promote to."""
    types = draft.types_at_start(side)
    return types | set(pawns.promotes_to[side]) if pawns is not None and pawns.piece in types else types


def _promotes_away(draft: Draft, pawns: Pawns, side: int, square: int) -> bool:
    """Return whether a pawn never stands on a square, since it must promote there."""
    x, y = draft.board.squares[square]
    forward = 1 if side == WHITE else -1
    if pawns.must_promote:
        nearest = min(pawns.promotion_ranks[side]) if side == WHITE else max(pawns.promotion_ranks[side])
        return (y - nearest) * forward >= 0
    goes_on = any((x + dx, y + dy * forward) in draft.board.index for dx, dy in (*pawns.quiet, *pawns.captures))
    return y in pawns.promotion_ranks[side] and not goes_on


# --- Extinction -------------------------------------------------------------------------------


def _extinction(draft: Draft) -> Extinction | None:
    rules = draft.schema.ends.extinction
    if rules is None:
        return None
    path: KeyPath = ("ends", "extinction", "pieces")
    if rules.pieces == ALL:
        if None not in draft.royals:
            raise draft.error(path, "both sides have a royal, which is never captured: they never lose all pieces")
        return Extinction(None, rules.result)
    pieces = draft.types_of(rules.pieces, path)
    for letter, number in zip(rules.pieces, pieces, strict=True):
        if number in draft.royals:
            raise draft.error(path, f"{letter!r} {_why_royal(draft, number)}")
    for start in draft.starts:
        for letter in rules.pieces:
            for side, own in enumerate((letter.upper(), letter)):
                if own not in start.placed.values():
                    raise draft.error(
                        start.path,
                        f"{SIDES[side]} has no {own!r}, so it is extinct from the start: `ends.extinction` looks at "
                        "both sides; expected letters that both have" + (", or `all`" if None in draft.royals else ""),
                    )
    return Extinction(pieces, rules.result)


def _why_royal(draft: Draft, number: int) -> str:
    """Say why a type that is royal for a side cannot die out."""
    if draft.royals == (number, number):
        return "is royal and never captured; checkmate decides"
    side = SIDES[draft.royals.index(number)]
    instead = "letters that are royal for neither side" + (", or `all`" if None in draft.royals else "")
    return (
        f"is royal for {side} and never captured there; extinction looks at both sides, so a type that is royal for "
        f"one of them cannot be listed; expected {instead}"
    )
