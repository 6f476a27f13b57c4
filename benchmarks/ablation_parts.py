"""Which parts, and which way of joining them, should GPN+ use?

    python benchmarks/ablation_parts.py --datasets CoraML,CiteSeer --data-dir DIR [--splits 3]
        [--class-sets 0,1,2,3,4] [--left-out-classes 3] [--set SECTION.FIELD=VALUE]
        [--values FILE]

Decides on the validation side alone. A random half of the validation nodes calibrates, the other
half are the known nodes, and the unknown nodes are those nodes of left-out classes that the split
puts into the validation set. Test nodes are never looked at. Every class set and split is a
training with a seed of its own. With --left-out-classes 0 each class set is one more seed, and
only probabilities and features of noise are measured. --values keeps the measurements of every
training, and those that the file has are not made again.

Prints Markdown tables of means with standard errors over class sets and splits, in percent.
"""

from ablation_case import Case, Key
from ablation_encoders import encoders
from ablation_measures import (
    joins,
    parts,
    probabilities,
    single_scores,
    surroundings,
    validity,
)
from ablation_study import Values, all_keys, study, study_parser, table_lines

TITLES = {
    "scores": "Single scores, left-out AUC-ROC",
    "parts": "Parts, left-out AUC-ROC of p_known",
    "joins": "Ways to join the parts, left-out AUC-ROC",
    "surroundings": "Weight of the surroundings, AUC-ROC",
    "validity": "p_known of the known nodes",
    "probabilities": "Class probabilities of the known nodes",
    "encoders": "Separate and shared encoders",
}


def main() -> None:
    """Measure all trainings and print the tables."""
    print("\n".join(tables(study(study_parser(__doc__, splits=3).parse_args(), measured))))


def measured(case: Case) -> dict[Key, float]:
    """Return all measurements of a training; without unknown nodes, those that need none."""
    measures = [surroundings, validity, probabilities]
    if len(case.unknown):
        measures += [single_scores, parts, joins, encoders]
    return {key: value for measure in measures for key, value in measure(case).items()}


def tables(values: Values) -> list[str]:
    """Return the lines of all tables."""
    keys = all_keys(values)
    lines = [f"{len(runs)} trainings on {dataset}." for dataset, runs in values.items()]
    for table, title in TITLES.items():
        own = [key for key in keys if key[0] == table]
        if own:
            lines += ["", f"## {title}", "", *table_lines(values, own)]
    return lines


if __name__ == "__main__":
    main()
