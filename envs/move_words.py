"""The moves of pieces in words, made from their rays."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from envs.betza import UNLIMITED, Ray, Step
from envs.variant import PieceType

ORTHOGONAL: dict[Step, str] = {
    (0, 1): "forward",
    (0, -1): "backward",
    (-1, 0): "to the left",
    (1, 0): "to the right",
}
DIAGONAL: dict[Step, str] = {
    (-1, 1): "forward to the left", (1, 1): "forward to the right",
    (-1, -1): "backward to the left", (1, -1): "backward to the right",
}  # fmt: skip
LEAPERS = {(2, 1): "knight", (3, 1): "camel", (3, 2): "zebra"}
NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def spelled(count: int) -> str:
    """Return a small number as a word."""
    return NUMBERS[count] if count < len(NUMBERS) else str(count)


def listed(words: Iterable[str], joint: str = "and") -> str:
    """Join words as in a sentence: `a, b and c`."""
    items = list(words)
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {joint} {items[-1]}"


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


def ray_groups(rays: Iterable[Ray]) -> list[RayGroup]:
    """Group rays by everything but direction, in the order of their first ray."""
    found: dict[RayGroup, list[Step]] = {}
    for ray in rays:
        long, short = sorted((abs(ray.step[0]), abs(ray.step[1])), reverse=True)
        length = (long, 0 if short == long else short)
        found.setdefault(RayGroup(replace(ray, step=length), length, frozenset()), []).append(ray.step)
    return [replace(group, steps=frozenset(steps)) for group, steps in found.items()]


def movement_sentence(group: RayGroup) -> str:
    """Return what a piece does along a group of rays."""
    ray = group.kind
    text = _jump_over(group) if ray.overruns else _leap(group) if _is_leap(group) else _slide(group)
    if ray.quiet and ray.capture:
        return f"{text[0].upper()}{text[1:]}."
    return f"{'Without capturing' if ray.quiet else 'To capture'}: {text}."


def _is_leap(group: RayGroup) -> bool:
    return group.length != (1, 0)


def _slide(group: RayGroup) -> str:
    reach = group.kind.reach
    if reach == 1:
        return f"one step {_directions(group)}"
    distance = "any distance" if reach == UNLIMITED else f"up to {spelled(reach)} squares"
    return f"slides {distance} {_directions(group)}"


def _leap(group: RayGroup) -> str:
    long, short = group.length
    reach = group.kind.reach
    size = f"({spelled(long)} squares by {spelled(short)}{_limits(group)})"
    if reach == 1:
        how = f"like a {LEAPERS[long, short]} {size}" if short else f"exactly {_straight(group)}"
        return f"leaps {how}, over anything"
    leaps = f"the leap of a {LEAPERS[long, short]} {size}" if short else f"leaps of exactly {_straight(group)}"
    times = "any number of times" if reach == UNLIMITED else f"up to {spelled(reach)} times"
    stop = "; what stands between is jumped"
    if group.kind.capture:
        stop += ", and the last leap may capture" if group.kind.quiet else ", and the last leap captures"
    return f"repeats {leaps} in one direction, {times}, while the landing squares are empty{stop}"


def _straight(group: RayGroup) -> str:
    return f"{spelled(group.length[0])} squares {_directions(group)}"


def _limits(group: RayGroup) -> str:
    if len(group.steps) == 8:
        return ""
    return f", only {listed((_oblique(step) for step in sorted(group.steps, reverse=True)), 'or')}"


def _jump_over(group: RayGroup) -> str:
    return (
        f"jumps exactly two squares {_directions(group)}, over anything, to an empty square or an enemy; an "
        "enemy on the square jumped over is captured too (always, so up to two captures), a friend there is "
        "not harmed"
    )


def _oblique(step: Step) -> str:
    x, y = step
    vertical = f"{spelled(abs(y))} {'forward' if y > 0 else 'backward'}"
    sideways = f"{spelled(abs(x))} {'right' if x > 0 else 'left'}"
    return f"{vertical} and {sideways}" if abs(y) >= abs(x) else f"{sideways} and {vertical}"


def _directions(group: RayGroup) -> str:
    scale = group.length[0]
    units = {(x // scale, y // scale) for x, y in group.steps}
    if len(units) == 8:
        return "in any direction"
    parts = [
        part
        for table, whole in ((ORTHOGONAL, "orthogonally"), (DIAGONAL, "diagonally"))
        if (part := _direction_words(units & set(table), table, whole))
    ]
    return " or ".join(parts)


def _direction_words(units: set[Step], table: dict[Step, str], whole: str) -> str:
    if not units:
        return ""
    if len(units) == 4:
        return whole
    prefix = f"{whole} " if table is DIAGONAL else ""
    pairs = {frozenset({(-1, 0), (1, 0)}): "sideways", frozenset({(-1, 1), (1, 1)}): "diagonally forward",
             frozenset({(-1, -1), (1, -1)}): "diagonally backward"}  # fmt: skip
    if frozenset(units) in pairs:
        return pairs[frozenset(units)]
    return prefix + listed((words for step, words in table.items() if step in units), "or")


def fire_sentences(piece: PieceType, royal: str) -> list[str]:
    """Return what a piece that fires through others may do on its slides; `royal` is the royal's name."""
    sentences = [
        "It may fire through the first enemy it meets on a slide: that piece is captured, and it goes on "
        "over empty squares to stop on any of them or on a second enemy, which is captured too.",
        "It may also stop on the first enemy, as any slider does.",
        "It never passes a second piece.",
    ]
    if not piece.fires_through_own:
        return [
            *sentences,
            "A friend stops it, before or after firing.",
            "So it attacks through one piece of the other side; two pieces between, or one friend, stop it.",
        ]
    return [
        *sentences,
        f"It may fire through a friend likewise, but not through its own {royal}: the friend is captured, "
        f"and it may stop on an empty square, on an enemy or on a second friend, the {royal} excepted, and "
        "captures what stands there.",
        "It never stops on the first friend, nor on a friend after an enemy.",
        f"So it attacks through one piece of either side, not through its own {royal}; two pieces between stop it.",
    ]
