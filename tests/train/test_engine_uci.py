"""UCI: a scripted conversation, what a search is asked for, and that it ends when it is told to."""

import statistics
import time

import chess
import chess.variant
import pytest

from tests.train.engine_transcripts import FOLDER, Conversation, alphabeta, converse
from train.engine_uci import UciSession

MOST_S = 0.05
MATE_IN_ONE = "position fen 6k1/5ppp/8/8/8/8/8/R5K1 w - - 0 1"


def test_every_command_is_answered_as_in_the_golden_conversation():
    assert converse("uci") == (FOLDER / "uci.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("words, expected", [
    ("depth 7", {"depth": 7}),
    ("nodes 100", {"nodes": 100}),
    ("mate 3", {"mate": 3}),
    ("movetime 1000", {"seconds": 0.9}),
    ("movetime -5", {"seconds": 0.005}),
    ("wtime 30100 btime 5", {"seconds": 1.0}),
    ("wtime 30100 winc 2000 depth 4", {"seconds": 2.5, "depth": 4}),
    ("wtime 10100 movestogo 5", {"seconds": 2.0}),
    ("btime 1000", {}),
    ("infinite wtime 1000", {}),
    ("searchmoves e2e4 d2d4 depth 2", {"depth": 2, "only": ("e2e4", "d2d4")}),
    ("searchmoves e2e4 e2e9 e2e4 depth 2", {"depth": 2, "only": ("e2e4",)}),
    ("depth 3.9 nodes 1e3", {"depth": 3, "nodes": 1000}),
    ("movetime 250.5 movestogo 0", {"seconds": 0.15}),
    ("depth 0 movetime 1000", {"seconds": 0.9}),
    ("depth nodes 7", {"nodes": 7}),
    ("deep 4 wtime 30100 btime x", {"seconds": 1.0}),
    ("infinite sideways", {}),
    *((words, {"seconds": 1.0}) for words in (
        "depth", "depth 0", "depth -3", "depth nan", "nodes inf", "nodes 9e99", "mate 1_0", "nodes \u0663", "wtime x",
        "perft 4", "searchmoves", "searchmoves e2e9", "searchmoves a1a1 zz", "depth x nodes y",
    )),
])  # fmt: skip
def test_go_asks_for_what_it_says(words, expected):
    talk = Conversation(UciSession)
    talk.say(f"go {words}", "stop")
    (asked,) = talk.thinker.asked
    for name, value in {"depth": None, "nodes": None, "mate": None, "seconds": None, "only": (), **expected}.items():
        assert getattr(asked, name) == (pytest.approx(value, abs=0.01) if isinstance(value, float) else value), name


def test_black_is_given_his_own_clock():
    talk = Conversation(UciSession)
    talk.say("position startpos moves e2e4", "go wtime 100 btime 30100")
    assert talk.thinker.asked[0].seconds == pytest.approx(1.0, abs=0.01)


def test_a_search_finds_a_mate_and_says_so():
    talk = Conversation(UciSession, alphabeta())
    talk.session.obey(MATE_IN_ONE)
    talk.session.obey("go mate 1")
    lines = talk.until("bestmove")
    assert lines[-1] == "bestmove a1a8"
    assert " score mate 1 " in lines[-2]


def test_the_score_of_the_side_that_is_mated_is_negative():
    talk = Conversation(UciSession, alphabeta())
    talk.session.obey("position fen 7k/8/5K2/8/8/8/8/6Q1 b - - 0 1")
    talk.session.obey("go depth 6")
    assert " score mate -1 " in talk.until("bestmove")[-2]


def test_lines_are_numbered_best_first_and_chances_add_up_to_a_thousand():
    talk = Conversation(UciSession, alphabeta())
    for line in ("setoption name MultiPV value 3", "setoption name UCI_ShowWDL value true", "go depth 2"):
        talk.session.obey(line)
    infos = [line.split() for line in talk.until("bestmove")[:-1]][-3:]
    assert [words[words.index("multipv") + 1] for words in infos] == ["1", "2", "3"]
    scores = [int(words[words.index("cp") + 1]) for words in infos]
    assert scores == sorted(scores, reverse=True)
    for words in infos:
        chances = words[words.index("wdl") + 1 : words.index("wdl") + 4]
        assert sum(map(int, chances)) == 1000


def test_only_the_moves_that_are_asked_for_are_looked_at():
    talk = Conversation(UciSession, alphabeta())
    talk.session.obey("go depth 2 searchmoves a2a3 h2h4")
    assert talk.until("bestmove")[-1].split()[1] in ("a2a3", "h2h4")


def test_a_limit_of_depth_or_time_that_the_player_has_is_kept():
    talk = Conversation(UciSession, alphabeta(depth=2))
    talk.session.obey("go depth 9")
    assert max(int(line.split()[2]) for line in talk.until("bestmove") if line.startswith("info depth")) == 2
    talk = Conversation(UciSession, alphabeta(seconds=0.05))
    started = time.monotonic()
    talk.session.obey("go")
    talk.until("bestmove")
    assert time.monotonic() - started < 5


def test_a_held_search_answers_only_when_it_is_released():
    talk = Conversation(UciSession, alphabeta(depth=1))
    talk.session.obey("go ponder movetime 100")
    time.sleep(0.2)
    assert not [line for line in talk.heard() if line.startswith("bestmove")]
    talk.session.obey("ponderhit")
    talk.until("bestmove")
    assert not talk.session._search.is_running or talk.session._search.join() is None


def test_after_ponderhit_the_clock_ends_the_search():
    talk = Conversation(UciSession, alphabeta())
    talk.session.obey("go ponder movetime 200")
    talk.session.obey("ponderhit")
    started = time.monotonic()
    talk.until("bestmove")
    assert time.monotonic() - started < 5


def test_all_that_is_wrong_in_a_go_is_complained_of_and_a_move_is_found():
    talk = Conversation(UciSession)
    assert talk.say("go depth x sideways searchmoves zz")[:-2] == [
        "info string go: depth: expected a number from 1 to 9007199254740992, got 'x'",
        "info string go: unknown word 'sideways'",
        "info string go: searchmoves: 'zz' is not a legal move",
        "info string go: searchmoves: no legal move is named, all are searched",
    ]
    assert not talk.thinker.asked[0].only
    talk.say("go ponder depth x", "ponderhit")
    assert talk.session._wishes.seconds(0, 0.1) == 1.0


@pytest.mark.parametrize("words, release", [("infinite", "stop"), ("ponder", "stop"), ("ponder", "ponderhit")])
def test_a_finished_game_is_answered_when_the_search_is_released(words, release):
    talk = Conversation(UciSession)
    answered = talk.say("position startpos moves f2f3 e7e5 g2g4 d8h4", f"go {words}", "isready")
    assert answered == ["info depth 0 score mate 0", "readyok"]
    talk.session.obey(release)
    assert talk.until("bestmove") == ["bestmove (none)"]
    assert talk.say("go") == ["info depth 0 score mate 0", "bestmove (none)"]


@pytest.mark.parametrize("board", [chess.variant.KingOfTheHillBoard, chess.variant.HordeBoard, chess.Board])
def test_the_names_that_python_chess_has_for_games_are_offered(board):
    talk = Conversation(UciSession)
    (combo,) = [line for line in talk.say("uci") if "UCI_Variant" in line]
    offered = combo.split(" var ")[1:]
    assert board.uci_variant in offered
    assert len(set(offered)) == len(offered)
    assert {"losalamos", "king_of_the_hill", "nocastle", "free_grand", "old_courier"} <= set(offered)
    assert not {"grand", "courier"} & set(offered)
    for name in offered:
        assert talk.session._games.find(name)
    assert not talk.say(f"setoption name UCI_Variant value {board.uci_variant}")


@pytest.mark.parametrize("game", ["chess", "asylum"])
def test_stop_is_answered_at_once(game):
    talk = Conversation(UciSession, alphabeta())
    talk.session.obey(f"setoption name UCI_Variant value {game}")
    talk.session.obey("isready")
    waits = []
    for _ in range(9):
        talk.session.obey("go infinite")
        time.sleep(0.03)
        started = time.monotonic()
        talk.session.obey("stop")
        talk.until("bestmove")
        waits.append(time.monotonic() - started)
    assert statistics.median(waits) < MOST_S, waits


def test_any_command_that_changes_the_game_ends_a_search_with_its_move_first():
    talk = Conversation(UciSession, alphabeta())
    talk.session.obey("go infinite")
    talk.session.obey("position startpos moves e2e4")
    assert talk.until("bestmove")
    talk.session.obey("go infinite")
    assert not talk.session.obey("quit")
    assert talk.until("bestmove")


def test_a_search_that_fails_says_so_and_gives_a_legal_move():
    class Broken:
        name, megabytes = "broken", 1

        def prepare(self, game):
            raise RuntimeError("no table")

        def think(self, root, limits, stop, report):
            raise RuntimeError("no idea")

    talk = Conversation(UciSession, Broken())
    talk.session.obey("isready")
    talk.session.obey("go")
    assert talk.until("bestmove") == [
        "info string chess: RuntimeError: no table",
        "readyok",
        "info string the search failed: RuntimeError: no idea",
        "bestmove a2a3",
    ]
