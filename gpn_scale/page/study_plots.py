"""Hyper-parameter studies -> plots and tables."""

import math

import numpy as np

from gpn_scale.experiments.curves import STUDIED, StudyCurve
from gpn_scale.experiments.tables import cell_text
from gpn_scale.page.charts import Line, curves
from gpn_scale.page.components import table
from gpn_scale.page.markup import escaped
from gpn_scale.page.shift_plots import anchor
from gpn_scale.page.svg import Axis, Plot, percent_label


def study_plot(found: StudyCurve) -> Plot:
    """All numbers of a study over its values, which stand at equal distances."""
    places = np.arange(len(found.values), dtype=np.float64)
    lines = []
    for column, name in enumerate(STUDIED):
        own = [row[column] for row in found.rows]
        mean = np.array([math.nan if entry is None else entry.mean for entry in own]) / 100
        error = np.array([math.nan if entry is None else entry.error for entry in own]) / 100
        lines.append(Line(places, mean, name, error))
    return curves(
        anchor(f"study-{found.dataset}-{found.model}-{found.field}"),
        f"{found.dataset}, {found.model}: {found.field}",
        lines,
        Axis(tuple(places.tolist()), found.values, found.field),
        "share",
        y_label=percent_label,
        include=(0.0, 1.0),
    )


def study_table(found: StudyCurve) -> str:
    """The same as numbers: values down."""
    rows = [
        [escaped(value), *(escaped(cell_text(entry)) for entry in row)]
        for value, row in zip(found.values, found.rows, strict=True)
    ]
    caption = f"{found.dataset}, {found.model}"
    return table([found.field, *STUDIED], rows, caption)
