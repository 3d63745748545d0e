"""Compiled alpha-beta search: one loop over a stack of positions, for every game.

Dims: S squares, W words a state row, P plies of the stack, F fields of a frame. Scores are int64 in units of the
weights and belong to the player to move at their node; the static evaluation in a frame is White's.

Arguments that recur, beside those of `envs/kernels.py`:
    weights: int32 [32 * S], what a piece code on a square adds to White's evaluation; 0 for code 0.
    moves, order: uint64 and int64, the move lists of the path behind one another, and what each move is ranked by.
    frames: int64 [P * F], the search's state at each ply, fields named below; row p of `s64` is the position there.

Sources: principal variation search by Marsland and Campbell 1982, "Parallel search of strongly ordered game trees";
the history heuristic by Schaeffer 1989, "The history heuristic and alpha-beta search enhancements in practice"; killer
moves by Akl and Newborn 1977, "The principal continuation and the killer heuristic".
"""

from __future__ import annotations

import numpy as np

from envs.game_kernels import verdict
from envs.jit import njit
from envs.kernels import (
    BOARD_BYTE,
    BYTE,
    C_PARTNER_FROM,
    C_PARTNER_TO,
    CASTLE_BIT,
    EXTRA_BIT,
    H_BARE_DRAW,
    H_CASTLING,
    H_MOVE_LIMIT,
    H_REPETITIONS,
    H_SQUARES,
    H_WORDS,
    HALF,
    LOSS,
    O_REPETITIONS,
    O_STATUS,
    O_TO_PLAY,
    PIECES_SHIFT,
    REPETITION,
    REVERSIBLE_SHIFT,
    U0,
    U1,
    U2,
    U3,
    U4,
    U8,
    U15,
    U16,
    U32_,
    U36,
    U48,
    U,
    attacked,
    generate,
    make,
)  # fmt: skip

I = np.int64  # noqa: E741 - beside `U`
MATE = 1_000_000
DECISIVE = MATE - 1000
"""Scores beyond this are wins or losses: `MATE` less the plies to the end."""
HIGHEST_STATIC = DECISIVE - 1
INFINITE = 2 * MATE

# Fields of a frame.
(
    ALPHA, BETA, FIRST_ALPHA, BEST, BEST_MOVE, DEPTH, NEXT, END, STATIC, MOVE, SCOUTS, ENTERED, LENGTH, DECIDED,
    KILLER, OLD_KILLER, TABLE_KEY, MAY_STORE,
) = (U(i) for i in range(18))  # fmt: skip
FIELDS = 18
# Fields of `control`: positions entered, and of them in quiescence; the most of them; set by another thread to halt;
# the depth, the plies of quiescence, the tempo, the place of the root in its history, the salt of the table's keys.
NODES, QUIESCENCE_NODES, NODE_LIMIT, HALT, ROOT_DEPTH, QUIESCENCE_PLIES, TEMPO, ROOT_PLACE, SALT = range(9)
CONTROLS = 9

ADVANCE, ENTER, RETURN, LEAVE = range(4)
POLL_NODES = 128
WIDE_PLIES = 2
"""Plies of quiescence that look at every capture; later ones look at what can be captured back only."""

HASH_RANK, CAPTURE_RANK, KILLER_RANK, LOSING_RANK = I(1 << 50), I(1 << 40), I(1 << 39), I(-(1 << 40))
MOST_HISTORY = I(1 << 18)
"""Keeps moves that are ranked by their history below killers."""
EXACT, LOWER, UPPER = U(1), U(2), U(3)
NO_ACTION = U(0xFFFF) + U1
_MIX = U(0x9E3779B97F4A7C15)


# --- Evaluation ---------------------------------------------------------------------------------


@njit
def static_of(tab, weights, s8, w):
    """Return White's evaluation of a row, without tempo."""
    size = U(tab[H_SQUARES])
    b = w * U8 + BOARD_BYTE
    total = I(0)
    square = U0
    while square < size:
        total += I(weights[U(s8[b + square]) * size + square])
        square += U1
    return total


@njit
def movers_view(static, side, tempo):
    """Return White's evaluation as the side to move sees it, its tempo added; never a decisive score."""
    value = tempo - static if side else tempo + static
    return min(max(value, I(-HIGHEST_STATIC)), I(HIGHEST_STATIC))


@njit
def evaluate_rows(tab, weights, s8, tempo, values):
    """Write the static evaluation of rows to `values` int32 [N], as their players to move see it."""
    words = U(tab[H_WORDS])
    r = U0
    while r < U(len(values)):
        side = U(s8[r * words * U8 + O_TO_PLAY])
        values[r] = movers_view(static_of(tab, weights, s8, r * words), side, I(tempo))
        r += U1


@njit
def change(tab, weights, s8, b, move, size):
    """Return what a legal move adds to White's evaluation."""
    start = move & BYTE
    to = (move >> U8) & BYTE
    code = U(s8[b + start])
    if move & CASTLE_BIT:
        c = U(tab[U(tab[H_CASTLING]) + ((move >> U36) & U3)])
        partner_from = U(tab[c + C_PARTNER_FROM])
        partner = U(s8[b + partner_from])
        total = I(weights[code * size + to]) - I(weights[code * size + start])
        return total + I(weights[partner * size + U(tab[c + C_PARTNER_TO])]) - I(weights[partner * size + partner_from])
    promotion = (move >> U32_) & U15
    placed = code if promotion == U0 else promotion | (code & U16)
    total = I(weights[placed * size + to]) - I(weights[code * size + start])
    total -= I(weights[U(s8[b + to]) * size + to])
    if move & EXTRA_BIT:
        victim = move >> U48
        total -= I(weights[U(s8[b + victim]) * size + victim])
    return total


@njit
def winnings(weights, s8, b, move, size):
    """Return what a move that does not castle wins for White by its victims and its promotion."""
    to = (move >> U8) & BYTE
    total = -I(weights[U(s8[b + to]) * size + to])
    if move & EXTRA_BIT:
        victim = move >> U48
        total -= I(weights[U(s8[b + victim]) * size + victim])
    promotion = (move >> U32_) & U15
    if promotion:
        code = U(s8[b + (move & BYTE)])
        total += I(weights[(promotion | (code & U16)) * size + to]) - I(weights[code * size + to])
    return total


@njit
def is_quiet(s8, b, move):
    """Return whether a move neither captures nor promotes."""
    if move & CASTLE_BIT:
        return True
    return not (move & EXTRA_BIT) and (move >> U32_) & U15 == U0 and s8[b + ((move >> U8) & BYTE)] == 0


# --- Move lists ---------------------------------------------------------------------------------


@njit
def rank(tab, weights, s8, w, moves, order, first, end, action, killers, history):
    """Rank the moves of a node: the table's move, captures by what they win, killers, the others by their history.

    Args:
        first, end: The moves are `moves[first:end]`.
        action: Of the table's move, `NO_ACTION` for none.
        killers: Two move words.
        history: int64 [32 * S], how often a piece's move to a square has refuted.
    """
    size = U(tab[H_SQUARES])
    head = w * U8
    b = head + BOARD_BYTE
    side = U(s8[head + O_TO_PLAY])
    i = first
    while i < end:
        move = moves[i]
        to = (move >> U8) & BYTE
        code = U(s8[b + (move & BYTE)])
        if (move >> U16) & HALF == action:
            score = HASH_RANK
        elif not is_quiet(s8, b, move):
            won = winnings(weights, s8, b, move, size)
            attacker = I(weights[code * size + to])
            if side:
                won, attacker = -won, -attacker
            score = I(8) * won - attacker + (CAPTURE_RANK if won >= 0 else LOSING_RANK)
        elif move == killers[0]:
            score = KILLER_RANK + I(1)
        elif move == killers[1]:
            score = KILLER_RANK
        else:
            gained = change(tab, weights, s8, b, move, size)
            score = (I(history[code * size + to]) << I(20)) + (-gained if side else gained)
        order[i] = score
        i += U1


@njit
def keep_captures(tab, weights, s8, w, moves, order, first, end, is_wide, landed):
    """Keep the moves that quiescence looks at, ranked; return the new end of the list.

    They win something by victims and promotion, and lose no more by the piece being captured where it lands.

    Args:
        first, end: The legal moves are `moves[first:end]`.
        is_wide: Whether every such move is kept, or only captures of what stands on `landed`.
        landed: The square that the last move led to.
    """
    size = U(tab[H_SQUARES])
    head = w * U8
    b = head + BOARD_BYTE
    side = U(s8[head + O_TO_PLAY])
    kept = first
    i = first
    while i < end:
        move = moves[i]
        i += U1
        if is_quiet(s8, b, move):
            continue
        to = (move >> U8) & BYTE
        if not is_wide and to != landed and not (move & EXTRA_BIT and move >> U48 == landed):
            continue
        won = winnings(weights, s8, b, move, size)
        code = U(s8[b + (move & BYTE)])
        promotion = (move >> U32_) & U15
        placed = code if promotion == U0 else promotion | (code & U16)
        risked = I(weights[placed * size + to])
        if side:
            won, risked = -won, -risked
        if won <= 0 or (risked > won and is_guarded(tab, s8, b, move, side ^ U1)):
            continue
        moves[kept] = move
        order[kept] = I(8) * won - risked
        kept += U1
    return kept


@njit
def is_guarded(tab, s8, b, move, by):
    """Return whether side `by` attacks the target of a move, once the piece has left and its other victim is gone."""
    start = move & BYTE
    moving = s8[b + start]
    s8[b + start] = 0
    if move & EXTRA_BIT:
        victim = move >> U48
        extra = s8[b + victim]
        s8[b + victim] = 0
        found = attacked(tab, s8, b, (move >> U8) & BYTE, by)
        s8[b + victim] = extra
    else:
        found = attacked(tab, s8, b, (move >> U8) & BYTE, by)
    s8[b + start] = moving
    return found


@njit
def pick(moves, order, i, end):
    """Bring the best ranked of `moves[i:end]`, the first of equals, to place i, and return it."""
    best = i
    j = i + U1
    while j < end:
        if order[j] > order[best]:
            best = j
        j += U1
    move = moves[best]
    if best != i:
        moves[best] = moves[i]
        moves[i] = move
        score = order[best]
        order[best] = order[i]
        order[i] = score
    return move


# --- Ends of the game ---------------------------------------------------------------------------


@njit
def count_repetitions(tab, keys, s64, w, at):
    """Enter a position into the keys of its path, at `at`, and count its earlier occurrences, as many as matter."""
    key = s64[w]
    keys[at] = key
    place = s64[w + U3] >> REVERSIBLE_SHIFT
    most = U(tab[H_REPETITIONS])
    found = U0
    back = U4
    while back <= place and back <= at and found < most:
        if keys[at - back] == key:
            found += U1
        back += U2
    return found


@njit
def is_ending(tab, s8, s64, w):
    """Return whether a position may be decided by more than its moves: its board, its material, history or clock."""
    head = w * U8
    if s8[head + O_STATUS]:
        return True
    if tab[H_BARE_DRAW] and s64[w + U1] >> PIECES_SHIFT == U2:
        return True
    if tab[H_REPETITIONS] and s8[head + O_REPETITIONS] >= tab[H_REPETITIONS]:
        return True
    return tab[H_MOVE_LIMIT] != 0 and s64[w + U2] & HALF >= U(tab[H_MOVE_LIMIT])


@njit
def decided_score(ended, ply):
    """Return the score of a verdict that is not 0, so many plies from the root."""
    result = ended >> U4
    if result == U0:
        return I(0)
    return I(ply) - I(MATE) if result == LOSS else I(MATE) - I(ply)


# --- Transposition table ------------------------------------------------------------------------
# Two words an entry: the salted key; action, depth, bound and score. Entries of other searches never match, since the
# salt is not theirs. Mate scores are counted from the entry's own node.


@njit
def probe(table, key, salt):
    """Return the second word of a position's entry, 0 where there is none."""
    if len(table) == 0:
        return U0
    slot = U2 * ((key * _MIX) & U(len(table) // 2 - 1))
    return table[slot + U1] if table[slot] == key ^ salt else U0


@njit
def store(table, key, salt, action, depth, bound, score, ply):
    """Enter a node's score, or a bound of it; the slot's older entry is lost."""
    if len(table) == 0:
        return
    if score > DECISIVE:
        score += I(ply)
    elif score < -DECISIVE:
        score -= I(ply)
    slot = U2 * ((key * _MIX) & U(len(table) // 2 - 1))
    table[slot] = key ^ salt
    table[slot + U1] = U(score + I(INFINITE)) | bound << U32_ | U(depth) << U36 | action << U48


@njit
def stored_score(entry, ply):
    """Return an entry's score as the node at `ply` counts it."""
    score = I(entry & U(0xFFFFFFFF)) - I(INFINITE)
    if score > DECISIVE:
        return score - I(ply)
    if score < -DECISIVE:
        return score + I(ply)
    return score


# --- Search -------------------------------------------------------------------------------------


@njit
def open_root(frames, order, first, count, depth):
    """Make the root's frame look at its moves from `first` to `count` in their order, to a depth."""
    frames[ALPHA] = -INFINITE
    frames[BETA] = INFINITE
    frames[BEST] = -INFINITE
    frames[DEPTH] = depth
    frames[NEXT] = first
    frames[END] = count
    frames[LENGTH] = 0
    frames[DECIDED] = 0
    for i in range(count):
        order[i] = -i


@njit
def bring_forward(moves, move, place):
    """Put a move that stands at `place` or later there; those between move on."""
    i = place
    while moves[i] != move:
        i += 1
    while i > place:
        moves[i] = moves[i - 1]
        i -= 1
    moves[place] = move


@njit
def extend_line(pv, frames, ply, plies):
    """Make the principal variation of the node at `ply` its current move and its child's variation."""
    own = ply * plies
    child = own + plies
    length = U(frames[(ply + U1) * U(FIELDS) + LENGTH])
    pv[own] = U(frames[ply * U(FIELDS) + MOVE])
    i = U0
    while i < length:
        pv[own + U1 + i] = pv[child + i]
        i += U1
    frames[ply * U(FIELDS) + LENGTH] = I(length) + 1
    frames[ply * U(FIELDS) + DECIDED] = frames[(ply + U1) * U(FIELDS) + DECIDED]


@njit
def reward_refutation(frames, history, f, code, to, size, depth):
    """Remember a quiet move that refuted its node, among the killers of its ply and in the history."""
    if frames[f + KILLER] != frames[f + MOVE]:
        frames[f + OLD_KILLER] = frames[f + KILLER]
        frames[f + KILLER] = frames[f + MOVE]
    history[code * size + to] = min(history[code * size + to] + depth * depth, MOST_HISTORY)


@njit
def search(tab, zob, weights, s8, s64, moves, order, frames, keys, table, history, pv, control, stop, scratch):
    """Search row 0 to the depth in `control`; its frame holds the moves to look at, in their order.

    Args:
        keys: uint64, keys of the game since its last irreversible move up to the root, and room for the path.
        table: uint64 [2 * entries], a power of two of them; empty for none.
        history: int64 [32 * S].
        pv: uint64 [P * P], receives the principal variation in its first row; its length is in the root's frame.
        control: int64 [CONTROLS], see above.
        stop: uint8 [1], another thread sets it to end the search.

    Returns:
        Whether the search came to its end; otherwise the root's frame tells of the moves searched so far.
    """
    words = U(tab[H_WORDS])
    size = U(tab[H_SQUARES])
    wide = U(FIELDS)
    plies = U(len(frames)) // wide
    tempo = control[TEMPO]
    last_depth = -control[QUIESCENCE_PLIES]
    limit = U(tab[H_MOVE_LIMIT])
    salt = U(control[SALT])
    root_place = U(control[ROOT_PLACE])
    may_stop = control[ROOT_DEPTH] > 1
    nodes = control[NODES]
    quiescence_nodes = control[QUIESCENCE_NODES]
    next_poll = min(nodes + POLL_NODES, control[NODE_LIMIT])
    last_repetition = I(-1)
    value = I(0)
    alpha = I(0)
    beta = I(0)
    ply = U0
    phase = ADVANCE
    while True:
        f = ply * wide
        if phase == ADVANCE:
            i = U(frames[f + NEXT])
            if i == U(frames[f + END]):
                phase = LEAVE
                continue
            move = pick(moves, order, i, U(frames[f + END]))
            frames[f + NEXT] = I(i + U1)
            frames[f + MOVE] = I(move)
            source = ply * words
            target = source + words
            frames[f + wide + STATIC] = frames[f + STATIC] + change(
                tab, weights, s8, source * U8 + BOARD_BYTE, move, size
            )
            j = U0
            while j < words:
                s64[target + j] = s64[source + j]
                j += U1
            make(tab, zob, s8, s64, target, move)
            nodes += 1
            if frames[f + DEPTH] <= 0:
                quiescence_nodes += 1
            if nodes >= next_poll:
                if may_stop and (nodes >= control[NODE_LIMIT] or control[HALT] or stop[0]):
                    control[NODES] = nodes
                    control[QUIESCENCE_NODES] = quiescence_nodes
                    return False
                next_poll = min(nodes + POLL_NODES, max(control[NODE_LIMIT], nodes + 1))
            at = root_place + ply + U1
            if tab[H_REPETITIONS]:
                s8[target * U8 + O_REPETITIONS] = count_repetitions(tab, keys, s64, target, at)
            beta = -frames[f + ALPHA]
            alpha = -frames[f + BETA]
            scouts = frames[f + DEPTH] > 0 and frames[f + BEST] > -INFINITE and beta - alpha > 1
            if scouts:
                alpha = beta - 1
            frames[f + SCOUTS] = 1 if scouts else 0
            phase = ENTER
        elif phase == ENTER:
            child = ply + U1
            g = child * wide
            w = child * words
            head = w * U8
            depth = frames[f + DEPTH] - 1
            first = U(frames[f + END])
            frames[g + LENGTH] = 0
            frames[g + DECIDED] = 0
            best = I(-INFINITE)
            phase = RETURN
            ending = is_ending(tab, s8, s64, w)
            if depth <= 0:
                if ending:
                    packed = generate(tab, s8, s64, w, scratch, moves, first)
                    ended = verdict(tab, s8, s64, w, packed >> U1, packed & U1)
                    if ended & U15 == REPETITION:
                        last_repetition = nodes
                    value = decided_score(ended, child)
                    frames[g + DECIDED] = 1
                    continue
                best = movers_view(frames[g + STATIC], U(s8[head + O_TO_PLAY]), tempo)
                value = best
                if value >= beta or depth == last_depth:
                    continue
                packed = generate(tab, s8, s64, w, scratch, moves, first)
                end = keep_captures(
                    tab, weights, s8, w, moves, order, first, first + (packed >> U1), depth > -WIDE_PLIES,
                    (U(frames[f + MOVE]) >> U8) & BYTE,
                )  # fmt: skip
                if end == first:
                    continue
                frames[g + FIRST_ALPHA] = alpha
                alpha = max(alpha, best)
            else:
                key = s64[w] ^ U(s8[head + O_REPETITIONS]) * _MIX
                may_store = limit == U0 or (s64[w + U2] & HALF) + U(depth) < limit
                entry = U0
                if not ending:
                    entry = probe(table, key, salt)
                if entry and may_store and beta - alpha == 1 and I((entry >> U36) & BYTE) >= depth:
                    value = stored_score(entry, child)
                    bound = (entry >> U32_) & U3
                    if bound == EXACT or (value >= beta if bound == LOWER else value <= alpha):
                        continue
                packed = generate(tab, s8, s64, w, scratch, moves, first)
                end = first + (packed >> U1)
                ended = verdict(tab, s8, s64, w, packed >> U1, packed & U1)
                if ended:
                    if ended & U15 == REPETITION:
                        last_repetition = nodes
                    value = decided_score(ended, child)
                    frames[g + DECIDED] = 1
                    continue
                rank(
                    tab, weights, s8, w, moves, order, first, end, entry >> U48 if entry else NO_ACTION,
                    (U(frames[g + KILLER]), U(frames[g + OLD_KILLER])), history,
                )  # fmt: skip
                frames[g + FIRST_ALPHA] = alpha
                frames[g + TABLE_KEY] = I(key)
                frames[g + MAY_STORE] = 1 if may_store else 0
            frames[g + ALPHA] = alpha
            frames[g + BETA] = beta
            frames[g + BEST] = best
            frames[g + BEST_MOVE] = 0
            frames[g + DEPTH] = depth
            frames[g + NEXT] = I(first)
            frames[g + END] = I(end)
            frames[g + ENTERED] = nodes
            ply = child
            phase = ADVANCE
        elif phase == RETURN:
            value = -value
            if frames[f + SCOUTS] and value > frames[f + ALPHA] and value < frames[f + BETA]:
                frames[f + SCOUTS] = 0
                alpha = -frames[f + BETA]
                beta = -frames[f + ALPHA]
                phase = ENTER
                continue
            phase = ADVANCE
            if value > frames[f + BEST]:
                frames[f + BEST] = value
                frames[f + BEST_MOVE] = frames[f + MOVE]
            if value > frames[f + ALPHA]:
                if frames[f + BETA] - frames[f + ALPHA] > 1:
                    extend_line(pv, frames, ply, plies)
                frames[f + ALPHA] = value
                if value >= frames[f + BETA]:
                    move = U(frames[f + MOVE])
                    b = ply * words * U8 + BOARD_BYTE
                    if frames[f + DEPTH] > 0 and is_quiet(s8, b, move):
                        reward_refutation(
                            frames, history, f, U(s8[b + (move & BYTE)]), (move >> U8) & BYTE, size, frames[f + DEPTH]
                        )
                    phase = LEAVE
        else:
            value = frames[f + BEST]
            if ply == U0:
                control[NODES] = nodes
                control[QUIESCENCE_NODES] = quiescence_nodes
                return True
            if frames[f + DEPTH] > 0 and frames[f + MAY_STORE] and last_repetition < frames[f + ENTERED]:
                bound = EXACT
                if value >= frames[f + BETA]:
                    bound = LOWER
                elif value <= frames[f + FIRST_ALPHA]:
                    bound = UPPER
                store(
                    table, U(frames[f + TABLE_KEY]), salt, (U(frames[f + BEST_MOVE]) >> U16) & HALF,
                    frames[f + DEPTH], bound, value, ply,
                )  # fmt: skip
            ply -= U1
            phase = RETURN
