from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.csr import entries_of, ranges

lists = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 5)), max_size=20)


@given(lists)
def test_ranges_follow_each_other(pairs):
    start = np.array([first for first, _ in pairs], np.int64)
    count = np.array([length for _, length in pairs], np.int64)
    expected = [first + step for first, length in pairs for step in range(length)]
    assert ranges(start, count).tolist() == expected


@given(st.lists(st.lists(st.integers(0, 9), max_size=4), min_size=1, max_size=8), st.data())
def test_entries_of_rows_in_any_order_and_with_repeats(rows, data):
    indptr = np.append(0, np.cumsum([len(row) for row in rows]))
    flat = np.array([entry for row in rows for entry in row], np.int64)
    asked = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=10))
    row_ptr, place = entries_of(indptr, np.array(asked, np.int64))
    entries = [flat[place[a:b]].tolist() for a, b in pairwise(row_ptr)]
    assert entries == [rows[index] for index in asked]
