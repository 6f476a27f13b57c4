"""Tables of a matrix -> curves: what becomes of a model over a shift, or over a parameter."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gpn_scale.experiments.tables import RELATIVE, Entry

CLEAN = "clean"
QUANTITIES = {
    "accuracy": "accuracy",
    "ece": "calibration error (ECE)",
    f"{RELATIVE}aleatoric_confidence": "aleatoric confidence, relative to clean",
    f"{RELATIVE}epistemic_confidence": "epistemic confidence, relative to clean",
}
"""What the paper draws over a shift."""


@dataclass(frozen=True, slots=True)
class ShiftCurve:
    """One quantity of a model over the share of nodes or edges that a shift changed."""

    dataset: str
    model: str
    experiment: str
    kind: str
    """Of the shift."""
    quantity: str
    shares: tuple[float, ...]
    """Rising from 0, the graph as it is."""
    means: tuple[float, ...]
    """Shares, not percent; over the runs."""
    errors: tuple[float, ...]
    """Standard errors; NaN for a single run."""


def shift_curves(table: Sequence[Entry]) -> list[ShiftCurve]:
    """All curves of the shifts that the table has, in its order; none of what a model lacks."""
    points: dict[tuple[str, str, str, str], dict[str, Entry]] = {}
    for entry in table:
        quantity, _, setting = entry.metric.partition("@")
        if quantity in QUANTITIES and setting:
            key = (entry.dataset, entry.model, entry.experiment, quantity)
            points.setdefault(key, {})[setting] = entry
    found = []
    for (dataset, model, experiment, quantity), by_setting in points.items():
        if CLEAN not in by_setting or math.isnan(by_setting[CLEAN].mean):
            continue
        kinds = dict.fromkeys(s.rpartition("_")[0] for s in by_setting if s != CLEAN)
        for kind in kinds:
            along = {0.0: by_setting[CLEAN]} | {
                float(setting.rpartition("_")[2]): entry
                for setting, entry in by_setting.items()
                if setting.rpartition("_")[0] == kind and setting != CLEAN
            }
            shares = tuple(sorted(along))
            means = tuple(along[share].mean / 100 for share in shares)
            errors = tuple(along[share].error / 100 for share in shares)
            found.append(
                ShiftCurve(dataset, model, experiment, kind, quantity, shares, means, errors)
            )
    return found


STUDIED = {
    "accuracy": ("clean", "accuracy"),
    "calibration error (ECE)": ("clean", "ece"),
    "left-out classes, AUC-ROC epistemic": ("left-out-classes", "auroc_epistemic"),
    "perturbed features, AUC-ROC without network": (
        "isolated",
        "auroc_epistemic_no_network@bernoulli",
    ),
}
"""What the paper shows over a hyper-parameter: name -> (experiment, metric)."""


@dataclass(frozen=True, slots=True)
class StudyCurve:
    """Numbers of a model over the values of one field of its configuration."""

    dataset: str
    model: str
    field: str
    values: tuple[str, ...]
    """As they were written; numbers in their order, words as they came."""
    rows: tuple[tuple[Entry | None, ...], ...]
    """Per value, an entry for each of `STUDIED`."""

    @property
    def models(self) -> list[str]:
        """Their names in the matrix."""
        return [f"{self.model}[{self.field}={value}]" for value in self.values]


def studied_field(model: str) -> tuple[str, str, str] | None:
    """(model, field, value) of `MODEL[field=value]`; None for all other names."""
    kind, bracket, rest = model.partition("[")
    field, sign, value = rest.removesuffix("]").partition("=")
    return (kind, field, value) if bracket and sign and ";" not in rest else None


def study_curves(table: Sequence[Entry]) -> list[StudyCurve]:
    """A curve for each graph, model and field that the table has several values of."""
    by_place = {(e.dataset, e.model, e.experiment, e.metric): e for e in table}
    values: dict[tuple[str, str, str], dict[str, None]] = {}
    for entry in table:
        if (studied := studied_field(entry.model)) is not None:
            kind, field, value = studied
            values.setdefault((entry.dataset, kind, field), {})[value] = None
    found = []
    for (dataset, kind, field), given in values.items():
        ordered = sorted(given, key=float) if all(map(_is_number, given)) else list(given)
        rows = tuple(
            tuple(
                by_place.get((dataset, f"{kind}[{field}={value}]", *place))
                for place in STUDIED.values()
            )
            for value in ordered
        )
        if len(rows) > 1:
            found.append(StudyCurve(dataset, kind, field, tuple(ordered), rows))
    return found


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
