"""The rules of a game in plain words, made from the resolved rules, so that they say what the engine plays.

A rule sheet is a list of sections; a section is a list of entries of a few sentences. Nothing here is written
for one game: pieces are worded from their rays (`move_words`), everything else from the fields of `Variant`.
What an option changes is the difference between two rule sheets.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from envs.castling_words import castling_entries
from envs.ending_words import ending_entries
from envs.game_words import Entry, own_royal
from envs.move_words import fire_sentences, movement_sentence, own_capture_sentence, ray_groups
from envs.notation import SIDE_NAMES, piece_code, piece_letter
from envs.pawn_words import pawn_sentences
from envs.variant import BLACK, WHITE, Variant
from envs.variant_loader import variant_from_document

MOVES_IN_GENERAL = (
    "Unless a move is limited below, it may end on an empty square or on an enemy, which is captured; a "
    "slide goes over empty squares and stops at the first piece."
)


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
    pieces = [describe_piece(variant, number) for number in range(len(variant.piece_types))]
    sections = [
        Section("Board", (Entry("", tuple(_board(variant))),)),
        Section("Pieces", (Entry("", tuple(_pieces_in_general(variant))), *pieces)),
    ]
    if any(variant.castlings):
        sections.append(Section("Castling", tuple(castling_entries(variant))))
    sections.append(Section("How a game ends", tuple(ending_entries(variant))))
    return tuple(sections)


def describe_piece(variant: Variant, number: int) -> Entry:
    """Return a piece type in words: what it may do, then what it attacks where that is not the same."""
    piece = variant.piece_types[number]
    tags = ", ".join(_tags(variant, number))
    heading = f"{piece.letter}, {piece.name}{f' ({tags})' if tags else ''}"
    if variant.pawns is not None and number == variant.pawns.piece:
        return Entry(heading, tuple(pawn_sentences(variant)))
    sentences = [movement_sentence(group, captures_own=piece.captures_own) for group in ray_groups(piece.rays)]
    royal = None if _is_every_royal(variant, number) else own_royal(variant)
    if piece.captures_own and any(ray.capture and not ray.fires_through for ray in piece.rays):
        sentences.append(own_capture_sentence(royal))
    if any(ray.fires_through for ray in piece.rays):
        sentences += fire_sentences(piece, royal)
    if any(ray.quiet and not ray.capture for ray in piece.rays) and own_royal(variant):
        sentences.append("It attacks only what it may capture.")
    return Entry(heading, tuple(sentences))


def _pieces_in_general(variant: Variant) -> list[str]:
    royals = [side for side in (WHITE, BLACK) if variant.royals[side] is not None]
    if len(royals) == 2:
        return [MOVES_IN_GENERAL]
    if not royals:
        return [MOVES_IN_GENERAL, "No piece is royal: there is no check, and every piece may be captured."]
    other = SIDE_NAMES[1 - royals[0]]
    return [MOVES_IN_GENERAL, f"{other} has no royal piece: {other} is never in check, and all of its pieces may be "
            "captured."]  # fmt: skip


def _is_every_royal(variant: Variant, number: int) -> bool:
    """Return whether the royal piece of each side that has one is of a type."""
    return {*variant.royals} - {None} == {number}


def _tags(variant: Variant, number: int) -> list[str]:
    """Return what a piece's heading says beside its name: whose royal it is, and whether one side alone has it."""
    owners = [side for side in (WHITE, BLACK) if _may_have(variant, number, side)]
    royal_for = [side for side in (WHITE, BLACK) if variant.royals[side] == number]
    if len(royal_for) == 2:
        return ["royal"]
    tags = [f"{SIDE_NAMES[side]}'s royal" for side in royal_for]
    if royal_for and owners != royal_for:
        return [*tags, f"not royal for {SIDE_NAMES[1 - royal_for[0]]}"]
    return tags or ([f"{SIDE_NAMES[owners[0]]} only"] if len(owners) == 1 else [])


def _may_have(variant: Variant, number: int, side: int) -> bool:
    """Return whether a side begins with a piece of a type, or can promote to it."""
    pawns = variant.pawns
    promotes = pawns is not None and number in pawns.promotes_to[side] and _begins_with(variant, pawns.piece, side)
    return promotes or _begins_with(variant, number, side)


def _begins_with(variant: Variant, number: int, side: int) -> bool:
    letter = piece_letter(variant, piece_code(number, side))
    return any(letter in fen.split(" ")[0] for fen in variant.start_fens)


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
    """Return every sentence with its heading, after those for what is drawn and not said: the start positions."""
    starts = [("Start", fen) for fen in variant.start_fens]
    return starts + [
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
        cells = "1 cell marked * is" if holes == 1 else f"{holes} cells marked * are"
        sentences.append(
            f"{variant.num_squares} squares: {cells} not part of the board. Leaps may "
            "cross them; a piece that slides or repeats leaps stops before them."
        )
    return [*sentences, *_starts(variant)]


def _starts(variant: Variant) -> list[str]:
    starts = [fen.split(" ") for fen in variant.start_fens]
    count = len(starts)
    sentences = []
    if count > 1:
        sentences.append(f"{count} start positions: a game begins from each with equal chance. Drawn: the first.")
    rows = [fields[0].split("/") for fields in starts]
    mirrored = sum([row.swapcase() for row in reversed(board)] == board for board in rows)
    if mirrored == count:
        sentences.append("Black's array mirrors White's, file by file.")
    elif mirrored:
        sentences.append(f"In {mirrored} of them Black's array mirrors White's, file by file.")
    else:
        sentences.append("The two arrays do not mirror each other.")
    black_first = sum(fields[1] == "b" for fields in starts)
    if 0 < black_first < count:
        return [*sentences, f"White moves first in {count - black_first} of them, Black in {black_first}."]
    return [*sentences, f"{SIDE_NAMES[BLACK if black_first else WHITE]} moves first."]
