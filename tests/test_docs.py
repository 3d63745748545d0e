"""The docs: generated pages are what the code says, and what `docs/new_game.md` shows happens as it is shown."""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from envs import InvalidVariant, engine_for, list_variants, load_variant
from envs.betza import parse_betza
from envs.perft import perft
from envs.reference import MAIN_GAMES, actions_page, observation_page
from envs.schema import PieceSchema
from envs.schema_reference import documented_paths, inline
from envs.strict_yaml import parse_value
from scripts import check, train
from scripts import perft as perft_script
from scripts.reference import FOLDER, PAGES

ROOT = Path(__file__).resolve().parents[1]
NEW_GAME = (ROOT / "docs" / "new_game.md").read_text(encoding="utf-8")
APPS: dict[str, typer.Typer] = {
    "scripts/check.py": check.app,
    "scripts/perft.py": perft_script.app,
    "scripts/train.py": train.app,
}
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)
LINK = re.compile(r"\]\(([^)#]+)")
CODE = re.compile(r"`([^`]+)`")
LEFT_OUT = "..."


# --- Generated pages ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", PAGES)
def test_the_reference_pages_are_what_the_code_generates(name: str) -> None:
    assert (FOLDER / name).read_text(encoding="utf-8") == PAGES[name](), "run: python scripts/reference.py"


@pytest.mark.parametrize("page", [actions_page, observation_page])
def test_a_page_has_a_section_for_each_main_game_and_a_row_for_every_other(page: Callable[[], str]) -> None:
    lines = page().splitlines()
    sections = [line.removeprefix("## ") for line in lines if line.startswith("## ")]
    library = lines[lines.index("## The library") :]
    assert sections == [*MAIN_GAMES, "The library"]
    rows = [line.split(" | ")[0].removeprefix("| ") for line in library if line.startswith("| ")]
    assert rows[1:] == [name for name in list_variants() if name not in MAIN_GAMES]


def test_the_page_of_games_has_a_row_and_a_section_with_a_start_and_a_difference_for_each_game() -> None:
    head, *sections = PAGES["games.md"]().split("\n## ")
    assert [section.split("\n")[0] for section in sections] == list_variants()
    for section in sections:
        name = section.split("\n")[0]
        assert f"\n| [`{name}`](#{name}) | " in head
        assert f"Start: `{load_variant(name).start_fen}`" in section
        assert "\n- " in section


def test_the_page_of_games_says_what_an_option_takes_away_and_what_sideways_pawns_mean_for_repetition() -> None:
    sections = {text.split("\n")[0]: text for text in PAGES["games.md"]().split("\n## ")}
    scepter = sections["palace_ninja_guards"].partition("Option `scepter`")[2]
    assert "\n- Goes: Bare kings: The two kings alone on the board are a draw.\n" in scepter
    assert "\n- Comes: Scepter: A king that makes a legal move onto d9 or e9 (White)" in scepter
    assert "\n- Repetition: Pawns can step sideways here, so positions from before" in sections["sideways_pawns"]
    assert "Repetition" not in sections["torpedo"]


def test_the_page_of_the_schema_has_a_row_with_a_default_for_every_key_of_a_file() -> None:
    page = PAGES["schema.md"]()
    paths = documented_paths()
    assert len(paths) == len(set(paths))
    assert {"name", "pieces.<letter>.captures_own", "ends.goals[].squares.black", "castling.white.rank"} <= set(paths)
    for path in paths:
        (row,) = re.findall(rf"^\| `{re.escape(path)}` \| (.+) \| (.+) \| (.+) \|$", page, re.MULTILINE)
        assert all(row)


@pytest.mark.parametrize("value", [
    "off", "The Game: a title", "*3/3", "1 2", {"a": [1, "b c"]}, [], True, None, "", "- x", "8/8 w - - 0 1",
])  # fmt: skip
def test_an_example_value_on_one_line_reads_back_as_itself(value: object) -> None:
    assert parse_value(inline(value), "example") == value


@pytest.mark.parametrize(
    "page", ["README.md", "docs/new_game.md", "docs/extend.md", "docs/reference/schema.md", "docs/reference/games.md"]
)
def test_a_link_in_the_docs_leads_to_a_file(page: str) -> None:
    path = ROOT / page
    targets = [link for link in LINK.findall(path.read_text(encoding="utf-8")) if "://" not in link]
    assert targets
    assert not [target for target in targets if not (path.parent / target).exists()]


def test_the_readme_names_built_in_games() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    library = text[text.index("A library of other games") :].split("\n[")[0]
    names = CODE.findall(library)
    assert names
    assert set(names) <= set(list_variants()) - set(MAIN_GAMES)
    assert not [name for name in MAIN_GAMES if f"| `{name}` |" not in text]


def test_the_game_file_of_the_readme_is_a_whole_file(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Write a game")[2]
    file = tmp_path / "little.yaml"
    lines = [line for line in text.partition("\n## ")[0].splitlines() if line.startswith("    ")]
    file.write_text(textwrap.dedent("\n".join(lines)), encoding="utf-8")
    game = load_variant(file)
    assert game.title == "Little Asylum"
    assert any(ray.fires_through for ray in game.piece_types[game.type_by_letter["R"]].rays)


# --- docs/new_game.md ---------------------------------------------------------------------------


def print_of(command: str) -> str:
    """Run a command of the page; return what it prints, or its error."""
    python, script, *words = shlex.split(command)
    assert python == "python"
    done = CliRunner().invoke(APPS[script], words)
    return done.stderr if done.exit_code else done.stdout


def is_shown(shown: str, printed: str) -> bool:
    """Return whether a text is what was printed, with lines left out where it says so."""
    parts = (r"(?:.*\n)*?" if line == LEFT_OUT else re.escape(line) + r"\n" for line in shown.splitlines())
    lines = (f"{line.rstrip()}\n" for line in printed.splitlines())
    return re.fullmatch("".join(parts), "".join(lines)) is not None


def commands_of(block: str) -> Iterator[tuple[str, str]]:
    """Yield each command of a console block with what stands below it."""
    for part in block.removeprefix("$ ").split("\n$ "):
        command, _, shown = part.partition("\n")
        yield command, shown


def write_file(folder: Path, block: str) -> None:
    name = block.splitlines()[0].removeprefix("# ")
    (folder / name).write_text(block, encoding="utf-8")


def files_before(heading: str, folder: Path) -> None:
    """Write the files of the page up to a heading; of several with one name the last remains."""
    for kind, block in BLOCK.findall(NEW_GAME.partition(heading)[0]):
        if kind == "yaml":
            write_file(folder, block)


def table_after(title: str) -> list[list[str]]:
    """Return the cells of the table whose head begins with a title."""
    lines = NEW_GAME[NEW_GAME.index(f"| {title} |") :].split("\n\n")[0].splitlines()[2:]
    return [line.removeprefix("| ").removesuffix(" |").split(" | ") for line in lines]


def in_code(cell: str) -> str:
    fence = 3 if cell.startswith("`` ") else 1
    return cell[fence:-fence]


def test_every_file_command_and_program_of_the_page_does_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "configs").symlink_to(ROOT / "configs")
    monkeypatch.chdir(tmp_path)
    kinds = []
    for kind, block in BLOCK.findall(NEW_GAME):
        kinds.append(kind)
        if kind in ("yaml", "ini"):
            write_file(tmp_path, block)
        elif kind == "python":
            exec(compile(block, "new_game.md", "exec"), {"__name__": "new_game"})
        else:
            assert kind == "console"
            for command, shown in commands_of(block):
                printed = print_of(command)
                assert is_shown(shown, printed), f"{command}\n{printed}"
    assert {"yaml", "ini", "python", "console"} == set(kinds)
    for path in tmp_path.glob("*.yaml"):
        load_variant(path)


def test_an_output_that_differs_from_the_page_is_seen() -> None:
    printed = "one\ntwo  \nthree\nfour\n"
    for shown in ("one\ntwo\nthree\nfour\n", "...\ntwo\n...\n", "one\n...\nfour\n", "...\nthree\nfour\n"):
        assert is_shown(shown, printed)
    for shown in ("one\ntwo\nthree\n", "two\n...\n", "...\none\n", "one\n...\ntwo\nfour\n", "...\nfive\n...\n"):
        assert not is_shown(shown, printed)


@pytest.mark.parametrize("row", table_after("instead of"), ids=lambda row: row[1])
def test_an_error_of_the_page_is_what_the_changed_file_gives(row: list[str], tmp_path: Path) -> None:
    files_before("## 3.", tmp_path)
    right, wrong = in_code(row[0]), in_code(row[1])
    file = tmp_path / "sentinel.yaml"
    text = file.read_text(encoding="utf-8")
    assert text.count(right) == 1
    file.write_text(text.replace(right, wrong), encoding="utf-8")
    with pytest.raises(InvalidVariant) as raised:
        load_variant(file)
    assert str(raised.value) == in_code(row[2])


def test_the_tables_of_the_page_hold_notation_and_keys_that_exist() -> None:
    texts = [text for _, cell in table_after("what you mean") for text in CODE.findall(cell)]
    assert len(texts) >= 20
    assert all(map(parse_betza, texts))
    keys = [in_code(cell).split(": ")[0] for cell, _ in table_after("key of a piece")]
    assert set(keys) == PieceSchema.model_fields.keys() - {"name", "moves"}


def test_the_perft_line_of_the_page_is_counted_right(tmp_path: Path) -> None:
    files_before("## 3.", tmp_path)
    game = engine_for(load_variant(tmp_path / "sentinel.yaml"))
    ((fen, counts),) = re.findall(r"^    (\S+ [wb] .*?) (;D1 .+)$", NEW_GAME, re.MULTILINE)
    for depth, nodes in re.findall(r";D(\d+) (\d+)", counts):
        assert perft(game, int(depth), fen) == int(nodes)
