"""Schedule of the checkpoints of a run."""

import time
from collections.abc import Callable

from gpn_scale.config import RunConfig
from gpn_scale.train.checkpoint import save_checkpoint
from gpn_scale.train.run_directory import RunDirectory
from gpn_scale.train.trainer import Trainer


class CheckpointSchedule:
    """Writes checkpoints of a trainer, in the first process only.

    Args:
        trainer: The trainer whose state is saved.
        config: Configuration of the run.
        directory: Directory of the run.
        fingerprint: Fingerprint of graph and rows.
        pause: Minimum number of seconds between two checkpoints.
        before: Called before each checkpoint, to flush files that it relies on to disk.
    """

    def __init__(
        self,
        trainer: Trainer,
        config: RunConfig,
        directory: RunDirectory,
        fingerprint: str,
        pause: float,
        before: Callable[[], None] | None = None,
    ) -> None:
        self.trainer, self.config = trainer, config
        self.fingerprint, self.pause, self.before = fingerprint, pause, before
        self.path = directory.checkpoint_of(trainer.part)
        self.saved_at, self.saved_epoch = time.monotonic(), trainer.state.epoch

    def save(self, *, now: bool) -> None:
        """Write a checkpoint if the last one is old enough, or unconditionally if `now`."""
        if not self.trainer.world.is_first:
            return
        if now or time.monotonic() - self.saved_at >= self.pause:
            if self.before is not None:
                self.before()
            save_checkpoint(self.path, self.trainer, self.config, self.fingerprint)
            self.saved_at, self.saved_epoch = time.monotonic(), self.trainer.state.epoch

    def last_checkpoint(self) -> str:
        """Return a clause that names the last checkpoint, for messages."""
        if not self.path.exists():
            return "there is no checkpoint yet"
        return f"the last good checkpoint is {self.path}, epoch {self.saved_epoch}"
