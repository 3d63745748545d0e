"""The learned evaluation of a game, its file, and where it comes from: shipped, the user's cache, or learned now.

A table is linear: what stands on the board adds up, square by square. Dims: S squares, 32 piece codes.

Files are JSON, `NAME-HASH.json` with the first 16 digits of the rules hash, the only part of the name that is read:

    format      1
    variant, options, rules_hash
    tempo       the worth of the move
    pawn        units that one pawn is worth, or the weakest piece where there is no pawn
    values      worth of each piece by letter, in pawns; royals, which are never lost, have none
    weights     letter -> S integers in the order of the squares, good for the piece's own side positive. Capitals are
                White's. Where the file has no small letters, Black's are White's with the ranks mirrored.
    provenance  games, seed, versions, how it was learned
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from envs import Variant
from envs.bounded_memory import remember
from envs.layout import NUM_CODES
from envs.notation import letter_code
from models.storage import (
    TEMPORARY_PREFIX,
    CheckpointMismatch,
    CorruptFile,
    parse_json,
    read_regular,
    write_atomically,
)
from train.progress import Reporter

FORMAT = 1
UNITS = 1000
"""Units of an evaluation in one logit of the expected score."""
MAX_WEIGHT = 30_000
"""More than 30 logits for a piece is no evaluation."""
LEAST_PAWN = 0.01
"""Units; less is no measure of other pieces."""
MAX_VALUE = 1e6
"""Pawns."""
HASH_DIGITS = 16
SHIPPED = Path(__file__).parent / "tables"
MAX_TABLES_KNOWN = 64
KEYS = ("format", "variant", "options", "rules_hash", "tempo", "pawn", "values", "weights", "provenance")

_known: dict[str, EvaluationTable] = {}


@dataclass(frozen=True, eq=False)
class EvaluationTable:
    """A linear evaluation: the sum of `weights[code, square]` over the squares, and `tempo` for the side to move.

    The unit is 1/1000 of a logit of the expected score, which is `1 / (1 + exp(-evaluation / 1000))`.

    Attributes:
        weights: int32 [32, S] by piece code (`envs/layout.py`) and square; good for White positive, row 0 is 0.
        tempo: worth of the move.
        pawn: units that one pawn is worth, or the weakest piece where there is no pawn.
        values: worth of pieces in pawns, by letter; small letters are Black's, where the sides are told apart.
        variant: name of the game that it was learned on.
        options: of that game.
        rules_hash: of that game; the table fits every game of the same rules.
        provenance: games, seed, versions, settings (JSON-able).
    """

    weights: NDArray[np.int32]
    tempo: int
    pawn: float
    values: Mapping[str, float]
    variant: str
    options: Mapping[str, bool]
    rules_hash: str
    provenance: Mapping[str, Any]

    def to_text(self, variant: Variant) -> str:
        """Return the table as the text of its file; the same table gives the same text.

        Args:
            variant: a game of its rules.
        """
        letters = [piece.letter for piece in variant.piece_types]
        if (self.weights != mirrored(self.weights, variant)).any():
            letters += [letter.lower() for letter in letters]
        sign = {letter: 1 if letter.isupper() else -1 for letter in letters}
        weights = {letter: (sign[letter] * self.weights[letter_code(variant, letter)]).tolist() for letter in letters}
        entries: dict[str, Any] = {
            "format": FORMAT,
            "variant": self.variant,
            "options": dict(self.options),
            "rules_hash": self.rules_hash,
            "tempo": self.tempo,
            "pawn": self.pawn,
            "values": dict(self.values),
            "weights": weights,
            "provenance": dict(self.provenance),
        }
        return _one_line_each(entries)


def mirrored(weights: NDArray[np.int32], variant: Variant) -> NDArray[np.int32]:
    """Return what weights int32 [32, S] are after the sides have changed places: ranks mirrored, signs turned."""
    flipped = np.zeros_like(weights)
    half = NUM_CODES // 2
    squares = list(variant.board.flipped)
    flipped[1:half] = -weights[half + 1 :, squares]
    flipped[half + 1 :] = -weights[1:half, squares]
    return flipped


def read_table(path: Path, variant: Variant) -> EvaluationTable:
    """Read a table from its file.

    Args:
        path: the file.
        variant: the game that it must fit.

    Raises:
        CorruptFile: the file is missing, damaged or no table.
        CheckpointMismatch: it is a table of other rules, or of a newer format.
    """
    document = parse_json(read_regular(path), path)
    if not isinstance(document, dict) or "format" not in document:
        raise CorruptFile(f"{path}: expected an object with {', '.join(KEYS)}")
    if type(document["format"]) is not int or document["format"] != FORMAT:
        raise CheckpointMismatch(f"{path}: format {document['format']!r}, expected {FORMAT}")
    if set(document) != set(KEYS):
        odd = ", ".join(sorted(set(document) ^ set(KEYS)))
        raise CorruptFile(f"{path}: keys missing or unknown: {odd}")
    if document["rules_hash"] != variant.rules_hash:
        raise CheckpointMismatch(
            f"{path}: a table of {document['variant']} (rules {str(document['rules_hash'])[:HASH_DIGITS]}), "
            f"expected the rules of {variant.name} ({variant.rules_hash[:HASH_DIGITS]})"
        )
    try:
        return _table_from(document, variant)
    except ValueError as error:
        raise CorruptFile(f"{path}: {error}") from None


def write_table(path: Path, table: EvaluationTable, variant: Variant) -> None:
    """Write a table to a file, whole or not at all; makes its folder.

    Raises:
        OSError: it cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, table.to_text(variant).encode())


def table_name(variant: Variant) -> str:
    """Return the name of the file of a game's table."""
    options = [option for option, is_on in variant.options.items() if is_on]
    return f"{'+'.join([variant.name, *options])}-{variant.rules_hash[:HASH_DIGITS]}.json"


def cache_folder() -> Path:
    """Return the folder in which this user's tables are kept."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "asylum-zero" / "tables"


def table_for(
    variant: Variant,
    *,
    reporter: Reporter | None = None,
    learn: Callable[[Variant, Reporter], EvaluationTable] | None = None,
) -> EvaluationTable:
    """Return the evaluation of a game: the shipped one, else the one in the user's cache, else one learned now.

    Learning takes minutes, shows its progress and is kept in the cache; of several processes that need a table at the
    same time one learns it.

    Args:
        variant: the game; tables go by its rules hash.
        reporter: told what is being done; stderr by default.
        learn: what learns; `evaluation_learning.learn_table` by default.

    Raises:
        CorruptFile: the shipped file is damaged.
    """
    table = _known.get(variant.rules_hash)
    if table is None:
        shipped = _files_of(SHIPPED, variant)
        if shipped:
            table = read_table(shipped[0], variant)
        else:
            table = _cached(variant, reporter or Reporter(), learn or _learn)
        hold_table(table)
    return table


def held_table(variant: Variant) -> EvaluationTable | None:
    """Return the table of a game that this process has looked up, learned or been given; None without one."""
    return _known.get(variant.rules_hash)


def hold_table(table: EvaluationTable) -> None:
    """Use a table in this process for every game of its rules, without looking for another."""
    remember(_known, table.rules_hash, table, MAX_TABLES_KNOWN)


def _files_of(folder: Path, variant: Variant) -> list[Path]:
    """Return the files of a game's rules in a folder, whatever the game is called there; its own name first."""
    found = folder.glob(f"*-{variant.rules_hash[:HASH_DIGITS]}.json")
    whole = [path for path in found if not path.name.startswith(TEMPORARY_PREFIX)]
    return sorted(whole, key=lambda path: (path.name != table_name(variant), path.name))


def _cached(
    variant: Variant, reporter: Reporter, learn: Callable[[Variant, Reporter], EvaluationTable]
) -> EvaluationTable:
    """Return the table in the user's cache; learn it first where there is none that can be read."""
    table = _read_cached(variant)
    if table is None:
        with _alone(variant, reporter):
            table = _read_cached(variant, reporter)  # another process may have learned it
            if table is None:
                table = learn(variant, reporter)
                _keep(table, variant, reporter)
    return table


def _read_cached(variant: Variant, reporter: Reporter | None = None) -> EvaluationTable | None:
    """Return the table of the user's cache; None where there is none that can be read, which a reporter says."""
    for path in _files_of(cache_folder(), variant):
        try:
            return read_table(path, variant)
        except (CorruptFile, CheckpointMismatch, OSError) as error:
            if reporter is not None:
                reporter.say(f"{error}; learning it again")
    return None


@contextmanager
def _alone(variant: Variant, reporter: Reporter) -> Iterator[None]:
    """Keep other processes from learning the same while the block runs; where nothing can be locked, nobody waits."""
    with ExitStack() as stack:
        try:
            cache_folder().mkdir(parents=True, exist_ok=True)
            lock = FileLock(cache_folder() / f".{variant.rules_hash[:HASH_DIGITS]}.lock")
            try:
                lock.acquire(timeout=0)
            except Timeout:
                reporter.say(f"waiting for another process, which is learning the evaluation of {variant.name}")
                lock.acquire()
            stack.callback(lock.release)
        except (OSError, NotImplementedError):
            pass  # the table cannot be kept either, which is then said
        yield


def _keep(table: EvaluationTable, variant: Variant, reporter: Reporter) -> None:
    """Write a learned table to the user's cache; one that cannot be kept is only said to be lost."""
    try:
        write_table(cache_folder() / table_name(variant), table, variant)
    except OSError as error:
        reporter.say(f"learned evaluation of {variant.name}: used now, but cannot be kept ({error})")


def _learn(variant: Variant, reporter: Reporter) -> EvaluationTable:
    from train.evaluation_learning import learn_table

    return learn_table(variant, reporter=reporter)


def _one_line_each(entries: Mapping[str, Any]) -> str:
    """Return an object as JSON, with a line for each entry and for each entry of `weights`."""
    lines = []
    for key, value in entries.items():
        if key == "weights":
            rows = ",\n".join(f"  {json.dumps(letter)}: {json.dumps(row)}" for letter, row in value.items())
            lines.append(f' "{key}": {{\n{rows}\n }}')
        else:
            lines.append(f" {json.dumps(key)}: {json.dumps(value, allow_nan=False)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _table_from(document: Mapping[str, Any], variant: Variant) -> EvaluationTable:
    """Return the table in a document of the right keys and rules.

    Raises:
        ValueError: a value is not what it should be; says which.
    """
    for key, kind in {"variant": str, "options": dict, "values": dict, "weights": dict, "provenance": dict}.items():
        if not isinstance(document[key], kind):
            raise ValueError(f"{key}: expected {kind.__name__}, got {type(document[key]).__name__}")
    tempo = _integer("tempo", document["tempo"])
    pawn = _number("pawn", document["pawn"])
    if not LEAST_PAWN <= pawn <= MAX_WEIGHT:
        raise ValueError(f"pawn: expected {LEAST_PAWN} to {MAX_WEIGHT}, got {pawn}")
    if not all(type(is_on) is bool for is_on in document["options"].values()):
        raise ValueError(f"options: expected true or false for each, got {document['options']}")
    json.dumps(document["provenance"], allow_nan=False)  # a number such as 1e999 is read as infinity
    capitals = [piece.letter for piece in variant.piece_types]
    letters = {*capitals, *(letter.lower() for letter in capitals)}
    values = {letter: _number(f"values: {letter}", value) for letter, value in document["values"].items()}
    if not set(values) <= letters:
        raise ValueError(f"values: no piece {', '.join(sorted(set(values) - letters))} in {variant.name}")
    return EvaluationTable(
        weights=_weights_from(document["weights"], variant, capitals),
        tempo=tempo,
        pawn=pawn,
        values=values,
        variant=document["variant"],
        options=document["options"],
        rules_hash=document["rules_hash"],
        provenance=document["provenance"],
    )


def _weights_from(rows: Mapping[str, Any], variant: Variant, capitals: list[str]) -> NDArray[np.int32]:
    """Return weights int32 [32, S] from rows by letter; ValueError where they do not fit the game."""
    both = [*capitals, *(letter.lower() for letter in capitals)]
    if set(rows) not in (set(capitals), set(both)):
        raise ValueError(f"weights: expected rows {' '.join(capitals)}, of one side or both, got {' '.join(rows)}")
    weights = np.zeros((NUM_CODES, variant.num_squares), np.int32)
    for letter, row in rows.items():
        if not isinstance(row, list) or len(row) != variant.num_squares:
            length = f"{len(row)} entries" if isinstance(row, list) else type(row).__name__
            raise ValueError(f"weights: {letter}: expected {variant.num_squares} integers, got {length}")
        sign = 1 if letter.isupper() else -1
        weights[letter_code(variant, letter)] = [sign * _integer(f"weights: {letter}", value) for value in row]
    if len(rows) == len(capitals):
        weights += mirrored(weights, variant)
    return weights


def _integer(name: str, value: Any) -> int:
    if type(value) is not int or abs(value) > MAX_WEIGHT:
        raise ValueError(f"{name}: expected an integer of at most {MAX_WEIGHT}, got {value!r:.40}")
    return value


def _number(name: str, value: Any) -> float:
    if type(value) not in (int, float) or not abs(value) <= MAX_VALUE:  # not so: NaN
        raise ValueError(f"{name}: expected a number of at most {MAX_VALUE:g}, got {value!r:.40}")
    return float(value)
