"""What is learned of a game's evaluation: material, square terms, tempo, and which of them are one number.

A kind is a piece type, of either side where the sides play by the same rules with the same pieces, else of one side.
Each kind has a material worth, and a square term for each class of squares. Kinds that are royal on the side are never
lost: where the sides are alike they have square terms only, else their material says by how much one army is better. A
Black piece's square is seen from Black's side; where the rules are the same on both wings, mirrored files are one
class. Dims: S squares, 32 piece codes, K kinds, F = K S + K + 1 parameters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from envs import CompiledGame, Variant
from envs.layout import BLACK_CODE, NUM_CODES
from envs.notation import parse_fields, piece_code
from envs.reflection import Reflection
from envs.tables import is_colour_symmetric
from envs.variant import BLACK, WHITE

F64Array = NDArray[np.float64]
UNUSED = -1


@dataclass(frozen=True, eq=False)
class Features:
    """The parameters of a game's evaluation, as one vector: square terms [K S], material [K], tempo.

    Attributes:
        letters: of each kind; small letters are Black's, where the sides are told apart.
        is_royal: bool [K].
        is_pawn: bool [K].
        kinds: intp [32], kind of each piece code, `UNUSED` for codes that the game lacks.
        terms: intp [32, S], number of the square term of each code and square, `UNUSED` likewise.
        signs: float64 [32], 1 for White's codes, -1 for Black's.
        places: intp [S, 2], file and rank of each square.
        images: intp [S], the other square of its class, itself where there is none.
    """

    letters: tuple[str, ...]
    is_royal: NDArray[np.bool_]
    is_pawn: NDArray[np.bool_]
    kinds: NDArray[np.intp]
    terms: NDArray[np.intp]
    signs: F64Array
    places: NDArray[np.intp]
    images: NDArray[np.intp]

    @classmethod
    def of(cls, game: CompiledGame) -> Features:
        """Return the features of a game."""
        variant = game.variant
        num_types, num_squares = len(variant.piece_types), variant.num_squares
        sides = (WHITE,) if are_sides_alike(variant) else (WHITE, BLACK)
        reflection = Reflection.of(game)
        squares = np.arange(num_squares)
        images = squares if reflection is None else reflection.squares
        classes = np.minimum(squares, images)
        kinds = np.full(NUM_CODES, UNUSED, np.intp)
        terms = np.full((NUM_CODES, num_squares), UNUSED, np.intp)
        for side in (WHITE, BLACK):
            seen = classes if side == WHITE else classes[list(variant.board.flipped)]
            for number in range(num_types):
                code = piece_code(number, side)
                kinds[code] = number + num_types * (side if len(sides) > 1 else WHITE)
                terms[code] = kinds[code] * num_squares + seen
        letters = [piece.letter for piece in variant.piece_types]
        pawn = None if variant.pawns is None else variant.pawns.piece
        return cls(
            letters=tuple(letter if side == WHITE else letter.lower() for side in sides for letter in letters),
            is_royal=np.array([number == variant.royals[side] for side in sides for number in range(num_types)]),
            is_pawn=np.array([number == pawn for _ in sides for number in range(num_types)]),
            kinds=kinds,
            terms=terms,
            signs=np.where(np.arange(NUM_CODES) < BLACK_CODE, 1.0, -1.0),
            places=np.array(variant.board.squares, np.intp),
            images=images,
        )

    @property
    def is_constant(self) -> NDArray[np.bool_]:
        """Whether a kind's number never makes a difference, bool [K]: royals of sides that are alike."""
        both = self.kinds[:BLACK_CODE], self.kinds[BLACK_CODE:]
        return self.is_royal & np.array_equal(*both)

    @property
    def num_kinds(self) -> int:
        """K."""
        return len(self.letters)

    @property
    def num_terms(self) -> int:
        """K S, the number of square terms, those that no square uses counted."""
        return self.num_kinds * int(self.terms.shape[1])

    def weights(self, parameters: F64Array) -> F64Array:
        """Return White's weights float64 [32, S] of parameters [F]."""
        terms, material = parameters[: self.num_terms], parameters[self.num_terms : -1]
        worth = np.where(self.is_constant, 0.0, material)[self.kinds][:, None] + terms[self.terms]
        return np.where(self.terms == UNUSED, 0.0, self.signs[:, None] * worth)

    def gradient(self, by_weight: F64Array, by_tempo: float) -> F64Array:
        """Return the gradient by the parameters [F] of a function whose gradient by the weights [32, S] is known."""
        used = self.terms != UNUSED
        own = self.signs[:, None] * by_weight
        terms = np.bincount(self.terms[used], own[used], self.num_terms)
        by_code = np.where(self.kinds == UNUSED, 0.0, own.sum(axis=1))
        material = np.bincount(np.maximum(self.kinds, 0), by_code, self.num_kinds)
        return np.concatenate([terms, np.where(self.is_constant, 0.0, material), [by_tempo]])

    def worth(self, weights: F64Array, counts: F64Array) -> tuple[F64Array, F64Array]:
        """Return what each kind is worth where it stands, 0 for one that never does, and how often it stands; [K] each.

        Args:
            weights: float64 [32, S], White's.
            counts: float64 [32, S], how often each code stands on each square.
        """
        used = self.kinds != UNUSED
        numbers = self.kinds[used]
        standing = np.bincount(numbers, counts.sum(axis=1)[used], self.num_kinds).astype(np.float64)
        total = np.bincount(numbers, (self.signs[:, None] * weights * counts).sum(axis=1)[used], self.num_kinds)
        return total / np.maximum(standing, 1.0), standing


def are_sides_alike(variant: Variant) -> bool:
    """Return whether both sides play by the same rules, with the same pieces in every start array."""
    if not is_colour_symmetric(variant):
        return False
    for fen in variant.start_fens:
        board = parse_fields(variant, fen).board
        white, black = board[(board > 0) & (board < BLACK_CODE)], board[board > BLACK_CODE] - BLACK_CODE
        if sorted(white) != sorted(black):
            return False
    return True


def count_standing(boards: NDArray[np.uint8]) -> F64Array:
    """Return how often each code stands on each square of boards uint8 [N, S], float64 [32, S]; empty squares 0."""
    num_squares = boards.shape[1]
    places = boards.astype(np.intp) * num_squares + np.arange(num_squares)
    counts = np.bincount(places.ravel(), minlength=NUM_CODES * num_squares).astype(np.float64)
    counts[:num_squares] = 0
    return counts.reshape(NUM_CODES, num_squares)
