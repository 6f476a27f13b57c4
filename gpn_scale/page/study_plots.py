"""Plots and tables of hyper-parameter studies."""

import math

import numpy as np

from gpn_scale.experiments.curves import STUDIED, StudyCurve
from gpn_scale.experiments.tables import cell_text
from gpn_scale.page.charts import Line, curves
from gpn_scale.page.components import table
from gpn_scale.page.markup import escaped
from gpn_scale.page.shift_plots import anchor
from gpn_scale.page.svg import Axis, Plot, percent_label


def study_plot(study: StudyCurve) -> Plot:
    """Draw all metrics of a study over its values, which are equally spaced."""
    places = np.arange(len(study.values), dtype=np.float64)
    lines = []
    for column, name in enumerate(STUDIED):
        own = [row[column] for row in study.rows]
        mean = np.array([math.nan if entry is None else entry.mean for entry in own]) / 100
        error = np.array([math.nan if entry is None else entry.error for entry in own]) / 100
        lines.append(Line(places, mean, name, error))
    return curves(
        anchor(f"study-{study.dataset}-{study.model}-{study.field}"),
        f"{study.dataset}, {study.model}: {study.field}",
        lines,
        Axis(tuple(places.tolist()), study.values, study.field),
        "metric",
        y_label=percent_label,
        include=(0.0, 1.0),
    )


def study_table(study: StudyCurve) -> str:
    """Return the metrics of a study as a table, with a row for each value."""
    rows = [
        [escaped(value), *(escaped(cell_text(entry)) for entry in row)]
        for value, row in zip(study.values, study.rows, strict=True)
    ]
    caption = f"{study.dataset}, {study.model}"
    return table([study.field, *STUDIED], rows, caption)
