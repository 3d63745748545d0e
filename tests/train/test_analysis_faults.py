"""Analysis whose evaluator fails or answers nonsense: nothing is lost, and nothing wrong is believed."""

import numpy as np
import pytest

from envs import VectorEnv
from models.evaluator import UniformEvaluator
from tests.envs.mirror import flip_fen
from tests.train.search_positions import MAIN_GAMES, TableEvaluator, random_positions
from train.analysis import Analysis, AnalysisSettings

ONE_MOVE = "k7/8/8/8/8/8/5r2/7K w - - 0 1"
START = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"


def analysed(evaluator, fen, *, runs, batch_size, variant="chess"):
    env = VectorEnv(variant, 1)
    env.set_fen(0, fen)
    analysis = Analysis(env.game, evaluator, AnalysisSettings(batch_size=batch_size))
    analysis.begin(env.states[0], env.histories[0])
    while analysis.simulations < runs and (analysis.simulations == 0 or not analysis.result().result):
        try:
            analysis.run(runs - analysis.simulations)
        except KeyboardInterrupt:
            continue
    return analysis.result()


@pytest.mark.parametrize("fen", [ONE_MOVE, START])
@pytest.mark.parametrize("batch_size", [1, 16])
def test_an_analysis_that_was_interrupted_goes_on_as_if_it_had_not_been(fen, batch_size):
    table, calls = TableEvaluator(), []

    def interrupted(observations, legal_actions):
        calls.append(1)
        if len(calls) % 3 == 2:
            raise KeyboardInterrupt
        return table(observations, legal_actions)

    expected = analysed(TableEvaluator(), fen, runs=200, batch_size=batch_size)
    assert analysed(interrupted, fen, runs=200, batch_size=batch_size) == expected
    assert all(line.visit_count for line in expected.lines)


def test_values_that_are_not_finite_are_refused():
    def broken(observations, legal_actions):
        logits, wdl = TableEvaluator()(observations, legal_actions)
        return logits, wdl * np.nan

    with pytest.raises(FloatingPointError, match="expected finite values and logits"):
        analysed(broken, START, runs=10, batch_size=4)


@pytest.mark.parametrize("name", MAIN_GAMES)
def test_colour_flips_are_analysed_alike_by_a_network_that_knows_nothing(name):
    env = random_positions(name, 3, 40, seed=4)
    for lane in range(3):
        fens = env.fen(lane), flip_fen(env.variant, env.fen(lane))
        one, other = (analysed(UniformEvaluator(), fen, runs=200, batch_size=8, variant=name) for fen in fens)
        assert [(line.action, line.visit_count) for line in one.lines] == [
            (line.action, line.visit_count) for line in other.lines
        ]
        assert (one.value, one.result) == (other.value, other.result)
