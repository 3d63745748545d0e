"""Print how many short wins and losses each setting of the searches finds: python -m tests.train.mate_rates

Positions of every built-in game as in `test_analysis_mates.py`; the searches have a network that knows nothing.
"""

from __future__ import annotations

from envs import engine_for, list_variants, load_variant
from models.evaluator import UniformEvaluator
from tests.train.mate_solver import Chooser, Rates, analysis_chooser, measure, sample_positions, selfplay_chooser

BUDGETS = (4000, 1000, 500, 250)


def total_rates(choose: Chooser, deep: int) -> Rates:
    """Return the rates of a chooser over all games; `deep` is the budget for wins in two."""
    total = Rates()
    for name in list_variants():
        total += measure(engine_for(load_variant(name)), sample_positions(name), choose, deep=deep)
    return total


def main() -> None:
    """Measure analysis by its budget for wins in two, and search as in self-play."""
    for deep in BUDGETS:
        rates = total_rates(analysis_chooser(UniformEvaluator()), deep)
        print(f"analysis, {deep} simulations for wins in 2: {rates}", flush=True)
    rates = total_rates(selfplay_chooser(UniformEvaluator()), BUDGETS[0])
    print(f"as in self-play, 16 simulations: {rates}", flush=True)


if __name__ == "__main__":
    main()
