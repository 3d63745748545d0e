"""The witness of the search tests: its values against known endings, the slow rules, their own proof and symmetry."""

from dataclasses import replace

import numpy as np
import pytest

from envs import engine_for, load_variant, rules
from envs.rows import format_fen, observe, to_play
from envs.rules_fen import parse_fen
from envs.variant import Variant
from tests.train.exact_solver import faults, placements, solved_ending, solved_quarrel

SOLUTIONS = {"KRk": lambda: solved_ending("gardner", "KRk"), "quarrel": solved_quarrel}


def test_two_kings_stand_apart_on_the_small_board_in_456_ways_for_each_side_to_move():
    game = engine_for(load_variant("gardner"))
    rows = placements(game, "Kk")
    assert len(np.unique(rows[:, 0])) == len(rows)
    assert np.bincount(to_play(game, rows)).tolist() == [456, 456]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pieces", "moves"),
    [
        ("KQk", 10),
        ("KRk", 16),
        ("KPk", 28),
    ],
)
def test_the_longest_mates_on_the_orthodox_board_take_the_known_number_of_moves(pieces, moves):
    solution = solved_ending("chess", pieces)
    white = solution.sides() == 0
    assert solution.plies[white & (solution.result == 1)].max() == 2 * moves - 1
    assert not (white & (solution.result == -1)).any()


@pytest.mark.parametrize("pieces", ["KQk", "KRk"])
def test_a_queen_or_rook_wins_on_the_small_board_unless_it_is_taken_or_stalemates(pieces):
    solution = solved_ending("gardner", pieces)
    is_open = np.diff(solution.first_edge) > 0
    white = solution.sides() == 0
    assert (solution.result[white & is_open] == 1).all()
    at_once = (solution.result == 0) & ~is_open
    drawn = np.flatnonzero((solution.result == 0) & is_open)
    assert len(drawn)
    assert all(at_once[solution.child[solution.edges(position)]].any() for position in drawn)


@pytest.mark.parametrize("name", SOLUTIONS)
def test_every_value_follows_from_those_after_it_and_a_planted_fault_does_not(name):
    solution = SOLUTIONS[name]()
    assert not len(faults(solution))
    rng = np.random.default_rng(0)
    for position in rng.choice(np.flatnonzero(np.diff(solution.first_edge) > 0), 20):
        result, plies = solution.result.copy(), solution.plies.copy()
        result[position] = rng.choice([value for value in (-1, 0, 1) if value != result[position]])
        assert position in faults(replace(solution, result=result))
        plies[position] += 2
        assert position in faults(replace(solution, plies=plies))


def outcome_within(variant: Variant, state: rules.State, plies: int) -> int:
    """Return what the slow rules and plain minimax say for the player to move: 1, -1, or 0 if nothing is forced yet."""
    ended = rules.outcome(variant, state)
    if ended is not None:
        return 0 if ended.winner is None else 1 if ended.winner == "wb"[state.to_play] else -1
    if plies == 0:
        return 0
    best = -1
    for move in rules.legal_moves(variant, state):
        best = max(best, -outcome_within(variant, rules.make(variant, state, move), plies - 1))
        if best == 1:
            break
    return best


@pytest.mark.parametrize("name", SOLUTIONS)
def test_minimax_on_the_slow_rules_finds_the_same_short_wins_and_losses(name):
    solution = SOLUTIONS[name]()
    game, rng = solution.game, np.random.default_rng(1)
    deep = np.flatnonzero((solution.plies > 3) | (solution.plies < 0))
    chosen = [rng.choice(np.flatnonzero(solution.plies == plies), 5) for plies in range(4)] + [rng.choice(deep, 5)]
    for position in np.concatenate(chosen).tolist():
        state = parse_fen(game.variant, format_fen(game, solution.rows[position]))
        expected = solution.result[position] if 0 <= solution.plies[position] <= 3 else 0
        assert outcome_within(game.variant, state, 3) == expected


def test_a_position_and_its_colour_flip_have_one_value():
    solution = solved_quarrel()
    planes = observe(solution.game, solution.rows)[:, : 2 * len(solution.game.variant.piece_types)]
    flat = np.packbits(planes.reshape(len(planes), -1) > 0, axis=1)
    _, group, sizes = np.unique(flat, axis=0, return_inverse=True, return_counts=True)
    assert (sizes == 2).sum() > 10_000
    for values in (solution.result, solution.plies):
        lowest, highest = np.full(len(sizes), 99), np.full(len(sizes), -99)
        np.minimum.at(lowest, group, values)
        np.maximum.at(highest, group, values)
        assert (lowest == highest).all()
