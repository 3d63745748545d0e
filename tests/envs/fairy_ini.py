"""A variant as a section of a Fairy-Stockfish ini file, where that engine (pyffish 0.0.90) can hold it.

Its Betza dialect names the second leg of an oblique step first (`rfN` goes one right and two forward), its riders
are those of W, F and N alone, and it knows no double captures, no captures of own pieces and no two royals of
different kinds. `obstacle` names the first thing that it cannot say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from envs.betza import ATOM_LEGS, UNLIMITED, Ray, Step
from envs.paths import paths_of
from envs.variant import BLACK, WHITE, Castling, Pawns, Variant

MAX_FILES, MAX_RANKS = 12, 10
RIDERS = {(1, 0), (1, 1), (2, 1)}
STANDARD_QUIET, STANDARD_CAPTURES = ((0, 1),), {(-1, 1), (1, 1)}
MOST_STEPS_OF_STANDARD_PAWNS = 3
SIDES = ("White", "Black")
LOPSIDED = "moves that differ to the left and to the right: Black's are turned round there, and mirrored here"


def fairy_ini(variant: Variant, name: str) -> str | None:
    """Return the section of a variant, or None where Fairy-Stockfish cannot express it."""
    if obstacle(variant) is not None:
        return None
    lines = [f"[{name}]", f"maxFile = {variant.board.files}", f"maxRank = {variant.board.ranks}"]
    lines += _pieces(variant)
    lines += _pawn_lines(variant)
    lines += _castling_lines(variant)
    lines += _end_lines(variant)
    lines.append(f"startFen = {variant.start_fen}")
    return "\n".join(lines) + "\n"


def counts_the_same(variant: Variant) -> bool:
    """Return whether the half-move clocks agree: there a pawn move that can be taken back does not reset it."""
    return variant.pawns is None or not variant.pawns.can_return


def obstacle(variant: Variant) -> str | None:
    """Return the first thing that Fairy-Stockfish cannot express, or None."""
    return next(_obstacles(variant), None)


def _obstacles(variant: Variant) -> Iterator[str]:
    if variant.board.files > MAX_FILES or variant.board.ranks > MAX_RANKS:
        yield "the board is larger than 12 x 10"
    white, black = variant.royals
    if None not in (white, black) and white != black:
        yield "the royals are different pieces"
    for piece in variant.piece_types:
        if piece.captures_own:
            yield "a piece captures its own side's"
        if {_mirrored(ray) for ray in piece.rays} != set(piece.rays):
            yield LOPSIDED
        for ray in piece.rays:
            if ray.overruns or ray.fires_through:
                yield "a piece captures two at once"
            if ray.reach != 1 and _legs(ray.step) not in RIDERS:
                yield "a rider of other leaps than W, F and N"
    if variant.pawns is not None:
        yield from _pawn_obstacles(variant, variant.pawns)
    yield from _castling_obstacles(variant)
    yield from _end_obstacles(variant)


# --- Pieces -----------------------------------------------------------------------------------


def _legs(step: Step) -> tuple[int, int]:
    long, short = sorted(map(abs, step), reverse=True)
    return long, short


def _direction(step: Step) -> str:
    x, y = step
    sideways = "r" if x > 0 else "l" if x < 0 else ""
    vertical = "f" if y > 0 else "b" if y < 0 else ""
    return sideways + vertical if abs(y) > abs(x) else vertical + sideways


def _token(step: Step, reach: int, mode: str) -> str:
    atom = next(letter for letter, legs in ATOM_LEGS.items() if legs == _legs(step))
    return mode + _direction(step) + atom + ("" if reach == 1 else str(reach))


def _betza(variant: Variant, rays: Sequence[Ray]) -> str:
    """Return the rays with one range for each direction and mode: there a second one replaces the first."""
    quiet, capture = (_ranges(variant, [ray for ray in rays if getattr(ray, mode)]) for mode in ("quiet", "capture"))
    tokens = []
    for step in dict.fromkeys([*quiet, *capture]):
        if quiet.get(step) == capture.get(step):
            tokens.append(_token(step, quiet[step], ""))
        else:
            tokens += [_token(step, ranges[step], mode) for mode, ranges in (("m", quiet), ("c", capture))
                       if step in ranges]  # fmt: skip
    return "".join(tokens)


def _ranges(variant: Variant, rays: Iterable[Ray]) -> dict[Step, int]:
    longest = max(variant.board.files, variant.board.ranks)
    ranges: dict[Step, int] = {}
    for ray in rays:
        ranges[ray.step] = max(ranges.get(ray.step, 0), longest if ray.reach == UNLIMITED else ray.reach)
    return {step: UNLIMITED if reach >= longest else reach for step, reach in ranges.items()}


def _letter(variant: Variant, number: int) -> str:
    return variant.piece_types[number].letter.lower()


def _letters(variant: Variant, numbers: Iterable[int]) -> str:
    return "".join(_letter(variant, number) for number in numbers)


def _royal(variant: Variant) -> int | None:
    return next((royal for royal in variant.royals if royal is not None), None)


def _pieces(variant: Variant) -> Iterator[str]:
    pawn = None if variant.pawns is None else variant.pawns.piece
    for number, piece in enumerate(variant.piece_types):
        moves = _betza(variant, piece.rays)
        if number == _royal(variant):
            yield f"king = {piece.letter.lower()}:{moves}"
        elif number != pawn:
            yield f"customPiece{number + 1} = {piece.letter.lower()}:{moves}"
    if _royal(variant) is None:
        yield "king = -"


# --- Pawns ------------------------------------------------------------------------------------


def _mirrored(ray: Ray) -> Ray:
    return replace(ray, step=(-ray.step[0], ray.step[1]))


def _pawn_obstacles(variant: Variant, pawns: Pawns) -> Iterator[str]:
    for steps in (pawns.quiet, pawns.captures):
        if {(-x, y) for x, y in steps} != set(steps):
            yield LOPSIDED
    if pawns.first_steps > 1 and any(_legs(step) not in {(1, 0), (1, 1)} for step in pawns.forward):
        yield "pawns repeat a leap"
    for side in (WHITE, BLACK):
        zone = _zone(variant, pawns, side)
        for start in pawns.start_ranks[side]:
            landings = [start + (1 - 2 * side) * count for count in range(1, pawns.first_steps + 1)]
            if len(zone.intersection(landings)) > 1:
                yield "pawns repeat a step into or within their promotion ranks"
    if not pawns.must_promote and _has_stuck_pawns(variant, pawns):
        others = (number for number in range(len(variant.piece_types)) if number != pawns.piece)
        if any(not _can_step(variant, piece, square) for number in others for piece in _both_cases(variant, number)
               for square in range(variant.num_squares)):  # fmt: skip
            yield "stuck pawns must promote, and another piece may be stuck too"
        for side in (WHITE, BLACK):
            for square in _squares_without(variant, pawns.quiet, side):
                y, can_capture = variant.board.squares[square][1], _landings(variant, pawns.captures, square, side)
                if can_capture or y not in pawns.promotion_ranks[side]:
                    yield "a pawn that cannot step on may stand elsewhere than there it counts as stuck"
    for side in (WHITE, BLACK):
        if not pawns.promotes_to[side]:
            yield "pawns promote to nothing"


def _can_step(variant: Variant, piece: str, square: int) -> bool:
    return any(path.ray.quiet for path in paths_of(variant, piece, square))


def _both_cases(variant: Variant, number: int) -> tuple[str, str]:
    letter = variant.piece_types[number].letter
    return letter, letter.lower()


def _landings(variant: Variant, steps: Iterable[Step], square: int, side: int) -> list[int]:
    x, y = variant.board.squares[square]
    cells = [(x + dx, y + dy * (1 - 2 * side)) for dx, dy in steps]
    return [variant.board.index[cell] for cell in cells if cell in variant.board.index]


def _squares_without(variant: Variant, steps: Iterable[Step], side: int) -> list[int]:
    """Return the squares from which a side's pawn has none of the steps on an empty board."""
    return [square for square in range(variant.num_squares) if not _landings(variant, steps, square, side)]


def _has_stuck_pawns(variant: Variant, pawns: Pawns) -> bool:
    return any(_squares_without(variant, pawns.quiet, side) for side in (WHITE, BLACK))


def _zone(variant: Variant, pawns: Pawns, side: int) -> set[int]:
    """Return `y` of the ranks on which a side's pawns promote."""
    ranks = pawns.promotion_ranks[side]
    if not pawns.must_promote:
        return set(ranks)
    return set(range(min(ranks), variant.board.ranks)) if side == WHITE else set(range(max(ranks) + 1))


def _is_standard(pawns: Pawns) -> bool:
    return (
        pawns.quiet == STANDARD_QUIET
        and set(pawns.captures) == STANDARD_CAPTURES
        and pawns.first_steps <= MOST_STEPS_OF_STANDARD_PAWNS
    )


def _ranks(ranks: Iterable[int]) -> str:
    return " ".join(f"*{y + 1}" for y in sorted(ranks)) or "-"


def _pawn_lines(variant: Variant) -> Iterator[str]:
    pawns = variant.pawns
    if pawns is None:
        yield "pawn = -"
        return
    letter = _letter(variant, pawns.piece)
    if _is_standard(pawns):
        yield f"pawn = {letter}"
    else:
        yield "pawn = -"
        yield f"customPiece{pawns.piece + 1} = {letter}:{_pawn_betza(pawns)}"
        for key in ("pawnTypes", "promotionPawnTypes", "enPassantTypes", "nMoveRuleTypes"):
            yield f"{key} = {letter}"
    yield f"doubleStep = {str(pawns.first_steps > 1).lower()}"
    for side, name in enumerate(SIDES):
        yield f"promotionRegion{name} = {_ranks(_zone(variant, pawns, side))}"
        yield f"promotionPieceTypes{name} = {_letters(variant, pawns.promotes_to[side])}"
        yield f"doubleStepRegion{name} = {_ranks(pawns.start_ranks[side]) if pawns.first_steps > 1 else '-'}"
        yield f"tripleStepRegion{name} = {_ranks(pawns.start_ranks[side]) if pawns.first_steps > 2 else '-'}"
    yield f"mandatoryPawnPromotion = {str(pawns.must_promote).lower()}"
    if not pawns.must_promote and _has_stuck_pawns(variant, pawns):
        yield "immobilityIllegal = true"


def _pawn_betza(pawns: Pawns) -> str:
    tokens = [_token(step, 1, "m") for step in pawns.quiet]
    tokens += [_token(step, 1, "ce" if pawns.first_steps > 1 else "c") for step in pawns.captures]
    if pawns.first_steps > 1:
        tokens += [_token(step, pawns.first_steps, "im") for step in pawns.forward]
    return "".join(tokens)


# --- Castling ---------------------------------------------------------------------------------


def _castling_obstacles(variant: Variant) -> Iterator[str]:
    squares = variant.board.squares
    for number, castling in enumerate(variant.castlings):
        if castling is None:
            continue
        x, goal, partner, partner_goal = (
            squares[square][0]
            for square in (castling.king_from, castling.king_to, castling.partner_from, castling.partner_to)
        )
        outward = 1 if number % 2 == 0 else -1
        if (partner - x) * outward < 0 or (goal - x) * outward <= 0 or partner_goal != goal - outward:
            yield "a castling that does not put the partner beside the king, on its other side"
        if len(castling.king_types) != 1:
            yield "different pieces castle"
    white, black = (_castling_geometry(variant, side) for side in (WHITE, BLACK))
    if white and black and (white["rank"] != black["rank"] or white["king"] != black["king"]):
        yield "the sides castle from different squares"
    for wing in (0, 1):
        pair = [castling for castling in variant.castlings[wing::2] if castling is not None]
        files = {tuple(squares[square][0] for square in (c.king_to, c.partner_from)) for c in pair}
        if len(files) > 1:
            yield "the sides castle from different squares"


def _castling_geometry(variant: Variant, side: int) -> dict[str, int]:
    """Return file and rank, counted from the own side, of a side's castling king."""
    for castling in _of_side(variant, side):
        x, y = variant.board.squares[castling.king_from]
        return {"king": x, "rank": y if side == WHITE else variant.board.ranks - 1 - y}
    return {}


def _of_side(variant: Variant, side: int) -> Sequence[Castling]:
    return [castling for castling in variant.castlings[2 * side : 2 * side + 2] if castling is not None]


def _castling_lines(variant: Variant) -> Iterator[str]:
    if not any(variant.castlings):
        yield "castling = false"
        return
    geometry = _castling_geometry(variant, WHITE) or _castling_geometry(variant, BLACK)
    yield "castling = true"
    yield f"castlingRank = {geometry['rank'] + 1}"
    yield f"castlingKingFile = {_file(geometry['king'])}"
    for wing, name in enumerate(("King", "Queen")):
        for castling in variant.castlings[wing::2]:
            if castling is not None:
                yield f"castling{name}sideFile = {_file(variant.board.squares[castling.king_to][0])}"
                yield f"castlingRook{name}sideFile = {_file(variant.board.squares[castling.partner_from][0])}"
                break
    for side, name in enumerate(SIDES):
        own = _of_side(variant, side)
        if own:
            partners = sorted({number for castling in own for number in castling.partner_types})
            yield f"castlingKingPiece{name} = {_letters(variant, own[0].king_types)}"
            yield f"castlingRookPieces{name} = {_letters(variant, partners)}"


def _file(x: int) -> str:
    return chr(ord("a") + x)


# --- Ends -------------------------------------------------------------------------------------


def _end_obstacles(variant: Variant) -> Iterator[str]:
    ends = variant.ends
    if ends.move_limit % 2 and counts_the_same(variant):
        yield "an odd move limit"
    if len({goal.pieces for goal in ends.goals}) > 1:
        yield "goals of different pieces"
    for goal in ends.goals:
        if len(goal.pieces) not in (1, len(variant.piece_types)):
            yield "a goal of several kinds of pieces"
    if ends.goals and ends.extinction is not None and ends.extinction.result != "loss":
        yield "a goal and an extinction with different results"


def _end_lines(variant: Variant) -> Iterator[str]:
    ends = variant.ends
    yield f"stalemateValue = {ends.stalemate}"
    yield f"nFoldRule = {ends.repetition_times}"
    yield f"nFoldValue = {ends.repetition_result}"
    yield f"nMoveRule = {ends.move_limit // 2 if counts_the_same(variant) else 0}"
    if ends.goals:
        pieces = ends.goals[0].pieces
        yield f"flagPiece = {_letters(variant, pieces) if len(pieces) == 1 else '*'}"
        for side, name in enumerate(SIDES):
            squares = sorted({square for goal in ends.goals for square in goal.squares[side]})
            if squares:
                cells = [variant.board.squares[square] for square in squares]
                yield f"flagRegion{name} = {' '.join(f'{_file(x)}{y + 1}' for x, y in cells)}"
    if ends.extinction is not None:
        pieces_lost = ends.extinction.pieces
        yield f"extinctionPieceTypes = {'*' if pieces_lost is None else _letters(variant, pieces_lost)}"
        yield f"extinctionValue = {ends.extinction.result}"
