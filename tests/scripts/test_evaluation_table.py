"""scripts/evaluation_table.py: the table in use, one learned anew, its file, JSON, refusals."""

import json
from pathlib import Path

from typer.testing import CliRunner, Result

from envs import load_variant
from scripts.evaluation_table import app
from train.evaluation_tables import read_table, table_for

GAMES = "12"


def evaluation_table(*words: str) -> Result:
    return CliRunner().invoke(app, words)


def test_the_table_in_use_is_shown_in_pawns() -> None:
    done = evaluation_table("chess")
    assert done.exit_code == 0, done.stderr
    values = table_for(load_variant("chess")).values
    assert f"{values['Q']:.2f}" in done.stdout
    assert done.stdout.index("queen") < done.stdout.index("rook") < done.stdout.index("pawn")
    assert "king" not in done.stdout


def test_a_game_is_learned_anew_and_saved_with_progress_on_stderr(tmp_path: Path) -> None:
    out = tmp_path / "tables" / "gardner.json"
    done = evaluation_table("gardner", "--games", GAMES, "--seed", "3", "--out", str(out), "--json")
    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout)
    variant = load_variant("gardner")
    table = read_table(out, variant)
    assert told["values"] == table.values
    assert (told["learned"]["games"], told["seeds"], told["rules_hash"]) == (12, {"learning": 3}, variant.rules_hash)
    assert "learning the evaluation of gardner" in done.stderr


def test_the_same_seed_saves_the_same_file(tmp_path: Path) -> None:
    for name in ("one", "other"):
        done = evaluation_table("gardner", "--games", GAMES, "--seed", "3", "--out", str(tmp_path / name))
        assert done.exit_code == 0, done.stderr
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def test_a_games_option_has_a_table_of_its_own(tmp_path: Path) -> None:
    out = tmp_path / "table.json"
    done = evaluation_table("asylum", "--option", "friendly_fire", "--games", "2", "--seed", "1", "--out", str(out))
    assert done.exit_code == 0, done.stderr
    assert "asylum+friendly_fire" in done.stdout
    assert json.loads(out.read_text())["options"] == {"friendly_fire": True}


def test_an_unknown_game_and_no_games_are_usage_errors() -> None:
    assert evaluation_table("chss").exit_code == 2
    assert evaluation_table("chess", "--games", "0").exit_code == 2
