"""How pieces move, in the Betza dialect that XBoard's `piece` command reads.

Source: https://www.gnu.org/software/xboard/Betza.html. Unlike in variant files, riders have a range (`N0` goes on to
the edge), what comes before an atom has a fixed order (`i`, directions, `m`, `c`, `d`, `e`, `t`, `p`, `n`, `a`), and a
move of two legs is written with `a`: `cafW0` captures like a rook and goes on like one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from envs.betza import ATOM_LEGS, Ray, Step
from envs.pawn_words import starts_everywhere
from envs.variant import WHITE, Castling, Pawns, Variant

ATOMS = {legs: atom for atom, legs in ATOM_LEGS.items() if atom not in "LJ"}
EMPTY_OR_OWN, ENEMY, OWN = "mtpaf", "caf", "daf"
"""A first leg over an empty square or an own piece, through an enemy, through an own piece; then straight on."""
MOVES_OR_CAPTURES_ALL = "mcd"
ORTHOGONAL_STEPS, DIAGONAL_STEPS, OBLIQUE_STEPS = 4, 4, 8


def piece_description(variant: Variant, number: int, side: int = WHITE) -> str:
    """Return how a type of piece moves.

    Args:
        variant: The game.
        number: Index of the type.
        side: Whose piece it is; castling may differ.
    """
    pawns = variant.pawns
    piece = variant.piece_types[number]
    if pawns is not None and number == pawns.piece:
        return _pawn(variant, pawns, captures_own=piece.captures_own)
    groups: dict[Ray, list[Step]] = defaultdict(list)
    for ray in piece.rays:
        legs = ray.step
        shape = max(map(abs, legs)), min(map(abs, legs))
        groups[Ray(shape, ray.reach, ray.quiet, ray.capture, ray.fires_through, ray.overruns)].append(legs)
    words = [
        word
        for kind, steps in groups.items()
        for word in _group(kind, steps, own=piece.captures_own, fires_own=piece.fires_through_own)
    ]
    is_royal = number == variant.royals[side]
    words += _castling(variant, variant.castlings[2 * side : 2 * side + 2]) if is_royal else []
    return "".join(sorted(words, key=lambda word: "a" in word))


def _group(kind: Ray, steps: list[Step], *, own: bool, fires_own: bool) -> list[str]:
    """Return the words of rays that differ in direction alone; `kind` has the legs of their step."""
    directions = _directions(kind.step, steps)
    if kind.overruns:
        atom = ATOMS[kind.step[0] // 2, kind.step[1] // 2]
        return [f"{directions}{first}{_mode(kind, own=own)}{atom}" for first in (EMPTY_OR_OWN, ENEMY)]
    atom = ATOMS[kind.step] + ("" if kind.reach == 1 else str(kind.reach))
    words = [f"{directions}{_mode(kind, own=own)}{atom}"]
    if kind.fires_through:
        words.append(f"{directions}{ENEMY}{_mode(kind, own=own)}{atom}")
        words += [f"{directions}{OWN}{MOVES_OR_CAPTURES_ALL}{atom}"] if fires_own else []
    return words


def _mode(kind: Ray, *, own: bool) -> str:
    if own and kind.capture:
        return MOVES_OR_CAPTURES_ALL if kind.quiet else "cd"
    return "" if kind.quiet and kind.capture else "m" if kind.quiet else "c"


def _directions(legs: Step, steps: Iterable[Step]) -> str:
    """Return the directions of steps, empty for all that an atom has."""
    wanted = sorted(set(steps), key=lambda step: (-step[1], step[0]))
    is_oblique = legs[1] not in (0, legs[0])
    if len(wanted) == (OBLIQUE_STEPS if is_oblique else ORTHOGONAL_STEPS if not legs[1] else DIAGONAL_STEPS):
        return ""
    towards = [letter for letter in "fblr" if not is_oblique and set(wanted) == _towards(letter, legs)]
    return towards[0] if towards else "".join(_direction(step) for step in wanted)


def _towards(letter: str, legs: Step) -> set[Step]:
    """Return the steps of an orthogonal or diagonal atom that lead in a direction."""
    along, across = legs
    return {
        "f": {(across, along), (-across, along)},
        "b": {(across, -along), (-across, -along)},
        "l": {(-along, across), (-along, -across)},
        "r": {(along, across), (along, -across)},
    }[letter]


def _direction(step: Step) -> str:
    across, along = (
        "" if not step[0] else "r" if step[0] > 0 else "l",
        "" if not step[1] else "f" if step[1] > 0 else "b",
    )
    return across + along if abs(step[1]) > abs(step[0]) else along + across


def _pawn(variant: Variant, pawns: Pawns, *, captures_own: bool) -> str:
    words = _leaps(pawns.quiet, "m")
    if pawns.first_steps > 1:
        first = "" if starts_everywhere(variant, pawns) or not _starts_once(variant, pawns) else "i"
        words += [f"{first}{word}{pawns.first_steps}" for word in _leaps(pawns.forward, "m")]
    mode = "c" + ("d" if captures_own else "") + ("e" if pawns.first_steps > 1 else "")
    return "".join(words + _leaps(pawns.captures, mode))


def _leaps(steps: Iterable[Step], mode: str) -> list[str]:
    groups: dict[Step, list[Step]] = defaultdict(list)
    for step in steps:
        groups[max(map(abs, step)), min(map(abs, step))].append(step)
    return [f"{_directions(legs, found)}{mode}{ATOMS[legs]}" for legs, found in groups.items()]


def _starts_once(variant: Variant, pawns: Pawns) -> bool:
    """Whether a White pawn may make its first steps just where it stands at the start."""
    letter = variant.piece_types[pawns.piece].letter
    rows = variant.start_fen.split()[0].split("/")
    ranks = {variant.board.ranks - 1 - number for number, row in enumerate(rows) if letter in row}
    return ranks == set(pawns.start_ranks[WHITE])


def _castling(variant: Variant, castlings: tuple[Castling | None, ...]) -> list[str]:
    found = []
    for castling, direction in zip(castlings, "rl"):
        if castling is not None:
            king, goal, partner = (
                variant.board.squares[square]
                for square in (castling.king_from, castling.king_to, castling.partner_from)
            )
            outward = 1 if goal[0] > king[0] else -1
            has_one_outside = (partner[0] + outward, partner[1]) in variant.board.index
            found.append((direction, f"{'j' if has_one_outside else ''}O{abs(goal[0] - king[0])}"))
    if len({word for _, word in found}) == 1 and len(found) == len("rl"):
        return [f"is{found[0][1]}"]
    return [f"i{direction}{word}" for direction, word in found]
