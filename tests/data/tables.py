"""Two small raw tables for the tests of the import, and what the graph of them looks like."""

import csv

import numpy as np

NODES = {
    "ref": ["a", "b", "c", "d", "e", "f"],
    "verdict": ["ok", "bad", "ok", "bad", None, None],
    "age": [31, 29, None, 40, 22, 35],
    "country": ["DE", "FR", "DE", None, "IT", "FR"],
}
EDGES = {"from": ["a", "b", "c", "d", "a"], "to": ["b", "c", "d", "e", "b"], "sum": [1, 2, 3, 4, 5]}
NAMES = {"id": "ref", "label": "verdict", "source": "from", "target": "to"}


def write_csv(path, columns):
    """Write a table; None becomes an empty value."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def by_name(graph):
    """All of a graph in terms of the user's ids, so that the order of nodes does not count."""
    names, dense = graph.node_names, graph.features
    dense = dense.to_dense() if hasattr(dense, "to_dense") else dense
    weights = np.ones(graph.num_edges) if graph.edge_weight is None else graph.edge_weight
    source = np.repeat(np.arange(graph.num_nodes), graph.out_degree)
    edges = {
        (str(names[u]), str(names[v])): float(weight)
        for u, v, weight in zip(source, graph.indices, weights, strict=True)
    }
    columns = [str(name) for name in graph.feature_names]
    labels = [None if k < 0 else str(graph.class_names[k]) for k in graph.labels]
    return {
        "edges": edges,
        "labels": dict(zip(names.tolist(), labels, strict=True)),
        "features": {
            str(name): dict(zip(columns, row.tolist(), strict=True))
            for name, row in zip(names, dense, strict=True)
        },
    }
