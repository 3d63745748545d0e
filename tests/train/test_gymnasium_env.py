"""Every game as a Gymnasium environment against a player: Gymnasium's own checks, views, rewards, ends, starts."""

from __future__ import annotations

import copy
import importlib
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import PassiveEnvChecker
from numpy.typing import NDArray

from envs import IllegalAction, InvalidFen, VectorEnv, list_variants
from envs.reference import MAIN_GAMES
from train.baselines import RandomPlayer
from train.gymnasium_env import BaselineEnv
from train.players import UnknownPlayer

PAGE = Path(__file__).resolve().parents[2] / "docs" / "environments.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
MATE_IN_ONE = "6k1/5ppp/8/8/8/8/5PPP/R5K1 w - - 0 1"


@dataclass
class Script:
    """A player whose moves are given."""

    moves: list[str]
    name: str = "script"
    seen: list[str] = field(default_factory=list)

    def choose(self, env: VectorEnv, lanes: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.int32]:
        self.seen.append(env.fen(0))
        return np.array([env.move_to_action(0, self.moves.pop(0))], np.int32)


def action_of(game: BaselineEnv, move: str) -> int:
    return game._game.env.move_to_action(0, move)


def play_at_random(game: gymnasium.Env[Any, Any], seed: int) -> tuple[float, bool, bool, dict[str, Any]]:
    """Play a game of legal moves at random to its end."""
    rng = np.random.default_rng(seed)
    _, told = game.reset(seed=seed)
    while True:
        _, reward, terminated, truncated, told = game.step(rng.choice(np.flatnonzero(told["action_mask"])))
        if terminated or truncated:
            return float(reward), terminated, truncated, told
        assert reward == 0


@pytest.mark.parametrize("name", MAIN_GAMES)
def test_a_game_passes_the_checks_of_gymnasium_without_a_warning(name: str) -> None:
    game = gymnasium.make(f"AsylumZero/{name}-v0", opponent="random")
    check_env(game.unwrapped, skip_render_check=name != "gardner")


@pytest.mark.slow
@pytest.mark.parametrize("name", list_variants())
def test_every_game_passes_all_checks_of_gymnasium_without_a_warning(name: str) -> None:
    game = gymnasium.make(f"AsylumZero/{name}-v0", opponent="greedy")
    check_env(game.unwrapped)
    for seed in range(3):
        play_at_random(game, seed)


def test_every_built_in_game_is_registered() -> None:
    assert {f"AsylumZero/{name}-v0" for name in list_variants()} <= set(gymnasium.registry)


@pytest.mark.parametrize("colour", ["white", "black", "random"])
def test_whole_games_keep_the_contract_and_the_reward_is_the_agents(colour: Any) -> None:
    game = BaselineEnv("gardner", "random", colour=colour, max_plies=80)
    checked = PassiveEnvChecker(game)
    endings, colours, rewards = set(), set(), set()
    for seed in range(25):
        reward, terminated, truncated, told = play_at_random(checked, seed)
        score = game._game.env.white_score[0]
        white = 0.0 if truncated else 2 * score - 1
        assert reward == (white if told["colour"] == "white" else -white)
        assert terminated != truncated
        assert not told["action_mask"].any()
        endings.add(told["ending"])
        colours.add(told["colour"])
        rewards.add(reward)
    assert len(endings) > 1
    assert rewards == {-1.0, 0.0, 1.0}
    assert colours == ({"white", "black"} if colour == "random" else {colour})


def test_a_seed_repeats_a_game_against_a_player_that_draws_its_moves() -> None:
    games = [BaselineEnv("gardner", "random", max_plies=40) for _ in range(2)]
    ends = [[play_at_random(game, seed)[3]["ending"] for seed in (7, 8)] + [game._game.env.fen(0)] for game in games]
    assert ends[0] == ends[1]


def test_who_mates_is_rewarded_with_1_whatever_its_colour() -> None:
    game = BaselineEnv("chess", Script([]), colour="white", fen=MATE_IN_ONE)
    game.reset()
    observation, reward, terminated, _, told = game.step(action_of(game, "a1a8"))
    assert (reward, terminated, told["ending"]) == (1.0, True, "checkmate")
    rooks = [piece.letter for piece in game.variant.piece_types].index("R")
    assert observation[rooks, 7, 0] == 1, "the agent still sees its own side at row 0"
    game = BaselineEnv("chess", Script(["g2g3", "f2f3", "g3g4"]), colour="black")
    game.reset()
    game.step(action_of(game, "e7e6"))
    game.step(action_of(game, "b8a6"))
    _, reward, terminated, _, _ = game.step(action_of(game, "d8h4"))
    assert (reward, terminated) == (1.0, True)


def test_who_is_mated_by_the_answer_is_rewarded_with_minus_1() -> None:
    opponent = Script(["e7e5", "d8h4"])
    game = BaselineEnv("chess", opponent, colour="white")
    game.reset()
    assert game.step(action_of(game, "f2f3"))[1:4] == (0.0, False, False)
    observation, reward, terminated, truncated, told = game.step(action_of(game, "g2g4"))
    assert (reward, terminated, truncated) == (-1.0, True, False)
    assert told["ending"] == "checkmate"
    kings = [piece.letter for piece in game.variant.piece_types].index("K")
    assert observation[kings, 0].any(), "the agent still sees its own side at row 0"
    assert [fen.split()[1] for fen in opponent.seen] == ["b", "b"]


def test_the_agent_sees_its_own_side_nearest_and_waits_for_an_opponent_that_moves_first() -> None:
    game = BaselineEnv("asylum", Script(["a2a5"]), colour="black")
    observation, told = game.reset()
    assert told["colour"] == "black"
    np.testing.assert_array_equal(observation, game._game.env.observe()[0])
    np.testing.assert_array_equal(told["action_mask"], game._game.env.legal_action_mask[0])
    np.testing.assert_array_equal(game.action_masks(), told["action_mask"].astype(bool))
    assert game.action_masks().dtype == np.bool_


def test_masks_are_found_through_the_wrappers_of_make() -> None:
    game = gymnasium.make("AsylumZero/gardner-v0", opponent="random", colour="white")
    _, told = game.reset(seed=0)
    np.testing.assert_array_equal(game.get_wrapper_attr("action_masks")(), told["action_mask"] == 1)


def test_an_illegal_action_loses_and_a_finished_game_must_be_reset() -> None:
    game = BaselineEnv("chess", "random", colour="white")
    with pytest.raises(gymnasium.error.ResetNeeded):
        game.step(0)
    _, told = game.reset()
    observation, reward, terminated, truncated, told = game.step(int(told["action_mask"].argmin()))
    assert (reward, terminated, truncated, told["ending"]) == (-1.0, True, False, "illegal_action")
    assert observation in game.observation_space
    assert not told["action_mask"].any()
    with pytest.raises(gymnasium.error.ResetNeeded, match="call reset"):
        game.step(0)
    game.reset()
    with pytest.raises(IllegalAction, match=f"action {game.action_space.n}: expected 0 to {game.action_space.n - 1}"):
        game.step(int(game.action_space.n))
    with pytest.raises(TypeError, match=r"expected a whole number, got 1\.5"):
        game.step(1.5)  # type: ignore[arg-type]


def test_the_ply_cap_truncates_after_the_agents_move_and_after_the_answer() -> None:
    with pytest.raises(ValueError, match="max_plies: expected at least 2 or None, got 1"):
        BaselineEnv("chess", "random", max_plies=1)
    for colour in ("white", "black"):
        game = BaselineEnv("chess", "random", colour=colour, max_plies=2)  # type: ignore[arg-type]
        _, told = game.reset(seed=0)
        _, reward, terminated, truncated, told = game.step(int(told["action_mask"].argmax()))
        assert (reward, terminated, truncated, told["ending"]) == (0.0, False, True, "ply_cap")


def test_the_options_of_a_reset_hold_for_one_game() -> None:
    game = BaselineEnv("chess", "random", colour="white")
    told = game.reset(options={"fen": MATE_IN_ONE.replace(" w ", " b "), "colour": "black"})[1]
    assert told["colour"] == "black"
    assert game._game.env.fen(0).split()[1] == "b"
    assert game.reset()[1]["colour"] == "white"
    assert game._game.env.fen(0).startswith("rnbqkbnr/")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"color": "black"}, ValueError, "did you mean 'colour'"),
        ({"colour": "green"}, ValueError, "expected white, black or random, got 'green'"),
        ({"fen": "8/8"}, InvalidFen, "expected six fields"),
    ],
)
def test_wrong_options_of_a_reset_are_refused(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        BaselineEnv("chess", "random").reset(options=options)


@pytest.mark.parametrize("fen", [MATE_IN_ONE, "8/8", "4k3/8/8/8/8/8/8/4K3 w - - 0 1"])
def test_a_reset_that_is_refused_or_in_which_the_opponent_wins_at_once_changes_nothing(fen: str) -> None:
    game = BaselineEnv("chess", Script(["a1a8"]), colour="white")
    game.reset(seed=1)
    game._game.play(action_of(game, "e2e4"))
    before, stream = game._game.env.fen(0), game.np_random.bit_generator.state
    with pytest.raises(ValueError):  # noqa: PT011 - InvalidFen is one, too
        game.reset(seed=2, options={"fen": fen, "colour": "black"})
    assert game._game.env.fen(0) == before
    assert game.np_random.bit_generator.state == stream
    assert game.np_random_seed == 1
    assert not game._is_over


def test_a_first_move_of_the_opponent_that_ends_the_game_is_an_error_that_says_so() -> None:
    game = BaselineEnv("chess", Script(["a1a8"]), colour="black", fen=MATE_IN_ONE)
    with pytest.raises(ValueError, match=r"first move ended the game \(checkmate\): choose a position"):
        game.reset()


def test_an_opponent_is_a_player_or_the_text_of_one() -> None:
    assert BaselineEnv("gardner", RandomPlayer()).opponent.name == "random"
    assert BaselineEnv("gardner").opponent.name == "greedy"
    with pytest.raises(UnknownPlayer, match="did you mean 'greedy'"):
        BaselineEnv("gardner", "gredy")
    with pytest.raises(UnknownPlayer, match="expected alphabeta:PLIES"):
        BaselineEnv("gardner", "alphabeta")
    with pytest.raises(ValueError, match="colour: expected white, black or random, got 'red'"):
        BaselineEnv("gardner", colour="red")  # type: ignore[arg-type]


def test_a_deep_copy_plays_on_by_itself() -> None:
    game = BaselineEnv("gardner", "random", colour="white")
    _, told = game.reset(seed=3)
    twin, before = copy.deepcopy(game), game._game.env.fen(0)
    legal = np.flatnonzero(told["action_mask"])
    twin.step(legal[0])
    assert game._game.env.fen(0) == before
    game.step(legal[0])
    assert game._game.env.fen(0) == twin._game.env.fen(0)


def test_without_gymnasium_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    monkeypatch.delitem(sys.modules, "train.gymnasium_env")
    with pytest.raises(ImportError, match=r"pip install 'asylum-zero\[gym\]'"):
        importlib.import_module("train.gymnasium_env")


@pytest.mark.parametrize("block", BLOCKS)
def test_a_program_of_the_page_runs_as_it_stands(block: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(block, PAGE.name, "exec"), {"__name__": PAGE.stem})
    assert capsys.readouterr().out
    assert len(BLOCKS) == 2


def test_the_links_of_the_page_lead_to_files() -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)", PAGE.read_text(encoding="utf-8")) if "://" not in link]
    assert links
    assert not [link for link in links if not (PAGE.parent / link).exists()]
