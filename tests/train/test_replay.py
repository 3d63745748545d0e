"""Shards and the replay window: what is stored, what is refused, what is drawn."""

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest

import envs
from models.storage import CheckpointMismatch, CorruptFile
from train.config_sections import ReplayConfig
from train.replay import HOLE, POLICY_SHARE, ReplayBuffer, piece_maps, value_as_wdl, window_rows
from train.shards import GameRecord, ShardInfo, read_shard, store_games, verify_game, write_shard

VARIANT = envs.load_variant("gardner")
GAME = envs.engine_for(VARIANT)
MAX_PLIES = 120
ARRAYS = ("actions", "states", "policy_index", "policy_actions", "policy_probs", "root_values")


def play_game(seed: int, *, opening_plies: int = 2, max_plies: int = MAX_PLIES) -> GameRecord:
    """Play at random; every third ply after the opening has a policy over some of its legal actions."""
    rng = np.random.default_rng(seed)
    env = envs.VectorEnv(VARIANT, 1, max_plies=max_plies)
    start_fen = env.fen(0)
    actions, states, values, policies = [], [], [], []
    while not (env.terminated[0] or env.truncated[0]):
        legal = np.flatnonzero(env.legal_action_mask[0])
        ply = len(actions)
        listed = legal[: 1 + ply % 5] if ply >= opening_plies and ply % 3 == 0 else legal[:0]
        policies.append((listed, rng.dirichlet(np.ones(len(listed))) if len(listed) else np.zeros(0)))
        states.append(env.states[0].copy())
        actions.append(rng.choice(legal))
        values.append(rng.uniform(-1, 1))
        env.step(np.array([actions[-1]]))
    return GameRecord(
        start_fen=start_fen,
        actions=np.array(actions, dtype=np.int32),
        states=np.array(states, dtype=np.uint64),
        policy_index=np.cumsum([0] + [len(listed) for listed, _ in policies]).astype(np.int64),
        policy_actions=np.concatenate([listed for listed, _ in policies]).astype(np.int32),
        policy_probs=np.concatenate([probs for _, probs in policies]).astype(np.float32),
        root_values=np.array(values, dtype=np.float32),
        white_score=float(env.white_score[0]),
        termination=int(env.terminations[0]),
        model_version=3,
        seed=2**63 + seed,
        opening_plies=opening_plies,
        start_kind="array",
    )


@pytest.fixture(scope="module")
def games() -> list[GameRecord]:
    """Games of every result, some of them cut by the ply cap."""
    records = [play_game(seed) for seed in range(24)] + [play_game(99, max_plies=15)]
    assert {record.white_score for record in records if record.termination} == {0.0, 0.5, 1.0}
    assert any(record.termination == 0 for record in records)
    return records


def make_buffer(folder: Path, games: list[GameRecord], **settings: float) -> tuple[ReplayBuffer, ShardInfo]:
    others = {name: settings.pop(name) for name in ("outcome_weight", "future_plies") if name in settings}
    buffer = ReplayBuffer(GAME, ReplayConfig(**settings), **others)
    info = write_shard(folder, "games", games, GAME)
    buffer.add(folder, info)
    return buffer, info


def board_key(observation: np.ndarray) -> bytes:
    return observation.tobytes()


# Shards


def test_a_shard_gives_its_games_back(tmp_path, games):
    info = write_shard(tmp_path, "00007-0", games, GAME)
    loaded = read_shard(tmp_path / info.name, GAME, sha256=info.sha256)
    assert len(loaded) == len(games) == info.num_games
    for record, back in zip(games, loaded):
        for name in ARRAYS:
            expected = getattr(record, name)
            assert getattr(back, name).dtype == expected.dtype
            np.testing.assert_array_equal(getattr(back, name), expected)
        for field in dataclasses.fields(GameRecord):
            if field.name not in ARRAYS:
                assert repr(getattr(back, field.name)) == repr(getattr(record, field.name))
    assert [path.name for path in tmp_path.iterdir()] == ["00007-0.npz"]


def test_a_shard_counts_the_rows_that_train(tmp_path, games):
    info = write_shard(tmp_path, "a", games, GAME)
    assert info.num_rows == sum(record.num_plies - record.opening_plies for record in games)
    spans = [np.diff(record.policy_index)[record.opening_plies :] for record in games]
    assert info.num_policy_rows == sum(int((span > 0).sum()) for span in spans)
    assert ShardInfo(**dataclasses.asdict(info)) == info


def test_a_changed_truncated_or_missing_shard_is_refused_by_name(tmp_path, games):
    info = write_shard(tmp_path, "a", games[:2], GAME)
    path = tmp_path / info.name
    content = path.read_bytes()
    for position in np.linspace(0, len(content) - 1, 60, dtype=int):
        flipped = bytearray(content)
        flipped[position] ^= 1 << int(position) % 8
        path.write_bytes(bytes(flipped))
        with pytest.raises(CorruptFile, match=r"a\.npz"):
            read_shard(path, GAME, sha256=info.sha256)
    for length in (0, 1, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:length])
        with pytest.raises(CorruptFile, match=r"a\.npz"):
            read_shard(path, GAME)
    path.unlink()
    with pytest.raises(CorruptFile, match=r"a\.npz: missing"):
        read_shard(path, GAME)


def test_damage_is_seen_without_the_manifest_or_does_no_harm(tmp_path, games):
    info = write_shard(tmp_path, "a", games[:2], GAME)
    path = tmp_path / info.name
    content = path.read_bytes()
    refused = 0
    for position in np.random.default_rng(0).integers(0, len(content), 150):
        flipped = bytearray(content)
        flipped[position] ^= 0x10
        path.write_bytes(bytes(flipped))
        try:
            loaded = read_shard(path, GAME)
        except CorruptFile:
            refused += 1
            continue
        for record, back in zip(games, loaded, strict=False):
            assert all(np.array_equal(getattr(record, name), getattr(back, name)) for name in ARRAYS)
    assert refused > 100


def test_a_shard_of_other_rules_is_refused_with_the_hash_that_differs(tmp_path, games):
    info = write_shard(tmp_path, "a", games[:1], GAME)
    chess = envs.engine_for(envs.load_variant("chess"))
    with pytest.raises(CheckpointMismatch, match=r"a\.npz.*rules_hash"):
        read_shard(tmp_path / info.name, chess)


def test_a_pickle_inside_a_shard_is_refused(tmp_path, games):
    path = tmp_path / "a.npz"
    info = write_shard(tmp_path, "a", games[:1], GAME)
    with np.load(tmp_path / info.name) as archive:
        arrays = dict(archive)
    arrays["actions"] = np.array([{"a": 1}], dtype=object)
    path.unlink()
    np.savez(path, **arrays)
    with pytest.raises(CorruptFile, match=r"a\.npz"):
        read_shard(path, GAME)


@pytest.mark.parametrize("name", ["lengths", "actions", "policy_counts", "policy_probs", "root_values"])
def test_arrays_that_do_not_fit_together_are_refused(tmp_path, games, name):
    info = write_shard(tmp_path, "a", games[:3], GAME)
    with np.load(tmp_path / info.name) as archive:
        arrays = dict(archive)
    arrays[name] = arrays[name][:-1]
    path = tmp_path / "b.npz"
    np.savez(path, **arrays)
    with pytest.raises(CorruptFile, match="do not fit"):
        read_shard(path, GAME)


def test_a_failed_write_leaves_neither_a_shard_nor_a_temporary_file(tmp_path, games, monkeypatch):
    def full_disk(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full_disk)
    with pytest.raises(OSError, match="No space"):
        write_shard(tmp_path, "a", games[:1], GAME)
    assert list(tmp_path.iterdir()) == []


# Verification


def test_true_games_pass_the_rules(games):
    assert [verify_game(GAME, record) for record in games] == [None] * len(games)


def tamper(record: GameRecord, name: str, position: int, value: object) -> GameRecord:
    changed = getattr(record, name).copy()
    changed[position] = value
    return dataclasses.replace(record, **{name: changed})


def faults(record: GameRecord) -> dict[str, GameRecord]:
    """Return records that are each wrong in one way, by a part of the reason expected."""
    cut = dataclasses.replace(
        record,
        **{name: getattr(record, name)[:-2] for name in ("actions", "states", "policy_index", "root_values")},
    )
    span = int(np.flatnonzero(np.diff(record.policy_index))[0])
    entry = int(record.policy_index[span])
    legal = envs.legal_actions(GAME, record.states[span : span + 1])[0][0]
    foreign = next(action for action in range(GAME.num_actions) if action not in legal)
    return {
        "not playable": tamper(record, "actions", 5, int(record.actions[5]) ^ 1),
        "position before ply 4": tamper(record, "states", 4, record.states[3]),
        "termination": dataclasses.replace(record, termination=record.termination % 5 + 1),
        "by the rules 0": cut,
        "white_score": dataclasses.replace(record, white_score=0.25),
        "root value": tamper(record, "root_values", -1, 1.5),
        "root value is": tamper(record, "root_values", -1, np.nan),
        f"policy of ply {span} lists an illegal": tamper(record, "policy_actions", entry, foreign),
        f"policy of ply {span} lists": tamper(record, "policy_actions", entry, -1),
        f"policy of ply {span} sums": tamper(record, "policy_probs", entry, 7.0),
        "opening plies": dataclasses.replace(record, opening_plies=record.num_plies + 1),
        "no position": dataclasses.replace(record, start_fen="nonsense"),
    }


def test_a_tampered_game_is_caught_with_its_reason(games):
    record = next(game for game in games if game.termination)
    expected = faults(record)
    del expected["no position"]
    for reason, wrong in expected.items():
        assert reason in (verify_game(GAME, wrong) or "passed")
    assert "not playable" in (verify_game(GAME, dataclasses.replace(record, start_fen="nonsense")) or "")


def test_a_bad_game_goes_to_quarantine_and_the_others_are_stored(tmp_path, games, caplog):
    ended = [game for game in games if game.termination]
    wrong = dataclasses.replace(ended[1], white_score=0.25)
    info, bad = store_games(
        GAME, [ended[0], wrong, ended[2]], folder=tmp_path / "replay", name="7", quarantine=tmp_path / "bad"
    )
    assert info is not None
    assert info.num_games == 2
    assert bad == 1
    stored = read_shard(tmp_path / "replay" / info.name, GAME, sha256=info.sha256)
    assert [record.seed for record in stored] == [ended[0].seed, ended[2].seed]
    assert read_shard(tmp_path / "bad" / "7-1.npz", GAME)[0].seed == wrong.seed
    assert "white_score is 0.25" in (tmp_path / "bad" / "7-1.txt").read_text()
    assert "quarantine" in caplog.text


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
    cfg = ReplayConfig(window_base=60)
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
    cfg = ReplayConfig(window_base=60)
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
        buffer.add(tmp_path, dataclasses.replace(info, sha256="0" * 64))
    assert (buffer.num_rows, buffer.total_rows) == before


def test_an_empty_window_refuses_to_be_drawn_from():
    with pytest.raises(ValueError, match="no rows to train on"):
        ReplayBuffer(GAME, ReplayConfig()).sample(np.random.default_rng(0), 4)


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
    assert batch.has_policy.sum() == round(POLICY_SHARE * 200)
    assert buffer.steps_for(3000, passes=4.0, batch_size=200) == math.ceil(4 * 3000 / 150)


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


def test_a_stored_policy_that_the_rules_forbid_is_not_trained_on(tmp_path, games):
    record = next(game for game in games if game.termination)
    wrong = dataclasses.replace(record, states=np.repeat(record.states[:1], record.num_plies, axis=0))
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
    cfg = ReplayConfig(window_base=60)
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
    monkeypatch.setattr("envs.replay_actions", None)
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
