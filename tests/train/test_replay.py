"""The replay window: what it holds, what is drawn from it."""

import dataclasses
import math
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import envs
from envs.reflection import Reflection
from models.storage import CorruptFile
from tests.train.played_games import GAME, VARIANT, games_of_every_end, play_game
from tests.train.stored_run import random_games
from train.config_sections import ReplayConfig
from train.replay import HOLE, Batch, ReplayBuffer, piece_maps, value_as_wdl, window_rows
from train.shards import GameRecord, ShardInfo, write_shard
from train.stored_rows import SLACK, Column
from train.verification import hold_out


@pytest.fixture(scope="module")
def games() -> list[GameRecord]:
    return games_of_every_end()


def make_buffer(folder: Path, games: list[GameRecord], **settings: float) -> tuple[ReplayBuffer, ShardInfo]:
    """Return a buffer of games, none reflected unless asked for, and their shard in a folder of its own."""
    settings = {"mirror": False, **settings}
    folder = folder / str(len(list(folder.iterdir())))
    others = {name: settings.pop(name) for name in ("outcome_weight", "future_plies") if name in settings}
    buffer = ReplayBuffer(GAME, ReplayConfig(**settings), **others)
    info = write_shard(folder, "games", games, GAME)
    buffer.add(folder, info)
    return buffer, info


def board_key(observation: np.ndarray) -> bytes:
    return observation.tobytes()


# The window


def test_the_window_keeps_everything_up_to_its_base_and_then_grows_as_documented():
    cfg = ReplayConfig(window_base=1000, alpha=0.75, beta=0.4)
    assert [window_rows(total, cfg) for total in (0, 1, 999, 1000)] == [0, 1, 999, 1000]
    for total in (2000, 10_000, 1_000_000):
        assert window_rows(total, cfg) == int(1000 * (1 + 0.4 * ((total / 1000) ** 0.75 - 1) / 0.75))
    sizes = [window_rows(total, cfg) for total in range(1, 20_000, 7)]
    assert sizes == sorted(sizes)
    assert window_rows(2000, cfg) < 2000


def test_old_rows_leave_the_window_and_are_never_drawn_again(tmp_path, games):
    cfg = ReplayConfig(window_base=60, mirror=False)
    buffer = ReplayBuffer(GAME, cfg)
    for number, record in enumerate(games):
        buffer.add(tmp_path, write_shard(tmp_path, str(number), [record], GAME))
        assert buffer.num_rows == window_rows(buffer.total_rows, cfg)
    rows = [(game.states[game.opening_plies :], np.diff(game.policy_index)[game.opening_plies :]) for game in games]
    states = np.concatenate([states for states, _ in rows])
    spans = np.concatenate([spans for _, spans in rows])
    assert buffer.total_rows == len(states) > 4 * buffer.num_rows
    assert buffer.num_policy_rows == (spans[-buffer.num_rows :] > 0).sum()
    kept = {board_key(planes) for planes in envs.observe(GAME, states[-buffer.num_rows :])}
    drawn = {board_key(planes) for planes in buffer.sample(np.random.default_rng(0), 20_000).observations}
    assert drawn == kept


def test_restoring_reads_only_what_is_left_and_draws_the_same(tmp_path, games):
    cfg = ReplayConfig(window_base=60, mirror=False)
    buffer, restored = (ReplayBuffer(GAME, cfg, future_plies=3) for _ in range(2))
    infos = [write_shard(tmp_path, str(number), [record], GAME) for number, record in enumerate(games)]
    for info in infos:
        buffer.add(tmp_path, info)
    (tmp_path / infos[0].name).unlink()
    restored.restore(tmp_path, infos)
    assert (restored.total_rows, restored.num_rows) == (buffer.total_rows, buffer.num_rows)
    batches = [one.sample(np.random.default_rng(1), 64) for one in (buffer, restored)]
    for field in dataclasses.fields(batches[0]):
        np.testing.assert_array_equal(*(getattr(batch, field.name) for batch in batches))


def test_a_shard_that_is_refused_leaves_the_window_as_it_was(tmp_path, games):
    buffer, info = make_buffer(tmp_path, games[:4])
    before = buffer.num_rows, buffer.total_rows
    with pytest.raises(CorruptFile):
        buffer.add(tmp_path / "0", dataclasses.replace(info, sha256="0" * 64))
    with pytest.raises(CorruptFile, match="the index says num_rows"):
        buffer.add(tmp_path / "0", dataclasses.replace(info, num_rows=info.num_rows + 1))
    assert (buffer.num_rows, buffer.total_rows) == before


def test_an_empty_window_refuses_to_be_drawn_from():
    with pytest.raises(ValueError, match="no rows to train on"):
        ReplayBuffer(GAME, ReplayConfig()).sample(np.random.default_rng(0), 4)


def stored_one_by_one(folder: Path, games: list[GameRecord], share: float) -> list[ShardInfo]:
    """Store each game as a shard, a share of them held out."""
    records = hold_out(games, share)
    return [write_shard(folder, f"{number:03d}", [record], GAME) for number, record in enumerate(records)]


def same_window(one: ReplayBuffer, other: ReplayBuffer) -> None:
    """Fail unless two buffers hold and draw the same."""
    sizes = [
        (buffer.num_rows, buffer.num_policy_rows, buffer.total_rows, buffer.num_held_out_rows, buffer.num_bytes)
        for buffer in (one, other)
    ]
    assert sizes[0] == sizes[1]
    pairs = list(zip(one.held_out_batches(50), other.held_out_batches(50), strict=True))
    pairs.append((one.sample(np.random.default_rng(1), 64), other.sample(np.random.default_rng(1), 64)))
    for first, second in pairs:
        for field in dataclasses.fields(Batch):
            np.testing.assert_array_equal(getattr(first, field.name), getattr(second, field.name))


@pytest.mark.parametrize("kilobytes, window_base", [(12, 10**6), (40, 10**6), (40, 200), (4000, 60), (4000, 10**6)])
def test_a_window_keeps_to_its_memory_and_is_restored_alike_from_the_shards_that_fit(
    tmp_path, games, monkeypatch, kilobytes, window_base
):
    monkeypatch.setattr("train.replay.MEGABYTE", kilobytes << 10)
    cfg = ReplayConfig(window_base=window_base, max_memory_mb=1, held_out_rows=90)
    buffer = ReplayBuffer(GAME, cfg, future_plies=3)
    infos = stored_one_by_one(tmp_path, games, 0.3)
    for number, info in enumerate(infos):
        buffer.add(tmp_path, info)
        assert buffer.num_rows <= window_rows(buffer.total_rows, cfg)
        assert buffer._window.num_bytes * (SLACK + 1) <= (kilobytes << 10) * SLACK
        if number % 8 == 7:
            restored = ReplayBuffer(GAME, cfg, future_plies=3)
            restored.restore(tmp_path, infos[: number + 1])
            same_window(buffer, restored)
    assert (buffer.num_rows == min(buffer.total_rows, window_rows(buffer.total_rows, cfg))) == (kilobytes == 4000)
    needed = list(range(len(infos)))
    while sum(info.num_rows for info in infos[needed[1] :]) >= buffer.num_rows:
        needed.pop(0)
    for info in infos[: needed[0]]:
        (tmp_path / info.name).unlink()
    restored = ReplayBuffer(GAME, cfg, future_plies=3)
    restored.restore(tmp_path, infos)
    same_window(buffer, restored)


def test_a_full_window_neither_grows_nor_is_ever_copied_whole():
    column, rows, new = Column(np.float64, (16,)), 20_000, 700
    held = 8 * 16 * (rows + new)
    tracemalloc.start()
    try:
        for number in range(120):
            values = np.arange(number, number + new * 16, dtype=np.float64).reshape(new, 16)
            column.append(values)
            column.drop(max(0, len(column) - rows))
        peak = tracemalloc.get_traced_memory()[1]
        expected = np.concatenate([np.arange(n, n + new * 16.0).reshape(new, 16) for n in range(120)])[-rows:]
    finally:
        tracemalloc.stop()
    np.testing.assert_array_equal(column.view, expected)
    assert peak < held * (1 + 1 / SLACK) + 8 * 16 * (4096 + 2 * new) + 10_000


# Held-out games


def test_held_out_games_never_train_and_are_given_in_order_newest_at_most(tmp_path, games):
    records = hold_out(games, 0.3)
    apart = [record for record in records if record.held_out]
    assert 3 <= len(apart) <= 12
    buffer, info = make_buffer(tmp_path, records)
    rows = np.concatenate([record.states[record.opening_plies :] for record in apart])
    assert info.num_held_out_rows == buffer.num_held_out_rows == len(rows)
    assert buffer.total_rows == buffer.num_rows == info.num_rows
    assert info.num_rows + len(rows) == sum(record.num_plies - record.opening_plies for record in games)
    batches = buffer.held_out_batches(64)
    assert [len(batch.has_policy) for batch in batches[:-1]] == [64] * (len(batches) - 1)
    np.testing.assert_array_equal(np.concatenate([batch.observations for batch in batches]), envs.observe(GAME, rows))
    drawn = {board_key(planes) for planes in buffer.sample(np.random.default_rng(0), 20_000).observations}
    trained = np.concatenate([one.states[one.opening_plies :] for one in records if not one.held_out])
    may_be_drawn = {board_key(planes) for planes in envs.observe(GAME, trained)}
    assert drawn <= may_be_drawn
    assert len({board_key(planes) for planes in envs.observe(GAME, rows)} - may_be_drawn) > 50
    few, _ = make_buffer(tmp_path, records, held_out_rows=10)
    np.testing.assert_array_equal(few.held_out_batches(64)[0].observations, envs.observe(GAME, rows[-10:]))


def test_no_game_is_held_out_of_a_share_of_0_and_a_games_seed_alone_decides(tmp_path, games):
    buffer, _ = make_buffer(tmp_path, hold_out(games, 0.0))
    assert buffer.held_out_batches(64) == []
    seeds = [dataclasses.replace(games[0], seed=seed) for seed in range(4000)]
    chosen = [record.held_out for record in hold_out(seeds, 0.05)]
    assert 140 < sum(chosen) < 260
    assert chosen == [hold_out([record], 0.05)[0].held_out for record in seeds]
    more = [record.held_out for record in hold_out(seeds, 0.2)]
    assert all(second >= first for first, second in zip(chosen, more))


# Reflection


def sampled_twice(folder: Path, games: list[GameRecord], size: int) -> tuple[Batch, Batch]:
    """Return a batch and the same one with its rows reflected by chance."""
    plain, _ = make_buffer(folder, games, future_plies=3)
    mirrored, _ = make_buffer(folder, games, future_plies=3, mirror=True)
    assert mirrored.reflects
    assert not plain.reflects
    return plain.sample(np.random.default_rng(7), size), mirrored.sample(np.random.default_rng(7), size)


def laid_out(batch: Batch, row: int, images: np.ndarray) -> dict[int, float]:
    """Return the policy target of a row by action, each replaced by its image."""
    legal = batch.legal_actions[row]
    pairs = zip(legal[legal >= 0], batch.policy_target[row], strict=False)
    return {int(images[action]): round(float(share), 5) for action, share in pairs}


def test_every_other_row_is_reflected_with_its_policy_moves_and_future(tmp_path, games):
    plain, mirrored = sampled_twice(tmp_path, games, 400)
    reflection = Reflection.of(GAME)
    assert reflection is not None
    same = np.arange(GAME.num_actions)
    reflected = 0
    for row in range(400):
        own, other = plain.observations[row], mirrored.observations[row]
        is_reflected = not np.array_equal(own, other)
        reflected += is_reflected
        np.testing.assert_array_equal(other, own[:, :, ::-1] if is_reflected else own)
        images = reflection.actions if is_reflected else same
        assert laid_out(mirrored, row, same) == laid_out(plain, row, images)
        assert plain.future_pieces is not None
        assert mirrored.future_pieces is not None
        future = plain.future_pieces[row]
        np.testing.assert_array_equal(mirrored.future_pieces[row], future[:, ::-1] if is_reflected else future)
    assert 160 < reflected < 240
    for name in ("has_policy", "wdl_target", "moves_left"):
        np.testing.assert_array_equal(getattr(plain, name), getattr(mirrored, name))


def test_a_reflection_that_forgets_the_policies_is_refused(tmp_path, games):
    buffer, _ = make_buffer(tmp_path, games, mirror=True)
    assert buffer._reflection is not None
    buffer._reflection = dataclasses.replace(buffer._reflection, actions=np.arange(GAME.num_actions, dtype=np.int32))
    with pytest.raises(CorruptFile, match="not legal"):
        buffer.sample(np.random.default_rng(0), 256)


def test_rows_with_castling_rights_of_chess_are_drawn_as_they_are(tmp_path):
    game = envs.engine_for(envs.load_variant("chess"))
    records = random_games(game, 12, seed=1, max_plies=120)
    info = write_shard(tmp_path, "a", records, game)
    batches = []
    for mirror in (False, True):
        buffer = ReplayBuffer(game, ReplayConfig(mirror=mirror))
        buffer.add(tmp_path, info)
        batches.append(buffer.sample(np.random.default_rng(0), 600).observations)
    first = 2 * len(game.variant.piece_types)
    has_rights = batches[0][:, first : first + 4].any(axis=(1, 2, 3))
    is_reflected = (batches[0] != batches[1]).any(axis=(1, 2, 3))
    assert not (has_rights & is_reflected).any()
    assert 0.3 < is_reflected[~has_rights].mean() < 0.7
    assert has_rights.sum() > 50


# Batches


def test_openings_are_never_drawn_and_every_other_ply_is(tmp_path):
    record = play_game(3, opening_plies=9)
    buffer, _ = make_buffer(tmp_path, [record])
    batch = buffer.sample(np.random.default_rng(0), 4000)
    planes = envs.observe(GAME, record.states)
    drawn = {board_key(row) for row in batch.observations}
    assert drawn == {board_key(row) for row in planes[9:]}


def lookup(games: list[GameRecord]) -> dict[bytes, list[tuple[GameRecord, int]]]:
    """Return the plies that each observation may stem from."""
    found: dict[bytes, list[tuple[GameRecord, int]]] = {}
    for record in games:
        for ply, planes in enumerate(envs.observe(GAME, record.states)):
            found.setdefault(board_key(planes), []).append((record, ply))
    return {key: plies for key, plies in found.items() if len(plies) == 1}


def test_policy_targets_lie_along_the_legal_actions_and_fast_rows_have_none(tmp_path, games):
    buffer, _ = make_buffer(tmp_path, games)
    batch = buffer.sample(np.random.default_rng(0), 500)
    origin = lookup(games)
    checked = 0
    for row, planes in enumerate(batch.observations):
        for record, ply in origin.get(board_key(planes), []):
            span = slice(*record.policy_index[ply : ply + 2])
            stored = dict(zip(record.policy_actions[span].tolist(), record.policy_probs[span].tolist()))
            laid = {
                int(action): float(share)
                for action, share in zip(batch.legal_actions[row], batch.policy_target[row])
                if share > 0
            }
            assert laid == pytest.approx(stored)
            assert batch.has_policy[row] == bool(stored)
            checked += 1
    assert checked > 300
    np.testing.assert_allclose(batch.policy_target.sum(axis=1), batch.has_policy, atol=1e-5)
    assert (batch.policy_target[batch.legal_actions < 0] == 0).all()


def test_legal_actions_of_a_batch_are_the_rules_own(tmp_path, games):
    buffer, _ = make_buffer(tmp_path, games)
    batch = buffer.sample(np.random.default_rng(0), 300)
    origin = lookup(games)
    for row, planes in enumerate(batch.observations):
        for record, ply in origin.get(board_key(planes), []):
            legal, counts = envs.legal_actions(GAME, record.states[ply : ply + 1])
            mine = batch.legal_actions[row]
            assert sorted(mine[mine >= 0]) == sorted(legal[0, : counts[0]])


def test_a_share_of_each_batch_has_policies_and_steps_follow_from_it(tmp_path, games):
    buffer, _ = make_buffer(tmp_path, games)
    batch = buffer.sample(np.random.default_rng(0), 200)
    assert batch.has_policy.sum() == round(0.75 * 200)
    assert buffer.steps_for(3000, passes=4.0, batch_size=200) == math.ceil(4 * 3000 / 150)
    other, _ = make_buffer(tmp_path, games, policy_share=0.3)
    assert other.sample(np.random.default_rng(0), 200).has_policy.sum() == 60
    assert other.steps_for(3000, passes=4.0, batch_size=200) == math.ceil(4 * 3000 / 60)


def test_without_fast_rows_every_row_of_a_batch_has_a_policy(tmp_path, games):
    record = games[0]
    plies = record.num_plies
    full = dataclasses.replace(
        record,
        policy_index=np.arange(plies + 1, dtype=np.int64),
        policy_actions=record.actions,
        policy_probs=np.ones(plies, dtype=np.float32),
    )
    buffer, _ = make_buffer(tmp_path, [full])
    assert buffer.sample(np.random.default_rng(0), 50).has_policy.all()
    assert buffer.steps_for(100, passes=2.0, batch_size=50) == 4


def expected_wdl(record: GameRecord, ply: int, weight: float) -> np.ndarray:
    """Say the value target again in the plainest way."""
    chance = (1 + float(record.root_values[ply])) / 2
    root = np.array([chance**2, 2 * chance * (1 - chance), (1 - chance) ** 2])
    if record.termination == 0:
        return root
    white_moves = ply % 2 == 0
    own_score = record.white_score if white_moves else 1 - record.white_score
    result = {1.0: [1, 0, 0], 0.5: [0, 1, 0], 0.0: [0, 0, 1]}[own_score]
    return weight * np.array(result) + (1 - weight) * root


@pytest.mark.parametrize("weight", [0.5, 1.0, 0.0])
def test_value_targets_mix_result_and_root_value_for_the_mover(tmp_path, games, weight):
    buffer, _ = make_buffer(tmp_path, games, outcome_weight=weight)
    batch = buffer.sample(np.random.default_rng(0), 500)
    origin = lookup(games)
    kinds = set()
    for row, planes in enumerate(batch.observations):
        for record, ply in origin.get(board_key(planes), []):
            np.testing.assert_allclose(batch.wdl_target[row], expected_wdl(record, ply, weight), atol=1e-5)
            kinds.add((record.white_score if record.termination else None, ply % 2))
    assert {(score, side) for score in (1.0, 0.0) for side in (0, 1)} <= kinds
    np.testing.assert_allclose(batch.wdl_target.sum(axis=1), 1, atol=1e-5)


def test_a_game_that_was_cut_trains_the_value_on_root_values_alone(tmp_path, games):
    cut = next(record for record in games if record.termination == 0)
    buffer, _ = make_buffer(tmp_path, [cut], outcome_weight=1.0)
    batch = buffer.sample(np.random.default_rng(0), 8000)
    assert np.isnan(batch.moves_left).all()
    values = cut.root_values[cut.opening_plies :]
    targets = batch.wdl_target[:, 0] - batch.wdl_target[:, 2]
    distances = np.abs(targets[:, None] - values)
    assert distances.min(axis=1).max() < 1e-5
    assert distances.min(axis=0).max() < 1e-5


def test_a_resigned_game_trains_its_result_but_has_no_end(tmp_path, games):
    cut = next(record for record in games if record.termination == 0)
    given_up = dataclasses.replace(cut, resigned="w", white_score=0.0)
    buffer, _ = make_buffer(tmp_path, [given_up], outcome_weight=1.0, future_plies=4)
    batch = buffer.sample(np.random.default_rng(0), 200)
    assert set(map(tuple, batch.wdl_target.tolist())) == {(1.0, 0.0, 0.0), (0.0, 0.0, 1.0)}
    assert np.isnan(batch.moves_left).all()
    assert batch.future_pieces is not None
    assert (batch.future_pieces == HOLE).all(axis=(1, 2)).any()


def test_moves_left_counts_down_to_one(tmp_path, games):
    record = next(game for game in games if game.termination)
    buffer, _ = make_buffer(tmp_path, [record])
    batch = buffer.sample(np.random.default_rng(0), 4000)
    assert set(batch.moves_left) == set(range(1, record.num_plies - record.opening_plies + 1))


def test_spreading_a_value_over_results_keeps_it():
    values = np.linspace(-1, 1, 41, dtype=np.float32)
    wdl = value_as_wdl(values)
    np.testing.assert_allclose(wdl[:, 0] - wdl[:, 2], values, atol=1e-6)
    np.testing.assert_allclose(wdl.sum(axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(wdl[[0, -1]], [[0, 0, 1], [1, 0, 0]])


def test_the_same_generator_draws_the_same_batch(tmp_path, games):
    buffer, _ = make_buffer(tmp_path, games)
    first, second = (buffer.sample(np.random.default_rng(5), 32) for _ in range(2))
    np.testing.assert_array_equal(first.observations, second.observations)
    np.testing.assert_array_equal(first.policy_target, second.policy_target)


def test_a_stored_policy_that_the_rules_forbid_is_not_trained_on(tmp_path, games, monkeypatch):
    record = next(game for game in games if game.termination)
    wrong = dataclasses.replace(record, states=np.repeat(record.states[:1], record.num_plies, axis=0))
    with pytest.raises(CorruptFile, match=r"games\.npz: game 0 is wrong: position before ply 1"):
        make_buffer(tmp_path, [wrong])
    monkeypatch.setattr("train.replay.verify_game", lambda game, record: None)
    buffer, _ = make_buffer(tmp_path, [wrong])
    with pytest.raises(CorruptFile, match="not legal"):
        buffer.sample(np.random.default_rng(0), 200)


# Future boards


def future_by_hand(record: GameRecord, ply: int, plies: int) -> np.ndarray:
    """Play a game out of its actions and read the board off the FEN, for the side that is to move at `ply`.

    A game that was cut has none beyond its last move.
    """
    if np.isnan(record.white_score) and ply + plies > record.num_plies:
        return np.full((5, 5), HOLE)
    env = envs.VectorEnv(VARIANT, 1)
    env.set_fen(0, record.start_fen)
    for action in record.actions[: ply + plies]:
        env.step(np.array([action]))
    letters = [piece.letter.lower() for piece in VARIANT.piece_types]
    white_views = ply % 2 == 0
    rows = []
    for rank in env.fen(0).split()[0].split("/"):  # the eighth rank first
        row: list[int] = []
        for letter in rank:
            if letter.isdigit():
                row += [0] * int(letter)
            else:
                is_own = letter.isupper() == white_views
                row.append(1 + letters.index(letter.lower()) + (0 if is_own else len(letters)))
        rows.append(row)
    return np.array(rows[::-1] if white_views else rows)


@pytest.mark.parametrize("plies", [1, 8, 1000])
def test_the_future_board_is_the_one_some_plies_later_or_the_last_for_both_colours(tmp_path, games, plies):
    buffer, _ = make_buffer(tmp_path, games[:6], future_plies=plies)
    batch = buffer.sample(np.random.default_rng(0), 120)
    assert batch.future_pieces is not None
    origin = lookup(games[:6])
    kinds = set()
    for row, planes in enumerate(batch.observations):
        for record, ply in origin.get(board_key(planes), []):
            np.testing.assert_array_equal(batch.future_pieces[row], future_by_hand(record, ply, plies))
            kinds.add((ply % 2, ply + plies >= record.num_plies))
    assert {(0, plies > 8), (1, plies > 8)} <= kinds


def test_future_boards_stay_with_their_rows_when_old_ones_leave_the_window(tmp_path, games):
    cfg = ReplayConfig(window_base=60, mirror=False)
    buffer = ReplayBuffer(GAME, cfg, future_plies=5)
    for number, record in enumerate(games):
        buffer.add(tmp_path, write_shard(tmp_path, str(number), [record], GAME))
    assert buffer.num_rows < buffer.total_rows / 4
    batch = buffer.sample(np.random.default_rng(0), 80)
    assert batch.future_pieces is not None
    origin, checked = lookup(games), 0
    for row, planes in enumerate(batch.observations):
        for record, ply in origin.get(board_key(planes), []):
            np.testing.assert_array_equal(batch.future_pieces[row], future_by_hand(record, ply, 5))
            checked += 1
    assert checked > 40


def test_a_row_whose_future_lies_beyond_the_cut_of_its_game_has_none(tmp_path):
    record, plies = play_game(3, max_plies=20), 8
    assert np.isnan(record.white_score)
    buffer, _ = make_buffer(tmp_path, [record], future_plies=plies)
    batch = buffer.sample(np.random.default_rng(0), 200)
    assert batch.future_pieces is not None
    origin, seen = lookup([record]), set()
    for row, planes in enumerate(batch.observations):
        for _, ply in origin.get(board_key(planes), []):
            np.testing.assert_array_equal(batch.future_pieces[row], future_by_hand(record, ply, plies))
            seen.add((ply, bool((batch.future_pieces[row] == HOLE).all())))
    assert seen == {(ply, ply > record.num_plies - plies) for ply in range(record.opening_plies, record.num_plies)}


def test_the_last_board_of_a_game_is_the_one_after_its_last_move(tmp_path, games):
    record = next(game for game in games if game.termination)
    buffer, _ = make_buffer(tmp_path, [record], future_plies=1)
    batch = buffer.sample(np.random.default_rng(0), 2000)
    assert batch.future_pieces is not None
    last = batch.future_pieces[batch.moves_left == 1][0]
    np.testing.assert_array_equal(last, future_by_hand(record, record.num_plies - 1, 1))
    before = future_by_hand(record, record.num_plies - 1, 0)
    assert (last != before).any()


def test_without_a_head_that_wants_them_no_future_boards_are_made(tmp_path, games, monkeypatch):
    monkeypatch.setattr("envs.boards", None)
    buffer, _ = make_buffer(tmp_path, games)
    assert buffer.sample(np.random.default_rng(0), 8).future_pieces is None


@pytest.mark.parametrize("name", ["asylum", "chess", "separate_realms_2", "omega", "horde"])
def test_a_piece_map_is_the_piece_planes_of_an_observation(name):
    game = envs.engine_for(envs.load_variant(name))
    env, rng = envs.VectorEnv(game.variant, 6, seed=0), np.random.default_rng(0)
    for ply in range(25):
        planes = env.observe()
        maps = piece_maps(game, envs.boards(game, env.states), envs.to_play(game, env.states))
        types = len(game.variant.piece_types)
        for piece in range(2 * types):
            np.testing.assert_array_equal(maps == 1 + piece, planes[:, piece] > 0)
        np.testing.assert_array_equal(maps == HOLE, planes[:, -1] == 0)
        assert (env.to_play == ply % 2)[~env.over].all()
        env.step(np.array([rng.choice(np.flatnonzero(mask)) if mask.any() else 0 for mask in env.legal_action_mask]))
