"""scripts/analyse.py: a table, JSON, and errors with their exit codes."""

import json

import pytest
from typer.testing import CliRunner, Result

from scripts.analyse import app

MATE_IN_TWO = "kbK5/pp6/1P6/8/8/8/8/R7 w - - 0 1"


def analyse(*words: str) -> Result:
    return CliRunner().invoke(app, words)


def test_the_table_shows_the_best_moves_with_what_is_proven_and_says_who_looked() -> None:
    shown = analyse("--variant", "chess", "--fen", MATE_IN_TWO, "--lines", "2").stdout
    assert "a network that knows nothing" in shown
    assert "proven win in 3 plies" in " ".join(shown.split())
    rows = [line.split() for line in shown.splitlines() if line.strip()[:2] in ("a1", "b6", "c8")]
    assert rows[0][0] == "a1a6"
    assert len(rows) == 2


def test_json_has_what_is_needed_to_repeat_the_analysis() -> None:
    document = json.loads(analyse("--variant", "chess", "--fen", MATE_IN_TWO, "--lines", "3", "--json").stdout)
    assert (document["variant"], document["fen"], document["player"]) == ("chess", MATE_IN_TWO, None)
    assert (document["result"], document["plies_to_end"], document["value"]) == ("win", 3, 1.0)
    assert document["simulations"] < 1000
    best = document["lines"][0]
    assert (len(document["lines"]), best["move"], best["pv"][0], len(best["pv"])) == (3, "a1a6", "a1a6", 3)
    assert {"rules_hash", "versions", "options"} <= set(document)


def test_the_budget_is_spent_where_nothing_is_proven() -> None:
    document = json.loads(analyse("--variant", "asylum", "--simulations", "130", "--lines", "99", "--json").stdout)
    assert document["simulations"] == 130 == sum(line["visit_count"] for line in document["lines"])


@pytest.mark.parametrize("words, code, message", [
    ((), 2, "say which one"),
    (("random", "--variant", "chess"), 2, "'random' has no network to analyse with"),
    (("nothing_here", "--variant", "chess"), 2, "expected a run, a checkpoint or a baseline"),
    (("--variant", "chess", "--fen", "8/8 w - - 0 1"), 2, "expected 8 rows"),
    (("--variant", "chess", "--fen", "R5k1/5ppp/8/8/8/8/8/6K1 b - - 0 1"), 1, "the game is over (checkmate)"),
    (("--option", "friendly_fire"), 2, "name the game too"),
    (("--variant", "chess", "--simulations", "0"), 2, "simulations"),
])  # fmt: skip
def test_errors_are_lines_on_stderr_with_their_exit_codes(words: tuple[str, ...], code: int, message: str) -> None:
    done = analyse(*words)
    assert done.exit_code == code, done.output
    assert message in " ".join(done.stderr.split())
    assert done.stdout == ""
