"""From a variant file to a `Variant`: the meaning of every key, and every reason to refuse one.

A file is read and merged by `variant_files.py`, held against the schema by `schema_faults.py`, and put together here
out of `variant_draft.py` (board, starts, royals), `variant_pieces.py`, `variant_castling.py` and `variant_ends.py`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from envs.bounded_memory import remember
from envs.errors import InvalidFen, InvalidVariant
from envs.refusals import refusal_of_key
from envs.rules import outcome
from envs.rules_fen import fen, parse_fen
from envs.schema import MAX_OPTIONS, OPTION_KEYS, VariantSchema
from envs.schema_faults import check_keys, check_plain, validate_document
from envs.variant import Variant
from envs.variant_castling import castlings
from envs.variant_draft import Draft, draft
from envs.variant_ends import end_rules
from envs.variant_files import Provenance, builtin_names, check_removals, did_you_mean, merge, read_document
from envs.variant_pieces import pawn_rules, piece_types

MAX_REMEMBERED = 256
_sound_options: dict[str, None] = {}
"""Hashes of documents whose options have been checked: an engine asks again for every combination of them."""
_normal_starts: dict[str, tuple[str, ...]] = {}
"""Rules hash -> start positions in normal form, where no game of them is over before it begins."""


def list_variants() -> list[str]:
    """Return the names of the built-in games, sorted."""
    return builtin_names()


def load_variant(name_or_path: str | Path, options: Mapping[str, bool] | None = None) -> Variant:
    """Load a game by built-in name or by the path of a variant file.

    Args:
        name_or_path: A name of `list_variants()` or the path of a `.yaml` file.
        options: Option name -> on; options that are not named are off.

    Returns:
        The resolved variant.

    Raises:
        InvalidVariant: The file cannot be honoured, or an option is unknown; the message names the place.
    """
    document, provenance, name = read_document(name_or_path)
    return _build(document, provenance, name, {} if options is None else options)


def variant_from_document(
    document: Mapping[str, Any], options: Mapping[str, bool] | None = None, *, name: str = "variant"
) -> Variant:
    """Build a variant from a merged document, as workers and checkpoints hold it.

    Args:
        document: A merged variant file (`Variant.document`).
        options: Option name -> on; the others are off.
        name: Short name.

    Raises:
        InvalidVariant: The document or an option cannot be honoured.
    """
    check_plain(document, name)
    return _build(document, Provenance(name, {}), name, {} if options is None else options)


def _build(document: Mapping[str, Any], provenance: Provenance, name: str, options: Mapping[str, bool]) -> Variant:
    check_keys(document, provenance)
    base = validate_document(document, provenance)
    known = sorted(base.options)
    if len(known) > MAX_OPTIONS:
        raise provenance.error(("options",), f"{len(known)} options, at most {MAX_OPTIONS} are supported")
    _check_switches(provenance.where, known, options)
    plain = replace(_variant(base, provenance, name, document), options=dict.fromkeys(known, False))
    key = hashlib.sha256(json.dumps(document, sort_keys=True, default=dict).encode()).hexdigest()
    if key not in _sound_options:
        for option in known:
            _check_option(plain, document, provenance, option)
        remember(_sound_options, key, None, MAX_REMEMBERED)
    chosen = [option for option in known if options.get(option)]
    if not chosen:
        return plain
    try:
        changed = _variant(*_with_options(document, provenance, chosen), name, document)
    except InvalidVariant as error:
        where = f"{provenance.where}: "
        together = f"options {', '.join(chosen[:-1])} and {chosen[-1]} together"
        raise InvalidVariant(f"{where}{together}: {str(error).removeprefix(where)}") from None
    return replace(changed, options={option: option in chosen for option in known})


def _with_options(
    document: Mapping[str, Any], provenance: Provenance, chosen: Iterable[str]
) -> tuple[VariantSchema, Provenance]:
    """Return the schema of a document with options laid over it, in their order, and where its keys came from."""
    applied = dict(document)
    for option in chosen:
        applied, provenance = merge(applied, document["options"][option]), provenance.within_option(option)
    return validate_document(applied, provenance), provenance


def _check_switches(where: str, known: list[str], options: Mapping[str, bool]) -> None:
    """Refuse options that the game does not have, and switches that are neither on nor off."""
    if not isinstance(options, Mapping):
        raise InvalidVariant(f"options: expected a mapping of names to true or false, got {options!r}")
    for option, switch in options.items():
        if option not in known:
            names = ", ".join(known) or "none"
            raise InvalidVariant(f"{where}: unknown option {option!r}, the options of this game are: {names}")
        if not isinstance(switch, bool):
            raise InvalidVariant(f"option {option!r}: expected True or False, got {switch!r}")


def _check_option(plain: Variant, document: Mapping[str, Any], provenance: Provenance, option: str) -> None:
    """Refuse an option that reaches beyond the rules, changes nothing, or has no meaning as a game."""
    overlay = document["options"][option]
    for key in overlay:
        if key not in OPTION_KEYS:
            reason = refusal_of_key(key, "") or (
                f"an option may change {', '.join(OPTION_KEYS)}{did_you_mean(key, OPTION_KEYS)}"
            )
            raise provenance.error(("options", option, key), reason)
    check_removals(document, overlay, provenance, ("options", option))
    try:
        changed = _variant(*_with_options(document, provenance, [option]), plain.name, document)
    except InvalidVariant as error:
        raise InvalidVariant(f"{error} (with the option {option!r} on)") from None
    if [piece.letter for piece in changed.piece_types] != [piece.letter for piece in plain.piece_types]:
        raise provenance.error(("options", option, "pieces"), "an option may not add or remove pieces")
    if changed.board != plain.board:
        raise provenance.error(("options", option, "start"), "an option may not move the holes of the board")
    if changed.rules_hash == plain.rules_hash:
        raise provenance.error(("options", option), "this option changes nothing")


def _variant(schema: VariantSchema, provenance: Provenance, name: str, document: Mapping[str, Any]) -> Variant:
    """Put together and check one validated file, its options aside."""
    found = draft(schema, provenance)
    pieces, pawns = piece_types(found), pawn_rules(found)
    variant = Variant(
        name=name,
        title=schema.name,
        board=found.board,
        piece_types=pieces,
        royals=found.royals,
        pawns=pawns,
        castlings=castlings(found, pieces, pawns),
        ends=end_rules(found, pawns),
        start_fens=tuple(start.fen for start in found.starts),
        options={},
        document=document,
    )
    _check_used(found, variant)
    return replace(variant, start_fens=_checked_starts(found, variant))


def _check_used(found: Draft, variant: Variant) -> None:
    """Refuse pieces that no game can ever have."""
    reachable = found.types_at_start(0) | found.types_at_start(1)
    if variant.pawns is not None:
        reachable |= set(variant.pawns.promotes_to[0]) | set(variant.pawns.promotes_to[1])
    for number, letter in enumerate(found.letters):
        if number not in reachable:
            raise found.error(
                ("pieces", letter.lower()),
                "this piece is neither in the start nor promoted to; remove it with null",
            )


def _checked_starts(found: Draft, variant: Variant) -> tuple[str, ...]:
    """Return the start positions in normal form; refuse one from which no game can begin, and repeated ones."""
    key = variant.rules_hash
    if key not in _normal_starts:
        normal: dict[str, int] = {}
        for number, start in enumerate(found.starts):
            text = _checked_start(found, variant, number)
            if text in normal:
                raise found.error(start.path, f"the same start position as number {normal[text]}")
            normal[text] = number
        remember(_normal_starts, key, tuple(normal), MAX_REMEMBERED)
    return _normal_starts[key]


def _checked_start(found: Draft, variant: Variant, number: int) -> str:
    start = found.starts[number]
    try:
        state = parse_fen(variant, start.fen)
    except InvalidFen as error:
        raise found.error(start.path, str(error)) from None
    ended = outcome(variant, state)
    if ended is not None:
        kind = ended.termination.name.lower().replace("_", " ")
        raise found.error(start.path, f"the game is over before it begins: {kind}")
    return fen(variant, state)
