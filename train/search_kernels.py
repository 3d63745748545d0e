"""Compiled search trees: selection, expansion and backup for many games in lockstep.

Dims: B lanes (one tree each), N nodes a tree, E edges a tree, W words a state row. Values `q` belong to the player to
move at the node that owns the edge and lie in [-1, 1]; the completed Q-values of the Gumbel rule are mapped to [0, 1].
Source: Danihelka et al. 2022, "Policy improvement by planning with Gumbel": sequential halving at the root (section
3), completed Q-values (4, eq. 10; appendix D, eq. 33 for the mixed value), deterministic selection inside (5, eq. 14).

`tree` is a tuple of flat arrays, named below; node n of lane l is at `l * N + n`, edge e of it at `l * E + e`.
"""

from __future__ import annotations

import numpy as np

from envs import layout
from envs.game_kernels import verdict
from envs.jit import njit
from envs.kernels import HALF, LOSS, REVERSIBLE_SHIFT, U1, U4, U16, U, generate, make

# Arrays of `tree`. Of nodes: the rows uint64 [B * N * W], the same as bytes, the parent, its edge to the node, the
# first edge and the number of edges int32, what the network or a finished game said float32, is the game over uint8.
ROWS, ROW_BYTES, PARENT, PARENT_EDGE, FIRST_EDGE, NUM_EDGES, RAW_VALUE, OVER = range(8)
# Of edges: the move uint64, logit and prior float32, visits int32, sum of values float32, child int32 (UNVISITED before
# expansion), Gumbel noise float32 (root edges only).
EDGE_MOVE, EDGE_LOGIT, EDGE_PRIOR, EDGE_VISITS, EDGE_VALUE, EDGE_CHILD, EDGE_GUMBEL = range(8, 15)
# Of lanes: nodes and edges in use, simulations done and allowed, where the lane's visits begin in `schedule`, the node
# awaiting evaluation int32 [B]; keys of the game so far uint64 [B * L]; counts int64 [B].
NUM_NODES, EDGES_USED, SIMULATIONS, BUDGETS, PLANS, HISTORIES, LEAF, EVALUATIONS, DEPTHS = range(15, 24)

ROOT = 0
UNVISITED = -1
NO_LEAF = -1
FINISHED = -2
_LOWEST = np.float32(-3.0e38)


@njit
def plant(tab, tree, lane, row, history, budget, scratch):
    """Make a lane's tree a bare root, awaiting its evaluation; `row` is uint64 [W], `history` uint64 [at most L].

    Returns the number of legal moves.
    """
    rows, s8 = tree[ROWS], tree[ROW_BYTES]
    words = len(row)
    num_nodes_cap = len(rows) // (len(tree[NUM_NODES]) * words)
    base = lane * num_nodes_cap * words
    for i in range(words):
        rows[base + i] = row[i]
    length = len(tree[HISTORIES]) // len(tree[NUM_NODES])
    for i in range(len(history)):
        tree[HISTORIES][lane * length + i] = history[i]
    node = lane * num_nodes_cap
    edges_cap = len(tree[EDGE_MOVE]) // len(tree[NUM_NODES])
    packed = generate(tab, s8, rows, U(base), scratch, tree[EDGE_MOVE], U(lane * edges_cap))
    tree[PARENT][node] = UNVISITED
    tree[PARENT_EDGE][node] = UNVISITED
    tree[FIRST_EDGE][node] = 0
    tree[NUM_EDGES][node] = np.int32(packed >> U1)
    tree[OVER][node] = 0
    tree[NUM_NODES][lane] = 1
    tree[EDGES_USED][lane] = np.int32(packed >> U1)
    tree[SIMULATIONS][lane] = 0
    tree[BUDGETS][lane] = budget
    tree[LEAF][lane] = ROOT
    return np.int64(packed >> U1)


@njit
def weigh(tree, e0, n, raw, settings, out):
    """Write `logit + sigma(completed q)` of edges `e0 .. e0 + n` to `out` (float32).

    Returns:
        Visits of the edges in all and the most visits of any.
    """
    c_visit, c_scale = settings[0], settings[1]
    logits, priors, visits, values = tree[EDGE_LOGIT], tree[EDGE_PRIOR], tree[EDGE_VISITS], tree[EDGE_VALUE]
    total = 0
    most = 0
    prior_sum = np.float32(0.0)
    weighted = np.float32(0.0)
    for i in range(e0, e0 + n):
        v = visits[i]
        if v > 0:
            total += v
            most = max(most, v)
            prior_sum += priors[i]
            weighted += priors[i] * values[i] / np.float32(v)
    mixed = raw
    if total > 0 and prior_sum > 0:
        mixed = (raw + np.float32(total) * weighted / prior_sum) / np.float32(1 + total)
    scale = np.float32(0.5) * (c_visit + np.float32(most)) * c_scale
    for i in range(n):
        v = visits[e0 + i]
        q = values[e0 + i] / np.float32(v) if v > 0 else mixed
        out[i] = logits[e0 + i] + scale * (q + np.float32(1.0))
    return total, most


@njit
def improve(out, n):
    """Turn scores into probabilities in place: the improved policy."""
    top = _LOWEST
    for i in range(n):
        top = max(top, out[i])
    total = np.float32(0.0)
    for i in range(n):
        out[i] = np.exp(out[i] - top)
        total += out[i]
    for i in range(n):
        out[i] /= total


@njit
def pick_root_edge(tree, e0, n, raw, target, settings, buffer):
    """Return the root edge that sequential halving visits next: the best score among those with `target` visits."""
    weigh(tree, e0, n, raw, settings, buffer)
    best = -1
    best_score = _LOWEST
    for i in range(n):
        score = buffer[i] + tree[EDGE_GUMBEL][e0 + i]
        if tree[EDGE_VISITS][e0 + i] == target and (best < 0 or score > best_score):
            best = i
            best_score = score
    return e0 + best


@njit
def pick_inner_edge(tree, e0, n, raw, settings, buffer):
    """Return the edge whose visits lag most behind the improved policy."""
    total, _most = weigh(tree, e0, n, raw, settings, buffer)
    if total > 0:
        improve(buffer, n)
    best = 0
    best_score = _LOWEST
    for i in range(n):
        score = buffer[i]
        if total > 0:
            score -= np.float32(tree[EDGE_VISITS][e0 + i]) / np.float32(1 + total)
        if score > best_score:
            best = i
            best_score = score
    return e0 + best


@njit
def back_up(tree, node, value, node0, edge0):
    """Add a leaf's value, seen by its player to move, to every edge on the way to the root; return its depth."""
    depth = 0
    while node != ROOT:
        depth += 1
        value = -value
        edge = edge0 + tree[PARENT_EDGE][node0 + node]
        tree[EDGE_VISITS][edge] += 1
        tree[EDGE_VALUE][edge] += value
        node = tree[PARENT][node0 + node]
    return depth


@njit
def count_repetitions(tab, tree, lane, node, node0, words):
    """Return how often the position of a new node has occurred on its path and in its game, as far as matters."""
    rows = tree[ROWS]
    key = rows[(node0 + node) * words]
    place = np.int64(rows[(node0 + node) * words + 3] >> REVERSIBLE_SHIFT)
    most = np.int64(tab[layout.T_REPETITIONS])
    found = 0
    back = 0
    ancestor = node
    while ancestor != ROOT and found < most:
        ancestor = tree[PARENT][node0 + ancestor]
        back += 1
        if back > place:
            return found
        if back >= 4 and rows[(node0 + ancestor) * words] == key:
            found += 1
    root_place = np.int64(rows[node0 * words + 3] >> REVERSIBLE_SHIFT)
    length = len(tree[HISTORIES]) // len(tree[NUM_NODES])
    while back < place and found < most:
        back += 1
        root_place -= 1
        if back >= 4 and root_place < length and tree[HISTORIES][lane * length + root_place] == key:
            found += 1
    return found


@njit
def expand(tab, zob, tree, lane, node, edge, scratch):
    """Make the child of an edge; its value is set when the game is over there. Returns the child's number."""
    rows, s8 = tree[ROWS], tree[ROW_BYTES]
    lanes = len(tree[NUM_NODES])
    words = np.int64(tab[layout.T_WORDS])
    node0 = lane * (len(rows) // (lanes * words))
    edge0 = lane * (len(tree[EDGE_MOVE]) // lanes)
    child = tree[NUM_NODES][lane]
    tree[NUM_NODES][lane] += 1
    source = (node0 + node) * words
    target = (node0 + child) * words
    for i in range(words):
        rows[target + i] = rows[source + i]
    make(tab, zob, s8, rows, U(target), tree[EDGE_MOVE][edge])
    tree[PARENT][node0 + child] = node
    tree[PARENT_EDGE][node0 + child] = edge - edge0
    tree[EDGE_CHILD][edge] = child
    s8[target * 8 + layout.REPETITIONS] = count_repetitions(tab, tree, lane, child, node0, words)
    used = tree[EDGES_USED][lane]
    packed = generate(tab, s8, rows, U(target), scratch, tree[EDGE_MOVE], U(edge0 + used))
    num_moves = packed >> U1
    ended = verdict(tab, s8, rows, U(target), num_moves, packed & U1)
    tree[FIRST_EDGE][node0 + child] = used
    if ended:
        tree[NUM_EDGES][node0 + child] = 0
        tree[OVER][node0 + child] = 1
        result = ended >> U4
        tree[RAW_VALUE][node0 + child] = np.float32(0.0)
        if result:
            tree[RAW_VALUE][node0 + child] = np.float32(-1.0) if result == LOSS else np.float32(1.0)
    else:
        tree[NUM_EDGES][node0 + child] = np.int32(num_moves)
        tree[OVER][node0 + child] = 0
        tree[EDGES_USED][lane] = used + np.int32(num_moves)
    return child


@njit
def select_leaf(tab, zob, tree, lane, schedule, settings, buffer, scratch):
    """Run a lane's simulations until one needs the network.

    Simulations that end in a finished game are backed up at once.

    Args:
        schedule: int32, visits that the root edge of each simulation must have (`halving_visits`), from the lane's
            plan on.

    Returns:
        The leaf to evaluate, or `FINISHED` when the budget is used up.
    """
    lanes = len(tree[NUM_NODES])
    words = np.int64(tab[layout.T_WORDS])
    node0 = lane * (len(tree[ROWS]) // (lanes * words))
    edge0 = lane * (len(tree[EDGE_MOVE]) // lanes)
    while tree[SIMULATIONS][lane] < tree[BUDGETS][lane]:
        node = ROOT
        while True:
            e0 = edge0 + tree[FIRST_EDGE][node0 + node]
            n = tree[NUM_EDGES][node0 + node]
            raw = tree[RAW_VALUE][node0 + node]
            if node == ROOT:
                wanted = schedule[tree[PLANS][lane] + tree[SIMULATIONS][lane]]
                edge = pick_root_edge(tree, e0, n, raw, wanted, settings, buffer)
            else:
                edge = pick_inner_edge(tree, e0, n, raw, settings, buffer)
            child = tree[EDGE_CHILD][edge]
            if child == UNVISITED:
                child = expand(tab, zob, tree, lane, node, edge, scratch)
                if not tree[OVER][node0 + child]:
                    return child
            if tree[OVER][node0 + child]:
                tree[SIMULATIONS][lane] += 1
                back_up(tree, child, tree[RAW_VALUE][node0 + child], node0, edge0)
                break
            node = child
    return FINISHED


@njit
def select_leaves(tab, zob, tree, lanes, schedule, settings, buffer, scratch, leaf_rows, leaf_actions):
    """Select one leaf in each given lane and lay out what the evaluator needs.

    Args:
        lanes: int64 [n].
        leaf_rows: uint64 [n * W], receives the rows of the leaves of lanes that are not finished, in order.
        leaf_actions: int32, receives their legal actions, `widest` each, padded with -1.

    Returns:
        How many leaves need the network, and the most legal actions of any.
    """
    words = np.int64(tab[layout.T_WORDS])
    num_lanes = len(tree[NUM_NODES])
    nodes_cap = len(tree[ROWS]) // (num_lanes * words)
    edges_cap = len(tree[EDGE_MOVE]) // num_lanes
    widest = 0
    for k in range(len(lanes)):
        lane = lanes[k]
        if tree[LEAF][lane] == NO_LEAF:
            tree[LEAF][lane] = select_leaf(tab, zob, tree, lane, schedule, settings, buffer, scratch)
        if tree[LEAF][lane] != FINISHED:
            widest = max(widest, tree[NUM_EDGES][lane * nodes_cap + tree[LEAF][lane]])
    count = 0
    for k in range(len(lanes)):
        lane = lanes[k]
        leaf = tree[LEAF][lane]
        if leaf == FINISHED:
            continue
        node = lane * nodes_cap + leaf
        n = tree[NUM_EDGES][node]
        e0 = lane * edges_cap + tree[FIRST_EDGE][node]
        for i in range(words):
            leaf_rows[count * words + i] = tree[ROWS][node * words + i]
        for i in range(n):
            leaf_actions[count * widest + i] = np.int32((tree[EDGE_MOVE][e0 + i] >> U16) & HALF)
        for i in range(n, widest):
            leaf_actions[count * widest + i] = -1
        count += 1
    return count, widest


@njit
def receive(tab, tree, lanes, logits, values):
    """Give the evaluations of the awaited leaves to their lanes, in the order of `select_leaves`, and back up.

    Args:
        logits: float32 [n, M].
        values: float32 [n], expected results of the players to move.
    """
    words = np.int64(tab[layout.T_WORDS])
    num_lanes = len(tree[NUM_NODES])
    nodes_cap = len(tree[ROWS]) // (num_lanes * words)
    edges_cap = len(tree[EDGE_MOVE]) // num_lanes
    k = 0
    for j in range(len(lanes)):
        lane = lanes[j]
        leaf = tree[LEAF][lane]
        if leaf == FINISHED:
            continue
        node0 = lane * nodes_cap
        n = tree[NUM_EDGES][node0 + leaf]
        e0 = lane * edges_cap + tree[FIRST_EDGE][node0 + leaf]
        top = _LOWEST
        for i in range(n):
            top = max(top, logits[k, i])
        total = np.float32(0.0)
        for i in range(n):
            tree[EDGE_LOGIT][e0 + i] = logits[k, i] - top
            tree[EDGE_PRIOR][e0 + i] = np.exp(logits[k, i] - top)
            total += tree[EDGE_PRIOR][e0 + i]
            tree[EDGE_VISITS][e0 + i] = 0
            tree[EDGE_VALUE][e0 + i] = np.float32(0.0)
            tree[EDGE_CHILD][e0 + i] = UNVISITED
        for i in range(n):
            tree[EDGE_PRIOR][e0 + i] /= total
        tree[RAW_VALUE][node0 + leaf] = values[k]
        tree[EVALUATIONS][lane] += 1
        if leaf != ROOT:
            tree[SIMULATIONS][lane] += 1
            tree[DEPTHS][lane] += back_up(tree, leaf, values[k], node0, lane * edges_cap)
        tree[LEAF][lane] = NO_LEAF
        k += 1


@njit
def conclude(tree, lane, settings, policy):
    """Return a finished search's move and value, and write its improved policy.

    Args:
        policy: float32 [M], receives the improved policy over the root's legal moves in their order, without Gumbel
            noise: the training target.

    Returns:
        The index of the chosen root edge among the legal moves (most visits, ties by the Gumbel score), and the
        root's value: the mean of the network's own and of every simulation's.
    """
    num_lanes = len(tree[NUM_NODES])
    node = lane * (len(tree[PARENT]) // num_lanes)
    e0 = lane * (len(tree[EDGE_MOVE]) // num_lanes) + tree[FIRST_EDGE][node]
    n = tree[NUM_EDGES][node]
    total, most = weigh(tree, e0, n, tree[RAW_VALUE][node], settings, policy)
    best = 0
    best_score = _LOWEST
    summed = tree[RAW_VALUE][node]
    for i in range(n):
        score = policy[i] + tree[EDGE_GUMBEL][e0 + i]
        summed += tree[EDGE_VALUE][e0 + i]
        if tree[EDGE_VISITS][e0 + i] == most and score > best_score:
            best = i
            best_score = score
    improve(policy, n)
    return best, summed / np.float32(1 + total)
