"""scripts/analyse.py: a table, JSON, and errors with their exit codes."""

import json

import pytest
from typer.testing import CliRunner, Result

from envs import VectorEnv, engine_for, load_variant
from models.evaluator import UniformEvaluator
from scripts.analyse import app
from train.analysis import Analysis, AnalysisSettings

MATE_IN_ONE = "6k1/5ppp/8/8/8/8/8/R5K1 w - - 0 1"
MATE_IN_TWO = "kbK5/pp6/1P6/8/8/8/8/R7 w - - 0 1"


def analyse(*words: str) -> Result:
    return CliRunner().invoke(app, words)


def test_the_table_shows_the_best_moves_with_what_is_proven_and_says_who_looked() -> None:
    shown = analyse("--variant", "chess", "--fen", MATE_IN_TWO, "--lines", "2").stdout
    assert "a network that knows nothing" in shown
    assert shown.splitlines()[1:3] == [MATE_IN_TWO, "value +1.000 (network +0.000), proven win in 3 plies"]
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


def test_the_fen_and_one_ply_are_told_as_they_are() -> None:
    shown = analyse("--variant", "chess", "--fen", MATE_IN_ONE).stdout
    assert shown.splitlines()[1:3] == [MATE_IN_ONE, "value +1.000 (network +0.000), proven win in 1 ply"]
    shown = analyse("--variant", "asylum", "--simulations", "1").stdout
    assert shown.splitlines()[1] == VectorEnv("asylum", 1).fen(0)


@pytest.mark.parametrize("batch_size", [16, 1024])
def test_the_display_changes_nothing_of_the_search(batch_size: int) -> None:
    analysis = Analysis(
        engine_for(load_variant("gardner")), UniformEvaluator(), AnalysisSettings(batch_size=batch_size)
    )
    env = VectorEnv("gardner", 1)
    analysis.begin(env.states[0], env.histories[0])
    analysis.run(1500)
    found = analysis.result()
    words = (
        "--variant",
        "gardner",
        "--simulations",
        "1500",
        "--batch-size",
        str(batch_size),
        "--lines",
        "99",
        "--json",
    )
    document = json.loads(analyse(*words).stdout)
    assert (document["value"], document["evaluations"]) == (found.value, found.evaluations)
    assert [line["visit_count"] for line in document["lines"]] == [line.visit_count for line in found.lines]


@pytest.mark.parametrize("words, code, message", [
    ((), 2, "give PLAYER or --variant"),
    (("random", "--variant", "chess"), 2, "'random' has no network to analyse with"),
    (("nothing_here", "--variant", "chess"), 2, "expected a run, a checkpoint or a baseline"),
    (("--variant", "chess", "--fen", "8/8 w - - 0 1"), 2, "expected 8 rows"),
    (("--variant", "chess", "--fen", "R5k1/5ppp/8/8/8/8/8/6K1 b - - 0 1"), 2, "the game is over (checkmate)"),
    (("--option", "friendly_fire"), 2, "name the game too"),
    (("--variant", "chess", "--simulations", "0"), 2, "simulations"),
])  # fmt: skip
def test_errors_are_lines_on_stderr_with_their_exit_codes(words: tuple[str, ...], code: int, message: str) -> None:
    done = analyse(*words)
    assert done.exit_code == code, done.output
    assert message in " ".join(done.stderr.split())
    assert done.stdout == ""
