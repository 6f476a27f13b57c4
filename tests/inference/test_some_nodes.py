"""Predictions from stored rows, against dense diffusion of the model's own evidence."""

from dataclasses import dataclass, fields, replace
from tempfile import TemporaryDirectory
from typing import get_args
from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gpn_scale.config import (
    DiffusionConfig,
    EncoderConfig,
    MinibatchConfig,
    PPRConfig,
    RunConfig,
    TailKind,
)
from gpn_scale.data.building import build_graph
from gpn_scale.data.graph import Graph
from gpn_scale.errors import StoreError
from gpn_scale.inference import some_nodes as module
from gpn_scale.inference.cluster_summary import ClusterSummary
from gpn_scale.inference.some_nodes import predict_nodes, row_values
from gpn_scale.inference.trained_model import TrainedModel
from gpn_scale.nn.aggregation import ClusterEvidence
from gpn_scale.nn.model import GPN
from gpn_scale.nn.posterior import DirichletPosterior
from gpn_scale.ppr.store import PPRStore
from gpn_scale.ppr.tails import AbstractTail, make_tail
from precompute.build import build_store
from precompute.resources import Resources
from tests.ppr.stored import exact_rows, write_store
from tests.strategies import graphs

CPU = torch.device("cpu")
KINDS = [kind for kind in get_args(TailKind) if kind != "sampled"]
NUM_CLASSES, NUM_FEATURES = 3, 3
HALF = 2.0**-10
"""Test stores round cut masses to the nearest float16; the engine rounds them up."""
DIFFUSIONS = st.builds(
    DiffusionConfig,
    teleport=st.sampled_from([0.1, 0.5]),
    normalisation=st.sampled_from(["sym", "rw"]),
    steps=st.sampled_from([2, "inf"]),
    self_loops=st.booleans(),
)


@pytest.fixture(autouse=True, scope="module")
def _no_waiting_for_the_disk():
    with mock.patch("os.fsync"):
        yield


def a_model() -> GPN:
    config = RunConfig(model="GPN", encoder=EncoderConfig(hidden=8, latent=16))
    generator = torch.Generator().manual_seed(3)
    prior_C = torch.tensor([0.2, 0.3, 0.5])
    model = GPN(config, num_features=NUM_FEATURES, class_prior_C=prior_C, generator=generator)
    return model.double()


MODEL = a_model()


def features_for(num_nodes: int, seed: int) -> np.ndarray:
    """Far apart, so that evidences are of all sizes."""
    rng = np.random.default_rng(seed)
    scale = rng.choice([0.1, 1.0, 10.0], size=(num_nodes, 1))
    return (scale * rng.normal(size=(num_nodes, NUM_FEATURES))).astype(np.float32)


@dataclass
class Case:
    """A store, a tail, and all that predictions from it need."""

    graph: Graph
    diffusion: DiffusionConfig
    store: PPRStore
    tail: AbstractTail
    trained: TrainedModel
    evidence: np.ndarray
    clusters: ClusterEvidence

    @property
    def exact(self) -> np.ndarray:
        """Evidence diffused by the dense matrix, (N, C)."""
        return exact_rows(self.graph, self.diffusion) @ self.evidence

    @property
    def exact_alpha_0(self) -> np.ndarray:
        return NUM_CLASSES + self.exact.sum(1)

    def predict(self, nodes=None, **options):
        nodes = np.arange(self.graph.num_nodes) if nodes is None else np.array(nodes, np.int64)
        return predict_nodes(
            self.trained,
            self.graph,
            nodes,
            store=self.store,
            tail=self.tail,
            clusters=self.clusters,
            **options,
        )

    def posteriors(self, nodes):
        evidence_BC = row_values(
            self.trained,
            self.graph.features,
            np.array(nodes, np.int64),
            store=self.store,
            tail=self.tail,
            cluster_PC=self.clusters.mean_PC,
        )
        return DirichletPosterior.from_evidence(evidence_BC)


def case_of(graph, diffusion, store, kind, seed=0) -> Case:
    graph = replace(graph, features=features_for(graph.num_nodes, seed))
    trained = TrainedModel(MODEL, "none", diffusion, CPU, torch.float64)
    evidence_NC = trained.evidence(graph.features, np.arange(graph.num_nodes))
    tail = make_tail(MinibatchConfig(tail=kind), store, graph, diffusion)
    summary = ClusterSummary(tail, NUM_CLASSES, CPU)
    summary.observe(0, graph.num_nodes, evidence_NC)
    clusters = summary.result(torch.float64)
    return Case(graph, diffusion, store, tail, trained, evidence_NC.numpy(), clusters)


def ring(num_nodes=12):
    """A ring with three chords and, last, an isolated node."""
    ids = np.arange(num_nodes)
    source, target = np.append(ids, [0, 2, 3]), np.append((ids + 1) % num_nodes, [6, 7, 9])
    return build_graph(source, target, name="ring", num_nodes=num_nodes + 1)


@pytest.fixture
def ring_case(tmp_path):
    """(tail kind, roots) -> case on the ring."""

    def make(kind, roots=None):
        graph, diffusion = ring(), DiffusionConfig()
        folder = str(tmp_path / kind)
        store = write_store(folder, graph, diffusion, k=4, clusters=3, roots=roots)
        return case_of(graph, diffusion, store, kind)

    return make


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25)
@given(
    graph=graphs(),
    diffusion=DIFFUSIONS,
    k=st.integers(1, 8),
    clusters=st.sampled_from([0, 1, 3]),
    seed=st.integers(0, 99),
)
def test_the_exact_alpha_0_lies_in_the_interval(kind, graph, diffusion, k, clusters, seed):
    clusters = clusters or (2 if kind == "clustered" else 0)
    with TemporaryDirectory() as folder:
        store = write_store(folder, graph, diffusion, k=k, clusters=clusters)
        case = case_of(graph, diffusion, store, kind, seed)
        result, exact = case.predict(), case.exact_alpha_0
    width = result.alpha_0_upper - result.alpha_0_lower
    assert (result.alpha_0_lower <= exact).all()
    assert (exact <= result.alpha_0_upper + HALF * width).all()
    if k >= graph.num_nodes:
        np.testing.assert_allclose(result.alpha_0_lower, exact, rtol=1e-4)
        np.testing.assert_allclose(result.alpha_0_upper, exact, rtol=1e-4)
        np.testing.assert_allclose(result.prediction.alpha_0, exact, rtol=1e-4)
        mean = (1.0 + case.exact) / exact[:, None]
        np.testing.assert_allclose(result.prediction.probabilities, mean, rtol=1e-4)


@pytest.mark.parametrize("kind", ["truncated", "renormalised", "stationary", "clustered"])
@settings(max_examples=15)
@given(graph=graphs(), diffusion=DIFFUSIONS, k=st.integers(1, 3), seed=st.integers(0, 99))
def test_the_value_is_the_sum_over_kept_entries_and_tail(kind, graph, diffusion, k, seed):
    prior = MinibatchConfig().tail_prior_mass
    with TemporaryDirectory() as folder:
        store = write_store(folder, graph, diffusion, k=k, clusters=2)
        case = case_of(graph, diffusion, store, kind, seed)
        result = case.predict()
        posterior = case.posteriors(np.arange(graph.num_nodes))
        weight_of = case.tail.weight_of(np.arange(graph.num_nodes)).astype(np.float64)
        rows = [store.rows([node]) for node in range(graph.num_nodes)]
    for node, row in enumerate(rows):
        kept, mass = np.zeros(NUM_CLASSES), row.weights.sum(dtype=np.float64)
        for other, weight in zip(row.ids, row.weights, strict=True):
            kept += np.float64(weight) * case.evidence[other]
        missing = np.float64(row.missing_mass[0])
        expected = 1.0 + kept
        if kind == "renormalised":
            expected = 1.0 + kept * (mass + missing) / mass
        if kind == "stationary":
            expected = expected + missing * np.average(case.evidence, 0, weight_of)
        if kind == "clustered":
            for cluster in range(min(2, graph.num_nodes)):
                members = slice(cluster, None, 2)
                mean = np.average(case.evidence[members], 0, weight_of[members])
                inside = (row.ids % 2 == cluster) & (row.ids != node)
                weight = row.weights[inside].astype(np.float64)
                seen = prior * mean + weight @ case.evidence[row.ids[inside]]
                cut = np.float64(row.cut_mass[0, cluster])
                expected = expected + cut * seen / (prior + weight.sum())
        np.testing.assert_allclose(posterior.alpha_NC[node].numpy(), expected, rtol=2e-6)
        np.testing.assert_allclose(result.prediction.alpha_0[node], expected.sum(), rtol=2e-6)
        share = expected / expected.sum()
        np.testing.assert_allclose(result.prediction.probabilities[node], share, rtol=2e-6)
        alone = NUM_CLASSES + case.evidence[node].sum()
        np.testing.assert_allclose(result.prediction.alpha_0_no_network[node], alone, rtol=1e-6)


@pytest.mark.parametrize("steps", [10, "inf"])
@pytest.mark.parametrize("kind", ["clustered", "stationary"])
def test_the_engine_s_rows_certify_without_slack(tmp_path, small_graph, kind, steps):
    diffusion = DiffusionConfig(teleport=0.2, steps=steps)
    build_store(
        small_graph,
        PPRConfig(diffusion=diffusion, k=8, clusters=8),
        tmp_path / "store",
        resources=Resources(threads=1, memory_bytes=1 << 30),
    )
    case = case_of(small_graph, diffusion, PPRStore.open(tmp_path / "store"), kind)
    result, exact = case.predict(), case.exact_alpha_0
    assert (result.alpha_0_lower <= exact).all()
    assert (exact <= result.alpha_0_upper).all()
    assert (result.alpha_0_upper > result.alpha_0_lower * 1.01).any()


def test_clusters_make_the_interval_narrower(ring_case):
    clustered, whole = (ring_case(kind).predict() for kind in ("clustered", "stationary"))
    np.testing.assert_array_equal(clustered.alpha_0_lower, whole.alpha_0_lower)
    assert (clustered.alpha_0_upper <= whole.alpha_0_upper * (1 + HALF)).all()
    assert clustered.alpha_0_upper.sum() < whole.alpha_0_upper.sum()


@pytest.mark.parametrize("kind", KINDS)
def test_contributors_are_kept_neighbours_by_falling_share(ring_case, kind):
    case = ring_case(kind)
    result = case.predict(explain=6)
    by, exact = result.contributors, exact_rows(case.graph, case.diffusion)
    total = result.prediction.alpha_0.astype(np.float64) - NUM_CLASSES
    for node in range(case.graph.num_nodes):
        ids, weights = case.store.row(node)
        named = by.node[node][by.node[node] >= 0]
        assert sorted(named) == sorted(ids)
        count = len(named)
        assert (by.node[node, count:] == -1).all()
        assert (by.leading_class[node, count:] == -1).all()
        assert not by.share[node, count:].any()
        assert not by.weight[node, count:].any()
        assert (np.diff(by.share[node]) <= 0).all()
        np.testing.assert_allclose(by.weight[node, :count], exact[node, named], rtol=1e-6)
        assert dict(zip(named, by.weight[node], strict=False)) == dict(
            zip(ids, weights.astype(np.float64), strict=True)
        )
        own = case.evidence[named]
        np.testing.assert_array_equal(by.leading_class[node, :count], own.argmax(1))
        given = exact[node, named] * own.sum(1)
        np.testing.assert_allclose(by.share[node, :count], given / total[node], rtol=1e-4)
        assert by.share[node].sum() + by.tail_share[node] == pytest.approx(1.0, abs=1e-5)
    assert (by.tail_share >= 0).all()
    if kind == "truncated":
        assert (by.tail_share < 1e-6).all()
    else:
        assert by.tail_share[0] > 0.01
    assert by.tail_share[-1] < 1e-6  # the isolated node has lost nothing


def test_fewer_contributors_than_entries_are_the_first_of_them(ring_case):
    case = ring_case("clustered")
    all_of_them, two = case.predict(explain=6).contributors, case.predict(explain=2).contributors
    for name in ("node", "share", "weight", "leading_class"):
        np.testing.assert_array_equal(getattr(two, name), getattr(all_of_them, name)[:, :2])
    np.testing.assert_array_equal(two.tail_share, all_of_them.tail_share)
    assert case.predict().contributors is None


@pytest.mark.parametrize("kind", KINDS)
def test_no_nodes(ring_case, kind):
    case = ring_case(kind)
    result = case.predict([], explain=3)
    assert result.prediction.probabilities.shape == (0, NUM_CLASSES)
    assert result.prediction.alpha_0_no_network.shape == (0,)
    assert result.alpha_0_lower.shape == result.alpha_0_upper.shape == (0,)
    assert result.contributors.node.shape == result.contributors.share.shape == (0, 3)
    assert case.posteriors([]).alpha_NC.shape == (0, NUM_CLASSES)


def arrays_of(result):
    parts = {"lower": result.alpha_0_lower, "upper": result.alpha_0_upper}
    for part in (result.prediction, result.contributors):
        named = {field.name: getattr(part, field.name) for field in fields(part)}
        parts |= {name: value for name, value in named.items() if value is not None}
    return parts


def assert_same_rows(result, expected, rows):
    close = {"rtol": 1e-6, "atol": 1e-12}  # a share of 0 is a difference of sums
    for name, values in arrays_of(result).items():
        np.testing.assert_allclose(values, arrays_of(expected)[name][rows], **close, err_msg=name)


def test_nodes_come_in_the_order_asked_for_and_may_be_repeated(ring_case):
    case = ring_case("clustered")
    nodes = [5, 0, 5, 12, 3]
    result = case.predict(nodes, explain=2)
    assert result.node.tolist() == nodes
    assert_same_rows(result, case.predict(explain=2), nodes)
    alpha = case.posteriors(nodes).alpha_NC
    torch.testing.assert_close(alpha, case.posteriors(np.arange(13)).alpha_NC[nodes])


@pytest.mark.parametrize("kind", ["clustered", "stationary", "renormalised", "truncated"])
@pytest.mark.parametrize("size", [1, 5, 13])
def test_blocks_give_what_all_at_once_does(ring_case, monkeypatch, kind, size):
    case = ring_case(kind)
    whole, alpha = case.predict(explain=2), case.posteriors(np.arange(13)).alpha_NC
    monkeypatch.setattr(module, "ROOTS_AT_A_TIME", size)
    assert_same_rows(case.predict(explain=2), whole, slice(None))
    torch.testing.assert_close(case.posteriors(np.arange(13)).alpha_NC, alpha)


def test_the_model_is_left_in_the_mode_it_was_in(ring_case):
    case = ring_case("clustered")
    for training in (True, False):
        MODEL.train(training)
        case.predict()
        assert MODEL.training is training


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([0, 4], "node 4 is not among the 3 roots"),
        ([13], "node 13 is out of range"),
        ([-1], "node -1 is out of range"),
    ],
)
def test_nodes_without_rows_are_refused(ring_case, nodes, message):
    case = ring_case("clustered", roots=[0, 1, 2])
    assert case.predict([2, 0]).node.tolist() == [2, 0]
    with pytest.raises(StoreError, match=message):
        case.predict(nodes)
