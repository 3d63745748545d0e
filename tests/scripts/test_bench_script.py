"""scripts/bench.py: what it measures is counted right, rounds are fair, peers are run or named."""

import json
import os
from functools import partial

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from envs import boards, engine_for, load_variant
from scripts import bench, bench_env, bench_network, bench_peers, bench_search, bench_selfplay
from scripts.bench_load import (
    NUM_SIMULATIONS,
    ConstantEvaluator,
    Load,
    SearchLoad,
    Team,
    WorkerTask,
    spread_games,
)
from scripts.bench_rounds import Contestant, Cost, Duel, Finding, Settings, ratios, run_rounds, timed, times

QUICK = ("--rounds", "1", "--seconds", "0.01", "--no-fresh")
PEERS = {"OpenSpiel", "python-chess", "PettingZoo", "Fairy-Stockfish"}
CHESS_PERFT_3 = 8902
RUNTIMES = ("default evaluator", "Int8Evaluator", "TorchEvaluator", "eager PyTorch", "eager PyTorch, channels last")


def run(*words: str) -> Result:
    return CliRunner().invoke(bench.app, words)


def test_json_has_every_rate_the_machine_and_versions() -> None:
    document = json.loads(run("env", "--variant", "gardner", "--batch", "8", "--json", *QUICK).stdout)
    assert [measured["name"] for measured in document["measured"]] == [
        "gardner: random play, batch 8",
        "gardner: random play, batch 1024, 1 thread",
        "gardner: random play, batch 1024, 2 threads",
        "gardner: bulk perft",
        "gardner, 16384 boards: legal moves",
        "gardner, 16384 boards: planes",
    ]
    for measured in document["measured"]:
        assert measured["rates"] == [measured["median"]]
        assert measured["median"] > 1000
    assert document["machine"]["cores"] >= 1
    assert "numba" in document["versions"]
    (threads,) = document["ratios"]
    assert (threads["bound"], threads["bar"], threads["met"]) == ("at least", 1.4, threads["median"] >= 1.4)
    assert document["missing_peers"] == {}
    assert document["times"] == document["others"] == []


def test_the_tables_go_to_stdout_and_progress_to_stderr() -> None:
    done = run("env", "--variant", "gardner", "--batch", "1", "--batch", "4", *QUICK)
    assert done.exit_code == 0
    assert "gardner: random play, batch 1 " in done.stdout
    assert "gardner: random play, batch 4 " in done.stdout
    assert ">= 1.4" in done.stdout
    assert "bench" in done.stderr


def test_peers_that_are_here_take_turns_and_the_others_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(bench_env.PERFT_DEPTHS, "chess", 3)
    words = "env --variant chess --batch 1 --batch 256 --peers --json --no-fresh --rounds 2 --seconds 0.01"
    document = json.loads(run(*words.split()).stdout)
    assert set(document["missing_peers"]) == PEERS - set(document["versions"])
    rates = {measured["name"]: measured["rates"] for measured in document["measured"]}
    assert {len(values) for values in rates.values()} == {2}
    assert {duel.own for duel in bench_peers.DUELS} - set(rates) == {
        "asylum: random play, batch 256",
        "asylum: bulk perft",
    }
    for ratio in document["ratios"]:
        own, other = ratio["name"].split(" / ")
        assert own in rates
        assert (ratio["median"] is None) == (other not in rates)
        if other in rates and "batch 256" in own:
            assert ratio["median"] > 1


def test_peers_that_are_missing_are_named_with_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_peers, "find_spec", lambda name: None)
    monkeypatch.setattr(bench_peers.shutil, "which", lambda name, path: None)
    done = run("env", "--variant", "chess", "--batch", "256", "--peers", *QUICK)
    assert done.exit_code == 0
    for name in PEERS:
        assert f"{name} is not here; get it with: " in done.stdout
    assert "apt install fairy-stockfish" in done.stdout
    assert "pip install -c constraints.txt -e '.[bench]'" in done.stdout
    assert "missing" in done.stdout


def test_peers_count_the_same_tree_as_we_do() -> None:
    found = {contestant.name: contestant for contestant in bench_peers.find_peers(0.01, 3).contestants}
    for name in {bench_peers.PYTHON_CHESS_PERFT, bench_peers.FAIRY_STOCKFISH} & set(found):
        nodes, seconds = found[name].sample()
        assert nodes >= CHESS_PERFT_3
        assert nodes % CHESS_PERFT_3 == 0
        assert seconds >= 0.01


def test_a_peer_that_fails_says_why() -> None:
    with pytest.raises(OSError, match=r"(?s)python_chess_peer.py failed.*could not convert"):
        bench_peers.run_program("python_chess_peer.py", "play", "long")


def test_without_a_part_all_are_measured_and_bars_are_where_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    small = partial(bench_network.default_evaluator, cfg=bench_network.SMALL)
    monkeypatch.setattr(bench_selfplay, "default_evaluator", lambda variant, cfg: small(variant))  # saves an export
    document = json.loads(run("--variant", "gardner", "--batch", "4", "--json", *QUICK).stdout)
    names = {measured["name"] for measured in document["measured"]}
    searches = {f"{network}: {load}" for network in ("16x2", "64x5", "64x5, 2 workers") for load in Load}
    assert names == {
        *(f"gardner: random play, batch {batch}" for batch in ("4", "1024, 1 thread", "1024, 2 threads")),
        *("gardner: bulk perft", "gardner, 16384 boards: legal moves", "gardner, 16384 boards: planes"),
        *(f"gardner, {size}, batch 4: {runtime}" for size in ("16x2", "64x5") for runtime in RUNTIMES),
        *(f"gardner, 4 lanes, no network: {policy} search" for policy in ("gumbel", "puct")),
        *(f"gardner, 4 lanes, {search}" for search in searches),
        "gardner, 4 games: self-play as quick.yaml",
        "gardner, alpha-beta to depth 4",
    }
    assert all(measured["median"] > 0 for measured in document["measured"])
    assert sorted(finding["bar"] for finding in document["ratios"] if finding["bar"]) == [1.4]
    assert [finding["bar"] for finding in document["times"]] == [None] * 5
    assert {finding["bound"] for finding in document["times"]} == {None}
    *publishing, export = document["others"][:3]
    *shares, quiescence, move, slowest = document["others"][3:]
    assert all(finding["name"].startswith("gardner, alpha-beta") for finding in (quiescence, move, slowest))
    assert (slowest["bar"], slowest["met"]) == (50, True)
    assert [(found["bar"], found["met"]) for found in publishing] == [(0.5, True)] * 2
    assert export["bar"] is None
    assert all(finding["name"].startswith("gardner, 4 games: self-play as quick.yaml: %") for finding in shares)
    assert all(0 < finding["median"] < 100 for finding in shares)
    assert sum(finding["median"] for finding in shares) == pytest.approx(100)


def test_searches_have_bars_in_64_lanes_of_asylum_only(monkeypatch: pytest.MonkeyPatch) -> None:
    class Idle:
        def __init__(self, *given: object) -> None:
            (self.task, *_) = given

        search = run = sample = close = lambda *given: None

    monkeypatch.setattr(bench_search, "SearchLoad", Idle)
    monkeypatch.setattr(bench_search, "Team", Idle)
    monkeypatch.setattr(bench_search, "exported", lambda variant, cfg: (b"", 0.0))
    monkeypatch.setattr(bench_search, "OnnxEvaluator", Idle)
    plan = bench_search.search_plan(Settings(("asylum", "chess"), (64, 32), 1.0))
    costs = [cost.at_most for cost in plan.costs]
    shares = [duel.at_least for duel in plan.duels]
    assert (costs[:4], set(costs[4:])) == ([8, 8, 16, None], {None})
    assert (shares[:3], set(shares[3:])) == ([None, 0.9, 0.9], {None})


def test_evaluations_have_a_bar_against_eager_pytorch_at_batch_64_of_the_main_games(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bench_network, "DISTINCT_POSITIONS", 64)
    for name in ("default_evaluator", "int8_evaluator", "TorchEvaluator", "_evaluating"):
        monkeypatch.setattr(bench_network, name, lambda *given: None)
    plan = bench_network.network_plan(Settings(("chess", "gardner"), (64, 16), 1.0))
    assert [(duel.own, duel.other, duel.at_least) for duel in plan.duels if duel.at_least] == [
        ("chess, 64x5, batch 64: default evaluator", "chess, 64x5, batch 64: eager PyTorch", 1.3)
    ]
    assert len(plan.duels) == 2 * 2 * 2 * 3


def test_a_worker_that_cannot_start_ends_the_measurement() -> None:
    with pytest.raises(RuntimeError, match="a bench worker ended"):
        Team(WorkerTask("gardner", 2, b"no graph"))


def test_a_worker_that_ends_ends_the_others_and_the_measurement() -> None:
    team = Team(WorkerTask("gardner", 2, bench_network.exported("gardner", bench_network.SMALL)[0]))
    processes = team._processes
    assert team.sample(Load.SEARCH, 0.01)[0] >= 2 * 2 * NUM_SIMULATIONS
    processes[1].kill()
    with pytest.raises(RuntimeError, match="a bench worker ended"):
        team.sample(Load.SEARCH, 0.01)
    assert not any(process.is_alive() for process in processes)
    team.close()


def test_the_evaluator_is_measured_on_the_batches_of_the_searches() -> None:
    seen: list[tuple[np.ndarray, np.ndarray]] = []
    constant = ConstantEvaluator()

    def evaluator(observations: np.ndarray, legal_actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        seen.append((observations.copy(), legal_actions.copy()))
        return constant(observations, legal_actions)

    searches = SearchLoad("gardner", 6, evaluator)
    seen.clear()
    assert searches.run(Load.SEARCH) == 6 * NUM_SIMULATIONS
    searched = seen.copy()
    seen.clear()
    assert searches.run(Load.EVALUATE) == 6 * NUM_SIMULATIONS
    assert len(seen) == len(searched) >= NUM_SIMULATIONS
    for one, other in zip(seen, searched, strict=True):
        np.testing.assert_array_equal(one[0], other[0])
        np.testing.assert_array_equal(one[1], other[1])


def test_the_constant_evaluator_answers_from_the_same_arrays() -> None:
    evaluator = ConstantEvaluator()
    for count, width in ((3, 7), (2, 4), (3, 7)):
        logits, wdl = evaluator(np.zeros((count, 1, 1, 1), np.float32), np.zeros((count, width), np.int32))
        assert (logits.shape, wdl.shape) == ((count, width), (count, 3))
        assert logits.flags.c_contiguous
        assert not logits.any()
        np.testing.assert_allclose(wdl, 1 / 3)
    assert np.shares_memory(logits, evaluator(np.zeros((1, 1, 1, 1), np.float32), np.zeros((1, 2), np.int32))[0])


def test_searched_positions_are_of_all_stages_and_none_is_over() -> None:
    env = spread_games("asylum", 16)
    assert env.plies[0] == 0
    assert len(np.unique(env.plies)) > 8
    assert not env.over.any()


def test_boards_are_measured_once_each() -> None:
    game = engine_for(load_variant("gardner"))
    rows = bench_env.random_rows(game)
    assert len(rows) == len(np.unique(boards(game, rows), axis=0)) == 16384


def test_one_compilation_of_the_step_kernel_serves_two_games() -> None:
    seconds, compilations = bench_env.first_steps(os.environ["NUMBA_CACHE_DIR"])
    assert seconds > 0
    assert compilations == 1


def test_rounds_take_turns_and_a_ratio_is_the_median_over_rounds() -> None:
    order: list[str] = []

    def contestant(name: str, rates: list[int]) -> Contestant:
        def sample() -> tuple[int, float]:
            order.append(name)
            return rates.pop(0), 1.0

        return Contestant(name, "units", sample)

    done: list[int] = []
    rates = run_rounds([contestant("own", [10, 40, 30]), contestant("peer", [10, 10, 10])], 3, done.append)
    assert order == ["own", "peer", "peer", "own", "own", "peer"]
    assert done == [1, 2, 3, 4, 5, 6]
    assert rates == {"own": [10, 40, 30], "peer": [10, 10, 10]}
    duels = [Duel("own", "peer", 4), Duel("own", "nobody", 2), Duel("nobody", "peer", 2)]
    compared, missing = ratios(duels, rates)
    assert (compared.name, compared.values, compared.median, compared.met) == ("own / peer", (1, 4, 3), 3, False)
    assert (missing.name, missing.values, missing.median, missing.met) == ("own / nobody", (), None, None)


def test_a_bar_is_a_least_or_a_most() -> None:
    assert Finding("ratio", (1.0, 4.0, 2.0), 2.0).met is True
    assert Finding("ratio", (1.0, 4.0, 2.0), 2.5).met is False
    assert Finding("seconds", (5.0,), 3.0, at_most=True).met is False
    assert Finding("seconds", (3.0,), 3.0, at_most=True).met is True
    assert Finding("ratio", (1.0,)).met is None


def test_a_cost_is_the_time_of_a_unit_less_that_of_the_same_round() -> None:
    rates = {"search": [100_000.0, 50_000.0], "network": [200_000.0, 100_000.0]}
    alone, added = times([Cost("search", at_most=12), Cost("search", "network", 12)], rates)
    assert (alone.name, alone.values, alone.median, alone.met) == ("microseconds: search", (10, 20), 15, False)
    assert (added.name, added.values, added.met) == ("microseconds: search - network", (5, 10), True)


def test_a_sample_does_its_work_at_least_once_and_until_its_time_is_over() -> None:
    units, seconds = timed(lambda: 7, 0.0)
    assert (units, seconds >= 0) == (7, True)
    units, seconds = timed(lambda: sum(range(100)) * 0 + 1, 0.02)
    assert units > 100
    assert seconds >= 0.02


@pytest.mark.parametrize("words", [
    ("nothing",), ("env", "--rounds", "0"), ("env", "--batch", "0"), ("--x",), ("search", "--peers"),
    ("network", "--no-fresh"),
])  # fmt: skip
def test_a_wrong_command_line_leaves_with_two(words: tuple[str, ...]) -> None:
    assert run(*words).exit_code == 2
