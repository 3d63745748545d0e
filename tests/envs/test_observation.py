"""The planes against a slow reading of the FEN and the game so far; the generated reference."""

import re
from collections import Counter
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from envs import Position, Variant, VectorEnv, load_variant, observe
from envs.observation import observation_hash, observation_planes, observation_table
from envs.reference import actions_page, observation_page
from tests.envs.random_games import all_settings, setting_name

ROOT = Path(__file__).resolve().parents[2]
Planes = npt.NDArray[np.float32]
each_game = pytest.mark.parametrize("variant", all_settings(), ids=setting_name)


def slow_planes(variant: Variant, fen: str, earlier: int) -> Planes:
    """The planes of a position from its FEN; `earlier` is how often it has occurred before in its game."""
    rows, side, rights, passed, clock, _ = fen.split(" ")
    height, width = variant.board.ranks, variant.board.files
    grid = np.array([list(expand(row)) for row in rows.split("/")])[::-1]  # (H, W), White's first rank first
    assert grid.shape == (height, width)
    targets = np.zeros((height, width))
    for file, rank in re.findall(r"([a-p])(\d+)", passed):
        targets[int(rank) - variant.board.first_rank, ord(file) - ord("a")] = 1
    if side == "b":
        grid, targets = np.char.swapcase(grid)[::-1], targets[::-1]
        rights = rights.swapcase()
    board = (grid != "*").astype(float)
    letters = [piece.letter for piece in variant.piece_types]
    planes = [grid == letter for letter in letters] + [grid == letter.lower() for letter in letters]
    planes += [board * (right in rights) for right in "KQkq"]
    planes += [targets, board * int(clock) / 100, board * (earlier == 1), board * (earlier >= 2), board]
    return np.array(planes, dtype=np.float32)


def expand(row: str) -> str:
    return re.sub(r"\d+", lambda run: "." * int(run[0]), row)


def flipped(variant: Variant, fen: str) -> str:
    """The same position with the colours changed and the board turned over, rank for rank."""
    rows, side, rights, passed, *counters = fen.split(" ")
    turned = "/".join(reversed(rows.swapcase().split("/")))
    top = 2 * variant.board.first_rank + variant.board.ranks - 1
    squares = sorted(f"{file}{top - int(rank)}" for file, rank in re.findall(r"([a-p])(\d+)", passed))
    changed = "".join(letter for letter in "KQkq" if letter in rights.swapcase()) or "-"
    return " ".join([turned, "wb"["bw".index(side)], changed, "".join(squares) or "-", *counters])


@each_game
def test_planes_equal_a_slow_reading_of_the_fen_on_every_ply_of_random_games(variant: Variant) -> None:
    env = VectorEnv(variant, 4, seed=1)
    seen: list[Counter[str]] = [Counter() for _ in range(4)]
    sides = Counter[str]()
    for _ in range(250):
        planes = env.observe()
        for lane in range(4):
            fen = env.fen(lane)
            position = " ".join(fen.split(" ")[:4])
            assert np.array_equal(planes[lane], slow_planes(variant, fen, seen[lane][position])), fen
            seen[lane][position] += 1
            sides[fen.split(" ")[1]] += 1
        env.step(env.sample_actions())
        for lane in np.flatnonzero(env.over):
            seen[lane].clear()
        env.reset(env.over)
    assert min(sides.values()) > 300


@each_game
def test_a_position_and_its_colour_flip_have_the_same_planes(variant: Variant) -> None:
    env, other = VectorEnv(variant, 1, seed=2), VectorEnv(variant, 1)
    for _ in range(200):
        other.set_fen(0, flipped(variant, env.fen(0)))
        env.set_fen(0, env.fen(0))  # forgets the history, as the other one has none
        assert np.array_equal(env.observe(), other.observe()), env.fen(0)
        env.step(env.sample_actions())
        env.reset(env.over)


def test_the_comparison_would_notice_a_wrong_side_a_swapped_plane_and_a_late_repetition() -> None:
    chess = load_variant("chess")
    position = Position(chess)
    position.push("e2e4")
    planes = observe(position.game, position.row()[None])[0]
    right = slow_planes(chess, position.fen(), 0)
    assert np.array_equal(planes, right)
    assert not np.array_equal(planes, slow_planes(chess, position.fen().replace(" b ", " w "), 0))
    assert not np.array_equal(planes, right[[1, 0, *range(2, len(right))]])
    assert not np.array_equal(planes, slow_planes(chess, position.fen(), 1))


def plane(position: Position, name: str) -> Planes:
    names = [described.name for described in observation_planes(position.variant)]
    return observe(position.game, position.row()[None])[0, names.index(name)]


def test_both_squares_that_a_three_step_passes_are_targets_for_the_side_that_may_capture() -> None:
    position = Position("asylum", "5k4/10/10/10/10/1p8/1p8/10/P9/5K4 w - - 0 1")
    assert not plane(position, "en passant").any()
    position.push("a2a5")
    assert np.argwhere(plane(position, "en passant")).tolist() == [[6, 0], [7, 0]]  # a4 and a3, seen by Black


def test_repetitions_are_told_once_and_then_twice() -> None:
    position = Position("chess")
    told = []
    for _ in range(3):
        told.append((plane(position, "repeated once").max(), plane(position, "repeated twice").max()))
        for move in ("g1f3", "g8f6", "f3g1", "f6g8"):
            position.push(move)
    assert told == [(0, 0), (1, 0), (0, 1)]
    assert plane(position, "clock").max() == np.float32(12 / 100)


def test_squares_that_are_no_part_of_the_board_are_zero_in_every_plane() -> None:
    position = Position("palace_ninja_guards")
    holes = plane(position, "board") == 0
    assert holes.sum() == 12
    assert not observe(position.game, position.row()[None])[0][:, holes].any()
    assert plane(position, "own ninja guard (G)")[0].tolist() == [0, 0, 0, 1, 1, 0, 0, 0]


UNEQUAL_GOALS = """
name: Uneven Palace
extends: palace_ninja_guards
options: null
ends: {goals: [{name: scepter, by: k, squares: {white: [d9], black: [d0, e0]}}]}
"""


def test_only_a_game_that_is_not_the_same_for_both_sides_shows_the_colour(tmp_path: Path) -> None:
    file = tmp_path / "uneven.yaml"
    file.write_text(UNEQUAL_GOALS)
    position = Position(file)
    assert len(observation_planes(position.variant)) == position.game.num_planes == 24
    assert not plane(position, "black to move").any()
    position.push("e2e4")
    assert np.array_equal(plane(position, "black to move"), plane(position, "board"))
    assert all(described.name != "black to move" for described in observation_planes(load_variant("asylum")))


@each_game
def test_every_plane_has_its_own_name_and_a_row_in_the_table(variant: Variant) -> None:
    planes = observation_planes(variant)
    assert len(planes) == VectorEnv(variant, 1).observation_shape[0]
    assert len({described.name for described in planes}) == len(planes)
    assert len(observation_table(variant).splitlines()) == 2 + len(planes)


def test_the_hash_follows_the_planes_and_not_the_names_or_options() -> None:
    hashes = {observation_hash(load_variant(name)) for name in ("chess", "gardner", "separate_realms_2")}
    assert len(hashes) == 3
    assert observation_hash(load_variant("asylum")) == observation_hash(load_variant("asylum", {"friendly_fire": True}))


@pytest.mark.parametrize("name, page", [("observation.md", observation_page), ("actions.md", actions_page)])
def test_the_reference_pages_are_what_the_rules_generate(name: str, page: object) -> None:
    assert callable(page)
    stored = (ROOT / "docs" / "reference" / name).read_text(encoding="utf-8")
    assert stored == page(), "run: python scripts/reference.py"
