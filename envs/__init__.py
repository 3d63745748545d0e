"""The rules of chess variants: games as data, one exact specification, one fast vectorised engine.

No learning here: this package imports neither PyTorch nor Ray.
"""

from envs.errors import IllegalAction, InvalidFen, InvalidVariant
from envs.position import Position
from envs.rows import (
    boards,
    engine_for,
    legal_actions,
    observe,
    piece_counts,
    read_fen,
    replay_actions,
    to_play,
)
from envs.tables import CompiledGame
from envs.termination import Outcome, Termination
from envs.variant import Variant
from envs.variant_loader import list_variants, load_variant, variant_from_document
from envs.vector_env import VectorEnv

__all__ = [
    "CompiledGame", "IllegalAction", "InvalidFen", "InvalidVariant", "Outcome", "Position", "Termination", "Variant",
    "VectorEnv", "boards", "engine_for", "legal_actions", "list_variants", "load_variant", "observe", "piece_counts",
    "read_fen", "replay_actions", "to_play", "variant_from_document",
]  # fmt: skip
