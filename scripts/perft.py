"""Count the sequences of legal moves of a game (perft), the standard check of a move generator."""

import json
import sys
import time
from pathlib import Path
from typing import Annotated

sys.path[0] = str(Path(__file__).resolve().parents[1])

import typer

from envs import InvalidFen, InvalidVariant, engine_for, load_variant
from envs.perft import divide, perft
from envs.provenance import provenance
from envs.rows import warm_up


def main(
    variant: Annotated[str, typer.Argument(help="A built-in name or the path of a variant file.")],
    depth: Annotated[int, typer.Argument(min=0, max=60, help="Plies.")],
    fen: Annotated[str | None, typer.Option(help="Where to begin; the start position by default.")] = None,
    option: Annotated[
        list[str] | None, typer.Option(help="Switch an option of the game on; may be repeated.")
    ] = None,
    by_move: Annotated[bool, typer.Option("--divide", help="Count below each first move as well.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Count the sequences of DEPTH legal moves; only checkmate, stalemate and a reached goal end one early."""
    if by_move and depth == 0:
        raise typer.BadParameter("needs a depth of at least 1", param_hint="--divide")
    try:
        game = engine_for(load_variant(variant, dict.fromkeys(option or (), True)))
        warm_up(game)
        start = time.perf_counter()
        counts = divide(game, depth, fen) if by_move else {}
        nodes = sum(counts.values()) if by_move else perft(game, depth, fen)
        seconds = time.perf_counter() - start
    except (InvalidVariant, InvalidFen) as error:
        sys.exit(str(error))
    if as_json:
        document = {
            **provenance(game.variant),
            "depth": depth,
            "nodes": nodes,
            "seconds": seconds,
            "fen": fen or game.variant.start_fen,
            **({"divide": counts} if by_move else {}),
        }
        print(json.dumps(document))
        return
    for move, count in counts.items():
        print(f"{move}: {count}")
    print(f"{'total: ' if by_move else ''}{nodes}")
    print(f"{seconds:.3f} s, {nodes / max(seconds, 1e-9) / 1e6:.1f} million nodes a second", file=sys.stderr)


if __name__ == "__main__":
    typer.run(main)
