"""PGN: chess is read back by python-chess, every other game by its own names of moves."""

import dataclasses
import io
import re
from collections import Counter
from pathlib import Path

import chess.pgn
import numpy as np
import pytest

import envs
from envs import CompiledGame
from envs.rows import legal_moves
from tests.train.played_games import GAME, play_game
from tests.train.stored_run import random_games
from train import pgn
from train.pgn import game_text, move_names, write_newest
from train.shards import GameRecord

CHESS = envs.engine_for(envs.load_variant("chess"))
TAG = re.compile(r'^\[(\w+) "((?:[^"\\]|\\.)*)"\]$', re.MULTILINE)


def text_of(record: GameRecord, game: CompiledGame = GAME, *, values: bool = False) -> str:
    return game_text(game, record, event="mine", place="3.1", values=values)


def tags_of(text: str) -> dict[str, str]:
    return dict(TAG.findall(text))


def read_moves(game: CompiledGame, text: str) -> list[int]:
    """Return the actions of a PGN, each found by its name among the names of all legal moves."""
    start_fen = tags_of(text).get("FEN", game.variant.start_fen)
    body = re.sub(r"\{[^}]*\}", " ", text.split("\n\n", 1)[1])
    *tokens, _result = [word for word in body.split() if not re.fullmatch(r"\d+\.+", word)]
    position, actions = envs.Position(game.variant, start_fen), []
    for token in tokens:
        row = position.row()[None]
        words, counts, _ = legal_moves(game, row)
        legal, board = words[0, : counts[0]].tolist(), envs.boards(game, row)[0].tolist()
        names = [pgn._move_name(game.variant, board, legal, word) for word in legal]
        assert max(Counter(names).values()) == 1
        actions.append(legal[names.index(token.rstrip("+#"))] >> 16 & 0xFFFF)
        (move,) = [move for move in position.legal_moves() if position.move_to_action(move) == actions[-1]]
        position.push(move)
    return actions


@pytest.fixture(scope="module")
def chess_games() -> list[GameRecord]:
    """Games of chance, and two short ones with mate, castling and moves told apart by rank."""
    mate = played_game(CHESS, "f2f3 e7e5 g2g4 d8h4")
    castling = (
        "g1f3 b8c6 g2g3 d7d6 f1g2 c8g4 e1g1 d8d7 b1c3 e8c8 a2a4 h7h5 a1a3 h5h4 f1e1 h4h3 e1f1 a7a5 a3b3 d8e8 b3b5"
    )
    return [mate, played_game(CHESS, castling), *random_games(CHESS, 6, seed=3, max_plies=200)]


def played_game(game: CompiledGame, moves: str) -> GameRecord:
    """Play moves from the first start position."""
    position, actions, rows = envs.Position(game.variant), [], []
    for move in moves.split():
        rows.append(position.row())
        actions.append(position.move_to_action(move))
        position.push(move)
    outcome = position.outcome()
    (template,) = random_games(game, 1, seed=0, max_plies=2)
    return dataclasses.replace(
        template,
        start_fen=game.variant.start_fen,
        actions=np.array(actions, np.int32),
        states=np.array(rows),
        policy_index=np.zeros(len(actions) + 1, np.int64),
        root_values=np.zeros(len(actions), np.float32),
        white_score=float("nan") if outcome is None else {"w": 1.0, "b": 0.0, None: 0.5}[outcome.winner],
        termination=0 if outcome is None else outcome.termination.value,
        start_kind="array",
    )


def array_game(game: CompiledGame, seed: int, plies: int) -> GameRecord:
    """Play a random game from the first start position."""
    rng, position = np.random.default_rng(seed), envs.Position(game.variant)
    while position.outcome() is None and len(position.moves_played) < plies:
        position.push(str(rng.choice(position.legal_moves())))
    return played_game(game, " ".join(position.moves_played))


@pytest.mark.parametrize("values", [False, True])
def test_python_chess_reads_games_of_chess_move_for_move_with_names_and_result(chess_games, values):
    checks = Counter()
    for record in chess_games:
        read = chess.pgn.read_game(io.StringIO(text_of(record, CHESS, values=values)))
        assert read is not None
        assert not read.errors
        board, names = read.board(), move_names(CHESS, record)
        assert board.fen(en_passant="legal") == record.start_fen
        position = envs.Position(CHESS.variant, record.start_fen)
        for name, action, move in zip(names, record.actions, read.mainline_moves(), strict=True):
            assert position.move_to_action(move.uci()) == action
            assert board.san(move) == name
            checks.update(mark for mark in "+#=x" if mark in name)
            checks.update(["castling"] if name.startswith("O-O") else [])
            checks.update(["told apart"] if re.fullmatch("[NRBQ][a-h1-8]x?[a-h][1-8].?", name) else [])
            position.push(move.uci())
            board.push(move)
        assert read.headers["Result"] == ("*" if np.isnan(record.white_score) else pgn.RESULTS[record.white_score])
        if record.termination in (envs.Termination.CHECKMATE.value, envs.Termination.STALEMATE.value):
            assert board.result() == read.headers["Result"]
    assert all(checks[kind] for kind in ("+", "#", "=", "x", "castling", "told apart")), checks


@pytest.mark.parametrize("name", envs.list_variants())
def test_the_moves_of_a_file_lead_to_the_same_game(name):
    game = envs.engine_for(envs.load_variant(name))
    for record in [array_game(game, 5, 16), *random_games(game, 1, seed=2, max_plies=20)]:
        assert read_moves(game, text_of(record, game, values=True)) == record.actions.tolist()


@pytest.mark.parametrize(
    "variant, options, fen, expected",
    [
        ("asylum", {}, "9k/10/10/3p6/3n6/10/10/10/3R6/K9 w - - 0 1", {"Rxd6xd7", "Rxd6", "Rd5"}),
        ("asylum", {}, "9k/10/10/10/3n6/10/10/10/3R6/K9 w - - 0 1", {"Rxd6-d7", "Rxd6-d10+", "Rxd6"}),
        ("asylum", {}, "9k/10/10/10/10/10/3r6/3pp5/3N6/K9 w - - 0 1", {"Nxd3xd4", "Nxe3-f4", "Nxd3"}),
        ("chess", {}, "4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1", {"exd6", "e6", "Kd1"}),
        ("chess", {}, "4k3/8/8/8/R6R/8/8/R3K2R w KQ - 0 1", {"R4a3", "R1a3", "Rad4", "Rhd4", "O-O", "O-O-O", "Rh8+"}),
        ("chess", {}, "8/kP6/8/8/4Q2Q/8/8/K6Q w - - 0 1", {"b8=Q+", "b8=N", "Qh4e1", "Qhg4", "Q1h2"}),
        ("berolina", {}, "4k3/8/8/8/2P1P3/8/8/4K3 w - - 0 1", {"cd5", "ed5", "b5", "f5"}),
    ],
)
def test_moves_have_the_names_that_a_player_expects(variant, options, fen, expected):
    game = envs.engine_for(envs.load_variant(variant, options))
    names = set()
    for action in envs.legal_actions(game, envs.read_fen(game, fen)[None])[0][0]:
        record = dataclasses.replace(array_game(game, 0, 1), start_fen=fen, actions=np.array([action], np.int32))
        names.update(move_names(game, record))
    assert expected - names == set(), names


def test_tags_say_how_a_game_began_ended_and_was_made(chess_games):
    records = [play_game(seed) for seed in range(8)] + [play_game(99, max_plies=15)]
    ended = next(record for record in records if record.white_score == 1)
    tags = tags_of(text_of(ended))
    roster = ["Event", "Site", "Date", "Round", "White", "Black", "Result"]
    assert list(tags)[:7] == roster
    assert (tags["Event"], tags["Round"], tags["White"], tags["Result"]) == ("mine", "3.1", "mine:3", "1-0")
    assert (tags["Variant"], tags["Termination"], tags["Ending"]) == ("gardner", "normal", "checkmate")
    assert (tags["OpeningPlies"], tags["Start"], tags["Seed"]) == ("2", "array", str(ended.seed))
    assert not {"FEN", "SetUp", "Options"} & tags.keys()
    cut = next(record for record in records if record.termination == 0)
    assert tags_of(text_of(cut))["Termination"] == "unterminated"
    assert text_of(cut).endswith(" *\n")
    given_up = tags_of(text_of(dataclasses.replace(cut, resigned="b", white_score=1.0)))
    assert (given_up["Termination"], given_up["Result"]) == ("resignation", "1-0")
    assert "Ending" not in given_up
    odds = tags_of(text_of(chess_games[-1], CHESS))
    assert (odds["SetUp"], odds["FEN"]) == ("1", chess_games[-1].start_fen)
    friendly = envs.engine_for(envs.load_variant("asylum", {"friendly_fire": True}))
    assert tags_of(text_of(array_game(friendly, 0, 3), friendly))["Options"] == "friendly_fire"


def test_lines_are_short_and_no_tag_can_break_out_of_its_quotes(chess_games):
    text = text_of(chess_games[0], CHESS, values=True)
    assert max(map(len, text.splitlines())) <= 80
    strange = game_text(CHESS, chess_games[0], event='a "b" \\c\n[Result "1-0"]', place="1")
    read = chess.pgn.read_game(io.StringIO(strange))
    assert read is not None
    assert read.headers["Event"].replace("\\", "") == 'a "b" c [Result "1-0"]'
    assert read.headers["Result"] == pgn.RESULTS.get(chess_games[0].white_score, "*")
    assert len(list(read.mainline_moves())) == chess_games[0].num_plies


def test_values_follow_searched_moves_and_blacks_number_is_said_again():
    record = dataclasses.replace(play_game(0, max_plies=10), opening_plies=1)
    words = text_of(record, values=True).split("\n\n", 1)[1].split()
    assert words[0] == "1."
    assert words[2][0].isalpha()
    assert words[3] == f"{{{record.root_values[1]:+.2f}}}"
    assert words[4] == "2."
    assert words[7] == "2..."


def test_a_black_start_begins_with_its_own_number():
    game = CHESS
    fen = "4k3/8/8/8/8/8/8/4K2R b - - 4 30"
    record = dataclasses.replace(array_game(game, 0, 1), start_fen=fen)
    position = envs.Position(game.variant, fen)
    first = position.move_to_action("e8e7")
    text = text_of(dataclasses.replace(record, actions=np.array([first], np.int32)), game)
    assert text.split("\n\n", 1)[1] == "30... Ke7 *\n"


def test_a_run_keeps_the_newest_files_of_the_last_games_of_an_iteration(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(pgn, "MAX_FILES", 3)
    games, folder = [play_game(seed, max_plies=20) for seed in range(6)], tmp_path / "mine" / "games"
    assert write_newest([], GAME, folder=folder, iteration=1, most=4) is None
    assert not folder.exists()
    for iteration in range(10, 60, 10):
        path = write_newest(games, GAME, folder=folder, iteration=iteration, most=4)
        assert path == folder / f"{iteration:06d}.pgn"
    assert [file.name for file in sorted(folder.iterdir())] == ["000030.pgn", "000040.pgn", "000050.pgn"]
    text = (folder / "000050.pgn").read_text()
    assert re.findall(r'\[Round "(.*)"\]', text) == ["50.3", "50.4", "50.5", "50.6"]
    assert re.findall(r'\[Event "(.*)"\]', text) == ["mine"] * 4
    for part, record in zip(re.split(r"\n(?=\[Event)", text), games[2:], strict=True):
        assert read_moves(GAME, part) == record.actions.tolist()
