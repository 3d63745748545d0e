"""What may capture on a square, as words of the rule tables: the attack test, read outward from its target."""

from __future__ import annotations

from collections import defaultdict

from envs.actions import pawn_captures, ray_squares
from envs.betza import Ray
from envs.variant import WHITE, Variant


class AttackRecord:
    """What pieces of `side` may capture on `square`, seen outward from the square.

    Words: `n`, n leaps `from | types << 8`; `n`, n overruns of two words `from | types << 8` and `landing | types that
    may land on their own side << 8`, the others need a landing square without a piece of `side`; `n` plain lines, each
    its length and words `square | types << 8`; `n` lines of two words a step, the second `types that fire through an
    enemy | types that fire through a friend << 16`. Types are bit masks, bit t + 1 for type t.
    """

    def __init__(self, variant: Variant, side: int, square: int) -> None:
        self.variant, self.side, self.square = variant, side, square
        self.leaps: dict[int, int] = defaultdict(int)
        self.overruns: dict[tuple[int, int], int] = defaultdict(int)
        self.lines: dict[tuple[int, int], list[list[int]]] = {}

    def words(self) -> list[int]:
        """Return the record."""
        self._collect_slides()
        self._collect_leaps()
        self._collect_pawns()
        words = [len(self.leaps), *(start | mask << 8 for start, mask in sorted(self.leaps.items()))]
        words.append(len(self.overruns))
        for (start, landing), mask in sorted(self.overruns.items()):
            words += [start | mask << 8, landing | (mask & self._captures_own()) << 8]
        plain = [line for line in self.lines.values() if not any(step[2] or step[3] for step in line)]
        firing = [line for line in self.lines.values() if any(step[2] or step[3] for step in line)]
        words.append(len(plain))
        for line in plain:
            words += [len(line), *(square | direct << 8 for square, direct, _, _ in line)]
        words.append(len(firing))
        for line in firing:
            words.append(len(line))
            for square, direct, through_enemy, through_own in line:
                words += [square | direct << 8, through_enemy | through_own << 16]
        return words

    def _captures_own(self) -> int:
        return sum(1 << (number + 1) for number, piece in enumerate(self.variant.piece_types) if piece.captures_own)

    def _outward(self, ray: Ray) -> list[int]:
        back = Ray((-ray.step[0], -ray.step[1]), ray.reach)
        return ray_squares(self.variant, self.square, back, self.side)

    def _collect_slides(self) -> None:
        for number, piece in enumerate(self.variant.piece_types):
            for ray in piece.rays:
                if ray.reach == 1 or not ray.capture:
                    continue
                squares = self._outward(ray)
                line = self.lines.setdefault(ray.step, [])
                line += [[square, 0, 0, 0] for square in squares[len(line) :]]
                for distance in range(len(squares)):
                    bit = 1 << (number + 1)
                    line[distance][1] |= bit
                    if ray.fires_through and distance:
                        line[distance][2] |= bit
                        line[distance][3] |= bit * piece.fires_through_own
        self.lines = {step: line for step, line in self.lines.items() if line}

    def _collect_leaps(self) -> None:
        for number, piece in enumerate(self.variant.piece_types):
            for ray in piece.rays:
                if ray.reach != 1 or not ray.capture:
                    continue
                for start in self._outward(ray):
                    self._add_leap(start, ray.step, number)
                if ray.overruns:
                    self._add_overrun(ray, number)

    def _collect_pawns(self) -> None:
        pawns = self.variant.pawns
        if pawns is None:
            return
        for start in range(self.variant.num_squares):
            if self.square in pawn_captures(self.variant, start, self.side):
                (x0, y0), (x1, y1) = (
                    self.variant.board.squares[start],
                    self.variant.board.squares[self.square],
                )
                step = (x1 - x0, y1 - y0 if self.side == WHITE else y0 - y1)
                self._add_leap(start, step, pawns.piece)

    def _add_leap(self, start: int, step: tuple[int, int], number: int) -> None:
        if step in self.lines:
            self.lines[step][0][1] |= 1 << (number + 1)
        else:
            self.leaps[start] |= 1 << (number + 1)

    def _add_overrun(self, ray: Ray, number: int) -> None:
        half = (ray.step[0] // 2, ray.step[1] // 2)
        behind = ray_squares(self.variant, self.square, Ray((-half[0], -half[1]), 1), self.side)
        landing = ray_squares(self.variant, self.square, Ray(half, 1), self.side)
        if behind and landing:
            self.overruns[behind[0], landing[0]] |= 1 << (number + 1)
