"""Random games that Fairy-Stockfish (pyffish) can hold, against it on every ply.

The random variant files are tamed first: what `fairy_ini.py` can never say (captures of own pieces, double captures,
riders of long leaps, odd move limits, goals of several kinds) is taken out of the file. Its en passant field lists
other squares than ours, so it is left out; legal moves show the captures.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyffish
import pytest
import yaml

from envs import InvalidVariant, Position, load_variant, rules, rules_fen
from envs.strict_yaml import load_yaml
from envs.termination import Outcome, Termination
from envs.variant import Variant
from tests.envs.fairy_ini import counts_the_same, fairy_ini, obstacle
from tests.envs.random_games import Temper, pick_move
from tests.envs.random_positions import scattered
from tests.envs.random_variants import random_yaml
from tests.envs.rules_position import AnyPosition, RulesPosition

SHARD, NUM_SHARDS, NUM_SLOW_SHARDS = 30, 1, 15
GAMES_PER_VARIANT, MAX_PLIES, CLOSELY = 3, 50, 4
TOKEN, SWAP = re.compile(r"[a-z]*([A-Z])\1?\d*"), str.maketrans("lr", "rl")
LONG_RIDER = re.compile(r"([DAHCLZJG])(?:\1|\d+)")


class Difference(AssertionError):
    """The engine and the oracle disagree."""


# --- Games that both can hold -----------------------------------------------------------------


def tamed(document: dict[str, Any]) -> dict[str, Any]:
    """Take out of a document what Fairy-Stockfish never holds; moves to one side are made moves to both."""
    for piece in document["pieces"].values():
        for key in ("captures_own", "fires_through", "fires_through_own"):
            (piece or {}).pop(key, None)
        if piece is not None and "moves" in piece:
            piece["moves"] = both_ways(LONG_RIDER.sub(r"\1", piece.pop("overruns", "") + piece["moves"]))
    pawns = document.get("pawns") or {}
    for key in ("quiet", "captures"):
        if key in pawns:
            pawns[key] = both_ways(pawns[key])
    ends = document.get("ends") or {}
    if isinstance(ends.get("move_limit"), int):
        ends["move_limit"] += ends["move_limit"] % 2
    for goal in ends.get("goals", [])[:1]:
        ends["goals"] = [{**goal, "by": goal["by"][0]}]
    document.pop("options", None)
    return document


def both_ways(moves: str) -> str:
    """Add to each move to one side that to the other."""
    tokens = [match[0] for match in TOKEN.finditer(moves)]
    return moves + "".join(token.translate(SWAP) for token in tokens if token.translate(SWAP) != token)


def fairy_variants(folder: Path, seeds: range) -> list[Variant]:
    """Return the tamed games of some seeds that Fairy-Stockfish holds, and teach it them."""
    found = []
    for seed in seeds:
        file = folder / f"fairy_{seed}.yaml"
        file.write_text(yaml.safe_dump(tamed(load_yaml(random_yaml(seed), "")[0]), sort_keys=False))
        try:
            variant = load_variant(file)
        except InvalidVariant:
            continue
        ini = fairy_ini(variant, variant.name)
        if ini is not None:
            pyffish.load_variant_config(ini)
            found.append(variant)
    return found


# --- Comparison -------------------------------------------------------------------------------


def theirs(variant: Variant, text: str) -> str:
    """Rename squares: the oracle's ranks begin with 1."""
    shift = 1 - variant.board.first_rank
    return re.sub(r"([a-p])(\d+)", lambda square: f"{square[1]}{int(square[2]) + shift}", text)


def their_fen(variant: Variant, fen: str) -> str:
    placement, *rest = fen.split(" ")
    return " ".join([placement, *(theirs(variant, word) for word in rest)])


def compare(variant: Variant, position: AnyPosition, fen: str, moves: list[str]) -> None:
    """Compare a position with the oracle's, which has followed the game by itself.

    A question to the oracle takes milliseconds; what moves and check tell by themselves is asked now and then.
    """
    name, closely = variant.name, len(moves) % CLOSELY == 0
    legal = sorted(theirs(variant, move) for move in position.legal_moves())
    outcome, own = position.outcome(), position.fen().split(" ")
    facts: dict[str, tuple[object, object]] = {
        "legal moves": (legal, sorted(pyffish.legal_moves(name, fen, moves))),
        "check": (position.in_check, pyffish.gives_check(name, fen, moves)),
    }
    if closely or outcome is not None:
        other = pyffish.get_fen(name, fen, moves).split(" ")
        fields = [0, 1, 2, 4, 5] if counts_the_same(variant) else [0, 1, 2, 5]
        facts["FEN"] = ([own[field] for field in fields], [other[field] for field in fields])
    if (closely or outcome is not None or position.repetitions) and not is_unknown_end(variant, outcome):
        value = None if outcome is None else 0 if outcome.winner is None else 1 if outcome.winner == own[1] else -1
        facts["outcome"] = (value, their_value(variant, fen, moves, legal))
    for what, (ours, oracle) in facts.items():
        if ours != oracle:
            raise Difference(f"{what} in {position.fen()} after {moves} from {fen}: we say {ours}, pyffish {oracle}")


def is_unknown_end(variant: Variant, outcome: Outcome | None) -> bool:
    """Return whether the oracle does not know this end of a game."""
    ended = None if outcome is None else outcome.termination
    return ended is Termination.BARE_KINGS or (ended is Termination.FIFTY_MOVES and not counts_the_same(variant))


def their_value(variant: Variant, fen: str, moves: list[str], legal: list[str]) -> int | None:
    """Return 1, 0 or -1 for the player to move when the oracle says that the game is over, else None."""
    ended, value = (False, 0) if legal else pyffish.is_immediate_game_end(variant.name, fen, moves)
    if not ended and not legal:
        ended, value = True, pyffish.game_result(variant.name, fen, moves)
    if not ended:
        ended, value = pyffish.is_optional_game_end(variant.name, fen, moves)
    return int(np.sign(value)) if ended else None


def play(variant: Variant, engine: type[Position] | type[RulesPosition], seed: int) -> Counter[str]:
    rng = np.random.default_rng([seed, 11])
    seen: Counter[str] = Counter()
    for number in range(GAMES_PER_VARIANT):
        start = scattered(variant, rng) if number % 2 else variant.start_fens[number % len(variant.start_fens)]
        position, state, temper = engine(variant, fen=start), rules_fen.parse_fen(variant, start), Temper.draw(rng)
        names: list[str] = []
        for _ in range(MAX_PLIES):
            compare(variant, position, their_fen(variant, start), names)
            seen["positions"] += 1
            outcome = position.outcome()
            if outcome is not None:
                seen[outcome.termination.name] += 1
                break
            listed = rules.legal_moves(variant, state)
            move = pick_move(variant, rng, temper, state=state, moves=listed, last=None)
            seen[move.kind.value] += 1
            seen["promotions"] += bool(move.promotion)
            name = rules_fen.move_name(variant, move)
            position.push(name)
            state = rules.make(variant, state, move)
            names.append(theirs(variant, name))
    return seen


@pytest.mark.parametrize("shard", range(NUM_SHARDS))
def test_fairy_stockfish_agrees_on_random_variants_that_it_can_hold(shard: int, tmp_path: Path) -> None:
    variants = fairy_variants(tmp_path, range(shard * SHARD, (shard + 1) * SHARD))
    seen: Counter[str] = Counter()
    for variant in variants:
        seen += play(variant, Position, seed=shard)
    assert len(variants) > SHARD / 5
    assert min(seen["promotions"], seen["CHECKMATE"], seen["GOAL"] + seen["SCEPTER"], seen["EXTINCTION"]) > 0


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(NUM_SHARDS, NUM_SHARDS + NUM_SLOW_SHARDS))
def test_fairy_stockfish_agrees_on_many_random_variants(shard: int, tmp_path: Path) -> None:
    for variant in fairy_variants(tmp_path, range(shard * SHARD, (shard + 1) * SHARD)):
        play(variant, Position, seed=shard)


def test_a_game_that_fairy_stockfish_cannot_hold_is_left_out_with_its_reason(tmp_path: Path) -> None:
    reasons = {
        "asylum": "a piece captures two at once",
        "separate_realms_2": "a rider of other leaps than W, F and N",
        "chess": None,
        "gardner": None,
    }
    assert {name: obstacle(load_variant(name)) for name in reasons} == reasons
    file = tmp_path / "own.yaml"
    file.write_text("extends: chess\npieces: {r: {captures_own: true}}\n")
    assert fairy_ini(load_variant(file), "own") is None


FAULTS = {
    "squares_passed": (lambda variant, state, move: (), "legal moves"),
    "in_check": (lambda variant, state: False, "check|outcome"),
    "_castling_is_safe": (lambda variant, state, castling: True, "legal moves"),
    "board_outcome": (lambda variant, board, mover: None, "legal moves|outcome"),
}
"""Name in `rules` -> what replaces it, and what differs then."""
MOST_SEEDS_UNTIL_NOTICED = 80


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_in_the_rules_is_noticed(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fault, what = FAULTS[name]
    monkeypatch.setattr(rules, name, fault)
    for seed in range(MOST_SEEDS_UNTIL_NOTICED):
        for variant in fairy_variants(tmp_path, range(seed, seed + 1)):
            try:
                play(variant, RulesPosition, seed=1)
            except Difference as difference:
                if not re.search(what, str(difference)):
                    raise
                return
    pytest.fail(f"no game of {MOST_SEEDS_UNTIL_NOTICED} noticed")
