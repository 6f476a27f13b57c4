from dataclasses import replace

import numpy as np
import pytest

from gpn_scale.baselines.graph_kernel import KernelDirichlet
from gpn_scale.baselines.label_propagation import LabelPropagation, PropagationOptions
from gpn_scale.config import RunConfig
from gpn_scale.data.building import build_graph
from gpn_scale.data.graph import Split
from tests.baselines.graphs import small_graph
from tests.oracles import dense_diffusion, dense_transition


@pytest.mark.parametrize("class_prior", [True, False])
def test_lp_diffuses_densities_of_labelled_nodes(class_prior):
    graph, config = small_graph(), RunConfig(model="GPN")
    model = LabelPropagation(config, PropagationOptions(class_prior=class_prior)).fit(graph)
    prediction = model.predict(graph)
    train = graph.split.train
    start = np.zeros((graph.num_nodes, 3))
    for node in train:
        label = graph.labels[node]
        same = np.count_nonzero(graph.labels[train] == label)
        start[node, label] = 1 / len(train) if class_prior else 1 / same
    diffusion = dense_diffusion(dense_transition(graph, "sym", True), 0.1, 10)
    alpha = 1 + diffusion @ start
    np.testing.assert_allclose(prediction.epistemic, 3.0 - alpha.sum(1), rtol=1e-6)
    expected = alpha / alpha.sum(1, keepdims=True)
    np.testing.assert_allclose(prediction.probabilities, expected, rtol=1e-6)


@pytest.mark.parametrize("model", [LabelPropagation, KernelDirichlet])
def test_where_no_label_reaches_the_most_common_class_is_predicted(model):
    source = np.array([0, 1, 2])
    labels = np.array([0, 1, 1, 0, 1])
    graph = build_graph(source, source + 1, num_nodes=6, labels=np.append(labels, 0))
    split = Split(train=np.array([0, 1, 2]), val=np.array([3]), test=np.array([4, 5]))
    prediction = model(RunConfig(model="GPN")).fit(replace(graph, split=split)).predict(graph)
    assert prediction.predicted_class[[4, 5]].tolist() == [1, 1]
    assert (prediction.aleatoric[[4, 5]] > prediction.aleatoric[:4].max()).all()
    np.testing.assert_array_equal(prediction.epistemic[[4, 5]], 0.0)
    assert (prediction.epistemic[:4] < 0.0).all()
