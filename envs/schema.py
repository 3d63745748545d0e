"""The schema of a variant file: every key, what it may hold, what it means, and its default.

A file is strict YAML (`strict_yaml.py`), merged with its parents (`variant_files.py`) before it is held against this
schema. What the keys mean together is checked where they are built into a `Variant`, from `variant_loader.py` on.
The descriptions here are the reference of the format.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, StringConstraints, Tag

from envs.variant import Result

MIN_SIDE, MAX_SIDE = 3, 16
MAX_PIECE_TYPES = 15
MAX_STARTS = 1000
MAX_FIRST_STEPS = 7
MAX_MOVE_LIMIT = 1000
MAX_GOALS = 16
MAX_READINGS = 100
MAX_OPTIONS = 6
OPTION_KEYS = ("start", "pieces", "pawns", "castling", "ends")
"""What an option may change; the board, the pieces' letters and the royals are the game's."""
MIRRORED_CASTLING_KEYS = ("rank", "king", "kingside", "queenside")
SIDES = ("white", "black")
OFF = "off"

ONE_LETTER, LETTERS = r"^[a-z]$", r"^[a-z]+$"
FILE_LETTER, SQUARE_NAME, WORD = r"^[a-p]$", r"^[a-p][0-9]{1,2}$", r"^[a-z][a-z0-9_-]*$"
PATTERN_WORDS = {
    ONE_LETTER: "one small letter of a piece, such as q",
    LETTERS: "small letters of pieces in one word, such as qrbn",
    FILE_LETTER: "the letter of a file, a to p",
    SQUARE_NAME: "the name of a square, such as e4",
    WORD: "one word of small letters, such as hill",
}
"""What each pattern of the schema asks for, in words."""
FORMS = {
    "start": "a FEN, or a list of FENs",
    "royal": "the letter of a piece, or white: and black: each with one",
    "first_steps_from": "a list of ranks such as [2], or all",
    "promotes_to": "letters of pieces such as qrbn, or white: and black: each with their own",
    "repetition": "a mapping such as {times: 3, result: draw}, or off",
    "move_limit": "a number of plies from 1 to 1000, or off",
}
"""The keys that may be written in two forms."""

Letter = Annotated[str, StringConstraints(pattern=ONE_LETTER)]
Letters = Annotated[str, StringConstraints(pattern=LETTERS, max_length=26)]
FileLetter = Annotated[str, StringConstraints(pattern=FILE_LETTER)]
SquareNames = Annotated[
    list[Annotated[str, StringConstraints(pattern=SQUARE_NAME)]], Field(min_length=1, max_length=MAX_SIDE**2)
]
Ranks = Annotated[list[int], Field(min_length=1, max_length=MAX_SIDE)]
Text = Annotated[str, StringConstraints(min_length=1, max_length=2000)]


def form_of(value: object) -> str:
    """Name the form in which a value is written: `text`, `number`, `list`, `mapping` or `other`."""
    if isinstance(value, str):
        return "text"
    if isinstance(value, list):
        return "list"
    if isinstance(value, dict | BaseModel):
        return "mapping"
    return "number" if isinstance(value, int) and not isinstance(value, bool) else "other"


def _castling_form(value: object) -> str:
    return "sides" if isinstance(value, dict) and not value.keys().isdisjoint(SIDES) else "mirrored"


def _in_forms(key: str) -> Discriminator:
    return Discriminator(form_of, custom_error_type="wrong_form", custom_error_message=f"expected {FORMS[key]}")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class BoardSchema(_Strict):
    """`board`: the grid. Squares marked `*` in the start position are holes in it."""

    files: int = Field(
        ge=MIN_SIDE, le=MAX_SIDE, description="The number of files, 3 to 16; they are called a, b, c, ..."
    )
    ranks: int = Field(ge=MIN_SIDE, le=MAX_SIDE, description="The number of ranks, 3 to 16.")
    first_rank: int = Field(
        default=1, ge=0, le=1, description="The name of White's nearest rank, 0 or 1. The default is 1."
    )


class RoyalSchema(_Strict):
    """`royal` with a piece for each side. A side that is not named has no royal."""

    white: Letter | None = Field(default=None, description="The letter of White's royal. The default is none.")
    black: Letter | None = Field(default=None, description="The letter of Black's royal. The default is none.")


Royal = Annotated[
    Annotated[Letter, Tag("text")] | Annotated[RoyalSchema, Tag("mapping")],
    _in_forms("royal"),
]


class PieceSchema(_Strict):
    """`pieces.<letter>`: a kind of piece. Both sides' pieces of a letter move alike, each as its own side sees it."""

    name: Text = Field(description="The name of the piece in words, such as `ninja knight`.")
    moves: Text | None = Field(
        default=None,
        description="How the piece moves, in Betza notation: `Q` for a queen, `NK` for knight or king, `mRcB` for a "
        "rook that captures as a bishop. There is no default: every piece needs it but the pawn, whose moves are given "
        "under `pawns`.",
    )
    overruns: Text | None = Field(
        default=None,
        description="Jumps of exactly two squares (Betza `D`, `A` or `DA`, with directions) that also capture an "
        "enemy on the square between. That capture is compulsory. The default is none.",
    )
    fires_through: Text | None = Field(
        default=None,
        description="Those slides of `moves` that may capture the first enemy they meet, go on, and stop beyond it on "
        "an empty square or on a second enemy, which is captured too. Betza, such as `R`. The default is none.",
    )
    fires_through_own: bool = Field(
        default=False,
        description="Whether `fires_through` may also pass one own piece, not the royal, and stop beyond it on an "
        "empty square or on a second piece, enemy or own but not the royal; both are captured. The default is false.",
    )
    captures_own: bool = Field(
        default=False,
        description="Whether the piece may also capture pieces of its own side, not the royal, by landing on them "
        "wherever it could capture an enemy. It may be set on the pawn too. The default is false.",
    )


class PromotesToSchema(_Strict):
    """`pawns.promotes_to` with its own choice for each side. A side that is not named has the default."""

    white: Letters | None = Field(
        default=None, description="What White's pawns promote to, such as `qr`. The default is that of `promotes_to`."
    )
    black: Letters | None = Field(
        default=None, description="What Black's pawns promote to, such as `bn`. The default is that of `promotes_to`."
    )


class PawnSchema(_Strict):
    """`pawns`: how the one kind of pawn moves. Ranks are named from White's side and mirrored for Black."""

    piece: Letter = Field(description="The letter of the pawn in `pieces`.")
    quiet: Text = Field(
        default="fW",
        description="Steps and leaps onto an empty square, in Betza notation without ranges and without m and c. The "
        "default is `fW`, one square forward; `fsW` adds a step to either side, `fF` makes the quiet half of a "
        "Berolina pawn.",
    )
    captures: Text = Field(
        default="fF",
        description="Steps and leaps that capture, en passant too, in Betza notation without ranges and without m and "
        "c. The default is `fF`, one square diagonally forward.",
    )
    first_steps: int = Field(
        default=1,
        ge=1,
        le=MAX_FIRST_STEPS,
        description="How many quiet steps forward a pawn may make at most in one move from a start rank, over empty "
        "squares, 1 to 7. Squares that it passes so can be captured en passant. The default is 1; chess has 2.",
    )
    first_steps_from: (
        Annotated[
            Annotated[Ranks, Tag("list")] | Annotated[Literal["all"], Tag("text")],
            _in_forms("first_steps_from"),
        ]
        | None
    ) = Field(
        default=None,
        description="The ranks from which `first_steps` holds, such as `[2]`, or `all` for every rank. There is no "
        "default; it must be given where `first_steps` is more than 1.",
    )
    promotes_on: Ranks | None = Field(
        default=None,
        description="The ranks of promotion, such as `[8]`; several only with `may`. The default is the last rank.",
    )
    promotes_to: (
        Annotated[
            Annotated[Letters, Tag("text")] | Annotated[PromotesToSchema, Tag("mapping")],
            _in_forms("promotes_to"),
        ]
        | None
    ) = Field(
        default=None,
        description="The letters of the pieces that a pawn may become, such as `qrbn`, or `{white: qr, black: bn}`. "
        "Not a side's own royal and not the pawn. The default is every other piece of the start positions but royals, "
        "in the order of `pieces`.",
    )
    promotion: Literal["must", "may"] = Field(
        default="must",
        description="`must`: a pawn that arrives on its first promotion rank or beyond promotes. `may`: on each of the "
        "promotion ranks it promotes or stays a pawn as its player likes, but promotes where it could never move on. "
        "The default is must.",
    )


class CastlingMoveSchema(_Strict):
    """`kingside` and `queenside`: one castling. Files only; all of it happens on one rank."""

    king_to: FileLetter = Field(description="The file where the king lands, such as `g`.")
    rook: FileLetter = Field(
        description="The file where its partner stands: whatever own piece is there at the start, such as `h`."
    )
    rook_to: FileLetter = Field(description="The file where the partner lands, such as `f`.")


class CastlingOfSideSchema(_Strict):
    """`castling.white` and `castling.black`: the castlings of one side."""

    rank: int = Field(
        ge=0, le=MAX_SIDE, description="The rank, as the board names it: in chess 1 under `white` and 8 under `black`."
    )
    king: FileLetter = Field(
        description="The file where the king stands: the side's royal or, in a side without one, whatever piece is "
        "there at the start."
    )
    kingside: CastlingMoveSchema | None = Field(
        default=None, description="The castling that a FEN calls K or k. The default is none."
    )
    queenside: CastlingMoveSchema | None = Field(
        default=None, description="The castling that a FEN calls Q or q. The default is none."
    )


class CastlingSchema(_Strict):
    """`castling` for both sides alike: the rank is White's and is mirrored for Black."""

    rank: int = Field(default=1, ge=0, le=MAX_SIDE, description="White's rank; mirrored for Black. The default is 1.")
    king: FileLetter = Field(
        description="The file where the king stands, such as `e`: the side's royal or, in a side without one, whatever "
        "piece is there at the start."
    )
    kingside: CastlingMoveSchema | None = Field(
        default=None, description="The castling that a FEN calls K or k. The default is none."
    )
    queenside: CastlingMoveSchema | None = Field(
        default=None, description="The castling that a FEN calls Q or q. The default is none."
    )


class CastlingBySideSchema(_Strict):
    """`castling` with its own rules for each side. A side that is not named does not castle."""

    white: CastlingOfSideSchema | None = Field(default=None, description="White's castlings. The default is none.")
    black: CastlingOfSideSchema | None = Field(default=None, description="Black's castlings. The default is none.")


CastlingForms = Annotated[
    Annotated[CastlingSchema, Tag("mirrored")] | Annotated[CastlingBySideSchema, Tag("sides")],
    Discriminator(_castling_form),
]


class GoalSquaresSchema(_Strict):
    """`squares` of a goal, for each side. A side that is not named has no such goal."""

    white: SquareNames | None = Field(default=None, description="The squares on which White wins, such as `[d8, e8]`.")
    black: SquareNames | None = Field(default=None, description="The squares on which Black wins, such as `[d1, e1]`.")


class GoalSchema(_Strict):
    """`ends.goals[]`: a side that has one of the pieces on one of its squares after its own move has won."""

    name: Annotated[str, StringConstraints(pattern=WORD, max_length=32)] = Field(
        default="goal",
        description="A word for the goal, such as `hill`; it is shown where games are described. `scepter` has a "
        "termination of its own. The default is `goal`.",
    )
    by: Letters = Field(
        description="The letters of the pieces that win there, such as `k` or `qp`. A pawn that promotes on the square "
        "counts as what it has become."
    )
    squares: GoalSquaresSchema = Field(description="The goal squares of each side.")


class RepetitionSchema(_Strict):
    """`ends.repetition`: how often a position may occur, and what its repetition is."""

    times: int = Field(
        default=3, ge=2, le=9, description="The occurrence of a position that ends the game, 2 to 9. The default is 3."
    )
    result: Result = Field(
        default="draw",
        description="What that is for the player to move in the repeated position: draw, win or loss. The default is "
        "draw.",
    )


class ExtinctionSchema(_Strict):
    """`ends.extinction`: a side that has no piece left of a kind ends the game."""

    pieces: Letters = Field(
        description="The letters of pieces, such as `qr`: a side is extinct with none left of one of them. Both sides "
        "must start with each, royal for neither. `all`: with no piece at all; not where both sides have a royal."
    )
    result: Result = Field(
        default="loss",
        description="What that is for the side whose pieces have died out: loss, win or draw. The default is loss.",
    )


class EndsSchema(_Strict):
    """`ends`: how games end, checkmate apart.

    Where several hold, the first of goals, extinction, checkmate, stalemate, bare kings, repetition and move limit
    counts.
    """

    stalemate: Result = Field(
        default="draw",
        description="What it is for the player who has no legal move and is not in check: draw, win or loss. The "
        "default is draw.",
    )
    repetition: Annotated[
        Annotated[RepetitionSchema, Tag("mapping")] | Annotated[Literal["off"], Tag("text")],
        _in_forms("repetition"),
    ] = Field(
        default_factory=RepetitionSchema,
        description="When repetition ends the game, or `off`. The default is `{times: 3, result: draw}`.",
    )
    move_limit: Annotated[
        Annotated[int, Field(ge=1, le=MAX_MOVE_LIMIT), Tag("number")] | Annotated[Literal["off"], Tag("text")],
        _in_forms("move_limit"),
    ] = Field(
        default=100,
        description="Plies (moves of one player) without a capture or pawn move after which the game is a draw, 1 to "
        "1000, or `off`. The default is 100, the fifty-move rule.",
    )
    bare_kings: Literal["draw", "off"] | None = Field(
        default=None,
        description="`draw`: two royals alone on the board are a draw; `off`: the game goes on. The default is draw "
        "where both sides have a royal, and off elsewhere.",
    )
    goals: list[GoalSchema] = Field(
        default_factory=list,
        max_length=MAX_GOALS,
        description="Squares that a side wins by reaching. The default is none.",
    )
    extinction: ExtinctionSchema | None = Field(
        default=None, description="What happens to a side that has lost all pieces of a kind. The default is nothing."
    )


class VariantSchema(_Strict):
    """A whole variant, parents merged, before options are applied."""

    name: Text = Field(description="The name of the game. The default is the name of its file.")
    inventor: Text | None = Field(default=None, description="Who invented the game.")
    year: int | None = Field(default=None, ge=500, le=3000, description="The year of the invention.")
    source: Text | None = Field(default=None, description="Where the rules are written down: a page, a book.")
    readings: list[Text] = Field(
        default_factory=list,
        max_length=MAX_READINGS,
        description="Sentences that say how a doubt in the source is resolved here. The default is none.",
    )
    board: BoardSchema = Field(description="The size of the board.")
    start: Annotated[
        Annotated[Text, Tag("text")] | Annotated[list[Text], Field(min_length=1, max_length=MAX_STARTS), Tag("list")],
        _in_forms("start"),
    ] = Field(
        description="The start position as a FEN, or a list of up to 1000 of them, from each of which a game begins "
        "with equal chance. `*` marks a hole in the board; holes lie the same in all of them."
    )
    royal: Royal | None = Field(
        default=None,
        description="The piece that may not be left in check and whose checkmate loses: a letter such as `k`, or "
        "`{white: k, black: g}`. A side has exactly one, or none where goals or extinction decide. The default is "
        "none.",
    )
    pieces: dict[Letter, PieceSchema] = Field(
        min_length=1,
        max_length=MAX_PIECE_TYPES,
        description="The kinds of piece, at most 15, each under its letter: small here, and in FENs capital for White.",
    )
    pawns: PawnSchema | None = Field(default=None, description="How pawns move. The default is a game without pawns.")
    castling: CastlingForms | None = Field(
        default=None,
        description="Castling, for both sides alike or under `white` and `black`. The default is none. A side with a "
        "royal castles out of, through and into no attack.",
    )
    ends: EndsSchema = Field(
        default_factory=EndsSchema, description="How games end, checkmate apart. The default is as in chess."
    )
    options: dict[str, dict[str, Any]] = Field(
        default_factory=dict,
        description="Named changes of the rules, at most 6, that a player may switch on. Each is a mapping that is "
        "laid over the game and may change start, pieces, pawns, castling and ends. The default is none.",
    )
