import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.inference.contributors import contributors_of
from gpn_scale.ppr.rows import Rows


def rows_of(lengths):
    count = sum(lengths)
    return Rows(
        row_ptr=np.append(0, np.cumsum(lengths)).astype(np.int64),
        ids=np.arange(10, 10 + count),
        weights=np.linspace(1.0, 0.5, count).astype(np.float32),
        missing_mass=np.zeros(len(lengths), np.float32),
        cut_mass=np.empty((len(lengths), 0), np.float32),
    )


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.integers(1, 6), st.integers(0, 99))
def test_contributors_are_the_largest_suppliers(lengths, count, seed):
    rows = rows_of(lengths)
    supplied = np.random.default_rng(seed).uniform(0.1, 1.0, rows.num_entries)
    total = np.full(rows.num_rows, 10.0)
    result = contributors_of(rows, supplied, total, np.arange(rows.num_entries) % 3, count)
    for row, length in enumerate(lengths):
        entries = np.arange(rows.row_ptr[row], rows.row_ptr[row + 1])
        expected = entries[np.argsort(-supplied[entries], kind="stable")][:count]
        shown = min(count, length)
        assert result.node[row, :shown].tolist() == rows.ids[expected].tolist()
        assert (result.node[row, shown:] == -1).all()
        np.testing.assert_allclose(result.share[row, :shown], supplied[expected] / 10.0)
        assert result.leading_class[row, :shown].tolist() == (expected % 3).tolist()
        assert result.tail_share[row] == pytest.approx(1.0 - supplied[entries].sum() / 10.0)
