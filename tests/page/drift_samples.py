"""Comparisons to draw."""

import numpy as np

from gpn_scale.drift.comparison import compare
from tests.drift.samples import columns_of, raw_graph, scored, strange


def moved_drift(name="november.csv", column="age", value="XK", node="n1"):
    """A comparison in which a part, columns, classes and nodes moved."""
    own = columns_of(600)
    names = [node if each == "n1" else each for each in own["node_name"]]
    own = {part: strange(own[part], 0.2) for part in ("p_known", "p_features")}
    one = {"predicted_class": [0] * 600, "predicted_class_name": ["private"] * 600}
    flags = {"abstain": [False] * 600}
    a = scored(600, name="run", node_name=names, **flags)
    b = scored(600, name=name, node_name=names, **own, **one, **flags)
    age = np.random.default_rng(9).normal(65, 10, 600)
    country = np.where(np.arange(600) < 100, value, "DE")
    opened = ["2025-03-01"] * 300 + ["2026-03-01"] * 300
    before = raw_graph(id=names, **{column: np.arange(600)})
    later = {column: age, "country": country, "opened": opened}
    after = raw_graph(id=names, **later)
    return compare(a, b, graph_a=before, graph_b=after)


def still_drift():
    """A comparison of few nodes without p-values and graphs, in which nothing moved."""
    bare = {f"p_{name}": None for name in ("known", "features", "neighbourhood", "opinion")}
    table = scored(10, reason=None, **bare)
    return compare(table, table)
