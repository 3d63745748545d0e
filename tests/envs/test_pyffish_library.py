"""The games of the library against Fairy-Stockfish (pyffish) on random games, ply by ply.

Where it has a game by itself with our rules, that one is asked; else `variants/library.ini` says our rules in its
words. It cannot hold `omega` (twelve ranks) and `self_capture`; the latter is in `test_self_capture.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyffish
import pytest

from envs import Position, list_variants, load_variant, rules
from envs.perft import perft
from envs.reference import MAIN_GAMES
from envs.rows import engine_for
from envs.variant import Variant
from tests.envs.fairy_stockfish import AnyPosition, Difference, Oracle, play
from tests.envs.rules_position import RulesPosition

CONFIG = Path(__file__).parent / "variants" / "library.ini"
SINGLE_LEAPS = """
extends: separate_realms
pieces: {q: {moves: mDmAcQ}, r: {moves: mDcR}, b: {moves: mAcB}}
"""
ORACLES = {
    "almost": Oracle("almost"),
    "berolina": Oracle("berolina"),
    "breakthrough": Oracle("breakthrough_uncounted", counts_plies=False, has_rights=False),
    "capablanca": Oracle("capablanca"),
    "chigorin": Oracle("chigorin_sides"),
    "courier": Oracle("courier_draws"),
    "extinction": Oracle("extinction"),
    "fides_vs_clobberers": Oracle("fides_vs_clobberers", rights="KQk"),
    "fides_vs_nutty_knights": Oracle("fides_vs_nutty_knights"),
    "fides_vs_rookies": Oracle("fides_vs_rookies"),
    "gothic": Oracle("gothic"),
    "grand": Oracle("grand_all"),
    "horde": Oracle("horde_steps", without="K"),
    "janus": Oracle("janus"),
    "king_of_the_hill": Oracle("kingofthehill"),
    "kinglet": Oracle("kinglet_draws"),
    "knightmate": Oracle("knightmate"),
    "leaping_bishops": Oracle("leaping_bishops"),
    "los_alamos": Oracle("losalamos"),
    "maharajah": Oracle("maharajah", without="Km"),
    "makruk": Oracle("makruk_uncounted"),
    "no_castling": Oracle("nocastle"),
    "orda": Oracle("orda"),
    "oracle_separate_realms": Oracle("oracle_separate_realms"),
    "pawn_one_square": Oracle("pawn_one_square"),
    "semi_torpedo": Oracle("semi_torpedo"),
    "sideways_pawns": Oracle("sideways_pawns", counts_plies=False),
    "stalemate_wins": Oracle("stalemate_wins"),
    "torpedo": Oracle("torpedo"),
    "wildebeest": Oracle("wildebeest"),
}
WITHOUT_ORACLE = {"omega", "self_capture", "separate_realms"}
NUM_POSITIONS = 200
NUM_POSITIONS_WHEN_SLOW = 10_000
PERFT_DEPTH = 2


@pytest.fixture(scope="module", autouse=True)
def _configured() -> None:
    pyffish.load_variant_config(CONFIG.read_text())


def load(game: str, folder: Path) -> Variant:
    if game in list_variants():
        return load_variant(game)
    file = folder / f"{game}.yaml"
    file.write_text(SINGLE_LEAPS)
    return load_variant(file)


def play_game(
    variant: Variant, make_position: Callable[..., AnyPosition], num_positions: int, seed: int
) -> Counter[str]:
    return play(
        variant,
        ORACLES[variant.name],
        lambda fen: make_position(variant, fen=fen),
        num_positions=num_positions,
        seed=seed,
    )


def test_every_game_of_the_library_has_an_oracle_or_is_known_to_have_none() -> None:
    library = set(list_variants()) - set(MAIN_GAMES)
    assert library == {game for game in ORACLES if not game.startswith("oracle_")} | WITHOUT_ORACLE


@pytest.mark.parametrize("game", ORACLES)
def test_fairy_stockfish_agrees_with_the_kernels(game: str, tmp_path: Path) -> None:
    play_game(load(game, tmp_path), Position, NUM_POSITIONS, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("game", ORACLES)
def test_fairy_stockfish_agrees_with_the_kernels_on_many_positions(game: str, tmp_path: Path) -> None:
    seen = play_game(load(game, tmp_path), Position, NUM_POSITIONS_WHEN_SLOW, seed=2)
    assert seen["positions"] >= NUM_POSITIONS_WHEN_SLOW


@pytest.mark.slow
@pytest.mark.parametrize("game", ORACLES)
def test_fairy_stockfish_agrees_with_the_rules(game: str, tmp_path: Path) -> None:
    play_game(load(game, tmp_path), RulesPosition, 10 * NUM_POSITIONS, seed=3)


@pytest.mark.parametrize("game", ORACLES)
def test_fairy_stockfish_starts_from_the_same_position_and_counts_the_same(game: str, tmp_path: Path) -> None:
    variant, oracle = load(game, tmp_path), ORACLES[game]
    fen = pyffish.start_fen(oracle.name)
    placement, side, *_ = variant.start_fen.split(" ")
    assert fen.split(" ")[:2] == [placement, side]
    moves = pyffish.legal_moves(oracle.name, fen, [])
    total = sum(len(pyffish.legal_moves(oracle.name, fen, [move])) for move in moves)
    assert perft(engine_for(variant), PERFT_DEPTH) == total


@pytest.mark.parametrize(
    ("game", "name", "fault", "what"),
    [
        ("torpedo", "squares_passed", lambda variant, state, move: (), "legal moves|end"),
        ("breakthrough", "board_outcome", lambda variant, board, mover: None, "end"),
        ("makruk", "must_promote", lambda variant, side, square: False, "legal moves"),
    ],
)
def test_a_fault_in_the_rules_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, game: str, name: str, fault: object, what: str
) -> None:
    variant = load(game, tmp_path)
    monkeypatch.setattr(rules, name, fault)
    with pytest.raises(Difference, match=what):
        play_game(variant, RulesPosition, 10 * NUM_POSITIONS, seed=1)
