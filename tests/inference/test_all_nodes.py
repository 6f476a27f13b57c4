from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.config import DiffusionConfig, EncoderConfig, FlowConfig, RunConfig
from gpn_scale.data.graph import CSRFeatures
from gpn_scale.data.graph_folder import open_graph, save_graph
from gpn_scale.diffusion.exact import exact_diffusion
from gpn_scale.errors import ConfigError, GraphError
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.inference import full
from gpn_scale.inference.all_nodes import chunk_rows, node_evidence, predict_all
from gpn_scale.inference.encoder_inputs import model_inputs
from gpn_scale.inference.memory_plan import InferencePlan, plan
from gpn_scale.nn.model import GPN
from tests.strategies import graphs

CPU = torch.device("cpu")
ARRAYS = ("probabilities", "probabilities_no_network", "alpha_0", "alpha_0_no_network")
WAYS = [
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


def model_for(graph, num_classes=3, *, dtype=torch.float64, batch_norm=True, layers=2) -> GPN:
    config = RunConfig(
        encoder=EncoderConfig(hidden=5, layers=layers, latent=2, batch_norm=batch_norm),
        flow=FlowConfig(radial_layers=2),
    )
    generator = torch.Generator().manual_seed(graph.num_nodes)
    prior_C = torch.rand(num_classes, generator=generator, dtype=torch.float64) + 0.1
    model = GPN(
        config,
        num_features=graph.num_features,
        class_prior_C=prior_C / prior_C.sum(),
        generator=generator,
    ).double()
    for norm in model.encoder.norms:
        norm.running_mean.uniform_(-1, 1, generator=generator)
        norm.running_var.uniform_(0.5, 2, generator=generator)
    return model.to(dtype)


def exact(model, graph, diffusion, *, scaling="none", dtype=torch.float64) -> Prediction:
    training = model.training
    model.eval()
    with torch.no_grad():
        inputs = model_inputs(graph, scaling, CPU, dtype)
        output = model(inputs, exact_diffusion(graph, diffusion, CPU, dtype))
    model.train(training)
    return Prediction.from_output(output)


def in_blocks(model, graph, diffusion, *, scaling="none", dtype=torch.float64, **options):
    return predict_all(
        model, graph, scaling=scaling, diffusion=diffusion, device=CPU, dtype=dtype, **options
    )


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
    way=st.sampled_from(WAYS),
    num_classes=st.integers(1, 5),
    layers=st.integers(1, 3),
)
def test_every_way_of_cutting_gives_the_exact_model(graph, diffusion, way, num_classes, layers):
    model = model_for(graph, num_classes, layers=layers)
    got = in_blocks(model, graph, diffusion, way=way)
    assert_same(got, exact(model, graph, diffusion))


@pytest.mark.parametrize("memory_bytes", [29 << 20, 1 << 30])
@pytest.mark.parametrize("scaling", ["none", "row_sum", "binary_row_sum"])
def test_mapped_graphs_are_predicted_as_those_in_memory(
    small_graph, tmp_path, scaling, memory_bytes
):
    words = np.abs(np.asarray(small_graph.features, np.float32)).round()
    rows, columns = words.nonzero()
    sparse = CSRFeatures(
        indptr=np.append(0, np.cumsum((words != 0).sum(1))).astype(np.int64),
        indices=columns.astype(np.int32),
        values=words[rows, columns],
        num_columns=words.shape[1],
    )
    diffusion = DiffusionConfig()
    model = model_for(small_graph)
    expected = exact(model, replace(small_graph, features=words), diffusion, scaling=scaling)
    for number, features in enumerate((words, sparse)):
        save_graph(replace(small_graph, features=features), tmp_path / str(number))
        mapped = open_graph(tmp_path / str(number))
        got = in_blocks(model, mapped, diffusion, scaling=scaling, memory_bytes=memory_bytes)
        assert_same(got, expected)


def test_float32_stays_close_to_float64(small_graph):
    diffusion = DiffusionConfig(steps="inf")
    expected = exact(model_for(small_graph), small_graph, diffusion)
    model = model_for(small_graph, dtype=torch.float32)
    got = in_blocks(model, small_graph, diffusion, dtype=torch.float32)
    assert_same(got, expected, tolerance=1e-4)


def test_the_observer_sees_all_feature_evidence_in_order(small_graph):
    model = model_for(small_graph)
    seen = []
    way = next(way for way in WAYS if way.chunk_bytes == 1)
    in_blocks(
        model,
        small_graph,
        DiffusionConfig(steps=0),
        way=replace(way, chunk_bytes=10_000),
        observe=lambda start, stop, evidence_NC: seen.append((start, stop, evidence_NC)),
    )
    assert len(seen) > 3
    assert [start for start, _, _ in seen] == [0, *(stop for _, stop, _ in seen[:-1])]
    assert seen[-1][1] == small_graph.num_nodes
    with torch.no_grad():
        expected = model.eval().feature_evidence(
            model_inputs(small_graph, "none", CPU, torch.float64)
        )
    torch.testing.assert_close(torch.cat([evidence for _, _, evidence in seen]), expected)


def test_progress_grows_to_the_number_of_nodes(small_graph):
    told = []
    in_blocks(
        model_for(small_graph),
        small_graph,
        DiffusionConfig(),
        way=replace(WAYS[0], chunk_bytes=10_000),
        progress=lambda done, note: told.append((done, note)),
    )
    done = [number for number, _ in told]
    assert done == sorted(done)
    assert done[-1] == small_graph.num_nodes
    assert {note for _, note in told} == {"evidence", "diffusion", "done"}


@pytest.mark.parametrize("training", [True, False])
def test_the_model_is_left_in_its_mode(small_graph, training):
    model = model_for(small_graph).train(training)
    for _ in node_evidence(model, small_graph, "none", device=CPU, dtype=torch.float64, chunk=100):
        assert model.training == training
        assert all(norm.training == training for norm in model.encoder.norms)


def test_scratch_files_have_no_name_even_after_a_failure(small_graph, tmp_path, monkeypatch):
    model = model_for(small_graph)
    way = next(way for way in WAYS if way.results_on_disk and way.chunk_bytes > 1)
    got = in_blocks(model, small_graph, DiffusionConfig(), way=way, scratch=tmp_path)
    assert isinstance(got.probabilities, np.memmap)
    assert isinstance(got.probabilities_no_network, np.memmap)
    assert not list(tmp_path.iterdir())

    def fail(*_):
        assert not list(tmp_path.iterdir())
        raise RuntimeError("planted")

    with pytest.raises(RuntimeError, match="planted"):
        in_blocks(model, small_graph, DiffusionConfig(), way=way, scratch=tmp_path, observe=fail)
    assert not list(tmp_path.iterdir())


def test_a_scratch_directory_that_cannot_be_used_is_the_callers_mistake(small_graph, tmp_path):
    way = next(way for way in WAYS if way.results_on_disk)
    with pytest.raises(ConfigError, match=r"scratch directory .*nowhere cannot hold 3,600 bytes"):
        in_blocks(
            model_for(small_graph),
            small_graph,
            DiffusionConfig(),
            way=way,
            scratch=tmp_path / "nowhere",
        )


def test_a_graph_without_features_is_refused(small_graph):
    with pytest.raises(GraphError, match="has no features"):
        in_blocks(model_for(small_graph), replace(small_graph, features=None), DiffusionConfig())


def test_chunks_shrink_where_feature_rows_are_long(small_graph):
    num_nodes, width = 300, 2000
    lengths = np.where(np.arange(num_nodes) < 100, width, 0)
    features = CSRFeatures(
        indptr=np.append(0, np.cumsum(lengths)).astype(np.int64),
        indices=np.tile(np.arange(width, dtype=np.int32), 100),
        values=np.ones(width * 100, np.float32),
        num_columns=width,
    )
    model = model_for(small_graph)
    rows = chunk_rows(model, features, torch.float64, 1 << 20)
    assert 1 <= rows * width * 40 <= 1 << 20
    assert chunk_rows(model, features, torch.float64, 1 << 40) == num_nodes
    assert chunk_rows(model, features, torch.float64, 1) == 1


def test_the_budget_reaches_the_planner(small_graph, monkeypatch):
    asked = []
    monkeypatch.setattr(
        full, "plan", lambda *sizes, **facts: asked.append((sizes, facts)) or plan(*sizes, **facts)
    )
    model = model_for(small_graph)
    in_blocks(model, small_graph, DiffusionConfig(), memory_bytes=123 << 20)
    longest = int(small_graph.out_degree.max())
    sizes = (small_graph.num_nodes, small_graph.num_edges, 3, 123 << 20)
    assert asked == [(sizes, {"max_degree": longest, "itemsize": 8})]
    with pytest.raises(ConfigError, match="too little memory"):
        in_blocks(model, small_graph, DiffusionConfig(), memory_bytes=1 << 20)
