"""Play a game in the terminal against any player.

python scripts/play.py greedy --variant asylum
python scripts/play.py runs/mine --colour black --simulations 400
"""

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated

sys.path[0] = str(Path(__file__).resolve().parents[1])

from scripts.loading import ends_quietly

with ends_quietly(tells=__name__ == "__main__"):
    import numpy as np
    import typer

    from envs import engine_for, load_variant
    from scripts.command_line import PLUGIN_HELP, new_app, with_exit_codes
    from scripts.terminal_session import Session
    from train.engine_players import make_thinker
    from train.engine_thinkers import Limits
    from train.human_game import HumanGame
    from train.players import ALPHABETA, UnknownPlayer
    from train.plugins import load_plugins

COLOURS = ("white", "black")
DEFAULT_SECONDS = 1.0
"""For an alpha-beta search without any limit."""
DRAWN_ANEW = ("player", "colour", "fen", "seed")
"""Parameters that are not repeated as they are in the command that plays on."""
app = new_app()


@app.command()
@with_exit_codes
def main(
    context: typer.Context,
    player: Annotated[str, typer.Argument(help="alphabeta, alphabeta:3, random, greedy, a run or a checkpoint")],
    variant: Annotated[str | None, typer.Option(help="The game; by default the player's.")] = None,
    option: Annotated[list[str] | None, typer.Option(help="Switch an option of --variant on.")] = None,
    colour: Annotated[str, typer.Option(help="Yours: white, black or random.")] = "white",
    fen: Annotated[str | None, typer.Option(help="Where the game begins; by default the start.")] = None,
    simulations: Annotated[int, typer.Option(min=1, help="Per move, for a network.")] = 400,
    seconds: Annotated[float | None, typer.Option(min=0.001, help="Per move at most, for players that search.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Of the player and of a random colour or start.")] = None,
    plugin: Annotated[list[Path] | None, typer.Option(metavar="FILE", help=PLUGIN_HELP)] = None,
) -> None:
    """Play against PLAYER. Moves are typed as e2e4, or e7e8q to promote; `help` lists the commands."""
    if option and variant is None:
        raise typer.BadParameter("--option switches an option of --variant: name the game too")
    if colour not in (*COLOURS, "random"):
        raise typer.BadParameter(f"--colour: expected white, black or random, got '{colour}'")
    load_plugins(plugin or [])
    rng = np.random.default_rng(seed)
    given = load_variant(variant, dict.fromkeys(option or [], True)) if variant else None
    thinker, game = make_thinker(player, given, simulations=simulations, seed=int(rng.integers(1 << 31)))
    if game is None:
        raise UnknownPlayer(f"{player} plays any game: say which one with --variant")
    start = fen or game.start_fens[int(rng.integers(len(game.start_fens)))]
    side = int(rng.integers(2)) if colour == "random" else COLOURS.index(colour)
    thinker.prepare(engine_for(game))
    limits = Limits(seconds=seconds or (DEFAULT_SECONDS if player == ALPHABETA else None))
    Session(HumanGame(game, start), thinker, side=side, limits=limits, again=_again(context, side)).run()


def _again(context: typer.Context, side: int) -> str:
    """Return the command that was given, for another game of a side from wherever `--fen` is made to say."""
    words = ["python", os.path.relpath(__file__), context.params["player"]]
    for parameter in context.command.params:
        name = parameter.name or ""
        source, given = context.get_parameter_source(name), context.params.get(name)
        if source is not None and source.name == "COMMANDLINE" and name not in DRAWN_ANEW:
            for value in given if isinstance(given, list | tuple) else [given]:
                words += [parameter.opts[0], str(value)]
    return shlex.join([*words, "--colour", COLOURS[side]])


if __name__ == "__main__":
    app()
