"""The moves of pieces in words, made from their rays."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from envs.betza import UNLIMITED, Ray, Step
from envs.game_words import capitalised, listed, spelled
from envs.variant import PieceType

DirectionNames = tuple[tuple[str, frozenset[Step]], ...]

ORTHOGONAL: DirectionNames = (
    ("forward", frozenset({(0, 1)})),
    ("backward", frozenset({(0, -1)})),
    ("sideways", frozenset({(-1, 0), (1, 0)})),
    ("to the left", frozenset({(-1, 0)})),
    ("to the right", frozenset({(1, 0)})),
)
"""Names of directions; what covers two steps comes before its parts."""
DIAGONAL: DirectionNames = (
    ("forward", frozenset({(-1, 1), (1, 1)})),
    ("forward to the left", frozenset({(-1, 1)})),
    ("forward to the right", frozenset({(1, 1)})),
    ("backward", frozenset({(-1, -1), (1, -1)})),
    ("backward to the left", frozenset({(-1, -1)})),
    ("backward to the right", frozenset({(1, -1)})),
)
LEAPERS = {(2, 1): "knight", (3, 1): "camel", (3, 2): "zebra"}


@dataclass(frozen=True)
class RayGroup:
    """Rays of a piece that differ in direction only.

    Attributes:
        kind: Reach and modes; its step is `length`.
        length: Longer and shorter leg; the shorter is 0 for straight steps, orthogonal or diagonal.
        steps: The steps.
    """

    kind: Ray
    length: tuple[int, int]
    steps: frozenset[Step]

    @property
    def is_leap(self) -> bool:
        """Whether each repetition goes further than the next square."""
        return self.length != (1, 0)


def ray_groups(rays: Iterable[Ray]) -> list[RayGroup]:
    """Group rays by everything but direction, in the order of their first ray."""
    found: dict[RayGroup, list[Step]] = {}
    for ray in rays:
        long, short = sorted((abs(ray.step[0]), abs(ray.step[1])), reverse=True)
        length = (long, 0 if short == long else short)
        found.setdefault(RayGroup(replace(ray, step=length), length, frozenset()), []).append(ray.step)
    return [replace(group, steps=frozenset(steps)) for group, steps in found.items()]


def movement_sentence(group: RayGroup, *, captures_own: bool = False) -> str:
    """Return what a piece does along a group of rays; `captures_own` is the piece's."""
    ray = group.kind
    text = _jump_over(group, captures_own) if ray.overruns else motion(group)
    if ray.quiet and ray.capture:
        return f"{capitalised(text)}."
    return f"{'Without capturing' if ray.quiet else 'To capture'}: {text}."


def motion(group: RayGroup) -> str:
    """Return how a piece goes along a group of rays, whatever it does where it ends."""
    return _leap(group) if group.is_leap else _slide(group)


def _slide(group: RayGroup) -> str:
    reach = group.kind.reach
    if reach == 1:
        return f"one step {directions(group)}"
    distance = "any distance" if reach == UNLIMITED else f"up to {spelled(reach)} squares"
    return f"slides {distance} {directions(group)}"


def _leap(group: RayGroup) -> str:
    reach = group.kind.reach
    if reach == 1:
        how = f"like a {_oblique_leap(group)}" if group.length[1] else f"exactly {_straight(group)}"
        return f"leaps {how}, over anything"
    times = "any number of times" if reach == UNLIMITED else f"up to {spelled(reach)} times"
    stop = "; what stands between is jumped"
    if group.kind.capture:
        stop += ", and the last leap may capture" if group.kind.quiet else ", and the last leap captures"
    return f"repeats {_repeated(group)} in one direction, {times}, while the landing squares are empty{stop}"


def _repeated(group: RayGroup) -> str:
    return f"the leap of a {_oblique_leap(group)}" if group.length[1] else f"leaps of exactly {_straight(group)}"


def _oblique_leap(group: RayGroup) -> str:
    long, short = group.length
    return f"{LEAPERS[long, short]} ({spelled(long)} squares by {spelled(short)}{_limits(group)})"


def _straight(group: RayGroup) -> str:
    return f"{spelled(group.length[0])} squares {directions(group)}"


def _limits(group: RayGroup) -> str:
    if len(group.steps) == 8:
        return ""
    return f", only {listed((_oblique(step) for step in sorted(group.steps, reverse=True)), 'or')}"


def _jump_over(group: RayGroup, captures_own: bool) -> str:
    targets = "an empty square, an enemy or an own piece" if captures_own else "an empty square or an enemy"
    return (
        f"jumps exactly two squares {directions(group)}, over anything, to {targets}; an "
        "enemy on the square jumped over is captured too (always, so up to two captures), a friend there is "
        "not harmed"
    )


def _oblique(step: Step) -> str:
    x, y = step
    vertical = f"{spelled(abs(y))} {'forward' if y > 0 else 'backward'}"
    sideways = f"{spelled(abs(x))} {'right' if x > 0 else 'left'}"
    return f"{vertical} and {sideways}" if abs(y) >= abs(x) else f"{sideways} and {vertical}"


def directions(group: RayGroup) -> str:
    """Return the directions of a group whose steps are straight or diagonal."""
    scale = group.length[0]
    units = {(x // scale, y // scale) for x, y in group.steps}
    if len(units) == 8:
        return "in any direction"
    straight = _direction_words(units, ORTHOGONAL, "orthogonally")
    diagonal = _direction_words(units, DIAGONAL, "diagonally")
    if diagonal and diagonal != ["diagonally"]:
        diagonal = [f"diagonally {listed(diagonal, 'or')}"]
    return listed([*straight, *diagonal], "or")


def _direction_words(units: set[Step], names: DirectionNames, whole: str) -> list[str]:
    rest = units & {step for _, steps in names for step in steps}
    if len(rest) == 4:
        return [whole]
    words = []
    for name, steps in names:
        if steps <= rest:
            words.append(name)
            rest -= steps
    return words


def own_capture_sentence(royal: str | None) -> str:
    """Return what `captures_own` allows; `royal` names an own royal piece other than this one, if there is any."""
    return f"Where it may capture an enemy it may also capture an own piece{_excepted(royal)}."


def fire_sentences(piece: PieceType, royal: str | None) -> list[str]:
    """Return what a piece that fires through others may do on its slides.

    Args:
        piece: The piece type.
        royal: The name of an own royal piece other than this one, None without any.
    """
    is_part = any(ray.reach != 1 and not ray.fires_through for ray in piece.rays)
    way = _firing_ways(piece) if is_part else "on a slide"
    sentences = [
        f"It may fire through the first enemy it meets {way}: that piece is captured, and it goes on "
        "over empty squares to stop on any of them or on a second enemy, which is captured too.",
        "It may also stop on the first enemy, as any slider does.",
        "It never passes a second piece.",
        *(["Its other moves fire through nothing."] if is_part else []),
    ]
    return sentences + (_through_friends(piece, royal) if piece.fires_through_own else _through_enemies(piece, royal))


def _firing_ways(piece: PieceType) -> str:
    """Say which of a piece's slides and repeated leaps fire through others."""
    groups = ray_groups(ray for ray in piece.rays if ray.fires_through)
    slides = [group for group in groups if not group.is_leap]
    steps = frozenset(step for group in slides for step in group.steps)
    ways = [f"on a slide {directions(replace(slides[0], steps=steps))}"] if slides else []
    ways += [f"when it repeats {_repeated(group)}" for group in groups if group.is_leap]
    return listed(ways, "or")


def _through_enemies(piece: PieceType, royal: str | None) -> list[str]:
    friends = "A friend stops it, before or after firing."
    if piece.captures_own:
        friends = (
            "It never fires through a friend, but it may stop on one, before or after firing, and capture "
            f"it{_excepted(royal)}."
        )
    return [friends, "So it attacks through one piece of the other side; two pieces between, or one friend, stop it."]


def _through_friends(piece: PieceType, royal: str | None) -> list[str]:
    not_king, but_king = (f", not through its own {royal}", f", the {royal} excepted,") if royal else ("", "")
    friends = "It never stops on the first friend, nor on a friend after an enemy."
    if piece.captures_own:
        friends = f"It may also stop on the first friend, or on a friend after an enemy{but_king} and capture it."
    return [
        f"It may fire through a friend likewise{not_king.replace(', not', ', but not')}: the friend is captured, "
        f"and it may stop on an empty square, on an enemy or on a second friend{but_king} and "
        "captures what stands there.",
        friends,
        f"So it attacks through one piece of either side{not_king}; two pieces between stop it.",
    ]


def _excepted(royal: str | None) -> str:
    return f", its own {royal} excepted" if royal else ""
