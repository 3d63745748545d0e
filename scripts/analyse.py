"""Analyse one position: the best lines, their values, and what is proven.

python scripts/analyse.py runs/mine --fen "6k1/5ppp/8/8/8/8/5PPP/R5K1 w - - 0 1" --simulations 2000 --lines 3
"""

import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer

sys.path[0] = str(Path(__file__).resolve().parents[1])

from rich.box import SIMPLE_HEAVY
from rich.table import Table

from envs import InvalidFen, VectorEnv, load_variant
from models.evaluator import Evaluator, UniformEvaluator
from scripts.command_line import PLUGIN_HELP, new_app, print_json, stdout_console, with_exit_codes
from train.analysis import Analysis, AnalysisResult, AnalysisSettings, Line
from train.players import Contestant, UnknownPlayer, common_variant, describe, make_player
from train.plugins import load_plugins
from train.progress import Reporter
from train.provenance import provenance

LONGEST_PV = 8
"""Moves of a line in the table."""
KNOWS_NOTHING = "a network that knows nothing"
app = new_app()


@app.command()
@with_exit_codes
def main(
    player: Annotated[str | None, typer.Argument(help="a run, a checkpoint, or untrained:RUN")] = None,
    variant: Annotated[str | None, typer.Option(help="The game; by default the player's.")] = None,
    option: Annotated[list[str] | None, typer.Option(help="Switch an option of --variant on.")] = None,
    fen: Annotated[str | None, typer.Option(help="The position; by default the start.")] = None,
    simulations: Annotated[int, typer.Option(min=1, help="Fewer if the position is proven before.")] = 1000,
    lines: Annotated[int, typer.Option(min=1, help="Moves to show, best first.")] = 5,
    batch_size: Annotated[int, typer.Option(min=1, max=1024, help="Positions evaluated at once.")] = 16,
    plugin: Annotated[list[Path] | None, typer.Option(metavar="FILE", help=PLUGIN_HELP)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Analyse a position of PLAYER's game; without PLAYER, with a network that knows nothing.

    Values are expected results of the player to move, from -1 to 1.
    """
    if option and variant is None:
        raise typer.BadParameter("--option switches an option of --variant: name the game too")
    if player is None and variant is None:
        raise typer.BadParameter("give PLAYER or --variant")
    load_plugins(plugin or [])
    contestant = make_player(player, simulations=simulations) if player else None
    given = load_variant(variant, dict.fromkeys(option or [], True)) if variant else None
    game = common_variant([contestant] if contestant else [], given)
    env = VectorEnv(game, 1)
    if fen is not None:
        env.set_fen(0, fen)
        if (outcome := env.outcome[0]) is not None:
            raise InvalidFen(f"the game is over ({outcome.termination.name.lower()}): nothing to analyse in {fen}")
    found = _analyse(env, _evaluator(contestant), simulations, AnalysisSettings(batch_size=batch_size))
    if as_json:
        config_hash = contestant.config.config_hash() if contestant and contestant.config else None
        basis = provenance(game, config_hash=config_hash, seeds={})
        print_json({**basis, "player": player, **_document(env, found, lines)})
    else:
        print(f"{describe(game)}, {player or KNOWS_NOTHING}, {found.simulations} simulations")
        print(env.fen(0))
        print(_verdict(found))
        stdout_console().print(_table(env, found, lines))


def _evaluator(contestant: Contestant | None) -> Evaluator:
    if contestant is None:
        return UniformEvaluator()
    evaluator: Evaluator | None = getattr(contestant.player, "evaluator", None)
    if evaluator is None:
        raise UnknownPlayer(f"player '{contestant.player.name}' has no network to analyse with")
    return evaluator


def _analyse(env: VectorEnv, evaluator: Evaluator, simulations: int, settings: AnalysisSettings) -> AnalysisResult:
    with Reporter().task("analysis", simulations) as update:

        def reporting(
            observations: npt.NDArray[np.float32], legal_actions: npt.NDArray[np.int32]
        ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
            update(analysis.simulations)
            return evaluator(observations, legal_actions)

        analysis = Analysis(env.game, reporting, settings)
        analysis.begin(env.states[0], env.histories[0])
        analysis.run(simulations)
    return analysis.result()


def _moves(env: VectorEnv, line: Line) -> list[str]:
    """Return a line's moves as text."""
    played = env.copy()
    moves = []
    for action in line.pv:
        moves.append(played.action_to_move(0, action))
        played.step([action])
    return moves


def _document(env: VectorEnv, found: AnalysisResult, lines: int) -> dict[str, Any]:
    return {
        "fen": env.fen(0),
        "value": found.value,
        "raw_value": found.raw_value,
        "result": found.result,
        "plies_to_end": found.plies_to_end,
        "simulations": found.simulations,
        "evaluations": found.evaluations,
        "lines": [
            {
                "move": env.action_to_move(0, line.action),
                "pv": _moves(env, line),
                "value": line.value,
                "visit_count": line.visit_count,
                "prior": line.prior,
                "result": line.result,
                "plies_to_end": line.plies_to_end,
            }
            for line in found.lines[:lines]
        ],
    }


def _verdict(found: AnalysisResult) -> str:
    plies = "ply" if found.plies_to_end == 1 else "plies"
    proof = f", proven {found.result} in {found.plies_to_end} {plies}" if found.result else ""
    return f"value {found.value:+.3f} (network {found.raw_value:+.3f}){proof}"


def _table(env: VectorEnv, found: AnalysisResult, lines: int) -> Table:
    table = Table(box=SIMPLE_HEAVY)
    table.add_column("move")
    for heading in ("value", "visits", "prior", "proven"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("line")
    for line in found.lines[:lines]:
        value = "" if line.value is None else f"{line.value:+.3f}"
        proven = f"{line.result} in {line.plies_to_end}" if line.result else ""
        moves = _moves(env, line)
        shown = " ".join([*moves[:LONGEST_PV], *(["..."] if len(moves) > LONGEST_PV else [])])
        table.add_row(moves[0], value, str(line.visit_count), f"{line.prior:.3f}", proven, shown)
    return table


if __name__ == "__main__":
    app()
