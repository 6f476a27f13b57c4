"""Checkpoints of a run: when they are written, and where one could go back to."""

import time

from gpn_scale.config import RunConfig
from gpn_scale.train.checkpoint import save_checkpoint
from gpn_scale.train.run_directory import RunDirectory
from gpn_scale.train.trainer import Trainer


class Keeper:
    """Writes checkpoints, at most as often as asked for, and in the first process only.

    Args:
        trainer: What is kept.
        config: Of the run.
        directory: Where.
        fingerprint: Of graph and rows.
        pause: Seconds between two checkpoints.
    """

    def __init__(
        self,
        trainer: Trainer,
        config: RunConfig,
        directory: RunDirectory,
        fingerprint: str,
        pause: float,
    ) -> None:
        self.trainer, self.config, self.directory = trainer, config, directory
        self.fingerprint, self.pause = fingerprint, pause
        self.saved_at, self.saved_epoch = time.monotonic(), trainer.progress.epoch

    def keep(self, *, now: bool) -> None:
        """Saves if it is time to, or `now`."""
        if not self.trainer.world.is_first:
            return
        if now or time.monotonic() - self.saved_at >= self.pause:
            save_checkpoint(self.directory.checkpoint, self.trainer, self.config, self.fingerprint)
            self.saved_at, self.saved_epoch = time.monotonic(), self.trainer.progress.epoch

    def last_good(self) -> str:
        """Where to go back to, as the end of a sentence."""
        if not self.directory.checkpoint.exists():
            return "there is no checkpoint yet"
        return f"the last good checkpoint is {self.directory.checkpoint}, epoch {self.saved_epoch}"
