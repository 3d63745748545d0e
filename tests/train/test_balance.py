"""The balance of a game: openings, games that are kept, differences, armies and runs."""

from __future__ import annotations

import io
import json
from dataclasses import asdict, replace
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from rich.console import Console

from envs import InvalidFen, InvalidVariant, engine_for, load_variant, replay_actions
from models.checkpoint import identity, save_checkpoint
from models.network import GameSpec, NetworkConfig, untrained_network
from models.storage import CorruptFile
from tests.train.stored_run import TINY, config, random_games
from train import balance_games
from train.balance import BalancePlan, BalanceReport, Setting, _army_terms, measure_balance, read_setting
from train.balance_counts import BalanceGame
from train.balance_figures import ARMY, BLACK_FIRST, FIRST_MOVE, Figure
from train.balance_intervals import share
from train.balance_openings import openings_for, with_black_first
from train.balance_report import UNDECIDED
from train.balance_store import FILE, GameStore
from train.config_errors import ConfigError
from train.config_sections import LearnerConfig
from train.learner import Learner
from train.progress import Reporter
from train.shards import write_shard

QUIET = Reporter(quiet=True)
IN_CHECK = "rnb1kbn1/ppppqppp/8/8/8/8/PPPP1PPP/RNBQKBNR w KQq - 0 1"
TINY_PLAN = BalancePlan(games=6, depth=1, random_plies=2, max_plies=60)


# --- Openings ------------------------------------------------------------------------------------


def test_openings_of_one_game_with_an_option_on_and_off_are_the_same_moves() -> None:
    pair = load_variant("chess"), load_variant("stalemate_wins")
    found = openings_for(pair, 4, plies=4, seed=3)
    assert found.common == 4
    assert [one.moves for one in found.lists[0]] == [one.moves for one in found.lists[1]]
    assert found.lists[0] == openings_for(pair[:1], 4, plies=4, seed=3).lists[0]


def test_openings_that_one_game_lacks_are_replaced_by_its_own_and_counted() -> None:
    pair = load_variant("chess"), load_variant("separate_realms")
    found = openings_for(pair, 6, plies=3, seed=0)
    assert 0 < found.common <= 6
    for first, second in zip(*(own[: found.common] for own in found.lists), strict=True):
        assert first.moves == second.moves
    for variant, own in zip(pair, found.lists, strict=True):
        assert len({one.position for one in own}) == len(own) == 6
        for one in own:
            replay_actions(engine_for(variant), one.start_fen, one.actions)


def test_games_on_different_boards_have_no_common_openings() -> None:
    found = openings_for((load_variant("chess"), load_variant("gardner")), 3, plies=2, seed=0)
    assert found.common == 0
    assert [len(own) for own in found.lists] == [3, 3]


def test_black_may_move_first_where_no_king_can_be_captured_at_once() -> None:
    twin = with_black_first(load_variant("chigorin"))
    assert twin is not None
    assert twin.start_fen.split()[1] == "b"
    assert with_black_first(read_setting(f"chess@{IN_CHECK}").variant) is None


# --- Measuring -----------------------------------------------------------------------------------


def measure(*texts: str, folder: Path | None = None, **changes: object) -> BalanceReport:
    plan = replace(TINY_PLAN, **changes)
    return measure_balance([read_setting(text) for text in texts], plan=plan, folder=folder, reporter=QUIET)


@pytest.fixture(scope="module")
def fresh() -> BalanceReport:
    """A balance without a folder."""
    return measure("gardner")


@pytest.fixture(scope="module")
def unequal() -> BalanceReport:
    """A balance of armies that differ."""
    return measure("chigorin", games=4, max_plies=200)


def test_a_game_compared_with_itself_is_undecided_in_everything() -> None:
    report = measure("gardner", "gardner")
    assert len(report.gaps) > 20
    assert {entry["verdict"] for entry in report.document()["differences"].values()} == {UNDECIDED}
    assert report.common == 6
    assert {gap.estimate for gap in report.gaps.values()} == {0.0}


def test_equal_seeds_give_equal_reports_and_other_seeds_other_games(fresh: BalanceReport) -> None:
    first, second, other = fresh, measure("gardner"), measure("gardner", seed=1)
    assert first.document() == second.document()
    assert first.games_csv() == second.games_csv() != other.games_csv()


def test_kept_games_are_not_played_again_and_more_games_begin_with_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh: BalanceReport
) -> None:
    few = measure("gardner", folder=tmp_path, games=4)
    assert len((tmp_path / FILE).read_text().splitlines()) == 4
    many = measure("gardner", folder=tmp_path)
    monkeypatch.setattr("train.balance_games.play_games", None)
    assert measure("gardner", folder=tmp_path).document() == many.document() == fresh.document()
    starts = [game.start_fen for game in many.balances[0].games]
    assert starts[:4] == [game.start_fen for game in few.balances[0].games]


def test_ctrl_c_measures_what_there_is_and_the_same_command_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh: BalanceReport
) -> None:
    monkeypatch.setattr("train.balance_games.BATCH", 2)
    played = balance_games.play_games

    def stop_at_third(*arguments: object, **settings: object) -> object:
        if len((tmp_path / FILE).read_text().splitlines() if (tmp_path / FILE).exists() else []) >= 4:
            raise KeyboardInterrupt
        return played(*arguments, **settings)

    monkeypatch.setattr("train.balance_games.play_games", stop_at_third)
    report = measure("gardner", folder=tmp_path)
    assert report.stopped
    assert "stopped early" in report.warnings
    assert len(report.balances[0].games) == 4
    monkeypatch.setattr("train.balance_games.play_games", played)
    assert measure("gardner", folder=tmp_path).document() == fresh.document()


def test_ctrl_c_before_two_games_leaves_nothing_to_report(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_arguments: object, **_settings: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr("train.balance_games.play_games", stop)
    with pytest.raises(KeyboardInterrupt):
        measure("gardner")


def test_a_measurement_by_time_ends_with_whole_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("train.balance_games.FIRST_GAMES", 2)
    report = measure("gardner", games=None, minutes=0.001)
    assert len(report.balances[0].games) in {2, 4, 8, 16, 32, 64, 128, 256, 512}


def test_a_measurement_by_time_plays_a_batch_of_each_however_little_time_there_is() -> None:
    plan = replace(TINY_PLAN, games=None, minutes=1e-9)
    setting = read_setting("chigorin")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("train.balance_games.FIRST_GAMES", 4)
        patched.setattr("train.balance_games.BATCH", 2)
        (balance,) = measure_balance([setting], plan=plan, reporter=QUIET).balances
    assert len(balance.games) == len(balance.black_first) == 2


def test_ctrl_c_while_openings_are_drawn_keeps_the_games_that_were_played(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("train.balance_games.FIRST_GAMES", 2)
    drawn = balance_games.openings_for

    def stop_at_more(sides: object, count: int, **settings: object) -> object:
        if count > 2:
            raise KeyboardInterrupt
        return drawn(sides, count, **settings)

    monkeypatch.setattr("train.balance_games.openings_for", stop_at_more)
    report = measure("gardner", games=None, minutes=1.0)
    assert report.stopped
    assert len(report.balances[0].games) == 2


def test_a_torn_last_game_is_dropped_and_a_line_that_is_no_game_refused(tmp_path: Path, fresh: BalanceReport) -> None:
    with GameStore(tmp_path) as store:
        store.add(zip("ab", fresh.balances[0].games))
    content = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(content + content[:40])
    with GameStore(tmp_path):
        assert (tmp_path / FILE).read_bytes() == content
    for wrong in (b"{}", content.splitlines()[0].replace(b'"white_score": ', b'"white_score": 7')):
        (tmp_path / FILE).write_bytes(content + wrong + b"\n")
        with pytest.raises(CorruptFile, match=f"{FILE}:3"), GameStore(tmp_path):
            pass


def test_two_processes_never_share_a_folder(tmp_path: Path) -> None:
    with GameStore(tmp_path), pytest.raises(ConfigError, match="another process"), GameStore(tmp_path):
        pass


def test_unequal_armies_also_play_with_black_first_so_that_army_and_first_move_are_told_apart(
    unequal: BalanceReport,
) -> None:
    (balance,) = unequal.balances
    assert [game.start_fen.split()[1] for game in balance.black_first] == ["b"] * 4
    assert [game.start_fen.split()[1] for game in balance.games] == ["w"] * 4
    terms = {key: found.interval for key, found in balance.estimates.items()}
    if {"white_score", BLACK_FIRST} <= terms.keys():
        army, first = terms[ARMY].estimate, terms[FIRST_MOVE].estimate
        assert 0.5 + army + first == pytest.approx(terms["white_score"].estimate)
        assert 0.5 + army - first == pytest.approx(terms[BLACK_FIRST].estimate)
    assert "tell them apart" in balance.armies


def test_the_first_move_is_black_s_where_black_begins(fresh: BalanceReport) -> None:
    asked = read_setting("chess@rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR b KQkq - 0 1")
    assert (
        replace(fresh.balances[0], setting=asked).armies
        == "armies are alike: Black's score above 1/2 is the first move's"
    )
    own = share(np.array([1.0, 0.0, 0.0, 0.0]), np.ones(4))
    games = [BalanceGame("", 0, np.zeros(0, np.int32), 0.5, "checkmate")] * 4
    assert own is not None
    terms = _army_terms(own, games, begins_black=True)
    assert {key: term.interval.estimate for key, term in terms.items()} == {ARMY: -0.125, FIRST_MOVE: 0.125}
    terms = _army_terms(own, games, begins_black=False)
    assert terms[FIRST_MOVE].interval.estimate == -0.125
    assert terms[BLACK_FIRST].interval.estimate == 0.5


def test_alike_armies_in_other_places_do_not_blame_the_first_move(fresh: BalanceReport) -> None:
    asked = read_setting("chess@rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1")
    assert read_setting("chess").is_mirrored
    assert "not their places" in replace(fresh.balances[0], setting=asked).armies


def test_armies_that_only_white_may_begin_with_are_said_not_to_be_told_apart() -> None:
    setting = read_setting(f"chess@{IN_CHECK}")
    report = measure_balance([setting], plan=replace(TINY_PLAN, games=2), reporter=QUIET)
    assert ARMY not in report.balances[0].estimates
    assert "cannot be told apart" in report.balances[0].armies


def test_a_report_has_a_row_for_every_figure_and_files_that_name_their_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("train.piece_values.forest.DOTS_PER_INCH", 30)  # drawn sooner
    settings = [read_setting("gardner"), read_setting("los_alamos")]
    plan = replace(TINY_PLAN, games=3)
    report = measure_balance(settings, plan=plan, reporter=QUIET, command="python scripts/balance.py ...")
    paths = report.write(tmp_path)
    assert {path.suffix for path in paths} == {".json", ".csv", ".png", ".svg"}
    assert json.loads((tmp_path / "balance.json").read_text()) == report.document()
    rows = (tmp_path / "balance.csv").read_text().splitlines()[1:]
    assert len(rows) == sum(len(balance.estimates) for balance in report.balances) + len(report.gaps)
    assert all(row.endswith("python scripts/balance.py ...") for row in rows)
    assert "python scripts/balance.py ..." in (tmp_path / "balance.svg").read_text()
    assert len((tmp_path / "balance_games.csv").read_text().splitlines()) == 1 + 2 * 3
    for balance in report.balances:
        for letter in set(balance.letters) - {"K"}:
            fates = [balance.estimates.get(f"{fate}/{letter}") for fate in ("captured", "alive", "promoted")]
            assert sum(fate.interval.estimate for fate in fates if fate) == pytest.approx(1)


def test_every_figure_has_a_place_and_a_name(unequal: BalanceReport) -> None:
    for key in unequal.balances[0].estimates:
        assert Figure.of(key).label
        assert Figure.of(key).order >= (0, 0, "")


def test_odd_names_are_shown_as_they_are(fresh: BalanceReport) -> None:
    (balance,) = fresh.balances
    end = "/".join(["folder"] * 40 + ["end"])
    label = r"my$\frac{$[red]game[/blue].yaml"
    odd = replace(balance, setting=replace(balance.setting, label=label))
    named = replace(fresh, balances=(odd,), command=f"python scripts/balance.py '{label}' --out {end}")
    printed, drawn = io.StringIO(), io.StringIO()
    Console(file=printed, width=200).print(named.table())
    assert printed.getvalue().count(label) >= 2
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        named.picture().savefig(drawn, format="svg")
    assert label in drawn.getvalue()
    assert "folder/end" in drawn.getvalue()  # the command is whole


def test_a_game_is_the_game_beside_a_folder_of_its_name_and_files_may_have_any_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gardner").mkdir()
    assert read_setting("gardner").variant.name == "gardner"
    (tmp_path / "me@home+work").mkdir()
    (tmp_path / "me@home+work" / "mine.yaml").write_text("extends: gardner\n")
    fen = "4k/5/P4/5/4K w - - 0 1"
    assert read_setting(f"me@home+work/mine.yaml@{fen}").variant.start_fens == (fen,)
    with pytest.raises(InvalidVariant, match="unknown option 'nothing'"):
        read_setting("me@home+work/mine.yaml+nothing")


# --- What is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ches", "did you mean 'chess'"),
        ("chess+nothing", "unknown option 'nothing'"),
        ("chess+", "expected GAME"),
        ("chess@", "expected GAME"),
        ("absent.yaml", "no variant file"),
    ],
)
def test_a_setting_that_is_none_is_refused_by_its_place(text: str, said: str) -> None:
    with pytest.raises(InvalidVariant, match=said):
        read_setting(text)


@pytest.mark.parametrize(
    ("fen", "said"), [("8/8/8 w - - 0 1", "8 rows"), ("R3k3/8/4K3/8/8/8/8/8 b - - 0 1", "over before it begins")]
)
def test_a_position_from_which_no_game_can_begin_is_refused(fen: str, said: str) -> None:
    with pytest.raises(InvalidFen, match=said):
        read_setting(f"chess@{fen}")


@pytest.mark.parametrize(
    "changes", [{"games": 1}, {"games": None}, {"minutes": 1.0}, {"games": None, "minutes": 0.0}, {"max_plies": 2}]
)
def test_a_plan_that_nothing_is_learned_from_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="expected"):
        replace(TINY_PLAN, **changes)


# --- Runs ----------------------------------------------------------------------------------------


def array_run(folder: Path, kinds: tuple[str, ...] = ("array",)) -> Setting:
    """Write a run whose games are labelled with kinds of start in turn."""
    cfg = config()
    game = engine_for(load_variant(cfg.variant, cfg.options))
    games = [
        replace(record, start_kind=kinds[number % len(kinds)])
        for number, record in enumerate(random_games(game, 12, seed=2))
    ]
    network = untrained_network(GameSpec.of(game), NetworkConfig(**TINY), seed=1)
    info = write_shard(folder / "replay", "000000", games, game)
    state = {**identity(game.variant, network), "config": cfg.to_document(), "shards": [asdict(info)]}
    save_checkpoint(folder, 1, tensors=Learner(network, LearnerConfig()).tensors(), state=state)
    return read_setting(str(folder))


def test_a_run_shows_its_own_games_from_the_start_position_alone(tmp_path: Path) -> None:
    run = array_run(tmp_path, ("array", "odds"))
    report = measure_balance([run], plan=TINY_PLAN, reporter=QUIET)
    (balance,) = report.balances
    assert len(balance.games) <= 6
    assert balance.estimates["plies"].clusters == len(balance.games)
    assert "self-play" in " ".join(report.notes)
    assert report.document()["settings"][0]["config_hash"] == config().config_hash()


def test_a_run_without_such_games_and_a_run_against_a_game_are_refused(tmp_path: Path) -> None:
    run = array_run(tmp_path, ("odds",))
    with pytest.raises(ValueError, match="at least 2 games from the start position"):
        measure_balance([run], plan=TINY_PLAN, reporter=QUIET)
    with pytest.raises(ConfigError, match="no equal players"):
        measure_balance([run, read_setting("gardner")], plan=TINY_PLAN, reporter=QUIET)
    with pytest.raises(ConfigError, match="the rules that it trained on"):
        read_setting(f"{tmp_path}+friendly_fire")
