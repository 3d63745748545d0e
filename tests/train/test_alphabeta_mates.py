"""The search finds short wins and avoids short losses in every game, whatever its pieces are thought to be worth.

Positions come from random and from capture-rich games, by a seed; none is left out. `mate_solver.py` says by
exhaustion what is in them: a mate in two is seen at depth 4, since a mate is seen by the list of moves after it.
"""

from __future__ import annotations

import pytest

from envs import CompiledGame, engine_for, list_variants, load_variant
from tests.train.alphabeta_positions import stand_in_weights
from tests.train.mate_solver import Rates, Sample, measure, sample_positions
from train.alphabeta import MATE, AlphaBeta

DEPTH = 4
SOME_GAMES = ("gardner", "kinglet", "king_of_the_hill", "separate_realms", "los_alamos")


def rates_of(name: str, **sampling: int) -> Rates:
    game = engine_for(load_variant(name))
    searchers = [AlphaBeta(game, stand_in_weights(game), table_bits=bits) for bits in (14, 0)]

    def choose(_game: CompiledGame, sample: Sample, _budget: int) -> int:
        tabled, plain = (searcher.search(sample.row, sample.history, depth=DEPTH).best for searcher in searchers)
        if plain.score >= MATE - DEPTH:
            assert tabled.score == plain.score
        return tabled.action

    rates = measure(game, sample_positions(name, **sampling), choose, deep=DEPTH)
    print(f"{name}: {rates}")
    return rates


def assert_all_is_found(rates: Rates) -> None:
    assert rates.wins_found == rates.wins
    assert rates.avoided == rates.avoidable
    assert rates.wins_in_two_found == rates.wins_in_two


def test_every_win_in_two_and_shorter_is_found_and_every_avoidable_loss_avoided() -> None:
    total = Rates()
    for name in SOME_GAMES:
        rates = rates_of(name, games=8, plies=120, every=9)
        assert_all_is_found(rates)
        total += rates
    assert min(total.wins, total.avoidable, total.wins_in_two) >= 10


@pytest.mark.slow
@pytest.mark.parametrize("name", list_variants())
def test_every_win_in_two_of_the_search_suite_is_found(name: str) -> None:
    assert_all_is_found(rates_of(name))
