"""The thinker that a PLAYER text names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envs import Variant
from train.alphabeta import AlphaBetaPlayer
from train.engine_thinkers import AlphaBetaThinker, PlayerThinker, Thinker
from train.evaluation_tables import table_for
from train.players import ALPHABETA, POLICY_ONLY, common_variant, make_player

if TYPE_CHECKING:
    from models.evaluator import Evaluator


def make_thinker(
    text: str,
    given: Variant | None,
    *,
    simulations: int | None = None,
    batch_size: int = 16,
    seed: int | None = None,
) -> tuple[Thinker, Variant | None]:
    """Make the thinker that a text names.

    Args:
        text: `alphabeta`, with `:3` or `:50ms` for at most so many plies or so long a move, or a player
            (`train.players`).
        given: The one game to play; None for all that it can.
        simulations: Of every search of a network at most; None for no limit.
        batch_size: Positions that a network evaluates at once.
        seed: Of the choices of a player that draws its moves; None for others every time.

    Returns:
        The thinker, and the one game that it is to play; None if it plays any.

    Raises:
        UnknownPlayer: The text names no player, or one that was trained on other rules.
        CorruptFile, CheckpointMismatch: See `models.checkpoint.load_player`.
    """
    if text == ALPHABETA:
        return AlphaBetaThinker(table_for), given
    contestant = make_player(text, simulations=simulations or 1)
    game = common_variant([contestant], given) if given or contestant.variant else None
    player = contestant.player
    if isinstance(player, AlphaBetaPlayer):
        return AlphaBetaThinker(table_for, name=text, depth=player.depth, seconds=player.seconds), game
    evaluator: Evaluator | None = getattr(player, "evaluator", None)
    if evaluator is None or text.startswith(POLICY_ONLY):
        return PlayerThinker(player, seed=seed), game
    from train.engine_network import NetworkThinker

    return NetworkThinker(evaluator, name=text, simulations=simulations, batch_size=batch_size), game
