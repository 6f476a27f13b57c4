"""Aggregation over top-k rows and the clusters behind them, against plain loops."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck

from gpn_scale.nn.aggregation import ClusterEvidence, TopKAggregation, weighted_means
from gpn_scale.nn.sparse import SparseMatrix

NUM_CLASSES = 2


def numbers(*shape, seed=0, low=0.1, high=3.0):
    source = torch.Generator().manual_seed(seed)
    return low + (high - low) * torch.rand(*shape, generator=source, dtype=torch.float64)


def tensor(values, width=NUM_CLASSES):
    return torch.tensor(values, dtype=torch.float64).reshape(-1, width)


def sparse(rows, num_columns):
    """Rows as dictionaries {column: weight}."""
    counts = torch.tensor([0, *(len(row) for row in rows)])
    columns = torch.tensor([column for row in rows for column in row], dtype=torch.int64)
    weights = torch.tensor([w for row in rows for w in row.values()], dtype=torch.float64)
    return SparseMatrix(counts.cumsum(0), columns, weights, num_columns)


@st.composite
def batches(draw):
    """(rows as dictionaries, support size, cluster of each node, cut mass by cluster and root)."""
    support, clusters = draw(st.integers(1, 5)), draw(st.integers(0, 3))
    weight = st.floats(0.01, 1.0)
    row = st.dictionaries(st.integers(0, support - 1), weight, max_size=support)
    rows = draw(st.lists(row, min_size=1, max_size=4))
    mass = st.lists(weight, min_size=clusters, max_size=clusters)
    masses = draw(st.lists(mass, min_size=len(rows), max_size=len(rows)))
    cluster = st.integers(0, max(clusters - 1, 0))
    return rows, support, draw(st.lists(cluster, min_size=support, max_size=support)), masses


def means_by_loop(evidence_NC, cluster_of, num_clusters):
    means = []
    for cluster in range(num_clusters):
        members = [evidence_NC[node] for node, c in enumerate(cluster_of) if c == cluster]
        means.append(sum(members) / len(members) if members else evidence_NC[0] * 0.0)
    return means


@settings(max_examples=25)
@given(case=batches())
def test_top_k_aggregation_is_a_loop_over_entries_and_clusters(case):
    rows, support, cluster_of, masses = case
    num_clusters = len(masses[0])
    mass_BP = torch.tensor(masses, dtype=torch.float64).reshape(len(rows), num_clusters)

    def cluster_evidence(evidence_NC):
        assert num_clusters, "there is no tail to ask for"
        return torch.stack(means_by_loop(evidence_NC, cluster_of, num_clusters))

    aggregate = TopKAggregation(sparse(rows, support), mass_BP, cluster_evidence)
    evidence_NC = numbers(support, NUM_CLASSES).requires_grad_()
    got = aggregate(evidence_NC)
    means = means_by_loop(evidence_NC, cluster_of, num_clusters)
    for root, row in enumerate(rows):
        expected = torch.zeros(NUM_CLASSES, dtype=torch.float64)
        for node, weight in row.items():
            expected = expected + weight * evidence_NC[node]
        for mass, mean in zip(masses[root], means, strict=True):
            expected = expected + mass * mean
        torch.testing.assert_close(got[root], expected)
    assert gradcheck(aggregate, evidence_NC)


def test_no_roots_aggregate_to_nothing():
    aggregate = TopKAggregation(sparse([], 3), torch.zeros(0, 0), lambda _: torch.zeros(0, 2))
    assert aggregate(torch.zeros(3, 2, dtype=torch.float64)).shape == (0, 2)


def clusters_of(num_clusters=3):
    return ClusterEvidence(num_clusters, NUM_CLASSES).double()


def track(clusters, evidence_TC, cluster, weight=None):
    weight_T = torch.ones(len(cluster)) if weight is None else torch.tensor(weight)
    cluster_T = torch.tensor(cluster, dtype=torch.int64)
    return clusters.track(
        *weighted_means(evidence_TC, cluster_T, weight_T.double(), clusters.num_clusters)
    )


def test_a_step_takes_the_drawn_mean_and_an_absent_cluster_stays():
    clusters = clusters_of()
    first = track(clusters, tensor([1, 10, 3, 30]), [2, 2], [1.0, 3.0])
    assert first.tolist() == [[0, 0], [0, 0], [2.5, 25]]
    second = track(clusters, tensor([7, 8]), [0])
    assert second.tolist() == [[7, 8], [0, 0], [2.5, 25]]
    assert clusters.mean_PC.tolist() == second.tolist()


def test_the_gradient_is_that_of_the_drawn_nodes():
    """By hand: node t of cluster p has d mean_p / d evidence_t = weight_t / weight of cluster p."""
    clusters = clusters_of()
    track(clusters, tensor([100, 100, 50, 50]), [0, 1])
    evidence_TC = tensor([1, 2, 3, 4, 5, 6]).requires_grad_()
    tracked = track(clusters, evidence_TC, [0, 2, 0], [1.0, 5.0, 3.0])
    upstream = tensor([1, 10, 100, 1000, 10_000, 100_000])
    (gradient,) = torch.autograd.grad(tracked, evidence_TC, upstream)
    share = torch.tensor([[0.25], [1.0], [0.75]])
    assert gradient.tolist() == (share * upstream[[0, 2, 0]]).tolist()
    assert tracked.tolist() == [[4, 5], [50, 50], [3, 4]]
    assert not clusters.mean_PC.requires_grad


@pytest.mark.parametrize("past", [None, 0.0, 1e12])
def test_what_was_seen_before_does_not_change_the_gradient(past):
    clusters = clusters_of(num_clusters=2)
    if past is not None:
        track(clusters, torch.full((2, NUM_CLASSES), past, dtype=torch.float64), [0, 1])
    evidence_TC = numbers(4, NUM_CLASSES).requires_grad_()
    cluster, weight = [0, 1, 1, 0], [1.0, 2.0, 3.0, 4.0]
    upstream = numbers(2, NUM_CLASSES, seed=1)
    (gradient,) = torch.autograd.grad(
        track(clusters, evidence_TC, cluster, weight), evidence_TC, upstream
    )
    means_PC, _ = weighted_means(evidence_TC, torch.tensor(cluster), torch.tensor(weight), 2)
    (expected,) = torch.autograd.grad(means_PC, evidence_TC, upstream)
    torch.testing.assert_close(gradient, expected)


def test_absent_clusters_get_no_gradient_and_spoil_none():
    clusters = clusters_of(num_clusters=2)
    evidence_TC = tensor([1, 2]).requires_grad_()
    tracked = track(clusters, evidence_TC, [1])
    (gradient,) = torch.autograd.grad(tracked[0].sum(), evidence_TC)
    assert gradient.tolist() == [[0, 0]]


def test_a_tracked_value_is_not_changed_by_the_next_step():
    clusters = clusters_of(num_clusters=1)
    first = track(clusters, tensor([1, 2]), [0])
    track(clusters, tensor([5, 6]), [0])
    assert first.tolist() == [[1, 2]]


def test_nothing_drawn_changes_nothing():
    clusters = clusters_of(num_clusters=1)
    track(clusters, tensor([1, 2]), [0])
    assert track(clusters, tensor([]), []).tolist() == [[1, 2]]
    assert track(clusters_of(0), tensor([]), []).shape == (0, 2)


def test_a_summary_replaces_the_drawn_means_and_is_saved():
    clusters = clusters_of(num_clusters=2)
    track(clusters, tensor([9, 9]), [0])
    clusters.summarise(tensor([1, 2, 3, 4]), torch.tensor([3.0, 7.0]))
    again = clusters_of(num_clusters=2)
    again.load_state_dict(clusters.state_dict())
    assert again.mean_PC.tolist() == [[1, 2], [3, 4]]
    assert again.largest_total_P.tolist() == [3, 7]


@given(
    members=st.lists(st.tuples(st.integers(0, 3), st.floats(0.01, 100.0)), max_size=8),
    num_clusters=st.integers(4, 6),
)
def test_weighted_means_are_those_of_a_loop(members, num_clusters):
    evidence_TC = numbers(len(members), NUM_CLASSES)
    cluster_T = torch.tensor([cluster for cluster, _ in members], dtype=torch.int64)
    weight_T = torch.tensor([weight for _, weight in members], dtype=torch.float64)
    means_PC, present_P = weighted_means(evidence_TC, cluster_T, weight_T, num_clusters)
    assert means_PC.shape == (num_clusters, NUM_CLASSES)
    for cluster in range(num_clusters):
        mine = [t for t, (c, _) in enumerate(members) if c == cluster]
        assert present_P[cluster] == bool(mine)
        total = sum(members[t][1] for t in mine)
        for label in range(NUM_CLASSES):
            parts = [members[t][1] * evidence_TC[t, label].item() for t in mine]
            expected = sum(parts) / total if mine else 0.0
            assert means_PC[cluster, label].item() == pytest.approx(expected, rel=1e-12)


def test_weighted_means_of_no_clusters():
    means_PC, present_P = weighted_means(
        torch.zeros(0, 3), torch.zeros(0, dtype=torch.int64), torch.zeros(0), 0
    )
    assert means_PC.shape == (0, 3)
    assert present_P.shape == (0,)


def test_the_largest_evidence_is_never_rounded_down():
    largest_P = torch.rand(100, dtype=torch.float64) * 1e7
    clusters = ClusterEvidence(100, 2)
    clusters.summarise(torch.zeros(100, 2), largest_P)
    stored_P = clusters.largest_total_P.double()
    assert (stored_P >= largest_P).all()
    torch.testing.assert_close(stored_P, largest_P, rtol=2e-7, atol=0.0)
