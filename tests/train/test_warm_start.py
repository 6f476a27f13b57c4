"""Weights of an earlier model in a new training, and what does not fit them."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from gpn_scale.config import EncoderConfig, RunConfig, SplitConfig, TrainConfig
from gpn_scale.data.contract import DataContract
from gpn_scale.data.graph import Graph
from gpn_scale.errors import ConfigError, GraphError
from gpn_scale.estimator import GPNClassifier
from gpn_scale.train.warm_start import WarmStart, aligned_for_start, check_same_architecture
from tests.later_graphs import later_graph
from tests.prepared import prepared, raw_table

CONFIG = RunConfig(
    split=SplitConfig(train=0.2, val=0.2),
    encoder=EncoderConfig(hidden=8, latent=4, standardise=True),
    train=TrainConfig(epochs=2, warmup_steps=2),
)


@pytest.fixture(scope="module")
def earlier(small_graph):
    return GPNClassifier(CONFIG, device="cpu").fit(small_graph)


@pytest.fixture(scope="module")
def later(small_graph):
    return later_graph(small_graph)


def started(earlier, config, graph, **more):
    start = WarmStart(model=earlier.saved_model(), source="earlier")
    classifier = GPNClassifier(config, device="cpu", **more)
    return classifier, classifier.trainers(graph, warm_start=start)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_weights_are_taken_and_the_rest_is_new(earlier, later, dtype):
    classifier, trainers = started(earlier, CONFIG, later, dtype=dtype)
    parts = earlier.saved_model().parts
    assert [trainer.part for trainer in trainers] == ["features", "opinion"]
    for trainer, before in zip(trainers, (parts.network, parts.opinion), strict=True):
        own = trainer.model.state_dict()
        for name, value in before.state_dict().items():
            if name != "evidence.log_prior_C":  # which is that of the new training nodes
                torch.testing.assert_close(own[name], value.to(dtype), rtol=0, atol=0)
        assert trainer.optimiser.state_dict()["state"] == {}
        assert trainer.state.epoch == 0
    fresh = GPNClassifier(CONFIG, device="cpu", dtype=dtype).trainers(later)[0].model
    prior = trainers[0].model.state_dict()["evidence.log_prior_C"]
    torch.testing.assert_close(prior, fresh.state_dict()["evidence.log_prior_C"])
    assert classifier.config.train.warmup_steps == 0
    assert trainers[0].phase(1) == "main"


def test_training_goes_on_from_the_weights(earlier, small_graph, tmp_path):
    """One tiny step away from the earlier model, predictions are nearly the same."""
    config = replace(CONFIG, train=replace(CONFIG.train, epochs=1, learning_rate=1e-7))
    expected = earlier.predict(small_graph)
    warm = GPNClassifier(config, device="cpu").fit(small_graph, warm_start=earlier)
    np.testing.assert_allclose(warm.predict(small_graph).alpha_0, expected.alpha_0, rtol=1e-3)
    cold = GPNClassifier(config, device="cpu").fit(small_graph)
    assert not np.allclose(cold.predict(small_graph).alpha_0, expected.alpha_0, rtol=0.1)
    earlier.save(tmp_path / "model.safetensors")
    again = GPNClassifier(config, device="cpu").fit(
        small_graph, warm_start=tmp_path / "model.safetensors"
    )
    np.testing.assert_array_equal(
        again.predict(small_graph).alpha_0, warm.predict(small_graph).alpha_0
    )


def test_a_classifier_may_go_on_from_itself(small_graph, later):
    classifier = GPNClassifier(CONFIG, device="cpu").fit(small_graph)
    classifier = classifier.fit(later, warm_start=classifier)
    assert classifier.predict(later).alpha_0.shape == (later.num_nodes,)


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"model": "GPN"}, "model=GPN+"),
        ({"encoder": replace(CONFIG.encoder, hidden=9)}, "encoder.hidden=8"),
        ({"encoder": replace(CONFIG.encoder, standardise=False)}, "encoder.standardise=True"),
    ],
)
def test_other_architectures_are_refused(changes, key):
    with pytest.raises(
        ConfigError, match=r"runs/a was trained with .*, expected the same value: use"
    ) as error:
        check_same_architecture(replace(CONFIG, **changes), CONFIG, "runs/a")
    assert error.value.arguments == (key, "warm_start")
    check_same_architecture(replace(CONFIG, mode="minibatch"), CONFIG, "runs/a")


def named(graph: Graph, **names) -> Graph:
    return replace(graph, **{name: np.array(texts) for name, texts in names.items()})


@pytest.mark.parametrize(
    ("before", "now", "message"),
    [
        ({}, {"num_classes": 4}, r"other classes \(4 classes without names\) than a was trained"),
        (
            {"class_names": list("abc")},
            {"class_names": list("abd")},
            r"other classes \('a', 'b', 'd",
        ),
        ({"class_names": list("abc")}, {}, "other classes"),
        ({}, {"features": np.ones((304, 7), np.float32)}, r"other feature columns \(7\) than a"),
        (
            {"feature_names": list("abcdefgh")},
            {"feature_names": list("abcdefgx")},
            r"other feature columns \(without 'h'\)",
        ),
    ],
)
def test_other_classes_and_features_are_refused(small_graph, later, before, now, message):
    contract = DataContract.of(named(small_graph, **before))
    texts = {name: value for name, value in now.items() if name.endswith("names")}
    graph = named(replace(later, **{k: v for k, v in now.items() if k not in texts}), **texts)
    with pytest.raises(GraphError, match=message) as error:
        aligned_for_start(graph, contract, "a")
    assert error.value.arguments == ("warm_start",)


def test_an_additional_feature_is_refused(small_graph, later):
    contract = DataContract.of(named(small_graph, feature_names=list("abcdefgh")))
    wider = replace(later, features=np.ones((later.num_nodes, 9), np.float32))
    with pytest.raises(GraphError, match=r"other feature columns \(also 'i'\)"):
        aligned_for_start(named(wider, feature_names=list("abcdefghi")), contract, "a")


def test_classes_in_another_order_are_matched_by_name(small_graph, later):
    contract = DataContract.of(named(small_graph, class_names=list("abc")))
    turned = np.where(later.labels >= 0, 2 - later.labels, -1).astype(np.int32)
    graph = named(replace(later, labels=turned), class_names=list("cba"))
    aligned = aligned_for_start(graph, contract, "a").graph
    assert aligned.class_names.tolist() == list("abc")
    assert aligned.labels.tolist() == later.labels.tolist()


def test_raw_columns_are_read_by_the_rule_of_the_earlier_model():
    table = raw_table()
    first = prepared(table)
    moved = table.set_column(0, "amount", [[str(float(row)) for row in range(table.num_rows)]])
    second = prepared(moved)
    assert second.preparation != first.preparation
    aligned = aligned_for_start(second, DataContract.of(first), "a").graph
    assert aligned.preparation == first.preparation
