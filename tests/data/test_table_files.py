"""Tables in files: every value arrives, and what cannot be read is refused by a fault."""

import csv
import gzip
import io

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from gpn_scale.data import table_files
from gpn_scale.data.faults import TableFaults
from gpn_scale.data.table_files import TableFile, open_table, plain, read_parquet, repeated_names


def read_all(path):
    table = open_table(path)
    return table.read(table.column_names).to_pydict()


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_values_stay_text(tmp_path, delimiter, compressed, mark):
    text = f"{mark}ref,age,note\n007,1.50,\n8,,NA\n".replace(",", delimiter)
    content = text.encode()
    path = tmp_path / "any.name"
    path.write_bytes(gzip.compress(content) if compressed else content)
    expected = {"ref": ["007", "8"], "age": ["1.50", None], "note": [None, "NA"]}
    assert read_all(path) == expected


def test_a_column_is_read_alone(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,b,c\n1,2,3\n")
    assert open_table(path).read(["c", "a"]).to_pydict() == {"c": ["3"], "a": ["1"]}
    assert open_table(path).read([]).to_pydict() == {}


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_and_blank_lines_do_not_count(tmp_path, end):
    path = tmp_path / "x.csv"
    path.write_bytes(end.join(["", "", "a,b", "1,2", "", "3,4"]).encode())
    assert read_all(path) == {"a": ["1", "3"], "b": ["2", "4"]}


@pytest.mark.parametrize("text", ["a,b", "a,b\n", "\n\na,b\n\n"])
def test_a_table_may_have_no_rows(tmp_path, text):
    path = tmp_path / "x.csv"
    path.write_text(text)
    assert read_all(path) == {"a": [], "b": []}


def test_decimal_commas_do_not_separate_values(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("id;size\na;1,5\nb;2,5\n")
    assert read_all(path) == {"id": ["a", "b"], "size": ["1,5", "2,5"]}


def test_types_do_not_depend_on_the_first_rows(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a\n" + "1\n" * 3_000_000 + "x\n")
    column = open_table(path).read(["a"])["a"]
    assert column[-1].as_py() == "x"
    assert len(column) == 3_000_001


def test_a_column_without_a_name_gets_one(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(",a\n0,x\n")
    assert read_all(path) == {"Unnamed: 0": ["0"], "a": ["x"]}


VALUES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5)
NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=5)
NAMES = NAMES.filter(lambda name: name.strip() and not name.startswith("\ufeff"))


@settings(max_examples=100, deadline=None)
@given(data=st.data(), delimiter=st.sampled_from(",;\t|"))
def test_any_text_survives(tmp_path_factory, data, delimiter):
    names = data.draw(st.lists(NAMES, min_size=2, max_size=4, unique=True))
    rows = st.lists(VALUES, min_size=len(names), max_size=len(names))
    rows = data.draw(st.lists(rows, max_size=4))
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, delimiter=delimiter, quoting=csv.QUOTE_ALL)
    writer.writerows([names, *rows])
    path = tmp_path_factory.mktemp("any") / "x.csv"
    path.write_bytes(buffer.getvalue().encode())
    columns = [[row[place] or None for row in rows] for place in range(len(names))]
    assert read_all(path) == dict(zip(names, columns, strict=True))
    batches = [batch.to_pylist() for batch in open_table(path).batches(names)]
    assert [row for batch in batches for row in batch] == [
        dict(zip(names, (value or None for value in row), strict=True)) for row in rows
    ]


def test_parquet_keeps_its_types(tmp_path):
    table = pa.table(
        {
            "a": pa.array([1, None]),
            "a.b": pa.array(["x", "y"]).dictionary_encode(),
            "bytes": pa.array([b"text", None]),
            "view": pa.array(["u", "v"], pa.string_view()),
        }
    )
    parquet.write_table(table, tmp_path / "x.csv")  # the content decides, not the name
    opened = open_table(tmp_path / "x.csv")
    result = opened.read(["a", "a.b", "bytes", "view"])
    assert result.column_names == ["a", "a.b", "bytes", "view"]
    assert result["a"].type == pa.int64()
    assert result["a.b"].to_pylist() == ["x", "y"]
    assert result["bytes"].to_pylist() == ["text", None]
    assert not any(pa.types.is_dictionary(kind) for kind in result.schema.types)
    assert opened.read(["a"]).column_names == ["a"]


def test_bytes_that_are_no_text_stay_bytes():
    assert plain(pa.table({"a": [b"\xff"]}))["a"].to_pylist() == [b"\xff"]


def test_all_columns_of_parquet_are_the_default(tmp_path):
    parquet.write_table(pa.table({"a": [1], "b": [2]}), tmp_path / "x.parquet")
    assert read_parquet(tmp_path / "x.parquet").column_names == ["a", "b"]


def test_repeated_names_are_listed_once():
    assert repeated_names(["a", "b", "a", "a", "c", "b"]) == ["a", "b"]


@pytest.mark.parametrize(
    ("content", "advice"),
    [
        (b"", "the file is empty: write a line of column names"),
        (b"\n\n", "the file is empty"),
        (b"id,x\n\0\1\2", "the file is binary: expected a CSV or Parquet file"),
        (b"PK\x03\x04rest", "an archive or an Excel workbook: save the table as CSV"),
        ("id,x\na,1\n".encode("utf-16"), "the text is UTF-16: save the file as UTF-8"),
        ("id,x\nMüller,1\n".encode("latin1"), "byte 0xfc is not UTF-8 text: save the file as"),
        (b"PAR1 but no more", r"name a readable CSV or Parquet file \(.*\)"),
        (b"\x1f\x8b\x08broken", r"name a readable CSV or Parquet file \(.*\)"),
        (b'"a' * (1 << 20), "write a header of less than 1,048,576 bytes"),
        (b"a,b\n" + b"1,2\n" * 300_000 + b"1,\xff\n", "save the file as UTF-8"),
        (b'a,b\n1,"2\n3,4\n', "close the quote that the last row leaves open"),
    ],
)
def test_a_file_that_is_no_table_is_refused(tmp_path, content, advice):
    path = tmp_path / "x.csv"
    path.write_bytes(content)
    with pytest.raises(TableFaults, match=rf"x\.csv .*{advice}"):
        read_all(path)


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    with pytest.raises(TableFaults, match=r"none\.csv .*\(No such file or directory\)"):
        open_table(tmp_path / "none.csv")
    with pytest.raises(TableFaults, match=r"is a folder, expected a regular file"):
        open_table(tmp_path)


def test_every_repeated_name_is_a_fault(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,b,a,b,c\n1,2,3,4,5\n")
    with pytest.raises(TableFaults, match="two columns have this name") as error:
        open_table(path)
    assert [fault.column for fault in error.value.faults] == ["a", "b"]


def test_rows_of_another_length_are_counted(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,2\n3\n4,5,6\n7,8\n")
    with pytest.raises(TableFaults, match="write 2 values as in the header, not 1") as error:
        read_all(path)
    (fault,) = error.value.faults
    assert (fault.row, fault.value, fault.count) == (2, "3", 2)
    with pytest.raises(TableFaults) as error:
        list(open_table(path).batches(["b"]))
    assert error.value.faults == (fault,)


@pytest.mark.parametrize(
    ("text", "advice"),
    [('a,b\n1,2\n3,"4\n5,6\n', "close the quote"), ("a,b\n1,\udcff\n", "save the file as UTF-8")],
)
def test_batches_are_checked_as_whole_files_are(tmp_path, monkeypatch, text, advice):
    monkeypatch.setattr(table_files, "SAMPLE_BYTES", 8)
    path = tmp_path / "x.csv"
    path.write_bytes(text.encode(errors="surrogateescape"))
    for read in (TableFile.read, lambda table, columns: list(table.batches(columns))):
        with pytest.raises(TableFaults, match=advice):
            read(open_table(path), ["a", "b"])


@pytest.mark.parametrize("values", [["x", None], [b"x", b"y"], [b"x", b"\xff"], [1, 2]])
def test_batches_of_parquet_have_the_types_of_the_whole(tmp_path, monkeypatch, values):
    monkeypatch.setattr(table_files, "_BATCH_ROWS", 1)
    parquet.write_table(pa.table({"a": values, "b": [1, 2]}), tmp_path / "x.parquet")
    table = open_table(tmp_path / "x.parquet")
    assert pa.concat_tables(table.batches(["a"])).equals(table.read(["a"]))
    assert list(table.batches([])) == []


def test_damaged_parquet_is_refused(tmp_path):
    path = tmp_path / "x.parquet"
    parquet.write_table(pa.table({"a": list(range(1000))}), path)
    content = bytearray(path.read_bytes())
    content[4:300] = bytes(296)
    path.write_bytes(bytes(content))
    with pytest.raises(TableFaults, match=r"x\.parquet .*write the file again"):
        read_all(path)


def test_a_name_with_nul_is_refused(tmp_path):
    parquet.write_table(pa.table({"a\0": [1]}), tmp_path / "x.parquet")
    with pytest.raises(TableFaults, match="without a NUL character"):
        open_table(tmp_path / "x.parquet")
