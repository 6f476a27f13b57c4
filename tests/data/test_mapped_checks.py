from dataclasses import replace

import numpy as np
import pytest

from gpn_scale.data import mapped_checks
from gpn_scale.data.building import build_graph
from gpn_scale.data.graph import CSRFeatures, Split
from gpn_scale.data.mapped_checks import check_manifest, check_mapped
from gpn_scale.errors import GraphError

CSR = CSRFeatures(
    indptr=np.array([0, 1, 1, 2]),
    indices=np.array([0, 1], np.int32),
    values=np.array([1, 2], np.float32),
    num_columns=2,
)


def small(**changes):
    graph = build_graph(
        [0, 1],
        [1, 2],
        features=CSR,
        edge_weight=[1, 2],
        labels=[0, 1, 0],
        split=Split(train=[0, 1], val=[2], test=[]),
        marks={"odd": [1]},
        node_names=["a", "b", "c"],
    )
    return replace(graph, **changes)


@pytest.mark.parametrize("piece", [1, 2, 1 << 20])
def test_a_checked_graph_is_accepted(monkeypatch, piece):
    monkeypatch.setattr(mapped_checks, "_PIECE", piece)
    check_mapped(small())
    check_mapped(small(features=np.zeros((3, 2), np.float16), edge_weight=None, split=None))


@pytest.mark.parametrize("piece", [1, 2, 1 << 20])
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"indices": np.array([1, 0, 2, 3], np.int32)},
            r"the edges hold a number outside \[0, 3\)",
        ),
        ({"indices": np.array([1, 0, 2, -1], np.int32)}, r"the edges hold a number outside"),
        ({"indptr": np.array([0, 3, 1, 4])}, "the edges have row pointers that fall"),
        ({"indptr": np.array([0, 1, 3, 5])}, "the edges have row pointers that do not fit"),
        ({"indptr": np.array([1, 1, 3, 4])}, "the edges have row pointers that do not fit"),
        ({"labels": np.array([0, 1, 2], np.int32)}, r"labels hold a number outside \[-1, 2\)"),
        ({"labels": np.array([0, 1, 0.5])}, r"labels are float64 of shape \(3,\)"),
        ({"edge_weight": np.array([1, 1, 1, -1], np.float32)}, "edge_weight hold a number"),
        ({"edge_weight": np.array([1, 1, np.nan, 1], np.float32)}, "edge_weight hold a number"),
        ({"features": np.array([["a"]] * 3)}, "the features are <U1, expected real numbers"),
        (
            {"features": replace(CSR, indices=np.array([0, 2], np.int32))},
            r"the features hold a number outside \[0, 2\)",
        ),
        ({"features": replace(CSR, values=np.ones(1, np.float32))}, "do not fit each other"),
        ({"features": replace(CSR, indptr=np.array([0, 2, 1, 2]))}, "row pointers that fall"),
        ({"marks": {"odd": np.array([3])}}, "mark 'odd' hold a number outside"),
        ({"node_names": np.array([1, 2, 3])}, "node_names are int64, expected texts"),
        ({"split": Split(train=[0, 1], val=[7], test=[])}, "split: val holds node 7"),
    ],
)
def test_numbers_that_no_graph_has(monkeypatch, changes, message, piece):
    monkeypatch.setattr(mapped_checks, "_PIECE", piece)
    with pytest.raises(GraphError, match=message):
        check_mapped(small(**changes))


GOOD = {"name": "g", "num_classes": 2, "directed": False, "num_columns": None, "marks": {}}
GOOD |= {"arrays": {"labels": {"file": "labels-0.npy"}}}


def test_a_manifest_may_lack_what_is_optional():
    check_manifest(GOOD)
    check_manifest(GOOD | {"marks": {"odd": "labels"}, "source": "graphs/mine.npz"})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": None}, "it has None for 'name'"),
        ({"num_classes": True}, "it has True for 'num_classes'"),
        ({"num_classes": -1}, "it has -1 for 'num_classes'"),
        ({"num_columns": 2**31}, "it has 2147483648 for 'num_columns'"),
        ({"directed": 1}, "it has 1 for 'directed'"),
        ({"arrays": []}, r"it has \[\] for 'arrays'"),
        ({"arrays": {"x": {"file": "../x.npy"}}}, r"it has '../x.npy' for the file of 'x'"),
        ({"raw_columns": {"file": "/etc/x"}}, "it has '/etc/x' for the file of 'raw_columns'"),
        ({"marks": {"odd": ["labels"]}}, "it has a mark without an array"),
        ({"preparation": 3}, "it has 3 for 'preparation'"),
    ],
)
def test_a_manifest_that_no_graph_writes(changes, message):
    with pytest.raises(GraphError, match=message):
        check_manifest(GOOD | changes)
