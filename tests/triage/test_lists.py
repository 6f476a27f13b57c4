"""Both lists of a graph: who is on them, in which order, with which columns."""

import csv
from dataclasses import replace

import numpy as np
import pytest
import torch

from gpn_scale.config import EncoderConfig, RunConfig, SplitConfig, TrainConfig
from gpn_scale.errors import ConfigError
from gpn_scale.estimator import GPNClassifier
from gpn_scale.triage import lists
from gpn_scale.triage.lists import NO_P_VALUES, Triage, TriageRequest, make_triage
from gpn_scale.triage.promise import PROMISE_CONDITION
from tests.ppr.stored import write_store

CONFIG = RunConfig(
    split=SplitConfig(train=0.2, val=0.2),
    encoder=EncoderConfig(hidden=8, latent=4),
    train=TrainConfig(epochs=10, warmup_steps=2),
)
ODD = ["=2+2", 'say "hi"', "a/b", "\u202eabc", "<script>"]


@pytest.fixture(scope="module")
def named_graph(small_graph):
    """The small graph with ids, names of classes and names of columns."""
    names = [*ODD, *(f"node {node}" for node in range(len(ODD), small_graph.num_nodes))]
    return replace(
        small_graph,
        node_names=np.array(names),
        class_names=np.array(["sea", "land", "air"]),
        feature_names=np.array([f"f{column}" for column in range(small_graph.num_features)]),
    )


@pytest.fixture(scope="module")
def classifier(named_graph):
    return GPNClassifier(CONFIG, device="cpu", dtype=torch.float64).fit(named_graph)


@pytest.fixture(scope="module")
def prediction(classifier, named_graph):
    return classifier.predict(named_graph)


def test_review_holds_the_least_trusted_nodes_that_the_model_has_no_labels_of(
    classifier, named_graph, prediction
):
    review = classifier.triage(named_graph, TriageRequest(review=30, label_next=0)).review
    assert (prediction.p.beyond > 0).any()  # or the order would not depend on it
    known = prediction.p.known * np.exp(-prediction.p.beyond)
    trust = prediction.probabilities.max(1) * np.sqrt(known)
    used = {*named_graph.split.train.tolist(), *named_graph.split.val.tolist()}
    eligible = [node for node in range(named_graph.num_nodes) if node not in used]
    expected = sorted(eligible, key=lambda node: (trust[node], node))[:30]
    assert review["id"].to_pylist() == [named_graph.node_names[node] for node in expected]
    np.testing.assert_allclose(review["trust"].to_numpy(), trust[expected], rtol=1e-5)
    np.testing.assert_allclose(review["p_known"].to_numpy(), prediction.p.known[expected])
    names = [named_graph.class_names[c] for c in prediction.predicted_class[expected]]
    assert review["predicted_class"].to_pylist() == names
    assert all(review["reason"].to_pylist())


def test_training_nodes_are_reviewed_if_asked_for(classifier, named_graph):
    count = named_graph.num_nodes
    request = TriageRequest(review=count, label_next=0, include_labelled=True)
    assert len(set(classifier.triage(named_graph, request).review["id"].to_pylist())) == count


def test_contributors_are_those_of_explain(classifier, named_graph, monkeypatch):
    monkeypatch.setattr(lists, "_ROW_BYTES", 24 * named_graph.num_nodes * 2)
    review = classifier.triage(named_graph, TriageRequest(review=5, label_next=0)).review
    position = {name: node for node, name in enumerate(named_graph.node_names)}
    nodes = [position[name] for name in review["id"].to_pylist()]
    contributors = classifier.explain(named_graph, nodes, count=3).contributors
    for text, others, shares in zip(
        review["evidence_from"].to_pylist(), contributors.node, contributors.share, strict=True
    ):
        expected = [
            f"{named_graph.node_names[other]} ({share:.0%})"
            for other, share in zip(others, shares, strict=True)
            if other >= 0
        ]
        assert text == ", ".join(expected)


def test_foreign_columns_are_named_where_features_are_foreign(classifier, named_graph, prediction):
    count = 150
    review = classifier.triage(named_graph, TriageRequest(review=count, label_next=0)).review
    position = {name: node for node, name in enumerate(named_graph.node_names)}
    nodes = [position[name] for name in review["id"].to_pylist()]
    foreign = prediction.p.features[nodes] <= 0.1
    columns = review["foreign_columns"].to_pylist()
    assert [text is not None for text in columns] == foreign.tolist()
    assert any(text.startswith("f") for text in columns if text)
    rows = review.select(["reason", "detail", "foreign_columns"]).to_pylist()
    of_features = [row for row in rows if row["reason"] == "foreign features"]
    assert of_features
    assert all(row["detail"] == row["foreign_columns"] for row in of_features)


def test_nodes_to_label_are_unlabelled_and_cover_more_and_more(classifier, named_graph):
    table = classifier.triage(named_graph, TriageRequest(review=0, label_next=10)).label_next
    position = {name: node for node, name in enumerate(named_graph.node_names)}
    nodes = [position[name] for name in table["id"].to_pylist()]
    assert (named_graph.labels[nodes] < 0).all()
    assert (np.diff(table["gain"].to_numpy()) <= 0).all()
    covered = table["covered"].to_numpy()
    assert (np.diff(covered) > 0).all()
    assert 0 < covered[0] <= covered[-1] <= 1
    smaller = classifier.triage(named_graph, TriageRequest(review=0, label_next=4)).label_next
    assert smaller["id"].to_pylist() == table["id"].to_pylist()[:4]


def test_stored_rows_serve_both_lists(classifier, named_graph, tmp_path):
    diffusion = classifier.predicts_with
    store = write_store(
        tmp_path / "store",
        named_graph,
        diffusion,
        k=named_graph.num_nodes,
        clusters=2,
        parameters=diffusion.store_parameters,
    )
    request = TriageRequest(review=4, label_next=4)
    exact = classifier.triage(named_graph, request)
    stored = classifier.triage(named_graph, request, rows=store.path)
    assert stored.label_next["id"].to_pylist() == exact.label_next["id"].to_pylist()
    assert stored.review["evidence_from"].to_pylist() == exact.review["evidence_from"].to_pylist()


def test_a_promise_adds_a_column_and_a_note(classifier, named_graph, prediction):
    request = TriageRequest(review=50, label_next=2, error_among_answered=0.2, confidence=0.8)
    triage = classifier.triage(named_graph, request)
    assert triage.notes == (PROMISE_CONDITION,)
    below = triage.review["trust"].to_numpy() < np.float32(triage.promise.threshold)
    assert triage.review["abstain"].to_pylist() == below.tolist()
    assert "abstain" in triage.label_next.column_names
    without = classifier.triage(named_graph, TriageRequest(review=1, label_next=1))
    assert without.promise is None
    assert "abstain" not in without.review.column_names


def test_a_gpn_is_listed_with_what_it_has(named_graph):
    config = replace(CONFIG, model="GPN")
    classifier = GPNClassifier(config, device="cpu").fit(named_graph)
    triage = classifier.triage(named_graph, TriageRequest(review=20, label_next=3))
    assert triage.notes == (NO_P_VALUES,)
    assert triage.review["p_known"].null_count == 20
    assert triage.review["foreign_columns"].null_count == 20
    probability = triage.review["probability"].to_numpy()
    assert (np.diff(probability) >= 0).all()
    assert set(triage.review["reason"].to_pylist()) & {"isolated"}
    assert all(triage.review["reason"].to_pylist())


def test_a_diffusion_of_logarithms_has_no_contributors(small_graph):
    diffusion = replace(CONFIG.diffusion, of="log_evidence")
    config = replace(CONFIG, model="GPN", diffusion=diffusion)
    classifier = GPNClassifier(config, device="cpu").fit(small_graph)
    review = classifier.triage(small_graph, TriageRequest(review=2, label_next=2)).review
    assert "evidence_from" not in review.column_names


def test_a_graph_without_a_split_is_listed_whole(classifier, named_graph):
    other = replace(named_graph, split=None)
    request = TriageRequest(review=named_graph.num_nodes, label_next=3)
    triage = classifier.triage(other, request)
    assert triage.review.num_rows == named_graph.num_nodes
    assert triage.review["foreign_columns"].null_count == named_graph.num_nodes
    with pytest.raises(ConfigError, match=r"has no split, so .*: make it on the graph of training"):
        classifier.triage(other, replace(request, error_among_answered=0.1))


def test_files_keep_odd_ids_and_begin_no_formula(classifier, named_graph, tmp_path):
    request = TriageRequest(review=named_graph.num_nodes, label_next=3, include_labelled=True)
    paths = classifier.triage(named_graph, request).write(tmp_path)
    assert [path.name for path in paths] == ["review.csv", "label_next.csv"]
    with paths[0].open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    ids = {row["id"] for row in rows}
    assert {"'=2+2", *ODD[1:]} <= ids
    assert not [cell for row in rows for cell in row.values() if cell[:1] in tuple("=+-@\t\r")]


def test_ids_are_numbers_without_names(small_graph, classifier, prediction):
    triage = make_triage(classifier.trained, small_graph, prediction, TriageRequest(review=2))
    assert all(isinstance(node, int) for node in triage.review["id"].to_pylist())
    assert "evidence_from" not in triage.review.column_names


@pytest.mark.parametrize("number", [-1, 301])
def test_more_nodes_than_there_are_are_refused(classifier, named_graph, number):
    with pytest.raises(ConfigError, match=rf"review is {number}, expected 0 to \d+, the number of"):
        classifier.triage(named_graph, TriageRequest(review=number))
    with pytest.raises(ConfigError, match=f"label_next is {number}, expected 0 to"):
        classifier.triage(named_graph, TriageRequest(review=1, label_next=number))


def test_empty_lists_are_written(classifier, named_graph, tmp_path):
    triage = classifier.triage(named_graph, TriageRequest(review=0, label_next=0))
    assert isinstance(triage, Triage)
    for path in triage.write(tmp_path):
        assert path.read_text().startswith('"id","predicted_class","probability","p_known"')


def test_lists_of_a_small_graph_are_short_unless_a_length_is_asked_for(classifier, named_graph):
    used = len(named_graph.split.train) + len(named_graph.split.val)
    triage = classifier.triage(named_graph)
    assert triage.review.num_rows == min(200, named_graph.num_nodes - used)
    assert triage.label_next.num_rows == min(50, int((named_graph.labels < 0).sum()))


def test_requests_are_checked_before_anything_is_predicted(classifier, named_graph, monkeypatch):
    monkeypatch.setattr(classifier, "predict_with_evidence", None)
    for wrong in (
        {"review": 301},
        {"label_next": 301},
        {"error_among_answered": 2.0},
        {"error_among_answered": 0.001},
    ):
        with pytest.raises(ConfigError):
            classifier.triage(named_graph, TriageRequest(**wrong))
