"""The pieces and pawns of a variant file, as rays and steps, and which of their routes would be ambiguous.

From, to and promotion must fix what a move captures and leaves behind: two routes between the same squares may not
differ in that.
"""

from __future__ import annotations

from envs.betza import Ray, Step
from envs.refusals import refusal_of_value
from envs.schema import MAX_SIDE, PawnSchema, PieceSchema
from envs.strict_yaml import KeyPath
from envs.variant import WHITE, Pawns, PieceType
from envs.variant_draft import Draft

NO_PROMOTION_HINT = "a pawn that never promotes is a piece with moves such as `mfWcfF` in `pieces`"


def piece_types(draft: Draft) -> tuple[PieceType, ...]:
    """Return the piece types in the order of the file.

    Raises:
        InvalidVariant: A key of a piece cannot be honoured.
    """
    pawn = None if draft.schema.pawns is None else draft.schema.pawns.piece
    return tuple(
        _pawn_type(draft, letter, piece) if letter == pawn else _piece_type(draft, letter, piece)
        for letter, piece in draft.schema.pieces.items()
    )


def _pawn_type(draft: Draft, letter: str, piece: PieceSchema) -> PieceType:
    for key in ("moves", "overruns", "fires_through", "fires_through_own"):
        if getattr(piece, key):
            raise draft.error(("pieces", letter, key), "the pawn's moves are given under `pawns`")
    return PieceType(letter.upper(), piece.name, (), captures_own=piece.captures_own)


def _piece_type(draft: Draft, letter: str, piece: PieceSchema) -> PieceType:
    path: KeyPath = ("pieces", letter)
    if piece.moves is None:
        pawnless = (
            ""
            if draft.schema.pawns is not None
            else ("; without `pawns` every piece is an ordinary one: remove it with null, or give it moves")
        )
        raise draft.error(path, f"the key 'moves' is missing{pawnless}")
    rays = list(draft.rays((*path, "moves"), piece.moves))
    if piece.fires_through is not None:
        rays = _with_fire(draft, rays, (*path, "fires_through"), piece.fires_through)
    elif piece.fires_through_own:
        raise draft.error((*path, "fires_through_own"), "needs `fires_through`")
    if piece.overruns is not None:
        rays += _overruns(draft, rays, (*path, "overruns"), piece.overruns)
    if piece.captures_own and not any(ray.capture for ray in rays):
        raise draft.error((*path, "captures_own"), f"needs a move that captures, got moves {piece.moves!r}")
    _check_fire(draft, rays, path)
    return PieceType(letter.upper(), piece.name, tuple(rays), piece.fires_through_own, piece.captures_own)


def _with_fire(draft: Draft, rays: list[Ray], path: KeyPath, text: str) -> list[Ray]:
    for ray in draft.rays(path, text):
        if ray not in rays or not (ray.quiet and ray.capture) or ray.reach == 1:
            raise draft.error(path, f"{text!r} must be slides that `moves` has too, for moving and capturing")
        rays[rays.index(ray)] = Ray(ray.step, ray.reach, fires_through=True)
    return rays


def _overruns(draft: Draft, rays: list[Ray], path: KeyPath, text: str) -> list[Ray]:
    found = []
    for ray in draft.rays(path, text):
        if ray.reach != 1 or not (ray.quiet and ray.capture) or any(leg not in (-2, 0, 2) for leg in ray.step):
            raise draft.error(path, f"{text!r}: only the two-square jumps D and A (with directions) overrun")
        if any(ray.step in landings(other) for other in rays):
            raise draft.error(
                path,
                f"{text!r} and `moves` both lead to the square {ray.step}, with different "
                "victims: from, to and promotion must fix what is captured",
            )
        found.append(Ray(ray.step, 1, overruns=True))
    return found


def _check_fire(draft: Draft, rays: list[Ray], path: KeyPath) -> None:
    """Refuse a way to a square beyond a piece fired through that leaves that piece alone."""
    for fire in (ray for ray in rays if ray.fires_through):
        beyond = landings(fire) - {fire.step}
        for other in rays:
            if other != fire and not beyond.isdisjoint(landings(other)):
                raise draft.error(
                    path,
                    "`fires_through` and another move lead to the same square with different victims: from, to and "
                    "promotion must fix them",
                )


def landings(ray: Ray) -> frozenset[Step]:
    """Return the displacements that a ray may lead to on the largest board."""
    return frozenset((ray.step[0] * k, ray.step[1] * k) for k in range(1, (ray.reach or MAX_SIDE) + 1))


# --- Pawns ------------------------------------------------------------------------------------


def pawn_rules(draft: Draft) -> Pawns | None:
    """Return how pawns move, or None.

    Raises:
        InvalidVariant: A key of `pawns` cannot be honoured.
    """
    rules = draft.schema.pawns
    if rules is None:
        return None
    last = draft.board.first_rank + draft.board.ranks - 1
    piece = draft.type_of(rules.piece, ("pawns", "piece"))
    quiet, captures = _steps(draft, "quiet", rules.quiet), _steps(draft, "captures", rules.captures)
    promotions = draft.ranks(("pawns", "promotes_on"), rules.promotes_on or [last])
    must = rules.promotion == "must"
    if must and len(promotions[WHITE]) > 1:
        raise draft.error(
            ("pawns", "promotes_on"),
            f"with `promotion: must` a pawn never passes its first promotion rank, {min(rules.promotes_on or [last])}, "
            "so further ranks mean nothing; the nearest supported form is `promotion: may`, or the first rank alone",
        )
    pawns = Pawns(
        piece=piece,
        quiet=quiet,
        captures=captures,
        first_steps=rules.first_steps,
        start_ranks=_start_ranks(draft, rules, promotions[WHITE] if must else (draft.board.ranks,)),
        promotion_ranks=promotions,
        must_promote=must,
        promotes_to=_promotes_to(draft, rules, piece),
    )
    _check_pawn_routes(draft, pawns)
    return pawns


def _steps(draft: Draft, key: str, text: str) -> tuple[Step, ...]:
    path: KeyPath = ("pawns", key)
    rays = draft.rays(path, text)
    for ray in rays:
        if ray.reach != 1:
            raise draft.error(path, f"{text!r}: pawns step and leap once; `first_steps` repeats their steps forward")
        if not (ray.quiet and ray.capture):
            raise draft.error(path, f"{text!r}: write it without m and c; the key says whether pawns capture so")
    return tuple(ray.step for ray in rays)


def _start_ranks(
    draft: Draft, rules: PawnSchema, promotions: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    path: KeyPath = ("pawns", "first_steps_from")
    first, beyond = draft.board.first_rank, draft.board.first_rank + min(promotions)
    if rules.first_steps > 1 and rules.first_steps_from is None:
        raise draft.error(("pawns", "first_steps"), "more than one step needs `first_steps_from`")
    if isinstance(rules.first_steps_from, list):
        names = rules.first_steps_from
    else:
        names = [] if rules.first_steps_from is None else list(range(first, beyond))
    ranks = draft.ranks(path, names)
    if any(name >= beyond for name in names):
        raise draft.error(path, "a pawn there has reached its promotion rank already")
    return ranks


def _promotes_to(draft: Draft, rules: PawnSchema, pawn: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    given = rules.promotes_to
    path: KeyPath = ("pawns", "promotes_to")
    paths = (path, path)
    if given is None or isinstance(given, str):
        texts = (given, given)
    else:
        texts, paths = (given.white, given.black), ((*path, "white"), (*path, "black"))
    present = draft.types_at_start(0) | draft.types_at_start(1)
    default = tuple(sorted(present - {pawn} - set(draft.royals)))
    sides = []
    for royal, text, place in zip(draft.royals, texts, paths, strict=True):
        sides.append(default if text is None else _named_promotions(draft, text, place, (pawn, royal)))
        if not sides[-1]:
            raise draft.error(place, f"the start position has no piece to promote to; {NO_PROMOTION_HINT}")
    return sides[0], sides[1]


def _named_promotions(draft: Draft, text: str, path: KeyPath, never: tuple[int | None, ...]) -> tuple[int, ...]:
    refusal = refusal_of_value(text)
    if refusal and not set(text.upper()) <= set(draft.letters):
        raise draft.error(path, refusal)
    types = draft.types_of(text, path)
    for letter, number in zip(text, types, strict=True):
        if number in never:
            raise draft.error(path, f"{letter!r} is the side's royal or the pawn itself; expected other pieces")
    return types


def _check_pawn_routes(draft: Draft, pawns: Pawns) -> None:
    """Refuse two quiet ways to one square, and a quiet way to a square that may be captured en passant."""
    if pawns.first_steps > 1 and not pawns.forward:
        text = draft.schema.pawns.quiet if draft.schema.pawns else ""
        raise draft.error(("pawns", "first_steps"), f"needs a quiet step that leads forward, got quiet {text!r}")
    reached: dict[Step, Step] = {}
    for step in pawns.quiet:
        reach = pawns.first_steps if step in pawns.forward else 1
        for to in landings(Ray(step, reach)):
            if reached.setdefault(to, step) != step:
                raise draft.error(
                    ("pawns", "quiet"),
                    f"two steps lead to the square {to} with `first_steps`, over different squares: from, to and "
                    "promotion must fix what may be captured en passant",
                )
            if pawns.first_steps > 1 and to in pawns.captures:
                raise draft.error(
                    ("pawns", "captures"),
                    f"a quiet move and a capture both lead to the square {to}, where an en passant capture would be "
                    "either: with `first_steps` over 1 they must differ",
                )
