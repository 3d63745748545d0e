"""Shards: what is stored, what the rules refuse, what is read of a stranger's file."""

import dataclasses
import io
import json
import math
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import envs
from models.storage import CheckpointMismatch, CorruptFile, sha256_hex
from tests.train.played_games import GAME, games_of_every_end, play_game
from train import archives, verification
from train.shards import (
    GameRecord,
    decode_games,
    encode_games,
    read_index,
    read_listed,
    read_shard,
    write_index,
    write_shard,
)
from train.verification import TooManyBadGames, store_games, verify_game

ARRAYS = ("actions", "states", "policy_index", "policy_actions", "policy_probs", "root_values")


@pytest.fixture(scope="module")
def games() -> list[GameRecord]:
    return games_of_every_end()


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
    assert info.num_entries == sum(int(span.sum()) for span in spans)
    assert read_index(json.loads(json.dumps(write_index([info]))), "state") == [info]


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
    kept = int(record.policy_index[-3])
    cut = dataclasses.replace(
        record,
        **{name: getattr(record, name)[:-2] for name in ("actions", "states", "policy_index", "root_values")},
        **{name: getattr(record, name)[:kept] for name in ("policy_actions", "policy_probs")},
    )
    span = int(np.flatnonzero(np.diff(record.policy_index))[0])
    entry = int(record.policy_index[span])
    legal = envs.legal_actions(GAME, record.states[span : span + 1])[0][0]
    foreign = next(action for action in range(GAME.num_actions) if action not in legal)
    listed = np.flatnonzero(np.diff(record.policy_index) > 1)[0]
    twice = int(record.policy_index[listed])
    change = dataclasses.replace
    return {
        "not playable": tamper(record, "actions", 5, int(record.actions[5]) ^ 1),
        "not playable: expected six fields": change(record, start_fen="nonsense"),
        "position before ply 4": tamper(record, "states", 4, record.states[3]),
        "termination is 9": change(record, termination=9),
        "termination is": change(record, termination=record.termination % 5 + 1),
        "termination is -1": change(record, termination=-1),
        "by the rules 0": cut,
        "white_score is 0.25": change(record, white_score=0.25),
        "white_score is nan": change(record, white_score=math.nan),
        "white_score is 1": change(record, white_score=1),
        "resigned is 'w' in a game whose": change(record, resigned="w"),
        "resigned is 'white'": change(cut, termination=0, white_score=math.nan, resigned="white"),
        "resigned is None": change(record, resigned=None),
        "white_score is 1.0, by the rules 0.0": change(cut, termination=0, white_score=1.0, resigned="w"),
        "white_score is 0.5, by the rules 1.0": change(cut, termination=0, white_score=0.5, resigned="b"),
        "white_score is 0.0, by the rules nan": change(cut, termination=0, white_score=0.0),
        "a root value": tamper(record, "root_values", -1, 1.5),
        "a root value is": tamper(record, "root_values", -1, np.nan),
        f"policy of ply {span} lists an illegal": tamper(record, "policy_actions", entry, foreign),
        f"policy of ply {span} lists": tamper(record, "policy_actions", entry, -1),
        f"policy of ply {span} lists an": tamper(record, "policy_actions", entry, 2**31 - 1),
        f"policy of ply {listed} lists an action twice": tamper(
            record, "policy_actions", twice + 1, record.policy_actions[twice]
        ),
        f"policy of ply {span} sums": tamper(record, "policy_probs", entry, 7.0),
        f"policy of ply {span} sums to": tamper(record, "policy_probs", entry, np.inf),
        "probability below 0": tamper(record, "policy_probs", entry, -0.5),
        "a probability below": tamper(record, "policy_probs", entry, np.nan),
        "opening_plies is": change(record, opening_plies=record.num_plies + 1),
        "opening_plies is -1": change(record, opening_plies=-1),
        "opening_plies is 1.5": change(record, opening_plies=1.5),
        "seed is -1": change(record, seed=-1),
        "model_version is": change(record, model_version=True),
        "start_kind is ''": change(record, start_kind=""),
        "start_kind is": change(record, start_kind="long" * 20),
        "start_fen is None": change(record, start_fen=None),
        "actions is int64": change(record, actions=record.actions.astype(np.int64)),
        "actions is list": change(record, actions=record.actions.tolist()),
        "states is uint64": change(record, states=record.states[:, :-1]),
        "states is": change(record, states=record.states[:-1]),
        "root_values is float64": change(record, root_values=record.root_values.astype(np.float64)),
        "root_values is": change(record, root_values=record.root_values[1:]),
        "policy_probs is": change(record, policy_probs=record.policy_probs[1:]),
        "policy_index is": change(record, policy_index=record.policy_index[1:]),
        "policy_index does not divide": change(record, policy_index=record.policy_index + 1),
        "policy_index does not": tamper(record, "policy_index", 3, 10**6),
    }


def test_every_way_in_which_a_game_can_be_wrong_is_caught_with_its_reason(games):
    record = next(game for game in games if game.termination)
    for reason, wrong in faults(record).items():
        assert reason in (verify_game(GAME, wrong) or "passed")


def test_a_game_that_was_given_up_passes_with_the_score_that_fits(games):
    cut = next(game for game in games if game.termination == 0)
    for resigned, score in (("w", 0.0), ("b", 1.0)):
        given_up = dataclasses.replace(cut, resigned=resigned, white_score=score)
        assert verify_game(GAME, given_up) is None
        assert read_back(given_up).resigned == resigned
        assert verify_game(GAME, dataclasses.replace(given_up, white_score=1 - score)) is not None


def read_back(record: GameRecord) -> GameRecord:
    return decode_games(encode_games([record], GAME), GAME, Path("a.npz"))[0]


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


def test_a_game_that_cannot_be_written_leaves_its_reason_in_quarantine(tmp_path, games):
    wrong = dataclasses.replace(games[0], states=games[0].states[:, :-1].astype(object), start_kind=b"array")
    assert store_games(GAME, [wrong], folder=tmp_path / "replay", name="7", quarantine=tmp_path / "bad") == (None, 1)
    assert [path.name for path in (tmp_path / "bad").iterdir()] == ["7-0.txt"]
    text = (tmp_path / "bad" / "7-0.txt").read_text()
    assert "states is object" in text
    assert "cannot be written" in text


def test_a_run_stops_before_quarantine_fills_the_disk(tmp_path, games, monkeypatch):
    monkeypatch.setattr(verification, "MAX_QUARANTINED", 5)
    wrong = [dataclasses.replace(games[0], white_score=0.25)] * 4
    places = {"folder": tmp_path / "replay", "quarantine": tmp_path / "bad"}
    store_games(GAME, wrong, name="1", **places)
    with pytest.raises(TooManyBadGames, match=r"bad: 5 games lie in quarantine.*white_score is 0\.25.*move the folder"):
        store_games(GAME, [games[1], *wrong], name="2", **places)
    assert len(list((tmp_path / "bad").iterdir())) == 2 * 5
    assert not (tmp_path / "replay").exists()


# The index


def test_a_stored_shard_is_never_written_over(tmp_path, games):
    info = write_shard(tmp_path, "a", games[:1], GAME)
    with pytest.raises(FileExistsError, match=r"a\.npz.*never change"):
        write_shard(tmp_path, "a", games[1:2], GAME)
    assert read_listed(tmp_path, info, GAME)[0].seed == games[0].seed


def test_a_shard_whose_counts_are_not_those_of_the_index_is_refused(tmp_path, games):
    info = write_shard(tmp_path, "a", games[:3], GAME)
    for name in ("num_games", "num_rows", "num_policy_rows", "num_entries", "num_held_out_rows"):
        with pytest.raises(CorruptFile, match=f"index says {name} 7"):
            read_listed(tmp_path, dataclasses.replace(info, **{name: 7}), GAME)
    old = {
        key: value for key, value in write_index([info])[0].items() if key not in ("num_entries", "num_held_out_rows")
    }
    (restored,) = read_index([old], "state")
    assert len(read_listed(tmp_path, restored, GAME)) == 3


@pytest.mark.parametrize(
    "change",
    [
        {"name": "../a.npz"},
        {"name": "/etc/passwd"},
        {"name": "a/b.npz"},
        {"name": "..npz"},
        {"name": ".tmp-a.npz"},
        {"name": "a.npz\n"},
        {"name": "a.npy"},
        {"name": 7},
        {"sha256": "0" * 63},
        {"sha256": None},
        {"num_rows": -1},
        {"num_games": 1.5},
        {"num_entries": True},
    ],
)
def test_an_index_with_a_path_or_a_number_that_cannot_be_is_refused(games, change):
    right = {"name": "a.npz", "sha256": "0" * 64, "num_games": 1, "num_rows": 2, "num_policy_rows": 1}
    assert read_index([right], "state")[0].num_entries == 0
    with pytest.raises(CorruptFile, match="state: no index of shards"):
        read_index([{**right, **change}], "state")


def test_an_index_that_is_no_list_or_names_a_shard_twice_is_refused():
    right = {"name": "a.npz", "sha256": "0" * 64, "num_games": 1, "num_rows": 2, "num_policy_rows": 1}
    for wrong in (None, 7, {"a": right}, ["a"], [[right]], [{}]):
        with pytest.raises(CorruptFile, match="state: no index"):
            read_index(wrong, "state")
    with pytest.raises(CorruptFile, match="lists a shard twice"):
        read_index([right, right], "state")


# A stranger's files


def members_of(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(members: list[tuple[str, bytes]], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with warnings.catch_warnings(action="ignore"), zipfile.ZipFile(buffer, "w", method) as archive:  # twice one name
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return buffer.getvalue()


def array_file(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def header_of(shape: str, descr: str = "'<i4'", order: str = "False") -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def with_meta(content: bytes, change: Callable[[dict], None]) -> bytes:
    members = members_of(content)
    meta = json.loads(np.load(io.BytesIO(members["meta.npy"])).tobytes())
    change(meta)
    members["meta.npy"] = array_file(np.frombuffer(json.dumps(meta).encode(), np.uint8))
    return packed(list(members.items()))


def strange_shards(content: bytes) -> dict[str, bytes]:
    """Return files that are each wrong in one way, by what is said of them."""
    right = members_of(content)

    def replaced(name: str, member: bytes) -> bytes:
        return packed(list({**right, f"{name}.npy": member}.items()))

    renamed = [(f"../{name}", member) for name, member in right.items()]
    absolute = [("/tmp/actions.npy" if name == "actions.npy" else name, member) for name, member in right.items()]
    zeros = np.zeros(3 << 20, np.int32)
    counts = np.load(io.BytesIO(right["policy_counts.npy"])).copy()
    counts[:2] += np.array([-1, 1], counts.dtype) * (counts[0] + 1)
    lengths = np.load(io.BytesIO(right["lengths.npy"])).copy()
    return {
        "array of object": replaced("actions", array_file(np.array([{"a": 1}], object))),
        "unreadable (ValueError": replaced("actions", b"cos\nsystem\n(S'true'\ntR."),
        "8 members ('../": packed(renamed),
        "8 members ('/tmp/": packed(absolute),
        "9 members": packed([*right.items(), ("extra.npy", b"")]),
        "9 members ('actions.npy', 'actions.npy'": packed([*right.items(), ("actions.npy", right["actions.npy"])]),
        "7 members": packed(list(right.items())[1:]),
        "that unpack to": replaced("actions", array_file(zeros)),
        "unknown method": packed(list(right.items()), zipfile.ZIP_LZMA),
        "(1000000000000,)": replaced("actions", header_of("(1000000000000,)") + bytes(8)),
        "(-1, -2)": replaced("actions", header_of("(-1, -2)") + bytes(8)),
        "(4294967296, 4294967296)": replaced("actions", header_of("(4294967296, 4294967296)")),
        "columns first": replaced("states", header_of("(1, 1)", "'<u8'", "True") + bytes(8)),
        "unreadable": replaced("actions", header_of("(__import__('os').getpid(),)") + bytes(8)),
        "format (2, 0)": replaced("actions", b"\x93NUMPY\x02\x00" + bytes(20)),
        "actions is float64": replaced("actions", array_file(np.zeros(4))),
        "actions is >i4": replaced("actions", array_file(np.load(io.BytesIO(right["actions.npy"])).astype(">i4"))),
        "a negative count": replaced("policy_counts", array_file(counts)),
        "lengths is int32 (2,)": replaced("lengths", array_file(np.array([lengths.sum(), 0], np.int32))),
        "no shard": replaced("meta", array_file(np.frombuffer(b"[]", np.uint8))),
        "RecursionError": replaced("meta", array_file(np.frombuffer(b"[" * 100_000, np.uint8))),
        "JSONDecodeError": replaced("meta", array_file(np.frombuffer(b"{", np.uint8))),
        "format 3, this version reads": with_meta(content, lambda meta: meta.update(format=3)),
        "format '2'": with_meta(content, lambda meta: meta.update(format="2")),
        "rules_hash": with_meta(content, lambda meta: meta.update(rules_hash="0" * 64)),
        "action_hash": with_meta(content, lambda meta: meta.update(action_hash="0" * 64)),
        "layout": with_meta(content, lambda meta: meta.update(layout=99)),
        "a game that is str": with_meta(content, lambda meta: meta.update(games=["a", "b", "c"])),
        "wrong: seed": with_meta(content, lambda meta: meta["games"][0].update(seed="7")),
        "wrong: held_out": with_meta(content, lambda meta: meta["games"][0].update(held_out=1)),
        "whose keys are": with_meta(content, lambda meta: meta["games"][0].update(__class__="os")),
        "number out of range": with_meta(content, lambda meta: meta["games"][0].update(seed=-1)),
        "more opening plies": with_meta(content, lambda meta: meta["games"][0].update(opening_plies=10**6)),
        "lengths is int32 (3,)": with_meta(content, lambda meta: meta["games"].pop()),
    }


def test_every_strange_file_is_refused_by_name_with_the_reason(tmp_path, games):
    content = encode_games(games[:3], GAME)
    path = tmp_path / "a.npz"
    for reason, strange in strange_shards(content).items():
        path.write_bytes(strange)
        with pytest.raises((CorruptFile, CheckpointMismatch)) as caught:
            read_shard(path, GAME, sha256=sha256_hex(strange))
        assert str(path) in str(caught.value)
        assert reason in str(caught.value)
    path.write_bytes(packed(list(members_of(content).items())))
    assert len(read_shard(path, GAME)) == 3


def test_a_shard_of_other_rules_under_the_same_name_is_refused(tmp_path, games):
    (tmp_path / "gardner.yaml").write_text("name: Gardner\nextends: gardner\nends: {stalemate: win}\n")
    other = envs.engine_for(envs.load_variant(tmp_path / "gardner.yaml"))
    assert other.variant.name == GAME.variant.name
    info = write_shard(tmp_path, "a", games[:2], GAME)
    with pytest.raises(CheckpointMismatch, match=r"another game than gardner: rules_hash$"):
        read_listed(tmp_path, info, other)


def test_a_link_or_a_file_of_a_gigabyte_is_no_shard(tmp_path, games):
    info = write_shard(tmp_path, "a", games[:2], GAME)
    (tmp_path / "b.npz").symlink_to(tmp_path / info.name)
    with pytest.raises(CorruptFile, match=r"b\.npz: expected a regular file"):
        read_shard(tmp_path / "b.npz", GAME)
    with (tmp_path / "c.npz").open("wb") as file:
        file.truncate(archives.MAX_BYTES + 1)
    with pytest.raises(CorruptFile, match=r"c\.npz: 1073741825 bytes"):
        read_shard(tmp_path / "c.npz", GAME)


def test_honest_games_stay_far_below_the_limit_of_what_an_archive_may_unpack_to():
    shuffle = play_game(7)
    content = encode_games([shuffle] * 200, GAME)
    unpacked = sum(map(len, members_of(content).values()))
    assert unpacked > archives.FREE_BYTES
    assert len(decode_games(content, GAME, Path("a.npz"))) == 200


def test_a_shard_of_format_1_is_read(tmp_path, games):
    def made_older(meta: dict) -> None:
        meta["format"] = 1
        for entry in meta["games"]:
            del entry["resigned"], entry["held_out"]

    older = decode_games(with_meta(encode_games(games[:3], GAME), made_older), GAME, Path("a.npz"))
    assert [(record.resigned, record.held_out) for record in older] == [("", False)] * 3
    assert [verify_game(GAME, record) for record in older] == [None] * 3
