"""The kernels and the slow rules say the same on every ply of random games, whatever the batch.

What is compared is in `comparison.py`. Every comparison is shown to notice a planted fault.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable
from pathlib import Path as FilePath

import numpy as np
import pytest

from envs import Outcome, Termination, layout, rules
from envs.paths import Path
from envs.tables import CompiledGame
from envs.variant import Variant
from tests.envs.comparison import Comparison, Difference
from tests.envs.random_games import all_settings, library_games, own_games, setting_name

NUM_POSITIONS = 20_000
NUM_POSITIONS_OF_OWN_GAMES = {"wide": 600, "hollow": 1_500, "inner_rooks": 3_000}
NUM_POSITIONS_OF_A_LIBRARY_GAME = 150
CHUNK, NUM_SLOW_CHUNKS = 20_000, 25
SETTINGS = all_settings()
by_name = {setting_name(variant): variant for variant in [*SETTINGS, *own_games()]}


@pytest.mark.parametrize("variant", SETTINGS, ids=setting_name)
def test_kernels_and_rules_agree_on_games_played_to_the_end(variant: Variant) -> None:
    seen = Comparison(variant, seed=0).run(NUM_POSITIONS)
    assert seen["positions"] >= NUM_POSITIONS
    assert seen["captures"] > NUM_POSITIONS / 8
    assert seen["checks"] > NUM_POSITIONS / 50
    assert seen["promotions"] > NUM_POSITIONS / 250
    assert seen["games"] > NUM_POSITIONS / 500
    endings = {Termination.CHECKMATE, Termination.STALEMATE, Termination.REPETITION, Termination.FIFTY_MOVES}
    endings.add(Termination.BARE_KINGS if variant.ends.bare_kings_draw else Termination.SCEPTER)
    for ending in endings:
        assert seen[ending.name] > 0, ending
    if any(variant.castlings):
        assert seen["castling"] > NUM_POSITIONS / 500
        assert seen["en passant"] > NUM_POSITIONS / 2000
    if any(ray.fires_through or ray.overruns for piece in variant.piece_types for ray in piece.rays):
        assert seen["double captures"] > NUM_POSITIONS / 1000


@pytest.mark.parametrize("variant", own_games(), ids=setting_name)
def test_kernels_and_rules_agree_on_games_of_a_users_own(variant: Variant) -> None:
    seen = Comparison(variant, seed=0, max_plies=60).run(NUM_POSITIONS_OF_OWN_GAMES[variant.name])
    assert seen["double captures"] > 0
    assert seen["en passant"] > 0
    if variant.name == "inner_rooks":
        assert seen["rights lost from afar"] > 0


@pytest.mark.parametrize("variant", library_games(), ids=setting_name)
def test_kernels_and_rules_agree_on_the_games_of_the_library(variant: Variant) -> None:
    seen = Comparison(variant, seed=0, max_plies=80).run(NUM_POSITIONS_OF_A_LIBRARY_GAME)
    assert seen["captures"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("variant", library_games(), ids=setting_name)
def test_kernels_and_rules_agree_on_library_games_played_to_the_end(variant: Variant) -> None:
    seen = Comparison(variant, seed=1).run(CHUNK)
    assert seen["games"] > CHUNK / 1000


@pytest.mark.parametrize("num_lanes", [1, 3, 40])
def test_kernels_and_rules_agree_in_batches_of_other_sizes(num_lanes: int) -> None:
    for variant in (by_name["asylum+friendly_fire"], by_name["palace_ninja_guards+scepter"]):
        Comparison(variant, seed=num_lanes, num_lanes=num_lanes, max_plies=30).run(120)


@pytest.mark.nojit
@pytest.mark.parametrize("variant", SETTINGS, ids=setting_name)
def test_kernels_and_rules_agree_for_some_positions(variant: Variant) -> None:
    assert Comparison(variant, seed=99, max_plies=20).run(100)["positions"] >= 100


@pytest.mark.slow
@pytest.mark.parametrize("variant", SETTINGS, ids=setting_name)
def test_kernels_and_rules_agree_on_many_games(variant: Variant, pytestconfig: pytest.Config) -> None:
    """Half a million positions; a run that was stopped goes on where it was, unless `envs/` has changed."""
    assert pytestconfig.cache is not None
    sources = hashlib.sha256()
    for file in sorted(FilePath(layout.__file__).parent.rglob("*.py")):
        sources.update(file.read_bytes())
    state = {"rules": variant.rules_hash, "sources": sources.hexdigest()}
    progress = pytestconfig.cache.mkdir("kernel_equals_rules") / f"{setting_name(variant)}.json"
    done = json.loads(progress.read_text()) if progress.exists() else {}
    first = done["chunks"] if done.get("state") == state else 0
    for chunk in range(first, NUM_SLOW_CHUNKS):
        Comparison(variant, seed=1000 + chunk).run(CHUNK)
        progress.write_text(json.dumps({"state": state, "chunks": chunk + 1}))


# --- Planted faults: each must be noticed -----------------------------------------------------

right = {name: getattr(rules, name) for name in ("make", "squares_passed", "outcome", "attacked", "legal_moves")}


def keep_rights_of_rooks_taken_from_afar(variant: Variant, state: rules.State, move: rules.Move) -> rules.State:
    near = move._replace(victims=tuple(square for square in move.victims if square == move.to_square))
    return dataclasses.replace(right["make"](variant, state, move), rights=right["make"](variant, state, near).rights)


def forget_the_clock(variant: Variant, state: rules.State, move: rules.Move) -> rules.State:
    after: rules.State = right["make"](variant, state, move)
    return dataclasses.replace(after, halfmove_clock=0 if move.victims else state.halfmove_clock + 1)


def jump_without_capture(_: Variant, board: list[str], __: str, path: Path) -> list[tuple[int, tuple[int, ...]]]:
    return [] if board[path.landings[0]] else [(path.landings[0], ())]


def with_other_ends(**ends: int) -> Callable[..., Outcome | None]:
    def outcome(variant: Variant, *position: object, **known: object) -> Outcome | None:
        other = dataclasses.replace(variant, ends=dataclasses.replace(variant.ends, **ends))
        found: Outcome | None = right["outcome"](other, *position, **known)
        return found

    return outcome


RULES_FAULTS: list[tuple[str, str, object, str]] = [
    ("asylum", "squares_passed", lambda v, s, m: right["squares_passed"](v, s, m)[:1], "position"),
    ("inner_rooks", "make", keep_rights_of_rooks_taken_from_afar, "position"),
    ("chess", "make", forget_the_clock, "position"),
    ("chess", "leaves_king_safe", lambda v, s, m: True, "legal moves"),
    ("palace_ninja_guards", "_overrun", jump_without_capture, "legal moves"),
    ("asylum+friendly_fire", "in_check", lambda v, s: False, "check|reward"),
    ("chess", "_castling_is_safe", lambda v, s, c: True, "legal moves"),
    ("gardner", "outcome", with_other_ends(repetition_times=4), "mask"),
    ("gardner", "outcome", with_other_ends(move_limit=99), "mask"),
    ("palace_ninja_guards+scepter", "board_outcome", lambda *_: None, "position|legal moves|reward"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("setting", "name", "fault", "what"), RULES_FAULTS, ids=lambda value: getattr(value, "__name__", str(value))[:30]
)
def test_a_fault_in_the_rules_is_noticed(
    setting: str, name: str, fault: object, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, name, fault)
    with pytest.raises(Difference, match=what):
        Comparison(by_name[setting], seed=3).run(NUM_POSITIONS)


def flip(game: CompiledGame, header: int, offset: int | None, bits: int) -> None:
    place = header if offset is None else int(game.tables[header]) + offset
    game.tables[place] ^= bits


KERNEL_FAULTS: list[tuple[str, Callable[[CompiledGame], None], str]] = [
    ("chess", lambda game: flip(game, layout.T_BARE_DRAW, None, 1), "mask"),
    ("asylum", lambda game: flip(game, layout.T_KEEP, 0, 15), "position"),
    (
        "palace_ninja_guards+scepter",
        lambda game: flip(game, layout.T_GOALS, None, 1),
        "position|legal moves|reward",
    ),
    ("separate_realms_2", lambda game: game.zobrist.__setitem__(64, 1), "key"),
]


@pytest.mark.parametrize(
    ("setting", "fault", "what"), KERNEL_FAULTS, ids=lambda value: getattr(value, "__name__", str(value))[:30]
)
def test_a_fault_in_the_tables_is_noticed(setting: str, fault: Callable[[CompiledGame], None], what: str) -> None:
    comparison = Comparison(by_name[setting], seed=3)
    game = comparison.game
    faulty = dataclasses.replace(game, tables=game.tables.copy(), zobrist=game.zobrist.copy())
    fault(faulty)
    for env in (comparison.env, comparison.other):
        env.game = faulty
        env._bind()
    with pytest.raises(Difference, match=what):
        comparison.run(NUM_POSITIONS)


def test_a_lane_that_depends_on_the_batch_is_noticed() -> None:
    comparison = Comparison(by_name["chess"], seed=3)
    comparison.run(50)
    comparison.other.states[comparison.place[1], 2] += np.uint64(1)
    with pytest.raises(Difference, match="batch"):
        comparison.run(100)
