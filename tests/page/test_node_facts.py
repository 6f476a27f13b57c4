import numpy as np
import pytest

from gpn_scale.config import RunConfig, TrainConfig
from gpn_scale.estimator import GPNClassifier
from gpn_scale.evaluation.reasons import reasons
from gpn_scale.page.node_facts import node_rows
from gpn_scale.page.node_rows import SPLITS


@pytest.fixture(scope="module")
def plus(small_graph):
    config = RunConfig(train=TrainConfig(epochs=3))
    return GPNClassifier(config, device="cpu").fit(small_graph)


def test_every_node_is_there_with_its_own_facts(plus, small_graph):
    prediction = plus.predict(small_graph)
    rows = node_rows(plus, small_graph, prediction, None)
    assert sorted(rows.node.tolist()) == list(range(300))
    assert (np.diff(rows.p_known) >= 0).all()
    texts = reasons(prediction, ["0", "1", "2"])
    for row, node in enumerate(rows.node.tolist()):
        assert rows.names[row] == str(node)
        assert rows.predicted[row] == prediction.predicted_class[node]
        assert rows.label[row] == small_graph.labels[node]
        assert rows.reasons[rows.reason[row]] == texts[node]
        marks = [m.replace("_", " ") for m, ids in small_graph.marks.items() if node in ids]
        assert rows.marks[rows.mark[row]] == ", ".join(marks)
        subsets = [s for s in SPLITS if node in getattr(small_graph.split, s)]
        assert subsets == ([SPLITS[rows.split[row]]] if rows.split[row] >= 0 else [])
        total = prediction.alpha_0[node] - 3
        assert 10.0 ** rows.evidence[row] == pytest.approx(total, rel=1e-4)
    assert list(rows.p_parts) == ["features", "neighbourhood", "opinion", "labels"]
    assert rows.near.method == "t-SNE"
    assert rows.components.position.shape == (300, 2)


def test_a_gpn_orders_nodes_by_evidence(trained, prediction, small_graph):
    rows = node_rows(trained, small_graph, prediction, None)
    assert rows.p_known is None
    assert not rows.p_parts
    assert rows.reasons == ("",)
    assert (np.diff(prediction.alpha_0[rows.node]) >= 0).all()
