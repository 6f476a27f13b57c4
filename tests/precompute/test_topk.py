"""`topk_ppr` against dense matrices: the certificate, the forms of its arguments, and refusals."""

import doctest
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import precompute
from gpn_scale.errors import ConfigError, GpnScaleError, GraphError
from precompute import TopKRows, topk_ppr
from precompute.topk import NO_NODE
from tests.oracles import dense_diffusion, dense_ppr, dense_transition
from tests.precompute.engines import hub_graph, random_graph
from tests.strategies import graphs

REPOSITORY = Path(__file__).parents[2]
ROUND_OFF = 1e-12  # relative to a weight; sums in float64, here and in the dense truth
CASES = {
    "normalisation": st.sampled_from(["row", "sym"]),
    "self_loops": st.booleans(),
    "teleport": st.sampled_from([0.15, 0.3, 0.5]),  # the float32 nearest to 0.3 is larger
    "steps": st.sampled_from([None, 0, 1, 3]),
}


def truth_of(graph, normalisation="row", self_loops=False, teleport=0.15, steps=None):
    """Exact rows of all nodes, by an inverse or by powers."""
    kind = {"row": "rw", "sym": "sym"}[normalisation]
    transition = dense_transition(graph, kind, self_loops)
    if steps is None:
        return dense_ppr(transition, teleport)
    return dense_diffusion(transition, teleport, steps)


def densify(rows):
    dense = np.zeros((len(rows.roots), rows.num_nodes))
    for row in range(len(rows.roots)):
        for node, weight in zip(rows.ids[row], rows.weights[row], strict=True):
            if node != NO_NODE:
                assert dense[row, node] == 0.0
                dense[row, node] = weight
    return dense


@pytest.mark.parametrize("method", ["sweep", "push"])
@given(graph=graphs(), k=st.integers(1, 4), data=st.data(), **CASES)
def test_the_certificate_holds(method, graph, k, data, **case):
    roots = data.draw(st.lists(st.integers(0, graph.num_nodes - 1), max_size=5))
    truth = truth_of(graph, **case)[roots]
    rows = topk_ppr(graph, roots, k=k, tolerance=0.01, method=method, threads=1, **case)
    dense = densify(rows)
    assert rows.roots.tolist() == roots
    # A swept row of few steps that loses nothing but rounding errors counts as complete.
    slack = 4e-6 * truth.sum(1)
    assert (dense <= truth * (1 + ROUND_OFF) + 1e-15).all()
    assert (truth.sum(1) - dense.sum(1) <= rows.missing_mass + slack).all()
    assert (truth - dense <= rows.missing_mass[:, None] + slack[:, None]).all()
    largest = np.sort(truth, axis=1)[:, ::-1][:, min(k, graph.num_nodes) - 1]
    for row, node in zip(*np.nonzero(rows.is_certain), strict=True):
        assert truth[row, rows.ids[row, node]] >= largest[row] - slack[row]


@pytest.mark.parametrize("method", ["sweep", "push"])
@given(graph=graphs(), **CASES)
def test_with_room_for_all_nodes_rows_are_exact(method, graph, **case):
    rows = topk_ppr(graph, k=99, tolerance=1e-9, method=method, threads=1, **case)
    assert rows.ids.shape == (graph.num_nodes, graph.num_nodes)
    np.testing.assert_allclose(densify(rows), truth_of(graph, **case), atol=1e-5)
    assert rows.missing_mass.max() < 1e-5


def test_the_entries_are_the_largest_of_a_larger_graph():
    graph = hub_graph(300)
    truth = truth_of(graph)
    rows = topk_ppr(graph, np.arange(0, 300, 7), k=8, method="push", tolerance=1e-8)
    for root, ids, certain in zip(rows.roots, rows.ids, rows.is_certain, strict=True):
        top = np.argsort(-truth[root], kind="stable")[:8]
        top = top[truth[root, top] > 0]
        assert set(top.tolist()) == set(ids[ids != NO_NODE].tolist())
        assert np.isin(ids[certain], top).all()
    assert rows.is_certain.any()


def test_rows_follow_the_order_of_roots_and_do_not_depend_on_other_roots():
    graph = random_graph()
    for method in ("push", "sweep"):
        every = topk_ppr(graph, k=5, method=method)
        some = topk_ppr(graph, [9, 3, 9], k=5, method=method)
        for name in ("ids", "weights", "missing_mass"):
            expected = getattr(every, name)[[9, 3, 9]]
            np.testing.assert_array_equal(getattr(some, name), expected, strict=True)


def test_the_number_of_roots_chooses_the_method():
    graph = random_graph()
    few, many = topk_ppr(graph, [3], k=5), topk_ppr(graph, k=5)
    pushed = topk_ppr(graph, k=5, method="push")
    swept = topk_ppr(graph, k=5, method="sweep")
    assert few.weights[0].tobytes() == pushed.weights[3].tobytes()
    assert many.weights.tobytes() == swept.weights.tobytes() != pushed.weights.tobytes()


def test_walks_follow_directions_unless_told_otherwise():
    edges = np.array([[0, 1], [1, 2]])
    assert topk_ppr(edges, [2]).ids.tolist() == [[2, NO_NODE, NO_NODE]]
    assert set(topk_ppr(edges, [2], directed=False).ids[0].tolist()) == {0, 1, 2}


def test_unused_places_are_empty_and_rows_become_a_sorted_matrix():
    rows = topk_ppr([[0, 1], [1, 0]], num_nodes=3, teleport=0.5, tolerance=1e-9)
    assert rows.counts.tolist() == [2, 2, 1]
    assert rows.ids[2].tolist() == [2, NO_NODE, NO_NODE]
    assert rows.weights[2].tolist() == [1.0, 0.0, 0.0]
    assert not rows.is_certain[2, 1:].any()
    matrix = rows.to_scipy()
    assert isinstance(matrix, scipy.sparse.csr_array)
    assert matrix.indices.tolist() == [0, 1, 0, 1, 2]
    np.testing.assert_array_equal(matrix.toarray(), densify(rows).astype(np.float32))


def test_there_may_be_no_roots():
    rows = topk_ppr([[0], [1]], roots=[])
    assert rows.ids.shape == (0, 2)
    assert rows.to_scipy().shape == (0, 2)


def test_the_caller_s_number_of_threads_is_kept():
    before = numba.get_num_threads()
    topk_ppr([[0], [1]], threads=1)
    assert numba.get_num_threads() == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "^k is 0, expected at least 1$"),
        ({"k": "many"}, "^k is 'many', expected a whole number$"),
        ({"teleport": 1.0}, r"^teleport is 1.0, expected a number in \(0, 1\)"),
        ({"tolerance": 2.0}, r"^tolerance is 2.0, expected a number in \(0, 1\)"),
        ({"normalisation": "rw"}, "^normalisation is 'rw', expected 'row' or 'sym'$"),
        ({"steps": -1}, "^steps is -1, expected at least 0 and at most 100000, or None$"),
        ({"steps": "inf"}, "^steps is 'inf', expected a whole number or None$"),
        ({"method": "walk"}, "^method is 'walk', expected auto or sweep or push$"),
        ({"threads": 0}, "^threads is 0, expected a whole number from 1 to "),
        ({"threads": 10**6}, "^threads is 1000000, expected a whole number from 1 to "),
    ],
)
def test_values_that_are_not_allowed_are_refused(options, message):
    with pytest.raises(ConfigError, match=message) as raised:
        topk_ppr([[0], [1]], **options)
    assert raised.value.arguments == tuple(options)


@pytest.mark.parametrize(
    ("roots", "message"),
    [
        ([2], r"^roots holds 2, expected ids in \[0, 2\)$"),
        ([-1], r"^roots holds -1, expected ids in \[0, 2\)$"),
        ([0.5], "^roots must be a vector of integer node ids"),
    ],
)
def test_roots_that_do_not_exist_are_refused(roots, message):
    with pytest.raises(GraphError, match=message) as raised:
        topk_ppr([[0], [1]], roots)
    assert raised.value.arguments == ("roots",)


def test_errors_are_those_of_the_library():
    with pytest.raises(GpnScaleError, match="edges have shape"):
        topk_ppr([1, 2, 3])


def test_it_loads_no_torch():
    code = "import sys; from precompute import topk_ppr; topk_ppr([[0], [1]]); "
    code += "assert not {'torch', 'mpi4py.MPI'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=REPOSITORY)


def test_the_package_offers_it_on_first_use():
    assert precompute.TopKRows is TopKRows
    assert set(precompute.__all__) <= set(dir(precompute))
    with pytest.raises(AttributeError, match="module 'precompute' has no attribute 'topk_prr'"):
        precompute.topk_prr  # noqa: B018


def test_the_example_of_the_page_gives_what_it_says():
    page = REPOSITORY / "docs" / "ppr_engine.md"
    results = doctest.testfile(str(page), module_relative=False)
    assert results.attempted > 5
    assert results.failed == 0
