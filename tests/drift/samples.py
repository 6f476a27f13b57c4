"""Tables of predictions with planted shifts."""

import numpy as np
import pyarrow as pa

from gpn_scale.data.graph import Graph
from gpn_scale.drift.scored_table import ScoredTable

PARTS = ("features", "neighbourhood", "opinion")


def uniform(count, rng_seed=0):
    """P-values of known nodes against 199 validation nodes."""
    return np.random.default_rng(rng_seed).integers(1, 201, count) / 200


def columns_of(count=600, rng_seed=0, classes=("private", "merchant", "fraud"), **changed):
    """Columns of a table of predictions with ids, classes and p-values of three parts."""
    rng = np.random.default_rng(rng_seed)
    predicted = rng.integers(0, len(classes), count)
    columns = {
        "node": np.arange(count),
        "node_name": [f"n{place}" for place in range(count)],
        "predicted_class": predicted,
        "predicted_class_name": [classes[each] for each in predicted],
        "aleatoric": -rng.uniform(0.5, 1.0, count).astype(np.float32),
        **{
            f"p_{part}": uniform(count, place + 10 * rng_seed).astype(np.float32)
            for place, part in enumerate((*PARTS, "known"))
        },
        "reason": ["nothing unusual"] * count,
    }
    return {name: values for name, values in (columns | changed).items() if values is not None}


def scored(count=600, rng_seed=0, name="the table", **changed):
    return ScoredTable.of(pa.table(columns_of(count, rng_seed, **changed)), name=name)


def strange(p, fraction, rng_seed=3):
    """The p-values with a fraction of them as small as can be."""
    chosen = np.random.default_rng(rng_seed).random(len(p)) < fraction
    return np.where(chosen, np.float32(0.005), p).astype(np.float32)


def raw_graph(count=600, rng_seed=0, **changed):
    """A graph of raw columns of every kind, whose nodes are called as those of `scored`."""
    rng = np.random.default_rng(rng_seed)
    topics = np.array(["rent and food", "shop card sales", "old gift refund"])
    extra = rng.integers(0, 10**6, count)
    names = np.array(changed.get("id", [f"n{place}" for place in range(count)]))
    nodes = {
        "id": names,
        "age": rng.normal(45, 10, count).round(),
        "country": rng.choice(["DE", "FR", "NL"], count, p=[0.6, 0.3, 0.1]),
        "is_company": rng.choice(["yes", "no"], count),
        "opened": [f"20{year:02d}-03-01" for year in rng.integers(10, 26, count)],
        "note": [
            f"{topic} {each}" for topic, each in zip(rng.choice(topics, count), extra, strict=True)
        ],
    }
    edges = {
        "source": names[rng.integers(0, count, 2 * count)],
        "target": names[rng.integers(0, count, 2 * count)],
    }
    return Graph.from_tables(nodes | changed, edges, kinds={"note": "text"})
