import csv
import json
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.errors import ConfigError, FileError
from gpn_scale.evaluation.table_writers import (
    SUFFIXES,
    check_layout,
    check_suffix,
    table_facts,
    table_writer,
    with_formulas,
    without_formulas,
)

FIRST = {"node": [0, 1], "name": ['a,"b"', "Grüße\nx"], "score": [0.5, float("nan")]}
SECOND = {"node": [2], "name": ["c"], "score": [1.5]}


def table_of(columns):
    subset = pa.DictionaryArray.from_arrays(
        pa.array([0] * len(columns["node"]), pa.int32()), pa.array(["train"])
    )
    near = pa.array([[1, 2]] * len(columns["node"]), pa.list_(pa.int64()))
    return pa.table({**columns, "split": subset, "near": near})


def written(path):
    with table_writer(path) as writer:
        writer.write(table_of(FIRST))
        writer.write(table_of(SECOND))
    return path


def test_parquet_keeps_types(tmp_path):
    table = pq.read_table(written(tmp_path / "x.parquet"))
    assert table.num_rows == 3
    assert table["near"].to_pylist() == [[1, 2]] * 3


def test_csv_has_texts_for_lists(tmp_path):
    with written(tmp_path / "x.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["name"] for row in rows] == ['a,"b"', "Grüße\nx", "c"]
    assert {row["near"] for row in rows} == {"1 2"}
    assert {row["split"] for row in rows} == {"train"}


def test_json_lines_are_json(tmp_path):
    lines = written(tmp_path / "x.jsonl").read_text(encoding="utf-8").split("\n")
    rows = [json.loads(line) for line in lines if line]
    assert [row["node"] for row in rows] == [0, 1, 2]
    assert [row["score"] for row in rows] == [0.5, None, 1.5]
    assert rows[0]["near"] == [1, 2]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_error_leaves_no_file(tmp_path, suffix):
    def interrupted():
        with table_writer(tmp_path / f"x{suffix}") as writer:
            writer.write(table_of(FIRST))
            raise KeyError

    with pytest.raises(KeyError):
        interrupted()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["x", "x.xlsx", "x.CSV"])
def test_other_suffixes_are_refused(tmp_path, name):
    with pytest.raises(ConfigError, match=r"a file name that ends in \.parquet, \.csv or \.jsonl"):
        check_suffix(tmp_path / name)


IDS = [
    "=1+1",
    "+49 30",
    "-5+1",
    "-5",
    "+3.5",
    "@x",
    "\tx",
    "\rx",
    "\nx",
    "",
    "a=b",
    "'=1",
    'q"u,o/t\\e',
    "\u202eabc",
    None,
]


def csv_column(path, values):
    with table_writer(path) as writer:
        writer.write(pa.table({"id": pa.array(values, pa.string()), "number": [-1] * len(values)}))
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_no_cell_of_a_csv_begins_a_formula(tmp_path):
    rows = csv_column(tmp_path / "x.csv", IDS)
    for given_id, row in zip(IDS, rows, strict=True):
        formula = (given_id or "x")[0] in "=+-@\t\r\n" and given_id not in ("-5", "+3.5")
        assert row["id"] == ("'" if formula else "") + (given_id or "")
        assert row["number"] == "-1"


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl"])
def test_other_formats_keep_texts(tmp_path, suffix):
    path = tmp_path / f"x{suffix}"
    with table_writer(path) as writer:
        writer.write(pa.table({"id": ["=1+1"]}))
    text = (
        pq.read_table(path).to_pylist() if suffix == ".parquet" else [json.loads(path.read_text())]
    )
    assert text == [{"id": "=1+1"}]


def test_lists_of_texts_begin_no_formula_and_lists_of_numbers_are_kept(tmp_path):
    with table_writer(tmp_path / "x.csv") as writer:
        writer.write(pa.table({"a": [["=x", "y"]], "b": [[-1, 2]]}))
    with (tmp_path / "x.csv").open(newline="") as file:
        assert list(csv.DictReader(file)) == [{"a": "'=x y", "b": "-1 2"}]


@given(text=st.text() | st.from_regex(r"[=+@-]?[0-9]{1,3}[.,]?[0-9]?", fullmatch=True))
def test_an_apostrophe_is_all_that_changes(text):
    (safe,) = without_formulas(pa.array([text], pa.string())).to_pylist()
    is_number = re.fullmatch(r"[+-]?[0-9]+(\.[0-9]+)?", text) is not None
    assert safe == (f"'{text}" if text[:1] in tuple("=+-@\t\r\n") and not is_number else text)


@given(st.lists(st.text()))
def test_texts_get_their_formulas_back(texts):
    plain = [text for text in texts if not text.startswith("'")]
    column = pa.array(plain, pa.string())
    assert with_formulas(without_formulas(column)).to_pylist() == plain


def test_parquet_keeps_facts_and_other_formats_do_not(tmp_path):
    for suffix in SUFFIXES:
        with table_writer(tmp_path / f"x{suffix}", {"dataset": "Grüße"}) as writer:
            writer.write(table_of(FIRST))
            writer.write(table_of(SECOND))
    schema = pq.read_schema(tmp_path / "x.parquet")
    assert table_facts(schema) == {"dataset": "Grüße"}
    assert schema.names == list(table_of(FIRST).column_names)
    assert table_facts(pq.read_schema(written(tmp_path / "plain.parquet"))) == {}
    for suffix in (".csv", ".jsonl"):
        assert (tmp_path / f"x{suffix}").read_bytes() == written(
            tmp_path / f"y{suffix}"
        ).read_bytes()


def test_a_description_of_other_columns_is_refused(tmp_path):
    path = tmp_path / "x.parquet"
    with table_writer(path) as writer:
        writer.write(pa.table({"p_known": [0.5]}))
        writer.write(pa.table({"p_known": [0.25]}))
    check_layout(path)
    table = pq.read_table(path)
    metadata = pq.read_metadata(path).metadata
    pq.write_table(table.rename_columns(["p_knowo"]).replace_schema_metadata(metadata), path)
    with pytest.raises(FileError, match="its columns differ from those that were written"):
        check_layout(path)
    pq.write_table(table.slice(1).replace_schema_metadata(metadata), path)
    with pytest.raises(FileError, match="its columns differ from those that were written"):
        check_layout(path)
    pq.write_table(table, path)  # as another program does
    check_layout(path)
