"""Golden conversations with the engine in both protocols, and what tests of the protocols share.

python -m tests.train.engine_transcripts        # writes the transcripts anew

Lines from the GUI begin with `>`. The thinker is scripted: it always finds the first legal move.
"""

from __future__ import annotations

import re
from pathlib import Path
from queue import Empty, Queue
from threading import Event

from envs import Variant, engine_for, load_variant
from tests.train.alphabeta_positions import stand_in_weights
from train.engine_game import Root
from train.engine_games import Games
from train.engine_search import RunningSearch
from train.engine_thinkers import AlphaBetaThinker, Limits, Line, Report, Stop, Thought
from train.engine_uci import UciSession
from train.engine_xboard import XBoardSession
from train.evaluation_tables import EvaluationTable

FOLDER = Path(__file__).parents[1] / "golden" / "engine"
PATIENCE_S = 60.0
Session = UciSession | XBoardSession


def stand_in_table(variant: Variant) -> EvaluationTable:
    weights = stand_in_weights(engine_for(variant), noise=0)
    return EvaluationTable(weights, 10, 400.0, {}, variant.name, {}, variant.rules_hash, {})


def alphabeta(**limits) -> AlphaBetaThinker:
    return AlphaBetaThinker(stand_in_table, **limits)


class ScriptedThinker:
    """Finds the first legal move at once; remembers what it was asked."""

    name = "scripted"

    def __init__(self) -> None:
        self.megabytes = 64
        self.asked: list[Limits] = []
        self.found = Event()

    def prepare(self, game) -> None:
        self.prepared = game.variant.name

    def think(self, root: Root, limits: Limits, stop: Stop, report: Report) -> Thought:
        self.asked.append(limits)
        moves = (limits.only or root.moves)[: limits.num_lines]
        lines = tuple(Line((move,), 25 - place, None, (300, 450, 250)) for place, move in enumerate(moves))
        thought = Thought(lines, limits.depth or 5, 9, 1000, 0.25)
        report(thought)
        self.found.set()
        return thought


class Conversation:
    """Talks to a session as a GUI does."""

    def __init__(self, protocol: type[Session], thinker=None, game: str | None = None, *, only: bool = False) -> None:
        self.thinker = thinker or ScriptedThinker()
        self._heard: Queue[str] = Queue()
        games = Games(load_variant(game) if game else None, only=only)
        self.session = protocol(self.thinker, games, self._heard.put)

    def say(self, *lines: str) -> list[str]:
        """Say lines; return what has been answered once nothing is searched, or a held search has found a move."""
        for line in lines:
            before = self.session._search
            self.session.obey(line)
            self._settle(before)
        return self.heard()

    def heard(self) -> list[str]:
        lines = []
        while not self._heard.empty():
            lines.append(self._heard.get())
        return lines

    def until(self, start: str) -> list[str]:
        """Wait for a line that begins so; return all lines up to it."""
        lines = [self._heard.get(timeout=PATIENCE_S)]
        while not lines[-1].startswith(start):
            try:
                lines.append(self._heard.get(timeout=PATIENCE_S))
            except Empty:
                raise AssertionError(f"expected '{start}', heard {lines}") from None
        return lines

    def _settle(self, before: RunningSearch | None) -> None:
        search = self.session._search
        if search is None or not isinstance(self.thinker, ScriptedThinker):
            return
        if search is not before:
            while search.is_running and not search._task.root.is_over and not self.thinker.found.wait(0.01):
                pass
            self.thinker.found.clear()
        if not search._stop.holds:
            search.join()


UCI_LINES = """
uci
isready
debug on
ucinewgame
position startpos
go depth 3
position startpos moves e2e4 e7e5
go movetime 100
go wtime 60000 btime 60000 winc 1000 binc 1000 movestogo 20
go nodes 500 searchmoves g1f3 d2d4
setoption name MultiPV value 3
setoption name UCI_ShowWDL value true
setoption name Hash value 128
setoption name move overhead value 50
setoption name Threads value 1
setoption name Ponder value true
go mate 2
go infinite
isready
stop
go ponder wtime 60000 btime 60000
ponderhit
setoption name multipv value 1
position fen 6k1/5ppp/8/8/8/8/8/R5K1 w - - 0 1 moves a1a8
go depth 1
position fen 7k/5Q2/6K1/8/8/8/8/8 b - - 0 1
go depth 1
position fen 7k/8/6QK/8/8/8/8/8 b - - 0 1
position fen 4k3/P7/8/8/8/8/8/4K3 w - - 0 1 moves a7a8q
go depth 1
position fen r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1 moves e1g1 e8c8
go depth 1
position startpos moves g1f3 g8f6 f3g1 f6g8 g1f3 g8f6 f3g1 f6g8
go depth 1
position fen 4k3/8/8/8/8/8/8/4K3 w - - 0 1
go depth 1
setoption name UCI_Variant value asylum
isready
position startpos moves a2a5 a9a6 a5b6
position startpos moves a2a5 a9a6
go depth 2
setoption name uci_variant value Palace-Ninja Guards+scepter
position startpos
go depth 2
setoption name UCI_Variant value checkers
setoption name UCI_Variant value asylum+nothing
setoption name MultiPV value 0
setoption name MultiPV value many
setoption name Contempt value 3
setoption name UCI_ShowWDL value perhaps
setoption value 3
setoption
position
position startposs
position fen
position fen 8/8 w - - 0 1
position startpos moves e2e5
position startpos moves zz
go depth
go depth 0
go depth x
go nodes 99999999999999999999999
go sideways
go movestogo 0 depth 2.7
go wtime 60000 btime 1e4 movestogo 0 winc x
go searchmoves e2e9 depth 1
go searchmoves e2e9
setoption name UCI_Variant value normal
position fen 7k/5Q2/6K1/8/8/8/8/8 b - - 0 1
go infinite
stop
stop
ponderhit
register later
xyzzy
quit
"""
XBOARD_LINES = """
xboard
protover 2
accepted ping
rejected san
new
random
level 40 5 0
post
hard
easy
ping 1
usermove e2e4
time 29000
otim 30000
usermove d2d4
ping 2
?
hint
nopost
force
usermove g8f6
undo
go
playother
usermove a2a3
remove
remove
undo
st 5
sd 6
go
level 0 0:30 1.5
go
result 1-0 {resigns}
memory 100
cores 2
name Deep Thought
rating 1 2
computer
draw
bk
.
new
post
analyze
.
usermove e2e4
undo
exit
setboard 6k1/5ppp/8/8/8/8/8/R5K1 w - - 0 1
force
usermove a1a8
go
usermove h7h6
setboard 8/8 w - - 0 1
usermove a2a3
go
hint
new
force
usermove e2e5
usermove zz
e2e4
variant asylum
ping 3
force
setboard 4k5/10/10/10/10/10/10/10/R2p1p4/5K4 w - - 0 1
usermove a1d1,d1f1
undo
usermove a1f1
new
force
variant asylum
usermove a1a4
usermove a8a5
usermove b1b4
usermove a5b4
go
variant palace_ninja_guards
force
usermove d0e1
usermove b1c3
usermove g8f6
usermove c3b5
undo
setboard ***gg***/4k3/P7/8/8/8/8/8/4K3/***GG*** w - - 0 1
usermove a7a8q
variant asylum+friendly_fire
variant checkers
setboard 4k3/8/8/8/8/8/8/4K3 w - - 0 1
level 1
level x 5 0
level 0 5:99 0
st
st soon
sd 0
time x
memory 0
undo
edit
option MultiPV=3
xyzzy 1 2 3
quit
"""
TRANSCRIPTS = {"uci": (UciSession, UCI_LINES), "xboard": (XBoardSession, XBOARD_LINES)}
VERSION = re.compile(r"(?<=id name Asylum Zero )\S+")


def converse(name: str) -> str:
    """Return a conversation as text."""
    protocol, said = TRANSCRIPTS[name]
    talk = Conversation(protocol)
    lines = []
    for line in said.strip().splitlines():
        lines.append(f"> {line}")
        lines += [VERSION.sub("VERSION", heard) for heard in talk.say(line)]
    return "\n".join(lines) + "\n"


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in TRANSCRIPTS:
        (FOLDER / f"{name}.txt").write_text(converse(name), encoding="utf-8")


if __name__ == "__main__":
    main()
