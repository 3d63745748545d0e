"""python-chess as a peer of the benchmark, in a process of its own: python-chess is GPL, the product is not.

python tests/peers/python_chess_peer.py play SECONDS
python tests/peers/python_chess_peer.py perft SECONDS DEPTH

Works for SECONDS of its own CPU time at least, and prints what it did: {"units": ..., "seconds": ...}.
"""

import json
import random
import sys
import time
from collections.abc import Callable
from functools import partial

import chess

RNG = random.Random(0)


def play_game() -> int:
    """Play one game at random to mate, stalemate, bare kings, threefold repetition or 50 moves; return its plies."""
    board, plies = chess.Board(), 0
    while moves := list(board.legal_moves):
        board.push(moves[int(RNG.random() * len(moves))])
        plies += 1
        if board.halfmove_clock >= 100 or board.occupied.bit_count() == 2 or board.is_repetition(3):
            break
    return plies


def perft(board: chess.Board, depth: int) -> int:
    """Count leaves in bulk: the last ply is counted, not played."""
    if depth == 1:
        return board.legal_moves.count()
    nodes = 0
    for move in board.legal_moves:
        board.push(move)
        nodes += perft(board, depth - 1)
        board.pop()
    return nodes


def main(what: str, seconds: str, depth: str = "1") -> None:
    work: Callable[[], int] = play_game if what == "play" else partial(perft, chess.Board(), int(depth))
    units, start = 0, time.process_time()
    while (elapsed := time.process_time() - start) < float(seconds) or not units:
        units += work()
    print(json.dumps({"units": units, "seconds": elapsed}))


if __name__ == "__main__":
    main(*sys.argv[1:])
