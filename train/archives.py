"""Archives of plain arrays (`.npz`), read as if a stranger had made them.

Nothing is unpickled, no name inside an archive becomes a path, and nothing is unpacked whose declared size does not
fit: an archive's own directory is checked before a byte of its members is read.
"""

from __future__ import annotations

import io
import math
import tokenize
import zipfile
import zlib
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from models.storage import CorruptFile

MAX_BYTES = 1 << 30
"""More unpacked bytes than this are refused."""
MAX_RATIO, FREE_BYTES = 300, 1 << 20
"""Unpacked bytes for each packed one, beyond so many in any case; stored games stay below a hundred."""
MAX_HEADER = 1000
"""Characters of an array's header."""
UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    ValueError,
    LookupError,
    TypeError,
    EOFError,
    SyntaxError,  # NumPy reads an array's header as Python
    tokenize.TokenError,
    OSError,
    RuntimeError,
)
"""All that NumPy and zipfile raise on damaged files."""
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_SUFFIX = ".npy"


def read_archive(content: bytes, names: Collection[str], where: Path | str) -> dict[str, NDArray[Any]]:
    """Read an archive that must hold exactly the arrays named.

    Args:
        content: the whole file.
        names: of its arrays.
        where: its name in errors.

    Returns:
        Arrays by name; they cannot be written to.

    Raises:
        CorruptFile: it is damaged, holds something else, or would unpack to more than its size allows.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            _check_members(members, names, len(content))
            return {member.filename.removesuffix(_SUFFIX): _array(archive.read(member)) for member in members}
    except UNREADABLE as error:
        raise CorruptFile(f"{where}: unreadable ({type(error).__name__}: {error})") from None


def _check_members(members: list[zipfile.ZipInfo], names: Collection[str], packed_size: int) -> None:
    """Raise ValueError unless an archive's directory lists each array once, at a size that can be true."""
    found = sorted(member.filename for member in members)
    expected = sorted(name + _SUFFIX for name in names)
    if found != expected:
        shown = ", ".join(repr(name[:60]) for name in found[: len(expected) + 1])
        raise ValueError(f"{len(found)} members ({shown}), expected {', '.join(expected)}")
    if any(member.compress_type not in _METHODS or member.flag_bits & 1 for member in members):
        raise ValueError("a member is encrypted or packed by an unknown method")
    unpacked, limit = sum(member.file_size for member in members), max(FREE_BYTES, MAX_RATIO * packed_size)
    if unpacked > min(limit, MAX_BYTES):
        raise ValueError(f"{packed_size} bytes that unpack to {unpacked}, expected at most {min(limit, MAX_BYTES)}")


def _array(content: bytes) -> NDArray[Any]:
    """Read one array; ValueError unless its header says exactly what follows."""
    file = io.BytesIO(content)
    version = npy.read_magic(file)
    if version != (1, 0):
        raise ValueError(f"an array of format {version}, expected (1, 0)")
    shape, is_fortran, dtype = npy.read_array_header_1_0(file, max_header_size=MAX_HEADER)
    if dtype.hasobject or is_fortran:
        raise ValueError(f"an array of {dtype}, {'columns' if is_fortran else 'rows'} first: expected plain rows")
    size, left = math.prod(shape) * dtype.itemsize, len(content) - file.tell()
    if min(shape, default=0) < 0 or size != left:
        raise ValueError(f"an array of {dtype} {shape} in {left} bytes")
    return np.frombuffer(content, dtype, offset=file.tell()).reshape(shape)
