"""The columns of the leaderboard."""

from dataclasses import asdict, dataclass

from gpn_scale.experiments.catalogue import FALSE_ALARMS, LEFT_OUT
from gpn_scale.experiments.declared_scores import declared_scores
from gpn_scale.experiments.measured_cells import TRAINING


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the leaderboard."""

    heading: str
    task: str
    """Name of the task; all columns of a task together count as much as another task."""
    experiment: str
    metric: str
    """Name of the metric; `{errors}`, `{unknown}`, `{perturbed}` stand for the declared score."""
    higher_is_better: bool

    @property
    def name(self) -> str:
        """Name of the column in CSV files and for models with different declared scores.

        >>> COLUMNS[-1].name
        'auroc_perturbed@normal'
        """
        return self.metric.replace("{", "").replace("}", "")

    @property
    def arrow_heading(self) -> str:
        """The heading, with an arrow that points to better numbers."""
        return f"{self.heading} {'↑' if self.higher_is_better else '↓'}"

    def metric_of(self, model: str) -> str:
        """Return the metric of a model, that of its declared score.

        >>> COLUMNS[-1].metric_of("GPN")
        'auroc_epistemic_no_network@normal'
        """
        return self.metric.format(**asdict(declared_scores(model)))


_UP, _DOWN = True, False
_CALIBRATION, _UNKNOWN, _PERTURBED = "calibration", "left-out classes", "perturbed features"
COLUMNS = (
    Column("accuracy", "accuracy", "clean", "accuracy", _UP),
    Column("ECE", _CALIBRATION, "clean", "ece", _DOWN),
    Column("NLL", _CALIBRATION, "clean", "nll", _DOWN),
    Column("errors, AUC-ROC", "errors", "misclassification", "auroc_{errors}", _UP),
    Column("left-out, AUC-ROC", _UNKNOWN, LEFT_OUT, "auroc_{unknown}", _UP),
    Column("left-out, AUC-PR", _UNKNOWN, LEFT_OUT, "aupr_{unknown}", _UP),
    Column("left-out, FPR95", _UNKNOWN, FALSE_ALARMS, "fpr95_{unknown}", _DOWN),
    Column("Bernoulli, AUC-ROC", _PERTURBED, "isolated", "auroc_{perturbed}@bernoulli", _UP),
    Column("Gaussian, AUC-ROC", _PERTURBED, "isolated", "auroc_{perturbed}@normal", _UP),
)
"""Columns of quality, which are ranked."""
COSTS = (
    Column("training, CPU s", "cost", TRAINING, "cpu_seconds", _DOWN),
    Column("training, MiB", "cost", TRAINING, "added_mib", _DOWN),
)
"""Columns of cost: medians over the trainings, not ranked."""
TASKS = tuple(dict.fromkeys(column.task for column in COLUMNS))
"""Names of the tasks that are ranked."""
EXPERIMENTS = tuple(dict.fromkeys(column.experiment for column in COLUMNS))
"""Experiments that the leaderboard needs."""
