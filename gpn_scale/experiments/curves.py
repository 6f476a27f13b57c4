"""Curves from the tables of a matrix: metrics over the size of a shift or the values of a field."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gpn_scale.experiments.tables import RELATIVE, Entry

CLEAN = "clean"
"""Setting of the unchanged graph in names of metrics."""
QUANTITIES = {
    "accuracy": "accuracy",
    "ece": "calibration error (ECE)",
    f"{RELATIVE}aleatoric_confidence": "aleatoric confidence, relative to clean",
    f"{RELATIVE}epistemic_confidence": "epistemic confidence, relative to clean",
}
"""Metrics that the paper plots over a shift, and their names in plots."""


@dataclass(frozen=True, slots=True)
class ShiftCurve:
    """One metric of a model over the fraction of nodes or edges that a shift changes."""

    dataset: str
    model: str
    experiment: str
    kind: str
    """Kind of the shift."""
    quantity: str
    """Name of the metric, a key of `QUANTITIES`."""
    fractions: tuple[float, ...]
    """Fractions in increasing order, from 0 for the unchanged graph."""
    means: tuple[float, ...]
    """Means over the runs, not in percent."""
    errors: tuple[float, ...]
    """Standard errors of the means; NaN for a single run."""


def shift_curves(table: Sequence[Entry]) -> list[ShiftCurve]:
    """Return the curves of all shifts in the table, except metrics that a model does not have."""
    points: dict[tuple[str, str, str, str], dict[str, Entry]] = {}
    for entry in table:
        quantity, _, setting = entry.metric.partition("@")
        if quantity in QUANTITIES and setting:
            key = (entry.dataset, entry.model, entry.experiment, quantity)
            points.setdefault(key, {})[setting] = entry
    curves = []
    for (dataset, model, experiment, quantity), by_setting in points.items():
        if CLEAN not in by_setting or math.isnan(by_setting[CLEAN].mean):
            continue
        kinds = dict.fromkeys(s.rpartition("_")[0] for s in by_setting if s != CLEAN)
        for kind in kinds:
            entries = {0.0: by_setting[CLEAN]} | {
                float(setting.rpartition("_")[2]): entry
                for setting, entry in by_setting.items()
                if setting.rpartition("_")[0] == kind and setting != CLEAN
            }
            fractions = tuple(sorted(entries))
            means = tuple(entries[fraction].mean / 100 for fraction in fractions)
            errors = tuple(entries[fraction].error / 100 for fraction in fractions)
            curves.append(
                ShiftCurve(dataset, model, experiment, kind, quantity, fractions, means, errors)
            )
    return curves


STUDIED = {
    "accuracy": ("clean", "accuracy"),
    "calibration error (ECE)": ("clean", "ece"),
    "left-out classes, AUC-ROC epistemic": ("left-out-classes", "auroc_epistemic"),
    "perturbed features, AUC-ROC without network": (
        "isolated",
        "auroc_epistemic_no_network@bernoulli",
    ),
}
"""Numbers that the paper shows over a hyper-parameter: name -> (experiment, metric)."""


@dataclass(frozen=True, slots=True)
class StudyCurve:
    """Numbers of a model over the values of one field of its configuration."""

    dataset: str
    model: str
    field: str
    values: tuple[str, ...]
    """Values as texts: numbers in increasing order, others in the order of the table."""
    rows: tuple[tuple[Entry | None, ...], ...]
    """An entry for each of `STUDIED`, for every value; None for one that is missing."""

    @property
    def models(self) -> list[str]:
        """Names of the models in the matrix, one per value."""
        return [f"{self.model}[{self.field}={value}]" for value in self.values]


def studied_field(model: str) -> tuple[str, str, str] | None:
    """Return (model, field, value) of the name `MODEL[field=value]`; None for other names."""
    kind, bracket, rest = model.partition("[")
    field, sign, value = rest.removesuffix("]").partition("=")
    return (kind, field, value) if bracket and sign and ";" not in rest else None


def study_curves(table: Sequence[Entry]) -> list[StudyCurve]:
    """Return a curve for each graph, model and field with several values in the table."""
    by_key = {(e.dataset, e.model, e.experiment, e.metric): e for e in table}
    values: dict[tuple[str, str, str], dict[str, None]] = {}
    for entry in table:
        if (studied := studied_field(entry.model)) is not None:
            kind, field, value = studied
            values.setdefault((entry.dataset, kind, field), {})[value] = None
    curves = []
    for (dataset, kind, field), given in values.items():
        ordered = sorted(given, key=float) if all(map(_is_number, given)) else list(given)
        rows = tuple(
            tuple(
                by_key.get((dataset, f"{kind}[{field}={value}]", *key)) for key in STUDIED.values()
            )
            for value in ordered
        )
        if len(rows) > 1:
            curves.append(StudyCurve(dataset, kind, field, tuple(ordered), rows))
    return curves


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
