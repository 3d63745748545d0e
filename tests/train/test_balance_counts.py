"""What is counted in one game for its balance, against python-chess and the specification."""

from __future__ import annotations

import chess
import numpy as np
import pytest

from envs import Position, VectorEnv, engine_for, legal_actions, load_variant
from envs.rules import legal_moves as specified_moves
from envs.rules_fen import parse_fen
from train.balance_counts import BalanceGame, Kinds, ReplayedGame, Tally, tally

OPEN_ENDING = "r3k2r/1P4P1/3n4/8/8/3N4/1p4p1/R3K2R w KQkq - 0 1"
"""Both sides may castle either way and promote."""
LONE_ROOKS = "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1"
NO_PAWNS = "rnbmqkmbnr/10/10/10/10/10/10/10/10/RNBMQKMBNR w - - 0 1"


def random_game(
    name: str, seed: int, fen: str | None = None, most: int = 60, begin: tuple[str, ...] = ()
) -> BalanceGame:
    """Play some moves, then uniformly random ones."""
    rng, game = np.random.default_rng(seed), engine_for(load_variant(name))
    env = VectorEnv(game.variant, 1, max_plies=most)
    env.set_fen(0, fen or game.variant.start_fen)
    start, actions = env.fen(0), []
    for move in begin:
        actions.append(env.move_to_action(0, move))
        env.step(actions[-1:])
    while not env.over[0]:
        legal, counts = legal_actions(game, env.states)
        actions.append(int(legal[0, rng.integers(counts[0])]))
        env.step([actions[-1]])
    score = np.nan if env.truncated[0] else float(env.white_score[0])
    return BalanceGame(start, 2, np.array(actions, np.int32), score, "checkmate")


def counted(name: str, game: BalanceGame) -> Tally:
    variant = load_variant(name)
    return tally(ReplayedGame.of(variant, game), Kinds.of(variant))


def moves_of(name: str, game: BalanceGame) -> list[tuple[Position, str]]:
    """Return the positions of a game, each with the move that was played in it."""
    position, found = Position(load_variant(name), game.start_fen), []
    for action in game.actions:
        move = next(text for text in position.legal_moves() if position.move_to_action(text) == action)
        found.append((position.copy(), move))
        position.push(move)
    return found


CHESS_GAMES = [
    (None, ()),
    (None, ("e2e4", "a7a6", "e4e5", "d7d5", "e5d6")),
    (OPEN_ENDING, ("b7a8n", "b2a1r")),
    (LONE_ROOKS, ("e1g1", "e8c8")),
    (LONE_ROOKS, ("e1g1", "e8e7")),
]


@pytest.mark.parametrize(("fen", "begin"), CHESS_GAMES)
def test_captures_castlings_promotions_and_fates_in_chess_are_those_that_python_chess_counts(
    fen: str | None, begin: tuple[str, ...]
) -> None:
    game = random_game("chess", 0, fen, begin=begin)
    found, board = counted("chess", game), chess.Board(game.start_fen)
    started = {
        letter: sum(piece.symbol().upper() == letter for piece in board.piece_map().values()) for letter in "PNBRQ"
    }
    legal, captured, castled, promoted, moved = 0, [], set(), [], []
    first = 0.0
    for ply, (_, text) in enumerate(moves_of("chess", game)):
        move = chess.Move.from_uci(text)
        legal += board.legal_moves.count()
        moved.append(board.piece_at(move.from_square))
        if board.is_capture(move):
            first = first or ply + game.opening_plies + 1
            captured.append("P" if board.is_en_passant(move) else board.piece_at(move.to_square).symbol().upper())
        if board.is_castling(move):
            castled.add((board.turn, board.is_kingside_castling(move)))
        if move.promotion:
            promoted.append(chess.piece_symbol(move.promotion).upper())
        board.push(move)
    plies = len(game.actions)
    assert found["branching"] == (legal, plies)
    assert found["captures"] == (len(captured), 1)
    assert found["capturing_moves"] == (len(captured), plies)
    assert found["double_captures"] == found["own_captures"] == (0, 1)
    assert found.get("first_capture", (0, 0))[0] == first
    assert found["castled"] == (len({turn for turn, _ in castled}), 2)
    assert found["castled/white"] == (any(turn for turn, _ in castled), 1)
    assert found["castled/kingside"] == (sum(is_short for _, is_short in castled), 2)
    assert found["castled/queenside"] == (sum(not is_short for _, is_short in castled), 2)
    assert found["promotions"] == (len(promoted), 1)
    assert found["plies"] == (plies + game.opening_plies, 1)
    for letter, count in started.items():
        lived = count + promoted.count(letter)
        left = sum(piece.symbol().upper() == letter for piece in board.piece_map().values())
        assert found[f"captured/{letter}"] == (captured.count(letter), lived)
        assert found[f"alive/{letter}"] == (left, lived)
        assert found[f"moves/{letter}"] == (sum(piece.symbol().upper() == letter for piece in moved), plies)
        if letter != "P":
            assert found[f"promotions_to/{letter}"] == (promoted.count(letter), 1)
    assert found["promoted/P"] == (len(promoted), started["P"])


def test_double_captures_in_asylum_are_those_of_the_specification() -> None:
    game = random_game("asylum", 0, NO_PAWNS, most=40)
    found = counted("asylum", game)
    double, captured = 0, 0
    for position, text in moves_of("asylum", game):
        names = position.variant.board.names
        of_text = {
            f"{names[move.from_square]}{names[move.to_square]}{move.promotion.lower()}": move.victims
            for move in specified_moves(position.variant, parse_fen(position.variant, position.fen()))
        }
        assert sorted(names[square] for square in of_text[text]) == position.captures(text)
        captured += len(of_text[text])
        double += len(of_text[text]) == 2
    assert double > 0
    assert found["double_captures"] == (double, 1)
    assert found["captures"] == (captured, 1)
    assert found["games_with_double_capture"] == (double > 0, 1)


def test_a_rook_that_fires_through_its_own_side_captures_own_pieces() -> None:
    variant = load_variant("asylum", {"friendly_fire": True})
    fen = "5k4/10/10/10/10/10/10/R1P1p5/10/5K4 w - - 0 1"
    position = Position(variant, fen)
    text = next(move for move in position.legal_moves() if len(position.captures(move)) == 2)
    game = BalanceGame(fen, 0, np.array([position.move_to_action(text)], np.int32), np.nan, "ply_cap")
    found = tally(ReplayedGame.of(variant, game), Kinds.of(variant))
    assert found["own_captures"] == (1, 1)
    assert found["double_captures"] == (1, 1)
    assert found["captures_made/R"] == (2, 2)


def test_a_game_cut_short_has_no_result_but_all_else() -> None:
    found = counted("chess", random_game("chess", 0, most=4))
    assert found["white_score"] == found["draws"] == found["decisive"] == (0, 0)
    assert found["plies"] == (6, 1)


def test_kinds_are_told_apart_by_side_where_armies_differ() -> None:
    chigorin = Kinds.of(load_variant("chigorin"))
    assert {chigorin.letters[kind] for kind in chigorin.possible} == set("KRNCPkqrbp")
    assert set(Kinds.of(load_variant("chess")).letters) == set("KQRBNP")
