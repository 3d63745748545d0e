"""Random ends of a random variant file, for `random_variants.py`."""

from __future__ import annotations

from typing import Any

from tests.envs.random_draw import RESULTS, SIDES, Cell, Document, Draw


def draw_ends(draw: Draw, starts: list[str]) -> Document:
    """Draw the `ends` mapping of a file with these start positions; a side without a royal can be beaten."""
    ends: Document = {}
    if draw.chance(0.4):
        ends["stalemate"] = draw.pick(RESULTS)
    if draw.chance(0.5):
        ends["repetition"] = _repetition(draw)
    if draw.chance(0.6):
        ends["move_limit"] = "off" if draw.chance(0.1) else draw.pick([1, 2, 7, 12, 20, 31, 40, 40, 60, 250, 1000])
    beatable = tuple(letter is not None for letter in draw.royals)
    if draw.chance(0.3):
        ends["bare_kings"] = draw.pick(["draw", "off"]) if all(beatable) else "off"
    always = [letter for letter in draw.pieces if all(_both_have(letter, start) for start in starts)]
    if draw.chance(0.2 if all(beatable) else 0.6):
        extinction = _extinction(draw, [letter for letter in always if letter not in draw.royals], beatable)
        if extinction:
            ends["extinction"] = extinction
    lost = ends.get("extinction", {"result": "draw"}).get("result", "loss") == "loss"
    if (draw.chance(0.25) or not (all(beatable) or lost)) and always:
        ends["goals"] = [_goal(draw, beatable, always) for _ in range(draw.pick([1, 1, 2, 3]))]
    return ends


def _both_have(letter: str, start: str) -> bool:
    placement = start.split(" ", maxsplit=1)[0]
    return letter in placement and letter.upper() in placement


def _repetition(draw: Draw) -> Any:
    if draw.chance(0.15):
        return "off"
    mapping: Document = {"times": 9 if draw.chance(0.1) else int(draw.rng.integers(2, 6)), "result": draw.pick(RESULTS)}
    if draw.chance(0.2):
        del mapping[draw.pick(list(mapping))]
    return mapping


def _extinction(draw: Draw, candidates: list[str], beatable: tuple[bool, ...]) -> Document:
    if not all(beatable) and draw.chance(0.4):
        mapping: Document = {"pieces": "all"}
    elif candidates:
        mapping = {"pieces": "".join(draw.some(candidates, 1, 2))}
    else:
        return {}
    if draw.chance(0.6):
        mapping["result"] = draw.pick(["loss", "loss", "win", "draw"])
    return mapping


def _goal(draw: Draw, beatable: tuple[bool, ...], candidates: list[str]) -> Document:
    """Draw a goal for at least the sides whose opponent has no royal to be mated."""
    squares = {}
    below = draw.pawn_limit if draw.chance(0.3) else draw.ranks
    for side, name in enumerate(SIDES):
        if draw.chance(0.8) or not beatable[1 - side]:
            cells = [cell for cell in draw.cells(1 - side, max(1, draw.ranks // 2)) if _own_y(draw, cell, side) < below]
            if cells:
                squares[name] = [draw.name(cell) for cell in draw.some(cells, 1, 4)]
    if not squares:
        squares["white"], below = [draw.name(draw.pick(draw.cells(1, draw.ranks)))], draw.ranks
    able = [letter for letter in candidates if letter != draw.pawn or below <= draw.pawn_limit] or candidates
    return {
        "name": draw.pick(["scepter", "home", "breakthrough"]),
        "by": "".join(draw.some(able, 1, 3)),
        "squares": squares,
    }


def _own_y(draw: Draw, cell: Cell, side: int) -> int:
    return cell[1] if side == 0 else draw.ranks - 1 - cell[1]
