"""Numba with a disk cache that never serves stale machine code.

Numba's cache does not see an edited callee in another file, so the cache folder is named by a hash of the Numba
version and of every kernel source, and is chosen before any kernel is declared. It lies inside the environment when
that is writable, else in the user's cache folder, else in a temporary one. Import `njit` from here, not from Numba.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

KERNEL_FOLDERS = ("envs", "train")
FROZEN_MODULES = ("jit.py", "layout.py")
ROOT = Path(__file__).parent.parent


def _kernel_sources() -> list[Path]:
    """List what decides the machine code: the kernels, and the modules whose constants are frozen into them."""
    kernels = [file for folder in KERNEL_FOLDERS for file in (ROOT / folder).glob("*kernels.py")]
    return sorted([*kernels, *(ROOT / "envs" / name for name in FROZEN_MODULES)])


@cache
def kernels_name() -> str:
    """Return a name of the kernels as they are: of the compiled code, and of all that equal code must give alike."""
    digest = hashlib.sha256(f"numba {version('numba')} python {sys.version_info[:2]}".encode())
    for file in _kernel_sources():
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return f"asylum-zero-{digest.hexdigest()[:16]}"


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _choose_cache() -> Path:
    asked = os.environ.get("NUMBA_CACHE_DIR")
    if asked and Path(asked).name.startswith("asylum-zero-"):
        asked = str(Path(asked).parent)
    homes = [Path(asked)] if asked else []
    homes += [
        Path(sys.prefix) / "var" / "numba",
        Path.home() / ".cache" / "asylum-zero",
        Path(tempfile.gettempdir()) / f"asylum-zero-{os.getuid() if hasattr(os, 'getuid') else 'user'}",
    ]
    name = kernels_name()
    for home in homes:
        if _writable(home / name):
            return home / name
    raise OSError(f"no writable folder for compiled kernels among {', '.join(map(str, homes))}; set NUMBA_CACHE_DIR")


CACHE_DIR = _choose_cache()
os.environ["NUMBA_CACHE_DIR"] = str(CACHE_DIR)

_announced = False

import numba  # noqa: E402

setattr(numba.config, "CACHE_DIR", str(CACHE_DIR))  # noqa: B010 - its stubs do not know the name


def njit(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a kernel on first use, cached on disk, running without the interpreter's lock."""
    compiled: Callable[..., Any] = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    return compiled


def announce_compilation() -> None:
    """Say on stderr, once, that kernels will be compiled, when the cache has none yet."""
    global _announced  # noqa: PLW0603 - one message a process
    if not _announced and not any(CACHE_DIR.rglob("*.nbi")):
        sys.stderr.write("compiling the rules kernels, once for this environment (up to a minute) ...\n")
        sys.stderr.flush()
    _announced = True
