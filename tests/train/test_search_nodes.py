"""Every node of search trees against the environment: rows, legal moves, ends and results, in every built-in game."""

from collections import Counter

import numpy as np
import pytest

from envs import Termination, VectorEnv, list_variants
from tests.train.search_positions import TableEvaluator, random_positions, run_search
from train import search_kernels as kernels
from train.search import SearchSettings

ENDINGS = {
    "chess": (
        ["6k1/8/8/8/8/8/8/K6R w - - 0 1", "6k1/8/8/8/8/8/8/K6R w - - 95 80", "7k/8/8/8/8/8/1r6/K6R b - - 97 80"],
        ["a1a2", "g8f8", "a2a1", "f8g8"],
    ),
    "gardner": (
        ["4k/5/5/5/K2R1 w - - 0 1", "4k/5/5/5/K2R1 w - - 96 1", "4k/5/5/5/K2R1 b - - 90 60"],
        ["a1a2", "e5e4", "a2a1", "e4e5"],
    ),
}


def check_nodes(env: VectorEnv, policy: str, *, budget: int) -> Counter:
    """Compare every node of the trees over all lanes with the game played to it; return how the games ended."""
    lanes = range(env.num_envs)
    search, _ = run_search(
        env, lanes, budgets=[budget] * len(lanes), evaluator=TableEvaluator(), noise_seed=1,
        settings=SearchSettings(policy=policy),
    )  # fmt: skip
    return sum((check_lane(search, env, lane) for lane in lanes), Counter())


def check_lane(search, env: VectorEnv, lane: int) -> Counter:
    tree, ends = search._tree, Counter()
    node0, edge0, words = lane * search._num_nodes, lane * search._num_edges, env.game.state_words
    games = {kernels.ROOT: env.copy()}
    only = np.arange(env.num_envs) == lane
    for number in range(1, int(tree[kernels.NUM_NODES][lane])):
        node = node0 + number
        edge = edge0 + int(tree[kernels.PARENT_EDGE][node])
        action = int(tree[kernels.EDGE_MOVE][edge] >> np.uint64(16)) & 0xFFFF
        games[number] = game = games[int(tree[kernels.PARENT][node])].copy()
        game.step(np.full(env.num_envs, action), only)
        np.testing.assert_array_equal(tree[kernels.ROWS][node * words : (node + 1) * words], game.states[lane])
        assert bool(tree[kernels.OVER][node]) == bool(game.over[lane])
        if game.over[lane]:
            result = 2 * float(game.white_score[lane]) - 1
            assert tree[kernels.RAW_VALUE][node] == (result if game.to_play[lane] == 0 else -result)
            ends[Termination(int(game.terminations[lane]))] += 1
        else:
            first = edge0 + int(tree[kernels.FIRST_EDGE][node])
            moves = tree[kernels.EDGE_MOVE][first : first + int(tree[kernels.NUM_EDGES][node])]
            listed = (moves >> np.uint64(16)) & np.uint64(0xFFFF)
            assert sorted(listed.tolist()) == sorted(game.legal_actions(lane).tolist())
    return ends


def test_the_nodes_of_every_game_are_positions_of_the_environment():
    ends = Counter()
    for name in list_variants():
        for plies, policy in ((40, "gumbel"), (150, "puct")):
            ends += check_nodes(random_positions(name, 2, plies, seed=plies), policy, budget=60)
    assert ends.keys() >= {Termination.CHECKMATE, Termination.GOAL, Termination.EXTINCTION}


@pytest.mark.parametrize("policy", ["gumbel", "puct"])
@pytest.mark.parametrize("name", ENDINGS)
def test_repetition_and_the_move_limit_count_along_the_path_and_in_the_game_before(name, policy):
    fens, shuffle = ENDINGS[name]
    ends = Counter()
    for plies in (0, 5, 7):
        env = VectorEnv(name, len(fens))
        for lane, fen in enumerate(fens):
            env.set_fen(lane, fen)
        for move in (shuffle * 2)[:plies]:
            env.step(np.full(len(fens), env.move_to_action(0, move)), np.arange(len(fens)) == 0)
        ends += check_nodes(env, policy, budget=400)
    assert ends[Termination.REPETITION]
    assert ends[Termination.FIFTY_MOVES]
