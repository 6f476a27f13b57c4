"""In which order should predictions be reviewed, so that wrong and unknown nodes come first?

    python benchmarks/review_order.py --datasets CoraML,CiteSeer --data-dir DIR [--splits 2]
        [--class-sets 0,1,2,3,4] [--left-out-classes 3] [--values FILE]

Decides on the validation side alone, as `ablation_parts` does: a random half of the validation
nodes calibrates, and the list is made of the other half and of the nodes of left-out classes that
the split puts into the validation set. A place on the list is well spent if the prediction is wrong
or the node unknown. Lists of all these nodes are compared, and lists in which every tenth node is
unknown. Test nodes are never looked at. --values keeps the measurements of every training, and
those that the file has are not made again.

Prints Markdown tables of means with standard errors over class sets and splits, in percent.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from ablation_case import Array, Case, Key
from ablation_study import Values, all_keys, study, study_parser, table_lines
from numpy.typing import NDArray

from gpn_scale.data.graph import NodeIds
from gpn_scale.evaluation.metrics import auroc
from gpn_scale.evaluation.p_values import conformal_p

LENGTHS = (50, 100, 200)
"""Lengths of the lists."""
DRAWS = 20
"""Number of draws of the unknown nodes for lists in which few are unknown."""


def _known(p_N: Array, unknown: float) -> Array:
    """Return the probability of being known by the bound of Sellke et al. (2001) on a p-value."""
    factor_N = np.where(p_N < 1 / np.e, -np.e * p_N * np.log(p_N), 1.0)
    return np.asarray((1 - unknown) * factor_N / ((1 - unknown) * factor_N + unknown))


@dataclass(frozen=True, slots=True)
class Trust:
    """What an order may use, of every node, (N,) each."""

    right: Array
    """Calibrated probability of the predicted class."""
    known: Array
    """p_known."""
    usual: Array
    """Fraction of calibration nodes whose probability is at most as large."""
    further: Array
    """p_known, continued below its smallest value (`PValues.continued`)."""


ORDERS: Mapping[str, Callable[[Trust], Array]] = {
    "probability x p_known": lambda t: t.right * t.known,
    "probability alone": lambda t: t.right,
    "p_known alone": lambda t: t.known,
    "smaller of both": lambda t: np.minimum(t.right, t.known),
    "smaller of both p-values": lambda t: np.minimum(t.usual, t.known),
    "product of both p-values": lambda t: t.usual * t.known,
    "probability x sqrt(p_known)": lambda t: t.right * np.sqrt(t.known),
    "probability x p_known^(1/4)": lambda t: t.right * t.known**0.25,
    "probability x P(known), prior 5 %": lambda t: t.right * _known(t.known, 0.05),
    "probability x P(known), prior 20 %": lambda t: t.right * _known(t.known, 0.2),
    "continued p_known alone": lambda t: t.further,
    "probability x continued p_known": lambda t: t.right * t.further,
    "probability x sqrt(continued p_known)": lambda t: t.right * np.sqrt(t.further),
    "probability x continued p_known^(1/4)": lambda t: t.right * t.further**0.25,
    "smaller of p-value and continued p_known": lambda t: np.minimum(t.usual, t.further),
    "product of p-value and continued p_known": lambda t: t.usual * t.further,
    "probability x continued P(known), prior 20 %": lambda t: t.right * _known(t.further, 0.2),
}
"""Trust by name."""


def main() -> None:
    """Measure all trainings and print the tables."""
    print("\n".join(tables(study(study_parser(__doc__, splits=2).parse_args(), measured))))


def measured(case: Case) -> dict[Key, float]:
    """Return the precision of lists in every order, for both mixtures of nodes."""
    prediction = case.plus
    assert prediction.p is not None
    right_N = -prediction.aleatoric.astype(np.float64)
    usual_N = conformal_p(np.sort(-right_N[case.calibration]), -right_N).astype(np.float64)
    known_N = prediction.p.known.astype(np.float64)
    trust = Trust(right_N, known_N, usual_N, prediction.p.continued)
    bad_N = prediction.predicted_class != case.graph.labels  # always so for a left-out class
    rng = np.random.default_rng(case.rng_seed)
    few = min(max(1, len(case.known) // 9), len(case.unknown))
    draws = [rng.choice(case.unknown, few, replace=False) for _ in range(DRAWS)]
    values: dict[Key, float] = {}
    for name, trust_of in ORDERS.items():
        trust_N = trust_of(trust)
        for title, samples in {"all": [case.unknown], "few": draws}.items():
            lists = [np.concatenate([case.known, sample]) for sample in samples]
            columns = [_columns(trust_N, bad_N, nodes) for nodes in lists]
            for column in columns[0]:
                mean = float(np.mean([each[column] for each in columns]))
                values[title, name, column] = mean
    return values


def _columns(trust_N: Array, bad_N: NDArray[np.bool_], nodes: NodeIds) -> dict[str, float]:
    """Return precision among the first nodes of a list, that of chance, and the AUC-ROC."""
    bad = bad_N[nodes[np.argsort(trust_N[nodes], kind="stable")]]
    columns = {
        f"first {length}": float(bad[:length].mean()) if length < len(bad) else math.nan
        for length in LENGTHS
    }
    return columns | {"chance": float(bad.mean()), "AUC-ROC": auroc(bad_N[nodes], -trust_N[nodes])}


def tables(values: Values) -> list[str]:
    """Return the lines of both tables."""
    titles = {
        "all": "Wrong or unknown among the first nodes, all nodes of left-out classes listed",
        "few": "The same with one unknown node in ten",
    }
    lines = [f"{len(runs)} trainings on {dataset}." for dataset, runs in values.items()]
    for table, title in titles.items():
        keys = [key for key in all_keys(values) if key[0] == table]
        lines += ["", f"## {title}", "", *table_lines(values, keys)]
    return lines


if __name__ == "__main__":
    main()
