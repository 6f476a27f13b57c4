"""Which learning rate does the opinion of GPN+ need on features whose rows sum to 1?

    python benchmarks/ablation_rates.py --datasets CoraML,CiteSeer --data-dir DIR
        [--factors 1,3,5,10] [--splits 2] [--class-sets 0,1,2,3,4] [--left-out-classes 3]
        [--epochs E] [--set SECTION.FIELD=VALUE]

Decides on the validation side alone, with the trainings and the groups of nodes of
`ablation_parts.py`: a random half of the validation nodes calibrates, the other half are the known
nodes, and the unknown nodes are the validation nodes of left-out classes.

Prints a Markdown table of means with standard errors over class sets and splits, in percent;
epochs are those of the opinion.
"""

import argparse
from itertools import product
from pathlib import Path

import numpy as np
import torch
from ablation_case import Case, Key
from ablation_parts import Values, table_lines, trained_case
from ablation_temperature import quality

from gpn_scale.cli.evaluate_options import split_datasets
from gpn_scale.data.datasets import load_graph
from gpn_scale.evaluation.metrics import accuracy

FACTOR = "opinion.learning_rate_factor"


def main() -> None:
    """Measure all trainings and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    add = parser.add_argument
    default = "synthetic:nodes=2000,classes=6,unseen_classes=0"
    add("--datasets", default=default, help="names of graphs, with commas")
    add("--data-dir", type=Path, default=Path("data"))
    add("--factors", default="1,3,5,10", help="learning rates, relative to train.learning_rate")
    add("--splits", type=int, default=2, help="number of splits")
    add("--class-sets", default="0,1,2,3,4", help="sets of left-out classes")
    add("--left-out-classes", type=int, help="number; default: the paper's, or 2 of other graphs")
    add("--epochs", type=int, help="maximum number; default: the recipe's")
    add("--set", action="append", default=[], help="change of the recipe")
    options = parser.parse_args()
    torch.set_num_threads(1)
    fixed: list[str] = list(options.set)
    values: Values = {}
    for dataset in split_datasets(options.datasets):
        graph = load_graph(dataset, options.data_dir)
        class_sets = map(int, options.class_sets.split(","))
        for split, class_set in product(range(1, options.splits + 1), class_sets):
            measures: dict[Key, float] = {}
            for factor in options.factors.split(","):
                options.set = [*fixed, f"{FACTOR}={factor}"]
                case = trained_case(graph, dataset, split, class_set, options)
                for column, value in measured(case).items():
                    measures["factor", factor, column] = value
            values.setdefault(dataset, {})[split, class_set] = measures
    keys = list(next(iter(next(iter(values.values())).values())))
    print("\n".join(table_lines(values, keys)))


def measured(case: Case) -> dict[str, float]:
    """Return the measurements of a training."""
    probability_BC = np.asarray(case.plus.probabilities[case.known], np.float64)
    return {
        "accuracy": accuracy(probability_BC, case.graph.labels[case.known]),
        **quality(case),
        "epochs": len(case.classifier.history_["opinion"]) / 100,  # the table shows percent
    }


if __name__ == "__main__":
    main()
