"""Distinct names of features, made of the names of raw columns and of their values."""

from collections.abc import Sequence
from typing import NamedTuple

_LONGEST = 100
_KEPT_AT_START, _KEPT_AT_END = 60, 30


class FeatureLabel(NamedTuple):
    """The name that a rule gives to one of its features.

    >>> FeatureLabel("country", "country=DE").column
    'country'
    """

    column: str
    """Name of the raw column."""
    label: str


def distinct_names(labels: Sequence[FeatureLabel]) -> tuple[str, ...]:
    """Return distinct names in the order of the labels.

    Long labels are shortened. Among equal ones, the first by column name keeps its text, and the
    others get a number, so the order of the columns makes no difference.

    >>> distinct_names([FeatureLabel("b", "b=1"), FeatureLabel("a", "b=1")])
    ('b=1 (2)', 'b=1')
    """
    names = [""] * len(labels)
    taken: set[str] = set()
    for place in sorted(range(len(labels)), key=lambda each: (labels[each].column, each)):
        short = _shortened(labels[place].label)
        name, number = short, 2
        while name in taken:
            name, number = f"{short} ({number})", number + 1
        names[place] = name
        taken.add(name)
    return tuple(names)


def _shortened(label: str) -> str:
    """Return a label of limited length without NUL, which NumPy would drop at its end."""
    label = label.replace("\0", "\\0")
    if len(label) <= _LONGEST:
        return label
    return f"{label[:_KEPT_AT_START]}...{label[-_KEPT_AT_END:]}"
