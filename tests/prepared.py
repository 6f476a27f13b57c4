"""A graph of raw columns, and other tables of the same nodes, for tests of trained models."""

from dataclasses import replace

import numpy as np
import pyarrow as pa

from gpn_scale.data.building import build_graph
from gpn_scale.data.graph import Graph
from gpn_scale.data.preparation import Preparation, prepared_features
from gpn_scale.data.raw_columns import RawColumns

COUNT = 160
LABELS = np.arange(COUNT) % 2
EDGES = (np.arange(COUNT), (np.arange(COUNT) + 2) % COUNT)
TOPICS = (["loan", "bank", "money"], ["boat", "sail", "water"])


def raw_table() -> pa.Table:
    """Mixed columns with gaps, which tell the two classes apart."""
    rng = np.random.default_rng(5)
    amount = LABELS * 3 + rng.normal(size=COUNT)
    country = np.where(rng.random(COUNT) < 0.8, np.array(["DE", "FR"])[LABELS], "IT")
    day = np.datetime64("2024-01-01") + rng.integers(0, 99, COUNT)
    notes = [" ".join(rng.choice([*TOPICS[label], "old", "new"], 4)) for label in LABELS]
    return pa.table(
        {
            "amount": [f"{value:.3f}" if row % 9 else "NA" for row, value in enumerate(amount)],
            "country": country.tolist(),
            "active": (rng.random(COUNT) < 0.5).tolist(),
            "opened": day.astype(str).tolist(),
            "note": notes,
        }
    )


def prepared(table: pa.Table, *, structural: bool = False, **options: object) -> Graph:
    """The graph of a table that is prepared by its own rule."""
    options = {"labels": LABELS, "class_names": ["legit", "fraud"], "name": "bank"} | options
    graph = build_graph(*options.pop("edges", EDGES), num_nodes=COUNT, **options)
    preparation = Preparation.fit(table, structural=structural)
    columns = prepared_features(preparation, table, graph)
    return replace(
        graph,
        features=columns.features,
        feature_names=np.array(columns.preparation.feature_names),
        preparation=columns.preparation,
        raw_columns=RawColumns(table) if table.num_columns else None,
    )
