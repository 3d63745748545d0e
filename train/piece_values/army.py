"""The armies of a game in words: values are against an army, and another one may have others."""

from envs import Variant
from envs.notation import BLACK_CODE, EMPTY, parse_fields


def army_text(variant: Variant) -> str:
    """Return what stands against what in the array, such as "against the same army: K Q 2R 2B 2N 8P"."""
    board = parse_fields(variant, variant.start_fen).board
    white, black = (_listed(variant, [int(code) for code in board if code != EMPTY], side) for side in (0, 1))
    if white == black:
        return f"against the same army: {white}"
    return f"White's {white} against Black's {black}"


def _listed(variant: Variant, codes: list[int], side: int) -> str:
    counts = [codes.count(number + 1 + side * BLACK_CODE) for number in range(len(variant.piece_types))]
    pieces = zip(counts, variant.piece_types, strict=True)
    return " ".join(f"{count if count > 1 else ''}{piece.letter}" for count, piece in pieces if count)
