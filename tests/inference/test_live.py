"""Live predictions against those of the classifier and of graphs that are built anew."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpn_scale.config import DiffusionConfig, RunConfig, TrainConfig
from gpn_scale.data.building import build_graph
from gpn_scale.data.contract import DataContract
from gpn_scale.data.preparation import prepared_features
from gpn_scale.data.raw_columns import RawColumns
from gpn_scale.errors import ConfigError, GraphError
from gpn_scale.estimator import GPNClassifier
from gpn_scale.inference.live import LivePredictor
from gpn_scale.inference.node_values import node_values_into, num_columns
from tests.diffusion.test_edge_patch import Rewiring, rebuilt, rewirings
from tests.inference.models import (
    assert_plus,
    dense_average,
    dense_prediction,
    total_surprise,
    trained_model,
)
from tests.inference.test_opinion_values import CALIBRATION, DIFFUSIONS, calibrated, prepared
from tests.ppr.stored import exact_rows
from tests.prepared import prepared as prepared_graph
from tests.prepared import raw_table
from tests.strategies import graphs

CONFIG = RunConfig(train=TrainConfig(epochs=5), diffusion=DiffusionConfig(steps=4))
ARRAYS = ("probabilities", "probabilities_no_network", "alpha_0", "alpha_0_no_network", "energy")


@pytest.fixture(scope="module")
def classifier(small_graph):
    return GPNClassifier(CONFIG, device="cpu").fit(small_graph)


@pytest.fixture(scope="module")
def bank():
    """A model of raw columns with structural features, and its graph."""
    graph = prepared_graph(raw_table(), structural=True)
    classifier = GPNClassifier(CONFIG, device="cpu").fit(graph)
    return classifier, classifier.aligned(graph).graph


def live_of(classifier, graph, *, with_table=True):
    table = None
    if with_table:
        table = np.empty((graph.num_nodes, num_columns(classifier.trained)), np.float32)
        node_values_into(classifier.trained, graph, table)
    surprise = classifier.surprise_of(graph)
    options = {"surprise": surprise, "table": table}
    return LivePredictor(classifier.trained, graph, classifier.contract, **options)


def with_edges(graph, case: Rewiring):
    changed = rebuilt(case)
    structure = {name: getattr(changed, name) for name in ("indptr", "indices", "edge_weight")}
    return replace(graph, **structure)


NEW = {
    "one": ([[0, 5, 9]], None),
    "several": ([[0, 301], [7], [], [300, 2, 2]], None),
}


@pytest.mark.parametrize("name", NEW)
@pytest.mark.parametrize("tolerance", [0.0, 1e-6, 1e-2])
def test_new_nodes_have_the_very_numbers_of_the_classifier(
    small_graph, classifier, name, tolerance
):
    neighbours, weights = NEW[name]
    features = small_graph.features[: len(neighbours)] + np.float32(0.25)
    expected = classifier.predict_new(
        small_graph, features, neighbours, edge_weights=weights, tolerance=tolerance
    )
    live = live_of(classifier, small_graph, with_table=False)
    got = live.new(features, neighbours, weights, tolerance=tolerance)
    assert got.prediction.facts.nodes.tolist() == expected.prediction.facts.nodes.tolist()
    np.testing.assert_array_equal(got.alpha_0_lower, expected.alpha_0_lower)
    np.testing.assert_array_equal(got.alpha_0_upper, expected.alpha_0_upper)
    for array in (*ARRAYS, "label_evidence", "surprise"):
        np.testing.assert_array_equal(
            getattr(got.prediction, array), getattr(expected.prediction, array), err_msg=array
        )
    for part in ("known", *got.prediction.p.parts):
        np.testing.assert_array_equal(
            got.prediction.p_value(part), expected.prediction.p_value(part), err_msg=part
        )


@pytest.mark.parametrize("name", NEW)
def test_a_table_changes_new_nodes_by_round_off_alone(small_graph, classifier, name):
    neighbours, weights = NEW[name]
    features = small_graph.features[: len(neighbours)] + np.float32(0.25)
    expected = classifier.predict_new(small_graph, features, neighbours, edge_weights=weights)
    got = live_of(classifier, small_graph).new(features, neighbours, weights)
    for array in (*ARRAYS, "label_evidence"):
        np.testing.assert_allclose(
            getattr(got.prediction, array), getattr(expected.prediction, array), rtol=1e-4
        )
    # One validation node more or less may count, where scores are equal up to round-off.
    step = 1.5 / (1 + classifier.trained.calibration.num_nodes)
    np.testing.assert_allclose(got.prediction.p.known, expected.prediction.p.known, atol=step)


def test_a_table_makes_the_interval_narrow(small_graph, classifier):
    features, neighbours = small_graph.features[:1], [[0, 5, 9]]
    wide, narrow = (
        live_of(classifier, small_graph, with_table=with_table).new(
            features, neighbours, tolerance=0.05
        )
        for with_table in (False, True)
    )
    exact = live_of(classifier, small_graph).new(features, neighbours, tolerance=0.0)
    assert narrow.alpha_0_upper - narrow.alpha_0_lower < 1e-3 * (
        wide.alpha_0_upper - wide.alpha_0_lower
    )
    assert narrow.alpha_0_lower <= exact.alpha_0_lower * (1 + 1e-5)
    assert exact.alpha_0_lower <= narrow.alpha_0_upper * (1 + 1e-5)


def test_a_given_largest_evidence_counts(small_graph, classifier):
    options = {"largest_evidence": 7.0}
    live = LivePredictor(classifier.trained, small_graph, classifier.contract, **options)
    got = live.new(np.full((1, 8), 1e3), [[0, 5, 9]], tolerance=2.0)  # no evidence of its own
    assert 0.0 < got.alpha_0_upper - got.alpha_0_lower < 70.0


@settings(max_examples=100)
@given(data=st.data(), graph=graphs(), has_split=st.booleans(), diffusion=DIFFUSIONS)
def test_a_changed_node_is_predicted_as_in_the_changed_graph(data, graph, has_split, diffusion):
    graph = prepared(graph, has_split)
    case = data.draw(rewirings(graph))
    trained = calibrated(graph, diffusion)
    before = dense_prediction(trained, graph)
    existing = total_surprise(before, CALIBRATION)
    row = graph.features[case.node]
    if data.draw(st.booleans()):
        row = np.array([0.5, -2.0, 1.0], np.float32)
    features = graph.features.copy()
    features[case.node] = row
    changed = with_edges(replace(graph, features=features), case)
    expected = dense_prediction(trained, changed).rows(np.array([case.node]))
    surprise = existing.astype(np.float32)
    live = LivePredictor(trained, graph, DataContract.of(graph), surprise=surprise)
    edges = {"add_edges": case.added, "add_weights": case.weights, "remove_edges": case.removed}
    got = live.changed(case.node, features=row, **edges, tolerance=0.0)
    # Others are as strange as before, and the node as strange as it has become.
    everyone = existing.copy()
    everyone[case.node] = total_surprise(expected, CALIBRATION)[0]
    around = dense_average(trained, changed, everyone)[[case.node]]
    assert_plus(got.prediction, expected, CALIBRATION, around)
    np.testing.assert_allclose(got.alpha_0_lower, got.prediction.alpha_0, rtol=1e-6)
    np.testing.assert_array_equal(got.alpha_0_lower, got.alpha_0_upper)


@given(data=st.data(), graph=graphs(), diffusion=DIFFUSIONS)
def test_a_gpn_without_opinion_is_predicted_as_in_the_changed_graph(data, graph, diffusion):
    graph = prepared(graph, False)
    case = data.draw(rewirings(graph))
    trained = trained_model(graph, diffusion=diffusion)
    changed = with_edges(graph, case)
    live = LivePredictor(trained, graph, DataContract.of(graph))
    edges = {"add_edges": case.added, "add_weights": case.weights, "remove_edges": case.removed}
    got = live.changed(case.node, **edges, tolerance=0.0)
    evidence = trained.evidence(graph.features, np.arange(graph.num_nodes)).numpy()
    alpha = 1.0 + exact_rows(changed, diffusion)[case.node] @ evidence
    np.testing.assert_allclose(got.alpha_0_lower, alpha.sum(), rtol=1e-9)
    np.testing.assert_allclose(got.prediction.probabilities[0], alpha / alpha.sum(), rtol=1e-6)
    assert got.prediction.p is None


def test_no_change_gives_the_prediction_of_the_graph(small_graph, classifier):
    whole = classifier.predict(small_graph)
    for node in (0, 17, int(small_graph.split.train[0]), int(small_graph.marks["isolated"][0])):
        got = live_of(classifier, small_graph).changed(node, tolerance=0.0).prediction
        for array in (*ARRAYS, "label_evidence"):
            np.testing.assert_allclose(
                getattr(got, array)[0], getattr(whole, array)[node], rtol=2e-4, atol=1e-6
            )
        assert got.facts.nodes.tolist() == [node]


def test_raw_columns_and_edges_change_as_in_tables_that_are_read_anew(bank):
    classifier, graph = bank
    node, table = 4, raw_table()
    columns = {"country": "FR", "amount": 7, "note": "boat on the water", "active": True}
    case = Rewiring(graph, node, [80, 81], None, [2])
    got = live_of(classifier, graph).changed(
        node, columns=columns, add_edges=[80, 81], remove_edges=[2], tolerance=0.0
    )
    rows = table.to_pylist()
    rows[node] |= {
        name: str(value) if name == "amount" else value for name, value in columns.items()
    }
    changed_table = type(table).from_pylist(rows, schema=table.schema)
    structure = with_edges(
        replace(graph, features=None, feature_names=None, preparation=None), case
    )
    made = prepared_features(graph.preparation, changed_table, structure).features.to_dense()
    features = graph.features.to_dense()
    assert (features != made).any(1).sum() > 5
    features[node] = made[node]  # other nodes keep their structural features
    changed = replace(with_edges(graph, case), features=features, raw_columns=RawColumns(table))
    expected = classifier.predict(changed)
    for array in (*ARRAYS, "label_evidence"):
        np.testing.assert_allclose(
            getattr(got.prediction, array)[0], getattr(expected, array)[node], rtol=2e-4
        )
    assert got.notes == (
        "All other nodes are as strange as they are without the change.",
        "Features that count edges are recomputed for this node only.",
    )


def test_the_label_of_the_node_counts_as_before(small_graph, classifier):
    node = int(small_graph.split.train[0])
    neighbours = small_graph.indices[small_graph.indptr[node] : small_graph.indptr[node + 1]]
    alone = live_of(classifier, small_graph).changed(node, remove_edges=neighbours)
    assert alone.prediction.label_evidence[0] == pytest.approx(1.0)


def test_a_request_does_not_depend_on_others(small_graph, classifier):
    live = live_of(classifier, small_graph)
    first = live.changed(3, add_edges=[100])
    live.new(small_graph.features[:2], [[3], [100]])
    live.changed(3, features=np.zeros(8))
    again = live.changed(3, add_edges=[100])
    np.testing.assert_array_equal(first.prediction.probabilities, again.prediction.probabilities)
    np.testing.assert_array_equal(first.prediction.alpha_0, again.prediction.alpha_0)


def test_networks_stay_in_evaluation_mode(small_graph, classifier):
    trained = classifier.trained
    trained.network.train()
    trained.opinion.network.train()
    live = live_of(classifier, small_graph)
    live.new(small_graph.features[:1], [[0]])
    assert not trained.network.training
    assert not trained.opinion.network.training


def test_added_edges_without_weights_are_noted():
    graph = build_graph([0, 1], [1, 2], num_nodes=4, edge_weight=[2.0, 3.0], features=np.eye(4))
    live = LivePredictor(trained_model(graph), graph, DataContract.of(graph))
    note = "The edges of the graph have weights; the added edges get weight 1."
    assert live.changed(0, add_edges=[3]).notes == (note,)
    assert live.changed(0, add_edges=[3], add_weights=[1.0]).notes == ()
    assert live.changed(0, remove_edges=[1]).notes == ()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"node": 300}, GraphError, r"node is 300, expected a position in \[0, 300\)"),
        ({"node": -1}, GraphError, "node is -1, expected a position"),
        ({"add_edges": [0]}, GraphError, "add_edges joins node 0 to itself"),
        ({"features": np.ones(7)}, GraphError, r"shape \(1, 7\), expected one row of the 8"),
        ({"tolerance": -1.0}, ConfigError, "tolerance is -1.0, expected at least 0"),
    ],
)
def test_wrong_changes_are_refused(small_graph, classifier, change, error, message):
    with pytest.raises(error, match=message):
        live_of(classifier, small_graph).changed(**{"node": 0} | change)


def test_what_does_not_fit_is_refused(small_graph, classifier):
    narrow = replace(small_graph, features=small_graph.features[:, :5])
    with pytest.raises(GraphError, match="has 5 feature columns, but the model was trained on 8"):
        LivePredictor(classifier.trained, narrow, classifier.contract)
    table = np.empty((299, num_columns(classifier.trained)), np.float32)
    with pytest.raises(ConfigError, match=r"table is float32 of shape \(299, 5\), expected"):
        LivePredictor(classifier.trained, small_graph, classifier.contract, table=table)
    logs = replace(classifier.trained, diffusion=DiffusionConfig(of="log_evidence"))
    with pytest.raises(ConfigError, match="predicting new nodes adds up evidence"):
        LivePredictor(logs, small_graph, classifier.contract)


class Letters:
    """A lookup that fails if it is asked for more than tables hold."""

    def positions(self, ids):
        assert len(ids) < 20
        return np.array(["abc".find(text) if len(text) == 1 else -1 for text in ids])


def test_tables_are_read_without_the_ids_of_all_nodes():
    graph = build_graph(
        [0, 1], [1, 2], features=[[1.0], [2.0], [3.0]], feature_names=["age"], labels=[0, 1, 0]
    )
    live = LivePredictor(trained_model(graph), graph, DataContract.of(graph))
    nodes, edges = {"id": ["x"], "age": [1.5]}, {"source": ["x", "c"], "target": ["a", "x"]}
    tables = live.read(nodes, edges, Letters())
    assert [ids.tolist() for ids in tables.neighbours] == [[0, 2]]
    got = live.new(tables.features, tables.neighbours, tables.edge_weights)
    assert got.prediction.probabilities.shape == (1, 3)
