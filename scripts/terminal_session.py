"""A game in the terminal: reads moves and commands, shows boards and words. See scripts/play.py and docs/play.md."""

import shlex
import sys
import textwrap
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date
from itertools import islice
from pathlib import Path

from rich.console import Console

from envs import IllegalAction
from envs.describe import describe_piece
from envs.move_diagrams import legend, move_diagram
from envs.notation import SIDE_NAMES, parse_move
from models.storage import write_atomically
from scripts.terminal_board import board_text
from train.engine_thinkers import Limits, Line, PlayerThinker, Stop, Thinker, Thought
from train.human_game import (
    HumanGame,
    can_castle,
    codes_of,
    did_you_mean,
    effects,
    move_in_words,
    move_meant,
    moves_from,
    shown,
    standing_on,
    why_illegal,
)
from train.players import describe

PERSON = "human"
"""What a PGN calls the person."""
HINTS = 3
"""Moves that a hint shows."""
WIDTH = 80
Command = Callable[[str], str | None]


class Session:
    """One game of a person against a thinker."""

    def __init__(self, game: HumanGame, thinker: Thinker, *, side: int, limits: Limits, again: str = "") -> None:
        """Make a session.

        Args:
            game: Where it begins.
            thinker: The opponent; has been prepared.
            side: The person's, 0 White, 1 Black.
            limits: Of the opponent's thinking.
            again: The command that begins another such game, lacking `--fen`.
        """
        self.game, self.thinker, self.side, self.limits = game, thinker, side, limits
        self._again = again
        self.console = Console(highlight=False, soft_wrap=True)
        self._is_flipped = side == 1
        self._goes_on = True
        self._saved: dict[Path, bytes] = {}
        self._commands: dict[str, tuple[Command, str]] = {
            "help": (self._help, "this list"),
            "moves": (self._moves, "legal moves; `moves e2`: those of one piece"),
            "board": (self._board, "the board again"),
            "flip": (self._flip, "turn the board round"),
            "pieces": (self._pieces, "what the letters mean; `pieces n`: how one moves, with a diagram"),
            "hint": (self._hint, "what the opponent would play in your place"),
            "eval": (self._eval, "how the opponent judges the position"),
            "undo": (self._undo, "take your last move back, and the answer"),
            "fen": (self._fen, "the position as FEN"),
            "game": (self._game, "the moves so far"),
            "save": (self._save, "`save game.pgn`: write the game down"),
            "resign": (self._resign, "give up"),
            "quit": (self._quit, "leave"),
        }

    def run(self) -> None:
        """Play until the person leaves, the input ends, or Ctrl-C.

        Raises:
            KeyboardInterrupt: Ctrl-C.
        """
        sys.stdin.reconfigure(errors="replace")  # type: ignore[union-attr]  # whatever is typed gets an answer
        if sys.stdin.isatty():
            self._complete_words()
        self._greet()
        try:
            while self._goes_on:
                if not self.game.is_over and self.game.side != self.side:
                    self._let_opponent_move()
                else:
                    self._obey(self._ask())
        except EOFError:
            self.console.print()
        except KeyboardInterrupt:
            self.console.print()
            raise
        finally:
            self._say_how_to_play_on()

    # --- Turns ----------------------------------------------------------------------------------

    def _greet(self) -> None:
        variant = self.game.variant
        self._say(
            f"{variant.title} ({describe(variant)}): you are {SIDE_NAMES[self.side]}, against {self.thinker.name}."
        )
        if not self.game.is_over:
            examples = " or ".join(self.game.position.legal_moves()[:2])
            self._say(f"Type a move such as {examples}; help lists the commands.")
        self._show()

    def _ask(self) -> str:
        """Return the next line of input.

        Raises:
            EOFError: There is none.
        """
        number = self.game.position.fen().split()[-1]
        prompt = "game over> " if self.game.is_over else f"{number}. {SIDE_NAMES[self.game.side]}> "
        if sys.stdin.isatty():
            return input(prompt)
        line = sys.stdin.readline()
        if not line:
            raise EOFError
        self._say(f"{prompt}{line.rstrip()}")
        return line

    def _complete_words(self) -> None:
        """Let the tab key complete moves and commands, and the arrow keys recall lines, where Python has readline."""
        try:
            import readline
        except ImportError:
            return

        def completed(beginning: str, number: int) -> str | None:
            words = [*self._commands, *self.game.position.legal_moves()]
            return next(islice((word for word in words if word.startswith(beginning)), number, None), None)

        readline.set_completer(completed)
        readline.set_completer_delims(" ")
        readline.parse_and_bind("tab: complete")

    def _obey(self, line: str) -> None:
        """Play the move, or do what the command says, that a line holds."""
        word, _, rest = line.strip().partition(" ")
        word = {"?": "help", "exit": "quit"}.get(word.lower(), word.lower())
        if not word:
            return
        if word in self._commands:
            answer = self._commands[word][0](rest.strip())
            if answer:
                self._say(answer)
        elif self.game.is_over:
            self._say(f"The game is over: undo, save, quit{did_you_mean(word, list(self._commands))}")
        elif (move := move_meant(self.game.position, line.strip())) in self.game.position.legal_moves():
            self._play(move)
        else:
            self._say(self._refusal(word, move))

    def _refusal(self, word: str, move: str) -> str:
        try:
            parse_move(self.game.variant, move)
        except IllegalAction:
            question = did_you_mean(word, list(self._commands))
            if question:
                return f"{word}: no move and no command{question}"
        return why_illegal(self.game.position, move)

    def _play(self, move: str) -> None:
        self._say(f"You play {move} ({move_in_words(self.game.position, move)}).")
        self.game.push(move)
        if self.game.is_over:
            self._show()

    def _let_opponent_move(self) -> None:
        line = self._think(self.limits).lines[0]
        move = line.moves[0]
        judgement = "" if isinstance(self.thinker, PlayerThinker) else f" It expects {self._judgement(line)}."
        self._say(f"{self.thinker.name} plays {move} ({move_in_words(self.game.position, move)}).{judgement}")
        self.game.push(move)
        self._show()

    def _think(self, limits: Limits) -> Thought:
        """Let the thinker think, in a thread so that Ctrl-C is heard."""
        stop = Stop()
        with ThreadPoolExecutor(1) as pool, self.console.status("thinking"):
            thought = pool.submit(self.thinker.think, self.game.root(), limits, stop, lambda _: None)
            try:
                return thought.result()
            except BaseException:
                stop.set()
                raise

    def _judgement(self, line: Line) -> str:
        """Return what a line promises to the player to move."""
        side, other = SIDE_NAMES[self.game.side], SIDE_NAMES[1 - self.game.side]
        if line.mate is not None:
            return f"{side if line.mate > 0 else other} to win in {abs(line.mate)}"
        win, draw, _ = line.chances
        return f"{side} to score {(win + draw / 2) / 10:.0f} % ({line.centipawns / 100:+.2f})"

    # --- Commands -------------------------------------------------------------------------------

    def _help(self, rest: str) -> str:
        lines = [f"  {name:<8}{meaning}" for name, (_, meaning) in self._commands.items()]
        castling = " Castling is the king's move, or O-O and O-O-O." if can_castle(self.game.position) else ""
        return "\n".join([f"A move is its two squares, and the letter of what a pawn becomes.{castling}", *lines])

    def _moves(self, rest: str) -> str:
        position = self.game.position
        if not rest:
            return " ".join(position.legal_moves()) or "none"
        try:
            mine, standing = moves_from(position, rest.lower()), standing_on(position, rest.lower())
        except ValueError as error:
            return f"{error}; expected one, as in moves e2"
        if standing is None:
            return f"There is no piece on {rest}."
        name = f"{SIDE_NAMES[standing.side]}'s {standing.name} on {rest}"
        lines = [f"  {move}  {', '.join(effects(position, move))}".rstrip() for move in mine]
        return "\n".join([f"{name} may go:", *lines]) if mine else f"{name} has no legal move now."

    def _board(self, rest: str) -> None:
        self._show()

    def _flip(self, rest: str) -> None:
        self._is_flipped = not self._is_flipped
        self._show()

    def _pieces(self, rest: str) -> str:
        variant = self.game.variant
        number = variant.type_by_letter.get(rest.upper())
        if number is None:
            kinds = [f"  {piece.letter} {piece.letter.lower()}  {piece.name}" for piece in variant.piece_types]
            return "\n".join(
                [
                    *([f"No piece has the letter {rest}."] if rest else []),
                    f"White's and Black's letters; pieces {variant.piece_types[0].letter.lower()} says how one moves.",
                    *kinds,
                ]
            )
        entry, drawing = describe_piece(variant, number), move_diagram(variant, number)
        marks = [f"  {mark}  {meaning}" for mark, meaning in legend(drawing).items()]
        sentences = textwrap.wrap(" ".join(entry.sentences), WIDTH, break_on_hyphens=False)
        return "\n".join([entry.heading, *sentences, "", textwrap.indent(drawing, "  "), "", *marks])

    def _hint(self, rest: str) -> str:
        if self.game.is_over:
            return "The game is over."
        if isinstance(self.thinker, PlayerThinker):
            return f"{self.thinker.name} would play {self._think(self.limits).lines[0].moves[0]}."
        lines = self._think(replace(self.limits, num_lines=HINTS)).lines
        return "\n".join(f"  {line.moves[0]}  {self._judgement(line)}: {shown(list(line.moves))}" for line in lines)

    def _eval(self, rest: str) -> str:
        if self.game.is_over:
            return "The game is over."
        if isinstance(self.thinker, PlayerThinker):
            return f"{self.thinker.name} judges no positions; a network or alphabeta does."
        return f"{self.thinker.name} expects {self._judgement(self._think(self.limits).lines[0])}."

    def _undo(self, rest: str) -> str | None:
        taken = self.game.undo(self.side)
        if not taken:
            return "There is no move of yours to take back."
        self._say(f"Taken back: {' '.join(taken)}.")
        self._show()
        return None

    def _fen(self, rest: str) -> str:
        return self.game.position.fen()

    def _game(self, rest: str) -> str:
        return self._pgn().partition("\n\n")[2].strip()

    def _save(self, rest: str) -> str:
        if not rest:
            return "Say where: save game.pgn"
        path, text = Path(rest).expanduser(), self._pgn().encode()
        kept = path.resolve()
        try:
            if path.exists() and kept not in self._saved:
                return f"{path} exists: choose another name."
            if path.exists() and path.read_bytes() != self._saved[kept]:
                return f"{path} has been changed by another program: choose another name."
            write_atomically(path, text)
        except OSError as error:
            return f"Not saved: {error}"
        self._saved[kept] = text
        return f"Saved as {path}."

    def _resign(self, rest: str) -> str | None:
        if self.game.is_over:
            return "The game is over."
        self.game.resigned = self.side
        return self.game.ending()

    def _quit(self, rest: str) -> None:
        self._goes_on = False

    # --- Output ---------------------------------------------------------------------------------

    def _pgn(self) -> str:
        names = (self.thinker.name, PERSON) if self.side else (PERSON, self.thinker.name)
        return self.game.pgn(names, {"Event": "a game in the terminal", "Date": date.today().strftime("%Y.%m.%d")})

    def _say(self, text: str) -> None:
        self.console.print(text, markup=False)

    def _show(self) -> None:
        """Show the board, and what there is to say of it."""
        position = self.game.position
        moved = parse_move(position.variant, self.game.moves[-1])[:2] if self.game.moves else ()
        self.console.print()
        self.console.print(board_text(position.variant, codes_of(position), moved=moved, flipped=self._is_flipped))
        self.console.print()
        if self.game.is_over:
            self._say(self.game.ending())
        elif position.in_check:
            self._say(f"{SIDE_NAMES[self.game.side]} is in check.")

    def _say_how_to_play_on(self) -> None:
        if self.game.moves and not self.game.is_over:
            self._say(f"To play on from here: {self._again} --fen {shlex.quote(self.game.position.fen())}")
