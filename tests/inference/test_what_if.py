"""Changed features of a node against tables that are prepared anew, and every refusal."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.data.building import build_graph
from gpn_scale.data.contract import DataContract
from gpn_scale.data.graph import CSRFeatures, Graph
from gpn_scale.diffusion.edge_patch import rewired
from gpn_scale.errors import GraphError
from gpn_scale.inference.what_if import changed_features
from tests.data.tables import EDGES, NAMES, NODES

TABLE = NODES | {"constant": ["same"] * 6}
VALUES = {
    "age": st.sampled_from([31, "22.5", None, 1e9]),
    "country": st.sampled_from(["DE", "IT", None, "XK", 5]),
}
NUMBERS = build_graph([0, 1], [1, 2], features=np.ones((3, 2)), feature_names=["age", "size"])


def imported(**rules):
    return Graph.from_tables(TABLE, EDGES, **NAMES, weight="sum", **rules)


def change(graph, node=0, patch=None, **options):
    patch = rewired(graph, node) if patch is None else patch
    return changed_features(graph, DataContract.of(graph), node, patch, **options)


def dense(features):
    return features.to_dense() if isinstance(features, CSRFeatures) else features


@given(
    columns=st.fixed_dictionaries({}, optional=VALUES),
    node=st.integers(0, 5),
    structural=st.sampled_from(["on", "off"]),
    directed=st.booleans(),
    rewires=st.booleans(),
)
def test_a_changed_row_is_that_of_a_changed_table(columns, node, structural, directed, rewires):
    graph = imported(structural_features=structural, directed=directed)
    neighbours = graph.indices[graph.indptr[node] : graph.indptr[node + 1]].tolist()
    added = [v for v in range(6) if v != node and v not in neighbours][-1:] if rewires else []
    removed = neighbours[:1] if rewires else []
    patch = rewired(graph, node, add=added, remove=removed)
    got = change(graph, node, patch, columns=columns)
    # The oracle writes texts, as a file would hold them, and builds the changed graph.
    texts = {
        name: [None if value is None else str(value) for value in TABLE[name]]
        for name in ("age", "country")
    }
    for name, value in columns.items():
        texts[name][node] = None if value is None else str(value)
    changed = graph
    if rewires:
        matrix = np.zeros((6, 6))
        row = np.repeat(np.arange(6), graph.out_degree)
        matrix[row, graph.indices] = graph.edge_weight
        np.add.at(matrix, (patch.source, patch.target), patch.weight)
        source, target = np.nonzero(matrix)
        changed = build_graph(
            source, target, num_nodes=6, edge_weight=matrix[source, target], directed=directed
        )
    expected = graph.preparation.apply(pa.table(texts), graph=changed).features[node]
    np.testing.assert_allclose(got.row[0], expected, rtol=1e-6)


def test_no_change_keeps_the_row():
    graph = imported(structural_features="on")
    for node in range(6):
        assert change(graph, node).row.tolist() == graph.features[node : node + 1].tolist()
        assert change(graph, node).notes == ()


def test_unreadable_values_of_other_columns_do_not_matter():
    count = 12
    age = ["old"] + [str(20 + row) for row in range(count - 1)]  # one in twelve counts as missing
    nodes = {"id": [str(row) for row in range(count)], "age": age, "size": list(range(count))}
    edges = {"source": ["0"], "target": ["1"]}
    contract = DataContract.of(Graph.from_tables(nodes | {"age": ["19", *age[1:]]}, edges))
    graph = contract.aligned(Graph.from_tables(nodes, edges)).graph
    got = changed_features(graph, contract, 0, rewired(graph, 0), columns={"size": 3})
    assert got.row[0, :-1].tolist() == graph.features[0, :-1].tolist()
    assert got.row[0, -1] == graph.features[3, -1]


def test_unknown_categories_and_columns_without_effect_are_noted():
    notes = change(imported(), columns={"country": "XK", "constant": "other"}).notes
    assert any("'XK'" in note for note in notes)
    assert notes[-1] == "The column 'constant' is no feature of the model: it has no effect."


def test_sparse_rows_stay_sparse():
    count = 400
    nodes = {"id": [str(i) for i in range(count)], "place": [f"p{i % 200}" for i in range(count)]}
    edges = {"source": ["0"], "target": ["1"]}
    graph = Graph.from_tables(nodes, edges, kinds={"place": "category"})
    assert isinstance(graph.features, CSRFeatures)
    got = change(graph, 3, columns={"place": "p7"}).row
    assert isinstance(got, CSRFeatures)
    assert got.to_dense().tolist() == graph.features.to_dense()[7:8].tolist()
    whole = change(graph, 3, features=graph.features.to_dense()[9]).row
    assert isinstance(whole, CSRFeatures)
    assert whole.to_dense().tolist() == graph.features.to_dense()[9:10].tolist()
    sparse = change(graph, 3, features=graph.features.rows(5, 6)).row
    assert sparse.to_dense().tolist() == graph.features.to_dense()[5:6].tolist()


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_numbers_are_changed_by_name_in_the_type_of_the_graph(dtype):
    graph = replace(NUMBERS, features=NUMBERS.features.astype(dtype))
    got = change(graph, 1, columns={"size": "2.5"}).row
    assert got.dtype == dtype
    assert got.tolist() == [[1.0, 2.5]]
    assert graph.features[1].tolist() == [1.0, 1.0]
    assert change(graph, 1, features=[[3.0, 4.0]]).row.dtype == dtype


@pytest.mark.parametrize(
    ("graph", "options", "message"),
    [
        (imported(), {"columns": {"agee": 3}}, "holds 'agee', expected .* similar names are 'age'"),
        (imported(), {"columns": {"xyz": 3}}, "holds 'xyz', expected names of the model's 3 colu"),
        (imported(), {"columns": {"age": "old"}}, "value 'old' of 'age' cannot be read: write"),
        (imported(), {"columns": {"age": [1, 2]}}, "of 'age' cannot be read"),
        (imported(), {"columns": {"age": 2**80}}, "the value of 'age' cannot be read"),
        (imported(), {"columns": {"age": object()}}, "the value of 'age' cannot be read"),
        (NUMBERS, {"columns": {"size": "tall"}}, "value 'tall' of 'size' cannot be read: write a"),
        (NUMBERS, {"columns": {"size": None}}, "value None of 'size' cannot be read: write a"),
        (NUMBERS, {"columns": {"width": 1}}, "columns holds 'width', expected names"),
        (NUMBERS, {"columns": {"age": 1}, "features": [1, 2]}, "are both given, expected one"),
        (NUMBERS, {"features": [1.0]}, r"features have shape \(1, 1\), expected one row of the 2"),
        (NUMBERS, {"features": [np.nan, 1.0]}, "features hold NaN"),
        (replace(NUMBERS, feature_names=None), {"columns": {"age": 1}}, "have no names: give feat"),
    ],
)
def test_wrong_changes_are_refused_in_one_sentence(graph, options, message):
    with pytest.raises(GraphError, match=message) as error:
        change(graph, **options)
    assert "\n" not in str(error.value)


def test_a_missing_value_that_the_rule_refuses_is_refused():
    nodes = {"id": ["a", "b"], "age": [31, 29]}
    edges = {"source": ["a"], "target": ["b"]}
    graph = Graph.from_tables(nodes, edges, missing="refuse")
    with pytest.raises(GraphError, match="of 'age' cannot be read"):
        change(graph, columns={"age": None})
