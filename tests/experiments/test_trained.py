import numpy as np
import pytest

from gpn_scale.data.splits import prepare_graph
from gpn_scale.errors import NumericalError
from gpn_scale.experiments.trained import Trained
from gpn_scale.models.registry import setting_of
from tests.experiments.cells import CONFIG, graph, setting, stored_rows


@pytest.fixture(scope="module")
def prepared():
    return prepare_graph(graph(), CONFIG)


@pytest.fixture(scope="module")
def gpn(prepared):
    return setting().new().fit(prepared)


def test_the_prediction_is_that_of_the_classifier(gpn, prepared):
    trained = Trained(gpn, prepared, 1)
    expected = gpn.predict(prepared).probabilities
    np.testing.assert_allclose(trained.prediction.probabilities, expected, rtol=1e-5)
    assert trained.perturbed is trained.perturbed
    np.testing.assert_array_equal(trained.test_nodes, prepared.split.test)


def test_a_prediction_that_is_not_finite_is_refused(gpn, prepared, monkeypatch):
    trained = Trained(gpn, prepared, 1)
    prediction = trained.perturbed.unchanged()
    prediction.probabilities[[3, 7]] = np.nan
    monkeypatch.setattr(trained.perturbed, "unchanged", lambda: prediction)
    with pytest.raises(NumericalError, match="prediction of 2 of 150 nodes is not finite"):
        _ = trained.prediction


def test_the_local_score_is_minus_the_weighted_evidence_of_stored_rows(gpn, prepared, tmp_path):
    nodes = np.array([3, 40, 149])
    assert Trained(gpn, prepared, 1).local_score(nodes) == {}
    trained = Trained(gpn, prepared, 1, stored_rows(tmp_path / "rows", k=5))
    evidence = trained.prediction.alpha_0_no_network - prepared.num_classes
    rows = trained._opened_store.rows(nodes)
    for position, score in enumerate(trained.local_score(nodes)["epistemic_local"]):
        part = slice(rows.row_ptr[position], rows.row_ptr[position + 1])
        expected = -(rows.weights[part] * evidence[rows.ids[part]]).sum()
        assert score == pytest.approx(expected, rel=1e-4)


def test_models_without_evidence_have_no_local_score(prepared, tmp_path):
    model = setting_of("LP", CONFIG, [], prepared).new().fit(prepared)
    trained = Trained(model, prepared, 1, stored_rows(tmp_path / "rows", k=5))
    assert trained.local_score(np.array([1])) == {}
