"""Which learning rate does the opinion of GPN+ need on features whose rows sum to 1?

    python benchmarks/ablation_rates.py --datasets CoraML,CiteSeer --data-dir DIR
        [--factors 1,3,5,10] [--splits 2] [--class-sets 0,1,2,3,4] [--left-out-classes 3]
        [--epochs E] [--set SECTION.FIELD=VALUE]

Decides on the validation side alone, with the trainings and the groups of nodes of
`ablation_study.py`: a random half of the validation nodes calibrates, the other half are the known
nodes, and the unknown nodes are the validation nodes of left-out classes.

Prints a Markdown table of means with standard errors over class sets and splits, in percent;
epochs are those of the opinion.
"""

from functools import partial

import numpy as np
import torch
from ablation_case import Case, Key
from ablation_study import Train, all_keys, study_parser, study_with, table_lines
from ablation_temperature import quality

from gpn_scale.evaluation.metrics import accuracy


def main() -> None:
    """Measure all trainings and print the table."""
    parser = study_parser(__doc__, splits=2)
    parser.add_argument("--factors", default="1,3,5,10", help="relative to train.learning_rate")
    options = parser.parse_args()
    torch.set_num_threads(1)
    values = study_with(options, partial(compared, options.factors.split(",")))
    print("\n".join(table_lines(values, all_keys(values))))


def compared(factors: list[str], train: Train) -> dict[Key, float]:
    """Return the measurements of a training with each factor."""
    return {
        ("factor", factor, column): value
        for factor in factors
        for column, value in measured(train(f"opinion.learning_rate_factor={factor}")).items()
    }


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
