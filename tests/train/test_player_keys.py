"""Keys of players: the same for the same strength under any name, another one as soon as it rests on something else."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from envs import Variant, load_variant
from tests.train.stored_run import make_run
from train import evaluation_tables
from train.evaluation_tables import hold_table, table_for
from train.player_keys import player_keys
from train.players import make_player
from train.plugins import Plugin


@pytest.fixture(scope="module")
def gardner() -> Variant:
    return load_variant("gardner")


def key(text: str, variant: Variant, *, simulations: int = 4, seconds: float | None = None) -> str:
    return player_keys({text: make_player(text, simulations=simulations, seconds=seconds)}, variant)[text]


def test_a_network_is_known_by_weights_and_search_and_not_by_how_its_path_is_spelled(
    gardner: Variant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "runs" / "mine"
    make_run(run, 5)
    monkeypatch.chdir(tmp_path)
    newest = sorted((run / "checkpoints").iterdir())[-1]
    spellings = [str(run), f"{run}{os.sep}", "runs/mine", "./runs/../runs/mine", str(newest)]
    assert len({key(text, gardner) for text in spellings}) == 1
    others = [f"policy:{run}", f"untrained:{run}", f"int8:{run}"]
    assert len({key(text, gardner) for text in [str(run), *others]}) == 3  # it has learned nothing
    assert key(str(run), gardner, simulations=8) != key(str(run), gardner) != key(str(run), gardner, seconds=0.1)
    made = make_player(str(run), simulations=4)
    changed = replace(made, weights_hash="b" * 64)
    assert player_keys({"a": made}, gardner) == {"a": key(str(run), gardner)} != player_keys({"a": changed}, gardner)


def test_alphabeta_is_another_player_with_another_table(gardner: Variant, monkeypatch: pytest.MonkeyPatch) -> None:
    before = key("alphabeta:2", gardner)
    table = table_for(gardner)
    monkeypatch.setattr(evaluation_tables, "_known", {})
    hold_table(replace(table, tempo=table.tempo + 1))
    assert key("alphabeta:2", gardner) != before
    weights = table.weights.copy()
    weights[1, 0] += 1
    hold_table(replace(table, weights=weights))
    assert key("alphabeta:2", gardner) != before
    hold_table(table)
    assert key("alphabeta:2", gardner) == before != key("alphabeta:1", gardner)


def test_a_plugin_is_another_player_with_another_source_and_a_built_in_one_is_not(gardner: Variant) -> None:
    players = {text: make_player("random", simulations=1) for text in ("clumsy", "random")}
    plugins = [Plugin("clumsy.py", source, ("evaluation.opponent=clumsy",)) for source in (b"1", b"2")]
    first, second = (player_keys(players, gardner, [plugin]) for plugin in plugins)
    assert first["clumsy"] != second["clumsy"]
    assert first["random"] == second["random"] == "random"
