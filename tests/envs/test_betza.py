"""Betza notation, piece by piece: atoms, riders, ranges, modes and directions."""

from __future__ import annotations

import pytest

from envs.betza import Ray, parse_betza

FORWARD_KNIGHT = {(-1, 2), (1, 2)}
FLAT_FORWARD_KNIGHT = {(-2, 1), (2, 1)}


def steps(text: str) -> set[tuple[int, int]]:
    return {ray.step for ray in parse_betza(text)}


@pytest.mark.parametrize(
    ("atom", "leg", "number"),
    [
        *[("W", (1, 0), 4), ("F", (1, 1), 4), ("D", (2, 0), 4), ("N", (2, 1), 8), ("A", (2, 2), 4)],
        *[("H", (3, 0), 4), ("C", (3, 1), 8), ("L", (3, 1), 8), ("Z", (3, 2), 8), ("J", (3, 2), 8)],
        ("G", (3, 3), 4),
    ],
)
def test_an_atom_leaps_its_leg_in_all_directions(atom: str, leg: tuple[int, int], number: int) -> None:
    rays = parse_betza(atom)
    assert len(rays) == number
    assert all(ray.reach == 1 and ray.quiet and ray.capture for ray in rays)
    assert {tuple(sorted((abs(x), abs(y)), reverse=True)) for x, y in steps(atom)} == {leg}


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("K", "WF"),
        ("Q", "RB"),
        ("R", "WW"),
        ("B", "FF"),
        ("R", "W0"),
        ("W1", "W"),
        ("WW", "W0"),
        ("NK", "NWF"),
    ],
)
def test_some_texts_are_the_same_piece(text: str, same: str) -> None:
    assert set(parse_betza(text)) == set(parse_betza(same))


def test_ranges_and_riders_have_a_reach() -> None:
    assert {ray.reach for ray in parse_betza("W3")} == {3}
    assert {ray.reach for ray in parse_betza("NN")} == {0}
    assert {ray.reach for ray in parse_betza("R4")} == {4}


def test_modes_hold_for_one_atom() -> None:
    rays = parse_betza("mDDcRB")
    assert Ray((2, 0), 0, quiet=True, capture=False) in rays
    assert Ray((1, 0), 0, quiet=False, capture=True) in rays
    assert Ray((1, 1), 0) in rays
    assert len(rays) == 12
    assert set(parse_betza("mcW")) == set(parse_betza("W"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("fW", {(0, 1)}),
        ("bW", {(0, -1)}),
        ("sW", {(-1, 0), (1, 0)}),
        ("vW", {(0, 1), (0, -1)}),
        ("flW", {(0, 1), (-1, 0)}),
        ("fF", {(-1, 1), (1, 1)}),
        ("lF", {(-1, 1), (-1, -1)}),
        ("flF", {(-1, 1)}),
        ("frbF", {(1, 1), (-1, -1), (1, -1)}),
        ("fN", FORWARD_KNIGHT),
        ("ffN", FORWARD_KNIGHT),
        ("fsN", FLAT_FORWARD_KNIGHT),
        ("fhN", FORWARD_KNIGHT | FLAT_FORWARD_KNIGHT),
        ("frN", {(2, 1)}),
        ("rfN", {(1, 2)}),
        ("lfN", {(-1, 2)}),
        ("rvN", {(1, 2), (1, -2)}),
        ("ffrrN", {(-1, 2), (1, 2), (2, 1), (2, -1)}),
        ("vN", FORWARD_KNIGHT | {(-1, -2), (1, -2)}),
        ("sN", {(2, 1), (2, -1), (-2, 1), (-2, -1)}),
        ("fmWfcF", {(0, 1), (-1, 1), (1, 1)}),
    ],
)
def test_directions_choose_among_the_steps(text: str, expected: set[tuple[int, int]]) -> None:
    assert steps(text) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty string"),
        ("w", "expected modifiers and an atom at character 1"),
        ("W?", "expected modifiers and an atom at character 2"),
        ("X", "unknown atom 'X'"),
        ("NX", "unknown atom 'X'"),
        ("kW", "unknown modifier 'k'"),
        ("QQ", "only single atoms are doubled"),
        ("WW3", "both a doubled atom and a range"),
        ("hW", "mean nothing on atom W"),
        ("hF", "mean nothing on atom F"),
        ("hN", "mean nothing on atom N"),
        ("sfN", "directions 'sf' mean nothing on atom N"),
        ("fK", "directions 'f' on K in 'fK' mean different moves in different dialects; write its parts, such as fWfF"),
        ("RfsQ", "such as fsRfsB"),
        ("pR", "hoppers"),
        ("gQ", "grasshoppers"),
        ("nN", "lame moves"),
        ("jW", "jumping"),
        ("iW", "first-move-only"),
        ("oR", "wrap round"),
        ("zB", "bent riders"),
        ("aW", "several legs"),
    ],
)
def test_what_cannot_be_read_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_betza(text)
