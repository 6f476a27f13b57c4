"""Charts are valid specifications of Vega-Lite and well-formed XML with finite numbers."""

import json
import re
import xml.etree.ElementTree as ElementTree

import altair

from gpn_scale.page.chart import Chart

NAN, INF = float("nan"), float("inf")
SERIES = {
    "none": [],
    "one": [3.0],
    "constant": [2.0, 2.0, 2.0],
    "zero": [0.0, 0.0],
    "not finite": [NAN, INF, -INF],
    "partly finite": [NAN, 1.0, INF, 2.0, -INF],
    "tiny": [5e-324, 0.0],
    "huge": [-1e300, 1e300],
    "usual": [0.1, 0.7, 0.3],
}


def checked(specification):
    """The specification, which must follow the schema of Vega-Lite that Altair comes with."""
    altair.Chart.from_dict(json.loads(json.dumps(specification, allow_nan=False)))
    return specification


def parsed(chart: Chart):
    """The drawing as a file, which must be XML without numbers that are not finite."""
    checked(chart.specification)
    root = ElementTree.fromstring(chart.svg_file())
    for part in root.iter():
        for key, value in part.attrib.items():
            if key in ("d", "x", "y", "x2", "y2", "width", "height", "viewBox", "transform"):
                assert not re.search("nan|infinity", value, re.IGNORECASE), (part.tag, key, value)
    return root


def texts_in(chart: Chart):
    """All texts that the drawing shows."""
    return [part.text for part in parsed(chart).iter() if part.tag.endswith("}text")]
