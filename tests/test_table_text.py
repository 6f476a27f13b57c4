import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.table_text import csv_text, from_csv_cell, markdown_row, markdown_text

FORMULAS = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\n=1"]


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_becomes_a_text(text):
    ((cell,),) = csv.reader(io.StringIO(csv_text([[text]]), newline=""))
    plain = text.replace("\r", "\n")
    assert cell == f"'{plain}"
    assert from_csv_cell(cell) == plain


@pytest.mark.parametrize("value", ["a=b", "-7", "+0.5", "-1e-05", "-inf", "", "'tis", 7, -7.5])
def test_numbers_and_other_texts_stay(value):
    assert csv_text([["x", value]]).startswith(f"x,{value}")
    assert from_csv_cell(str(value)) == str(value)


@given(st.lists(st.lists(st.text(st.characters(codec="utf-8")), min_size=2, max_size=2)))
def test_tables_come_back(rows):
    read = list(csv.reader(io.StringIO(csv_text(rows), newline="")))
    assert all(not cell.startswith(tuple("=@\t\r\n")) for row in read for cell in row)
    if not any(set(cell) & set("'\0\r") for row in rows for cell in row):
        assert [[from_csv_cell(cell) for cell in row] for row in read] == rows


@given(st.text())
def test_markdown_has_no_tags_cells_links_or_marks_of_direction(text):
    cell = markdown_text(text)
    assert not set(cell) & set("<>\n\r\u202e\u2066\u200f")
    assert "](" not in cell
    assert markdown_row([text, "1"]).replace("\\\\", "").replace("\\|", "").count("|") == 3


def test_markdown_examples():
    assert markdown_text("<script>alert(1)</script>") == "&lt;script&gt;alert(1)&lt;/script&gt;"
    assert markdown_text("a|b") == "a\\|b"
    assert markdown_text("\\|") == "\\\\\\|"
    assert markdown_text("![x](http://y)") == "![x]\\(http://y)"
    assert markdown_text("a\u202eb") == "a[U+202E]b"
    assert markdown_text("left_out 91.2 ± 0.3 **best**") == "left_out 91.2 ± 0.3 **best**"
