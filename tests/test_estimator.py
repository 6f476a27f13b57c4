import doctest
from dataclasses import replace

import numpy as np
import pytest
import torch

from gpn_scale import estimator
from gpn_scale.cli.train import main as train
from gpn_scale.config import (
    DataConfig,
    DiffusionConfig,
    EncoderConfig,
    RunConfig,
    SplitConfig,
    TrainConfig,
)
from gpn_scale.data.building import build_graph
from gpn_scale.data.datasets import load_graph
from gpn_scale.data.graph import CSRFeatures
from gpn_scale.data.graph_folder import save_graph
from gpn_scale.data.splits import prepare_graph
from gpn_scale.data.synthetic import SyntheticConfig, synthetic_graph
from gpn_scale.device import pick_device
from gpn_scale.errors import ConfigError, GraphError, RunError
from gpn_scale.estimator import GPNClassifier

SHORT = RunConfig(model="GPN", train=TrainConfig(epochs=3))


def two_triangles(**options):
    """Six nodes, two classes, features that tell them apart."""
    settings = {
        "labels": [0, 0, 0, 1, 1, 1],
        "features": np.eye(2, dtype=np.float32)[[0, 0, 0, 1, 1, 1]],
        **options,
    }
    return build_graph([0, 1, 2, 3, 4, 5], [1, 2, 0, 4, 5, 3], **settings)


def same(first, second):
    return np.array_equal(first.probabilities, second.probabilities) and np.array_equal(
        first.alpha_0, second.alpha_0
    )


def test_learns_and_finds_what_it_cannot_know(small_graph):
    prediction = GPNClassifier(RunConfig(model="GPN", train=TrainConfig(epochs=150))).fit(
        small_graph
    )
    prediction = prediction.predict(small_graph)
    test = np.setdiff1d(small_graph.split.test, small_graph.marked)
    assert (prediction.predicted_class[test] == small_graph.labels[test]).mean() > 0.8
    unseen = small_graph.marks["unseen_class"]
    assert np.median(prediction.epistemic[unseen]) > np.median(prediction.epistemic[test])


def test_the_same_seed_gives_the_same_prediction_and_another_one_does_not(small_graph):
    other = replace(SHORT, train=replace(SHORT.train, rng_seed=2))
    first, second, third = (
        GPNClassifier(config).fit(small_graph).predict(small_graph)
        for config in (SHORT, SHORT, other)
    )
    assert same(first, second)
    assert not same(first, third)


def test_saved_and_loaded_it_predicts_the_same(small_graph, tmp_path):
    config = replace(SHORT, encoder=EncoderConfig(standardise=True, batch_norm=True, layers=3))
    classifier = GPNClassifier(config).fit(small_graph)
    classifier.save(tmp_path / "model.safetensors")
    loaded = GPNClassifier.load(tmp_path / "model.safetensors")
    assert loaded.config == config
    assert same(loaded.predict(small_graph), classifier.predict(small_graph))


def test_a_graph_without_split_gets_the_configured_one():
    graph = synthetic_graph(SyntheticConfig(nodes=300, classes=3, features=8))
    config = replace(SHORT, split=SplitConfig(train=0.3, val=0.3))
    prediction = GPNClassifier(config).fit(graph).predict(graph)
    prepared = prepare_graph(graph, config)
    assert same(GPNClassifier(config).fit(prepared).predict(prepared), prediction)


def test_sparse_features_give_what_dense_ones_do(small_graph):
    dense = np.where(np.abs(small_graph.features) > 1, np.abs(small_graph.features), 0)
    rows, columns = np.nonzero(dense)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(dense)))])
    sparse = CSRFeatures(
        indptr=indptr.astype(np.int64),
        indices=columns.astype(np.int32),
        values=dense[rows, columns].astype(np.float32),
        num_columns=dense.shape[1],
    )
    config = replace(SHORT, data=DataConfig(feature_scaling="row_sum"))
    results = [
        GPNClassifier(config, dtype=torch.float64).fit(graph).predict(graph)
        for graph in (
            replace(small_graph, features=dense.astype(np.float32)),
            replace(small_graph, features=sparse),
        )
    ]
    np.testing.assert_allclose(results[0].alpha_0, results[1].alpha_0, rtol=1e-5)


def test_chunked_flows_train_to_the_same_model(small_graph):
    results = []
    for memory_mib in (1024, 1):
        config = replace(SHORT, flow=replace(SHORT.flow, memory_mib=memory_mib))
        classifier = GPNClassifier(config, dtype=torch.float64).fit(small_graph)
        results.append(classifier.predict(small_graph).alpha_0)
    rows = classifier.trained.network.flow.chunk_rows(torch.zeros(1, 16, dtype=torch.float64))
    assert rows < small_graph.num_nodes
    np.testing.assert_allclose(results[0], results[1], rtol=1e-6)


def test_isolated_nodes_and_no_edges_work():
    graph = build_graph(
        [], [], labels=np.repeat([0, 1], 20), features=np.repeat(np.eye(2), 20, axis=0)
    )
    config = replace(SHORT, split=SplitConfig(train=0.3, val=0.3))
    prediction = GPNClassifier(config).fit(graph).predict(graph)
    np.testing.assert_allclose(prediction.alpha_0, prediction.alpha_0_no_network, rtol=1e-6)


def test_predicting_another_graph_of_one_node(small_graph):
    classifier = GPNClassifier(SHORT).fit(small_graph)
    one = build_graph([], [], features=np.zeros((1, small_graph.num_features), np.float32))
    assert classifier.predict(one).probabilities.shape == (1, 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": [0] * 6}, r"has 1 class\(es\) to learn, expected at least 2"),
        ({"labels": None}, r"has 0 class\(es\) to learn"),
        ({"features": None}, "has no features"),
    ],
)
def test_graphs_that_cannot_be_trained_on_are_refused(options, message):
    with pytest.raises(GraphError, match=message):
        GPNClassifier(SHORT).fit(two_triangles(**options))


def test_one_node_is_refused():
    graph = build_graph([], [], labels=[0], features=[[1.0]])
    with pytest.raises(GraphError, match="expected at least 2"):
        GPNClassifier(SHORT).fit(graph)


def test_a_split_without_validation_nodes_is_refused(small_graph):
    split = replace(small_graph.split, val=np.empty(0, np.int64))
    with pytest.raises(GraphError, match="has no validation nodes"):
        GPNClassifier(SHORT).fit(replace(small_graph, split=split))


def test_a_missing_public_split_is_refused():
    with pytest.raises(GraphError, match=r"has no public split.*split.kind='stratified'"):
        prepare_graph(two_triangles(), RunConfig(model="GPN", split=SplitConfig(kind="public")))


def test_other_feature_columns_are_refused(small_graph):
    classifier = GPNClassifier(SHORT).fit(small_graph)
    with pytest.raises(GraphError, match="has 2 feature columns, but the model was trained on 8"):
        classifier.predict(two_triangles())


def test_an_unfitted_classifier_says_so(small_graph):
    with pytest.raises(RunError, match="call fit or load first"):
        GPNClassifier(SHORT).predict(small_graph)


def test_a_checkpoint_is_not_a_model(small_graph, tmp_path):
    from gpn_scale.train.checkpoint import save_checkpoint

    trainer = GPNClassifier(SHORT).trainer(small_graph)
    save_checkpoint(tmp_path / "c", trainer, SHORT, "graph")
    with pytest.raises(RunError, match="is a training checkpoint, expected a model file"):
        GPNClassifier.load(tmp_path / "c")


def test_devices():
    assert pick_device("cpu").type == "cpu"
    assert pick_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")
    with pytest.raises(ConfigError, match=r"device 'abacus' cannot be used .*expected auto, cpu"):
        pick_device("abacus")


def test_another_diffusion_may_predict_and_is_saved(small_graph, tmp_path):
    alone = DiffusionConfig(steps=0)
    classifier = GPNClassifier(SHORT, predicts_with=alone).fit(small_graph)
    prediction = classifier.predict(small_graph)
    np.testing.assert_allclose(prediction.alpha_0, prediction.alpha_0_no_network, rtol=1e-6)
    classifier.save(tmp_path / "model")
    loaded = GPNClassifier.load(tmp_path / "model")
    assert loaded.predicts_with == alone
    assert loaded.config == SHORT
    assert same(loaded.predict(small_graph), prediction)
    assert not same(GPNClassifier(SHORT).fit(small_graph).predict(small_graph), prediction)


def test_the_state_makes_the_same_classifier(small_graph):
    classifier = GPNClassifier(SHORT).fit(small_graph)
    again = GPNClassifier(SHORT)
    again.load_state(small_graph, classifier.state(), "memory")
    assert same(again.predict(small_graph), classifier.predict(small_graph))
    with pytest.raises(RunError, match=r"memory has .* it belongs to another model"):
        again.load_state(two_triangles(), classifier.state(), "memory")


def test_a_trainer_is_fitted_without_its_graph(small_graph):
    classifier = GPNClassifier(SHORT)
    records = []
    fitted = classifier.fit_trainer(classifier.trainer(small_graph), observe=records.append)
    assert fitted is classifier
    assert len(records) == 3 + 5  # as many warm-up epochs as steps
    expected = GPNClassifier(SHORT).fit(small_graph).predict(small_graph)
    assert same(classifier.predict(small_graph), expected)


def test_perturbed_is_the_model_on_a_graph(small_graph):
    classifier = GPNClassifier(SHORT).fit(small_graph)
    unchanged = classifier.perturbed(small_graph).unchanged()
    expected = classifier.predict(small_graph)
    np.testing.assert_allclose(unchanged.alpha_0, expected.alpha_0, rtol=1e-4)


def test_the_epochs_of_every_part_are_kept(small_graph, tmp_path):
    seen = []
    classifier = GPNClassifier(epochs=3).fit(small_graph, observe=seen.append)
    history = classifier.history_
    assert list(history) == ["features", "opinion"]
    assert [*history["features"], *history["opinion"]] == seen
    assert [len(records) for records in history.values()] == [3 + 5, 3]  # 5 warm-up epochs
    assert classifier.fit(small_graph).history_["opinion"] == history["opinion"]
    assert len(classifier.history_["features"]) == 8
    classifier.save(tmp_path / "model")
    assert GPNClassifier.load(tmp_path / "model").history_ == {}


@pytest.mark.parametrize("answer", [True, np.True_])
def test_an_observer_ends_a_part_and_the_model_is_complete(small_graph, answer):
    records = []

    def observe(record):
        records.append(record)
        return answer if record.part == "features" and record.epoch == 9 else None

    stopped = GPNClassifier(epochs=20, patience=20).fit(small_graph, observe=observe)
    assert len(stopped.history_["features"]) == 9
    assert len(stopped.history_["opinion"]) == 20
    # The same steps, but ended by the number of epochs; the opinion's own limit stays.
    config = stopped.config
    feature_part = GPNClassifier(replace(config, train=replace(config.train, epochs=4)))
    expected = feature_part.fit_trainer(feature_part.trainer(small_graph)).state()
    state = stopped.state()
    assert all(torch.equal(state[name], tensor) for name, tensor in expected.items())
    assert stopped.predict(small_graph).p.parts == (
        "features",
        "neighbourhood",
        "opinion",
        "labels",
    )


def test_an_observer_that_stops_at_once_leaves_a_model(small_graph):
    classifier = GPNClassifier(epochs=20).fit(small_graph, observe=lambda record: True)
    assert [len(records) for records in classifier.history_.values()] == [1, 1]
    assert np.isfinite(classifier.predict(small_graph).alpha_0).all()


@pytest.mark.parametrize("answer", [False, np.False_, 0, 1, "text"])
def test_other_answers_of_an_observer_mean_nothing(small_graph, answer):
    classifier = GPNClassifier(SHORT).fit(small_graph, observe=lambda record: answer)
    assert len(classifier.history_["features"]) == 3 + 5


def test_an_exception_of_an_observer_passes(small_graph):
    def observe(record):
        raise KeyError(record.epoch)

    classifier = GPNClassifier(SHORT).fit(small_graph)
    with pytest.raises(GraphError, match="graph is a int"):
        classifier.fit(3)
    assert hasattr(classifier, "classes_")  # a graph that is refused changes nothing
    with pytest.raises(KeyError):
        classifier.set_params(latent=2).fit(small_graph, observe=observe)
    assert not hasattr(classifier, "classes_")


def test_progress_is_shown_on_request(small_graph, capsys):
    GPNClassifier(SHORT).fit(small_graph)
    assert capsys.readouterr().err == ""
    GPNClassifier(epochs=3, verbose=1).fit(small_graph)
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("train features: epoch 8/8, ")
    assert ", val accuracy 0." in first
    assert second.startswith("train opinion: epoch 3/3, ")
    GPNClassifier(SHORT, verbose=1).fit(small_graph)
    assert capsys.readouterr().err.startswith("train: epoch 8/8, ")


def test_the_command_and_the_classifier_train_the_same_model(tmp_path, capsys):
    graph = synthetic_graph(SyntheticConfig(nodes=300, classes=3, features=8))
    save_graph(graph, tmp_path / "mine")
    options = ["--dataset", "mine", "--data-dir", str(tmp_path), "--out", str(tmp_path / "run")]
    assert train([*options, "--epochs", "4", "--seed", "2", "--set", "encoder.latent=3"]) == 0
    command = GPNClassifier.load(tmp_path / "run" / "model.safetensors")
    given = load_graph("mine", tmp_path)
    classifier = GPNClassifier(epochs=4, random_state=2, latent=3).fit(given)
    assert classifier.config == command.config
    state, expected = classifier.state(), command.state()
    assert state.keys() == expected.keys()
    assert all(torch.equal(state[name], expected[name]) for name in state)


def test_examples_in_the_documentation():
    results = doctest.testmod(estimator)
    assert results.attempted
    assert not results.failed
