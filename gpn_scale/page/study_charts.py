"""Charts of hyper-parameter studies."""

import json
import math

import numpy as np

from gpn_scale.experiments.curves import STUDIED, StudyCurve
from gpn_scale.page.chart import Chart
from gpn_scale.page.curve_chart import CurveAxes, Line, curve_chart
from gpn_scale.page.texts import anchor


def study_chart(study: StudyCurve) -> Chart:
    """Draw all metrics of a study over its values, which are equally spaced."""
    places = np.arange(len(study.values), dtype=np.float64)
    lines = []
    for column, name in enumerate(STUDIED):
        own = [row[column] for row in study.rows]
        mean = np.array([math.nan if entry is None else entry.mean for entry in own]) / 100
        error = np.array([math.nan if entry is None else entry.error for entry in own]) / 100
        lines.append(Line(places, mean, name, error))
    # A text in JSON is a text in the language of expressions as well.
    labels = json.dumps(list(study.values))
    return curve_chart(
        anchor(f"study-{study.dataset}-{study.model}-{study.field}"),
        f"{study.dataset}, {study.model}: {study.field}",
        lines,
        CurveAxes(
            x_title=study.field,
            y_title="metric",
            x_axis={
                "title": study.field,
                "values": places.tolist(),
                "labelExpr": f"{labels}[datum.value]",
                "labelOverlap": False,
            },
            is_percent=True,
            y_range=(0.0, 1.0),
        ),
    )
