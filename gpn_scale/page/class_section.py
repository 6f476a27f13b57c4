"""The section about classes: which are confused, figures per class, class balance."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpn_scale.page.chart import Chart
from gpn_scale.page.class_facts import ClassFacts
from gpn_scale.page.facts import PredictionFacts
from gpn_scale.page.paired_bars import paired_bars
from gpn_scale.page.section import Figure, Section, section
from gpn_scale.page.templates import rendered
from gpn_scale.page.texts import class_letter, percent

_HEADER = ["class", "precision", "recall", "F1", "train", "val", "test", "predicted, all nodes"]


def classes(facts: PredictionFacts) -> Section:
    """Return the confusion matrix, figures per class and the balance of classes."""
    values, names = facts.classes, facts.class_names
    return section(
        "classes",
        "Which classes does it confuse?",
        "classes.html",
        figures=(
            Figure(
                balance_chart(values, names),
                "A class that is predicted much more often than it is labelled deserves a look.",
            ),
        ),
        names=names,
        confusion=_cells(values),
        most=_most_confused(values),
        header=_HEADER,
        rows=_rows(values, names),
    )


def balance_chart(facts: ClassFacts, names: Sequence[str]) -> Chart:
    """Draw the fraction of each class among training nodes and among predictions of all nodes."""
    counts = {"training labels": facts.train, "predictions of all nodes": facts.predicted}
    return paired_bars(
        "class-balance",
        "Class balance",
        [f"{class_letter(c)} {name}" for c, name in enumerate(names)],
        {kind: each / max(each.sum(), 1) for kind, each in counts.items()},
        description="Fraction of each class among the training labels and among the predictions of "
        "all nodes",
    )


def _rows(facts: ClassFacts, names: Sequence[str]) -> list[list[Any]]:
    counts = (facts.train, facts.val, facts.test, facts.predicted)
    return [
        [
            rendered("class_name.html", label=label, text=name),
            *(percent(each[label]) for each in (facts.precision, facts.recall, facts.f1)),
            *(f"{int(each[label]):,}" for each in counts),
        ]
        for label, name in enumerate(names)
    ]


def _cells(facts: ClassFacts) -> list[list[dict[str, Any]]]:
    """Return count and shade of every cell; the shade is the fraction of the row."""
    return [
        [
            {
                "count": int(count),
                "text": f"{int(count):,}",
                "percent": round(100 * int(count) / max(int(row.sum()), 1)),
            }
            for count in row
        ]
        for row in facts.confusion
    ]


def _most_confused(facts: ClassFacts) -> dict[str, Any] | None:
    wrong = facts.confusion - np.diag(facts.confusion.diagonal())
    if not wrong.any():
        return None
    true, predicted = np.unravel_index(int(wrong.argmax()), wrong.shape)
    return {"true": int(true), "predicted": int(predicted), "count": f"{int(wrong.max()):,}"}
