"""Cells of a matrix of runs: one training each, with its results."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gpn_scale.errors import ConfigError
from gpn_scale.evaluation.prediction_metrics import Metrics
from gpn_scale.experiments.catalogue import LEFT_OUT, is_complete
from gpn_scale.experiments.trained import FRACTIONS


@dataclass(frozen=True)
class CellResult:
    """The finished experiments of a cell."""

    fingerprint: str
    """Fingerprint of the model's setting."""
    results: dict[str, Metrics] = field(default_factory=dict)
    """Metrics of each finished experiment."""


class Cell(NamedTuple):
    """One training of the matrix."""

    dataset: str
    """Name of the dataset."""
    model: str
    """Name of the model, perhaps with changes in brackets."""
    left_out: bool
    """Whether classes are left out of training."""
    split: int
    """Seed of the split."""
    init: int
    """Seed of the initial values."""

    @property
    def name(self) -> str:
        """Path of the cell's files below `cells/`, without suffix."""
        kind = "left_out" if self.left_out else "all_classes"
        return f"{self.dataset}/{self.model}/{kind}/split{self.split}_init{self.init}"

    def experiments_among(self, experiments: Iterable[str]) -> list[str]:
        """Return those of the experiments that use this training."""
        return [name for name in experiments if (name == LEFT_OUT) == self.left_out]

    def unfinished(
        self,
        result: CellResult | None,
        experiments: Iterable[str],
        fractions: Sequence[float] = FRACTIONS,
    ) -> list[str]:
        """Return the experiments of this cell that have no result, or not for all fractions."""
        results = {} if result is None else result.results
        return [
            name
            for name in self.experiments_among(experiments)
            if name not in results or not is_complete(name, results[name], fractions)
        ]


def cells_of(
    datasets: Sequence[str],
    models: Sequence[str],
    experiments: Sequence[str],
    splits: int,
    inits: int,
) -> list[Cell]:
    """Return all cells that the experiments need.

    Seeds vary slowest, so that an unfinished matrix is a fair sample of all graphs and models.

    Raises:
        ConfigError: the number of splits or initialisations is below 1.
    """
    if splits < 1 or inits < 1:
        raise ConfigError(
            f"got {splits} splits and {inits} inits, expected at least one of each",
            arguments=("splits", "inits"),
        )
    kinds = sorted({name == LEFT_OUT for name in experiments})
    return [
        Cell(dataset, model, left_out, split, init)
        for split in range(1, splits + 1)
        for init in range(1, inits + 1)
        for dataset in datasets
        for model in models
        for left_out in kinds
    ]
