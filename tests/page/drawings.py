"""Plots are well-formed XML and hold no number that is not finite."""

import re
import xml.etree.ElementTree as ElementTree

NAN, INF = float("nan"), float("inf")
SERIES = {
    "none": [],
    "one": [3.0],
    "constant": [2.0, 2.0, 2.0],
    "zero": [0.0, 0.0],
    "not finite": [NAN, INF, -INF],
    "partly finite": [NAN, 1.0, INF, 2.0, -INF],
    "tiny": [5e-324, 0.0],
    "huge": [-1e308, 1e308],
    "usual": [0.1, 0.7, 0.3],
}


def parsed(plot):
    """The drawing as a file, which must be XML without numbers that are not finite."""
    text = plot.standalone(".plot { color: red }")
    root = ElementTree.fromstring(text)
    for part in root.iter():
        for key, value in part.attrib.items():
            if key in ("d", "x", "y", "cx", "cy", "r", "width", "height", "viewBox"):
                assert not re.search("nan|inf", value, re.IGNORECASE), (part.tag, key, value)
    return root


def numbers(root, key):
    return [float(part.get(key)) for part in root.iter() if part.get(key) is not None]
