"""Whatever lines come, the engine neither crashes nor hangs, and goes on to answer."""

import random
import time

import pytest

from envs import VectorEnv
from tests.train.engine_transcripts import UCI_LINES, XBOARD_LINES, Conversation, alphabeta
from train.engine_uci import UciSession
from train.engine_xboard import XBoardSession

FEW, MANY = 600, 20_000
LONGEST_WAIT_S = 20.0
GAMES = ("chess", "asylum", "palace_ninja_guards", "gardner", "los_alamos", "breakthrough", "separate_realms")
WORDS = (
    "-1", "0", "1", "7", "99999999999999999999", "1e3", "\x00", "é", "name", "value", "moves", "fen", "startpos",
    "e2e4",
    "e7e8q", "a0a1", "a10a9", "a1a4,a4a7", "e2e4;", "w",
    "KQkq", "{", "%s%n", "infinite", "searchmoves", "depth", "nodes",
    "normal", "asylum", "x" * 300, "8/8/8/8/8/8/8/8", "🂡", "+", "asylum+friendly_fire", "?", ".",
)  # fmt: skip


class Fuzzer:
    """Makes lines: known commands, parts of them mixed and spoiled, and moves that are legal in some game."""

    def __init__(self, seed: int, lines: str) -> None:
        self.rng = random.Random(seed)
        self.lines = [line for line in lines.strip().splitlines() if line != "quit"]
        self.env = VectorEnv("chess", 1, seed=seed)

    def line(self) -> str:
        kind = self.rng.random()
        if kind < 0.35:
            return self.rng.choice(self.lines)
        if kind < 0.5:
            return self.rng.choice(("usermove ", "position startpos moves ", "")) + self.move()
        if kind < 0.6:
            return self.rng.choice(("variant ", "setoption name UCI_Variant value ")) + self.rng.choice(GAMES)
        words = self.rng.choice(self.lines).split()
        for _ in range(self.rng.randint(1, 3)):
            place = self.rng.randint(0, len(words))
            words[place : place + self.rng.randint(0, 2)] = self.rng.choices(WORDS, k=self.rng.randint(0, 2))
        return self.spoiled(" ".join(words)) if kind > 0.9 else " ".join(words)

    def move(self) -> str:
        if self.env.over[0]:
            self.env.reset()
        (action,) = self.env.sample_actions()
        move = self.env.action_to_move(0, int(action))
        self.env.step([action])
        return move

    def spoiled(self, text: str) -> str:
        letters = list(text)
        for _ in range(self.rng.randint(1, 5)):
            letters.insert(self.rng.randint(0, len(letters)), chr(self.rng.choice((9, 32, 33, 127, 233, 8364, 48, 97))))
        return "".join(letters)


def converse(protocol, lines, count, *, seed):
    talk = Conversation(protocol, alphabeta(depth=2))
    talk.thinker.prepare(talk.session._game.position.game)  # compiles
    fuzzer = Fuzzer(seed, lines)
    longest, answers = 0.0, 0
    for _ in range(count):
        line = fuzzer.line()
        if line.split()[:1] in (["quit"], ["memory"]) or " Hash " in line:
            continue
        started = time.monotonic()
        assert talk.session.obey(line), line
        longest = max(longest, time.monotonic() - started)
        answers += len(talk.heard())
    assert longest < LONGEST_WAIT_S
    assert answers > count / 4
    return talk


@pytest.mark.parametrize("protocol, lines, check", [
    (UciSession, UCI_LINES, ("ucinewgame", "isready", "readyok")),
    (XBoardSession, XBOARD_LINES, ("exit", "force", "new", "ping 77", "pong 77")),
])  # fmt: skip
@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
def test_no_line_stops_the_conversation(protocol, lines, check, count):
    *commands, answer = check
    talk = converse(protocol, lines, count, seed=count)
    for command in commands:
        assert talk.session.obey(command)
    assert answer in talk.until(answer)
    assert not talk.session.obey("quit")
