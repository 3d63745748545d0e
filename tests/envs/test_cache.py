"""The cache of compiled kernels: never stale, never in the way of a read-only install; and read-only arrays.

Each test of the cache runs its own copy of `envs` in fresh processes with a cache of their own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from envs import (
    IllegalAction,
    VectorEnv,
    boards,
    engine_for,
    game_kernels,
    kernels,
    lane_kernels,
    legal_actions,
    load_variant,
    observe,
    piece_counts,
    read_fen,
    replay_actions,
    to_play,
)
from envs.rows import format_fen, legal_moves

PACKAGE = Path(kernels.__file__).parent
TIMEOUT_S = 300

# A small callee in one kernel file and its caller in another: what Numba alone gets wrong, cheap to compile.
CALLEE = "\n\n@njit\ndef answer(number):\n    return number + 1\n"
CALLER = "\n\nfrom envs.kernels import answer\n\n\n@njit\ndef ask(number):\n    return answer(number)\n"
ASK = """
import json
from envs import jit, lane_kernels
answer = int(lane_kernels.ask(40))
hits = sum(lane_kernels.ask.stats.cache_hits.values())
print(json.dumps({"answer": answer, "hits": hits, "cache": str(jit.CACHE_DIR)}))
"""
CLOCK = """
import json
import numpy as np
from envs import VectorEnv, jit, lane_kernels
env = VectorEnv("gardner", 1)
env.set_fen(0, "4k/5/5/5/K1R2 w - - 7 1")
env.step(np.array([env.move_to_action(0, "a1a2")]))
hits = sum(lane_kernels.step_all.stats.cache_hits.values())
print(json.dumps({"clock": int(env.fen(0).split(" ")[4]), "hits": hits}))
"""
# Permission bits do not bind root while it has its capabilities. `sys.prefix` is the environment that is read-only.
WITHOUT_POWERS = """
import ctypes, os, sys
if os.geteuid() == 0:
    header, none = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    assert ctypes.CDLL(None).capset(header, none) == 0
sys.prefix = {prefix!r}
try:
    open(sys.prefix + "/file", "w")
except PermissionError:
    pass
else:
    raise AssertionError("the environment can be written")
"""


@pytest.fixture
def install() -> Iterator[Path]:
    """Return a folder with a copy of `envs`, extended by a callee and its caller, that everybody may read."""
    folder = Path(tempfile.mkdtemp(prefix="asylum-zero-test-"))
    shutil.copytree(PACKAGE, folder / "envs", ignore=shutil.ignore_patterns("__pycache__"))
    for name, text in (("kernels.py", CALLEE), ("lane_kernels.py", CALLER)):
        file = folder / "envs" / name
        file.write_text(file.read_text() + text)
    folder.chmod(0o755)
    yield folder
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755)
    shutil.rmtree(folder)


def run(install: Path, code: str, **environment: str) -> Any:
    """Run code on a copy in a new process; what it prints is JSON."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA", "COV", "PYTHON"))}
    environment = {**inherited, "PYTHONPATH": str(install), "PYTHONDONTWRITEBYTECODE": "1", **environment}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=install, env=environment, capture_output=True, text=True, check=False,
        timeout=TIMEOUT_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def edit(install: Path, name: str, old: str, new: str) -> None:
    file = install / "envs" / name
    text = file.read_text()
    assert text.count(old) == 1, (name, old)
    file.write_text(text.replace(old, new))


# --- Never stale ------------------------------------------------------------------------------


def test_an_edited_callee_in_another_file_is_seen_by_the_next_process(install: Path) -> None:
    cache = str(install / "cache")
    assert run(install, ASK, NUMBA_CACHE_DIR=cache)["answer"] == 41
    again = run(install, ASK, NUMBA_CACHE_DIR=cache)
    assert (again["answer"], again["hits"]) == (41, 1)
    edit(install, "kernels.py", "return number + 1", "return number + 2")
    assert run(install, ASK, NUMBA_CACHE_DIR=cache)["answer"] == 42


def test_a_cache_that_is_not_named_by_its_sources_would_be_stale(install: Path) -> None:
    """The planted fault: without the hash of the sources the test above fails."""
    cache = str(install / "cache")
    edit(install, "jit.py", "for file in _kernel_sources():", "for file in ():")
    assert run(install, ASK, NUMBA_CACHE_DIR=cache)["answer"] == 41
    edit(install, "kernels.py", "return number + 1", "return number + 2")
    assert run(install, ASK, NUMBA_CACHE_DIR=cache)["answer"] == 41


@pytest.mark.slow
def test_an_edited_rule_is_seen_by_the_next_process(install: Path) -> None:
    """The same with the whole chain of kernels: the half-move clock of `make` counts twice."""
    cache = str(install / "cache")
    assert run(install, CLOCK, NUMBA_CACHE_DIR=cache)["clock"] == 8
    again = run(install, CLOCK, NUMBA_CACHE_DIR=cache)
    assert (again["clock"], again["hits"]) == (8, 1)
    edit(install, "kernels.py", "clock += U1\n", "clock += U1 + U1\n")
    assert run(install, CLOCK, NUMBA_CACHE_DIR=cache)["clock"] == 9


def test_every_file_with_kernels_is_in_the_name_of_the_cache() -> None:
    """A kernel lives where `jit.py` looks for it, and nowhere else."""
    from envs import jit

    root = PACKAGE.parent
    named = set(jit._kernel_sources())
    for folder in ("envs", "models", "train"):
        for file in (root / folder).rglob("*.py"):
            if "@njit" in file.read_text():
                assert file in named, f"{file} has kernels, but is not in the name of their cache"


# --- Read-only installs -----------------------------------------------------------------------


def prepare_read_only(install: Path) -> tuple[Path, str]:
    """Make a copy and its environment read-only; return the one folder that can be written, and code to run."""
    home, prefix = install / "home", install / "prefix"
    home.mkdir()
    prefix.mkdir()
    for path in [*install.rglob("*"), install]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    home.chmod(0o777)
    return home, WITHOUT_POWERS.format(prefix=str(prefix)) + ASK


def test_a_read_only_install_caches_in_the_users_folder(install: Path) -> None:
    home, code = prepare_read_only(install)
    for hits in (0, 1):
        result = run(install, code, HOME=str(home), TMPDIR=str(home))
        assert (result["answer"], result["hits"]) == (41, hits)
        assert Path(result["cache"]).is_relative_to(home / ".cache" / "asylum-zero")
    assert not list((install / "envs").rglob("*.nbi"))


def test_a_named_cache_that_cannot_be_written_is_passed_over(install: Path) -> None:
    home, code = prepare_read_only(install)
    result = run(install, code, HOME=str(home), TMPDIR=str(home), NUMBA_CACHE_DIR=str(install / "prefix" / "cache"))
    assert result["answer"] == 41
    assert Path(result["cache"]).is_relative_to(home / ".cache" / "asylum-zero")


def test_without_a_home_the_cache_is_in_the_temporary_folder(install: Path) -> None:
    temporary, code = prepare_read_only(install)
    result = run(install, code, HOME=str(install / "prefix"), TMPDIR=str(temporary))
    assert result["answer"] == 41
    assert Path(result["cache"]).is_relative_to(temporary)


def test_without_any_writable_folder_the_error_names_the_folders(install: Path) -> None:
    _, code = prepare_read_only(install)
    prefix = str(install / "prefix")
    code = code.replace("import ctypes", f"import tempfile; tempfile.tempdir = {prefix!r}\nimport ctypes", 1)
    with pytest.raises(AssertionError, match="no writable folder for compiled kernels among"):
        run(install, code, HOME=prefix)


# --- Read-only arrays -------------------------------------------------------------------------


def frozen(array: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return a read-only array without a base that could be written, as Ray's object store gives them."""
    copy = np.frombuffer(np.ascontiguousarray(array).tobytes(), np.asarray(array).dtype)
    assert not copy.flags.writeable
    return copy.reshape(np.shape(array))


def signatures() -> dict[str, int]:
    """Count how often each kernel has been compiled or loaded in this process."""
    found = {}
    for module in (kernels, game_kernels, lane_kernels):
        for name, value in vars(module).items():
            if hasattr(value, "signatures"):
                found[f"{module.__name__}.{name}"] = len(value.signatures)
    return found


@pytest.mark.parametrize("name", ["gardner", "asylum"])
def test_read_only_arrays_do_everywhere_what_others_do_without_another_compilation(name: str) -> None:
    game = engine_for(load_variant(name))
    env, other = VectorEnv(name, 4, seed=1), VectorEnv(name, 4, seed=1)
    running = np.array([True, True, False, True])
    everything(game, env.states.copy())
    env.step(env.sample_actions(), running)
    other.step(other.sample_actions(), running)
    env.reset(~running)
    other.reset(~running)
    before = signatures()
    for _ in range(12):
        actions = env.sample_actions()
        assert (actions == other.sample_actions()).all()
        env.step(actions, running)
        other.step(frozen(actions), frozen(running))
        for one, two in zip(everything(game, env.states.copy()), everything(game, frozen(other.states))):
            np.testing.assert_array_equal(one, two)
    env.reset(running)
    other.reset(frozen(running))
    np.testing.assert_array_equal(env.states, other.states)
    with pytest.raises(IllegalAction):
        other.step(frozen(np.full(4, env.num_actions)), frozen(running))
    assert signatures() == before


def everything(game: Any, rows: npt.NDArray[np.uint64]) -> list[npt.NDArray[Any]]:
    """Return what every public function says about rows."""
    actions, counts = legal_actions(game, rows)
    first = actions[:1, 0]
    fen = format_fen(game, rows[0])
    replayed, _ = replay_actions(game, fen, first if rows.flags.writeable else frozen(first))
    words, numbers, checks = legal_moves(game, rows)
    words[np.arange(words.shape[1]) >= numbers[:, None]] = 0
    return [actions, counts, observe(game, rows), boards(game, rows), to_play(game, rows), piece_counts(game, rows),
            words, numbers, checks, replayed, read_fen(game, fen)]  # fmt: skip


def test_planes_are_not_written_into_a_read_only_array() -> None:
    game = engine_for(load_variant("gardner"))
    rows = read_fen(game, game.variant.start_fen)[None]
    with pytest.raises(ValueError, match="writable"):
        observe(game, rows, frozen(np.zeros((1, *game.observation_shape), np.float32)))


@pytest.mark.parametrize("kind", [np.int16, np.int32, np.int64, np.uint16, np.uint32, np.uint64])
def test_actions_of_any_integer_type_and_stride_are_played(kind: type[np.integer[Any]]) -> None:
    env, other = VectorEnv("gardner", 3, seed=2), VectorEnv("gardner", 3, seed=2)
    actions = env.sample_actions()
    spread = np.zeros(6, kind)
    spread[::2] = actions
    assert (spread[::2] == actions).all()
    env.step(actions)
    other.step(spread[::2])
    np.testing.assert_array_equal(env.states, other.states)
