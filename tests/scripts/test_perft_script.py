"""scripts/perft.py: counts, JSON, per-move counts, errors with their exit codes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from scripts.perft import app

ROOT = Path(__file__).resolve().parents[2]
KIWIPETE = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"


def perft(*words: str) -> Result:
    return CliRunner().invoke(app, words)


def test_the_script_runs_from_any_folder_and_prints_the_count_alone(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "scripts" / "perft.py"), "asylum", "3"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout == "83948\n"
    assert "nodes a second" in done.stderr


def test_json_has_what_is_needed_to_repeat_the_count() -> None:
    document = json.loads(perft("asylum", "2", "--option", "friendly_fire", "--json").stdout)
    assert (document["variant"], document["depth"], document["nodes"]) == ("asylum", 2, 3300)
    assert document["seconds"] > 0
    assert document["options"] == {"friendly_fire": True}
    assert len(document["rules_hash"]) == 64
    assert document["fen"].startswith("rnbmqkmbnr/")
    assert {"python", "numpy", "numba", "asylum-zero"} <= set(document["versions"])


def test_a_position_may_be_given() -> None:
    assert perft("chess", "2", "--fen", KIWIPETE).stdout == "2039\n"
    assert json.loads(perft("chess", "1", "--fen", KIWIPETE, "--json").stdout)["fen"] == KIWIPETE
    assert perft("chess", "0").stdout == "1\n"


def test_divide_lists_the_moves_and_their_sum() -> None:
    lines = perft("chess", "3", "--divide").stdout.splitlines()
    assert lines[0] == "a2a3: 380"
    assert len(lines) == 21
    assert lines[-1] == "total: 8902"
    assert sum(int(line.split(": ")[1]) for line in lines[:-1]) == 8902
    document = json.loads(perft("chess", "2", "--divide", "--json").stdout)
    assert document["divide"]["g1f3"] == 20
    assert document["nodes"] == 400


def test_a_file_works_as_a_name_does(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("name: Mine\nextends: chess\npieces: {n: {moves: NW}}\n")
    document = json.loads(perft(str(file), "1", "--json").stdout)
    assert (document["variant"], document["nodes"]) == ("mine", 20)


@pytest.mark.parametrize("words, code, message", [
    (("ches", "1"), 2, "did you mean 'chess'"),
    (("chess", "1", "--option", "scepter"), 2, "unknown option 'scepter'"),
    (("chess", "1", "--fen", "8/8 w - - 0 1"), 2, "expected 8 rows"),
    (("chess", "x"), 2, "depth"),
    (("chess",), 2, "depth"),
    (("chess", "-1"), 2, "No such option"),
    (("chess", "0", "--divide"), 2, "needs a depth of at least 1"),
])  # fmt: skip
def test_errors_are_lines_on_stderr_with_their_exit_codes(words: tuple[str, ...], code: int, message: str) -> None:
    done = perft(*words)
    assert done.exit_code == code, done.output
    assert message.lower() in " ".join(done.stderr.lower().split())
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
