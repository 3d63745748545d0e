"""The Universal Chess Interface, for every game: what `stop`, `go` and the rest do.

The protocol is Stefan Meyer-Kahlen's description of April 2006, with the options `UCI_Variant` and `UCI_ShowWDL` that
GUIs have since agreed on. Squares have the names of `envs.notation`. Input that is wrong is answered with `info string`
and changes nothing; what is wrong in a `go` is left out of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version

from envs import IllegalAction, InvalidFen, InvalidVariant
from train.engine_clock import DEFAULT_MARGIN_S
from train.engine_game import EngineGame
from train.engine_games import Games, name_for_guis
from train.engine_go import Wishes, parse_go
from train.engine_numbers import SHOWN, BadInput, number, switch
from train.engine_search import Listener, RunningSearch, Task, prepare_safely
from train.engine_thinkers import DEFAULT_MEGABYTES, Line, Thinker, Thought
from train.players import describe

Send = Callable[[str], None]
NAME, AUTHOR = "Asylum Zero", "the Asylum Zero authors"
MOST_LINES, MOST_MEGABYTES, MOST_MARGIN_MS = 256, 16384, 10000
SHORTEST_S = 1e-6


class UciSession:
    """A conversation with a GUI that speaks UCI."""

    def __init__(self, thinker: Thinker, games: Games, send: Send) -> None:
        """Begin at the start position of the first game.

        Args:
            thinker: Finds the moves.
            games: What may be played.
            send: Writes a line to the GUI; is called from two threads.
        """
        self._thinker, self._games, self._send = thinker, games, send
        self._game = EngineGame(games.first)
        self._search: RunningSearch | None = None
        self._num_lines, self._shows_chances, self._margin = 1, False, DEFAULT_MARGIN_S
        self._wishes: Wishes | None = None
        self._is_prepared = False
        self._commands: dict[str, Callable[[list[str]], None]] = {
            "uci": self._introduce,
            "isready": self._answer_ready,
            "ucinewgame": self._new_game,
            "setoption": self._set_option,
            "position": self._set_position,
            "go": self._go,
            "stop": self._stop,
            "ponderhit": self._ponder_hit,
            "debug": self._ignore,
            "register": self._ignore,
        }

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
            if command is None:
                raise BadInput(f"unknown command '{words[0][:SHOWN]}'")
            command(words[1:])
        except (BadInput, InvalidFen, InvalidVariant, IllegalAction) as error:
            self._complain(str(error))
        return True

    def close(self) -> None:
        """End a search that is running."""
        if self._search is not None:
            self._search.stop()

    # --- Commands -----------------------------------------------------------------------------

    def _introduce(self, _words: list[str]) -> None:
        self._send(f"id name {NAME} {version('asylum-zero')} {self._thinker.name}")
        self._send(f"id author {AUTHOR}")
        own = name_for_guis(describe(self._games.first))
        for option in (
            f"UCI_Variant type combo default {own} " + " ".join(f"var {name}" for name in self._games.spellings),
            f"MultiPV type spin default 1 min 1 max {MOST_LINES}",
            "UCI_ShowWDL type check default false",
            f"Hash type spin default {DEFAULT_MEGABYTES} min 1 max {MOST_MEGABYTES}",
            "Threads type spin default 1 min 1 max 1",
            "Ponder type check default false",
            f"Move Overhead type spin default {round(1000 * DEFAULT_MARGIN_S)} min 0 max {MOST_MARGIN_MS}",
        ):
            self._send(f"option name {option}")
        self._send("uciok")

    def _answer_ready(self, _words: list[str]) -> None:
        if not self._is_prepared and not self._is_searching():
            prepare_safely(self._thinker, self._game.position.game, self._complain)
            self._is_prepared = True
        self._send("readyok")

    def _new_game(self, _words: list[str]) -> None:
        self.close()
        self._game.set_up(None)

    def _set_option(self, words: list[str]) -> None:
        name, value = _option(words)
        self.close()
        if name == "uci_variant":
            self._game = EngineGame(self._games.find(value))
            self._is_prepared = False
        elif name == "multipv":
            self._num_lines = number(name, value, 1, MOST_LINES)
        elif name == "uci_showwdl":
            self._shows_chances = switch(name, value)
        elif name == "hash":
            self._thinker.megabytes = number(name, value, 1, MOST_MEGABYTES)
        elif name == "move overhead":
            self._margin = number(name, value, 0, MOST_MARGIN_MS) / 1000
        elif name == "threads":
            number(name, value, 1, 1)
        elif name == "ponder":
            switch(name, value)
        else:
            raise BadInput(f"unknown option '{name[:SHOWN]}'")

    def _set_position(self, words: list[str]) -> None:
        self.close()
        setting, moves = _split(words, "moves")
        if setting == ["startpos"]:
            self._game.follow(None, moves)
        elif setting[:1] == ["fen"]:
            self._game.follow(" ".join(setting[1:]), moves)
        else:
            raise BadInput(f"position: expected startpos or fen, got '{' '.join(setting)[:SHOWN]}'")

    def _go(self, words: list[str]) -> None:
        started = time.monotonic()
        self.close()
        root = self._game.root()
        self._wishes = parse_go(words, root.moves, self._complain)
        limits = self._wishes.limits(root.side, self._margin, self._num_lines)
        if not root.moves:
            self._send(f"info depth 0 score {'mate 0' if self._game.position.in_check else 'cp 0'}")
        if limits.seconds is not None:
            limits = replace(limits, seconds=max(limits.seconds - (time.monotonic() - started), 0.001))
        listener = Listener(self._report, self._answer, self._complain)
        self._search = RunningSearch(Task(self._thinker, root, limits), listener, held=self._wishes.is_held)

    def _stop(self, _words: list[str]) -> None:
        if not self._is_searching():
            raise BadInput("stop: no search is running")
        self.close()

    def _ponder_hit(self, _words: list[str]) -> None:
        if self._search is None or self._wishes is None or not self._is_searching():
            raise BadInput("ponderhit: no search is running")
        self._search.release(self._wishes.seconds(self._game.side, self._margin))

    def _ignore(self, _words: list[str]) -> None:
        """Take note of nothing: the command asks for nothing that there is."""

    # --- Searching ----------------------------------------------------------------------------

    def _is_searching(self) -> bool:
        return self._search is not None and self._search.is_running

    def _report(self, thought: Thought) -> None:
        per_second = round(thought.nodes / max(thought.seconds, SHORTEST_S))
        effort = f"nodes {thought.nodes} nps {per_second} time {round(1000 * thought.seconds)}"
        for place, line in enumerate(thought.lines, start=1):
            chances = f" wdl {' '.join(map(str, line.chances))}" if self._shows_chances else ""
            found = f"multipv {place} score {_score(line)}{chances} {effort} pv {' '.join(line.moves)}"
            self._send(f"info depth {thought.depth} seldepth {thought.farthest} {found}")

    def _answer(self, thought: Thought) -> None:
        best = thought.lines[0].moves if thought.lines else ("(none)",)
        self._send(f"bestmove {best[0]}" + (f" ponder {best[1]}" if len(best) > 1 else ""))

    def _complain(self, text: str) -> None:
        self._send(f"info string {text}")


def _score(line: Line) -> str:
    return f"cp {line.centipawns}" if line.mate is None else f"mate {line.mate}"


def _split(words: list[str], at: str) -> tuple[list[str], list[str]]:
    """Split words before the first that is `at`, which is dropped."""
    place = words.index(at) if at in words else len(words)
    return words[:place], words[place + 1 :]


def _option(words: list[str]) -> tuple[str, str]:
    """Return the name of an option in lower case, and the value."""
    named, value = _split(words, "value")
    if named[:1] != ["name"] or len(named) < 2:
        raise BadInput("setoption: expected 'name NAME value VALUE'")
    return " ".join(named[1:]).lower(), " ".join(value)
