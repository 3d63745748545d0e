"""Compiled search of one position: PUCT with leaves batched inside the tree, immediate wins and proofs.

Dims: N nodes, E edges, W words a state row, n leaves of a batch, M legal moves. Values and proofs belong to the player
to move at the node, or at the node that owns the edge.
Sources: selection by Silver et al. 2018, "A general reinforcement learning algorithm that masters chess, shogi, and Go
through self-play" (AlphaZero, supplement, "Search"); virtual visits that count in the exploration term alone by Liu et
al. 2020, "Watch the Unobserved: a simple approach to parallelizing Monte Carlo tree search"; proofs by Winands,
Bjornsson and Saito 2008, "Monte-Carlo tree search solver"; a proven draw as a bound of the value by Cazenave and
Saffidine 2010, "Score bounded Monte-Carlo tree search".

`tree` is that of `search_kernels.py` with one lane, whose logits and Gumbel noise are not used; `more` is a tuple of
flat arrays beside it, named below.

A node's value is the mean of its own evaluation and of its children's values, each weighted by its visits; moves that
are proven to lose are left out, since they are never played. A move that is proven to draw makes it at least 0. Where
the node is proven, its value is exact. A proven move is not searched again.
"""

from __future__ import annotations

import numpy as np

from envs import layout
from envs.game_kernels import royal_attacked, verdict
from envs.jit import njit
from envs.kernels import H_REPETITION_RESULT, H_STALEMATE, HALF, LOSS, U4, U16, U, generate, make
from train.search_kernels import (
    EDGE_CHILD,
    EDGE_MOVE,
    EDGE_PRIOR,
    EDGE_VALUE,
    EDGE_VISITS,
    EDGES_USED,
    EVALUATIONS,
    FIRST_EDGE,
    NUM_EDGES,
    NUM_NODES,
    OVER,
    PARENT,
    PARENT_EDGE,
    RAW_VALUE,
    ROOT,
    ROW_BYTES,
    ROWS,
    SIMULATIONS,
    UNVISITED,
    count_repetitions,
    exceeds,
    expand,
    exploration,
)

# Arrays of `more`. Of nodes: the value float32, the sum and the weight that it is the mean of float64 and int32, the
# proof int8 and the plies to its end int16, does it await its evaluation, does a move of it draw for certain uint8.
VALUE, TOTAL, WEIGHT, PROOF, PLIES, AWAITING, CAN_DRAW = range(7)
# Of edges: visits under way int16, the proof int8 and the plies to its end int16.
EDGE_VIRTUAL, EDGE_PROOF, EDGE_PLIES = range(7, 10)

UNPROVEN, WIN, DRAW, PROVEN_LOSS = 0, 1, 2, -1
NO_EDGE = -1
LANE = 0


@njit
def winning_edge(tab, zob, tree, node, scratch):
    """Return an edge after which the opponent has lost at once, `NO_EDGE` if a node has none.

    The first free node and the free edges are used as scratch. Only a position in check needs its moves counted, but
    where stalemate or repetition may lose every one does.
    """
    rows, s8 = tree[ROWS], tree[ROW_BYTES]
    words = np.int64(tab[layout.T_WORDS])
    source = node * words
    trial = np.int64(tree[NUM_NODES][LANE])
    target = trial * words
    head = target * 8
    judge_all = U(tab[H_STALEMATE]) == LOSS or U(tab[H_REPETITION_RESULT]) == LOSS
    tree[PARENT][trial] = node
    first = tree[FIRST_EDGE][node]
    for edge in range(first, first + tree[NUM_EDGES][node]):
        for i in range(words):
            rows[target + i] = rows[source + i]
        make(tab, zob, s8, rows, U(target), tree[EDGE_MOVE][edge])
        ended = U(s8[head + layout.STATUS])
        if ended == 0 and (judge_all or royal_attacked(tab, s8, U(target), U(s8[head + layout.TO_PLAY]))):
            s8[head + layout.REPETITIONS] = count_repetitions(tab, tree, LANE, trial, 0, words)
            packed = generate(tab, s8, rows, U(target), scratch, tree[EDGE_MOVE], U(tree[EDGES_USED][LANE]))
            ended = verdict(tab, s8, rows, U(target), packed >> U(1), packed & U(1))
        if ended >> U4 == LOSS:
            return edge
    return NO_EDGE


@njit
def open_node(tab, zob, tree, more, node, scratch):
    """Prepare a new node and its edges, and prove what the rules alone prove: the end of the game, or a win at once."""
    first = tree[FIRST_EDGE][node]
    for edge in range(first, first + tree[NUM_EDGES][node]):
        tree[EDGE_PRIOR][edge] = np.float32(0.0)
        tree[EDGE_VISITS][edge] = 0
        tree[EDGE_VALUE][edge] = np.float32(0.0)
        tree[EDGE_CHILD][edge] = UNVISITED
        more[EDGE_VIRTUAL][edge] = 0
        more[EDGE_PROOF][edge] = UNPROVEN
        more[EDGE_PLIES][edge] = 0
    more[AWAITING][node] = 0
    more[CAN_DRAW][node] = 0
    more[PROOF][node] = UNPROVEN
    more[PLIES][node] = 0
    more[TOTAL][node] = 0.0
    more[WEIGHT][node] = 0
    if tree[OVER][node]:
        raw = tree[RAW_VALUE][node]
        more[VALUE][node] = raw
        more[PROOF][node] = WIN if raw > 0 else (PROVEN_LOSS if raw < 0 else DRAW)
        return
    edge = winning_edge(tab, zob, tree, node, scratch)
    if edge != NO_EDGE:
        more[EDGE_PROOF][edge] = WIN
        more[EDGE_PLIES][edge] = 1
        settle(tree, more, node)


@njit
def settle(tree, more, node):
    """Derive a node's proof from those of its edges: a win by the shortest, a loss by the longest of them.

    A node all of whose moves are proven is drawn when none wins and one draws. The value becomes exact.
    """
    won, drawn, lost = 0, 0, 0
    is_open = False
    first = tree[FIRST_EDGE][node]
    for edge in range(first, first + tree[NUM_EDGES][node]):
        proof = more[EDGE_PROOF][edge]
        plies = np.int64(more[EDGE_PLIES][edge])
        if proof == WIN:
            won = plies if won == 0 else min(won, plies)
        elif proof == DRAW:
            drawn = plies if drawn == 0 else min(drawn, plies)
        elif proof == PROVEN_LOSS:
            lost = max(lost, plies)
        else:
            is_open = True
    if won:
        more[PROOF][node], more[PLIES][node], more[VALUE][node] = WIN, won, np.float32(1.0)
    elif is_open:
        more[CAN_DRAW][node] = 1 if drawn else 0
    elif drawn:
        more[PROOF][node], more[PLIES][node], more[VALUE][node] = DRAW, drawn, np.float32(0.0)
    else:
        more[PROOF][node], more[PLIES][node], more[VALUE][node] = PROVEN_LOSS, lost, np.float32(-1.0)


@njit
def back_up(tree, more, node):
    """End a simulation at a node: its visit, value and proof go to every edge on the way to the root.

    What the edge had given to its owner's mean is taken back first, so that later values and proofs leave no trace of
    earlier ones.
    """
    visits, values, proofs, plies = tree[EDGE_VISITS], tree[EDGE_VALUE], more[EDGE_PROOF], more[EDGE_PLIES]
    while node != ROOT:
        edge = tree[PARENT_EDGE][node]
        parent = tree[PARENT][node]
        if proofs[edge] != PROVEN_LOSS:
            more[TOTAL][parent] -= values[edge]
            more[WEIGHT][parent] -= visits[edge]
        more[EDGE_VIRTUAL][edge] -= 1
        visits[edge] += 1
        values[edge] = -more[VALUE][node] * np.float32(visits[edge])
        proof = more[PROOF][node]
        if proof != UNPROVEN and (proofs[edge] == UNPROVEN or plies[edge] != more[PLIES][node] + 1):
            proofs[edge] = DRAW if proof == DRAW else -proof
            plies[edge] = more[PLIES][node] + 1
            settle(tree, more, parent)
        if proofs[edge] != PROVEN_LOSS:
            more[TOTAL][parent] += values[edge]
            more[WEIGHT][parent] += visits[edge]
        if more[PROOF][parent] == UNPROVEN:
            more[VALUE][parent] = np.float32(more[TOTAL][parent] / more[WEIGHT][parent])
            if more[CAN_DRAW][parent] and more[VALUE][parent] < 0:
                more[VALUE][parent] = np.float32(0.0)
        node = parent


@njit
def take_back(tree, more, node):
    """Undo the virtual visits on the way to a node."""
    while node != ROOT:
        more[EDGE_VIRTUAL][tree[PARENT_EDGE][node]] -= 1
        node = tree[PARENT][node]


@njit
def pick_unvisited(tree, more, node):
    """Return a node's most probable edge that no simulation has taken, `NO_EDGE` if there is none."""
    best = NO_EDGE
    first = tree[FIRST_EDGE][node]
    for edge in range(first, first + tree[NUM_EDGES][node]):
        if tree[EDGE_VISITS][edge] + more[EDGE_VIRTUAL][edge] == 0:
            if best == NO_EDGE or exceeds(tree[EDGE_MOVE], tree[EDGE_PRIOR][edge], edge, tree[EDGE_PRIOR][best], best):
                best = edge
    return best


@njit
def pick(tree, more, node, visits, settings):
    """Return the unproven edge of an unproven node that PUCT takes next.

    Args:
        visits: Visits of the node, those under way included.
        settings: (`c_puct`, `c_puct_base`, `fpu_reduction`), float32.
    """
    c_puct, c_puct_base, fpu_reduction = settings
    scale = exploration(np.float32(visits), c_puct, c_puct_base)
    unvisited = more[VALUE][node] - fpu_reduction
    best = NO_EDGE
    best_score = np.float32(0.0)
    first = tree[FIRST_EDGE][node]
    for edge in range(first, first + tree[NUM_EDGES][node]):
        if more[EDGE_PROOF][edge] != UNPROVEN:
            continue
        count = tree[EDGE_VISITS][edge]
        score = tree[EDGE_VALUE][edge] / np.float32(count) if count > 0 else unvisited
        score += scale * tree[EDGE_PRIOR][edge] / np.float32(1 + count + more[EDGE_VIRTUAL][edge])
        if best == NO_EDGE or exceeds(tree[EDGE_MOVE], score, edge, best_score, best):
            best = edge
            best_score = score
    return best


@njit
def select(tab, zob, tree, more, limits, settings, waiting, collided, scratch):
    """Run simulations until enough leaves await their evaluation.

    Simulations that end in a position that is proven when it is new are backed up at once. One that meets a waiting
    leaf is none: its virtual visits turn later ones elsewhere, and are undone by `receive`.

    Args:
        limits: Simulations allowed in all, and a bound of the legal moves of any position.
        waiting: int32 [n], receives the leaves.
        collided: int32 [n], receives the leaves that were met again.

    Returns:
        The number of each. Fewer leaves than there is room for: the budget is used up, the root is proven, leaves were
        met again as often as there is room for, or the arrays must grow.
    """
    budget, bound = limits
    nodes_cap = len(tree[PARENT])
    edges_cap = len(tree[EDGE_MOVE])
    leaves, met = 0, 0
    while (
        leaves < len(waiting)
        and met < len(collided)
        and tree[SIMULATIONS][LANE] + leaves < budget
        and more[PROOF][ROOT] == UNPROVEN
        and tree[NUM_NODES][LANE] + 2 <= nodes_cap
        and tree[EDGES_USED][LANE] + 2 * bound <= edges_cap
    ):
        node = np.int64(ROOT)
        visits = np.int64(1 + tree[SIMULATIONS][LANE] + leaves + met)
        while True:
            edge = pick_unvisited(tree, more, node) if node == ROOT else NO_EDGE
            if edge == NO_EDGE:
                edge = pick(tree, more, node, visits, settings)
            visits = np.int64(tree[EDGE_VISITS][edge] + more[EDGE_VIRTUAL][edge])
            more[EDGE_VIRTUAL][edge] += 1
            child = np.int64(tree[EDGE_CHILD][edge])
            if child == UNVISITED:
                child = np.int64(expand(tab, zob, tree, LANE, node, edge, scratch))
                open_node(tab, zob, tree, more, child, scratch)
                if more[PROOF][child] == UNPROVEN:
                    more[AWAITING][child] = 1
                    waiting[leaves] = child
                    leaves += 1
                else:
                    tree[SIMULATIONS][LANE] += 1
                    back_up(tree, more, child)
                break
            if more[AWAITING][child]:
                collided[met] = child
                met += 1
                break
            node = child
    return leaves, met


@njit
def lay_out(tab, tree, leaves, leaf_rows, leaf_actions):
    """Lay out what the evaluator needs of leaves.

    Args:
        leaf_rows: uint64 [n * W], written.
        leaf_actions: int32, receives the legal actions, `widest` each, padded with -1.

    Returns:
        `widest`, the most legal actions of any.
    """
    words = np.int64(tab[layout.T_WORDS])
    widest = 0
    for k in range(len(leaves)):
        widest = max(widest, tree[NUM_EDGES][leaves[k]])
    for k in range(len(leaves)):
        node = np.int64(leaves[k])
        count = tree[NUM_EDGES][node]
        first = tree[FIRST_EDGE][node]
        for i in range(words):
            leaf_rows[k * words + i] = tree[ROWS][node * words + i]
        for i in range(count):
            leaf_actions[k * widest + i] = np.int32((tree[EDGE_MOVE][first + i] >> U16) & HALF)
        for i in range(count, widest):
            leaf_actions[k * widest + i] = -1
    return widest


@njit
def evaluate(tree, more, node, logits, value):
    """Give a node its evaluation: logits float32 [M] of its moves, and the expected result of its player."""
    first = tree[FIRST_EDGE][node]
    count = tree[NUM_EDGES][node]
    top = logits[0]
    for i in range(count):
        top = max(top, logits[i])
    total = np.float32(0.0)
    for i in range(count):
        tree[EDGE_PRIOR][first + i] = np.exp(logits[i] - top)
        total += tree[EDGE_PRIOR][first + i]
    for i in range(count):
        tree[EDGE_PRIOR][first + i] /= total
    tree[RAW_VALUE][node] = value
    tree[EVALUATIONS][LANE] += 1
    more[AWAITING][node] = 0
    more[TOTAL][node] += value
    more[WEIGHT][node] += 1
    if more[PROOF][node] == UNPROVEN:
        more[VALUE][node] = value


@njit
def receive(tree, more, leaves, collided, logits, values):
    """Give the leaves of `select` their evaluations, back them up, and undo the virtual visits of those met again.

    Args:
        logits: float32 [n, M].
        values: float32 [n], expected results of the players to move.
    """
    for k in range(len(leaves)):
        node = np.int64(leaves[k])
        evaluate(tree, more, node, logits[k], values[k])
        tree[SIMULATIONS][LANE] += 1
        back_up(tree, more, node)
    for k in range(len(collided)):
        take_back(tree, more, np.int64(collided[k]))
