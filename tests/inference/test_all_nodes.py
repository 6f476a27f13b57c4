from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.config import DiffusionConfig
from gpn_scale.data.graph import CSRFeatures
from gpn_scale.data.graph_folder import open_graph, save_graph
from gpn_scale.diffusion.power_iteration import exact_diffusion
from gpn_scale.errors import ConfigError, GraphError
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.inference import all_nodes
from gpn_scale.inference.all_nodes import predict_all
from gpn_scale.inference.encoder_inputs import model_inputs
from gpn_scale.inference.evidence import EvidenceSummary
from gpn_scale.inference.memory_plan import InferencePlan, plan_inference
from tests.inference.models import trained_model
from tests.mapped import is_mapped
from tests.strategies import graphs

CPU = torch.device("cpu")
ARRAYS = ("probabilities", "probabilities_no_network", "alpha_0", "alpha_0_no_network")
PLANS = [
    InferencePlan(
        columns=columns,
        block_entries=entries,
        keep_adjacency=keep,
        results_on_disk=on_disk,
        chunk_bytes=chunk_bytes,
        predicted_bytes=0,
    )
    for columns, entries, keep, on_disk, chunk_bytes in product(
        (1, 2, 5), (1, 3, 1000), (True, False), (True, False), (1, 1 << 20)
    )
]


def exact(trained, graph) -> Prediction:
    with torch.no_grad(), trained.evaluating():
        inputs = model_inputs(graph, trained.scaling, CPU, trained.dtype)
        diffusion = exact_diffusion(graph, trained.diffusion, CPU, trained.dtype)
        return Prediction.from_output(trained.network(inputs, diffusion))


def assert_same(got: Prediction, expected: Prediction, tolerance=1e-6) -> None:
    for name in ARRAYS:
        array = getattr(got, name)
        assert array.dtype == np.float32
        np.testing.assert_allclose(array, getattr(expected, name), rtol=tolerance, err_msg=name)


diffusions = st.builds(
    DiffusionConfig,
    teleport=st.sampled_from([0.1, 0.5]),
    normalisation=st.sampled_from(["sym", "rw"]),
    steps=st.sampled_from([0, 1, 3, "inf"]),
    tolerance=st.just(1e-2),
    self_loops=st.booleans(),
)


@given(
    graph=graphs().filter(lambda graph: graph.features is not None),
    diffusion=diffusions,
    plan=st.sampled_from(PLANS),
    num_classes=st.integers(1, 5),
    layers=st.integers(1, 3),
)
def test_every_plan_gives_the_exact_model(graph, diffusion, plan, num_classes, layers):
    trained = trained_model(graph, num_classes, diffusion=diffusion, layers=layers)
    assert_same(predict_all(trained, graph, plan=plan), exact(trained, graph))


@pytest.mark.parametrize("memory_bytes", [29 << 20, 1 << 30])
@pytest.mark.parametrize("scaling", ["none", "row_sum", "binary_row_sum"])
def test_mapped_graphs_are_predicted_as_those_in_memory(
    small_graph, tmp_path, scaling, memory_bytes
):
    counts = np.abs(np.asarray(small_graph.features, np.float32)).round()
    rows, columns = counts.nonzero()
    sparse = CSRFeatures(
        indptr=np.append(0, np.cumsum((counts != 0).sum(1))).astype(np.int64),
        indices=columns.astype(np.int32),
        values=counts[rows, columns],
        num_columns=counts.shape[1],
    )
    trained = trained_model(small_graph, scaling=scaling)
    expected = exact(trained, replace(small_graph, features=counts))
    for number, features in enumerate((counts, sparse)):
        save_graph(replace(small_graph, features=features), tmp_path / str(number))
        mapped = open_graph(tmp_path / str(number))
        assert_same(predict_all(trained, mapped, memory_bytes=memory_bytes), expected)


def test_float32_stays_close_to_float64(small_graph):
    diffusion = DiffusionConfig(steps="inf")
    expected = exact(trained_model(small_graph, diffusion=diffusion), small_graph)
    trained = trained_model(small_graph, diffusion=diffusion, dtype=torch.float32)
    assert_same(predict_all(trained, small_graph), expected, tolerance=1e-4)


def test_observers_see_all_feature_evidence_in_order(small_graph):
    trained = trained_model(small_graph, diffusion=DiffusionConfig(steps=0))
    seen, summary = [], EvidenceSummary.empty(small_graph.num_nodes)
    predict_all(
        trained,
        small_graph,
        plan=replace(PLANS[0], chunk_bytes=10_000),
        observers=[lambda *chunk: seen.append(chunk), summary.observe],
    )
    assert len(seen) > 3
    assert [start for start, _, _ in seen] == [0, *(stop for _, stop, _ in seen[:-1])]
    assert seen[-1][1] == small_graph.num_nodes
    with torch.no_grad(), trained.evaluating():
        inputs = model_inputs(small_graph, "none", CPU, torch.float64)
        expected = trained.network.feature_evidence(inputs)
    torch.testing.assert_close(torch.cat([evidence for _, _, evidence in seen]), expected)
    np.testing.assert_allclose(summary.total, expected.sum(1).numpy())
    np.testing.assert_array_equal(summary.leading_class, expected.argmax(1).numpy())


def test_progress_grows_to_the_number_of_nodes(small_graph):
    calls = []
    predict_all(
        trained_model(small_graph),
        small_graph,
        plan=replace(PLANS[0], chunk_bytes=10_000),
        progress=lambda done, phase: calls.append((done, phase)),
    )
    done = [number for number, _ in calls]
    assert done == sorted(done)
    assert done[-1] == small_graph.num_nodes
    assert {phase for _, phase in calls} == {"evidence", "diffusion", "done"}


def test_scratch_files_have_no_name_even_after_a_failure(small_graph, tmp_path, monkeypatch):
    trained = trained_model(small_graph)
    plan = next(plan for plan in PLANS if plan.results_on_disk and plan.chunk_bytes > 1)
    got = predict_all(trained, small_graph, plan=plan, scratch=tmp_path)
    assert is_mapped(got.probabilities)
    assert is_mapped(got.probabilities_no_network)
    assert not list(tmp_path.iterdir())

    def fail(*_):
        assert not list(tmp_path.iterdir())
        raise RuntimeError("planted")

    with pytest.raises(RuntimeError, match="planted"):
        predict_all(trained, small_graph, plan=plan, scratch=tmp_path, observers=[fail])
    assert not list(tmp_path.iterdir())


def test_a_scratch_directory_that_cannot_be_used_is_the_callers_mistake(small_graph, tmp_path):
    plan = next(plan for plan in PLANS if plan.results_on_disk)
    with pytest.raises(ConfigError, match=r"scratch directory .*nowhere cannot hold 3,600 bytes"):
        predict_all(
            trained_model(small_graph), small_graph, plan=plan, scratch=tmp_path / "nowhere"
        )


def test_a_graph_without_features_is_refused(small_graph):
    with pytest.raises(GraphError, match="has no features"):
        predict_all(trained_model(small_graph), replace(small_graph, features=None))


def test_the_budget_reaches_the_planner(small_graph, monkeypatch):
    asked = []
    monkeypatch.setattr(
        all_nodes,
        "plan_inference",
        lambda *sizes, **facts: asked.append((sizes, facts)) or plan_inference(*sizes, **facts),
    )
    trained = trained_model(small_graph)
    predict_all(trained, small_graph, memory_bytes=123 << 20, observer_bytes=77)
    longest = int(small_graph.out_degree.max())
    sizes = (small_graph.num_nodes, small_graph.num_edges, 3, 123 << 20)
    assert asked == [(sizes, {"max_degree": longest, "itemsize": 8, "extra_bytes": 77})]
    with pytest.raises(ConfigError, match="too small to predict"):
        predict_all(trained, small_graph, memory_bytes=1 << 20)
