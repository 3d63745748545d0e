"""XBoard's protocol: a scripted conversation, squares and moves as XBoard names them, and games it does not know."""

import re
import time
from functools import cache

import pytest

from envs import Position, list_variants, load_variant
from envs.betza import parse_betza
from envs.variant import BLACK, WHITE
from tests.train.engine_transcripts import FOLDER, Conversation, alphabeta, converse
from train.engine_betza import piece_description
from train.engine_games import Games
from train.engine_xboard import XBoardSession
from train.engine_xboard_clock import TimeControl
from train.engine_xboard_rules import SLOTS, XBoardSquares, setup_commands, xboard_name

FIRE = "9k/10/10/10/10/10/10/10/R2p1p4/5K4 w - - 0 1"
OVERRUN = "k9/10/10/10/10/10/2p7/2p7/2N7/5K4 w - - 0 1"

game = cache(load_variant)


def test_every_command_is_answered_as_in_the_golden_conversation():
    assert converse("xboard") == (FOLDER / "xboard.txt").read_text(encoding="utf-8")


# --- Squares and moves ------------------------------------------------------------------------


@pytest.mark.parametrize("name, own, xboards", [
    ("chess", "e7e8q", "e7e8q"),
    ("asylum", "a9a10q", "a8a9q"),
    ("asylum", "j10j1", "j9j0"),
    ("palace_ninja_guards", "d0e9", "d0e9"),
    ("omega", "a0l11", "a1l12"),
    ("gardner", "a1a2", "a1a2"),
    ("courier", "l1l8", "l1l8"),
])  # fmt: skip
def test_ranks_are_counted_from_zero_on_ten_of_them_and_else_from_one(name, own, xboards):
    squares = XBoardSquares(game(name))
    assert squares.text_to_gui(own) == xboards
    assert squares.move_from_gui(xboards) == own


def test_en_passant_squares_of_a_position_are_named_so_too():
    squares = XBoardSquares(game("asylum"))
    own = "rnbmqkmbnr/1ppppppppp/10/10/p9/P9/10/10/1PPPPPPPPP/RNBMQKMBNR w KQkq a7a8 0 2"
    theirs = own.replace("a7a8", "a6a7")
    assert squares.fen_to_gui(own) == theirs
    assert squares.fen_from_gui(theirs) == own
    assert squares.fen_from_gui("8/8 w") == "8/8 w"


@pytest.mark.parametrize("fen, move, legs", [
    (FIRE, "a2f2", ["a1d1,", "d1f1"]),
    (FIRE, "a2e2", ["a1d1,", "d1e1"]),
    (FIRE, "a2d2", ["a1d1"]),
    (FIRE, "a2c2", ["a1c1"]),
    (OVERRUN, "c2c4", ["c1c2,", "c2c3"]),
    (OVERRUN, "c2c3", ["c1c2"]),
    ("rnbmqkmbnr/1ppppppppp/10/10/p9/1P8/10/10/P1PPPPPPPP/RNBMQKMBNR w KQkq - 0 2", "a2a5", ["a1a4"]),
    ("9k/10/10/10/4Pp4/10/10/10/10/5K4 w - f7f8 0 2", "e6f7", ["e5f6"]),
])  # fmt: skip
def test_a_move_that_captures_on_its_way_has_two_legs(fen, move, legs):
    position = Position("asylum", fen)
    squares = XBoardSquares(position.variant)
    assert squares.move_to_gui(position, move) == legs
    assert squares.move_from_gui("".join(legs)) == move


@pytest.mark.parametrize("text", ["", "e2", "e2e4e5", "e2e4,", "e2e4,e4", "O-O", "P@e4", "z1z2", "e2-e4", "e2e4qq"])
def test_what_is_no_move_is_none(text):
    assert XBoardSquares(game("chess")).move_from_gui(text) is None


def test_a_promotion_may_be_capital_and_none_may_be_said():
    squares = XBoardSquares(game("grand"))
    assert squares.move_from_gui("A7A8Q") == "a8a9q"
    assert squares.move_from_gui("a7a8=") == "a8a9"


def test_double_captures_are_played_in_both_directions():
    talk = Conversation(XBoardSession, game="asylum")
    talk.say("force", f"setboard {FIRE}", "usermove a1d1,d1f1")
    assert talk.session._game.moves == ["a2f2"]
    talk = Conversation(XBoardSession, game="asylum")
    talk.thinker.think = lambda root, limits, stop, report: _only("a2f2")
    talk.session.obey(f"setboard {FIRE}")
    talk.session.obey("go")
    assert talk.until("move d1f1") == ["move a1d1,", "move d1f1"]


@pytest.mark.parametrize("fen, text", [
    (FIRE, "a1b1,b1c1"),  # nothing is captured on b1
    (FIRE, "a1e1,e1f1"),  # the pawn is on d1
    (FIRE, "a1d1,e1f1"),  # legs that do not meet
    (FIRE, "a1d1,d1e1,e1f1"),
    (FIRE, "a1d1,d1a1"),
    (OVERRUN, "c1d2,d2c3"),
    (OVERRUN, "c1c2,c2c4"),
])  # fmt: skip
def test_a_move_of_several_legs_that_does_not_go_so_is_illegal(fen, text):
    talk = Conversation(XBoardSession, game="asylum")
    (answered,) = talk.say("force", f"setboard {fen}", f"usermove {text}")
    assert answered == f"Illegal move (it does not go that way): {text}"
    assert not talk.session._game.moves


def _only(move):
    from train.engine_thinkers import NO_SCORE, Line, Thought

    return Thought((Line((move,), 0, None, NO_SCORE),), 1, 1, 1, 0.0)


# --- Games that XBoard does not know ------------------------------------------------------------


@pytest.mark.parametrize("name", list_variants())
def test_a_game_is_described_by_its_board_its_start_and_all_of_its_pieces(name):
    variant = game(name)
    setup, *pieces = setup_commands(variant)
    match = re.fullmatch(r"setup \((\S+)\) (\d+)x(\d+)\+0_fairy (.+)", setup)
    table, files, ranks, start = match.groups()
    assert (int(files), int(ranks)) == (variant.board.files, variant.board.ranks)
    assert XBoardSquares(variant).fen_from_gui(start) == variant.start_fen
    assert len(table) == 2 * len(SLOTS)
    letters = sorted(piece.letter for piece in variant.piece_types)
    assert sorted(table[: len(SLOTS)].replace(".", "")) == letters
    assert sorted(table[len(SLOTS) :].replace(".", "").upper()) == letters
    for side, place in ((WHITE, len(SLOTS) - 1), (BLACK, -1)):
        royal = variant.royals[side]
        assert table[place].upper() == ("." if royal is None else variant.piece_types[royal].letter)
    assert {command.split()[1][0].upper() for command in pieces} == set(letters)
    assert all(re.fullmatch(r"piece [A-Z]& \S+|piece [A-Za-z] \S+", command) for command in pieces)


@pytest.mark.parametrize("name", list_variants())
def test_a_description_reads_back_as_the_moves_of_the_piece(name):
    variant = game(name)
    for number, piece in enumerate(variant.piece_types):
        if not piece.rays or piece.captures_own:
            continue
        text = re.sub(r"[a-z]*O\d+", "", piece_description(variant, number))
        plain = re.sub(r"[a-z]*[mtpcd]*af[a-z]*[A-Z]\d*", "", text)
        wanted = {(ray.step, ray.reach, ray.quiet, ray.capture) for ray in piece.rays if not ray.overruns}
        assert {(ray.step, ray.reach, ray.quiet, ray.capture) for ray in parse_betza(plain)} == wanted, text


@pytest.mark.parametrize("name, letter, text", [
    ("asylum", "R", "W0cafW0"),
    ("asylum", "N", "NWFmtpafWcafWmtpafFcafF"),
    ("asylum", "P", "fmWifmW3fceF"),
    ("asylum", "K", "WFisO3"),
    ("palace_ninja_guards", "G", "FmtpafFcafF"),
    ("torpedo", "P", "fmWfmW2fceF"),
    ("gardner", "P", "fmWfcF"),
    ("berolina", "P", "fmFifmF2fceW"),
    ("omega", "K", "WFisjO2"),
    ("janus", "K", "WFirO4ilO3"),
    ("self_capture", "P", "fmWifmW2fcdeF"),
    ("self_capture", "Q", "mcdW0mcdF0"),
    ("breakthrough", "P", "fmWfF"),
])  # fmt: skip
def test_some_pieces_are_described_as_xboard_reads_them(name, letter, text):
    variant = game(name)
    assert piece_description(variant, variant.type_by_letter[letter]) == text


def test_every_game_is_found_by_the_name_that_xboard_is_given():
    games = Games(None, only=False)
    names = [xboard_name(name) for name in games.names]
    assert len(set(names)) == len(names)
    assert [games.find(name).name for name in names] == games.names


# --- Clocks and turns ---------------------------------------------------------------------------


def test_a_session_of_moves_ends_and_begins_anew():
    control = TimeControl(moves=40, base=300.0, left=100.0)
    assert control.limits(39).seconds > control.limits(20).seconds > control.limits(0).seconds
    assert control.limits(40).seconds == control.limits(0).seconds


def test_the_clock_the_time_for_a_move_and_the_depth_are_kept_until_another_is_set():
    talk = Conversation(XBoardSession)
    talk.say("new", "level 0 5 2", "time 30010", "usermove e2e4", "st 10", "sd 4", "usermove d2d4", "level 0 1 0",
             "usermove c2c4", "new", "usermove e2e4")  # fmt: skip
    seconds = [limits.seconds for limits in talk.thinker.asked]
    assert seconds == pytest.approx([11.5, 9.9, 59.9 / 30, 59.9 / 30])
    assert [limits.depth for limits in talk.thinker.asked] == [None, 4, 4, None]


def test_a_ping_is_answered_after_the_move_that_is_being_thought_about():
    talk = Conversation(XBoardSession, alphabeta())
    for line in ("ping 1", "st 1", "usermove e2e4", "ping 2"):
        talk.session.obey(line)
    assert talk.until("pong 1") == ["pong 1"]
    first, second = talk.until("pong 2")
    assert first.startswith("move ")
    assert second == "pong 2"


def test_move_now_moves_and_force_does_not():
    talk = Conversation(XBoardSession, alphabeta())
    for line in ("level 0 60 0", "usermove e2e4", "?"):
        talk.session.obey(line)
    assert talk.until("move ")
    started = time.monotonic()
    for line in ("usermove d2d4", "force", "ping 1"):
        talk.session.obey(line)
    assert talk.until("pong") == ["pong 1"]
    assert time.monotonic() - started < 5
    assert len(talk.session._game.moves) == 3


def test_the_end_of_a_game_is_said_for_either_side():
    talk = Conversation(XBoardSession)
    assert talk.say("force", "usermove f2f3", "usermove e7e5", "usermove g2g4", "usermove d8h4") == [
        "0-1 {Black mates}"
    ]
    talk = Conversation(XBoardSession, alphabeta(depth=2))
    talk.session.obey("setboard 6k1/5ppp/8/8/8/8/8/R5K1 w - - 0 1")
    talk.session.obey("go")
    assert talk.until("1-0") == ["move a1a8", "1-0 {White mates}"]
    talk.session.obey("setboard 4k3/8/8/8/8/8/4p3/4K3 w - - 0 1")
    talk.session.obey("go")
    assert talk.until("1/2") == ["move e1e2", "1/2-1/2 {Bare kings}"]


def test_analysis_follows_the_moves_and_ends():
    talk = Conversation(XBoardSession, alphabeta())
    for line in ("post", "analyze"):
        talk.session.obey(line)
    assert talk.until("3 ")
    talk.session.obey("usermove e2e4")
    assert talk.until("3 ")
    talk.session.obey("exit")
    talk.heard()
    time.sleep(0.05)
    assert not talk.heard()
    assert talk.session._game.moves == ["e2e4"]


def test_a_new_game_in_analysis_is_analysed_not_played():
    talk = Conversation(XBoardSession)
    answered = talk.say("analyze", "new", "post", "usermove e2e4", "exit", "go")
    assert [line for line in answered if line.startswith("move")] == ["move a7a5"]
    assert talk.session._game.moves == ["e2e4", "a7a5"]


def test_exit_ends_nothing_but_an_analysis():
    talk = Conversation(XBoardSession, alphabeta())
    for line in ("ping 1", "st 1", "usermove e2e4", "exit", "ping 2"):
        talk.session.obey(line)
    assert talk.until("pong 2")[-2].startswith("move ")


def test_a_ping_prepares_nothing_beside_a_search():
    talk = Conversation(XBoardSession)
    prepared = []
    talk.thinker.prepare = prepared.append
    assert talk.say("analyze", "ping 1") == ["5 25 25 1000 a2a3", "pong 1"]
    assert not prepared
    assert talk.say("exit", "ping 2", "ping 3") == ["pong 2", "pong 3"]
    assert len(prepared) == 1


def test_an_analysis_is_shown_where_nothing_is_posted():
    talk = Conversation(XBoardSession)
    assert talk.say("nopost", "go") == ["move a2a3"]
    assert talk.say("analyze") == ["5 25 25 1000 a7a5"]


def test_nothing_is_taken_back_in_a_position_that_is_none():
    talk = Conversation(XBoardSession)
    refused, undone, removed = talk.say("force", "usermove e2e4", "usermove e7e5", "setboard 8/8 w", "undo", "remove")
    assert refused.startswith("tellusererror Illegal position")
    assert (undone, removed) == ("Error (illegal position): undo", "Error (illegal position): remove")
    assert talk.session._game.moves == ["e2e4", "e7e5"]
