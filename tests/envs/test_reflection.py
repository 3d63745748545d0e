"""Left-right reflection: a reflected position is a position of the game, moved in and seen as the original is.

Dims: N rows, A actions.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import envs
from envs import CompiledGame, VectorEnv, kernels, layout
from envs.reflection import NO_IMAGE, Reflection
from tests.envs.random_variants import random_variant

LANES, PLIES = 8, 40
_ROW = np.uint64(0)
Rows = layout.U64Array


def reached_rows(game: CompiledGame, seed: int, plies: int = PLIES, lanes: int = LANES) -> Rows:
    """Play at random; return every position with a legal move, uint64 [N, W]."""
    env = VectorEnv(game.variant, lanes, max_plies=2 * plies)
    env.rng = np.random.default_rng(seed)
    env.reset()
    found = []
    for _ in range(plies):
        found.append(env.states[~env.over].copy())
        if env.over.all():
            break
        env.step(env.sample_actions())
    return np.concatenate(found)


def legal_sets(game: CompiledGame, rows: Rows) -> list[set[int]]:
    actions, counts = envs.legal_actions(game, rows)
    return [set(row[:count].tolist()) for row, count in zip(actions, counts)]


def after_actions(game: CompiledGame, rows: Rows, chosen: list[int]) -> Rows:
    """Play one action on a copy of each row; the repetition count, which needs a history, becomes 0."""
    moves, counts, _ = envs.rows.legal_moves(game, rows)
    played = rows.copy()
    for number, action in enumerate(chosen):
        words = moves[number, : counts[number]]
        (word, *_) = words[(words >> np.uint64(16) & np.uint64(0xFFFF)) == action]
        row = played[number]
        kernels.make(game.tables, game.zobrist, row.view(np.uint8), row, _ROW, word)
    return played


def seen_in_a_mirror(game: CompiledGame, planes: np.ndarray) -> np.ndarray:
    """Mirror observations [N, C, H, W]; the wings of castling change places."""
    first = 2 * len(game.variant.piece_types)
    order = np.arange(planes.shape[1])
    order[first : first + 4] = first + np.array([1, 0, 3, 2])
    return planes[:, order, :, ::-1]


def check_reflection(game: CompiledGame, reflection: Reflection, rows: Rows, *, seed: int) -> Counter[str]:
    """Compare positions that may be reflected with their reflections in every way; count what was seen."""
    rng = np.random.default_rng(seed)
    allowed = reflection.allowed(rows)
    kept = rows[allowed]
    if not len(kept):
        return Counter(refused=len(rows))
    images = reflection.rows(kept)
    np.testing.assert_array_equal(reflection.rows(images), kept, "twice")
    sets, mirrored = legal_sets(game, kept), legal_sets(game, images)
    for own, other in zip(sets, mirrored, strict=True):
        assert {int(reflection.actions[action]) for action in own} == other
    seen = envs.observe(game, images)
    np.testing.assert_array_equal(seen, seen_in_a_mirror(game, envs.observe(game, kept)), "planes")
    chosen = [int(rng.choice(sorted(own))) for own in sets]
    first = after_actions(game, kept, chosen)
    second = after_actions(game, images, reflection.actions[chosen].tolist())
    assert reflection.allowed(first).all()
    np.testing.assert_array_equal(reflection.rows(first), second, "played")
    data = kept.view(np.uint8).reshape(len(kept), -1)
    return Counter(
        positions=len(kept),
        refused=int((~allowed).sum()),
        en_passant=int((data[:, layout.EP_COUNT] > 0).sum()),
        castling=int((data[:, layout.CASTLING] > 0).sum()),
    )


def check_game(variant: envs.Variant, seed: int, plies: int = PLIES, lanes: int = LANES) -> Counter[str]:
    game = envs.engine_for(variant)
    reflection = Reflection.of(game)
    if reflection is None:
        return Counter(uneven=1)
    return check_reflection(game, reflection, reached_rows(game, seed, plies, lanes), seed=seed)


@pytest.mark.parametrize("name", envs.list_variants())
def test_reflected_positions_have_reflected_moves_planes_and_futures(name: str) -> None:
    variant = envs.load_variant(name)
    seen = check_game(variant, seed=1)
    if not any(variant.castlings):
        assert not seen["refused"]
    assert seen["positions"] + seen["refused"] > 150


@pytest.mark.slow
@pytest.mark.parametrize("name", envs.list_variants())
def test_thousands_of_positions_reflect(name: str) -> None:
    variant = envs.load_variant(name)
    seen = sum((check_game(variant, seed, plies=250, lanes=32) for seed in range(8)), Counter())
    assert seen["positions"] > 3000


def test_en_passant_and_even_castling_are_reflected_and_uneven_castling_is_refused() -> None:
    seen = {
        name: check_game(envs.load_variant(name), seed=2, plies=60, lanes=24)
        for name in ("torpedo", "wildebeest", "chess")
    }
    assert seen["torpedo"]["en_passant"] >= 5
    assert seen["wildebeest"]["castling"] > 100
    assert not seen["wildebeest"]["refused"]
    assert seen["chess"]["refused"] > 100
    assert not seen["chess"]["castling"]


def test_random_variants_that_may_be_reflected_reflect(tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    for seed in range(12):
        seen += check_game(random_variant(seed, tmp_path), seed, plies=30)
    assert seen["uneven"] >= 3
    assert seen["positions"] > 300


@pytest.mark.slow
def test_many_random_variants_that_may_be_reflected_reflect(tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    for seed in range(12, 400):
        seen += check_game(random_variant(seed, tmp_path), seed, plies=30)
    assert seen["positions"] > 10_000


@pytest.mark.parametrize(
    "change",
    [
        "pieces: {n: {moves: lN}}",
        "pieces: {n: {moves: NrW}}",
        "pawns: {captures: flF}",
        "ends: {goals: [{name: corner, by: k, squares: {white: [a8], black: [a1]}}]}",
        'board: {files: 8, ranks: 8}\nstart: "rnbqkbn*/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBN* w - - 0 1"\ncastling: null',
    ],
)
def test_rules_that_tell_left_from_right_have_no_reflection(tmp_path: Path, change: str) -> None:
    path = tmp_path / "uneven.yaml"
    path.write_text(f"extends: chess\nname: Uneven\n{change}\n")
    assert Reflection.of(envs.engine_for(envs.load_variant(path))) is None


def test_an_uneven_start_has_a_reflection(tmp_path: Path) -> None:
    path = tmp_path / "even.yaml"
    path.write_text('extends: chess\nname: Even\nstart: "nrbbkqnr/pppppppp/8/8/8/8/PPPPPPPP/NRBBKQNR w - - 0 1"\n'
                    "castling: null\n")  # fmt: skip
    assert check_game(envs.load_variant(path), seed=0)["refused"] == 0


def test_moves_that_may_be_reflected_always_have_an_image() -> None:
    for name in envs.list_variants():
        game = envs.engine_for(envs.load_variant(name))
        reflection = Reflection.of(game)
        assert reflection is not None
        there = reflection.actions[reflection.actions != NO_IMAGE]
        np.testing.assert_array_equal(reflection.actions[there], np.flatnonzero(reflection.actions != NO_IMAGE))


@pytest.mark.parametrize("fault", ["castling", "squares", "actions", "royals"])
def test_a_planted_fault_is_seen(fault: str) -> None:
    game = envs.engine_for(envs.load_variant("chess"))
    reflection = Reflection.of(game)
    assert reflection is not None
    rows = reached_rows(game, seed=3, plies=60, lanes=16)
    squares, actions = reflection.squares.copy(), reflection.actions.copy()
    squares[[0, 1]], actions[[0, 1]] = squares[[1, 0]], actions[[1, 0]]
    tables = game.tables.copy()
    tables[layout.T_ROYAL] = 0
    wrong = {
        "castling": replace(reflection, has_image=np.ones(16, np.bool_), rights=np.arange(16, dtype=np.uint8)),
        "squares": replace(reflection, squares=squares),
        "actions": replace(reflection, actions=actions),
        "royals": replace(reflection, game=replace(game, tables=tables)),
    }
    check_reflection(game, reflection, rows, seed=0)
    with pytest.raises((AssertionError, ValueError)):
        check_reflection(game, wrong[fault], rows, seed=0)
