"""A model prepares the raw columns of any table by its own rule, whatever their order."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpn_scale.config import RunConfig
from gpn_scale.data.contract import DataContract
from gpn_scale.data.faults import TableFaults
from gpn_scale.data.graph import CSRFeatures
from gpn_scale.data.graph_folder import open_graph, save_graph
from gpn_scale.estimator import GPNClassifier
from gpn_scale.recipes import in_minibatches, recipe_for
from tests.ppr.stored import write_store
from tests.prepared import COUNT, EDGES, LABELS, prepared, raw_table

TABLE = raw_table()
GRAPH = prepared(TABLE)
DENSE = prepared(TABLE.drop_columns(["note"]), structural=True)


def short(config: RunConfig) -> RunConfig:
    return replace(
        config,
        encoder=replace(config.encoder, hidden=8, latent=4),
        split=replace(config.split, train=0.3, val=0.3),
        train=replace(config.train, epochs=30),
        opinion=replace(config.opinion, epochs=30),
    )


@pytest.fixture(scope="module")
def model_file(tmp_path_factory):
    """A model that was trained on the prepared graph."""
    path = tmp_path_factory.mktemp("model") / "model.safetensors"
    GPNClassifier(short(recipe_for("bank", GRAPH)), device="cpu").fit(GRAPH).save(path)
    return path


@pytest.fixture(scope="module")
def classifier(model_file):
    return GPNClassifier.load(model_file, device="cpu")


@pytest.fixture(scope="module")
def expected(classifier):
    return classifier.predict(GRAPH).probabilities


def test_the_model_has_learned_from_the_columns(expected):
    assert isinstance(GRAPH.features, CSRFeatures)
    assert (expected.argmax(1) == LABELS).mean() > 0.9


def test_the_preparation_is_in_the_file(classifier):
    assert classifier.contract.preparation == GRAPH.preparation
    assert (classifier.contract.directed, classifier.contract.weighted) == (False, False)
    aligned = classifier.aligned(GRAPH)
    assert aligned.graph is GRAPH
    assert (aligned.notes, aligned.surprises) == ((), ())


@settings(deadline=None, max_examples=15)
@given(st.permutations(range(COUNT)), st.permutations(TABLE.column_names))
def test_permuted_rows_and_columns_have_the_same_predictions(classifier, expected, rows, names):
    place = np.argsort(rows)
    permuted = prepared(
        TABLE.select(names).take(rows),
        edges=(place[EDGES[0]], place[EDGES[1]]),
        labels=LABELS[list(rows)],
    )
    aligned = classifier.aligned(permuted)
    assert aligned.notes == ()
    probabilities = classifier.predict(permuted).probabilities
    np.testing.assert_allclose(probabilities, expected[list(rows)], rtol=1e-4, atol=1e-6)


def test_a_later_table_is_prepared_by_the_rule_of_the_model(classifier, expected):
    """A quarter of the nodes have other amounts; far from them, predictions stay as they were."""
    amounts = TABLE["amount"].to_pylist()
    amounts[: COUNT // 4] = ["1000"] * (COUNT // 4)
    later = prepared(TABLE.set_column(0, "amount", pa.array(amounts)))
    assert later.preparation != GRAPH.preparation
    assert not np.array_equal(later.features.to_dense()[100], GRAPH.features.to_dense()[100])
    aligned = classifier.aligned(later).graph
    assert aligned.preparation == GRAPH.preparation
    assert aligned.raw_columns is later.raw_columns
    np.testing.assert_array_equal(aligned.features.to_dense()[100], GRAPH.features.to_dense()[100])
    probabilities = classifier.predict(later).probabilities
    np.testing.assert_allclose(probabilities[100], expected[100], rtol=1e-4)


def test_surprises_of_a_later_table_are_counted(classifier):
    countries = ["XK", *TABLE["country"].to_pylist()[1:]]
    later = TABLE.set_column(1, "country", pa.array(countries))
    later = later.append_column("more", pa.array(range(COUNT)))
    aligned = classifier.aligned(prepared(later))
    assert aligned.notes == (
        "The column 'more' was not in training and was ignored.",
        "1 value of 'country' is not among those of training (first: 'XK'); it counts as no "
        "category.",
    )
    (surprise,) = aligned.surprises
    assert (surprise.column, surprise.unknown) == ("country", 1)


def test_all_that_is_missing_is_named_at_once(classifier):
    later = TABLE.drop_columns(["country", "opened"])
    later = later.set_column(0, "amount", pa.array(["much", "little"] * (COUNT // 2)))
    graph = prepared(later)
    for ask in (classifier.predict, lambda graph: classifier.explain(graph, 3)):
        with pytest.raises(TableFaults) as caught:
            ask(graph)
        assert {fault.column for fault in caught.value.faults} == {"amount", "country", "opened"}
        assert {fault.file for fault in caught.value.faults} == {"bank"}


def test_a_graph_without_raw_columns_is_matched_by_the_names_of_features(classifier, expected):
    plain = replace(GRAPH, preparation=None, raw_columns=None)
    aligned = classifier.aligned(plain)
    assert aligned.notes == ()
    np.testing.assert_array_equal(classifier.predict(plain).probabilities, expected)


def test_features_of_another_rule_without_raw_columns_have_a_note(classifier):
    amounts = pa.array(["7", *TABLE["amount"].to_pylist()[1:]])
    later = replace(prepared(TABLE.set_column(0, "amount", amounts)), raw_columns=None)
    (note,) = classifier.aligned(later).notes
    assert note.startswith("The features were made by another rule than the model's, and the graph")


def test_other_kinds_of_edges_have_a_note(classifier):
    other = prepared(TABLE, directed=True, edge_weight=np.ones(COUNT))
    assert classifier.aligned(other).notes == (
        "The graph of training is undirected, this one is directed.",
        "The graph of training is unweighted, this one is weighted.",
    )


def test_a_graph_from_its_folder_has_the_same_predictions(classifier, expected, tmp_path):
    save_graph(GRAPH, tmp_path)
    opened = open_graph(tmp_path)
    assert opened.preparation == GRAPH.preparation
    assert opened.raw_columns.table().equals(TABLE)
    np.testing.assert_array_equal(classifier.predict(opened).probabilities, expected)


@pytest.mark.parametrize("graph", [GRAPH, DENSE], ids=["sparse", "dense"])
@pytest.mark.parametrize("mode", ["exact", "minibatch"])
@pytest.mark.parametrize("model", ["GPN", "GPN+"])
def test_prepared_features_can_be_trained_on(graph, mode, model, tmp_path):
    config = replace(short(recipe_for("bank", graph)), model=model)
    store = None
    if mode == "minibatch":
        config = in_minibatches(config, graph)
        facts = config.diffusion.store_parameters
        store = write_store(
            str(tmp_path / "store"), graph, config.diffusion, k=8, parameters=facts, clusters=4
        )
    trained = GPNClassifier(config, device="cpu").fit(graph, store=store)
    predicted = trained.predict(graph).probabilities.argmax(1)
    assert (predicted == LABELS).mean() > 0.85


def test_a_network_of_structural_features_alone_is_prepared_for_every_graph():
    alone = prepared(pa.table({}), structural=True, edges=([0] * 9 + [1, 2], [*range(1, 10), 2, 3]))
    other = prepared(pa.table({}), structural=True)
    aligned = DataContract.of(alone).aligned(other).graph
    assert aligned.preparation == alone.preparation
    assert aligned.features[0, 0] == alone.features[1, 0]  # both have two neighbours
