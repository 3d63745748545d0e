"""The words of every key of a variant file: what each value changes in the rule sheet."""

import pytest

from envs import Variant, load_variant, variant_from_document
from envs.describe import describe, describe_piece, option_changes
from envs.strict_yaml import load_yaml
from envs.variant_files import merge

FILES = "abcdefgh"
NO_CASTLING = "castling: null\nstart: rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w - - 0 1\n"
NO_ROYAL = "royal: null\nends: {bare_kings: off, extinction: {pieces: k}}\n"
WHITE_CASTLES = (
    "castling: {white: {rank: 1, king: e, kingside: {king_to: g, rook: h, rook_to: f}}}\n"
    "start: rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w K - 0 1\n"
)


def changed_chess(text: str) -> Variant:
    """Return chess with a document laid over it."""
    return variant_from_document(merge(load_variant("chess").document, load_yaml(text, "test")[0]))


def said(text: str, section: str, heading: str) -> str:
    """Return what the rule sheet of changed chess says under a heading, empty where it has no such heading."""
    (entries,) = (part.entries for part in describe(changed_chess(text)) if part.title == section)
    return " ".join(sentence for entry in entries if entry.heading == heading for sentence in entry.sentences)


def ending(text: str, heading: str) -> str:
    return said(text, "How a game ends", heading)


def order(text: str) -> str:
    return ending(text, "Several at once").removeprefix("The first that holds counts: ").removesuffix(".")


def piece(text: str, letter: str) -> str:
    variant = changed_chess(text)
    return " ".join(describe_piece(variant, variant.type_by_letter[letter]).sentences)


def headings(text: str) -> list[str]:
    variant = changed_chess(text)
    return [describe_piece(variant, number).heading for number in range(len(variant.piece_types))]


# --- Start positions and royals -----------------------------------------------------------------


def test_several_starts_are_counted_and_said_to_have_equal_chance() -> None:
    text = (
        "castling: null\n"
        "start:\n"
        "  - rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w - - 0 1\n"
        "  - rnbkqbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w - - 0 1\n"
        "  - rnbkqbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBKQBNR b - - 0 1\n"
    )
    board = said(text, "Board", "")
    assert "3 start positions: a game begins from each with equal chance. Drawn: the first." in board
    assert "In 2 of them Black's array mirrors White's, file by file." in board
    assert "White moves first in 2 of them, Black in 1." in board


def test_one_start_says_who_moves_first_and_whether_the_arrays_mirror() -> None:
    board = said(NO_CASTLING.replace(" w ", " b ").replace("RNBQKBNR", "RNBKQBNR"), "Board", "")
    assert "The two arrays do not mirror each other. Black moves first." in board
    assert "start positions" not in board


def test_a_royal_of_one_side_is_named_in_headings_in_general_and_in_checkmate() -> None:
    text = "royal: {white: k}\nends: {bare_kings: off, extinction: {pieces: all}}\n"
    assert "K, king (White's royal, not royal for Black)" in headings(text)
    assert "Black is never in check, and all of its pieces may be captured." in said(text, "Pieces", "")
    assert ending(text, "Checkmate") == (
        "White's king in check with no legal move is mated: White loses. Black has no royal piece and can be "
        "neither in check nor mated."
    )


def test_two_different_royals_are_told_apart() -> None:
    text = "royal: {white: k, black: g}\npieces: {g: {name: general, moves: K}}\n" + NO_CASTLING.replace("qkb", "qgb")
    assert "K, king (White's royal)" in headings(text)
    assert "G, general (Black's royal)" in headings(text)
    assert ending(text, "Checkmate").startswith("A king of White or a general of Black in check")
    assert ending(text, "Bare kings") == "White's king and Black's general alone on the board are a draw."


def test_without_royals_there_is_no_check_and_no_mate() -> None:
    assert "No piece is royal: there is no check, and every piece may be captured." in said(NO_ROYAL, "Pieces", "")
    assert headings(NO_ROYAL)[0] == "K, king"
    assert ending(NO_ROYAL, "Checkmate") == ""
    assert ending(NO_ROYAL, "Stalemate") == "No legal move is a draw."
    assert "a win on the 100th is still a win" in ending(NO_ROYAL, "Fifty moves")
    assert order(NO_ROYAL) == "extinction, stalemate, repetition, fifty moves"


def test_a_piece_that_only_one_side_can_have_says_so() -> None:
    text = "pieces: {c: {name: chancellor, moves: RN}}\npawns: {promotes_to: qrbn}\n" + NO_CASTLING.replace(
        "/RNBQ", "/RNBC"
    )
    assert "C, chancellor (White only)" in headings(text)
    assert "Q, queen" in headings(text)
    assert "Q, queen (Black only)" in headings(text.replace("qrbn}", "rbn}"))


# --- Pieces -------------------------------------------------------------------------------------


def test_captures_own_names_what_is_excepted() -> None:
    text = "pieces: {q: {captures_own: true}, k: {captures_own: true}, p: {captures_own: true}}\n"
    own = "Where it may capture an enemy it may also capture an own piece, its own king excepted."
    assert piece(text, "Q") == f"Slides any distance in any direction. {own}"
    assert piece(text, "K").endswith("Where it may capture an enemy it may also capture an own piece.")
    assert own in piece(text, "P")
    assert own.replace(", its own king excepted", "") in piece(text + NO_ROYAL, "Q")
    only_white = text + "royal: {white: k}\nends: {bare_kings: off, extinction: {pieces: q}}\n"
    assert own.replace("king", "royal piece") in piece(only_white, "Q")


def test_captures_own_of_a_piece_that_jumps_over_or_fires_through() -> None:
    text = (
        "pieces: {{n: {{overruns: DA, captures_own: true}}, "
        "r: {{moves: RN, fires_through: R, {0}captures_own: true}}}}\n"
    )
    knight, rook = (piece(text.format(""), letter) for letter in "NR")
    assert "to an empty square, an enemy or an own piece; an enemy on the square jumped over is captured too" in knight
    assert "it may also capture an own piece, its own king excepted." in knight
    assert "It never fires through a friend, but it may stop on one, before or after firing, and capture it" in rook
    assert "it may also capture an own piece" in rook
    rook = piece(text.format("fires_through_own: true, "), "R")
    assert "It may also stop on the first friend, or on a friend after an enemy, the king excepted, and capture" in rook
    assert "it may also capture an own piece" not in piece(text.format("").replace("RN", "R"), "R")


def test_firing_through_friends_without_a_royal_excepts_nothing() -> None:
    text = "pieces: {r: {fires_through: R, fires_through_own: true}}\n" + NO_ROYAL
    assert "king" not in piece(text, "R")
    assert "on an enemy or on a second friend and captures what stands there." in piece(text, "R")


@pytest.mark.parametrize("keys, where", [
    ("moves: Q, fires_through: R", "on a slide orthogonally"),
    ("moves: Q, fires_through: B", "on a slide diagonally"),
    ("moves: Q, fires_through: RbB", "on a slide orthogonally or diagonally backward"),
    ("moves: R4B2N, fires_through: fR4bB2", "on a slide forward or diagonally backward"),
    ("moves: RmB, fires_through: R", "on a slide orthogonally"),
    ("moves: BNN, fires_through: NN", "when it repeats the leap of a knight (two squares by one)"),
    ("moves: RAANN, fires_through: RAA",
     "on a slide orthogonally or when it repeats leaps of exactly two squares diagonally"),
])  # fmt: skip
def test_slides_that_fire_through_are_named_where_others_do_not(keys: str, where: str) -> None:
    words = piece(f"pieces: {{r: {{{keys}}}}}\n", "R")
    assert f"It may fire through the first enemy it meets {where}: that piece is captured" in words
    assert "Its other moves fire through nothing." in words


@pytest.mark.parametrize("keys", ["moves: Q, fires_through: Q", "moves: RN, fires_through: R"])
def test_slides_that_fire_through_are_not_named_where_all_do(keys: str) -> None:
    words = piece(f"pieces: {{r: {{{keys}}}}}\n", "R")
    assert "the first enemy it meets on a slide: that piece is captured" in words
    assert "fire through nothing" not in words


def test_an_option_that_changes_which_slides_fire_through_changes_sentences() -> None:
    text = "pieces: {r: {moves: Q, fires_through: R}}\noptions: {back: {pieces: {r: {fires_through: bB}}}}\n"
    (change,) = option_changes(changed_chess(text))
    assert any("on a slide orthogonally:" in sentence for _, sentence in change.removed)
    assert any("on a slide diagonally backward:" in sentence for _, sentence in change.added)


# --- Pawns --------------------------------------------------------------------------------------


@pytest.mark.parametrize("keys, expected", [
    ("quiet: fsW, first_steps: 1, first_steps_from: null", "One step forward or sideways onto an empty square."),
    ("quiet: fsW", "from rank 2 (White) or 7 (Black) up to two steps forward over empty squares."),
    ("quiet: fF, captures: fW", "One step diagonally forward onto an empty square. From rank 2 (White) or 7 (Black) it "
     "may make a move of these up to twice in the same direction, each time onto an empty square. Captures one step "
     "forward."),
    ("quiet: fWbF", "One step forward or diagonally backward onto an empty square; from"),
    ("quiet: sWfF, captures: fW, first_steps: 3", "it may make a move of these that leads forward up to three times in "
     "the same direction"),
    ("quiet: fWfD, captures: fN, first_steps: 1, first_steps_from: null", "One step forward onto an empty square. "
     "Without capturing: leaps exactly two squares forward, over anything. To capture: leaps like a knight (two "
     "squares by one, only two forward and one right or two forward and one left), over anything. On reaching rank 8 "
     "(White) or 1 (Black), or a rank beyond, it must become"),
    ("first_steps_from: [2, 3]", "from rank 2 or 3 (White) or 6 or 7 (Black) up to two steps over empty squares."),
    ("first_steps_from: all", "One step forward onto an empty square; from any rank up to two steps over empty"),
    ("first_steps: 3, promotes_on: [4]", "Several steps in one move end where it must promote."),
    ("promotes_to: q", "On reaching rank 8 (White) or 1 (Black) it must become a queen (Q)."),
    ("promotes_to: {white: qr, black: n}", "it must promote. White's pawn becomes one of: queen (Q) or rook (R). "
     "Black's pawn becomes a knight (N)."),
    ("promotes_on: [6]", "On reaching rank 6 (White) or 3 (Black) it must become one of: queen"),
    ("promotion: may, promotes_on: [6, 7, 8]", "When its move ends on rank 6, 7 or 8 (White) or 1, 2 or 3 (Black), it "
     "may stay a pawn or become one of: queen (Q), rook (R), bishop (B) or knight (N). On rank 8 (White) or rank 1 "
     "(Black) it must, as it could never move again."),
    ("promotion: may, promotes_on: [6, 8], first_steps_from: all", "Several steps in one move end on the first "
     "promotion rank that it lands on."),
])  # fmt: skip
def test_pawn_keys_in_words(keys: str, expected: str) -> None:
    assert expected in piece(f"pawns: {{{keys}}}\n", "P")


def test_pawns_that_can_always_move_on_are_never_forced_to_promote() -> None:
    text = "pawns: {quiet: fsW, promotion: may}\n"
    assert piece(text, "P").endswith("or knight (N).")


@pytest.mark.parametrize("keys, expected", [
    ("first_steps: 2", "when it has moved two steps, an enemy pawn may capture it"),
    ("first_steps: 3", "when it has moved more than one step, an enemy pawn may capture it"),
    ("quiet: fD, captures: fF, first_steps: 2", "when it has moved more than once in a turn, an enemy pawn may capture "
     "it on the very next move, by a capturing move to a square where it touched down on the way."),
])  # fmt: skip
def test_what_can_be_captured_in_passing(keys: str, expected: str) -> None:
    assert expected in piece(f"pawns: {{{keys}}}\n", "P")


# --- Castling -----------------------------------------------------------------------------------


def test_castling_of_one_side_says_who_castles() -> None:
    assert said(WHITE_CASTLES, "Castling", "White kingside").startswith("King e1 to g1, rook h1 to f1. f1 and g1 must")
    assert said(WHITE_CASTLES, "Castling", "Black kingside") == ""
    assert said(WHITE_CASTLES, "Castling", "Conditions") == (
        "Only White castles. The king is not in check, and it and the rook have not moved. The right is also lost when "
        "the rook is captured at home in any way. The move is written as the king's: e1g1."
    )


def test_castling_without_a_royal_fears_no_attack() -> None:
    conditions = said(NO_ROYAL, "Castling", "Conditions")
    assert "The king and the rook have not moved. The right is also lost when either is captured at home" in conditions
    assert "Attacks do not matter." in conditions
    assert said(NO_ROYAL, "Castling", "White queenside") == (
        "King e1 to c1, rook a1 to d1. b1, c1 and d1 must be empty."
    )


def test_castling_of_a_royal_and_of_a_side_without_one_have_their_own_conditions() -> None:
    text = "royal: {white: k}\nends: {bare_kings: off, extinction: {pieces: all}}\n"
    assert "not in check" in said(text, "Castling", "White conditions")
    assert "Attacks do not matter." in said(text, "Castling", "Black conditions")


def test_partners_of_several_starts_are_all_named_and_missing_rights_counted() -> None:
    text = (
        "start:\n"
        "  - rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1\n"
        "  - nrbqkbrn/pppppppp/8/8/8/8/PPPPPPPP/NRBQKBRN w KQkq - 0 1\n"
        "  - rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQq - 0 1\n"
    )
    assert said(text, "Castling", "White kingside").startswith("King e1 to g1, rook or knight h1 to f1.")
    assert said(text, "Castling", "Black kingside").endswith("The right is missing in 1 of the 3 start positions.")
    assert "it and its partner have not moved" in said(text, "Castling", "Conditions")


# --- Endings ------------------------------------------------------------------------------------


@pytest.mark.parametrize("result, expected", [
    ("draw", "No legal move without being in check is a draw."),
    ("win", "The side that has no legal move and is not in check wins."),
    ("loss", "The side that has no legal move and is not in check loses."),
])  # fmt: skip
def test_stalemate_says_which_side_wins(result: str, expected: str) -> None:
    assert ending(f"ends: {{stalemate: {result}}}\n", "Stalemate") == expected


@pytest.mark.parametrize("times, result, expected", [
    (2, "draw", "The same position for the second time is a draw: the same board and side to move, "),
    (4, "draw", "The same position for the fourth time is a draw: "),
    (3, "win", "The player whose move brings about the same position for the third time loses, the player to move then "
     "wins. What must be the same: the same board and side to move, the same castling rights and the same legal en "
     "passant captures."),
    (3, "loss", "The player whose move brings about the same position for the third time wins, the player to move then "
     "loses."),
])  # fmt: skip
def test_repetition_says_when_and_who_wins(times: int, result: str, expected: str) -> None:
    text = f"ends: {{repetition: {{times: {times}, result: {result}}}}}\n"
    assert ending(text, "Repetition").startswith(expected)


def test_pawns_that_can_come_back_are_named_where_positions_and_moves_are_counted() -> None:
    sideways, both = "pawns: {quiet: fsW}\n", "pawns: {quiet: fsbW}\n"
    assert ending(sideways, "Repetition").endswith(
        "Pawns can step sideways here, so positions from before a pawn move may come again and count."
    )
    assert "Pawns can step sideways or backward here" in ending(both, "Repetition")
    assert ending(sideways, "Fifty moves").endswith("A pawn move sideways counts as a pawn move too.")
    assert "Pawns can" not in ending("name: Chess\n", "Repetition")


@pytest.mark.parametrize("limit, expected", [
    (70, "70 plies without a capture or pawn move are a draw; a mate on the 70th is still a mate."),
    (1, "1 ply without a capture or pawn move is a draw; a mate on the 1st is still a mate."),
    (112, "a mate on the 112th is still a mate."),
    (122, "a mate on the 122nd is still a mate."),
])  # fmt: skip
def test_another_move_limit_has_its_own_name(limit: int, expected: str) -> None:
    text = f"ends: {{move_limit: {limit}}}\n"
    assert ending(text, "Move limit").endswith(expected)
    assert ending(text, "Fifty moves") == ""
    assert order(text).endswith("repetition, move limit")


def test_royals_have_the_article_and_the_plural_of_their_names() -> None:
    text = "pieces: {k: {name: empress}}\n"
    assert ending(text, "Checkmate") == "An empress in check with no legal move is mated: its side loses."
    assert ending(text, "Bare kings") == "The two empresses alone on the board are a draw."
    text = (
        "royal: {white: k, black: e}\npieces: {e: {name: empress, moves: RN}}\ncastling: null\n"
        "start: rnbqebnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w - - 0 1\n"
    )
    assert ending(text, "Checkmate").startswith("A king of White or an empress of Black in check")


def test_limits_that_a_game_does_not_have_are_said() -> None:
    text = "ends: {repetition: off, move_limit: off, bare_kings: off}\n"
    assert ending(text, "No repetition") == "A position may come again any number of times."
    assert ending(text, "No move limit") == "Any number of plies may pass without a capture or pawn move."
    assert order(text) == "checkmate, stalemate"


def goals(*lines: str) -> str:
    return "ends:\n  goals:\n" + "".join(f"    - {line}\n" for line in lines)


def test_goals_have_their_names_their_pieces_and_their_sides() -> None:
    ranks = [f"[{', '.join(f'{file}{rank}' for file in FILES)}]" for rank in (8, 1)]
    text = goals(
        f"{{name: touchdown, by: kn, squares: {{white: {ranks[0]}, black: {ranks[1]}}}}}",
        "{name: hill, by: q, squares: {white: [d4, e4], black: [d4, e4]}}",
        "{name: escape, by: r, squares: {white: [a6]}}",
    )
    assert ending(text, "Touchdown") == (
        "A king or knight that makes a legal move onto rank 8 (White) or rank 1 (Black) wins at once. A pawn that "
        "promotes there counts as what it becomes."
    )
    assert ending(text, "Hill") == "A queen that makes a legal move onto d4 or e4 wins at once."
    assert ending(text, "Escape") == (
        "A rook of White that makes a legal move onto a6 wins at once. Black has no such goal."
    )
    assert order(text).startswith("touchdown, hill, escape, checkmate")


def test_goals_of_one_name_share_an_entry() -> None:
    text = goals(
        "{name: hill, by: q, squares: {white: [d4], black: [d5]}}",
        "{name: hill, by: r, squares: {white: [e4], black: [e5]}}",
    )
    assert ending(text, "Hill") == (
        "A queen that makes a legal move onto d4 (White) or d5 (Black) wins at once. A rook that makes a legal move "
        "onto e4 (White) or e5 (Black) wins at once."
    )
    assert order(text).startswith("hill, checkmate")


def test_a_goal_that_castling_reaches_with_the_partner_says_so() -> None:
    text = goals("{name: post, by: r, squares: {white: [f1, f5]}}")
    assert "It also wins when castling brings it there as the partner." in ending(text, "Post")


@pytest.mark.parametrize("extinction, expected", [
    ("{pieces: all}", "A side that has no piece left loses at once."),
    ("{pieces: q, result: win}", "A side that has no queen left wins at once. A promoted pawn counts as what it has "
     "become."),
    ("{pieces: qr}", "A side that has lost its last queen or rook (one of these kinds is enough) loses at once."),
    ("{pieces: p}", "A side that has no pawn left loses at once. A promoted pawn counts as what it has become. If it "
     "holds for both sides at once, the side that has just moved is the one that counts."),
])  # fmt: skip
def test_extinction_says_what_dies_out_and_who_wins(extinction: str, expected: str) -> None:
    text = f"royal: null\nends: {{bare_kings: off, extinction: {extinction}}}\n"
    assert ending(text, "Extinction").startswith(expected)
    assert order(text).startswith("extinction, stalemate")


def test_extinction_beside_royals_comes_before_checkmate() -> None:
    text = "ends: {extinction: {pieces: n, result: draw}}\n"
    assert ending(text, "Extinction").startswith(
        "The game is a draw as soon as there is a side that has no knight left. A promoted pawn counts as"
    )
    assert order(text).startswith("extinction, checkmate")


def test_an_option_that_changes_the_start_alone_shows_the_positions() -> None:
    text = (
        "castling: null\nstart: rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w - - 0 1\n"
        "options: {swapped: {start: rnbkqbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBKQBNR w - - 0 1}}\n"
    )
    (change,) = option_changes(changed_chess(text))
    assert change.removed == (("Start", "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w - - 0 1"),)
    assert change.added == (("Start", "rnbkqbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBKQBNR w - - 0 1"),)
