"""Castling of a variant file: its squares, what stands there at the start, and that from and to tell it apart."""

from __future__ import annotations

from dataclasses import dataclass

from envs.schema import SIDES, CastlingMoveSchema, CastlingOfSideSchema, CastlingSchema
from envs.strict_yaml import KeyPath
from envs.variant import BLACK, WHITE, Castling, Pawns, PieceType
from envs.variant_draft import Draft, Start
from envs.variant_pieces import landings

RIGHTS_LETTERS = "KQkq"


@dataclass(frozen=True)
class _Plan:
    """One castling that the file asks for.

    Attributes:
        side: Whose.
        right: The letter that a FEN has for it.
        y: Its rank.
        king: The file where the king stands.
        move: The other files.
        path: Its key.
    """

    side: int
    right: str
    y: int
    king: str
    move: CastlingMoveSchema
    path: KeyPath


def castlings(draft: Draft, pieces: tuple[PieceType, ...], pawns: Pawns | None) -> tuple[Castling | None, ...]:
    """Return the castlings in the order White kingside, White queenside, Black kingside, Black queenside.

    Raises:
        InvalidVariant: A castling cannot be honoured.
    """
    plans = _plans(draft)
    found = [None if plan is None else _castling(draft, plan, pawns) for plan in plans]
    for plan, castling in zip(plans, found, strict=True):
        if plan is not None and castling is not None:
            _check_route(draft, plan, castling, pieces)
    for side in (WHITE, BLACK):
        first, second = found[2 * side : 2 * side + 2]
        if first is not None and second is not None and first.king_to == second.king_to:
            raise draft.error(
                ("castling",), "two castlings lead the king to the same square: from and to must tell them apart"
            )
    return tuple(found)


def _plans(draft: Draft) -> list[_Plan | None]:
    rules = draft.schema.castling
    if rules is None:
        return [None] * 4
    if isinstance(rules, CastlingSchema):
        path: KeyPath = ("castling",)
        ranks = draft.ranks((*path, "rank"), [rules.rank])
        return [plan for side in (WHITE, BLACK) for plan in _plans_of_side(draft, rules, path, side, ranks[side][0])]
    plans: list[_Plan | None] = []
    for side, own in enumerate((rules.white, rules.black)):
        path = ("castling", SIDES[side])
        if own is None:
            plans += [None, None]
        else:
            y = draft.ranks((*path, "rank"), [own.rank])[WHITE][0]  # each side's rank is named from White's side
            plans += _plans_of_side(draft, own, path, side, y)
    return plans


def _plans_of_side(
    draft: Draft, rules: CastlingSchema | CastlingOfSideSchema, path: KeyPath, side: int, y: int
) -> list[_Plan | None]:
    if rules.kingside is None and rules.queenside is None:
        raise draft.error(path, "expected kingside, queenside or both; `castling: null` removes castling")
    moves = {"kingside": rules.kingside, "queenside": rules.queenside}
    letters = RIGHTS_LETTERS[2 * side : 2 * side + 2]
    return [
        None if move is None else _Plan(side, letter, y, rules.king, move, (*path, key))
        for letter, (key, move) in zip(letters, moves.items(), strict=True)
    ]


def _castling(draft: Draft, plan: _Plan, pawns: Pawns | None) -> Castling:
    king_from = _square(draft, plan, plan.king, (*plan.path[:-1], "king"))
    king_to = _square(draft, plan, plan.move.king_to, (*plan.path, "king_to"))
    partner_from = _square(draft, plan, plan.move.rook, (*plan.path, "rook"))
    partner_to = _square(draft, plan, plan.move.rook_to, (*plan.path, "rook_to"))
    if king_from == partner_from or king_to in (partner_to, king_from):
        raise draft.error(plan.path, "king and partner must start, and end, on different squares")
    span = [draft.board.squares[square][0] for square in (king_from, king_to, partner_from, partner_to)]
    for x in range(min(span), max(span) + 1):
        if (x, plan.y) not in draft.board.index:
            raise draft.error(plan.path, f"castling passes over a hole on file {chr(ord('a') + x)}")
    king_types, partner_types = _types_at_home(draft, plan, king_from, partner_from)
    if pawns is not None and pawns.piece in king_types:
        raise draft.error(
            plan.path, f"a pawn stands on {draft.board.names[king_from]}; pawns do not castle as the king"
        )
    if pawns is not None and pawns.piece in partner_types and plan.y in pawns.promotion_ranks[plan.side]:
        raise draft.error(
            plan.path,
            f"a pawn stands on {draft.board.names[partner_from]}, where pawns promote; castling promotes nothing",
        )
    return Castling(king_from, king_to, partner_from, partner_to, king_types, partner_types)


def _square(draft: Draft, plan: _Plan, file: str, path: KeyPath) -> int:
    cell = (ord(file) - ord("a"), plan.y)
    if cell not in draft.board.index:
        raise draft.error(path, f"file {file!r} has no square on rank {draft.board.first_rank + plan.y}")
    return draft.board.index[cell]


def _types_at_home(
    draft: Draft, plan: _Plan, king_from: int, partner_from: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the types of king and partner in the start positions that give the right, in all where none does."""
    royal = draft.royals[plan.side]
    where = f"for {SIDES[plan.side]} in the start position"
    kings: list[tuple[Start, int]] = []
    for start in draft.starts:
        kind = _own_type(draft, plan.side, start, king_from)
        if kind is not None and royal in (None, kind):
            kings.append((start, kind))
    if not kings:
        what = "piece" if royal is None else "royal piece"
        raise draft.error(plan.path, f"no {what} on {draft.board.names[king_from]} {where}")
    pairs: list[tuple[Start, int, int]] = []
    for start, king in kings:
        partner = _own_type(draft, plan.side, start, partner_from)
        if partner is not None and partner != royal:
            pairs.append((start, king, partner))
    if not pairs:
        raise draft.error(plan.path, f"no castling partner on {draft.board.names[partner_from]} {where}")
    given = [pair for pair in pairs if plan.right in pair[0].rights] or pairs
    return tuple(sorted({king for _, king, _ in given})), tuple(sorted({partner for _, _, partner in given}))


def _own_type(draft: Draft, side: int, start: Start, square: int) -> int | None:
    letter = start.placed.get(draft.board.squares[square], "")
    is_own = letter.isupper() if side == WHITE else letter.islower()
    return draft.letters.index(letter.upper()) if is_own else None


def _check_route(draft: Draft, plan: _Plan, castling: Castling, pieces: tuple[PieceType, ...]) -> None:
    """Refuse castling whose from and to are also those of another move of what castles."""
    (x0, _), (x1, _) = draft.board.squares[castling.king_from], draft.board.squares[castling.king_to]
    for number in castling.king_types:
        if any((x1 - x0, 0) in landings(ray) for ray in pieces[number].rays):
            raise draft.error(
                plan.path,
                f"castling leads to a square that the {pieces[number].name} also reaches by a move of its own: from "
                "and to must tell them apart",
            )
