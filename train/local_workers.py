"""What makes self-play games, as the training loop sees it, and the simplest that does: one worker in this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from models.evaluator import Weights
from models.storage import CheckpointMismatch
from train.selfplay import Assignment
from train.supervisor import FAULTS
from train.worker import Played, Progress, SelfPlayWorker, WorkerTask


class Workers(Protocol):
    """Makes self-play games.

    Attributes:
        faults: what went wrong so far, by the names in `supervisor.FAULTS`.
    """

    @property
    def faults(self) -> Mapping[str, int]:
        """See the class."""
        ...

    def play(self, weights: Weights, quota: int, model_version: int, iteration: int, progress: Progress) -> Played:
        """Let every worker make `quota` positions.

        Args:
            weights: What to play with.
            quota: Positions for each worker.
            model_version: Version of the weights.
            iteration: Of the run, from 1.
            progress: Told the positions made so far by all workers.

        Returns:
            The games that ended, by worker and then by time, and the workers' counts added up.
        """
        ...

    def lanes(self) -> list[bytes]:
        """Return the games under way of every worker, for `restore_lanes` between two iterations."""
        ...

    def restore_lanes(self, lanes: Sequence[bytes]) -> None:
        """Go on with games under way.

        Raises:
            CheckpointMismatch: They are of another number of workers or of another game.
            CorruptFile: They are damaged.
        """
        ...

    def use_int8(self) -> None:
        """Let every worker evaluate in int8 from the next call of `play` on."""
        ...

    def close(self) -> None:
        """End the workers."""
        ...


def check_lanes(lanes: Sequence[bytes], num_workers: int) -> None:
    """Raise CheckpointMismatch unless there are games under way for every worker."""
    if len(lanes) != num_workers:
        raise CheckpointMismatch(f"games under way of {len(lanes)} workers, expected {num_workers}")


class LocalWorkers:
    """One worker in this process."""

    def __init__(self, task: WorkerTask) -> None:
        self._worker = SelfPlayWorker(task, 0)
        self.faults: Mapping[str, int] = dict.fromkeys(FAULTS, 0)

    def play(self, weights: Weights, quota: int, model_version: int, iteration: int, progress: Progress) -> Played:
        """See `Workers`."""
        self._worker.publish(weights)
        return self._worker.play(Assignment(quota, model_version, iteration), progress)

    def lanes(self) -> list[bytes]:
        """See `Workers`."""
        return [self._worker.lanes()]

    def restore_lanes(self, lanes: Sequence[bytes]) -> None:
        """See `Workers`."""
        check_lanes(lanes, 1)
        self._worker.restore_lanes(lanes[0], "lanes of worker 0")

    def use_int8(self) -> None:
        """See `Workers`."""
        self._worker.use_int8()

    def close(self) -> None:
        """Do nothing: there is no process to end."""
