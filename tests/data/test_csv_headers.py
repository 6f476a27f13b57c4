"""The beginning of a CSV file tells its columns and what separates them."""

import pytest

from gpn_scale.data.csv_headers import csv_header, decoded_sample
from gpn_scale.data.faults import TableFaults


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_that_divides_all_rows_alike_counts(delimiter):
    text = f"a{delimiter}b c\n1{delimiter}2,5 x\n"
    header = csv_header(text if delimiter != "," else "a,b c\n1,2;5 x\n", complete=True)
    assert (header.names, header.delimiter, header.num_rows) == (["a", "b c"], delimiter, 1)


def test_a_row_that_the_sample_cuts_does_not_count():
    assert csv_header("a,b\n1,2\n3", complete=False).num_rows == 1
    assert csv_header("\n\n", complete=True) is None


@pytest.mark.parametrize(
    ("sample", "advice"),
    [
        (b"PK\x03\x04rest", "archive or an Excel workbook"),
        ("a,b".encode("utf-16"), "save the file as UTF-8"),
        (b"a\0b", "the file is binary"),
        (b"a,\xff", "byte 0xff is not UTF-8"),
    ],
)
def test_what_is_no_text_is_refused(sample, advice):
    with pytest.raises(TableFaults, match=advice):
        decoded_sample(sample, True, "x.csv")


def test_a_character_that_the_sample_cuts_is_left_out():
    assert decoded_sample("aä".encode()[:-1], False, "x.csv") == "a"
