from dataclasses import replace

import numpy as np
import pytest
import torch

from gpn_scale.baselines.gcn import VGCN
from gpn_scale.baselines.label_propagation import LabelPropagation
from gpn_scale.errors import ConfigError, GraphError, MissingScoreError, RunError
from tests.baselines.graphs import CONFIG, minibatch, small_graph


def test_graphs_that_cannot_be_learned_are_refused():
    graph = small_graph()
    with pytest.raises(GraphError, match="has no features"):
        VGCN(CONFIG).fit(replace(graph, features=None))
    with pytest.raises(GraphError, match="has no split"):
        VGCN(CONFIG).fit(replace(graph, split=None))
    with pytest.raises(GraphError, match="has 1 class"):
        LabelPropagation().fit(replace(graph, num_classes=1, class_names=None))


def test_the_configured_mode_must_be_that_of_the_model():
    with pytest.raises(ConfigError, match="VGCN trains with mode=exact, got mode=minibatch"):
        VGCN(minibatch()).check(small_graph())


def test_prediction_needs_training():
    with pytest.raises(RunError, match="this VGCN has not been trained yet: call fit first"):
        VGCN(CONFIG).predict(small_graph())


def test_a_model_without_tensors_is_fitted_when_it_is_loaded(tmp_path):
    graph = small_graph()
    model = LabelPropagation().fit(graph)
    assert model.state() == {}
    again = LabelPropagation()
    again.load_state(graph, {}, tmp_path)
    np.testing.assert_array_equal(again.predict(graph).epistemic, model.predict(graph).epistemic)


def test_random_streams_follow_seed_and_offset():
    def draw(offset, seed=0):
        train = replace(CONFIG.train, rng_seed=seed)
        return torch.rand(4, generator=VGCN(replace(CONFIG, train=train)).generator(offset))

    torch.testing.assert_close(draw(1), draw(1))
    assert not torch.equal(draw(1), draw(2))
    assert not torch.equal(draw(1), draw(1, seed=1))


def test_a_missing_score_is_a_clear_error():
    graph = small_graph()
    prediction = VGCN(CONFIG).fit(graph).predict(graph)
    with pytest.raises(MissingScoreError, match=r"^VGCN has no epistemic score.*use `aleatoric`"):
        _ = prediction.epistemic
    with pytest.raises(MissingScoreError, match="VGCN has no score without network"):
        _ = prediction.epistemic_no_network
    assert prediction.scores(graph.split.test)["epistemic"] is None
