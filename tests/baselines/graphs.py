"""Small graphs with splits, and configurations, for tests of comparison models."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from gpn_scale.config import EncoderConfig, MinibatchConfig, RunConfig, SplitConfig, TrainConfig
from gpn_scale.data.building import build_graph
from gpn_scale.data.graph import CSRFeatures, Split
from gpn_scale.data.splits import stratified_split
from gpn_scale.data.synthetic import SyntheticConfig, synthetic_graph
from gpn_scale.errors import RunError

CONFIG = RunConfig(
    model="GPN",
    encoder=EncoderConfig(hidden=8, dropout=0.3),
    train=TrainConfig(epochs=20, patience=20, weight_decay=0.0),
    split=SplitConfig(train=0.2, val=0.2),
)
LONGER = replace(CONFIG, train=replace(CONFIG.train, epochs=60))


def small_graph(nodes=120, classes=3, *, directed=False):
    graph = stratified_split(unsplit_graph(nodes, classes), train=0.2, val=0.2, rng_seed=1)
    return one_way(graph) if directed else graph


def unsplit_graph(nodes=120, classes=4):
    settings = {"unseen_classes": 0, "isolated": 0.0, "foreign": 0.0}
    return synthetic_graph(SyntheticConfig(nodes=nodes, classes=classes, features=6, **settings))


def one_way(graph):
    """Every edge in one direction, drawn by lot."""
    source, target = np.repeat(np.arange(graph.num_nodes), graph.out_degree), graph.indices
    first = source < target
    turned = np.random.default_rng(1).random(first.sum()) < 0.5
    low, high = source[first], target[first]
    directed = build_graph(
        *(np.where(turned, high, low), np.where(turned, low, high)),
        num_nodes=graph.num_nodes,
        labels=graph.labels,
        features=graph.features,
        directed=True,
    )
    return directed.with_split(graph.split)


def as_sparse(graph):
    """The same graph with sparse features."""
    count, width = graph.features.shape
    features = CSRFeatures(
        indptr=np.arange(count + 1) * width,
        indices=np.tile(np.arange(width, dtype=np.int32), count),
        values=graph.features.ravel().astype(np.float32),
        num_columns=width,
    )
    return replace(graph, features=features)


def chain(count, train, val, **changes):
    """A path of nodes; the first ones are for training, the next ones for validation."""
    ends = np.arange(count - 1)
    graph = build_graph(
        *(ends, ends + 1),
        num_nodes=count,
        labels=np.arange(count) % 2,
        features=np.zeros((count, 1), np.float32),
        **changes,
    )
    ids = np.arange(count)
    return graph.with_split(
        Split(train=ids[:train], val=ids[train : train + val], test=ids[train + val :])
    )


def minibatch(**changes):
    """The configuration of training on batches."""
    return replace(CONFIG, mode="minibatch", minibatch=MinibatchConfig(**changes))


def in_float64(model, **changes):
    """A model with changes of the configuration, in double precision."""
    return model(replace(CONFIG, **changes), dtype=torch.float64)


def check_learning(model, tmp_path, config=LONGER):
    """Training is better than chance, repeatable, and restored from tensors of the same shapes."""
    graph = small_graph()
    fitted = model(config).fit(graph)
    prediction, test = fitted.predict(graph), graph.split.test
    right = prediction.predicted_class[test] == graph.labels[test]
    assert right.mean() > 0.6  # three classes
    np.testing.assert_allclose(prediction.probabilities.sum(1), 1.0, rtol=1e-5)
    again = model(config).fit(graph).predict(graph)
    np.testing.assert_array_equal(again.probabilities, prediction.probabilities)
    loaded = model(config)
    loaded.load_state(graph, fitted.state(), tmp_path)
    restored = loaded.predict(graph)
    np.testing.assert_array_equal(restored.probabilities, prediction.probabilities)
    other = replace(config, encoder=replace(config.encoder, hidden=9))
    with pytest.raises(RunError):
        model(other).load_state(graph, fitted.state(), tmp_path)
