"""The slow rules by themselves: what must hold in every position, whatever the game."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from envs import Outcome, Termination, load_variant, paths, rules, rules_fen
from envs.rules import Kind, Move, State
from envs.variant import Variant
from tests.envs.random_games import Temper, all_settings, own_games, pick_move, setting_name, starts

SETTINGS = [*all_settings(), *own_games()]
BY_NAME = {setting_name(variant): variant for variant in SETTINGS}
NUM_GAMES, MAX_PLIES = 8, 15


class Broken(AssertionError):
    """Something that must always hold does not."""


def positions(variant: Variant, num_games: int = NUM_GAMES) -> Iterator[tuple[State, Move, State]]:
    """Yield a position, a legal move and the position after it, over some random games."""
    rng = np.random.default_rng(9)
    fens = starts(variant, rng)
    for _ in range(num_games):
        state, temper = rules_fen.parse_fen(variant, next(fens)), Temper.draw(rng)
        for _ in range(MAX_PLIES):
            moves = rules.legal_moves(variant, state)
            if not moves:
                break
            move = pick_move(variant, rng, temper, state=state, moves=moves, last=None)
            after = rules.make(variant, state, move)
            yield state, move, after
            state = after


def literally_attacked(variant: Variant, board: list[str], square: int, by_side: int) -> bool:
    """Ask each pseudo-legal move of a side, on a board with its enemy's royal, or first piece, on the square."""
    royal = paths.royal_letter(variant, 1 - by_side)
    placed = ["" if piece == royal else piece for piece in board]
    placed[square] = royal or paths.letter_of(variant, 0, 1 - by_side)
    state = State(tuple(placed), by_side, (False,) * 4)
    return any(square in move.victims for move in rules.pseudo_legal_moves(variant, state))


def check_move(variant: Variant, state: State, move: Move, after: State) -> None:
    """Raise `Broken` where a legal move breaks what every move keeps."""

    def expect(what: str, holds: bool) -> None:
        if not holds:
            raise Broken(f"{what}: {rules_fen.move_name(variant, move)} in {rules_fen.fen(variant, state)}")

    mover, other = state.to_play, 1 - state.to_play
    hit = [state.board[square] for square in move.victims]
    hits_own = any(piece.fires_through_own or piece.captures_own for piece in variant.piece_types)
    king = rules.king_square(variant, after.board, mover)
    expect("a king is captured", not {paths.royal_letter(variant, side) for side in (mover, other)} & {*hit})
    expect("an own piece is captured", hits_own or all(paths.side_of(piece) == other for piece in hit))
    expect("the king can be captured", king is None or not literally_attacked(variant, list(after.board), king, other))
    expect("pieces are lost or gained", sum(map(bool, state.board)) - len(hit) == sum(map(bool, after.board)))
    expect("a right comes back", all(before or not now for before, now in zip(state.rights, after.rights)))
    expect("the side does not change", after.to_play == other)
    expect("victims stand twice", len(set(move.victims)) == len(move.victims))
    expect("three are captured", len(move.victims) <= 2)
    expect("an empty square is captured", all(hit))
    pawn_moves = rules.is_pawn(variant, state.board[move.from_square])
    expected_clock = 0 if hit or pawn_moves else min(state.halfmove_clock + 1, variant.clock_limit)
    expect("the clock is wrong", after.halfmove_clock == expected_clock)
    expect("the target does not hold the mover", paths.side_of(after.board[move.to_square]) == mover)
    expect("castling captures", move.kind is not Kind.CASTLING or not hit)
    expect("squares are passed without a pawn", (after.victim is None) == (not after.passed))
    for castling, right in zip(variant.castlings, after.rights):
        if right and castling is not None:
            expect("a right without its king or rook", bool(after.board[castling.king_from])
                   and bool(after.board[castling.partner_from]))  # fmt: skip


def check_game(variant: Variant, num_games: int = NUM_GAMES) -> None:
    for state, move, after in positions(variant, num_games):
        check_move(variant, state, move, after)
        moves = rules.legal_moves(variant, state)
        triples = {(move.from_square, move.to_square, move.promotion) for move in moves}
        if len(triples) != len(moves):
            raise Broken(f"from, to and promotion do not fix a move in {rules_fen.fen(variant, state)}")


@pytest.mark.parametrize("variant", SETTINGS, ids=setting_name)
def test_every_legal_move_keeps_what_moves_keep(variant: Variant) -> None:
    check_game(variant)


@pytest.mark.parametrize("variant", SETTINGS, ids=setting_name)
def test_a_square_is_attacked_when_some_pseudo_legal_move_would_capture_there(variant: Variant) -> None:
    compare_attacks(variant)


def compare_attacks(variant: Variant) -> None:
    rng = np.random.default_rng(10)
    for state, _, _ in positions(variant, 4):
        royals = [rules.king_square(variant, state.board, side) for side in (0, 1)]
        kings = [royal for royal in royals if royal is not None]
        for square in [*kings, *rng.choice(variant.num_squares, 6).tolist()]:
            for side in (0, 1):
                if square == royals[side]:
                    continue
                royal = paths.royal_letter(variant, 1 - side)
                kingless = ["" if piece == royal else piece for piece in state.board]
                ours = rules.attacked(variant, kingless, square, side)
                assert ours == literally_attacked(variant, kingless, square, side), variant.board.names[square]


right_make = rules.make


@pytest.mark.parametrize(
    ("setting", "name", "fault", "what"),
    [
        ("chess", "leaves_king_safe", lambda variant, state, move: True, "the king can be captured"),
        (
            "palace_ninja_guards",
            "_overrun",
            lambda variant, board, piece, path: [(path.landings[0], ())],
            "pieces are lost",
        ),
        (
            "asylum",
            "make",
            lambda variant, state, move: dataclasses.replace(right_make(variant, state, move), rights=state.rights),
            "a right without",
        ),
    ],
)
def test_a_broken_rule_is_noticed(
    monkeypatch: pytest.MonkeyPatch, *, setting: str, name: str, fault: object, what: str
) -> None:
    monkeypatch.setattr(rules, name, fault)
    with pytest.raises(Broken, match=what):
        check_game(BY_NAME[setting], 20 * NUM_GAMES)


def test_a_path_that_is_missing_among_the_approaches_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = paths.approaches
    monkeypatch.setattr(rules, "approaches", lambda variant, side, square: right(variant, side, square)[::2])
    with pytest.raises(AssertionError):
        compare_attacks(BY_NAME["asylum"])


def test_positions_and_moves_cannot_be_changed() -> None:
    chess = load_variant("chess")
    state = rules_fen.parse_fen(chess, chess.start_fen)
    before = dataclasses.astuple(state)
    for move in rules.legal_moves(chess, state):
        rules.make(chess, state, move)
    assert dataclasses.astuple(state) == before
    with pytest.raises(dataclasses.FrozenInstanceError):
        state.to_play = 1  # type: ignore[misc]


def test_an_outcome_needs_the_identities_of_earlier_positions_for_a_repetition() -> None:
    chess = load_variant("chess")
    state = rules_fen.parse_fen(chess, chess.start_fen)
    here = rules.identity(chess, state)
    assert rules.outcome(chess, state) is None
    assert rules.outcome(chess, state, [here]) is None
    assert rules.outcome(chess, state, [here, here]) == Outcome(Termination.REPETITION, None)


def test_the_move_number_stays_at_the_highest_that_a_fen_can_say() -> None:
    chess = load_variant("chess")
    state = rules_fen.parse_fen(chess, "4k3/8/8/8/8/8/4P3/4K3 b - - 0 9999")
    after = rules.make(chess, state, rules.legal_moves(chess, state)[0])
    assert rules_fen.fen(chess, after).endswith(" 1 9999")


def test_a_game_without_pawns_and_castling_is_played(tmp_path: Path) -> None:
    file = tmp_path / "bare.yaml"
    file.write_text(
        "name: Bare\nboard: {files: 4, ranks: 4}\nstart: rk2/4/4/2KR w - - 0 1\nroyal: k\n"
        "pieces: {k: {name: king, moves: K}, r: {name: rook, moves: R}}\n"
    )
    bare = load_variant(file)
    state = rules_fen.parse_fen(bare, bare.start_fen)
    names = {rules_fen.move_name(bare, move) for move in rules.legal_moves(bare, state)}
    assert names == {"c1b1", "c1b2", "c1c2", "c1d2", "d1d2", "d1d3", "d1d4"}
