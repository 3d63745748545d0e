"""Self-play: what is recorded is what was played, the quota holds, and a seed fixes the games."""

import dataclasses

import numpy as np
import pytest

from envs import engine_for, load_variant, piece_counts, read_fen
from models.evaluator import UniformEvaluator
from models.storage import CheckpointMismatch, CorruptFile
from tests.train.search_positions import TableEvaluator
from train.config_sections import SearchConfig, SelfplayConfig
from train.selfplay import Assignment, SelfPlay, SelfPlayStats
from train.starts import odds_start
from train.verification import verify_game

SEARCH = SearchConfig(num_simulations=8, fast_simulations=4, full_search_share=0.5)
SELFPLAY = SelfplayConfig(games_per_worker=8, max_plies=60, sampled_plies=10, odds_share=0.5, random_plies=4)


def play(name: str, *, positions: int, seed: tuple[int, ...] = (3, 0, 0), calls: int = 1):
    selfplay = SelfPlay(engine_for(load_variant(name)), SEARCH, SELFPLAY, seed=seed)
    games, total = [], SelfPlayStats()
    for _ in range(calls):
        ended, stats = selfplay.play(UniformEvaluator(), Assignment(positions // calls, 7, 1))
        games += ended
        total.add(stats)
    return games, total


@pytest.fixture(scope="module")
def gardner_games():
    return play("gardner", positions=1500)


@pytest.mark.parametrize("name", ["asylum", "palace_ninja_guards", "separate_realms_2", "chess"])
def test_every_recorded_game_replays_by_the_rules(name):
    games, _ = play(name, positions=700)
    assert games
    assert [verify_game(engine_for(load_variant(name)), game) for game in games] == [None] * len(games)


def test_the_quota_is_met_and_overshot_by_less_than_a_round(gardner_games):
    games, stats = gardner_games
    assert 1500 <= stats.positions < 1500 + SELFPLAY.games_per_worker
    assert sum(game.num_plies - game.opening_plies for game in games) <= stats.positions
    assert stats.simulations == 8 * stats.full_searches + 4 * (stats.positions - stats.full_searches)
    assert stats.full_searches / stats.positions == pytest.approx(0.5, abs=0.06)


def test_full_searches_leave_a_policy_and_fast_ones_and_openings_leave_none(gardner_games):
    games, _ = gardner_games
    for game in games:
        sizes = np.diff(game.policy_index)
        assert (sizes[: game.opening_plies] == 0).all()
        for ply in np.flatnonzero(sizes):
            span = slice(game.policy_index[ply], game.policy_index[ply + 1])
            assert game.policy_probs[span].sum() == pytest.approx(1, abs=1e-5)
        assert game.model_version == 7
    searched = np.concatenate([np.diff(game.policy_index)[game.opening_plies :] for game in games])
    assert 0.4 < (searched > 0).mean() < 0.6


def test_games_cut_by_the_cap_have_no_result_and_others_have_one(gardner_games):
    games, _ = gardner_games
    cut = [game for game in games if not game.termination]
    assert cut
    assert all(np.isnan(game.white_score) and game.num_plies == SELFPLAY.max_plies for game in cut)
    assert all(game.white_score in (0, 0.5, 1) for game in games if game.termination)


def test_the_starts_are_of_the_configured_kinds(gardner_games):
    games, _ = gardner_games
    kinds = {kind: [game for game in games if game.start_kind == kind] for kind in ("array", "odds", "random")}
    assert all(kinds.values())
    array = load_variant("gardner").start_fen
    assert all(game.start_fen == array and game.opening_plies == 0 for game in kinds["array"])
    assert all(game.start_fen == array and game.opening_plies > 0 for game in kinds["random"])
    assert any(game.start_fen != array for game in kinds["odds"])


def same(first, second):
    return all(
        np.array_equal(a, b, equal_nan=True) if isinstance(a, np.ndarray | float) else a == b
        for a, b in zip(vars(first).values(), vars(second).values(), strict=True)
    )


def test_a_seed_fixes_the_games_however_the_quota_is_cut():
    whole, _ = play("gardner", positions=800)
    again, _ = play("gardner", positions=800)
    assert len(whole) == len(again)
    assert all(map(same, whole, again))
    halves, _ = play("gardner", positions=800, calls=2)
    assert all(same(a, b) for a, b in zip(whole, halves, strict=False))


@pytest.mark.parametrize("other", [(4, 0, 0), (3, 1, 0), (3, 0, 5)])
def test_seeds_workers_and_lives_play_different_games(other):
    first, _ = play("gardner", positions=200)
    second, _ = play("gardner", positions=200, seed=other)
    assert {game.seed for game in first}.isdisjoint(game.seed for game in second)


@pytest.mark.parametrize("name", ["asylum", "chess", "gardner", "palace_ninja_guards", "separate_realms_2"])
def test_odds_starts_are_playable_and_keep_both_kings(name):
    game = engine_for(load_variant(name))
    rng = np.random.default_rng(0)
    rows = np.array([read_fen(game, odds_start(game, rng)) for _ in range(100)])
    counts = piece_counts(game, rows)
    assert (counts[:, [0, 1], list(game.variant.royals)] == 1).all()
    assert len({tuple(row.ravel()) for row in counts}) > 50


def test_stats_add_up():
    total = SelfPlayStats(positions=1, root_values=0.5)
    total.add(SelfPlayStats(positions=2, root_values=0.25))
    assert dataclasses.asdict(total) | {"positions": 3, "root_values": 0.75} == dataclasses.asdict(total)


@pytest.mark.parametrize("policy", ["gumbel", "puct"])
def test_games_are_the_same_with_the_cache_and_without(policy):
    def games(cache_positions: int):
        cfg = SEARCH.model_copy(update={"policy": policy, "cache_positions": cache_positions})
        selfplay = SelfPlay(engine_for(load_variant("gardner")), cfg, SELFPLAY, seed=(3, 0, 0))
        ended, stats = [], SelfPlayStats()
        for version in (1, 2, 3):
            found, more = selfplay.play(TableEvaluator(version), Assignment(500, version, version))
            ended += found
            stats.add(more)
        assert (stats.recalled > 100) == bool(cache_positions)
        return ended, stats.evaluations + stats.recalled

    without, found = games(0), games(1024)
    assert len(without[0]) == len(found[0]) > 10
    assert all(map(same, without[0], found[0]))
    assert without[1] == found[1]


def test_new_weights_empty_the_cache():
    cfg = SEARCH.model_copy(update={"cache_positions": 1024})
    selfplay = SelfPlay(engine_for(load_variant("gardner")), cfg, SELFPLAY, seed=(3, 0, 0))
    selfplay.play(TableEvaluator(), Assignment(100, 1, 1))
    _, same_weights = selfplay.play(TableEvaluator(), Assignment(1, 1, 1))
    selfplay.play(TableEvaluator(), Assignment(100, 1, 1))
    _, other_weights = selfplay.play(TableEvaluator(), Assignment(1, 2, 2))
    assert other_weights.recalled < same_weights.recalled


@pytest.mark.parametrize("source", ["visits", "policy"])
def test_a_low_temperature_plays_the_likeliest_moves(source):
    def first_moves(temperature: float) -> int:
        changes = {"temperature": temperature, "odds_share": 0.0, "random_plies": 0, "sampled_from": source}
        selfplay = SELFPLAY.model_copy(update=changes)
        cfg = SEARCH.model_copy(update={"policy": "puct", "noise_share": 0.0, "num_simulations": 32})
        cfg = cfg.model_copy(update={"fast_simulations": 32})
        games, _ = SelfPlay(engine_for(load_variant("gardner")), cfg, selfplay, seed=(5, 0, 0)).play(
            TableEvaluator(3.0), Assignment(1500, 1, 1)
        )
        return len({tuple(game.actions[:6].tolist()) for game in games})

    assert first_moves(0.01) == 1
    assert first_moves(1.0) > 5


def test_games_under_way_go_on_from_their_bytes_as_if_nothing_had_happened():
    def start() -> SelfPlay:
        return SelfPlay(engine_for(load_variant("gardner")), SEARCH, SELFPLAY, seed=(3, 0, 0))

    through, first = start(), start()
    for selfplay in (through, first):
        selfplay.play(TableEvaluator(1), Assignment(500, 1, 1))
    content = first.lanes()
    second = SelfPlay(engine_for(load_variant("gardner")), SEARCH, SELFPLAY, seed=(9, 9, 9))
    second.restore_lanes(content)
    assert second.lanes() == content == through.lanes()
    games = [selfplay.play(TableEvaluator(2), Assignment(900, 2, 2))[0] for selfplay in (through, second)]
    assert len(games[0]) == len(games[1]) > 10
    assert all(map(same, *games))
    assert through.lanes() == second.lanes()


def test_lanes_that_are_damaged_or_of_another_run_are_refused_and_the_games_go_on():
    selfplay = SelfPlay(engine_for(load_variant("gardner")), SEARCH, SELFPLAY, seed=(3, 0, 0))
    selfplay.play(TableEvaluator(1), Assignment(100, 1, 1))
    content = selfplay.lanes()
    for damaged in (content[:-200], b"", content[:300] + bytes([content[300] ^ 1]) + content[301:]):
        with pytest.raises((CorruptFile, CheckpointMismatch), match="lanes-000"):
            selfplay.restore_lanes(damaged, "lanes-000")
    fewer = SELFPLAY.model_copy(update={"games_per_worker": 4})
    with pytest.raises(CheckpointMismatch, match="8 games, expected 4"):
        SelfPlay(engine_for(load_variant("gardner")), SEARCH, fewer, seed=(1,)).restore_lanes(content)
    shorter = SELFPLAY.model_copy(update={"max_plies": 5, "random_plies": 0})
    with pytest.raises(CheckpointMismatch, match="plies, max_plies is 5"):
        SelfPlay(engine_for(load_variant("gardner")), SEARCH, shorter, seed=(1,)).restore_lanes(content)
    with pytest.raises(CheckpointMismatch, match="another game"):
        SelfPlay(engine_for(load_variant("chess")), SEARCH, SELFPLAY, seed=(1,)).restore_lanes(content)
    assert selfplay.lanes() == content


def test_budgets_grow_with_the_iterations():
    stage = {"iteration": 3, "num_simulations": 12, "fast_simulations": 6}
    cfg = SearchConfig.model_validate({**SEARCH.model_dump(), "stages": [stage]})
    selfplay = SelfPlay(engine_for(load_variant("gardner")), cfg, SELFPLAY, seed=(3, 0, 0))
    for iteration, full, fast in ((1, 8, 4), (2, 8, 4), (3, 12, 6), (4, 12, 6)):
        _, stats = selfplay.play(UniformEvaluator(), Assignment(100, 1, iteration))
        assert stats.simulations == full * stats.full_searches + fast * (stats.positions - stats.full_searches)


def test_a_player_who_has_thought_its_game_lost_for_long_enough_resigns_and_errors_are_measured():
    changes = {"resign_value": 0.15, "resign_moves": 2, "resign_playthrough": 0.4, "max_plies": 200}
    cfg = SELFPLAY.model_copy(update=changes)
    game = engine_for(load_variant("gardner"))
    games, stats = SelfPlay(game, SEARCH, cfg, seed=(3, 0, 0)).play(TableEvaluator(2.0), Assignment(6000, 1, 1))
    resigned = [record for record in games if record.resigned]
    assert len(resigned) >= 3
    for record in resigned:
        assert verify_game(game, record) is None
        side = "wb".index(record.resigned)
        assert record.white_score == side
        mover = np.array([bool(row.view(np.uint8)[8]) for row in record.states]) == bool(side)
        own = record.root_values[mover & (np.arange(record.num_plies) >= record.opening_plies)]
        assert (own[-2:] < -0.15).all()
    assert stats.resignations_checked >= 3
    assert 0 < stats.resignations_wrong < stats.resignations_checked
