"""A position and its colour-flip: mirrored moves and outcomes, equal actions and planes, in every game."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from envs import Position, VectorEnv, layout, rules
from envs.tables import is_colour_symmetric
from envs.variant import BLACK, Variant
from tests.envs.mirror import flip_fen, flip_move, flip_square
from tests.envs.random_games import all_settings, library_games, own_games, setting_name, starts
from tests.envs.rules_position import RulesPosition

SYMMETRIC_LIBRARY = [variant for variant in library_games() if is_colour_symmetric(variant)]
SETTINGS = [*all_settings(), *own_games(), *SYMMETRIC_LIBRARY]
NUM_PAIRS = 16
NUM_STEPS = 150
MAX_PLIES = 60
BY_NAME = {setting_name(variant): variant for variant in SETTINGS}


def without_move_number(fen: str) -> str:
    return fen.rsplit(" ", 1)[0]


class Pairs:
    """Games in the first half of the lanes, their colour-flips in the second, the same actions in both."""

    def __init__(self, variant: Variant) -> None:
        self.variant = variant
        self.rng = np.random.default_rng(5)
        self.starts = starts(variant, self.rng)
        self.env = VectorEnv(variant, 2 * NUM_PAIRS, max_plies=MAX_PLIES)
        for lane in range(NUM_PAIRS):
            self.begin(lane)

    def begin(self, lane: int) -> None:
        fen = next(self.starts)
        self.env.set_fen(lane, fen)
        self.env.set_fen(lane + NUM_PAIRS, flip_fen(self.variant, fen))

    def step(self) -> None:
        env = self.env
        actions = [int(self.rng.choice(row)) if (row := np.flatnonzero(mask)).size else -1
                   for mask in env.legal_action_mask[:NUM_PAIRS]]  # fmt: skip
        rewards, _, _ = env.step(np.array(actions * 2))
        assert_halves_equal("rewards", rewards)

    def compare(self) -> None:
        env = self.env
        assert_halves_equal("action mask", env.legal_action_mask)
        assert_halves_equal("check", env.in_check)
        assert_halves_equal("termination", env.terminations)
        assert_halves_equal("truncation", env.truncated)
        if env.game.num_planes == 2 * len(self.variant.piece_types) + 9:  # no colour plane
            assert_halves_equal("planes", env.observe())
        scores = np.where(np.isnan(env.white_score), 0.5, env.white_score)
        assert_halves_equal("score", np.concatenate([scores[:NUM_PAIRS], 1 - scores[NUM_PAIRS:]]))
        assert not np.any(env.keys[:NUM_PAIRS] == env.keys[NUM_PAIRS:])
        for lane in range(NUM_PAIRS):
            ours, mirrored = env.fen(lane), env.fen(lane + NUM_PAIRS)
            assert without_move_number(flip_fen(self.variant, ours)) == without_move_number(mirrored), "FEN"

    def run(self, num_steps: int) -> None:
        for _ in range(num_steps):
            self.compare()
            self.step()
            for lane in np.flatnonzero(self.env.over[:NUM_PAIRS]):
                self.compare()
                self.begin(int(lane))


def assert_halves_equal(what: str, rows: np.ndarray) -> None:
    assert np.array_equal(rows[:NUM_PAIRS], rows[NUM_PAIRS:]), what


@pytest.mark.parametrize("variant", SETTINGS, ids=setting_name)
def test_a_game_and_its_colour_flip_go_the_same_way(variant: Variant) -> None:
    Pairs(variant).run(NUM_STEPS)


@pytest.mark.parametrize("engine", [Position, RulesPosition])
@pytest.mark.parametrize("variant", SETTINGS, ids=setting_name)
def test_moves_and_victims_of_a_colour_flip_are_mirrored(
    variant: Variant, engine: type[Position | RulesPosition]
) -> None:
    compare_moves(variant, engine, 12)


def compare_moves(variant: Variant, engine: type[Position | RulesPosition], num_positions: int) -> None:
    fens = starts(variant, np.random.default_rng(6))
    for _ in range(num_positions):
        fen = next(fens)
        ours, mirrored = engine(variant, fen=fen), engine(variant, fen=flip_fen(variant, fen))
        flipped = sorted(flip_move(variant, move) for move in ours.legal_moves())
        assert flipped == mirrored.legal_moves()
        assert ours.in_check == mirrored.in_check
        for move in ours.legal_moves():
            victims = sorted(flip_square(variant, square) for square in ours.captures(move))
            assert victims == mirrored.captures(flip_move(variant, move))
            if isinstance(ours, Position) and isinstance(mirrored, Position):
                assert ours.move_to_action(move) == mirrored.move_to_action(flip_move(variant, move))


def test_a_table_that_treats_black_otherwise_is_noticed() -> None:
    pairs = Pairs(BY_NAME["chess"])
    game = pairs.env.game
    pairs.env.game = dataclasses.replace(game, tables=game.tables.copy())
    castling = game.variant.castlings[2]
    assert castling is not None
    pairs.env.game.tables[int(game.tables[layout.T_KEEP]) + castling.king_from] = 15
    pairs.env._bind()
    with pytest.raises(AssertionError, match=r"action mask|planes|FEN"):
        pairs.run(20 * NUM_STEPS)


def test_a_rule_that_treats_black_otherwise_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = rules.pawn_steps

    def short_steps_of_black(variant, pawns, state, square):  # type: ignore[no-untyped-def]
        steps = list(right(variant, pawns, state, square))
        return steps[:1] if state.to_play == BLACK else steps

    monkeypatch.setattr(rules, "pawn_steps", short_steps_of_black)
    with pytest.raises(AssertionError):
        compare_moves(BY_NAME["asylum"], RulesPosition, 12)
