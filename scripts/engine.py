"""Play and analyse under a chess GUI, which starts this program and speaks UCI or XBoard's protocol with it.

python scripts/engine.py alphabeta
python scripts/engine.py runs/asylum --protocol uci
"""

import sys
from collections.abc import Iterable
from contextlib import suppress
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Annotated, Any

sys.path[0] = str(Path(__file__).resolve().parents[1])

from scripts.loading import ends_quietly

with ends_quietly():
    import typer

from train.engine_greeting import PROTOCOLS, WAIT, XBOARD, protocol_of

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
_writing = Lock()


@app.command()
def main(
    player: Annotated[str, typer.Argument(help="alphabeta, alphabeta:3, random, greedy, a run or a checkpoint")],
    variant: Annotated[
        str | None, typer.Option(help="The one game to offer; by default all that PLAYER plays.")
    ] = None,
    option: Annotated[list[str] | None, typer.Option(help="Switch an option of --variant on.")] = None,
    protocol: Annotated[
        str | None, typer.Option(help="uci or xboard; by default what the first line asks for.")
    ] = None,
    simulations: Annotated[int | None, typer.Option(min=1, help="Of a network, for a move at most.")] = None,
    batch_size: Annotated[int, typer.Option(min=1, max=1024, help="Positions a network evaluates at once.")] = 16,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Of a player that draws lots; by default other choices each time.")
    ] = None,
    plugin: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="A file of your own code, which runs with your rights.")
    ] = None,
) -> None:
    """Let PLAYER play under a GUI: commands come on stdin, answers go to stdout."""
    if option and variant is None:
        raise typer.BadParameter("--option switches an option of --variant: name the game too")
    if protocol is not None and protocol not in PROTOCOLS:
        raise typer.BadParameter(f"--protocol: expected {' or '.join(PROTOCOLS)}, got '{protocol}'")
    sys.stdin.reconfigure(errors="replace")  # type: ignore[union-attr]
    lines = filter(str.strip, sys.stdin)
    with ends_quietly():
        first = next(lines, None)
        if first is None:
            return
        spoken = protocol_of(first, protocol)
        if spoken == XBOARD:
            _send(WAIT)
        from scripts.command_line import with_exit_codes  # takes seconds to load

    with_exit_codes(_converse)(
        chain([first], lines), spoken, player, given=(variant, option or []), plugins=plugin or [],
        simulations=simulations, batch_size=batch_size, seed=seed,
    )  # fmt: skip


def _converse(
    lines: Iterable[str],
    protocol: str,
    player: str,
    *,
    given: tuple[str | None, list[str]],
    plugins: list[Path],
    **settings: Any,
) -> None:
    """Obey lines until one is `quit` or there are no more."""
    with ends_quietly():
        from envs import load_variant
        from train.engine_games import Games
        from train.engine_players import make_thinker
        from train.engine_uci import UciSession
        from train.engine_xboard import XBoardSession
        from train.plugins import load_plugins

    load_plugins(plugins)
    name, options = given
    thinker, game = make_thinker(player, load_variant(name, dict.fromkeys(options, True)) if name else None, **settings)
    session = (XBoardSession if protocol == XBOARD else UciSession)(thinker, Games(game, only=game is not None), _send)
    for line in lines:
        if not session.obey(line):
            return
    session.close()


def _send(line: str) -> None:
    """Write a line, from whatever thread; a GUI that has gone is noticed by the end of its input."""
    with _writing, suppress(BrokenPipeError):
        print(line, flush=True)


if __name__ == "__main__":
    app()
