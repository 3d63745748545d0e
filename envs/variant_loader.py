"""From a variant file to a `Variant`: the meaning of every key, and every reason to refuse one.

The file's form is checked by `schema.py`; here the keys are read together: squares exist, pieces are used, castling
finds its pieces, and no two routes share from, to and promotion with different victims.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from envs.betza import Ray, parse_betza
from envs.errors import InvalidFen, InvalidVariant
from envs.rules import outcome
from envs.rules_fen import fen, parse_fen
from envs.schema import (
    MAX_OPTIONS,
    MAX_SIDE,
    OPTION_KEYS,
    CastlingSchema,
    CastlingSideSchema,
    PieceSchema,
    Provenance,
    VariantSchema,
    builtin_names,
    merge,
    read_document,
    validate_document,
)
from envs.strict_yaml import KeyPath
from envs.variant import BLACK, WHITE, Board, Castling, Pawns, PieceType, Variant

SIDES = ("white", "black")


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
    return _build(document, Provenance(name, {}), name, {} if options is None else options)


def _build(document: Mapping[str, Any], provenance: Provenance, name: str, options: Mapping[str, bool]) -> Variant:
    base = validate_document(document, provenance)
    known = sorted(base.options)
    if len(known) > MAX_OPTIONS:
        raise provenance.error(("options",), f"{len(known)} options, at most {MAX_OPTIONS} are supported")
    _check_switches(provenance.where, known, options)
    plain = _Builder(base, provenance).variant(name, {}, document)
    for option in known:
        _check_option(plain, document, provenance, option)
    chosen = [option for option in known if options.get(option)]
    applied, within = dict(document), provenance
    for option in chosen:
        applied, within = merge(applied, base.options[option]), within.within_option(option)
    switched = {option: option in chosen for option in known}
    return _Builder(validate_document(applied, within), within).variant(name, switched, document)


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
            raise provenance.error(("options", option, key), f"an option may change {', '.join(OPTION_KEYS)}")
    within = provenance.within_option(option)
    changed = _Builder(validate_document(merge(document, overlay), within), within).variant(plain.name, {}, document)
    if [piece.letter for piece in changed.piece_types] != [piece.letter for piece in plain.piece_types]:
        raise provenance.error(("options", option, "pieces"), "an option may not add or remove pieces")
    if changed.board != plain.board:
        raise provenance.error(("options", option, "start"), "an option may not move the holes of the board")
    if changed.rules_hash == plain.rules_hash:
        raise provenance.error(("options", option), "this option changes nothing")


class _Builder:
    """Turns one validated schema into a `Variant`; one use."""

    def __init__(self, schema: VariantSchema, provenance: Provenance) -> None:
        self.schema = schema
        self.error = provenance.error
        self.letters = [letter.upper() for letter in schema.pieces]
        self.board, self.placed = self._read_start()

    def variant(self, name: str, options: Mapping[str, bool], document: Mapping[str, Any]) -> Variant:
        """Return the variant."""
        schema = self.schema
        goals, goal_piece = self._goals()
        variant = Variant(
            name=name,
            title=schema.name,
            board=self.board,
            piece_types=tuple(self._piece(letter, piece) for letter, piece in schema.pieces.items()),
            royal=self._type(schema.royal, ("royal",)),
            pawns=self._pawns(),
            castlings=self._castlings(),
            goals=goals,
            goal_piece=goal_piece,
            bare_kings_draw=schema.ends.bare_kings == "draw",
            start_fen=schema.start,
            options=options,
            document=document,
        )
        self._check_used(variant)
        self._check_routes(variant)
        return self._check_start(variant)

    def _check_start(self, variant: Variant) -> Variant:
        """Return the variant with its start position in normal form; refuse one from which no game can begin."""
        try:
            state = parse_fen(variant, variant.start_fen)
        except InvalidFen as error:
            raise self.error(("start",), str(error)) from None
        ended = outcome(variant, state)
        if ended is not None:
            kind = ended.termination.name.lower().replace("_", " ")
            raise self.error(("start",), f"the game is over before it begins: {kind}")
        return replace(variant, start_fen=fen(variant, state))

    def _type(self, letter: str, path: KeyPath) -> int:
        if letter.upper() not in self.letters:
            known = " ".join(self.letters).lower()
            raise self.error(path, f"no piece {letter!r}, the pieces are: {known}")
        return self.letters.index(letter.upper())

    def _read_start(self) -> tuple[Board, dict[tuple[int, int], str]]:
        """Read holes and pieces off the start position's first field; the rest of the FEN is `notation`'s."""
        size = self.schema.board
        rows = self.schema.start.split(" ")[0].split("/")
        if len(rows) != size.ranks:
            raise self.error(("start",), f"expected {size.ranks} rows as board.ranks says, got {len(rows)}")
        squares, placed = [], {}
        for y, row in enumerate(reversed(rows)):
            cells = expand_row(row)
            if len(cells) != size.files:
                raise self.error(
                    ("start",),
                    f"rank {size.first_rank + y} has {len(cells)} files, expected {size.files} as board.files says",
                )
            for x, cell in enumerate(cells):
                if cell != "*":
                    squares.append((x, y))
                if cell.isalpha():
                    placed[x, y] = cell
        board = Board(size.files, size.ranks, size.first_rank, tuple(squares))
        for x, y in squares:
            if (x, size.ranks - 1 - y) not in board.index:
                raise self.error(("start",), "the holes (*) must lie the same for both sides, rank for rank mirrored")
        return board, placed

    def _piece(self, letter: str, piece: PieceSchema) -> PieceType:
        path: KeyPath = ("pieces", letter)
        is_pawn = self.schema.pawns is not None and letter == self.schema.pawns.piece
        if is_pawn:
            for key in ("moves", "overruns", "fires_through", "fires_through_own"):
                if getattr(piece, key):
                    raise self.error((*path, key), "the pawn's moves are given under `pawns`")
            return PieceType(letter.upper(), piece.name, ())
        if piece.moves is None:
            raise self.error(path, "the key 'moves' is missing")
        rays = list(self._betza((*path, "moves"), piece.moves))
        if piece.fires_through is not None:
            rays = self._with_fire(rays, path, piece.fires_through)
        elif piece.fires_through_own:
            raise self.error((*path, "fires_through_own"), "needs `fires_through`")
        if piece.overruns is not None:
            rays += self._overruns(rays, path, piece.overruns)
        return PieceType(letter.upper(), piece.name, tuple(rays), piece.fires_through_own)

    def _betza(self, path: KeyPath, text: str) -> tuple[Ray, ...]:
        try:
            return parse_betza(text)
        except ValueError as error:
            raise self.error(path, str(error)) from None

    def _with_fire(self, rays: list[Ray], path: KeyPath, text: str) -> list[Ray]:
        key = (*path, "fires_through")
        for ray in self._betza(key, text):
            if ray not in rays or not (ray.quiet and ray.capture) or ray.reach == 1:
                raise self.error(key, f"{text!r} must be slides that `moves` has too, for moving and capturing")
            rays[rays.index(ray)] = Ray(ray.step, ray.reach, fires_through=True)
        return rays

    def _overruns(self, rays: list[Ray], path: KeyPath, text: str) -> list[Ray]:
        key = (*path, "overruns")
        found = []
        for ray in self._betza(key, text):
            if ray.reach != 1 or not (ray.quiet and ray.capture) or any(leg not in (-2, 0, 2) for leg in ray.step):
                raise self.error(key, f"{text!r}: only the two-square jumps D and A (with directions) overrun")
            half = (ray.step[0] // 2, ray.step[1] // 2)
            for other in rays:
                onto = other.step == ray.step or (other.step == half and other.reach != 1)
                if onto:
                    raise self.error(
                        key,
                        f"{text!r} and `moves` both lead to the square {ray.step}, with different "
                        "victims: from, to and promotion must fix what is captured",
                    )
            found.append(Ray(ray.step, 1, overruns=True))
        return found

    def _pawns(self) -> Pawns | None:
        pawns = self.schema.pawns
        if pawns is None:
            return None
        last = self.board.first_rank + self.board.ranks - 1
        starts = self._ranks(("pawns", "first_steps_from"), pawns.first_steps_from or [])
        promotions = self._ranks(("pawns", "promotes_on"), pawns.promotes_on or [last])
        if pawns.first_steps > 1 and not pawns.first_steps_from:
            raise self.error(("pawns", "first_steps"), "more than one step needs `first_steps_from`")
        if pawns.first_steps_from and max(starts[WHITE]) >= min(promotions[WHITE]):
            raise self.error(("pawns", "first_steps_from"), "a pawn there has reached its promotion rank already")
        piece = self._type(pawns.piece, ("pawns", "piece"))
        royal = self._type(self.schema.royal, ("royal",))
        targets = []
        for letter in pawns.promotes_to:
            target = self._type(letter, ("pawns", "promotes_to"))
            if target in targets or target in (piece, royal):
                raise self.error(("pawns", "promotes_to"), f"{letter!r} is there twice, royal, or the pawn itself")
            targets.append(target)
        if piece == royal:
            raise self.error(("royal",), "a royal pawn is not supported; the royal must be another piece")
        return Pawns(piece, pawns.first_steps, starts, promotions, tuple(targets))

    def _ranks(self, path: KeyPath, names: list[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        first, last = self.board.first_rank, self.board.first_rank + self.board.ranks - 1
        for name in names:
            if not first <= name <= last:
                raise self.error(path, f"no rank {name}, the ranks are {first} to {last}")
        white, black = (tuple(sorted(self.board.own_rank(name, side) for name in set(names))) for side in (0, 1))
        return white, black

    def _castlings(self) -> tuple[Castling | None, ...]:
        rules = self.schema.castling
        if rules is None:
            return (None,) * 4
        if rules.kingside is None and rules.queenside is None:
            raise self.error(("castling",), "expected kingside, queenside or both; `castling: null` removes castling")
        return tuple(
            None if move is None else self._castling(rules, move, (("castling", key)), side)
            for side in (WHITE, BLACK)
            for key, move in (("kingside", rules.kingside), ("queenside", rules.queenside))
        )

    def _castling(self, rules: CastlingSchema, move: CastlingSideSchema, path: KeyPath, side: int) -> Castling:
        self._ranks(("castling", "rank"), [rules.rank])
        y = self.board.own_rank(rules.rank, side)

        def square(file: str, key: str) -> int:
            cell = (ord(file) - ord("a"), y)
            if cell not in self.board.index:
                raise self.error((*path, key), f"file {file!r} has no square on rank {rules.rank}")
            return self.board.index[cell]

        king_from, partner_from = square(rules.king, "king"), square(move.rook, "rook")
        king_to, partner_to = square(move.king_to, "king_to"), square(move.rook_to, "rook_to")
        royal = self.schema.royal.upper()
        king_piece = self.placed.get(self.board.squares[king_from], "")
        partner = self.placed.get(self.board.squares[partner_from], "")
        span = [self.board.squares[s][0] for s in (king_from, king_to, partner_from, partner_to)]
        for x in range(min(span), max(span) + 1):
            if (x, y) not in self.board.index:
                raise self.error(path, f"castling passes over a hole on file {chr(ord('a') + x)}")
        own = str.isupper if side == WHITE else str.islower
        where = f"for {SIDES[side]} in the start position"
        if not (own(king_piece) and king_piece.upper() == royal):
            raise self.error(path, f"no royal piece on {self.board.names[king_from]} {where}")
        if not own(partner) or partner.upper() == royal:
            raise self.error(path, f"no castling partner on {self.board.names[partner_from]} {where}")
        if len({king_from, partner_from}) != 2 or king_to == partner_to or king_to == king_from:
            raise self.error(path, "king and partner must start, and end, on different squares")
        return Castling(king_from, king_to, partner_from, partner_to, self._type(partner, path))

    def _goals(self) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], int]:
        if not self.schema.ends.goals:
            return ((), ()), 0
        path: KeyPath = ("ends", "goals", 0)
        goal = self.schema.ends.goals[0]
        sides: list[tuple[int, ...]] = []
        for side, names in zip(SIDES, (goal.squares.white, goal.squares.black), strict=True):
            for name in names:
                if name not in self.board.index_by_name:
                    raise self.error((*path, "squares", side), f"no square {name!r} on this board")
            sides.append(tuple(sorted(self.board.index_by_name[name] for name in set(names))))
        if goal.by != self.schema.royal:
            raise self.error((*path, "by"), f"only the royal piece {self.schema.royal!r} may reach a goal")
        return (sides[0], sides[1]), self._type(goal.by, (*path, "by"))

    def _check_used(self, variant: Variant) -> None:
        on_board = {letter.upper() for letter in self.placed.values()}
        for letter in sorted(on_board - set(self.letters)):
            raise self.error(("start",), f"unknown piece letter {letter!r}, the pieces are {' '.join(self.letters)}")
        reachable = set(variant.pawns.promotes_to) if variant.pawns else set()
        for number, piece in enumerate(variant.piece_types):
            if piece.letter not in on_board and number not in reachable:
                raise self.error(
                    ("pieces", piece.letter.lower()),
                    "this piece is neither in the start position nor promoted to; remove it with null",
                )

    def _check_routes(self, variant: Variant) -> None:
        """Refuse two routes that share from, to and promotion but not what they capture or move."""
        for piece in variant.piece_types:
            for fire in (ray for ray in piece.rays if ray.fires_through):
                beyond = {(fire.step[0] * k, fire.step[1] * k) for k in range(2, (fire.reach or MAX_SIDE) + 1)}
                for other in piece.rays:
                    landings = {(other.step[0] * k, other.step[1] * k) for k in range(1, (other.reach or MAX_SIDE) + 1)}
                    if other != fire and beyond & landings:
                        raise self.error(
                            ("pieces", piece.letter.lower()),
                            "`fires_through` and another move lead to the "
                            "same square with different victims: from, to and promotion must fix them",
                        )
        self._check_castling_routes(variant)

    def _check_castling_routes(self, variant: Variant) -> None:
        """Refuse castling whose from and to are also those of another move."""
        squares = self.board.squares
        routes = [(castling.king_from, castling.king_to) for castling in variant.castlings if castling is not None]
        if len(set(routes)) != len(routes):
            raise self.error(("castling",), "two castlings lead the royal piece to the same square: from and to must "
                             "tell them apart")  # fmt: skip
        for start, to in routes:
            (x0, y0), (x1, y1) = squares[start], squares[to]
            for ray in variant.piece_types[variant.royal].rays:
                for k in range(1, (ray.reach or MAX_SIDE) + 1):
                    if (abs(x1 - x0), y1 - y0) == (abs(ray.step[0] * k), ray.step[1] * k):
                        raise self.error(
                            ("castling",),
                            "castling leads to a square that the royal piece also reaches "
                            "by a move of its own: from and to must tell them apart",
                        )


def expand_row(row: str) -> list[str]:
    """Return the cells of a FEN row: piece letters, `*` for holes and `.` for empty squares."""
    cells: list[str] = []
    digits = ""
    for letter in row:
        if letter.isascii() and letter.isdigit():
            digits += letter
            continue
        cells += ["."] * min(int(digits or "0"), 99)
        cells.append(letter)
        digits = ""
    return cells + ["."] * min(int(digits or "0"), 99)
