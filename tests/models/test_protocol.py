"""Every registered model satisfies the protocol, with the same predictions after a round trip."""

import inspect
from dataclasses import replace

import numpy as np
import pytest

from gpn_scale.data.shifts import noise_rows, shifted_edges
from gpn_scale.data.splits import prepare_graph
from gpn_scale.errors import RunError
from gpn_scale.models.protocol import NodeClassifier, PerturbedClassifier
from gpn_scale.models.registry import MODELS, setting_of
from gpn_scale.ppr.store import PPRStore
from tests.baselines.graphs import CONFIG, unsplit_graph
from tests.ppr.stored import write_store

RECIPE = replace(CONFIG, train=replace(CONFIG.train, epochs=3))
CHANGES = {
    "GPN+-minibatch": [("minibatch.tail", "stationary")],
    "GPN-minibatch": [("minibatch.tail", "stationary")],
    "VGCN-Ensemble": [("model.members", "2")],
    "VGCN-Ensemble-minibatch": [("model.members", "2")],
}


def own_setting(name):
    return setting_of(name, RECIPE, CHANGES.get(name, []), unsplit_graph())


def rows_of(setting, folder):
    """Path of the rows that the model uses; None for none."""
    diffusion = setting.row_diffusion
    if diffusion is None:
        return None
    facts = diffusion.store_parameters
    return write_store(str(folder), unsplit_graph(), diffusion, k=8, parameters=facts).path


def parameters(protocol, name):
    return [
        (parameter.name, parameter.kind)
        for parameter in inspect.signature(getattr(protocol, name)).parameters.values()
        if parameter.name != "self"
    ]


def assert_has_methods(instance, protocol):
    """Methods have the protocol's parameters, in its order; more must have defaults."""
    for name, member in vars(protocol).items():
        if name.startswith("_") or not inspect.isfunction(member):
            continue
        wanted = parameters(protocol, name)
        own = inspect.signature(getattr(instance, name)).parameters
        assert [(p.name, p.kind) for p in own.values() if p.name in dict(wanted)] == wanted
        for extra in own.keys() - dict(wanted).keys():
            assert own[extra].default is not inspect.Parameter.empty, f"{name}({extra})"


@pytest.mark.parametrize("name", MODELS)
def test_every_model_has_the_methods_of_the_protocol(name):
    setting = own_setting(name)
    model = setting.new()
    assert isinstance(model, NodeClassifier)
    assert_has_methods(model, NodeClassifier)
    assert model.config == setting.config
    setting.check(unsplit_graph())


@pytest.mark.parametrize("name", MODELS)
def test_every_model_predicts_the_same_after_its_state_is_loaded(name, tmp_path):
    setting = own_setting(name)
    graph = prepare_graph(unsplit_graph(), setting.config)
    store = rows_of(setting, tmp_path / "rows")
    model = setting.new()
    assert model.fit(graph, store=store if setting.needs_rows else None) is model
    again = setting.new()
    again.load_state(graph, model.state(), tmp_path / "file")
    first, second = model.predict(graph), again.predict(graph)
    np.testing.assert_array_equal(first.probabilities, second.probabilities)
    scores = second.scores(np.arange(graph.num_nodes))
    for score, expected in first.scores(np.arange(graph.num_nodes)).items():
        np.testing.assert_array_equal(scores[score], expected)


@pytest.mark.parametrize(
    "name", ["GPN+", "GPN", "PostNet-Diff", "GPN-LOG-beta", "LP", "VGCN", "PPRGo"]
)
def test_perturbed_graphs_are_predicted_through_the_protocol(name, tmp_path):
    setting = own_setting(name)
    graph = prepare_graph(unsplit_graph(), setting.config)
    store = rows_of(setting, tmp_path / "rows")
    model = setting.new().fit(graph, store=store if setting.needs_rows else None)
    perturbed = model.perturbed(graph)
    assert isinstance(perturbed, PerturbedClassifier)
    assert_has_methods(perturbed, PerturbedClassifier)
    unchanged, prediction = perturbed.unchanged(), model.predict(graph)
    np.testing.assert_allclose(unchanged.probabilities, prediction.probabilities, rtol=1e-5)
    nodes, rows = np.array([3, 40]), noise_rows("normal", 2, graph.num_features, 1)
    isolated = perturbed.isolated(nodes, rows.__getitem__)
    assert isolated.probabilities.shape == (2, graph.num_classes)
    moved = perturbed.with_edges(shifted_edges(graph, 0.5, "random", 1))
    changed = perturbed.with_features(nodes, rows.__getitem__)
    assert moved.probabilities.shape == changed.probabilities.shape == unchanged.probabilities.shape
    if store is not None:
        stored = PPRStore.open(store, graph_fingerprint=graph.structure_fingerprint()).rows(nodes)
        score = perturbed.local_score(nodes, stored, isolated)
        assert (score is not None) == name.startswith(("GPN", "PostNet"))


@pytest.mark.parametrize(
    "name", ["GPN+", "GPN", "LP", "GKDE", "VGCN", "VGCN-Ensemble", "VGCN+GNNSafe"]
)
def test_prediction_needs_training(name):
    graph = prepare_graph(unsplit_graph(), RECIPE)
    with pytest.raises(RunError, match="call fit"):
        own_setting(name).new().predict(graph)


def test_tensors_of_another_model_are_refused(tmp_path):
    graph = prepare_graph(unsplit_graph(), RECIPE)
    tensors = own_setting("VGCN").new().fit(graph).state()
    for name in ("GPN", "APPNP[encoder.hidden=3]", "RGCN"):
        with pytest.raises(RunError):
            own_setting(name).new().load_state(graph, tensors, tmp_path / "file")
