"""Version 2 of the Chess Engine Communication Protocol, that of XBoard and WinBoard, for every game.

Source: Tim Mann and H. G. Muller, https://www.gnu.org/software/xboard/engine-intf.html. Input that is wrong is answered
with `Error`, `Illegal move` or `tellusererror` and changes nothing. The engine does not ponder.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from envs import IllegalAction, InvalidFen, InvalidVariant, Termination, Variant
from envs.notation import SIDE_NAMES
from envs.variant import BLACK
from train.engine_game import EngineGame
from train.engine_games import CHESS, Games
from train.engine_numbers import SHOWN, BadInput, number
from train.engine_search import Listener, RunningSearch, Task, prepare_safely, think_safely
from train.engine_thinkers import Limits, Stop, Thinker, Thought
from train.engine_xboard_clock import TimeControl
from train.engine_xboard_rules import KNOWN_TO_XBOARD, XBoardSquares, setup_commands, xboard_name
from train.players import describe

Send = Callable[[str], None]
NAME = "Asylum Zero"
FEATURES = (
    "ping=1", "setboard=1", "playother=1", "usermove=1", "san=0", "time=1", "draw=0", "sigint=0", "sigterm=0",
    "reuse=1", "analyze=1", "colors=0", "ics=0", "name=0", "pause=0", "nps=0", "debug=1", "memory=1", "smp=1",
)  # fmt: skip
"""Of the protocol; the name and the games follow."""
IGNORED = (
    "xboard", "accepted", "rejected", "random", "hard", "easy", "computer", "name", "rating", "ics", "draw", "bk",
    "cores", "pause", "resume", "hover", "lift", "put",
)  # fmt: skip
"""Commands that ask for nothing that there is."""
MATE_SCORE = 100_000
HINT_SECONDS = 0.2
MOST_DEPTH, MOST_SECONDS, MOST_MEGABYTES, MOST_MOVES = 1000, 1 << 31, 16384, 1 << 20
CENTISECONDS = 100
ENDS = {
    Termination.STALEMATE: "Stalemate",
    Termination.REPETITION: "Repetition",
    Termination.FIFTY_MOVES: "50-move rule",
    Termination.BARE_KINGS: "Bare kings",
    Termination.SCEPTER: "The scepter is reached",
    Termination.GOAL: "The goal is reached",
    Termination.EXTINCTION: "Extinction",
}


class XBoardSession:
    """A conversation with a GUI that speaks the protocol."""

    def __init__(self, thinker: Thinker, games: Games, send: Send) -> None:
        """Begin at the start position of the first game.

        Args:
            thinker: Finds the moves.
            games: What may be played.
            send: Writes a line to the GUI; is called from two threads.
        """
        self._thinker, self._games, self._send = thinker, games, send
        self._control = TimeControl()
        self._side: int | None = BLACK
        self._analyses = self._posts = False
        self._latest: Thought | None = None
        self._search: RunningSearch | None = None
        self._plays_answer = False
        self._lock = Lock()
        self._is_thinking = False
        self._late_pongs: list[str] = []
        self._set_game(games.first)
        self._commands: dict[str, Callable[[list[str]], None]] = {
            "protover": self._introduce, "new": self._new, "variant": self._choose_game, "setboard": self._set_board,
            "usermove": self._user_move, "go": self._go, "playother": self._play_other, "force": self._force,
            "?": self._move_now, "ping": self._ping, "level": self._level, "st": self._time_per_move,
            "sd": self._depth, "time": self._time_left, "otim": self._ignore, "undo": self._undo,
            "remove": self._remove, "result": self._force, "hint": self._hint, "post": self._post,
            "nopost": self._post_nothing, "analyze": self._analyze, "exit": self._exit, ".": self._tell_progress,
            "memory": self._memory, **dict.fromkeys(IGNORED, self._ignore),
        }  # fmt: skip

    def obey(self, line: str) -> bool:
        """Do what a line says; return False when it was `quit`."""
        words = line.split()
        if not words:
            return True
        if words[0] == "quit":
            self.close()
            return False
        command = self._commands.get(words[0])
        try:
            if command is not None:
                command(words[1:])
            elif len(words) == 1 and self._squares.move_from_gui(words[0]) is not None:
                self._user_move(words)
            else:
                raise BadInput("unknown command")
        except BadInput as error:
            self._send(f"Error ({error}): {' '.join(words)[:SHOWN]}")
        return True

    def close(self) -> None:
        """End a search that is running, without a move."""
        self._halt(play=False)

    # --- The game -----------------------------------------------------------------------------

    def _introduce(self, _words: list[str]) -> None:
        self._send("feature done=0")
        self._send(f"feature {' '.join(FEATURES)}")
        self._send(f'feature myname="{NAME} {self._thinker.name}"')
        self._send(f'feature variants="{",".join(xboard_name(name) for name in self._games.names)}"')
        self._prepare()
        self._send("feature done=1")

    def _new(self, _words: list[str]) -> None:
        self._halt(play=False)
        self._set_game(self._games.find(CHESS) if CHESS in self._games.names else self._games.first)
        self._side, self._control.depth, self._control.left = BLACK, None, None
        self._resume_analysis()

    def _choose_game(self, words: list[str]) -> None:
        try:
            variant = self._games.find(" ".join(words))
        except InvalidVariant as error:
            raise BadInput(str(error)) from None
        self._halt(play=False)
        self._set_game(variant)
        if xboard_name(describe(variant)) not in KNOWN_TO_XBOARD:
            for command in setup_commands(variant):
                self._send(command)
        self._resume_analysis()

    def _set_board(self, words: list[str]) -> None:
        self._halt(play=False)
        try:
            self._game.set_up(self._squares.fen_from_gui(" ".join(words)))
        except InvalidFen as error:
            self._is_set_up = False
            self._send(f"tellusererror Illegal position ({error})")
            return
        self._is_set_up = True
        self._resume_analysis()

    def _user_move(self, words: list[str]) -> None:
        text = " ".join(words)
        move = self._squares.move_from_gui(text)
        if self._is_thinking or not self._is_set_up or move is None:
            reason = "no move" if move is None else "thinking" if self._is_thinking else "illegal position"
            self._send(f"Illegal move ({reason}): {text[:SHOWN]}")
            return
        if "," in text and not self._squares.has_legs(self._game.position, move, text):
            self._send(f"Illegal move (it does not go that way): {text[:SHOWN]}")
            return
        if self._analyses:
            self._halt(play=False)
        try:
            self._game.push(move)
        except IllegalAction:
            self._send(f"Illegal move: {text[:SHOWN]}")
        else:
            self._go_on()
        self._resume_analysis()

    def _undo(self, _words: list[str]) -> None:
        self._take_back(1)

    def _remove(self, _words: list[str]) -> None:
        self._take_back(2)

    def _take_back(self, count: int) -> None:
        if not self._is_set_up:
            raise BadInput("illegal position")
        if len(self._game.moves) < count:
            raise BadInput("no move to take back")
        self._halt(play=False)
        for _ in range(count):
            self._game.pop()
        self._resume_analysis()

    def _set_game(self, variant: Variant) -> None:
        self._game, self._squares = EngineGame(variant), XBoardSquares(variant)
        self._is_set_up, self._is_prepared = True, False

    def _ignore(self, _words: list[str]) -> None:
        """Do nothing: the command asks for nothing that there is."""

    # --- Who thinks when ----------------------------------------------------------------------

    def _go(self, _words: list[str]) -> None:
        if not self._is_set_up:
            raise BadInput("illegal position")
        self._halt(play=False)
        self._side, self._analyses = self._game.side, False
        self._think()

    def _play_other(self, _words: list[str]) -> None:
        self._halt(play=False)
        self._side = 1 - self._game.side

    def _force(self, _words: list[str]) -> None:
        self._halt(play=False)
        self._side = None

    def _move_now(self, _words: list[str]) -> None:
        self._halt(play=True)

    def _analyze(self, _words: list[str]) -> None:
        self._halt(play=False)
        self._side, self._analyses = None, True
        self._resume_analysis()

    def _exit(self, _words: list[str]) -> None:
        """End an analysis; a move that is being thought about goes on."""
        if self._analyses:
            self._halt(play=False)
            self._analyses = False

    def _go_on(self) -> None:
        """After a move: say how the game has ended, or think if it is the engine's turn."""
        result = self._result()
        for line in result:
            self._send(line)
        if not result and not self._analyses and self._side == self._game.side:
            self._think()

    def _think(self) -> None:
        """Search for a move of the engine's, which is played when it is found."""
        root = self._game.root()
        if not root.moves:
            for line in self._result():
                self._send(line)
            return
        limits = self._control.limits(len(self._game.moves) // 2)
        self._start(Task(self._thinker, root, limits), plays=True)

    def _resume_analysis(self) -> None:
        root = self._game.root()
        if self._analyses and self._is_set_up and not root.is_over:
            self._start(Task(self._thinker, root, Limits()), plays=False)

    def _start(self, task: Task, *, plays: bool) -> None:
        """Search for a move to play, or go on until the search is ended."""
        self._latest = None
        self._is_thinking = self._plays_answer = plays
        listener = Listener(self._report, self._answer, self._complain)
        self._search = RunningSearch(task, listener, held=not plays)

    def _halt(self, *, play: bool) -> None:
        """End a search that is running, with or without the move that it has found."""
        if self._search is not None:
            self._plays_answer = self._plays_answer and play
            self._search.stop()
            self._search = None

    def _prepare(self) -> None:
        is_searching = self._search is not None and self._search.is_running
        if not self._is_prepared and not is_searching:
            prepare_safely(self._thinker, self._game.position.game, self._complain)
            self._is_prepared = True

    # --- From the search's thread -------------------------------------------------------------

    def _report(self, thought: Thought) -> None:
        self._latest = thought
        if self._posts or self._analyses:
            line = thought.lines[0]
            score = line.centipawns
            if line.mate is not None:
                score = MATE_SCORE + line.mate if line.mate > 0 else line.mate - MATE_SCORE
            moves = " ".join(self._squares.text_to_gui(move) for move in line.moves)
            self._send(f"{thought.depth} {score} {round(CENTISECONDS * thought.seconds)} {thought.nodes} {moves}")

    def _answer(self, thought: Thought) -> None:
        """Play the move that was found; once it is sent, the game belongs to the other thread again."""
        lines = []
        if self._plays_answer:
            self._latest = thought
            move = thought.lines[0].moves[0]
            lines = [f"move {leg}" for leg in self._squares.move_to_gui(self._game.position, move)]
            self._game.push(move)
            lines += self._result()
        with self._lock:
            self._is_thinking = False
            for line in (*lines, *self._late_pongs):
                self._send(line)
            self._late_pongs.clear()

    def _complain(self, text: str) -> None:
        self._send(f"# {text}")

    def _result(self) -> list[str]:
        """Return the line that says how the game has ended, none if it has not."""
        outcome = self._game.outcome()
        if outcome is None:
            return []
        score = {"w": "1-0", "b": "0-1", None: "1/2-1/2"}[outcome.winner]
        winner = SIDE_NAMES["wb".index(outcome.winner)] if outcome.winner else ""
        return [f"{score} {{{ENDS.get(outcome.termination, f'{winner} mates')}}}"]

    # --- Clocks and talk ----------------------------------------------------------------------

    def _ping(self, words: list[str]) -> None:
        pong = " ".join(["pong", *words])
        with self._lock:
            if self._is_thinking:
                self._late_pongs.append(pong)
                return
        self._prepare()
        self._send(pong)

    def _level(self, words: list[str]) -> None:
        if len(words) != len(("moves", "base", "increment")):
            raise BadInput("level: expected moves, minutes and seconds")
        minutes, _, seconds = words[1].partition(":")
        base = 60 * number("minutes", minutes, 0, MOST_SECONDS) + (number("seconds", seconds, 0, 59) if seconds else 0)
        moves = number("moves", words[0], 0, MOST_MOVES)
        increment = _seconds("increment", words[2])
        self._control = TimeControl(moves, base, increment, depth=self._control.depth)

    def _time_per_move(self, words: list[str]) -> None:
        self._control.per_move = _seconds("seconds", _only(words))

    def _depth(self, words: list[str]) -> None:
        self._control.depth = number("depth", _only(words), 1, MOST_DEPTH)

    def _time_left(self, words: list[str]) -> None:
        self._control.left = number("time", _only(words), -MOST_SECONDS, MOST_SECONDS) / CENTISECONDS

    def _memory(self, words: list[str]) -> None:
        self._thinker.megabytes = number("megabytes", _only(words), 1, MOST_MEGABYTES)

    def _post(self, _words: list[str]) -> None:
        self._posts = True

    def _post_nothing(self, _words: list[str]) -> None:
        self._posts = False

    def _tell_progress(self, _words: list[str]) -> None:
        latest = self._latest
        if self._analyses and latest is not None:
            moves = len(self._game.root().moves)
            self._send(f"stat01: {round(CENTISECONDS * latest.seconds)} {latest.nodes} {latest.depth} 0 {moves}")

    def _hint(self, _words: list[str]) -> None:
        root = self._game.root()
        if self._is_thinking or self._analyses or not self._is_set_up or not root.moves:
            return
        silent = Listener(lambda _thought: None, lambda _thought: None, self._complain)
        task = Task(self._thinker, root, Limits(depth=self._control.depth, seconds=HINT_SECONDS))
        found = think_safely(task, Stop(), silent)
        self._send(f"Hint: {self._squares.text_to_gui(found.lines[0].moves[0])}")


def _only(words: list[str]) -> str:
    if len(words) != 1:
        raise BadInput(f"expected one number, got {len(words)}")
    return words[0]


def _seconds(name: str, text: str) -> float:
    whole, _, tenths = text.partition(".")
    return number(name, whole, 0, MOST_SECONDS) + (float(f"0.{number(name, tenths, 0, 999)}") if tenths else 0.0)
