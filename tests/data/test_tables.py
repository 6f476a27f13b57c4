from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from gpn_scale.data.graph import Graph
from gpn_scale.data.tables import has_tables, read_tables
from gpn_scale.errors import GraphError

EDGES = {"source": ["a", "b"], "target": ["b", "c"]}
NODES = {"id": ["c", "a", "b"]}


def write(folder: Path, stem: str, columns: dict, suffix: str = ".parquet") -> None:
    table = columns if isinstance(columns, pa.Table) else pa.table(columns)
    writer = parquet.write_table if suffix == ".parquet" else csv.write_csv
    writer(table, folder / f"{stem}{suffix}")


def read(folder: Path, edges=EDGES, nodes=NODES, suffix: str = ".parquet") -> Graph:
    write(folder, "edges", edges, suffix)
    write(folder, "nodes", nodes, suffix)
    return read_tables(folder, "t")


def neighbours(graph: Graph) -> list[list[int]]:
    return [part.tolist() for part in np.split(graph.indices, graph.indptr[1:-1])]


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_every_column_arrives(tmp_path, suffix):
    edges = EDGES | {"weight": [0.5, 2.0], "comment": ["x", "y"]}
    nodes = NODES | {
        "size": [1, 2, 3],
        "label": ["dog", "cat", "dog"],
        "height": [0.5, 1.5, 2.5],
        "split": ["validation", "train", "train"],
    }
    nodes["label"][0] = "cat"
    graph = read(tmp_path, edges, nodes, suffix)
    assert graph.name == "t"
    assert neighbours(graph) == [[2], [2], [0, 1]]
    assert graph.edge_weight.tolist() == [2.0, 0.5, 2.0, 0.5]
    assert graph.features.tolist() == [[1, 0.5], [2, 1.5], [3, 2.5]]
    assert graph.features.dtype == np.float32
    assert graph.labels.tolist() == [0, 0, 1]
    assert graph.class_names.tolist() == ["cat", "dog"]
    assert graph.node_names.tolist() == ["c", "a", "b"]
    assert graph.split.train.tolist() == [1, 2]
    assert graph.split.val.tolist() == [0]
    assert not graph.directed


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_optional_columns_may_be_absent(tmp_path, suffix):
    graph = read(tmp_path, suffix=suffix)
    assert graph.features is None
    assert graph.split is None
    assert graph.edge_weight is None
    assert graph.labels.tolist() == [-1, -1, -1]


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
@pytest.mark.parametrize("ids", [[7, -1, 2**40], [2, 1, 0]])
def test_integer_ids_may_be_any(tmp_path, ids, suffix):
    graph = read(tmp_path, {"source": ids[:1], "target": ids[2:]}, {"id": ids}, suffix)
    assert neighbours(graph) == [[2], [], [0]]
    assert graph.node_names.tolist() == [str(each) for each in ids]


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_ids_that_count_the_rows_need_no_names(tmp_path, suffix):
    graph = read(tmp_path, {"source": [0], "target": [1]}, {"id": [0, 1, 2]}, suffix)
    assert graph.node_names is None


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint64(), pa.dictionary(pa.int8(), pa.string())])
def test_ids_of_different_types_meet_as_text(tmp_path, kind):
    ids = pa.array(["7", "8"] if pa.types.is_dictionary(kind) else [7, 8], kind)
    write(tmp_path, "nodes", {"id": ids})
    write(tmp_path, "edges", {"source": ["8"], "target": ["7"]}, ".csv")
    assert neighbours(read_tables(tmp_path, "t")) == [[1], [0]]


def test_ids_in_csv_keep_their_zeros(tmp_path):
    (tmp_path / "nodes.csv").write_text("id\n007\n7\nNA\n")
    (tmp_path / "edges.csv").write_text("source,target\n007,NA\n")
    graph = read_tables(tmp_path, "t")
    assert graph.node_names.tolist() == ["007", "7", "NA"]
    assert neighbours(graph) == [[2], [], [0]]


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_a_graph_may_have_no_edges(tmp_path, suffix):
    empty = pa.table({"source": pa.array([], pa.string()), "target": pa.array([], pa.string())})
    assert neighbours(read(tmp_path, empty, suffix=suffix)) == [[], [], []]


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
@pytest.mark.parametrize(
    ("labels", "expected", "names"),
    [
        ([4, 0, 1], [4, 0, 1], None),
        (["4", "0", "10"], [4, 0, 10], None),
        (["4.0", "", "10.0"], [4, -1, 10], None),
        ([3, None, 0], [3, -1, 0], None),
        ([-5, 10, 9], [0, 2, 1], ["-5", "9", "10"]),
        (["10", "9", "x"], [0, 1, 2], ["10", "9", "x"]),
        (["b", "", "a"], [1, -1, 0], ["a", "b"]),
        (["b", None, "a"], [1, -1, 0], ["a", "b"]),
        ([True, False, True], [1, 0, 1], ["false", "true"]),
    ],
)
def test_labels_are_indices_or_names(tmp_path, labels, expected, names, suffix):
    graph = read(tmp_path, nodes=NODES | {"label": labels}, suffix=suffix)
    assert graph.labels.tolist() == expected
    assert names == (None if graph.class_names is None else graph.class_names.tolist())


def test_nan_is_a_missing_label(tmp_path):
    labels = pa.array([np.nan, 1.0, 0.0], pa.float32())
    assert read(tmp_path, nodes=NODES | {"label": labels}).labels.tolist() == [-1, 1, 0]


@pytest.mark.parametrize("labels", [["", "", ""], pa.array([None] * 3, pa.int64())])
def test_a_label_column_may_be_empty(tmp_path, labels):
    graph = read(tmp_path, nodes=NODES | {"label": labels, "split": ["", None, ""]})
    assert graph.labels.tolist() == [-1, -1, -1]
    assert graph.num_classes == 0
    assert graph.split is None


def test_every_name_of_a_part_is_understood(tmp_path):
    ids = list("abcdef")
    subsets = ["train", "val", "valid", "validation", "test", ""]
    nodes = {"id": ids, "label": [0] * 6, "split": subsets}
    graph = read(tmp_path, nodes=nodes)
    assert graph.split.val.tolist() == [1, 2, 3]
    assert graph.split.test.tolist() == [4]


def test_features_may_be_boolean_decimal_or_wide(tmp_path):
    columns = {
        "flag": [True, False, True],
        "price": pa.array([1, 2, 3]).cast(pa.decimal128(21, 2)),
        "count": pa.array([2**53 + 1, 0, 1], pa.int64()),
        "half": pa.array(np.array([0.5, 1, 2], np.float16)),
    }
    features = read(tmp_path, nodes=NODES | columns).features
    assert features.tolist() == [[1, 1, 2.0**53, 0.5], [0, 2, 0, 1], [1, 3, 1, 2]]


def test_a_fraction_after_many_integers_is_read(tmp_path):
    count = 300_000  # more than the first block of Arrow's reader
    rows = "\n".join(f"{row},1" for row in range(count))
    (tmp_path / "nodes.csv").write_text(f"id,x\n{rows}\n{count},0.5\n")
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n")
    graph = read_tables(tmp_path, "t")
    assert graph.features[-1] == 0.5
    assert graph.node_names is None


def test_a_folder_name_makes_no_column(tmp_path):
    folder = tmp_path / "year=2020"
    folder.mkdir()
    assert read(folder).features is None


def test_has_tables_sees_the_edges(tmp_path):
    assert not has_tables(tmp_path)
    write(tmp_path, "edges", EDGES, ".csv")
    assert has_tables(tmp_path)


@pytest.mark.parametrize(
    ("edges", "nodes", "message"),
    [
        (EDGES | {"target": ["b", "z"]}, NODES, r"edges\.\w+: column 'target' holds 'z' in data "
         r"row 1, expected an id of nodes\.\w+ \(blanks count\): add the node"),
        (EDGES, {"id": ["a", "b", "a", "c"]}, r"nodes\.\w+: column 'id' holds 'a' in data row 2, "
         "expected every id once"),
        ({"source": ["a"]}, NODES, r"edges\.\w+: no column 'target' among 'source'; expected"),
        (EDGES, {"name": ["a"]}, r"nodes\.\w+: no column 'id' among 'name'; expected id"),
        (EDGES, {"id": ["a", "", "c"]}, r"column 'id' holds nothing in data row 1, expected an id"),
        (EDGES | {"source": ["a", None]}, NODES, "column 'source' holds nothing in data row 1"),
        (EDGES, NODES | {"colour": ["red", "blue", ""]}, r"nodes\.\w+: column 'colour' holds 'red' "
         "in data row 0, expected a number: encode or drop the column, or import the tables with "
         "gpn-import, which prepares"),
        (EDGES, NODES | {"size": [1, None, 2]}, "column 'size' holds nothing in data row 1, "
         "expected a number: fill it"),
        (EDGES, NODES | {"size": [None, None, None]}, "column 'size' holds nothing in data row 0"),
        (EDGES | {"weight": ["x", "y"]}, NODES, "column 'weight' holds 'x' in data row 0, "
         "expected a number: encode or drop the column$"),
        (EDGES | {"weight": [None, 1.0]}, NODES, "column 'weight' holds nothing in data row 0"),
        (EDGES, NODES | {"label": [0, 0, 0], "split": ["train", "dev", ""]}, "column 'split' holds "
         "'dev' in data row 1, expected train, val"),
        (EDGES, NODES | {"split": ["", "test", ""]}, "column 'split' holds 'test' in data row 1, "
         "expected nothing, since the node has no label"),
        (EDGES, NODES | {"label": ["x", None, "x"], "split": ["train", "test", ""]},
         "column 'split' holds 'test' in data row 1, expected nothing"),
        (EDGES, NODES | {"label": [0, 2**31, 1]}, "got 2147483649 classes, expected 0 to 1000000: "
         "number the classes from 0"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_wrong_tables_are_refused(tmp_path, edges, nodes, message, suffix):
    with pytest.raises(GraphError, match=message):
        read(tmp_path, edges, nodes, suffix)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ({"id": [0.5, 1.5]}, "column 'id' is of type double, expected integers or text"),
        (
            NODES | {"label": [0.0, 0.5, 1.0]},
            "column 'label' holds 0.5 in data row 1, expected int",
        ),
        (NODES | {"label": [0.0, np.inf, 1.0]}, "column 'label' holds inf in data row 1"),
        (NODES | {"label": [0.0, 1.0, 1e300]}, r"column 'label' holds 1e\+300 in data row 2"),
        (NODES | {"label": [[0], [1], [2]]}, "column 'label' is of type list.*, expected text"),
        (NODES | {"split": [[0], [1], [2]]}, "column 'split' is of type list.*, expected text"),
        (NODES | {"size": [1.0, np.inf, 2.0]}, "features hold NaN or infinity at node 1"),
    ],
)
def test_wrong_types_in_parquet_are_refused(tmp_path, nodes, message):
    with pytest.raises(GraphError, match=message):
        read(tmp_path, nodes=nodes)


def test_a_column_that_stands_twice_is_refused(tmp_path):
    write(tmp_path, "edges", EDGES)
    (tmp_path / "nodes.csv").write_text("id,x,x\na,1,2\n")
    with pytest.raises(GraphError, match=r"nodes\.csv: column 'x' occurs twice"):
        read_tables(tmp_path, "t")


@pytest.mark.parametrize("content", ["", "id,x\na,1\nb\n", "id\n\xff\n", "\xff\xfeid\na\n"])
def test_an_unreadable_csv_is_refused(tmp_path, content):
    write(tmp_path, "edges", EDGES)
    (tmp_path / "nodes.csv").write_bytes(content.encode("latin1"))
    message = r"nodes\.csv cannot be read .*expected a csv table with the columns id"
    with pytest.raises(GraphError, match=message):
        read_tables(tmp_path, "t")


def test_an_unreadable_parquet_is_refused(tmp_path):
    (tmp_path / "edges.parquet").write_bytes(b"no parquet")
    with pytest.raises(GraphError, match=r"edges\.parquet cannot be read .*a parquet table"):
        read_tables(tmp_path, "t")


def test_text_after_many_numbers_is_refused(tmp_path):
    write(tmp_path, "edges", EDGES)
    rows = "\n".join(f"{row},1" for row in range(300_000))
    (tmp_path / "nodes.csv").write_text(f"id,x\n{rows}\nlast,red\n")
    with pytest.raises(GraphError, match=r"nodes\.csv cannot be read .*invalid value 'red'"):
        read_tables(tmp_path, "t")


def test_each_table_must_stand_there_once(tmp_path):
    write(tmp_path, "edges", EDGES)
    with pytest.raises(GraphError, match=r"holds 0 of nodes\.parquet and nodes\.csv"):
        read_tables(tmp_path, "t")
    write(tmp_path, "edges", EDGES, ".csv")
    with pytest.raises(GraphError, match=r"holds 2 of edges\.parquet and edges\.csv, expected exa"):
        read_tables(tmp_path, "t")


def test_a_graph_without_nodes_is_refused(tmp_path):
    with pytest.raises(GraphError, match="got 0 nodes"):
        read(tmp_path, pa.table({"source": pa.array([], pa.int64()),
                                 "target": pa.array([], pa.int64())}),
             pa.table({"id": pa.array([], pa.int64())}))  # fmt: skip
