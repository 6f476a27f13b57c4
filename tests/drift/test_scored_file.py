import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.drift.scored_file import read_scored
from gpn_scale.errors import ConfigError
from gpn_scale.evaluation.node_facts import NodeFacts
from gpn_scale.evaluation.prediction_table import Origin, prediction_columns, write_predictions
from gpn_scale.evaluation.table_writers import SUFFIXES, table_writer
from tests.drift.samples import columns_of
from tests.evaluation.samples import prediction_for


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_format_has_the_same_predictions(small_graph, tmp_path, suffix):
    prediction = prediction_for(small_graph)
    path = tmp_path / f"p{suffix}"
    write_predictions(path, prediction, small_graph)
    table = read_scored(path)
    assert table.num_nodes == small_graph.num_nodes
    assert table.num_classes == small_graph.num_classes
    np.testing.assert_array_equal(np.flatnonzero(table.validation), small_graph.split.val)
    np.testing.assert_array_equal(np.flatnonzero(table.marked), small_graph.marked)
    np.testing.assert_array_equal(table.predicted_number, prediction.predicted_class)
    expected = -prediction_columns(prediction, NodeFacts())["aleatoric"].to_numpy()
    np.testing.assert_array_equal(table.probability, expected)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_format_has_the_same_p_values_and_ids(tmp_path, suffix):
    ids = ["=1+1", "007", "2024-01-01", "a,b", 'say "x"', "-7", "<b>", "\u202eabc"]
    columns = columns_of(8, node_name=ids, abstain=[True, False] * 4)
    with table_writer(tmp_path / f"p{suffix}") as writer:
        writer.write(pa.table(columns))
    table = read_scored(tmp_path / f"p{suffix}", name="B")
    assert table.ids.to_pylist() == ids
    assert table.name == "B"
    assert table.abstain.tolist() == columns["abstain"]
    for name, values in table.p.items():
        np.testing.assert_array_equal(values, columns[f"p_{name}"])


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), unique=True))
def test_ids_come_back_from_csv(tmp_path_factory, names):
    names = [name for name in names if "\0" not in name and not name.startswith("'")]
    names = [name for name in names if not set(name) & set("\r\n")]
    if not names:
        return
    path = tmp_path_factory.mktemp("ids") / "x.csv"
    with table_writer(path) as writer:
        writer.write(pa.table(columns_of(len(names), node_name=names)))
    assert read_scored(path).ids.to_pylist() == names


def test_parquet_remembers_the_graph(small_graph, tmp_path):
    origin = Origin(dataset="november", data_dir="graphs", model="abc")
    for suffix in SUFFIXES:
        path = tmp_path / f"p{suffix}"
        write_predictions(path, prediction_for(small_graph), small_graph, origin=origin)
        expected = origin if suffix == ".parquet" else Origin()
        assert read_scored(path).origin == expected


def test_what_others_keep_in_parquet_is_ignored(tmp_path):
    for number, note in enumerate((b"{", b"[]", b'{"dataset": 7}', b'"x"')):
        table = pa.table(columns_of(5)).replace_schema_metadata({b"gpn_scale": note})
        path = tmp_path / f"{number}.parquet"
        pq.write_table(table, path)
        assert read_scored(path).origin == Origin()


def refused(path, message):
    with pytest.raises(ConfigError, match=message) as caught:
        read_scored(path)
    assert "\n" not in str(caught.value)
    assert caught.value.arguments == ("compare",)


def test_files_that_are_no_tables_are_refused(tmp_path):
    refused(tmp_path / "absent.csv", "is not a file")
    (tmp_path / "x.txt").write_text("node")
    refused(tmp_path / "x.txt", r"ends in '.txt', expected")
    for suffix in SUFFIXES:
        (tmp_path / f"empty{suffix}").write_bytes(b"")
        refused(tmp_path / f"empty{suffix}", "cannot be read|not a table of predictions")
        (tmp_path / f"noise{suffix}").write_bytes(b"\x00\xff\x13 {")
        refused(tmp_path / f"noise{suffix}", "cannot be read|not a table of predictions")
    (tmp_path / "short.csv").write_text("node,predicted_class,aleatoric\n1,2\n")
    refused(tmp_path / "short.csv", "cannot be read .*write 3 values as in the header")
    (tmp_path / "other.csv").write_text("account,age\n1,2\n")
    refused(tmp_path / "other.csv", "not a table of predictions: it has no column 'node'")
    (tmp_path / "rows.csv").write_text("node,predicted_class,aleatoric\n")
    refused(tmp_path / "rows.csv", "has no rows")
    (tmp_path / "other.jsonl").write_text(json.dumps({"account": 7}) + "\n")
    refused(tmp_path / "other.jsonl", "no column 'node'")
    line = json.dumps({"node": 0, "predicted_class": 0, "aleatoric": -0.5})
    (tmp_path / "torn.jsonl").write_text(f"{line}\n{line[:20]}\n")
    refused(tmp_path / "torn.jsonl", "cannot be read")


def test_damaged_parquet_is_refused(tmp_path):
    path = tmp_path / "p.parquet"
    pq.write_table(pa.table(columns_of(2000)), path)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    refused(path, "cannot be read as a table of predictions")
    middle = bytearray(content)
    middle[40:4000] = bytes(3960)
    path.write_bytes(bytes(middle))
    refused(path, "cannot be read as a table of predictions|has other values")
    (tmp_path / "folder.parquet").mkdir()
    refused(tmp_path / "folder.parquet", "is not a file")


@given(st.data())
def test_a_flipped_bit_in_a_table_changes_nothing_or_is_noticed(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("flipped") / "x.parquet"
    with table_writer(path, {"dataset": "bank"}) as writer:
        writer.write(pa.table(columns_of(40, node_name=[f"n{node}" for node in range(40)])))
    before, content = read_scored(path), bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(bytes(content))
    try:
        after = read_scored(path)
    except ConfigError:
        return
    assert after.ids.equals(before.ids)
    assert after.p.keys() == before.p.keys()
    for name, values in before.p.items():
        np.testing.assert_array_equal(after.p[name], values)
    np.testing.assert_array_equal(after.probability, before.probability)
    np.testing.assert_array_equal(after.predicted_number, before.predicted_number)
