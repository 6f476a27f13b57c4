"""Cells of a matrix of runs: one training each, with its results."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gpn_scale.errors import ConfigError
from gpn_scale.evaluation.prediction_metrics import Metrics
from gpn_scale.experiments.catalogue import LEFT_OUT_EXPERIMENTS, is_complete
from gpn_scale.experiments.standard_errors import Seeds
from gpn_scale.experiments.trained import FRACTIONS
from gpn_scale.files import file_name

_INITS_PER_SET = 1_000_000
_SEED_BYTES = 4
_MOST_SEEDS = 10_000


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
    """Seed of the initial values, or a number that stands for it; see `own_seed`."""
    class_set: int = 0
    """Set of left-out classes: 0 for the last classes; see `data.splits.left_out_class_set`."""

    @property
    def name(self) -> str:
        """Path of the cell's files below `cells/`, without suffix."""
        dataset, model = file_name(self.dataset), file_name(self.model)
        kind = kind_name(self.left_out, self.class_set)
        return f"{dataset}/{model}/{kind}/split{self.split}_init{self.init}"

    @property
    def seeds(self) -> Seeds:
        """The split, and a number for the pair of class set and initialisation."""
        return self.split, self.class_set * _INITS_PER_SET + self.init

    @property
    def own_seed(self) -> int:
        """A seed of initial values that no other cell of the same model has.

        Cells of different models with the same dataset, classes, split and `init` share it, so that
        models are compared in pairs.
        """
        facts = f"{self.dataset} {self.left_out} {self.class_set} {self.split} {self.init}"
        digest = hashlib.blake2b(facts.encode(), digest_size=_SEED_BYTES).digest()
        return int.from_bytes(digest, "little") >> 1

    def experiments_among(self, experiments: Iterable[str]) -> list[str]:
        """Return those of the experiments that use this training."""
        return [name for name in experiments if (name in LEFT_OUT_EXPERIMENTS) == self.left_out]

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


def kind_name(left_out: bool, class_set: int = 0) -> str:
    """Return the folder of cells with these left-out classes.

    >>> kind_name(False), kind_name(True), kind_name(True, 2)
    ('all_classes', 'left_out', 'left_out_set2')
    """
    if not left_out:
        return "all_classes"
    return f"left_out_set{class_set}" if class_set else "left_out"


def cells_of(
    datasets: Sequence[str],
    models: Sequence[str],
    experiments: Sequence[str],
    splits: int,
    inits: int,
    class_sets: Sequence[int] = (0,),
) -> list[Cell]:
    """Return all cells that the experiments need.

    Seeds and class sets vary slowest, so that an unfinished matrix is a fair sample of all graphs
    and models.

    Raises:
        ConfigError: the number of splits or initialisations is below 1, or absurdly large.
    """
    if not (1 <= splits <= _MOST_SEEDS and 1 <= inits <= _MOST_SEEDS):
        raise ConfigError(
            f"got {splits} splits and {inits} inits, expected at least one of each, at most "
            f"{_MOST_SEEDS:,}",
            arguments=("splits", "inits"),
        )
    kinds = sorted({name in LEFT_OUT_EXPERIMENTS for name in experiments})
    return [
        Cell(dataset, model, left_out, split, init, class_set if left_out else 0)
        for split in range(1, splits + 1)
        for init in range(1, inits + 1)
        for place, class_set in enumerate(class_sets)
        for dataset in datasets
        for model in models
        for left_out in kinds
        if left_out or place == 0  # cells with all classes exist once
    ]
