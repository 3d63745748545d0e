"""Players by name: baselines, runs, checkpoints, and the game that they share."""

from pathlib import Path

import pytest

from envs import load_variant
from models.quantised import Int8Evaluator
from tests.train.stored_run import make_run
from train.alphabeta import AlphaBetaPlayer
from train.arena import MatchSettings, play_match
from train.baselines import RandomPlayer
from train.network_players import PolicyPlayer, TimedPlayer
from train.players import Contestant, UnknownPlayer, common_variant, describe, make_player


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "mine"
    make_run(folder, 5)
    return folder


@pytest.fixture(scope="module")
def trained(run_dir: Path) -> Contestant:
    return make_player(str(run_dir), simulations=4)


def test_random_needs_no_run_and_plays_any_game() -> None:
    contestant = make_player("random", simulations=8)
    assert isinstance(contestant.player, RandomPlayer)
    assert contestant.variant is None
    with pytest.raises(UnknownPlayer, match="say which"):
        common_variant([contestant], None)
    assert common_variant([contestant], load_variant("gardner")).name == "gardner"


def test_a_run_is_its_newest_checkpoint_and_untrained_its_first(run_dir: Path, trained: Contestant) -> None:
    first = make_player(f"untrained:{run_dir}", simulations=4)
    assert trained.config is not None
    assert trained.config.seed == 5
    assert trained.player.name == f"{run_dir}@4"
    assert first.checkpoint == run_dir / "checkpoints" / "000000"
    assert common_variant([trained, first], None).name == "gardner"
    settings = MatchSettings(games=4, random_plies=2, max_plies=12)
    result = play_match(load_variant("gardner"), (trained.player, first.player), settings=settings)
    assert set(result.pair_scores) == {0.5}  # the same weights on both sides, and no chance in them


def test_int8_before_a_run_evaluates_it_in_int8(run_dir: Path) -> None:
    name = f"int8:untrained:{run_dir}"
    contestant = make_player(name, simulations=4)
    assert contestant.player.name == f"{name}@4"
    assert isinstance(getattr(contestant.player, "evaluator", None), Int8Evaluator)
    assert contestant.checkpoint == run_dir / "checkpoints" / "000000"
    with pytest.raises(UnknownPlayer, match="player 'int8:random': expected a run"):
        make_player("int8:random", simulations=4)


def test_policy_before_a_run_is_its_network_without_search(run_dir: Path) -> None:
    contestant = make_player(f"policy:{run_dir}", simulations=4)
    assert isinstance(contestant.player, PolicyPlayer)
    assert contestant.player.name == f"policy:{run_dir}"
    assert not contestant.searches
    untrained = make_player(f"policy:int8:untrained:{run_dir}", simulations=4)
    assert isinstance(untrained.player, PolicyPlayer)
    assert isinstance(untrained.player.evaluator, Int8Evaluator)


def test_alphabeta_thinks_by_plies_or_by_time_and_plain_by_the_time_of_all() -> None:
    names = {"alphabeta:3": (3, None), "alphabeta:50ms": (None, 0.05)}
    for text, limits in names.items():
        player = make_player(text, simulations=4, seconds=2.0).player
        assert isinstance(player, AlphaBetaPlayer)
        assert (player.name, player.depth, player.seconds) == (text, *limits)
    assert make_player("alphabeta", simulations=4, seconds=0.1).player.name == "alphabeta:100ms"
    for text in ("alphabeta", "alphabeta:", "alphabeta:deep"):
        with pytest.raises(UnknownPlayer, match="expected alphabeta:PLIES"):
            make_player(text, simulations=4)


def test_a_run_thinks_by_the_clock_if_told_so(run_dir: Path) -> None:
    contestant = make_player(str(run_dir), simulations=4, seconds=0.01)
    assert isinstance(contestant.player, TimedPlayer)
    assert contestant.player.name == f"{run_dir}@10ms"
    assert contestant.searches


def test_weights_are_told_apart_by_their_hash(run_dir: Path, trained: Contestant) -> None:
    assert trained.weights_hash == make_player(f"policy:{run_dir}", simulations=4).weights_hash
    assert make_player("random", simulations=4).weights_hash is None


def test_players_of_other_rules_are_refused(trained: Contestant) -> None:
    with pytest.raises(UnknownPlayer, match=r"was trained on gardner \(\w{12}\), not on chess"):
        common_variant([trained], load_variant("chess"))


def test_texts_that_name_no_player_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownPlayer, match="did you mean 'random'"):
        make_player("radnom", simulations=4)
    with pytest.raises(UnknownPlayer, match="expected a run, a checkpoint or a baseline"):
        make_player(str(tmp_path / "nothing"), simulations=4)
    with pytest.raises(UnknownPlayer, match="no checkpoint"):
        make_player(str(tmp_path), simulations=4)
    with pytest.raises(UnknownPlayer, match="no checkpoint 0"):
        make_player(f"untrained:{tmp_path}", simulations=4)


def test_a_game_is_described_with_the_options_that_are_on() -> None:
    assert describe(load_variant("asylum", {"friendly_fire": True})) == "asylum+friendly_fire"
    assert describe(load_variant("asylum")) == "asylum"
