"""Should the temperature of GPN+ depend on the energy of a node's logits?

    python benchmarks/ablation_temperature.py --datasets CoraML,CiteSeer --data-dir DIR [--splits 3]
        [--class-sets 0,1,2,3,4] [--left-out-classes 3] [--epochs E] [--set SECTION.FIELD=VALUE]

Decides on the validation side alone, with the trainings and the groups of nodes of
`ablation_study.py`: a random half of the validation nodes calibrates, the other half are the known
nodes, and the unknown nodes are the validation nodes of left-out classes.

Prints a Markdown table of means with standard errors over class sets and splits, in percent.
"""

from dataclasses import replace
from unittest.mock import patch

import numpy as np
from ablation_case import Case, Key
from ablation_study import all_keys, study, study_parser, table_lines

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
    values = study(study_parser(__doc__, splits=3).parse_args(), measured)
    print("\n".join(table_lines(values, all_keys(values))))


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
