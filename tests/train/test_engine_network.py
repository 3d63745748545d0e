"""A network behind a protocol: proofs, chances, limits and a stop at once."""

import time

import numpy as np
import pytest

from models.evaluator import UniformEvaluator
from tests.train.engine_transcripts import Conversation
from train.engine_network import NetworkThinker
from train.engine_uci import UciSession

MATE_IN_TWO = "position fen kbK5/pp6/1P6/8/8/8/8/R7 w - - 0 1"


def talk_to(**settings) -> Conversation:
    talk = Conversation(UciSession, NetworkThinker(UniformEvaluator(), name="uniform", **settings))
    talk.session.obey("isready")
    assert talk.until("readyok") == ["readyok"]
    return talk


def test_a_proven_mate_is_told_in_moves_and_ends_the_search():
    talk = talk_to()
    talk.session.obey(MATE_IN_TWO)
    talk.session.obey("go")
    lines = talk.until("bestmove")
    assert lines[-1].split()[:2] == ["bestmove", "a1a6"]
    assert " score mate 2 " in lines[-2]


def test_a_simulation_is_a_node_and_no_search_goes_beyond_the_players_own():
    for settings, words, nodes in (({}, "go nodes 100", 100), ({"simulations": 40}, "go nodes 100", 40)):
        talk = talk_to(**settings)
        talk.session.obey(words)
        assert f" nodes {nodes} " in talk.until("bestmove")[-2]


def test_the_chance_of_a_draw_is_that_of_the_network():
    def drawish(observations, legal_actions):
        logits, wdl = UniformEvaluator()(observations, legal_actions)
        return logits, np.full_like(wdl, [0.1, 0.8, 0.1])

    talk = Conversation(UciSession, NetworkThinker(drawish, name="drawish"))
    for line in ("setoption name UCI_ShowWDL value true", "go nodes 20"):
        talk.session.obey(line)
    assert " score cp 0 wdl 100 800 100 " in talk.until("bestmove")[-2]


@pytest.mark.parametrize("words", ["movetime 300", "infinite", "wtime 3000 btime 3000"])
def test_a_search_ends_in_time_or_at_once_when_it_is_stopped(words):
    talk = talk_to()
    started = time.monotonic()
    talk.session.obey(f"go {words}")
    if words == "infinite":
        time.sleep(0.1)
        started = time.monotonic()
        talk.session.obey("stop")
    talk.until("bestmove")
    assert time.monotonic() - started < 2


def test_the_tree_stays_within_the_memory():
    talk = talk_to()
    talk.thinker.megabytes = 1
    talk.session.obey("go")
    nodes = int(talk.until("bestmove")[-2].split(" nodes ")[1].split()[0])
    assert 100 < nodes < 1000
