"""A match of the engine against another UCI engine in chess, driven by python-chess, which is GPL: the product is not.

python -m tests.peers.stockfish_match alphabeta:4 /usr/games/stockfish --nodes 100 --games 40

The games come in pairs: one balanced opening of random moves, both engines with either colour. Nothing is adjudicated
but what the rules say and the limit of plies, which counts as a draw. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path

import chess
import chess.engine

from envs import load_variant
from train.openings import Opening, draw_openings
from train.ratings import elo_interval, score_interval

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "engine.py"
OPENING_PLIES = 6
MOST_PLIES = 400
TIMEOUT_S = 300
POINTS = {True: 1.0, False: 0.0, None: 0.5}


def ending(board: chess.Board) -> str | None:
    """Return how a game has ended, None while it goes on; nobody claims a draw that is not on the board."""
    if outcome := board.outcome():
        return outcome.termination.name.lower()
    ends = {
        "repetition": board.is_repetition(3),
        "fifty_moves": board.is_fifty_moves(),
        "ply_limit": board.ply() >= MOST_PLIES,
    }
    return next((name for name, has_come in ends.items() if has_come), None)


def play(opening: Opening, engines: list[chess.engine.SimpleEngine], limits: list[chess.engine.Limit]) -> chess.Board:
    """Play a game; the first engine is White."""
    board = chess.Board(opening.start_fen)
    for move in opening.moves:
        board.push_uci(move)
    while ending(board) is None:
        number = 0 if board.turn else 1
        board.push(engines[number].play(board, limits[number], game=id(board)).move)
    return board


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("player")
    parser.add_argument("opponent")
    parser.add_argument("--nodes", type=int, required=True, help="of the opponent's, each move")
    parser.add_argument("--games", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    script = [sys.executable, str(SCRIPT), given.player]
    openings = draw_openings(
        load_variant("chess"), given.games // 2, plies=OPENING_PLIES, seed=given.seed, balanced=True
    )
    own_limit = chess.engine.Limit(depth=100) if ":" in given.player else chess.engine.Limit(time=0.1)
    limits = [own_limit, chess.engine.Limit(nodes=given.nodes)]
    results, ends, pairs = Counter(), Counter(), []
    with (
        chess.engine.SimpleEngine.popen_uci(script, timeout=TIMEOUT_S) as own,
        chess.engine.SimpleEngine.popen_uci(given.opponent, timeout=TIMEOUT_S) as other,
    ):
        other.configure({"Threads": 1, "Hash": 16})
        for opening in openings:
            scores = []
            for is_white in (True, False):
                engines, turns = ([own, other], limits) if is_white else ([other, own], limits[::-1])
                board = play(opening, engines, turns)
                outcome = board.outcome()
                winner = None if outcome is None else outcome.winner
                scores.append(POINTS[None if winner is None else winner == is_white])
                ends[ending(board)] += 1
            results.update(scores)
            pairs.append(sum(scores) / 2)
            print(f"{len(pairs)}/{len(openings)} pairs, score {sum(pairs) / len(pairs):.3f}", file=sys.stderr)
        names = [own.id["name"], other.id["name"]]
    score = score_interval(pairs)
    print(json.dumps({
        "players": names, "opponent_nodes": given.nodes, "games": 2 * len(pairs), "seed": given.seed,
        "wins": results[1.0], "draws": results[0.5], "losses": results[0.0], "score": score.to_document(),
        "elo": elo_interval(score).to_document(), "terminations": dict(ends), "pair_scores": pairs,
    }))  # fmt: skip


if __name__ == "__main__":
    main()
