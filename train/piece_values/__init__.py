"""What the pieces of a game are worth, measured from games."""

from train.piece_values.estimates import MethodValues, PieceEstimate
from train.piece_values.outcome import estimate_values
from train.piece_values.positions import InsufficientData, Positions, collect_positions
from train.piece_values.report import Report
from train.piece_values.stored_games import measure_games, measure_run

__all__ = [
    "InsufficientData",
    "MethodValues",
    "PieceEstimate",
    "Positions",
    "Report",
    "collect_positions",
    "estimate_values",
    "measure_games",
    "measure_run",
]
