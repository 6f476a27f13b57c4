"""The directory of one run: the names of its files, and whether they may be written."""

import os
import shutil
from pathlib import Path

from gpn_scale.errors import RunError


class RunDirectory:
    """Names of a run's files; `claim` makes sure that no run is overwritten by accident.

    Args:
        path: The directory.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = path / "config.json"
        self.inputs = path / "inputs.json"
        self.checkpoint = path / "checkpoint.safetensors"
        self.opinion_checkpoint = path / "checkpoint_opinion.safetensors"
        self.model = path / "model.safetensors"
        self.metrics = path / "metrics.jsonl"
        self.tensorboard = path / "tensorboard"
        self.report = path / "report.json"
        self.report_markdown = path / "report.md"
        self.page = path / "report.html"
        self.plots = path / "plots"
        self.predictions = path / "predictions.parquet"
        self.promise = path / "promise.json"
        self.graph = path / "graph"
        self.store = path / "store"

    def checkpoint_of(self, part: str) -> Path:
        """Return the checkpoint of a part of the model, `features` or `opinion`."""
        return self.opinion_checkpoint if part == "opinion" else self.checkpoint

    @property
    def files(self) -> list[Path]:
        """All files that a run writes; its inputs, the graph and the rows, are not among them."""
        given = {self.path, self.graph, self.store}
        return [value for value in vars(self).values() if value not in given]

    def claim(self, *, overwrite: bool, resume: bool) -> None:
        """Create the directory and check that a run may be written there; removes nothing.

        Args:
            overwrite: Whether an earlier run may be replaced.
            resume: Whether an earlier run may be continued.

        Raises:
            RunError: the directory cannot be written, or holds a run and neither is allowed.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(
                f"{self.path} cannot be created ({error.strerror}); choose another directory",
                arguments=("out",),
            ) from error
        if not os.access(self.path, os.W_OK | os.X_OK):
            raise RunError(
                f"{self.path} cannot be written; choose another directory", arguments=("out",)
            )
        present = [file for file in self.files if file.exists()]
        if present and not (overwrite or resume):
            raise RunError(
                f"{self.path} already holds a run ({present[0].name}): resume or overwrite it, or "
                "choose another directory",
                arguments=("existing", "out"),
            )

    def clear(self) -> None:
        """Remove the files of an earlier run; all other files stay."""
        for file in self.files:
            if file.is_dir():
                shutil.rmtree(file)
            else:
                file.unlink(missing_ok=True)
