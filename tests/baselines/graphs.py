"""A small graph with a split, for tests of comparison models."""

import numpy as np

from gpn_scale.config import EncoderConfig, RunConfig, SplitConfig, TrainConfig
from gpn_scale.data.building import build_graph
from gpn_scale.data.splits import stratified_split
from gpn_scale.data.synthetic import SyntheticConfig, synthetic_graph

CONFIG = RunConfig(
    encoder=EncoderConfig(hidden=8, dropout=0.3),
    train=TrainConfig(epochs=20, patience=20, weight_decay=0.0),
    split=SplitConfig(train=0.2, val=0.2),
)


def small_graph(nodes=120, classes=3, *, directed=False):
    settings = {"unseen_classes": 0, "isolated": 0.0, "foreign": 0.0}
    config = SyntheticConfig(nodes=nodes, classes=classes, features=6, **settings)
    graph = stratified_split(synthetic_graph(config), train=0.2, val=0.2, rng_seed=1)
    return one_way(graph) if directed else graph


def one_way(graph):
    """Every edge in one direction, drawn by lot."""
    source, target = np.repeat(np.arange(graph.num_nodes), graph.out_degree), graph.indices
    first = source < target
    turned = np.random.default_rng(1).random(first.sum()) < 0.5
    low, high = source[first], target[first]
    found = build_graph(
        *(np.where(turned, high, low), np.where(turned, low, high)),
        num_nodes=graph.num_nodes,
        labels=graph.labels,
        features=graph.features,
        directed=True,
    )
    return found.with_split(graph.split)
