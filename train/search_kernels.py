"""Compiled search trees: selection, expansion and backup for many games in lockstep.

Dims: B lanes (one tree each), N nodes a tree, E edges a tree, W words a state row, M legal moves of a node. Values and
`q` belong to the player to move at the node that owns the edge and lie in [-1, 1]; the completed Q-values of the Gumbel
rule are mapped to [0, 1].

Sources. Gumbel: Danihelka et al. 2022, "Policy improvement by planning with Gumbel": sequential halving at the root
(section 3), completed Q-values (4, eq. 10; appendix D, eq. 33 for the mixed value), deterministic selection inside (5,
eq. 14). PUCT: Silver et al. 2018, "A general reinforcement learning algorithm that masters chess, shogi and Go through
self-play" (supplement, "Search"); first-play urgency with reduction as in Leela Chess Zero and KataGo.

`tree` is a tuple of flat arrays, named below; node n of lane l is at `l * N + n`, edge e of it at `l * E + e`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from envs import layout
from envs.game_kernels import verdict
from envs.jit import njit
from envs.kernels import HALF, LOSS, REVERSIBLE_SHIFT, U0, U1, U4, U8, U16, U, generate, make
from envs.lane_kernels import observe

# Arrays of `tree`. Of nodes: the rows uint64 [B * N * W], the same as bytes, the parent, its edge to the node, the
# first edge and the number of edges int32, what the network or a finished game said float32, is the game over uint8.
ROWS, ROW_BYTES, PARENT, PARENT_EDGE, FIRST_EDGE, NUM_EDGES, RAW_VALUE, OVER = range(8)
# Of edges: the move uint64, logarithm of the prior and prior float32, visits int32, sum of values float32, child int32
# (UNVISITED before expansion), noise float32 (at roots: Gumbel numbers, or with PUCT the priors with their noise).
EDGE_MOVE, EDGE_LOGIT, EDGE_PRIOR, EDGE_VISITS, EDGE_VALUE, EDGE_CHILD, EDGE_NOISE = range(8, 15)
# Of lanes: nodes and edges in use, simulations done and allowed, where the lane's visits begin in `schedule`, the node
# awaiting evaluation int32 [B]; keys of the game so far uint64 [B * L]; the bound of legal moves int32, the noise's
# share of the root's priors float32, counts of evaluations, of those recalled, and of their depths int64 [B].
NUM_NODES, EDGES_USED, SIMULATIONS, BUDGETS, PLANS, LEAF, HISTORIES = range(15, 22)
BOUNDS, NOISE_SHARES, EVALUATIONS, RECALLED, DEPTHS = range(22, 27)
# Arrays of `cache`: the keys uint64 and places int64 of evaluations, their legal moves int32, their values float32 [K];
# their logits float32 [P], a ring; logits ever written int64 [1]. K is a power of two; 0 is no cache.
CACHE_KEYS, CACHE_PLACES, CACHE_COUNTS, CACHE_VALUES, CACHE_LOGITS, CACHE_WRITTEN = range(6)

ROOT = 0
UNVISITED = -1
NO_LEAF = -1
FINISHED = -2
NO_ROOM = -3
_LOWEST = np.float32(-3.0e38)
_MIX = U(0x9E3779B97F4A7C15)


class Knobs(NamedTuple):
    """The knobs of the search as the kernels need them, all float32 but the first; see `search.SearchSettings`."""

    is_puct: bool
    c_visit: np.float32
    c_scale: np.float32
    c_puct: np.float32
    c_puct_base: np.float32
    fpu_reduction: np.float32


# --- Trees --------------------------------------------------------------------------------------


@njit
def legal_bound(tab, most_by_code, s8, first):
    """Return an upper bound of legal moves for the whole game from a board, whose bytes begin at `first`.

    Args:
        most_by_code: int64 [2 * codes + 1], most moves by piece code, White's list, Black's, and of castling.
    """
    white, black = 0, 0
    for square in range(np.int64(tab[layout.T_SQUARES])):
        code = np.int64(s8[first + square])
        white += most_by_code[code]
        black += most_by_code[layout.NUM_CODES + code]
    return max(white, black, 1) + most_by_code[2 * layout.NUM_CODES]


@njit
def plant(tab, tree, lane, row, history, budget, scratch):
    """Make a lane's tree a bare root, awaiting its evaluation; `row` is uint64 [W], `history` uint64 [at most L].

    Returns the number of legal moves, 0 where the game is over.
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
    for i in range(len(history), length):
        tree[HISTORIES][lane * length + i] = U0
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
    return np.int64(0) if verdict(tab, s8, rows, U(base), packed >> U1, packed & U1) else np.int64(packed >> U1)


@njit
def begin_lane(tab, most_by_code, tree, lane, row, history, budget, noise_share, scratch):
    """Begin a search in a lane, see `plant`.

    Args:
        row: uint64 [W], the root.
        noise_share: float32, what the root's noise counts for in its priors (PUCT), which are then written in its
            place; below 0 it stays as it is.

    Returns:
        The number of legal moves, 0 where the game is over; where the lane has too few edges for them `-bound`, and
        nothing has been done.
    """
    words = len(row)
    base = lane * (len(tree[ROWS]) // len(tree[NUM_NODES]))
    for i in range(words):
        tree[ROWS][base + i] = row[i]
    bound = legal_bound(tab, most_by_code, tree[ROW_BYTES], base * 8 + layout.HEADER_BYTES)
    if bound > len(tree[EDGE_MOVE]) // len(tree[NUM_NODES]):
        return -bound
    tree[BOUNDS][lane] = bound
    tree[NOISE_SHARES][lane] = noise_share
    return plant(tab, tree, lane, row, history, budget, scratch)


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


# --- Gumbel -------------------------------------------------------------------------------------


@njit
def exceeds(moves, score, edge, best_score, best):
    """Return whether an edge beats the best one so far: a better score, or the same one and the lower action.

    Takes the array of moves alone: where it is not inlined, all arrays of a tree would take longer than the comparison.
    """
    if score != best_score:
        return score > best_score
    return (moves[edge] >> U16) & HALF < (moves[best] >> U16) & HALF


@njit
def tally(tree, first, end, raw):
    """Sum up the visited edges among `first .. end`, both uint64.

    Returns:
        Visits in all, the most of any edge, the edges' share of the priors, and the value that completes the others:
        the network's own mixed with the visited edges' values, weighted by their priors (eq. 33). And the unvisited
        edge with the best prior, -1 if there is none. Ties here and below go to the lower action, which both colours
        share.
    """
    total, most, fresh = 0, 0, -1
    seen, weighted, fresh_logit = np.float32(0.0), np.float32(0.0), _LOWEST
    for i in range(first, end):
        visits = tree[EDGE_VISITS][i]
        if visits > 0:
            total += visits
            most = max(most, visits)
            seen += tree[EDGE_PRIOR][i]
            weighted += tree[EDGE_PRIOR][i] * tree[EDGE_VALUE][i] / np.float32(visits)
        elif fresh < 0 or exceeds(tree[EDGE_MOVE], tree[EDGE_LOGIT][i], i, fresh_logit, fresh):
            fresh = np.int64(i)
            fresh_logit = tree[EDGE_LOGIT][i]
    mixed = raw
    if seen > 0:
        mixed = (raw + np.float32(total) * weighted / seen) / np.float32(1 + total)
    return total, most, seen, mixed, fresh


@njit
def q_scale(knobs, most):
    """Return the weight of a value in [-1, 1] beside a logit (eq. 8, with values mapped to [0, 1])."""
    return np.float32(0.5) * (knobs.c_visit + np.float32(most)) * knobs.c_scale


@njit
def pick_halving_edge(tree, first, end, target, knobs):
    """Return the root edge that sequential halving visits next: the best score among those with `target` visits.

    They are all visited or all unvisited; the latter have one completed value in common, which decides nothing.
    """
    most = 0
    for i in range(first, end):
        most = max(most, tree[EDGE_VISITS][i])
    scale = q_scale(knobs, most)
    best = -1
    best_score = _LOWEST
    for i in range(first, end):
        if tree[EDGE_VISITS][i] != target:
            continue
        score = tree[EDGE_LOGIT][i] + tree[EDGE_NOISE][i]
        if target > 0:
            score += scale * tree[EDGE_VALUE][i] / np.float32(target)
        if best < 0 or exceeds(tree[EDGE_MOVE], score, i, best_score, best):
            best = np.int64(i)
            best_score = score
    return best


@njit
def pick_lagging_edge(tree, first, end, raw, knobs):
    """Return the edge whose visits lag most behind the improved policy (eq. 14).

    Unvisited edges have one completed value in common: of them only the one with the best logit can be picked, and
    their share of the policy follows from their share of the priors, so that visited edges alone need an exponential.
    """
    total, most, seen, mixed, fresh = tally(tree, first, end, raw)
    if total == 0:
        return fresh
    scale = q_scale(knobs, most)
    top = _LOWEST
    for i in range(first, end):
        visits = tree[EDGE_VISITS][i]
        if visits > 0:
            top = max(top, tree[EDGE_LOGIT][i] + scale * tree[EDGE_VALUE][i] / np.float32(visits))
    weight = np.float32(0.0)
    if fresh >= 0:
        top = max(top, tree[EDGE_LOGIT][fresh] + scale * mixed)
        weight = np.exp(tree[EDGE_LOGIT][fresh] + scale * mixed - top)
    norm = weight
    if seen < np.float32(1.0) and fresh >= 0:
        norm = max(norm, np.exp(np.log(np.float32(1.0) - seen) + scale * mixed - top))
    for i in range(first, end):
        visits = tree[EDGE_VISITS][i]
        if visits > 0:
            norm += np.exp(tree[EDGE_LOGIT][i] + scale * tree[EDGE_VALUE][i] / np.float32(visits) - top)
    best = fresh
    best_score = weight / norm if fresh >= 0 else _LOWEST
    for i in range(first, end):
        visits = tree[EDGE_VISITS][i]
        if visits > 0:
            score = np.exp(tree[EDGE_LOGIT][i] + scale * tree[EDGE_VALUE][i] / np.float32(visits) - top) / norm
            score -= np.float32(visits) / np.float32(1 + total)
            if best < 0 or exceeds(tree[EDGE_MOVE], score, i, best_score, best):
                best = np.int64(i)
                best_score = score
    return best


@njit
def conclude_gumbel(tree, lane, knobs, policy):
    """Choose a finished search's move, and write its improved policy.

    Args:
        policy: float32 [M], receives the improved policy over the root's legal moves in their order, without noise.

    Returns:
        The number of the chosen move among the legal ones (most visits, ties by the Gumbel score), and the root's
        value: what the improved policy is worth. Halving visits worse moves for their own sake, so that the mean of
        all simulations does not converge to the truth.
    """
    node, first, end = root_of(tree, lane)
    _total, most, _seen, mixed, _fresh = tally(tree, first, end, tree[RAW_VALUE][node])
    scale = q_scale(knobs, most)
    best = first
    best_score = _LOWEST
    top = _LOWEST
    for i in range(first, end):
        visits = tree[EDGE_VISITS][i]
        value = tree[EDGE_VALUE][i] / np.float32(visits) if visits > 0 else mixed
        policy[i - first] = tree[EDGE_LOGIT][i] + scale * value
        top = max(top, policy[i - first])
        score = policy[i - first] + tree[EDGE_NOISE][i]
        if visits == most and (best_score == _LOWEST or exceeds(tree[EDGE_MOVE], score, i, best_score, best)):
            best = i
            best_score = score
    norm, worth = np.float32(0.0), np.float32(0.0)
    for i in range(first, end):
        visits = tree[EDGE_VISITS][i]
        weight = np.exp(policy[i - first] - top)
        policy[i - first] = weight
        norm += weight
        worth += weight * (tree[EDGE_VALUE][i] / np.float32(visits) if visits > 0 else mixed)
    for i in range(end - first):
        policy[i] /= norm
    return np.int64(best - first), worth / norm


# --- PUCT ---------------------------------------------------------------------------------------


@njit
def exploration(visits, c_puct, c_puct_base):
    """Return what PUCT multiplies priors by, of the visits of a node, its own evaluation included (float32)."""
    return (np.log((np.float32(1.0) + visits + c_puct_base) / c_puct_base) + c_puct) * np.sqrt(visits)


@njit
def pick_puct_edge(tree, first, end, raw, priors, knobs):
    """Return the edge with the best upper bound `q + c P sqrt(N) / (1 + visits)`.

    An unvisited edge has the node's own value so far, less a share of what has been seen (first-play urgency); of such
    edges only the one with the best prior can be picked.

    Args:
        priors: float32, P of each edge: `tree[EDGE_PRIOR]`, or with the noise of the root `tree[EDGE_NOISE]`.
    """
    moves, counts, values = tree[EDGE_MOVE], tree[EDGE_VISITS], tree[EDGE_VALUE]
    total, seen, summed = 0, np.float32(0.0), raw
    fresh, fresh_prior = -1, np.float32(0.0)
    for i in range(first, end):
        visits = counts[i]
        if visits > 0:
            total += visits
            seen += tree[EDGE_PRIOR][i]
            summed += values[i]
        elif fresh < 0 or exceeds(moves, priors[i], i, fresh_prior, fresh):
            fresh = np.int64(i)
            fresh_prior = priors[i]
    passes = np.float32(1 + total)
    urgency = max(np.float32(-1.0), summed / passes - knobs.fpu_reduction * np.sqrt(seen))
    explore = exploration(passes, knobs.c_puct, knobs.c_puct_base)
    best = fresh
    best_score = urgency + explore * fresh_prior if fresh >= 0 else _LOWEST
    for i in range(first, end):
        if counts[i] > 0:
            visits = np.float32(counts[i])
            score = values[i] / visits + explore * priors[i] / (visits + np.float32(1.0))
            if best < 0 or exceeds(moves, score, i, best_score, best):
                best = np.int64(i)
                best_score = score
    return best


@njit
def conclude_puct(tree, lane, policy):
    """Choose a finished search's move, and write its policy: the shares of the visits, the priors without any.

    Args:
        policy: float32 [M], receives it.

    Returns:
        The number of the chosen move among the legal ones (most visits, ties by the prior), and the root's value.
    """
    _node, first, end = root_of(tree, lane)
    total = 0
    best = first
    for i in range(first, end):
        visits, most = tree[EDGE_VISITS][i], tree[EDGE_VISITS][best]
        total += visits
        if visits > most or (
            visits == most and exceeds(tree[EDGE_MOVE], tree[EDGE_PRIOR][i], i, tree[EDGE_PRIOR][best], best)
        ):
            best = i
    for i in range(first, end):
        policy[i - first] = tree[EDGE_VISITS][i] / np.float32(total) if total else tree[EDGE_PRIOR][i]
    return np.int64(best - first), root_value(tree, lane)


# --- Rounds -------------------------------------------------------------------------------------


@njit
def root_of(tree, lane):
    """Return a lane's root: its node, its first edge and the end of its edges, both uint64."""
    node = lane * (len(tree[PARENT]) // len(tree[NUM_NODES]))
    first = lane * (len(tree[EDGE_MOVE]) // len(tree[NUM_NODES])) + tree[FIRST_EDGE][node]
    return node, U(first), U(first + tree[NUM_EDGES][node])


@njit
def root_value(tree, lane):
    """Return the mean of the network's own value of the root and of every simulation's."""
    node, first, end = root_of(tree, lane)
    total = 1
    summed = tree[RAW_VALUE][node]
    for i in range(first, end):
        total += tree[EDGE_VISITS][i]
        summed += tree[EDGE_VALUE][i]
    return summed / np.float32(total)


@njit
def pick_edge(tree, lane, node, first, end, schedule, knobs):
    """Return the edge that a simulation follows from a node (its number in the tree), edges `first .. end`, uint64."""
    raw = tree[RAW_VALUE][lane * (len(tree[PARENT]) // len(tree[NUM_NODES])) + node]
    if knobs.is_puct:
        return pick_puct_edge(tree, first, end, raw, tree[EDGE_NOISE] if node == ROOT else tree[EDGE_PRIOR], knobs)
    if node == ROOT:
        target = schedule[tree[PLANS][lane] + tree[SIMULATIONS][lane]]
        return pick_halving_edge(tree, first, end, target, knobs)
    return pick_lagging_edge(tree, first, end, raw, knobs)


@njit
def follow(tab, zob, tree, lane, node, edge, scratch):
    """Go down an edge, expanding it at the first visit; a finished game is backed up at once.

    Returns:
        The child, and whether it awaits its evaluation.
    """
    lanes = len(tree[NUM_NODES])
    node0 = lane * (len(tree[PARENT]) // lanes)
    edges_cap = len(tree[EDGE_MOVE]) // lanes
    child = tree[EDGE_CHILD][edge]
    if child == UNVISITED:
        child = expand(tab, zob, tree, lane, node, edge, scratch)
        if not tree[OVER][node0 + child]:
            return child, True
    if tree[OVER][node0 + child]:
        tree[SIMULATIONS][lane] += 1
        back_up(tree, child, tree[RAW_VALUE][node0 + child], node0, lane * edges_cap)
    return child, False


@njit
def select_leaf(tab, zob, tree, lane, schedule, knobs, scratch):
    """Run a lane's simulations until one needs the network.

    Args:
        schedule: int32, visits that the root edge of each simulation must have (`halving_visits`), from the lane's
            plan on.

    Returns:
        The leaf to evaluate, or `FINISHED` when the budget is used up.
    """
    lanes = len(tree[NUM_NODES])
    node0 = lane * (len(tree[PARENT]) // lanes)
    edge0 = lane * (len(tree[EDGE_MOVE]) // lanes)
    while tree[SIMULATIONS][lane] < tree[BUDGETS][lane]:
        node = np.int32(ROOT)
        while True:
            first = edge0 + tree[FIRST_EDGE][node0 + node]
            end = first + tree[NUM_EDGES][node0 + node]
            edge = pick_edge(tree, lane, node, U(first), U(end), schedule, knobs)
            node, awaits = follow(tab, zob, tree, lane, node, edge, scratch)
            if awaits:
                return node
            if tree[OVER][node0 + node]:
                break
    return np.int32(FINISHED)


@njit
def has_room(tree, lanes):
    """Return whether each lane (int64 [n]) has edges enough for one more node."""
    edges_cap = len(tree[EDGE_MOVE]) // len(tree[NUM_NODES])
    for k in range(len(lanes)):
        if tree[EDGES_USED][lanes[k]] + tree[BOUNDS][lanes[k]] > edges_cap:
            return False
    return True


@njit
def select_leaves(tab, zob, tree, cache, lanes, schedule, knobs, scratch):
    """Select one leaf in each given lane (int64 [n]) that awaits none.

    A leaf whose evaluation is in the cache is given it at once; its lane goes on in the next round, as all do, so that
    rounds are the same with the cache and without.
    """
    for k in range(len(lanes)):
        lane = lanes[k]
        if tree[LEAF][lane] == NO_LEAF:
            tree[LEAF][lane] = select_leaf(tab, zob, tree, lane, schedule, knobs, scratch)
        if tree[LEAF][lane] >= 0:
            recall(tab, tree, cache, lane)


@njit
def lay_out(tab, tree, lanes, leaf_rows, leaf_bytes, leaf_actions, planes):
    """Lay out what the evaluator needs of the leaves that await it, in the order of their lanes.

    Args:
        lanes: int64 [n].
        leaf_rows, leaf_bytes: uint64 [n * W], the same as bytes; receive the rows of the leaves.
        leaf_actions: int32, receives their legal actions, `widest` each, padded with -1.
        planes: float32 [n * C * cells], receives their planes.

    Returns:
        How many leaves there are, and the most legal actions of any.
    """
    words = np.int64(tab[layout.T_WORDS])
    num_lanes = len(tree[NUM_NODES])
    nodes_cap = len(tree[PARENT]) // num_lanes
    edges_cap = len(tree[EDGE_MOVE]) // num_lanes
    widest = 0
    for k in range(len(lanes)):
        if tree[LEAF][lanes[k]] >= 0:
            widest = max(widest, tree[NUM_EDGES][lanes[k] * nodes_cap + tree[LEAF][lanes[k]]])
    count = 0
    for k in range(len(lanes)):
        lane = lanes[k]
        if tree[LEAF][lane] < 0:
            continue
        node = lane * nodes_cap + tree[LEAF][lane]
        n = tree[NUM_EDGES][node]
        e0 = lane * edges_cap + tree[FIRST_EDGE][node]
        for i in range(words):
            leaf_rows[count * words + i] = tree[ROWS][node * words + i]
        for i in range(n):
            leaf_actions[count * widest + i] = np.int32((tree[EDGE_MOVE][e0 + i] >> U16) & HALF)
        for i in range(n, widest):
            leaf_actions[count * widest + i] = -1
        count += 1
    observe(tab, leaf_bytes, leaf_rows[: count * words], planes)
    return count, widest


@njit
def next_batch(tab, zob, tree, cache, lanes, schedule, knobs, scratch, leaf_rows, leaf_bytes, leaf_actions, planes):
    """Select leaves and lay them out (`select_leaves`, `lay_out`); the count is `NO_ROOM` without room for all."""
    if not has_room(tree, lanes):
        return NO_ROOM, 0
    select_leaves(tab, zob, tree, cache, lanes, schedule, knobs, scratch)
    return lay_out(tab, tree, lanes, leaf_rows, leaf_bytes, leaf_actions, planes)


@njit
def receive(tab, tree, cache, lanes, logits, wdl):
    """Give the evaluations of the awaited leaves to their lanes, in the order of `lay_out`, and back up.

    Args:
        logits: float32 [n, M].
        wdl: float32 [n, 3], chances of win, draw and loss of the players to move.
    """
    flat = logits.reshape(-1)
    width = logits.shape[1]
    k = 0
    for j in range(len(lanes)):
        if tree[LEAF][lanes[j]] >= 0:
            value = wdl[k, 0] - wdl[k, 2]
            store(tab, tree, cache, lanes[j], flat, k * width, value)
            tree[EVALUATIONS][lanes[j]] += 1
            settle(tree, lanes[j], flat, U(k * width), value)
            k += 1


@njit
def first_unusable(logits, wdl, actions):
    """Return the first evaluation that no search can use, -1 when there is none.

    Its value is not finite, the logit of a listed action (int32 [n, M], padded with -1) is nan or inf, or all are -inf.
    """
    for k in range(len(wdl)):
        top = -np.float32(np.inf)
        for i in range(actions.shape[1]):
            if actions[k, i] >= 0:
                if not logits[k, i] < np.float32(np.inf):
                    return k
                top = max(top, logits[k, i])
        if not (np.isfinite(top) and np.isfinite(wdl[k, 0] - wdl[k, 2])):
            return k
    return -1


@njit
def list_spent(tree, lanes, spent):
    """Write to bool [n] whether the budgets of the lanes are used up."""
    for k in range(len(lanes)):
        spent[k] = tree[SIMULATIONS][lanes[k]] >= tree[BUDGETS][lanes[k]]


@njit
def settle(tree, lane, logits, first, value):
    """Give a lane's awaited leaf its priors and value and back it up; its logits begin at `logits[first]`, uint64."""
    num_lanes = len(tree[NUM_NODES])
    node0 = lane * (len(tree[PARENT]) // num_lanes)
    edge0 = lane * (len(tree[EDGE_MOVE]) // num_lanes)
    leaf = tree[LEAF][lane]
    e = U(edge0 + tree[FIRST_EDGE][node0 + leaf])
    n = U(tree[NUM_EDGES][node0 + leaf])
    top = _LOWEST
    for i in range(first, first + n):
        top = max(top, logits[i])
    norm = np.float32(0.0)
    for i in range(n):
        weight = np.exp(logits[first + i] - top)
        tree[EDGE_PRIOR][e + i] = weight
        norm += weight
    scale = np.float32(1.0) / norm
    top += np.log(norm)
    for i in range(n):
        tree[EDGE_LOGIT][e + i] = logits[first + i] - top
        tree[EDGE_PRIOR][e + i] *= scale
        tree[EDGE_VISITS][e + i] = 0
        tree[EDGE_VALUE][e + i] = np.float32(0.0)
        tree[EDGE_CHILD][e + i] = UNVISITED
    share = tree[NOISE_SHARES][lane]
    if leaf == ROOT and share >= 0:
        for i in range(e, e + n):
            tree[EDGE_NOISE][i] = tree[EDGE_PRIOR][i] + share * (tree[EDGE_NOISE][i] - tree[EDGE_PRIOR][i])
    tree[RAW_VALUE][node0 + leaf] = value
    if leaf != ROOT:
        tree[SIMULATIONS][lane] += 1
        tree[DEPTHS][lane] += back_up(tree, leaf, value, node0, edge0)
    tree[LEAF][lane] = NO_LEAF


# --- Cache --------------------------------------------------------------------------------------


@njit
def cache_key(tab, tree, lane):
    """Return the key of a lane's awaited leaf: all that its planes show, but for chance as good as unique.

    Position (the Zobrist key), half-move clock, and how often the position has occurred.
    """
    words = np.int64(tab[layout.T_WORDS])
    first = (lane * (len(tree[PARENT]) // len(tree[NUM_NODES])) + tree[LEAF][lane]) * words
    extras = (tree[ROWS][first + 2] & HALF) << U8 | U(tree[ROW_BYTES][first * 8 + layout.REPETITIONS])
    key = tree[ROWS][first] ^ (extras + U1) * _MIX
    return key ^ key >> U(32)


@njit
def recall(tab, tree, cache, lane):
    """Give a lane's awaited leaf what the cache knows of it, if anything."""
    size = len(cache[CACHE_KEYS])
    if size == 0:
        return
    key = cache_key(tab, tree, lane)
    slot = np.int64(key & U(size - 1))
    node = lane * (len(tree[PARENT]) // len(tree[NUM_NODES])) + tree[LEAF][lane]
    if cache[CACHE_KEYS][slot] != key or cache[CACHE_COUNTS][slot] != tree[NUM_EDGES][node]:
        return
    place = cache[CACHE_PLACES][slot]
    if cache[CACHE_WRITTEN][0] - place > len(cache[CACHE_LOGITS]):
        return
    tree[RECALLED][lane] += 1
    settle(tree, lane, cache[CACHE_LOGITS], U(place % len(cache[CACHE_LOGITS])), cache[CACHE_VALUES][slot])


@njit
def store(tab, tree, cache, lane, logits, first, value):
    """Enter the evaluation of a lane's awaited leaf; an older one in its slot, or in its part of the ring, is lost."""
    size, ring = len(cache[CACHE_KEYS]), len(cache[CACHE_LOGITS])
    node = lane * (len(tree[PARENT]) // len(tree[NUM_NODES])) + tree[LEAF][lane]
    n = tree[NUM_EDGES][node]
    if size == 0 or n > ring:
        return
    key = cache_key(tab, tree, lane)
    slot = np.int64(key & U(size - 1))
    place = cache[CACHE_WRITTEN][0]
    if place % ring + n > ring:
        place += ring - place % ring
    for i in range(n):
        cache[CACHE_LOGITS][place % ring + i] = logits[first + i]
    cache[CACHE_WRITTEN][0] = place + n
    cache[CACHE_KEYS][slot] = key
    cache[CACHE_PLACES][slot] = place
    cache[CACHE_COUNTS][slot] = n
    cache[CACHE_VALUES][slot] = value
