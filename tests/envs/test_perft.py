"""Perft files: every count by the kernels, the smaller ones by the slow rules too."""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from envs import engine_for, layout, list_variants, load_variant, rules
from envs.perft import divide, perft
from envs.rules import State, legal_moves, make
from envs.rules_fen import parse_fen
from envs.variant import Variant

FOLDER = Path(__file__).parent.parent / "perft"
MAX_NODES_OF_RULES = 20_000
MAX_NODES_OF_KERNELS = 13_000_000
MAX_NODES_OF_RULES_WHEN_SLOW = 150_000
MAX_NODES_WITHOUT_JIT = 100


@dataclass(frozen=True)
class Count:
    """One count of a perft file."""

    game: str
    options: tuple[str, ...]
    fen: str
    depth: int
    nodes: int

    def load(self) -> Variant:
        return load_variant(self.game, dict.fromkeys(self.options, True))

    def __str__(self) -> str:
        return f"{'+'.join((self.game, *self.options))} {self.fen.split(' ')[0]} depth {self.depth}"


def read_counts(path: Path) -> Iterator[Count]:
    for line in path.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        position, *counts = line.split(" ;")
        options: tuple[str, ...] = ()
        if position.startswith("["):
            inside, position = position[1:].split("] ")
            options = tuple(inside.split(","))
        for count in counts:
            depth, nodes = count.split(" ")
            yield Count(path.stem, options, position, int(depth.removeprefix("D")), int(nodes))


COUNTS = [count for path in sorted(FOLDER.glob("*.perft")) for count in read_counts(path)]


def rules_perft(variant: Variant, state: State, depth: int) -> int:
    moves = legal_moves(variant, state)
    if depth == 1:
        return len(moves)
    return sum(rules_perft(variant, make(variant, state, move), depth - 1) for move in moves)


def up_to(limit: int, above: int = 0) -> list[Count]:
    return [count for count in COUNTS if above < count.nodes <= limit]


@pytest.mark.parametrize("count", up_to(MAX_NODES_OF_RULES), ids=str)
def test_the_rules_count_what_the_file_says(count: Count) -> None:
    variant = count.load()
    assert rules_perft(variant, parse_fen(variant, count.fen), count.depth) == count.nodes


@pytest.mark.parametrize(
    "count",
    [
        pytest.param(count, id=str(count), marks=[pytest.mark.nojit] if count.nodes <= MAX_NODES_WITHOUT_JIT else [])
        for count in up_to(MAX_NODES_OF_KERNELS)
    ],
)
def test_the_kernels_count_what_the_file_says(count: Count) -> None:
    assert perft(engine_for(count.load()), count.depth, count.fen) == count.nodes


@pytest.mark.slow
@pytest.mark.parametrize("count", up_to(MAX_NODES_OF_RULES_WHEN_SLOW, MAX_NODES_OF_RULES), ids=str)
def test_the_rules_count_what_the_file_says_deeper(count: Count) -> None:
    variant = count.load()
    assert rules_perft(variant, parse_fen(variant, count.fen), count.depth) == count.nodes


@pytest.mark.slow
@pytest.mark.parametrize("count", up_to(1 << 62, MAX_NODES_OF_KERNELS), ids=str)
def test_the_kernels_count_what_the_file_says_deeper(count: Count) -> None:
    assert perft(engine_for(count.load()), count.depth, count.fen) == count.nodes


@pytest.mark.parametrize("game", list_variants())
def test_each_game_has_a_perft_file_with_each_option_and_its_start(game: str) -> None:
    variant = load_variant(game)
    positions = {(count.options, count.fen) for count in COUNTS if count.game == game}
    assert ((), variant.start_fen) in positions
    for option in variant.options:
        assert any(options == (option,) for options, _ in positions)


@pytest.mark.parametrize("game", list_variants())
def test_divide_adds_up_to_perft_and_depth_zero_is_one(game: str) -> None:
    engine = engine_for(load_variant(game))
    assert perft(engine, 0) == 1
    assert sum(divide(engine, 3).values()) == perft(engine, 3)


def test_a_fault_in_the_rules_or_in_the_tables_changes_the_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    variant = load_variant("asylum")
    game = engine_for(variant)
    faulty = dataclasses.replace(game, tables=game.tables.copy())
    faulty.tables[layout.T_ROYAL] += 1  # the queen is royal
    monkeypatch.setattr(rules, "squares_passed", lambda variant, state, move: ())
    counts = [count for count in up_to(MAX_NODES_OF_RULES) if count.game == "asylum" and not count.options]
    states = [parse_fen(variant, count.fen) for count in counts]
    assert any(rules_perft(variant, state, c.depth) != c.nodes for state, c in zip(states, counts) if c.nodes < 5000)
    assert perft(faulty, 3) != perft(game, 3)


@pytest.mark.parametrize("depth", [-1, 61])
def test_perft_refuses_a_depth_out_of_range(depth: int) -> None:
    with pytest.raises(ValueError, match="depth"):
        perft(engine_for(load_variant("gardner")), depth)
