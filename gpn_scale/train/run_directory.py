"""The directory of one run: which files it holds, and who may write there."""

import os
import shutil
from pathlib import Path

from gpn_scale.errors import RunError


class RunDirectory:
    """Names of a run's files; `claim` makes sure that no run is written over unasked.

    Args:
        path: The directory.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = path / "config.json"
        self.checkpoint = path / "checkpoint.safetensors"
        self.model = path / "model.safetensors"
        self.metrics = path / "metrics.jsonl"
        self.tensorboard = path / "tensorboard"
        self.report = path / "report.json"
        self.report_markdown = path / "report.md"
        self.page = path / "report.html"
        self.plots = path / "plots"
        self.predictions = path / "predictions.parquet"
        self.graph = path / "graph"
        self.store = path / "store"

    @property
    def files(self) -> list[Path]:
        """All that a run writes, but for what it was given: the graph and its rows."""
        given = {self.path, self.graph, self.store}
        return [value for value in vars(self).values() if value not in given]

    def claim(self, *, overwrite: bool, resume: bool) -> None:
        """Makes sure that the directory may be written to; removes nothing.

        Raises:
            RunError: it cannot be written, or holds a run and neither flag is given.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(
                f"--out {self.path} cannot be made ({error.strerror}); choose another directory"
            ) from error
        if not os.access(self.path, os.W_OK | os.X_OK):
            raise RunError(f"--out {self.path} cannot be written; choose another directory")
        present = [file for file in self.files if file.exists()]
        if present and not (overwrite or resume):
            raise RunError(
                f"--out {self.path} holds a run already ({present[0].name}); use --resume to go "
                "on with it, --overwrite to replace it, or another directory"
            )

    def clear(self) -> None:
        """Removes an earlier run; files that are not a run's stay."""
        for file in self.files:
            if file.is_dir():
                shutil.rmtree(file)
            else:
                file.unlink(missing_ok=True)
