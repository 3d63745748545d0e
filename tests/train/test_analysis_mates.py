"""Analysis finds short wins and avoids short losses in every built-in game, with a network that knows nothing.

Positions come from random and from capture-rich games, by a seed; none is left out. `mate_solver.py` says by
exhaustion what is in them.
"""

from __future__ import annotations

import pytest

from envs import engine_for, list_variants, load_variant
from models.evaluator import UniformEvaluator, make_evaluator
from models.network import GameSpec, NetworkConfig, untrained_network
from tests.train.mate_solver import Chooser, Rates, analysis_chooser, measure, sample_positions

DEEP = 4000
"""Simulations for a win in two moves; wins and losses in one have the number of legal moves + 1."""
ENOUGH_TO_JUDGE = 20
NETWORK_GAMES = ("asylum", "gardner", "king_of_the_hill", "breakthrough", "horde")


def rates_of(name: str, choose: Chooser, **sampling: int) -> Rates:
    samples = sample_positions(name, **sampling)
    rates = measure(engine_for(load_variant(name)), samples, choose, deep=DEEP)
    print(f"{name}: {rates}")
    return rates


def assert_short_play_is_right(rates: Rates) -> None:
    assert 0.4 * rates.positions <= rates.white_to_move <= 0.6 * rates.positions
    assert rates.wins_found == rates.wins
    assert rates.avoided == rates.avoidable
    if rates.wins_in_two >= ENOUGH_TO_JUDGE:
        assert rates.wins_in_two_found >= 0.95 * rates.wins_in_two


def test_every_win_and_avoidable_loss_in_one_and_95_percent_of_wins_in_two_are_found_in_every_game() -> None:
    total = Rates()
    for name in list_variants():
        rates = rates_of(name, analysis_chooser(UniformEvaluator()))
        assert_short_play_is_right(rates)
        total += rates
    assert total.wins >= 200
    assert total.avoidable >= 200
    assert total.wins_in_two >= 150
    assert_short_play_is_right(total)


def test_an_untrained_network_finds_them_too() -> None:
    total = Rates()
    for name in NETWORK_GAMES:
        spec = GameSpec.of(engine_for(load_variant(name)))
        network = untrained_network(spec, NetworkConfig(blocks=1, channels=8), seed=1)
        total += rates_of(name, analysis_chooser(make_evaluator(network, backend="torch")), games=8, plies=160)
    assert min(total.wins, total.avoidable, total.wins_in_two) >= ENOUGH_TO_JUDGE
    assert_short_play_is_right(total)


@pytest.mark.slow
@pytest.mark.parametrize("name", list_variants())
def test_many_more_positions_of_each_game_are_played_right(name: str) -> None:
    assert_short_play_is_right(rates_of(name, analysis_chooser(UniformEvaluator()), games=64, every=3, seed=12))
