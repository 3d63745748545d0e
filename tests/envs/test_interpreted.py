"""A short run through every kernel, small enough for Numba's compiler to be off, so that their lines can be counted.

NUMBA_DISABLE_JIT=1 python -m pytest -m nojit
"""

import numpy as np
import pytest

from envs import IllegalAction, Position, VectorEnv, engine_for, legal_actions, load_variant, observe, replay_actions
from envs.perft import divide, perft

pytestmark = pytest.mark.nojit

POSITIONS = [
    ("chess", {}, "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1", [48, 2039]),
    ("chess", {}, "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1", [14, 191]),
    ("chess", {}, "r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1", [6, 264]),
    ("asylum", {}, "5k4/10/10/10/10/1p8/1p8/10/P9/5K4 w - - 0 1", [8, 53]),
    ("asylum", {"friendly_fire": True}, "k9/10/10/10/10/10/p9/P9/R4K3r/10 w - - 0 1", None),
    (
        "palace_ninja_guards",
        {},
        "***gk***/r2q3r/P1p3pp/1p2bp2/2n1r3/3G4/2n2N2/PPP1PPPP/R3K2R/***GQ*** w KQ - 0 1",
        [33, 2021],
    ),
    ("palace_ninja_guards", {"scepter": True}, "***2***/3K4/8/8/8/8/8/7P/k7/***2*** w - - 0 1", [9, 21]),
    ("separate_realms_2", {}, None, [32, 1013]),
    ("gardner", {}, None, [7, 53]),
]
AMBIGUOUS = """
extends: gardner
name: two riders of one direction
board: {files: 8, ranks: 8}
start: 7k/8/8/8/8/8/8/KR6 w - - 0 1
pawns: null
pieces: {p: null, q: null, n: null, b: null, r: {name: rider, moves: DDHH}}
"""


@pytest.mark.parametrize(("name", "options", "fen", "counts"), POSITIONS)
def test_small_trees_have_their_published_sizes(name, options, fen, counts):
    game = engine_for(load_variant(name, options))
    if counts is None:
        assert sum(divide(game, 2, fen).values()) == perft(game, 2, fen) > 0
        return
    assert [perft(game, depth, fen) for depth in (1, 2)] == counts


@pytest.mark.parametrize(
    ("name", "options"),
    [("asylum", {}), ("asylum", {"friendly_fire": True}), ("palace_ninja_guards", {"scepter": True}), ("gardner", {})],
)
def test_a_few_lanes_step_observe_and_start_again(name, options):
    env = VectorEnv(name, 3, options=options, seed=5, max_plies=12)
    played = []
    for _ in range(14):
        actions = env.sample_actions()
        played.append(int(actions[0]))
        env.step(actions)
        env.observe()
    assert env.over.all()
    rows, _ = replay_actions(env.game, env.variant.start_fen, [action for action in played if action >= 0])
    assert (rows[-1] == env.states[0]).all()
    assert observe(env.game, rows).shape == (len(rows), *env.observation_shape)
    legal_actions(env.game, rows)
    env.reset(np.array([True, False, True]))
    with pytest.raises(IllegalAction):
        env.step(np.full(3, env.num_actions))
    with pytest.raises(IllegalAction):
        replay_actions(env.game, env.variant.start_fen, [0])


def test_games_end_in_each_way():
    endings = {
        "checkmate": ("chess", "6k1/5ppp/8/8/8/8/5PPP/R5K1 w - - 0 1", ["a1a8"]),
        "stalemate": ("chess", "7k/8/6K1/8/8/8/8/5Q2 w - - 0 1", ["f1f7"]),
        "bare_kings": ("chess", "8/8/8/4k3/8/8/3pK3/8 w - - 0 1", ["e2d2"]),
        "fifty_moves": ("chess", "8/8/8/4k3/8/8/3RK3/8 w - - 99 80", ["d2d1"]),
        "repetition": ("chess", "6k1/8/8/8/8/8/8/K6R w - - 0 1", ["a1a2", "g8f8", "a2a1", "f8g8"] * 2),
    }
    for name, (variant, fen, moves) in endings.items():
        position, env = Position(variant, fen), VectorEnv(variant, 1)
        env.set_fen(0, fen)
        for move in moves:
            assert position.outcome() is None
            position.push(move)
            env.step(np.array([env.move_to_action(0, move)]))
        assert position.outcome().termination.name.lower() == name
        assert env.outcome[0] == position.outcome()


def test_moves_that_two_routes_share_are_listed_once(tmp_path):
    path = tmp_path / "riders.yaml"
    path.write_text(AMBIGUOUS)
    moves = Position(str(path)).legal_moves()
    assert len(moves) == len(set(moves))
    assert {"b1b7", "b1h1", "b1d1", "b1e1"} <= set(moves)
