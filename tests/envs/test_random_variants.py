"""Random variant files: the kernels say what the rules say on every ply, whatever a file says.

What is compared is in `side_by_side.py`. The default suite plays the first seeds; the tests marked slow the others.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from envs import InvalidVariant, load_variant, rules
from envs.variant import Variant
from tests.envs.random_variants import random_document, random_variant, random_yaml
from tests.envs.side_by_side import Difference, SideBySide

SHARD, NUM_SHARDS, NUM_SLOW_SHARDS = 30, 2, 15
NUM_ROUNDS, MAX_PLIES = 2, 50
NUM_TEXTS = 500
KEYS = {
    "extends", "name", "inventor", "year", "source", "readings[]", "board.files", "board.ranks", "board.first_rank",
    "start", "start[]", "royal", "royal.white", "royal.black", "pieces.?.name", "pieces.?.moves", "pieces.?.overruns",
    "pieces.?.fires_through", "pieces.?.fires_through_own", "pieces.?.captures_own", "pawns.piece", "pawns.quiet",
    "pawns.captures", "pawns.first_steps", "pawns.first_steps_from", "pawns.first_steps_from[]", "pawns.promotes_on[]",
    "pawns.promotes_to", "pawns.promotes_to.white", "pawns.promotes_to.black", "pawns.promotion", "castling.rank",
    "castling.king", "castling.kingside.king_to", "castling.queenside.rook", "castling.white.rank",
    "castling.white.kingside.rook_to", "castling.black.queenside.rook", "ends.stalemate", "ends.repetition",
    "ends.repetition.times", "ends.repetition.result", "ends.move_limit", "ends.bare_kings", "ends.goals[].name",
    "ends.goals[].by", "ends.goals[].squares.white[]", "ends.goals[].squares.black[]", "ends.extinction.pieces",
    "ends.extinction.result", "options.?.start", "options.?.pieces.?.moves", "options.?.pieces.?.captures_own",
    "options.?.pawns.captures", "options.?.pawns.promotion", "options.?.castling", "options.?.ends.move_limit",
}  # fmt: skip


def play(seeds: range, folder: Path) -> Counter[str]:
    """Play the games of some seeds; a difference names the file and the options."""
    seen: Counter[str] = Counter()
    for seed in seeds:
        variant = random_variant(seed, folder)
        try:
            seen += SideBySide(variant, seed).play(NUM_ROUNDS, MAX_PLIES)
        except Difference as difference:
            on = [option for option, switch in variant.options.items() if switch]
            raise Difference(f"seed {seed}, options {on}: {difference}\n{random_text(seed, folder)}") from None
    return seen


def random_text(seed: int, folder: Path) -> str:
    return (folder / f"random_{seed}.yaml").read_text()


@pytest.mark.parametrize("shard", range(NUM_SHARDS))
def test_kernels_and_rules_agree_on_random_variants(shard: int, tmp_path: Path) -> None:
    seen = play(range(shard * SHARD, (shard + 1) * SHARD), tmp_path)
    assert seen["positions"] > 100 * SHARD
    for event in ("captures", "own captures", "double captures", "promotions", "en passant", "checks", "won by w"):
        assert seen[event] > 0, event


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(NUM_SHARDS, NUM_SHARDS + NUM_SLOW_SHARDS))
def test_kernels_and_rules_agree_on_many_random_variants(shard: int, tmp_path: Path) -> None:
    assert play(range(shard * SHARD, (shard + 1) * SHARD), tmp_path)["positions"] > 100 * SHARD


@pytest.mark.nojit
def test_kernels_and_rules_agree_on_a_few_random_variants(tmp_path: Path) -> None:
    for seed in (1, 2, 3):
        assert SideBySide(random_variant(seed, tmp_path), seed, num_lanes=2).play(1, 10)["positions"] > 0


# --- What the random files say ----------------------------------------------------------------


def keys_of(document: Any, path: str = "") -> set[str]:
    """List the key paths of a document; letters of pieces and names of options are `?`, items of lists `[]`."""
    if isinstance(document, dict):
        found = set()
        for key, value in document.items():
            name = "?" if path in ("pieces", "options", "options.?.pieces") else key
            found |= keys_of(value, f"{path}.{name}".lstrip("."))
        return found
    if isinstance(document, list):
        return set().union(*(keys_of(value, f"{path}[]") for value in document))
    return {path}


@pytest.mark.nojit
def test_random_files_use_every_key_and_every_size() -> None:
    seen: Counter[str] = Counter()
    for seed in range(NUM_TEXTS):
        document = random_document(np.random.default_rng([seed, 0]))
        seen.update(keys_of(document))
        seen[f"files {document['board']['files']}"] += 1
        seen[f"ranks {document['board']['ranks']}"] += 1
    wanted = KEYS | {f"{side} {size}" for side in ("files", "ranks") for size in range(3, 17)}
    assert not {key for key in wanted if seen[key] < 2}


@pytest.mark.nojit
def test_most_random_files_are_games_and_the_others_contradict_themselves(tmp_path: Path) -> None:
    games = 0
    for seed in range(40):
        file = tmp_path / "random.yaml"
        file.write_text(random_yaml(seed))
        with contextlib.suppress(InvalidVariant):
            games += load_variant(file) is not None
    assert games >= 20


@pytest.mark.nojit
def test_a_seed_gives_the_same_game_everywhere(tmp_path: Path) -> None:
    one = random_variant(7, tmp_path)
    (tmp_path / "again").mkdir()
    again = random_variant(7, tmp_path / "again")
    assert (one.content_hash, one.rules_hash) == (again.content_hash, again.rules_hash)


# --- Planted faults: each must be noticed -----------------------------------------------------


def own_pieces_are_safe(variant: Variant, piece: str, other: str, *, own: bool) -> bool:
    return piece.isupper() != other.isupper()


def the_mover_dies_out_last(variant: Variant, board: Any, mover: int) -> Any:
    return right["board_outcome"](variant, board, 1 - mover)


def pawns_need_not_promote(variant: Variant, side: int, square: int) -> bool:
    return False


def castling_without_care(variant: Variant, state: rules.State, castling: Any) -> bool:
    return True


right: dict[str, Callable[..., Any]] = {"board_outcome": rules.board_outcome}
FAULTS = {
    "_may_hit": (own_pieces_are_safe, 2),
    "board_outcome": (the_mover_dies_out_last, 2),
    "must_promote": (pawns_need_not_promote, 6),
    "_castling_is_safe": (castling_without_care, 48),
    "squares_passed": (lambda variant, state, move: (), 23),
    "in_check": (lambda variant, state: False, 1),
}
"""Name in `rules` -> what replaces it, and a seed whose game notices."""


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_in_the_rules_is_noticed(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fault, seed = FAULTS[name]
    game = SideBySide(random_variant(seed, tmp_path), seed)
    monkeypatch.setattr(rules, name, fault)
    with pytest.raises((Difference, ValueError)):
        game.play(NUM_ROUNDS, MAX_PLIES)


def test_a_fault_in_a_result_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """White's wins told as Black's."""
    right_outcome = rules.outcome
    swap = {"w": "b", "b": "w", None: None}

    def swapped(*args: Any, **kwargs: Any) -> Any:
        outcome = right_outcome(*args, **kwargs)
        return outcome and type(outcome)(outcome.termination, swap[outcome.winner])

    monkeypatch.setattr(rules, "outcome", swapped)
    with pytest.raises(Difference, match=r"outcome|reward"):
        play(range(SHARD), tmp_path)
