"""Should the temperature of GPN+ depend on the energy of a node's logits?

    python benchmarks/ablation_temperature.py --datasets CoraML,CiteSeer --data-dir DIR [--splits 3]
        [--class-sets 0,1,2,3,4] [--left-out-classes 3] [--epochs E] [--set SECTION.FIELD=VALUE]

Decides on the validation side alone, with the trainings and the groups of nodes of
`ablation_parts.py`: a random half of the validation nodes calibrates, the other half are the known
nodes, and the unknown nodes are the validation nodes of left-out classes.

Prints a Markdown table of means with standard errors over class sets and splits, in percent.
"""

import argparse
from dataclasses import replace
from itertools import product
from pathlib import Path
from unittest.mock import patch

import numpy as np
from ablation_case import Case, Key
from ablation_parts import Values, table_lines, trained_case

from gpn_scale.cli.evaluate_options import split_datasets
from gpn_scale.data.datasets import load_graph
from gpn_scale.evaluation import temperature
from gpn_scale.evaluation.metrics import (
    auroc,
    expected_calibration_error,
    negative_log_likelihood,
)

RULES = {"one temperature": 1e12, "temperature by energy": temperature.SLOPE_PRECISION}
"""Precision of the slope's prior by the name of the rule."""


def main() -> None:
    """Measure all trainings and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    add = parser.add_argument
    default = "synthetic:nodes=2000,classes=6,unseen_classes=0"
    add("--datasets", default=default, help="names of graphs, with commas")
    add("--data-dir", type=Path, default=Path("data"))
    add("--splits", type=int, default=3, help="number of splits")
    add("--class-sets", default="0,1,2,3,4", help="sets of left-out classes")
    add("--left-out-classes", type=int, help="number; default: the paper's, or 2 of other graphs")
    add("--epochs", type=int, help="maximum number; default: the recipe's")
    add("--set", action="append", default=[], help="change of the recipe")
    options = parser.parse_args()
    values: Values = {}
    for dataset in split_datasets(options.datasets):
        graph = load_graph(dataset, options.data_dir)
        class_sets = map(int, options.class_sets.split(","))
        for split, class_set in product(range(1, options.splits + 1), class_sets):
            case = trained_case(graph, dataset, split, class_set, options)
            values.setdefault(dataset, {})[split, class_set] = measured(case)
    keys = list(next(iter(next(iter(values.values())).values())))
    print("\n".join(table_lines(values, keys)))


def measured(case: Case) -> dict[Key, float]:
    """Return the measurements of a training with each rule."""
    measures: dict[Key, float] = {}
    for rule, precision in RULES.items():
        with patch.object(temperature, "SLOPE_PRECISION", precision):
            # A copy, since a case remembers its prediction.
            own = replace(case)
            for column, value in quality(own).items():
                measures["rule", rule, column] = value
    return measures


def quality(case: Case) -> dict[str, float]:
    """Return quality of the known nodes' probabilities, and detection of the unknown nodes."""
    probability_BC = np.asarray(case.plus.probabilities[case.known], np.float64)
    label_B = case.graph.labels[case.known]
    is_wrong_B = probability_BC.argmax(1) != label_B
    measures = {
        "ECE": expected_calibration_error(probability_BC, label_B),
        "NLL x 100": negative_log_likelihood(probability_BC, label_B),
        "errors, AUC-ROC": auroc(is_wrong_B, -probability_BC.max(1)),
    }
    if len(case.unknown):
        measures["left-out, AUC-ROC of p_known"] = case.auroc(-case.plus.p_value("known"))
    return measures


if __name__ == "__main__":
    main()
