"""The peers that the benchmark measures against: who they are, how to get them, what they must be beaten by.

OpenSpiel runs in this process. What imports python-chess (GPL) runs as a program of tests/peers/ in a process of its
own, and Fairy-Stockfish (GPL) as a UCI program; starting them is not counted.
"""

import json
import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from scripts.bench_rounds import (
    ASYLUM_PERFT,
    ASYLUM_PLAY,
    CHESS_PERFT,
    CHESS_PLAY,
    CHESS_PLAY_ALONE,
    Contestant,
    Duel,
    timed,
)

PROGRAMS = Path(__file__).resolve().parents[1] / "tests" / "peers"
GAME_PROGRAMS = "/usr/games"
"""Where Debian installs Fairy-Stockfish; not every PATH has it."""
STEPS_PER_LOOK = 1024
TIMEOUT_S = 600

OPEN_SPIEL, OPEN_SPIEL_MASK = "OpenSpiel chess: random play", "OpenSpiel chess: random play with mask"
PYTHON_CHESS_PLAY, PYTHON_CHESS_PERFT = "python-chess: random play", "python-chess: bulk perft"
PETTING_ZOO = "PettingZoo chess_v6: random play"
FAIRY_STOCKFISH = "Fairy-Stockfish chess: bulk perft"

DUELS = (
    Duel(CHESS_PLAY, OPEN_SPIEL, 4),
    Duel(CHESS_PLAY, OPEN_SPIEL_MASK, 12),
    Duel(CHESS_PLAY, PYTHON_CHESS_PLAY, 25),
    Duel(CHESS_PLAY, PETTING_ZOO, 500),
    Duel(CHESS_PLAY_ALONE, OPEN_SPIEL),
    Duel(CHESS_PLAY_ALONE, OPEN_SPIEL_MASK),
    Duel(CHESS_PLAY_ALONE, PYTHON_CHESS_PLAY, 4),
    Duel(ASYLUM_PLAY, OPEN_SPIEL, 2.5),
    Duel(CHESS_PERFT, FAIRY_STOCKFISH, 2),
    Duel(CHESS_PERFT, PYTHON_CHESS_PERFT, 50),
    Duel(ASYLUM_PERFT, PYTHON_CHESS_PERFT, 45),
)


@dataclass
class Peers:
    """The peers of this machine.

    Attributes:
        contestants: Of those that are here.
        versions: Of those that are here, by name.
        missing: How to get the others, by name.
    """

    contestants: list[Contestant] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _PythonPeer:
    """A peer that pip installs: its distribution, the modules that it needs, and what makes its contestants."""

    distribution: str
    modules: tuple[str, ...]
    enter: Callable[[float, int], list[Contestant]]


def find_peers(seconds: float, depth: int) -> Peers:
    """Look for the peers.

    Args:
        seconds: CPU seconds of one sample, at least.
        depth: Of their perft from the start position.
    """
    found = Peers()
    for name, peer in _PYTHON_PEERS.items():
        if all(find_spec(module) for module in peer.modules):
            found.versions[name] = version(peer.distribution)
            found.contestants += peer.enter(seconds, depth)
        else:
            found.missing[name] = "pip install -c constraints.txt -e '.[bench]'"
    program = shutil.which("fairy-stockfish", path=os.pathsep.join([os.environ.get("PATH", ""), GAME_PROGRAMS]))
    if program is None:
        found.missing["Fairy-Stockfish"] = "apt install fairy-stockfish"
    else:
        found.versions["Fairy-Stockfish"] = _uci_name(program)
        found.contestants.append(_fairy_stockfish(program, seconds, depth))
    return found


# --- In this process ----------------------------------------------------------------------------


def _open_spiel(seconds: float, with_mask: bool) -> Contestant:
    import pyspiel

    game, rng = pyspiel.load_game("chess"), np.random.default_rng(0)
    state = game.new_initial_state()

    def play() -> int:
        nonlocal state
        for number in rng.random(STEPS_PER_LOOK).tolist():
            actions = state.legal_actions()
            if with_mask:
                state.legal_actions_mask()
            state.apply_action(actions[int(number * len(actions))])
            if state.is_terminal():
                state = game.new_initial_state()
        return STEPS_PER_LOOK

    return Contestant(OPEN_SPIEL_MASK if with_mask else OPEN_SPIEL, "steps", partial(timed, play, seconds))


# --- Programs of tests/peers --------------------------------------------------------------------


def run_program(file: str, *words: str) -> tuple[int, float]:
    """Run a peer's program; return the units it did and the CPU seconds that it says they took.

    Raises:
        OSError: It failed; the message has its last words.
    """
    command = [sys.executable, str(PROGRAMS / file), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode:
        raise OSError(f"peer {file} failed: {done.stderr.strip() or f'exit code {done.returncode}'}")
    result = json.loads(done.stdout.splitlines()[-1])
    return result["units"], result["seconds"]


def _python_chess(seconds: float, depth: int) -> list[Contestant]:
    run = partial(run_program, "python_chess_peer.py")
    return [
        Contestant(PYTHON_CHESS_PLAY, "steps", partial(run, "play", str(seconds))),
        Contestant(PYTHON_CHESS_PERFT, f"nodes, depth {depth}", partial(run, "perft", str(seconds), str(depth))),
    ]


def _petting_zoo(seconds: float, _depth: int) -> list[Contestant]:
    return [Contestant(PETTING_ZOO, "steps", partial(run_program, "pettingzoo_peer.py", "play", str(seconds)))]


_PYTHON_PEERS = {
    "OpenSpiel": _PythonPeer(
        "open_spiel", ("pyspiel",), lambda seconds, _: [_open_spiel(seconds, mask) for mask in (False, True)]
    ),
    "python-chess": _PythonPeer("chess", ("chess",), _python_chess),
    "PettingZoo": _PythonPeer("pettingzoo", ("pettingzoo", "chess", "pygame"), _petting_zoo),
}

# --- A UCI program ------------------------------------------------------------------------------


def _uci(program: str, *commands: str) -> tuple[str, float]:
    """Let a UCI program start, obey and quit; return what it printed and the CPU seconds that it took in all."""
    script = "\n".join(["uci", "isready", *commands, "quit", ""])
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([program], input=script, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise OSError(f"{program} failed with exit code {done.returncode}: {done.stderr.strip()}")
    return done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _uci_name(program: str) -> str:
    found = re.search(r"^id name (?:Fairy-Stockfish )?(.*)$", _uci(program)[0], re.MULTILINE)
    return found[1].strip() if found else "unknown"


def _fairy_stockfish(program: str, seconds: float, depth: int) -> Contestant:
    """Count in one process as often as it takes to fill the time; less the time of a process that only starts."""
    repeats = 1

    def sample() -> tuple[int, float]:
        nonlocal repeats
        _, start_up = _uci(program)
        while True:
            output, elapsed = _uci(program, "position startpos", *[f"go perft {depth}"] * repeats)
            elapsed -= start_up
            if elapsed > 0 and elapsed >= seconds:
                return sum(int(nodes) for nodes in re.findall(r"^Nodes searched: (\d+)", output, re.MULTILINE)), elapsed
            repeats *= 2

    return Contestant(FAIRY_STOCKFISH, f"nodes, depth {depth}", sample)
