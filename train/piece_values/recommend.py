"""The one value of each piece that a report recommends, by a rule that was fixed before anything was measured.

1. Where methods are causal (`estimates.CAUSAL`: chance decided who has which piece) and give a piece a positive value
   with a bounded interval above 0, the recommended value is their mean weighted by inverse variance. Values are
   ratios, so this is done with their logarithms, each with the standard error that its interval implies. Where methods
   disagree by more than their intervals say, the mean's standard error is multiplied by the Birge ratio, the root of
   chi-squared over its degrees of freedom (Birge 1932, Phys. Rev. 40, 207-227; as the Particle Data Group does).
2. Where causal methods give a value but none of that kind (a piece worth about nothing), that with the narrowest
   interval stands as it is.
3. Where there is none, the first method of `FALLBACKS` that has a value stands alone, as it is.

Where a method tells White's pieces from Black's and the causal ones do not, what they say of a piece holds for both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scipy.special import ndtri

from train.piece_values.estimates import CAUSAL, MethodValues, PieceEstimate
from train.ratings import CONFIDENCE, Interval

FALLBACKS = ("td", "outcome", "network")
UNIT = Interval(1.0, 1.0, 1.0)
QUANTILE = float(ndtri((1 + CONFIDENCE) / 2))


@dataclass(frozen=True)
class Recommendation:
    """The recommended value of a piece.

    Attributes:
        letter: the piece's.
        value: in pawns; None where no method has a value.
        methods: those that it rests on.
        why: the rule that gave it, in words.
        birge: by which disagreement widened the interval; 1 for not at all.
    """

    letter: str
    value: Interval | None
    methods: tuple[str, ...]
    why: str
    birge: float = 1.0


def recommend(results: Sequence[MethodValues]) -> dict[str, Recommendation]:
    """Return a recommendation for each piece that any method names, by letter, in the order that they name them."""
    found: dict[str, dict[str, PieceEstimate]] = {}
    for result in results:
        for piece in result.pieces:
            found.setdefault(piece.letter, {})[result.method] = piece
    causal = {
        letter: {method: piece for method, piece in by_method.items() if method in CAUSAL}
        for letter, by_method in found.items()
    }
    return {
        letter: _recommend(letter, {**causal.get(letter.upper(), {}), **by_method})
        for letter, by_method in found.items()
    }


def _recommend(letter: str, by_method: Mapping[str, PieceEstimate]) -> Recommendation:
    values = {method: piece.value for method, piece in by_method.items() if piece.value is not None}
    causal = {method: value for method, value in values.items() if method in CAUSAL}
    if values and all(value == UNIT for value in (causal or values).values()):
        return Recommendation(letter, UNIT, (), "the unit")
    usable = {method: value for method, value in causal.items() if value.low > 0 and math.isfinite(value.high)}
    if usable:
        return _combine(letter, usable, others=len(causal) - len(usable))
    if causal:
        method = min(causal, key=lambda name: causal[name].high - causal[name].low)
        return Recommendation(letter, causal[method], (method,), f"{method} alone: about nothing, or unbounded")
    for method in FALLBACKS:
        if method in values:
            return Recommendation(letter, values[method], (method,), f"{method} alone: no causal method has a value")
    reasons = [f"{method}: {piece.refusal}" for method, piece in by_method.items() if piece.refusal]
    return Recommendation(letter, None, (), "; ".join(reasons) or "no method has a value")


def _combine(letter: str, values: Mapping[str, Interval], *, others: int) -> Recommendation:
    """Return the mean of log values weighted by inverse variance, widened where they disagree.

    Args:
        letter: the piece's.
        values: of causal methods, with bounded intervals above 0.
        others: number of causal methods with other intervals.
    """
    logs = {method: math.log(value.estimate) for method, value in values.items()}
    errors = {method: math.log(value.high / value.low) / (2 * QUANTILE) for method, value in values.items()}
    weights = {method: error**-2 for method, error in errors.items()}
    total = sum(weights.values())
    mean = sum(weights[method] * logs[method] for method in logs) / total
    freedom = len(logs) - 1
    chi_squared = sum(weights[method] * (logs[method] - mean) ** 2 for method in logs)
    birge = max(1.0, math.sqrt(chi_squared / freedom)) if freedom else 1.0
    reach = QUANTILE * birge / math.sqrt(total)
    methods = tuple(values)
    why = f"{methods[0]} alone: the one causal method "
    why += "whose interval is bounded and above 0" if others else "with a value"
    if freedom:
        why = f"inverse-variance mean of {' and '.join(methods)}"
        why += f", widened {birge:.1f} times as they disagree" if birge > 1 else ""
    return Recommendation(
        letter, Interval(math.exp(mean), math.exp(mean - reach), math.exp(mean + reach)), methods, why, birge
    )
