"""The paper's figures from a folder of CSV files, to stand beside ours.

Files and columns: `clean_and_left_out_classes.csv`, `misclassification.csv`,
`feature_perturbations.csv`; a column `X_se` is the standard error of column `X`. Models are rows.
Of several rows of a graph and a model the first holds: those of feature perturbations come again
with AUC-PR under the same name, against another set of negatives than ours. The ablation's file,
`ablation_coraml_validation.csv`, may be missing; its figures are of validation nodes.
"""

import csv
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from gpn_scale.errors import ConfigError


class Figure(NamedTuple):
    """A number of the paper, in percent."""

    value: float
    error: float


class PaperKey(NamedTuple):
    """Which number it is, in our words."""

    dataset: str
    model: str
    experiment: str
    metric: str


def paper_key(dataset: str, model: str, experiment: str, metric: str) -> PaperKey:
    """The key of the paper's figure to compare with: GPN in minibatches is the paper's GPN."""
    return PaperKey(dataset, _SAME_MODEL.get(model, model), experiment, metric)


_SAME_MODEL = {"GPN-minibatch": "GPN"}
_SCORES = {"alea": "aleatoric", "epist": "epistemic", "epist_nonet": "epistemic_no_network"}
_COLUMNS: dict[str, dict[str, tuple[str, str]]] = {
    "clean_and_left_out_classes.csv": {
        "clean_acc": ("clean", "accuracy"),
        "clean_ece": ("clean", "ece"),
        "loc_id_acc": ("left-out-classes", "id_accuracy"),
        **{
            f"loc_{area}_{short}": ("left-out-classes", f"{area}_{score}")
            for area in ("auroc", "aupr")
            for short, score in _SCORES.items()
        },
    },
    "misclassification.csv": {
        f"{area}_{short}": ("misclassification", f"{area}_{score}")
        for area in ("auroc", "aupr")
        for short, score in _SCORES.items()
    },
}
ABLATION_GRAPH = "CoraML"
_ABLATION_FILE = "ablation_coraml_validation.csv"
_ABLATION_COLUMNS = {
    "acc": ("clean", "accuracy"),
    "ece": ("clean", "ece"),
    "ber_auroc_epist_nonet": ("isolated", "auroc_epistemic_no_network@bernoulli"),
    "normal_auroc_epist_nonet": ("isolated", "auroc_epistemic_no_network@normal"),
    "loc_id_acc": ("left-out-classes", "id_accuracy"),
    "loc_auroc_epist": ("left-out-classes", "auroc_epistemic"),
}
_NOISES = {"ber": "bernoulli", "norm": "normal"}


def read_paper(folder: Path) -> dict[PaperKey, Figure]:
    """All figures that the files have; those the paper does not give are left out.

    Raises:
        ConfigError: a file is missing.
    """
    found: dict[PaperKey, Figure] = {}
    for name, columns in _COLUMNS.items():
        for row in _rows(folder / name):
            for column, (experiment, metric) in columns.items():
                _add(found, row, column, experiment, metric)
    for row in _rows(folder / "feature_perturbations.csv"):
        for short, noise in _NOISES.items():
            _add(found, row, f"{short}_acc", "isolated", f"accuracy@{noise}")
            for column, score in _SCORES.items():
                metric = f"{row['table']}_{score}@{noise}"
                _add(found, row, f"{short}_{column}", "isolated", metric)
    return read_ablation(folder) | found


def read_ablation(folder: Path) -> dict[PaperKey, Figure]:
    """Figures of the ablation; none if its file is missing."""
    found: dict[PaperKey, Figure] = {}
    if (folder / _ABLATION_FILE).exists():
        for row in _rows(folder / _ABLATION_FILE):
            if row["model"] == "APPNP":  # by its aleatoric score, unlike all others
                continue
            own = {**row, "dataset": ABLATION_GRAPH}
            for column, (experiment, metric) in _ABLATION_COLUMNS.items():
                _add(found, own, column, experiment, metric)
    return found


def _rows(path: Path) -> Iterator[Mapping[str, str]]:
    if not path.exists():
        raise ConfigError(f"{path} is missing, expected a table of the paper's figures there")
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def _add(
    found: dict[PaperKey, Figure], row: Mapping[str, str], column: str, experiment: str, metric: str
) -> None:
    value = _number(row.get(column))
    if not math.isnan(value):
        key = PaperKey(row["dataset"], row["model"], experiment, metric)
        found.setdefault(key, Figure(value, _number(row.get(f"{column}_se"))))


def _number(text: str | None) -> float:
    try:
        return float(text or "nan")
    except ValueError:  # n.a., n.f.
        return math.nan
