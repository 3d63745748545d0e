"""The whole story on the smallest game: from nothing to an agent that beats random moves, in a minute."""

from pathlib import Path

from train.arena import MatchSettings, play_match
from train.config import load_config
from train.loop import train
from train.players import make_player
from train.progress import Reporter

CONFIG = Path(__file__).resolve().parents[2] / "configs" / "gardner.yaml"
CHANGES = (
    "workers=0", "iterations=10", "selfplay.positions_per_iteration=3000", "evaluation.games=4",
    "selfplay.max_plies=80", "learner.ema_snapshots=3", "learner.warmup_steps=20",
)  # fmt: skip
GAMES, SIMULATIONS = 200, 32
LEAST_SCORE, LEAST_GAIN = 0.95, 0.10


def test_gardner_from_nothing_beats_random_moves_and_its_untrained_network(tmp_path: Path) -> None:
    summary = train(load_config(CONFIG, list(CHANGES)), tmp_path / "run", resume=False, reporter=Reporter(quiet=True))
    scores = []
    for text in (f"{summary.run_dir}", f"untrained:{summary.run_dir}"):
        agent = make_player(text, simulations=SIMULATIONS)
        opponent = make_player("random", simulations=SIMULATIONS)
        assert agent.variant is not None
        match = play_match(agent.variant, (agent.player, opponent.player), settings=MatchSettings(GAMES))
        scores.append(match.score.estimate)
    trained, untrained = scores
    assert trained >= LEAST_SCORE
    assert trained - untrained >= LEAST_GAIN
