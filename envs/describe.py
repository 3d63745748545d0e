"""The rules of a game in plain words, made from the resolved rules, so that they say what the engine plays.

A rule sheet is a list of sections; a section is a list of entries of a few sentences. Nothing here is written
for one game: pieces are worded from their rays (`move_words`), everything else from the fields of `Variant`.
What an option changes is the difference between two rule sheets.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from envs.move_words import fire_sentences, listed, movement_sentence, ray_groups, spelled
from envs.notation import SIDE_NAMES
from envs.variant import BLACK, WHITE, Castling, Variant
from envs.variant_loader import variant_from_document

WINGS = ("kingside", "queenside")
MOVES_IN_GENERAL = (
    "Unless a move is limited below, it may end on an empty square or on an enemy, which is captured; a "
    "slide goes over empty squares and stops at the first piece."
)


@dataclass(frozen=True)
class Entry:
    """One piece or one rule: a heading, possibly empty, and sentences."""

    heading: str
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class Section:
    """A part of the rule sheet."""

    title: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class OptionChange:
    """What switching one option over changes, in sentences of the rule sheet.

    Attributes:
        name: The option.
        is_on: How it stands in the game that is described.
        removed: `(heading, sentence)` that would no longer hold.
        added: `(heading, sentence)` that would hold instead.
    """

    name: str
    is_on: bool
    removed: tuple[tuple[str, str], ...]
    added: tuple[tuple[str, str], ...]


def describe(variant: Variant) -> tuple[Section, ...]:
    """Return the rule sheet: board, pieces, pawns, castling and endings; options apart (`option_changes`)."""
    types = range(len(variant.piece_types))
    sections = [
        Section("Board", (Entry("", tuple(_board(variant))),)),
        Section("Pieces", (Entry("", (MOVES_IN_GENERAL,)), *(describe_piece(variant, number) for number in types))),
    ]
    if any(variant.castlings):
        sections.append(Section("Castling", tuple(_castling(variant))))
    sections.append(Section("How a game ends", tuple(_endings(variant))))
    return tuple(sections)


def describe_piece(variant: Variant, number: int) -> Entry:
    """Return a piece type in words: what it may do, then what it attacks where that is not the same."""
    piece = variant.piece_types[number]
    if variant.pawns is not None and number == variant.pawns.piece:
        return Entry(f"{piece.letter}, {piece.name}", tuple(_pawns(variant)))
    sentences = [movement_sentence(group) for group in ray_groups(piece.rays)]
    if any(ray.fires_through for ray in piece.rays):
        sentences += fire_sentences(piece, variant.piece_types[variant.royal].name)
    if any(ray.quiet and not ray.capture for ray in piece.rays):
        sentences.append("It attacks only what it may capture.")
    royal = " (royal)" if number == variant.royal else ""
    return Entry(f"{piece.letter}, {piece.name}{royal}", tuple(sentences))


def option_changes(variant: Variant) -> tuple[OptionChange, ...]:
    """Return, for each option, the sentences that switching it over removes and adds."""
    changes = []
    here = _flat(variant)
    for name, is_on in variant.options.items():
        options = {**variant.options, name: not is_on}
        there = _flat(variant_from_document(variant.document, options, name=variant.name))
        removed, added = [], []
        for tag, first, last, start, end in difflib.SequenceMatcher(None, here, there, False).get_opcodes():
            if tag != "equal":
                removed += here[first:last]
                added += there[start:end]
        changes.append(OptionChange(name, is_on, tuple(removed), tuple(added)))
    return tuple(changes)


def _flat(variant: Variant) -> list[tuple[str, str]]:
    return [
        (entry.heading or section.title, sentence)
        for section in describe(variant)
        for entry in section.entries
        for sentence in entry.sentences
    ]


# --- The board ----------------------------------------------------------------------------------


def _board(variant: Variant) -> list[str]:
    board = variant.board
    last_file, last_rank = chr(ord("a") + board.files - 1), board.first_rank + board.ranks - 1
    sentences = [f"{board.files} files (a to {last_file}) by {board.ranks} ranks ({board.first_rank} to {last_rank})."]
    holes = board.files * board.ranks - variant.num_squares
    if holes:
        sentences.append(
            f"{variant.num_squares} squares: {holes} cells marked * are not part of the board. Leaps may "
            "cross them; a piece that slides or repeats leaps stops before them."
        )
    rows = variant.start_fen.split(" ")[0].split("/")
    mirrored = [row.swapcase() for row in reversed(rows)] == rows
    sentences.append(
        "Black's array mirrors White's, file by file." if mirrored else "The two arrays do not mirror each other."
    )
    sentences.append(f"{SIDE_NAMES['wb'.index(variant.start_fen.split(' ')[1])]} moves first.")
    return sentences


# --- Pawns and castling -------------------------------------------------------------------------


def _rank_names(variant: Variant, ranks: tuple[int, ...]) -> str:
    return listed((str(variant.board.first_rank + y) for y in ranks), "or")


def _pawns(variant: Variant) -> list[str]:
    pawns = variant.pawns
    assert pawns is not None
    starts = [_rank_names(variant, ranks) for ranks in pawns.start_ranks if ranks]
    sentences = ["One step forward onto an empty square."]
    if pawns.first_steps > 1:
        sentences = [
            f"One step forward onto an empty square; from rank {starts[WHITE]} (White) or {starts[BLACK]} "
            f"(Black) up to {spelled(pawns.first_steps)} steps over empty squares."
        ]
    sentences.append("Captures one step diagonally forward.")
    if pawns.first_steps == 2:
        sentences.append(
            "En passant: when it has moved two steps, an enemy pawn may capture it on the very next move, by "
            "a capturing move to the square it passed."
        )
    if pawns.first_steps > 2:
        sentences.append(
            "En passant: when it has moved more than one step, an enemy pawn may capture it on the very next "
            "move, by a capturing move to any square it passed."
        )
    white, black = (_rank_names(variant, ranks) for ranks in pawns.promotion_ranks)
    targets = listed(
        (f"{variant.piece_types[t].name} ({variant.piece_types[t].letter})" for t in pawns.promotes_to), "or"
    )
    sentences.append(f"On reaching rank {white} (White) or {black} (Black) it must become one of: {targets}.")
    return sentences


def _castling(variant: Variant) -> list[Entry]:
    entries = [_one_castling(variant, number, move) for number, move in enumerate(variant.castlings) if move]
    royal = variant.piece_types[variant.royal].name
    partners = {variant.piece_types[move.partner_type].name for move in variant.castlings if move}
    partner = f"the {partners.pop()}" if len(partners) == 1 else "its partner"
    entries.append(Entry("Conditions", (
        f"The {royal} is not in check, and it and {partner} have not moved.",
        f"The right is also lost when {partner} is captured at home in any way.",
        f"The move is written as the {royal}'s: {_example_of(variant)}.",
    )))  # fmt: skip
    return entries


def _example_of(variant: Variant) -> str:
    move = next(filter(None, variant.castlings))
    return variant.board.names[move.king_from] + variant.board.names[move.king_to]


def _one_castling(variant: Variant, number: int, move: Castling) -> Entry:
    names, squares = variant.board.names, variant.board.squares
    (king_x, y), (to_x, _) = squares[move.king_from], squares[move.king_to]
    (partner_x, _), (partner_to_x, _) = squares[move.partner_from], squares[move.partner_to]
    ends = (king_x, to_x, partner_x, partner_to_x)
    swept = {
        x
        for a, b in ((king_x, partner_x), (king_x, to_x), (partner_x, partner_to_x))
        for x in range(min(a, b), max(a, b) + 1)
    } - {king_x, partner_x}
    step = 1 if to_x > king_x else -1
    safe = list(range(king_x + step, to_x + step, step))
    at = {x: names[variant.board.index[x, y]] for x in swept | {*ends}}
    royal, partner = variant.piece_types[variant.royal].name, variant.piece_types[move.partner_type].name
    sentences = [
        f"{royal.capitalize()} {at[king_x]} to {at[to_x]}, {partner} {at[partner_x]} to {at[partner_to_x]}.",
        f"{listed(at[x] for x in sorted(swept))} must be empty, {listed(at[x] for x in sorted(safe))} not attacked.",
    ]
    exposed = sorted(swept - set(safe))
    if exposed:
        sentences.append(f"{listed(at[x] for x in exposed)} may be attacked.")
    return Entry(f"{SIDE_NAMES[number // 2]} {WINGS[number % 2]}", tuple(sentences))


# --- Endings ------------------------------------------------------------------------------------


def _endings(variant: Variant) -> list[Entry]:
    royal = variant.piece_types[variant.royal].name
    passing = variant.pawns is not None and variant.pawns.first_steps > 1
    same = ["the same board and side to move"]
    same += ["the same castling rights"] if any(variant.castlings) else []
    same += ["the same legal en passant captures"] if passing else []
    clock = "100 plies without a capture or pawn move are a draw; a mate on the 100th is still a mate."
    entries = [
        Entry("Checkmate", (f"A {royal} in check with no legal move is mated: its side loses.",)),
        Entry("Stalemate", ("No legal move without being in check is a draw.",)),
        Entry("Bare kings", (f"The two {royal}s alone on the board are a draw.",)),
        Entry("Repetition", (f"The same position for the third time is a draw: {', '.join(same)}.",)),
        Entry("Fifty moves", (clock,)),
    ]
    if not variant.bare_kings_draw:
        entries = [entry for entry in entries if entry.heading != "Bare kings"]
    if any(variant.goals):
        entries.insert(0, _goal(variant))
    order = ", ".join(entry.heading.lower() for entry in entries)
    return [*entries, Entry("Several at once", (f"The first that holds counts: {order}.",))]


def _goal(variant: Variant) -> Entry:
    piece = variant.piece_types[variant.goal_piece].name
    white, black = (listed((variant.board.names[s] for s in squares), "or") for squares in variant.goals)
    return Entry(
        "Scepter",
        (f"A {piece} that makes a legal move onto {white} (White) or {black} (Black) wins at once.",),
    )
