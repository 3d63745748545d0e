"""train/report*.py: pages that need nothing else, drawings, what is shown of rules and runs."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from envs import InvalidVariant, load_variant
from envs.move_diagrams import capture_example, move_diagram
from tests.train.report_pages import read_page
from tests.train.stored_run import config, make_run
from train.config import ConfigError
from train.csv_table import csv_text
from train.metrics import LINES_FILE
from train.piece_values.positions import InsufficientData
from train.progress import Reporter
from train.report import Part, Settings, Stopped, Subject, find_subjects, write_report
from train.report_boards import diagram_marks, example_drawing, moves_drawing, start_drawing
from train.report_budget import Budget
from train.report_charts import Line, Panel, draw_panels
from train.report_drawing import CELL, Disc, Drawing, Shape, Stroke, Tile, Words
from train.report_page import Picture, Section, figure, grid, page_html, source_line
from train.report_parts import Parts
from train.report_pooled import trained_values
from train.report_rules import rules_sections
from train.report_training import Run, ladder_section, learning_section, read_run, values_over_training

QUIET = Reporter(quiet=True)
LADDER = {
    "simulations": 8,
    "rungs": [
        {"name": name, "elo": {"estimate": elo, "low": elo - 50, "high": elo + 50}, "matches": 2, "match_games": 8,
         "iteration": iteration, "spent": spent}
        for name, elo, iteration, spent in (
            ("random", 0.0, None, None),
            ("iteration 0", 10.0, 0, {"games": 0, "hours": 0.0, "evaluations": 0}),
            ("iteration 1", 90.0, 1, {"games": 60, "hours": 0.5, "evaluations": 900}),
        )
    ],
}  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return with_history(tmp_path / "runs" / "mine")


def with_history(folder: Path) -> Run:
    """Return a run that has metrics and a ladder, but neither games nor a network."""
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "report").mkdir()
    (folder / "report" / "ladder.json").write_text(json.dumps(LADDER))
    scores = {f"eval/{end}/random": value for end, value in (("score", 0.6), ("score_low", 0.5), ("score_high", 0.7))}
    rows: list[tuple[int, dict[str, float | None]]] = [
        (it, {"train/policy_kl": 1 / it, "train/value_loss": None if it == 2 else 1.0, "selfplay/games": 30,
              "selfplay/positions": 900, "outcome/draw_share": 0.3, **(scores if it > 1 else {})})
        for it in (1, 2, 3)
    ]  # fmt: skip
    return Run(folder, folder.name, config(), load_variant("gardner"), rows)


def page_of(sections: Sequence[Section]) -> str:
    return page_html("A game", "", sections)


def pair_of_charts() -> list[Picture]:
    panel = Panel("score", "iteration", [Line("a", [1, 2], [0.5, float("nan")], [0.4, 0.4], [0.6, 0.7])], level=0.5)
    return [Picture.of_figure(draw_panels([panel]), name, f"Chart {name}") for name in ("one", "two")]


# --- Pages ----------------------------------------------------------------------------------------------------------


def test_a_page_of_everything_needs_nothing_else_and_its_numbers_come_along() -> None:
    rows = csv_text(("piece", "value"), [("N", 3.1), ("a,b", None)])
    charts = pair_of_charts()
    body = "".join(figure(chart, "What it shows", "chart") for chart in charts)
    body += grid(("piece", "value"), [("N", "3.1")]) + source_line("values", rows, "python x --out 'a b'")
    page = read_page(page_of([Section("Piece values", body)]))
    assert page.faults == []
    assert page.tables == {"values.csv": [["piece", "value"], ["N", "3.1"], ["a,b", ""]]}
    assert page.pictures == 2
    assert "python x --out 'a b'" in page.text


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("<p>open", "closes"),
        ('<img src="https://a.b/c.png" alt="x">', "src="),
        ("<p>the value is nan</p>", "'nan'"),
        ('<svg viewBox="0 0 1 1"></svg>', "without a title"),
        ("<p id='a'></p><p id='a'></p>", "twice"),
        ('<a href="#gone">x</a>', "no id gone"),
    ],
)
def test_the_reader_of_pages_sees_faults(body: str, fault: str) -> None:
    assert any(fault in found for found in read_page(page_of([Section("Part", body)])).faults)


def test_words_of_a_game_file_are_text_and_never_html(tmp_path: Path) -> None:
    path = tmp_path / "evil.yaml"
    path.write_text('name: "<script>alert(1)</script>"\nextends: gardner\nreadings: ["<b>bold</b> & more"]\n')
    variant = load_variant(str(path))
    page = read_page(page_html(variant.title, "", rules_sections(variant, "check")))
    assert page.faults == []
    assert "<script>alert(1)</script>" in page.text
    assert "<b>bold</b> & more" in page.text


# --- Drawings -------------------------------------------------------------------------------------------------------


def test_a_drawing_is_the_same_picture_in_svg_and_png() -> None:
    disc, stroke = Disc(0.5, 0.5, 0.3, "#fff", "#000"), Stroke(0, 0, 1, 1, "#b03a48")
    shapes: list[Shape] = [Tile(0, 0, 2, 1, "#efe6d5"), disc, stroke, Words(1.5, 0.5, "<", 0.5, "#000")]
    drawing = Drawing(shapes, 0, 0, 2, 1, 'a "title"')
    svg = drawing.to_svg(scale=0.5)
    assert f'viewBox="0 0 {2 * CELL} {CELL}"' in svg
    assert f'width="{CELL}" height="{CELL // 2}"' in svg
    assert "&lt;</text>" in svg
    assert read_page(page_of([Section("Part", svg)])).faults == []
    assert drawing.to_png().startswith(b"\x89PNG")


def test_white_stands_below_and_light_in_the_array() -> None:
    shapes = start_drawing(load_variant("chess")).shapes
    discs = [shape for shape in shapes if isinstance(shape, Disc)]
    assert len(discs) == 32
    assert {disc.fill for disc in discs if disc.y < 2} == {discs[0].fill} != {disc.fill for disc in discs if disc.y > 6}


@pytest.mark.parametrize("name", ["asylum", "separate_realms", "omega"])
def test_every_cell_of_a_move_diagram_is_drawn(name: str) -> None:
    variant = load_variant(name)
    for number, piece in enumerate(variant.piece_types):
        marks = diagram_marks(variant, number)
        assert marks[0, 0] == piece.letter
        assert sorted(marks.values()) == sorted(move_diagram(variant, number).split())
        drawing = moves_drawing(variant, number)
        assert sum(isinstance(shape, Tile) for shape in drawing.shapes) == len(marks)


# --- Rules ----------------------------------------------------------------------------------------------------------


def test_the_rules_have_every_piece_with_its_picture_and_their_numbers() -> None:
    variant = load_variant("palace_ninja_guards")
    sections = rules_sections(variant, "python scripts/check.py palace_ninja_guards --json")
    page = read_page(page_of(sections))
    assert page.faults == []
    assert {"start.csv", "moves.csv"} <= page.tables.keys()
    assert all(piece.name in page.text for piece in variant.piece_types)
    pictures = {name for section in sections for name in section.pictures}
    assert {f"moves_{piece.letter.lower()}" for piece in variant.piece_types} <= pictures
    assert {row[0] for row in page.tables["moves.csv"][1:]} == {piece.letter for piece in variant.piece_types}
    example = capture_example(variant, variant.type_by_letter["G"])
    assert example is not None
    drawn = {shape.text for shape in example_drawing(variant, example, "guard").shapes if isinstance(shape, Words)}
    assert {str(len(squares)) for squares in example.victims.values() if squares} <= drawn
    assert "example_g" in pictures


# --- Runs -----------------------------------------------------------------------------------------------------------


def test_runs_show_a_line_each_and_the_ladders_that_were_played(run: Run, tmp_path: Path) -> None:
    other = with_history(tmp_path / "runs" / "other")
    (other.path / "report" / "ladder.json").unlink()
    runs = [run, other]
    page = read_page(page_of([learning_section(runs, "python scripts/report.py mine other"), ladder_section(runs)]))
    assert page.faults == []
    assert "mine: 3 iterations, 90 games, 2,700 positions; 0.60 (0.50 to 0.70) against random" in page.text
    assert ["mine", "3", "eval/score/random", "0.6"] in page.tables["learning.csv"]
    assert {row[0] for row in page.tables["learning.csv"][1:]} == {"mine", "other"}
    assert [row[0] for row in page.tables["ladder_1.csv"][1:]] == ["random", "iteration 0", "iteration 1"]
    assert f"python scripts/ladder.py {other.path}" in page.text


@pytest.mark.slow
def test_what_runs_have_stored_is_pooled_and_each_run_is_a_split(tmp_path: Path) -> None:
    make_run(tmp_path / "one", 300)
    (tmp_path / "one" / LINES_FILE).write_text('{"iteration": 2, "metrics": {}}\n')
    shutil.copytree(tmp_path / "one", tmp_path / "other")
    one, other = (read_run(tmp_path / name) for name in ("one", "other"))
    alone = {values.method: values for values in trained_values([one], seed=0, reporter=QUIET)}
    pooled = {values.method: values for values in trained_values([one, other], seed=0, reporter=QUIET)}
    assert alone.keys() == pooled.keys() == {"outcome", "odds", "network"}
    for method, values in pooled.items():
        assert not values.refusal
        assert values.games == 2 * alone[method].games
        assert [split.name for split in values.splits][-2:] == ["one", "other"]
    page = read_page(page_of([values_over_training([one], seed=0, command="python scripts/report.py one")]))
    assert page.faults == []
    assert {row[0] for row in page.tables["values_over_training.csv"][1:]} == {"1"}
    assert "Iterations 2 to 2: no values" in page.text  # all games are of the first


# --- What is reported, and how long it takes ------------------------------------------------------------------------


def test_runs_that_differ_in_their_seeds_alone_are_one_report(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    other, apart = (with_history(run.path.parent / name) for name in ("other", "apart"))
    configs = {"mine": config(seed=5), "other": config(seed=6), "apart": config(iterations=7)}
    runs = {str(one.path): replace(one, config=configs[one.name]) for one in (run, other, apart)}
    monkeypatch.setattr("train.report.read_run", lambda path: runs[str(path)])
    found = find_subjects([str(run.path), "asylum+friendly_fire", str(apart.path), str(other.path)])
    assert [subject.name for subject in found] == ["mine-2-seeds", "asylum+friendly_fire", "apart"]
    assert [len(subject.runs) for subject in found] == [2, 0, 1]
    assert found[1].title == "Asylum Chess with friendly_fire"


def test_runs_of_one_name_are_told_apart_and_one_named_twice_is_refused(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = with_history(run.path.parent / "more" / "mine")
    runs = {str(one.path): one for one in (run, other)}
    monkeypatch.setattr("train.report.read_run", lambda path: runs[str(path)])
    (found,) = find_subjects([*runs])
    assert [one.name for one in found.runs] == [*runs]
    with pytest.raises(ConfigError, match="named twice"):
        find_subjects([str(run.path), str(run.path)])


def test_commands_name_a_run_s_game_with_its_options(run: Run) -> None:
    variant = load_variant("asylum", {"friendly_fire": True})
    subject = Subject("mine", variant, ("a b",), (replace(run, variant=variant, config=config(variant="asylum")),))
    assert subject.game == "asylum+friendly_fire"
    assert "'a b'/mine" not in page_of([ladder_section([replace(run, path=Path("a b/mine"))])])
    assert (
        "scripts/ladder.py 'a b/mine'"
        in read_page(page_of([ladder_section([replace(run, path=Path("a b/mine"))])])).text
    )


def test_what_is_no_game_and_no_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "hopper.yaml").write_text("name: Hopper\nextends: chess\npieces:\n  b: {name: hopper, moves: pR}\n")
    with pytest.raises(InvalidVariant, match=r"hopper.yaml:4: pieces.b.moves: 'pR': hoppers"):
        find_subjects([str(tmp_path / "hopper.yaml")])
    with pytest.raises(ConfigError, match="expected the folder of a run"):
        find_subjects([str(tmp_path)])


def test_a_budget_is_what_is_left_of_the_minutes() -> None:
    now = [0.0]
    budget = Budget(10.0, clock=lambda: now[0])
    assert budget.share(0.5) == pytest.approx(4.8)
    now[0] = 300.0
    assert budget.share(1.0) == pytest.approx(4.6)
    now[0] = 3000.0
    assert budget.share(1.0) == 0


def test_a_stopped_report_has_what_there_is_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subject = Subject("gardner", load_variant("gardner"), ("gardner",))
    stops = [True]

    def refuse() -> list[Section]:
        raise InsufficientData("30 finished games, at least 100 are needed")

    def stop() -> list[Section]:
        sections = [Section("Balance", "<p>half of it</p>")]
        if stops.pop() if stops else False:
            raise Stopped(sections)
        return sections

    parts = [Part("Piece values", refuse), Part("Balance", stop), Part("Sample games", list)]
    monkeypatch.setattr(Parts, "listed", lambda self: list(parts))
    monkeypatch.setattr("train.report.rules_sections", lambda *_: [Section("The board", "", tables={"start": "a,b\n"})])
    with pytest.raises(KeyboardInterrupt):
        write_report(subject, Settings(), tmp_path, command="python scripts/report.py gardner", reporter=QUIET)
    stopped = read_page((tmp_path / "report.html").read_text())
    assert stopped.faults == []
    assert "Stopped before" in stopped.text
    assert "half of it" in stopped.text
    assert "at least 100 are needed" in stopped.text
    path = write_report(subject, Settings(), tmp_path, command="python scripts/report.py gardner", reporter=QUIET)
    whole = read_page(path.read_text())
    assert whole.faults == []
    assert "Stopped" not in whole.text
    assert subject.variant.rules_hash in whole.text
    assert (tmp_path / "start.csv").read_text() == "a,b\n"
