"""What Fairy-Stockfish (pyffish) can hold of the main games, against the kernels, on random games.

It has no double captures, no fire-through, and riders of leaps (`DD`) only on paper. So these are our games
without them: asylum with plain rooks and jumps that overrun nothing (three-step pawns, two en passant squares and
the castling stay), the palace without overruns (holes and odd ranks stay), separate realms with single leaps in
place of riders (quiet and capturing moves apart, castling past quiet-only attacks), and gardner and chess as they
are. The games of the library are in `test_pyffish_library.py`.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyffish
import pytest

from envs import Position, load_variant, rules
from envs.variant import Variant
from tests.envs.fairy_stockfish import Difference, Oracle, play
from tests.envs.rules_position import RulesPosition

NUM_POSITIONS = 600
CONFIG = """
[oracle_asylum:chess]
maxFile = 10
maxRank = 10
customPiece1 = n:NKDA
customPiece2 = m:BC
knight = -
promotionPieceTypes = qrbnm
promotionRegionWhite = *10
promotionRegionBlack = *1
doubleStepRegionWhite = *2
doubleStepRegionBlack = *9
tripleStepRegionWhite = *2
tripleStepRegionBlack = *9
castlingKingFile = f
castlingKingsideFile = i
castlingQueensideFile = c
castlingRookKingsideFile = j
castlingRookQueensideFile = a
startFen = rnbmqkmbnr/pppppppppp/10/10/10/10/10/10/PPPPPPPPPP/RNBMQKMBNR w KQkq - 0 1

[oracle_palace:chess]
maxFile = 8
maxRank = 10
customPiece1 = g:FA
promotionPieceTypes = qrbng
promotionRegionWhite = *9
promotionRegionBlack = *2
doubleStepRegionWhite = *3
doubleStepRegionBlack = *8
castlingRank = 2
startFen = ***gg***/rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR/***GG*** w KQkq - 0 1

[oracle_realms:chess]
customPiece1 = r:mDcR
customPiece2 = b:mAcB
customPiece3 = g:CcN
customPiece4 = q:mDcRB
rook = -
bishop = -
knight = -
queen = -
castlingRookPieces = r
promotionPieceTypes = qrbg
startFen = rgbqkbgr/pppppppp/8/8/8/8/PPPPPPPP/RGBQKBGR w KQkq - 0 1
"""
OURS = {
    "oracle_asylum": (
        "extends: asylum\npieces: {n: {moves: NKDA, overruns: null}, r: {fires_through: null}}\noptions: null\n"
    ),
    "oracle_palace": "extends: palace_ninja_guards\npieces: {g: {moves: FA, overruns: null}}\n",
    "oracle_realms": "extends: separate_realms_2\npieces: {r: {moves: mDcR}, b: {moves: mAcB}, q: {moves: mDcRB}}\n",
    "gardner": "extends: gardner\n",
    "chess": "extends: chess\n",
}


@pytest.fixture(scope="module", autouse=True)
def _configured() -> None:
    pyffish.load_variant_config(CONFIG)


def load(game: str, folder: Path) -> Variant:
    file = folder / f"{game}.yaml"
    file.write_text(f"name: {game}\n{OURS[game]}")
    return load_variant(file)


def play_kernels(variant: Variant, num_positions: int, seed: int) -> Counter[str]:
    oracle = Oracle(variant.name)
    return play(variant, oracle, lambda fen: Position(variant, fen=fen), num_positions=num_positions, seed=seed)


@pytest.mark.parametrize("game", OURS)
def test_fairy_stockfish_agrees_on_what_it_can_hold(game: str, tmp_path: Path) -> None:
    seen = play_kernels(load(game, tmp_path), NUM_POSITIONS, seed=1)
    assert seen["promotions"] > 0
    assert game == "gardner" or (seen["castling"] > 0 and seen["en passant"] > 0)


@pytest.mark.slow
@pytest.mark.parametrize("game", OURS)
def test_fairy_stockfish_agrees_on_many_positions(game: str, tmp_path: Path) -> None:
    play_kernels(load(game, tmp_path), 20_000, seed=2)


@pytest.mark.parametrize("game", ["oracle_asylum", "oracle_palace"])
def test_fairy_stockfish_counts_the_same_at_depth_two(game: str, tmp_path: Path) -> None:
    variant = load(game, tmp_path)
    position = Position(variant)
    total = 0
    for move in position.legal_moves():
        position.push(move)
        total += len(position.legal_moves())
        position.pop()
    fen = pyffish.start_fen(game)
    assert total == sum(len(pyffish.legal_moves(game, fen, [move])) for move in pyffish.legal_moves(game, fen, []))


@pytest.mark.parametrize(
    ("game", "name", "fault", "what"),
    [
        ("oracle_asylum", "squares_passed", lambda variant, state, move: (), "legal moves"),
        ("oracle_realms", "_castling_is_safe", lambda variant, state, castling: True, "legal moves"),
        ("oracle_palace", "in_check", lambda variant, state: False, "check"),
    ],
)
def test_a_fault_in_the_rules_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, game: str, name: str, fault: object, what: str
) -> None:
    variant = load(game, tmp_path)
    monkeypatch.setattr(rules, name, fault)
    with pytest.raises(Difference, match=what):
        play(
            variant,
            Oracle(game),
            lambda fen: RulesPosition(variant, fen=fen),
            num_positions=10 * NUM_POSITIONS,
            seed=1,
        )
