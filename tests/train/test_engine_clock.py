"""The time for a move: never all that is left, and no game is lost on time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from train.engine_clock import SHORTEST_S, Clock, time_for_move, time_per_move

MARGIN = 0.1


@pytest.mark.parametrize(
    "base, increment, moves", [(60, 0, None), (1, 0.1, None), (300, 0, 40), (10, 1, 10), (2, 0, 1)]
)
def test_no_game_is_lost_on_time_by_a_player_who_uses_all_that_he_is_given(base, increment, moves):
    left, to_go = float(base), moves
    for _ in range(400):
        left -= time_for_move(Clock(left, increment, to_go), MARGIN) + 0.9 * MARGIN
        assert left > 0 or (not increment and not moves), (
            left
        )  # without more time to come every clock runs out in the end
        if left <= MARGIN:
            return
        left += increment
        if to_go is not None:
            to_go = to_go - 1 or moves
            left += base if to_go == moves else 0


@given(st.floats(-10, 1e6), st.floats(0, 100), st.none() | st.integers(1, 1000), st.floats(0, 10))
def test_a_move_leaves_the_margin_where_there_is_as_much(left, increment, moves, margin):
    thinks = time_for_move(Clock(left, increment, moves), margin)
    assert thinks >= SHORTEST_S
    assert thinks == SHORTEST_S or thinks <= 0.8 * (left - margin)


def test_more_time_is_never_used_for_less():
    times = [time_for_move(Clock(left)) for left in (0.05, 0.2, 1, 5, 60, 600)]
    assert times == sorted(times)
    assert time_for_move(Clock(60, 2)) > time_for_move(Clock(60))
    assert time_for_move(Clock(60, moves_to_go=5)) > time_for_move(Clock(60, moves_to_go=20)) > time_for_move(Clock(60))


@pytest.mark.parametrize("seconds, thinks", [(10, 9.9), (1, 0.9), (0.1, 0.05), (0, SHORTEST_S), (-5, SHORTEST_S)])
def test_a_time_for_every_move_is_kept_less_the_margin(seconds, thinks):
    assert time_per_move(seconds, MARGIN) == pytest.approx(thinks)
