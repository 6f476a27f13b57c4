"""Values at fault are counted the same in one piece and block by block."""

from collections import Counter

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.data import wrong_values
from gpn_scale.data.wrong_values import LISTED_VALUES, WrongValues

ROWS = st.lists(st.tuples(st.none() | st.sampled_from("abcdefghi"), st.booleans()), max_size=30)


@given(rows=ROWS, block=st.integers(1, 7), merged=st.sampled_from([0, 3, 1000]))
def test_blocks_give_the_faults_that_a_counter_gives(rows, block, merged):
    wrong_values._MERGED_VALUES, kept = merged, wrong_values._MERGED_VALUES
    try:
        values = WrongValues()
        for start in range(0, len(rows), block):
            part = rows[start : start + block]
            texts = pa.array([text for text, _ in part], pa.string())
            values.add(texts, np.array([wrong for _, wrong in part]), start)
        faults = values.faults("f", "x", "fix")
    finally:
        wrong_values._MERGED_VALUES = kept
    counts = Counter(text for text, wrong in rows if wrong)
    first = {text: rows.index((text, True)) + 1 for text in counts}
    expected = [(first[text], text, count) for text, count in counts.items()]
    assert [(each.row, each.value, each.count) for each in faults[:LISTED_VALUES]] == (
        expected[:LISTED_VALUES]
    )
    assert values.num_rows == sum(counts.values())
    rest = expected[LISTED_VALUES:]
    assert [(each.row, each.count) for each in faults[LISTED_VALUES:]] == (
        [(rest[0][0], sum(count for *_, count in rest))] if rest else []
    )
    if counts:
        one = values.one_fault("f", "x", "fix")
        assert (one.row, one.value, one.count) == (*expected[0][:2], values.num_rows)
