"""The rules as compiled loops over packed arrays; one set of kernels for every game.

Arguments that recur:
    tab: uint32, rule tables of a `CompiledGame` (`tables.py`).
    zob: uint64, its Zobrist numbers.
    s64, s8: one array of state rows (`layout.py`), flat, seen as uint64 words and as bytes.
    w: word offset of a row in `s64`; its bytes start at `8 * w` in `s8`.
    b: byte offset of the board of a row in `s8`.
    scratch: uint32 [SCRATCH_SIZE], private to the calling thread.
Everything is uint64 arithmetic: signed indices cost a sign test at every access. `rules.py` is the specification.
"""

from __future__ import annotations

import numpy as np

from envs import layout
from envs.jit import njit

U = np.uint64
U32 = np.uint32
U0, U1, U2, U3, U4, U5, U6, U7, U8 = (U(i) for i in range(9))
U15, U16, U28, U32_, U36, U48 = U(15), U(16), U(28), U(32), U(36), U(48)
BYTE, HALF = U(0xFF), U(0xFFFF)
ENTRY_MASK = U(0xFFFFFF)

H_SQUARES, H_WORDS, H_ROYAL, H_PAWN = (
    U(layout.T_SQUARES), U(layout.T_WORDS), U(layout.T_ROYAL), U(layout.T_PAWN))  # fmt: skip
H_PAWN_RETURNS, H_FORWARD_STEPS, H_FIRST_STEPS = (
    U(layout.T_PAWN_RETURNS), U(layout.T_FORWARD_STEPS), U(layout.T_FIRST_STEPS))  # fmt: skip
H_BARE_DRAW, H_GOALS, H_DEDUPE = U(layout.T_BARE_DRAW), U(layout.T_GOALS), U(layout.T_DEDUPE)
H_EXTINCT, H_EXTINCT_RESULT, H_STALEMATE = U(layout.T_EXTINCT), U(layout.T_EXTINCT_RESULT), U(layout.T_STALEMATE)
H_REPETITIONS, H_REPETITION_RESULT = U(layout.T_REPETITIONS), U(layout.T_REPETITION_RESULT)
H_MOVE_LIMIT, H_CLOCK_LIMIT = U(layout.T_MOVE_LIMIT), U(layout.T_CLOCK_LIMIT)
H_TYPES, H_PLANES, H_CELLS = U(layout.T_TYPES), U(layout.T_PLANES), U(layout.T_CELLS)
H_COLOUR_PLANE, H_MOVES, H_ATTACKS = U(layout.T_COLOUR_PLANE), U(layout.T_MOVES), U(layout.T_ATTACKS)
H_CASTLING, H_KEEP, H_PAWN_FROM = U(layout.T_CASTLING), U(layout.T_KEEP), U(layout.T_PAWN_FROM)
H_FORWARD, H_GOAL, H_CELL = U(layout.T_FORWARD), U(layout.T_GOAL), U(layout.T_CELL)

C_KING_FROM, C_KING_TO, C_PARTNER_FROM = U(layout.C_KING_FROM), U(layout.C_KING_TO), U(layout.C_PARTNER_FROM)
C_PARTNER_TO, C_ACTION, C_LISTS = U(layout.C_PARTNER_TO), U(layout.C_ACTION), U(layout.C_LISTS)

LEAP, SLIDE, RAY, FIRE, FIRE_OWN = (
    U(layout.LEAP),
    U(layout.SLIDE),
    U(layout.RAY),
    U(layout.FIRE),
    U(layout.FIRE_OWN),
)
OVERRUN, PAWN_STEP, PAWN_CAPTURE = U(layout.OVERRUN), U(layout.PAWN_STEP), U(layout.PAWN_CAPTURE)
E_QUIET, E_CAPTURE, E_MULTI, E_OWN = (
    U(layout.ENTRY_QUIET), U(layout.ENTRY_CAPTURE), U(layout.ENTRY_MULTI), U(layout.ENTRY_OWN))  # fmt: skip

O_TO_PLAY, O_CASTLING, O_EP_COUNT, O_EP_VICTIM = (
    U(layout.TO_PLAY), U(layout.CASTLING), U(layout.EP_COUNT), U(layout.EP_VICTIM))  # fmt: skip
O_ROYALS, O_STATUS, O_REPETITIONS, O_EP = (
    U(layout.ROYALS), U(layout.STATUS), U(layout.REPETITIONS), U(layout.EP_SQUARES))  # fmt: skip
BOARD_WORD, BOARD_BYTE = U(layout.HEADER_WORDS), U(layout.HEADER_BYTES)
PIECES_SHIFT, PLY_SHIFT = U(8 * (layout.PIECES - 8)), U(8 * (layout.PLY - 16))
NUM_CODES = U(layout.NUM_CODES)

CASTLE_BIT, MULTI_BIT, EXTRA_BIT = (
    U1 << U(layout.CASTLE_FLAG), U1 << U(layout.MULTI_STEP_FLAG), U1 << U(layout.EXTRA_FLAG))  # fmt: skip

LOW_NIBBLES, COLOUR_BITS = U(0x0F0F0F0F0F0F0F0F), U(0x1010101010101010)
BYTE_NUMBERS = U(0x0001020304050607)
REVERSIBLE_SHIFT, MOST_REVERSIBLE = U(8 * (layout.REVERSIBLE - 24)), U(layout.LONGEST_HISTORY - 1)
NO_ROYAL = U(layout.MAX_SQUARES)
"""The square of a royal that there is none of; nothing attacks it."""

CHECKMATE, STALEMATE, REPETITION, FIFTY_MOVES, BARE_KINGS, SCEPTER, GOAL, EXTINCTION = (U(i) for i in range(1, 9))
LOSS = U(layout.RESULTS["loss"])
SWAPPED = U(layout.RESULTS["loss"] + layout.RESULTS["win"])
"""A result but a draw, taken from this, is the other side's."""
ALL_KINDS, IS_SCEPTER = U(0xFFFE), U(layout.GOAL_IS_SCEPTER)
LOST = LOSS << U4
"""In a verdict: the player to move has lost."""

# Scratch: a stamp, then the stamps of sensitive squares and of squares that answer a check.
SCRATCH_SENSITIVE, SCRATCH_ANSWER = U(8), U(8 + layout.MAX_SQUARES)
SCRATCH_SIZE = 8 + 2 * layout.MAX_SQUARES
STAMP_LIMIT = U32(0xFFFFFFFE)


@njit
def attacked(tab, s8, b, square, by):
    """Return whether a piece of side `by` may capture on a square, were one of the other side there."""
    p = U(tab[U(tab[H_ATTACKS]) + by * U(tab[H_SQUARES]) + square])
    flip = by << U4
    end = p + U1 + U(tab[p])
    p += U1
    while p < end:
        word = U(tab[p])
        if ((word >> U8) >> (U(s8[b + (word & BYTE)]) ^ flip)) & U1:
            return True
        p += U1
    end = p + U1 + U2 * U(tab[p])
    p += U1
    while p < end:
        word = U(tab[p])
        rel = U(s8[b + (word & BYTE)]) ^ flip
        if ((word >> U8) >> rel) & U1:
            word = U(tab[p + U1])
            code = U(s8[b + (word & BYTE)])
            if code == U0 or code >> U4 != by or (((word >> U8) >> rel) & U1 and code != U(tab[H_ROYAL + by])):
                return True
        p += U2
    lines = U(tab[p])
    p += U1
    while lines > U0:
        end = p + U1 + U(tab[p])
        p += U1
        while p < end:
            word = U(tab[p])
            code = U(s8[b + (word & BYTE)])
            if code:
                if ((word >> U8) >> (code ^ flip)) & U1:
                    return True
                break
            p += U1
        p = end
        lines -= U1
    lines = U(tab[p])
    p += U1
    royal = U(tab[H_ROYAL + by])
    while lines > U0:
        end = p + U1 + U2 * U(tab[p])
        p += U1
        shift = U0
        blocked = False
        while p < end:
            word = U(tab[p])
            code = U(s8[b + (word & BYTE)])
            if code:
                rel = code ^ flip
                if not blocked:
                    if ((word >> U8) >> rel) & U1:
                        return True
                    blocked = True
                    shift = U16 if rel < U16 else U0
                    if code == royal:
                        break
                else:
                    if rel < U16 and ((U(tab[p + U1]) >> shift) & HALF) >> rel & U1:
                        return True
                    break
            p += U2
        p = end
        lines -= U1
    return False


@njit
def survey(tab, s8, b, king, by, scratch):
    """Find checks by side `by`, and mark the squares whose change may give or answer one.

    A piece that leaves a sensitive square, or a capture on one, may expose the royal; every other move of a piece that
    is not the royal and has no victim off its target is legal when the royal is not in check. In check, only landing
    on an answer square can help such a move; the squares of one check are marked.

    Returns:
        Whether the royal is in check. The marks are stamps in `scratch`.
    """
    if scratch[0] >= STAMP_LIMIT:
        scratch[:] = U32(0)
    scratch[0] += U32(1)
    stamp = scratch[0]
    if king == NO_ROYAL:
        return False
    flip = by << U4
    check = False
    p = U(tab[U(tab[H_ATTACKS]) + by * U(tab[H_SQUARES]) + king])
    end = p + U1 + U(tab[p])
    p += U1
    while p < end:
        word = U(tab[p])
        if ((word >> U8) >> (U(s8[b + (word & BYTE)]) ^ flip)) & U1 and not check:
            check = True
            scratch[SCRATCH_ANSWER + (word & BYTE)] = stamp
        p += U1
    end = p + U1 + U2 * U(tab[p])
    p += U1
    while p < end:
        word = U(tab[p])
        rel = U(s8[b + (word & BYTE)]) ^ flip
        if ((word >> U8) >> rel) & U1:
            onto = U(tab[p + U1])
            landing = onto & BYTE
            code = U(s8[b + landing])
            own = code != U0 and code >> U4 == by
            if own and (not ((onto >> U8) >> rel) & U1 or code == U(tab[H_ROYAL + by])):
                scratch[SCRATCH_SENSITIVE + landing] = stamp
            elif not check:
                check = True
                scratch[SCRATCH_ANSWER + (word & BYTE)] = stamp
        p += U2
    lines = U(tab[p])
    p += U1
    while lines > U0:
        start = p + U1
        end = start + U(tab[p])
        p = start
        own = U(layout.MAX_SQUARES)
        while p < end:
            word = U(tab[p])
            square = word & BYTE
            code = U(s8[b + square])
            if code:
                rel = code ^ flip
                if rel < U16:
                    if ((word >> U8) >> rel) & U1:
                        if own < U(layout.MAX_SQUARES):
                            scratch[SCRATCH_SENSITIVE + own] = stamp
                        elif not check:
                            check = True
                            while start <= p:
                                scratch[SCRATCH_ANSWER + (U(tab[start]) & BYTE)] = stamp
                                start += U1
                    break
                if own < U(layout.MAX_SQUARES):
                    break
                own = square
            p += U1
        p = end
        lines -= U1
    lines = U(tab[p])
    p += U1
    royal = U(tab[H_ROYAL + by])
    while lines > U0:
        start = p + U1
        end = start + U2 * U(tab[p])
        p = start
        between = U0
        first = U0
        second = U0
        shift = U0
        while p < end:
            word = U(tab[p])
            square = word & BYTE
            code = U(s8[b + square])
            if code:
                rel = code ^ flip
                if rel < U16:
                    hit = False
                    direct = ((word >> U8) >> rel) & U1
                    through = U(tab[p + U1])
                    if between == U0:
                        hit = direct != U0
                    elif between == U1:
                        if ((through >> shift) & HALF) >> rel & U1:
                            hit = True
                        elif direct:
                            scratch[SCRATCH_SENSITIVE + first] = stamp
                    elif (through >> rel | through >> (rel + U16)) & U1:
                        scratch[SCRATCH_SENSITIVE + first] = stamp
                        scratch[SCRATCH_SENSITIVE + second] = stamp
                    if hit and not check:
                        check = True
                        q = start
                        while q <= p:
                            scratch[SCRATCH_ANSWER + (U(tab[q]) & BYTE)] = stamp
                            q += U2
                if between == U0:
                    first = square
                    shift = U16 if rel < U16 else U0
                    if code == royal:
                        shift = U48
                elif between == U1:
                    second = square
                else:
                    break
                between += U1
            p += U2
        p = end
        lines -= U1
    return check


@njit
def is_safe(tab, s8, b, move, code, king, by):
    """Return whether a move that is not castling leaves the mover's royal unattacked; the board is restored."""
    if king == NO_ROYAL:
        return True
    start = move & BYTE
    to = (move >> U8) & BYTE
    captured = s8[b + to]
    moving = s8[b + start]
    s8[b + start] = 0
    s8[b + to] = code
    if move & EXTRA_BIT:
        victim = move >> U48
        extra = s8[b + victim]
        s8[b + victim] = 0
        safe = not attacked(tab, s8, b, king, by)
        s8[b + victim] = extra
    else:
        safe = not attacked(tab, s8, b, king, by)
    s8[b + to] = captured
    s8[b + start] = moving
    return safe


@njit
def generate(tab, s8, s64, w, scratch, moves, m):
    """Write the legal moves of a position.

    Args:
        moves: uint64, receives move words (`layout.py`) from offset `m` on; the caller guarantees room.

    Returns:
        `2 * number of moves + (1 if in check)`.
    """
    size = U(tab[H_SQUARES])
    b = w * U8 + BOARD_BYTE
    head = w * U8
    side = U(s8[head + O_TO_PLAY])
    by = side ^ U1
    royal = U(tab[H_ROYAL + side])
    king = U(s8[head + O_ROYALS + side]) if royal else NO_ROYAL
    check = survey(tab, s8, b, king, by, scratch)
    stamp = scratch[0]
    if s8[head + O_STATUS]:
        return U1 if check else U0
    first_move = m
    base = U(tab[H_MOVES])
    num_words = U(tab[H_WORDS]) - BOARD_WORD
    i = U0
    while i < num_words:
        word = s64[w + BOARD_WORD + i]
        occupied = ((word & LOW_NIBBLES) + LOW_NIBBLES) & COLOUR_BITS
        black = word & COLOUR_BITS
        own = occupied & black if side else occupied & ~black
        while own:
            lowest = own & (~own + U1)
            own ^= lowest
            start = (i << U3) + (((lowest >> U4) * BYTE_NUMBERS) >> U(56))
            code = U(s8[b + start])
            is_royal = code == royal
            test = check or is_royal or scratch[SCRATCH_SENSITIVE + start] == stamp
            p = U(tab[base + code * size + start])
            group = U(tab[p])
            while group:
                kind = group & BYTE
                end = p + U1 + (group >> U8)
                p += U1
                if kind == SLIDE or kind == RAY or kind == LEAP:
                    while p < end:
                        entry = U(tab[p])
                        p += U1
                        to = entry & BYTE
                        target = U(s8[b + to])
                        if target == U0:
                            if not (entry >> E_QUIET) & U1:
                                continue
                            if test:
                                if check and not is_royal and scratch[SCRATCH_ANSWER + to] != stamp:
                                    continue
                                move = start | (entry & ENTRY_MASK) << U8
                                if not is_safe(tab, s8, b, move, code, to if is_royal else king, by):
                                    continue
                            moves[m] = start | (entry & ENTRY_MASK) << U8
                            m += U1
                            continue
                        takes = (entry >> E_CAPTURE) & U1
                        if target >> U4 == side:
                            takes = U0 if target == royal else (entry >> E_OWN) & U1
                        if takes:
                            move = start | (entry & ENTRY_MASK) << U8
                            if test or scratch[SCRATCH_SENSITIVE + to] == stamp:
                                if check and not is_royal and scratch[SCRATCH_ANSWER + to] != stamp:
                                    if kind == LEAP:
                                        continue
                                    break
                                if is_safe(tab, s8, b, move, code, to if is_royal else king, by):
                                    moves[m] = move
                                    m += U1
                            else:
                                moves[m] = move
                                m += U1
                        if kind != LEAP:
                            break
                    p = end
                elif kind == PAWN_STEP:
                    while p < end:
                        entry = U(tab[p])
                        p += U1
                        to = entry & BYTE
                        if s8[b + to]:
                            break
                        move = start | (entry & ENTRY_MASK) << U8 | (entry >> U28) << U32_
                        if (entry >> E_MULTI) & U1:
                            move |= MULTI_BIT
                        if test:
                            if check and scratch[SCRATCH_ANSWER + to] != stamp:
                                continue
                            if not is_safe(tab, s8, b, move, code, king, by):
                                continue
                        moves[m] = move
                        m += U1
                    p = end
                elif kind == PAWN_CAPTURE:
                    while p < end:
                        entry = U(tab[p])
                        p += U1
                        to = entry & BYTE
                        target = U(s8[b + to])
                        move = start | (entry & ENTRY_MASK) << U8 | (entry >> U28) << U32_
                        if target == U0:
                            count = U(s8[head + O_EP_COUNT])
                            while count:
                                count -= U1
                                if U(s8[head + O_EP + count]) == to:
                                    move |= EXTRA_BIT | U(s8[head + O_EP_VICTIM]) << U48
                                    if is_safe(tab, s8, b, move, code, king, by):
                                        moves[m] = move
                                        m += U1
                                    break
                            continue
                        if target >> U4 == side and (target == royal or not (entry >> E_OWN) & U1):
                            continue
                        if test or scratch[SCRATCH_SENSITIVE + to] == stamp:
                            if check and scratch[SCRATCH_ANSWER + to] != stamp:
                                continue
                            if not is_safe(tab, s8, b, move, code, king, by):
                                continue
                        moves[m] = move
                        m += U1
                elif kind == OVERRUN:
                    entry = U(tab[p])
                    middle = U(tab[p + U1])
                    p += U2
                    to = entry & BYTE
                    target = U(s8[b + to])
                    if target and target >> U4 == side and (target == royal or not (entry >> E_OWN) & U1):
                        group = U(tab[p])
                        continue
                    move = start | (entry & ENTRY_MASK) << U8
                    passed = U(s8[b + middle])
                    king_now = to if is_royal else king
                    if passed and passed >> U4 != side:
                        move |= EXTRA_BIT | middle << U48
                        if is_safe(tab, s8, b, move, code, king_now, by):
                            moves[m] = move
                            m += U1
                    elif test or (target and scratch[SCRATCH_SENSITIVE + to] == stamp):
                        if not check or is_royal or scratch[SCRATCH_ANSWER + to] == stamp:
                            if is_safe(tab, s8, b, move, code, king_now, by):
                                moves[m] = move
                                m += U1
                    else:
                        moves[m] = move
                        m += U1
                else:
                    m = fire(tab, s8, b, p, end, start, code, side, kind, king, test, check, scratch, moves, m)
                    p = end
                group = U(tab[p])
        i += U1
    if not check and s8[head + O_CASTLING]:
        m = castle(tab, s8, w, side, moves, m)
    if tab[H_DEDUPE]:
        m = drop_repeated(moves, first_move, m)
    return (m - first_move) << U1 | (U1 if check else U0)


@njit
def fire(tab, s8, b, p, end, start, code, side, kind, king, test, check, scratch, moves, m):
    """Append the moves of one fire-through ray; see `layout.FIRE` and `FIRE_OWN`. Returns the new `m`."""
    by = side ^ U1
    stamp = scratch[0]
    royal = U(tab[H_ROYAL + side])
    is_royal = code == royal
    victim = U(layout.MAX_SQUARES)
    passed_own = False
    while p < end:
        entry = U(tab[p])
        p += U1
        to = entry & BYTE
        target = U(s8[b + to])
        move = start | (entry & ENTRY_MASK) << U8
        friend = target != U0 and target >> U4 == side
        if friend and target == royal:
            break
        takes_own = (entry >> E_OWN) & U1
        if victim == U(layout.MAX_SQUARES):
            if friend and kind == FIRE and not takes_own:
                break
            passed_own = friend
            if friend and not takes_own:
                pass
            elif test or (target and scratch[SCRATCH_SENSITIVE + to] == stamp):
                if not check or is_royal or scratch[SCRATCH_ANSWER + to] == stamp:
                    if is_safe(tab, s8, b, move, code, to if is_royal else king, by):
                        moves[m] = move
                        m += U1
            else:
                moves[m] = move
                m += U1
            if target:
                victim = to
            if friend and kind == FIRE:
                break
            continue
        if friend and not passed_own and not takes_own:
            break
        move |= EXTRA_BIT | victim << U48
        if is_safe(tab, s8, b, move, code, to if is_royal else king, by):
            moves[m] = move
            m += U1
        if target:
            break
    return m


@njit
def castle(tab, s8, w, side, moves, m):
    """Append the castling moves of a side that is not in check. Returns the new `m`."""
    head = w * U8
    b = head + BOARD_BYTE
    by = side ^ U1
    has_royal = tab[H_ROYAL + side] != 0
    number = side << U1
    while number < (side << U1) + U2:
        c = U(tab[U(tab[H_CASTLING]) + number])
        number += U1
        if not (U(s8[head + O_CASTLING]) >> (number - U1)) & U1 or c == U0:
            continue
        king_from = U(tab[c + C_KING_FROM])
        king_to = U(tab[c + C_KING_TO])
        partner_from = U(tab[c + C_PARTNER_FROM])
        p = c + C_LISTS
        end = p + U1 + U(tab[p])
        p += U1
        free = True
        while p < end:
            if s8[b + U(tab[p])]:
                free = False
                break
            p += U1
        if not free:
            continue
        king_code = s8[b + king_from]
        partner_code = s8[b + partner_from]
        p = end
        end = p + U1 + U(tab[p])
        p += U1
        s8[b + king_from] = 0
        while p < end and free and has_royal:
            square = U(tab[p])
            free = not attacked(tab, s8, b, square, by)
            p += U1
        if free and has_royal:
            s8[b + partner_from] = 0
            s8[b + king_to] = king_code
            s8[b + U(tab[c + C_PARTNER_TO])] = partner_code
            free = not attacked(tab, s8, b, king_to, by)
            s8[b + king_to] = 0
            s8[b + U(tab[c + C_PARTNER_TO])] = 0
            s8[b + partner_from] = partner_code
        s8[b + king_from] = king_code
        if free:
            moves[m] = king_from | king_to << U8 | U(tab[c + C_ACTION]) << U16 | (number - U1) << U36 | CASTLE_BIT
            m += U1
    return m


@njit
def drop_repeated(moves, first, m):
    """Remove moves that two routes of one piece have in common. Returns the new `m`."""
    kept = first
    i = first
    while i < m:
        j = first
        while j < kept and moves[j] != moves[i]:
            j += U1
        if j == kept:
            moves[kept] = moves[i]
            kept += U1
        i += U1
    return kept


@njit
def make(tab, zob, s8, s64, w, move):
    """Play a legal move on a row: everything but the repetition count, which needs the game's history."""
    size = U(tab[H_SQUARES])
    head = w * U8
    b = head + BOARD_BYTE
    side = U(s8[head + O_TO_PLAY])
    start = move & BYTE
    to = (move >> U8) & BYTE
    code = U(s8[b + start])
    key = s64[w]
    count = U(s8[head + O_EP_COUNT])
    while count:
        count -= U1
        key ^= zob[NUM_CODES * size + U16 + U(s8[head + O_EP + count])]
    if s8[head + O_EP_COUNT]:
        key ^= zob[NUM_CODES * size + U16 + U(s8[head + O_EP_VICTIM])]
    s8[head + O_EP_COUNT] = 0
    s8[head + O_EP_VICTIM] = 0
    reversible = s64[w + U3] >> REVERSIBLE_SHIFT
    rights = U(s8[head + O_CASTLING])
    captured = U0
    promotion = U0
    status = U0
    if move & CASTLE_BIT:
        c = U(tab[U(tab[H_CASTLING]) + ((move >> U36) & U3)])
        partner_from = U(tab[c + C_PARTNER_FROM])
        partner_to = U(tab[c + C_PARTNER_TO])
        partner = U(s8[b + partner_from])
        s8[b + start] = 0
        s8[b + partner_from] = 0
        s8[b + to] = code
        s8[b + partner_to] = partner
        key ^= zob[code * size + start] ^ zob[code * size + to]
        key ^= zob[partner * size + partner_from] ^ zob[partner * size + partner_to]
        new_rights = rights & U(tab[U(tab[H_KEEP]) + start])
        placed = code
        beside, beside_code = partner_to, partner
    else:
        beside, beside_code = to, U0
        keep = U(tab[H_KEEP])
        new_rights = rights & U(tab[keep + start]) & U(tab[keep + to])
        target = U(s8[b + to])
        if target:
            key ^= zob[target * size + to]
            captured += U1
        key ^= zob[code * size + start]
        s8[b + start] = 0
        if move & EXTRA_BIT:
            victim = move >> U48
            key ^= zob[U(s8[b + victim]) * size + victim]
            s8[b + victim] = 0
            new_rights &= U(tab[keep + victim])
            captured += U1
        promotion = (move >> U32_) & U15
        placed = code if promotion == U0 else promotion | side << U4
        s8[b + to] = placed
        key ^= zob[placed * size + to]
    if new_rights != rights:
        key ^= zob[NUM_CODES * size + rights] ^ zob[NUM_CODES * size + new_rights]
        s8[head + O_CASTLING] = new_rights
    if code == U(tab[H_ROYAL + side]):
        s8[head + O_ROYALS + side] = to
    s64[w + U1] -= captured << PIECES_SHIFT
    is_pawn = code & U15 == U(tab[H_PAWN])
    clock = s64[w + U2] & HALF
    if captured != U0 or is_pawn:
        clock = U0
    elif clock < U(tab[H_CLOCK_LIMIT]):
        clock += U1
    if captured != U0 or promotion != U0 or (is_pawn and not tab[H_PAWN_RETURNS]):
        reversible = U0
    elif reversible < MOST_REVERSIBLE:
        reversible += U1
    s64[w + U3] = reversible << REVERSIBLE_SHIFT
    s64[w + U2] = (s64[w + U2] & ~HALF) + clock + (U1 << PLY_SHIFT)
    s8[head + O_REPETITIONS] = 0
    goal = U0
    while goal < U(tab[H_GOALS]) and status == U0:
        status = goal_reached(tab, goal, side, to, placed)
        if status == U0 and beside_code:
            status = goal_reached(tab, goal, side, beside, beside_code)
        goal += U1
    if tab[H_EXTINCT] and status == U0 and (captured != U0 or promotion != U0):
        status = extinct(tab, s8, b, side)
    s8[head + O_STATUS] = status
    s8[head + O_TO_PLAY] = side ^ U1
    key ^= zob[(NUM_CODES + U1) * size + U16]
    s64[w] = key
    if move & MULTI_BIT and status == U0:
        add_en_passant(tab, zob, s8, s64, w, start, to)


@njit
def goal_reached(tab, goal, side, square, code):
    """Return the verdict of a piece of `side` standing on a square after its move, by one goal: 0 where it is none."""
    word = U(tab[U(tab[H_GOAL]) + (U2 * goal + side) * U(tab[H_SQUARES]) + square])
    if not (word >> (code & U15)) & U1:
        return U0
    return (SCEPTER if (word >> IS_SCEPTER) & U1 else GOAL) | LOST


@njit
def extinct(tab, s8, b, mover):
    """Return the verdict after a move of `mover` where a side's pieces have died out, else 0; the mover is first."""
    present = U0
    square = U0
    while square < U(tab[H_SQUARES]):
        present |= U1 << U(s8[b + square])
        square += U1
    kinds = U(tab[H_EXTINCT])
    result = U(tab[H_EXTINCT_RESULT])
    own = (present >> (mover << U4)) & ALL_KINDS
    if own == U0 if kinds == U1 else own & kinds != kinds:
        return EXTINCTION | (SWAPPED - result if result else U0) << U4
    other = (present >> ((mover ^ U1) << U4)) & ALL_KINDS
    if other == U0 if kinds == U1 else other & kinds != kinds:
        return EXTINCTION | result << U4
    return U0


@njit
def add_en_passant(tab, zob, s8, s64, w, start, to):
    """Record the squares passed by a pawn that moved from `start` to `to` on which its capture is legal now."""
    size = U(tab[H_SQUARES])
    mover = U(s8[w * U8 + O_TO_PLAY]) ^ U1
    step = U0
    while step < U(tab[H_FORWARD_STEPS]):
        forward = U(tab[H_FORWARD]) + (U2 * step + mover) * size
        step += U1
        square = start
        repeats = U0
        while square != to and tab[forward + square] and repeats < U(tab[H_FIRST_STEPS]):
            square = U(tab[forward + square]) - U1
            repeats += U1
        if square != to:
            continue
        square = U(tab[forward + start]) - U1
        while square != to:
            offer_en_passant(tab, zob, s8, s64, w, square, to)
            square = U(tab[forward + square]) - U1
        return


@njit
def offer_en_passant(tab, zob, s8, s64, w, square, victim):
    """Record a square on which the pawn on `victim` can be captured en passant, if the capture is legal."""
    if not en_passant_legal(tab, s8, w, square, victim):
        return
    head = w * U8
    numbers = NUM_CODES * U(tab[H_SQUARES]) + U16
    slot = U(s8[head + O_EP_COUNT])
    if slot == U0:
        s64[w] ^= zob[numbers + victim]
    s8[head + O_EP_COUNT] = slot + U1
    while slot and s8[head + O_EP + slot - U1] > square:
        s8[head + O_EP + slot] = s8[head + O_EP + slot - U1]
        slot -= U1
    s8[head + O_EP + slot] = square
    s8[head + O_EP_VICTIM] = victim
    s64[w] ^= zob[numbers + square]


@njit
def en_passant_legal(tab, s8, w, square, victim):
    """Return whether the side to move has a legal en passant capture on `square` of the pawn on `victim`."""
    head = w * U8
    b = head + BOARD_BYTE
    side = U(s8[head + O_TO_PLAY])
    code = U(tab[H_PAWN]) | side << U4
    king = U(s8[head + O_ROYALS + side]) if tab[H_ROYAL + side] else NO_ROYAL
    p = U(tab[U(tab[H_PAWN_FROM]) + side * U(tab[H_SQUARES]) + square])
    end = p + U1 + U(tab[p])
    p += U1
    while p < end:
        start = U(tab[p])
        p += U1
        if U(s8[b + start]) == code:
            move = start | square << U8 | EXTRA_BIT | victim << U48
            if is_safe(tab, s8, b, move, code, king, side ^ U1):
                return True
    return False
