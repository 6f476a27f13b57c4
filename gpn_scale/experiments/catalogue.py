"""The experiments by name, and checks of the graphs that they run on and of their results."""

from collections.abc import Callable, Iterable, Mapping

from gpn_scale.data.graph import Graph
from gpn_scale.data.shifts import check_movable
from gpn_scale.errors import ConfigError, GraphError
from gpn_scale.evaluation.prediction_metrics import Metrics
from gpn_scale.experiments.calibration import calibration
from gpn_scale.experiments.measures import (
    EDGE_SHIFTS,
    FEATURE_NOISES,
    clean,
    edge_shift,
    feature_shift,
    isolated,
    left_out_classes,
    left_out_false_alarms,
    misclassification,
)
from gpn_scale.experiments.trained import Trained

LEFT_OUT = "left-out-classes"
FALSE_ALARMS = "left-out-false-alarms"
LEFT_OUT_EXPERIMENTS = frozenset({LEFT_OUT, FALSE_ALARMS})
"""The experiments that need a training without some classes; all others share one with all."""
EXPERIMENTS: Mapping[str, Callable[[Trained], Metrics]] = {
    "clean": clean,
    "misclassification": misclassification,
    LEFT_OUT: left_out_classes,
    FALSE_ALARMS: left_out_false_alarms,
    "isolated": isolated,
    "feature-shift": feature_shift,
    "edge-shift": edge_shift,
    "calibration": lambda trained: calibration(trained.prediction, trained.graph),
}
"""Experiments by name, in the order of the tables."""


def check_experiment(name: str) -> None:
    """Refuse a name that is not that of an experiment.

    Raises:
        ConfigError: the name is unknown; the message lists all names.
    """
    if name not in EXPERIMENTS:
        names = ", ".join([*EXPERIMENTS, "ablation", "hyper-parameters", "all"])
        raise ConfigError(
            f"experiments got {name!r}, expected names among {names}", arguments=("experiments",)
        )


def check_possible(experiments: Iterable[str], graph: Graph) -> None:
    """Refuse experiments that cannot be run on the graph.

    Raises:
        GraphError: the graph has no features, or is directed or weighted.
    """
    names = set(experiments)
    if "edge-shift" in names:
        check_movable(graph)
    if graph.features is None and (feature := sorted(names & {"isolated", "feature-shift"})):
        raise GraphError(
            f"graph {graph.name!r} has no features, which the experiment {feature[0]} changes: "
            "leave the experiment out",
            arguments=("experiments",),
        )


def is_complete(experiment: str, metrics: Metrics, fractions: Iterable[float]) -> bool:
    """Return whether a result covers all fractions; always true except for shifts."""
    kinds = {"feature-shift": FEATURE_NOISES, "edge-shift": EDGE_SHIFTS}.get(experiment, ())
    return all(
        f"accuracy@{kind}_{fraction:.2f}" in metrics for kind in kinds for fraction in fractions
    )
