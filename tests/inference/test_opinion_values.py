"""The opinion and label evidence of GPN+, by every route to them, against dense matrices."""

from dataclasses import replace
from functools import partial
from tempfile import TemporaryDirectory
from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gpn_scale.config import DiffusionConfig, MinibatchConfig
from gpn_scale.data.building import build_graph
from gpn_scale.data.graph import MISSING_LABEL, Split
from gpn_scale.data.shifts import noise_rows, shifted_edges
from gpn_scale.diffusion.growth import grown_graph, new_nodes
from gpn_scale.distributed import World
from gpn_scale.inference.all_nodes import averaged, diffused_logits, predict_all
from gpn_scale.inference.cluster_summary import summarise_model
from gpn_scale.inference.new_nodes import GraphFacts, predict_new
from gpn_scale.inference.opinion_values import (
    OpinionValues,
    energy_of,
    is_training_node,
    with_labels,
)
from gpn_scale.inference.perturbed import Perturbed
from gpn_scale.inference.some_nodes import predict_nodes, row_values
from gpn_scale.ppr.tails import make_tail
from tests.diffusion.test_growth import growths
from tests.inference.models import (
    assert_plus,
    dense_average,
    dense_prediction,
    drawn_calibration,
    plus_model,
    total_surprise,
    trained_model,
)
from tests.inference.test_all_nodes import PLANS
from tests.mapped import is_mapped
from tests.ppr.stored import exact_rows, write_store
from tests.strategies import graphs

CALIBRATION = drawn_calibration()
DIFFUSIONS = st.builds(
    DiffusionConfig,
    teleport=st.sampled_from([0.1, 0.5]),
    normalisation=st.sampled_from(["sym", "rw"]),
    steps=st.sampled_from([0, 2, "inf"]),
    tolerance=st.just(1e-9),
    self_loops=st.booleans(),
)


@pytest.fixture(autouse=True, scope="module")
def _no_waiting_for_the_disk():
    with mock.patch("os.fsync"):
        yield


def prepared(graph, has_split, columns=3):
    """The drawn graph with features, and with every other node as a training node or no split."""
    rng = np.random.default_rng(graph.num_nodes)
    features = rng.normal(size=(graph.num_nodes, columns)).astype(np.float32)
    nobody = np.empty(0, np.int64)
    split = Split(train=np.arange(0, graph.num_nodes, 2), val=nobody, test=nobody)
    return replace(graph, features=features, split=split if has_split else None)


def dense(trained, graph):
    """The dense prediction of all nodes, and the surprise of their surroundings."""
    expected = dense_prediction(trained, graph)
    surprise = total_surprise(expected, CALIBRATION)
    return expected, dense_average(trained, graph, surprise)


def finished(trained, graph, raw):
    """A prediction of all nodes with p-values that count surroundings."""
    return trained.finished(raw, partial(averaged, trained, graph))


def calibrated(graph, diffusion):
    return plus_model(graph, diffusion=diffusion, calibration=CALIBRATION)


@given(graph=graphs(), has_split=st.booleans(), diffusion=DIFFUSIONS, plan=st.sampled_from(PLANS))
def test_all_nodes_by_any_plan(graph, has_split, diffusion, plan):
    graph = prepared(graph, has_split)
    trained = calibrated(graph, diffusion)
    got = finished(trained, graph, predict_all(trained, graph, plan=plan))
    expected, around = dense(trained, graph)
    assert_plus(got, expected, CALIBRATION, around)
    alone = trained.finished(predict_all(trained, graph, plan=plan), None)
    assert_plus(alone, expected, CALIBRATION)


def test_without_a_calibration_the_temperature_is_1_and_there_are_no_p_values(small_graph):
    trained = plus_model(small_graph)
    got = finished(trained, small_graph, predict_all(trained, small_graph))
    assert_plus(got, dense_prediction(trained, small_graph), None)


@settings(max_examples=25)
@given(
    graph=graphs(),
    has_split=st.booleans(),
    diffusion=DIFFUSIONS,
    tail=st.sampled_from(["clustered", "truncated"]),
)
def test_some_nodes_by_rows_without_a_cut(graph, has_split, diffusion, tail):
    graph = prepared(graph, has_split)
    trained = calibrated(graph, diffusion)
    nodes = np.array([graph.num_nodes - 1, 0, 0])
    with TemporaryDirectory() as folder:
        store = write_store(folder, graph, diffusion, k=graph.num_nodes, clusters=2)
        rows = {
            "store": store,
            "tail": make_tail(MinibatchConfig(tail=tail), store, graph, diffusion),
        }
        summarise_model(trained, graph, rows["tail"])
        clusters = {
            "clusters": trained.network.clusters,
            "opinion_clusters": trained.opinion.network.cluster_PS,
        }
        expected, around = dense(trained, graph)
        surprise = total_surprise(expected, CALIBRATION).astype(np.float32)
        results = {
            len(asked): predict_nodes(
                trained, graph, asked, **rows, **clusters, surprise=surprise
            ).prediction
            for asked in (nodes, nodes[:1], nodes[:0])
        }
        means_PS = trained.opinion.network.cluster_PS
        logits = row_values(
            trained.opinion, graph.features, nodes, **rows, cluster_PC=means_PS[:, :-1]
        )
    for count, got in results.items():
        asked = nodes[:count]
        assert_plus(got, expected.rows(asked), CALIBRATION, around[asked], rtol=1e-4)
    np.testing.assert_allclose(-logits.logsumexp(1), expected.energy[nodes], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("tail", ["truncated", "stationary", "clustered"])
def test_cut_rows_are_completed_by_the_means_of_clusters(small_graph, tmp_path, tail):
    diffusion = DiffusionConfig(normalisation="rw")
    trained, nodes = plus_model(small_graph, diffusion=diffusion), np.arange(0, 300, 7)
    store = write_store(str(tmp_path), small_graph, diffusion, k=5, clusters=4)
    estimate = make_tail(MinibatchConfig(tail=tail), store, small_graph, diffusion)
    summarise_model(trained, small_graph, estimate)
    got = predict_nodes(
        trained,
        small_graph,
        nodes,
        store=store,
        tail=estimate,
        clusters=trained.network.clusters,
        opinion_clusters=trained.opinion.network.cluster_PS,
    ).prediction
    weight, prior = estimate.weight_of(np.arange(300)), MinibatchConfig().tail_prior_mass
    is_training = np.isin(np.arange(300), small_graph.split.train).astype(float)
    for place, node in enumerate(nodes):
        row = store.rows([node])
        expected = row.weights @ is_training[row.ids]
        if tail == "stationary":
            expected += row.missing_mass[0] * np.average(is_training, weights=weight)
        if tail == "clustered":
            for cluster in range(4):
                members = slice(cluster, None, 4)
                mean = np.average(is_training[members], weights=weight[members])
                inside = (row.ids % 4 == cluster) & (row.ids != node)
                kept = row.weights[inside]
                seen = prior * mean + kept @ is_training[row.ids[inside]]
                expected += row.cut_mass[0, cluster] * seen / (prior + kept.sum())
        assert got.label_evidence[place] == pytest.approx(expected, rel=1e-4, abs=1e-6)


@given(case=growths(), has_split=st.booleans(), diffusion=DIFFUSIONS)
def test_new_nodes_are_predicted_as_in_the_grown_graph(case, has_split, diffusion):
    graph, neighbours, weights = case
    graph = prepared(graph, has_split)
    features = np.random.default_rng(1).normal(size=(len(neighbours), 3)).astype(np.float32)
    new = new_nodes(graph, features, neighbours, weights)
    trained = calibrated(graph, diffusion)
    grown = grown_graph(graph, new)
    expected = dense_prediction(trained, grown).rows(new.ids)
    options = {"tolerance": 0.0, "block_size": 2}
    alone = predict_new(trained, graph, new, **options).prediction
    assert_plus(alone, expected, CALIBRATION)
    # Existing nodes are as strange as they were before the new ones came.
    existing = total_surprise(dense_prediction(trained, graph), CALIBRATION)
    everyone = np.append(existing, total_surprise(expected, CALIBRATION))
    facts = GraphFacts(surprise=existing.astype(np.float32))
    got = predict_new(trained, graph, new, **options, facts=facts).prediction
    around = dense_average(trained, grown, everyone)[new.ids]
    assert_plus(got, expected, CALIBRATION, around)


@settings(max_examples=25)
@given(graph=graphs(), has_split=st.booleans(), diffusion=DIFFUSIONS)
def test_changed_features_of_one_node_or_several(graph, has_split, diffusion):
    graph = prepared(graph, has_split)
    trained = calibrated(graph, diffusion)
    model, nodes = Perturbed(trained, graph), np.arange(0, graph.num_nodes, 2)
    unchanged, around = dense(trained, graph)
    assert_plus(model.unchanged(), unchanged, CALIBRATION, around)
    rows = noise_rows("normal", len(nodes), 3, 1)

    def changed(places):
        features = graph.features.copy()
        features[nodes[places]] = rows[places]
        return replace(graph, features=features)

    got = model.with_features(nodes, rows.__getitem__)
    expected, around = dense(trained, changed(slice(None)))
    assert_plus(got, expected, CALIBRATION, around)
    alone = model.isolated(nodes, rows.__getitem__)
    before = total_surprise(unchanged, CALIBRATION)
    for place, node in enumerate(nodes):
        expected = dense_prediction(trained, changed([place])).rows(np.array([node]))
        surprise = before.copy()
        surprise[node] = total_surprise(expected, CALIBRATION)[0]
        around = dense_average(trained, graph, surprise)[[node]]
        assert_plus(alone.rows(np.array([place])), expected, CALIBRATION, around)
    nobody = model.isolated(nodes[:0], rows.__getitem__)
    assert nobody.p.known.shape == nobody.energy.shape == (0,)


def test_changed_edges(small_graph):
    trained = calibrated(small_graph, DiffusionConfig(teleport=0.2))
    moved = shifted_edges(small_graph, 0.4, "random", 1)
    got = Perturbed(trained, small_graph).with_edges(moved)
    expected, around = dense(trained, moved)
    assert_plus(got, expected, CALIBRATION, around)


def test_feature_evidence_is_that_of_a_gpn_with_the_same_weights(small_graph):
    gpn, plus = (
        predict_all(model(small_graph), small_graph) for model in (trained_model, plus_model)
    )
    for name in ("alpha_0", "alpha_0_no_network", "probabilities_no_network"):
        np.testing.assert_array_equal(getattr(plus, name), getattr(gpn, name))
    assert (gpn.energy, gpn.label_evidence) == (None, None)
    assert not np.allclose(plus.probabilities, gpn.probabilities)


@pytest.mark.parametrize("memory_bytes", [29 << 20, 1 << 30])
def test_a_small_budget_gives_the_same_from_scratch_files(small_graph, tmp_path, memory_bytes):
    trained = plus_model(small_graph)
    options = {"memory_bytes": memory_bytes, "scratch": tmp_path}
    got = predict_all(trained, small_graph, **options)
    assert_plus(got, dense_prediction(trained, small_graph), None)
    on_disk = predict_all(
        trained, small_graph, plan=replace(PLANS[0], results_on_disk=True), scratch=tmp_path
    )
    assert is_mapped(on_disk.probabilities)
    model = replace(trained, calibration=CALIBRATION)
    calibrated_on_disk = finished(model, small_graph, on_disk)
    assert is_mapped(calibrated_on_disk.probabilities)
    expected, around = dense(model, small_graph)
    assert_plus(calibrated_on_disk, expected, CALIBRATION, around)


def test_progress_grows_over_both_parts(small_graph):
    calls = []
    predict_all(plus_model(small_graph), small_graph, progress=lambda done, _: calls.append(done))
    assert calls == sorted(calls)
    assert calls[-1] == small_graph.num_nodes
    assert small_graph.num_nodes // 2 in calls  # the first part is half of the work


def test_values_are_logits_and_where_the_labels_are(small_graph):
    trained, nodes = plus_model(small_graph).opinion, np.array([5, 0, 5])
    values = OpinionValues.of_graph(trained, small_graph).of(nodes)
    logits = trained.values_of(small_graph.features, nodes)
    torch.testing.assert_close(values[:, :-1], logits)
    assert values[:, -1].tolist() == np.isin(nodes, small_graph.split.train).tolist()
    bare = OpinionValues.of_graph(trained, replace(small_graph, split=None))
    assert bare.is_training is None
    assert not bare.of(nodes)[:, -1].any()
    assert bare.of(nodes[:0]).shape == (0, 4)


def test_training_nodes_are_those_of_the_split():
    labels = [0, 1, 0, MISSING_LABEL]
    graph = build_graph([0], [1], num_nodes=4, labels=labels)
    assert is_training_node(graph) is None
    split = Split(train=[0, 1], val=[2], test=[])
    assert is_training_node(replace(graph, split=split)).tolist() == [True, True, False, False]


def test_energy_and_label_column_of_sizes_0_and_1():
    assert energy_of(torch.zeros(0, 3)).shape == (0,)
    assert energy_of(torch.tensor([[2.0]])).tolist() == [-2.0]
    assert energy_of(torch.zeros(1, 4)).item() == pytest.approx(-np.log(4))
    assert with_labels(torch.zeros(0, 3), np.zeros(0, bool)).shape == (0, 4)
    assert with_labels(torch.tensor([[7.0]]), np.array([True])).tolist() == [[7.0, 1.0]]


def test_logits_alone_are_diffused_in_the_same_manner(small_graph):
    trained = plus_model(small_graph)
    got = diffused_logits(trained.opinion, small_graph, memory_bytes=1 << 30, world=World())
    own = trained.opinion.values_of(small_graph.features, np.arange(300)).numpy()
    expected = exact_rows(small_graph, trained.diffusion) @ own
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
