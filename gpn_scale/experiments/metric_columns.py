"""The metrics of the experiments by name, and columns of tables that show some of them.

A metric is chosen by its name, which stands for this metric of every experiment that has it, or as
`experiment/name`, which stands for that of one experiment.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpn_scale.errors import ConfigError
from gpn_scale.evaluation.metric_labels import metric_label
from gpn_scale.evaluation.scores import DETECTION_SCORES, EPISTEMIC_LOCAL, SCORES
from gpn_scale.experiments.calibration import REFUSED
from gpn_scale.experiments.catalogue import EXPERIMENTS, FALSE_ALARMS, LEFT_OUT
from gpn_scale.experiments.curves import CLEAN
from gpn_scale.experiments.measures import EDGE_SHIFTS, FEATURE_NOISES
from gpn_scale.experiments.tables import CONFIDENCES, RELATIVE, Entry

_FRACTION = "FRACTION"
"""Stands for the fraction of changed nodes or edges in names of metrics, such as 0.10."""
_DETECTING = (*DETECTION_SCORES, EPISTEMIC_LOCAL.name)
_AREAS = tuple(f"{area}_{score}" for score in _DETECTING for area in ("auroc", "aupr"))
_LOSSES = ("ece", "mce", "brier", "nll")
_SHIFTED = ("accuracy", "ece", *CONFIDENCES, *(RELATIVE + name for name in CONFIDENCES))
_LOWER_IS_BETTER = re.compile(r"(ece|mce|brier|nll|aurc|fpr95|conformal_size)(_|@|$)")
_HIGHER_IS_BETTER = re.compile(r"(accuracy|id_accuracy|auroc|aupr)(_|@|$)")
_TASKS = {
    "misclassification": "errors",
    LEFT_OUT: "left-out classes",
    FALSE_ALARMS: "left-out classes",
    "isolated": "perturbed features",
    "feature-shift": "feature shift",
    "edge-shift": "edge shift",
}
"""What stands above the name of a metric; experiments without a task measure all test nodes."""


@dataclass(frozen=True, slots=True)
class MetricColumn:
    """A metric of an experiment as the column of a table."""

    experiment: str
    metric: str
    task: str
    """Subject of the metric, the upper line of a heading; may be empty."""
    heading: str
    """Name of the metric for readers."""
    higher_is_better: bool | None
    """Whether higher or lower numbers are better; None if neither is."""


def metric_column(experiment: str, metric: str) -> MetricColumn:
    """Return the column of a metric.

    >>> column = metric_column("left-out-classes", "auroc_p_known")
    >>> column.task, column.heading, column.higher_is_better
    ('left-out classes', 'AUC-ROC p known', True)
    """
    better = True if _HIGHER_IS_BETTER.match(metric) else None
    better = False if _LOWER_IS_BETTER.match(metric) else better
    return MetricColumn(
        experiment, metric, _TASKS.get(experiment, ""), metric_label(metric), better
    )


def chosen_columns(names: Iterable[str], experiments: Sequence[str]) -> list[MetricColumn]:
    """Return the columns that names of metrics stand for, in the order of the names.

    Args:
        names: Names of metrics, perhaps with an experiment in front.
        experiments: Experiments of the tables.

    Raises:
        ConfigError: no experiment has such a metric; the message lists those that there are.
    """
    columns: dict[MetricColumn, None] = {}
    ordered = [name for name in EXPERIMENTS if name in experiments]
    for name in names:
        asked, slash, metric = name.rpartition("/")
        own = [e for e in ordered if e == asked or not slash]
        matching = [e for e in own if _is_metric(e, metric)]
        if not matching:
            known = dict.fromkeys(each for e in ordered for each in metric_names(e))
            raise ConfigError(
                f"metrics got {name!r}, which none of the experiments {', '.join(ordered)} "
                f"measures: expected names, or EXPERIMENT/NAME, among {', '.join(known)}",
                arguments=("metrics",),
            )
        columns |= dict.fromkeys(metric_column(experiment, metric) for experiment in matching)
    return list(columns)


def measured_columns(table: Iterable[Entry]) -> list[MetricColumn]:
    """Return a column for every metric of a table, in its order."""
    keys = dict.fromkeys((entry.experiment, entry.metric) for entry in table)
    return [metric_column(*key) for key in keys]


def metric_names(experiment: str) -> tuple[str, ...]:
    """Return the metrics of an experiment; FRACTION stands for the fraction of a shift.

    >>> metric_names("clean")[:3]
    ('accuracy', 'ece', 'mce')
    """
    refused = (f"accuracy@{score}_{part:.2f}_refused" for score in SCORES for part in REFUSED)
    conformal = ("conformal_coverage", "conformal_size")
    isolated = (f"{name}@{kind}" for kind in FEATURE_NOISES for name in (*_AREAS, "accuracy"))
    names: dict[str, tuple[str, ...]] = {
        "clean": ("accuracy", *_LOSSES, *(f"aurc_{score}" for score in SCORES), *conformal),
        "misclassification": _AREAS,
        LEFT_OUT: ("id_accuracy", *_AREAS),
        FALSE_ALARMS: tuple(f"fpr95_{score}" for score in _DETECTING),
        "isolated": tuple(isolated),
        "feature-shift": _shift_names(FEATURE_NOISES),
        "edge-shift": _shift_names(EDGE_SHIFTS),
        "calibration": ("temperature", *(f"{name}_scaled" for name in _LOSSES), *refused),
    }
    return names[experiment]


def _shift_names(kinds: Iterable[str]) -> tuple[str, ...]:
    settings = (CLEAN, *(f"{kind}_{_FRACTION}" for kind in kinds))
    return tuple(f"{name}@{setting}" for name in _SHIFTED for setting in settings)


def _is_metric(experiment: str, metric: str) -> bool:
    general = re.sub(r"(?<=_)[01]\.\d\d$", _FRACTION, metric)
    return {metric, general} & set(metric_names(experiment)) != set()
