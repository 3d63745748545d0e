"""scripts/report.py: one page for a game, what is refused, the story of a designer with a new game."""

import time
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from scripts.report import app
from tests.train.report_pages import read_page
from train import report_drawing, report_page, report_parts
from train.piece_values.estimates import MethodValues, PieceEstimate
from train.ratings import Interval

STORY = """
name: Dabbaba Realms
extends: separate_realms
pieces:
  b: {name: dabbaba bishop, moves: mAAcBD}
"""
STORY_MINUTES, LONGEST_MINUTES = 15, 20


def report(*words: str) -> Result:
    return CliRunner().invoke(app, words)


def stand_in(method: str, values: dict[str, float | None]) -> MethodValues:
    """Values as an estimator returns them; None is a refusal."""
    pieces = []
    for letter, value in values.items():
        is_unit = letter == "P"
        interval = Interval(value, value - 0.4 * (not is_unit), value + 0.5 * (not is_unit)) if value else None
        log_odds = Interval(0.5 * value, 0.4 * value, 0.6 * value) if value else None
        pieces.append(PieceEstimate(letter, 100, log_odds, interval, "" if value else "a difference in 3 games"))
    return MethodValues(method, tuple(pieces), 400, 300, 30, basis="stand-in players")


def test_one_command_makes_one_page_with_values_balance_and_games(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [
        stand_in("odds", {"P": 1.0, "N": 2.4, "B": 2.6, "R": 4.2, "Q": 8.0}),
        stand_in("td", {"P": 1.0, "N": 2.0, "B": 2.2, "R": 3.9, "Q": None}),
    ]
    for module in (report_drawing, report_page):
        monkeypatch.setattr(module, "PRINT_DPI", 30)  # drawn sooner
    monkeypatch.setattr(report_parts, "measure_game", lambda *_args, **_kwargs: found)
    done = report("gardner", "--games", "200", "--depth", "1", "--out", str(tmp_path))
    assert done.exit_code == 0, done.stderr
    assert done.stdout.split() == [str(tmp_path / "report.html")]
    page = read_page((tmp_path / "report.html").read_text())
    assert page.faults == []
    assert {"piece_values.csv", "priors.csv", "balance.csv", "balance_games.csv", "games.csv"} <= page.tables.keys()
    assert "queen 8.0 (7.6 to 8.5)" in page.text
    assert "Biased by games cut short: odds 7 %, td 7 %." in page.text
    assert "a difference in 3 games" in page.text
    assert "python scripts/balance.py gardner --games 200 --depth 1 --seed 0" in page.text
    for name, rows in page.tables.items():
        assert (tmp_path / name).read_text().count("\n") == len(rows)
    pictures = {path.name for path in (tmp_path / "figures").iterdir()}
    names = ("start", "moves_k", "piece_values", "balance", "game_1")
    assert {f"{name}.{kind}" for name in names for kind in ("png", "svg")} <= pictures


def test_without_minutes_nothing_is_played(tmp_path: Path) -> None:
    assert report("gardner", "--minutes", "0", "--out", str(tmp_path)).exit_code == 0
    page = read_page((tmp_path / "report.html").read_text())
    assert page.faults == []
    assert page.tables.keys() == {"start.csv", "moves.csv"}
    assert not (tmp_path / "games").exists()


def test_a_rule_that_is_not_supported_is_refused_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "hopper.yaml"
    path.write_text(STORY.replace("mAAcBD", "mAAcBpR").lstrip())
    done = report(str(path), "--out", str(tmp_path / "out"))
    assert done.exit_code == 2
    assert "error: hopper.yaml:4: pieces.b.moves: 'mAAcBpR': hoppers" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_designer_with_a_new_game_has_a_report_within_twenty_minutes_and_no_training(tmp_path: Path) -> None:
    path, out = tmp_path / "dabbaba_realms.yaml", tmp_path / "out"
    path.write_text(STORY)
    started = time.monotonic()
    done = report(str(path), "--minutes", str(STORY_MINUTES), "--out", str(out))
    assert done.exit_code == 0, done.stderr
    assert time.monotonic() - started < LONGEST_MINUTES * 60
    page = read_page((out / "report.html").read_text())
    assert page.faults == []
    rows = page.tables["piece_values.csv"]
    recommended = {row[0]: float(row[5]) for row in rows if row[2] == "recommended" and row[5]}
    assert recommended.keys() == set("QRBNP")
    assert recommended["Q"] > recommended["R"]
    assert {row[2] for row in rows[1:]} == {"recommended", "td", "odds", "handicap"}
    assert "dabbaba bishop" in page.text
    before = {path: path.read_bytes() for path in (out / "games").glob("*.jsonl")}
    started = time.monotonic()
    assert report(str(path), "--minutes", str(STORY_MINUTES), "--out", str(out)).exit_code == 0
    assert time.monotonic() - started < LONGEST_MINUTES * 60 / 4
    assert {path: path.read_bytes() for path in before} == before  # nothing is played twice
