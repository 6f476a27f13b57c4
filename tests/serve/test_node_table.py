"""The table on disk gives back the prediction that it was made of, row by row and as a whole."""

import numpy as np
import pyarrow as pa
import pytest

from gpn_scale.data.building import build_graph
from gpn_scale.data.graph import Split
from gpn_scale.evaluation import prediction as prediction_module
from gpn_scale.evaluation.p_values import PValues
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.evaluation.prediction_table import VALUE_COLUMNS
from gpn_scale.evaluation.reasons import reasons
from gpn_scale.inference.evidence import EvidenceSummary
from gpn_scale.serve import node_table
from gpn_scale.serve.node_table import NodeTable, write_table
from gpn_scale.triage.trust import trust_of

COUNT = 23


@pytest.fixture(params=[True, False], ids=["p-values", "no p-values"])
def prediction(request):
    source = np.random.default_rng(3)

    def numbers(*shape):
        return source.uniform(0.05, 1.0, shape).astype(np.float32)

    probabilities = numbers(COUNT, 3)
    probabilities /= probabilities.sum(1, keepdims=True)
    p = PValues(features=numbers(COUNT), opinion=numbers(COUNT) / 9, known=numbers(COUNT))
    extra = {"energy": numbers(COUNT), "label_evidence": numbers(COUNT), "surprise": numbers(COUNT)}
    return Prediction(
        probabilities=probabilities,
        probabilities_no_network=np.full((COUNT, 3), 1 / 3, np.float32),
        alpha_0=3 + numbers(COUNT),
        alpha_0_no_network=3 + numbers(COUNT),
        **(extra | {"p": p} if request.param else {}),
    )


@pytest.fixture
def graph():
    split = Split(train=[0, 1, 2], val=[3], test=[4])
    labels = np.full(COUNT, -1)
    labels[:5] = [0, 1, 2, 0, 1]
    return build_graph([0], [1], num_nodes=COUNT, labels=labels, split=split)


@pytest.mark.parametrize("block", [4, 1 << 17])
def test_rows_and_columns_are_those_of_the_prediction(
    prediction, graph, block, tmp_path, monkeypatch
):
    for module in (node_table, prediction_module):
        monkeypatch.setattr(module, "ROW_BLOCK", block)
    evidence = EvidenceSummary(np.arange(COUNT, dtype=float), np.arange(COUNT) % 3)
    texts = write_table(tmp_path / "t.arrow", graph, prediction, evidence)
    table = NodeTable(tmp_path / "t.arrow", texts)
    assert (table.num_nodes, table.num_classes) == (COUNT, 3)
    for name, value_of in VALUE_COLUMNS.items():
        expected = value_of(prediction)
        assert (name in table.value_names) == (expected is not None)
        if expected is not None:
            np.testing.assert_array_equal(table.column(name), expected)
    np.testing.assert_array_equal(table.column("trust"), trust_of(prediction))
    expected = reasons(prediction, ["0", "1", "2"])
    if expected is None:
        assert texts == ()
    else:
        assert [texts[code] for code in table.column("reason")] == expected.tolist()
    assert table.column("split")[:6].tolist() == [0, 0, 0, 1, 2, -1]
    assert table.evidence().total.tolist() == evidence.total.tolist()
    assert table.evidence().leading_class.tolist() == evidence.leading_class.tolist()
    nodes = np.array([22, 0, 7, 7, 4])
    some, truth = table.prediction(nodes), prediction.rows(nodes)
    np.testing.assert_array_equal(some.probabilities, truth.probabilities)
    np.testing.assert_array_equal(some.alpha_0, truth.alpha_0)
    assert (some.p is None) == (truth.p is None)
    if truth.p is not None:
        assert some.p.parts == truth.p.parts == table.parts
        np.testing.assert_array_equal(some.p.known, truth.p.known)
        np.testing.assert_array_equal(some.p.continued, truth.p.continued)
        np.testing.assert_array_equal(some.energy, truth.energy)
    for node in (0, 4, 22):
        arrays, row = table.block_of(node)
        assert arrays["alpha_0"][row] == prediction.alpha_0[node]
    assert table.prediction(np.empty(0, np.int64)).probabilities.shape == (0, 3)


def test_a_file_that_is_no_table_is_refused(tmp_path):
    (tmp_path / "t.arrow").write_bytes(b"ARROW1 or not" * 100)
    with pytest.raises(pa.ArrowException):
        NodeTable(tmp_path / "t.arrow", ())
