"""scripts/bench.py: what it measures is counted right, and rounds are fair."""

import importlib.util
import json

import pytest
from typer.testing import CliRunner, Result

from scripts.bench import Contestant, app, ratios, run_rounds, timed

QUICK = ("--rounds", "1", "--seconds", "0.01")


def bench(*words: str) -> Result:
    return CliRunner().invoke(app, words)


def test_json_has_every_rate_the_machine_and_versions() -> None:
    document = json.loads(bench("env", "--variant", "gardner", "--batch", "8", "--json", *QUICK).stdout)
    names = [measured["name"] for measured in document["measured"]]
    assert names[:2] == ["gardner: random play, batch 8", "gardner: bulk perft 6"]
    assert [name.split(": ")[1] for name in names[2:]] == ["legal moves", "planes"]
    for measured in document["measured"]:
        assert measured["rates"] == [measured["median"]]
        assert measured["median"] > 1000
    assert document["machine"]["cores"] >= 1
    assert "numba" in document["versions"]
    assert document["ratios"] == {}


def test_the_table_goes_to_stdout_and_progress_to_stderr() -> None:
    done = bench("--variant", "gardner", "--batch", "1", "--batch", "4", *QUICK)
    assert done.exit_code == 0
    assert "gardner: random play, batch 1 " in done.stdout
    assert "gardner: random play, batch 4 " in done.stdout
    assert "bench" in done.stderr


@pytest.mark.skipif(importlib.util.find_spec("pyspiel") is None, reason="the extra 'bench' is not installed")
def test_peers_are_measured_in_the_same_rounds_as_what_they_are_compared_with() -> None:
    words = "env --variant chess --batch 64 --peers --json --rounds 2 --seconds 0.01"
    document = json.loads(bench(*words.split()).stdout)
    assert {len(measured["rates"]) for measured in document["measured"]} == {2}
    plain, with_mask = document["ratios"].values()
    assert 1 < plain < with_mask


def test_rounds_take_turns_and_a_ratio_is_the_median_over_rounds() -> None:
    order: list[str] = []

    def contestant(name: str, rates: list[int], baseline_of: str = "") -> Contestant:
        def sample() -> tuple[int, float]:
            order.append(name)
            return rates.pop(0), 1.0

        return Contestant(name, "units", sample, baseline_of)

    entered = [contestant("own", [10, 40, 30]), contestant("peer", [10, 10, 10], "own")]
    done: list[int] = []
    rates = run_rounds(entered, 3, done.append)
    assert order == ["own", "peer", "peer", "own", "own", "peer"]
    assert done == [1, 2, 3, 4, 5, 6]
    assert rates == {"own": [10, 40, 30], "peer": [10, 10, 10]}
    assert ratios(entered, rates) == {"own / peer": 3.0}


def test_a_sample_does_its_work_at_least_once_and_until_its_time_is_over() -> None:
    units, seconds = timed(lambda: 7, 0.0)
    assert (units, seconds >= 0) == (7, True)
    units, seconds = timed(lambda: sum(range(100)) * 0 + 1, 0.02)
    assert units > 100
    assert seconds >= 0.02


@pytest.mark.parametrize("words", [("nothing",), ("env", "--rounds", "0"), ("env", "--batch", "0"), ("--x",)])
def test_a_wrong_command_line_leaves_with_two(words: tuple[str, ...]) -> None:
    assert bench(*words).exit_code == 2
