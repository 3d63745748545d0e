"""Random variant files: a seed gives a YAML text that says something with every key of the schema.

Most texts are games; the rest contradict themselves somewhere (a king that castles where it could step) and are
drawn again. Boards are small, so that random games end; every tenth goes up to 16 x 16.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from envs import InvalidVariant, load_variant
from envs.schema import MAX_PIECE_TYPES
from envs.strict_yaml import load_yaml
from envs.variant import Variant
from tests.envs.random_draw import RESULTS, SIDES, Cell, Document, Draw
from tests.envs.random_ends import draw_ends
from tests.envs.random_pieces import Piece, PieceDraw

MAX_DRAWS = 60


def random_variant(seed: int, folder: Path) -> Variant:
    """Write and load the game of a seed, with some of its options on.

    Args:
        seed: Decides everything.
        folder: Where the file is written, as `random_<seed>.yaml`.
    """
    file = folder / f"random_{seed}.yaml"
    for number in range(MAX_DRAWS):
        text = random_yaml(seed, number)
        file.write_text(text)
        options = load_yaml(text, file.name)[0].get("options", {})
        rng = np.random.default_rng([seed, number, 1])
        try:
            return load_variant(file, {option: bool(rng.random() < 0.5) for option in options})
        except InvalidVariant:
            continue
    raise AssertionError(f"{MAX_DRAWS} draws of seed {seed} without a game")


def random_yaml(seed: int, number: int = 0) -> str:
    """Return the text of a seed's draw."""
    document = random_document(np.random.default_rng([seed, number]))
    return f"# Seed {seed}, draw {number}.\n" + yaml.safe_dump(
        document, sort_keys=False, default_flow_style=None, width=118, allow_unicode=True
    )


def random_document(rng: np.random.Generator) -> Document:
    """Draw a variant file."""
    draw = _board(rng)
    _pieces(draw)
    _pawn_rules(draw)
    _castling(draw)
    starts = [_start(draw)]
    if draw.chance(0.2):
        starts += [_start(_with_other_partners(draw)) for _ in range(int(rng.integers(1, 5)))]
    _forget_unused(draw, starts)
    ends = draw_ends(draw, starts)
    document: Document = {"name": "Random", "board": _board_mapping(draw)}
    if draw.chance(0.3):
        document |= {"inventor": "Nobody", "year": 2024, "source": "a seed", "readings": ["as it is written"]}
    document["start"] = starts[0] if len(starts) == 1 and draw.chance(0.8) else starts
    royal = _royal_key(draw)
    if royal is not None:
        document["royal"] = royal
    document["pieces"] = {letter: piece.mapping() for letter, piece in draw.pieces.items()}
    if draw.pawns is not None:
        document["pawns"] = draw.pawns
    if draw.castling is not None:
        document["castling"] = draw.castling
    if ends:
        document["ends"] = ends
    if draw.chance(0.3):
        document["options"] = _options(draw, document)
    return _as_child_of_chess(document) if draw.chance(0.08) else document


# --- Board and pieces -------------------------------------------------------------------------


def _board(rng: np.random.Generator) -> Draw:
    kind = rng.random()
    low, high = (3, 6) if kind < 0.62 else (5, 9) if kind < 0.9 else (8, 16)
    draw = Draw(rng, int(rng.integers(low, high + 1)), int(rng.integers(max(low, 4), high + 1)), int(rng.integers(2)))
    if draw.chance(0.05):
        draw.ranks = 3
    if draw.chance(0.3):
        count = int(rng.integers(1, 2 + draw.files * draw.ranks // 8))
        for _ in range(count):
            x, y = int(rng.integers(draw.files)), int(rng.integers(draw.ranks))
            draw.holes |= {(x, y), (x, draw.ranks - 1 - y)}
    return draw


def _board_mapping(draw: Draw) -> Document:
    mapping = {"files": draw.files, "ranks": draw.ranks}
    return mapping if draw.first_rank == 1 and draw.chance(0.5) else mapping | {"first_rank": draw.first_rank}


def _pieces(draw: Draw) -> None:
    count = 15 if draw.chance(0.02) else int(draw.rng.integers(2, 7))
    letters = draw.some("abcdefghijklmnopqrstuvwxyz", count, count)
    draw.rng.shuffle(letters)
    kinds = PieceDraw(draw.rng)
    royal = draw.rng.random()
    names = letters[: 2 if royal > 0.55 and royal < 0.7 and count > 2 else 1]
    for letter in letters:
        draw.pieces[letter] = kinds.royal() if letter in names else kinds.piece(chance_own=0.2)
    white, black = names[0], names[-1]
    if royal < 0.7:
        draw.royals = (white, black)
    elif royal < 0.85:
        draw.royals = (white, None) if draw.chance(0.5) else (None, black)
    if draw.chance(0.8) and count < MAX_PIECE_TYPES:
        draw.pawn = "p" if "p" not in letters else draw.pick([x for x in "adhijmotuvxz" if x not in letters] or ["y"])
        if draw.pawn in letters:
            draw.pawn = None
    if draw.pawn is not None:
        draw.pieces[draw.pawn] = Piece("pawn", captures_own=draw.chance(0.12))


def _royal_key(draw: Draw) -> Any:
    white, black = draw.royals
    if white is not None and white == black and draw.chance(0.8):
        return white
    given = {side: letter for side, letter in zip(SIDES, draw.royals) if letter is not None}
    return given or None


# --- Pawns ------------------------------------------------------------------------------------


def _pawn_rules(draw: Draw) -> None:
    if draw.pawn is None:
        return
    kinds = PieceDraw(draw.rng)
    pawns: Document = {"piece": draw.pawn}
    if draw.chance(0.4):
        pawns["quiet"] = kinds.pawn_quiet()
    last = draw.ranks - 1
    must = draw.chance(0.6)
    promotes_on = [last] if draw.chance(0.6) else draw.some(list(range(2, last + 1)) or [last], 1, 3)
    if must:  # a pawn never passes its first promotion rank
        promotes_on = [min(promotes_on)]
    if promotes_on != [last] or draw.chance(0.3):
        pawns["promotes_on"] = [draw.first_rank + y for y in promotes_on]
    if not must or draw.chance(0.2):
        pawns["promotion"] = "must" if must else "may"
    if draw.chance(0.6):
        pawns["first_steps"] = draw.pick([1, 2, 2, 2, 3, 3, 4, 7])
        highest = min(promotes_on) if must else draw.ranks
        ranks = list(range(min(highest, draw.ranks)))
        low = [y for y in ranks if y < 3] or ranks
        pawns["first_steps_from"] = "all" if draw.chance(0.15) else [draw.first_rank + y for y in draw.some(low, 1, 2)]
    if draw.chance(0.4) or pawns.get("quiet", "fW") != "fW":
        pawns["captures"] = kinds.pawn_captures(pawns.get("quiet", "fW"), pawns.get("first_steps", 1))
    _promotions(draw, pawns)
    draw.pawns = pawns
    draw.pawn_limit = min(promotes_on) if must else draw.ranks - 1


def _promotions(draw: Draw, pawns: Document) -> None:
    others = [letter for letter in draw.pieces if letter != draw.pawn and letter not in draw.royals]
    if not others or draw.chance(0.3):
        return
    white, black = ("".join(draw.some(others, 1, 4)) for _ in SIDES)
    pawns["promotes_to"] = white if draw.chance(0.6) else {"white": white, "black": black}


# --- Castling ---------------------------------------------------------------------------------


def _castling(draw: Draw) -> None:
    if draw.files < 4 or not draw.chance(0.4):
        return
    rank = 0 if draw.chance(0.8) else int(draw.rng.integers(max(1, draw.ranks // 3)))
    mirrored = draw.chance(0.65)
    plan: dict[int, Document] = {}
    for side in (0, 1):
        if mirrored and side == 1:
            plan[1] = plan[0]
        elif mirrored or side == 0 or draw.chance(0.7):
            plan[side] = _castling_moves(draw)
    if not mirrored and draw.chance(0.2):
        del plan[0]
    if any(move == {} for move in plan.values()) or not plan:
        return
    for side, moves in plan.items():
        y = rank if side == 0 else draw.ranks - 1 - rank
        if any((x, y) in draw.holes for x in range(draw.files)) or not _place_for_castling(draw, side, y, moves):
            return
    if mirrored:
        named = {} if draw.first_rank == 1 and rank == 0 and draw.chance(0.5) else {"rank": draw.first_rank + rank}
        draw.castling = {**named, **plan[0]}
    else:
        ranks = {0: draw.first_rank + rank, 1: draw.first_rank + draw.ranks - 1 - rank}
        draw.castling = {SIDES[side]: {"rank": ranks[side], **moves} for side, moves in plan.items()}


def _castling_moves(draw: Draw) -> Document:
    """Draw a king's file and one or two castlings with partners on either side of it."""
    names = [chr(ord("a") + x) for x in range(draw.files)]
    king = int(draw.rng.integers(draw.files))
    moves: Document = {"king": names[king]}
    for key, reachable in (("kingside", range(king + 1, draw.files)), ("queenside", range(king))):
        outward = list(reachable) if key == "kingside" else list(reversed(reachable))
        if len(outward) < 2 or draw.chance(0.25):
            continue
        partner = outward[-1] if draw.chance(0.7) else draw.pick(outward)
        king_to = outward[1] if draw.chance(0.8) else draw.pick(outward[1:])
        beside = king_to - 1 if key == "kingside" else king_to + 1
        partner_to = beside if draw.chance(0.85) else draw.pick(range(draw.files))
        moves[key] = {"king_to": names[king_to], "rook": names[partner], "rook_to": names[partner_to]}
    return moves if len(moves) > 1 else {}


def _place_for_castling(draw: Draw, side: int, y: int, moves: Document) -> bool:
    """Say what must stand where, if there is something; rights are given in most start positions."""
    plain = [letter for letter in draw.pieces if letter != draw.pawn and letter not in draw.royals]
    king = draw.royals[side] or (draw.pick(plain) if plain else None)
    if king is None or not plain:
        return False
    in_case: Callable[[str], str] = str.upper if side == 0 else str.lower
    draw.fixed[ord(moves["king"]) - ord("a"), y] = in_case(king)
    for key, letter in (("kingside", "k"), ("queenside", "q")):
        if key in moves:
            draw.fixed[ord(moves[key]["rook"]) - ord("a"), y] = in_case(draw.pick(plain))
            if draw.chance(0.9):
                draw.rights += in_case(letter)
    return True


# --- Start positions --------------------------------------------------------------------------


def _start(draw: Draw) -> str:
    depth = max(1, min(draw.ranks // 2, 1 + int(draw.rng.random() < 0.5)))
    board = dict(draw.fixed)
    royals_too = (draw.royals[0] is None) == (draw.royals[1] is None)
    symmetric = royals_too and draw.chance(0.6) and all(_mirrored_in(draw, board, cell) for cell in board)
    for side in (0, 1):
        if side == 1 and symmetric:
            board |= {(x, draw.ranks - 1 - y): letter.lower() for (x, y), letter in board.items() if letter.isupper()}
            _swap_royal(draw, board)
        else:
            _array(draw, board, side, depth)
    rows = []
    for y in reversed(range(draw.ranks)):
        cells = ["*" if (x, y) in draw.holes else board.get((x, y), "1") for x in range(draw.files)]
        rows.append(_joined(cells))
    rights = "".join(letter for letter in "KQkq" if letter in draw.rights and draw.castling is not None) or "-"
    side_to_move = "b" if draw.chance(0.12) else "w"
    counters = " 0 1" if draw.chance(0.9) else ""
    return f"{'/'.join(rows)} {side_to_move} {rights} -{counters}"


def _with_other_partners(draw: Draw) -> Draw:
    """Return a draw with, often, other pieces than royals where castling wants something to stand."""
    royals = {letter for letter in draw.royals if letter is not None}
    plain = [letter for letter in draw.pieces if letter != draw.pawn and letter not in royals]
    fixed = {}
    for cell, letter in draw.fixed.items():
        other = letter if letter.lower() in royals or draw.chance(0.6) else draw.pick(plain)
        fixed[cell] = other.upper() if letter.isupper() else other.lower()
    return replace(draw, fixed=fixed)


def _mirrored_in(draw: Draw, board: Mapping[Cell, str], cell: Cell) -> bool:
    """Return whether the other side has the same piece on the mirrored square, or nothing yet."""
    other = board.get((cell[0], draw.ranks - 1 - cell[1]))
    return other is None or (other != board[cell] and other.upper() == board[cell].upper())


def _swap_royal(draw: Draw, board: dict[Cell, str]) -> None:
    """Give Black's mirrored array its own royal."""
    white, black = draw.royals
    for cell, letter in board.items():
        if white is not None and letter == white.lower() and white != black:
            board[cell] = black or letter


def _array(draw: Draw, board: dict[Cell, str], side: int, depth: int) -> None:
    """Place a side's royal, pieces and pawns on its first ranks."""
    in_case: Callable[[str], str] = str.upper if side == 0 else str.lower
    free = [cell for cell in draw.cells(side, depth) if cell not in board]
    draw.rng.shuffle(free)
    royal = draw.royals[side]
    if royal is not None and in_case(royal) not in board.values() and free:
        board[_cell(free.pop())] = in_case(royal)
    others = [letter for letter in draw.pieces if letter != draw.pawn and letter not in draw.royals]
    queue = list(others) if draw.chance(0.7) else []
    for cell in free[: max(1, round(len(free) * draw.rng.uniform(0.4, 1.0)))]:
        if others:
            board[_cell(cell)] = in_case(queue.pop() if queue else draw.pick(others))
    if draw.pawn is not None:
        rows = range(max(1, min(draw.ranks - 1, draw.pawn_limit)))
        row = min(depth, rows[-1]) if draw.chance(0.85) else draw.pick(rows)
        y = row if side == 0 else draw.ranks - 1 - row
        fill = draw.pick([0.5, 0.9, 1.0])
        for x in range(draw.files):
            if (x, y) not in draw.holes and (x, y) not in board and draw.chance(fill):
                board[x, y] = in_case(draw.pawn)


def _cell(pair: Any) -> Cell:
    return int(pair[0]), int(pair[1])


def _joined(cells: list[str]) -> str:
    row, run = "", 0
    for cell in [*cells, ""]:
        if cell == "1":
            run += 1
        else:
            row += (str(run) if run else "") + cell
            run = 0
    return row


def _forget_unused(draw: Draw, starts: list[str]) -> None:
    """Take out pieces that no game would see, and pawns without a pawn."""
    placed = set("".join(start.split(" ")[0] for start in starts).lower())
    if draw.pawn is not None and draw.pawn not in placed:
        del draw.pieces[draw.pawn]
        draw.pawn = draw.pawns = None
    named = "" if draw.pawns is None else draw.pawns.get("promotes_to", "")
    promoted = set(named if isinstance(named, str) else "".join(named.values()))
    for letter in [letter for letter in draw.pieces if letter not in placed | promoted]:
        del draw.pieces[letter]


# --- Options ----------------------------------------------------------------------------------


def _options(draw: Draw, document: Document) -> Document:
    """Draw one to three options, each with one of the keys that options may change."""
    kinds, ends = PieceDraw(draw.rng), document.get("ends", {})
    overlays: list[Document] = [
        {"ends": {"stalemate": draw.pick([result for result in RESULTS if result != ends.get("stalemate", "draw")])}},
        {"ends": {"move_limit": 33}},
        {"ends": {"repetition": {"times": 7, "result": "loss"}}},
        {"start": _start(draw)},
    ]
    for letter in (letter for letter, piece in draw.pieces.items() if not piece.special and letter != draw.pawn):
        overlays.append({"pieces": {letter: {"moves": kinds.leaps()}}})
        overlays.append({"pieces": {letter: {"captures_own": not draw.pieces[letter].captures_own}}})
    if draw.pawns is not None:
        other = "may" if draw.pawns.get("promotion", "must") == "must" else "must"
        overlays.append({"pawns": {"promotion": other}})
        overlays.append({"pawns": {"captures": "fN", "quiet": "fW"}})
    if draw.castling is not None:
        bare = [start.replace(f" {start.split(' ')[2]} -", " - -") for start in [_start(draw)]]
        overlays.append({"castling": None, "start": bare[0]})
    return {f"option_{number}": overlay for number, overlay in enumerate(draw.some(overlays, 1, 3))}


# --- Parents ----------------------------------------------------------------------------------


def _as_child_of_chess(document: Document) -> Document:
    """Say the same as a child of chess: what it inherits and does not want is removed with null."""
    unwanted: Document = {"pieces": dict.fromkeys("kqrbnp"), "castling": None, "pawns": None, "ends": None}
    child: Document = {"extends": "chess", "royal": None, **document}
    child["pieces"] = {**unwanted["pieces"], **document["pieces"]}
    inherited = ("first_steps", "first_steps_from", "promotes_to")
    child["pawns"] = {**dict.fromkeys(inherited), **document["pawns"]} if "pawns" in document else None
    castling = document.get("castling")
    child["castling"] = None if castling is None else {
        **dict.fromkeys(("rank", "king", "kingside", "queenside") if "white" in castling or "black" in castling
                        else ("kingside", "queenside")), **castling,
    }  # fmt: skip
    child["ends"] = {"bare_kings": None, **document.get("ends", {})}
    return child
