"""What a variant file cannot say, as data: the words that a designer might write, and the nearest supported form.

The words are compared with unknown keys at every level of a file, with values that are none of the expected words, and
with Betza texts that cannot be read. Capitals, hyphens and plurals make no difference.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

SEARCHED_LENGTH = 100
"""How much of a text is searched for the words."""


@dataclass(frozen=True)
class Refusal:
    """One concept that is not supported.

    Attributes:
        words: The words for it, divided by spaces; `_` joins the parts of a word.
        reason: What is not supported, and what is the nearest supported form.
    """

    words: str
    reason: str


REFUSALS = (
    Refusal(
        "drops drop hand hands in_hand pocket pockets holdings reserve reserves crazyhouse parachute",
        "pieces in hand are not supported; the nearest supported form is `pawns.promotes_to`, or a fuller `start`",
    ),
    Refusal(
        "gating gate gates seirawan",
        "gating is not supported; the nearest supported form is a larger `start` array",
    ),
    Refusal(
        "moves_per_turn several_moves double_move double_moves two_moves extra_move extra_turn move_again multimove "
        "marseillais progressive turn_order",
        "several moves a turn are not supported; the nearest supported form is `overruns` or `fires_through`, which "
        "capture two pieces in one move",
    ),
    Refusal(
        "pass passes passing may_pass skip null_move",
        "passing is not supported, every turn is one move; the nearest supported form is `ends.stalemate`, which says "
        "what it is to have no move",
    ),
    Refusal(
        "hopper hoppers hop hops cannon cannons pao vao grasshopper locust screen screens",
        "hoppers are not supported; the nearest supported form is an unblockable leap such as `D`, or `fires_through`",
    ),
    Refusal(
        "bent bend bends bent_rider gryphon griffon griffin aanca manticore hook_mover crooked rose multi_leg legs",
        "bent moves are not supported; the nearest supported form is a straight slide or rider together with a leap, "
        "such as `BC`",
    ),
    Refusal(
        "lame lame_leaper blockable blocked_by mao xiangqi_horse xiangqi_elephant",
        "lame leaps are not supported; the nearest supported form is a slide of limited range such as `F2`",
    ),
    Refusal(
        "optional_capture may_overrun overruns_optional jump_capture jump_captures checkers draughts leap_capture",
        "an optional capture of the piece jumped over is not supported, since from and to must fix what is captured; "
        "the nearest supported form is `overruns`, whose capture is compulsory",
    ),
    Refusal(
        "must_capture forced_capture compulsory_capture mandatory_capture obligatory_capture capture_compulsory "
        "antichess suicide giveaway losing_chess",
        "an obligation to capture is not supported; the nearest supported form is `ends.extinction` with `result: win`",
    ),
    Refusal(
        "explosion explosions explode explodes exploding atomic blast burn burns bomb kamikaze",
        "explosions are not supported; the nearest supported form is `overruns` or `fires_through`",
    ),
    Refusal(
        "rifle shoot shoots igui withdrawer advancer coordinator custodian immobilizer immobilize freeze freezes "
        "paralyze paralysis surround ultima baroque",
        "captures and powers at a distance are not supported; the nearest supported form is `overruns` or "
        "`fires_through`",
    ),
    Refusal(
        "hidden hide fog fog_of_war dark kriegspiel invisible unseen visibility secret face_down jieqi banqi",
        "hidden information is not supported, both sides see the whole board; there is no nearer form",
    ),
    Refusal(
        "dice die chance random roll probability shuffle randomized chess960 fischer_random",
        "chance in the moves is not supported; the nearest supported form is a list of `start` positions, one of which "
        "is drawn for each game",
    ),
    Refusal(
        "royals kings two_kings dual_kings second_royal royal_pieces several_royals duple_check spartan anti_royal "
        "pseudo_royal extra_royal",
        "several royals a side are not supported; the nearest supported form is `ends.extinction`, by which a side "
        "loses when it has none left of a kind",
    ),
    Refusal(
        "wall walls duck blocker blockers obstacle obstacles brick bricks arrow arrows amazons terrain neutral",
        "walls and neutral pieces are not supported; the nearest supported form is holes in the board, `*` in `start`",
    ),
    Refusal(
        "teleport teleports teleporter portal portals warp wormhole universal_leaper",
        "teleports are not supported; the nearest supported form is a far leap such as `Z` or a rider such as `NN`",
    ),
    Refusal(
        "cylindrical cylinder toroidal torus wrap wraps wrapping wraparound circular round sphere",
        "boards that wrap round are not supported; the nearest supported form is a flat board with holes",
    ),
    Refusal(
        "hex hexagonal hexagon triangular layers levels three_dimensional 3d",
        "boards that are not one grid of squares are not supported; the nearest supported form is a grid with holes",
    ),
    Refusal(
        "counter counters count points score scores check_limit check_count checks three_check n_checks lives "
        "hit_points health charges",
        "counters are not supported; the nearest supported form is `ends.goals` or `ends.extinction`, which a position "
        "alone decides",
    ),
    Refusal(
        "flying_general flying_generals flying_kings face_off facing facing_generals facing_kings",
        "flying generals are not supported as a rule of their own; the same comes of royals that also capture along "
        "the open file, such as `moves: WcfR`",
    ),
    Refusal(
        "captured captured_only promotes_to_captured promotion_captured captured_pieces lost_pieces from_captured",
        "promotion to captured pieces only is not supported; the nearest supported form is a fixed list in "
        "`pawns.promotes_to`",
    ),
    Refusal(
        "first_move first_moves initial initial_move initial_moves opening_moves unmoved once",
        "moves that a piece has only once are not supported; the nearest supported form is `pawns.first_steps`, which "
        "goes by rank",
    ),
    Refusal(
        "zone zones region regions area palace river confined confine mobility mobility_region territory",
        "pieces kept to a part of the board are not supported; the nearest supported form is holes in the board, or "
        "moves that do not lead out",
    ),
    Refusal(
        "relay knight_relay borrow lend powers absorb absorbs absorption imitate imitator chameleon transform",
        "pieces whose moves change in the game are not supported; the nearest supported form is promotion of the pawn",
    ),
    Refusal(
        "convert converts conversion change_colour change_color flip reversi andernach hostage recruit recruits",
        "pieces that change sides are not supported; a captured piece leaves the board",
    ),
    Refusal(
        "swap swaps swapping push pushes pull pulls push_pull exchange",
        "moves of two pieces at once are not supported; the nearest supported form is `castling`",
    ),
    Refusal(
        "players teams team bughouse partners alliances",
        "more than two players are not supported; the nearest supported form is White against Black",
    ),
    Refusal(
        "setup placement deployment sittuyin pre_placement",
        "a phase in which pieces are set up is not supported; the nearest supported form is a list of "
        "`start` positions",
    ),
    Refusal(
        "no_check no_checks checks_forbidden racing_kings perpetual_check perpetual_chase chasing check_wins",
        "rules about giving check are not supported; the nearest supported form is `ends.goals` or `ends.repetition`",
    ),
    Refusal(
        "capture_king king_capture capture_the_king royal_capture",
        "royals that are captured are not supported as such; the nearest supported form is a side without `royal` and "
        "`ends.extinction` of its king",
    ),
    Refusal(
        "connection connect line in_a_row count_material material majority territory_score",
        "ends that are counted or connected are not supported; the nearest supported form is `ends.goals` or "
        "`ends.extinction`",
    ),
    Refusal(
        "time clock time_control clocks",
        "time is no part of the rules; the nearest supported form is `ends.move_limit`, in plies",
    ),
    Refusal(
        "max_moves max_plies ply_cap game_length",
        "a limit of the whole game is no part of the rules; the nearest supported form is `ends.move_limit`, plies "
        "without a capture or pawn move",
    ),
    Refusal(
        "en_passant ep",
        "en passant cannot be switched: whatever a pawn passes in a first step can be captured so by `pawns.captures`",
    ),
    Refusal(
        "fifty_moves fifty_move_rule n_move_rule",
        "the fifty-move rule is `ends.move_limit`, in plies",
    ),
    Refusal(
        "threefold threefold_repetition n_fold repetition_rule",
        "repetition is `ends.repetition`, such as {times: 3, result: draw}",
    ),
)

REFUSALS_UNDER = {
    "pieces": (
        Refusal("royal king is_royal", "the royal is named once for the game: `royal`, beside `pieces`"),
        Refusal(
            "promotes promotes_to promotes_on promotion promoted",
            "promotion of pieces but the pawn is not supported; the nearest supported form is `pawns.promotes_to`",
        ),
        Refusal(
            "first_steps first_steps_from double_step",
            "moves that a piece has only once are not supported; the nearest supported form is `pawns.first_steps`",
        ),
        Refusal(
            "white black",
            "a piece moves alike for both sides; the nearest supported form is two pieces with letters of their own",
        ),
        Refusal(
            "value worth points",
            "values are no part of the rules; they are measured, not given",
        ),
    ),
    "pawns": (
        Refusal(
            "white black",
            "pawns move alike for both sides; the nearest supported form is other pieces with moves such as `mfWcfF`",
        ),
        Refusal(
            "pieces second berolina sergeant",
            "more than one kind of pawn is not supported; the nearest supported form is a piece with moves such as "
            "`mfWcfF`; a Berolina pawn has `quiet: fF` and `captures: fW`",
        ),
        Refusal("moves", "the pawn's moves are given by `pawns.quiet` and `pawns.captures`"),
    ),
    "board": (
        Refusal("width columns", "the number of files is `files`"),
        Refusal("height rows", "the number of ranks is `ranks`"),
        Refusal("holes shape squares", "holes are written in `start`, `*` for each square that is not there"),
    ),
    "castling": (
        Refusal(
            "through_check free anywhere condition conditions long short moves",
            "other ways and conditions of castling are not supported; the nearest supported form is `kingside` and "
            "`queenside` with their files",
        ),
    ),
    "ends": (
        Refusal(
            "checkmate mate check",
            "checkmate of a royal is always a loss; the nearest supported form is a side without `royal`, and "
            "`ends.extinction`",
        ),
        Refusal("bare_king baring", "baring one king is not supported; the nearest supported form is `bare_kings`"),
    ),
}
"""Words that mean something else, or nothing, under one key of the file."""

REFUSED_LISTS: dict[tuple[str | int, ...], str] = {
    ("pawns",): "more than one kind of pawn is not supported; the nearest supported form is a piece with moves such as "
    "`mfWcfF`",
    ("royal",): "several royals a side are not supported; the nearest supported form is `ends.extinction`, by which a "
    "side loses when it has none left of a kind",
    ("ends", "extinction"): "several extinctions are not supported; the nearest supported form is one with several "
    "letters, any of which ends the game",
}
"""What a list means where the schema expects none."""


def refusal_of_key(key: str, section: str) -> str | None:
    """Return why an unknown key is not supported, or None if it names no known concept.

    Args:
        key: The key.
        section: The file's top-level key that it stands under, or an empty string.
    """
    word = _word(key)
    for known in (word, word.removesuffix("s")):
        reason = _TABLES.get(section, {}).get(known) or _TABLES[""].get(known)
        if reason:
            return reason
    return None


def refusal_of_part(key: str) -> str | None:
    """Return why a key is not supported of which only a part names a known concept, or None."""
    parts = _word(key).split("_")
    found = (refusal_of_key("_".join(parts[i:j]), "") for i in range(len(parts)) for j in range(len(parts), i, -1))
    return next((reason for reason in found if reason), None)


def refusal_of_value(text: str) -> str | None:
    """Return why a value is not supported, or None if no word in it names a known concept."""
    words = (refusal_of_key(word, "") for word in re.findall(r"[A-Za-z][A-Za-z_-]{2,}", text[:SEARCHED_LENGTH]))
    return next((reason for reason in words if reason), None)


def _word(text: str) -> str:
    """Return a word as it is compared: small letters, its parts joined by `_`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[\s-]+", "_", text[:SEARCHED_LENGTH]).lower()


def _table(refusals: tuple[Refusal, ...]) -> dict[str, str]:
    return {word: refusal.reason for refusal in refusals for word in refusal.words.split()}


_TABLES = {"": _table(REFUSALS), **{section: _table(refusals) for section, refusals in REFUSALS_UNDER.items()}}
