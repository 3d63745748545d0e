"""What the parts of a rule sheet share: its entries, and the names of pieces, ranks and squares in a sentence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from envs.variant import Variant

NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
ENDINGS = {1: "st", 2: "nd", 3: "rd"}
ORDINALS = {2: "second", 3: "third", 4: "fourth", 5: "fifth", 6: "sixth", 7: "seventh", 8: "eighth", 9: "ninth"}
ANY_ROYAL = "royal piece"


@dataclass(frozen=True)
class Entry:
    """One piece or one rule: a heading, possibly empty, and sentences."""

    heading: str
    sentences: tuple[str, ...]


def spelled(count: int) -> str:
    """Return a small number as a word."""
    return NUMBERS[count] if count < len(NUMBERS) else str(count)


def ordinal(count: int) -> str:
    """Return `1st`, `2nd`, `100th`."""
    teens = 10 < count % 100 < 14
    return f"{count}{'th' if teens else ENDINGS.get(count % 10, 'th')}"


def listed(words: Iterable[str], joint: str = "and") -> str:
    """Join words as in a sentence: `a, b and c`."""
    items = list(words)
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {joint} {items[-1]}"


def with_article(name: str) -> str:
    """Return `a rook`, `an archer`."""
    sounds_like_a_consonant = name.lower().startswith(("uni", "eu"))
    return f"{'an' if name[0] in 'aeiouAEIOU' and not sounds_like_a_consonant else 'a'} {name}"


def plural(name: str) -> str:
    """Return `kings`, `empresses`, `ladies`."""
    if name.lower().endswith(("s", "x", "z", "sh", "tch")):
        return f"{name}es"
    is_after_consonant = name[-1:] == "y" and name[-2:-1] not in tuple("aeiou")
    return f"{name[:-1]}ies" if is_after_consonant else f"{name}s"


def capitalised(text: str) -> str:
    """Return a text that begins a sentence; names inside it keep their letters."""
    return text[:1].upper() + text[1:]


def piece_names(variant: Variant, types: Iterable[int], joint: str = "or") -> str:
    """Return the names of piece types in a list."""
    return listed((variant.piece_types[number].name for number in types), joint)


def own_royal(variant: Variant) -> str | None:
    """Return what a rule that holds for both sides calls a side's own royal piece; None where no side has one."""
    royals = set(variant.royals)
    if royals == {None}:
        return None
    (white, black) = variant.royals
    return variant.piece_types[white].name if white is not None and white == black else ANY_ROYAL


def rank_names(variant: Variant, ranks: Iterable[int]) -> str:
    """Return the names of ranks given as `y`."""
    return listed((str(variant.board.first_rank + y) for y in ranks), "or")


def square_names(variant: Variant, squares: Iterable[int]) -> str:
    """Return the names of squares, a whole rank without holes as `rank 8`."""
    board, chosen = variant.board, set(squares)
    rows: dict[int, list[int]] = {}
    for square in sorted(chosen):
        rows.setdefault(board.squares[square][1], []).append(square)
    words: list[str] = []
    for y, row in rows.items():
        is_whole = len(row) == board.files
        words += [f"rank {board.first_rank + y}"] if is_whole else [board.names[square] for square in row]
    return listed(words, "or")
