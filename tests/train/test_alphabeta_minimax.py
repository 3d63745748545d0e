"""Without its table the search finds what unpruned minimax finds with the same quiescence, in every game."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from envs import engine_for, list_variants, load_variant
from envs.reference import MAIN_GAMES
from envs.variant import Variant
from tests.envs.random_games import all_settings, own_games, setting_name
from tests.train.alphabeta_minimax import minimax_scores
from tests.train.alphabeta_positions import late_positions, repetitive_positions, some_positions, stand_in_weights
from tests.train.mate_solver import Sample
from train.alphabeta import DECISIVE, AlphaBeta, evaluate

TEMPO = 37
NUM_POSITIONS = 200


def assert_search_is_minimax(
    variant: str | Variant, positions: Iterable[Sample], depth: int, *, num_lines: int = 1
) -> None:
    """Compare scores, moves and leaves of the search with minimax; with a table, what is decided stays decided."""
    game = engine_for(load_variant(variant) if isinstance(variant, str) else variant)
    weights = stand_in_weights(game)
    plain, tabled = (AlphaBeta(game, weights, tempo=TEMPO, table_bits=bits) for bits in (0, 12))
    for position in positions:
        result = plain.search(position.row, position.history, depth=depth, num_lines=num_lines)
        actions, scores, _ = minimax_scores(
            game, weights, position.row, position.history, depth=result.depth, tempo=TEMPO
        )
        by_action = dict(zip(actions.tolist(), scores.tolist(), strict=True))
        assert [line.score for line in result.lines] == sorted(scores.tolist(), reverse=True)[:num_lines]
        assert all(by_action[line.action] == line.score for line in result.lines)
        with_table = tabled.search(position.row, position.history, depth=depth)
        for line in (*result.lines, with_table.best):
            if line.leaf is not None:
                leaf = int(evaluate(game, weights, line.leaf[np.newaxis], tempo=TEMPO)[0])
                assert line.score == (leaf if len(line.moves) % 2 == 0 else -leaf)
        if abs(result.best.score) > DECISIVE:
            assert with_table.best.score == result.best.score
            assert by_action[with_table.best.action] == result.best.score


def scores_at_once(name: str, position: Sample, history: np.ndarray) -> list[int]:
    """Return the scores of a position's moves one ply deep."""
    game = engine_for(load_variant(name))
    return minimax_scores(game, stand_in_weights(game), position.row, history, depth=1)[1].tolist()


@pytest.mark.parametrize("name", list_variants())
def test_two_plies_are_minimax_in_every_game(name: str) -> None:
    assert_search_is_minimax(name, some_positions(name, 2), 2)


@pytest.mark.parametrize("variant", [*all_settings(), *own_games()], ids=setting_name)
def test_options_large_boards_and_boards_with_holes_are_minimax(variant: Variant) -> None:
    assert_search_is_minimax(variant, some_positions(variant, 3), 1 if variant.num_squares > 90 else 2)


@pytest.mark.parametrize("name", ["gardner", "extinction", "los_alamos"])
def test_three_plies_are_minimax(name: str) -> None:
    assert_search_is_minimax(name, some_positions(name, 3), 3)


@pytest.mark.parametrize("name", ["gardner", "separate_realms"])
def test_three_plies_are_minimax_where_moves_repeat_the_position(name: str) -> None:
    positions = list(repetitive_positions(name, 4))
    changed = [scores_at_once(name, p, p.history) != scores_at_once(name, p, p.history[:0]) for p in positions]
    assert any(changed)
    assert_search_is_minimax(name, positions, 3)


@pytest.mark.parametrize("name", ["gardner", "stalemate_wins"])
def test_three_plies_are_minimax_where_the_clock_runs_out(name: str) -> None:
    positions = list(late_positions(name, 8))
    assert any(0 in scores_at_once(name, position, position.history) for position in positions)
    assert_search_is_minimax(name, positions, 3)


@pytest.mark.parametrize("name", ["gardner", "breakthrough", "palace_ninja_guards"])
def test_several_lines_are_the_best_moves_of_minimax_in_their_order(name: str) -> None:
    assert_search_is_minimax(name, some_positions(name, 4), 2, num_lines=4)


@pytest.mark.slow
@pytest.mark.parametrize("name", MAIN_GAMES)
def test_three_plies_are_minimax_in_200_positions_of_each_main_game(name: str) -> None:
    positions = some_positions(name, NUM_POSITIONS)
    assert len(positions) == NUM_POSITIONS
    assert_search_is_minimax(name, positions, 3)


@pytest.mark.parametrize("name", ["chess", "asylum", "palace_ninja_guards"])
def test_the_table_saves_positions_and_changes_no_score(name: str) -> None:
    game = engine_for(load_variant(name))
    positions = some_positions(name, 10)
    searchers = [AlphaBeta(game, stand_in_weights(game), table_bits=bits) for bits in (0, 16)]
    found = [[searcher.search(p.row, p.history, depth=4) for p in positions] for searcher in searchers]
    without, with_table = ([result.best.score for result in results] for results in found)
    assert with_table == without
    entered = [sum(result.nodes for result in results) for results in found]
    assert entered[1] < 0.95 * entered[0]
