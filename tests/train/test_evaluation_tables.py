"""The files of learned evaluations: what goes in comes out, nothing else is read, and a game finds its own."""

import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from filelock import FileLock

from envs import Variant, load_variant
from envs.layout import BLACK_CODE
from models.storage import TEMPORARY_PREFIX, CheckpointMismatch, CorruptFile
from train import evaluation_tables
from train.evaluation_tables import (
    EvaluationTable,
    held_table,
    hold_table,
    mirrored,
    read_table,
    table_for,
    table_name,
    write_table,
)
from train.progress import Reporter

QUIET = Reporter(quiet=True)
MAIN = {
    "chess": (),
    "asylum": (),
    "asylum+friendly_fire": ("friendly_fire",),
    "gardner": (),
    "palace_ninja_guards": (),
    "palace_ninja_guards+scepter": ("scepter",),
    "separate_realms": (),
    "separate_realms_2": (),
}


def a_table(variant: Variant, *, symmetric: bool = True, seed: int = 0) -> EvaluationTable:
    rng = np.random.default_rng(seed)
    weights = np.zeros((32, variant.num_squares), np.int32)
    for number in range(len(variant.piece_types)):
        weights[number + 1] = rng.integers(-50, 900, variant.num_squares)
        weights[number + 1 + BLACK_CODE] = -rng.integers(0, 900, variant.num_squares)
    if symmetric:
        weights[BLACK_CODE:] = 0
        weights += mirrored(weights, variant)
    return EvaluationTable(
        weights=weights,
        tempo=12,
        pawn=101.5,
        values={"P": 1.0, "Q": 8.75},
        variant=variant.name,
        options=dict(variant.options),
        rules_hash=variant.rules_hash,
        provenance={"games": 3, "seed": seed},
    )


@pytest.fixture
def chess() -> Variant:
    return load_variant("chess")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No shipped tables, nothing in memory, and a cache of one's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(evaluation_tables, "SHIPPED", tmp_path / "shipped")
    monkeypatch.setattr(evaluation_tables, "_known", {})
    return tmp_path / "cache" / "asylum-zero" / "tables"


@pytest.mark.parametrize("symmetric", [True, False])
def test_a_table_comes_back_from_its_file_as_it_was(tmp_path: Path, chess: Variant, symmetric: bool) -> None:
    table = a_table(chess, symmetric=symmetric)
    path = tmp_path / "one.json"
    write_table(path, table, chess)
    found = read_table(path, chess)
    assert (found.weights == table.weights).all()
    assert found.to_text(chess) == table.to_text(chess) == path.read_text()
    assert ('"p"' in path.read_text()) != symmetric
    assert replace(found, weights=table.weights) != table  # identity: tables are compared by what they hold
    assert {key: getattr(found, key) for key in ("tempo", "pawn", "values", "options", "provenance")} == {
        key: getattr(table, key) for key in ("tempo", "pawn", "values", "options", "provenance")
    }


def test_mirroring_twice_changes_nothing_and_a_mirrored_position_is_worth_the_opposite() -> None:
    variant = load_variant("asylum")
    weights = a_table(variant, symmetric=False).weights
    assert (mirrored(mirrored(weights, variant), variant) == weights).all()
    square, flipped = 3, variant.board.flipped[3]
    assert mirrored(weights, variant)[1 + BLACK_CODE, flipped] == -weights[1, square]


def test_a_table_of_other_rules_is_refused_with_both_names(tmp_path: Path, chess: Variant) -> None:
    path = tmp_path / "chess.json"
    write_table(path, a_table(chess), chess)
    with pytest.raises(CheckpointMismatch, match=r"a table of chess .* expected the rules of asylum"):
        read_table(path, load_variant("asylum"))


Damage = Callable[[dict[str, Any]], object]
DAMAGES: dict[str, tuple[Damage, str]] = {
    "a row too short": (lambda d: d["weights"]["N"].pop(), "weights: N: expected 64 integers, got 63"),
    "a row that is none": (lambda d: d["weights"].update(N=7), "weights: N: expected 64 integers, got int"),
    "a missing row": (lambda d: d["weights"].pop("N"), "weights: expected rows"),
    "an unknown row": (lambda d: d["weights"].update(X=[0] * 64), "weights: expected rows"),
    "a fraction": (lambda d: d["weights"]["N"].__setitem__(0, 1.5), "weights: N: expected an integer"),
    "a truth value": (lambda d: d["weights"]["N"].__setitem__(0, True), "weights: N: expected an integer"),
    "a weight out of range": (lambda d: d["weights"]["N"].__setitem__(0, 10**6), "at most 30000"),
    "a tempo in words": (lambda d: d.update(tempo="much"), "tempo: expected an integer"),
    "a pawn worth nothing": (lambda d: d.update(pawn=0), "pawn: expected 0.01 to"),
    "a pawn worth next to nothing": (lambda d: d.update(pawn=5e-324), "pawn: expected 0.01 to"),
    "a huge pawn": (lambda d: d.update(pawn=10**400), "pawn: expected a number"),
    "a true pawn": (lambda d: d.update(pawn=True), "pawn: expected a number"),
    "a huge value": (lambda d: d["values"].update(Q=10**400), "values: Q: expected a number"),
    "an option that is a number": (lambda d: d.update(options={"x": 1}), "options: expected true or false"),
    "a value of no piece": (lambda d: d["values"].update(Z=1.0), "values: no piece Z in chess"),
    "a value that is none": (lambda d: d["values"].update(Q=None), "values: Q: expected a number"),
    "values as a list": (lambda d: d.update(values=[]), "values: expected dict, got list"),
    "a missing key": (lambda d: d.pop("pawn"), "keys missing or unknown: pawn"),
    "an unknown key": (lambda d: d.update(extra=1), "keys missing or unknown: extra"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_table_is_refused_by_the_place_of_the_damage(tmp_path: Path, chess: Variant, name: str) -> None:
    damage, message = DAMAGES[name]
    document = json.loads(a_table(chess).to_text(chess))
    damage(document)
    path = tmp_path / "damaged.json"
    path.write_text(json.dumps(document))
    with pytest.raises(CorruptFile, match=message) as error:
        read_table(path, chess)
    assert str(path) in str(error.value)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 1', '{"format": 1, "format": 1}', "NaN", "\x00\xff"])
def test_what_is_no_table_at_all_is_refused(tmp_path: Path, chess: Variant, text: str) -> None:
    path = tmp_path / "none.json"
    path.write_text(text)
    with pytest.raises(CorruptFile):
        read_table(path, chess)
    with pytest.raises(CorruptFile, match="missing"):
        read_table(tmp_path / "nowhere.json", chess)


def test_numbers_that_are_read_as_infinity_are_refused(tmp_path: Path, chess: Variant) -> None:
    path = tmp_path / "infinite.json"
    for before, after in (('"seed": 0', '"seed": 1e999'), ('"pawn": 101.5', '"pawn": 1e999')):
        text = a_table(chess).to_text(chess)
        assert before in text
        path.write_text(text.replace(before, after))
        with pytest.raises(CorruptFile, match=r"infinite\.json"):
            read_table(path, chess)


@pytest.mark.parametrize("number", ["true", "1.0"])
def test_a_format_that_is_no_integer_is_refused(tmp_path: Path, chess: Variant, number: str) -> None:
    path = tmp_path / "format.json"
    path.write_text(a_table(chess).to_text(chess).replace('"format": 1', f'"format": {number}'))
    with pytest.raises(CheckpointMismatch, match="expected 1"):
        read_table(path, chess)


def test_a_newer_format_is_refused(tmp_path: Path, chess: Variant) -> None:
    path = tmp_path / "newer.json"
    path.write_text('{"format": 2}')
    with pytest.raises(CheckpointMismatch, match="format 2, expected 1"):
        read_table(path, chess)


class Learn:
    """Stands for learning: counts how often, and gives a table soon."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, variant: Variant, reporter: Reporter) -> EvaluationTable:
        self.times += 1
        time.sleep(0.05)
        return a_table(variant, seed=self.times)


def test_a_shipped_table_is_found_by_its_rules_whatever_the_game_is_called(home: Path, tmp_path: Path) -> None:
    chess, learn = load_variant("chess"), Learn()
    write_table(evaluation_tables.SHIPPED / table_name(chess), a_table(chess, seed=5), chess)
    file = tmp_path / "my_chess.yaml"
    file.write_text("name: My Chess\nextends: chess\n")
    table = table_for(load_variant(file), reporter=QUIET, learn=learn)
    assert (table.variant, table.provenance["seed"], learn.times) == ("chess", 5, 0)
    assert not home.exists()


def test_a_table_is_learned_once_kept_and_found_again(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chess, learn = load_variant("chess"), Learn()
    first = table_for(chess, reporter=QUIET, learn=learn)
    assert table_for(chess, reporter=QUIET, learn=learn) is first
    monkeypatch.setattr(evaluation_tables, "_known", {})
    assert (table_for(chess, reporter=QUIET, learn=learn).weights == first.weights).all()
    assert learn.times == 1
    assert [path.name for path in home.glob("*.json")] == [table_name(chess)]
    assert not list(home.glob(f"{TEMPORARY_PREFIX}*"))


def test_options_and_rules_have_tables_of_their_own(home: Path) -> None:
    learn = Learn()
    for options in ({}, {"friendly_fire": True}):
        table_for(load_variant("asylum", options), reporter=QUIET, learn=learn)
    assert learn.times == 2
    assert len(list(home.glob("asylum*.json"))) == 2


def test_a_damaged_table_in_the_cache_is_named_and_learned_again(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    chess, learn = load_variant("chess"), Learn()
    home.mkdir(parents=True)
    (home / table_name(chess)).write_text("{")
    table = table_for(chess, reporter=Reporter(), learn=learn)
    assert learn.times == 1
    assert "learning it again" in capsys.readouterr().err
    monkeypatch.setattr(evaluation_tables, "_known", {})
    assert (table_for(chess, reporter=QUIET, learn=learn).weights == table.weights).all()


def test_a_damaged_shipped_table_is_an_error(home: Path) -> None:
    chess = load_variant("chess")
    evaluation_tables.SHIPPED.mkdir()
    (evaluation_tables.SHIPPED / table_name(chess)).write_text("{")
    with pytest.raises(CorruptFile):
        table_for(chess, reporter=QUIET, learn=Learn())


def test_a_table_that_cannot_be_kept_is_used_all_the_same(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    learn = Learn()
    assert table_for(load_variant("chess"), reporter=Reporter(), learn=learn).tempo == 12
    assert learn.times == 1
    assert "cannot be kept" in capsys.readouterr().err


def test_an_unfinished_write_is_no_table_and_a_damaged_file_of_another_name_does_not_hide_the_learned_one(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chess, learn = load_variant("chess"), Learn()
    home.mkdir(parents=True)
    (home / f"{TEMPORARY_PREFIX}1-{table_name(chess)}").write_text("{")
    (home / f"Another-{chess.rules_hash[:16]}.json").write_text("{")
    for _ in range(2):
        monkeypatch.setattr(evaluation_tables, "_known", {})
        table_for(chess, reporter=QUIET, learn=learn)
    assert learn.times == 1
    assert read_table(home / table_name(chess), chess).tempo == 12


def test_a_table_in_the_cache_is_read_without_a_lock(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chess, learn = load_variant("chess"), Learn()
    write_table(home / table_name(chess), a_table(chess), chess)
    monkeypatch.setattr(evaluation_tables, "FileLock", None)
    assert table_for(chess, reporter=QUIET, learn=learn).tempo == 12
    assert (learn.times, [path.name for path in home.iterdir()]) == (0, [table_name(chess)])


def test_a_failing_write_or_a_failing_lesson_is_no_reason_to_learn_twice(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    chess, learn = load_variant("chess"), Learn()

    def full(path: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device")

    def failing(variant: Variant, reporter: Reporter) -> EvaluationTable:
        learn.times += 1
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(evaluation_tables, "write_atomically", full)
        assert table_for(chess, reporter=Reporter(), learn=learn).tempo == 12
    assert learn.times == 1
    assert "used now, but cannot be kept" in capsys.readouterr().err
    monkeypatch.setattr(evaluation_tables, "_known", {})
    with pytest.raises(OSError, match="Input/output"):
        table_for(chess, reporter=QUIET, learn=failing)
    assert learn.times == 2


def test_who_waits_for_another_that_learns_says_so(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chess, learn = load_variant("chess"), Learn()
    home.mkdir(parents=True)
    is_held = threading.Event()

    def hold() -> None:
        with FileLock(home / f".{chess.rules_hash[:16]}.lock"):
            is_held.set()
            time.sleep(0.2)

    other = threading.Thread(target=hold)
    other.start()
    is_held.wait()
    table_for(chess, reporter=Reporter(), learn=learn)
    other.join()
    assert "waiting for another process, which is learning the evaluation of chess" in capsys.readouterr().err
    assert learn.times == 1


def test_a_process_that_is_given_a_table_neither_looks_nor_learns(home: Path) -> None:
    chess, learn = load_variant("chess"), Learn()
    assert held_table(chess) is None
    given = a_table(chess, seed=8)
    hold_table(given)
    assert table_for(chess, reporter=QUIET, learn=learn) is held_table(chess) is given
    assert learn.times == 0


def test_of_several_that_need_a_table_at_once_one_learns_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chess, learn = load_variant("chess"), Learn()
    monkeypatch.setattr(evaluation_tables, "remember", lambda known, key, table, most: table)  # as in processes
    threads = [
        threading.Thread(target=table_for, args=(chess,), kwargs={"reporter": QUIET, "learn": learn}) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert learn.times == 1


def shipped(name: str) -> tuple[Variant, EvaluationTable]:
    variant = load_variant(name.split("+", maxsplit=1)[0], dict.fromkeys(MAIN[name], True))
    return variant, read_table(evaluation_tables.SHIPPED / table_name(variant), variant)


@pytest.mark.parametrize("name", MAIN)
def test_a_main_game_ships_a_table_in_which_its_pieces_are_worth_something(name: str) -> None:
    _, table = shipped(name)
    assert table.values["P"] == 1.0
    assert all(value > 0.5 for value in table.values.values())
    assert table.pawn > 100


def test_every_shipped_table_bears_the_name_of_its_rules() -> None:
    for path in evaluation_tables.SHIPPED.glob("*.json"):
        document = json.loads(path.read_text())
        options = [option for option, is_on in document["options"].items() if is_on]
        stem = "+".join([document["variant"], *options])
        assert path.name == f"{stem}-{document['rules_hash'][:16]}.json"
        variant = load_variant(document["variant"], dict.fromkeys(options, True))
        assert read_table(path, variant).rules_hash == variant.rules_hash


def test_shipped_chess_values_are_those_of_chess() -> None:
    _, table = shipped("chess")
    pawn, knight, bishop, rook, queen = (table.values[letter] for letter in "PNBRQ")
    assert pawn < knight
    assert bishop < rook < queen
    assert all(2 <= minor <= 4 for minor in (knight, bishop))
    assert 3.5 <= rook <= 6.5
    assert 6 <= queen <= 11
