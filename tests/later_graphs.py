"""Later versions of graphs, for tests of models that go on with them."""

import numpy as np

from gpn_scale.data.building import build_graph
from gpn_scale.data.graph import Graph


def later_graph(graph: Graph, *, edges: int = 6, nodes: int = 4, rng_seed: int = 3) -> Graph:
    """The graph with new edges, and with new labelled nodes that resemble old ones; no split."""
    rng, count = np.random.default_rng(rng_seed), graph.num_nodes
    row = np.repeat(np.arange(count), graph.out_degree)
    new = np.arange(count, count + nodes)
    alike = rng.choice(np.flatnonzero(graph.labels >= 0), nodes)
    source = np.concatenate([row, rng.integers(0, count, edges), new])
    target = np.concatenate([graph.indices, rng.integers(0, count, edges), alike])
    names = graph.node_names
    return build_graph(
        source,
        target,
        name=graph.name,
        num_nodes=count + nodes,
        features=np.concatenate([graph.features, graph.features[alike]]),
        labels=np.concatenate([graph.labels, graph.labels[alike]]),
        num_classes=graph.num_classes,
        marks=graph.marks,
        node_names=None if names is None else np.append(names, [f"new-{node}" for node in new]),
        class_names=graph.class_names,
        feature_names=graph.feature_names,
    )
