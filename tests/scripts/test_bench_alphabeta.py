"""scripts/bench.py alphabeta: positions are counted as the search counts them, and moves are held against their bar."""

import json

from typer.testing import CliRunner

from scripts import bench
from scripts.bench_alphabeta import MOVE_DEPTH, RATE_DEPTH, SLOWEST_BAR, AlphaBetaLoad


def test_the_document_has_the_rate_quiescence_apart_and_the_time_of_a_move() -> None:
    words = ("alphabeta", "--variant", "gardner", "--rounds", "1", "--seconds", "0.01", "--json")
    document = json.loads(CliRunner().invoke(bench.app, words).stdout)
    (measured,) = document["measured"]
    assert (measured["name"], measured["unit"]) == (f"gardner, alpha-beta to depth {RATE_DEPTH}", "positions entered")
    assert measured["median"] > 10_000
    share, milliseconds, slowest = document["others"]
    assert share["name"].endswith("% of the positions in quiescence")
    assert 0 < share["median"] < 100
    assert milliseconds["name"] == f"gardner, alpha-beta to depth {MOVE_DEPTH}: milliseconds a move"
    assert (slowest["bound"], slowest["bar"]) == ("at most", SLOWEST_BAR)
    assert slowest["median"] >= 1


def test_positions_in_quiescence_are_a_part_of_those_entered() -> None:
    load = AlphaBetaLoad("gardner")
    entered = sum(load.search() for _ in range(5))
    assert entered == load.nodes > load.quiescence_nodes > 0
