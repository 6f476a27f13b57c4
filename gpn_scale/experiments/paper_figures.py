"""The paper's figures from a folder of CSV files, for comparison with ours.

The files are `clean_and_left_out_classes.csv`, `misclassification.csv` and
`feature_perturbations.csv`, with one row per graph and model; a column `X_se` is the standard error
of column `X`. Of several rows with the same graph and model the first is used: feature
perturbations appear twice, the second time with other negatives than ours. The file of the
ablation, `ablation_coraml_validation.csv`, is optional; its figures are for validation nodes.
"""

import csv
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from gpn_scale.errors import ConfigError, FileError
from gpn_scale.reading import read_text


class Figure(NamedTuple):
    """A number of the paper and its standard error, in percent."""

    value: float
    error: float


class PaperKey(NamedTuple):
    """Identifier of a number, with the names of our tables."""

    dataset: str
    model: str
    experiment: str
    metric: str


def paper_key(dataset: str, model: str, experiment: str, metric: str) -> PaperKey:
    """Return the key of the paper's figure to compare with; GPN-minibatch has that of GPN."""
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
"""Dataset of the paper's ablation."""
_NOISE_FILE = "feature_perturbations.csv"
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
    """Return all figures in the files; those that the paper does not report are left out.

    Raises:
        ConfigError: a file is missing.
    """
    figures: dict[PaperKey, Figure] = {}
    for name, columns in _COLUMNS.items():
        for row in _rows(folder / name):
            for column, (experiment, metric) in columns.items():
                _add(figures, row, column, experiment, metric)
    for row in _rows(folder / _NOISE_FILE):
        for short, noise in _NOISES.items():
            _add(figures, row, f"{short}_acc", "isolated", f"accuracy@{noise}")
            for column, score in _SCORES.items():
                metric = f"{row['table']}_{score}@{noise}"
                _add(figures, row, f"{short}_{column}", "isolated", metric)
    return read_ablation(folder) | figures


def read_ablation(folder: Path) -> dict[PaperKey, Figure]:
    """Return the figures of the ablation; {} if its file is missing."""
    figures: dict[PaperKey, Figure] = {}
    if (folder / _ABLATION_FILE).exists():
        for row in _rows(folder / _ABLATION_FILE):
            if row["model"] == "APPNP":  # evaluated with its aleatoric score, unlike all others
                continue
            own = {**row, "dataset": ABLATION_GRAPH}
            for column, (experiment, metric) in _ABLATION_COLUMNS.items():
                _add(figures, own, column, experiment, metric)
    return figures


def _rows(path: Path) -> Iterator[Mapping[str, str]]:
    if not path.exists():
        raise ConfigError(
            f"{path} is missing, expected a table of the paper's figures", arguments=("paper",)
        )
    try:
        rows = list(csv.DictReader(read_text(path).splitlines()))
    except (OSError, FileError, csv.Error) as error:
        raise ConfigError(
            f"{path} cannot be read ({error}), expected a table of the paper's figures",
            arguments=("paper",),
        ) from error
    needed = {"dataset", "model"} - ({"dataset"} if path.name == _ABLATION_FILE else set())
    needed |= {"table"} if path.name == _NOISE_FILE else set()
    missing = needed - set(rows[0]) if rows else set()
    if missing:
        raise ConfigError(f"{path} has no column {min(missing)!r}", arguments=("paper",))
    yield from rows


def _add(
    figures: dict[PaperKey, Figure],
    row: Mapping[str, str],
    column: str,
    experiment: str,
    metric: str,
) -> None:
    value = _number(row.get(column))
    if not math.isnan(value):
        key = PaperKey(row["dataset"], row["model"], experiment, metric)
        figures.setdefault(key, Figure(value, _number(row.get(f"{column}_se"))))


def _number(text: str | None) -> float:
    try:
        return float(text or "nan")
    except ValueError:  # n.a., n.f.
        return math.nan
