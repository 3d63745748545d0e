"""Count the sequences of legal moves of a game (perft), the standard check of a move generator.

python scripts/perft.py asylum 4
"""

import sys
import time
from pathlib import Path
from typing import Annotated

sys.path[0] = str(Path(__file__).resolve().parents[1])

import typer

from envs import engine_for, load_variant
from envs.perft import divide, perft
from scripts.command_line import new_app, print_json, with_exit_codes
from train.provenance import provenance

app = new_app()


@app.command()
@with_exit_codes
def count_moves(
    variant: Annotated[str, typer.Argument(help="built-in name or path of a variant file")],
    depth: Annotated[int, typer.Argument(min=0, max=60, help="plies")],
    *,
    fen: Annotated[str | None, typer.Option(help="where to begin; by default the start position")] = None,
    option: Annotated[list[str] | None, typer.Option(help="option to switch on; may be repeated")] = None,
    by_move: Annotated[bool, typer.Option("--divide", help="count below each first move too")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
) -> None:
    """Count the sequences of DEPTH legal moves; only mate, stalemate and a reached goal end one early."""
    if by_move and depth == 0:
        raise typer.BadParameter("needs a depth of at least 1", param_hint="--divide")
    game = engine_for(load_variant(variant, dict.fromkeys(option or [], True)))
    perft(game, 1, fen)  # the kernels are compiled, or loaded, before the clock starts
    start = time.perf_counter()
    counts = divide(game, depth, fen) if by_move else {}
    nodes = sum(counts.values()) if by_move else perft(game, depth, fen)
    seconds = time.perf_counter() - start
    if as_json:
        document = provenance(game.variant, config_hash=None, seeds={})
        document |= {"depth": depth, "nodes": nodes, "seconds": seconds, "fen": fen or game.variant.start_fen}
        print_json({**document, "divide": counts} if by_move else document)
        return
    for move, count in counts.items():
        print(f"{move}: {count}")
    print(f"total: {nodes}" if by_move else nodes)
    print(f"{seconds:.3f} s, {nodes / max(seconds, 1e-9) / 1e6:.1f} million nodes a second", file=sys.stderr)


if __name__ == "__main__":
    app()
