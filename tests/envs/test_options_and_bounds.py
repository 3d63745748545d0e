"""User files that once slipped through: bounds of move lists, what options may change, starts, keys without effect."""

import numpy as np
import pytest

from envs import InvalidVariant, Position, VectorEnv, engine_for, legal_actions, load_variant
from envs.rows import legal_moves
from envs.rules import legal_moves as specified_moves
from envs.rules_fen import parse_fen

MANY_PROMOTIONS = """
name: Bound
board: {files: 16, ranks: 9}
start: "k15/16/16/16/16/16/a1a1a1a1a1a1a1a1/1P1P1P1P1P1P1P1P/7K8 w - - 0 1"
royal: k
pieces:
  k: {name: king, moves: bW}
  a: {name: a, moves: fW}
  b: {name: b, moves: bW}
  c: {name: c, moves: lW}
  p: {name: pawn}
pawns: {piece: p, first_steps: 7, first_steps_from: [2], promotes_to: abc}
"""
QUEENS = "kb8/pp8/10/QQQQQQQQQQ/10/10/QQQQQQQQQQ/10/10/QQQQQK3Q w - - 0 1"


def load(tmp_path, text, options=None):
    path = tmp_path / "own.yaml"
    path.write_text(text)
    return load_variant(path, options)


def test_no_list_of_moves_is_longer_than_its_bound(tmp_path):
    variant = load(tmp_path, MANY_PROMOTIONS)
    game = engine_for(variant)
    wanted = len(specified_moves(variant, parse_fen(variant, variant.start_fen)))
    assert len(Position(variant).legal_moves()) == wanted == 87
    env = VectorEnv(variant, 3)
    assert env.legal_action_mask.sum(axis=1).tolist() == [wanted] * 3
    moves, counts, _ = legal_moves(game, env.states)
    assert moves.shape[1] >= counts.max()


def test_a_lane_set_to_dozens_of_queens_has_all_its_moves():
    env = VectorEnv("asylum", 2)
    env.set_fen(1, QUEENS)
    variant = env.variant
    wanted = len(specified_moves(variant, parse_fen(variant, QUEENS)))
    assert env.legal_counts.tolist() == [42, wanted]
    assert env.legal_action_mask[1].sum() == wanted
    env.step(env.sample_actions())


def test_rows_may_be_none_at_all():
    env = VectorEnv("chess", 1)
    actions, counts = legal_actions(env.game, env.states[:0])
    assert len(actions) == len(counts) == 0


def test_null_in_an_option_removes_when_the_option_is_on(tmp_path):
    text = (
        "extends: chess\noptions: {short: {castling: {queenside: null}, "
        "start: rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w Kk - 0 1}, none: {castling: null, "
        "start: rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w - - 0 1}}\n"
    )
    assert [castling is not None for castling in load(tmp_path, text, {"short": True}).castlings] == [True, False] * 2
    assert set(load(tmp_path, text, {"none": True}).castlings) == {None}
    assert None not in load(tmp_path, text).castlings


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ("{pieces: {z: {name: amazon, moves: QN}}, pawns: {promotes_to: qrbnz}}", "may not add or remove pieces"),
        ("{board: {files: 6}}", "an option may change"),
        ("{options: {}}", "an option may change"),
        ("{name: Other}", "an option may change"),
        ("{pieces: {n: {name: knight}}}", "changes nothing"),
        ("{start: 'rnbqk/pp?pp/5/PPPPP/RNBQK w - - 0 1'}", "own.yaml:2: .*start"),
        ("{start: '*nbqk/ppppp/5/PPPPP/*NBQK w - - 0 1'}", "may not move the holes"),
    ],
)
def test_what_an_option_may_not_do_is_refused_though_it_is_off(tmp_path, option, reason):
    with pytest.raises(InvalidVariant, match=reason):
        load(tmp_path, f"extends: gardner\noptions: {{x: {option}}}\n")


def test_the_encoding_covers_every_combination_of_options(tmp_path):
    text = (
        "extends: chess\ncastling: null\nstart: rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w - - 0 1\noptions: "
        "{a: {pawns: {first_steps: 4}}, b: {pawns: {first_steps_from: [2, 3]}}, c: {pieces: {n: {moves: NZ}}}}\n"
    )
    settings = [dict.fromkeys(chosen, True) for chosen in ((), "a", "b", "c", "ab", "ac", "bc", "abc")]
    games = [engine_for(load(tmp_path, text, setting)) for setting in settings]
    assert len({game.encoding.hash for game in games}) == 1
    assert len({game.variant.rules_hash for game in games}) == 8


@pytest.mark.parametrize("switch", ["off", 1, None])
def test_an_option_is_switched_by_true_or_false_alone(switch):
    with pytest.raises(InvalidVariant, match="expected True or False"):
        load_variant("palace_ninja_guards", {"scepter": switch})
    with pytest.raises(InvalidVariant, match="expected a mapping"):
        load_variant("palace_ninja_guards", ["scepter"])


def test_two_files_of_one_name_are_two_games(tmp_path):
    plain = engine_for(load(tmp_path, "extends: gardner\nname: First\n"))
    other = engine_for(load(tmp_path, "extends: gardner\nname: Second\noptions: {x: {pieces: {n: {moves: NC}}}}\n"))
    assert (plain.variant.title, other.variant.title) == ("First", "Second")
    assert plain.num_actions < other.num_actions


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("start: rnbqk/ppppp/5/PPPPP/RNBQK w - - 100 1", "over before it begins: fifty moves"),
        ("start: 4k/5/5/5/4K w - - 0 1\npieces: {q: null, r: null, b: null, n: null}\npawns: null", "pieces.p"),
        ("start: rnbqk/ppppp/5/PPPPP/RNBQK w K - 0 1", "castling rights"),
        ("pieces: {p: {fires_through_own: true}}", "the pawn's moves are given"),
        ("pawns: {promotes_on: []}", "at least 1 item"),
        ("pawns: {first_steps: 2, first_steps_from: [5]}", "has reached its promotion rank"),
        ("castling: {king: e}", "expected kingside, queenside or both"),
        ("pieces: {r: {moves: W1000}}", "expected at most 15"),
    ],
)
def test_keys_that_cannot_be_honoured_are_refused(tmp_path, text, reason):
    with pytest.raises(InvalidVariant, match=reason):
        load(tmp_path, f"extends: gardner\n{text}\n")


def test_castling_over_a_hole_is_refused_at_its_line(tmp_path):
    text = "extends: chess\nstart: 'r*bqkbnr/pppppppp/8/8/8/8/PPPPPPPP/R*BQKBNR w KQkq - 0 1'\n"
    with pytest.raises(InvalidVariant, match=r"chess.yaml:\d+: castling.queenside: .*hole"):
        load(tmp_path, text)


def test_a_start_is_kept_in_normal_form(tmp_path):
    first = load(tmp_path, "extends: gardner\nstart: rnbqk/ppppp/5/PPPPP/RNBQK w - -\n")
    assert first.start_fen == load_variant("gardner").start_fen
    assert first.rules_hash == load_variant("gardner").rules_hash


@pytest.mark.parametrize("actions", [[[0]], [0.9]])
def test_actions_of_a_wrong_shape_or_type_are_refused(actions):
    env = VectorEnv("gardner", 1)
    with pytest.raises(ValueError, match="expected integers"):
        env.step(np.array(actions))
