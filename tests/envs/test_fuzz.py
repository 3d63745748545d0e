"""Broken input of every kind: only the documented exceptions come out, quickly, and both FEN readers agree.

The default suite runs a share; the tests marked slow run 100,000 FENs and moves and 5,000 variant files.
"""

from __future__ import annotations

import gc
import itertools
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from envs import IllegalAction, InvalidFen, InvalidVariant, Position, VectorEnv, load_variant, rules, rules_fen
from envs.notation import parse_move
from envs.rows import engine_for, format_fen, read_fen
from envs.variant import Variant
from tests.envs.mutations import mutated_document, mutated_text, mutated_words
from tests.envs.random_games import all_settings, library_games, own_games, setting_name
from tests.envs.random_positions import scattered
from tests.envs.random_variants import random_variant, random_yaml

NUM_FENS, NUM_MOVES, NUM_FILES = 8_000, 4_000, 500
SLOW_FENS, SLOW_MOVES, SLOW_FILES = 70_000, 30_000, 5_000
LONGEST_CALL_S, LONGEST_FILE_S = 0.05, 2.0
LONGEST_MESSAGE = 1200
CALLS_TO_COLLECT = 5000
MEMORY_KIB = 200_000
NUM_RANDOM_GAMES, CLOSELY = 6, 10
FEN_ALPHABET = "kqrbnpmsghKQRBNPMSGH0123456789/*- wbacdefghijklmnop\t\0é٣²\u2028"
MOVE_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789-x=+#ABQ \0é٣"
YAML_ALPHABET = ":-{}[],&*!|>'\"%@`#? \n\tabcxyz0123456789.~<=\0é\u2028\ufeff"
LINES_OF_BAD_YAML = (
    "a: &a [1, 2]\nb: [*a, *a, *a]\n", "<<: {name: x}\n", "name: !!python/object/apply:os.system [ls]\n",
    "%YAML 1.1\n---\n", "---\nname: x\n---\nname: y\n", "[" * 3000, "{a: " * 3000, "- " * 3000, "? " * 500,
    "name: " + "x" * 200_000 + "\n", "start: " + "9" * 5000 + "\n", "year: " + "9" * 400 + "\n", "year: .nan\n",
    "year: 1e999\n", "year: -.inf\n", "board: {files: 99999999999999999999, ranks: 3}\n", "? [a, b]\n: c\n",
    "a: &a {b: *a}\n", "\0", "\ud800", "extends: /etc/passwd\n", "extends: ../../chess\n", "extends: random\n",
    "pieces: " + "{k: " * 40 + "x" + "}" * 40 + "\n", "x" * 100_000, "name: |\n" + " x\n" * 20_000,
    "a" * 2000 + ": 1\n",
    "options: {" + ", ".join(f"o{n}: {{ends: {{move_limit: {n + 1}}}}}" for n in range(200)) + "}\n",
)  # fmt: skip

ODD_NAMES = (
    "", "..", "/", "\0.yaml", "chess\0", "\ud800.yaml", "x" * 5000 + ".yaml", "a/" * 3000 + "x.yaml", " " * 10**6,
    "CHESS", Path("/"), Path("/dev/null"),
)  # fmt: skip


class Watch:
    """Bounds the time of each call; `calls` counts how they ended."""

    def __init__(self, longest_s: float) -> None:
        self.longest_s = longest_s
        self.calls: Counter[str] = Counter()

    def call(self, function: Callable[[], object], allowed: type[ValueError], shown: str) -> object:
        """Return the result, or the allowed exception."""
        began = time.thread_time()
        try:
            result: object = function()
        except allowed as error:
            result = error
        took = time.thread_time() - began
        assert took < self.longest_s, f"{took:.3f} s for {shown[:300]!r}"
        assert not isinstance(result, allowed) or len(str(result)) < LONGEST_MESSAGE, shown[:300]
        self.calls["refused" if isinstance(result, allowed) else "accepted"] += 1
        if self.calls.total() % CALLS_TO_COLLECT == 0:
            gc.collect()
        return result


@contextmanager
def watch_of_many(longest_s: float) -> Iterator[Watch]:
    """Bound the memory of many calls too; garbage is collected between them, not at the cost of one."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    gc.disable()
    try:
        yield Watch(longest_s)
    finally:
        gc.enable()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < MEMORY_KIB, f"{grown} KiB more"


@pytest.fixture(scope="module")
def games(tmp_path_factory: pytest.TempPathFactory) -> list[Variant]:
    """Return the main games, some of the library, the tests' own and some random ones, their kernels compiled."""
    folder = tmp_path_factory.mktemp("fuzz")
    variants = [*all_settings(), *library_games()[::6], *own_games()]
    variants += [random_variant(seed, folder) for seed in range(NUM_RANDOM_GAMES)]
    for variant in variants:
        read_fen(engine_for(variant), variant.start_fen)
        position = Position(variant)
        position.push(position.legal_moves()[0])
        VectorEnv(variant, 1).set_fen(0, variant.start_fen)
        rules_fen.parse_fen(variant, variant.start_fen)
    return variants


# --- FENs -------------------------------------------------------------------------------------


def broken_fens(variant: Variant, rng: np.random.Generator) -> Iterator[str]:
    """Yield FENs with one to four faults, without end; some are still positions."""
    known = [*variant.start_fens[:20], *(scattered(variant, rng) for _ in range(10))]
    while True:
        first, second = (str(rng.choice(known)) for _ in range(2))
        kind = rng.random()
        text = mutated_words(first, second, rng) if kind < 0.6 else first
        yield mutated_text(text, FEN_ALPHABET, rng) if kind > 0.3 else text


def read_both(variant: Variant, text: str, watch: Watch) -> None:
    """Read a text with both readers; they must agree on whether it is a position, and on which."""
    game = engine_for(variant)
    row = watch.call(lambda: read_fen(game, text), InvalidFen, text)
    state = watch.call(lambda: rules_fen.parse_fen(variant, text), InvalidFen, text)
    assert isinstance(row, InvalidFen) == isinstance(state, InvalidFen), (setting_name(variant), text, row, state)
    if not isinstance(row, InvalidFen):
        assert isinstance(row, np.ndarray)
        assert isinstance(state, rules.State)
        fen = rules_fen.fen(variant, state)
        assert format_fen(game, row) == fen, (setting_name(variant), text)
        if watch.calls.total() % CLOSELY == 0:
            position, names = Position(variant, text), variant.board.names
            moves = {rules_fen.move_name(variant, move): move for move in rules.legal_moves(variant, state)}
            assert {name: position.captures(name) for name in position.legal_moves()} == {
                name: sorted(names[square] for square in move.victims) for name, move in moves.items()
            }, (setting_name(variant), text)


def fuzz_fens(games: list[Variant], count: int, seed: int) -> Watch:
    rng = np.random.default_rng(seed)
    with watch_of_many(LONGEST_CALL_S) as watch:
        for variant in games:
            for text in itertools.islice(broken_fens(variant, rng), -(-count // len(games))):
                read_both(variant, text, watch)
    return watch


def test_both_fen_readers_accept_the_same_broken_texts(games: list[Variant]) -> None:
    watch = fuzz_fens(games, NUM_FENS, seed=1)
    assert min(watch.calls["accepted"], watch.calls["refused"]) > NUM_FENS / 8


@pytest.mark.slow
def test_both_fen_readers_accept_the_same_of_many_broken_texts(games: list[Variant]) -> None:
    assert fuzz_fens(games, SLOW_FENS, seed=2).calls.total() >= 2 * SLOW_FENS


def test_a_lane_keeps_its_position_when_a_broken_fen_is_refused(games: list[Variant]) -> None:
    rng = np.random.default_rng(3)
    with watch_of_many(LONGEST_CALL_S) as watch:
        for variant in games:
            env = VectorEnv(variant, 2)
            for text in itertools.islice(broken_fens(variant, rng), 60):
                before = (env.fen(1), env.fen(0), env.legal_action_mask.tobytes())
                result = watch.call(partial(env.set_fen, 1, text), InvalidFen, text)
                if isinstance(result, InvalidFen):
                    assert (env.fen(1), env.fen(0), env.legal_action_mask.tobytes()) == before
                else:
                    assert env.fen(1) == rules_fen.fen(variant, rules_fen.parse_fen(variant, text))


@pytest.mark.parametrize("text", ["8" * 10**5, "k" * 10**5, "/" * 10**5, "a3" * 10**5, "8/" * 10**5, "é" * 10**5])
def test_a_field_of_a_hundred_thousand_letters_is_refused_at_once(text: str) -> None:
    chess = load_variant("chess")
    fields = ["4k3/8/8/8/8/8/8/4K3", "w", "-", "-", "0", "1"]
    for number in range(len(fields)):
        for place in (text, fields[number] + text):
            watch = Watch(1.0)
            read_both(chess, " ".join([*fields[:number], place, *fields[number + 1 :]]), watch)
            assert watch.calls == {"refused": 2}


# --- Moves ------------------------------------------------------------------------------------


def broken_moves(names: list[str], rng: np.random.Generator) -> Iterator[str]:
    """Yield move names with faults, without end; some are still moves."""
    while True:
        name = str(rng.choice(names)) if names else "a1a2"
        kind = rng.random()
        text = "".join(rng.permutation(list(name))) if kind < 0.1 else name
        yield text if kind > 0.9 else mutated_text(text, MOVE_ALPHABET, rng)


def fuzz_moves(games: list[Variant], count: int, seed: int) -> Watch:
    rng = np.random.default_rng(seed)
    with watch_of_many(LONGEST_CALL_S) as watch:
        for variant in games:
            fen = scattered(variant, rng)
            position, env = Position(variant, fen=fen), VectorEnv(variant, 1)
            env.set_fen(0, fen)
            for text in itertools.islice(broken_moves(position.legal_moves(), rng), -(-count // len(games))):
                try_move(position, env, text, watch)
    return watch


def try_move(position: Position, env: VectorEnv, text: str, watch: Watch) -> None:
    """Give a text to everything that reads moves; the position is as before afterwards."""
    before = (position.fen(), position.key, position.legal_moves())
    action = watch.call(lambda: env.move_to_action(0, text), IllegalAction, text)
    watch.call(lambda: parse_move(position.variant, text), IllegalAction, text)
    captured = watch.call(lambda: position.captures(text), IllegalAction, text)
    pushed = watch.call(lambda: position.push(text), IllegalAction, text)
    assert (pushed is None) == (text in before[2]) == isinstance(captured, list), text
    if pushed is None:
        assert isinstance(action, int)
        assert position.pop() == text
    assert (position.fen(), position.key, position.legal_moves()) == before


def test_broken_moves_are_illegal_actions(games: list[Variant]) -> None:
    watch = fuzz_moves(games, NUM_MOVES, seed=4)
    assert min(watch.calls["accepted"], watch.calls["refused"]) > NUM_MOVES / 8


@pytest.mark.slow
def test_many_broken_moves_are_illegal_actions(games: list[Variant]) -> None:
    assert fuzz_moves(games, SLOW_MOVES, seed=5).calls.total() >= SLOW_MOVES


def test_actions_out_of_range_are_refused_and_nothing_has_moved(games: list[Variant]) -> None:
    env = VectorEnv(games[0], 3)
    before = env.states.copy()
    for wrong in (-1, -(2**63), env.num_actions, 2**31, 2**32, 2**62):
        with pytest.raises(IllegalAction):
            env.step(np.array([wrong, wrong, wrong], np.int64))
        with pytest.raises(IllegalAction):
            env.action_to_move(0, wrong)
    for wrong_type in ([1.5] * 3, [2**70] * 3, ["a"] * 3, [None] * 3, [[0]] * 3, [0], [True] * 3, [np.nan] * 3):
        with pytest.raises(ValueError, match="actions"):
            env.step(wrong_type)
    np.testing.assert_array_equal(env.states, before)


# --- Variant files ----------------------------------------------------------------------------


def broken_files(rng: np.random.Generator) -> Iterator[bytes]:
    """Yield the bytes of variant files with faults, without end; some are still games."""
    known = [file.read_text() for file in sorted((Path(rules.__file__).parent / "variants").glob("*.yaml"))]
    while True:
        kind = rng.random()
        text = str(rng.choice(known)) if kind < 0.5 else random_yaml(int(rng.integers(10**6)))
        way = rng.random()
        if way < 0.5:
            other = yaml.safe_load(str(rng.choice(known)))
            document = mutated_document(yaml.safe_load(text), other, rng)
            text = yaml.dump(document, sort_keys=False, default_flow_style=bool(rng.random() < 0.3), allow_unicode=True)
        elif way < 0.8:
            text = mutated_text(text, YAML_ALPHABET, rng)
        elif way < 0.9:
            lines = text.splitlines(keepends=True)
            lines.insert(int(rng.integers(len(lines) + 1)), str(rng.choice(np.array(LINES_OF_BAD_YAML, object))))
            text = "".join(lines)
        content = text.encode("utf-8", "surrogatepass")
        yield mutated_bytes(content, rng) if way >= 0.9 else content


def mutated_bytes(content: bytes, rng: np.random.Generator) -> bytes:
    changed = bytearray(content)
    for _ in range(int(rng.integers(1, 4))):
        place = int(rng.integers(len(changed)))
        changed[place : place + int(rng.integers(3))] = bytes(rng.integers(0, 256, int(rng.integers(3)), np.uint8))
    return bytes(changed)


def fuzz_files(folder: Path, count: int, seed: int) -> Watch:
    rng = np.random.default_rng(seed)
    with watch_of_many(LONGEST_FILE_S) as watch:
        file = folder / "broken.yaml"
        for content in itertools.islice(broken_files(rng), count):
            file.write_bytes(content)
            result = watch.call(lambda: load_variant(file), InvalidVariant, content.decode("utf-8", "replace"))
            if isinstance(result, Variant):
                assert rules.legal_moves(result, rules_fen.parse_fen(result, result.start_fen))
    return watch


def test_broken_variant_files_are_invalid_variants(tmp_path: Path) -> None:
    watch = fuzz_files(tmp_path, NUM_FILES, seed=6)
    assert min(watch.calls["accepted"], watch.calls["refused"]) > NUM_FILES / 20


@pytest.mark.slow
def test_many_broken_variant_files_are_invalid_variants(tmp_path: Path) -> None:
    assert fuzz_files(tmp_path, SLOW_FILES, seed=7).calls.total() >= SLOW_FILES


@pytest.mark.parametrize("text", LINES_OF_BAD_YAML, ids=lambda text: repr(text[:20]))
def test_yaml_that_is_no_plain_data_is_an_invalid_variant(tmp_path: Path, text: str) -> None:
    file = tmp_path / "bad.yaml"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    assert isinstance(Watch(LONGEST_FILE_S).call(lambda: load_variant(file), InvalidVariant, text), InvalidVariant)


@pytest.mark.parametrize("name", ODD_NAMES, ids=lambda name: repr(str(name)[:12]))
def test_a_name_that_names_no_variant_is_an_invalid_variant(name: str | Path) -> None:
    result = Watch(LONGEST_FILE_S).call(lambda: load_variant(name), InvalidVariant, str(name))
    assert isinstance(result, InvalidVariant)


@pytest.mark.parametrize("options", [{"a": True}, {"friendly_fire": 1}, {"friendly_fire": None}, ["a"], "x", {1: True}])
def test_odd_options_are_an_invalid_variant(options: Any) -> None:
    with pytest.raises(InvalidVariant, match="option"):
        load_variant("asylum", options)


def test_the_recursion_limit_is_not_reached_by_a_deep_file(tmp_path: Path) -> None:
    file = tmp_path / "deep.yaml"
    for depth in (30, 33, sys.getrecursionlimit(), 20_000):
        for opening, closing in (("[", "]"), ("{a: ", "}"), ("- ", ""), ("? ", "")):
            file.write_text("pieces:\n  " + opening * depth + "1" + closing * depth)
            with pytest.raises(InvalidVariant):
                load_variant(file)
